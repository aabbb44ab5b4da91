#!/usr/bin/env python3
"""A file system of one file, served by this process over /dev/fuse: `served.py FOLDER PAGES`. Each
page that the kernel asks for is computed for a while."""

import ctypes
import os
import stat
import struct
import sys
import time

PAGE = 4096
# What a page takes, s of CPU time.
WORK_S = 0.005
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
ENOSYS, ENOENT = 38, 2
HEADER = struct.Struct("<IIQQIIII")


def attributes(inode, pages):
    mode = stat.S_IFDIR | 0o755 if inode == 1 else stat.S_IFREG | 0o644
    size = 0 if inode == 1 else pages * PAGE
    return struct.pack(
        "<QQQQQQIIIIIIIIII",
        inode, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, PAGE, 0,
    )  # fmt: skip


def answer(operation, inode, body, pages):
    """The error and the bytes for a request."""
    if operation == INIT:
        major, minor, ahead, _ = struct.unpack_from("<IIII", body)
        # No read-ahead beyond a page; requests of a page.
        return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 12, 9, PAGE, 1, 1, 0, 0)
    if operation == LOOKUP:
        if body.rstrip(b"\0") != b"file":
            return ENOENT, b""
        return 0, struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2, pages)
    if operation == GETATTR:
        return 0, struct.pack("<QII", 3600, 0, 0) + attributes(inode, pages)
    if operation == OPEN:
        return 0, struct.pack("<QII", 1, 0, 0)
    if operation == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        until = time.thread_time() + WORK_S
        while time.thread_time() < until:
            pass
        return 0, b"\7" * max(0, min(size, pages * PAGE - offset))
    if operation in (RELEASE, FLUSH):
        return 0, b""
    return ENOSYS, b""


def main():
    folder, pages = sys.argv[1], int(sys.argv[2])
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,max_read={PAGE}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"served", folder.encode(), b"fuse", 0, options.encode()):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    while True:
        try:
            request = os.read(device, 1 << 17)
        except OSError:
            return
        _, operation, unique, inode, *_ = HEADER.unpack_from(request)
        if operation == FORGET or operation == 42:
            continue
        error, reply = answer(operation, inode, request[HEADER.size :], pages)
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(reply), -error, unique) + reply)
        except OSError:
            pass


if __name__ == "__main__":
    main()
