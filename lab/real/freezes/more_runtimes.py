"""Programs of several runtimes that wait for their own threads, workers and children, which wait
for somebody else in turn."""

import os
import pathlib
import resource
import subprocess

from case import Root, Truth, freeze
from freezes.go_runtime import program_called
from freezes.java_runtime import starting, thread_called
from freezes.neighbours import neighbours
from freezes.procfs import children, cpu_s, must_wait_in, until_descendant, until_named
from freezes.python_runtime import HERE, PIPES
from freezes.runtimes import (
    PROGRAMS,
    Client,
    Computing,
    activities,
    ample_s,
    length_s,
    must_wait,
    runners,
    span_of,
    turns,
    visits,
)
from freezes.shared_things import TRIAL
from freezes.sqlite import PYTHON
from freezes.web import computing, connections
from stage import Fault, free_port, need, output_of, read_line, wait_for


class Upstream:
    """A server that sleeps before it answers."""

    def __init__(self, stage):
        need(PYTHON, "ss")
        self.port = free_port()
        words = [PYTHON, HERE / "slow_upstream.py", self.port]
        self.process = stage.start(words, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        read_line(self.process.stdout)

    def sleeper(self):
        """The thread that sleeps; None if there is none."""
        found = [one for one in activities(self.pid, look_s=0.1) if "nanosleep" in one.waits_in]
        return found[0] if found else None

    def wait_for_request(self):
        """Waits until it has been asked."""
        wait_for("the request", self.sleeper)

    def look(self, pid):
        """The thread that sleeps over a request of the process; a Fault if there is none."""
        one, ends = self.sleeper(), connections(self.port)[1]
        if one is None or pid not in ends:
            raise Fault(f"/proc: {one} sleeps; ss: {ends} have a connection to {self.pid}")
        return one

    def truth(self, one, **more):
        """The truth of a freeze for which it is to blame."""
        return Truth(
            roots=(Root(self.pid, ("LongWait",), thread=one.tid),),
            function=r"\blimit_rate\b",
            **more,
        )


@freeze("runtimes", "java-lock-upstream")
def java_lock(stage):
    """A Java program wants a ReentrantLock, whose owner reads from the connection to a server that
    sleeps before it answers."""
    neighbours(stage)
    hotel = Upstream(stage)
    program = starting(stage, "Reservations", f"-Dhotel.port={hotel.port}")
    turns(stage, program, "reserve")
    program.tell(f"confirm {length_s(stage)}")
    program.line()
    hotel.wait_for_request()
    program.tell("reserve")
    found, one = stage.hold(lambda: (activities(program.pid), hotel.look(program.pid)))
    owner = thread_called(found, "Confirmer")
    return hotel.truth(
        one,
        text="LongWait; root the hotel's server, which sleeps, behind the owner of a ReentrantLock",
        victims=(program.pid,),
        frozen=span_of(stage, program),
        witness=f"/proc: {owner}; {one}; ss: they have a connection",
    )


@freeze("runtimes", "java-queue-full")
def java_queue(stage):
    """A Java program puts parcels into a queue that is full, for both threads of its pool weigh."""
    neighbours(stage)
    program = starting(stage, "Parcels")
    program.tell("0.5")
    program.line()
    wait_for("the parcel", lambda: cpu_s(program.pid) > 0.5)
    turns(stage, program, "0.001")
    # Two are weighed and four wait; the seventh has room when the first is done.
    program.tell(f"many {length_s(stage) * 1.15}")
    found = stage.hold(lambda: activities(program.pid))
    scales = [one for one in found if one.name == "scales"]
    main = [one for one in found if one.name == "java" and one.ready < 0.2]
    if len(scales) != 2 or min(one.ready for one in scales) < 0.7 or not main:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning in weighParcel; root the two threads of the pool",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongRunning",), thread="^scales$"),),
        frozen=span_of(stage, program),
        witness=f"/proc: {scales[0]}; {scales[1]}",
        function=r"\bweighParcel\b",
    )


class Catalog:
    """catalog.js as the program of the case."""

    def __init__(self, stage, supplier_port=0):
        need("node")
        self.stage, self.port = stage, free_port()
        words = ["node", "--perf-basic-prof", PROGRAMS / "node" / "catalog.js", self.port]
        self.program = stage.program(
            [*words, supplier_port], stdout=subprocess.PIPE, cwd=stage.directory
        )
        self.pid = self.program.pid
        stage.callback(pathlib.Path(f"/tmp/perf-{self.pid}.map").unlink, missing_ok=True)
        self.program.line()


@freeze("runtimes", "node-atomics-wait")
def atomics_wait(stage):
    """A handler in node has a worker thread compute an index and waits for it with Atomics.wait, so
    that no other request is answered."""
    neighbours(stage)
    catalog = Catalog(stage)
    visits(stage, catalog.port)
    begun = Computing(catalog.pid)
    causer = Client(stage, catalog.port, f"/index/{length_s(stage) * 1.15}")
    wait_for("the index", begun)
    visitor = Client(stage, catalog.port, "/health")
    found = stage.hold(lambda: activities(catalog.pid))
    running, main = runners(found), must_wait(found, catalog.pid)
    if len(running) != 1:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning in computeIndex; root a worker thread of node's",
        victims=(visitor.pid, causer.pid, catalog.pid),
        roots=(Root(catalog.pid, ("LongRunning",), thread=running[0].tid),),
        frozen=visitor.span,
        witness=f"/proc: {running[0]}; {main}",
        function=r"\bcomputeIndex\b",
    )


@freeze("web", "node-agent-sockets")
def agent_sockets(stage):
    """A request to node waits until its agent, which opens one connection to a supplier only, has
    got a long answer for somebody else. node itself is idle."""
    neighbours(stage)
    supplier = Upstream(stage)
    catalog = Catalog(stage, supplier.port)
    visits(stage, catalog.port, "/ask/0")
    causer = Client(stage, catalog.port, f"/ask/{length_s(stage)}")
    supplier.wait_for_request()
    visitor = Client(stage, catalog.port, "/ask/0")
    found, one = stage.hold(lambda: (activities(catalog.pid), supplier.look(catalog.pid)))
    main = must_wait(found, catalog.pid)
    # The visitor came a moment after the causer.
    return supplier.truth(
        one,
        text="LongWait; root the supplier's server, which sleeps, behind node's only connection",
        victims=(visitor.pid, causer.pid),
        frozen=visitor.span,
        witness=f"/proc: {main}; {one}; ss: they have a connection",
    )


@freeze("runtimes", "go-wait-group")
def wait_group(stage):
    """A Go program waits with a WaitGroup for two goroutines, one of which waits for xz."""
    need("xz", "tar")
    neighbours(stage)
    folder = stage.directory / "mirror"
    folder.mkdir()
    small, large = folder / "small", folder / "large"
    small.write_bytes(os.urandom(2000))
    large.write_bytes(os.urandom(TRIAL))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(["xz", "--keep", "--force", "-9", large])
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    large.write_bytes(os.urandom(int(TRIAL * ample_s(stage) / took)))
    program = stage.program([program_called("mirror")], **PIPES)
    program.line()
    turns(stage, program, str(small))
    program.tell(str(large))
    xz = until_descendant(program.pid, "xz")
    own, packing = stage.hold(lambda: (activities(program.pid), activities(xz)))
    must_wait(own)
    running = runners(packing)
    return Truth(
        text="LongRunning; root xz, for which a goroutine waits",
        victims=(program.pid,),
        roots=(Root(xz, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {running[0]}; no thread of {program.pid} runs",
    )


@freeze("runtimes", "ruby-sized-queue")
def sized_queue(stage):
    """A Ruby program puts mails into a SizedQueue that is full, for the thread that delivers them
    waits for a server that sleeps."""
    need("ruby")
    neighbours(stage)
    server = Upstream(stage)
    program = stage.program(["ruby", PROGRAMS / "ruby" / "mailer.rb", server.port], **PIPES)
    program.line()
    turns(stage, program, "mail")
    program.tell(f"mails {length_s(stage)}")
    server.wait_for_request()
    found, one = stage.hold(lambda: (activities(program.pid), server.look(program.pid)))
    return server.truth(
        one,
        text="LongWait; root the mail server, which sleeps, behind the thread that empties a queue",
        victims=(program.pid,),
        frozen=span_of(stage, program),
        witness=f"/proc: {must_wait(found)}; {one}; ss: they have a connection",
    )


@freeze("runtimes", "python-process-lock")
def process_lock(stage):
    """A Python program waits for a worker process, which wants a multiprocessing.Lock that another
    worker has while it asks a server that sleeps."""
    neighbours(stage)
    bank = Upstream(stage)
    program = stage.program([PYTHON, HERE / "tickets.py", bank.port], **PIPES)
    program.line()
    wait_for("two workers", lambda: len(children(program.pid)) == 2)
    workers = children(program.pid)
    for worker, name in zip(workers, ("refunds", "sales")):
        until_named(worker, name)
    turns(stage, program, "sell")
    program.tell(f"refund {length_s(stage)}")
    bank.wait_for_request()
    program.tell("sell")

    def look():
        places = must_wait_in(program.pid, "pipe"), must_wait_in(workers[1], "futex")
        return places, bank.look(workers[0])

    places, one = stage.hold(look)
    return bank.truth(
        one,
        text="LongWait; root the bank's server, which sleeps, behind the worker that has the lock",
        victims=(program.pid, workers[1], workers[0]),
        frozen=span_of(stage, program),
        witness=f"/proc: {program.pid} waits in {places[0]}, {workers[1]} in {places[1]}; {one}",
    )


@freeze("runtimes", "python-log-pipe")
def log_pipe(stage):
    """A Python program logs an order and waits for the lock of its log, whose owner waits for room
    in the pipe to a program that packs what it has got so far."""
    need(PYTHON)
    neighbours(stage)
    shipped, told = stage.directory / "shipped", stage.directory / "told"
    os.mkfifo(told)
    stage.environment["TOLD"] = str(told)
    reading, writing = os.pipe()
    shipper = stage.start([PYTHON, HERE / "log_shipper.py", shipped], stdin=reading)
    os.close(reading)
    program = stage.program(
        [PYTHON, HERE / "gateway.py"], stdin=subprocess.PIPE, stderr=writing
    )
    os.close(writing)
    program.stdout = open(told, "rb", buffering=0)
    stage.callback(program.stdout.close)
    program.line()
    turns(stage, program, "1")
    before = cpu_s(shipper.pid)
    shipped.with_suffix(".pack").touch()
    wait_for("the shipper", lambda: cpu_s(shipper.pid) > before + 0.1)

    def blocked():
        return any("pipe_write" in one.waits_in for one in activities(program.pid, look_s=0.1))

    wait_for("a full pipe", blocked)
    program.tell("2")
    found, said = stage.hold(lambda: (activities(program.pid), computing(shipper.pid)))
    shipped.touch()
    main = must_wait(found, program.pid)
    writer = [one for one in found if "pipe_write" in one.waits_in]
    if "futex" not in main.waits_in or len(writer) != 1:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning in pack_lines; root log_shipper, which does not read the pipe",
        victims=(program.pid,),
        roots=(Root(shipper.pid, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {main}; {writer[0]}; {said}",
        function=r"\bpack_lines\b",
    )


@freeze("runtimes", "python-pool-own-tasks")
def own_tasks(stage):
    """Both threads of a ThreadPoolExecutor wait for tasks that only they could do, until their
    patience ends. The main thread waits for them."""
    need(PYTHON)
    neighbours(stage)
    program = stage.program([PYTHON, HERE / "previews.py"], **PIPES)
    program.line()
    turns(stage, program, "page")
    program.tell(f"book {length_s(stage)}")
    found = stage.hold(lambda: activities(program.pid))
    must_wait(found)
    threads = [one for one in found if one.tid != program.pid]
    if len(threads) != 2:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    # They wait for themselves and each other, which only the program knows.
    return Truth(
        text="LongWait in preview_book; root the two threads of the pool",
        victims=(program.pid,),
        roots=tuple(Root(program.pid, ("LongWait",), thread=one.tid) for one in threads),
        frozen=span_of(stage, program),
        witness=f"/proc: {threads[0]}; {threads[1]}; no thread runs",
        function=r"\bpreview_book\b",
    )
