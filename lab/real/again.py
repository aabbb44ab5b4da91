"""Judges kept traces again, with another hangdog: what a change of the diagnosis does to every freeze
that was recorded, without playing one."""

import concurrent.futures
import dataclasses
import time

import ask
import consistency
from case import Root, Truth
from stage import Fault

AT_A_TIME = 2


def truth_of(row):
    """The truth of a case as it was when it was played."""
    roots = tuple(
        Root(root["pid"], tuple(root["classes"]), root["thread"]) for root in row["truth"]["roots"]
    )
    lists = {
        field.name: tuple(map(_plain, row["truth"][field.name]))
        for field in dataclasses.fields(Truth)
        if isinstance(row["truth"][field.name], list)
    }
    return Truth(**(row["truth"] | lists | {"roots": roots}))


def _plain(value):
    """JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


def run(hangdog, rows, traces):
    """The rows of those freezes whose traces were kept, judged again, as they come."""

    def judged(row):
        began = time.monotonic()
        trace = traces / f"{row['name']}-{row['setting']}.hang"
        try:
            answers = ask.every_way(hangdog, trace, truth_of(row))
            found = {"contradictions": consistency.of_trace(hangdog, trace)}
            return row | answers | found | {"seconds": time.monotonic() - began}
        except Fault as fault:
            return row | {"state": "failed", "reason": str(fault)}

    there = [
        row
        for row in rows
        if row["kind"] == "freeze"
        and row["state"] == "told"
        and (traces / f"{row['name']}-{row['setting']}.hang").exists()
    ]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from pool.map(judged, there)
