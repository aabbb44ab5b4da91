"""Names that are not resolved: the name server is stopped, or its port is walled off."""

import os
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.net_namespaces import THERE, WEB_PORT, Network
from freezes.procfs import must_be_stopped, state, until_named
from stage import Fault, need, now_ns, wait_for

HOST = "shop.test"
URL = f"http://{HOST}:{WEB_PORT}/page"


def name_server(network):
    """Starts dnsmasq in `there`, which knows one name."""
    need("dnsmasq", "dig")
    server = network.start(
        network.there, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv",
        "--no-hosts", "--user=root", "--pid-file=", f"--listen-address={THERE}",
        "--bind-interfaces", f"--address=/{HOST}/{THERE}",
    )  # fmt: skip
    words = ["dig", "+short", "+time=1", "+tries=1", f"@{THERE}", HOST]
    wait_for("dnsmasq", lambda: network.works(network.here, *words))
    return server


@freeze("network", "dns-server-stopped")
def server_stopped(stage):
    """curl looks up a name while the name server, dnsmasq, is stopped."""
    network = Network(stage, resolver=THERE)
    network.web_server()
    server = name_server(network)
    os.kill(server.pid, signal.SIGSTOP)
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{time_namelookup} %{time_total}\n", URL]
    curl = stage.program(network.inside(network.here, *words), stdout=subprocess.PIPE)
    until_named(curl.pid, "curl")

    def look():
        must_be_stopped(server.pid)
        return network.run(network.there, "ss", "-uanH", "sport", "=", ":53").split()

    unread = stage.hold(look)
    os.kill(server.pid, signal.SIGCONT)
    lookup_s, total_s = map(float, curl.line().split())
    end = now_ns()
    if unread[1] == "0":
        raise Fault("ss: dnsmasq has nothing to read")
    begin = end - int(total_s * 1e9)
    return Truth(
        text="LongWait for a name; root dnsmasq, stopped",
        victims=(curl.pid,),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=(begin, begin + int(lookup_s * 1e9)),
        witness=f"/proc: dnsmasq is stopped; ss: {unread[1]} bytes of queries unread; curl: "
        f"{lookup_s:.1f} s for the name",
    )


@freeze("network", "dns-query-dropped")
def query_dropped(stage):
    """wget looks up a name, and a firewall drops the query: after the timeout it asks again."""
    need("wget")
    network = Network(stage, resolver=THERE)
    network.web_server()
    name_server(network)
    network.drop("udp dport 53")
    words = ["wget", "-q", "-O", "/dev/null", URL]
    wget = stage.program(network.inside(network.here, *words))
    begin = until_named(wget.pid, "wget")
    seen = stage.hold(lambda: (network.dropped(), state(wget.pid)))
    network.let_pass()
    end = wget.ended()
    if seen[0] == 0 or seen[1] != "S":
        raise Fault(f"nft: {seen[0]} packets dropped; wget in state {seen[1]}")
    # Nobody on this machine owes the answer.
    return Truth(
        text="LongWait for a name; root wget itself, no answer from the network",
        victims=(wget.pid,),
        roots=(Root(wget.pid, ("LongWait",)),),
        frozen=(begin, end),
        witness=f"nft: {seen[0]} queries dropped while wget slept",
    )
