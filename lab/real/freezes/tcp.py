"""TCP: a full queue of connections, a receiver that does not read, a slow link, and small writes
that wait for an acknowledgement."""

import os
import pathlib
import signal
import subprocess
import time

from case import Root, Truth, freeze
from freezes.net_namespaces import THERE, WEB_PORT, Network
from freezes.procfs import (
    children,
    cpu_s,
    must_be_stopped,
    until_named,
    until_still,
    wait_channel,
)
from freezes.runtimes import must_last
from stage import Fault, accepts, free_port, need, now_ns, output_of, wait_for

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
PYTHON = "/usr/bin/python3"
# A client sends its SYN again 7 and, by Linux' default of today, 11 s after the first. The server
# accepts again just before that, so that it is what nearly all of the time goes to.
SYN_AGAIN_S = (7, 11)
# Linux delays an acknowledgement by so much at least.
DELAYED_ACK_S = 0.04
LINK_BYTES_S = 16_000


def sockets(*words):
    """The lines that `ss` prints of TCP sockets."""
    return output_of(["ss", "-tnH", *words]).splitlines()


@freeze("network", "tcp-accept-queue-full")
def accept_queue_full(stage):
    """curl connects to a web server of one thread, which computes and accepts nobody while its
    queue of connections is full."""
    need(PYTHON, "curl", "ss")
    port = free_port()
    confirmed = stage.directory / "confirmed"
    server = stage.start([PYTHON, PROGRAMS / "net_order_server.py", port, confirmed])
    wait_for("the shop", lambda: accepts(port))
    url = f"http://127.0.0.1:{port}"
    before = cpu_s(server.pid)
    others = [stage.start(["curl", "-s", f"{url}/order"])]
    wait_for("the order", lambda: cpu_s(server.pid) > before + 0.1)
    for _ in range(2):
        others.append(stage.start(["curl", "-s", f"{url}/page"]))
    queue = ["-l", "sport", "=", f":{port}"]
    wait_for("a full queue", lambda: sockets(*queue)[0].split()[1] == "2", 5)
    curl = stage.program(["curl", "-sS", "-o", "/dev/null", f"{url}/page"])
    begin = until_named(curl.pid, "curl")
    sent = stage.hold(lambda: sockets("state", "syn-sent", "dport", "=", f":{port}"))
    again_s = next(s for s in SYN_AGAIN_S if s > stage.freeze_s + 1)
    time.sleep(max(0.0, begin / 1e9 + again_s - 0.2 - time.monotonic()))
    confirmed.touch()
    end = curl.ended()
    if not sent:
        raise Fault("ss: curl is not in state SYN-SENT")
    if end - begin > (again_s + 1) * 1e9:
        raise Fault("the SYN came too early")
    return Truth(
        text="LongRunning in handle_order; root shop, which does not accept",
        victims=(curl.pid, *(other.pid for other in others)),
        roots=(Root(server.pid, ("LongRunning",)),),
        frozen=(begin, end),
        witness="ss: SYN-SENT, while the server's queue holds 2 connections",
        function="handle_order",
    )


def rsync_daemon(stage, folder):
    """Starts an rsync daemon that keeps what it gets in a folder; gives it and its port."""
    port, settings = free_port(), stage.directory / "rsyncd.conf"
    settings.write_text(
        f"use chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n"
        f"[backup]\npath = {folder}\nread only = no\n"
    )
    words = ["--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}"]
    daemon = stage.start(["rsync", *words, f"--config={settings}"])
    wait_for("rsyncd", lambda: accepts(port))
    return daemon, port


@freeze("network", "tcp-receiver-stopped")
def receiver_stopped(stage):
    """rsync sends a file, and the receiving process of the rsync daemon is stopped: the window of
    the connection becomes zero."""
    need("rsync", "ss")
    backup, big = stage.directory / "backup", stage.directory / "big"
    backup.mkdir()
    with big.open("wb") as file:
        file.truncate(8 << 30)
    daemon, port = rsync_daemon(stage, backup)
    words = ["-W", "--sparse", "--bwlimit=60m", big, f"rsync://127.0.0.1:{port}/backup/"]
    rsync = stage.program(["rsync", *words])
    wait_for("the file", lambda: any(backup.iterdir()))
    # The daemon's child for this client tells it what to send; that one's child receives.
    generator = next(child for child in children(daemon.pid) if children(child))
    receiver = children(generator)[0]
    stage.ordinary()
    os.kill(receiver, signal.SIGSTOP)
    begin = until_still(rsync.pid)

    def look():
        must_be_stopped(receiver)
        return sockets("dport", "=", f":{port}")[0].split(), wait_channel(rsync.pid)

    socket, channel = stage.hold(look)
    os.kill(receiver, signal.SIGCONT)
    end = now_ns()
    if int(socket[2]) == 0:
        raise Fault("ss: nothing that rsync sent is unread")
    return Truth(
        text="LongWait for room in a TCP connection; root the receiving rsync, stopped",
        victims=(rsync.pid,),
        roots=(Root(receiver, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"/proc: the receiver is stopped; ss: {socket[2]} bytes not sent; rsync waits in "
        f"{channel}",
    )


@freeze("network", "tcp-slow-link")
def slow_link(stage):
    """curl fetches a page over a link that a token bucket filter makes slow."""
    need("tc")
    network = Network(stage)
    size = int(LINK_BYTES_S * (stage.freeze_s + 1.0))
    server = network.web_server(size)
    network.run(
        network.there, "tc", "qdisc", "add", "dev", "link0", "root", "tbf",
        "rate", f"{LINK_BYTES_S * 8}bit", "burst", "2kb", "limit", "1mb",
    )  # fmt: skip
    words = ["curl", "-sS", "-o", "/dev/null", f"http://{THERE}:{WEB_PORT}/page"]
    curl = stage.program(network.inside(network.here, *words))
    begin = until_named(curl.pid, "curl")

    def look():
        shown = network.run(network.there, "tc", "-s", "qdisc", "show", "dev", "link0").split()
        return shown[shown.index("backlog") + 1], cpu_s(curl.pid) + cpu_s(server.pid)

    backlog, before = stage.hold(look)
    end = curl.ended()
    if backlog == "0b":
        raise Fault("tc: no packet waits for the link")
    # The page fits into the server's send buffer, so that the server is idle soon. Where it is
    # not, it waits for the same link.
    return Truth(
        text="LongWait for a slow link; root curl itself, or the server that sends",
        victims=(curl.pid,),
        roots=(Root(curl.pid, ("LongWait",)), Root(server.pid, ("LongWait",))),
        frozen=must_last(stage, (begin, end)),
        witness=f"tc: {backlog} wait for the link; {before:.1f} s of the CPU by both so far",
    )


@freeze("network", "tcp-nagle")
def nagle(stage):
    """A client sends each request by two small writes. The second waits for the acknowledgement of
    the first, which the server's kernel delays by 40 ms: a list of articles takes seconds."""
    need(PYTHON, "ss")
    port = free_port()
    server = stage.start([PYTHON, PROGRAMS / "net_stock_server.py", port])
    wait_for("the stock server", lambda: accepts(port))
    client = stage.program(
        [PYTHON, PROGRAMS / "net_stock_client.py", port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    client.line()
    stage.ordinary()
    requests = int((stage.freeze_s + 0.5) / DELAYED_ACK_S)
    client.tell(str(requests))

    def look():
        return " ".join(sockets("-i", "dport", "=", f":{port}")), cpu_s(client.pid)

    seen, used_s = stage.hold(look)
    begin, end = map(int, client.line().split())
    each_ms = (end - begin) / 1e6 / requests
    if not 35 < each_ms < 60 or used_s > 1:
        raise Fault(f"{each_ms:.0f} ms a request, {used_s:.1f} s of the CPU: {seen}")
    # Either waits for the other's kernel; the client is the one that would set TCP_NODELAY.
    return Truth(
        text="LongWait, 40 ms a request; root the client's small writes, or the server that waits "
        "for the second",
        victims=(client.pid,),
        roots=(Root(client.pid, ("LongWait",)), Root(server.pid, ("LongWait",))),
        frozen=(begin, end),
        witness=f"{requests} requests of {each_ms:.1f} ms each, {used_s:.2f} s of the CPU",
    )
