"""A memory controller's group (cgroup v1) of the stage's own, in the group that this runs in, so
that what is pressed for memory is one program and not the machine."""

import pathlib
import subprocess
import time

from freezes.slow_disk import SlowDisk
from stage import CannotRun, Fault, need, output_of, wait_for

MOUNT = pathlib.Path("/sys/fs/cgroup/memory")
UNLIMITED = -1


def own_group():
    """The path of the group that this process is in."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return MOUNT / path.lstrip("/")
    raise CannotRun("the memory controller of cgroup v1 is not mounted")


class MemoryGroup:
    """A group for programs that are added to it after their start."""

    def __init__(self, stage):
        self.stage = stage
        self.folder = own_group() / stage.directory.name
        try:
            self.folder.mkdir()
        except OSError as error:
            raise CannotRun(f"cannot make a memory group: {error}") from None
        stage.callback(self._remove)

    def _remove(self):
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:
                # Who was killed a moment ago is still in it.
                time.sleep(0.05)
        raise Fault(f"{self.folder} cannot be removed")

    def put(self, name, value):
        """Sets a value of the group's."""
        (self.folder / f"memory.{name}").write_text(str(value), encoding="ascii")

    def get(self, name):
        """A value of the group's."""
        return (self.folder / f"memory.{name}").read_text(encoding="ascii").strip()

    def add(self, pid):
        """Takes a process in, whose memory counts here from now on."""
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def limit(self, size):
        """Limits the group to so many bytes until `free` or the stage's end."""
        self.stage.callback(self.free)
        self.put("limit_in_bytes", int(size))

    def free(self):
        """Takes the limit away."""
        self.put("limit_in_bytes", UNLIMITED)

    def statistic(self, name):
        """A line of the group's statistics."""
        for line in self.get("stat").splitlines():
            key, value = line.split()
            if key == name:
                return int(value)
        raise CannotRun(f"the memory controller has no statistic {name}")

    def evict(self, what, done):
        """Has the kernel take the group's memory away until `done()`: it writes what only is in
        memory to the swap, and forgets what is in files."""

        def empty():
            try:
                self.put("force_empty", 0)
            except OSError:
                # It could not take all of it this time.
                pass
            return done()

        wait_for(what, empty)


def slow_swap(stage):
    """Adds swap on a slow disk to the machine, and takes it away with the stage. Gives the disk."""
    need("swapon", "swapoff")
    disk = SlowDisk(stage, "swap")
    # Else what is swapped out first may go to a fast one.
    output_of(["swapon", "--priority", "32767", disk.device])

    def end():
        disk.fast()
        if subprocess.run(["swapoff", disk.device], check=False).returncode != 0:
            raise Fault(f"{disk.device} is still swap")

    stage.callback(end)
    return disk


def major_faults(pid):
    """How often a process has waited for a page that had to be read."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return int(stat.rpartition(")")[2].split()[9])


