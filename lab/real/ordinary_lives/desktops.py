"""Desktops and windows: idle, in use, drawing; and a terminal in which somebody types."""

import subprocess

import life
from ordinary_lives.register import ordinary, slowest_turn, title_after, until_turns
from ordinary_lives.tools import DEBIAN_PYTHON, program
from stage import CannotRun, need, output_of, wait_for
from watcher import Watcher, until_idle


@ordinary("idle machine")
def idle_machine(_stage):
    """Nothing is started."""


@ordinary("idle desktop")
def idle_desktop(stage):
    """A window manager and an editor with a letter, and nobody types."""
    need("mousepad", "openbox")
    stage.display()
    stage.session_bus()
    stage.start(["openbox"])
    letter = stage.directory / "letter.txt"
    letter.write_text("Dear all,\n")
    editor = stage.start(["mousepad", "--disable-server", letter])
    window = stage.window("letter.txt")
    until_idle(editor.pid)
    return title_after(stage, window, ("type", "x"), r"^\*")


@ordinary("desktop in use")
def desktop_in_use(stage):
    """Somebody types in an editor and opens and closes a terminal (life.py)."""
    life.desktop(stage)
    words = ["pgrep", "-n", "-s", ",".join(map(str, stage.leaders)), "mousepad"]
    editor = Watcher(int(output_of(words)))
    wait_for("the editor's turns", lambda: len(editor.turns) > 20)

    def look(begin_ns, end_ns):
        turns = [turn for turn in editor.turns if begin_ns < turn.end_ns < end_ns]
        worst = max(turn.cpu_s for turn in turns)
        return worst, f"/proc: the longest of {len(turns)} turns of the editor ran {worst:.2f} s"

    return look


@ordinary("frame loop")
def frame_loop(stage):
    """A window is drawn anew 60 times a second, in 4 ms each."""
    need(DEBIAN_PYTHON)
    found = "import gi; gi.require_version('Gtk', '3.0'); gi.require_foreign('cairo')"
    if subprocess.run([DEBIAN_PYTHON, "-c", found], check=False, stderr=-3).returncode:
        raise CannotRun("not installed: python3-gi-cairo, gir1.2-gtk-3.0")
    stage.display()
    # Else GTK starts a bus of its own, which would stay behind.
    stage.session_bus()
    log = stage.directory / "frames.log"
    stage.start([DEBIAN_PYTHON, program("ord_frames.py"), log])
    until_turns(log, 60)
    return slowest_turn(log, "frames")


@ordinary("terminal")
def terminal(stage):
    """Somebody types commands in bash, within tmux, within xterm."""
    need("tmux", "xterm", "bash")
    stage.display()
    socket, log = stage.directory / "tmux", stage.directory / "typed.log"
    # Started by its own name, for a server that tmux forks has no session of the stage.
    stage.start(["tmux", "-D", "-f", "/dev/null", "-S", socket])
    wait_for("tmux", socket.exists)
    words = ["tmux", "-S", socket, "new-session", "-s", "work", "bash", "--norc", "--noprofile"]
    stage.start(["xterm", "-e", *words])
    stage.start([DEBIAN_PYTHON, program("ord_typist.py"), log, socket])
    until_turns(log, 3)
    return slowest_turn(log, "commands from Enter to their output")
