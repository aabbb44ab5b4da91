#!/usr/bin/env python3
"""Tries out the truth of composed hangs without a recorder.

The witness is /proc (sampler.py): each root ran, slept, or was runnable as the truth says, the
victim did not, and whoever stands between the two waited.
"""

import argparse
import sys

import composed
import quiet
import sampler
import truth as lab

# What a hang may last, as a multiple of what was asked for.
MULTIPLE = (0.7, 2.0)
# A root that queued for more than this had to share the machine: such a run shows nothing.
MAX_QUEUED = 0.25
# Of a hang of half a second and more, each page being waited for by itself.
MIN_FAULTS = 1000


def accounts_of(samples, case, pairs):
    run = case.run
    found = {
        pair: sampler.account(samples, run.begin_ns, run.end_ns, *pair) for pair in pairs
    }
    return {pair: account for pair, account in found.items() if account is not None}


def nodes_of(samples, root):
    """(process, thread) of the chain's nodes that were seen, without the root."""
    seen = {(sample.process, sample.thread) for sample in samples}
    return {pair for pair in seen if pair[1].startswith("node")} - {root}


def check_root(case, root, account):
    """Yields what the kernel's accounts say against one root."""
    name = "/".join(root)
    match case.root_class:
        case "LongRunning":
            if account.running < 0.3 or account.running + account.queued < 0.8:
                yield (
                    f"{name} ran for {account.running:.0%} of the hang "
                    f"and waited for a CPU for {account.queued:.0%} only"
                )
        case "LongWait":
            if account.blocked < 0.7 or account.running > 0.3:
                yield (
                    f"{name} was blocked for {account.blocked:.0%} of the hang "
                    f"and ran for {account.running:.0%}"
                )
        case "Starved":
            if root[1] == "hog" and account.running < 0.7:
                yield f"{name} ran for {account.running:.0%} of the hang only"
            if root[1] != "hog" and (account.blocked > 0.2 or account.running > 0.35):
                yield (
                    f"{name} was blocked for {account.blocked:.0%} of the hang "
                    f"and ran for {account.running:.0%}"
                )
        case "RepeatedYield":
            if account.running < 0.02:
                yield f"{name} ran for {account.running:.1%} of the hang: it does not poll"
        case "Paging":
            # Its waits are short: looks at its state tell little. The kernel's work for each page
            # is a part of paging.
            if account.major_faults < MIN_FAULTS or account.running > 0.6:
                yield (
                    f"{name} waited for {account.major_faults} pages "
                    f"and ran for {account.running:.0%} of the hang"
                )
        case "Circular":
            if account.blocked < 0.8 or account.running > 0.05:
                yield f"{name} of the wait cycle was blocked for {account.blocked:.0%} of the hang only"


def check_waiter(pair, account):
    """Yields what speaks against a thread having only waited. A look finds it runnable where a
    decoy has woken it a moment ago."""
    if account.blocked < 0.6 or account.running > 0.1:
        yield (
            f"{'/'.join(pair)} was blocked for {account.blocked:.0%} of the hang "
            f"and ran for {account.running:.0%}: it did not only wait"
        )


def check_run(seed):
    """Gives (result, what there is to say against one seed's truth, the case)."""
    quiet.wait()
    code, out, err, samples = sampler.watch(composed.command(seed))
    if code != 0:
        return "failed", [f"exit code {code}: {err.strip()}"], None
    try:
        case = composed.parse(out)
    except lab.TruthError as error:
        return "failed", [str(error)], None
    faults = []
    accounts = accounts_of(samples, case, case.roots)
    if not quiet.is_quiet():
        return "skipped", ["the machine is busy with something else"], case
    if case.root_class != "Starved":
        queued = max((account.queued for account in accounts.values()), default=0.0)
        if queued > MAX_QUEUED:
            return "skipped", [f"the machine was busy: a root queued for {queued:.0%}"], case
    for root in case.roots:
        if root in accounts:
            faults += check_root(case, root, accounts[root])
        else:
            faults.append(f"{'/'.join(root)} was not seen during the hang")
    # The one that a hog starves is the last node: it waits for no thread.
    hogged = case.roots[0][1] == "hog"
    last = f"node{case.run.params['depth']}"
    waiters = {
        pair for pair in nodes_of(samples, case.roots[0]) if not (hogged and pair[1] == last)
    }
    if (case.victim, case.victim) not in case.roots:
        waiters.add((case.victim, case.victim))
    for pair, account in accounts_of(samples, case, waiters).items():
        faults += check_waiter(pair, account)
    lasted = case.run.length_ns / case.asked_ns
    if not MULTIPLE[0] <= lasted <= MULTIPLE[1]:
        faults.append(f"it hung for {lasted:.1f} times as long as asked for")
    return "failed" if faults else "passed", faults, case


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30, metavar="N")
    parser.add_argument("--first-seed", type=int, default=1, metavar="K")
    args = parser.parse_args()
    composed.build()
    quiet.go_ahead()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for seed in range(args.first_seed, args.first_seed + args.count):
        result, faults, case = check_run(seed)
        counts[result] += 1
        print(f"{seed:>10}  {result:<7}  {case or ''}")
        for fault in faults:
            print(f"{'':>20}{fault}")
        sys.stdout.flush()
    print(lab.closing_line(counts))
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
