"""What several share and one has: a pool of connections, a server that takes one after the other, a
queue of connections, a semaphore."""

import os
import resource
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.firewall import Answers
from freezes.neighbours import neighbours
from freezes.procfs import cpu_s, must_wait_in, until_descendant, until_waiting
from freezes.python_runtime import HERE, PIPES
from freezes.runtimes import (
    PROGRAMS,
    activities,
    ample_s,
    length_s,
    must_wait,
    runners,
    span_of,
    turns,
)
from freezes.sqlite import PYTHON
from freezes.web import computing, connections
from stage import Fault, free_port, need, output_of, read_line, wait_for

PERL = PROGRAMS / "perl"
TRIAL = 1 << 20


@freeze("network", "http-pool-exhausted")
def http_pool(stage):
    """A Python program asks a shop for a price, and has to wait for the only connection of its
    pool, over which another thread of it waits for a long answer."""
    need(PYTHON, "ss")
    neighbours(stage)
    port = free_port()
    shop = stage.start([PYTHON, HERE / "slow_upstream.py", port], stdout=subprocess.PIPE)
    read_line(shop.stdout)
    program = stage.program([PYTHON, HERE / "price_watch.py", port], **PIPES)
    program.line()
    turns(stage, program, "show")
    program.tell(f"sync {length_s(stage)}")

    def asked():
        return any("nanosleep" in one.waits_in for one in activities(shop.pid))

    wait_for("the request", asked)
    program.tell("show")

    def look():
        return activities(program.pid), activities(shop.pid), connections(port)[1]

    own, others, ends = stage.hold(look)
    main = must_wait(own, program.pid)
    sleeping = [one for one in others if "nanosleep" in one.waits_in]
    if "futex" not in main.waits_in or len(sleeping) != 1 or program.pid not in ends:
        raise Fault(f"/proc: {main}; {'; '.join(map(str, others))}; ss: {ends}")
    return Truth(
        text="LongWait; root the shop's server, which sleeps, behind the only connection of a pool",
        victims=(program.pid,),
        roots=(Root(shop.pid, ("LongWait",), thread=sleeping[0].tid),),
        frozen=span_of(stage, program),
        witness=f"/proc: {main}; {sleeping[0]}; ss: they have a connection",
        function=r"\blimit_rate\b",
    )


@freeze("network", "tls-silent-client")
def silent_client(stage):
    """curl asks a web site behind TLS for one page after the other. Then a probe connects, says
    nothing, and the site waits for it to begin the handshake."""
    need(PYTHON, "openssl", "curl", "socat", "ss")
    neighbours(stage)
    port, certificate = free_port(), stage.directory / "site.pem"
    output_of(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", certificate, "-out", stage.directory / "only.pem"]
    )
    with certificate.open("a") as file:
        file.write((stage.directory / "only.pem").read_text())
    site = stage.start([PYTHON, HERE / "tls_site.py", port, certificate], stdout=subprocess.PIPE)
    read_line(site.stdout)
    url = f"https://127.0.0.1:{port}/page?[1-100000]"
    words = ["curl", "-ksSN", "--rate", "10/s", "-w", "%{http_code}\n", url]
    curl = stage.program(words, stdout=subprocess.PIPE)
    curl.line()
    answers = Answers(curl.stdout)
    stage.ordinary()
    probe = stage.start(["socat", "-u", f"TCP:127.0.0.1:{port}", "OPEN:/dev/null"])
    until_waiting(probe.pid)

    def look():
        return must_wait_in(site.pid), connections(port)[1]

    channel, ends = stage.hold(look)
    probe.send_signal(signal.SIGTERM)
    held = int(stage.freeze_s * 0.8e9)

    def gap():
        begin, end = answers.longest_gap()
        return (begin, end) if end - begin > held else None

    frozen = wait_for("an answer after the freeze", gap)
    if not {probe.pid, site.pid} <= ends:
        raise Fault(f"ss: {ends} have a connection to the site")
    return Truth(
        text="LongWait for a handshake; root socat, which has connected and says nothing",
        victims=(curl.pid, site.pid),
        roots=(Root(probe.pid, ("LongWait",)),),
        outside=True,
        frozen=frozen,
        witness=f"/proc: the site waits in {channel}; ss: it is connected to {probe.pid}",
    )


@freeze("network", "unix-socket-backlog")
def socket_backlog(stage):
    """A Perl program connects to the socket of a print spooler, which sets a book in type and takes
    nobody, while two others wait in its queue."""
    need(PYTHON, "perl")
    neighbours(stage)
    path, printed = stage.directory / "spool", stage.directory / "printed"
    spool = stage.start([PYTHON, HERE / "spool.py", path, printed], stdout=subprocess.PIPE)
    read_line(spool.stdout)
    words = ["perl", PERL / "print_job.pl", path]
    others = [stage.start([*words, kind], **PIPES) for kind in ("book", "draft", "draft")]
    for other in others:
        read_line(other.stdout)
    program = stage.program([*words, "draft"], **PIPES)
    program.line()
    turns(stage, program, "draft")
    before = cpu_s(spool.pid)
    for other in others:
        other.stdin.write(b"job\n")
        wait_for("the book", lambda: cpu_s(spool.pid) > before + 0.1)
        until_waiting(other.pid, "unix")
    program.tell("draft")
    seen = stage.hold(lambda: (must_wait_in(program.pid, "unix"), computing(spool.pid)))
    printed.touch()
    return Truth(
        text="LongRunning in set_in_type; root spool, which accepts nobody",
        victims=(program.pid, *(other.pid for other in others)),
        roots=(Root(spool.pid, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {program.pid} waits in {seen[0]}; {seen[1]}",
        function=r"\bset_in_type\b",
    )


@freeze("runtimes", "perl-semaphore")
def semaphore(stage):
    """A Perl program wants to number a bill, and waits for the SysV semaphore of another, which
    waits for xz to pack all bills."""
    need("perl", "xz", "ipcs", "ipcrm")
    neighbours(stage)
    bills = stage.directory / "bills"
    bills.write_bytes(os.urandom(TRIAL))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(["xz", "--keep", "--force", "-9", bills])
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    bills.write_bytes(os.urandom(int(TRIAL * ample_s(stage) / took)))
    key = str(0x51000000 + os.getpid() % 0xFFFFFF)
    stage.callback(subprocess.run, ["ipcrm", "-S", key], capture_output=True, check=False)
    words = ["perl", PERL / "billing.pl", key, bills]
    archive = stage.start(words, **PIPES)
    read_line(archive.stdout)
    program = stage.program(words, **PIPES)
    program.line()
    turns(stage, program, "bill")
    archive.stdin.write(b"archive\n")
    xz = until_descendant(archive.pid, "xz")
    program.tell("bill")

    def look():
        return must_wait_in(program.pid, "sem"), must_wait_in(archive.pid, "wait"), activities(xz)

    place, parent, found = stage.hold(look)
    running = runners(found)
    return Truth(
        text="LongRunning; root xz, for which the one that has the semaphore waits",
        victims=(program.pid, archive.pid),
        roots=(Root(xz, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {program.pid} waits in {place}, {archive.pid} in {parent}; {running[0]}",
    )
