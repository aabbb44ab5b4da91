"""A window that is drawn anew 60 times a second: `ord_frames.py LOG` writes begin and end of each
frame (CLOCK_MONOTONIC, ns), where one ends with its drawing and begins with the end of the one
before. Drawing takes about 4 ms."""

import math
import sys
import time

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk  # noqa: E402

FRAME_MS, DRAW_S = 16, 0.004
file = open(sys.argv[1], "a", buffering=1, encoding="utf-8")
last = time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def draw(area, context):
    global last
    begin, step = time.monotonic(), 0
    while time.monotonic() < begin + DRAW_S:
        angle = begin + step / 10
        context.set_source_rgb(abs(math.sin(angle)), abs(math.cos(angle)), 0.5)
        context.arc(150 + 100 * math.cos(angle), 150 + 100 * math.sin(angle), 20, 0, math.tau)
        context.fill()
        step += 1
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    file.write(f"{last} {now}\n")
    last = now


def tick(area):
    area.queue_draw()
    return True


window = Gtk.Window(title="frames")
drawing = Gtk.DrawingArea()
drawing.set_size_request(300, 300)
drawing.connect("draw", draw)
window.add(drawing)
window.show_all()
GLib.timeout_add(FRAME_MS, tick, drawing)
Gtk.main()
