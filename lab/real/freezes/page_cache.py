"""Pages of files that are mapped into memory and have to be read from a slow disk when they are
touched: a program's own text, or a database."""

import pathlib
import shutil
import subprocess

from case import Root, Truth, freeze
from freezes.memory_group import MemoryGroup, major_faults
from freezes.runtimes import must_last
from freezes.slow_disk import (
    LONGER_S,
    MIB,
    RATE_MIB,
    SlowDisk,
    must_wait_in,
    start_of,
    work_for,
)
from freezes.sqlite_shell import Begun, execute, shell, use
from stage import need, output_of

# Where the kernel waits for a page of a file that a program touches.
FAULT = ("filemap_fault",)


@freeze("memory", "memory-cold-start")
def cold_start(stage):
    """gdb is started from a slow disk when nothing of it is in memory, and is read page by page
    while it runs."""
    need("gdb")
    disk = SlowDisk(stage)
    program = disk.folder / "gdb"
    shutil.copy(pathlib.Path(shutil.which("gdb")).resolve(), program)
    words = [program, "-nx", "-batch", "-ex", "show version"]
    # How much of it is read for that.
    disk.forget()
    before = disk.moved()[0]
    output_of(words)
    size = disk.moved()[0] - before
    disk.forget()
    disk.slow("read", size / MIB / (stage.freeze_s + LONGER_S))
    before = disk.moved()[0]
    debugger = stage.program(words, stdout=subprocess.PIPE)
    start = start_of(debugger, "gdb")

    def look():
        return must_wait_in(debugger.pid, FAULT), major_faults(debugger.pid)

    place, faults = stage.hold(look)
    end = debugger.ended()
    read = disk.moved()[0] - before
    disk.fast()
    seconds = (end - start) / 1e9
    return Truth(
        text="Paging gdb, whose text is read",
        victims=(debugger.pid,),
        roots=(Root(debugger.pid, ("Paging",)),),
        frozen=must_last(stage, (start, end)),
        witness=f"/proc: {debugger.pid} waits in {place}, {faults} major faults by then; "
        f"{read >> 20} MiB read in {seconds:.1f} s",
    )


@freeze("memory", "memory-mmap-evicted")
def mmap_evicted(stage):
    """sqlite3 has a database mapped, which its group had to give up: a query has it read again
    from a slow disk, page by page."""
    need("sqlite3")
    group = MemoryGroup(stage)
    disk = SlowDisk(stage)
    base = shell(stage, disk.folder / "notes.db")
    group.add(base.pid)
    execute(base, "PRAGMA journal_mode = OFF; CREATE TABLE notes (text);")
    rows = int(work_for(stage) * MIB / 3500)
    execute(
        base,
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT "
        f"{rows}) INSERT INTO notes SELECT zeroblob(3500) FROM n;",
    )
    execute(base, f"PRAGMA cache_size = 10; PRAGMA mmap_size = {1 << 30};")
    query = "SELECT count(*) FROM notes WHERE instr(text, x'ff') > 0;"
    use(stage, base, query)
    group.evict("eviction", lambda: group.statistic("mapped_file") < MIB / 4)
    disk.slow("read", RATE_MIB)
    before = disk.moved()[0]
    answer = Begun(base, query)
    place = stage.hold(lambda: must_wait_in(base.pid, FAULT))
    frozen = must_last(stage, answer.over())
    read = disk.moved()[0] - before
    disk.fast()
    seconds = (frozen[1] - frozen[0]) / 1e9
    return Truth(
        text="Paging sqlite3, whose mapped database is read again",
        victims=(base.pid,),
        roots=(Root(base.pid, ("Paging",)),),
        frozen=frozen,
        witness=f"/proc: {base.pid} waits in {place}; {read >> 20} MiB read in {seconds:.1f} s",
        waits_in="sqlite3_",
    )
