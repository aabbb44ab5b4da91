"""TeXstudio: a bibliography of 60,000 entries is open in a tab, and another program appends to it.
A timer of the watcher of files has all of it loaded again, and the document's structure read anew,
entry by entry."""

from editor import freeze
from stage import need
from watcher import until_idle

NAME = "texstudio"
ENTRIES = 60_000
ENTRY = """@article{{key{n},
  author = {{Author {n} and Writer, Some}},
  title = {{Title number {n} of a long list}},
  journal = {{Journal of Lists}},
  year = {{2024}},
}}

"""


def play(stage):
    """Freezes the editor; gives the truth."""
    need("texstudio", "gdb")
    stage.display()
    stage.session_bus()
    bib = stage.directory / "large.bib"
    bib.write_text("".join(ENTRY.format(n=n) for n in range(ENTRIES)))
    editor = stage.start(["texstudio", "--no-session", bib])
    stage.window("large.bib")
    # It says that it found no LaTeX.
    stage.window("^TeXstudio$")
    stage.xdotool("key", "Escape")
    until_idle(editor.pid)
    stage.window("large.bib")

    def append():
        with bib.open("a", encoding="ascii") as file:
            file.write(ENTRY.format(n=ENTRIES))

    return freeze(
        stage,
        editor,
        key=("key", "Down"),
        act=append,
        at_least_s=1,
        within=r"Texstudio::updateStructureLocally",
        text="LongRunning in QEditor::reload, updateStructureLocally",
        ran=(
            (r"^QReliableFileWatch::timerEvent\b", 0.8),
            (r"^QEditor::reload\b", 0.8),
            (r"^Texstudio::updateStructureLocally\b", 0.6),
        ),
        begun=("timer",),
    )
