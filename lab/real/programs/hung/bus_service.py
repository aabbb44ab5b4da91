"""A D-Bus service with one method, org.example.Desk.Ask, which never replies: bus_service.py NAME
[NEXT]. It sleeps in it, or waits there for the reply of another such service. Prints a line when it
can be called."""

import signal
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

INTERFACE = "org.example.Desk"
# What the library takes for no limit.
FOR_GOOD_S = 2_000_000


class Desk(dbus.service.Object):
    """The one object of the service."""

    @dbus.service.method(INTERFACE, in_signature="", out_signature="s")
    def Ask(self):
        if len(sys.argv) > 2:
            return self.connection.call_blocking(
                sys.argv[2], "/", INTERFACE, "Ask", "", (), timeout=FOR_GOOD_S
            )
        while True:
            signal.pause()


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
name = dbus.service.BusName(sys.argv[1], bus)
desk = Desk(bus, "/")
print("ready", flush=True)
GLib.MainLoop().run()
