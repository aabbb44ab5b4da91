"""Callers of D-Bus services that do not reply."""

import signal
import subprocess

from hangs import builds
from hangs.program import hung, truth
from hangs.witness import At, sleeps
from stage import need, output_of, read_line

# The longest that the tools take.
FOR_GOOD_S = 2_000_000
METHOD = "org.example.Desk.Ask"


def service(stage, name, *words):
    """Starts a service (bus_service.py)."""
    builds.need_modules("dbus", "gi")
    process = stage.start([*builds.python("bus_service"), name, *words], stdout=subprocess.PIPE)
    read_line(process.stdout)
    return process


def must_own(stage, name, pid):
    """Sees to it that the bus agrees whose the name is."""
    told = output_of(
        ["dbus-send", "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/",
         "org.freedesktop.DBus.GetConnectionUnixProcessID", f"string:{name}"],
        env=stage.environment,
    )  # fmt: skip
    if told.split() != ["uint32", str(pid)]:
        raise ValueError(f"D-Bus: {name} is {told.strip()}, not {pid}")
    return f"D-Bus: {name} is {pid}"


@hung("dbus-no-reply")
def no_reply(stage):
    """gdbus calls a service that sleeps in the method."""
    need("gdbus")
    stage.session_bus()
    silent = service(stage, "org.example.Silent").pid
    owns = must_own(stage, "org.example.Silent", silent)
    asker = stage.start(
        ["gdbus", "call", "--session", "--timeout", FOR_GOOD_S, "--dest", "org.example.Silent"]
        + ["--object-path", "/", "--method", METHOD]
    )
    return truth(
        "LongWait; root the service, which sleeps",
        [At(asker.pid, ("poll",)), sleeps(silent)],
        owns,
    )


@hung("dbus-stopped-service")
def stopped_service(stage):
    """busctl calls a service that is stopped."""
    need("busctl")
    stage.session_bus()
    process = service(stage, "org.example.Stopped")
    owns = must_own(stage, "org.example.Stopped", process.pid)
    process.send_signal(signal.SIGSTOP)
    address = stage.environment["DBUS_SESSION_BUS_ADDRESS"]
    asker = stage.start(
        ["busctl", f"--address={address}", f"--timeout={FOR_GOOD_S}", "call"]
        + ["org.example.Stopped", "/", *METHOD.rsplit(".", 1)]
    )
    return truth(
        "LongWait; root the service, which is stopped",
        [At(asker.pid, ("poll",)), At(process.pid, state="T")],
        owns,
    )


@hung("dbus-chain")
def chain(stage):
    """dbus-send calls a service that calls another one, which sleeps in the method."""
    stage.session_bus()
    last = service(stage, "org.example.Last").pid
    owns = must_own(stage, "org.example.Last", last)
    middle = service(stage, "org.example.Middle", "org.example.Last").pid
    asker = stage.start(
        ["dbus-send", "--session", "--print-reply", "--reply-timeout=2000000000"]
        + ["--dest=org.example.Middle", "/", METHOD]
    )
    return truth(
        "LongWait; root the last service, which sleeps",
        [At(asker.pid, ("poll",)), At(middle, ("poll",)), sleeps(last)],
        owns,
    )
