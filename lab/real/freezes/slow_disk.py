"""A disk of the stage's own, as slow as a case wants: a file behind a loop device, whose reads and
writes the kernel's blkio controller (cgroup v1) holds back. Only that device is slowed down."""

import contextlib
import os
import pathlib
import subprocess
import time

from stage import CannotRun, Fault, need, now_ns, output_of, wait_for

BLKIO = pathlib.Path("/sys/fs/cgroup/blkio")
MIB = 1 << 20
# Of a throttled device, per second.
RATE_MIB = 2
# What a device is given to do takes so much longer than a freeze should last.
LONGER_S = 0.7
# Where the kernel waits for a device.
WAITS = (
    "folio_wait_bit_common",
    "folio_wait_writeback",
    "jbd2_log_wait_commit",
    "blkdev_issue_flush",
    "io_schedule",
)
# More than mkfs wants, and all of it sparse.
SIZES_MIB = {"ext4": 256, "xfs": 320, "swap": 256}
MKFS = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-K"),
    "swap": ("mkswap", "-q"),
}


class SlowDisk:
    """A loop device with a file system of a kind of MKFS, mounted at `folder`; swap is made but
    not switched on, and has no folder."""

    def __init__(self, stage, kind="ext4"):
        if os.geteuid() != 0:
            raise CannotRun("only root can make a loop device")
        if not (BLKIO / "blkio.throttle.read_bps_device").exists():
            raise CannotRun("the blkio controller of cgroup v1 is not mounted")
        need("losetup", "mount", MKFS[kind][0])
        self.stage = stage
        image = stage.directory / f"{kind}.img"
        with image.open("wb") as file:
            file.truncate(SIZES_MIB[kind] * MIB)
        output_of([*MKFS[kind], image])
        self.device = output_of(["losetup", "--find", "--show", image]).strip()
        stage.callback(output_of, ["losetup", "--detach", self.device])
        sysfs = pathlib.Path("/sys/block") / pathlib.Path(self.device).name
        self.number = (sysfs / "dev").read_text(encoding="ascii").strip()
        # How much has been read and written in all, and what is under way.
        self.statistics = sysfs / "stat"
        self.folder = None
        if kind != "swap":
            self.folder = stage.directory / f"{kind}-disk"
            self.folder.mkdir()
            self.mount()
            stage.callback(self.unmount)

    def mount(self):
        """Mounts it; nothing of its files is in memory then."""
        output_of(["mount", self.device, self.folder])

    def unmount(self):
        """Unmounts it, unless a case has."""
        if not os.path.ismount(self.folder):
            return
        # A program that was killed a moment ago may still hold a file.
        for _ in range(100):
            if subprocess.run(["umount", self.folder], check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise Fault(f"{self.folder} cannot be unmounted")

    def forget(self):
        """Puts all of it out of memory: what is read next comes from the device."""
        self.unmount()
        self.mount()

    def file(self, name, mebibytes, line=b"all work and no play makes a dull file of %d lines\n"):
        """Writes a file of so many MiB of lines, none of which is like another."""
        path = self.folder / name
        with path.open("wb") as file:
            number = 0
            while file.tell() < mebibytes * MIB:
                file.write(b"".join(line % n for n in range(number, number + 1000)))
                number += 1000
            file.flush()
            os.fsync(file.fileno())
        return path

    def slow(self, direction, mebibytes_per_s):
        """Lets the device read or write only so much, from now until `fast` or the stage ends."""
        self._limit(direction, int(mebibytes_per_s * MIB))
        # Before the programs are ended, which would wait for the device.
        self.stage.callback(self.fast)

    def fast(self):
        """Takes the limits away; what was held back goes on at once."""
        for direction in ("read", "write"):
            with contextlib.suppress(OSError):
                self._limit(direction, 0)

    def _limit(self, direction, rate):
        rule = BLKIO / f"blkio.throttle.{direction}_bps_device"
        rule.write_text(f"{self.number} {rate}", encoding="ascii")

    def moved(self):
        """The bytes that it has read and written so far."""
        fields = self.statistics.read_text(encoding="ascii").split()
        return int(fields[2]) * 512, int(fields[6]) * 512


def work_for(stage):
    """So many MiB keep a device of RATE_MIB busy for as long as a freeze should last."""
    return RATE_MIB * (stage.freeze_s + LONGER_S)


def start_of(program, name):
    """Waits until a recorder has handed its process over to the program of this name; gives when
    that was, ns."""
    comm = pathlib.Path(f"/proc/{program.pid}/comm")

    def runs():
        try:
            return comm.read_text(encoding="ascii").strip() == name[:15]
        except OSError:
            raise Fault(f"{name} has ended at once") from None

    wait_for(f"the start of {name}", runs)
    return now_ns()


def kernel_place(pid):
    """Where a process waits in the kernel: the names of its kernel stack, the innermost first."""
    lines = pathlib.Path(f"/proc/{pid}/stack").read_text(encoding="ascii").splitlines()
    return [line.split()[1].partition("+")[0] for line in lines if len(line.split()) > 1]


def must_wait_in(pid, names):
    """A witness: the process waits in one of these functions of the kernel. Some looks, for it may
    be between two waits. Gives the function."""
    place = []
    for _ in range(80):
        place = kernel_place(pid)
        for name in place:
            if name in names:
                return name
        time.sleep(0.02)
    raise Fault(f"/proc: {pid} waits in {' < '.join(place) or 'nothing'}, not in {names[0]}")
