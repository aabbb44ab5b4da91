"""sqlite3, told what to execute one statement after the other."""

import subprocess
import time

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


def execute(base, statement):
    """Has sqlite3 execute a statement."""
    begin(base, statement)
    until_done(base)


def use(stage, base, statement):
    """Executes a statement now and then, which is sqlite3's ordinary life."""
    for _ in range(int(stage.setting.before_s / 0.1)):
        execute(base, statement)
        time.sleep(0.1)
