"""gunicorn with its one worker process busy with somebody else's request."""

import os
import resource

from case import Root, Truth, freeze
from freezes.procfs import children
from freezes.web import App, Client, computing, connections, sleeping
from stage import Fault, need, output_of

# Bytes, by which it is measured how long it takes.
TRIAL = 3_000_000


def occupied(stage, path, classes, look, **truth):
    """Freezes a client whose requests are quick by another client's for `path`, which takes the
    only worker. It is of `classes` then, and `look(pid)` sees that; `truth` is the rest."""
    need("curl", "ss")
    app = App(stage)
    client = Client(stage, app.port, "/quick")
    stage.ordinary()
    other = stage.start(
        ["curl", "-sS", "-o", "/dev/null", f"http://127.0.0.1:{app.port}{path}/{stage.freeze_s}"]
    )
    said, waiting = stage.hold(lambda: (look(app.worker), connections(app.port)[0]))
    frozen = client.slow_answer()
    if waiting == 0:
        raise Fault("ss: no connection waits to be accepted")
    return Truth(
        victims=(client.pid, other.pid),
        roots=(Root(app.worker, classes),),
        frozen=frozen,
        witness=f"ss: {waiting} connection waits to be accepted; /proc: {said}",
        **truth,
    )


@freeze("web", "gunicorn-busy-worker")
def busy_worker(stage):
    """A quick request waits for gunicorn's only worker process, which computes the answer to
    another one."""
    return occupied(
        stage,
        "/report",
        ("LongRunning",),
        computing,
        text="LongRunning; root the only worker of gunicorn, at another request",
        function=r"\bslow_report\b",
    )


@freeze("web", "gunicorn-sleeping-worker")
def sleeping_worker(stage):
    """A quick request waits for gunicorn's only worker process, which sleeps at another one before
    it tries something again."""
    return occupied(
        stage,
        "/retry",
        ("LongWait",),
        sleeping,
        text="LongWait; root the only worker of gunicorn, which sleeps at another request",
        function=r"\bwait_to_retry\b",
    )


def children_s():
    """CPU time of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@freeze("web", "gunicorn-converter")
def converter(stage):
    """A request waits for bzip2, which the application has started to compress a file, and about
    which it asks again and again."""
    need("bzip2")
    upload = stage.directory / "upload"
    upload.write_bytes(os.urandom(TRIAL))
    used = children_s()
    output_of(["bzip2", "-c", upload], encoding="latin-1")
    # As much as takes long enough, with a margin.
    upload.write_bytes(os.urandom(int(TRIAL * 1.4 * stage.freeze_s / (children_s() - used))))
    app = App(stage, UPLOAD=str(upload))
    client = Client(stage, app.port, "/quick")
    stage.ordinary()
    client.ask("/convert")

    def look():
        child = children(app.worker)[0]
        return child, computing(child)

    child, said = stage.hold(look)
    return Truth(
        text="LongRunning; root bzip2, which the application behind gunicorn asks about",
        victims=(client.pid, app.worker),
        roots=(Root(child, ("LongRunning",)),),
        frozen=client.slow_answer(),
        witness=f"/proc: {said}",
    )
