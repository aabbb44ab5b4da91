"""TeXstudio: a bibliography is open in a tab, and another program appends to it. A timer of the
watcher of files has all of it loaded again, and the document's structure read anew, entry by
entry."""

from case import freeze
from freezes.editor import freeze_editor
from stage import need
from watcher import until_idle

# As many as take so long on the reference machine, some 3 and 10 s.
ENTRIES, ENTRIES_LONG = 60_000, 170_000
ENTRY = """@article{{key{n},
  author = {{Author {n} and Writer, Some}},
  title = {{Title number {n} of a long list}},
  journal = {{Journal of Lists}},
  year = {{2024}},
}}

"""


@freeze("toolkits", "texstudio-reload")
def reload(stage):
    """A large bibliography that is open in TeXstudio is appended to from outside: it is all read
    anew on the main thread."""
    need("texstudio", "gdb")
    stage.display()
    stage.session_bus()
    entries = ENTRIES if stage.freeze_s < 5 else ENTRIES_LONG
    bib = stage.directory / "large.bib"
    bib.write_text("".join(ENTRY.format(n=n) for n in range(entries)))
    editor = stage.program(["texstudio", "--no-session", bib])
    stage.window("large.bib")
    # It says that it found no LaTeX.
    stage.window("^TeXstudio$")
    stage.xdotool("key", "Escape")
    until_idle(editor.pid)
    stage.window("large.bib")

    def append():
        with bib.open("a", encoding="ascii") as file:
            file.write(ENTRY.format(n=entries))

    return freeze_editor(
        stage,
        editor,
        key=("key", "Down"),
        act=append,
        at_least_s=1,
        within=r"Texstudio::updateStructureLocally",
        text="LongRunning in QEditor::reload, updateStructureLocally",
        function=r"QReliableFileWatch|QEditor::reload|updateStructureLocally",
        ran=(
            (r"^QReliableFileWatch::timerEvent\b", 0.8),
            (r"^QEditor::reload\b", 0.8),
            (r"^Texstudio::updateStructureLocally\b", 0.6),
        ),
        begun=("timer",),
    )
