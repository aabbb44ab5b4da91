"""HAProxy: requests that queue for a server."""

import socket

from case import Root, Truth, freeze
from freezes.web import App, Client, computing, sleeping
from stage import Fault, accepts, free_port, need, wait_for


class Proxy:
    """HAProxy before one server, to which it sends one request at a time."""

    def __init__(self, stage, server_port):
        need("haproxy")
        self.port, self.control = free_port(), stage.directory / "haproxy.sock"
        config = stage.directory / "haproxy.cfg"
        config.write_text(
            f"global\n  stats socket {self.control} level admin\n"
            "defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n"
            "  timeout server 60s\n  timeout queue 60s\n"
            f"frontend site\n  bind 127.0.0.1:{self.port}\n  default_backend apps\n"
            f"backend apps\n  server app 127.0.0.1:{server_port} maxconn 1\n"
        )
        stage.start(["haproxy", "-db", "-f", config])
        wait_for("haproxy", lambda: accepts(self.port))

    def queued(self):
        """How many requests are at the server, and how many wait in the queue."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.control))
            control.sendall(b"show stat\n")
            with control.makefile() as answer:
                rows = [line.split(",") for line in answer]
        by_name = {tuple(row[:2]): row for row in rows if len(row) > 4}
        return by_name["apps", "app"][4], by_name["apps", "BACKEND"][2]


def occupied(stage, path, classes, look, **truth):
    """Freezes a client whose requests are quick by another client's for `path`. The worker
    is of `classes` then, and `look(pid)` sees that; `truth` is the rest."""
    need("curl")
    # It could do some at a time.
    app = App(stage, "--threads", "4")
    proxy = Proxy(stage, app.port)
    client = Client(stage, proxy.port, "/quick")
    stage.ordinary()
    url = f"http://127.0.0.1:{proxy.port}{path}/{stage.freeze_s}"
    other = stage.start(["curl", "-sS", "-o", stage.directory / "answer", url])
    queued, said = stage.hold(lambda: (proxy.queued(), look(app.worker)))
    frozen = client.slow_answer()
    if queued != ("1", "1"):
        raise Fault(f"haproxy: {queued[0]} at the server, {queued[1]} wait")
    other.wait()
    worker, thread = map(int, (stage.directory / "answer").read_text(encoding="ascii").split())
    return Truth(
        victims=(client.pid, other.pid),
        roots=(Root(worker, classes, thread),),
        frozen=frozen,
        witness=f"haproxy: one request is served, one waits in the queue; /proc: {said}",
        **truth,
    )


@freeze("web", "haproxy-queue-report")
def report(stage):
    """A quick request waits in HAProxy's queue for a server that may have one at a time, and that
    computes the answer to another one."""
    return occupied(
        stage,
        "/report",
        ("LongRunning",),
        computing,
        text="LongRunning; root the server behind HAProxy, at another request",
        function=r"\bslow_report\b",
    )


@freeze("web", "haproxy-queue-retry")
def retry(stage):
    """A quick request waits in HAProxy's queue for a server that may have one at a time, and that
    sleeps at another one."""
    return occupied(
        stage,
        "/retry",
        ("LongWait",),
        sleeping,
        text="LongWait; root the server behind HAProxy, which sleeps at another request",
        function=r"\bwait_to_retry\b",
    )
