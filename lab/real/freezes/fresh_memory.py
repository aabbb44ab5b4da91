"""Fresh memory: the kernel clears each page before a program gets it, which takes the program's own
time on the CPU."""

import pathlib
import subprocess

from case import Root, Truth, freeze
from stage import Fault, need, output_of

CANVAS = pathlib.Path(__file__).resolve().parent.parent / "programs" / "mem_canvas.c"
# The work takes so much longer than a freeze should last, s.
LONGER_S = 0.7
TICKS_A_SECOND = 100


def times(pid):
    """The CPU time of a process, in user and in kernel mode, and how often it had no page."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) / TICKS_A_SECOND, int(fields[12]) / TICKS_A_SECOND, int(fields[7])


@freeze("memory", "memory-fresh-pages")
def fresh_pages(stage):
    """A drawing program makes large new layers: most of the time goes to the kernel, which clears
    their memory and takes it back."""
    need("cc")
    program = stage.directory / "mem_canvas"
    output_of(["cc", "-O2", "-g", "-o", program, CANVAS])
    canvas = stage.program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    canvas.line()
    stage.ordinary()
    before = times(canvas.pid)
    canvas.tell(str(stage.freeze_s + LONGER_S))
    stage.hold()
    frozen = tuple(map(int, canvas.line().split()))
    user, system, faults = (now - then for now, then in zip(times(canvas.pid), before))
    seconds = (frozen[1] - frozen[0]) / 1e9
    if user + system < seconds / 2:
        raise Fault(f"/proc: only {user + system:.1f} of {seconds:.1f} s on the CPU")
    return Truth(
        text="LongRunning mem_canvas, in make_layers",
        victims=(canvas.pid,),
        roots=(Root(canvas.pid, ("LongRunning",)),),
        frozen=frozen,
        witness=f"/proc: {system:.1f} s in the kernel and {user:.1f} s in the program of "
        f"{seconds:.1f} s, {faults} page faults",
        function=r"^make_layers$",
        ran=((r"^make_layers$", 0.8),),
    )
