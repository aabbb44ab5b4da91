"""polkit, on a system bus of the stage's own."""

import pwd
import subprocess

from case import freeze
from freezes.stopped import ask_stopped
from stage import CannotRun, need, output_of, read_line, wait_for

DAEMON = "/usr/lib/polkit-1/polkitd"
# Everybody may own and send everything.
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
"""


def system_bus(stage):
    """Starts a system bus; gives its process."""
    need("dbus-daemon", "gdbus")
    socket = stage.directory / "system_bus"
    config = stage.directory / "bus.conf"
    config.write_text(BUS.format(socket=socket))
    words = ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address=1"]
    bus = stage.start(words, stdout=subprocess.PIPE)
    read_line(bus.stdout)
    stage.environment["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={socket}"
    return bus


def has_owner(stage, name):
    """Whether somebody owns a name on the system bus."""
    words = ["gdbus", "call", "--system", "--dest", "org.freedesktop.DBus", "--object-path", "/",
             "--method", "org.freedesktop.DBus.NameHasOwner", name]
    return "true" in output_of(words, env=stage.environment)


@freeze("desktop", "polkitd-stopped")
def stopped_daemon(stage):
    """pkcheck asks polkitd whether a process may run a program as root. polkitd is stopped."""
    need(DAEMON, "pkcheck")
    try:
        pwd.getpwnam("polkitd")
    except KeyError:
        raise CannotRun("there is no user polkitd") from None
    bus = system_bus(stage)
    daemon = stage.start([DAEMON, "--no-debug"])
    wait_for("polkitd", lambda: has_owner(stage, "org.freedesktop.PolicyKit1"))
    words = ["pkcheck", "--action-id", "org.freedesktop.policykit.exec", "--process", bus.pid]
    output_of(words, env=stage.environment)
    return ask_stopped(stage, words, daemon.pid, "LongWait in D-Bus; root polkitd, stopped")
