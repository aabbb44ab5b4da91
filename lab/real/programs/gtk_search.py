"""A GTK program that calls a D-Bus service synchronously on its main thread: `gtk_search.py NAME
S`, where the service is asked for a search that takes S seconds (dbus_index.py)."""

import sys

from gi.repository import Gio, GLib

import gtk_panel

NAME, SECONDS = sys.argv[1], float(sys.argv[2])
BUS = Gio.bus_get_sync(Gio.BusType.SESSION)


def search(seconds):
    """Has the service look for something."""
    question = GLib.Variant("(d)", (seconds,))
    BUS.call_sync(NAME, "/", NAME, "Search", question, None, Gio.DBusCallFlags.NONE, 600_000, None)


gtk_panel.run("gtk_search", lambda: search(0), lambda: search(SECONDS))
