"""Servers that are stopped while a client waits for their answer: a web server's worker, a server
behind a proxy, a system log."""

import os
import pathlib
import signal
import subprocess
import time

from case import Root, Truth, freeze
from freezes.firewall import Answers
from freezes.procfs import children, must_be_stopped, until_still, wait_channel
from freezes.tcp import PROGRAMS, PYTHON
from stage import CannotRun, Fault, accepts, free_port, need, now_ns, output_of, wait_for

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


def bytes_waiting(port):
    """How many bytes the program at the server's end of connections to a port has not read."""
    lines = output_of(["ss", "-tnH", "sport", "=", f":{port}"]).splitlines()
    return sum(int(line.split()[1]) for line in lines)


class Stopped:
    """A process that is stopped by a signal."""

    def __init__(self, pid):
        self.pid = pid

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def look(self):
        """What says that it is stopped."""
        must_be_stopped(self.pid)
        return f"/proc: {self.pid} is stopped"


class Paused:
    """A process that the control group of the freezer holds, as a container is paused."""

    def __init__(self, stage, pid):
        if os.geteuid() != 0 or not (FREEZER / "cgroup.procs").exists():
            raise CannotRun("there is no freezer")
        self.path = FREEZER / f"hangdog-real-{os.getpid()}"
        self.path.mkdir()
        stage.callback(self._remove)
        (self.path / "cgroup.procs").write_text(str(pid))

    def _remove(self):
        """The server has not ended yet: it goes back to where it came from."""
        self.go_on()
        for pid in (self.path / "cgroup.procs").read_text().split():
            (FREEZER / "cgroup.procs").write_text(pid)
        self.path.rmdir()

    def stop(self):
        (self.path / "freezer.state").write_text("FROZEN")

    def go_on(self):
        (self.path / "freezer.state").write_text("THAWED")

    def look(self):
        """What says that it is frozen."""
        seen = (self.path / "freezer.state").read_text().strip()
        if seen != "FROZEN":
            raise Fault(f"freezer.state: {seen}")
        return f"freezer.state: {seen}"


def ask_while_stopped(stage, client, server, port):
    """Stops a server, which answers `client` many times a second on a port, for a while. Gives
    when the client was frozen, and what was seen of that."""
    client.line()
    answers = Answers(client.stdout)
    stage.ordinary()
    server.stop()
    seen, unread = stage.hold(lambda: (server.look(), bytes_waiting(port)))
    server.go_on()
    held = int(stage.freeze_s * 0.8e9)

    def gap():
        begin, end = answers.longest_gap()
        return (begin, end) if end - begin > held else None

    frozen = wait_for("an answer after the freeze", gap)
    if not unread:
        raise Fault("ss: the server has no request to read")
    return frozen, f"{seen}; ss: {unread} bytes of a request unread"


@freeze("network", "nginx-worker-stopped")
def worker_stopped(stage):
    """curl asks nginx for one page after the other; then the worker that has its connection is
    stopped."""
    need("nginx", "curl", "ss")
    folder, port = stage.directory / "nginx", free_port()
    (folder / "site").mkdir(parents=True)
    (folder / "site" / "index.html").write_text("<p>welcome</p>\n")
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n"
        "events {}\n"
        f"http {{ access_log off; keepalive_requests 100000; client_body_temp_path {folder}/body;\n"
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}/site; }} }}\n"
    )
    for path in (folder, folder / "site"):
        path.chmod(0o755)
    nginx = stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    wait_for("nginx", lambda: accepts(port))
    worker = wait_for("the worker", lambda: children(nginx.pid))[0]
    url = f"http://127.0.0.1:{port}/index.html?[1-100000]"
    words = ["curl", "-sSN", "--rate", "20/s", "-w", "%{http_code}\n", url]
    curl = stage.program(words, stdout=subprocess.PIPE)
    frozen, witness = ask_while_stopped(stage, curl, Stopped(worker), port)
    return Truth(
        text="LongWait for a page; root nginx's worker, stopped",
        victims=(curl.pid,),
        roots=(Root(worker, ("LongWait",)),),
        frozen=frozen,
        witness=witness,
    )


@freeze("network", "proxied-server-stopped")
def proxied_server_stopped(stage):
    """redis-cli talks through a proxy, socat, to redis, which is stopped."""
    need("redis-server", "redis-cli", "socat", "ss")
    port, front = free_port(), free_port()
    server = stage.start(
        ["redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1"], cwd=stage.directory
    )
    wait_for("redis", lambda: accepts(port))
    listen = f"TCP-LISTEN:{front},bind=127.0.0.1,fork,reuseaddr"
    proxy = stage.start(["socat", listen, f"TCP:127.0.0.1:{port}"])
    wait_for("socat", lambda: accepts(front))
    client = stage.program(
        ["redis-cli", "-p", str(front), "-r", "-1", "-i", "0.05", "incr", "visits"],
        stdout=subprocess.PIPE,
    )
    frozen, witness = ask_while_stopped(stage, client, Stopped(server.pid), port)
    return Truth(
        text="LongWait for an answer; root redis-server behind socat, stopped",
        victims=(client.pid, *children(proxy.pid)),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=frozen,
        witness=witness,
    )


@freeze("network", "container-paused")
def container_paused(stage):
    """curl asks a web server for one page after the other; then the server's container is paused
    by the freezer."""
    need(PYTHON, "curl", "ss")
    port = free_port()
    server = stage.start([PYTHON, PROGRAMS / "cpu_report_server.py", port, "-"])
    wait_for("the web server", lambda: accepts(port))
    url = f"http://127.0.0.1:{port}/page?[1-100000]"
    words = ["curl", "-sSN", "--rate", "20/s", "-w", "%{http_code}\n", url]
    curl = stage.program(words, stdout=subprocess.PIPE)
    container = Paused(stage, server.pid)
    frozen, witness = ask_while_stopped(stage, curl, container, port)
    return Truth(
        text="LongWait for a page; root reports, the web server, paused",
        victims=(curl.pid,),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=frozen,
        witness=witness,
    )


@freeze("network", "syslog-stopped")
def syslog_stopped(stage):
    """logger writes lines to the socket of a system log whose program, socat, is stopped: when
    its queue is full, logger waits for room."""
    need("socat", "logger")
    socket = stage.directory / "log"
    log = stage.start(["socat", "-u", f"UNIX-RECV:{socket}", f"CREATE:{stage.directory}/messages"])
    wait_for("the log", socket.exists)
    logger = stage.program(["logger", "--socket", str(socket)], stdin=subprocess.PIPE)
    logger.tell("the service has started")
    begin = time.monotonic()
    while time.monotonic() < begin + stage.setting.before_s:
        time.sleep(0.05)
        logger.tell("the service has been asked")
    os.kill(log.pid, signal.SIGSTOP)
    for number in range(1000):
        logger.tell(f"order {number} has come in")
    begin = until_still(logger.pid, "rchar")

    def look():
        must_be_stopped(log.pid)
        return wait_channel(logger.pid)

    channel = stage.hold(look)
    os.kill(log.pid, signal.SIGCONT)
    end = now_ns()
    if "unix" not in channel and "sock" not in channel:
        raise Fault(f"/proc: logger waits in {channel}")
    return Truth(
        text="LongWait for room in a socket; root socat, stopped",
        victims=(logger.pid,),
        roots=(Root(log.pid, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: {log.pid} is stopped; logger waits in {channel}",
    )
