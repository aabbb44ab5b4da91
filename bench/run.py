#!/usr/bin/env python3
"""Measures what recording costs: each benchmark under each recorder, in turn, round after round.

Within a round every recorder meets the machine at the same frequency, so ratios are taken within rounds
and their median is told, with the least and the greatest. CPU time is the benchmark's own, user and
system; hooks that run while a CPU is idle or in an interrupt are in no process's time, which is
why the time of an operation stands beside it. What the recorder's own process takes is distinguished.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import sys

import answer
import desktop
import graph
import numbers_compare
import recorders
import servers
import steady
import suites
import workloads

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUICK = {"rounds": 2, "scale": 0.25, "events": 1_000_000, "seconds": 10}


def machine():
    """What the figures belong to."""
    model = platform.processor()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": model,
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "command": " ".join(["bench/run.py", *sys.argv[1:]]),
    }


def measure(works, forms, rounds, directory):
    """Rows of (round, workload, recorder, what was measured), and what failed; progress goes to
    stderr. One run that fails does not undo the others."""
    rows, failures = [], []
    for number in range(rounds):
        for work in works:
            # Each round begins with another recorder, so that none always comes after the same.
            turn = number % len(forms)
            for form in forms[turn:] + forms[:turn]:
                print(f"round {number + 1}: {work.name}: {form.name}", file=sys.stderr)
                try:
                    with recorders.empty(directory / "run") as place:
                        measured = form.run(work.command, place)
                except recorders.Failure as failure:
                    failures.append(f"round {number + 1}: {work.name}: {failure}")
                    continue
                measured["time_s"] = work.time_of(measured)
                del measured["out"]
                rows.append(
                    {"round": number, "workload": work.name, "recorder": form.name} | measured
                )
    return rows, failures


def spread(values):
    """Median, least and greatest."""
    values = list(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarise(rows):
    """One row for each workload and recorder."""
    groups = {}
    for row in rows:
        groups.setdefault((row["workload"], row["recorder"]), {})[row["round"]] = row
    summary = []
    for (workload, recorder), group in groups.items():
        bare = groups.get((workload, recorders.Recorder.name), {})
        row = {
            "workload": workload,
            "recorder": recorder,
            "cpu_s": spread(one["cpu_s"] for one in group.values()),
            "time_s": spread(one["time_s"] for one in group.values()),
        }
        both = [] if group is bare else [n for n in group if n in bare]
        if both:
            for key in ("cpu_s", "time_s"):
                row[f"{key}_ratio"] = spread(group[n][key] / bare[n][key] for n in both)
        several = list(group.values())
        if "events" in several[0]:
            row["recorder_cpu_s"] = spread(one["recorder_cpu_s"] for one in several)
            row["events"] = round(statistics.median(one["events"] for one in several))
            row["bytes_per_event"] = spread(one["bytes"] / one["events"] for one in several)
            row["lost"] = sum(one["lost"] for one in several)
        if "switches" in several[0]:
            row["switches_per_s"] = spread(
                one["switches"] / min(one["duration_s"], one["wall_s"]) for one in several
            )
        summary.append(row)
    return summary


def ratio(row, key):
    found = row.get(key)
    return f"{found['median']:.2f} ({found['min']:.2f}-{found['max']:.2f})" if found else ""


HEADER = (
    "benchmark",
    "recorder",
    "CPU ratio",
    "time ratio",
    "own CPU s",
    "events",
    "bytes/event",
    "lost",
    "switches/s",
)
FORMAT = "{:<21} {:<26} {:<17} {:<17} {:>9} {:>10} {:>11} {:>8} {:>11}"


def print_summary(summary):
    print(FORMAT.format(*HEADER))
    for row in summary:
        cells = (
            row["workload"],
            row["recorder"],
            ratio(row, "cpu_s_ratio") or f"= {row['cpu_s']['median']:.2f} s",
            ratio(row, "time_s_ratio") or f"= {row['time_s']['median']:.4g} s",
            f"{row['recorder_cpu_s']['median']:.2f}" if "events" in row else "",
            f"{row['events']:,}" if "events" in row else "",
            f"{row['bytes_per_event']['median']:.2f}" if "events" in row else "",
            f"{row['lost']:,}" if "events" in row else "",
            f"{row['switches_per_s']['median']:,.0f}" if "switches_per_s" in row else "",
        )
        print(FORMAT.format(*cells).rstrip())


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default=str(ROOT / "target/release/hangdog"))
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--quick", action="store_true", help="two short rounds, a short trace")
    parser.add_argument("--peers", action="store_true", help="perf record beside hangdog")
    parser.add_argument(
        "--only",
        choices=("cost", "servers", "steady", "suites", "why", "graph", "save", "numbers"),
        help="only what recording costs (`servers`: those under load; `steady`: long runs of"
        " PostgreSQL; `suites`: disks and a browser), the answer, the graph, the"
        " saving of a desktop's trace, or `hangdog numbers` beside other tools",
    )
    parser.add_argument("--workload", default="", metavar="TEXT", help="only those named so")
    parser.add_argument("--recorder", default="", metavar="TEXT", help="only none and those")
    parser.add_argument("--json", default=str(ROOT / "target/bench.json"), metavar="FILE")
    return parser.parse_args()


def main():
    args = parse_arguments()
    scale, events, seconds = 1.0, 10_000_000, desktop.SECONDS
    if args.quick:
        args.rounds, scale, events = QUICK["rounds"], QUICK["scale"], QUICK["events"]
        seconds = QUICK["seconds"]
    hangdog = shutil.which(args.hangdog)
    if hangdog is None:
        sys.exit(f"bench: cannot find '{args.hangdog}': cargo build --release, or --hangdog PATH")
    directory = ROOT / "target/bench"
    result = {"machine": machine(), "failures": []}
    try:
        with recorders.empty(directory):
            if args.only in (None, "cost"):
                works = workloads.workloads(directory, scale, (os.cpu_count() or 1) - 1)
                works = [work for work in works if args.workload in work.name]
                bare, *others = recorders.recorders(hangdog, args.peers)
                forms = [bare] + [form for form in others if args.recorder in form.name]
                result["runs"], result["failures"] = measure(
                    works, forms, args.rounds, directory
                )
                result["summary"] = summarise(result["runs"])
                print_summary(result["summary"])
            if args.only in (None, "servers"):
                # A server that runs as another user must come in.
                directory.chmod(0o755)
                result["servers"] = servers.measure(
                    hangdog, directory, args.rounds, args.peers, args.workload
                )
                servers.show(result["servers"])
                result["failures"] += result["servers"]["failures"]
            if args.only in (None, "steady"):
                directory.chmod(0o755)
                result["steady"] = steady.measure(hangdog, directory, args.rounds, args.recorder)
                for run in result["steady"]:
                    steady.show(run)
                    result["failures"] += run["failures"]
            if args.only in (None, "suites"):
                result["suites"] = suites.measure(hangdog, directory, args.rounds, args.workload)
                suites.show(result["suites"])
                result["failures"] += result["suites"]["failures"]
            if args.only in (None, "why"):
                result["why"] = answer.measure(hangdog, directory, events)
                answer.show(result["why"])
            if args.only in (None, "graph"):
                largest = events if args.quick else graph.SIZES[-1]
                result["graph"] = graph.measure(hangdog, directory, largest)
                graph.show(result["graph"])
            if args.only in (None, "save"):
                result["save"] = desktop.measure(hangdog, directory, seconds)
                desktop.show(result["save"])
            if args.only in (None, "numbers"):
                result["numbers"] = numbers_compare.measure(
                    hangdog, directory, args.rounds, args.quick
                )
                numbers_compare.show(result["numbers"])
                result["failures"] += numbers_compare.failures(result["numbers"])
    except recorders.Failure as failure:
        result["failures"].append(str(failure))
    pathlib.Path(args.json).write_text(json.dumps(result, indent=1))
    print(f"\nall figures: {args.json}")
    for failure in result["failures"]:
        print(f"failed: {failure}")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
