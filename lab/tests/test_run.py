"""The runner against a stand-in for hangdog, whose recordings and verdicts are made up."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent

# `record` runs the program and keeps its words; `why` tells the truth of queue.toml by them, or
# what the environment says.
STAND_IN = '''#!{python}
import json, os, pathlib, subprocess, sys
if sys.argv[1] == "record":
    assert sys.argv[2] == "-o" and sys.argv[4] == "--"
    trace = pathlib.Path(sys.argv[3])
    trace.mkdir()
    if os.environ.get("STAND_IN") == "cannot run":
        print("not as this user", file=sys.stderr)
        sys.exit(77)
    done = subprocess.run(sys.argv[5:], capture_output=True, text=True, check=True)
    (trace / "out").write_text(done.stdout)
    (trace / "meta.json").write_text(json.dumps({{"clock": {{"monotonic_start_ns": 1000}}}}))
    print(done.stdout, end="")
    sys.exit(0)
assert sys.argv[1:3] == ["why", "--json"]
how = os.environ.get("STAND_IN")
if how == "nothing found":
    sys.exit(1)
if how == "garbage":
    print("[]")
    sys.exit(0)
words = (pathlib.Path(sys.argv[3]) / "out").read_text().split()
begin, end = map(int, words[words.index("hang") + 1:][:2])
worker = next(w.partition("=")[2] for w in words if w.startswith("worker="))
print(json.dumps({{
    "problem": {{"thread": "queue", "start_ns": begin - 1000, "duration_ns": end - begin}},
    "root": {{"class": "LongRunning", "process": "queue", "function": "expensive_job",
             "thread": "queue" if how == "wrong" else "worker" + worker}},
    "blame": [{{"kind": "run", "ns": end - begin}}],
    "path": [{{"stack": ["futex_wait", "wait_for_result", "main"]}}],
    "knot": None,
}}))
'''


class Run(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.hangdog = pathlib.Path(self.scratch.name) / "hangdog"
        self.hangdog.write_text(STAND_IN.format(python=sys.executable))
        self.hangdog.chmod(self.hangdog.stat().st_mode | stat.S_IXUSR)
        self.traces = pathlib.Path(self.scratch.name) / "traces"

    def run_lab(self, how, *more):
        command = [sys.executable, LAB / "run.py", "--hangdog", self.hangdog, "--only", "queue"]
        command += ["--seed", "2", "--keep-dir", self.traces, *more]
        environment = os.environ | {"STAND_IN": how}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )

    def test_right(self):
        """A right verdict passes, and its trace is not kept."""
        done = self.run_lab("right")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "lab: 1 passed, 0 failed, 0 skipped")
        self.assertEqual(list(self.traces.iterdir()), [])

    def test_wrong(self):
        """Whatever goes wrong fails the lab, says why, and keeps the trace."""
        for how, said in {
            "wrong": "the root is queue/worker",
            "nothing found": "exit code 1",
            "garbage": "not the documented shape",
        }.items():
            done = self.run_lab(how)
            self.assertEqual(done.returncode, 1, how)
            self.assertIn(said, done.stdout)
            self.assertIn(f"trace: {self.traces / 'queue-2.hang'}", done.stdout)
            self.assertEqual(done.stdout.splitlines()[-1], "lab: 0 passed, 1 failed, 0 skipped")

    def test_not_run_is_not_passed(self):
        """A program that the machine does not allow is skipped, and says why."""
        done = self.run_lab("cannot run", "--json")
        self.assertEqual(done.returncode, 1)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["passed"], answer["failed"], answer["skipped"]), (0, 0, 1))
        self.assertEqual(answer["rows"][0]["faults"], ["not as this user"])
        self.assertEqual(list(self.traces.iterdir()), [])

    def test_no_hangdog(self):
        """Without the command there is one clear line, not a table of failures."""
        self.hangdog.unlink()
        done = self.run_lab("right")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot find", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
