#!/usr/bin/env python3
"""That watching leaves nothing behind and reaches nobody whom it should not: needs root."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"
NOBODY = 65534
START_S = 60


class Target:
    """A program that polls plain_flag for good."""

    def __init__(self, case, program="flag_cases"):
        command = [str(BUILD / program), case, "100000"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pid = json.loads(self.process.stdout.readline())["pid"]

    def lives(self):
        return self.process.poll() is None

    def code(self):
        """The bytes of its program's code in memory."""
        with open(f"/proc/{self.pid}/maps") as maps:
            line = next(line for line in maps if "r-xp" in line and "flag_cases" in line)
        begin, end = (int(number, 16) for number in line.split()[0].split("-"))
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            memory.seek(begin)
            return memory.read(end - begin)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Watching:
    """hangdog flag, once it has set its breakpoints."""

    def __init__(self, hangdog, pid, *options):
        words = [hangdog, "flag", "--process", str(pid), "--json", *options]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.pid = pid
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None and not self.is_set():
            time.sleep(0.2)

    def is_set(self):
        """Whether it has a breakpoint for each thread by now, and some time to attach the last."""
        try:
            links = [os.readlink(fd.path) for fd in os.scandir(f"/proc/{self.process.pid}/fd")]
        except OSError:
            return False
        threads = len(os.listdir(f"/proc/{self.pid}/task"))
        return links.count("anon_inode:bpf_link") >= threads * 2

    def stop(self):
        """Its answer."""
        self.process.send_signal(signal.SIGINT)
        out, error = self.process.communicate(timeout=START_S)
        return json.loads(out) if out.strip() else error


def can_have_all(hangdog, pid):
    """Whether all four breakpoints of the process's threads are free."""
    two = ["--symbol", "plain_flag", "--symbol", "loaded", "--for", "1s"]
    words = [hangdog, "flag", "--process", str(pid), *two]
    done = subprocess.run(words, capture_output=True, text=True, timeout=START_S, check=False)
    return done.returncode == 0, done.stderr.strip()


def killed_recorder(hangdog):
    target = Target("usleep")
    try:
        watching = Watching(hangdog, target.pid, "--symbol", "plain_flag")
        is_free, why = can_have_all(hangdog, target.pid)
        if is_free or "four hardware breakpoints" not in why:
            return f"while it watches, all breakpoints can be had: {why}"
        watching.process.kill()
        watching.process.communicate()
        is_free, why = can_have_all(hangdog, target.pid)
        if not is_free:
            return f"a breakpoint was left behind: {why}"
        return None if target.lives() else "the process that was watched has ended"
    finally:
        target.end()


def killed_process(hangdog):
    target = Target("usleep")
    watching = Watching(hangdog, target.pid, "--symbol", "plain_flag")
    target.end()
    try:
        watching.process.communicate(timeout=START_S)
    except subprocess.TimeoutExpired:
        watching.process.kill()
        return "it watches on though the process is gone"
    code = watching.process.returncode
    return None if code == 0 else f"exit code {code}"


def another_program(hangdog):
    """The program that is executed polls at the same address, and is not seen to."""
    target = Target("exec", "flag_fixed")
    try:
        begin = time.monotonic()
        watching = Watching(hangdog, target.pid, "--symbol", "plain_flag")
        set_after = time.monotonic() - begin
        time.sleep(1)
        executed_after = time.monotonic() - begin
        os.kill(target.pid, signal.SIGUSR2)
        time.sleep(set_after + 3)
        if not target.lives():
            return "the program that was executed has ended"
        reads = [use for use in watching.stop()["uses"] if use["access"] == "read"]
        if not reads:
            return "the first program was not seen to read"
        last = max(use["last_ns"] for use in reads) / 1e9
        # Watching began after `begin`.
        return f"it was seen to read {last} s after" if last > executed_after + 0.5 else None
    finally:
        target.end()


def child_process(hangdog):
    target = Target("fork")
    try:
        watching = Watching(hangdog, target.pid, "--symbol", "plain_flag")
        time.sleep(2)
        answer = watching.stop()
        pids = {use["pid"] for use in answer["uses"]}
        writes = [use for use in answer["uses"] if use["access"] == "write"]
        if not answer["uses"]:
            return "the process itself was not seen to read"
        return f"writes of the child were seen: {writes}" if writes or len(pids) > 1 else None
    finally:
        target.end()


def nothing_written(hangdog):
    target = Target("usleep")
    try:
        before = target.code()
        watching = Watching(hangdog, target.pid, "--symbol", "plain_flag")
        during = target.code()
        watching.stop()
        words = [hangdog, "find-flag", "--pid", str(target.pid), "--for", "1s"]
        subprocess.run(words, capture_output=True, timeout=START_S, check=False)
        same = before == during == target.code()
        return None if same and target.lives() else "its code has changed, or it has ended"
    finally:
        target.end()


def slow_naps(hangdog):
    """Stepping ends in the middle of a nap, several times; the process must not notice."""
    target = Target("slow")
    try:
        for _ in range(4):
            words = [hangdog, "find-flag", "--pid", str(target.pid), "--tid", str(target.pid)]
            subprocess.run(
                [*words, "--for", "1s"], capture_output=True, timeout=START_S, check=False
            )
            time.sleep(1)
            if not target.lives():
                return f"it has ended: {target.process.returncode}"
        return None
    finally:
        target.end()


def killed_finder(hangdog):
    target = Target("usleep")
    try:
        words = [hangdog, "find-flag", "--pid", str(target.pid), "--tid", str(target.pid)]
        finder = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while not traced(target.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        was_traced = traced(target.pid)
        finder.kill()
        finder.wait()
        while traced(target.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        if not was_traced:
            return "the thread was never seen to be stepped"
        time.sleep(0.5)
        return None if target.lives() else "the process has ended with the one that stepped it"
    finally:
        target.end()


def traced(pid):
    with open(f"/proc/{pid}/status") as status:
        return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status)


def other_user(hangdog):
    target = Target("usleep")
    try:
        for command in (["flag", "--process"], ["find-flag", "--pid"]):
            words = [hangdog, *command, str(target.pid), "--for", "1s"]
            if command[0] == "flag":
                words += ["--symbol", "plain_flag"]
            done = subprocess.run(
                words, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True,
                text=True, timeout=START_S, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return f"{command[0]}: nobody may watch root's process: {done.stdout}"
        return None if target.lives() else "the process has ended"
    finally:
        target.end()


CHECKS = (
    killed_recorder, killed_process, another_program, child_process, nothing_written,
    slow_naps, killed_finder, other_user,
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/debug/hangdog")
    args = parser.parse_args()
    failed = 0
    for check in CHECKS:
        try:
            fault = check(args.hangdog)
        except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
            fault = f"{type(error).__name__}: {error}"
        failed += fault is not None
        print(f"{check.__name__:<17} {'right' if fault is None else 'WRONG: ' + fault}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
