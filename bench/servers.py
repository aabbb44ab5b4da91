"""What recording costs servers under load over loopback TCP: throughput and tail latency with a
recorder beside those without; and what each of the recorder's hooks takes.

The same load's throughput wanders by 20 % within a minute on a virtual machine. So each run with a
recorder is compared with the mean of the two without that come right before and after it.
"""

import contextlib
import csv
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time
import typing

import recorders

SECONDS = 3
PATIENCE_S = 30
SETTLE_S = 4
POSTGRES = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, what):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise recorders.Failure(f"{what} does not listen")


def output_of(words, **options):
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=60 + SECONDS, **options
    )
    if done.returncode != 0:
        raise recorders.Failure(f"{' '.join(map(str, words))}: {done.stderr.strip()[-300:]}")
    return done.stdout


def end(process):
    """Interrupts a program, and kills it if it does not end."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def serving(words, port, **options):
    """A server for as long as it is needed."""
    server = subprocess.Popen(
        list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    try:
        wait_for_port(port, words[0])
        yield
    finally:
        end(server)


@dataclasses.dataclass(frozen=True)
class Load:
    """Gives operations a second and the 99th percentile of their latency in ms (None: not told)."""

    name: str
    run: typing.Callable[[], typing.Tuple[float, typing.Optional[float]]]
    # A command that goes on until it is interrupted and tells its rate each second, where there is one.
    endless: typing.Optional[typing.List[str]] = None


def percentile(values, share):
    values = sorted(values)
    return values[min(int(len(values) * share), len(values) - 1)] if values else None


@contextlib.contextmanager
def postgres(directory):
    """pgbench -S by four clients in two threads; the latency from a tenth of the transactions."""
    if POSTGRES is None:
        raise recorders.Failure("PostgreSQL is not installed")
    data, port = directory / "postgres", free_port()
    data.mkdir()
    shutil.chown(data, "postgres")
    as_user = {"user": "postgres", "group": "postgres", "cwd": "/"}
    output_of([POSTGRES / "initdb", "-D", data, "-A", "trust"], **as_user)
    settings = [f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={data}"]
    words = [POSTGRES / "postgres", "-D", data] + [w for s in settings for w in ("-c", s)]
    client = [POSTGRES / "pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]

    def run():
        logs = directory / "pgbench"
        logs.mkdir()
        try:
            words = [*client, "-S", "-c", "4", "-j", "2", "-T", str(SECONDS), "-l"]
            words += ["--sampling-rate=0.1", f"--log-prefix={logs}/log", "postgres"]
            told = output_of(words)
            lines = [line for log in logs.iterdir() for line in log.read_text().splitlines()]
        finally:
            shutil.rmtree(logs)
        tail = percentile([int(line.split()[2]) / 1e3 for line in lines], 0.99)
        return float(re.search(r"^tps = ([0-9.]+)", told, re.MULTILINE).group(1)), tail

    with serving(words, port, **as_user):
        time.sleep(1)
        output_of([*client, "-i", "-s", "10", "-q", "postgres"])
        loads = ["-S", "-c", "4", "-j", "2"]
        endless = [*client, *loads, "-T", "86400", "--progress=1", "postgres"]
        yield [Load("pgbench -S -c 4 -j 2", run, list(map(str, endless)))]


@contextlib.contextmanager
def redis(_directory):
    """redis-benchmark, one command in flight on each of 20 connections."""
    port = free_port()
    words = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]

    def load(command):
        requests = {"n": 200_000}

        def run():
            words = ["redis-benchmark", "-p", port, "-c", 20, "-t", command, "--csv"]
            told = output_of([*map(str, words), "-n", str(requests["n"])])
            row = next(csv.DictReader(told.splitlines()))
            rate = float(row["rps"])
            # It takes a number and no time.
            requests["n"] = round(rate * SECONDS)
            return rate, float(row["p99_latency_ms"])

        return Load(f"redis {command.upper()} -c 20", run)

    with serving(words, port):
        yield [load("get"), load("set")]


@contextlib.contextmanager
def nginx(directory):
    """wrk, 20 connections in one thread, for a file of 1 kB."""
    port = free_port()
    (directory / "small").write_bytes(b"x" * 1024)
    config = directory / "nginx.conf"
    config.write_text(
        f"daemon off; pid {directory}/nginx.pid; error_log /dev/null; worker_processes 1;\n"
        f"user root; events {{}} http {{ access_log off; keepalive_requests 1000000000;\n"
        f"server {{ listen 127.0.0.1:{port}; root {directory}; }} }}\n"
    )

    def run():
        words = ["wrk", "-t", "1", "-c", "20", "-d", f"{SECONDS}s", "--latency"]
        told = output_of([*words, f"http://127.0.0.1:{port}/small"])
        number, unit = re.search(r"^\s+99%\s+([0-9.]+)(us|ms|s)$", told, re.MULTILINE).groups()
        rate = float(re.search(r"^Requests/sec:\s+([0-9.]+)", told, re.MULTILINE).group(1))
        return rate, float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]

    with serving(["nginx", "-c", config, "-p", directory], port):
        yield [Load("nginx, 1 kB, wrk -c 20", run)]


@contextlib.contextmanager
def memcached(_directory):
    """memcaslap, 16 connections in one thread, nine gets to a set; it tells no percentile."""
    port = free_port()

    def run():
        words = ["memcaslap", "-s", f"127.0.0.1:{port}", "-T", "1", "-c", "16"]
        told = output_of([*words, "-t", f"{SECONDS}s"])
        return float(re.search(r"TPS: ([0-9]+)", told).group(1)), None

    words = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", port, "-t", 2]
    with serving(words, port):
        yield [Load("memcached, memcaslap -c 16", run)]


SERVERS = {"pgbench": postgres, "redis": redis, "nginx": nginx, "memcached": memcached}


class Beside:
    """A program that records the whole system while a load runs."""

    def __init__(self, name, words, ready=None, environment=None):
        self.name, self.words, self.ready, self.environment = name, words, ready, environment or {}

    @contextlib.contextmanager
    def beside(self, directory):
        log = directory / "recorder.log"
        words = [str(word).replace("DIR", str(directory)) for word in self.words]
        own = {key: value.replace("DIR", str(directory)) for key, value in self.environment.items()}
        with log.open("w") as out:
            recorder = subprocess.Popen(words, stdout=out, stderr=out, env=os.environ | own)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while self.ready and self.ready not in log.read_text():
                if recorder.poll() is not None or time.monotonic() > deadline:
                    raise recorders.Failure(f"{self.name}: {log.read_text().strip()[-300:]}")
                time.sleep(0.05)
            # Until unwind tables are built.
            time.sleep(SETTLE_S)
            yield
        finally:
            recorder.send_signal(signal.SIGINT)
            try:
                recorder.wait(120)
            except subprocess.TimeoutExpired:
                recorder.kill()
                recorder.wait()
                raise recorders.Failure(f"{self.name}: does not end") from None
        if recorder.returncode not in (0, -signal.SIGINT):
            raise recorders.Failure(f"{self.name}: {log.read_text().strip()[-300:]}")


def forms(hangdog, peers):
    """hangdog in its forms, and its peers."""
    record = [hangdog, "record", "-o", "DIR/trace.hang"]
    flight = {"HANGDOG_SOCKET": "DIR/socket"}
    found = [
        Beside("flight", [hangdog, "flight"], "recording into", flight),
        Beside("record", record),
        Beside("record, no stacks", [*record, "--no-stacks"]),
    ]
    if peers:
        events = ["sched:sched_switch", "sched:sched_waking"]
        perf = ["perf", "record", "-q", "-a", "-e", ",".join(events), "-o", "DIR/perf.data"]
        tracer = ["trace-cmd", "record", "-q", "-o", "DIR/trace.dat"]
        found += [
            Beside("perf record", perf),
            Beside("perf record -g", [*perf, "-g"]),
            Beside("trace-cmd record", tracer + [w for e in events for w in ("-e", e)]),
        ]
    return found


def run(form, load, directory):
    with recorders.empty(directory / "beside") as place, form.beside(place):
        return load.run()


def hooks(pid):
    """Calls and ns of the BPF programs that a process has open, while the kernel counts them."""
    found = {}
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if "bpf-prog" not in os.readlink(link):
                continue
            fields = dict(
                line.split(":\t", 1)
                for line in pathlib.Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().splitlines()
            )
            found[int(fields["prog_id"])] = (int(fields["run_cnt"]), int(fields["run_time_ns"]))
    return found


def names_of_programs():
    told = json.loads(output_of(["bpftool", "prog", "show", "--json"]))
    return {program["id"]: program.get("name", "?") for program in told}


def measure_hooks(hangdog, load, directory, *options):
    """A row for each hook that was called beside a load: calls a second, ns a call."""
    before = STATS.read_text()
    STATS.write_text("1")
    try:
        with recorders.empty(directory / "hooks") as place:
            words = [hangdog, "flight", *options]
            environment = os.environ | {"HANGDOG_SOCKET": str(place / "socket")}
            flight = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment)
            try:
                time.sleep(3)
                names, first = names_of_programs(), hooks(flight.pid)
                begin = time.monotonic()
                load.run()
                seconds, last = time.monotonic() - begin, hooks(flight.pid)
            finally:
                flight.send_signal(signal.SIGINT)
                flight.wait(60)
    finally:
        STATS.write_text(before)
    rows = []
    for number, (count, ns) in last.items():
        calls, took = (after - then for after, then in zip((count, ns), first.get(number, (0, 0))))
        if calls:
            row = {"hook": names.get(number, "?"), "calls_per_s": calls / seconds}
            rows.append(row | {"ns": took / calls, "cpu_share": took / 1e9 / seconds})
    return {"load": load.name, "hooks": sorted(rows, key=lambda row: -row["cpu_share"])}


def compared(load, form, before, recorded, after):
    """A row: the run with a recorder beside its neighbours without."""
    rate, tail = recorded
    row = {"load": load.name, "recorder": form.name, "rate": rate, "p99_ms": tail}
    row["bare_rate"] = (before[0] + after[0]) / 2
    row["bare_p99_ms"] = None if tail is None else (before[1] + after[1]) / 2
    return row


def measure(hangdog, directory, rounds, peers, only=""):
    """All loads under all recorders in turn, and the hooks' table of each load."""
    rows, tables, failures = [], [], []
    for name, server in SERVERS.items():
        if only not in name:
            continue
        try:
            with recorders.empty(directory / name) as place, server(place) as loads:
                for load in loads:
                    load.run()
                    turns, before = forms(hangdog, peers), load.run()
                    for number in range(rounds):
                        at = number % len(turns)
                        for form in turns[at:] + turns[:at]:
                            try:
                                recorded = run(form, load, place)
                            except recorders.Failure as failure:
                                failures.append(f"round {number + 1}: {load.name}: {failure}")
                                continue
                            after = load.run()
                            rows.append(compared(load, form, before, recorded, after))
                            before = after
                    tables.append(measure_hooks(hangdog, load, place))
        except recorders.Failure as failure:
            failures.append(f"{name}: {failure}")
    return {"runs": rows, "hooks": tables, "failures": failures}


def spread(values):
    values = list(values)
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def show(found):
    """Prints what came of it: medians, with the least and the greatest."""
    groups = {}
    for row in found["runs"]:
        groups.setdefault(row["load"], {}).setdefault(row["recorder"], []).append(row)
    print(f"\n{'load':<28} {'recorder':<20} {'throughput without / with':<28} p99 with / without")
    for load, by in groups.items():
        every = [row for rows in by.values() for row in rows]
        rates = spread(row["bare_rate"] for row in every)
        tails = spread(row["bare_p99_ms"] for row in every if row["bare_p99_ms"])
        print(f"{load:<28} {'none':<20} {rates + ' /s':<28} {tails} ms")
        for name, rows in by.items():
            rate = spread(row["bare_rate"] / row["rate"] for row in rows)
            tail = spread(row["p99_ms"] / row["bare_p99_ms"] for row in rows if row["p99_ms"])
            print(f"{load:<28} {name:<20} {rate:<28} {tail}")
    for table in found["hooks"]:
        print(f"\nflight beside {table['load']}: {'hook':<24} {'calls/s':>9} {'ns':>6} {'CPU':>6}")
        for row in table["hooks"][:12]:
            print(
                f"{'':<45} {row['hook']:<24} {row['calls_per_s']:>9,.0f} {row['ns']:>6.0f} "
                f"{row['cpu_share']:>6.1%}"
            )
