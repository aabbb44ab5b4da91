"""mousepad: 4,000 long lines are pasted into an empty document. To insert them is quick; to break
and lay them out is not."""

import time

from judge import Truth
from stage import need, now_ns
from watcher import Watcher, must_be_in, until_idle

NAME = "mousepad"
LINES = 4000
LINE = "The quick brown fox jumps over the lazy dog; " * 40
SETTINGS = "[org/xfce/mousepad/preferences/view]\nword-wrap=true\n"


def play(stage):
    """Freezes the editor; gives the truth."""
    need("mousepad", "xclip", "gdb")
    stage.display()
    stage.session_bus()
    stage.environment["GSETTINGS_BACKEND"] = "keyfile"
    settings = stage.directory / ".config/glib-2.0/settings/keyfile"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    clip = stage.directory / "clip.txt"
    clip.write_text("".join(f"{n} {LINE}\n" for n in range(LINES)))
    stage.start(["xclip", "-quiet", "-selection", "clipboard", "-i", clip])
    empty = stage.directory / "empty.txt"
    empty.touch()
    editor = stage.start(["mousepad", "--disable-server", empty])
    window = stage.window("empty.txt")
    stage.xdotool("windowsize", window, "900", "700")
    until_idle(editor.pid)

    def paste():
        stage.xdotool("key", "ctrl+a")
        stage.xdotool("key", "ctrl+v")

    with stage.recording():
        watcher = Watcher(editor.pid)
        for _ in range(5):
            stage.xdotool("type", "word ")
            time.sleep(0.2)
        begin = now_ns()
        paste()
        time.sleep(0.2)
        # What a user does, and what is not answered.
        stage.xdotool("key", "Down")
        turn = watcher.busiest(at_least_s=0.5)
        # The rest is laid out bit by bit, between what else there is to do.
        until_idle(editor.pid)
        end = now_ns()
    paste()
    time.sleep(1)
    line = must_be_in(editor.pid, r"\bgtk_text_layout_")
    return Truth(
        text="LongRunning in gtk_text_layout_*, not in an insertion",
        victim=editor.pid,
        problem_class="LongRunning",
        root=editor.pid,
        root_class="LongRunning",
        frozen=turn.span,
        troubled=(begin, end),
        witness=f"/proc: {turn.cpu_s:.1f} of {turn.wall_s:.1f} s on the CPU; gdb: {line}",
        ran=((r"^gtk_text_layout_", 0.6),),
        innocent=("insert", "paste", "clipboard"),
    )
