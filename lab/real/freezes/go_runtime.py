"""Go programs: goroutines that wait for a mutex or a channel."""

import signal
import subprocess
import time

from case import Root, Truth, freeze
from freezes.python_runtime import HERE as PYTHON_PROGRAMS
from freezes.runtimes import (
    BUILD,
    LOOK_S,
    PROGRAMS,
    RUNS,
    Client,
    Computing,
    activities,
    built,
    length_s,
    must_last,
    must_wait,
    span_of,
    tool,
    turns,
    visits,
)
from freezes.sqlite import PYTHON
from stage import Fault, free_port, need, now_ns, read_line, wait_for


def program_called(name):
    """Compiles a program of ours; gives its path."""
    folder = PROGRAMS / "go" / name
    sources = [folder / "main.go", folder / "go.mod"]
    return built(sources, f"go-{name}", [tool("go"), "build", "-o", BUILD / f"go-{name}"], folder)


@freeze("runtimes", "go-mutex")
def mutex(stage):
    """A handler of a Go web server makes a report while it holds a sync.Mutex, which the handler
    of another client wants."""
    binary, port = program_called("reports"), free_port()
    server = stage.program([binary, port], stdout=subprocess.PIPE)
    server.line()
    visits(stage, port)
    computing = Computing(server.pid)
    causer = Client(stage, port, f"/report/{length_s(stage) * 1.15}")
    wait_for("the report", computing)
    visitor = Client(stage, port, "/health")
    found = stage.hold(lambda: activities(server.pid))
    # The goroutine may go on in another thread from time to time.
    ready = sum(one.ready for one in found)
    if not RUNS <= ready < 2 * RUNS:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning; root the Go server, in makeReport",
        victims=(visitor.pid, causer.pid, server.pid),
        roots=(Root(server.pid, ("LongRunning",)),),
        frozen=visitor.span,
        witness=f"/proc: the threads of {server.pid} are ready to run for {ready:.0%} of the time",
        function=r"\bmakeReport\b",
    )


@freeze("runtimes", "go-channel-upstream")
def channel(stage):
    """A Go program waits for a channel on which a goroutine sends what it gets from a web server,
    which sleeps before it answers."""
    need(PYTHON, "ss")
    binary, port = program_called("rates"), free_port()
    words = [PYTHON, PYTHON_PROGRAMS / "slow_upstream.py", port]
    upstream = stage.start(words, stdout=subprocess.PIPE)
    read_line(upstream.stdout)
    program = stage.program([binary, port], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.line()
    turns(stage, program, "0.01")
    program.tell(f"{length_s(stage)}")

    def look():
        # Nobody else knows the port. To ask for the process as well takes ss seconds on a busy
        # machine, and the freeze would be over.
        words = ["ss", "-Htn", "state", "established", "dport", "=", f":{port}"]
        listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return activities(program.pid), activities(upstream.pid), listed.strip()

    own, others, connected = stage.hold(look)
    must_wait(own)
    must_wait(others)
    sleeping = [one for one in others if "nanosleep" in one.waits_in]
    if len(sleeping) != 1 or not connected:
        raise Fault(f"/proc: {'; '.join(map(str, others))}; ss: {connected or 'no connection'}")
    return Truth(
        text="LongWait; root the web server, which sleeps",
        victims=(program.pid,),
        roots=(Root(upstream.pid, ("LongWait",), thread=sleeping[0].tid),),
        frozen=span_of(stage, program),
        witness=f"/proc: {sleeping[0]}; ss: it has a connection",
        function=r"\blimit_rate\b",
    )


@freeze("runtimes", "go-lock-order")
def lock_order(stage):
    """Two goroutines of a web server lock the same two mutexes in opposite order. Clients wait for it until it is
    killed, and no thread of it has anything to run."""
    binary, port = program_called("stock"), free_port()
    server = stage.program([binary, port], stdout=subprocess.PIPE)
    server.line()
    visits(stage, port)
    causer = Client(stage, port, "/move")
    time.sleep(LOOK_S)
    begin = now_ns()
    visitor = Client(stage, port, "/health")
    found = stage.hold(lambda: activities(server.pid))
    # It prints the stacks of all goroutines, and ends.
    server.signal(signal.SIGQUIT)
    frozen = must_last(stage, (begin, server.ended()))
    must_wait(found)
    stacks = (stage.directory / "programs.log").read_text(encoding="utf-8", errors="replace")
    kept = stacks.count("main.moveBetween")
    if kept < 2 or "sync.Mutex.Lock" not in stacks:
        raise Fault(f"goroutines: {kept} in moveBetween")
    return Truth(
        text="LongWait; root the Go server, whose goroutines wait for each other in moveBetween",
        victims=(visitor.pid, causer.pid, server.pid),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"goroutines by SIGQUIT: {kept} in moveBetween, which wait for a mutex",
        function=r"\bmoveBetween\b|\bmain\.main\.func",
    )
