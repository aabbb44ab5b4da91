"""Servers: idle ones, and ones under a load that they bear with ease."""

import re
import time
import urllib.request

import life
from freezes.postgres import USER, Server, programs
from ordinary_lives.register import ordinary, slowest_turn, turns_of, until_turns
from ordinary_lives.tools import DEBIAN_PYTHON, program
from stage import Fault, accepts, free_port, need, wait_for

CLIENTS = 5


def steady_load(stage, rate, kind, port):
    """Asks a server so often a second; gives the witness: its slowest answer."""
    log = stage.directory / "load.log"
    stage.start([DEBIAN_PYTHON, program("ord_load.py"), log, str(rate), kind, str(port)])
    until_turns(log, rate)
    return slowest_turn(log, "answers")


def answers_after(url):
    """A witness for a server that nobody asks: how long one answer takes after the recording."""

    def look(_begin_ns, _end_ns):
        begin = time.monotonic()
        with urllib.request.urlopen(url, timeout=30) as answer:
            answer.read()
        took = time.monotonic() - begin
        return took, f"an answer took {took * 1000:.1f} ms after the recording"

    return look


@ordinary("idle PostgreSQL")
def idle_postgres(stage):
    """A PostgreSQL server with five clients that are connected and ask nothing."""
    server = Server(stage)
    for number in range(CLIENTS):
        server.client(f"pg_client{number}")
    server.ask("CREATE TABLE stock (item int)")

    def look(_begin_ns, _end_ns):
        begin = time.monotonic()
        server.ask("SELECT count(*) FROM stock")
        took = time.monotonic() - begin
        return took, f"psql had an answer {took * 1000:.0f} ms after the recording"

    return look


@ordinary("idle web server")
def idle_web_server(stage):
    """nginx in front of gunicorn with two workers, and nobody asks."""
    need("nginx", "gunicorn")
    folder = stage.directory / "web"
    folder.mkdir()
    port, behind = free_port(), free_port()
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 2;\n"
        "events {}\n"
        f"http {{ access_log {folder}/access.log; client_body_temp_path {folder}/body;\n"
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port};\n"
        f"location / {{ proxy_pass http://127.0.0.1:{behind}; }} }} }}\n"
    )
    folder.chmod(0o755)
    # Its workers tell that they live by a file there.
    words = ["gunicorn", "--workers", "2", "--bind", f"127.0.0.1:{behind}", "ord_wsgi:application"]
    stage.start([*words, "--pythonpath", program("."), "--worker-tmp-dir", stage.directory])
    wait_for("gunicorn", lambda: accepts(behind))
    stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    wait_for("nginx", lambda: accepts(port))
    look = answers_after(f"http://127.0.0.1:{port}/")
    look(0, 0)
    return look


@ordinary("web server under load")
def web_server(stage):
    """nginx answers a hundred requests a second (life.py), and as many of the witness."""
    life.web_server(stage)
    config = (stage.directory / "nginx" / "nginx.conf").read_text(encoding="utf-8")
    return steady_load(stage, 100, "http", int(re.search(r"listen 127.0.0.1:(\d+)", config)[1]))


@ordinary("redis under load")
def redis(stage):
    """redis answers 200 commands a second."""
    need("redis-server")
    port = free_port()
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    stage.start([*words, "--dir", stage.directory])
    wait_for("redis", lambda: accepts(port))
    return steady_load(stage, 200, "redis", port)


@ordinary("node under load")
def node(stage):
    """A server in node answers a hundred small requests a second."""
    need("node")
    port = free_port()
    stage.start(["node", program("ord_server.js"), str(port)])
    wait_for("node", lambda: accepts(port))
    return steady_load(stage, 100, "http", port)


@ordinary("PostgreSQL under pgbench")
def pgbench(stage):
    """Two clients of pgbench do a hundred transactions a second."""
    server = Server(stage)
    tool = programs() / "pgbench"
    stage.start([tool, "-h", server.folder, "-U", USER, "-i", "-q", "-s", "2", USER]).wait()
    words = ["-c", "2", "-j", "2", "-R", "100", "-T", "3600", "-n", "--log"]
    log = stage.directory / "pgbench"
    started = stage.start(
        [tool, "-h", server.folder, "-U", USER, *words, f"--log-prefix={log}", USER]
    )
    written = [stage.directory / f"pgbench.{started.pid}{more}" for more in ("", ".1")]
    # It writes when it has some thousand bytes.
    wait_for("pgbench", lambda: all(path.exists() and path.stat().st_size for path in written))

    def look(begin_ns, end_ns):
        # It tells the time by the other clock: begin of the day by that of the recording, ns.
        shift = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        joined = stage.directory / "transactions.log"

        def all_written():
            return all(_ends(path)[-1] > (end_ns + shift) / 1e9 for path in written)

        wait_for("the log of pgbench", all_written, 30)
        lines = []
        for path in written:
            for words in _rows(path):
                end = int(words[4]) * 1_000_000_000 + int(words[5]) * 1000 - shift
                lines.append(f"{end - int(words[2]) * 1000} {end}\n")
        joined.write_text("".join(lines), encoding="utf-8")
        return slowest_turn(joined, "transactions")(begin_ns, end_ns)

    return look


def _rows(path):
    """The transactions in a log of pgbench: client, number, µs, script, end in s and µs, lag."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    if not rows:
        raise Fault("pgbench has written no transaction")
    return rows


def _ends(path):
    """When they ended, s since 1970."""
    return [int(words[4]) + int(words[5]) / 1e6 for words in _rows(path)]
