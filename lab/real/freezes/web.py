"""What the cases of web servers share: a client as the program that freezes, an application behind
gunicorn, and what is known of sockets."""

import re
import subprocess

from freezes.postgres import PROGRAMS, PYTHON
from freezes.procfs import children, cpu_s, state
from stage import Fault, accepts, free_port, need, output_of, wait_for

CLIENT = PROGRAMS / "web_client.py"


class Client:
    """A client that asks for a page again and again (web_client.py); the program of the case."""

    def __init__(self, stage, port, usual):
        self.program = stage.program(
            [PYTHON, CLIENT, port, usual], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self.program.pid
        # What the first answer says: status and words of its text.
        self.first = self.program.line().split()

    def ask(self, path):
        """Has it ask for another page, once."""
        self.program.tell(path)

    def slow_answer(self):
        """Waits for an answer that took long; gives begin and end."""
        begin, end, *_ = self.program.line().split()
        return int(begin), int(end)


class App:
    """web_app.py behind gunicorn, with one worker process."""

    def __init__(self, stage, *options, **environment):
        need("gunicorn", PYTHON)
        self.port = free_port()
        self.master = stage.start(
            ["gunicorn", "--chdir", PROGRAMS, "--bind", f"127.0.0.1:{self.port}", "--timeout",
             "60", "--worker-tmp-dir", stage.directory, *options, "web_app:app"],
            env=stage.environment | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        )
        wait_for("gunicorn", lambda: accepts(self.port))
        self.worker = wait_for("its worker", lambda: children(self.master.pid))[0]


def computing(pid):
    """Sees that a process computes, and says so."""
    used = cpu_s(pid)
    wait_for(f"process {pid} computes", lambda: cpu_s(pid) > used + 0.02, 5)
    return f"{pid} uses the CPU"


def sleeping(pid):
    """Sees that a process sleeps, and says so."""
    found = state(pid)
    if found != "S":
        raise Fault(f"/proc: {pid} is in state {found}, not asleep")
    return f"{pid} sleeps"


def connections(port):
    """How many connections to a port wait to be accepted, and the processes that have an end of
    one."""
    words = ["ss", "-Htanp", f"( sport = :{port} or dport = :{port} )"]
    rows = [line.split(maxsplit=5) for line in output_of(words).splitlines()]
    waiting = sum(int(row[1]) for row in rows if row[0] == "LISTEN")
    ends = [row[-1] for row in rows if row[0] == "ESTAB"]
    return waiting, {int(pid) for end in ends for pid in re.findall(r"\bpid=(\d+),", end)}
