"""The processes that a stage has started: which they are, that they go before others, and that they
are ended."""

import contextlib
import os
import pathlib
import signal

NICE = -15


def of_session(leader):
    """What runs in a session: process id and command line each. D-Bus starts services there that
    are nobody's children."""
    found = []
    for pid, (_, session) in _relations().items():
        # It may have ended meanwhile.
        with contextlib.suppress(OSError):
            if session == leader:
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                found.append((pid, command.decode(errors="replace").replace("\0", " ")))
    return found


def _relations():
    """Parent and session of every process, by its id."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            found[int(folder.name)] = int(fields[1]), int(fields[3])
    return found


def _belonging_to(leader):
    """The processes of a session, and all that descend from them: a terminal starts its program in
    a session of its own."""
    relations = _relations()
    found = {pid for pid, (_, session) in relations.items() if session == leader}
    while True:
        more = {pid for pid, (parent, _) in relations.items() if parent in found} - found
        if not more:
            return found
        found |= more


@contextlib.contextmanager
def ended_after(leader):
    """Ends what belongs to a process now and has outlived it at the end: a terminal's program has
    nobody then who is known to have started it."""
    handles = []
    for pid in _belonging_to(leader):
        with contextlib.suppress(ProcessLookupError):
            handles.append(os.pidfd_open(pid))
    try:
        yield
    finally:
        for handle in handles:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)


def prefer(process):
    """Gives a program of the stage the CPU before what else this machine is at, which would starve
    it and be the truth. Where sessions share the CPU (autogroup) theirs counts, else its own."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{process.pid}/autogroup").write_text(str(NICE))


def end(process):
    """Ends a program with all that belongs to it."""
    for pid in _belonging_to(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
