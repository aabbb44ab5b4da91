"""Python programs: threads that share a lock or the interpreter's own, an event loop, worker
processes, a pipe to a child."""

import os
import pathlib
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
    span_of,
    turns,
    visits,
)
from freezes.sqlite import PYTHON
from stage import Fault, accepts, free_port, need, wait_for

HERE = PROGRAMS / "python"
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def serving(stage, name, *words):
    """Starts a server of ours as the program of the case; gives it and its port."""
    need(PYTHON)
    port = free_port()
    server = stage.program([PYTHON, HERE / name, port, *words], stdout=subprocess.PIPE)
    server.line()
    return server, port


@freeze("runtimes", "python-lock")
def lock(stage):
    """A news reader wants to show its articles while another thread of it holds their
    threading.Lock and sleeps before it tries again to reach its server."""
    need(PYTHON)
    reader = stage.program([PYTHON, HERE / "news_reader.py"], **PIPES)
    reader.line()
    turns(stage, reader, "show")
    reader.tell(f"refresh {length_s(stage)}")
    # It says so when it has the lock.
    holder = int(reader.line())
    reader.tell("show")
    found = stage.hold(lambda: activities(reader.pid))
    main, sleeper = must_wait(found, reader.pid), must_wait(found, holder)
    # By the list of system calls: one waits for a semaphore, the other for time.
    if "futex" not in main.waits_in or "nanosleep" not in sleeper.waits_in:
        raise Fault(f"/proc: {main}; {sleeper}")
    return Truth(
        text="LongWait; root the thread that refreshes, which sleeps",
        victims=(reader.pid,),
        roots=(Root(reader.pid, ("LongWait",), thread=holder),),
        frozen=span_of(stage, reader),
        witness=f"/proc: {main}; {sleeper}",
        function=r"\bwait_before_retry\b",
    )


@freeze("runtimes", "python-gil-regex")
def gil(stage):
    """A request makes a Python web server apply a regular expression that takes seconds. It holds
    the interpreter's lock meanwhile, so that no other request is answered."""
    server, port = serving(stage, "comments.py")
    visits(stage, port)
    computing = Computing(server.pid)
    poster = Client(stage, port, f"/post/{ample_s(stage)}")
    wait_for("the regular expression", computing)
    visitor = Client(stage, port, "/health")
    found = stage.hold(lambda: activities(server.pid))
    running = runners(found)
    if len(running) != 1 or running[0].tid == server.pid:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    must_wait(found, server.pid)
    return Truth(
        text="LongRunning; root the thread that matches, which holds the GIL",
        victims=(visitor.pid, poster.pid, server.pid),
        roots=(Root(server.pid, ("LongRunning",), thread=running[0].tid),),
        frozen=visitor.span,
        witness=f"/proc: {running[0]}",
        function=r"\bstrip_comment\b",
    )


def stopped_nginx(stage):
    """Starts nginx as one process, which another server asks; gives it and its port."""
    need("nginx")
    port, folder = free_port(), stage.directory / "upstream"
    folder.mkdir()
    (folder / "quote").write_text("no news is good news")
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events {}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body;\n"
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
    )
    server = stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    wait_for("nginx", lambda: accepts(port))
    return server, port


@freeze("runtimes", "python-asyncio-urllib")
def asyncio_loop(stage):
    """A handler of an asyncio web server asks nginx, which is stopped, by urllib. The event loop
    waits with it, so that no other request is answered."""
    upstream, upstream_port = stopped_nginx(stage)
    server, port = serving(stage, "quotes.py", upstream_port)
    visits(stage, port)
    visits(stage, port, "/quote")
    os.kill(upstream.pid, signal.SIGSTOP)
    stage.callback(os.kill, upstream.pid, signal.SIGCONT)
    reader = Client(stage, port, "/quote")

    def waits_for_upstream():
        words = ["ss", "-Htnp", "state", "established", "dport", "=", f":{upstream_port}"]
        listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return f"pid={server.pid}," in listed

    wait_for("the request to nginx", waits_for_upstream)
    visitor = Client(stage, port, "/health")

    def look():
        status = pathlib.Path(f"/proc/{upstream.pid}/status").read_text(encoding="ascii")
        return activities(server.pid), "\nState:\tT" in status, waits_for_upstream()

    found, stopped, waiting = stage.hold(look)
    os.kill(upstream.pid, signal.SIGCONT)
    main = must_wait(found, server.pid)
    if not stopped or not waiting:
        raise Fault(f"/proc: nginx stopped: {stopped}; ss: a connection to it: {waiting}")
    return Truth(
        text="LongWait; root nginx, stopped",
        victims=(visitor.pid, reader.pid, server.pid),
        roots=(Root(upstream.pid, ("LongWait",)),),
        frozen=visitor.span,
        witness=f"/proc: nginx is stopped; {main}; ss: it has a connection to nginx",
    )


def freeze_pool(stage, script, function):
    """Freezes a program that waits for the pool of its multiprocessing workers, one of which computes."""
    need(PYTHON)
    program = stage.program([PYTHON, HERE / script], **PIPES)
    program.line()
    turns(stage, program, "0.01")
    program.tell(f"{length_s(stage) * 1.15}")

    def look():
        file = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
        workers = [int(word) for word in file.read_text(encoding="ascii").split()]
        return activities(*workers), activities(program.pid)

    workers, own = stage.hold(look)
    running = runners(workers)
    if len(running) != 1:
        raise Fault(f"/proc: {'; '.join(map(str, workers))}")
    must_wait(own)
    return Truth(
        text="LongRunning; root a worker process",
        victims=(program.pid,),
        roots=(Root(running[0].tid, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {running[0]}; no thread of {program.pid} runs",
        function=function,
    )


@freeze("runtimes", "python-pool")
def pool(stage):
    """A program waits for the pool of its multiprocessing workers, one of which computes."""
    return freeze_pool(stage, "renderer.py", r"\brender_tile\b")


@freeze("runtimes", "python-pool-beside-clock")
def pool_beside_clock(stage):
    """A program waits for the pool of its multiprocessing workers, one of which computes, while a thread of
    it sleeps again and again for a moment."""
    return freeze_pool(stage, "statements.py", r"\bwrite_statement\b")


@freeze("runtimes", "python-popen-wait")
def popen_wait(stage):
    """A program waits until find has ended before it reads what find printed, and find waits for
    room in the pipe. It lasts until somebody ends find."""
    need(PYTHON, "find")
    program = stage.program([PYTHON, HERE / "lister.py"], **PIPES)
    program.line()
    turns(stage, program, str(stage.directory))
    # Thousands of names: more than a pipe holds.
    program.tell("/usr/share")

    def look():
        file = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
        find = int(file.read_text(encoding="ascii"))
        pipe = os.readlink(f"/proc/{find}/fd/1")
        folder = pathlib.Path(f"/proc/{program.pid}/fd")
        read = pipe.startswith("pipe:") and pipe in {os.readlink(link) for link in folder.iterdir()}
        return find, activities(find), activities(program.pid), read

    find, writer, reader, read = stage.hold(look)
    os.kill(find, signal.SIGTERM)
    writer, reader = must_wait(writer), must_wait(reader)
    if "pipe" not in writer.waits_in or "wait" not in reader.waits_in or not read:
        raise Fault(f"/proc: {writer}; {reader}; have the same pipe: {read}")
    return Truth(
        text="Circular: the program waits for the end of find, find for room in its pipe",
        victims=(program.pid, find),
        roots=(Root(program.pid, ("Circular",)), Root(find, ("Circular",))),
        frozen=span_of(stage, program),
        witness=f"/proc: {writer}; {reader}",
        cycle=True,
    )


@freeze("runtimes", "python-import-lock")
def import_lock(stage):
    """A package starts threads as it is imported and joins them. They import modules of the same package, and
    wait for its lock, which the importing thread has, until the program is killed."""
    need(PYTHON)
    exporter = stage.program([PYTHON, HERE / "exporter.py"], **PIPES)
    exporter.line()
    turns(stage, exporter, "json")
    exporter.tell("all")
    begin = int(exporter.line())
    found = stage.hold(lambda: activities(exporter.pid))
    exporter.signal(signal.SIGKILL)
    frozen = must_last(stage, (begin, exporter.ended()))
    must_wait(found)
    if len(found) != 3 or any("futex" not in one.waits_in for one in found):
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="Circular: the main thread joins a thread that waits for the import lock it holds",
        victims=(exporter.pid,),
        roots=tuple(Root(exporter.pid, ("Circular",), thread=one.tid) for one in found),
        frozen=frozen,
        witness=f"the package's source; /proc: {'; '.join(map(str, found))}",
        cycle=True,
    )
