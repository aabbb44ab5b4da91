"""A right verdict passes, and each way to be wrong is found."""

import copy
import unittest

import truth
import verdict

TRUTH = truth.Truth(
    why="other holds the lock",
    victim="main",
    process="prog",
    threads=("main", "other"),
    root_class="Circular",
    knot=("main", "other"),
    blame={"kind": "lock", "share": 0.8},
    victim_in="take_lock",
    functions={"other": "hold"},
    inlined_into="keep",
    ran=({"function": "count", "total": 0.9},),
)
# The trace starts at 10,000 by the monotonic clock; the hang is 1,000 long.
RUN = truth.Run({}, 10_500, 11_500)
RIGHT = {
    "problem": {"thread": "main", "start_ns": 500, "duration_ns": 1000},
    "root": {
        "class": "Circular",
        "process": "prog",
        "thread": "other",
        "function": "hold",
        "inlined_into": "keep",
    },
    "path": [{"stack": ["pthread_mutex_lock", "take_lock", "main"]}, {"stack": []}],
    "ran": {"functions": [{"function": "count", "total": 0.9}, {"function": "sum", "total": 1.0}]},
    "blame": [
        {"kind": "lock", "ns": 950},
        {"kind": "unknown", "ns": 50},
    ],
    "knot": [{"thread": "other"}, {"thread": "main"}],
}


def faults(change=lambda verdict: None):
    changed = copy.deepcopy(RIGHT)
    change(changed)
    return verdict.compare(TRUTH, RUN, changed, 10_000).faults


class Compare(unittest.TestCase):
    def test_right(self):
        """The right verdict has no fault, with 5 % unexplained at the limit."""
        self.assertEqual(faults(), ())

    def test_each_fault_is_found(self):
        """Whatever differs from the truth is one fault, and named."""
        changes = {
            "thread that hung": lambda v: v["problem"].update(thread="other"),
            "overlap": lambda v: v["problem"].update(start_ns=620),
            "root": lambda v: v["root"].update(thread="third"),
            "class": lambda v: v["root"].update({"class": "LongWait"}),
            "function": lambda v: v["root"].update(function=None),
            "inlined": lambda v: v["root"].update(inlined_into=None),
            "waits in take_lock": lambda v: v["path"][0].update(stack=["main"]),
            "count is on 89%": lambda v: v["ran"]["functions"][0].update(total=0.89),
            "count is on 0%": lambda v: v.update(ran=None),
            "wait cycle": lambda v: v.update(knot=None),
            "adds up": lambda v: v["blame"].append({"kind": "disk", "ns": 1}),
            "lock has": lambda v: v.update(
                blame=[{"kind": "lock", "ns": 790}, {"kind": "run", "ns": 210}]
            ),
            "unexplained": lambda v: v.update(
                blame=[{"kind": "lock", "ns": 949}, {"kind": "unknown", "ns": 51}]
            ),
        }
        for word, change in changes.items():
            found = faults(change)
            self.assertEqual(len(found), 1, (word, found))
            self.assertIn(word, found[0])

    def test_the_other_root(self):
        """A thread that may be named without a function is right in any."""
        self.assertEqual(faults(lambda v: v["root"].update(thread="main", function="x")), ())

    def test_same_thread_name_in_another_process(self):
        """A root of the right name in the wrong process is wrong."""
        self.assertEqual(len(faults(lambda v: v["root"].update(process="elsewhere"))), 1)


class Overlap(unittest.TestCase):
    def test_overlap(self):
        """Too long a problem counts as little as too short a one, and apart is none."""
        self.assertEqual(verdict.overlap_of((0, 100), (0, 100)), 1)
        self.assertEqual(verdict.overlap_of((0, 50), (0, 100)), 0.5)
        self.assertEqual(verdict.overlap_of((0, 200), (50, 150)), 0.5)
        self.assertEqual(verdict.overlap_of((0, 10), (20, 30)), 0)


if __name__ == "__main__":
    unittest.main()
