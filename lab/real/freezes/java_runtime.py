"""Java programs: monitors, the collector of a heap that is all but full, a Future."""

import pathlib
import re
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.runtimes import (
    BUILD,
    PROGRAMS,
    activities,
    built,
    length_s,
    must_last,
    must_wait,
    runners,
    span_of,
    tool,
    turns,
)
from stage import PATIENCE_S, Fault, need

HERE = PROGRAMS / "java"
# Of the time of a freeze that is to be the collector's.
COLLECTED = 0.8


def starting(stage, name, *options):
    """Starts a class of ours as the program of the case, and waits until it obeys."""
    need("java")
    classes = BUILD / "java" / name
    source = HERE / f"{name}.java"
    words = [tool("javac"), "-d", classes, source]
    built([source], f"java/{name}/{name}.class", words, HERE)
    program = stage.program(
        ["java", *options, "-cp", classes, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    # Its socket for jcmd.
    stage.callback(pathlib.Path(f"/tmp/.java_pid{program.pid}").unlink, missing_ok=True)
    if program.line() != "ready":
        raise Fault(f"{name} did not start")
    return program


def thread_dump(program):
    """What the JVM prints on its stdout when it gets SIGQUIT: the stacks of all threads, and the
    deadlocks that it finds."""
    program.signal(signal.SIGQUIT)
    lines = []
    # The heap comes last.
    while not (lines and lines[-1].startswith("  class space")):
        lines.append(program.line())
    if program.line():
        raise Fault("a thread dump of another form")
    return "\n".join(lines)


def thread_called(found, name):
    """The thread of that name."""
    threads = [one for one in found if one.name == name]
    if len(threads) != 1:
        raise Fault(f"/proc: no thread {name}: {'; '.join(map(str, found))}")
    return threads[0]


@freeze("runtimes", "java-synchronized")
def synchronized(stage):
    """A Java program wants to enter a synchronized method while another thread of it sleeps in
    one of the same object."""
    program = starting(stage, "Ledger")
    turns(stage, program, "book")
    program.tell(f"replicate {length_s(stage)}")
    # Printed by the thread that is in the monitor.
    if program.line() != "replicating":
        raise Fault("it does not replicate")
    program.tell("book")

    found, stacks = stage.hold(lambda: (activities(program.pid), thread_dump(program)))
    must_wait(found)
    main = stacks.partition('"main"')[2].partition("\n\n")[0]
    holder = stacks.partition('"Replicator"')[2].partition("\n\n")[0]
    waited_for = re.search(r"waiting to lock (<\w+>)", main)
    if not waited_for or f"locked {waited_for[1]}" not in holder or "sleep" not in holder:
        raise Fault("thread dump: main does not wait for the sleeping Replicator")
    return Truth(
        text="LongWait; root thread Replicator, which sleeps in the monitor",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongWait",), thread="^Replicator$"),),
        frozen=span_of(stage, program),
        witness=f"thread dump: main waits to lock {waited_for[1]}, locked by the sleeping "
        f"Replicator; /proc: {thread_called(found, 'Replicator')}",
    )


@freeze("runtimes", "java-full-gc")
def full_gc(stage):
    """A Java program imports records into a heap that is all but full, and is stopped again and
    again while all of it is collected."""
    log = stage.directory / "gc.log"
    program = starting(
        stage,
        "Importer",
        "-XX:+UseSerialGC",
        "-Xmx400m",
        f"-Xlog:gc:file={log}:timenanos",
    )
    turns(stage, program, "0")
    program.tell(f"{length_s(stage) * 1.15}")
    found = stage.hold(lambda: activities(program.pid))
    running = runners(found)
    if [one.name for one in running] != ["VM Thread"]:
        raise Fault(f"/proc: {'; '.join(map(str, running))}")
    frozen = span_of(stage, program)
    # A line has the time by the same clock, and the pause.
    pattern = r"^\[(\d+)ns\].* Pause Full .* ([\d.]+)ms$"
    pauses = re.findall(pattern, log.read_text(encoding="utf-8"), re.MULTILINE)
    number, collected = full_collections(pauses, frozen)
    share = collected / (frozen[1] - frozen[0])
    if share < COLLECTED:
        raise Fault(f"GC log: full collections take {share:.0%}, not {COLLECTED:.0%}")
    return Truth(
        text="LongRunning; root the VM Thread, which collects",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongRunning",), thread="^VM Thread$"),),
        frozen=frozen,
        witness=f"GC log: {number} full collections take {share:.0%} of it",
    )


def full_collections(pauses, frozen):
    """How many of the collections that ended in a time there were, and how long they took, ns."""
    took = [float(ms) * 1e6 for at, ms in pauses if frozen[0] < int(at) <= frozen[1]]
    return len(took), sum(took)


def tell_names(stage, program, method):
    """Has the JVM tell the names of compiled methods by perf's convention."""
    names = pathlib.Path(f"/tmp/perf-{program.pid}.map")
    stage.callback(names.unlink, missing_ok=True)
    jcmd = stage.start(["jcmd", program.pid, "Compiler.perfmap"])
    if jcmd.wait(PATIENCE_S) != 0:
        raise Fault(f"jcmd: exit code {jcmd.returncode}; see programs.log")
    if method not in names.read_text(encoding="utf-8"):
        raise Fault(f"jcmd: {method} is not compiled")


@freeze("runtimes", "java-future")
def future(stage):
    """A Java program waits for a Future which a thread of its pool computes."""
    # What one sets who wants to see his methods in a profile.
    program = starting(stage, "Pricing", "-XX:+PreserveFramePointer")
    # So long that its method is compiled.
    program.tell("0.5")
    program.line()
    tell_names(stage, program, "Pricing.priceBasket")
    turns(stage, program, "0.01")
    program.tell(f"{length_s(stage) * 1.15}")
    found = stage.hold(lambda: activities(program.pid))
    running = runners(found)
    if [one.name for one in running] != ["pricing-1"]:
        raise Fault(f"/proc: {'; '.join(map(str, running))}")
    return Truth(
        text="LongRunning; root thread pricing-1, in priceBasket",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongRunning",), thread="^pricing-1$"),),
        frozen=span_of(stage, program),
        witness=f"/proc: {running[0]}",
        function=r"\bpriceBasket\b",
    )


@freeze("runtimes", "java-deadlock")
def deadlock(stage):
    """Two threads of a Java program lock the same two objects in opposite order, and wait for each
    other until the program is ended."""
    program = starting(stage, "Transfers")
    turns(stage, program, "one")
    program.tell("both")
    begin = int(program.line())
    found, stacks = stage.hold(lambda: (activities(program.pid), thread_dump(program)))
    program.signal(signal.SIGTERM)
    frozen = must_last(stage, (begin, program.ended()))
    must_wait(found)
    threads = [thread_called(found, f"transfer-{way}") for way in ("in", "out")]
    if "Found 1 deadlock." not in stacks:
        raise Fault("thread dump: no deadlock")
    return Truth(
        text="Circular: transfer-in and transfer-out hold what the other wants",
        victims=(program.pid,),
        roots=tuple(Root(program.pid, ("Circular",), thread=one.tid) for one in threads),
        frozen=frozen,
        witness=f"thread dump: found 1 deadlock; /proc: {threads[0]}; {threads[1]}",
        cycle=True,
    )


@freeze("runtimes", "java-exit-in-task")
def exit_in_task(stage):
    """A task of a pool ends a Java program by System.exit. The thread that runs as the program ends waits for
    the pool's tasks to end, and so for that one, until the program is killed."""
    program = starting(stage, "Loader")
    turns(stage, program, "good")
    program.tell("bad")
    begin = int(program.line())
    found, stacks = stage.hold(lambda: (activities(program.pid), thread_dump(program)))
    program.signal(signal.SIGKILL)
    frozen = must_last(stage, (begin, program.ended()))
    must_wait(found)
    threads = [thread_called(found, name) for name in ("loader", "close-down")]
    loader = stacks.partition('"loader"')[2].partition("\n\n")[0]
    hook = stacks.partition('"close-down"')[2].partition("\n\n")[0]
    if "ApplicationShutdownHooks.runHooks" not in loader or "awaitTermination" not in hook:
        raise Fault("thread dump: the two do not wait for each other")
    return Truth(
        text="Circular: the loader joins close-down, which waits for the end of the loader's task",
        victims=(program.pid,),
        roots=tuple(Root(program.pid, ("Circular",), thread=one.tid) for one in threads),
        frozen=frozen,
        witness=f"thread dump: runHooks and awaitTermination; /proc: {threads[0]}; {threads[1]}",
        cycle=True,
    )
