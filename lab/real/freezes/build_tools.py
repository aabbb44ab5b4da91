"""Programs that wait for those that they have started: make, find, xargs, a shell."""

import os
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.cpu_groups import hard_to_pack
from freezes.pipes import connect
from freezes.procfs import (
    children,
    cpu_s,
    must_be_stopped,
    must_wait_in,
    name,
    running,
    until_descendant,
    until_named,
    until_waiting,
)
from freezes.tcp import PROGRAMS, PYTHON
from stage import Fault, need, now_ns, wait_for

# What a program that computes gets of a CPU at least, also on a busy machine.
LEAST_SHARE = 0.3


@freeze("shells", "make-test-hangs")
def test_hangs(stage):
    """make waits for its tests, of which one waits for a connection that does not come."""
    need("make", PYTHON)
    path = stage.directory / "courier"
    (stage.directory / "Makefile").write_text(
        f"test:\n\t@{PYTHON} {PROGRAMS / 'sh_test_orders.py'} {path}\n"
    )
    make = stage.program(["make", "-C", str(stage.directory), "test"])
    begin = until_named(make.pid, "make")
    wait_for("the test", path.exists)
    tests = running("python3", path)
    until_waiting(tests)
    channels = stage.hold(lambda: (must_wait_in(make.pid, "wait"), must_wait_in(tests)))
    connect(path)
    end = make.ended()
    return Truth(
        text="LongWait for a connection in test_delivery; root python3, the tests",
        victims=(make.pid, tests),
        roots=(Root(tests, ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: make waits in {channels[0]}, the tests in {channels[1]}",
        function="wait_for_courier|test_delivery",
    )


@freeze("shells", "make-job-slots")
def job_slots(stage):
    """make -j2 has a file to pack, but both job slots are taken by two other makes, which it has
    started, and whose programs wait for a connection."""
    need("make", "socat", "gzip")
    folder, record = stage.directory, stage.directory / "record"
    record.write_text("something\n" * 1000)
    (folder / "Makefile").write_text(
        "all: tests docs image\ntests docs:\n\t+@$(MAKE) -s -C $@.d\nimage:\n\t@gzip -k record\n"
    )
    paths = [folder / f"{part}.d" / "device" for part in ("tests", "docs")]
    for path in paths:
        path.parent.mkdir()
        (path.parent / "Makefile").write_text(f"all:\n\t@socat -u UNIX-LISTEN:{path} -\n")
    make = stage.program(["make", "-s", "-j2", "-C", str(folder)])
    begin = until_named(make.pid, "make")
    wait_for("the jobs", lambda: all(path.exists() for path in paths))
    jobs = [running("socat", path) for path in paths]
    channel = stage.hold(lambda: must_wait_in(make.pid))
    packed = (folder / "record.gz").exists()
    subs = [pid for pid in children(make.pid) if name(pid) == "make"]
    for path in paths:
        connect(path)
    end = make.ended()
    if packed:
        raise Fault("make had a slot for gzip")
    if len(subs) != len(jobs):
        raise Fault(f"make has {len(subs)} sub-makes")
    # Any slot that one of them gives back will do.
    return Truth(
        text="LongWait for a job slot; root socat, which either sub-make waits for",
        victims=(make.pid, *subs),
        roots=tuple(Root(job, ("LongWait",)) for job in jobs),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: make waits in {channel}, and has not started gzip",
    )


@freeze("shells", "find-exec-fifo")
def exec_fifo(stage):
    """find has md5sum read all files of a folder, of which one is a FIFO that nobody writes to."""
    need("find", "md5sum")
    folder = stage.directory / "files"
    folder.mkdir()
    for number in range(20):
        (folder / f"file{number}").write_text("something\n")
    fifo = folder / "progress"
    os.mkfifo(fifo)
    words = ["find", str(folder), "-not", "-type", "d", "-exec", "md5sum", "{}", "+"]
    find = stage.program(words, stdout=subprocess.DEVNULL)
    begin = until_named(find.pid, "find")
    md5sum = until_descendant(find.pid, "md5sum")
    channel = stage.hold(lambda: must_wait_in(md5sum, "wait_for_partner"))
    os.close(os.open(fifo, os.O_WRONLY))
    end = find.ended()
    return Truth(
        text="LongWait for a writer of a FIFO; root md5sum itself",
        victims=(find.pid, md5sum),
        roots=(Root(md5sum, ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: md5sum waits in {channel}",
    )


@freeze("shells", "xargs-xz")
def xargs_xz(stage):
    """xargs waits for xz, which packs the one file that is large."""
    need("xargs", "xz")
    large, small = hard_to_pack(stage), stage.directory / "small"
    small.write_text("something\n")
    words = ["xargs", "-n1", "-P2", "xz", "-k", "-f", "-T1"]
    xargs = stage.program(words, stdin=subprocess.PIPE)
    until_named(xargs.pid, "xargs")
    begin = now_ns()
    xargs.tell(f"{large}\n{small}")
    xargs.stdin.close()
    xz = running("xz", large)
    used = cpu_s(xz)
    started = now_ns()
    channel = stage.hold(lambda: must_wait_in(xargs.pid, "wait"))
    used, seconds = cpu_s(xz) - used, (now_ns() - started) / 1e9
    os.kill(xz, signal.SIGKILL)
    end = xargs.ended()
    if used < LEAST_SHARE * seconds:
        raise Fault(f"schedstat: xz ran for {used:.1f} of {seconds:.1f} s")
    return Truth(
        text="LongRunning; root xz",
        victims=(xargs.pid,),
        roots=(Root(xz, ("LongRunning",)),),
        frozen=(begin, end),
        witness=f"/proc: xargs waits in {channel}; xz had the CPU for {used:.1f} s",
    )


@freeze("shells", "make-compile")
def make_compile(stage):
    """make waits for the compiler, which takes long for one large file."""
    need("make", "cc")
    folder = stage.directory / "tree"
    folder.mkdir()
    (folder / "table.c").write_text(
        "".join(
            f"int f{k}(int a) {{ for (int i = 0; i < a; i++) a ^= a * {k + 3} + i; return a; }}\n"
            for k in range(40_000)
        )
    )
    (folder / "Makefile").write_text("CFLAGS = -O2\ntable.o:\n")
    make = stage.program(["make", "-s", "-C", str(folder), "table.o"])
    begin = until_named(make.pid, "make")
    compiler = until_descendant(make.pid, "cc1")
    # cc, which only starts the compiler.
    driver, = children(make.pid)
    before, started = cpu_s(compiler), now_ns()
    channel = stage.hold(lambda: must_wait_in(make.pid, "wait"))
    used, seconds = cpu_s(compiler) - before, (now_ns() - started) / 1e9
    os.kill(compiler, signal.SIGKILL)
    end = make.ended()
    if used < LEAST_SHARE * seconds:
        raise Fault(f"schedstat: cc1 ran for {used:.1f} of {seconds:.1f} s")
    return Truth(
        text="LongRunning; root cc1, the compiler",
        victims=(make.pid, driver),
        roots=(Root(compiler, ("LongRunning",)),),
        frozen=(begin, end),
        witness=f"/proc: make waits in {channel}; cc1 had the CPU for {used:.1f} s",
    )


@freeze("shells", "shell-wait")
def shell_wait(stage):
    """A backup script waits for tar, which it has started in the background and which somebody has
    stopped."""
    need("bash", "tar")
    folder, archive = stage.directory / "records", stage.directory / "records.tar"
    folder.mkdir()
    # Without blocks, but tar writes them all.
    with (folder / "record").open("wb") as file:
        file.truncate(20 << 30)
    words = ["bash", str(PROGRAMS / "sh_backup.sh"), str(folder), str(archive)]
    script = stage.program(words)
    begin = until_named(script.pid, "bash")
    tar = until_descendant(script.pid, "tar")
    os.kill(tar, signal.SIGSTOP)

    def look():
        must_be_stopped(tar)
        return must_wait_in(script.pid, "wait")

    channel = stage.hold(look)
    os.kill(tar, signal.SIGKILL)
    end = script.ended()
    return Truth(
        text="LongWait; root tar, stopped",
        victims=(script.pid,),
        roots=(Root(tar, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: {tar} is stopped; bash waits in {channel}",
    )
