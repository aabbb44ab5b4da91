"""Where the time of a command went, by other tools than hangdog: what the kernel accounts
(wait4, /proc/PID/schedstat) and strace, which stops nothing but the begin and end of processes."""

import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import time

from stage import PATIENCE_S, Fault, now_ns

POLL_S = 0.005
LINE = re.compile(r"(?P<pid>\d+)\s+(?P<ts>\d+\.\d+) (?P<text>.*)")
EXECUTED = re.compile(r'execve\("(?P<path>[^"]+)", .* = 0$|<\.\.\. execve resumed>.* = 0$')
CREATED = re.compile(r"(clone3?|v?fork)\b.*\)\s+= (?P<child>\d+)")


@dataclasses.dataclass(frozen=True)
class Used:
    """What a run took, s. `cpu_s` is of all its processes together."""

    wall_s: float
    cpu_s: float

    @property
    def cpu_share(self):
        return self.cpu_s / self.wall_s


def run(command):
    """Runs a command to its end; gives what it used, as time(1) would, and what it printed."""
    out = command.stage.directory / "out"
    with out.open("wb") as file:
        begin = now_ns()
        process = command.popen(command.words, stdout=file)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = (now_ns() - begin) / 1e9
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Fault(f"{command.words[0]}: exit code {process.returncode}")
    text = out.read_text(encoding="utf-8", errors="replace")
    return Used(wall_s, used.ru_utime + used.ru_stime), text


def cpu_by_process(command):
    """Runs a command; gives its wall time and the CPU time of each of its processes by name, s, as
    last read from /proc/PID/schedstat: right to some hundredths of a second. Processes that live
    shorter than that are missed."""
    begin = now_ns()
    process = command.popen(command.words)
    seen = {}
    while process.poll() is None:
        for pid in _family(process.pid):
            folder = pathlib.Path(f"/proc/{pid}")
            try:
                name = (folder / "comm").read_text(encoding="utf-8").strip()
                ran = int((folder / "schedstat").read_text(encoding="ascii").split()[0])
            except OSError:
                continue
            seen[pid] = (name, max(ran, seen.get(pid, ("", 0))[1]))
        if now_ns() - begin > PATIENCE_S * 1e9:
            process.kill()
            raise Fault(f"{command.words[0]}: not done after {PATIENCE_S} s")
        time.sleep(POLL_S)
    wall_s = (now_ns() - begin) / 1e9
    by_name = collections.Counter()
    for name, ran in seen.values():
        by_name[name] += ran / 1e9
    return wall_s, by_name


def _family(pid):
    """A process and all that descend from it."""
    found = [pid]
    for one in found:
        try:
            for thread in pathlib.Path(f"/proc/{one}/task").iterdir():
                words = (thread / "children").read_text(encoding="ascii").split()
                found += map(int, words)
        except OSError:
            continue
    return found


def by_last_born(command):
    """Runs a command whose processes work one at a time, each for the one that started it. Gives
    its wall time and that of each process by name, s: a moment belongs to the process that was
    born last of those that live."""
    log = command.stage.directory / "strace"
    words = ["strace", "-f", "--seccomp-bpf", "-ttt", "-s", "200", "-e", "signal=none"]
    words += ["-e", "trace=execve,exit_group,clone,clone3,fork,vfork", "-e", "abbrev=all"]
    words += ["-e", "quiet=attach,personality", "-o", log]
    process = command.popen([*words, *command.words])
    if process.wait(PATIENCE_S) != 0:
        raise Fault(f"strace {command.words[0]}: exit code {process.returncode}")
    return leaf_times(log.read_text(encoding="utf-8", errors="replace").splitlines())


def leaf_times(lines):
    """The same from the lines of strace."""
    alive, names, unfinished = {}, {}, {}
    times = collections.Counter()
    first = last = None
    for line in lines:
        match = LINE.match(line)
        if not match:
            continue
        pid, now, text = int(match["pid"]), float(match["ts"]), match["text"]
        first = first or now
        if last and alive:
            times[names[list(alive)[-1]]] += now - last
        last = now
        if pid not in alive and "exited with" not in text:
            alive[pid] = now
            names.setdefault(pid, names[list(alive)[-2]] if len(alive) > 1 else "")
        if text.startswith("execve(") and "unfinished" in text:
            unfinished[pid] = re.search(r'"([^"]+)"', text)[1]
        elif executed := EXECUTED.match(text):
            path = executed["path"] or unfinished.pop(pid, "")
            # As the kernel cuts it.
            names[pid] = os.path.basename(path)[:15]
        elif (created := CREATED.search(text)) and "CLONE_THREAD" not in text:
            child = int(created["child"])
            if child not in names:
                alive[child] = now
                names[child] = names[pid]
        elif "+++ exited with" in text or "+++ killed by" in text:
            alive.pop(pid, None)
    return last - first, times


def share_of(times, pattern, wall_s):
    """The share of the processes whose name has a match."""
    return sum(s for name, s in times.items() if re.search(pattern, name)) / wall_s
