"""What a suite's run costs is the recorded one beside those without; its CPU time is all its
processes', also of those whose parent never waits for them."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import suites


class Suites(unittest.TestCase):
    def test_less_throughput_and_more_time_are_both_a_cost(self):
        rows = [{"flight": {"rate": 90.0, "sys_s": 1.5}, "bare": {"rate": 100.0, "sys_s": 1.0}}]
        self.assertAlmostEqual(suites.overheads(rows, "rate")[0], 10)
        self.assertAlmostEqual(suites.overheads(rows, "sys_s")[0], 50)

    @unittest.skipUnless(
        os.access(suites.GROUP.parent, os.W_OK), "NOT RUN: control groups need root"
    )
    def test_the_time_of_an_orphan_counts(self):
        # The shell ends at once; the loop that it left goes on until the group is ended.
        words = ["sh", "-c", "(timeout 2 sh -c 'while :; do :; done') & sleep 1"]
        found = suites.measured(words, lambda _: 1)
        self.assertGreater(found["user_s"] + found["sys_s"], 0.05)
        self.assertFalse(suites.GROUP.exists())


if __name__ == "__main__":
    unittest.main()
