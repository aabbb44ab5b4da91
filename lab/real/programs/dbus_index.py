"""A D-Bus service that searches: `dbus_index.py NAME START` owns NAME on the session bus after it
has loaded its index, which takes START seconds. `Search(S)` computes for S seconds."""

import sys
import time

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = sys.argv[1]


def load_index(seconds):
    """Gets ready."""
    time.sleep(seconds)


def search_documents(seconds):
    """Looks through all documents."""
    end = time.monotonic() + seconds
    found = 0
    while time.monotonic() < end:
        found += sum(len(str(n)) for n in range(1000))
    return found


class Index(dbus.service.Object):
    """The object that answers."""

    @dbus.service.method(NAME, in_signature="d", out_signature="d")
    def Search(self, seconds):
        """Called by D-Bus."""
        return float(search_documents(seconds))


with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write("dbus_index")
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
load_index(float(sys.argv[2]))
Index(dbus.service.BusName(NAME, bus), "/")
GLib.MainLoop().run()
