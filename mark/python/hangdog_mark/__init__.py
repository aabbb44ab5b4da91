# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Names a program's points and regions, for hangdog to record.

    import hangdog_mark as mark

    mark.point("tick")                           # a name, or a code from 0 to 16383
    with mark.region("decode", 7, 1500):         # and up to four integers
        ...
    mark.begin("download", 1, by="argument")     # where regions overlap, or end on other threads
    mark.end("download", 1, by="argument", colour="green")

A mark costs some 0.2 us while nobody records, and some 2 us while somebody does. docs/MARKS.md
describes the memory that is shared with the recorder. Linux only: elsewhere marks do nothing.
"""

import contextlib
import fcntl
import mmap
import os
import resource
import struct
import threading
import time

__all__ = ["begin", "end", "point", "region"]

_MAGIC = 0x736B72616D676468
_RINGS, _RECORDS, _NAMES, _NAME_LENGTH, _FIRST_NAME = 64, 16384, 1024, 60, 16384
_RING_AT = 4096
_NAME_AT = _RING_AT + 64 * _RINGS
_RECORD_AT = _NAME_AT + 64 * _NAMES
_SIZE = _RECORD_AT + 64 * _RINGS * _RECORDS
# Places of words of 8 bytes.
_UNTIL, _UNPLACED = 8, 16
_GRACE_NS = 200_000_000
_F_ADD_SEALS, _SEALS = 1033, 1 | 2 | 4
_PAIRING = {"thread": 0, "argument": 1, "code": 2}
_COLOUR = {None: 0, "blue": 1, "green": 2, "purple": 3, "orange": 4, "red": 5}
# Of a record, all behind its sequence number.
_BODY = struct.Struct("@QIIBBB5xqqqq")


class _Area:
    """The memory that is shared with the recorder."""

    def __init__(self):
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit != resource.RLIM_INFINITY and limit < _SIZE:
            raise OSError("the limit of file sizes is too low")
        fd = os.memfd_create("hangdog-marks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, _SIZE)
            fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
            self.bytes = mmap.mmap(fd, _SIZE)
            struct.pack_into("@IIIIII", self.bytes, 8, 1, os.getpid(), _RINGS, _RECORDS, _NAMES, 0)
            self.words = memoryview(self.bytes).cast("Q")
            self.words[_UNTIL] = time.monotonic_ns() + _GRACE_NS
            self.words[0] = _MAGIC
            with contextlib.suppress(OSError):
                # The kernel tells recorders of executable mappings: this is how one hears of us.
                mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
        finally:
            os.close(fd)

    def put_name(self, at, text):
        place = _NAME_AT + 64 * at
        self.bytes[place + 4 : place + 4 + len(text)] = text
        struct.pack_into("@I", self.bytes, place, len(text))
        struct.pack_into("@I", self.bytes, 192, at + 1)


class _Ring:
    """A thread's ring, which it gives back when it ends."""

    def __init__(self, at):
        self.area = _area
        self.at = at
        self.tid = threading.get_native_id()
        self.counts = (_RING_AT + 64 * at) // 8
        self.records = _RECORD_AT + 64 * _RECORDS * at
        self.busy = False

    def __del__(self):
        if self.area is _area:
            _free.append(self.at)


_lock = threading.Lock()
_own = threading.local()
_names = {}
_area = None
_free = []


def _start():
    global _area, _free
    _free = list(range(_RINGS - 1, -1, -1))
    try:
        _area = _Area()
    except (OSError, AttributeError, ValueError):
        _area = None
        return
    for name, number in _names.items():
        _area.put_name(number - _FIRST_NAME, name.encode()[:_NAME_LENGTH])


def _forked():
    """Of a child: what it inherited is its parent's."""
    global _lock, _own
    _lock = threading.Lock()
    _own = threading.local()
    _start()


def _number(name):
    if isinstance(name, int):
        if not 0 <= name < _FIRST_NAME:
            raise ValueError(f"a code is 0 to {_FIRST_NAME - 1}")
        return name
    with _lock:
        if name in _names:
            return _names[name]
        if len(_names) >= _NAMES - 1:
            name = "(more names)"
            if name in _names:
                return _names[name]
        at = len(_names)
        _names[name] = _FIRST_NAME + at
        _area.put_name(at, name.encode()[:_NAME_LENGTH])
        return _FIRST_NAME + at


def _ring():
    ring = getattr(_own, "ring", None)
    if ring is None:
        try:
            ring = _own.ring = _Ring(_free.pop())
        except IndexError:
            return None
    return ring


def _mark(kind, name, arguments, by, colour):
    if _area is None:
        return
    words = _area.words
    until = words[_UNTIL]
    if not until:
        return
    now = time.monotonic_ns()
    if now >= until:
        # Whoever recorded has not said for a while that they still do.
        words[_UNTIL] = 0
        return
    number = _names.get(name)
    if number is None:
        number = _number(name)
    if len(arguments) > 4:
        raise ValueError("a mark has at most four arguments")
    a, b, c, d = (*arguments, 0, 0, 0, 0)[:4]
    ring = _ring()
    # A signal's handler that marks in the middle of a mark.
    if ring is None or ring.busy:
        words[_UNPLACED] += 1
        return
    ring.busy = True
    try:
        at = words[ring.counts]
        words[ring.counts] = at + 1
        place = ring.records + at % _RECORDS * 64
        _BODY.pack_into(
            _area.bytes, place + 8, now, ring.tid, number, kind, _PAIRING[by], _COLOUR[colour], a, b, c, d
        )
        words[place // 8] = at + 1
        words[ring.counts + 1] = at + 1
    finally:
        ring.busy = False


def point(name, *arguments, colour=None):
    """Marks a moment."""
    _mark(0, name, arguments, "thread", colour)


def begin(name, *arguments, by="thread", colour=None):
    """Begins a region, which pairs by code and thread, by code and first argument, or by code alone."""
    _mark(1, name, arguments, by, colour)


def end(name, *arguments, by="thread", colour=None):
    """Ends a region."""
    _mark(2, name, arguments, by, colour)


@contextlib.contextmanager
def region(name, *arguments, by="thread", colour=None):
    """A region around a block, or as a decorator around a function."""
    _mark(1, name, arguments, by, colour)
    try:
        yield
    finally:
        _mark(2, name, arguments[:1], by, colour)


_start()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
