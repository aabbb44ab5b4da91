"""PostgreSQL: a server of the stage's own, and clients of it that wait for each other."""

import contextlib
import pathlib
import re
import signal
import subprocess
import sys

from case import Root, Truth, freeze
from freezes.interactive import Terminal
from freezes.procfs import children
from processes import NICE
from stage import PATIENCE_S, CannotRun, Fault, need, read_line, wait_for

USER = "postgres"
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
CLIENT = PROGRAMS / "pgclient.py"
APP = PROGRAMS / "db_app.py"
# Debian's own, which has Debian's drivers.
PYTHON = "/usr/bin/python3"
# What psql shows when it waits for a person, in a transaction or not.
# What follows an answer to the witness.
END = "end of the answer"
PROMPT = "=[*!]?[#>] "
AT_TERMINAL = ("-X", "-t", "-P", "pager=off")


def programs():
    """Folder of the server's programs, which Debian does not put on the PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise CannotRun("postgresql is not installed; scripts/setup.sh lab-real")
    return found[-1].parent


class Server:
    """A server reached by a socket in `folder`; `settings` are lines of its configuration."""

    def __init__(self, stage, settings=()):
        need("psql")
        self.stage, self.folder = stage, stage.owned_by(USER)
        data = self.folder / "data"
        as_server = {"user": USER, "group": USER, "extra_groups": [], "cwd": self.folder}
        # On the stage, so that it gets the CPU.
        initdb = stage.start(
            [programs() / "initdb", "-D", data, "-A", "trust", "-N", "--no-instructions"],
            **as_server,
        )
        if initdb.wait(PATIENCE_S) != 0:
            raise Fault(f"initdb: exit code {initdb.returncode}")
        options = [word for line in settings for word in ("-c", line)]
        self.process = stage.start(
            [programs() / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses="]
            + options,
            **as_server,
        )
        stage.callback(self._stop)

        def serves():
            words = [programs() / "pg_isready", "-q", "-h", self.folder]
            return subprocess.run(words, env=stage.environment, check=False).returncode == 0

        wait_for("the server", serves)
        # Kept, for the witness must be quick on a busy machine too.
        self.witness = stage.start(
            [*self.psql_words(), "-v", "ON_ERROR_STOP=1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.prefer()

    def _stop(self):
        """Ends the server. Killed, it would leave its shared memory behind."""
        self.process.send_signal(signal.SIGQUIT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)

    def prefer(self):
        """Gives the server's processes, each of which has a session of its own, the CPU before what
        else this machine is at."""
        for pid in children(self.process.pid):
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(NICE), encoding="ascii")

    def ask(self, question):
        """One answer of the server's."""
        tell(self.witness, f"{question};\n\\echo {END}", await_end=False)
        lines = iter(lambda: read_line(self.witness.stdout), END)
        return "\n".join(lines)

    def psql_words(self):
        """The command line of a psql that prints bare values."""
        return ["psql", "-h", self.folder, "-U", USER, "-AtqX"]

    def person(self):
        """Somebody with a psql at a terminal; gives it and its server process."""
        words = ["psql", "-h", self.folder, "-U", USER, *AT_TERMINAL]
        terminal = Terminal(self.stage, words, PROMPT)
        shown = terminal.enter("SELECT pg_backend_pid();")
        self.prefer()
        return terminal, int(re.search(r"^ *(\d+)\r$", shown, re.MULTILINE)[1])

    def app_words(self):
        """The command line of an application with psycopg2 (db_app.py)."""
        return [PYTHON, APP, "psycopg2", f"host={self.folder}", f"user={USER}"]

    def backend_of(self, app):
        """The server process of an application that was started with pipes; `app` is the process
        or the case's Program."""
        app.stdin.write(b"SELECT pg_backend_pid()\n")
        backend = int(read_line(app.stdout))
        self.prefer()
        return backend

    def blocked_by(self, backend):
        """The server processes for which one waits."""
        inner = self.ask(f"SELECT pg_blocking_pids({backend})").strip("{}")
        return [int(word) for word in inner.split(",") if word]

    def state_of(self, backend):
        """What a server process does."""
        return self.ask(f"SELECT state FROM pg_stat_activity WHERE pid = {backend}")

    def client_words(self, name):
        """The command line of a client that goes by a name (pgclient.py)."""
        return [sys.executable, CLIENT, name, self.folder / ".s.PGSQL.5432", USER]

    def client(self, name):
        """Starts a client that obeys its stdin; gives it and its server process."""
        process = self.stage.start(
            self.client_words(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        backend = int(read_line(process.stdout))
        self.prefer()
        return process, backend


def tell(process, line, await_end=True):
    """Has a client do something."""
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    if await_end:
        read_line(process.stdout)


@freeze("databases", "postgres-row-lock")
def row_lock(stage):
    """An update waits for a row that another client has changed in a transaction which it leaves
    open while it does nothing."""
    server = Server(stage)
    server.ask("CREATE TABLE stock (item int PRIMARY KEY, pieces int)")
    server.ask("INSERT INTO stock VALUES (1, 100)")
    holder, holder_backend = server.client("pg_holder")
    waiter = stage.program(
        server.client_words("pg_waiter"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    waiter_backend = int(waiter.line())
    server.prefer()
    waiter.tell("repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 1")
    stage.ordinary()
    tell(holder, "BEGIN")
    tell(holder, "UPDATE stock SET pieces = pieces + 1 WHERE item = 1")
    tell(holder, f"sleep {stage.freeze_s}", await_end=False)
    tell(holder, "COMMIT", await_end=False)

    def look():
        return server.blocked_by(waiter_backend), server.state_of(holder_backend)

    blockers, state = stage.hold(look)
    frozen = tuple(map(int, waiter.line().split()))
    if blockers != [holder_backend] or state != "idle in transaction":
        raise Fault(f"the server says: blocked by {blockers}, which is {state}")
    return Truth(
        text="LongWait; root pg_holder, which sleeps",
        victims=(waiter.pid, waiter_backend),
        roots=(Root(holder.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"pg_blocking_pids: {holder_backend}, idle in transaction, whose client is "
        f"{holder.pid}",
    )
