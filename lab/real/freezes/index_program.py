"""mem_index.py, told what to do with the index that it keeps in memory."""

import pathlib
import subprocess
import time

from stage import need

PYTHON = "/usr/bin/python3"
INDEX = pathlib.Path(__file__).resolve().parent.parent / "programs" / "mem_index.py"


def start_index(stage, group, mebibytes):
    """Starts it as the program that the freeze is about, in a group, with an index of that size."""
    need(PYTHON)
    program = stage.program(
        [PYTHON, INDEX, "mem_index"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    program.line()
    group.add(program.pid)
    program.tell(f"load {mebibytes}")
    program.line()
    return program


def use(stage, program):
    """Searches now and then, which is its ordinary life."""
    for _ in range(int(stage.setting.before_s / 0.1)):
        program.tell("search")
        program.line()
        time.sleep(0.1)
