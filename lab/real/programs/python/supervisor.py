"""Starts a program again when it has ended, and says when: `supervisor.py WORDS...`. For each line
of its stdin it hands the line to the program, waits for its end, starts it again, and tells when it
began to wait and when it was running again."""

import subprocess
import sys
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def start():
    return subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)


def wait_for_end(program):
    program.wait()


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("supervisor")
    program = start()
    print("ready", flush=True)
    for line in sys.stdin:
        begin = now_ns()
        program.stdin.write(line.encode())
        program.stdin.close()
        wait_for_end(program)
        program = start()
        print(begin, now_ns(), flush=True)


main()
