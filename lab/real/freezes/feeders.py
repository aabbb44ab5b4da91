"""Databases and caches between two programs: one waits by way of them for what the other does."""

import subprocess

from case import Root, Truth, freeze
from freezes.neighbours import neighbours
from freezes.postgres import PROGRAMS, PYTHON, Server
from freezes.procfs import cpu_s, must_wait_in, until_waiting
from freezes.python_runtime import HERE
from freezes.redis import Server as Redis
from freezes.runtimes import activities, length_s, must_last, must_wait, runners, span_of, turns
from freezes.tcp import PROGRAMS as SERVERS
from freezes.web import Client, computing
from stage import Fault, accepts, free_port, need, now_ns, read_line, wait_for

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


@freeze("databases", "postgres-copy-feeder")
def copy_feeder(stage):
    """An application reads a table that psql is loading anew in one transaction: psql waits for the
    rest of the list at its stdin, where a program still computes prices."""
    neighbours(stage)
    server = Server(stage)
    server.ask("CREATE TABLE prices (item int PRIMARY KEY, cents int)")
    server.ask("CREATE TABLE visits (item int)")
    server.ask("INSERT INTO prices VALUES (1, 100)")
    # One that is connected and does nothing.
    server.client("pg_idle")
    reader = stage.program(server.client_words("pg_reader"), **PIPES)
    backend = int(reader.line())
    server.prefer()
    reader.tell("repeat SELECT sum(cents) FROM prices")
    stage.ordinary()
    checked = stage.directory / "checked"
    feeder = stage.start(
        [PYTHON, PROGRAMS / "db_price_list.py", checked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    load = ["-1", "-c", "TRUNCATE prices", "-c", r"\copy prices from pstdin"]
    psql = stage.start([*server.psql_words(), *load], stdin=feeder.stdout)
    read_line(feeder.stderr)
    loading = wait_for("the lock", lambda: server.blocked_by(backend))
    server.prefer()
    before, begin = cpu_s(feeder.pid), now_ns()
    channel = stage.hold(lambda: must_wait_in(psql.pid, "pipe"))
    blockers = server.blocked_by(backend)
    used, seconds = cpu_s(feeder.pid) - before, (now_ns() - begin) / 1e9
    checked.touch()
    frozen = tuple(map(int, reader.line().split()))
    if blockers != loading or len(loading) != 1 or used < 0.3 * seconds:
        raise Fault(f"the server says: blocked by {blockers}; the feeder ran for {used:.1f} s")
    return Truth(
        text="LongRunning in compute_prices; root price_list, whose pipe psql reads",
        victims=(reader.pid, backend, psql.pid, *loading),
        roots=(Root(feeder.pid, ("LongRunning",)),),
        frozen=must_last(stage, frozen),
        witness=f"pg_blocking_pids: {loading[0]}; /proc: psql waits in {channel}, price_list had "
        f"the CPU for {used:.1f} s",
        function=r"\bcompute_prices\b",
    )


@freeze("databases", "redis-job-queue")
def job_queue(stage):
    """A web site has a picture scaled: the job goes through a list in Redis to a worker, which
    computes, and the answer comes back through another list."""
    neighbours(stage)
    server = Redis(stage)
    words = [PYTHON, HERE / "photos.py", server.socket]
    # Others wait for jobs of other kinds.
    workers = [stage.start([*words, "worker", jobs], **PIPES) for jobs in ("scale", "mail", "scan")]
    for worker in workers:
        read_line(worker.stdout)
    site = stage.program([*words, "site", "scale"], **PIPES)
    site.line()
    turns(stage, site, "0.01")
    site.tell(f"{length_s(stage) * 1.1}")
    found = stage.hold(lambda: activities(site.pid, server.pid, *(one.pid for one in workers)))
    running = runners(found)
    if [one.tid for one in running] != [workers[0].pid]:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning in scale_picture; root a worker behind a list in Redis",
        victims=(site.pid,),
        roots=(Root(workers[0].pid, ("LongRunning",)),),
        frozen=span_of(stage, site),
        witness=f"/proc: {running[0]}; {must_wait(found, site.pid)}",
        function=r"\bscale_picture\b",
    )


@freeze("web", "varnish-coalesced")
def coalesced(stage):
    """Two visitors want the same page of Varnish, which asks the web server for it once: the second
    waits with the first while the web server computes."""
    need("varnishd", "curl")
    neighbours(stage)
    port, behind, done = free_port(), free_port(), stage.directory / "done"
    server = stage.start([PYTHON, SERVERS / "cpu_report_server.py", behind, done])
    wait_for("the web server", lambda: accepts(behind))
    stage.start(
        ["varnishd", "-F", "-j", "none", "-n", stage.directory / "varnish", "-a",
         f"127.0.0.1:{port}", "-b", f"127.0.0.1:{behind}", "-s", "malloc,16m",
         "-p", "first_byte_timeout=120", "-T", "none"]
    )
    wait_for("Varnish", lambda: accepts(port))
    client = Client(stage, port, "/page")
    stage.ordinary()
    first = stage.start(["curl", "-sS", "-o", "/dev/null", f"http://127.0.0.1:{port}/report"])
    before = cpu_s(server.pid)
    wait_for("the report", lambda: cpu_s(server.pid) > before + 0.1)
    client.ask("/report")
    # Not in its pause between two pages any more.
    until_waiting(client.pid)
    said = stage.hold(lambda: computing(server.pid))
    done.touch()
    return Truth(
        text="LongRunning in render_report; root reports, the web server behind Varnish",
        victims=(client.pid, first.pid),
        roots=(Root(server.pid, ("LongRunning",)),),
        frozen=must_last(stage, client.slow_answer()),
        witness=f"/proc: {said}",
        function=r"\brender_report\b",
    )
