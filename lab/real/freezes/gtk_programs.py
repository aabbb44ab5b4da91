"""GTK programs that do on their main thread what takes long, or whose main thread waits for another
that does."""

from case import Root, Truth, freeze
from freezes.panels import (
    LEAST_SHARE,
    MARGIN_S,
    PYTHON,
    must_sleep,
    open_panel,
    share_of_cpu,
    slow_turn,
    start_program,
    state_of,
    told_all,
)
from stage import Fault, accepts, free_port, need, output_of, wait_for

@freeze("toolkits", "gtk-sync-request")
def sync_request(stage):
    """A key handler of a GTK program gets a report from a web service on the main thread; the
    service sleeps before it answers."""
    need(PYTHON, "ss")
    stage.display()
    stage.session_bus()
    port = free_port()
    server = start_program(stage, "gtk_report_server.py", port, ready=lambda: accepts(port))
    seconds = stage.freeze_s + MARGIN_S
    panel = open_panel(stage, "gtk_fetch.py", f"http://127.0.0.1:{port}/report", seconds)

    def look():
        """Sockets between the two, and what the server does."""
        lines = output_of(["ss", "-tnpH", "state", "established", f"dport = :{port}"]).splitlines()
        open_ones = [line for line in lines if f"pid={panel.pid}," in line]
        return open_ones, state_of(panel.pid), must_sleep(server.pid)

    frozen, (sockets, state, sleeper) = slow_turn(stage, panel, look)
    if not sockets or state != "S":
        raise Fault(f"the program is {state}, and has {len(sockets)} connections to the server")
    return Truth(
        text="LongWait for a web service; root report_server, which sleeps",
        victims=(panel.pid,),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"ss: {panel.pid} is connected to port {port} and asleep; /proc: the "
        f"server's {sleeper}",
        function=r"\bslow_report\b",
    )


@freeze("toolkits", "gtk-worker-holds-lock")
def worker_holds_lock(stage):
    """The second thread of a GTK program in Python waits for a device in C code that keeps the
    interpreter's lock, for which the main thread waits."""
    need(PYTHON)
    stage.display()
    stage.session_bus()
    panel = open_panel(stage, "gtk_scan.py", stage.freeze_s + MARGIN_S)
    stage.xdotool("key", "s")

    def look():
        """What the main thread and the others wait in. It looks at its clock 200 times a second, so
        that one look may find it awake."""

        def waits():
            listed = output_of(["ps", "-L", "-o", "tid=,wchan:40=", "-p", panel.pid]).splitlines()
            found = dict(line.split() for line in listed)
            return found if "futex" in found[str(panel.pid)] else None

        return wait_for("the main thread in a futex", waits, seconds=1)

    waits = stage.hold(look)
    said = told_all(panel, {"scanned", "tick"})
    (tid,), frozen = said["scanned"], said["tick"]
    main, second = waits[str(panel.pid)], waits.get(str(tid), "nowhere")
    if "poll" not in second:
        raise Fault(f"ps: the second thread waits in {second}")
    return Truth(
        text="main thread waits for the interpreter's lock; root the second thread, in poll",
        victims=(panel.pid,),
        roots=(Root(panel.pid, ("LongWait",), thread=tid),),
        frozen=frozen,
        witness=f"ps: the main thread waits in {main}, the second one in {second}",
        function=r"\bscan_page\b",
    )


@freeze("desktop", "dbus-slow-service")
def slow_service(stage):
    """A key handler of a GTK program calls a method of a D-Bus service on the main thread; the
    service computes before it answers."""
    need(PYTHON, "dbus-daemon", "gdbus")
    stage.display()
    stage.session_bus()
    name = "org.example.Index"

    def owned():
        words = ["gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path",
                 "/", "--method", "org.freedesktop.DBus.NameHasOwner", name]
        return "true" in output_of(words, env=stage.environment)

    service = start_program(stage, "dbus_index.py", name, 0, ready=owned)
    panel = open_panel(stage, "gtk_search.py", name, stage.freeze_s + MARGIN_S)

    def look():
        return state_of(panel.pid), share_of_cpu(service.pid)

    frozen, (state, share) = slow_turn(stage, panel, look)
    if state != "S" or share < LEAST_SHARE:
        raise Fault(f"/proc: the program is {state}, the service had {share:.0%} of a CPU")
    return Truth(
        text="LongRunning dbus_index in search_documents, by a D-Bus call",
        victims=(panel.pid,),
        roots=(Root(service.pid, ("LongRunning",)),),
        frozen=frozen,
        witness=f"/proc: the service had {share:.0%} of a CPU while the program slept",
        function=r"\bsearch_documents\b",
    )
