"""CPU quotas of control groups, as containers have them."""

import signal
import subprocess

from case import Root, Truth, freeze
from freezes.cpu_groups import Group, hard_to_pack
from freezes.procfs import until_named
from freezes.tcp import PROGRAMS, PYTHON
from stage import Fault, accepts, free_port, need, now_ns, wait_for

# Of 100 ms.
SMALL_US = 3000


def must_have_been_throttled(group, seconds):
    """A Fault where a group was not throttled for most of that time; gives what cpu.stat says."""
    seen = group.statistics()
    if seen["throttled_time"] < 0.5e9 * seconds:
        raise Fault(f"cpu.stat: throttled for {seen['throttled_time'] / 1e9:.1f} s")
    return f"cpu.stat: throttled {seen['nr_throttled']} times, {seen['throttled_time'] / 1e9:.1f} s"


@freeze("cpu", "quota-gzip")
def packer(stage):
    """gzip packs a file in a container whose CPU quota is 3 %, until
    somebody ends it."""
    need("gzip")
    records = hard_to_pack(stage)
    group = Group(stage, cfs_quota_us=SMALL_US)
    words = ["gzip", "-9", "-k", "-f", str(records)]
    gzip = stage.program(words)
    begin = until_named(gzip.pid, "gzip")
    group.add(gzip.pid, pinned=False)
    stage.hold()
    seen = must_have_been_throttled(group, (now_ns() - begin) / 1e9)
    gzip.signal(signal.SIGTERM)
    end = gzip.ended()
    return Truth(
        text="Starved by a CPU quota; root gzip itself",
        victims=(gzip.pid,),
        roots=(Root(gzip.pid, ("Starved",)),),
        frozen=(begin, end),
        witness=seen,
    )


@freeze("cpu", "quota-web-server")
def web_server(stage):
    """curl waits for a report of a web server that has used up the CPU quota of its container."""
    need(PYTHON, "curl")
    port, done = free_port(), stage.directory / "done"
    group = Group(stage)
    server = stage.start([PYTHON, PROGRAMS / "cpu_report_server.py", port, done])
    group.add(server.pid, pinned=False)
    wait_for("the report server", lambda: accepts(port))
    group.set(cfs_period_us=1_000_000, cfs_quota_us=15_000)
    url = f"http://127.0.0.1:{port}/report"
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{time_total}\n", url]
    curl = stage.program(words, stdout=subprocess.PIPE)
    begin = until_named(curl.pid, "curl")
    stage.hold()
    seen = must_have_been_throttled(group, (now_ns() - begin) / 1e9)
    done.touch()
    group.set(cfs_quota_us=-1)
    total_s = float(curl.line())
    end = now_ns()
    return Truth(
        text="Starved by a CPU quota; root reports, the web server",
        victims=(curl.pid, server.pid),
        roots=(Root(server.pid, ("Starved",)),),
        frozen=(end - int(total_s * 1e9), end),
        witness=f"{seen}; curl: {total_s:.1f} s",
    )
