"""Disks that are slow or busy: programs that wait for what they write or read."""

import os
import pathlib
import subprocess

from case import Root, Truth, freeze
from freezes.runtimes import must_last
from freezes.slow_disk import (
    MIB,
    RATE_MIB,
    WAITS,
    SlowDisk,
    must_wait_in,
    start_of,
    work_for,
)
from freezes.sqlite_shell import Begun, execute, shell, use
from stage import Fault, need

PYTHON = "/usr/bin/python3"
EDITOR = pathlib.Path(__file__).resolve().parent.parent / "programs" / "file_editor.py"
# A direct transfer waits there.
DIRECT_WAIT = ("__iomap_dio_rw",)


def own(*pids):
    """The roots of a wait for a disk: who waits for it, and who else keeps it busy."""
    return tuple(Root(pid, ("LongWait",)) for pid in pids)


def direct(stage, mebibytes, source, target, flag):
    """Starts dd for one direct transfer, all of which is in the disk's queue at once."""
    size = int(mebibytes * MIB) // 4096 * 4096
    words = ["dd", f"if={source}", f"of={target}", f"bs={size}", "count=1", flag]
    return stage.start([*words, "conv=notrunc"])


@freeze("files", "disk-fsync-behind-writer")
def fsync_behind_writer(stage):
    """An editor saves with fsync on a slow disk whose queue dd fills with direct writes."""
    need("dd", PYTHON)
    disk = SlowDisk(stage)
    big = disk.file("big", work_for(stage))
    editor = stage.program(
        [PYTHON, EDITOR, "file_editor", disk.folder / "letter"], stdout=subprocess.PIPE
    )
    editor.line()
    stage.ordinary()
    disk.slow("write", RATE_MIB)
    writer = direct(stage, work_for(stage), "/dev/zero", big, "oflag=direct")
    seen = stage.hold(
        lambda: (must_wait_in(editor.pid, WAITS), must_wait_in(writer.pid, DIRECT_WAIT))
    )
    frozen = must_last(stage, tuple(map(int, editor.line().split())))
    disk.fast()
    return Truth(
        text="LongWait in fsync; the disk, which dd keeps busy",
        victims=(editor.pid, writer.pid),
        # An expert may name the wait for the disk, or whose writes the disk is at.
        roots=own(editor.pid, writer.pid),
        frozen=frozen,
        witness=f"/proc: {editor.pid} waits in {seen[0]}, {writer.pid} (dd) in {seen[1]}",
        waits_in="save_document",
    )


@freeze("files", "disk-sqlite-commit")
def sqlite_commit(stage):
    """sqlite3 commits a large row on a disk that has become slow, and waits in fsync."""
    need("sqlite3")
    disk = SlowDisk(stage)
    base = shell(stage, disk.folder / "notes.db")
    execute(base, "PRAGMA synchronous = FULL; CREATE TABLE notes (text);")
    use(stage, base, "INSERT INTO notes VALUES ('a note');")
    disk.slow("write", RATE_MIB)
    length = int(work_for(stage) * MIB)
    before = disk.moved()[1]
    commit = Begun(base, f"INSERT INTO notes VALUES (zeroblob({length}));")
    place = stage.hold(lambda: must_wait_in(base.pid, WAITS))
    frozen = must_last(stage, commit.over())
    written = disk.moved()[1] - before
    disk.fast()
    if written < length:
        raise Fault(f"{disk.device} has written {written} bytes, not {length}")
    return Truth(
        text="LongWait in fsync; the slow disk",
        victims=(base.pid,),
        roots=own(base.pid),
        frozen=frozen,
        witness=f"/proc: {base.pid} waits in {place}; {written >> 20} MiB written in "
        f"{(frozen[1] - frozen[0]) / 1e9:.1f} s",
        waits_in="fsync|fdatasync|sqlite3_",
    )


@freeze("files", "disk-grep-slow-read")
def grep_slow_read(stage):
    """grep searches a file that is not in memory on a disk that reads slowly."""
    need("grep")
    disk = SlowDisk(stage)
    name = disk.file("large", work_for(stage)).name
    disk.forget()
    disk.slow("read", RATE_MIB)
    before = disk.moved()[0]
    grep = stage.program(
        ["grep", "-c", "no such words", disk.folder / name], stdout=subprocess.PIPE
    )
    start = start_of(grep, "grep")
    place = stage.hold(lambda: must_wait_in(grep.pid, WAITS))
    end = grep.ended()
    read = disk.moved()[0] - before
    disk.fast()
    return Truth(
        text="LongWait in read; the slow disk",
        victims=(grep.pid,),
        roots=own(grep.pid),
        frozen=must_last(stage, (start, end)),
        witness=f"/proc: {grep.pid} waits in {place}; {read >> 20} MiB read in "
        f"{(end - start) / 1e9:.1f} s",
    )


@freeze("files", "disk-query-behind-reader")
def query_behind_reader(stage):
    """sqlite3 reads a table that is no longer in memory while dd reads from the same disk."""
    need("sqlite3", "dd")
    disk = SlowDisk(stage)
    big = disk.file("big", work_for(stage) + 1)
    notes = disk.folder / "notes.db"
    base = shell(stage, notes)
    # So that what it keeps itself is not enough.
    execute(base, "PRAGMA cache_size = 10; CREATE TABLE notes (text);")
    for _ in range(20):
        execute(base, "INSERT INTO notes VALUES (zeroblob(8000));")
    query = "SELECT sum(length(text)) FROM notes;"
    use(stage, base, query)
    descriptor = os.open(notes, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    disk.slow("read", RATE_MIB)
    reader = direct(stage, work_for(stage), big, "/dev/null", "iflag=direct")
    start_of(reader, "dd")
    must_wait_in(reader.pid, DIRECT_WAIT)
    answer = Begun(base, query)
    seen = stage.hold(
        lambda: (must_wait_in(base.pid, WAITS), must_wait_in(reader.pid, DIRECT_WAIT))
    )
    frozen = must_last(stage, answer.over())
    disk.fast()
    return Truth(
        text="LongWait in read; the disk, which dd keeps busy",
        victims=(base.pid, reader.pid),
        # Either: who waits for the disk, or whose reads the disk is at.
        roots=own(base.pid, reader.pid),
        frozen=frozen,
        witness=f"/proc: {base.pid} waits in {seen[0]}, {reader.pid} (dd) in {seen[1]}",
        waits_in="read|sqlite3_",
    )
