"""Programs that get no CPU because others have it: by niceness, by scheduling class, by their
number on one CPU."""

import os
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.cpu_groups import Group, end, endless, hard_to_pack, last_cpu, must_be_starved
from freezes.procfs import cpu_s, descendants, name, until_descendant, until_named
from freezes.tcp import PROGRAMS, PYTHON
from stage import CannotRun, Fault, accepts, free_port, need, now_ns, output_of, wait_for

NEIGHBOUR_THREADS = 8
# Compilers beside a program, and how large their files are.
JOBS, FUNCTIONS = 4, 6000
# Some tenths of a second for gzip, which it does not get.
SMALL_MB = 6


def starve(stage, victim, program, hogs, take_in, most=0.25):
    """The rest of a freeze of `victim`, a command that starts as the program of that name when
    others, the hogs, have its CPU already, and that somebody ends at last. `take_in` puts it beside
    them. Gives when it was frozen, and the witness."""
    begin = until_named(victim.pid, program)
    take_in()
    taken, before = now_ns(), cpu_s(victim.pid)
    stage.hold()
    witness = must_be_starved(victim.pid, taken, before, most)
    victim.signal(signal.SIGTERM)
    # It needs the CPU to end.
    for pid in hogs:
        os.kill(pid, signal.SIGKILL)
    return (begin, victim.ended()), witness


@freeze("cpu", "nice-backup")
def nice_backup(stage):
    """gzip at niceness 19 shares a CPU with two checksum programs at niceness 0."""
    need("gzip", "sha256sum", "md5sum")
    group, records = Group(stage), str(hard_to_pack(stage))
    hogs = [endless(stage, group, name, "/dev/zero") for name in ("sha256sum", "md5sum")]
    gzip = stage.program(["gzip", "-9", "-k", "-f", records])
    frozen, witness = starve(
        stage, gzip, "gzip", [hog.pid for hog in hogs], lambda: group.add(gzip.pid, nice=19)
    )
    return Truth(
        text="Starved; root sha256sum or md5sum, which have its CPU",
        victims=(gzip.pid,),
        roots=tuple(Root(process.pid, ("Starved",)) for process in hogs),
        frozen=frozen,
        witness=witness,
    )


@freeze("cpu", "idle-policy")
def idle_policy(stage):
    """xz packs a file under SCHED_IDLE, which is for what may wait, while openssl keeps its CPU
    busy."""
    need("xz", "chrt", "openssl")
    group, records = Group(stage), str(hard_to_pack(stage))
    words = ["openssl", "speed", "-seconds", "60", "-bytes", "4096", "-evp", "sha256"]
    hog = endless(stage, group, *words)
    xz = stage.program(["chrt", "--idle", "0", "xz", "-k", "-f", "-T1", records])
    frozen, witness = starve(stage, xz, "xz", [hog.pid], lambda: group.add(xz.pid))
    return Truth(
        text="Starved; root openssl, which has its CPU",
        victims=(xz.pid,),
        roots=(Root(hog.pid, ("Starved",)),),
        frozen=frozen,
        witness=witness,
    )


@freeze("cpu", "background-group")
def background_group(stage):
    """bc computes in a control group of the least weight while a checksum program in another group
    has the CPU."""
    need("bc", "sha512sum")
    both = Group(stage)
    background, foreground = Group(stage, both, shares=2), Group(stage, both)
    hog = endless(stage, foreground, "sha512sum", "/dev/zero")
    formula = stage.directory / "pi.bc"
    formula.write_text("scale = 20000\n4 * a(1)\n")
    bc = stage.program(["bc", "-l", "-q", str(formula)])
    frozen, witness = starve(stage, bc, "bc", [hog.pid], lambda: background.add(bc.pid))
    return Truth(
        text="Starved; root sha512sum, which has its CPU",
        victims=(bc.pid,),
        roots=(Root(hog.pid, ("Starved",)),),
        frozen=frozen,
        witness=witness,
    )


@freeze("cpu", "realtime-hog", whole_machine=True)
def realtime_hog(stage):
    """gzip runs on a CPU that a realtime program has: the kernel leaves it 5 %."""
    need("gzip", "chrt", "taskset", "sha256sum")
    pinned, records = ["taskset", "-c", str(last_cpu())], str(hard_to_pack(stage))
    hog = stage.start([*pinned, "chrt", "--fifo", "50", "sha256sum", "/dev/zero"])
    until_named(hog.pid, "sha256sum")
    if os.sched_getscheduler(hog.pid) != os.SCHED_FIFO:
        raise CannotRun("no program may run in real time")
    # Not by taskset, which would be starved before it becomes gzip.
    gzip = stage.program(["gzip", "-9", "-k", "-f", records])

    def take_in():
        os.sched_setaffinity(gzip.pid, {last_cpu()})

    frozen, witness = starve(stage, gzip, "gzip", [hog.pid], take_in)
    return Truth(
        text="Starved; root sha256sum, which has its CPU in real time",
        victims=(gzip.pid,),
        roots=(Root(hog.pid, ("Starved",)),),
        frozen=frozen,
        witness=witness,
    )


@freeze("cpu", "noisy-neighbour")
def noisy_neighbour(stage):
    """curl waits for a report of a web server that shares its CPU with the eight threads of xz."""
    need(PYTHON, "curl", "xz")
    port, group, done = free_port(), Group(stage), stage.directory / "done"
    server = stage.start([PYTHON, PROGRAMS / "cpu_report_server.py", port, done])
    group.add(server.pid)
    wait_for("the report server", lambda: accepts(port))
    words = ["xz", "-c", f"-T{NEIGHBOUR_THREADS}", "--block-size=1MiB", "/dev/urandom"]
    neighbour = stage.start(words, stdout=subprocess.DEVNULL)
    group.add(neighbour.pid)
    tasks = f"/proc/{neighbour.pid}/task"
    wait_for("xz's threads", lambda: len(os.listdir(tasks)) > NEIGHBOUR_THREADS)
    # Those that it started meanwhile.
    group.add(neighbour.pid)
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{time_total}\n"]
    curl = stage.program([*words, f"http://127.0.0.1:{port}/report"], stdout=subprocess.PIPE)
    begin, before = until_named(curl.pid, "curl"), cpu_s(server.pid)
    stage.hold()
    seconds, used = (now_ns() - begin) / 1e9, cpu_s(server.pid) - before
    done.touch()
    end(neighbour)
    total_s = float(curl.line())
    finish = now_ns()
    if used > 0.25 * seconds:
        raise Fault(f"schedstat: the server had the CPU for {used:.1f} of {seconds:.1f} s")
    return Truth(
        text="Starved; root xz, whose threads have the web server's CPU",
        victims=(curl.pid, server.pid),
        roots=(Root(neighbour.pid, ("Starved",)),),
        frozen=(finish - int(total_s * 1e9), finish),
        witness=f"curl: {total_s:.1f} s; schedstat: the server had the CPU for {used:.2f} s",
    )


@freeze("cpu", "compile-beside")
def compile_beside(stage):
    """bzip2 has to share its CPU with a parallel make of four large files."""
    need("make", "cc", "bzip2")
    group = Group(stage)
    folder = stage.directory / "tree"
    folder.mkdir()
    for number in range(JOBS):
        body = "".join(
            f"int f{k}(int a) {{ for (int i = 0; i < a; i++) a ^= a * {k + 3} + i; return a; }}\n"
            for k in range(FUNCTIONS)
        )
        (folder / f"part{number}.c").write_text(body)
    parts = " ".join(f"part{number}.o" for number in range(JOBS))
    (folder / "Makefile").write_text(f"CFLAGS = -O2\nall: {parts}\n")
    make = stage.start(["make", "-s", f"-j{JOBS}", "-C", folder])

    def running():
        return [pid for pid in descendants(make.pid) if name(pid) == "cc1"]

    wait_for("the compilers", lambda: len(running()) == JOBS)
    for pid in [make.pid, *descendants(make.pid)]:
        group.add(pid)
    compilers = running()
    bzip2 = stage.program(["bzip2", "-k", "-f", str(hard_to_pack(stage))])

    def take_in():
        group.add(bzip2.pid)

    # It has a fifth of a CPU. A compiler that is done too early cannot be killed, a Fault.
    frozen, witness = starve(stage, bzip2, "bzip2", compilers, take_in, most=0.35)
    return Truth(
        text="Starved; root cc1, whose processes have its CPU",
        victims=(bzip2.pid,),
        roots=tuple(Root(pid, ("Starved",)) for pid in compilers),
        frozen=frozen,
        witness=witness,
    )


@freeze("cpu", "lock-holder-starved")
def lock_holder_starved(stage):
    """A cron job waits in flock for the lock of a backup, whose gzip at niceness 19 is starved by
    a checksum program at niceness 0."""
    need("flock", "gzip", "sha256sum", "lslocks")
    group, lock = Group(stage), stage.directory / "lock"
    records = hard_to_pack(stage, megabytes=SMALL_MB)
    hog = endless(stage, group, "sha256sum", "/dev/zero")
    holder = stage.start(["flock", lock, "gzip", "-9", "-k", "-f", records])
    gzip = until_descendant(holder.pid, "gzip")
    group.add(gzip, nice=19)
    job = stage.program(["flock", str(lock), "true"])
    begin = until_named(job.pid, "flock")

    def look():
        words = ["lslocks", "--noheadings", "--raw", "--notruncate", "-o", "PID,PATH"]
        rows = [line.split(maxsplit=1) for line in output_of(words).splitlines()]
        return {int(row[0]) for row in rows if row[1:] == [str(lock)]}

    looked, before = now_ns(), cpu_s(gzip)
    holders = stage.hold(look)
    starved = must_be_starved(gzip, looked, before)
    end(hog)
    finish = job.ended()
    if holder.pid not in holders:
        raise Fault(f"lslocks: the lock is held by {holders}, not by {holder.pid}")
    # The one that has the lock would go on if it had the CPU.
    return Truth(
        text="flock waits for gzip, which is Starved; root sha256sum, which has its CPU",
        victims=(job.pid, gzip, holder.pid),
        roots=(Root(hog.pid, ("Starved",)),),
        frozen=(begin, finish),
        witness=f"lslocks: {holder.pid} has the lock; gzip: {starved}",
    )
