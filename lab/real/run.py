#!/usr/bin/env python3
"""Judges `hangdog why` by real programs.

Four parts: `freezes` (real programs are made to freeze, in three settings), `ordinary` (recordings
in which nothing froze), `hung` (programs that stay hung) and `commands` (whose time is known). Each
result is a line of results.jsonl in the folder of results, so that a run can be resumed; the table
is made of these alone. Knows the command `hangdog`, its documented JSON and tables, nothing else of
it.
"""

import argparse
import pathlib
import shutil
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# What the lab knows of the machine and of traces.
sys.path.append(str(HERE.parent))

import again  # noqa: E402
import alone  # noqa: E402
import calibration  # noqa: E402
import commands  # noqa: E402
import commands_cases  # noqa: E402
import corpus  # noqa: E402
import freezes  # noqa: E402, F401  (registers the cases)
import hung  # noqa: E402
import ordinary  # noqa: E402
import table  # noqa: E402
from case import CASES, GROUPS  # noqa: E402
from results import Results  # noqa: E402

PARTS = ("freezes", "ordinary", "hung", "commands")


def chosen(args, names):
    """Those that the arguments leave."""
    return [name for name in names if not args.name or name in args.name]


def chosen_cases(args):
    """The freezes that the arguments leave."""
    return [
        CASES[name]
        for name in chosen(args, sorted(CASES))
        if (not args.group or CASES[name].group in args.group)
        and (args.name or args.set == "all" or CASES[name].held_back == (args.set == "held-back"))
    ]


def say(text):
    print(text, flush=True)


def say_row(row):
    """One result, with what is wrong with it."""
    what = " ".join(word for word in (row["name"], row.get("setting", "")) if word)
    if row["state"] != "told":
        say(f"{row['state']}: {what}: {row['reason']}")
        return
    result, sentence, faults = table.summary(row)
    say(f"{result:<6} {what} ({row['seconds']:.0f} s): {sentence}")
    for fault in faults:
        say(f"         {fault}")


def run_freezes(args, results, traces):
    """Every chosen freeze in every chosen setting. The life beside a flight recorder goes on from
    one case to the next, so that these are ordered by it."""
    cases = chosen_cases(args)
    numbers = {name: number for number, name in enumerate(sorted(CASES))}
    with corpus.Beside() as beside:
        for setting in args.setting or corpus.SETTINGS:
            if setting == "flight":
                cases.sort(key=lambda case: (corpus.life.of_case(numbers[case.name]), case.name))
            for case in cases:
                if ("freeze", case.name, setting) in results.done:
                    continue
                trace = traces / f"{case.name}-{setting}.hang"
                began = time.monotonic()
                row = corpus.assess(args, case, setting, trace, beside)
                row["seconds"] = time.monotonic() - began
                keep = args.keep or (
                    row["state"] == "told" and row["answers"]["first"]["result"] != "right"
                )
                if trace.exists() and not keep:
                    shutil.rmtree(trace)
                results.add(row)
                say_row(row)
            beside.close()


def run_again(args, results):
    """Every chosen freeze of an earlier run whose trace is there still; tells of each whose first
    answer changed."""
    cases = {case.name for case in chosen_cases(args)}
    settings = args.setting or corpus.SETTINGS
    rows = [
        row
        for row in Results(args.again, True).rows
        if row["name"] in cases and row.get("setting") in settings
    ]
    before = {Results.key(row): row for row in rows}
    for row in again.run(args.hangdog, rows, args.again / "traces"):
        results.add(row)
        results_of = [table.summary(one)[0] for one in (before[Results.key(row)], row)]
        if row["state"] != "told" or results_of[0] != results_of[1]:
            say(f"was {results_of[0]}:")
            say_row(row)


def run_part(results, kind, names, run):
    """The rest of a part whose rows come one by one: `run(names)` makes them."""
    rest = [name for name in names if (kind, name, None) not in results.done]
    for row in run(rest) if rest else ():
        results.add(row)
        say_row(row)


def run_all(args, results, traces):
    """Every part, or those that are asked for."""
    parts = {
        "freezes": lambda: run_freezes(args, results, traces),
        "ordinary": lambda: run_part(
            results,
            "ordinary",
            chosen(args, ordinary.LIVES),
            lambda names: ordinary.run(args.hangdog, traces, names, args.anyway),
        ),
        "hung": lambda: run_part(
            results,
            "hung",
            chosen(args, hung.PROGRAMS),
            lambda names: hung.run(args.hangdog, args.results, names, args.anyway),
        ),
        "commands": lambda: run_part(
            results,
            "command",
            chosen(args, commands_cases.COMMANDS),
            lambda names: commands.run(args.hangdog, traces, names, args.anyway),
        ),
    }
    # Groups, settings and sets are of freezes alone.
    only_freezes = args.group or args.setting or args.set != "working"
    for part, run in parts.items():
        if part in (args.part or (["freezes"] if only_freezes else PARTS)):
            run()


def exit_code(args, rows):
    """1 where nothing was judged, something could not be judged that the machine has what it takes
    for, or fewer answers are right than were asked for."""
    told = [row for row in rows if row["state"] == "told"]
    failed = [row for row in rows if row["state"] == "failed"]
    right = sum(
        row["kind"] == "freeze" and row["answers"]["first"]["result"] == "right" for row in told
    )
    missing = len(rows) - len(told) - len(failed)
    say(
        f"lab-real: {len(told)} judged, {len(failed)} failed, {missing} cannot run here; "
        f"{right} freezes right at once"
    )
    return 0 if told and not failed and right >= args.least_right else 1


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    parser.add_argument(
        "--results", type=pathlib.Path, default=HERE.parent / "build" / "real", metavar="DIR",
        help="where results and the traces of wrong verdicts go (default: lab/build/real)",
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part")
    parser.add_argument("--group", choices=GROUPS, action="append", help="only freezes of this")
    parser.add_argument("--setting", choices=corpus.SETTINGS, action="append", help="only in this")
    parser.add_argument("--name", action="append", help="only the one of this name")
    parser.add_argument(
        "--set", choices=("working", "held-back", "all"), default="working",
        help="freezes to work with (default), those held back for the last measurement, or all",
    )
    parser.add_argument("--anyway", action="store_true", help="do not wait for a quiet machine")
    parser.add_argument("--resume", action="store_true", help="go on where the last run ended")
    parser.add_argument("--keep", action="store_true", help="keep the traces of right verdicts too")
    parser.add_argument(
        "--again", type=pathlib.Path, metavar="DIR",
        help="record nothing: judge the traces that an earlier run with --keep left in its folder of "
        "results, and print which answers changed",
    )
    parser.add_argument("--list", action="store_true", help="print the freezes and what they are")
    parser.add_argument("--table", action="store_true", help="print the table of the last run")
    parser.add_argument(
        "--alone", type=int, metavar="N",
        help="record nothing: play each freeze N times, and count how often its witness saw it",
    )
    parser.add_argument(
        "--least-right", type=int, default=0, metavar="N",
        help="exit with 1 if fewer of the first answers to freezes are right",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time, alone")
    return parser.parse_args()


def main():
    args = parse_arguments()
    # So that nothing stays on the stage when this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("lab-real: ended by a signal"))
    for name in args.name or ():
        if name not in {*CASES, *ordinary.LIVES, *hung.PROGRAMS, *commands_cases.COMMANDS}:
            sys.exit(f"lab-real: there is no case {name}; --list prints them")
    if args.list:
        for case in chosen_cases(args):
            say(f"{case.group:<10} {case.name:<28} {case.summary}")
        for part, names in (
            ("ordinary", ordinary.LIVES),
            ("hung", hung.PROGRAMS),
            ("commands", commands_cases.COMMANDS),
        ):
            for name in names:
                say(f"{part:<10} {name}")
        return 0
    if args.alone:
        return 0 if alone.run(chosen_cases(args), args.alone, args.jobs) else 1
    args.results = args.results.resolve()
    if args.again and args.again.resolve() == args.results:
        sys.exit("lab-real: --again would overwrite the results that it reads: give other --results")
    results = Results(args.results, args.resume or args.table)
    if not args.table:
        hangdog = shutil.which(args.hangdog)
        if hangdog is None:
            sys.exit(f"lab-real: cannot find '{args.hangdog}': build it, or say where by --hangdog")
        args.hangdog = str(pathlib.Path(hangdog).resolve())
        traces = args.results / "traces"
        traces.mkdir(parents=True, exist_ok=True)
        run_again(args, results) if args.again else run_all(args, results, traces)
    calibration.write(args.results / "verdicts.jsonl", calibration.verdicts(results.rows))
    say(table.of(results.rows))
    return exit_code(args, results.rows)


if __name__ == "__main__":
    sys.exit(main())
