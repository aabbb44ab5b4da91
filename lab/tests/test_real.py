"""Real programs: the comparison of a verdict with the cause, the witness that /proc is, and how the
results are told."""

import copy
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(LAB), str(LAB / "real")]

import calibration  # noqa: E402
import case  # noqa: E402
import freezes  # noqa: E402, F401  (registers the cases)
import judge  # noqa: E402
import table  # noqa: E402
import watcher  # noqa: E402
from results import Results  # noqa: E402

TRUTH = case.Truth(
    text="LongRunning in reload",
    victims=(70, 80),
    roots=(case.Root(90, ("LongRunning",), thread=91),),
    frozen=(2_000, 3_000),
    witness="",
    troubled=(1_900, 4_000),
    function="^reload$",
    ran=(("^reload$", 0.8),),
    innocent=("insert",),
    begun=("timer",),
    waits_in="^poll$",
)
# When the recording began and ended by the clock of the truth.
WINDOW = (500, 9_000)
VERDICT = {
    "problem": {
        "tid": 70,
        "pid": 70,
        "process": "editor",
        "thread": "editor",
        "start_ns": 1_500,
        "duration_ns": 1_000,
        "class": "LongWait",
    },
    "root": {
        "tid": 91,
        "pid": 90,
        "process": "worker",
        "thread": "pool",
        "class": "LongRunning",
        "function": "reload",
        "confidence": 0.75,
    },
    "blame": [{"kind": "run", "ns": 1_000, "share": 1.0}],
    "ran": {"functions": [{"function": "reload", "total": 0.9}], "begun": {"kind": "timer"}},
    "path": [{"stack": ["poll", "main"]}],
    "questions": [],
    "knot": None,
}


def judged(change, truth=TRUTH):
    verdict = copy.deepcopy(VERDICT)
    change(verdict)
    return judge.judge(truth, verdict, WINDOW)


def kinds(judgement):
    return [kind for kind, _ in judgement.faults]


class AVerdict(unittest.TestCase):
    def test_that_agrees_is_right(self):
        """What says the truth is right, without a fault."""
        judgement = judged(lambda verdict: None)
        self.assertEqual((judgement.result, judgement.faults), (judge.RIGHT, ()))
        self.assertEqual(judgement.confidence, 0.75)

    def test_of_the_freeze_and_its_root_is_half_where_one_other_thing_differs(self):
        """Each other part of a truth is demanded: thread, class, functions, beginning, stack."""
        for part, key, value, kind in (
            ("root", "tid", 92, "thread"),
            ("root", "class", "Starved", "class"),
            ("root", "function", "other", "function"),
            ("ran", "functions", [{"function": "reload", "total": 0.79}], "samples"),
            ("ran", "functions", [{"function": "reloaded", "total": 0.9}], "samples"),
            ("ran", "begun", {"kind": "message"}, "begun"),
            ("ran", "begun", None, "begun"),
        ):
            with self.subTest(part=part, key=key, value=value):
                judgement = judged(lambda verdict: verdict[part].update({key: value}))
                self.assertEqual((judgement.result, kinds(judgement)), (judge.HALF, [kind]))
        judgement = judged(lambda verdict: verdict["path"][0].update(stack=[]))
        self.assertEqual(kinds(judgement), ["stack"])
        judgement = judged(lambda verdict: verdict.update(knot=[{"tid": 70}]))
        self.assertEqual((kinds(judgement), judgement.false_cycle), (["cycle"], True))

    def test_of_another_thread_is_half_and_of_another_root_is_wrong(self):
        """The right root of another thread's problem at the time of the freeze is half; another
        root is wrong, and so is another thread's problem at another time."""
        for part, key, kind, result in (
            ("problem", "tid", "victim", judge.HALF),
            ("root", "pid", "root", judge.WRONG),
        ):
            with self.subTest(part=part):

                def change(verdict, part=part, key=key):
                    verdict[part].update({key: 71, "pid": 71})

                judgement = judged(change)
                self.assertEqual((judgement.result, kinds(judgement)), (result, [kind]))

        def another(verdict):
            verdict["problem"].update(tid=71, pid=71, start_ns=6_000)

        self.assertEqual(judged(another).result, judge.WRONG)

    def test_of_who_stands_behind_a_person_is_right_only_where_a_person_is_waited_for(self):
        """The lab plays the person that a root waits for; elsewhere it is nobody's root."""
        def change(verdict):
            verdict["root"].update(pid=os.getpid(), tid=os.getpid())
            verdict["root"].update({"class": "LongWait", "function": "Stage.hold"})

        asks = dataclasses.replace(TRUTH, outside=True)
        self.assertEqual(judged(change, asks).result, judge.RIGHT)
        self.assertEqual(judged(change).result, judge.WRONG)

        def its_own(verdict):
            change(verdict)
            verdict["problem"].update(tid=os.getpid(), pid=os.getpid())

        self.assertEqual(judged(its_own, asks).result, judge.WRONG)

    def test_of_any_that_was_held_up_or_is_to_blame_is_right(self):
        """A victim may be any of those named, by thread or by process; so may the root."""
        by_process = judged(lambda verdict: verdict["problem"].update(tid=81, pid=80))
        self.assertEqual(by_process.result, judge.RIGHT)
        two = dataclasses.replace(TRUTH, roots=(case.Root(60, ("Starved",)), *TRUTH.roots))
        self.assertEqual(judged(lambda verdict: None, two).result, judge.RIGHT)

    def test_without_samples_lacks_functions_and_beginning(self):
        """A verdict without what ran is not right where functions and a beginning are demanded."""
        self.assertEqual(
            kinds(judged(lambda verdict: verdict.update(ran=None))), ["samples", "begun"]
        )

    def test_of_another_time_is_not_right(self):
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

                self.assertEqual(judged(move).result == judge.RIGHT, right)

    def test_of_a_recording_in_the_middle_needs_only_what_was_recorded(self):
        """What of the freeze lies outside the recording is not demanded."""
        verdict = copy.deepcopy(VERDICT)
        verdict["problem"].update(start_ns=0, duration_ns=300)
        verdict["blame"][0]["ns"] = 300
        self.assertEqual(judge.judge(TRUTH, verdict, (2_300, 2_600)).result, judge.RIGHT)

    def test_must_add_up_and_explain(self):
        """Blame that does not add up is a fault, as is more than 5 % that is unknown."""
        self.assertEqual(
            kinds(judged(lambda verdict: verdict["blame"][0].update(ns=999))), ["sum"]
        )

        def unknown(share):
            return [
                {"kind": "run", "ns": 1_000 - share, "share": 1 - share / 1_000},
                {"kind": "unknown", "ns": share, "share": share / 1_000},
            ]

        self.assertEqual(kinds(judged(lambda verdict: verdict.update(blame=unknown(50)))), [])
        self.assertEqual(
            kinds(judged(lambda verdict: verdict.update(blame=unknown(60)))), ["unknown"]
        )


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


class TheCorpus(unittest.TestCase):
    def test_has_cases_of_every_group(self):
        """At least 50 freezes to work with, several of each group; each says what it is."""
        groups = [one.group for one in case.CASES.values() if not one.held_back]
        self.assertGreaterEqual(len(groups), 50)
        for group in case.GROUPS:
            self.assertGreaterEqual(groups.count(group), 3, group)
        for one in case.CASES.values():
            self.assertTrue(one.summary.endswith("."), one.name)

    def test_refuses_two_cases_of_one_name(self):
        """A second case of a name would take the first one's results."""
        name = next(iter(case.CASES))
        with self.assertRaises(ValueError):
            case.freeze("cpu", name)(lambda stage: None)
        with self.assertRaises(ValueError):
            case.freeze("no group", "a new one")


def result(result_of_first, rank, **more):
    """A row of the results, as corpus.assess makes it."""
    answer = {
        "result": result_of_first,
        "faults": [] if result_of_first == "right" else [["root", "another"]],
        "confidence": 0.8,
        "unknown": 0.5,
        "questions": 2,
        "false_cycle": False,
    }
    rule = {"right": True, "process_right": True}
    return {
        "kind": "freeze",
        "name": "one",
        "group": "cpu",
        "setting": "flight",
        "state": "told",
        "rank": rank,
        "listed": 20,
        "answers": {"first": answer, "process": answer | {"result": "right"}},
        "rules": {"recent": rule, "perfetto": rule | {"right": False}},
        "contradictions": {"problems": 3, "found": [{"check": "state"}]},
    } | more


class TheTable(unittest.TestCase):
    def test_are_counted_by_setting(self):
        """Right, half, wrong, listed, median rank, entries before it, told, questions, unexplained,
        and the two rules."""
        rows = [result("right", 1), result("half", 3), result("wrong", None)]
        self.assertEqual(
            table.freeze_row("flight", rows),
            ("flight", 3, 1, 1, 1, 2, "2", "7.3", 3, 3, "2.0", "50%", 3, 0),
        )

    def test_leave_nothing_out_in_silence(self):
        """The table names what gave no result, and why."""
        row = {
            "kind": "freeze",
            "name": "two",
            "setting": "record",
            "state": "failed",
            "reason": "the machine said no",
        }
        text = table.of([result("right", 1), row])
        self.assertIn("No result in 1:\nfailed: two record: the machine said no", text)
        self.assertIn("1 contradictions in 3 problems of 1 traces, state 1", text)

    def test_are_resumed_where_they_ended(self):
        """What is in the file is not done again; without --resume it is begun anew."""
        with tempfile.TemporaryDirectory() as scratch:
            directory = pathlib.Path(scratch)
            Results(directory, resume=False).add(result("right", 1))
            again = Results(directory, resume=True)
            self.assertEqual(again.done, {("freeze", "one", "flight")})
            self.assertEqual(Results(directory, resume=False).rows, [])


class Calibration(unittest.TestCase):
    def test_is_the_mean_squared_error(self):
        """0.8 that is right and 0.8 that is wrong: (0.04 + 0.64) / 2."""
        some = calibration.verdicts([result("wrong", None)])
        self.assertEqual([one["right"] for one in some], [False, True])
        self.assertAlmostEqual(calibration.brier(some), 0.34)
        text = "\n".join(calibration.table(some))
        self.assertIn(" 80% to  90%         2    50%", text)

    def test_counts_false_alarms_as_wrong_verdicts(self):
        """An alarm of an ordinary recording is wrong however sure it is."""
        row = {
            "kind": "ordinary",
            "name": "idle",
            "state": "told",
            "alarms": [{"confidence": 1.0}],
        }
        self.assertEqual(calibration.brier(calibration.verdicts([row])), 1.0)

    def test_is_kept_in_a_file(self):
        """What was written is read back."""
        some = calibration.verdicts([result("right", 1)])
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "verdicts.jsonl"
            calibration.write(path, some)
            self.assertEqual(calibration.read(path), some)


if __name__ == "__main__":
    unittest.main()
