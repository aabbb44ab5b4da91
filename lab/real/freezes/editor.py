"""An editor that freezes on one thread: it is used, made to do what takes long, and used again
before it has come back. Without a recorder it is done once more, for gdb to tell what it is at."""

import time

from case import Root, Truth
from stage import now_ns
from watcher import Watcher, must_be_in, until_idle

KEYS = 5
KEY_S = 0.2
UNDER_WAY_S = 1


def freeze_editor(stage, editor, key, act, at_least_s, within, **truth):
    """Freezes `editor`, a program that has the keyboard, by `act`, before which it gets some of
    `key` (words of xdotool). It must be for `at_least_s` s of the CPU and in functions that match
    `within`. Gives the truth, of which `truth` is the rest."""
    watcher = Watcher(editor.pid)
    for _ in range(KEYS):
        stage.xdotool(*key)
        time.sleep(KEY_S)
    begin = now_ns()
    act()
    time.sleep(KEY_S)
    # What a user does, and what is not answered.
    stage.xdotool("key", "Down")
    stage.hold()
    turn = watcher.busiest(at_least_s)
    # The rest is done bit by bit, between what else there is to do.
    until_idle(editor.pid)
    end = now_ns()
    witness = f"/proc: {turn.cpu_s:.1f} of {turn.wall_s:.1f} s on the CPU"
    if stage.alone:
        act()
        time.sleep(UNDER_WAY_S)
        witness += f"; gdb: {must_be_in(editor.pid, within)}"
    return Truth(
        victims=(editor.pid,),
        roots=(Root(editor.pid, ("LongRunning",)),),
        frozen=turn.span,
        troubled=(begin, end),
        witness=witness,
        **truth,
    )
