"""Programs of a shell and of an operator: a pipeline whose middle is stopped or starved, a server
in a debugger, a log that is rotated, a terminal that somebody has halted, a server that is slowed
down."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import threading
import time

from case import Root, Truth, freeze
from freezes.cpu_groups import Group, end, endless, hard_to_pack, must_be_starved
from freezes.interactive import Terminal
from freezes.neighbours import neighbours
from freezes.procfs import (
    children,
    cpu_s,
    moved,
    must_be_stopped,
    must_wait_in,
    name,
    running,
    state,
    status,
    until_descendant,
    until_named,
    until_still,
)
from freezes.python_runtime import HERE
from freezes.runtimes import must_last
from freezes.tcp import PROGRAMS, PYTHON
from freezes.web import Client, computing
from stage import Fault, accepts, free_port, need, now_ns, output_of, read_line, wait_for

LOOKS = 40
START, STOP = b"\x11", b"\x13"


@freeze("shells", "pipeline-middle-stopped")
def middle_stopped(stage):
    """A shell script counts the orders of a log by pv, tr and awk, and tr is stopped."""
    need("bash", "pv", "tr", "awk")
    neighbours(stage)
    log = stage.directory / "orders.log"
    log.write_text("order miller 12 apples\norder smith 7 pears\n" * 400_000)
    words = ["bash", str(PROGRAMS / "sh_totals.sh"), str(log)]
    script = stage.program(words, stdout=subprocess.PIPE)
    pv, tr = (until_descendant(script.pid, wanted) for wanted in ("pv", "tr"))
    awk = wait_for("awk", lambda: [one for one in children(script.pid) if "awk" in name(one)])[0]
    stage.ordinary()
    os.kill(tr, signal.SIGSTOP)
    begin = until_still(awk, "rchar")

    def look():
        must_be_stopped(tr)
        return must_wait_in(awk, "pipe"), moved(awk, "rchar")

    channel, read = stage.hold(look)
    if moved(awk, "rchar") != read:
        raise Fault("/proc: awk has gone on reading")
    os.kill(tr, signal.SIGCONT)
    return Truth(
        text="LongWait; root tr, stopped in the middle of a pipeline",
        victims=(script.pid, awk, pv),
        roots=(Root(tr, ("LongWait",)),),
        frozen=(begin, now_ns()),
        witness=f"/proc: {tr} is stopped; awk reads nothing and waits in {channel}",
    )


@freeze("shells", "pipeline-packs")
def packs(stage):
    """A shell script prints how large files are packed, by xargs, cat and gzip. gzip takes long: cat
    waits for room in its pipe, and each reading makes room for a part of what it writes."""
    need("bash", "cat", "gzip", "wc", "xargs")
    neighbours(stage)
    records = hard_to_pack(stage)
    few, many = stage.directory / "few", stage.directory / "many"
    few.write_text(f"{PROGRAMS / 'sh_pack.sh'}\n")
    many.write_text(f"{records}\n" * 40)
    words = ["bash", str(PROGRAMS / "sh_pack.sh")]
    script = stage.program(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    script.tell(str(few))
    script.line()
    stage.ordinary()
    begin = now_ns()
    script.tell(str(many))
    cat, gzip = (until_descendant(script.pid, wanted) for wanted in ("cat", "gzip"))

    def look():
        return must_wait_in(cat, "pipe"), computing(gzip)

    channel, computes = stage.hold(look)
    os.kill(gzip, signal.SIGTERM)
    script.line()
    return Truth(
        text="LongRunning; root gzip, which packs what cat writes for it",
        victims=(script.pid, cat),
        roots=(Root(gzip, ("LongRunning",)),),
        frozen=(begin, now_ns()),
        witness=f"/proc: {computes}; cat waits in {channel}",
    )


@freeze("cpu", "starved-pipe-writer")
def starved_writer(stage):
    """wc counts what bzip2 packs, in a control group of the least weight. Then bzip2 is starved by
    two checksum programs in another group, and its pipe stays empty."""
    need("bzip2", "wc", "sha256sum", "md5sum")
    both = Group(stage)
    background, foreground = Group(stage, both, shares=2), Group(stage, both)
    records = hard_to_pack(stage, megabytes=400)
    neighbours(stage)
    reading, writing = os.pipe()
    bzip2 = stage.start(["bzip2", "-9", "-c", records], stdout=writing)
    os.close(writing)
    background.add(bzip2.pid)
    wc = stage.program(["wc", "-c"], stdin=reading)
    os.close(reading)
    until_named(wc.pid, "wc")
    stage.ordinary()
    hogs = [endless(stage, foreground, hog, "/dev/zero") for hog in ("sha256sum", "md5sum")]
    looked, before = now_ns(), cpu_s(bzip2.pid)

    def look():
        starved = must_be_starved(bzip2.pid, looked, before)
        return must_wait_in(wc.pid, "pipe"), starved, moved(wc.pid, "rchar")

    begin = until_still(wc.pid, "rchar")
    channel, starved, counted = stage.hold(look)
    finish = now_ns()
    if moved(wc.pid, "rchar") != counted:
        raise Fault("/proc: wc has gone on reading")
    for hog in hogs:
        end(hog)
    return Truth(
        text="wc waits for bzip2, which is Starved; root sha256sum or md5sum, which have its CPU",
        victims=(wc.pid, bzip2.pid),
        roots=tuple(Root(hog.pid, ("Starved",)) for hog in hogs),
        frozen=(begin, finish),
        witness=f"/proc: wc waits in {channel}; bzip2: {starved}",
    )


@freeze("cpu", "cpulimit-web-server")
def limited_server(stage):
    """A client waits for a report of a web server that cpulimit stops again and again, so that it
    gets 3 % of a CPU."""
    need(PYTHON, "cpulimit", "curl")
    neighbours(stage)
    port, done = free_port(), stage.directory / "done"
    server = stage.start([PYTHON, PROGRAMS / "cpu_report_server.py", port, done])
    wait_for("the report server", lambda: accepts(port))
    client = Client(stage, port, "/page")
    stage.ordinary()
    client.ask("/report")
    limiter = stage.start(["cpulimit", "-p", server.pid, "-l", "3"])

    def look():
        states = []
        for _ in range(LOOKS):
            states.append(state(server.pid))
            time.sleep(0.02)
        return "".join(states)

    states = stage.hold(look)
    done.touch()
    frozen = must_last(stage, client.slow_answer())
    limiter.send_signal(signal.SIGINT)
    if states.count("T") < 0.7 * LOOKS:
        raise Fault(f"/proc: the server was in states {states}")
    return Truth(
        text="LongWait; root reports, stopped nearly all of the time, or cpulimit, which stops it",
        victims=(client.pid,),
        roots=(
            Root(server.pid, ("LongWait",)),
            Root(limiter.pid, ("LongWait", "RepeatedYield")),
        ),
        frozen=frozen,
        witness=f"/proc: of {LOOKS} looks the server was stopped in {states.count('T')}",
    )


@freeze("shells", "debugger-attached")
def debugger(stage):
    """A client asks a web server for one page after the other. Then somebody attaches gdb to the
    server, and thinks."""
    need(PYTHON, "gdb")
    neighbours(stage)
    port = free_port()
    server = stage.start([PYTHON, PROGRAMS / "cpu_report_server.py", port, "-"])
    wait_for("the web server", lambda: accepts(port))
    client = Client(stage, port, "/page")
    stage.ordinary()
    terminal = Terminal(stage, ["gdb", "-q", "-nx", "-p", str(server.pid)], r"\(gdb\) ")

    def look():
        return state(server.pid), int(status(server.pid)["TracerPid"])

    seen, tracer = stage.hold(look)
    terminal.enter("detach")
    frozen = must_last(stage, client.slow_answer())
    if seen != "t" or tracer != terminal.pid:
        raise Fault(f"/proc: the server is in state {seen}, traced by {tracer}")
    return Truth(
        text="LongWait; root gdb, which waits for a person, or reports, which it has stopped",
        victims=(client.pid,),
        roots=(Root(terminal.pid, ("LongWait",)), Root(server.pid, ("LongWait",))),
        outside=True,
        frozen=frozen,
        witness=f"/proc: {server.pid} is stopped, traced by {tracer}",
    )


@freeze("shells", "logrotate-postrotate")
def postrotate(stage):
    """logrotate waits for its script, which has a collector of logs open the new log by socat, and
    the collector adds up the old one first."""
    need("logrotate", "socat", PYTHON)
    neighbours(stage)
    socket, summed = stage.directory / "collector", stage.directory / "summed"
    collector = stage.start([PYTHON, HERE / "collector.py", socket, summed], stdout=subprocess.PIPE)
    read_line(collector.stdout)
    log, settings = stage.directory / "shop.log", stage.directory / "logrotate.conf"
    log.write_text("order miller 12 apples\n" * 1000)
    # One that others may write is not obeyed.
    folder = stage.directory / "old"
    folder.mkdir()
    settings.write_text(
        f"{log} {{\n  olddir {folder}\n  rotate 2\n  size 1\n  su root root\n  postrotate\n"
        f"    echo reopen | socat -t 120 - UNIX-CONNECT:{socket}\n  endscript\n}}\n"
    )
    settings.chmod(0o644)
    asking = ["sh", "-c", f"echo ping | socat -t 120 - UNIX-CONNECT:{socket}"]
    output_of(asking, env=stage.environment)
    stage.ordinary()
    rotate = stage.program(["logrotate", "-f", "-s", str(stage.directory / "state"), str(settings)])
    begin = until_named(rotate.pid, "logrotate")
    socat = running("socat", "120")
    before = cpu_s(collector.pid)
    wait_for("the sums", lambda: cpu_s(collector.pid) > before + 0.05)
    seen = stage.hold(lambda: (must_wait_in(rotate.pid, "wait"), computing(collector.pid)))
    summed.touch()
    finish = rotate.ended()
    return Truth(
        text="LongRunning in add_up_log; root collector, which the script of logrotate asks",
        victims=(rotate.pid, socat),
        roots=(Root(collector.pid, ("LongRunning",)),),
        frozen=must_last(stage, (begin, finish)),
        witness=f"/proc: logrotate waits in {seen[0]}; {seen[1]}",
        function=r"\badd_up_log\b",
    )


class Screen(threading.Thread):
    """A terminal that shows what comes, at a person's hand."""

    def __init__(self, stage):
        super().__init__(daemon=True)
        self.screen, self.its_end = pty.openpty()
        self.open = True
        stage.callback(self._close)
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while self.open:
                if select.select([self.screen], [], [], 0.2)[0]:
                    os.read(self.screen, 65536)

    def press(self, key):
        """Somebody presses a key."""
        os.write(self.screen, key)

    def _close(self):
        self.open = False
        self.join()
        os.close(self.screen)


@freeze("shells", "terminal-halted")
def halted(stage):
    """A shell script shows one folder after the other at a terminal, where somebody has pressed
    Ctrl-S: ls waits for the terminal to take what it shows."""
    need("bash", "ls")
    neighbours(stage)
    screen = Screen(stage)
    ends = {"stdin": screen.its_end, "stdout": screen.its_end, "stderr": screen.its_end}
    script = stage.program(["bash", str(PROGRAMS / "sh_listing.sh"), "/usr/share/doc"], **ends)
    os.close(screen.its_end)
    until_named(script.pid, "bash")
    stage.ordinary()
    screen.press(STOP)

    def waits():
        found = [one for one in children(script.pid) if name(one) == "ls"]
        return found if found and state(found[0]) == "S" else None

    ls = wait_for("ls", waits)[0]
    begin = now_ns()
    places = stage.hold(lambda: (must_wait_in(ls), must_wait_in(script.pid, "wait")))
    still = name(ls) == "ls"
    screen.press(START)
    if not still:
        raise Fault("ls has ended")
    return Truth(
        text="LongWait for room in a terminal; root ls itself, or the person who has halted it",
        victims=(script.pid, ls),
        roots=(Root(ls, ("LongWait",)),),
        outside=True,
        frozen=(begin, now_ns()),
        witness=f"/proc: ls waits in {places[0]}, bash in {places[1]}",
    )
