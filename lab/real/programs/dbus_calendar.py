"""A D-Bus service that keeps a calendar: `dbus_calendar.py NAME ZONES` owns NAME on the session bus.
`Day(S)` asks the service ZONES, which the second argument names, to search for S seconds, and answers
then."""

import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME, ZONES = sys.argv[1:]


def ask_zones(bus, seconds):
    """Has the other service search."""
    zones = dbus.Interface(bus.get_object(ZONES, "/"), ZONES)
    return zones.Search(seconds, timeout=120)


class Calendar(dbus.service.Object):
    """The object of the service."""

    def __init__(self, bus):
        super().__init__(dbus.service.BusName(NAME, bus), "/")
        self.bus = bus

    @dbus.service.method(NAME, in_signature="d", out_signature="s")
    def Day(self, seconds):  # pylint: disable=invalid-name
        """What there is to do."""
        return f"found {ask_zones(self.bus, seconds)}"


with open("/proc/self/comm", "w", encoding="ascii") as file:
    file.write("dbus_calendar")
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
calendar = Calendar(dbus.SessionBus())
GLib.MainLoop().run()
