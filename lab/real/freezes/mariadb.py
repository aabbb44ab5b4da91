"""MariaDB: a server of the stage's own, and clients of it that wait for each other."""

import shutil
import subprocess

from case import Root, Truth, freeze
from freezes.interactive import Shell, Terminal, meanwhile
from freezes.postgres import APP, PYTHON, tell
from stage import PATIENCE_S, Fault, need, output_of, read_line, wait_for

USER = "mysql"
LOCAL = ("--no-defaults", "--user=root")


class Server:
    """A server reached by a socket, with a table that all the cases use."""

    def __init__(self, stage):
        need("mariadbd", "mariadb", "mariadb-install-db", PYTHON)
        self.stage = stage
        folder = stage.owned_by(USER)
        self.socket = folder / "socket"
        # A server that starts removes what another has in the same folder for temporary files.
        (folder / "tmp").mkdir()
        shutil.chown(folder / "tmp", USER)
        files = ["--no-defaults", f"--datadir={folder}/data", f"--tmpdir={folder}/tmp",
                 "--innodb-log-file-size=4M"]
        # On the stage, so that it gets the CPU.
        install = stage.start(
            ["mariadb-install-db", *files, f"--user={USER}", "--skip-test-db",
             "--auth-root-authentication-method=normal"]
        )
        if install.wait(PATIENCE_S) != 0:
            raise Fault(f"mariadb-install-db: exit code {install.returncode}")
        stage.start(
            ["mariadbd", *files, f"--user={USER}", f"--socket={self.socket}", "--skip-networking",
             f"--pid-file={folder}/pid"]
        )

        def serves():
            words = [*self.words(), "-e", "SELECT 1"]
            options = {"env": stage.environment, "check": False, "capture_output": True}
            return subprocess.run(words, **options).returncode == 0

        wait_for("the server", serves)
        self.ask("CREATE DATABASE shop")
        self.ask("CREATE TABLE shop.stock (item int PRIMARY KEY, pieces int) ENGINE=InnoDB")
        self.ask("INSERT INTO shop.stock VALUES (1, 100), (2, 100)")

    def words(self):
        """The command line of the server's own shell, printing bare values."""
        return ["mariadb", *LOCAL, f"--socket={self.socket}", "-N", "-B", "--unbuffered"]

    def ask(self, question):
        """One answer of the server's."""
        return output_of([*self.words(), "-e", question], env=self.stage.environment).strip()

    def person(self):
        """Somebody with the server's shell at a terminal."""
        words = ["mariadb", *LOCAL, f"--socket={self.socket}", "--prompt=shop> ", "shop"]
        return Terminal(self.stage, words, "shop> ")

    def app_words(self):
        """The command line of an application with PyMySQL (db_app.py)."""
        return [PYTHON, APP, "pymysql", f"unix_socket={self.socket}", "user=root", "database=shop"]

    def thread_of(self, connection):
        """The server's thread for a connection."""
        wanted = f"SELECT tid FROM information_schema.processlist WHERE id = {connection}"
        return int(self.ask(wanted))

    def state_of(self, connection):
        """What the server does for a connection."""
        wanted = f"SELECT state FROM information_schema.processlist WHERE id = {connection}"
        return self.ask(wanted)


@freeze("databases", "mariadb-row-lock")
def row_lock(stage):
    """An update waits for a row that somebody at a mariadb shell has changed in a transaction and
    then left open."""
    server = Server(stage)
    holder = server.person()
    waiter = stage.program(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiter.line()
    waiter.tell("SELECT connection_id()")
    connection = int(waiter.line())
    waiter.tell("repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 1")
    stage.ordinary()
    thread = server.thread_of(connection)
    holder.enter("BEGIN;")
    holder.enter("UPDATE stock SET pieces = pieces + 1 WHERE item = 1;")

    def look():
        trx = "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE "
        wait = "information_schema.innodb_lock_waits"
        waits = server.ask(f"{trx} trx_id IN (SELECT requesting_trx_id FROM {wait})")
        holds = server.ask(f"{trx} trx_id IN (SELECT blocking_trx_id FROM {wait})")
        return waits, server.ask(
            f"SELECT command FROM information_schema.processlist WHERE id = {holds or 0}"
        )

    waits, holds = stage.hold(look)
    holder.type("COMMIT;")
    frozen = tuple(map(int, waiter.line().split()))
    if waits != str(connection) or holds != "Sleep":
        raise Fault(f"innodb_lock_waits: connection {waits} waits for one that is at {holds}")
    return Truth(
        text="LongWait for a row; root mariadb, left at its prompt in a transaction",
        victims=(waiter.pid, thread),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=frozen,
        witness=f"innodb_lock_waits: connection {connection} waits for one that is idle",
    )


@freeze("databases", "mariadb-metadata-lock")
def metadata_lock(stage):
    """A SELECT waits behind an ALTER TABLE, which waits for the end of a transaction that has read
    the table and that somebody left open at a mariadb shell."""
    server = Server(stage)
    holder = server.person()
    reader = Shell(stage, [*server.words(), "shop"])
    connection = int(reader.ask("SELECT connection_id();"))
    thread = server.thread_of(connection)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    altering = stage.start(server.app_words(), **pipes)
    read_line(altering.stdout)
    altering.stdin.write(b"SELECT connection_id()\n")
    alter_connection = int(read_line(altering.stdout))
    alter_thread = server.thread_of(alter_connection)
    question = "SELECT sum(pieces) FROM stock;"
    holder.enter("BEGIN;")
    holder.enter(question)
    meanwhile(stage, lambda: reader.ask(question))
    tell(altering, "ALTER TABLE stock ADD COLUMN price int", await_end=False)
    waiting = "Waiting for table metadata lock"
    wait_for("ALTER TABLE waits", lambda: server.state_of(alter_connection) == waiting)
    reader.begin_to_ask(question)
    states = stage.hold(lambda: [server.state_of(one) for one in (connection, alter_connection)])
    holder.type("COMMIT;")
    frozen = reader.answered()
    if states != [waiting, waiting]:
        raise Fault(f"processlist: the states are {states}")
    return Truth(
        text="LongWait behind ALTER TABLE; root mariadb, left at its prompt in a transaction",
        victims=(reader.pid, thread, altering.pid, alter_thread),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=frozen,
        witness=f"processlist: both {waiting.lower()}",
    )


@freeze("databases", "mariadb-backup-lock")
def backup_lock(stage):
    """An update waits for a backup program that has all tables locked while it computes."""
    server = Server(stage)
    backup = stage.start(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    read_line(backup.stdout)
    writer = stage.program(server.app_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer.line()
    writer.tell("SELECT connection_id()")
    connection = int(writer.line())
    writer.tell("repeat UPDATE stock SET pieces = pieces - 1 WHERE item = 1")
    stage.ordinary()
    thread = server.thread_of(connection)
    tell(backup, "FLUSH TABLES WITH READ LOCK")
    tell(backup, f"compute {stage.freeze_s}", await_end=False)
    tell(backup, "UNLOCK TABLES", await_end=False)
    state = stage.hold(lambda: server.state_of(connection))
    frozen = tuple(map(int, writer.line().split()))
    if state != "Waiting for backup lock":
        raise Fault(f"processlist: the state is {state}")
    return Truth(
        text="LongWait for FLUSH TABLES WITH READ LOCK; root the backup program, which computes",
        victims=(writer.pid, thread),
        roots=(Root(backup.pid, ("LongRunning",)),),
        frozen=frozen,
        witness=f"processlist: {state.lower()}",
        function=r"\bcrunch_numbers\b",
    )
