"""A Tk window with notes: `tk_notes.py S`. Key `q` saves them quickly, key `s` has a thread pack all
of them, which takes S seconds, and waits for it. Turns of more than a second are told by their begin
and end (CLOCK_MONOTONIC, ns)."""

import os
import sys
import threading
import time
import tkinter
import zlib

LONG_S = 1.0
SLOW_S = float(sys.argv[1])


def now_ns():
    """The time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def pack_notes(seconds):
    """Packs all notes."""
    notes = os.urandom(1 << 20).hex().encode()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        zlib.compress(notes, 6)


class Window(tkinter.Tk):
    """The window."""

    def __init__(self):
        super().__init__(className="notes")
        self.title("notes ready")
        self.geometry("300x200")
        self.label = tkinter.Label(self)
        self.label.pack()
        self.turns = 0
        self.bind("<KeyPress-q>", lambda _: self.save(0.01))
        self.bind("<KeyPress-s>", lambda _: self.save(SLOW_S))
        self.tick()

    def tick(self):
        """Draws the clock."""
        self.label["text"] = time.strftime("%H:%M:%S")
        self.after(100, self.tick)

    def save(self, seconds):
        """A key was pressed."""
        begin = now_ns()
        packer = threading.Thread(target=pack_notes, args=(seconds,), name="packer")
        packer.start()
        packer.join()
        self.turns += 1
        self.title(f"notes done {self.turns}")
        end = now_ns()
        if end - begin > LONG_S * 1e9:
            print("turn", begin, end, packer.native_id, flush=True)


with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write("tk_notes")
Window().mainloop()
