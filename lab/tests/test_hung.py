"""Programs that hang for good: the witness that /proc is, and a run against a hangdog that says
what it is told to."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(LAB), str(LAB / "real")]

import hung  # noqa: E402
from hangs import witness  # noqa: E402
from hangs.program import PROGRAMS  # noqa: E402

# Answers by `why --live` that the process asked about is itself the root, as a LongWait.
SAYS_ITSELF = """#!/usr/bin/env python3
import json, sys
if "--help" in sys.argv:
    print("--live --json")
    sys.exit()
pid = int(sys.argv[-1])
who = {"tid": pid, "pid": pid, "process": "cat", "thread": "cat"}
print(json.dumps({
    "sentence": "cat waits.",
    "problem": who | {"start_ns": 0, "duration_ns": 1000, "class": "LongWait"},
    "root": who | {"class": "LongWait", "function": None, "confidence": 0.9},
    "blame": [{"kind": "lock", "ns": 1000, "share": 1.0}],
    "ran": None, "path": [], "knot": None, "questions": [],
}))
"""


class TheWitness(unittest.TestCase):
    def setUp(self):
        self.sleep = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
        self.addCleanup(self.sleep.wait)
        self.addCleanup(self.sleep.kill)

    def test_knows_where_a_thread_hangs(self):
        """A program that sleeps for good is in its call, and a child of this one."""
        told = witness.until_hung([witness.sleeps(self.sleep.pid)])
        self.assertIn(f"{self.sleep.pid} (sleep) S in", told)
        self.assertEqual(witness.child(os.getpid(), "sleep"), self.sleep.pid)

    def test_disagrees(self):
        """A thread that hangs elsewhere, or that runs, is not taken for hung."""
        witness.until_hung([witness.sleeps(self.sleep.pid)])
        self.addCleanup(setattr, witness, "PATIENCE_S", witness.PATIENCE_S)
        witness.PATIENCE_S = 0.5
        for hop in (
            witness.At(self.sleep.pid, ("read",)),
            witness.At(self.sleep.pid, state="T"),
            witness.At(threading.get_native_id()),
        ):
            with self.subTest(hop=hop), self.assertRaises(hung.Fault):
                witness.until_hung([hop])

    def test_knows_who_has_ended(self):
        """What has ended is named."""
        other = subprocess.Popen(["true"])
        other.wait()
        self.assertEqual(witness.ended((self.sleep.pid, other.pid)), [other.pid])


class ARun(unittest.TestCase):
    def rows(self, script, name):
        with tempfile.TemporaryDirectory() as folder:
            hangdog = pathlib.Path(folder) / "hangdog"
            hangdog.write_text(script)
            hangdog.chmod(0o755)
            return list(hung.run(str(hangdog), pathlib.Path(folder), [name], anyway=True))

    def test_asks_of_what_hangs(self):
        """A live answer is held against the truth, and the row can be kept as JSON."""
        (row,) = self.rows(SAYS_ITSELF, "fifo-no-writer")
        self.assertEqual(row["state"], "told", row)
        self.assertEqual(row["answers"]["process"]["result"], "right", row["answers"])
        self.assertEqual(len(row["truth"]["chain"]), 1)
        self.assertFalse(pathlib.Path(f"/proc/{row['truth']['chain'][0]}").exists())
        json.dumps(row)

    def test_finds_a_wrong_root(self):
        """Who only looks at the program that hangs is wrong where another one holds it up."""
        (row,) = self.rows(SAYS_ITSELF, "pipe-silent-writer")
        self.assertEqual(row["answers"]["process"]["result"], "wrong")
        self.assertEqual(len(row["truth"]["chain"]), 2)

    def test_goes_on_after_a_fault(self):
        """A hangdog that fails is a row, too."""
        script = SAYS_ITSELF.replace("pid = int", "sys.exit(3); pid = int")
        (row,) = self.rows(script, "fifo-no-reader")
        self.assertEqual(row["state"], "failed")
        self.assertIn("exit code 3", row["reason"])


class ThePrograms(unittest.TestCase):
    def test_are_fifty(self):
        """Each says what it waits for."""
        self.assertEqual(len(PROGRAMS), 50)
        for program in PROGRAMS.values():
            self.assertTrue(program.summary.endswith("."), program.name)


if __name__ == "__main__":
    unittest.main()
