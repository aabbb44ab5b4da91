"""Windows that wait for another thread or process, an editor that is a server, and a D-Bus service
that asks another one."""

import os
import resource

from case import Root, Truth, freeze
from freezes.neighbours import neighbours
from freezes.panels import LEAST_SHARE, MARGIN_S, PYTHON, open_panel, share_of_cpu
from freezes.panels import slow_turn, start_program, state_of
from freezes.procfs import children, cpu_s, until_named
from freezes.runtimes import activities, ample_s, must_last, must_wait, runners
from freezes.session_services import has_owner
from freezes.shared_things import TRIAL
from stage import Fault, need, now_ns, output_of, wait_for


@freeze("toolkits", "tk-joins-thread")
def joins_thread(stage):
    """A key handler of a Tk window waits for a thread that packs all notes (Thread.join)."""
    need(PYTHON)
    stage.display()
    neighbours(stage)
    panel = open_panel(stage, "tk_notes.py", stage.freeze_s + MARGIN_S)
    (*frozen, tid), found = slow_turn(stage, panel, lambda: activities(panel.pid))
    running, main = runners(found), must_wait(found, panel.pid)
    if [one.tid for one in running] != [tid]:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning in pack_notes; root the second thread, which the main thread joins",
        victims=(panel.pid,),
        roots=(Root(panel.pid, ("LongRunning",), thread=tid),),
        frozen=tuple(frozen),
        witness=f"/proc: {running[0]}; {main}",
        function=r"\bpack_notes\b",
    )


@freeze("toolkits", "qt-waits-for-process")
def waits_for_process(stage):
    """A key handler of a PyQt window waits until bzip2 has packed an album."""
    need(PYTHON, "bzip2")
    stage.display()
    stage.session_bus()
    neighbours(stage)
    small, large = stage.directory / "small", stage.directory / "large"
    small.write_bytes(os.urandom(2000))
    large.write_bytes(os.urandom(TRIAL))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(["bzip2", "--keep", "--force", large])
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    large.write_bytes(os.urandom(int(TRIAL * ample_s(stage) / took)))
    panel = open_panel(stage, "qt_albums.py", small, large)

    def look():
        child = children(panel.pid)
        return child, activities(*child), state_of(panel.pid)

    frozen, (packers, found, state) = slow_turn(stage, panel, look)
    running = runners(found)
    if len(packers) != 1 or state != "S":
        raise Fault(f"/proc: the window is {state} and has the children {packers}")
    return Truth(
        text="LongRunning; root bzip2, for which the main thread waits",
        victims=(panel.pid,),
        roots=(Root(packers[0], ("LongRunning",)),),
        frozen=must_last(stage, frozen),
        witness=f"/proc: {running[0]}; the window sleeps",
        waits_in=r"\bpack_album\b",
    )


@freeze("desktop", "emacs-server-busy")
def emacs_server(stage):
    """emacsclient asks for a value of an emacs that runs as a server and computes for somebody
    else."""
    need("emacs", "emacsclient")
    neighbours(stage)
    socket, done = stage.directory / "emacs" / "notes", stage.directory / "done"
    server = stage.start(["emacs", "-Q", f"--fg-daemon={socket.name}"])
    wait_for("emacs", socket.exists)
    words = ["emacsclient", "-s", socket.name, "-e"]
    output_of([*words, "(+ 1 1)"], env=stage.environment)
    stage.ordinary()
    lisp = f'(while (not (file-exists-p "{done}")) (dotimes (n 100000) (sqrt n)))'
    before = cpu_s(server.pid)
    other = stage.start([*words, lisp])
    wait_for("the computation", lambda: cpu_s(server.pid) > before + 0.1)
    client = stage.program([*words, "(buffer-list)"])
    begin = until_named(client.pid, "emacsclient")
    found = stage.hold(lambda: activities(server.pid))
    done.touch()
    end = client.ended()
    return Truth(
        text="LongRunning; root emacs, which computes for another client",
        victims=(client.pid, other.pid),
        roots=(Root(server.pid, ("LongRunning",)),),
        frozen=must_last(stage, (begin, end)),
        witness=f"/proc: {runners(found)[0]}",
    )


@freeze("desktop", "dbus-service-chain")
def service_chain(stage):
    """gdbus asks a calendar, which asks another D-Bus service, which computes before it answers."""
    need(PYTHON, "dbus-daemon", "gdbus")
    neighbours(stage)
    stage.session_bus()
    zones, name = "org.example.Index", "org.example.Calendar"
    index = start_program(
        stage, "dbus_index.py", zones, 0, ready=lambda: has_owner(stage, zones)
    )
    calendar = start_program(
        stage, "dbus_calendar.py", name, zones, ready=lambda: has_owner(stage, name)
    )
    words = ["gdbus", "call", "--session", "--timeout", "60", "--dest", name, "--object-path", "/",
             "--method", f"{name}.Day"]
    output_of([*words, "0.01"], env=stage.environment)
    stage.ordinary()
    client = stage.program([*words, str(stage.freeze_s + 0.5)])
    begin = now_ns()

    def look():
        return state_of(client.pid), state_of(calendar.pid), share_of_cpu(index.pid)

    *states, share = stage.hold(look)
    end = client.ended()
    if states != ["S", "S"] or share < LEAST_SHARE:
        raise Fault(f"/proc: the two are {states}, the index had {share:.0%} of a CPU")
    return Truth(
        text="LongRunning dbus_index in search_documents, behind dbus_calendar",
        victims=(client.pid, calendar.pid),
        roots=(Root(index.pid, ("LongRunning",)),),
        frozen=must_last(stage, (begin, end)),
        witness=f"/proc: the index had {share:.0%} of a CPU while the other two slept",
        function=r"\bsearch_documents\b",
    )
