"""What the cases of language runtimes share: programs that are compiled once, clients that ask
their servers for a page, and what /proc says of which threads run and which wait."""

import contextlib
import dataclasses
import fcntl
import http.client
import os
import pathlib
import shutil
import subprocess
import time

from stage import CannotRun, Fault, Program, need, now_ns

REAL = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = REAL / "programs"
BUILD = REAL.parent / "build" / "real"
# Where toolchains are that no package has put on the PATH.
TOOLS = ("/usr/local/go/bin", str(pathlib.Path.home() / ".cargo" / "bin"))
BUILD_S = 600
LOOK_S = 0.5
# A thread that runs is on a CPU or waits for one for that share of the time; one that waits, less.
RUNS, WAITS = 0.7, 0.2
VISIT_S = 0.05
# So much CPU time tells a computation from what a handler does besides.
COMPUTES_NS = 50_000_000
# Work whose length is measured beforehand is made so much longer than it should take, for another
# time it may take less.
AMPLE = 1.6
# A recording that begins and ends in the freeze takes longer on a busy machine than it should.
LONG_S, SPARE = 5.0, 1.7


def tool(name):
    """Path of a compiler."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *TOOLS))
    found = shutil.which(name, path=path)
    if found is None:
        raise CannotRun(f"not installed: {name}; scripts/setup.sh lab-real")
    return found


def built(sources, target, words, cwd):
    """Compiles a program by a command if a source is newer than its result `target`, which is a
    path below BUILD; gives the full path of that. Cases that run at the same time compile once."""
    result = BUILD / target
    BUILD.mkdir(parents=True, exist_ok=True)
    newest = max(source.stat().st_mtime for source in sources)
    with open(BUILD / f"{result.parts[len(BUILD.parts)]}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if result.exists() and result.stat().st_mtime >= newest:
            return result
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
        if done.returncode != 0:
            raise CannotRun(f"{words[0]} failed in {cwd}: {done.stderr.strip()[-300:]}")
        os.utime(result)
    return result


class Client(Program):
    """curl, which asks a server of loopback for a page; `span` is when it began and ended."""

    def __init__(self, stage, port, path):
        need("curl")
        self.stage, self.began = stage, now_ns()
        url = f"http://127.0.0.1:{port}{path}"
        process = stage.start(["curl", "--silent", "--output", stage.directory / "page", url])
        super().__init__(process, process.pid)

    @property
    def span(self):
        """Waits until it has ended; gives when it began and ended."""
        end = self.ended()
        if self.process.wait() != 0:
            raise Fault(f"curl: exit code {self.process.returncode}")
        return must_last(self.stage, (self.began, end))


def visits(stage, port, path="/health"):
    """Ordinary life of a server: somebody asks it for a small page now and then."""
    end = time.monotonic() + stage.setting.before_s
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            connection.getresponse().read()
        time.sleep(VISIT_S)


def turns(stage, program, line):
    """Ordinary life of a program that obeys its stdin: it gets a line now and then, and says that
    it has done it."""
    end = time.monotonic() + stage.setting.before_s
    while time.monotonic() < end:
        program.tell(line)
        program.line()
        time.sleep(VISIT_S)


def length_s(stage):
    """How long a program is asked to freeze, where it cannot be stopped in the middle."""
    return stage.freeze_s * (SPARE if stage.freeze_s > LONG_S else 1.0)


def ample_s(stage):
    """The same where the length of the work is measured beforehand."""
    return max(stage.freeze_s * AMPLE, length_s(stage))


def must_last(stage, span):
    """Sees to it that a freeze has lasted as long as it should; gives its begin and end."""
    took = (span[1] - span[0]) / 1e9
    if took < 0.8 * stage.freeze_s:
        raise Fault(f"it lasted {took:.1f} s, not {stage.freeze_s:g} s")
    return span


def span_of(stage, program):
    """When a turn began and ended that the program tells by its own clock."""
    begin, end = program.line().split()
    return must_last(stage, (int(begin), int(end)))


def cpu_ns(tid):
    """CPU time that a thread has used."""
    return int(pathlib.Path(f"/proc/{tid}/schedstat").read_text(encoding="ascii").split()[0])


class Computing:
    """Called again and again: whether `threads` threads of a process have used so much CPU time,
    since the first call, that they compute."""

    def __init__(self, pid, threads=1):
        self.pid, self.threads, self.before = pid, threads, None

    def _used(self):
        used = {}
        for folder in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                used[folder.name] = cpu_ns(folder.name) - self.before.get(folder.name, 0)
        return used

    def __call__(self):
        if self.before is None:
            self.before = {}
            self.before = self._used()
            return False
        return sum(ns > COMPUTES_NS for ns in self._used().values()) >= self.threads


@dataclasses.dataclass(frozen=True)
class Activity:
    """What a thread did for a moment: the share of the time that it ran or was ready to."""

    tid: int
    name: str
    ready: float
    waits_in: str

    def __str__(self):
        state = f"{self.ready:.0%} ready to run"
        return f"{self.name} ({self.tid}) {state}, {self.waits_in}"


def _ready_ns(folder):
    run, waited, _ = (folder / "schedstat").read_text(encoding="ascii").split()
    return int(run) + int(waited)


def _threads_of(pids):
    """The folders of their threads in /proc; none of a process that has ended."""
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            found += pathlib.Path(f"/proc/{pid}/task").iterdir()
    return found


def activities(*pids, look_s=LOOK_S):
    """What all threads of processes are at, by /proc/PID/task/TID/schedstat. One that was born
    while they were looked at counts from then."""
    begin, seen = now_ns(), {}
    for folder in _threads_of(pids):
        with contextlib.suppress(OSError):
            seen[folder] = _ready_ns(folder)
    time.sleep(look_s)
    took, found = now_ns() - begin, []
    for folder in _threads_of(pids):
        with contextlib.suppress(OSError):
            name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
            waits_in = (folder / "wchan").read_text(encoding="ascii") or "0"
            ready = (_ready_ns(folder) - seen.get(folder, 0)) / took
            found.append(Activity(int(folder.name), name, ready, waits_in))
    return found


def runners(found):
    """The threads that run all the time, of which there must be one."""
    running = [one for one in found if one.ready >= RUNS]
    if not running:
        raise Fault(f"/proc: no thread runs: {'; '.join(map(str, found))}")
    return running


def must_wait(found, tid=None):
    """Sees to it that a thread waits, or all do; gives the one that is asked for, or the first."""
    asked = [one for one in found if tid in (None, one.tid)]
    if not asked:
        raise Fault(f"/proc: there is no thread {tid}")
    for one in asked:
        if one.ready > WAITS:
            raise Fault(f"/proc: {one}, where it should wait")
    return asked[0]
