"""PostgreSQL: an update waits for a row that another client has changed in a transaction which it
leaves open while it does nothing."""

import pathlib
import subprocess
import sys
import time

from judge import Truth
from stage import CannotRun, Fault, need, output_of, wait_for

NAME = "postgres"
FREEZE_S = 3.0
USER = "postgres"
CLIENT = pathlib.Path(__file__).with_name("pgclient.py")


def programs():
    """Folder of the server's programs, which Debian does not put on the PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise CannotRun("postgresql is not installed; scripts/setup.sh lab-real")
    return found[-1].parent


def start_server(stage):
    """A server of the stage's own, reached by a socket in the folder that is given."""
    need("psql")
    folder = stage.owned_by(USER)
    data = folder / "data"
    as_server = {"user": USER, "group": USER, "extra_groups": [], "cwd": folder}
    output_of(
        [programs() / "initdb", "-D", data, "-A", "trust", "-N", "--no-instructions"],
        env=stage.environment,
        **as_server,
    )
    stage.start(
        [programs() / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
        **as_server,
    )

    def serves():
        words = [programs() / "pg_isready", "-q", "-h", folder]
        return subprocess.run(words, env=stage.environment, check=False).returncode == 0

    wait_for("the server", serves)
    return folder


def play(stage):
    """Freezes a client once; gives the truth."""
    folder = start_server(stage)

    def ask(question):
        """One answer of the server's."""
        words = ["psql", "-h", folder, "-U", USER, "-AtqX", "-c", question]
        return output_of(words, env=stage.environment).strip()

    def client(name):
        process = stage.start(
            [sys.executable, CLIENT, name, folder / ".s.PGSQL.5432", USER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        backend = int(process.stdout.readline())
        return process, backend

    def tell(process, line):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()

    ask("CREATE TABLE stock (item int PRIMARY KEY, pieces int)")
    ask("INSERT INTO stock VALUES (1, 100)")
    holder, holder_backend = client("pg_holder")
    waiter, waiter_backend = client("pg_waiter")
    tell(waiter, "repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 1")
    with stage.recording():
        tell(holder, "BEGIN")
        holder.stdout.readline()
        tell(holder, "UPDATE stock SET pieces = pieces + 1 WHERE item = 1")
        holder.stdout.readline()
        tell(holder, f"sleep {FREEZE_S}")
        tell(holder, "COMMIT")
        time.sleep(FREEZE_S / 2)
        blockers = ask(f"SELECT pg_blocking_pids({waiter_backend})")
        state = ask(f"SELECT state FROM pg_stat_activity WHERE pid = {holder_backend}")
        frozen = tuple(map(int, waiter.stdout.readline().split()))
    if blockers != f"{{{holder_backend}}}" or state != "idle in transaction":
        raise Fault(f"the server says: blocked by {blockers}, which is {state}")
    return Truth(
        text="LongWait; root pg_holder, which sleeps",
        victim=waiter.pid,
        problem_class="LongWait",
        root=holder.pid,
        root_class="LongWait",
        frozen=frozen,
        witness=f"pg_blocking_pids: {holder_backend}, idle in transaction, whose client is "
        f"{holder.pid}",
    )
