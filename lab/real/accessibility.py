"""gedit is started while the accessibility bus does not answer: its daemon is stopped."""

import os
import pathlib
import signal
import time

from judge import Truth
from stage import Fault, need, of_session, output_of, wait_for
from watcher import Watcher

NAME = "gedit"
FREEZE_S = 4.0


def daemon_of(session):
    """The process of the accessibility bus, which D-Bus has started in its own session."""

    def look():
        return [pid for pid, command in of_session(session) if "accessibility.conf" in command]

    return wait_for("the accessibility bus", look)[0]


def is_stopped(pid):
    """Whether a process is stopped, by /proc."""
    return "\nState:\tT" in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")


def play(stage):
    """Freezes the editor; gives the truth."""
    need("gedit", "ss")
    stage.display()
    bus = stage.session_bus()
    text = stage.directory / "text.txt"
    text.write_text("some text\n")

    def edit():
        return stage.start(["gedit", "--standalone", text])

    def edit_shortly():
        editor = edit()
        stage.window("text.txt")
        editor.terminate()
        editor.wait()

    # The first one has the bus started.
    edit_shortly()
    stopped = daemon_of(bus.pid)
    with stage.recording():
        edit_shortly()
        time.sleep(0.5)
        os.kill(stopped, signal.SIGSTOP)
        editor = edit()
        watcher = Watcher(editor.pid)
        time.sleep(FREEZE_S)
        state = is_stopped(stopped)
        sockets = [
            line
            for line in output_of(["ss", "-xpn"]).splitlines()
            if f"pid={editor.pid}," in line and line.split()[3] != "0"
        ]
        os.kill(stopped, signal.SIGCONT)
        stage.window("text.txt")
        turn = watcher.longest()
    if not state:
        raise Fault(f"/proc: {stopped} was not stopped")
    if not sockets:
        raise Fault("ss: gedit has sent nothing that is not read")
    return Truth(
        text="LongWait in D-Bus; root dbus-daemon, stopped",
        victim=editor.pid,
        problem_class="LongWait",
        root=stopped,
        root_class="LongWait",
        frozen=turn.span,
        witness=f"/proc: {stopped} is stopped; ss: {sockets[0].split()[3]} bytes that gedit sent "
        "are unread",
        waits_in="dbus|atspi",
    )
