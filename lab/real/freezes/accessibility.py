"""gedit is started while the accessibility bus does not answer: its daemon is stopped."""

import os
import pathlib
import signal

from case import Root, Truth, freeze
from processes import of_session
from stage import Fault, need, output_of, wait_for
from watcher import Watcher


def daemon_of(session):
    """The process of the accessibility bus, which D-Bus has started in its own session."""

    def look():
        return [pid for pid, command in of_session(session) if "accessibility.conf" in command]

    return wait_for("the accessibility bus", look)[0]


def is_stopped(pid):
    """Whether a process is stopped, by /proc."""
    return "\nState:\tT" in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")


@freeze("desktop", "gedit-accessibility-bus")
def stopped_bus(stage):
    """gedit starts while the daemon of the accessibility bus is stopped, and waits for its answer
    before it opens a window."""
    need("gedit", "ss")
    stage.display()
    bus = stage.session_bus()
    text = stage.directory / "text.txt"
    text.write_text("some text\n")
    words = ["gedit", "--standalone", text]
    # The first one has the bus started.
    first = stage.start(words)
    stage.window("text.txt")
    first.terminate()
    first.wait()
    stopped = daemon_of(bus.pid)
    stage.ordinary()
    os.kill(stopped, signal.SIGSTOP)
    editor = stage.program(words)
    watcher = Watcher(editor.pid)

    def look():
        unread = [
            line
            for line in output_of(["ss", "-xpn"]).splitlines()
            if f"pid={editor.pid}," in line and line.split()[3] != "0"
        ]
        return is_stopped(stopped), unread

    is_so, unread = stage.hold(look)
    os.kill(stopped, signal.SIGCONT)
    stage.window("text.txt")
    if not is_so:
        raise Fault(f"/proc: {stopped} was not stopped")
    if not unread:
        raise Fault("ss: gedit has sent nothing that is not read")
    return Truth(
        text="LongWait in D-Bus; root dbus-daemon, stopped",
        victims=(editor.pid,),
        roots=(Root(stopped, ("LongWait",)),),
        frozen=watcher.longest().span,
        witness=f"/proc: {stopped} is stopped; ss: {unread[0].split()[3]} bytes that gedit sent "
        "are unread",
        waits_in="dbus|atspi",
    )
