"""Whether a case freezes at all: it is played without a recorder, many times, some at a time so
that each has another load beside it, and its witness says."""

import concurrent.futures
import time

import corpus
import settings
from case import CASES
from stage import CannotRun, Fault

# Of so many runs a case must freeze.
LEAST_SHARE = 0.9


def froze(name, number):
    """Plays a case once: its name, what the witness said, else why there was no freeze, and how
    long that took, s."""
    began = time.monotonic()
    try:
        truth = corpus.play(CASES[name], settings.Setting(None, None))
        frozen = (truth.frozen[1] - truth.frozen[0]) / 1e9
        return name, f"{frozen:.1f} s; {truth.witness}", None, time.monotonic() - began
    except CannotRun as reason:
        return name, None, f"cannot run: {reason}", 0.0
    except (Fault, OSError, ValueError) as fault:
        return name, None, f"run {number}: {fault}", time.monotonic() - began


def run(cases, times, jobs):
    """Plays each so many times, and prints how often it froze; whether all did often enough. Cases
    that change the whole machine run by themselves."""
    seen = {case.name: [] for case in cases}
    said = {}
    together = [case.name for case in cases if not case.whole_machine]
    apart = [case.name for case in cases if case.whole_machine]
    for names, at_a_time in ((together, jobs), (apart, 1)):
        with concurrent.futures.ProcessPoolExecutor(at_a_time) as pool:
            tasks = [pool.submit(froze, name, n) for n in range(times) for name in names]
            for task in concurrent.futures.as_completed(tasks):
                name, witness, fault, seconds = task.result()
                seen[name].append(witness is not None)
                if fault:
                    print(f"no freeze: {name}: {fault}", flush=True)
                else:
                    said[name] = f"({seconds:.0f} s) {witness}"
    print()
    for name, results in seen.items():
        print(f"{sum(results):>3} of {len(results):<3} {name} {said.get(name, '')}")
    return all(sum(results) >= LEAST_SHARE * len(results) for results in seen.values())
