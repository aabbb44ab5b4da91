"""What the lives have in common."""

import json
import pathlib

from ordinary_lives.register import until_turns

# Debian's own, whichever Python runs the lab.
DEBIAN_PYTHON = "/usr/bin/python3"
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"


def program(name):
    """The path of one of the corpus's own programs."""
    return PROGRAMS / name


def again_and_again(stage, *jobs, pause_s=0.2, cwd=None):
    """Runs commands one after the other, for ever, with a pause after each, as somebody does at a
    prompt. Gives the log, when all of them have been run once."""
    log = stage.directory / "jobs.log"
    words = [json.dumps([str(word) for word in job]) for job in jobs]
    stage.start(
        [DEBIAN_PYTHON, program("ord_again.py"), log, str(pause_s), *words],
        cwd=cwd or stage.directory,
    )
    until_turns(log, len(jobs))
    return log
