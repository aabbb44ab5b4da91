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


# So long after hangdog was started its breakpoints are there.
SET_S = 4


def phases(hangdog, program, turns, seconds):
    """Runs hangdog now and then; the times with it, and without."""
    quiet, watched = [], []
    for _ in range(turns):
        begin = time.monotonic()
        time.sleep(seconds)
        quiet.append((begin, time.monotonic()))
        watch = subprocess.Popen(
            [hangdog, "flag", "--process", str(program.pid), "--symbol", "watched_flag"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(SET_S)
        begin = time.monotonic()
        time.sleep(seconds)
        watched.append((begin, time.monotonic()))
        watch.send_signal(signal.SIGINT)
        watch.wait()
    return quiet, watched


def measure(hangdog, binary, rate, kind, turns, seconds):
    """The ratio of each turn. A piece of a second needs longer turns."""
    seconds = max(seconds, 20 / rate)
    with tempfile.TemporaryFile("w+") as out:
        program = subprocess.Popen([binary, str(rate), kind, "0.2"], stdout=out)
        time.sleep(1)
        try:
            quiet, watched = phases(hangdog, program, turns, seconds)
        finally:
            program.kill()
            program.wait()
        out.seek(0)
        lines = [tuple(map(float, line.split())) for line in out if line.count(" ") == 2]

    def piece(phase):
        begin, end = phase
        within = [cpu for start, stop, cpu in lines if begin <= start and stop <= end]
        return statistics.mean(within)

    return [piece(on) / piece(off) for off, on in zip(quiet, watched)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/release/hangdog")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
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
