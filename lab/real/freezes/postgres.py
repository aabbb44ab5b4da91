"""PostgreSQL: a server of the stage's own, and clients of it that wait for each other."""

import pathlib
import subprocess
import sys

from case import Root, Truth, freeze
from stage import CannotRun, Fault, need, output_of, read_line, wait_for

USER = "postgres"
CLIENT = pathlib.Path(__file__).resolve().parent.parent / "programs" / "pgclient.py"


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
        output_of(
            [programs() / "initdb", "-D", data, "-A", "trust", "-N", "--no-instructions"],
            env=stage.environment,
            **as_server,
        )
        options = [word for line in settings for word in ("-c", line)]
        self.process = stage.start(
            [programs() / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses="]
            + options,
            **as_server,
        )

        def serves():
            words = [programs() / "pg_isready", "-q", "-h", self.folder]
            return subprocess.run(words, env=stage.environment, check=False).returncode == 0

        wait_for("the server", serves)

    def ask(self, question):
        """One answer of the server's."""
        words = ["psql", "-h", self.folder, "-U", USER, "-AtqX", "-c", question]
        return output_of(words, env=self.stage.environment).strip()

    def client_words(self, name):
        """The command line of a client that goes by a name (pgclient.py)."""
        return [sys.executable, CLIENT, name, self.folder / ".s.PGSQL.5432", USER]

    def client(self, name):
        """Starts a client that obeys its stdin; gives it and its server process."""
        process = self.stage.start(
            self.client_words(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return process, int(read_line(process.stdout))


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
    waiter.tell("repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 1")
    stage.ordinary()
    tell(holder, "BEGIN")
    tell(holder, "UPDATE stock SET pieces = pieces + 1 WHERE item = 1")
    tell(holder, f"sleep {stage.freeze_s}", await_end=False)
    tell(holder, "COMMIT", await_end=False)

    def look():
        blockers = server.ask(f"SELECT pg_blocking_pids({waiter_backend})")
        state = server.ask(f"SELECT state FROM pg_stat_activity WHERE pid = {holder_backend}")
        return blockers, state

    blockers, state = stage.hold(look)
    frozen = tuple(map(int, waiter.line().split()))
    if blockers != f"{{{holder_backend}}}" or state != "idle in transaction":
        raise Fault(f"the server says: blocked by {blockers}, which is {state}")
    return Truth(
        text="LongWait; root pg_holder, which sleeps",
        victims=(waiter.pid, waiter_backend),
        roots=(Root(holder.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"pg_blocking_pids: {holder_backend}, idle in transaction, whose client is "
        f"{holder.pid}",
    )
