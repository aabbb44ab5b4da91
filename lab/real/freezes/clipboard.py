"""The clipboard, whose text is kept by the program that it was copied in. That one is stopped."""

import os
import pathlib
import signal
import threading
import time

from case import Root, Truth, freeze
from freezes.accessibility import is_stopped
from freezes.stopped import ask_stopped, stop
from stage import Fault, need, now_ns, wait_for
from watcher import until_idle

# A program that is idle waits in the event loop's poll, not for a condition.
FUTEX = "202"
STEP_S = 0.01
# It has come back when it was seen elsewhere for so long.
OVER_S = 0.5
LEAST_S = 2.0


class Looks(threading.Thread):
    """Looks again and again whether a thread waits for a condition: when first and when last."""

    def __init__(self, tid):
        super().__init__(daemon=True)
        self.path = pathlib.Path(f"/proc/{tid}/syscall")
        self.first, self.last = None, None
        self.start()

    def run(self):
        while True:
            try:
                word = self.path.read_text(encoding="ascii").split()[0]
            except OSError:
                # It has ended.
                return
            if word == FUTEX:
                self.last = now_ns()
                self.first = self.first or self.last
            time.sleep(STEP_S)

    def over(self):
        """Waits until it is over; gives begin and end."""

        def look():
            return self.last and now_ns() - self.last > OVER_S * 1e9

        wait_for("the end of the wait", look)
        if self.last - self.first < LEAST_S * 1e9:
            raise Fault(f"it waited only for {(self.last - self.first) / 1e9:.1f} s")
        return self.first, self.last


def owner(stage):
    """Starts the program that has the clipboard's text."""
    clip = stage.directory / "clip.txt"
    clip.write_text("copied text\n")
    return stage.start(["xclip", "-quiet", "-selection", "clipboard", "-i", clip])


@freeze("desktop", "clipboard-owner-stopped")
def owner_stopped(stage):
    """xclip asks for the text on the clipboard. The program that has it is stopped."""
    need("xclip")
    stage.display()
    stopped = owner(stage)
    return ask_stopped(
        stage, ["xclip", "-selection", "clipboard", "-o"], stopped.pid,
        "LongWait; root the clipboard's owner, stopped",
    )


@freeze("desktop", "qt-paste-owner-stopped")
def paste(stage):
    """A text is pasted into FeatherPad. Qt asks the clipboard's owner for it again and again on the
    main thread, for up to 5 s for every format; the owner is stopped."""
    need("featherpad", "xclip")
    stage.display()
    stage.session_bus()
    stopped = owner(stage)
    empty = stage.directory / "empty.txt"
    empty.touch()
    editor = stage.program(["featherpad", empty])
    stage.window("empty.txt")
    until_idle(editor.pid)
    for _ in range(4):
        stage.xdotool("type", "word ")
    stage.ordinary()
    stop(stopped.pid)
    looks = Looks(editor.pid)
    stage.xdotool("key", "ctrl+v")
    is_so = stage.hold(lambda: is_stopped(stopped.pid))
    os.kill(stopped.pid, signal.SIGCONT)
    frozen = looks.over()
    if not is_so:
        raise Fault(f"/proc: {stopped.pid} was not stopped")
    return Truth(
        text="RepeatedYield; root the clipboard's owner, stopped",
        victims=(editor.pid,),
        roots=(Root(stopped.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"/proc: {stopped.pid} is stopped; FeatherPad waits for a condition, not for "
        "events",
        # The clipboard of Qt has no exported names.
        waits_in=r"TextEdit::paste",
    )
