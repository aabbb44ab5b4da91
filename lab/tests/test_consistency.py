"""Consistency: each check finds the contradiction that it is for, and nothing in what agrees."""

import copy
import pathlib
import sys
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(LAB)]

import consistency  # noqa: E402

VERDICT = {
    "problem": {
        "tid": 1,
        "pid": 1,
        "process": "editor",
        "thread": "editor",
        "start_ns": 100,
        "duration_ns": 1_000,
    },
    "root": {"share": 0.9, "confidence": 0.995},
    "without_root_ns": 100,
    "path": [{"edge": {"kind": "message"}}],
    "blame_by_thread": [
        {"tid": 1, "process": "editor", "thread": "editor", "kind": "run", "ns": 100},
        {"tid": 2, "process": "server", "thread": "server", "kind": "run", "ns": 400},
        {"tid": 2, "process": "server", "thread": "server", "kind": "disk", "ns": 200},
        {"tid": 2, "process": "server", "thread": "server", "kind": "lock", "ns": 300},
    ],
}


def thread(tid, time_ns, **states):
    return {"tid": tid, "time_ns": time_ns, "states": {k: {"ns": ns} for k, ns in states.items()}}


THREADS = [
    thread(1, 1_000, running=100, blocked=900),
    thread(2, 1_000, running=400, blocked=500, preempted=100),
]


def checks(verdict=VERDICT, threads=THREADS):
    found = [
        *consistency.blame_contradictions(verdict, threads),
        *consistency.lifetime_contradictions(verdict, threads),
        *consistency.self_contradictions(verdict),
    ]
    return [check for check, _ in found]


def changed(*path, value):
    verdict = copy.deepcopy(VERDICT)
    inner = verdict
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return verdict


class Consistency(unittest.TestCase):
    def test_finds_nothing_where_all_agrees(self):
        """Blame that uses up each thread's states to the last nanosecond is no contradiction."""
        self.assertEqual(checks(), [])

    def test_finds_one_nanosecond_too_much(self):
        """The blame of a thread's waits is held against all its blocked time together."""
        verdict = changed("blame_by_thread", 3, "ns", value=301)
        verdict["blame_by_thread"][1]["ns"] = 399
        self.assertEqual(checks(verdict), ["state"])

    def test_finds_blame_that_does_not_add_up(self):
        """One nanosecond that nobody is blamed for."""
        self.assertEqual(checks(changed("blame_by_thread", 0, "ns", value=99)), ["sum"])

    def test_finds_time_outside_a_life(self):
        """A thread that lived 800 ns cannot be blamed for 900, nor be held up for 1,000."""
        short = thread(2, 800, running=400, blocked=500)
        self.assertEqual(checks(threads=[THREADS[0], short]), ["life"])
        short = thread(1, 999, running=100, blocked=899)
        self.assertEqual(checks(threads=[short, THREADS[1]]), ["life"])

    def test_adds_up_threads_of_one_id(self):
        """An id that was used again in the window: both together have the time."""
        halves = [thread(2, 500, running=400, blocked=100), thread(2, 500, blocked=400)]
        self.assertEqual(checks(threads=[THREADS[0], *halves]), [])

    def test_finds_a_root_that_changes_nothing(self):
        """A root with 90 % of the blame, without which it would take 81 % as long."""
        self.assertEqual(checks(changed("without_root_ns", value=810)), ["what-if"])

    def test_finds_confidence_in_what_is_unknown(self):
        """99.5 % sure at an unknown edge."""
        self.assertEqual(checks(changed("path", 0, "edge", "kind", value="unknown")), ["confidence"])


if __name__ == "__main__":
    unittest.main()
