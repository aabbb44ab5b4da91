"""An application's own pool of database connections, of which another thread keeps the only
one."""

import subprocess

from case import Root, Truth, freeze
from freezes.postgres import PROGRAMS, PYTHON, USER, Server
from freezes.procfs import state
from stage import CannotRun, Fault, need

POOL_APP = PROGRAMS / "db_pool_app.py"


def freeze_pool(stage, what, states, classes, **truth):
    """Freezes the main thread of an application by another that keeps the connection while it is
    at `what`, a command of db_pool_app.py; the kernel sees it in one of `states`, and it is one of
    `classes`. `truth` is the rest of the truth."""
    need(PYTHON)
    if subprocess.run([PYTHON, "-c", "import sqlalchemy"], check=False).returncode != 0:
        raise CannotRun("python3-sqlalchemy is not installed; scripts/setup.sh lab-real")
    server = Server(stage)
    app = stage.program(
        [PYTHON, POOL_APP, f"postgresql://{USER}@/postgres?host={server.folder}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    main, other = map(int, app.line().split())
    server.prefer()
    stage.ordinary()
    app.tell(f"{what} {stage.freeze_s}")

    def look():
        count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        return server.ask(count), state(other)

    connections, found = stage.hold(look)
    frozen = tuple(map(int, app.line().split()))
    # One is the witness's own.
    if connections != "2" or found not in states:
        raise Fault(f"the server has {connections} clients; thread {other} is in state {found}")
    return Truth(
        victims=(main,),
        roots=(Root(app.pid, classes, other),),
        frozen=frozen,
        witness=f"pg_stat_activity: the application has one connection; /proc: thread {other} is "
        f"in state {found}",
        **truth,
    )


@freeze("databases", "pool-report")
def report(stage):
    """A thread waits for a connection of SQLAlchemy's pool; another thread keeps the only one while
    it computes a report."""
    return freeze_pool(
        stage,
        "report",
        "R",
        ("LongRunning",),
        text="LongWait for a pooled connection; root the thread that computes",
        function=r"\bmake_report\b",
    )


@freeze("databases", "pool-retry")
def retry(stage):
    """A thread waits for a connection of SQLAlchemy's pool; another thread keeps the only one while
    it sleeps before it tries something again."""
    return freeze_pool(
        stage,
        "retry",
        "S",
        ("LongWait",),
        text="LongWait for a pooled connection; root the thread that sleeps",
        function=r"\bwait_to_retry\b",
    )
