#!/usr/bin/env python3
"""Compares requests that hangdog finds by itself in servers without marks: redis with one slow command in a hundred,
and PostgreSQL with one client that holds a row now and then that another wants.

What is true comes from the servers: redis' slow log says how many commands were slow and which; PostgreSQL's log
says how many statements waited for a lock. `hangdog compare` must find as many slow ones, and name the factor: the
functions of that command, and the other session. Servers and clients have a real-time priority, so that other work
on the machine does not make requests slow. Needs root, redis-server and PostgreSQL; what is missing is printed as
NOT RUN.
"""

import argparse
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
SLOW_US = 3_000
REQUESTS = 1_500
STATEMENTS = 250
REALTIME = ["chrt", "--rr", "10"]


class CannotRun(Exception):
    """What this machine lacks."""


def text_of(words, **more):
    words = [str(word) for word in words]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120, **more).stdout


@contextlib.contextmanager
def recording(hangdog, trace):
    """Everything is recorded while the context lasts."""
    words = [*REALTIME[:2], "20", hangdog, "record", "--sample", "2000", "-o", trace]
    recorder = subprocess.Popen(
        [str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(3)
    try:
        yield
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.wait()


def compared(hangdog, trace, *options):
    return json.loads(text_of([hangdog, "compare", trace, *options, "--json"]))


def first_factor(said):
    """What the first factor is, and its largest parts."""
    if said["difference"] is None:
        return "no difference"
    first = said["difference"]["factors"][0]
    parts = ", ".join(part["what"] for part in first["details"][:3])
    return f"{first['factor']} ({first['share']:.0%}): {parts}"


def check(name, what, truth, found, is_right):
    print(f"{name:11} {what:28} {'right' if is_right else 'WRONG':6} truth: {truth}; found: {found}", flush=True)
    return is_right


class Redis:
    """A connection that speaks redis' protocol."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.replies = self.socket.makefile("rb")

    def ask(self, *words):
        parts = [f"${len(str(word))}\r\n{word}\r\n" for word in words]
        self.socket.sendall(f"*{len(parts)}\r\n{''.join(parts)}".encode())
        return self.reply()

    def reply(self):
        line = self.replies.readline().decode().strip()
        if line.startswith("*"):
            return [self.reply() for _ in range(int(line[1:]))]
        if line.startswith("$"):
            size = int(line[1:])
            return None if size < 0 else self.replies.read(size + 2)[:-2].decode()
        return line[1:]


def redis(hangdog, folder):
    if not shutil.which("redis-server"):
        raise CannotRun("there is no redis-server (apt install redis-server)")
    path, trace = folder / "redis.sock", folder / "redis.hang"
    options = {"port": 0, "unixsocket": path, "save": "", "dir": folder, "slowlog-max-len": 10_000}
    options["slowlog-log-slower-than"] = SLOW_US
    words = [str(part) for key, value in options.items() for part in (f"--{key}", value)]
    server = subprocess.Popen([*REALTIME, "redis-server", *words], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.05)
        client = Redis(path)
        for at in range(60_000):
            client.ask("RPUSH", "list", at * 7919 % 60_013)
        with recording(hangdog, trace):
            client.ask("SLOWLOG", "RESET")
            for at in range(REQUESTS):
                if at % 100 == 50:
                    client.ask("SORT", "list", "LIMIT", 0, 1)
                else:
                    client.ask("SET", f"key:{at}", "value")
                time.sleep(0.001)
            logged = client.ask("SLOWLOG", "GET", 10_000)
    finally:
        server.terminate()
        server.wait()
    names = {entry[3][0] for entry in logged}
    said = compared(hangdog, trace, "--thread", f"{server.pid}")
    print(f"{chr(32) * 11} {said['sentence']}", flush=True)
    count = said["difference"]["slow"]["count"] if said["difference"] else 0
    factor = first_factor(said)
    truth = f"{len(logged)} commands {sorted(names)} slower than {SLOW_US / 1000:.0f} ms"
    # A turn that something else made slow is slow all the same.
    right = [
        check("redis", "slow ones", truth, f"{count} turns", len(logged) <= count <= 1.5 * len(logged) + 1),
        check("redis", "factor", "running SORT", factor, re.search(r"running.*sort", factor, re.I) is not None),
    ]
    return all(right)


@contextlib.contextmanager
def database(folder):
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        raise CannotRun("there is no PostgreSQL (apt install postgresql)")
    tools, data, log = programs[-1].parent, folder / "data", folder / "log"
    user = pwd.getpwnam("postgres")
    data.mkdir()
    folder.chmod(0o755)
    os.chown(data, user.pw_uid, user.pw_gid)
    as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    text_of([*as_user, tools / "initdb", "-D", data, "-A", "trust"], cwd=folder)
    settings = {"listen_addresses": "", "log_lock_waits": "on", "deadlock_timeout": "10ms", "autovacuum": "off"}
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    with log.open("w") as file:
        server = subprocess.Popen(
            [str(word) for word in [*REALTIME, *as_user, tools / "postgres", "-D", data, "-k", data, *words]],
            stdout=subprocess.DEVNULL, stderr=file, cwd=folder,
        )  # fmt: skip
    try:
        ask = ["psql", "-h", str(data), "-U", "postgres", "postgres", "-q", "-X", "-A", "-t"]
        for _ in range(100):
            if subprocess.run([*ask, "-c", "select 1"], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        yield ask, log
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


class Session:
    """A psql process that reads statements from a pipe, one at a time."""

    def __init__(self, ask):
        self.process = subprocess.Popen(
            [*REALTIME, *ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.backend = int(self.ask("select pg_backend_pid()"))

    def tell(self, statement):
        self.process.stdin.write(f"{statement};\n")

    def ask(self, statement):
        self.tell(statement)
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def postgresql(hangdog, folder):
    trace = folder / "postgres.hang"
    with database(folder) as (ask, log):
        text_of([*ask, "-c", "create table t as select id, 0 as v from generate_series(1, 100) id"])
        client, holder = Session(ask), Session(ask)
        before = log.read_text().count("still waiting")
        with recording(hangdog, trace):
            for at in range(STATEMENTS):
                if at % 10 == 5:
                    holder.tell("begin")
                    holder.ask("update t set v = v + 1 where id = 1 returning v")
                    # The client's statement comes while this one holds the row.
                    holder.tell("select pg_sleep(0.04)")
                    holder.tell("commit")
                    client.ask("update t set v = v + 1 where id = 1 returning v")
                    holder.process.stdout.readline()
                else:
                    client.ask("update t set v = v + 1 where id = 2 returning v")
                time.sleep(0.002)
        logged = log.read_text().count("still waiting") - before
        pids = client.process.pid, client.backend
        client.close()
        holder.close()
    right = []
    for what, options in [
        ("requests of the client", ["--thread", f"{pids[0]}", "--requests"]),
        ("turns of its backend", ["--thread", f"{pids[1]}"]),
    ]:
        said = compared(hangdog, trace, *options)
        count = said["difference"]["slow"]["count"] if said["difference"] else 0
        factor = first_factor(said)
        slow = f"{logged} statements that waited for a lock"
        right.append(check("postgresql", f"{what}: slow", slow, count, logged <= count <= 1.5 * logged + 1))
        named = "another session" in factor
        right.append(check("postgresql", f"{what}: factor", "another session's lock", factor, named))
        print(f"{'':11} {said['sentence']}", flush=True)
    return all(right)


CASES = {"redis": redis, "postgresql": postgresql}


def main():
    """Runs the cases, and prints a row for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/release/hangdog")
    parser.add_argument("names", nargs="*", default=list(CASES))
    args = parser.parse_args()
    right = True
    for name in args.names:
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            try:
                right &= CASES[name](pathlib.Path(args.hangdog).resolve(), pathlib.Path(folder))
            except CannotRun as why:
                print(f"NOT RUN: {name}: {why}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
