"""Services of a desktop session that are asked by D-Bus."""

from case import Root, Truth, freeze
from freezes.panels import PROGRAMS, PYTHON
from freezes.runtimes import must_last
from freezes.stopped import ask_stopped
from processes import of_session
from stage import Fault, need, now_ns, output_of, wait_for

PORTAL = "/usr/libexec/xdg-desktop-portal"
BACKEND = "/usr/libexec/xdg-desktop-portal-gtk"


def started_by(bus, pattern):
    """The process that D-Bus has started in its own session."""

    def look():
        return [pid for pid, command in of_session(bus.pid) if pattern in command]

    return wait_for(pattern, look)[0]


def has_owner(stage, name):
    """Whether somebody owns a name on the session bus."""
    words = ["gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/",
             "--method", "org.freedesktop.DBus.NameHasOwner", name]
    return "true" in output_of(words, env=stage.environment)


@freeze("desktop", "notification-daemon-stopped")
def notification(stage):
    """notify-send shows a message while the notification daemon (dunst) is stopped."""
    need("notify-send", "dunst", "gdbus")
    stage.display()
    stage.session_bus()
    daemon = stage.start(["dunst"])
    wait_for("dunst", lambda: has_owner(stage, "org.freedesktop.Notifications"))
    words = ["notify-send", "hello", "a message"]
    output_of(words, env=stage.environment)
    return ask_stopped(stage, words, daemon.pid, "LongWait in D-Bus; root dunst, stopped")


@freeze("desktop", "dconf-service-stopped")
def settings_service(stage):
    """gsettings changes a setting while dconf-service, which writes it, is stopped."""
    need("gsettings")
    bus = stage.session_bus()
    stage.environment["GSETTINGS_BACKEND"] = "dconf"
    words = ["gsettings", "set", "org.gtk.Settings.FileChooser", "show-hidden"]
    output_of([*words, "true"], env=stage.environment)
    service = started_by(bus, "dconf-service")
    return ask_stopped(
        stage, [*words, "false"], service, "LongWait in D-Bus; root dconf-service, stopped"
    )


@freeze("desktop", "dbus-slow-activation")
def slow_activation(stage):
    """A method call has D-Bus start the service that it is for, and that loads its index before it
    answers."""
    need(PYTHON, "dbus-daemon", "gdbus")
    services = stage.directory / "share/dbus-1/services"
    services.mkdir(parents=True)
    stage.environment["XDG_DATA_HOME"] = str(stage.directory / "share")
    name = "org.example.Index"
    command = f"{PYTHON} {PROGRAMS}/dbus_index.py {name} {stage.freeze_s + 0.5}"
    (services / f"{name}.service").write_text(f"[D-BUS Service]\nName={name}\nExec={command}\n")
    bus = stage.session_bus()
    wait_for("the bus", lambda: not has_owner(stage, name))
    stage.ordinary()
    client = stage.program(
        ["gdbus", "call", "--session", "--timeout", "60", "--dest", name, "--object-path", "/",
         "--method", f"{name}.Search", "0.0"]
    )
    begin = now_ns()

    def look():
        return started_by(bus, "dbus_index.py"), has_owner(stage, name), client.runs()

    service, owned, runs = stage.hold(look)
    end = client.ended()
    if owned or not runs:
        raise Fault(f"gdbus: the name has an owner: {owned}; the client runs: {runs}")
    return Truth(
        text="LongWait in D-Bus; root dbus_index, which sleeps while it starts",
        victims=(client.pid,),
        roots=(Root(service, ("LongWait",)),),
        frozen=must_last(stage, (begin, end)),
        witness=f"gdbus: {name} has no owner while process {service} starts",
        function=r"\bload_index\b",
    )


@freeze("desktop", "portal-backend-stopped")
def portal_backend(stage):
    """A program asks the desktop portal for a setting. The portal has only just been started, and
    asks its backend, which is stopped, for what it can do."""
    need("gdbus", PORTAL, BACKEND)
    stage.display()
    stage.environment["XDG_CURRENT_DESKTOP"] = "GTK"
    bus = stage.session_bus()
    name = "org.freedesktop.portal.Desktop"
    backend = stage.start([BACKEND])
    wait_for("the backend", lambda: has_owner(stage, "org.freedesktop.impl.portal.desktop.gtk"))
    words = ["gdbus", "call", "--session", "--timeout", "60", "--dest", name, "--object-path",
             "/org/freedesktop/portal/desktop", "--method",
             "org.freedesktop.portal.Settings.ReadAll", "[]"]
    return ask_stopped(
        stage,
        words,
        backend.pid,
        "LongWait in D-Bus; root the portal's backend, stopped",
        between=lambda: (started_by(bus, PORTAL),),
    )
