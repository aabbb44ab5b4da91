"""ssh: a server that is stopped, a way to it that goes nowhere, and a program left behind by a command."""

import os
import pathlib
import pwd
import signal

from case import Root, Truth, freeze
from freezes.pipes import connect
from freezes.procfs import descendants, must_be_stopped, must_wait_in, pipes, running, status, until_named
from freezes.tcp import PYTHON
from stage import CannotRun, Fault, accepts, free_port, need, now_ns, output_of, wait_for


class Server:
    """An sshd that lets root in by a key. `client` is the command line that reaches it, without
    the host and with `port`; `settings` are more lines of its configuration."""

    def __init__(self, stage, *settings):
        need("/usr/sbin/sshd", "ssh", "ssh-keygen")
        if os.geteuid() != 0:
            raise CannotRun("only root can start an sshd of its own")
        try:
            pwd.getpwnam("sshd")
        except KeyError:
            raise CannotRun("there is no user sshd") from None
        # It does not start without that folder, which the system makes for its own sshd.
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        folder = stage.directory / "ssh"
        folder.mkdir(mode=0o700)
        for key in ("host", "client"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key]
            output_of(words, env=stage.environment)
        self.port = free_port()
        lines = (
            f"ListenAddress 127.0.0.1:{self.port}", f"HostKey {folder}/host",
            f"AuthorizedKeysFile {folder}/client.pub", "PermitRootLogin yes", "StrictModes no",
            "UsePAM no", "PidFile none", *settings,
        )  # fmt: skip
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")
        words = ["/usr/sbin/sshd", "-D", "-f", folder / "sshd_config"]
        self.process = stage.start(words)
        wait_for("sshd", lambda: accepts(self.port))
        options = (
            "BatchMode=yes", "StrictHostKeyChecking=no", f"UserKnownHostsFile={folder}/known",
            f"IdentityFile={folder}/client", "IdentitiesOnly=yes", "LogLevel=ERROR",
        )  # fmt: skip
        self.client = ["ssh", "-F", "none", *(f"-o{option}" for option in options)]


@freeze("shells", "ssh-server-stopped")
def server_stopped(stage):
    """ssh waits for the greeting of an sshd that is stopped."""
    server = Server(stage)
    os.kill(server.process.pid, signal.SIGSTOP)
    words = [*server.client, "-p", str(server.port), "root@127.0.0.1", "true"]
    ssh = stage.program(words)
    begin = until_named(ssh.pid, "ssh")

    def look():
        must_be_stopped(server.process.pid)
        return must_wait_in(ssh.pid)

    channel = stage.hold(look)
    os.kill(server.process.pid, signal.SIGCONT)
    greeted = now_ns()
    end = ssh.ended()
    return Truth(
        text="LongWait for a greeting; root sshd, stopped",
        victims=(ssh.pid,),
        roots=(Root(server.process.pid, ("LongWait",)),),
        frozen=(begin, greeted),
        # After the greeting both compute keys.
        troubled=(begin, end),
        witness=f"/proc: {server.process.pid} is stopped; ssh waits in {channel}",
    )


@freeze("shells", "ssh-proxy-command")
def proxy_command(stage):
    """ssh has a program connect it, its ProxyCommand, which itself waits for somebody to connect:
    ssh gets no greeting."""
    need("ssh", "socat", "bash")
    path = stage.directory / "tunnel"
    proxy = f"ProxyCommand=socat UNIX-LISTEN:{path} -"
    ssh = stage.program(["ssh", "-F", "none", "-oLogLevel=QUIET", f"-o{proxy}", "shop.test"])
    begin = until_named(ssh.pid, "ssh")
    wait_for("socat", path.exists)
    socat = running("socat", path)

    def look():
        return must_wait_in(ssh.pid), must_wait_in(socat)

    channels = stage.hold(look)
    connect(path)
    end = ssh.ended()
    return Truth(
        text="LongWait for a greeting; root socat, which waits for a connection",
        victims=(ssh.pid,),
        roots=(Root(socat, ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: ssh waits in {channels[0]}, socat in {channels[1]}",
    )


@freeze("shells", "ssh-background-program")
def background_program(stage):
    """ssh runs a command that leaves a web server in the background and ends. The server has the command's output open,
    which sshd reads to its end."""
    need(PYTHON)
    server, port = Server(stage), free_port()
    stage.ordinary()
    words = [*server.client, "-p", str(server.port), "root@127.0.0.1"]
    ssh = stage.program([*words, f"{PYTHON} -m http.server --bind 127.0.0.1 {port} & echo deployed"])
    wait_for("the web server", lambda: accepts(port))
    begin = until_named(ssh.pid, "ssh")
    left = running(pathlib.Path(PYTHON).name, port)
    daemon = server.process.pid
    wait_for("the shell's end", lambda: int(status(left)["PPid"]) not in descendants(daemon))
    sessions = [pid for pid in descendants(daemon) if pipes(pid) & pipes(left)]

    def look():
        if not sessions or not pipes(sessions[0]) & pipes(left):
            raise Fault("/proc: sshd and the program in the background share no pipe")
        return must_wait_in(ssh.pid), must_wait_in(sessions[0]), must_wait_in(left)

    channels = stage.hold(look)
    os.kill(left, signal.SIGKILL)
    return Truth(
        text="LongWait for the end of a command's output; root the web server in the background, which has it open",
        victims=(ssh.pid,),
        roots=(Root(left, ("LongWait",)),),
        frozen=(begin, ssh.ended()),
        witness=f"/proc: a pipe of sshd's session is open in {left} alone; they wait in {', '.join(channels)}",
    )
