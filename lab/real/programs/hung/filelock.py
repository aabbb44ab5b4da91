"""Takes locks of files one after the other, and sleeps when it has them all: filelock.py KIND
FILE... Prints a line when it has the first, and goes on to the others after SIGUSR1. KIND is flock
(of the open file), lockf (of the process) or ofd (of the open file, of a range)."""

import fcntl
import os
import signal
import struct
import sys

# Not in the module fcntl: wait for a lock that belongs to the open file.
F_OFD_SETLKW = 38


def take(kind, path):
    """Waits for the lock; gives the file, which must stay open."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if kind == "flock":
        fcntl.flock(file, fcntl.LOCK_EX)
    elif kind == "lockf":
        fcntl.lockf(file, fcntl.LOCK_EX)
    else:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, F_OFD_SETLKW, whole)
    return file


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
kind, *paths = sys.argv[1:]
held = [take(kind, paths[0])]
print("has the first", flush=True)
if len(paths) > 1:
    signal.sigwait({signal.SIGUSR1})
    held += [take(kind, path) for path in paths[1:]]
while True:
    signal.pause()
