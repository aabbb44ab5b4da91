"""Where a real program is made to freeze: its folders, its display, its processes.

All that a stage starts runs in a session of its own and is ended with the stage, so that nothing
stays behind. Times are CLOCK_MONOTONIC, ns, which the trace can be laid beside.
"""

import contextlib
import os
import pathlib
import pwd
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import processes

PATIENCE_S = 120
# A freeze has lasted so long when the witness looks.
LOOK_AFTER_S = 1.0


class Fault(Exception):
    """The freeze could not be provoked or recorded, so that there is nothing to compare."""


class CannotRun(Exception):
    """The machine lacks what the case needs."""


def now_ns():
    """The time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def wait_for(what, found, seconds=PATIENCE_S):
    """Waits until `found()` gives something, and gives that."""
    deadline = time.monotonic() + seconds
    while True:
        result = found()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Fault(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def read_line(stream, seconds=PATIENCE_S):
    """The next line of a pipe that is not buffered ahead of it, without its end."""
    if not select.select([stream], [], [], seconds)[0]:
        raise Fault(f"a program printed nothing for {seconds} s")
    line = stream.readline()
    if not line:
        raise Fault("a program ended before it printed what it should")
    return line.decode(errors="replace").rstrip("\n")


def output_of(words, **more):
    """What a command prints; one that fails is a Fault."""
    try:
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            **more,
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{words[0]}: not done after {PATIENCE_S} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise Fault(f"{words[0]}: exit code {done.returncode}: {last}")
    return done.stdout


class Program:
    """The program that a freeze is about. `pid` is its own, whoever started it; `stdin` and
    `stdout` are its pipes, where it was started with such."""

    def __init__(self, process, pid):
        self.process, self.pid = process, pid
        self.stdin, self.stdout = process.stdin, process.stdout
        # Stays right if the number is used again.
        self._handle = os.pidfd_open(pid)
        # It may end before anybody asks when.
        self._end_ns = None
        self._end = threading.Thread(target=self._see_end, daemon=True)
        self._end.start()

    def __del__(self):
        os.close(self._handle)

    def _see_end(self):
        select.select([self._handle], [], [])
        self._end_ns = now_ns()

    def ended(self, seconds=PATIENCE_S):
        """Waits until it has ended; gives when that was, ns."""
        self._end.join(seconds)
        if self._end_ns is None:
            raise Fault(f"process {self.pid} did not end within {seconds} s")
        return self._end_ns

    def runs(self):
        """Whether it has not ended."""
        return not select.select([self._handle], [], [], 0)[0]

    def signal(self, number):
        """Sends it a signal."""
        signal.pidfd_send_signal(self._handle, number)

    def tell(self, line):
        """Writes a line to it."""
        self.stdin.write(line.encode() + b"\n")
        self.stdin.flush()

    def line(self, seconds=PATIENCE_S):
        """The next line that it prints."""
        return read_line(self.stdout, seconds)


class Stage(contextlib.ExitStack):
    """A place for one case. `directory` is its home folder; `setting` records (settings.py)."""

    def __init__(self, directory: pathlib.Path, setting):
        super().__init__()
        self.directory, self.setting = directory, setting
        self.callback(_unmount_below, directory)
        temporary = directory / "tmp"
        temporary.mkdir()
        # Servers run as users of their own.
        temporary.chmod(0o1777)
        # Leaders of the sessions that it started.
        self.leaders = set()
        # Nothing of the desktop or the settings of who runs the lab.
        self.environment = {
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "XDG_RUNTIME_DIR": str(directory),
            "TMPDIR": str(temporary),
            "DEBUGINFOD_URLS": "",
            # Without a bus of the stage's, a program would start one that outlives it.
            "DBUS_SESSION_BUS_ADDRESS": "disabled:",
        }

    def start(self, words, **more):
        """Starts a program of the stage."""
        options = {"stdin": subprocess.DEVNULL, "env": self.environment}
        log = open(self.directory / "programs.log", "ab")
        with log:
            process = subprocess.Popen(
                [str(word) for word in words],
                start_new_session=True,
                bufsize=0,
                **options | {"stdout": log, "stderr": log} | more,
            )
        self.callback(processes.end, process)
        self.leaders.add(process.pid)
        processes.prefer(process)
        return process

    def display(self):
        """Opens a display of its own, on a number that the server finds free."""
        need("Xvfb", "xdotool")
        reading, writing = os.pipe()
        self.callback(os.close, reading)
        self.start(
            # A key that xdotool presses must not repeat itself because the machine is busy.
            ["Xvfb", "-displayfd", writing, "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]
            + ["-r"],
            pass_fds=(writing,),
        )
        os.close(writing)
        number = os.read(reading, 16).decode().strip()
        if not number:
            raise Fault("Xvfb did not start")
        self.environment["DISPLAY"] = f":{number}"

    def session_bus(self):
        """Starts a D-Bus session bus."""
        need("dbus-daemon")
        bus = self.start(
            [
                "dbus-daemon",
                "--session",
                "--nofork",
                "--print-address=1",
                f"--address=unix:path={self.directory}/bus",
            ],
            stdout=subprocess.PIPE,
        )
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().decode().strip()
        return bus

    def xdotool(self, *words):
        """What xdotool prints on the stage's display."""
        return output_of(["xdotool", *words], env=self.environment)

    def window(self, name):
        """Waits for a visible window whose title has a match of the pattern; gives its number.
        There is no window manager, so it is given the keyboard too."""
        words = ["xdotool", "search", "--onlyvisible", "--name", name]

        def look():
            done = subprocess.run(
                words, env=self.environment, capture_output=True, text=True, check=False
            )
            return done.stdout.split()

        number = wait_for(f"window {name}", look)[-1]

        def focus():
            # A window that is not ready for it yet refuses.
            words = ["xdotool", "windowfocus", "--sync", number]
            done = subprocess.run(
                words, env=self.environment, capture_output=True, timeout=PATIENCE_S, check=False
            )
            return done.returncode == 0

        wait_for(f"the keyboard for window {name}", focus, 10)
        return number

    def owned_by(self, user):
        """A folder that another user may write to."""
        if os.geteuid() != 0:
            raise CannotRun(f"only root can start a program as {user}")
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            raise CannotRun(f"there is no user {user}") from None
        folder = self.directory / user
        folder.mkdir()
        os.chown(folder, account.pw_uid, account.pw_gid)
        return folder

    def program(self, words, **more):
        """Starts the program that the freeze is about: `hangdog record -- PROGRAM` does it where
        that is the setting. Called once in a case."""
        return self.setting.start(self, [str(word) for word in words], more)

    @property
    def freeze_s(self):
        """How long the program should be frozen, s. A case that cannot choose takes at least as
        long as that; one that only holds something back calls `hold`."""
        return self.setting.freeze_s

    @property
    def alone(self):
        """Whether nothing is recorded, so that a debugger or tracer may be the witness."""
        return self.setting.name == "alone"

    def ordinary(self):
        """Lets the program be in order for a while."""
        time.sleep(self.setting.before_s)

    def hold(self, look=None):
        """The freeze has begun: lets it last, and gives what `look()` saw in it. The recording
        that begins in the middle is made in here; at its end the program must still be frozen."""
        begin = time.monotonic()
        time.sleep(LOOK_AFTER_S)
        seen = look() if look else None
        self.setting.during(self)
        time.sleep(max(0.0, begin + self.freeze_s - time.monotonic()))
        return seen

    def programs(self):
        """The process ids of all that is on the stage."""
        found = {pid for leader in self.leaders for pid, _ in processes.of_session(leader)}
        return found | self.leaders


def _unmount_below(directory):
    """Takes away what a service that was killed has left mounted in a stage's folder."""
    for line in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        place = line.split()[1]
        if place.startswith(f"{directory}/"):
            subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)


def need(*programs):
    """Sees to it that programs are there."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise CannotRun(f"not installed: {', '.join(missing)}; scripts/setup.sh lab-real")


def free_port():
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(port):
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
