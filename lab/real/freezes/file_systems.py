"""File systems that hold up who writes to them: frozen for a snapshot, behind with what is to be
written, or about to be unmounted."""

import pathlib
import subprocess

from case import Root, Truth, freeze
from freezes.slow_disk import (
    MIB,
    RATE_MIB,
    WAITS,
    SlowDisk,
    must_wait_in,
    start_of,
    work_for,
)
from freezes.sqlite_shell import begin, execute, shell, until_done, use
from stage import CannotRun, Fault, need, now_ns, output_of

# Where a writer waits for a frozen file system.
FROZEN_WAITS = ("__percpu_down_read", "percpu_rwsem_wait", "percpu_down_read_internal")
DIRTY_WAITS = ("balance_dirty_pages", "balance_dirty_pages_ratelimited_flags")
# May be dirty of the copy's target, as on a slow stick.
DIRTY_BYTES = 1 * MIB
# cp ends when that is still to be written; so much longer it has to write, s.
DIRTY_S = 0.6


@freeze("files", "disk-fsfreeze")
def frozen_file_system(stage):
    """sqlite3 writes to a file system that has been frozen by `fsfreeze` for a snapshot, and waits
    until it is thawed."""
    need("fsfreeze", "sqlite3")
    disk = SlowDisk(stage)
    base = shell(stage, disk.folder / "notes.db")
    execute(base, "CREATE TABLE notes (text);")
    use(stage, base, "INSERT INTO notes VALUES ('a note');")
    # A program that waits for a frozen file system cannot be ended.
    stage.callback(
        subprocess.run, ["fsfreeze", "--unfreeze", disk.folder], check=False, capture_output=True
    )
    output_of(["fsfreeze", "--freeze", disk.folder])
    start = now_ns()
    begin(base, "INSERT INTO notes VALUES ('a late note');")
    place = stage.hold(lambda: must_wait_in(base.pid, FROZEN_WAITS))
    output_of(["fsfreeze", "--unfreeze", disk.folder])
    until_done(base)
    return Truth(
        text="LongWait; the frozen file system, which nobody who runs holds",
        victims=(base.pid,),
        # fsfreeze has ended, so that there is no process which would have to act.
        roots=(Root(base.pid, ("LongWait",)),),
        frozen=(start, now_ns()),
        witness=f"/proc: {base.pid} waits in {place}",
    )


def written_back(stage, disk, words):
    """Leaves much to be written to a slow disk and starts the program that has to wait for it.
    Gives the truth."""
    need("dd", words[0])
    length = int(work_for(stage) * MIB)
    disk.slow("write", RATE_MIB)
    output_of(["dd", "if=/dev/zero", f"of={disk.folder}/video", f"bs={length}", "count=1"])
    before = disk.moved()[1]
    program = stage.program(words)
    start = start_of(program, words[0])
    place = stage.hold(lambda: must_wait_in(program.pid, WAITS))
    end = program.ended()
    written = disk.moved()[1] - before
    disk.fast()
    seconds = (end - start) / 1e9
    if written < length / 2 or seconds < 0.8 * stage.freeze_s:
        raise Fault(f"{disk.device} has written {written} of {length} bytes in {seconds:.1f} s")
    return Truth(
        text=f"LongWait in {words[0]}; the slow disk",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongWait",)),),
        frozen=(start, end),
        witness=f"/proc: {program.pid} waits in {place}; {written >> 20} MiB written in "
        f"{seconds:.1f} s",
    )


@freeze("files", "disk-sync-backlog")
def sync_backlog(stage):
    """`sync` waits until a slow disk has written what another program has left in memory."""
    disk = SlowDisk(stage)
    return written_back(stage, disk, ["sync", "--file-system", disk.folder])


@freeze("files", "disk-umount-backlog")
def umount_backlog(stage):
    """`umount` of a slow disk with XFS waits until all that is in memory has been written."""
    disk = SlowDisk(stage, "xfs")
    return written_back(stage, disk, ["umount", disk.folder])


@freeze("files", "disk-copy-stalls")
def copy_stalls(stage):
    """cp writes to a slow disk faster than that takes it, and is held back by the kernel once so
    much is dirty as that disk may have."""
    need("cp")
    disk = SlowDisk(stage)
    device = pathlib.Path("/sys/class/bdi") / disk.number
    if not (device / "strict_limit").exists():
        raise CannotRun("the kernel cannot limit what is dirty of one device (Linux 6.2)")
    # As a share of the memory, because a number of bytes is not given back exactly.
    share = (device / "max_ratio").read_text(encoding="ascii")
    stage.callback((device / "max_ratio").write_text, share, encoding="ascii")
    stage.callback((device / "strict_limit").write_text, "0", encoding="ascii")
    (device / "max_bytes").write_text(str(DIRTY_BYTES), encoding="ascii")
    (device / "strict_limit").write_text("1", encoding="ascii")
    video = stage.directory / "video"
    video.write_bytes(bytes(int((work_for(stage) + RATE_MIB * DIRTY_S) * MIB)))
    disk.slow("write", RATE_MIB)
    copy = stage.program(["cp", video, disk.folder / "video"])
    start = start_of(copy, "cp")
    place = stage.hold(lambda: must_wait_in(copy.pid, DIRTY_WAITS))
    end = copy.ended()
    disk.fast()
    seconds = (end - start) / 1e9
    if seconds < 0.8 * stage.freeze_s:
        raise Fault(f"cp took only {seconds:.1f} s")
    return Truth(
        text="LongWait in write; the slow disk",
        victims=(copy.pid,),
        roots=(Root(copy.pid, ("LongWait",)),),
        frozen=(start, end),
        witness=f"/proc: {copy.pid} waits in {place}; it copied for {seconds:.1f} s",
    )
