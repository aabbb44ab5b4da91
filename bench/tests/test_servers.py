"""A recorded run is compared with its neighbours, and a soak is judged by its curve and names."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import recorders
import servers
import soak
import steady


class Servers(unittest.TestCase):
    def test_a_run_is_compared_with_both_neighbours(self):
        load, form = servers.Load("load", None), recorders.Recorder()
        row = servers.compared(load, form, (100.0, 1.0), (80.0, 3.0), (140.0, 2.0))
        self.assertEqual((row["rate"], row["bare_rate"]), (80.0, 120.0))
        self.assertEqual((row["p99_ms"], row["bare_p99_ms"]), (3.0, 1.5))

    def test_what_tells_no_percentile_has_none(self):
        load, form = servers.Load("load", None), recorders.Recorder()
        row = servers.compared(load, form, (1.0, None), (1.0, None), (1.0, None))
        self.assertIsNone(row["bare_p99_ms"])

    def test_percentiles_are_of_what_is_there(self):
        self.assertEqual(servers.percentile(range(1000), 0.99), 990)
        self.assertEqual(servers.percentile([7], 0.99), 7)
        self.assertIsNone(servers.percentile([], 0.99))


class Steady(unittest.TestCase):
    def test_a_rate_counts_where_its_second_lies_within(self):
        clock = iter([1.0, 2.0, 3.0, 4.0, 5.0])
        lines = [f"progress: {n}.0 s, {n}00.5 tps, lat 0.1 ms\n" for n in range(1, 5)]
        rates = steady.Rates(["pgbench (15.1)\n", *lines], lambda: next(clock))
        rates.reader.join()
        self.assertEqual(rates.within(1.0, 3.5), (200.5 + 300.5) / 2)
        with self.assertRaises(recorders.Failure):
            rates.within(1.5, 2.0)


class Soak(unittest.TestCase):
    def judged(self, resident, names):
        curve = [{"s": 600 + 30 * n, "resident": value} for n, value in enumerate(resident)]
        found = {"curve": curve, "snapshots": [{"names": n} for n in names], "wrong": []}
        soak.judge(found)
        return found["wrong"]

    def test_a_plateau_passes(self):
        self.assertEqual(self.judged([100, 103, 99, 104], [0.9, 0.89, 0.95]), [])

    def test_growth_fails(self):
        self.assertEqual(len(self.judged([100, 103, 106], [0.9])), 1)

    def test_missing_names_fail(self):
        self.assertEqual(len(self.judged([100, 100, 100], [0.9, 0.5])), 1)

    def test_what_comes_before_ten_minutes_is_not_judged(self):
        found = {"curve": [], "snapshots": [], "wrong": []}
        found["curve"] = [{"s": s, "resident": 100 + s} for s in (0, 100, 200)]
        soak.judge(found)
        self.assertEqual(found["wrong"], [])


if __name__ == "__main__":
    unittest.main()
