"""The other rules, on a few events made by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import others  # noqa: E402

VICTIM, WORKER, HOG = 1, 2, 3
SLEEPING, PREEMPTED = 2, 0
THREAD, TIMER = 0, 3


def walk(rule, switches, wakes, start, end):
    threads = others.intervals_of(switches, wakes, end)
    walked = others.Walk(rule, threads, switches)
    walked.walk(VICTIM, start, end)
    return walked


class TheWalk(unittest.TestCase):
    # (ts, cpu, prev, next, left), (ts, waker, wakee, context). The victim sleeps from 10 to 90 on
    # CPU 0; the worker runs from 20 to 91 on CPU 1, and wakes it.
    SWITCHES = [
        (0, 0, others.IDLE, VICTIM, 6),
        (10, 0, VICTIM, others.IDLE, SLEEPING),
        (20, 1, others.IDLE, WORKER, 6),
        (91, 1, WORKER, others.IDLE, SLEEPING),
        (92, 0, others.IDLE, VICTIM, 6),
        (100, 0, VICTIM, others.IDLE, SLEEPING),
    ]
    WAKES = [(15, HOG, WORKER, THREAD), (90, WORKER, VICTIM, THREAD)]

    def test_blocked_time_goes_to_what_the_waker_did(self):
        """Both rules charge the worker with its run; what came before that with its own waker."""
        for rule in others.RULES:
            walked = walk(rule, self.SWITCHES, self.WAKES, 0, 100)
            self.assertEqual(walked.charged[WORKER, others.RUNNING], 70, rule)
            self.assertEqual(walked.charged[VICTIM, others.RUNNING], 10 + 8, rule)
            self.assertEqual(walked.root(), (WORKER, "LongRunning"), rule)

    def test_every_nanosecond_is_charged_once(self):
        """What was charged adds up to the hang."""
        for rule in others.RULES:
            for start, end in ((0, 100), (30, 60), (12, 91)):
                walked = walk(rule, self.SWITCHES, self.WAKES, start, end)
                self.assertEqual(sum(walked.charged.values()), end - start, (rule, start))

    def test_a_wake_from_an_interrupt(self):
        """Perfetto's rule leaves the time with the sleeper; the other takes who was on the CPU."""
        wakes = [(15, HOG, WORKER, THREAD), (90, WORKER, VICTIM, TIMER)]
        perfetto = walk("perfetto", self.SWITCHES, wakes, 0, 100)
        self.assertEqual(perfetto.root(), (VICTIM, "LongWait"))
        self.assertEqual(perfetto.charged[VICTIM, others.BLOCKED], 80)
        recent = walk("recent", self.SWITCHES, wakes, 0, 100)
        self.assertEqual(recent.root(), (WORKER, "LongRunning"))

    def test_the_walk_stays_with_whom_it_has_come_to(self):
        """A decoy woke the one between spuriously at 40: that was before the worker, which ended its
        wait at 85, is left, and so nothing is charged to the decoy."""
        between, decoy = 4, 5
        switches = [
            (0, 0, others.IDLE, VICTIM, 6),
            (2, 1, others.IDLE, between, 6),
            (10, 0, VICTIM, decoy, SLEEPING),
            (12, 1, between, WORKER, SLEEPING),
            (42, 0, decoy, between, SLEEPING),
            (45, 0, between, others.IDLE, SLEEPING),
            (86, 1, WORKER, between, SLEEPING),
            (92, 0, others.IDLE, VICTIM, 6),
        ]
        wakes = [
            (40, decoy, between, THREAD),
            (85, WORKER, between, THREAD),
            (90, between, VICTIM, THREAD),
        ]
        for rule in others.RULES:
            walked = walk(rule, switches, wakes, 0, 100)
            # From 12 on; before that, back to the victim's sleep at 10, it was not seen to run.
            self.assertEqual(walked.charged[WORKER, others.RUNNING], 85 - 12, rule)
            self.assertEqual(walked.charged[decoy, others.RUNNING], 0, rule)
            self.assertEqual(walked.root(), (WORKER, "LongRunning"), rule)

    def test_a_wake_on_an_idle_cpu(self):
        """No thread was on the CPU: by both rules the time stays with the sleeper."""
        wakes = [(15, HOG, WORKER, THREAD), (90, others.IDLE, VICTIM, TIMER)]
        for rule in others.RULES:
            self.assertEqual(
                walk(rule, self.SWITCHES, wakes, 0, 100).root(), (VICTIM, "LongWait"), rule
            )

    def test_runnable_time(self):
        """Time without a CPU stays with the thread, or goes to the runner of its CPU."""
        switches = [
            (0, 0, others.IDLE, VICTIM, 6),
            (10, 0, VICTIM, HOG, PREEMPTED),
            (90, 0, HOG, VICTIM, SLEEPING),
            (100, 0, VICTIM, others.IDLE, SLEEPING),
        ]
        self.assertEqual(walk("recent", switches, [], 0, 100).root(), (VICTIM, "Starved"))
        perfetto = walk("perfetto", switches, [], 0, 100)
        self.assertEqual(perfetto.root(), (HOG, "Starved"))
        self.assertEqual(perfetto.charged[HOG, others.RUNNABLE], 80)

    def test_a_wake_of_one_that_does_not_sleep_is_passed_over(self):
        """Only the wake that ended the sleep counts: a second one before the thread ran does not."""
        wakes = [*self.WAKES, (91, HOG, VICTIM, THREAD)]
        walked = walk("recent", self.SWITCHES, wakes, 0, 100)
        self.assertEqual(walked.root(), (WORKER, "LongRunning"))


class Names(unittest.TestCase):
    def test_a_process_is_called_like_its_main_thread(self):
        """The last name counts; a row without a name changes none."""
        lifecycle = [
            (0, 1, VICTIM, 7, 100, 100, "sh"),
            (1, 2, VICTIM, 7, 100, 100, "compose"),
            (2, 1, WORKER, 7, 101, 100, "compose"),
            (3, 3, WORKER, 7, 101, 100, "node1"),
            (4, 4, WORKER, 7, 101, 100, ""),
        ]
        names = others.names_of(lifecycle)
        self.assertEqual(names[WORKER], ("compose", "node1"))
        self.assertEqual(names[VICTIM], ("compose", "compose"))


if __name__ == "__main__":
    unittest.main()
