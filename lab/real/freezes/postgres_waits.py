"""PostgreSQL: waits that are not for a lock: a query that computes, a pool of connections, a
standby that does not confirm."""

import signal
import subprocess

from case import Root, Truth, freeze
from freezes.interactive import Shell, Terminal, meanwhile
from freezes.postgres import AT_TERMINAL, PROMPT, USER, Server, programs
from freezes.procfs import cpu_s, state
from stage import Fault, accepts, free_port, need, now_ns, output_of, wait_for

# For each of so many orders, all orders are read.
QUERY = """SELECT count(*) FROM (SELECT * FROM orders LIMIT {few}) a WHERE price =
 (SELECT max(price) FROM orders b WHERE b.customer = a.customer);"""
TRIAL = 200


@freeze("databases", "postgres-long-query")
def long_query(stage):
    """A query in psql without a fitting index reads the whole table for each of its rows."""
    server = Server(stage)
    server.ask(
        "CREATE TABLE orders AS SELECT n AS id, n % 900 AS customer, n % 77 AS price"
        " FROM generate_series(1, 20000) n"
    )
    client = Shell(stage, server.psql_words())
    backend = int(client.ask("SELECT pg_backend_pid();"))
    server.prefer()
    client.ask("VACUUM ANALYZE orders; SELECT 1;")
    client.ask(QUERY.format(few=TRIAL))
    # As many rows as take long enough, with a margin.
    used = cpu_s(backend)
    client.ask(QUERY.format(few=TRIAL))
    rows = int(TRIAL * 1.5 * stage.freeze_s / (cpu_s(backend) - used))
    meanwhile(stage, lambda: client.ask("SELECT count(*) FROM orders;"))
    client.begin_to_ask(QUERY.format(few=rows))

    def look():
        words = "SELECT state, wait_event IS NULL FROM pg_stat_activity WHERE pid = "
        return server.ask(f"{words}{backend}"), cpu_s(backend), now_ns()

    found, used, when = stage.hold(look)
    frozen = client.answered()
    share = (cpu_s(backend) - used) / ((frozen[1] - when) / 1e9)
    if found != "active|t" or share < 0.5:
        raise Fault(f"the server process is {found}, {share:.0%} on the CPU")
    return Truth(
        text="LongRunning; root the server process of the query",
        victims=(client.pid,),
        roots=(Root(backend, ("LongRunning",)),),
        frozen=frozen,
        witness=f"pg_stat_activity: {backend} is active and waits for nothing; /proc: {share:.0%} "
        "on the CPU",
    )


def pgbouncer(stage, server):
    """Starts a pooler that has one connection to the server; gives the words for a psql there."""
    need("pgbouncer")
    port = free_port()
    folder = server.folder
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\nshop = host={folder} user={USER} dbname=postgres\n"
        "[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = any\npool_mode = transaction\n"
        f"listen_port = {port}\nunix_socket_dir =\ndefault_pool_size = 1\n"
    )
    stage.start(
        ["pgbouncer", folder / "pgbouncer.ini"], user=USER, group=USER, extra_groups=[], cwd=folder
    )
    wait_for("pgbouncer", lambda: accepts(port))
    return ["psql", "-h", "127.0.0.1", "-p", port, "-U", USER]


@freeze("databases", "pgbouncer-pool")
def exhausted_pooler(stage):
    """A query by way of pgbouncer waits for the only connection to the server, which somebody at a
    psql keeps in a transaction left open."""
    server = Server(stage)
    words = pgbouncer(stage, server)
    holder = Terminal(stage, [*words, *AT_TERMINAL, "shop"], PROMPT)
    client = Shell(stage, [*words, "-AtqX", "shop"])
    meanwhile(stage, lambda: client.ask("SELECT 1;"))
    server.prefer()
    holder.enter("BEGIN;")
    holder.enter("SELECT count(*) FROM pg_class;")
    client.begin_to_ask("SELECT 1;")

    def look():
        shown = output_of([*words, "-AtX", "-c", "SHOW POOLS", "pgbouncer"], env=stage.environment)
        return next(line for line in shown.splitlines() if line.startswith("shop|")).split("|")

    row = stage.hold(look)
    holder.type("COMMIT;")
    frozen = client.answered()
    # Clients that have a connection, and that wait for one.
    if row[2:4] != ["1", "1"]:
        raise Fault(f"pgbouncer: SHOW POOLS says {row}")
    return Truth(
        text="LongWait for a pooled connection; root psql, left in a transaction",
        victims=(client.pid,),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=frozen,
        witness="pgbouncer: one client has the connection, one waits for it",
    )


@freeze("databases", "postgres-sync-standby")
def sync_standby(stage):
    """A COMMIT waits for a synchronous standby to confirm it: pg_receivewal, which is stopped."""
    server = Server(stage, ["synchronous_standby_names=pg_receivewal"])
    archive = server.folder / "archive"
    output_of(["install", "-d", "-o", USER, archive])
    standby = stage.start(
        [programs() / "pg_receivewal", "-D", archive, "-h", server.folder, "-U", USER,
         "--synchronous"],
        user=USER, group=USER, extra_groups=[], cwd=server.folder,
    )
    stage.callback(resume, standby)
    states = "SELECT sync_state FROM pg_stat_replication"
    wait_for("the standby", lambda: server.ask(states) == "sync")
    server.ask("CREATE TABLE stock (item int PRIMARY KEY, pieces int)")
    server.ask("INSERT INTO stock VALUES (1, 100)")
    client = stage.program(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client.line()
    backend = server.backend_of(client)
    client.tell("repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 1")
    stage.ordinary()
    standby.send_signal(signal.SIGSTOP)

    def look():
        event = f"SELECT wait_event FROM pg_stat_activity WHERE pid = {backend}"
        return server.ask(event), state(standby.pid)

    event, found = stage.hold(look)
    standby.send_signal(signal.SIGCONT)
    frozen = tuple(map(int, client.line().split()))
    if event != "SyncRep" or found != "T":
        raise Fault(f"the server waits for {event}; the standby is in state {found}")
    return Truth(
        text="LongWait of a COMMIT; root pg_receivewal, stopped",
        victims=(client.pid, backend),
        roots=(Root(standby.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"pg_stat_activity: {backend} waits for SyncRep; /proc: {standby.pid} is stopped",
    )


def resume(process):
    """Has a stopped process go on, so that it can be ended."""
    process.send_signal(signal.SIGCONT)
