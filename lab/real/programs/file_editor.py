"""Saves a document again and again, as an editor does that saves on its own: `file_editor.py NAME
FILE`. It writes a new file, has it written to the disk, and puts it in the old one's place. A save
that takes more than a second is told by its begin and end."""

import os
import sys
import time


def save_document(path, text):
    """Replaces the document by a new text that is safe on the disk."""
    new = path + ".new"
    with open(new, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)


def main():
    name, path = sys.argv[1:]
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)
    print("ready", flush=True)
    number = 0
    while True:
        time.sleep(0.1)
        number += 1
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        save_document(path, f"draft {number}\n" * 300)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if end - begin > 1_000_000_000:
            print(begin, end, flush=True)


main()
