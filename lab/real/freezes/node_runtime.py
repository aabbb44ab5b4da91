"""node: a web shop of one thread whose handlers block it, in each case another."""

import os
import pathlib
import resource
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.runtimes import (
    PROGRAMS,
    Client,
    Computing,
    activities,
    ample_s,
    length_s,
    must_last,
    must_wait,
    runners,
    visits,
)
from stage import Fault, free_port, need, now_ns, output_of, wait_for

SHOP = PROGRAMS / "node" / "shop.js"
# Threads of libuv's pool, when nobody says otherwise.
POOL = 4


class Shop:
    """The shop as the program of the case, and its folder."""

    def __init__(self, stage):
        need("node")
        self.stage, self.port = stage, free_port()
        self.folder = stage.directory / "shop"
        self.folder.mkdir()
        (self.folder / "page.html").write_text("<p>welcome</p>")
        # Without the option node tells nobody the names of functions compiled at run time.
        words = ["node", "--perf-basic-prof", SHOP, self.port, self.folder]
        self.program = stage.program(words, stdout=subprocess.PIPE, cwd=stage.directory)
        self.pid = self.program.pid
        stage.callback(pathlib.Path(f"/tmp/perf-{self.pid}.map").unlink, missing_ok=True)
        self.program.line()

    def freeze(self, page, begun, look, other="/health"):
        """Somebody asks for a page which blocks, and when `begun()` another one for a small page.
        Gives both clients, and what `look()` saw."""
        visits(self.stage, self.port, other)
        causer = Client(self.stage, self.port, page)
        wait_for(f"{page} begins", begun)
        visitor = Client(self.stage, self.port, other)
        return visitor, causer, self.stage.hold(look)

    def children(self):
        """The processes that its main thread has started."""
        file = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(word) for word in file.read_text(encoding="ascii").split()]


def computes(stage, page, seconds, function):
    """The main thread runs a function of the shop's for so long."""
    shop = Shop(stage)
    visitor, causer, found = shop.freeze(
        f"/{page}/{seconds}", Computing(shop.pid), lambda: activities(shop.pid)
    )
    running = runners(found)
    if [one.tid for one in running] != [shop.pid]:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text=f"LongRunning; root node, in {function}",
        victims=(visitor.pid, causer.pid, shop.pid),
        roots=(Root(shop.pid, ("LongRunning",), thread=shop.pid),),
        frozen=visitor.span,
        witness=f"/proc: {running[0]}",
        function=rf"\b({function})\b",
    )


@freeze("runtimes", "node-regex")
def regex(stage):
    """A request makes node apply a regular expression that takes seconds on its event loop, and
    another client waits."""
    return computes(stage, "comment", ample_s(stage), "endsInBlanks|postComment")


@freeze("runtimes", "node-sort")
def sort(stage):
    """A request makes node sort big arrays on its event loop, and another client waits."""
    return computes(stage, "best", length_s(stage) * 1.15, "bestSellers|bySales")


@freeze("runtimes", "node-exec-sync")
def exec_sync(stage):
    """A handler in node compresses a file by execFileSync, which blocks the event loop until xz
    has ended."""
    need("xz")
    shop = Shop(stage)
    orders = shop.folder / "orders"
    # Nothing to be found in it, so that the time grows with the length.
    orders.write_bytes(os.urandom(1 << 20))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(["xz", "--keep", "--force", "-9", orders])
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    orders.write_bytes(os.urandom(int((1 << 20) * ample_s(stage) / took)))

    def look():
        return shop.children(), activities(*shop.children()), activities(shop.pid)

    visitor, causer, seen = shop.freeze("/pack", shop.children, look)
    children, packing, own = seen
    running = runners(packing)
    if len(children) != 1:
        raise Fault(f"/proc: node has the children {children}")
    main = must_wait(own, shop.pid)
    return Truth(
        text="LongRunning; root xz, for which node waits",
        victims=(visitor.pid, causer.pid, shop.pid),
        roots=(Root(children[0], ("LongRunning",)),),
        frozen=visitor.span,
        witness=f"/proc: {running[0]}; {main}",
    )


@freeze("runtimes", "node-read-fifo")
def read_fifo(stage):
    """A handler in node reads a FIFO by readFileSync. tail has it open for writing and waits for
    more to print."""
    need("tail")
    shop = Shop(stage)
    log = stage.directory / "prices.log"
    log.write_text("apples 3\n")
    fifo = shop.folder / "prices"
    os.mkfifo(fifo)
    # tail ends when its pipe has no reader.
    stage.callback(os.close, os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
    with open(fifo, "wb") as writing:
        tail = stage.start(["tail", "-n", "+1", "-f", log], stdout=writing)

    def reads():
        files = pathlib.Path(f"/proc/{shop.pid}/fd").iterdir()
        return any(os.readlink(link) == str(fifo) for link in files)

    def look():
        return activities(shop.pid), activities(tail.pid), reads()

    visitor, causer, seen = shop.freeze("/prices", reads, look)
    own, writer, reading = seen
    tail.terminate()
    main, writer = must_wait(own, shop.pid), must_wait(writer)
    if "pipe" not in main.waits_in or not reading:
        raise Fault(f"/proc: {main}, has the FIFO: {reading}")
    return Truth(
        text="LongWait; root tail, which waits for more to print",
        victims=(visitor.pid, causer.pid, shop.pid),
        roots=(Root(tail.pid, ("LongWait",)),),
        outside=True,
        frozen=visitor.span,
        witness=f"/proc: {main}; {writer}",
    )


@freeze("runtimes", "node-threadpool")
def threadpool(stage):
    """Four password hashes keep all threads of libuv's pool busy, so that node's event loop, which
    is idle, gets no file read for another client."""
    shop = Shop(stage)
    # More threads than CPUs take so much longer.
    share = min(1.0, len(os.sched_getaffinity(0)) / POOL)
    visitor, causer, found = shop.freeze(
        f"/login/{stage.freeze_s * 1.2 * share}",
        Computing(shop.pid, POOL),
        lambda: activities(shop.pid),
        "/page",
    )
    running = runners(found)
    if len(running) != POOL:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    main = must_wait(found, shop.pid)
    return Truth(
        text="LongRunning; root the threads of libuv's pool",
        victims=(visitor.pid, causer.pid, shop.pid),
        roots=tuple(Root(shop.pid, ("LongRunning",), thread=one.tid) for one in running),
        frozen=visitor.span,
        witness=f"/proc: {len(running)} threads run, {running[0]}; {main}",
    )


@freeze("runtimes", "node-awaits-debugger")
def awaits_debugger(stage):
    """A shell runs a test of node, which was told to wait for a debugger. None attaches, until the test is killed."""
    need("node")
    port, test = free_port(), PROGRAMS / "node" / "totals_test.js"
    stage.start(["node", test]).wait()
    stage.ordinary()
    script = f"node --inspect-brk=127.0.0.1:{port} {test}; echo done"
    shell = stage.program(["sh", "-c", script], stdout=subprocess.PIPE)
    begin = now_ns()
    wait_for("the debugger's port", lambda: accepts_none(port))
    children = pathlib.Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
    [node] = map(int, children.read_text(encoding="ascii").split())
    found = stage.hold(lambda: activities(node))
    words = ["ss", "-Htn", "state", "established", "sport", "=", f":{port}"]
    attached = output_of(words).strip()
    os.kill(node, signal.SIGKILL)
    shell.line()
    frozen = must_last(stage, (begin, now_ns()))
    main = must_wait(found, node)
    if attached or "futex" not in main.waits_in:
        raise Fault(f"ss: {attached!r}; /proc: {main}")
    return Truth(
        text="LongWait; root node's main thread, which waits for a debugger",
        victims=(shell.pid, node),
        roots=(Root(node, ("LongWait",), thread=node),),
        frozen=frozen,
        witness=f"ss: nobody is connected to the debugger's port; /proc: {main}",
        function=r"WaitForFrontendEvent|WaitForConnect",
    )


def accepts_none(port):
    """Whether somebody listens at a port, by the kernel's list: a connection would be a debugger's."""
    return output_of(["ss", "-Htln", "sport", "=", f":{port}"]).strip()
