"""A network of the case's own: two network namespaces that are joined by a link."""

import itertools
import os
import pathlib
import shutil
import subprocess

from stage import CannotRun, need, output_of, wait_for

_numbers = itertools.count()

# The client's address and the server's.
HERE, THERE = "10.77.0.1", "10.77.0.2"
WEB_PORT = 8080
PAGE = "<p>welcome</p>\n"


class Network:
    """Two namespaces: `here` for the client, `there` for the server. `resolver` is the name server
    that programs in `here` are told to ask."""

    def __init__(self, stage, resolver=None):
        need("ip")
        if os.geteuid() != 0:
            raise CannotRun("only root can make a network namespace")
        self.stage = stage
        # Unique as long as this process runs, and a link's name is short.
        unique = f"{os.getpid()}-{next(_numbers)}"
        self.here, self.there = f"hd{unique}h", f"hd{unique}t"
        if resolver:
            folder = pathlib.Path("/etc/netns") / self.here
            folder.mkdir(parents=True)
            stage.callback(shutil.rmtree, folder)
            (folder / "resolv.conf").write_text(f"nameserver {resolver}\n")
        for namespace in (self.here, self.there):
            output_of(["ip", "netns", "add", namespace])
            stage.callback(output_of, ["ip", "netns", "delete", namespace])
        output_of(
            ["ip", "-n", self.here, "link", "add", "link0", "type", "veth"]
            + ["peer", "name", "link0", "netns", self.there]
        )
        for namespace, address in ((self.here, HERE), (self.there, THERE)):
            output_of(["ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "link0"])
            output_of(["ip", "-n", namespace, "link", "set", "link0", "up"])
            output_of(["ip", "-n", namespace, "link", "set", "lo", "up"])

    def inside(self, namespace, *words):
        """The command line of a program in a namespace: `ip` becomes that program."""
        return ["ip", "netns", "exec", namespace, *(str(word) for word in words)]

    def run(self, namespace, *words):
        """What a command in a namespace prints."""
        return output_of(self.inside(namespace, *words), env=self.stage.environment)

    def start(self, namespace, *words, **more):
        """Starts a server in a namespace."""
        return self.stage.start(self.inside(namespace, *words), **more)

    def works(self, namespace, *words):
        """Whether a command in a namespace succeeds."""
        done = subprocess.run(self.inside(namespace, *words), capture_output=True, check=False)
        return done.returncode == 0

    def web_server(self, size=len(PAGE)):
        """Starts a web server in `there`, whose page `/page` is so many bytes long."""
        need("/usr/bin/python3", "curl")
        site = self.stage.directory / "site"
        site.mkdir()
        (site / "page").write_text((PAGE * (size // len(PAGE) + 1))[:size])
        words = ["/usr/bin/python3", "-m", "http.server", "--bind", THERE, "--directory", site]
        server = self.start(self.there, *words, WEB_PORT)
        wait_for(
            "the web server",
            lambda: self.works(self.there, "curl", "-sI", f"http://{THERE}:{WEB_PORT}/page"),
        )
        return server

    def drop(self, rule):
        """Has the firewall of `there` drop what it receives and a rule of nftables fits."""
        need("nft")
        self.run(self.there, "nft", "add", "table", "inet", "wall")
        chain = "{ type filter hook input priority 0; }"
        self.run(self.there, "nft", "add", "chain", "inet", "wall", "input", chain)
        words = ["nft", "add", "rule", "inet", "wall", "input", *rule.split(), "counter", "drop"]
        self.run(self.there, *words)

    def dropped(self):
        """How many packets the firewall has dropped, by its own counter."""
        listed = self.run(self.there, "nft", "list", "table", "inet", "wall").split()
        return int(listed[listed.index("packets") + 1])

    def let_pass(self):
        """Takes the firewall away."""
        self.run(self.there, "nft", "delete", "table", "inet", "wall")
