#!/usr/bin/env python3
"""Whether what `hangdog why` says of a problem agrees with what `hangdog threads` says of the same
time, and with itself.

  sum         the blame is the problem's length, to the nanosecond
  state       no thread is blamed for more time in a state than it spent in that state then
  life        no thread is blamed for time before its birth or after its end, unless it is that it had
              exited
  cycle       there is an instant at which every thread of a wait cycle is blocked. That each waits
              for the next one cannot be told from outside; this much must hold
  what-if     a root with more than 80 % of the blame: without it at least 20 % less
  confidence  a path that ends with an unknown edge is not 99 % sure

Knows the command `hangdog`, its documented JSON and the documented tables. Needs pyarrow for wait
cycles (`make -C lab build/venv`).
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys

TIMEOUT_S = 120
# Which states of a thread a kind of blame can be spent in. What is stopped is blocked; time that is
# not explained may have been spent in any.
STATES_OF = {
    "run": ("running",),
    "runnable": ("runnable", "preempted"),
    "interrupt": ("interrupted",),
    "lock": ("blocked",),
    "message": ("blocked",),
    "disk": ("blocked",),
    "network": ("blocked",),
    "timer": ("blocked",),
    "paging": ("blocked",),
    "stopped": ("blocked",),
}
MUCH_BLAME, LEAST_GAIN, SURE = 0.80, 0.20, 0.99


def answer(hangdog, *words):
    """A command's answer; None where it finds nothing. Raises OSError where it fails."""
    words = [str(word) for word in (hangdog, *words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode == 1:
        return None
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def name_of(thread):
    return f"{thread['process']}/{thread['thread']} ({thread['tid']})"


def blame_contradictions(verdict, threads):
    """Those of the blame against `threads`: what `hangdog threads` says of the problem's time."""
    problem = verdict["problem"]
    total = sum(part["ns"] for part in verdict["blame_by_thread"])
    if total != problem["duration_ns"]:
        yield "sum", f"the blame is {total} ns, the problem {problem['duration_ns']} ns"
    by_tid = collections.defaultdict(list)
    for thread in threads:
        by_tid[thread["tid"]].append(thread)
    blamed = collections.defaultdict(collections.Counter)
    names = {}
    for part in verdict["blame_by_thread"]:
        blamed[part["tid"]][part["kind"]] += part["ns"]
        names[part["tid"]] = name_of(part)
    for tid, kinds in blamed.items():
        # A thread id that was used again: the times of all that had it.
        here = by_tid[tid]
        life = sum(thread["time_ns"] for thread in here)
        alive = sum(ns for kind, ns in kinds.items() if kind != "exited")
        if alive > life:
            yield "life", f"{names[tid]} is blamed for {alive} ns and lived {life} ns"
        by_states = collections.Counter()
        for kind, ns in kinds.items():
            if kind in STATES_OF:
                by_states[STATES_OF[kind]] += ns
        for states, ns in by_states.items():
            spent = sum(
                thread["states"].get(state, {"ns": 0})["ns"] for thread in here for state in states
            )
            if ns > spent:
                yield "state", f"{names[tid]} is blamed for {ns} ns {states[0]}, threads: {spent} ns"


def lifetime_contradictions(verdict, threads):
    """The thread that was held up must live as long as its problem."""
    problem = verdict["problem"]
    life = sum(t["time_ns"] for t in threads if t["tid"] == problem["tid"])
    if life < problem["duration_ns"]:
        text = f"{name_of(problem)} lived {life} ns of a problem of {problem['duration_ns']} ns"
        yield "life", text


def self_contradictions(verdict):
    """Those of a verdict against itself."""
    problem, root = verdict["problem"], verdict["root"]
    length = problem["duration_ns"]
    gain = (length - verdict["without_root_ns"]) / length if length else 0.0
    if root["share"] > MUCH_BLAME and gain < LEAST_GAIN:
        yield "what-if", f"the root has {root['share']:.0%}, without it {gain:.0%} less"
    last = verdict["path"][-1]["edge"] if verdict["path"] else None
    if root["confidence"] >= SURE and last and last["kind"] == "unknown":
        yield "confidence", f"{root['confidence']:.1%} sure, and the last edge is unknown"


def cycle_contradictions(trace, verdict):
    """The members of a wait cycle must be blocked at one instant."""
    import others  # pylint: disable=import-outside-toplevel

    meta = json.loads((trace / "meta.json").read_text(encoding="utf-8"))
    switches = others.read_table(trace, "switches", ("ts", "cpu", "prev", "next", "left"))
    wakes = others.read_table(trace, "wakes", ("ts", "waker", "wakee", "context"))
    rows = others.read_table(trace, "lifecycle", ("ts", "thread", "tid"))
    of_tid = {tid: thread for _, thread, tid in rows}
    intervals = others.intervals_of(switches, wakes, meta["duration_ns"])
    begin = verdict["problem"]["start_ns"]
    common = [(begin, begin + verdict["problem"]["duration_ns"])]
    for member in verdict["knot"]:
        blocked = [
            (interval.start, interval.end)
            for interval in intervals.get(of_tid.get(member["tid"]), [])
            if interval.state == others.BLOCKED
        ]
        common = [
            (max(a, c), min(b, d))
            for a, b in common
            for c, d in blocked
            if min(b, d) > max(a, c)
        ]
    if not common:
        members = ", ".join(name_of(member) for member in verdict["knot"])
        yield "cycle", f"{members} are never blocked at one time"


def of_trace(hangdog, trace, most=3):
    """The contradictions in the worst problems of a trace, and how many problems were looked at."""
    listed = answer(hangdog, "problems", "--json", trace)
    numbers = [row["number"] for row in listed["problems"]][:most] if listed else []
    found = []
    for number in numbers:
        verdict = answer(hangdog, "why", "--json", "--problem", number, trace)
        if verdict is None:
            continue
        problem = verdict["problem"]
        begin, end = problem["start_ns"], problem["start_ns"] + problem["duration_ns"]
        window = ("--from", f"{begin}ns", "--to", f"{end}ns")
        rows = answer(hangdog, "threads", "--json", *window, trace)
        threads = rows["threads"] if rows else []
        here = [
            *blame_contradictions(verdict, threads),
            *lifetime_contradictions(verdict, threads),
            *self_contradictions(verdict),
            *(cycle_contradictions(trace, verdict) if verdict["knot"] else ()),
        ]
        found += [{"problem": number, "check": check, "text": text} for check, text in here]
    return {"problems": len(numbers), "found": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("traces", nargs="+", type=pathlib.Path, metavar="TRACE")
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    parser.add_argument(
        "--most", type=int, metavar="N", help="look at the N worst problems of each (default: all)"
    )
    args = parser.parse_args()
    hangdog = shutil.which(args.hangdog)
    if hangdog is None:
        sys.exit(f"consistency: cannot find '{args.hangdog}': build it, or say where by --hangdog")
    problems = contradictions = 0
    for trace in args.traces:
        try:
            result = of_trace(hangdog, trace, args.most)
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"consistency: {trace}: {type(error).__name__}: {error}")
        problems += result["problems"]
        contradictions += len(result["found"])
        for one in result["found"]:
            print(f"{trace} problem {one['problem']}: {one['check']}: {one['text']}")
    print(f"consistency: {len(args.traces)} traces, {problems} problems, {contradictions} found")
    return 1 if contradictions else 0


if __name__ == "__main__":
    sys.exit(main())
