"""Programs of a desktop that ask a service which is stopped (SIGSTOP), and wait for its answer."""

import os
import signal

from case import Root, Truth
from freezes.accessibility import is_stopped
from freezes.panels import cpu_ns
from stage import Fault, now_ns, wait_for


def stop(pid):
    """Stops a process."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(f"process {pid} stopped", lambda: is_stopped(pid))


# A client that waits uses less of the CPU than this.
MAY_USE_S = 0.5


def ask_stopped(stage, words, pid, text, between=lambda: ()):
    """Starts the command `words`, which asks the process `pid` that is stopped, and has that go on
    after a while. Gives the truth. `between()` finds the processes between the two, which are held
    up too."""
    stage.ordinary()
    stop(pid)
    client = stage.program(words)
    begin = now_ns()

    def look():
        return is_stopped(pid), client.runs(), cpu_ns(client.pid) / 1e9, between()

    stopped, runs, used_s, also = stage.hold(look)
    still = client.runs()
    os.kill(pid, signal.SIGCONT)
    end = client.ended()
    if not stopped:
        raise Fault(f"/proc: {pid} was not stopped")
    if not runs or not still:
        raise Fault("the client ended while the service was stopped")
    if used_s > MAY_USE_S:
        raise Fault(f"the client did not wait: it used {used_s:.2f} s of the CPU")
    return Truth(
        text=text,
        victims=(client.pid, *also),
        roots=(Root(pid, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: {pid} is stopped; the client used {used_s:.2f} s of the CPU and ended "
        "when that went on",
    )
