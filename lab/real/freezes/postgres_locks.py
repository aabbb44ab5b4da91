"""PostgreSQL: locks that another client holds."""

import subprocess

from case import Root, Truth, freeze
from freezes.interactive import Shell, meanwhile
from freezes.postgres import Server, tell
from stage import Fault, read_line, wait_for

IDLE = "idle in transaction"


def must_wait_for(server, waiter, holder, state=IDLE):
    """Sees to it that a server process waits for another alone, which is in that state."""
    blockers, found = server.blocked_by(waiter), server.state_of(holder)
    if blockers != [holder] or found != state:
        raise Fault(f"the server says: {waiter} is blocked by {blockers}; {holder} is {found}")
    return f"pg_blocking_pids: {waiter} waits for {holder}, {state}"


@freeze("databases", "postgres-table-lock")
def table_lock(stage):
    """A SELECT in psql waits for a table that somebody at another psql has locked in a transaction
    and then left open."""
    server = Server(stage)
    server.ask("CREATE TABLE stock (item int PRIMARY KEY, pieces int)")
    server.ask("INSERT INTO stock SELECT n, 100 FROM generate_series(1, 1000) n")
    holder, holder_backend = server.person()
    reader = Shell(stage, server.psql_words())
    backend = int(reader.ask("SELECT pg_backend_pid();"))
    server.prefer()
    question = "SELECT sum(pieces) FROM stock;"
    meanwhile(stage, lambda: reader.ask(question))
    holder.enter("BEGIN;")
    holder.enter("LOCK TABLE stock IN ACCESS EXCLUSIVE MODE;")
    reader.begin_to_ask(question)
    witness = stage.hold(lambda: must_wait_for(server, backend, holder_backend))
    holder.type("COMMIT;")
    return Truth(
        text="LongWait for a table lock; root psql, left at its prompt in a transaction",
        victims=(reader.pid, backend),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=reader.answered(),
        witness=f"{witness}, whose client is psql {holder.pid}",
    )


@freeze("databases", "postgres-advisory-lock")
def advisory_lock(stage):
    """A program asks for an advisory lock that another program keeps while it computes."""
    server = Server(stage)
    holder = stage.start(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    read_line(holder.stdout)
    holder_backend = server.backend_of(holder)
    waiter = stage.program(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiter.line()
    backend = server.backend_of(waiter)
    waiter.tell("repeat BEGIN; SELECT pg_advisory_xact_lock(42); COMMIT")
    stage.ordinary()
    tell(holder, "SELECT pg_advisory_lock(42)")
    # Longer than it must last, for the witness on a busy machine.
    tell(holder, f"compute {stage.freeze_s + 1}", await_end=False)
    tell(holder, "SELECT pg_advisory_unlock(42)", await_end=False)
    witness = stage.hold(lambda: must_wait_for(server, backend, holder_backend, "idle"))
    return Truth(
        text="LongWait for an advisory lock; root another program, which computes",
        victims=(waiter.pid, backend),
        roots=(Root(holder.pid, ("LongRunning",)),),
        frozen=tuple(map(int, waiter.line().split())),
        witness=f"{witness}, whose client is {holder.pid}",
        function=r"\bcrunch_numbers\b",
    )


@freeze("databases", "postgres-index-lock")
def index_lock(stage):
    """An application inserts a row into a table that another one has an index built of, which takes long. The other one
    gets what it asked for."""
    server = Server(stage)
    server.ask("CREATE TABLE stock (item int)")
    server.ask("INSERT INTO stock VALUES (1)")
    # Longer than it must last, for the witness on a busy machine. The row that is inserted is weighed as well, so long
    # after its transaction began that this takes no time.
    server.ask(
        "CREATE FUNCTION weigh(item int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ DECLARE "
        f"until timestamptz := now() + interval '{stage.freeze_s + 1} s'; BEGIN "
        "WHILE clock_timestamp() < until LOOP item := item % 1000 + 1; END LOOP; "
        "RETURN item; END $$"
    )
    admin = stage.start(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    read_line(admin.stdout)
    builder = server.backend_of(admin)
    waiter = stage.program(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiter.line()
    backend = server.backend_of(waiter)
    waiter.tell("repeat INSERT INTO stock VALUES (1)")
    stage.ordinary()
    server.ask("TRUNCATE stock; INSERT INTO stock VALUES (1)")
    tell(admin, "CREATE INDEX ON stock (weigh(item))", await_end=False)
    witness = stage.hold(lambda: must_wait_for(server, backend, builder, "active"))
    return Truth(
        text="LongWait for a table lock; root another session, which builds an index",
        victims=(waiter.pid, backend),
        roots=(Root(builder, ("LongRunning",)),),
        frozen=tuple(map(int, waiter.line().split())),
        witness=f"{witness}, which executes CREATE INDEX for {admin.pid}",
    )


@freeze("databases", "postgres-lock-chain")
def lock_chain(stage):
    """An update waits for the row of a transaction that itself waits for the row of a third one,
    which somebody left open at a psql."""
    server = Server(stage)
    server.ask("CREATE TABLE stock (item int PRIMARY KEY, pieces int)")
    server.ask("INSERT INTO stock VALUES (1, 100), (2, 100)")
    holder, holder_backend = server.person()
    # In the middle of the chain.
    middle, middle_backend = server.client("pg_middle")
    waiter = stage.program(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiter.line()
    backend = server.backend_of(waiter)
    holder.enter("BEGIN;")
    holder.enter("UPDATE stock SET pieces = pieces - 1 WHERE item = 1;")
    waiter.tell("repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 2")
    stage.ordinary()
    tell(middle, "BEGIN")
    tell(middle, "UPDATE stock SET pieces = pieces - 2 WHERE item = 2")
    tell(middle, "UPDATE stock SET pieces = pieces - 2 WHERE item = 1", await_end=False)

    def look():
        first = must_wait_for(server, backend, middle_backend, "active")
        return f"{first}; {must_wait_for(server, middle_backend, holder_backend)}"

    witness = stage.hold(look)
    holder.type("COMMIT;")
    read_line(middle.stdout)
    tell(middle, "COMMIT")
    wait_for("no lock waited for", lambda: not server.blocked_by(backend))
    return Truth(
        text="LongWait for a row, whose holder waits for a row; root psql, left in a transaction",
        victims=(waiter.pid, backend, middle.pid, middle_backend),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=tuple(map(int, waiter.line().split())),
        witness=f"{witness}, whose client is psql {holder.pid}",
    )
