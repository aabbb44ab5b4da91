#!/usr/bin/env python3
"""Real programs that page: a start of LibreOffice Writer and a Python program that imports pandas, both with nothing
of their files in memory and from a disk that gives 10 MB a second, and PostgreSQL with a working set larger than the
memory of its control group.

Of each the table of `hangdog paging` and the sentence of `hangdog why` are printed, and of the first two what
`hangdog paging --try prefetch` measures: the start without and with it, five times each, in turns.

What is true comes from elsewhere: page-ins are compared with those that the kernel counts (getrusage(2) of the
command, `memory.stat` of PostgreSQL's group). Needs root, cgroup v1, and the programs: apt install
libreoffice-writer, postgresql; pandas comes from PyPI into a folder of its own. What is missing is printed as NOT
RUN.
"""

import argparse
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

from run import BUILD, CannotRun, Group, Slow, call

SLOW = 10_000_000
LIMIT = 64 << 20
LIBREOFFICE = ["soffice", "--headless", "--norestore", "--writer", "--terminate_after_init"]
PYTHON = BUILD / "pandas"


def cold():
    """Nothing of any file is in memory."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def table(hangdog, trace, *options):
    print(call([hangdog, "paging", trace, *options]).rstrip())
    return json.loads(call([hangdog, "paging", trace, *options, "--json"]))


def agree(ours, theirs):
    difference = f"{abs(ours - theirs) / theirs:.2%}" if theirs else "-"
    print(f"page-ins: hangdog {ours}, the kernel {theirs}, difference {difference}")


COUNTING = """
import pathlib, resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True)
pathlib.Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_majflt))
"""


def start(hangdog, folder, name, command, runs):
    """A cold start on a slow disk, and whether a prefetch makes it faster. `name` is that of the process."""
    trace, counted = folder / "start.hang", folder / "page-ins"
    with Slow("/", SLOW) as slow:
        # What is set up once is no part of a start.
        call(command)
        cold()
        begun = time.monotonic()
        call(slow.command(command))
        print(f"without a recorder: {time.monotonic() - begun:.1f} s")
        cold()
        # The recorder is no part of it: it reads at full speed.
        inner = [sys.executable, "-c", COUNTING, counted, *slow.command(command)]
        call([hangdog, "record", "--faults", "-o", trace, "--", *inner])
        answer = table(hangdog, trace, "--process", name)
        agree(answer["sum"]["page_ins"], int(counted.read_text()))
        print(call([hangdog, "why", trace], accept=(0, 1)).split("\n\n")[0])
        whole = call([hangdog, "why", "--whole", trace], accept=(0, 1))
        print(whole.split("\n\n")[0])
        words = slow.command([hangdog, "paging", "--try", "prefetch", "--runs", runs, "--", *command])
        subprocess.run([str(word) for word in words], check=True, timeout=1200)


def libreoffice(hangdog, folder, runs):
    if not shutil.which("soffice"):
        raise CannotRun("there is no soffice (apt install libreoffice-writer)")
    start(hangdog, folder, "oosplash", [shutil.which("env"), f"HOME={folder}", *LIBREOFFICE], runs)


def python(hangdog, folder, runs):
    if not (PYTHON / "bin/python").exists():
        call([sys.executable, "-m", "venv", PYTHON])
        call([PYTHON / "bin/pip", "install", "--quiet", "pandas"])
    start(hangdog, folder, "python", [PYTHON / "bin/python", "-c", "import pandas"], runs)


@contextlib.contextmanager
def server(folder, group):
    """PostgreSQL in the group, as the user of that name, while the context lasts."""
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        raise CannotRun("there is no PostgreSQL (apt install postgresql)")
    tools = programs[-1].parent
    user = pwd.getpwnam("postgres")
    data = folder / "data"
    data.mkdir()
    folder.chmod(0o755)
    os.chown(data, user.pw_uid, user.pw_gid)
    as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    call([*as_user, tools / "initdb", "-D", data, "-A", "trust"], cwd=folder)
    words = [tools / "postgres", "-D", data, "-k", data, "-c", "listen_addresses=", "-c", "shared_buffers=16MB"]
    words += ["-c", "maintenance_work_mem=8MB"]
    running = subprocess.Popen(
        [str(word) for word in group.command([*as_user, *words])],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    try:
        ask = ["-h", data, "-U", "postgres", "postgres"]
        for _ in range(100):
            with contextlib.suppress(RuntimeError):
                call(["psql", "-c", "select 1", *ask])
                break
            time.sleep(0.1)
        yield tools, ask
    finally:
        running.terminate()
        running.wait()


def postgresql(hangdog, folder, _runs):
    trace = folder / "postgres.hang"
    with Group(LIMIT) as group, Slow("/", SLOW * 4) as slow:

        class Both:
            def command(self, words):
                return slow.command(group.command(words))

        with server(folder, Both()) as (tools, ask):
            call([tools / "pgbench", "-i", "-q", "-s", "20", *ask])
            before = group.figures()
            words = [hangdog, "record", "--faults", "-o", trace, "--"]
            call([*words, tools / "pgbench", "-S", "-c", "4", "-T", "10", *ask])
            after = group.figures()
            table(hangdog, trace, "--process", "postgres")
            for name in ("pgpgin", "pgmajfault"):
                print(f"the group's {name}: {after[name] - before[name]}")
            print(call([hangdog, "why", trace, "--process", "postgres"], accept=(0, 1)).split("\n\n")[0])


CASES = {"libreoffice": libreoffice, "python": python, "postgresql": postgresql}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/release/hangdog")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("names", nargs="*", default=list(CASES))
    args = parser.parse_args()
    hangdog = str(pathlib.Path(args.hangdog).resolve())
    for name in args.names:
        print(f"== {name}")
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            try:
                CASES[name](hangdog, pathlib.Path(folder), args.runs)
            except CannotRun as why:
                print(f"NOT RUN: {why}")


if __name__ == "__main__":
    main()
