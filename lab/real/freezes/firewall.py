"""Connections through a firewall that drops packets without a word."""

import contextlib
import subprocess
import threading

from case import Root, Truth, freeze
from freezes.net_namespaces import THERE, WEB_PORT, Network
from freezes.procfs import until_named
from stage import Fault, need, now_ns, wait_for


class Answers(threading.Thread):
    """Reads what a program prints and keeps when each line came."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.times = stream, [now_ns()]
        self.start()

    def run(self):
        # The stage closes it.
        with contextlib.suppress(ValueError):
            while self.stream.readline():
                self.times.append(now_ns())

    def longest_gap(self):
        """The longest time between two lines."""
        times = list(self.times)
        return max(zip(times, times[1:]), key=lambda gap: gap[1] - gap[0])


@freeze("network", "firewall-drops-connect")
def drops_connect(stage):
    """curl connects to a server whose firewall drops what comes for that port."""
    network = Network(stage)
    network.web_server()
    network.drop(f"tcp dport {WEB_PORT}")
    url = f"http://{THERE}:{WEB_PORT}/page"
    curl = stage.program(network.inside(network.here, "curl", "-sS", "-o", "/dev/null", url))
    begin = until_named(curl.pid, "curl")

    def look():
        words = ["ss", "-tnH", "state", "syn-sent"]
        return network.run(network.here, *words).split(), network.dropped()

    sent, dropped = stage.hold(look)
    network.let_pass()
    end = curl.ended()
    if f"{THERE}:{WEB_PORT}" not in sent or dropped == 0:
        raise Fault(f"ss: {sent} in state SYN-SENT; nft: {dropped} packets dropped")
    # The server has never heard of it.
    return Truth(
        text="LongWait in connect; root curl itself, no answer from the network",
        victims=(curl.pid,),
        roots=(Root(curl.pid, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"ss: SYN-SENT; nft: {dropped} packets dropped",
    )


@freeze("network", "firewall-drops-established")
def drops_established(stage):
    """redis-cli asks its server twenty times a second; then the firewall begins to drop what it
    sends."""
    need("redis-server", "redis-cli")
    network = Network(stage)
    words = ["redis-server", "--bind", THERE, "--protected-mode", "no", "--save", ""]
    server = network.start(network.there, *words, cwd=stage.directory)
    client = ["redis-cli", "-h", THERE]
    wait_for("redis", lambda: network.works(network.there, *client, "ping"))
    words = [*client, "-r", "-1", "-i", "0.05", "incr", "visits"]
    shop = stage.program(network.inside(network.here, *words), stdout=subprocess.PIPE)
    shop.line()
    answers = Answers(shop.stdout)
    stage.ordinary()
    network.drop("tcp dport 6379")

    def look():
        words = ["ss", "-tnoH", "state", "established", "dport", "=", ":6379"]
        return network.run(network.here, *words).strip(), network.dropped()

    sent, dropped = stage.hold(look)
    network.let_pass()
    held = int(stage.freeze_s * 0.8e9)

    def over():
        begin, end = answers.longest_gap()
        return end - begin > held

    wait_for("an answer after the freeze", over)
    if "timer:(on" not in sent or dropped == 0:
        raise Fault(f"ss: {sent}; nft: {dropped} packets dropped")
    # What it asked has never come to the server, which is idle.
    return Truth(
        text=f"LongWait for an answer; root redis-cli itself, not redis-server ({server.pid})",
        victims=(shop.pid,),
        roots=(Root(shop.pid, ("LongWait",)),),
        frozen=answers.longest_gap(),
        witness=f"ss: retransmits, {sent.split()[-1]}; nft: {dropped} packets dropped",
    )
