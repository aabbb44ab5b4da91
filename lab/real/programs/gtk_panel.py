"""A GTK window with a clock and one action, done where it is asked for: key `q` does it quickly,
key `s` so that it takes long. Used by gtk_fetch.py, gtk_search.py and gtk_scan.py.

A turn that takes more than a second, and a clock that stood still as long, are told by their begin
and end (CLOCK_MONOTONIC, ns)."""

import time

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402

TICK_S = 0.1
LONG_S = 1.0


def now_ns():
    """The time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def tell(what, begin, end):
    """Tells of what took long."""
    if end - begin > LONG_S * 1e9:
        print(what, begin, end, flush=True)


class Panel(Gtk.Window):
    """The window. `quick` and `slow` are what the keys do."""

    def __init__(self, name, quick, slow):
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write(name)
        super().__init__(title="panel ready")
        self.actions, self.turns = {"q": quick, "s": slow}, 0
        self.label = Gtk.Label(label="Press q or s")
        self.add(self.label)
        self.set_default_size(300, 200)
        # Keys that are down: one that repeats is pressed once.
        self.down = set()
        self.connect("key-press-event", self.on_key)
        self.connect("key-release-event", self.on_release)
        GLib.timeout_add(int(TICK_S * 1000), self.on_tick)
        # When the clock was drawn last: the time until it is drawn first is no gap.
        self.ticked = None
        self.show_all()

    def on_key(self, _, event):
        """A key was pressed."""
        act = self.actions.get(Gdk.keyval_name(event.keyval))
        if act is None or event.keyval in self.down:
            return
        self.down.add(event.keyval)
        begin = now_ns()
        act()
        self.turns += 1
        self.set_title(f"panel done {self.turns}")
        tell("turn", begin, now_ns())

    def on_release(self, _, event):
        """A key was let go."""
        self.down.discard(event.keyval)

    def on_tick(self):
        """Draws the clock."""
        now = now_ns()
        if self.ticked:
            tell("tick", self.ticked, now)
        self.ticked = now
        self.label.set_text(time.strftime("%H:%M:%S"))
        return True


def run(name, quick, slow):
    """Opens the window and stays."""
    panel = Panel(name, quick, slow)
    panel.present()
    Gtk.main()
