"""Memory limits of a group: programs that have to wait in the kernel until there is room."""

import math
import os
import subprocess

from case import Root, Truth, freeze
from freezes.index_program import INDEX, PYTHON, start_index, use
from freezes.memory_group import MemoryGroup
from freezes.runtimes import must_last
from freezes.slow_disk import MIB, RATE_MIB, SlowDisk, must_wait_in, work_for
from stage import Fault, need, now_ns, read_line

# Where the kernel waits for room.
RECLAIM = ("try_to_free_mem_cgroup_pages", "try_charge_memcg")
OOM = ("mem_cgroup_oom_synchronize",)
# The limits, MiB: of what is written, and of what two programs keep.
WRITER_MIB, SHARED_MIB = 16, 64


@freeze("memory", "memory-dirty-reclaim")
def dirty_reclaim(stage):
    """dd writes a file in a group with little memory: each page that it wants must first be
    written to a slow disk."""
    need("dd")
    group = MemoryGroup(stage)
    disk = SlowDisk(stage)
    fifo = stage.directory / "fifo"
    os.mkfifo(fifo)
    writer = stage.program(
        ["dd", f"if={fifo}", f"of={disk.folder}/video", "bs=64k", "iflag=fullblock"]
    )
    group.add(writer.pid)
    # The file system wants memory that cannot be refused; dd must not be killed for that.
    group.put("oom_control", 1)
    group.limit(WRITER_MIB * MIB)
    disk.slow("write", RATE_MIB)
    before = disk.moved()[1]
    video = stage.directory / "video"
    # dd ends when the last of it, up to the limit, is still in memory.
    video.write_bytes(bytes(math.ceil(work_for(stage) + WRITER_MIB) * MIB))
    start = now_ns()
    source = stage.start(["dd", f"if={video}", f"of={fifo}", "bs=64k"])
    place = stage.hold(lambda: must_wait_in(writer.pid, RECLAIM))
    end = writer.ended()
    written = disk.moved()[1] - before
    disk.fast()
    seconds = (end - start) / 1e9
    copied = (disk.folder / "video").stat().st_size
    if seconds < stage.freeze_s or copied != video.stat().st_size:
        raise Fault(f"dd took {seconds:.1f} s to write {copied} bytes")
    return Truth(
        text="LongWait in reclaim; the slow disk, which has to take what fills dd's group",
        victims=(writer.pid, source.pid),
        # It waits for pages to leave the memory, not to come; both go by this name.
        roots=(Root(writer.pid, ("LongWait", "Paging")),),
        frozen=(start, end),
        witness=f"/proc: {writer.pid} waits in {place}; {written >> 20} MiB written in "
        f"{seconds:.1f} s",
    )


@freeze("memory", "memory-oom-paused")
def oom_paused(stage):
    """A program wants memory in a group that another program has filled, where the kernel may kill
    nobody: it waits until the limit is raised."""
    group = MemoryGroup(stage)
    cache = stage.start(
        [PYTHON, INDEX, "mem_cache"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    read_line(cache.stdout)
    group.add(cache.pid)
    cache.stdin.write(f"load {SHARED_MIB * 3 // 4}\n".encode())
    read_line(cache.stdout)
    program = start_index(stage, group, 2)
    # Nothing of it may be swapped out instead.
    group.put("swappiness", 0)
    group.put("oom_control", 1)
    group.limit(SHARED_MIB * MIB)
    use(stage, program)
    program.tell(f"load {SHARED_MIB // 2}")

    def look():
        paused = "under_oom 1" in group.get("oom_control").splitlines()
        return must_wait_in(program.pid, OOM), paused

    place, paused = stage.hold(look)
    group.free()
    frozen = must_last(stage, tuple(map(int, program.line().split())))
    if not paused:
        raise Fault("the group is not out of memory")
    return Truth(
        text="LongWait for memory; its group, which mem_cache fills",
        victims=(program.pid,),
        # Nobody would have to give anything back if the limit were higher: an expert may name the
        # program that waits, or the one that has the memory and is idle.
        roots=(Root(program.pid, ("LongWait",)), Root(cache.pid, ("LongWait",))),
        frozen=frozen,
        witness=f"/proc: {program.pid} waits in {place}; oom_control: under_oom 1",
        waits_in="load_index",
    )
