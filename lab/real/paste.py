"""mousepad: 4,000 long lines are pasted into an empty document. To insert them is quick; to break
and lay them out is not."""

from editor import freeze
from stage import need
from watcher import until_idle

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

    return freeze(
        stage,
        editor,
        key=("type", "word "),
        act=paste,
        at_least_s=0.5,
        within=r"\bgtk_text_layout_",
        text="LongRunning in gtk_text_layout_*, not in an insertion",
        ran=((r"^gtk_text_layout_", 0.6),),
        innocent=("insert", "paste", "clipboard"),
    )
