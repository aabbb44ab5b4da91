"""What recording costs one long run of pgbench, in which the recorder comes and goes.

From one run to the next the scheduler shares the CPUs among clients and servers in another way, which moves
the throughput by up to 40 %. Within one run it moves less. So the load goes on all the while, and each time with
a recorder is compared with the mean of the times without one right before and after it. A second run has all on one
CPU, recorder included: there it moves least, and whatever a recorder does takes from the load.
"""

import contextlib
import os
import re
import statistics
import subprocess
import threading
import time

import recorders
import servers

# A time that is measured. pgbench tells its rate once a second.
WINDOW_S = 5
PROGRESS = re.compile(r"^progress: [0-9.]+ s, ([0-9.]+) tps")


class Rates:
    """The transactions a second that a load tells, with when it told them."""

    def __init__(self, lines, now=time.monotonic):
        self.told, self.now = [], now
        self.reader = threading.Thread(target=self.read, args=(lines,), daemon=True)
        self.reader.start()

    def read(self, lines):
        for line in lines:
            if found := PROGRESS.match(line):
                self.told.append((self.now(), float(found.group(1))))

    def within(self, begin, end):
        """The median of the seconds that lie between two times."""
        rates = [rate for at, rate in list(self.told) if begin <= at - 1 and at <= end]
        if not rates:
            raise recorders.Failure("pgbench told no rate")
        return statistics.median(rates)

    def over(self, seconds):
        begin = self.now()
        # pgbench prints a rate at the end of each second.
        time.sleep(seconds + 1)
        return self.within(begin, self.now())


@contextlib.contextmanager
def going(words):
    """A load that goes on until it is no longer needed."""
    load = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield Rates(load.stderr)
    finally:
        servers.end(load)


@contextlib.contextmanager
def only_on(cpus):
    """What is started meanwhile runs on these CPUs alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(hangdog, directory, rounds, only):
    """A run on all CPUs, and one on the last."""
    cpus = os.sched_getaffinity(0)
    found = []
    for place, on in (("", cpus), (", one CPU", {max(cpus)})):
        with only_on(on):
            run = measure_run(hangdog, directory, rounds, only)
        found.append(run | {"load": run["load"] + place})
    return found


def measure_run(hangdog, directory, rounds, only):
    rows, failures = [], []
    forms = [form for form in servers.forms(hangdog, False) if only in form.name]
    with (
        recorders.empty(directory / "steady") as place,
        servers.postgres(place) as (load,),
        going(load.endless) as rates,
    ):
        time.sleep(WINDOW_S)
        before = rates.over(WINDOW_S)
        for number in range(rounds):
            at = number % len(forms)
            for form in forms[at:] + forms[:at]:
                try:
                    with recorders.empty(place / "beside") as own, form.beside(own):
                        recorded = rates.over(WINDOW_S)
                except recorders.Failure as failure:
                    failures.append(f"round {number + 1}: {form.name}: {failure}")
                    continue
                after = rates.over(WINDOW_S)
                bare = (before + after) / 2
                rows.append({"recorder": form.name, "rate": recorded, "bare_rate": bare})
                before = after
    return {"load": load.name, "runs": rows, "failures": failures}


def show(found):
    """Prints the medians, with the least and the greatest."""
    print(f"\n{found['load']}, one run: throughput without / with")
    by = {}
    for row in found["runs"]:
        by.setdefault(row["recorder"], []).append(row)
    rates = servers.spread(row["bare_rate"] for row in found["runs"])
    print(f"{'none':<20} {rates} /s")
    for name, rows in by.items():
        print(f"{name:<20} {servers.spread(row['bare_rate'] / row['rate'] for row in rows)}")
