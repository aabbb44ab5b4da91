"""What the other tools print is read as they mean it, and rows of the comparison are judged so."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numbers_compare as compare
import numbers_pairs as pairs
import numbers_parse as parse
import numbers_tools as tools

SYSBENCH_MEMORY = """Running the test with following options:
Number of threads: 1

Total operations: 218 (  217.48 per second)

13952.00 MiB transferred (2.00 MiB/sec)
"""
SYSBENCH_LATENCY = """General statistics:
    total time:                          1.0040s

Latency (ms):
         min:                                    0.07
         avg:                                    8.00
         max:                                    7.87
         50th percentile:                        4.03
"""
STRESS = (
    "stress-ng: metrc: [1] switch   264126   1.00   0.07   0.93   264004.96  264113.32\n"
    "stress-ng: metrc: [1] switch   3784.69 nanosecs per context switch (pipe method)\n"
)


class Parsers(unittest.TestCase):
    def read(self, reader, text):
        return reader(text)["value"]

    def test_times_become_nanoseconds(self):
        """Microseconds count a thousand; of two numbers with that unit the last is the result."""
        self.assertAlmostEqual(
            self.read(parse.microseconds, "Simple syscall: 0.1332 microseconds\n"), 133.2
        )
        slept = "nanosleep 1000 microseconds: 1086.5 microseconds\n"
        self.assertAlmostEqual(self.read(parse.microseconds, slept), 1_086_500)
        late = parse.less(parse.microseconds, 1e6)
        self.assertAlmostEqual(self.read(late, slept), 86_500)
        self.assertAlmostEqual(self.read(parse.lmbench_mmap, "1.048576 20\n"), 20_000)
        self.assertAlmostEqual(self.read(parse.perf_usecs, "  4.93 usecs/op\n"), 4930)
        self.assertAlmostEqual(self.read(parse.stress_nanosecs, STRESS), 3784.69)

    def test_rates_become_bytes_a_second(self):
        """lmbench's megabytes are millions; perf's and sysbench's units are powers of two."""
        self.assertAlmostEqual(self.read(parse.lmbench_rate, "67.11 16927.5\n"), 16_927_500_000)
        self.assertAlmostEqual(self.read(parse.perf_rate, "   2.0 GB/sec\n"), 2 * 1024**3)
        self.assertAlmostEqual(self.read(parse.sysbench_rate, SYSBENCH_MEMORY), 2 * 1024**2)

    def test_sysbench_tells_the_median_or_the_share_of_one(self):
        """4.03 ms is the median; 8 ms for 4 million locks are 2 ns each."""
        self.assertAlmostEqual(self.read(parse.sysbench_median, SYSBENCH_LATENCY), 4_030_000)
        each = parse.sysbench_each(4_000_000)
        self.assertAlmostEqual(self.read(each, SYSBENCH_LATENCY), 2.0)

    def test_a_latency_curve_is_by_bytes(self):
        """Sizes printed with five digits of a MiB are the whole sizes that they were."""
        text = '"stride=64\n0.00049 1.0\n0.00293 1.1\n0.01562 1.2\n64.00000 99.5\n'
        curve = parse.lat_mem_rd(text)
        self.assertEqual(curve, {512: 1.0, 3072: 1.1, 16384: 1.2, 64 << 20: 99.5})

    def test_a_hand_over_has_the_overhead_that_lat_ctx_takes_off(self):
        """1.75 us for the switch and 0.5 for the pipe make 2.25."""
        found = parse.lat_ctx('\n"size=0k ovr=0.50\n2 1.75\n')
        self.assertEqual(found, {"switch": 1750.0, "hand-over": 2250.0})

    def test_files_a_second_become_times(self):
        """A thousand made a second: 1 ms each; none made is no answer."""
        self.assertEqual(
            parse.lat_fs("1k\t947\t1000\t100000\n"), {"create": 1e6, "delete": 1e4}
        )
        with self.assertRaises(parse.Unreadable):
            parse.lat_fs("0k\t0\t0\t0\n")

    def test_other_output_is_not_a_value(self):
        """Usage, an error, nothing: no reader makes a number of it."""
        readers = [pair.tool.read for pair in pairs.PAIRS]
        for reader in readers:
            for text in ("", "usage: tool [options]\n", "create: No such file or directory\n"):
                with self.assertRaises(parse.Unreadable):
                    reader(text)


TOOL = tools.Tool("true", parse.microseconds)


def rounds(*both):
    """hangdog's figure a.b and what the tool read, round by round."""
    return [
        (
            {"figures": [{"id": "a.b", "at": None, "unit": "ns", "median": ours}], "methods": []},
            {TOOL: theirs if isinstance(theirs, str) else {"value": theirs}},
        )
        for ours, theirs in both
    ]


class Rows(unittest.TestCase):
    def row(self, found, **pair):
        return compare.row_of(pairs.Pair("a.b", None, TOOL, **pair), found)

    def test_within_15_percent_agrees(self):
        """114 to 100 agrees either way round, 116 to 100 neither; the median round decides."""
        for both, verdict in (
            ([(114, 100)], "agrees"),
            ([(100, 114)], "agrees"),
            ([(116, 100)], "differs"),
            ([(100, 116)], "differs"),
            ([(100, 100), (300, 100), (101, 100)], "agrees"),
        ):
            self.assertEqual(self.row(rounds(*both))["verdict"], verdict, both)

    def test_a_ratio_is_taken_within_its_round(self):
        """A machine twice as slow in one round leaves each ratio as it was."""
        row = self.row(rounds((100, 50), (200, 100)))
        self.assertEqual(row["ratio"], {"median": 2, "min": 2, "max": 2})

    def test_unsteady_is_what_agreed_in_a_round(self):
        """Twice as much in two rounds of three, and the same in one; in all three it differs."""
        row = self.row(rounds((200, 100), (200, 100), (100, 100)))
        self.assertEqual(row["verdict"], "unsteady")
        self.assertFalse(list(compare.failures({"rows": [row]})))
        row = self.row(rounds((200, 100), (200, 100), (400, 200)))
        self.assertEqual(row["verdict"], "differs")

    def test_a_reason_explains_its_side_alone(self):
        """What makes hangdog's figure smaller does not explain a larger one."""
        reason = {"side": "less", "why": "it does less"}
        self.assertEqual(self.row(rounds((50, 100)), **reason)["verdict"], "explained")
        row = self.row(rounds((200, 100)), **reason)
        self.assertEqual(row["verdict"], "differs")
        self.assertTrue(list(compare.failures({"rows": [row]})))

    def test_a_reason_is_told_only_where_it_is_needed(self):
        """Figures that agree stand without one."""
        row = self.row(rounds((100, 100)), side="less", why="it does less")
        self.assertNotIn("why", row)

    def test_half_a_round_trip_is_a_hand_over(self):
        """40 for the way there and back meet 20."""
        self.assertEqual(self.row(rounds((20, 40)), times=pairs.ROUND_TRIP)["verdict"], "agrees")

    def test_a_rate_becomes_the_time_of_an_amount(self):
        """4096 bytes at 1 GB/s take 4096 ns."""
        self.assertEqual(self.row(rounds((4096, 1e9)), amount=4096)["ratio"]["median"], 1)

    def test_a_tool_that_is_missing_is_no_failure_a_figure_without_a_word_is(self):
        """What cannot be compared says why; a figure that hangdog leaves out in silence fails."""
        row = self.row(rounds((1, "there is no such tool")))
        self.assertEqual(row["verdict"], "not compared")
        self.assertEqual(row["missing"], "there is no such tool")
        self.assertFalse(list(compare.failures({"rows": [row]})))
        found = [({"figures": [], "methods": []}, {TOOL: {"value": 1}})]
        self.assertTrue(list(compare.failures({"rows": [self.row(found)]})))
        found[0][0]["methods"] = [{"id": "a", "not_tried": "refused here"}]
        row = self.row(found)
        self.assertEqual(row["missing"], "hangdog: refused here")
        self.assertFalse(list(compare.failures({"rows": [row]})))

    def test_every_reason_has_a_side(self):
        """None can explain both or nothing by mistake."""
        for pair in pairs.PAIRS:
            self.assertEqual(bool(pair.why), pair.side in ("less", "more", "either"), pair)


if __name__ == "__main__":
    unittest.main()
