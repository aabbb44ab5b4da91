"""Rust programs: a web server on tokio whose tasks do not let others run, or wait for one another's lock."""

import signal
import subprocess
import time

from case import Root, Truth, freeze
from freezes.runtimes import (
    BUILD,
    PROGRAMS,
    Client,
    Computing,
    activities,
    built,
    length_s,
    must_last,
    must_wait,
    runners,
    tool,
    visits,
)
from stage import Fault, free_port, now_ns, wait_for

FOLDER = PROGRAMS / "rust" / "gateway"


def gateway(stage, workers):
    """Starts the server as the program of the case; gives it and its port."""
    sources = [FOLDER / "src" / "main.rs", FOLDER / "Cargo.toml", FOLDER / "Cargo.lock"]
    target = BUILD / "rust"
    words = [tool("cargo"), "build", "--release", "--locked", "--target-dir", target]
    binary, port = built(sources, "rust/release/gateway", words, FOLDER), free_port()
    server = stage.program([binary, port, workers], stdout=subprocess.PIPE)
    server.line()
    return server, port


@freeze("runtimes", "tokio-thread-sleep")
def thread_sleep(stage):
    """An async handler on tokio sleeps by std::thread::sleep on the only worker thread, so that no
    other task runs."""
    server, port = gateway(stage, 1)
    visits(stage, port)
    causer = Client(stage, port, f"/sensor/{length_s(stage)}")

    def sleeping():
        return [one for one in activities(server.pid, look_s=0.1) if "nanosleep" in one.waits_in]

    wait_for("the sensor", sleeping)
    visitor = Client(stage, port, "/health")

    found = stage.hold(lambda: activities(server.pid))
    must_wait(found)
    asleep = [one for one in found if "nanosleep" in one.waits_in]
    if len(asleep) != 1:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongWait; root tokio's worker, which sleeps",
        victims=(visitor.pid, causer.pid, server.pid),
        roots=(Root(server.pid, ("LongWait",), thread=asleep[0].tid),),
        frozen=visitor.span,
        witness=f"/proc: {asleep[0]}",
        # The compiler puts read_sensor into serve's closure, and the program has no debug information:
        # gdb too names the closure only.
        function=r"\bread_sensor\b|\bserve::",
    )


@freeze("runtimes", "tokio-computation")
def computation(stage):
    """An async handler on tokio computes on the only worker thread, so that nobody looks for what
    another client has sent."""
    server, port = gateway(stage, 1)
    visits(stage, port)
    computing = Computing(server.pid)
    causer = Client(stage, port, f"/thumbnail/{length_s(stage) * 1.15}")
    wait_for("the computation", computing)
    visitor = Client(stage, port, "/health")
    found = stage.hold(lambda: activities(server.pid))
    running = runners(found)
    if len(running) != 1:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning; root tokio's worker, in make_thumbnail",
        victims=(visitor.pid, causer.pid, server.pid),
        roots=(Root(server.pid, ("LongRunning",), thread=running[0].tid),),
        frozen=visitor.span,
        witness=f"/proc: {running[0]}",
        function=r"\bmake_thumbnail\b",
    )


@freeze("runtimes", "tokio-lock-across-await")
def lock_across_await(stage):
    """A task on tokio's only thread keeps a mutex while it awaits a timer. The task of a second client waits for
    that mutex on the same thread, so that the timer is never looked at."""
    server, port = gateway(stage, 0)
    visits(stage, port)
    causer = Client(stage, port, "/order/0.5")
    time.sleep(0.1)
    begin = now_ns()
    second = Client(stage, port, "/order/0.5")
    wait_for("the lock", lambda: "futex" in activities(server.pid, look_s=0.1)[0].waits_in)
    visitor = Client(stage, port, "/health")
    found = stage.hold(lambda: activities(server.pid))
    server.signal(signal.SIGKILL)
    frozen = must_last(stage, (begin, server.ended()))
    waiting = must_wait(found, server.pid)
    if len(found) != 1 or "futex" not in waiting.waits_in:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="Circular or LongWait; root tokio's only thread, in take_order, for a lock that a task of its has",
        victims=(visitor.pid, second.pid, causer.pid, server.pid),
        roots=(Root(server.pid, ("Circular", "LongWait"), thread=server.pid),),
        frozen=frozen,
        witness=f"/proc: the only thread, {waiting}",
        function=r"\btake_order\b|\banswer_on_one_thread\b|\bserve\b",
        cycle=True,
    )
