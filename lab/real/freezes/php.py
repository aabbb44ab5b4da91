"""PHP behind nginx: php-fpm's workers wait for a session, for each other's end, for a server."""

import pathlib
import shutil
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.neighbours import neighbours
from freezes.procfs import children, must_wait_in
from freezes.python_runtime import HERE as PYTHON_PROGRAMS
from freezes.runtimes import activities, length_s, must_last, must_wait, runners
from freezes.sqlite import lock_holders
from freezes.stopped import is_stopped, stop
from freezes.web import PYTHON, Client, connections
from stage import CannotRun, Fault, accepts, free_port, need, read_line, wait_for

USER = "www-data"
SHOP = pathlib.Path(__file__).resolve().parent.parent / "programs" / "php" / "shop.php"


def program_called_fpm():
    """php-fpm, which Debian calls by its version."""
    found = sorted(pathlib.Path("/usr/sbin").glob("php-fpm*"))
    if not found:
        raise CannotRun("not installed: php-fpm; scripts/setup.sh lab-real")
    return found[-1]


class Shop:
    """nginx, and php-fpm with so many workers; the script finds `environment` in $_SERVER."""

    def __init__(self, stage, workers, **environment):
        need("nginx", "curl")
        self.folder = folder = stage.owned_by(USER)
        for name in ("site", "sessions"):
            (folder / name).mkdir()
            shutil.chown(folder / name, USER)
        shutil.copy(SHOP, folder / "site" / "shop.php")
        (folder / "fpm.conf").write_text(
            f"[global]\nerror_log = {folder}/fpm.log\ndaemonize = no\n"
            f"[shop]\nuser = {USER}\ngroup = {USER}\nlisten = {folder}/fpm.sock\n"
            f"listen.owner = {USER}\npm = static\npm.max_children = {workers}\n"
            f"php_admin_value[session.save_path] = {folder}/sessions\n"
            # The client has no cookies.
            "php_admin_value[session.use_cookies] = 0\n"
            "php_admin_value[session.use_only_cookies] = 0\n"
            + "".join(f"env[{name}] = {value}\n" for name, value in environment.items())
        )
        self.fpm = stage.start(
            [program_called_fpm(), "--nodaemonize", "--fpm-config", folder / "fpm.conf"]
        )
        self.workers = wait_for(
            "php-fpm's workers",
            lambda: len(children(self.fpm.pid)) == workers and children(self.fpm.pid),
        )
        self.port = free_port()
        (folder / "nginx.conf").write_text(
            f"daemon off; user {USER}; pid {folder}/pid; error_log {folder}/error.log;\n"
            "worker_processes 2; events {}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/body;\n"
            f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
            f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
            f"server {{ listen 127.0.0.1:{self.port}; root {folder}/site;\n"
            f"location ~ [.]php$ {{ fastcgi_pass unix:{folder}/fpm.sock;\n"
            f"include /etc/nginx/fastcgi_params; fastcgi_read_timeout 120;\n"
            f"fastcgi_param SCRIPT_FILENAME {folder}/site/shop.php; }} }} }}\n"
        )
        nginx = stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
        wait_for("nginx", lambda: accepts(self.port))
        wait_for("nginx's workers", lambda: children(nginx.pid))

    def visitor(self, stage, page):
        """Somebody else asks for a page."""
        url = f"http://127.0.0.1:{self.port}/shop.php?page={page}"
        return stage.start(["curl", "-sS", "-o", "/dev/null", url])


@freeze("web", "php-session-lock")
def session_lock(stage):
    """A visitor of a PHP shop looks at his cart while another tab of his exports all orders: the
    second request waits for the file of the session."""
    neighbours(stage)
    shop = Shop(stage, 4)
    client = Client(stage, shop.port, "/shop.php?page=cart&PHPSESSID=visitor1")
    stage.ordinary()
    export = shop.visitor(stage, f"export&PHPSESSID=visitor1&seconds={length_s(stage) * 1.1}")
    session = shop.folder / "sessions" / "sess_visitor1"
    found, holders = stage.hold(lambda: (activities(*shop.workers), lock_holders(session)))
    running = runners(found)
    if len(running) != 1 or running[0].tid not in holders:
        raise Fault(f"/proc: {'; '.join(map(str, found))}; lslocks: {holders}")
    waiting = [one.tid for one in found if one.tid in holders and one.tid != running[0].tid]
    return Truth(
        text="LongRunning; root the php-fpm worker that exports and has the session's lock",
        victims=(client.pid, export.pid, *waiting),
        roots=(Root(running[0].tid, ("LongRunning",)),),
        frozen=must_last(stage, client.slow_answer()),
        witness=f"lslocks: {running[0].tid} has the lock on {session.name}; /proc: {running[0]}",
    )


@freeze("web", "php-fpm-children")
def all_children(stage):
    """A quick page of a PHP shop waits, for both workers of php-fpm ask a server of rates that
    sleeps before it answers."""
    need(PYTHON)
    neighbours(stage)
    port = free_port()
    words = [PYTHON, PYTHON_PROGRAMS / "slow_upstream.py", port]
    rates = stage.start(words, stdout=subprocess.PIPE)
    read_line(rates.stdout)
    shop = Shop(stage, 2, PRICES_PORT=port)
    client = Client(stage, shop.port, "/shop.php?page=start")
    stage.ordinary()
    others = [shop.visitor(stage, f"rates&seconds={length_s(stage)}") for _ in range(2)]

    def look():
        return activities(*shop.workers), activities(rates.pid), connections(port)[1]

    workers, upstream, ends = stage.hold(look)
    must_wait(workers)
    must_wait(upstream)
    sleeping = [one.tid for one in upstream if "nanosleep" in one.waits_in]
    if len(sleeping) != 2 or not set(shop.workers) <= ends:
        raise Fault(f"/proc: {'; '.join(map(str, upstream))}; ss: {ends} are connected")
    return Truth(
        text="LongWait; root the server of rates, which sleeps, behind both workers of php-fpm",
        victims=(client.pid, *(other.pid for other in others), *shop.workers),
        roots=tuple(Root(rates.pid, ("LongWait",), thread=tid) for tid in sleeping),
        frozen=must_last(stage, client.slow_answer()),
        witness=f"ss: both workers are connected to {rates.pid}; /proc: two threads of it sleep",
        function=r"\blimit_rate\b",
    )


@freeze("web", "php-memcached-stopped")
def memcached(stage):
    """A page of a PHP shop counts in memcached, which is stopped."""
    need("memcached")
    neighbours(stage)
    port = free_port()
    cache = stage.start(["memcached", "-u", USER, "-l", "127.0.0.1", "-p", port, "-U", "0"])
    wait_for("memcached", lambda: accepts(port))
    shop = Shop(stage, 3, CACHE_PORT=port)
    client = Client(stage, shop.port, "/shop.php?page=stock")
    if "pieces" not in " ".join(client.first):
        raise CannotRun("PHP has no Memcached; scripts/setup.sh lab-real")
    stage.ordinary()
    stop(cache.pid)

    def look():
        asking = [pid for pid in shop.workers if pid in connections(port)[1]]
        return is_stopped(cache.pid), asking, [must_wait_in(pid, "poll") for pid in asking]

    stopped, asking, waits = stage.hold(look)
    cache.send_signal(signal.SIGCONT)
    if not stopped or len(asking) != 1:
        raise Fault(f"/proc: stopped: {stopped}; ss: {asking} have a connection")
    return Truth(
        text="LongWait; root memcached, stopped, behind nginx and php-fpm",
        victims=(client.pid, *asking),
        roots=(Root(cache.pid, ("LongWait",)),),
        frozen=must_last(stage, client.slow_answer()),
        witness=f"/proc: {cache.pid} is stopped; {asking[0]}, connected to it, waits in {waits[0]}",
    )
