"""Apache with one process for requests."""

import shutil
import subprocess

from case import Root, Truth, freeze
from freezes.postgres import PROGRAMS, PYTHON
from freezes.procfs import children
from freezes.web import Client, computing, connections
from stage import CannotRun, Fault, accepts, free_port, need, read_line, wait_for

MODULES = "/usr/lib/apache2/modules"
# So long after the time that it should last, for the witness on a busy machine.
SPARE_S = 0.5
SLOW = PROGRAMS / "web_slow_client.py"


class Apache:
    """A server with one process for requests; `more` is for its configuration."""

    def __init__(self, stage, modules=(), more=""):
        need("apache2")
        folder = stage.directory / "apache"
        site = folder / "site"
        site.mkdir(parents=True)
        (site / "index.html").write_text("<p>welcome</p>")
        # For the user as whom it reads.
        for path in (folder, site):
            path.chmod(0o755)
        self.port, self.folder = free_port(), folder
        loaded = "".join(
            f"LoadModule {name}_module {MODULES}/mod_{name}.so\n"
            for name in ("mpm_prefork", "authz_core", "dir", "alias", *modules)
        )
        (folder / "apache.conf").write_text(
            f"ServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{self.port}\n{loaded}"
            f"DefaultRuntimeDir {folder}\nPidFile {folder}/pid\nErrorLog {folder}/error.log\n"
            "User www-data\nGroup www-data\n"
            "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\n"
            f"MaxRequestWorkers 1\nTimeout 60\nKeepAliveTimeout 60\nDocumentRoot {site}\n{more}\n"
        )
        self.main = stage.start(["apache2", "-DFOREGROUND", "-f", folder / "apache.conf"])

        def serves():
            if self.main.poll() is not None:
                raise CannotRun(f"apache2: exit code {self.main.returncode} at its start")
            return accepts(self.port)

        wait_for("apache2", serves)
        self.worker = wait_for("its worker", lambda: children(self.main.pid))[0]


def held(stage, what, text):
    """Freezes a client by another one that keeps Apache's only process waiting (`what` as in
    web_slow_client.py)."""
    need("ss")
    server = Apache(stage)
    client = Client(stage, server.port, "/")
    stage.ordinary()
    slow = stage.start(
        [PYTHON, SLOW, server.port, what, stage.freeze_s + SPARE_S], stdout=subprocess.PIPE
    )
    read_line(slow.stdout)
    waiting, ends = stage.hold(lambda: connections(server.port))
    frozen = client.slow_answer()
    if waiting != 1 or ends != {client.pid, slow.pid, server.worker}:
        raise Fault(f"ss: {waiting} connection waits to be accepted; {ends} have connections")
    return Truth(
        text=text,
        victims=(client.pid, server.worker),
        roots=(Root(slow.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"ss: {slow.pid} has the connection that Apache's only process serves, one waits "
        "to be accepted",
    )


@freeze("web", "apache-slow-client")
def slow_client(stage):
    """A request waits for Apache's only process, which waits for the rest of another client's
    request."""
    return held(stage, "half", "LongWait; root a client that has sent half a request and sleeps")


@freeze("web", "apache-keep-alive")
def keep_alive(stage):
    """A request waits for Apache's only process, which waits for the next request of a client that
    keeps its connection."""
    return held(stage, "kept", "LongWait; root a client that keeps its connection and sleeps")


@freeze("web", "apache-cgi")
def cgi(stage):
    """A request waits for a CGI program that Apache has started and that computes."""
    server = Apache(
        stage, modules=("cgi",), more=f"ScriptAlias /report {stage.directory}/apache/report\n"
    )
    script = server.folder / "report"
    shutil.copy(PROGRAMS / "web_cgi.py", script)
    script.chmod(0o755)
    client = Client(stage, server.port, "/")
    stage.ordinary()
    client.ask(f"/report?{stage.freeze_s}")

    def look():
        child = children(server.worker)[0]
        return child, computing(child)

    child, said = stage.hold(look)
    return Truth(
        text="LongRunning; root a CGI program, for which Apache's process waits",
        victims=(client.pid, server.worker),
        roots=(Root(child, ("LongRunning",)),),
        frozen=client.slow_answer(),
        witness=f"/proc: CGI program {said}",
        function=r"\bslow_report\b",
    )
