"""A GTK program whose second thread waits for a scanner: `gtk_scan.py S`. It calls C code that does
not release Python's interpreter lock while it waits, S seconds for a slow scan. The thread tells
its id."""

import ctypes
import sys
import threading

import gtk_panel

# PyDLL keeps the lock during a call, as an extension does that forgets to release it.
LIBC = ctypes.PyDLL("libc.so.6")


def scan_page(seconds):
    """What the second thread does."""
    LIBC.poll(None, 0, int(seconds * 1000))
    if seconds > gtk_panel.LONG_S:
        print("scanned", threading.get_native_id(), flush=True)


def in_thread(seconds):
    """Starts the second thread."""
    threading.Thread(target=scan_page, args=[seconds]).start()


SLOW_S = float(sys.argv[1])
gtk_panel.run("gtk_scan", lambda: in_thread(0.01), lambda: in_thread(SLOW_S))
