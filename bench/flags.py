#!/usr/bin/env python3
"""What it costs a thread that a flag of its is watched, by how often it uses it: CPU time of a piece
of work with `hangdog flag`, divided by that without, interleaved. Needs root."""

import argparse
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RATES = (1, 1000, 100_000)


def piece(program, lines):
    """Median CPU time of a piece over the next `lines` lines."""
    return statistics.median(float(program.stdout.readline().split()[1]) for _ in range(lines))


def measure(hangdog, binary, rate, kind, turns, seconds):
    # Of one use a second a piece takes a second: fewer, longer turns.
    length = max(seconds, 3 / rate)
    program = subprocess.Popen(
        [binary, str(rate), kind, str(length)], stdout=subprocess.PIPE, text=True
    )
    ratios = []
    try:
        program.stdout.readline()
        for _ in range(turns):
            without = piece(program, 2)
            watch = subprocess.Popen(
                [hangdog, "flag", "--process", str(program.pid), "--symbol", "watched_flag"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # Until the breakpoints are there, and one line more, which they may have begun in.
            time.sleep(2)
            while program.stdout.readline() == "":
                pass
            for _ in range(int(2 / length)):
                program.stdout.readline()
            ratios.append(piece(program, 2) / without)
            watch.send_signal(signal.SIGINT)
            watch.wait()
            for _ in range(1 + int(1 / length)):
                program.stdout.readline()
    finally:
        program.kill()
        program.wait()
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/release/hangdog")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        binary = str(pathlib.Path(folder) / "flag_cost")
        subprocess.run(["cc", "-O2", "-g", "-o", binary, str(HERE / "flag_cost.c")], check=True)
        print(f"{'uses a second':>13}  {'kind':<6} ratio (all turns)")
        for kind in ("read", "write"):
            for rate in RATES:
                ratios = measure(args.hangdog, binary, rate, kind, args.turns, args.seconds)
                turns = " ".join(f"{ratio:.3f}" for ratio in ratios)
                print(f"{rate:>13,}  {kind:<6} {statistics.median(ratios):.3f} ({turns})", flush=True)


if __name__ == "__main__":
    main()
