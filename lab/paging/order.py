#!/usr/bin/env python3
"""The Lisa memo's procedure on a program whose hot functions lie scattered (scattered.cc): record its
cold start, have hangdog list the functions that it executed, link it anew in that order, and count its
page-ins again.

The program runs from a disk of its own that reads 16 KB at once, five times each way in turns, each time
with nothing of its file in memory. Page-ins are what the kernel counts (getrusage). The goal is at least
30 % fewer.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from run import BUILD, HERE, CannotRun, call, device

RUNS = 5
GOAL = 0.3


def build(target, *options):
    call(
        [
            "g++", "-std=gnu++17", "-O2", "-g", "-ffunction-sections", "-fuse-ld=gold", *options,
            "-o", target, HERE / "scattered.cc",
        ]
    )  # fmt: skip


def cold(path):
    """Takes the file out of memory."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def page_ins(path):
    cold(path)
    return json.loads(call([path]))["major"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/debug/hangdog")
    args = parser.parse_args()
    hangdog = str(pathlib.Path(args.hangdog).resolve())
    if not shutil.which("ld.gold"):
        print("order of functions       NOT RUN: there is no gold (apt install binutils)")
        return 0
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = pathlib.Path(name)
        try:
            with device(folder, 64, ahead_kb=16) as mount:
                before, after = mount / "before", mount / "after"
                build(before)
                cold(before)
                trace = folder / "start.hang"
                call([hangdog, "record", "--faults", "-o", trace, "--", before])
                listed = call([hangdog, "paging", trace, "--order", "before", "--gold"])
                order = folder / "order"
                order.write_text(listed)
                build(after, f"-Wl,--section-ordering-file={order}")
                counts = {before: [], after: []}
                for _ in range(RUNS):
                    for path, found in counts.items():
                        found.append(page_ins(path))
                said = json.loads(call([after]))
        except CannotRun as why:
            print(f"order of functions       NOT RUN: {why}")
            return 0
    hot = sum(line.startswith(".text._ZN4PartILi") for line in listed.splitlines())
    old, new = (statistics.median(found) for found in counts.values())
    fewer = 1 - new / old
    print(f"order of functions: {hot} of {said['hot']} hot functions listed")
    print(f"page-ins of a cold start: {old:.0f} before, {new:.0f} after, {fewer:.0%} fewer")
    print(f"  before {counts[before]}, after {counts[after]}")
    return 0 if fewer >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
