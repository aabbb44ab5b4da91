"""sqlite3, told what to execute one statement after the other."""

import contextlib
import subprocess
import threading
import time

from stage import PATIENCE_S, Fault, now_ns

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def shell(stage, path):
    """Starts sqlite3 as the program that the freeze is about."""
    return stage.program(["sqlite3", path], **PIPES)


def begin(base, statement):
    """Has sqlite3 begin a statement."""
    base.tell(f"{statement} SELECT 'done';")


def until_done(base):
    """Waits until sqlite3 has executed what it began."""
    while base.line() != "done":
        pass


class Begun:
    """A statement that sqlite3 has begun. Its end is seen when it comes, whoever asks later."""

    def __init__(self, base, statement):
        self._base, self._span = base, None
        self._began = now_ns()
        begin(base, statement)
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

    def _wait(self):
        # The pipe is closed if the stage ends before.
        with contextlib.suppress(Fault, OSError, ValueError):
            until_done(self._base)
            self._span = self._began, now_ns()

    def over(self):
        """Waits until it is over; gives when it began and ended, ns."""
        self._waiter.join(PATIENCE_S)
        if self._span is None:
            raise Fault("sqlite3 did not execute what it began")
        return self._span


def execute(base, statement):
    """Has sqlite3 execute a statement."""
    begin(base, statement)
    until_done(base)


def use(stage, base, statement):
    """Executes a statement now and then, which is sqlite3's ordinary life."""
    for _ in range(int(stage.setting.before_s / 0.1)):
        execute(base, statement)
        time.sleep(0.1)
