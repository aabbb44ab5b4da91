#!/usr/bin/env python3
"""Runs programs that page for a planted reason under `hangdog record`, and compares what `hangdog
paging` and `hangdog why` say with what is true.

True is what the kernel counts for the program (getrusage), for its control group (memory.stat), and
what is known from how the case is built: how many pages, of which segment, whether they come from a
file or from swap, which are fetched a second time and which are never used. Counts must agree within
1 %. What the machine does not allow is printed as NOT RUN. Swap and control groups that are made here
are taken away again.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
CASES = BUILD / "paging_cases"
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")
SLOW_GROUPS = pathlib.Path("/sys/fs/cgroup/blkio")
# Slower than any disk, bytes a second: what is waited for is the disk, however busy the machine.
SLOW = 20_000_000
PAGE = 4096
TIMEOUT_S = 120
# Counts may differ by so much of the truth.
WITHIN = 0.01


class CannotRun(Exception):
    """What this machine lacks."""


def call(words, accept=(0,), **more):
    words = [str(word) for word in words]
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False, **more
    )
    if done.returncode not in accept:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise RuntimeError(f"{' '.join(words[:4])}: exit code {done.returncode}: {last}")
    return done.stdout


class Slow:
    """A control group that may read and write so many bytes a second of a device (cgroup v1)."""

    def __init__(self, mount, bytes_per_second):
        self.path = SLOW_GROUPS / f"hangdog-lab-{os.getpid()}"
        number = os.stat(mount).st_dev
        self.limit = f"{os.major(number)}:{os.minor(number)} {bytes_per_second}"

    def __enter__(self):
        if not (SLOW_GROUPS / "blkio.throttle.read_bps_device").exists():
            raise CannotRun("there is no blkio controller of cgroup v1 that limits devices")
        self.path.mkdir()
        for what in ("read", "write"):
            (self.path / f"blkio.throttle.{what}_bps_device").write_text(self.limit)
        return self

    def __exit__(self, *_):
        remove_group(self.path)

    def command(self, words):
        """What runs `words` in the group."""
        return in_group(self.path, words)


def remove_group(path):
    """Once the processes in it are gone."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            path.rmdir()
            return
        time.sleep(0.05)


def in_group(path, words):
    return ["sh", "-c", f'echo $$ > {path}/cgroup.procs && exec "$@"', "sh", *words]


class Group:
    """A control group with a limit of memory (cgroup v1), while the context lasts."""

    def __init__(self, limit):
        self.path = GROUPS / f"hangdog-lab-{os.getpid()}"
        self.limit = limit

    def __enter__(self):
        if not (GROUPS / "memory.limit_in_bytes").exists():
            raise CannotRun("there is no memory controller of cgroup v1")
        self.path.mkdir()
        (self.path / "memory.limit_in_bytes").write_text(str(self.limit))
        return self

    def __exit__(self, *_):
        remove_group(self.path)

    def command(self, words):
        """What runs `words` in the group."""
        return in_group(self.path, words)

    def figures(self):
        lines = (self.path / "memory.stat").read_text().splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines)}


@contextlib.contextmanager
def swap_file(folder, megabytes):
    """A swap file on a disk."""
    path = folder / "swap"
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
    path.chmod(0o600)
    call(["mkswap", path])
    try:
        call(["swapon", "--priority", "30000", path])
    except RuntimeError as why:
        raise CannotRun(str(why)) from why
    try:
        yield
    finally:
        call(["swapoff", path])
        path.unlink()


@contextlib.contextmanager
def zram(megabytes):
    """A compressed device in memory as swap."""
    control = pathlib.Path("/sys/class/zram-control/hot_add")
    if not control.exists():
        raise CannotRun("there is no zram")
    number = control.read_text().strip()
    device = pathlib.Path(f"/dev/zram{number}")
    try:
        pathlib.Path(f"/sys/block/zram{number}/disksize").write_text(f"{megabytes}M")
        if not device.exists():
            major, minor = pathlib.Path(f"/sys/block/zram{number}/dev").read_text().split(":")
            os.mknod(device, 0o600 | 0o060000, os.makedev(int(major), int(minor)))
        call(["mkswap", device])
        call(["swapon", "--priority", "30001", device])
        try:
            yield
        finally:
            call(["swapoff", device])
    finally:
        (control.parent / "hot_remove").write_text(number)


@contextlib.contextmanager
def served(folder, pages):
    """A folder with a file that another process serves."""
    if not os.access("/dev/fuse", os.W_OK):
        raise CannotRun("there is no /dev/fuse")
    mount = folder / "served"
    mount.mkdir()
    server = subprocess.Popen(
        ["nice", "--adjustment=-15", sys.executable, HERE / "served.py", mount, str(pages)]
    )
    try:
        until = time.monotonic() + 5
        while not os.path.ismount(mount):
            if time.monotonic() > until or server.poll() is not None:
                raise CannotRun("the file system could not be mounted")
            time.sleep(0.02)
        yield mount / "file"
    finally:
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
        server.kill()
        server.wait()


@contextlib.contextmanager
def device(folder, megabytes, ahead_kb=None, stable=False):
    """A file system on a disk of its own, which reads so much ahead of what is wanted, and where
    `stable` wants that nobody changes a page while it is written."""
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    mount = folder / "device"
    mount.mkdir()
    loop = None
    try:
        try:
            call(["mkfs.ext4", "-q", image])
            loop = call(["losetup", "--find", "--show", "--direct-io=on", image]).strip()
            queue = pathlib.Path(f"/sys/block/{pathlib.Path(loop).name}/queue")
            if ahead_kb:
                (queue / "read_ahead_kb").write_text(str(ahead_kb))
            if stable:
                (queue / "stable_writes").write_text("1")
            call(["mount", loop, mount])
        except (RuntimeError, OSError) as why:
            raise CannotRun(str(why)) from why
        yield mount
    finally:
        subprocess.run(["umount", mount], check=False, capture_output=True)
        if loop is not None:
            subprocess.run(["losetup", "--detach", loop], check=False, capture_output=True)


def random_file(path, pages):
    path.write_bytes(os.urandom(pages * PAGE))
    return path


class Run:
    """A program that was recorded, and what it says of itself."""

    def __init__(self, hangdog, folder, words, *options):
        self.hangdog, self.trace = hangdog, folder / "case.hang"
        shutil.rmtree(self.trace, ignore_errors=True)
        # Before others, so that they do not keep it from a CPU where it should wait for pages.
        words = ["nice", "--adjustment=-15", *words]
        out = call([hangdog, "record", *options, "-o", self.trace, "--", *words])
        self.said = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        meta = json.loads((self.trace / "meta.json").read_text())
        self.start = meta["clock"]["monotonic_start_ns"]
        self.lost = meta["lost"]

    def window(self, said):
        """From where to where a program says that it was at it."""
        return ["--from", f"{said['from'] - self.start}ns", "--to", f"{said['to'] - self.start}ns"]

    def paging(self, said):
        words = [self.hangdog, "paging", self.trace, "--json", "--process", said["pid"]]
        return json.loads(call([*words, *self.window(said)]))

    def verdict(self, said):
        words = [self.hangdog, "why", self.trace, "--json", "--yes", "--thread", said["pid"]]
        answer = call([*words, *self.window(said)], accept=(0, 1))
        root = json.loads(answer)["root"] if answer.strip() else None
        return root["class"] if root else "none"


def near(truth, found):
    return abs(found - truth) <= max(1, WITHIN * truth)


class Checks:
    """What is compared, one after the other."""

    def __init__(self):
        self.rows = []

    def equal(self, what, truth, found):
        self.rows.append((what, truth, found, truth == found))

    def near(self, what, truth, found):
        self.rows.append((what, truth, found, near(truth, found)))

    def least(self, what, truth, found):
        self.rows.append((what, f">= {truth}", found, found >= truth))

    def segment(self, answer, kind, name):
        first = answer["segments"][0] if answer["segments"] else {"kind": "none", "name": "none"}
        self.equal("segment", f"{kind} {name}", f"{first['kind']} {first['name']}")


def backwards(hangdog, folder, checks):
    pages = 4096
    file = random_file(folder / "file", pages)
    # Of a fast disk the page-ins would take no more of the time than the rest.
    with Slow(folder, SLOW // 2) as slow:
        run = Run(hangdog, folder, slow.command([CASES, "backwards", file]))
    said, answer = run.said[0], run.paging(run.said[0])
    checks.equal("by construction", pages, said["major"])
    checks.near("page-ins", said["major"], answer["sum"]["page_ins"])
    checks.near("bytes read", pages * PAGE, answer["sum"]["read_bytes"])
    checks.equal("again", 0, answer["sum"]["again"])
    checks.segment(answer, "mapped file", "file")
    checks.equal("class", "Paging", run.verdict(said))


def ahead(hangdog, folder, checks):
    pages, step = 16384, 128
    # The disk reads 32 pages around each that is wanted: none of them twice, and none is used.
    with device(folder, 80, ahead_kb=128) as mount:
        file = random_file(mount / "file", pages)
        with Slow(mount, SLOW) as slow:
            words = slow.command([CASES, "ahead", file, step])
            run = Run(hangdog, folder, words, "--faults")
    said, answer = run.said[0], run.paging(run.said[0])
    first = answer["segments"][0]
    checks.equal("by construction", pages // step, said["touched"])
    checks.near("page-ins", said["major"], answer["sum"]["page_ins"])
    checks.near("pages fetched", said["resident"], (first["fetched_bytes"] or 0) // PAGE)
    unused = said["resident"] - said["touched"]
    checks.near("pages never used", unused, (first["unused_bytes"] or 0) // PAGE)
    checks.segment(answer, "mapped file", "file")
    checks.equal("class", "Paging", run.verdict(said))


def init_ran_ns():
    """How long the threads of PID 1 have run. On a machine whose kernel keeps BPF programs from running
    in its init, nothing is recorded on a CPU meanwhile, the completions of disk requests among it."""
    ran = 0
    for path in pathlib.Path("/proc/1/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            ran += int(path.read_text().split()[0])
    return ran


def heap_run(hangdog, folder):
    """A run in a group of its own: what the group's figures grew by, and how long PID 1 ran meanwhile."""
    with Group(24 << 20) as group:
        before, ran = group.figures(), init_ran_ns()
        run = Run(hangdog, folder, group.command([CASES, "heap", "12288", "2"]))
        ran = init_ran_ns() - ran
        # The kernel brings its sums together every two seconds.
        time.sleep(3)
        after = group.figures()
    return run, {name: after[name] - before[name] for name in after if name in before}, ran


def heap_in(hangdog, folder, checks, disk):
    # Its reads go by within half a second: PID 1 need not run for long to hide one in a hundred of them.
    for attempt in range(4):
        run, grown, ran = heap_run(hangdog, folder)
        whole = json.loads(call([hangdog, "paging", run.trace, "--json"]))
        refaults, read = grown["workingset_refault_anon"], whole["sum"]["read_bytes"] // PAGE
        if not disk or near(refaults, read) or ran < 2_000_000 or attempt == 3:
            break
        print(f"heap: {read} of {refaults} reads; PID 1 ran for {ran / 1e6:.1f} ms; once more", flush=True)
    said, answer = run.said[0], run.paging(run.said[0])
    checks.near("page-ins", said["major"], answer["sum"]["page_ins"])
    checks.equal("all from swap", answer["sum"]["page_ins"], answer["sum"]["swap_ins"])
    checks.near("page-ins of the group", grown["pgmajfault"], whole["sum"]["page_ins"])
    if disk:
        checks.near("pages read: refaults", refaults, read)
    else:
        checks.equal("bytes read from a disk", 0, answer["sum"]["read_bytes"])
    checks.segment(answer, "heap", "heap")
    checks.equal("class", "Paging", run.verdict(said))


def heap_limit(hangdog, folder, checks):
    with swap_file(folder, 96):
        heap_in(hangdog, folder, checks, True)


def zram_swap(hangdog, folder, checks):
    with zram(96):
        heap_in(hangdog, folder, checks, False)


def handshake(hangdog, folder, checks):
    with swap_file(folder, 96), Group(24 << 20) as group, Slow(folder, SLOW) as slow:
        words = slow.command([CASES, "handshake", "4096", "4"])
        run = Run(hangdog, folder, group.command(words))
    for number, said in enumerate(sorted(run.said, key=lambda said: said["pid"])):
        who = ("parent", "child")[number]
        answer = run.paging(said)
        # A child of the process that is asked for counts too: its own figures are taken off.
        own = [s for s in answer["segments"] if s["pid"] == said["pid"]]
        checks.near(f"page-ins of the {who}", said["major"], sum(s["page_ins"] for s in own))
        kinds = own[0]["kind"] if own else "none"
        checks.equal(f"segment of the {who}", "heap", kinds)
        checks.least(f"again, {who}", said["major"] // 2, sum(s["again"] for s in own))
        checks.equal(f"class, {who}", "Paging", run.verdict(said))
        other = run.said[0]["pid"] if said is not run.said[0] else run.said[1]["pid"]
        between = [it for it in answer["exchanges"] if (it["pid"], it["with_pid"]) == (said["pid"], other)]
        # The child waits for the parent's first byte before it is asked for anything.
        rounds = (4, 3)[number]
        checks.equal(f"exchanges of the {who}", rounds, sum(it["count"] for it in between))
        pages = sum(it["paging_there_ns"] for it in between)
        checks.least(f"{who}: paging there, ns", sum(it["sum_ns"] for it in between) // 2, pages)
        checks.least(f"{who}: paged back, bytes", 1 << 20, sum(it["paged_back_bytes"] for it in between))


def neighbour(hangdog, folder, checks):
    pages = 3072
    file = random_file(folder / "file", pages)
    with Group(24 << 20) as group:
        words = group.command([CASES, "neighbour", file, "5120"])
        run = Run(hangdog, folder, words, "--faults")
    said = run.said[0]
    answer = run.paging(said)
    checks.near("page-ins", said["major"], answer["sum"]["page_ins"])
    checks.near("again", said["gone"], answer["sum"]["again"])
    checks.segment(answer, "mapped file", "file")
    checks.equal("class", "Paging", run.verdict(said))
    words = [hangdog, "paging", run.trace, "--json", "--process", said["neighbour"]]
    stalls = json.loads(call(words))["stalls"]
    kinds = [stall["kind"] for stall in stalls]
    checks.equal("the neighbour's stalls", ["reclaim at the group's limit"], kinds)
    freed = sum(stall["pages"] for stall in stalls)
    checks.least("pages that it freed", said["gone"], freed)


def scattered(hangdog, folder, checks):
    # The disk reads 4 pages around each that is wanted: each hot function is a page-in of its own.
    with device(folder, 32, ahead_kb=16) as mount:
        library = mount / "libscattered.so"
        shutil.copy(BUILD / "libscattered.so", library)
        # So that its pages can be dropped.
        with library.open("rb") as file:
            os.fsync(file.fileno())
        with Slow(mount, SLOW // 20) as slow:
            run = Run(hangdog, folder, slow.command([CASES, "scattered", library]))
    said, answer = run.said[0], run.paging(run.said[0])
    checks.equal("by construction", said["hot"], said["major"])
    checks.near("page-ins", said["major"], answer["sum"]["page_ins"])
    checks.segment(answer, "library", "libscattered.so")
    hot = {f"function_{number:04}" for number in range(32, 4096, 64)}
    found = {f["function"] for f in answer["functions"] if f["module"] == "libscattered.so"}
    checks.equal("hot functions told", min(len(hot), 20), len(found & hot))
    checks.equal("cold functions told", 0, len(found - hot))
    checks.equal("class", "Paging", run.verdict(said))


def writeback(hangdog, folder, checks):
    with device(folder, 64, stable=True) as mount:
        file = random_file(mount / "file", 4096)
        with Slow(mount, SLOW) as slow:
            run = Run(hangdog, folder, slow.command([CASES, "writeback", file]))
    said, answer = run.said[0], run.paging(run.said[0])
    checks.equal("page-ins", said["major"], answer["sum"]["page_ins"])
    checks.equal("minor faults that waited", 1, answer["sum"]["minor_waits"])
    reasons = [reason["reason"] for reason in answer["reasons"]]
    checks.equal("waits", "a page that was being written", reasons[0] if reasons else "none")
    checks.segment(answer, "mapped file", "file")
    checks.equal("class", "Paging", run.verdict(said))


def fuse_file(hangdog, folder, checks):
    pages = 128
    with served(folder, pages) as file:
        run = Run(hangdog, folder, [CASES, "backwards", file])
    said, answer = run.said[0], run.paging(run.said[0])
    checks.equal("by construction", pages, said["major"])
    checks.near("page-ins", said["major"], answer["sum"]["page_ins"])
    reasons = [reason["reason"] for reason in answer["reasons"]]
    truth = "a program that serves the file (FUSE)"
    checks.equal("waits", truth, reasons[0] if reasons else "none")
    checks.segment(answer, "mapped file", "file")
    # Whoever serves it computes.
    checks.equal("class", "LongRunning", run.verdict(said))


def storm(hangdog, folder, checks):
    pages, rounds = 16384, 6
    run = Run(hangdog, folder, [CASES, "storm", pages, rounds], "--faults")
    said, answer = run.said[0], run.paging(run.said[0])
    checks.equal("page-ins", 0, answer["sum"]["page_ins"])
    checks.near("minor faults", said["minor"], answer["sum"]["minor"] or 0)
    checks.near("by construction", pages * rounds, answer["sum"]["minor"] or 0)
    checks.equal("waited for pages, ns", 0, answer["any_ns"])
    # On a busy machine it may be called starved.
    checks.equal("class is Paging", False, run.verdict(said) == "Paging")


ALL = (
    ("file read backwards", backwards),
    ("heap beyond its limit", heap_limit),
    ("handshake", handshake),
    ("read ahead, not used", ahead),
    ("cold between hot", scattered),
    ("swap in zram", zram_swap),
    ("page being written", writeback),
    ("a neighbour's reclaim", neighbour),
    ("served file (FUSE)", fuse_file),
    ("minor faults, no paging", storm),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/debug/hangdog")
    parser.add_argument("--only", help="cases whose name has this in it")
    parser.add_argument("--keep", help="keep each case's trace in this folder")
    args = parser.parse_args()
    hangdog = str(pathlib.Path(args.hangdog).resolve())
    form = "{:<24} {:<26} {:>38} {:>38}  {}"
    print(form.format("case", "what", "truth", "found", ""))
    right = ran = checked = agreed = 0
    for name, case in ALL:
        if args.only and args.only not in name:
            continue
        checks = Checks()
        problem = None
        # On a disk, not in memory.
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            try:
                case(hangdog, pathlib.Path(folder), checks)
            except CannotRun as why:
                print(f"{name:<24} NOT RUN: {why}", flush=True)
                continue
            except (RuntimeError, ValueError, KeyError, IndexError, OSError) as fault:
                problem = f"{type(fault).__name__}: {fault}"
            except subprocess.TimeoutExpired as fault:
                problem = str(fault)
            trace = pathlib.Path(folder) / "case.hang"
            if args.keep and trace.exists():
                kept = pathlib.Path(args.keep) / f"{name.replace(' ', '-')}.hang"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.move(trace, kept)
        ran += 1
        for what, truth, found, is_right in checks.rows:
            word = "right" if is_right else "WRONG"
            print(form.format(name, what, str(truth), str(found), word), flush=True)
            checked += 1
            agreed += is_right
        if problem:
            print(f"{name:<24} WRONG: {problem}", flush=True)
        right += problem is None and all(row[3] for row in checks.rows)
    print(f"right in all: {right} of {ran} cases; {agreed} of {checked} comparisons")
    return 0 if right == ran else 1


if __name__ == "__main__":
    sys.exit(main())
