"""C++ programs: a task that waits for a file's lock, threads that meet at the end of a loop, a
mutex in memory that processes share, a message queue that is full, a lock that spins."""

import ctypes
import os
import resource
import signal

from case import Root, Truth, freeze
from freezes.neighbours import neighbours
from freezes.procfs import cpu_s, must_be_stopped, must_wait_in, until_descendant
from freezes.python_runtime import PIPES
from freezes.runtimes import (
    BUILD,
    PROGRAMS,
    activities,
    ample_s,
    built,
    length_s,
    must_wait,
    runners,
    span_of,
    tool,
    turns,
)
from freezes.shared_things import TRIAL
from freezes.sqlite import lock_holders
from freezes.web import computing
from stage import Fault, need, output_of, read_line, wait_for

HERE = PROGRAMS / "cpp"


def program_called(name, *options):
    """Compiles a program of ours as distributions do; gives its path."""
    source = HERE / f"{name}.cc"
    words = [tool("g++"), "-std=c++17", "-O2", "-g", "-pthread", *options, source, "-lrt"]
    return built([source], f"cpp-{name}", [*words, "-o", BUILD / f"cpp-{name}"], HERE)


@freeze("files", "async-task-flock")
def async_flock(stage):
    """A C++ program waits for the future of a task, which waits for the lock of a file that
    flock(1) keeps while xz packs what was in it."""
    need("flock", "xz", "lslocks")
    neighbours(stage)
    lock, old = stage.directory / "register.lock", stage.directory / "register.1"
    old.write_bytes(os.urandom(TRIAL))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(["xz", "--keep", "--force", "-9", old])
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    old.write_bytes(os.urandom(int(TRIAL * ample_s(stage) / took)))
    program = stage.program([program_called("orders"), lock], **PIPES)
    program.line()
    turns(stage, program, "12 apples")
    rotate = stage.start(["flock", lock, "xz", "-9", "--force", "--keep", old])
    xz = until_descendant(rotate.pid, "xz")
    program.tell("7 pears")

    def look():
        return activities(program.pid), activities(xz), lock_holders(lock)

    own, packing, holders = stage.hold(look)
    must_wait(own)
    running = runners(packing)
    task = [one for one in own if one.tid != program.pid]
    if len(task) != 1 or rotate.pid not in holders or program.pid not in holders:
        raise Fault(f"/proc: {'; '.join(map(str, own))}; lslocks: {holders}")
    return Truth(
        text="LongRunning; root xz, for which the flock that has the lock waits",
        victims=(program.pid, rotate.pid),
        roots=(Root(xz, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"lslocks: {rotate.pid} has the lock; /proc: {running[0]}; {task[0]}",
    )


@freeze("cpu", "openmp-one-row")
def one_row(stage):
    """Four threads of an OpenMP loop have a row each, and one of the rows takes long: the others
    wait for it at the end of the loop."""
    neighbours(stage)
    program = stage.program([program_called("weather", "-fopenmp")], **PIPES)
    program.line()
    turns(stage, program, "0.01")
    program.tell(f"{length_s(stage) * 1.1}")
    found = stage.hold(lambda: activities(program.pid))
    running = runners(found)
    if len(running) != 1 or running[0].tid == program.pid:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning in compute_row; root the thread that has the slow row",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongRunning",), thread=running[0].tid),),
        frozen=span_of(stage, program),
        witness=f"/proc: {running[0]}; {must_wait(found, program.pid)}",
        function=r"\bcompute_row\b",
    )


def banks(stage):
    """Two processes that share accounts; the first is the one that will wait. Gives both, and the
    file that ends an audit."""
    neighbours(stage)
    binary, path = program_called("bank"), stage.directory / "accounts"
    other = stage.start([binary, path, "bank_night"], **PIPES)
    read_line(other.stdout)
    program = stage.program([binary, path, "bank_desk"], **PIPES)
    program.line()
    turns(stage, program, "book")
    other.stdin.write(b"audit\n")
    wait_for("the audit", lambda: cpu_s(other.pid) > 0.1)
    return program, other, stage.directory / "accounts.seen"


@freeze("memory", "shared-memory-mutex")
def shared_mutex(stage):
    """A process wants a robust mutex in memory that it shares with another process, which adds up
    all accounts there."""
    program, other, seen = banks(stage)
    program.tell("book")
    found = stage.hold(lambda: (must_wait_in(program.pid, "futex"), computing(other.pid)))
    seen.touch()
    return Truth(
        text="LongRunning in add_up_accounts; root bank_night, which has the shared mutex",
        victims=(program.pid,),
        roots=(Root(other.pid, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {program.pid} waits in {found[0]}; {found[1]}",
        function=r"\badd_up_accounts\b",
    )


@freeze("memory", "shared-memory-owner-stopped")
def owner_stopped(stage):
    """A process wants a robust mutex in memory that it shares with another process, which has been
    stopped while it has the mutex."""
    program, other, seen = banks(stage)
    os.kill(other.pid, signal.SIGSTOP)
    program.tell("book")

    def look():
        must_be_stopped(other.pid)
        return must_wait_in(program.pid, "futex")

    place = stage.hold(look)
    seen.touch()
    os.kill(other.pid, signal.SIGCONT)
    return Truth(
        text="LongWait; root bank_night, stopped, which has the shared mutex",
        victims=(program.pid,),
        roots=(Root(other.pid, ("LongWait",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {other.pid} is stopped; {program.pid} waits in {place}",
    )


@freeze("runtimes", "message-queue-full")
def queue_full(stage):
    """A program sends alarms by a POSIX message queue, which is full, for the program that handles
    them computes its rules anew."""
    neighbours(stage)
    binary, rules = program_called("alarms"), stage.directory / "rules"
    queue = f"/{stage.directory.name}"
    # It outlives those that use it.
    stage.callback(ctypes.CDLL(None).mq_unlink, queue.encode())
    handler = stage.start([binary, queue, "handle", rules], **PIPES)
    read_line(handler.stdout)
    program = stage.program([binary, queue], **PIPES)
    program.line()
    turns(stage, program, "door open")
    before = cpu_s(handler.pid)
    program.tell("rules")
    program.line()
    wait_for("the rules", lambda: cpu_s(handler.pid) > before + 0.05)
    program.tell("many")
    found = stage.hold(lambda: (must_wait_in(program.pid, "wq_sleep"), computing(handler.pid)))
    rules.touch()
    return Truth(
        text="LongRunning in compute_rules; root alarm_handler, which does not read the queue",
        victims=(program.pid,),
        roots=(Root(handler.pid, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {program.pid} waits in {found[0]}; {found[1]}",
        function=r"\bcompute_rules\b",
    )


@freeze("runtimes", "spinning-lock")
def spinning_lock(stage):
    """The main thread of a sound mixer asks for a lock again and again by sched_yield, and another
    thread of it has that lock and sleeps."""
    neighbours(stage)
    program = stage.program([program_called("mixer")], **PIPES)
    program.line()
    turns(stage, program, "mix")
    program.tell(f"load {length_s(stage)}")
    program.tell("mix")
    found = stage.hold(lambda: activities(program.pid))
    running = runners(found)
    filler = [one for one in found if one.name == "filler"]
    if [one.tid for one in running] != [program.pid] or "nanosleep" not in filler[0].waits_in:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    # Nothing outside the program tells who has a lock that is a number in its memory.
    return Truth(
        text="RepeatedYield in take_buffer; root the main thread, or the filler, which has the lock",
        victims=(program.pid,),
        roots=(
            Root(program.pid, ("RepeatedYield",), thread=program.pid),
            Root(program.pid, ("LongWait",), thread=filler[0].tid),
        ),
        frozen=span_of(stage, program),
        witness=f"/proc: {running[0]}; {filler[0]}",
        function=r"\b(take_buffer|load_sound)\b",
    )
