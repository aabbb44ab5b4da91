"""Pipes and terminals: a consumer that takes nothing, a background process that keeps a pipe open,
a terminal that is not read, a server of terminals that is stopped."""

import contextlib
import os
import signal
import socket
import subprocess

from case import Root, Truth, freeze
from freezes.procfs import (
    children,
    moved,
    must_be_stopped,
    must_wait_in,
    pipes,
    running,
    state,
    until_named,
    until_still,
)
from freezes.tcp import PROGRAMS, PYTHON
from stage import Fault, need, now_ns, output_of, read_line, wait_for

LINES_A_SECOND = 5000


def end_of(pid):
    """Ends a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def connect(path):
    """Connects to a socket, which ends a wait for that."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"here\n")


@freeze("shells", "pipe-slow-consumer")
def slow_consumer(stage):
    """cat writes a log into a pipe, whose reader computes and takes nothing: the pipe is full."""
    need(PYTHON, "cat")
    log = stage.directory / "access.log"
    line = "10.0.0.1 - - GET /order/17 200 1234\n"
    with log.open("w") as file:
        file.write(line * int(LINES_A_SECOND * stage.setting.before_s))
        file.write("month\n")
        file.write(line * 100_000)
    reading, writing = os.pipe()
    closed = stage.directory / "closed"
    importer = stage.start(
        [PYTHON, PROGRAMS / "sh_importer.py", closed],
        stdin=reading,
        stdout=subprocess.PIPE,
    )
    os.close(reading)
    cat = stage.program(["cat", str(log)], stdout=writing)
    os.close(writing)
    read_line(importer.stdout)
    channel = stage.hold(lambda: must_wait_in(cat.pid, "pipe_write"))
    closed.touch()
    frozen = tuple(map(int, read_line(importer.stdout).split()))
    return Truth(
        text="LongRunning in close_month; root importer, which does not read the pipe",
        victims=(cat.pid,),
        roots=(Root(importer.pid, ("LongRunning",)),),
        frozen=frozen,
        witness=f"/proc: cat waits in {channel}; the importer's own clock",
        function="close_month",
    )


@freeze("shells", "pipe-kept-open")
def kept_open(stage):
    """A shell script reads what the start of a service prints, and the service, in the background,
    has inherited the pipe: the end of it does not come."""
    need("bash", "socat")
    path = stage.directory / "service"
    script = stage.program(["bash", str(PROGRAMS / "sh_deploy.sh"), str(path)])
    begin = until_named(script.pid, "bash")
    wait_for("the service", path.exists)
    service = running("socat", path)
    channel = stage.hold(lambda: must_wait_in(script.pid, "pipe_read"))
    shared = pipes(script.pid) & pipes(service)
    if not shared:
        raise Fault(f"/proc: {service} has no pipe of {script.pid} open")
    connect(path)
    end = script.ended()
    return Truth(
        text="LongWait for the end of a pipe; root socat, the service that has it open",
        victims=(script.pid,),
        roots=(Root(service, ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: bash waits in {channel}; {service} has {shared.pop()} open too",
    )


@freeze("shells", "prove-left-server")
def left_server(stage):
    """prove runs a test that starts memcached in the background and ends. The test's output has no end while memcached,
    which nobody asks for anything, has it open."""
    need("prove", "memcached")
    tests, path = stage.directory / "t", stage.directory / "cache"
    tests.mkdir()
    (tests / "sum.t").write_text('print "1..1\\n"; print 2 + 2 == 4 ? "ok 1\\n" : "not ok 1\\n";\n')
    (tests / "cache.t").write_text(
        f'print "1..1\\n"; system("memcached -u root -s {path} &");\n'
        f'for (1 .. 50) {{ last if -S "{path}"; select undef, undef, undef, 0.1 }}\n'
        f'print -S "{path}" ? "ok 1\\n" : "not ok 1\\n";\n'
    )
    prove = stage.program(["prove", tests])
    until_named(prove.pid, "prove")
    wait_for("memcached", path.exists)
    server = running("memcached", path)
    stage.callback(end_of, server)
    wait_for("the test's end", lambda: [state(one) for one in children(prove.pid)] == ["Z"])
    begin = now_ns()
    channel = stage.hold(lambda: must_wait_in(prove.pid))
    shared = pipes(prove.pid) & pipes(server)
    if not shared:
        raise Fault(f"/proc: {server} has no pipe of {prove.pid} open")
    os.kill(server, signal.SIGTERM)
    end = prove.ended()
    return Truth(
        text="LongWait for the end of a pipe; root memcached, which a test has left behind",
        victims=(prove.pid,),
        roots=(Root(server, ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"/proc: prove waits in {channel}, its test is a zombie; "
        f"{server} has {shared.pop()} open too",
    )


@freeze("shells", "terminal-stopped")
def terminal_stopped(stage):
    """pv shows a file on a terminal whose program, socat, is stopped and reads nothing."""
    need("pv", "socat")
    text, path = stage.directory / "text", stage.directory / "tty"
    text.write_bytes(b"some text on some line\n" * 1_000_000)
    shown = f"CREATE:{stage.directory}/screen"
    terminal = stage.start(["socat", "-u", f"PTY,link={path},raw", shown])
    wait_for("the terminal", path.exists)
    # Not to become the lab's own terminal.
    screen = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    try:
        pv = stage.program(["pv", "-q", "-L", "400k", str(text)], stdout=screen)
    finally:
        os.close(screen)
    until_named(pv.pid, "pv")
    stage.ordinary()
    os.kill(terminal.pid, signal.SIGSTOP)
    begin = until_still(pv.pid)

    def look():
        must_be_stopped(terminal.pid)
        return must_wait_in(pv.pid), moved(pv.pid, "wchar")

    channel, written = stage.hold(look)
    if moved(pv.pid, "wchar") > written:
        raise Fault("/proc: pv has gone on writing")
    os.kill(terminal.pid, signal.SIGCONT)
    end = now_ns()
    return Truth(
        text="LongWait for room in a terminal; root socat, stopped",
        victims=(pv.pid,),
        roots=(Root(terminal.pid, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: {terminal.pid} is stopped; pv writes nothing and waits in {channel}",
    )


@freeze("shells", "tmux-server-stopped")
def tmux_stopped(stage):
    """tmux asks its server for the list of sessions, and the server is stopped."""
    need("tmux")
    path = stage.directory / "tmux"
    client = ["tmux", "-S", str(path), "-f", "/dev/null"]
    server = stage.start([*client, "-D"])
    wait_for("tmux", path.exists)
    output_of([*client, "new-session", "-d", "-s", "work", "cat"], env=stage.environment)
    os.kill(server.pid, signal.SIGSTOP)
    asking = stage.program([*client, "list-sessions"])
    begin = until_named(asking.pid, "tmux: client")
    stage.hold(lambda: must_be_stopped(server.pid))
    channel = must_wait_in(asking.pid, "poll")
    os.kill(server.pid, signal.SIGCONT)
    end = asking.ended()
    return Truth(
        text="LongWait for an answer; root tmux's server, stopped",
        victims=(asking.pid,),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: {server.pid} is stopped; the client waits in {channel}",
    )
