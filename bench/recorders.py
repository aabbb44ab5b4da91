"""What is compared: nothing, hangdog in its forms, and for a comparison perf."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 300


class Failure(Exception):
    """A run that measured nothing."""


def wait(process, what):
    """Waits for a process; gives its CPU time (s) and peak memory (bytes), children included."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            process.kill()
            raise Failure(f"{what}: not done after {PATIENCE_S} s")
        time.sleep(0.002)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Failure(f"{what}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


class Recorder:
    """Runs a command unrecorded. What each run gives, beside what the command cost:
    `recorder_cpu_s`, and where there is a trace `events`, `switches`, `bytes`, `lost`."""

    name = "none"

    def run(self, command, directory: pathlib.Path):
        """Runs the command once, with files in an empty directory."""
        result = directory / "measured.json"
        words = [sys.executable, str(HERE / "measured.py"), str(result), *command]
        try:
            found = self.record(words, directory)
        except subprocess.CalledProcessError as error:
            raise Failure(f"{self.name}: {error}") from None
        try:
            measured = json.loads(result.read_text())
        except (OSError, json.JSONDecodeError) as error:
            raise Failure(f"{self.name}: no measurement: {error}") from None
        if measured["code"] != 0:
            raise Failure(f"{' '.join(command)}: exit code {measured['code']}")
        if "total_cpu_s" in found:
            inner = measured["cpu_s"] + measured["own_cpu_s"]
            found["recorder_cpu_s"] = max(found.pop("total_cpu_s") - inner, 0.0)
        return measured | found

    def record(self, words, _directory):
        subprocess.run(words, check=True)
        return {}


class Hangdog(Recorder):
    """What the forms of hangdog have in common."""

    FORMS = {
        "no stacks": ["--no-stacks"],
        "stacks, no samples": ["--sample", "0"],
        "stacks": [],
    }

    def __init__(self, hangdog, form):
        self.hangdog = hangdog
        self.options = self.FORMS[form]
        self.name = f"{type(self).__name__.lower()}, {form}"

    def info(self, trace):
        """What the trace holds."""
        words = [self.hangdog, "info", "--json", str(trace)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"{self.name}: info: {done.stderr.strip()}")
        info = json.loads(done.stdout)
        rows = {table["name"]: table["rows"] for table in info["events"]}
        return {
            "events": info["event_count"],
            "switches": rows.get("switches", 0),
            "bytes": info["bytes"],
            "lost": info["loss"]["total"],
            "lost_by": info["loss"]["by"],
            "duration_s": info["duration_ns"] / 1e9,
        }


class Record(Hangdog):
    """Everything onto disk, with the default sampling."""

    def record(self, words, directory):
        trace = directory / "bench.hang"
        command = [self.hangdog, "record", *self.options, "-o", str(trace), "--", *words]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        cpu_s, _ = wait(process, self.name)
        return {"total_cpu_s": cpu_s} | self.info(trace)


class Flight(Hangdog):
    """Always on; a snapshot at the end tells what was held and lost."""

    def record(self, words, directory):
        environment = os.environ | {"HANGDOG_SOCKET": str(directory / "socket")}
        trace = directory / "bench.hang"
        flight = subprocess.Popen(
            [self.hangdog, "flight", *self.options],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        with contextlib.ExitStack() as stack:
            stack.callback(flight.kill)
            if not any("recording into" in line for line in flight.stderr):
                raise Failure(f"{self.name}: it does not fly")
            subprocess.run(words, check=True)
            subprocess.run(
                [self.hangdog, "snap", "-o", str(trace)],
                env=environment,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            flight.send_signal(signal.SIGINT)
            cpu_s, _ = wait(flight, self.name)
            stack.pop_all()
        return {"recorder_cpu_s": cpu_s} | self.info(trace)


class Perf(Recorder):
    """perf with the two events that a diagnosis needs least, and stacks by frame pointers."""

    name = "perf record -g"
    EVENTS = "sched:sched_switch,sched:sched_waking"

    def record(self, words, directory):
        data = directory / "perf.data"
        command = ["perf", "record", "-q", "-a", "-g", "-e", self.EVENTS, "-o", str(data), "--"]
        process = subprocess.Popen(command + words, stderr=subprocess.DEVNULL)
        cpu_s, _ = wait(process, self.name)
        stats = subprocess.run(
            ["perf", "report", "--stats", "-i", str(data)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        counts = {}
        for kind, count in re.findall(r"^\s+(\w+) events:\s+(\d+)", stats, re.MULTILINE):
            # The sums come first, then the same for each tracepoint.
            counts.setdefault(kind, int(count))
        return {
            "total_cpu_s": cpu_s,
            "events": counts.get("SAMPLE", 0),
            "bytes": data.stat().st_size,
            "lost": counts.get("LOST_SAMPLES", 0) + counts.get("LOST", 0),
        }


def recorders(hangdog, peers):
    """All of them, the unrecorded run first."""
    found = [Recorder()]
    found += [Flight(hangdog, form) for form in ("no stacks", "stacks")]
    found += [Record(hangdog, form) for form in Hangdog.FORMS]
    if peers:
        found.append(Perf())
    return found


@contextlib.contextmanager
def empty(directory: pathlib.Path):
    """An empty directory, gone afterwards."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
