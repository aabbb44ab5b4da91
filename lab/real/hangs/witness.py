"""What /proc, `ss` and a lock's own memory say of threads that hang."""

import contextlib
import dataclasses
import os
import pathlib
import platform
import struct
import time

from stage import CannotRun, Fault, output_of, wait_for

PROC = pathlib.Path("/proc")
# A thread that did not come on a CPU for so long hangs.
STILL_S = 0.3
PATIENCE_S = 60
# Where glibc keeps the owner in a pthread_mutex_t, whose first word is what is waited on.
MUTEX_OWNER = 8
# Numbers of system calls (x86_64).
CALLS = {
    0: "read",
    1: "write",
    7: "poll",
    16: "ioctl",
    23: "select",
    34: "pause",
    35: "nanosleep",
    42: "connect",
    43: "accept",
    44: "sendto",
    45: "recvfrom",
    46: "sendmsg",
    47: "recvmsg",
    58: "vfork",
    61: "wait4",
    65: "semop",
    70: "msgrcv",
    72: "fcntl",
    73: "flock",
    128: "sigwait",
    130: "sigsuspend",
    202: "futex",
    220: "semop",
    230: "nanosleep",
    232: "epoll",
    247: "waitid",
    257: "open",
    270: "select",
    271: "poll",
    281: "epoll",
    288: "accept",
    441: "epoll",
}


@dataclasses.dataclass(frozen=True)
class At:
    """Where a thread has to hang: in one of these calls, else stopped (T), or by a debugger (t)."""

    tid: int
    calls: tuple = ()
    # The file descriptor that the call is for.
    fd: int | None = None
    state: str = "S"
    # It wakes up now and then to see whether it should go on.
    turns: bool = False


def sleeps(tid):
    """The end of a chain that does nothing and waits for nobody."""
    return At(tid, ("pause", "nanosleep"))


def field(tid, name):
    """A line of /proc/TID/status."""
    for line in (PROC / str(tid) / "status").read_text(errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    raise Fault(f"/proc/{tid}/status has no {name}")


def state(tid):
    """The letter of a thread's state."""
    return field(tid, "State")[0]


def process_of(tid):
    """The process of a thread."""
    return int(field(tid, "Tgid"))


def threads_of(pid):
    """The thread ids of a process, in order."""
    return sorted(int(folder.name) for folder in (PROC / str(pid) / "task").iterdir())


def name_of(tid):
    """The name of a thread; empty if it has ended."""
    try:
        return (PROC / str(tid) / "comm").read_text(errors="replace").rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def call(tid):
    """The system call that a thread is in and its arguments; "none" where it is in none."""
    if platform.machine() != "x86_64":
        raise CannotRun("the numbers of system calls are known for x86_64 only")
    words = (PROC / str(tid) / "syscall").read_text(encoding="ascii").split()
    if not words[0].isdigit():
        return "none", ()
    return CALLS.get(int(words[0]), words[0]), tuple(int(word, 16) for word in words[1:7])


def _is_at(hop):
    if state(hop.tid) != hop.state:
        return False
    if not hop.calls:
        return True
    name, arguments = call(hop.tid)
    return name in hop.calls and hop.fd in (None, arguments[0])


def _switches(tid):
    return field(tid, "voluntary_ctxt_switches"), field(tid, "nonvoluntary_ctxt_switches")


def _told(hop):
    where = f"{hop.tid} ({name_of(hop.tid)}) {hop.state}"
    if not hop.calls:
        return where
    # One that turns may be between two waits just now.
    name = hop.calls[0] if hop.turns else call(hop.tid)[0]
    return f"{where} in {name}" if hop.fd is None else f"{where} in {name} of {hop.fd}"


def until_hung(hops):
    """Waits until every thread is where it has to be and stays there; says where that is."""
    still = [hop.tid for hop in hops if not hop.turns]

    def stay():
        if not all(_is_at(hop) for hop in hops):
            return False
        before = [_switches(tid) for tid in still]
        time.sleep(STILL_S)
        return before == [_switches(tid) for tid in still]

    try:
        wait_for("hung", stay, PATIENCE_S)
    except Fault:
        seen = ", ".join(f"{hop.tid} {state(hop.tid)} in {call(hop.tid)[0]}" for hop in hops)
        raise Fault(f"not all hang: {seen}") from None
    return ", ".join(_told(hop) for hop in hops)


def ended(tids):
    """Those threads that are not there any more."""
    return [tid for tid in tids if not (PROC / str(tid)).exists()]


def thread(pid, name):
    """Waits for a thread of that name."""

    def look():
        return [tid for tid in threads_of(pid) if name_of(tid) == name]

    return wait_for(f"thread {name} of {pid}", look)[0]


def children(pid):
    """The children of a process, of any of its threads."""
    found = []
    for file in (PROC / str(pid) / "task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, file.read_text(encoding="ascii").split())
    return found


def descendants(pid):
    """All that a process has started and that has not ended, with what that has started."""
    return [one for own in children(pid) for one in (own, *descendants(own))]


def child(pid, name=None):
    """Waits for a child of a process; of that name, if one is given."""

    def look():
        return [one for one in children(pid) if name in (None, name_of(one))]

    return wait_for(f"child {name or ''} of {pid}", look)[0]


def file(pid, fd):
    """What a file descriptor of a process is for: `pipe:[123]`."""
    return os.readlink(PROC / str(pid) / "fd" / str(fd))


def must_share(*ends):
    """Sees to it that file descriptors (process, number) are of the same pipe; gives its name."""
    names = {file(pid, fd) for pid, fd in ends}
    if len(names) != 1:
        raise Fault(f"/proc: not the same pipe: {', '.join(sorted(names))}")
    return names.pop()


def mutex_owner(tid):
    """Who holds the pthread mutex that a thread waits for, by its own memory."""
    address = wait_for(f"{tid} in futex", lambda: call(tid)[0] == "futex" and call(tid)[1])[0]
    with open(PROC / str(tid) / "mem", "rb", buffering=0) as memory:
        memory.seek(address + MUTEX_OWNER)
        return struct.unpack("i", memory.read(4))[0]


def must_own(owners):
    """Sees to it that mutexes are held by whom the truth says: waiter to holder."""
    for waiter, holder in owners.items():
        owner = mutex_owner(waiter)
        if owner != holder:
            raise Fault(f"the mutex that {waiter} waits for is held by {owner}, not by {holder}")
    return "the mutexes say: " + ", ".join(f"{a} waits for {b}" for a, b in owners.items())


def file_locks():
    """Who waits for whose file lock, by /proc/locks: waiter to holder (-1 for a lock of an open
    file, which has no process)."""
    found, holders = {}, {}
    for line in (PROC / "locks").read_text(encoding="ascii").splitlines():
        number, *words = line.split()
        if words[0] == "->":
            found[int(words[4])] = holders.get(number)
        else:
            holders[number] = int(words[3])
    return found


def must_block(waits):
    """Sees to it that the kernel knows of each wait for a file lock: waiter to holder."""
    wait_for("locks in /proc/locks", lambda: waits.items() <= file_locks().items(), 30)
    return "/proc/locks: " + ", ".join(f"{a} waits for {b}" for a, b in waits.items())


def sockets(kind, *patterns):
    """The lines of `ss -n -p` with all those texts in them."""
    lines = output_of(["ss", "-anp", kind]).splitlines()
    return [" ".join(line.split()) for line in lines if all(text in line for text in patterns)]


def socket_line(kind, *patterns):
    """Waits for such a line."""
    return wait_for(f"ss: {' '.join(patterns)}", lambda: sockets(kind, *patterns), 30)[0]
