"""nginx before applications that do not answer."""

import signal

from case import Root, Truth, freeze
from freezes import redis
from freezes.postgres import PYTHON, USER, Server
from freezes.postgres_locks import must_wait_for
from freezes.procfs import children, state
from freezes.runtimes import activities, must_last, must_wait
from freezes.web import App, Client, computing, connections
from stage import Fault, accepts, free_port, need, now_ns, wait_for


def nginx(stage, location, before=""):
    """Starts nginx with one worker, for all paths of whose site `location` is configured; gives
    its port. `before` is for the configuration of all sites."""
    need("nginx")
    folder = stage.directory / "proxy"
    folder.mkdir()
    folder.chmod(0o755)
    port = free_port()
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log warn; worker_processes 1;\n"
        f"events {{}}\nhttp {{ access_log off;\n{paths}{before}\n"
        f"server {{ listen 127.0.0.1:{port};\nlocation / {{ {location} }} }} }}\n"
    )
    stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    wait_for("nginx", lambda: accepts(port))
    return port


def proxy_to(stage, port):
    """Starts nginx as a proxy; gives its port."""
    return nginx(stage, f"proxy_pass http://127.0.0.1:{port}; proxy_read_timeout 60s;")


@freeze("web", "nginx-slow-report")
def slow_report(stage):
    """A request by way of nginx is answered late: the application's worker process computes the
    answer."""
    app = App(stage)
    client = Client(stage, proxy_to(stage, app.port), "/quick")
    stage.ordinary()
    client.ask(f"/report/{stage.freeze_s}")
    said = stage.hold(lambda: computing(app.worker))
    return Truth(
        text="LongRunning; root the worker of gunicorn behind nginx",
        victims=(client.pid,),
        roots=(Root(app.worker, ("LongRunning",)),),
        frozen=client.slow_answer(),
        witness=f"/proc: gunicorn {said}",
        function=r"\bslow_report\b",
    )


@freeze("web", "nginx-slow-retry")
def slow_retry(stage):
    """A request by way of nginx is answered late: a thread of the application sleeps before it
    tries something again."""
    app = App(stage, "--threads", "4")
    client = Client(stage, proxy_to(stage, app.port), "/quick")
    stage.ordinary()
    client.ask(f"/retry/{stage.freeze_s}")
    found = stage.hold(lambda: activities(app.worker))
    begin, end, _, pid, thread = client.program.line().split()
    if int(pid) != app.worker:
        raise Fault(f"{pid} has answered, not worker {app.worker}")
    one = must_wait(found, int(thread))
    if "nanosleep" not in one.waits_in:
        raise Fault(f"/proc: {one}, where it should sleep")
    return Truth(
        text="LongWait; root a thread of gunicorn behind nginx, which sleeps",
        victims=(client.pid,),
        roots=(Root(app.worker, ("LongWait",), int(thread)),),
        frozen=(int(begin), int(end)),
        witness=f"/proc: {one}; gunicorn {pid} has answered by that thread",
        function=r"\bwait_to_retry\b",
    )


@freeze("web", "nginx-stopped-upstream")
def stopped_upstream(stage):
    """A request by way of nginx is not answered: the web server behind it is stopped."""
    port = free_port()
    upstream = stage.start(
        [PYTHON, "-m", "http.server", "--bind", "127.0.0.1", port], cwd=stage.directory
    )
    wait_for("http.server", lambda: accepts(port))
    client = Client(stage, proxy_to(stage, port), "/")
    stage.ordinary()
    upstream.send_signal(signal.SIGSTOP)
    found, waiting = stage.hold(lambda: (state(upstream.pid), connections(port)[0]))
    upstream.send_signal(signal.SIGCONT)
    frozen = client.slow_answer()
    if found != "T" or not waiting:
        raise Fault(f"/proc: {upstream.pid} is in state {found}; ss: {waiting} connections wait")
    return Truth(
        text="LongWait; root the web server behind nginx, stopped",
        victims=(client.pid,),
        roots=(Root(upstream.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"/proc: {upstream.pid} is stopped; ss: {waiting} connection to it waits",
    )


@freeze("web", "nginx-app-redis")
def stopped_redis(stage):
    """A request by way of nginx and an application is not answered: the application's Redis is
    stopped."""
    server = redis.Server(stage)
    app = App(stage, REDIS_SOCKET=str(server.socket))
    client = Client(stage, proxy_to(stage, app.port), "/visit")
    stage.ordinary()
    server.process.send_signal(signal.SIGSTOP)
    found, worker = stage.hold(lambda: (state(server.pid), state(app.worker)))
    server.process.send_signal(signal.SIGCONT)
    frozen = client.slow_answer()
    if (found, worker) != ("T", "S"):
        raise Fault(f"/proc: redis-server is in state {found}, the worker in {worker}")
    return Truth(
        text="LongWait; root redis-server behind nginx and gunicorn, stopped",
        victims=(client.pid, app.worker),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"/proc: redis-server {server.pid} is stopped, gunicorn {app.worker} sleeps",
    )


@freeze("web", "nginx-app-postgres")
def locked_row(stage):
    """A request by way of nginx and an application is not answered: the application waits for a
    row that somebody at a psql has changed in a transaction and then left open."""
    server = Server(stage)
    server.ask("CREATE TABLE stock (item int PRIMARY KEY, pieces int)")
    server.ask("INSERT INTO stock VALUES (1, 100)")
    holder, holder_backend = server.person()
    app = App(stage, PGHOST=str(server.folder), PGUSER=USER)
    client = Client(stage, proxy_to(stage, app.port), "/sell")
    stage.ordinary()
    server.prefer()
    holder.enter("BEGIN;")
    holder.enter("UPDATE stock SET pieces = pieces + 1 WHERE item = 1;")

    def look():
        backend = int(server.ask("SELECT pid FROM pg_locks WHERE NOT granted") or 0)
        return backend, must_wait_for(server, backend, holder_backend)

    backend, witness = stage.hold(look)
    holder.type("COMMIT;")
    return Truth(
        text="LongWait; root psql, left in a transaction; behind nginx, gunicorn and PostgreSQL",
        victims=(client.pid, app.worker, backend),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=client.slow_answer(),
        witness=f"{witness}, whose client is psql {holder.pid}",
    )


@freeze("web", "nginx-request-limit")
def request_limit(stage):
    """curl's request comes too early for nginx' limit of requests, and nginx lets it wait."""
    need("curl")
    site = stage.directory / "site"
    site.mkdir()
    (site / "index.html").write_text("<p>welcome</p>")
    # For `nobody`, as whom nginx reads it.
    site.chmod(0o755)
    # The time between two requests; a little more than it must last.
    per_minute = int(60 / (stage.freeze_s + 2.0))
    port = nginx(
        stage,
        f"root {site}; limit_req zone=all burst=9; limit_req_log_level error;",
        before=f"limit_req_zone $server_port zone=all:1m rate={per_minute}r/m;",
    )
    folder = stage.directory / "proxy"
    words = ["curl", "-sS", "-f", "-o", "/dev/null", f"http://127.0.0.1:{port}/"]
    if stage.start(words).wait() != 0:
        raise Fault("nginx does not answer the first request")
    worker = children(int((folder / "pid").read_text(encoding="ascii")))[0]
    victim = stage.program(words)
    begin = now_ns()
    stage.hold()
    end = victim.ended()
    log = (folder / "error.log").read_text(encoding="ascii")
    if "delaying request" not in log:
        raise Fault(f"nginx has written: {log or 'nothing'}")
    return Truth(
        text="LongWait; root nginx, which delays the request",
        victims=(victim.pid,),
        roots=(Root(worker, ("LongWait",)),),
        frozen=must_last(stage, (begin, end)),
        witness="error.log of nginx: delaying request, by limit_req",
    )

