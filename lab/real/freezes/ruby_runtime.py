"""Ruby programs: threads that share a Mutex, a regular expression that takes long."""

import subprocess

from case import Root, Truth, freeze
from freezes.runtimes import (
    PROGRAMS,
    Client,
    Computing,
    activities,
    ample_s,
    length_s,
    must_wait,
    runners,
    span_of,
    turns,
    visits,
)
from stage import Fault, free_port, need, wait_for

HERE = PROGRAMS / "ruby"


@freeze("runtimes", "ruby-mutex")
def mutex(stage):
    """A Ruby program wants a Mutex while another thread of it holds that and sleeps."""
    need("ruby")
    program = stage.program(
        ["ruby", HERE / "notes.rb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    program.line()
    turns(stage, program, "add")
    program.tell(f"backup {length_s(stage)}")
    # Printed by the thread that has the Mutex.
    program.line()
    program.tell("add")
    found = stage.hold(lambda: activities(program.pid))
    must_wait(found)
    holder = [one for one in found if one.name == "backup"]
    if len(holder) != 1:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongWait; root thread backup, which sleeps",
        victims=(program.pid,),
        roots=(Root(program.pid, ("LongWait",), thread=holder[0].tid),),
        frozen=span_of(stage, program),
        witness=f"/proc: {must_wait(found, program.pid)}; {holder[0]}",
    )


@freeze("runtimes", "ruby-regex")
def regex(stage):
    """A request makes a Ruby web server, which takes one after the other, apply a regular
    expression that takes seconds, and another client waits."""
    need("ruby")
    port = free_port()
    server = stage.program(["ruby", HERE / "comments.rb", port], stdout=subprocess.PIPE)
    server.line()
    visits(stage, port)
    computing = Computing(server.pid)
    poster = Client(stage, port, f"/post/{ample_s(stage)}")
    wait_for("the regular expression", computing)
    visitor = Client(stage, port, "/health")
    found = stage.hold(lambda: activities(server.pid))
    running = runners(found)
    if [one.tid for one in running] != [server.pid]:
        raise Fault(f"/proc: {'; '.join(map(str, found))}")
    return Truth(
        text="LongRunning; root ruby, in a regular expression",
        victims=(visitor.pid, poster.pid, server.pid),
        roots=(Root(server.pid, ("LongRunning",), thread=server.pid),),
        frozen=visitor.span,
        witness=f"/proc: {running[0]}",
    )
