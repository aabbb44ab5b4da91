"""Real programs: the comparison of a verdict with the cause, and the witness that /proc is."""

import copy
import pathlib
import subprocess
import sys
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(LAB), str(LAB / "real")]

import judge  # noqa: E402
import watcher  # noqa: E402

TRUTH = judge.Truth(
    text="LongRunning in reload",
    victim=70,
    problem_class="LongRunning",
    root=70,
    root_class="LongRunning",
    frozen=(2_000, 3_000),
    witness="",
    troubled=(1_900, 4_000),
    ran=(("^reload$", 0.8),),
    innocent=("insert",),
    begun=("timer",),
    waits_in="^poll$",
)
# The trace began at 500 by the clock of the truth.
STARTED = 500
VERDICT = {
    "problem": {
        "tid": 70,
        "pid": 70,
        "process": "editor",
        "thread": "editor",
        "start_ns": 1_500,
        "duration_ns": 1_000,
        "class": "LongRunning",
    },
    "root": {
        "tid": 70,
        "pid": 70,
        "process": "editor",
        "thread": "editor",
        "class": "LongRunning",
        "function": "reload",
    },
    "blame": [{"kind": "run", "ns": 1_000, "share": 1.0}],
    "ran": {"functions": [{"function": "reload", "total": 0.9}], "begun": {"kind": "timer"}},
    "path": [{"stack": ["poll", "main"]}],
}


def faults(change):
    verdict = copy.deepcopy(VERDICT)
    change(verdict)
    return judge.faults(TRUTH, verdict, STARTED)


class AVerdict(unittest.TestCase):
    def test_that_agrees_has_no_fault(self):
        """What says the truth is right."""
        self.assertEqual(faults(lambda verdict: None), [])

    def test_that_differs_in_one_thing_has_one_fault(self):
        """Each part of a truth is demanded: thread, class, root, functions, beginning, stack."""
        for part, key, value in (
            ("problem", "tid", 71),
            ("problem", "class", "LongWait"),
            ("root", "pid", 71),
            ("root", "class", "Starved"),
            ("root", "function", "insert_text"),
            ("ran", "functions", [{"function": "reload", "total": 0.79}]),
            ("ran", "functions", [{"function": "reloaded", "total": 0.9}]),
            ("ran", "begun", {"kind": "message"}),
            ("ran", "begun", None),
        ):
            with self.subTest(part=part, key=key, value=value):
                found = faults(lambda verdict: verdict[part].update({key: value}))
                self.assertEqual(len(found), 1, found)
        self.assertEqual(len(faults(lambda verdict: verdict["path"][0].update(stack=[]))), 1)

    def test_without_samples_lacks_functions_and_beginning(self):
        """A verdict without what ran is wrong where functions and a beginning are demanded."""
        self.assertEqual(len(faults(lambda verdict: verdict.update(ran=None))), 2)

    def test_of_another_time_is_wrong(self):
        """The problem must have the freeze, and lie in the time of the trouble."""
        for start, duration, right in (
            (1_500, 2_000, True),  # up to the end of the trouble
            (1_700, 800, True),  # 80 % of the freeze
            (1_710, 790, False),  # 79 % of it
            (0, 3_000, False),  # from 1,400 before the trouble on: 53 % of it
            (4_000, 1_000, False),
        ):
            with self.subTest(start=start, duration=duration):

                def move(verdict, start=start, duration=duration):
                    verdict["problem"].update(start_ns=start, duration_ns=duration)
                    verdict["blame"][0]["ns"] = duration

                self.assertEqual(not faults(move), right)

    def test_must_add_up_and_explain(self):
        """Blame that does not add up is a fault, as is more than 5 % that is unknown."""
        self.assertEqual(len(faults(lambda verdict: verdict["blame"][0].update(ns=999))), 1)

        def unknown(share):
            return [
                {"kind": "run", "ns": 1_000 - share, "share": 1 - share / 1_000},
                {"kind": "unknown", "ns": share, "share": share / 1_000},
            ]

        self.assertEqual(faults(lambda verdict: verdict.update(blame=unknown(50))), [])
        self.assertEqual(len(faults(lambda verdict: verdict.update(blame=unknown(60)))), 1)


class AWatcher(unittest.TestCase):
    def test_finds_the_turn_in_which_a_thread_ran(self):
        """A program that sleeps by moments, runs for 0.5 s of its CPU time, and sleeps again."""
        script = (
            "import time\n"
            "for _ in range(20): time.sleep(0.02)\n"
            "end = time.process_time() + 0.5\n"
            "while time.process_time() < end: pass\n"
            "for _ in range(20): time.sleep(0.02)\n"
        )
        with subprocess.Popen([sys.executable, "-c", script]) as program:
            turn = watcher.Watcher(program.pid).busiest(at_least_s=0.3)
        self.assertAlmostEqual(turn.cpu_s, 0.5, delta=0.1)
        self.assertGreaterEqual(turn.wall_s, 0.45)


if __name__ == "__main__":
    unittest.main()
