#!/usr/bin/env python3
"""Tries out the truth of each program without a recorder: does it hang, and as it claims?

The witness is /proc (sampler.py): the culprit of a LongRunning ran while the victim did not, a
deadlock's threads all slept, and so on.
"""

import argparse
import sys

import sampler
import truth as lab

# What a hang may last, as a multiple of what was asked for. Work is measured in CPU time: other
# load on the machine makes a hang longer. A quota counts in whole periods: that may make it shorter.
MULTIPLE = (0.6, 3.0)


def check_claim(truth, accounts, victim):
    """Yields what the kernel's accounts say against the truth."""
    root = next((accounts[name] for name in truth.threads if name in accounts), None)
    if root is None or victim is None:
        yield "root or victim was not seen during the hang"
        return
    same = truth.victim in truth.threads
    match truth.root_class:
        case "LongRunning":
            # Where the machine has other work, the root must share a CPU.
            if root.running < 0.3 or root.running + root.queued < 0.8:
                yield (
                    f"the root ran for {root.running:.0%} of the hang "
                    f"and waited for a CPU for {root.queued:.0%} only"
                )
            if victim.blocked < 0.8:
                yield f"the victim was blocked for {victim.blocked:.0%} of the hang only"
        case "LongWait":
            if root.blocked < 0.5:
                yield f"the root was blocked for {root.blocked:.0%} of the hang only"
            if root.running > 0.4:
                yield f"the root ran for {root.running:.0%} of the hang"
        case "Starved":
            if victim.blocked > 0.2 or victim.running > 0.35:
                yield (
                    f"the victim was blocked for {victim.blocked:.0%} of the hang "
                    f"and ran for {victim.running:.0%}"
                )
            if not same and root.running < 0.7:
                yield f"the root ran for {root.running:.0%} of the hang only"
        case "RepeatedYield":
            if victim.running < 0.02:
                yield f"the victim ran for {victim.running:.1%} of the hang: it does not poll"
        case "Circular":
            for name in truth.knot:
                if name not in accounts or accounts[name].blocked < 0.9:
                    yield f"{name} of the wait cycle was not blocked throughout"


def check_run(program, seed):
    """Gives (result, what there is to say, hang in ms)."""
    code, out, err, samples = sampler.watch(program.command(seed))
    if code == lab.CANNOT_RUN:
        return "skipped", [err.strip()], None
    if code != 0:
        return "failed", [f"exit code {code}: {err.strip()}"], None
    try:
        run = lab.parse_run(out)
        truth = program.truth(run.params)
    except lab.TruthError as error:
        return "failed", [str(error)], None

    def account(process, thread):
        return sampler.account(samples, run.begin_ns, run.end_ns, process, thread)

    names = {*truth.threads, *truth.knot}
    accounts = {name: account(truth.process, name) for name in names}
    accounts = {name: found for name, found in accounts.items() if found}
    # The victim is its process's main thread: the two have one name.
    faults = list(check_claim(truth, accounts, account(truth.victim, truth.victim)))
    hang_ms = run.length_ns / 1e6
    asked_ms = int(run.params["hang_ms"])
    if not MULTIPLE[0] <= hang_ms / asked_ms <= MULTIPLE[1]:
        faults.append(f"it hung for {hang_ms:.0f} ms instead of {asked_ms} ms")
    return "failed" if faults else "passed", faults, hang_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    lab.add_selection(parser, default_seeds=1)
    args = parser.parse_args()
    lab.build()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for program, seed in lab.selection(args):
        result, remarks, hang_ms = check_run(program, seed)
        counts[result] += 1
        hang = "" if hang_ms is None else f"{hang_ms:7.0f} ms"
        print(f"{program.name:<13} {seed:>4}  {result:<8}{hang}")
        for remark in remarks:
            print(f"    {remark}")
        sys.stdout.flush()
    print(lab.closing_line(counts))
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
