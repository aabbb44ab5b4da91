"""Swap on a slow disk: programs whose memory has to come back from it. Only the
program's own group is short of memory."""

import math

from case import Root, Truth, freeze
from freezes.index_program import start_index, use
from freezes.memory_group import MemoryGroup, major_faults, slow_swap
from freezes.slow_disk import MIB, RATE_MIB, must_wait_in, work_for
from stage import Fault, now_ns

# Where the kernel waits for a page that it reads.
SWAP_IN = ("do_swap_page",)


def search_frozen(stage, program, disk):
    """Searches once more, which takes long. Gives the truth."""
    before = major_faults(program.pid), disk.moved()[0]
    disk.slow("read", RATE_MIB)
    told = now_ns()
    program.tell("search")
    place = stage.hold(lambda: must_wait_in(program.pid, SWAP_IN))
    frozen = tuple(map(int, program.line().split()))
    over = now_ns()
    faults = major_faults(program.pid) - before[0]
    read = disk.moved()[0] - before[1]
    disk.fast()
    seconds = (frozen[1] - frozen[0]) / 1e9
    if seconds < stage.freeze_s or faults < 50:
        raise Fault(f"the search took {seconds:.1f} s and {faults} major faults")
    return Truth(
        text="Paging mem_index, in search_index",
        victims=(program.pid,),
        roots=(Root(program.pid, ("Paging",)),),
        frozen=frozen,
        troubled=(told, over),
        witness=f"/proc: {program.pid} waits in {place}, {faults} major faults in {seconds:.1f} s; "
        f"{read >> 20} MiB read from {disk.device}",
        function=r"\bsearch_index$",
    )


@freeze("memory", "memory-swapped-out", whole_machine=True)
def swapped_out(stage):
    """A program that was swapped out as a whole searches its memory, which comes back page by page
    from a slow disk."""
    group = MemoryGroup(stage)
    disk = slow_swap(stage)
    size = math.ceil(work_for(stage))
    program = start_index(stage, group, size)
    use(stage, program)
    group.evict("swapping out", lambda: group.statistic("rss") < MIB)
    return search_frozen(stage, program, disk)


@freeze("memory", "memory-limit-thrash", whole_machine=True)
def limit_thrash(stage):
    """A program's group is limited to half of what the program searches: each page is swapped out
    before it is needed again."""
    group = MemoryGroup(stage)
    disk = slow_swap(stage)
    size = math.ceil(work_for(stage)) + 2
    program = start_index(stage, group, size)
    use(stage, program)
    group.limit(size * MIB / 2)
    return search_frozen(stage, program, disk)
