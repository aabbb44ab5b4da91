"""How long `hangdog why` takes on a large trace, and how much memory."""

import pathlib
import statistics
import subprocess
import time

import recorders

LAB = pathlib.Path(__file__).resolve().parent.parent / "lab"
# A wake and a switch each way make four; some are spared where both ends run at once.
EVENTS_AN_OPERATION = 3
TIMES = 3


def record(hangdog, trace, events):
    """A program that hangs, beside a benchmark that fills the trace with events."""
    if subprocess.run(["make", "-s", "-C", str(LAB), "build/queue"], check=False).returncode:
        raise recorders.Failure("the lab's program could not be compiled")
    operations = events // EVENTS_AN_OPERATION
    script = f"'{LAB}/build/queue' --seed 1 & perf bench sched pipe -l {operations}; wait"
    words = [hangdog, "record", "-o", str(trace), "--", "sh", "-c", script]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode:
        raise recorders.Failure("why: the large trace could not be recorded")


def measure(hangdog, directory, events):
    """Records, asks a few times, and gives what was measured."""
    trace = directory / "large.hang"
    record(hangdog, trace, events)
    info = recorders.Hangdog(hangdog, "stacks").info(trace)
    runs = []
    for _ in range(TIMES):
        begin = time.monotonic()
        process = subprocess.Popen([hangdog, "why", str(trace)], stdout=subprocess.PIPE, text=True)
        text = process.stdout.read()
        cpu_s, peak = recorders.wait(process, "why")
        runs.append({"wall_s": time.monotonic() - begin, "cpu_s": cpu_s, "peak_bytes": peak})
    return {"trace": info, "runs": runs, "sentence": (text.splitlines() or [""])[0]}


def show(found):
    """Prints it."""
    walls = [run["wall_s"] for run in found["runs"]]
    trace = found["trace"]
    print(
        f"\nwhy on {trace['events']:,} events ({trace['bytes'] / 1e6:.0f} MB, "
        f"{trace['lost']:,} lost): {statistics.median(walls):.2f} s "
        f"({min(walls):.2f}-{max(walls):.2f}), "
        f"CPU {statistics.median(run['cpu_s'] for run in found['runs']):.2f} s, "
        f"at most {max(run['peak_bytes'] for run in found['runs']) / 1e9:.2f} GB"
    )
    print(f"  {found['sentence']}")
