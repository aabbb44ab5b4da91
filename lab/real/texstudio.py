"""TeXstudio: a bibliography of 60,000 entries is open in a tab, and another program appends to it.
A timer of the watcher of files has all of it loaded again, and the document's structure read anew,
entry by entry."""

import time

from judge import Truth
from stage import need, now_ns
from watcher import Watcher, must_be_in, until_idle

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

    with stage.recording():
        watcher = Watcher(editor.pid)
        for _ in range(5):
            stage.xdotool("key", "Down")
            time.sleep(0.2)
        begin = now_ns()
        append()
        time.sleep(0.2)
        # What a user does, and what is not answered.
        stage.xdotool("key", "Down")
        turn = watcher.busiest(at_least_s=1)
        until_idle(editor.pid)
        end = now_ns()
    append()
    time.sleep(1)
    line = must_be_in(editor.pid, r"Texstudio::updateStructureLocally")
    return Truth(
        text="LongRunning in QEditor::reload, updateStructureLocally",
        victim=editor.pid,
        problem_class="LongRunning",
        root=editor.pid,
        root_class="LongRunning",
        frozen=turn.span,
        troubled=(begin, end),
        witness=f"/proc: {turn.cpu_s:.1f} of {turn.wall_s:.1f} s on the CPU; gdb: {line}",
        ran=(
            (r"^QReliableFileWatch::timerEvent\b", 0.8),
            (r"^QEditor::reload\b", 0.8),
            (r"^Texstudio::updateStructureLocally\b", 0.6),
        ),
        begun=("timer",),
    )
