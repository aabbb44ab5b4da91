"""Composed hangs: what the program says of itself, and the score of a verdict."""

import dataclasses
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(LAB))

import composed  # noqa: E402
import score  # noqa: E402
import truth as lab  # noqa: E402

SAID = """\
param family=Starved
param hang_ms=600
truth victim=compose
truth class=Starved
truth root=hog/hog
truth function=hog_the_cpu
hang 1000000000 1600000000
"""

# The trace began at 0.5 s by the program's clock.
TRACE_START_NS = 500_000_000


def verdict(**changes):
    """The right one for SAID, but for the changes."""
    root = {
        "process": "hog",
        "thread": "hog",
        "class": "Starved",
        "function": "hog_the_cpu",
        "confidence": 0.9,
    }
    return {
        "problem": {"thread": "compose", "start_ns": 500_000_000, "duration_ns": 600_000_000},
        "root": root,
        "suspects": [root],
        "blame": [{"kind": "runnable", "ns": 594_000_000}, {"kind": "unknown", "ns": 6_000_000}],
        "knot": None,
        "questions": [],
    } | changes


class Parse(unittest.TestCase):
    def test_all_roots_and_the_knot_are_read(self):
        """Each line `truth root` is one that is right; the wait cycle is a list of threads."""
        case = composed.parse(
            "param family=Circular\nparam hang_ms=5\ntruth victim=compose\ntruth class=Circular\n"
            "truth root=node2/node2\ntruth root=node2/knot1\ntruth knot=node2,knot1\nhang 1 2\n"
        )
        self.assertEqual(case.roots, (("node2", "node2"), ("node2", "knot1")))
        self.assertEqual(case.knot, ("node2", "knot1"))
        self.assertIsNone(case.function)

    def test_what_was_drawn_again_counts_as_what_it_became(self):
        """A machine without realtime threads composes a computation in Starved's stead."""
        said = SAID.replace("class=Starved", "class=LongRunning") + "param redrawn=Starved\n"
        self.assertEqual(composed.parse(said).family, "LongRunning")

    def test_nonsense_is_refused(self):
        """A truth without root, class, or length of the hang is no truth."""
        for line in ("truth root=hog/hog\n", "truth class=Starved\n", "param hang_ms=600\n"):
            with self.subTest(missing=line), self.assertRaises(lab.TruthError):
                composed.parse(SAID.replace(line, ""))
        with self.assertRaises(lab.TruthError):
            composed.parse(SAID.replace("hog/hog", "hog"))

    def test_a_seed_draws_the_same_each_time(self):
        """A seed can be repeated: parameters and truth are the same in two runs."""
        composed.build()
        runs = [
            subprocess.Popen(composed.command(8), stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        said = [
            [line for line in run.communicate(timeout=60)[0].splitlines() if line[0] in "pt"]
            for run in runs
        ]
        self.assertGreater(len(said[0]), 10)
        self.assertEqual(said[0], said[1])


class Score(unittest.TestCase):
    def setUp(self):
        self.case = composed.parse(SAID)

    def of(self, said):
        return score.score(self.case, said, TRACE_START_NS, None)

    def test_the_truth_is_right(self):
        """The right root first scores everything; the unknown share is that of the blame."""
        result = self.of(verdict())
        self.assertTrue(result.first and result.among_three and result.function and result.victim)
        self.assertIsNone(result.knot)
        self.assertAlmostEqual(result.unexplained, 0.01)

    def test_without_suspects_the_root_is_the_only_one(self):
        """A verdict without a list of suspects is scored by its root."""
        said = verdict()
        del said["suspects"]
        self.assertTrue(self.of(said).first)

    def test_third_is_among_three_and_fourth_is_not(self):
        """Only the first three suspects count."""
        right = verdict()["root"]
        wrong = right | {"thread": "other"}
        third = self.of(verdict(root=wrong, suspects=[wrong, wrong, right]))
        self.assertEqual((third.first, third.among_three), (False, True))
        fourth = self.of(verdict(root=wrong, suspects=[wrong, wrong, wrong, right]))
        self.assertFalse(fourth.among_three)

    def test_a_wrong_class_is_wrong(self):
        """The right thread of the wrong class is not right."""
        wrong = verdict()["root"] | {"class": "LongRunning"}
        result = self.of(verdict(root=wrong, suspects=[wrong]))
        self.assertFalse(result.first or result.among_three)

    def test_another_problem_is_wrong(self):
        """The right root of another time is right by accident; that of the same time, of one who
        waits between victim and root, is right, but the victim is another."""
        late = verdict()["problem"] | {"start_ns": 900_000_000}
        self.assertFalse(self.of(verdict(problem=late)).first or self.of(verdict(problem=late)).victim)
        other = verdict()["problem"] | {"thread": "node1"}
        between = self.of(verdict(problem=other))
        self.assertEqual((between.first, between.victim), (True, False))

    def test_nothing_found_is_all_unexplained(self):
        """No verdict is a wrong one that explains nothing."""
        result = self.of(None)
        self.assertEqual((result.first, result.among_three, result.unexplained), (False, False, 1))

    def test_goals(self):
        """95 of 100 right first meet the goals, 94 do not; nor do four questions in one case."""
        right = self.of(verdict())
        second = dataclasses.replace(right, first=False)
        self.assertEqual(score.missed_goals([right] * 95 + [second] * 5), [])
        self.assertEqual(
            score.missed_goals([right] * 94 + [second] * 6),
            ["94.0% right first, less than 95%"],
        )
        asks = dataclasses.replace(right, questions=4)
        self.assertEqual(
            score.missed_goals([right] * 99 + [asks]), ["4 questions in the worst case"]
        )


# `record` runs the program; `why` says the truth of its words, or another class.
STAND_IN = """#!{python}
import json, os, pathlib, subprocess, sys
if sys.argv[1:3] == ["why", "--help"]:
    print("--yes")
    sys.exit(0)
if sys.argv[1] == "record":
    trace = pathlib.Path(sys.argv[3])
    trace.mkdir()
    done = subprocess.run(sys.argv[5:], capture_output=True, text=True, check=True)
    (trace / "out").write_text(done.stdout)
    (trace / "meta.json").write_text(json.dumps({{"clock": {{"monotonic_start_ns": 1000}}}}))
    print(done.stdout, end="")
    sys.exit(0)
assert sys.argv[1:4] == ["why", "--json", "--yes"], sys.argv
said = dict(line.split("=", 1) for line in
            (pathlib.Path(sys.argv[4]) / "out").read_text().splitlines() if "=" in line)
words = (pathlib.Path(sys.argv[4]) / "out").read_text().split()
begin, end = map(int, words[words.index("hang") + 1:][:2])
process, thread = said["truth root"].split("/")
print(json.dumps({{
    "problem": {{"thread": "compose", "start_ns": begin - 1000, "duration_ns": end - begin}},
    "root": {{"class": os.environ.get("CLASS", said["truth class"]), "process": process,
             "thread": thread, "function": said.get("truth function"), "confidence": 0.9}},
    "blame": [{{"kind": "run", "ns": end - begin}}], "knot": None, "questions": [],
}}))
"""


class Accuracy(unittest.TestCase):
    def test_right_verdicts_pass_and_wrong_ones_keep_their_traces(self):
        """Exit code 0 and no trace left where the goals are met; 1 and the trace kept otherwise."""
        with tempfile.TemporaryDirectory() as scratch:
            hangdog = pathlib.Path(scratch) / "hangdog"
            hangdog.write_text(STAND_IN.format(python=sys.executable))
            hangdog.chmod(hangdog.stat().st_mode | stat.S_IXUSR)
            traces = pathlib.Path(scratch) / "traces"
            words = [sys.executable, LAB / "accuracy.py", "--hangdog", hangdog, "--seeds", "8"]
            words += ["--keep-dir", traces, "--no-others", "--anyway"]

            def run(**environment):
                return subprocess.run(
                    words, capture_output=True, text=True, env=os.environ | environment, check=False
                )

            right = run()
            self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
            self.assertEqual(list(traces.iterdir()), [])
            wrong = run(CLASS="Interrupted")
            self.assertEqual(wrong.returncode, 1, wrong.stdout + wrong.stderr)
            self.assertEqual([kept.name for kept in traces.iterdir()], ["8.hang"])


if __name__ == "__main__":
    unittest.main()
