"""git waits for a hook, for an editor, for a server that is stopped, and for what sshd runs before
it hands over."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.build_tools import LEAST_SHARE
from freezes.procfs import (
    cpu_s,
    must_be_stopped,
    must_wait_in,
    running,
    until_descendant,
    until_named,
)
from freezes.ssh import Server
from freezes.tcp import PROGRAMS, PYTHON
from processes import NICE
from stage import Fault, accepts, free_port, need, now_ns, output_of, wait_for


def repository(stage):
    """A folder under git with one commit and a change that is not committed."""
    need("git")
    folder = stage.directory / "shop"
    folder.mkdir()
    (stage.directory / ".gitconfig").write_text("[user]\nname = lab\nemail = lab@lab.test\n")

    def git(*words):
        return output_of(["git", "-C", folder, *words], env=stage.environment)

    git("init", "-q")
    (folder / "order.txt").write_text("12 pieces\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    (folder / "order.txt").write_text("13 pieces\n")
    return folder


@freeze("shells", "git-hook")
def hook(stage):
    """git commit waits for the repository's hook, a checker of words in Python, which computes."""
    need("/usr/bin/python3")
    folder = repository(stage)
    shutil.copy(PROGRAMS / "sh_check_words.py", folder / ".git" / "hooks" / "pre-commit")
    checked = stage.directory / "checked"
    stage.environment["CHECKED"] = str(checked)
    git = stage.program(["git", "-C", str(folder), "commit", "-q", "-a", "-m", "more"])
    begin = until_named(git.pid, "git")
    checker = until_descendant(git.pid, "pre-commit")
    before, started = cpu_s(checker), now_ns()
    channel = stage.hold(lambda: must_wait_in(git.pid, "wait"))
    used, seconds = cpu_s(checker) - before, (now_ns() - started) / 1e9
    checked.touch()
    end = git.ended()
    if used < LEAST_SHARE * seconds:
        raise Fault(f"schedstat: the hook ran for {used:.1f} of {seconds:.1f} s")
    return Truth(
        text="LongRunning in check_words; root pre-commit, the hook",
        victims=(git.pid,),
        roots=(Root(checker, ("LongRunning",)),),
        frozen=(begin, end),
        witness=f"/proc: git waits in {channel}; the hook had the CPU for {used:.1f} s",
        function="check_words|distance",
    )


@freeze("shells", "git-editor")
def editor(stage):
    """git commit waits for its editor, mousepad, in which nobody types."""
    need("mousepad")
    folder = repository(stage)
    stage.display()
    stage.session_bus()
    stage.environment["GIT_EDITOR"] = "mousepad --disable-server"
    git = stage.program(["git", "-C", str(folder), "commit", "-q", "-a"])
    begin = until_named(git.pid, "git")
    window = stage.window("COMMIT_EDITMSG")
    mousepad = running("mousepad", "COMMIT_EDITMSG")
    before = cpu_s(mousepad)
    channel = stage.hold(lambda: must_wait_in(git.pid, "wait"))
    used = cpu_s(mousepad) - before
    # The window is gone before xdotool has let go of the keys, which it complains of.
    words = ["xdotool", "key", "--window", window, "ctrl+q"]
    subprocess.run(words, env=stage.environment, capture_output=True, check=False)
    end = git.ended()
    if used > 0.2 * stage.freeze_s:
        raise Fault(f"schedstat: mousepad ran for {used:.1f} s")
    return Truth(
        text="LongWait for a person; root mousepad",
        victims=(git.pid,),
        roots=(Root(mousepad, ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: git waits in {channel}; mousepad had the CPU for {used:.2f} s",
    )


@freeze("shells", "git-daemon-stopped")
def daemon_stopped(stage):
    """git asks for the branches of a repository that a stopped git daemon serves."""
    folder, port = repository(stage), free_port()
    daemon = stage.start(
        ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all"]
        + [f"--base-path={stage.directory}", stage.directory]
    )
    wait_for("the git daemon", lambda: accepts(port))
    # `git` starts it and waits for it.
    serving = running("git-daemon", f"--port={port}")
    os.kill(serving, signal.SIGSTOP)
    git = stage.program(["git", "ls-remote", f"git://127.0.0.1:{port}/{folder.name}"])
    begin = until_named(git.pid, "git")

    def look():
        must_be_stopped(serving)
        return output_of(["ss", "-tnlH", "sport", "=", f":{port}"]).split()[1]

    queued = stage.hold(look)
    os.kill(serving, signal.SIGCONT)
    end = git.ended()
    if queued == "0":
        raise Fault("ss: no connection waits to be accepted")
    return Truth(
        text="LongWait for an answer; root git-daemon, stopped",
        victims=(git.pid,),
        roots=(Root(serving, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: {serving}, child of {daemon.pid}, is stopped; ss: {queued} connections "
        "not accepted",
    )


@freeze("shells", "git-over-ssh")
def over_ssh(stage):
    """git asks for the branches of a repository behind ssh, and what sshd runs before it hands
    over to git's server, a check of rights in Python, computes."""
    need(PYTHON)
    folder = repository(stage)
    allowed = stage.directory / "allowed"
    gate = f"{PYTHON} {PROGRAMS / 'sh_git_gate.py'} {allowed}"
    server = Server(stage, f"ForceCommand exec {gate}")
    stage.environment["GIT_SSH_COMMAND"] = " ".join(server.client)
    git = stage.program(["git", "ls-remote", f"ssh://root@127.0.0.1:{server.port}{folder}"])
    begin = until_named(git.pid, "git")
    checker = running("python3", gate)
    # sshd has made a session for it, which needs the CPU as those of the stage do.
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{checker}/autogroup").write_text(str(NICE))
    before, started = cpu_s(checker), now_ns()
    ssh = until_descendant(git.pid, "ssh")
    stage.hold()
    used, seconds = cpu_s(checker) - before, (now_ns() - started) / 1e9
    allowed.touch()
    decided = now_ns()
    end = git.ended()
    if used < LEAST_SHARE * seconds:
        raise Fault(f"schedstat: the check ran for {used:.1f} of {seconds:.1f} s")
    return Truth(
        text="LongRunning in check_access; root python3, behind ssh and sshd",
        victims=(git.pid, ssh),
        roots=(Root(checker, ("LongRunning",)),),
        frozen=(started, decided),
        # Before, ssh logs in; after, git's server answers.
        troubled=(begin, end),
        witness=f"schedstat: the check had the CPU for {used:.1f} of {seconds:.1f} s",
        function="check_access",
    )
