"""Windows whose display server does not serve them: it is stopped, or another program has grabbed
it."""

import os
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.accessibility import is_stopped
from freezes.panels import share_of_cpu, state_of
from freezes.procfs import until_descendant
from freezes.stopped import ask_stopped, stop
from stage import Fault, need, output_of, wait_for
from watcher import Watcher

# Scrolls a terminal five times a second.
TERMINAL = ["xterm", "-T", "terminal", "-e", "top", "-b", "-d", "0.2"]


def unread(pid):
    """The connections of a process that have bytes which it has not read."""
    lines = output_of(["ss", "-xpnH"]).splitlines()
    return [line for line in lines if f"pid={pid}," in line and line.split()[2] != "0"]


@freeze("toolkits", "x11-server-stopped")
def server_stopped(stage):
    """A terminal in which a program prints waits for the X server, which is stopped."""
    need("xterm", "top", "ss")
    stage.display()
    server, = stage.leaders
    terminal = stage.program(TERMINAL)
    stage.window("^terminal$")
    top = until_descendant(terminal.pid, "top")
    watcher = Watcher(terminal.pid)
    stage.ordinary()
    stop(server)

    def look():
        return is_stopped(server), state_of(terminal.pid), unread(server)

    stopped, state, waiting = stage.hold(look)
    os.kill(server, signal.SIGCONT)
    turn = came_back(watcher)
    if not stopped or state != "S" or not waiting:
        raise Fault(f"the server is stopped: {stopped}; xterm is {state}; ss: {waiting}")
    return Truth(
        text="LongWait; root Xvfb, stopped",
        # The terminal does not take what top prints.
        victims=(terminal.pid, top),
        roots=(Root(server, ("LongWait",)),),
        frozen=turn.span,
        witness=f"/proc: Xvfb is stopped; ss: it has {waiting[0].split()[2]} bytes unread",
    )


def came_back(watcher):
    """The turn in which a program was frozen, once it is over."""
    wait_for("the terminal goes on", lambda: watcher.longest().wall_s > 2)
    return watcher.longest()


@freeze("toolkits", "x11-server-grabbed")
def server_grabbed(stage):
    """A program for screenshots has grabbed the X server until a person has marked a part of the
    screen; a terminal in which a program prints waits that long."""
    need("xterm", "top", "scrot")
    stage.display()
    server, = stage.leaders
    terminal = stage.program(TERMINAL)
    stage.window("^terminal$")
    top = until_descendant(terminal.pid, "top")
    watcher = Watcher(terminal.pid)
    stage.ordinary()
    grabber = stage.start(["scrot", "--freeze", "--select", stage.directory / "shot.png"])

    def look():
        """A client that comes now is not served either."""
        words = ["xdotool", "getmouselocation"]
        try:
            subprocess.run(words, env=stage.environment, timeout=0.5, check=False,
                           stdout=subprocess.DEVNULL)
            served = True
        except subprocess.TimeoutExpired:
            served = False
        return served, state_of(terminal.pid), share_of_cpu(grabber.pid), state_of(server)

    served, state, share, state_server = stage.hold(look)
    grabber.send_signal(signal.SIGTERM)
    turn = came_back(watcher)
    if served or state != "S":
        raise Fault(f"the server serves others: {served}; xterm is {state}")
    return Truth(
        text="LongWait; root scrot, which has grabbed the X server and waits for a person",
        # The terminal does not take what top prints.
        victims=(terminal.pid, top),
        roots=(Root(grabber.pid, ("LongWait",)),),
        outside=True,
        frozen=turn.span,
        witness=f"xdotool gets no answer either; /proc: Xvfb is {state_server}, scrot used "
        f"{share:.0%} of the time",
    )


@freeze("toolkits", "wayland-compositor-stopped")
def compositor_stopped(stage):
    """A terminal is started while the Wayland compositor is stopped, and does not get so far as to
    open its window."""
    need("weston", "weston-terminal")
    name = "lab-wayland"
    weston = stage.start(
        ["weston", "--backend=headless-backend.so", f"--socket={name}", "--idle-time=0"]
    )
    wait_for("weston", (stage.directory / name).exists)
    stage.environment["WAYLAND_DISPLAY"] = name
    words = ["weston-terminal", "--shell=/bin/true"]
    output_of(words, env=stage.environment)
    return ask_stopped(stage, words, weston.pid, "LongWait; root weston, stopped")
