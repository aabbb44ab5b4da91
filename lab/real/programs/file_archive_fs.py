"""A file system in user space (FUSE), as those that show an archive or a shop of documents as
files: `file_archive_fs.py NAME FOLDER SECONDS`. Its files are at hand, but for two: `remote` is
fetched, which takes so many seconds of waiting, and `packed` is unpacked, which takes so many of
computing."""

import errno
import stat
import sys
import time
import zlib

from fusepy import FUSE, FuseOSError, Operations

TEXT = b"a line of the document\n" * 150
NAMES = ("near", "remote", "packed")


def fetch_from_archive(seconds):
    """Waits for a document as long as a slow archive takes."""
    time.sleep(seconds)
    return TEXT


def unpack_member(seconds):
    """Unpacks a document that lies at the end of a large archive."""
    packed = zlib.compress(TEXT * 100)
    end = time.monotonic() + seconds
    text = b""
    while time.monotonic() < end:
        text = zlib.decompress(packed)
    return text[: len(TEXT)]


class Archive(Operations):
    """What the kernel asks of the file system."""

    def __init__(self, seconds):
        self.seconds = seconds

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path[1:] not in NAMES:
            raise FuseOSError(errno.ENOENT)
        return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1, "st_size": len(TEXT)}

    def readdir(self, path, fh):
        return [".", "..", *NAMES]

    def statfs(self, path):
        return {"f_bsize": 4096, "f_blocks": 1000, "f_bavail": 500, "f_bfree": 500}

    def read(self, path, size, offset, fh):
        if path == "/remote":
            text = fetch_from_archive(self.seconds)
        elif path == "/packed":
            text = unpack_member(self.seconds)
        else:
            text = TEXT
        return text[offset : offset + size]


def main():
    name, folder, seconds = sys.argv[1:]
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)
    FUSE(Archive(float(seconds)), folder, foreground=True, nothreads=True, fsname=name)


main()
