"""The settings in which a freeze is recorded.

  record   `hangdog record -- PROGRAM`: the recorder starts the program that will freeze.
  flight   `hangdog flight` runs all the time, beside ordinary other life; `hangdog snap` one second
           after the freeze is over.
  middle   `hangdog record --for 4s`, begun while it is frozen and ended before that is over.
  alone    No recorder: the witness alone says whether it froze. Here, and only here, a witness may
           be a debugger or a tracer, which would disturb a recording.

A setting is told when the program starts, when it has been frozen for a moment, and when it goes
on. It knows nothing of cases.
"""

import contextlib
import pathlib
import signal
import subprocess
import time

import processes
from stage import PATIENCE_S, Fault, Program, now_ns, wait_for

# How long the recording in the middle takes.
MIDDLE_S = 4.0
# How long a flight recorder has run when a case begins.
BEFORE_S = 1.5
# What is recorded after a freeze, in which a program is seen to go on.
AFTER_S = 1.0


class Setting:
    """What all have in common: the program is started by the stage, nothing is recorded."""

    name = "alone"
    # How long a case should keep its program frozen.
    freeze_s = 3.0
    # How long a program runs in order before its freeze.
    before_s = 2.0

    def __init__(self, hangdog, trace):
        self.hangdog, self.trace = hangdog, trace
        # When the recording began and ended, as far as it can be known from outside.
        self.recorded_ns = None

    def begin(self, stage):
        """Nothing of the case has been started yet."""

    def start(self, stage, words, more):
        """Starts the program that will freeze."""
        process = stage.start(words, **more)
        return Program(process, process.pid)

    def during(self, stage):
        """It has been frozen for a moment, and is frozen still."""

    def after(self, stage):
        """The freeze is over."""


class Record(Setting):
    """The recorder starts the program."""

    name = "record"

    def __init__(self, hangdog, trace):
        super().__init__(hangdog, trace)
        self.recorder = None

    def start(self, stage, words, more):
        command = [self.hangdog, "record", "-o", self.trace, "--", *words]
        self.recorder = stage.start(command, **more)
        # It is none of the programs of the case.
        stage.leaders.discard(self.recorder.pid)
        meta = self.trace / "meta.json"

        def child():
            if self.recorder.poll() is not None:
                raise Fault(f"hangdog record: exit code {self.recorder.returncode} at its start")
            return meta.exists() and _children(self.recorder.pid)

        pid = wait_for("the recorder", child)[0]
        return Program(self.recorder, pid)

    def after(self, stage):
        if self.recorder is None:
            raise Fault("the case started no program")
        if self.recorder.poll() is None:
            time.sleep(AFTER_S)
        with processes.ended_after(self.recorder.pid):
            # It ends its command too.
            with contextlib.suppress(ProcessLookupError):
                self.recorder.send_signal(signal.SIGINT)
            _until_ended(self.recorder, "hangdog record")


class Flight(Setting):
    """A flight recorder runs from before the case on: what it holds is this case alone."""

    name = "flight"

    def __init__(self, hangdog, trace):
        super().__init__(hangdog, trace)
        self.environment = None

    def begin(self, stage):
        socket = stage.directory / "flight"
        self.environment = stage.environment | {"HANGDOG_SOCKET": str(socket)}
        recorder = stage.start([self.hangdog, "flight"], env=self.environment)
        stage.leaders.discard(recorder.pid)
        ended = recorder.poll
        wait_for("the flight recorder", lambda: socket.exists() or ended() is not None)
        # What it has seen before the case.
        time.sleep(BEFORE_S)

    def after(self, stage):
        time.sleep(AFTER_S)
        words = [self.hangdog, "snap", "-o", self.trace]
        _run(words, env=self.environment)


class Middle(Setting):
    """A recording that sees neither the begin nor the end."""

    name = "middle"
    freeze_s = 8.5
    before_s = 0.5

    def during(self, stage):
        begin = now_ns()
        words = [self.hangdog, "record", "--for", f"{MIDDLE_S:g}s", "-o", self.trace]
        _run(words, env=stage.environment)
        self.recorded_ns = (begin, now_ns())

    def after(self, stage):
        if self.recorded_ns is None:
            raise Fault("the case did not say when it was frozen")


def _children(pid):
    """The processes that a process has started."""
    found = []
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in file.read_text(encoding="ascii").split()]
    return found


def _run(words, **more):
    """Runs hangdog to its end; one that fails is a Fault."""
    words = [str(word) for word in words]
    what = " ".join(words[:2])
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=PATIENCE_S, check=False, **more
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{what}: not done after {PATIENCE_S} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise Fault(f"{what}: exit code {done.returncode}: {said}")


def _until_ended(process, what):
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise Fault(f"{what}: not done after {PATIENCE_S} s") from None
