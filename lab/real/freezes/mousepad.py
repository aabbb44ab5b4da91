"""mousepad: long lines are pasted into an empty document. To insert them is quick; to break and
lay them out is not."""

from case import freeze
from freezes.editor import freeze_editor
from stage import need
from watcher import until_idle

LINES, LINES_LONG = 4000, 16000
LINE = "The quick brown fox jumps over the lazy dog; " * 40
SETTINGS = "[org/xfce/mousepad/preferences/view]\nword-wrap=true\n"


@freeze("toolkits", "mousepad-paste")
def paste(stage):
    """Thousands of long lines are pasted into mousepad, which wraps them on its main thread."""
    need("mousepad", "xclip", "gdb")
    stage.display()
    stage.session_bus()
    stage.environment["GSETTINGS_BACKEND"] = "keyfile"
    settings = stage.directory / ".config/glib-2.0/settings/keyfile"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    clip = stage.directory / "clip.txt"
    lines = LINES if stage.freeze_s < 5 else LINES_LONG
    clip.write_text("".join(f"{n} {LINE}\n" for n in range(lines)))
    stage.start(["xclip", "-quiet", "-selection", "clipboard", "-i", clip])
    empty = stage.directory / "empty.txt"
    empty.touch()
    editor = stage.program(["mousepad", "--disable-server", empty])
    window = stage.window("empty.txt")
    stage.xdotool("windowsize", window, "900", "700")
    until_idle(editor.pid)

    def do_paste():
        stage.xdotool("key", "ctrl+a")
        stage.xdotool("key", "ctrl+v")

    return freeze_editor(
        stage,
        editor,
        key=("type", "word "),
        act=do_paste,
        at_least_s=0.5,
        within=r"\bgtk_text_layout_",
        text="LongRunning in gtk_text_layout_*, not in an insertion",
        ran=((r"^gtk_text_layout_", 0.6),),
        innocent=("insert", "paste", "clipboard"),
    )
