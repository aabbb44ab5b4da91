"""Programs for which the kernel asks another one first: who scans files, who has a lease on one,
who fetches pages of memory, who takes a core dump."""

import os
import pathlib
import resource
import subprocess

from case import Root, Truth, freeze
from freezes.neighbours import neighbours
from freezes.procfs import cpu_s, must_wait_in, running, until_descendant
from freezes.python_runtime import HERE, PIPES
from freezes.runtimes import (
    BUILD,
    PROGRAMS,
    activities,
    ample_s,
    built,
    must_wait,
    runners,
    span_of,
    tool,
    turns,
)
from freezes.shared_things import TRIAL
from freezes.sqlite import PYTHON
from freezes.web import computing
from stage import CannotRun, Fault, free_port, need, output_of, read_line, wait_for

LOCKS = pathlib.Path("/proc/locks")
CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")


def program_called(name):
    """Compiles a C program of ours; gives its path."""
    source = PROGRAMS / "c" / f"{name}.c"
    words = [tool("cc"), "-O2", "-g", "-pthread", "-o", BUILD / f"c-{name}", source]
    return built([source], f"c-{name}", words, source.parent)


def reader_of(stage, folder):
    """A program that reads documents, in order so far; gives it, and a folder with one."""
    need(PYTHON)
    (folder / "letter").write_text("Dear all,\n" * 100)
    reader = stage.program([PYTHON, HERE / "documents.py"], **PIPES)
    reader.line()
    turns(stage, reader, str(folder / "letter"))
    return reader


@freeze("files", "virus-scanner")
def virus_scanner(stage):
    """A program opens an archive, and the kernel asks a virus scanner first (fanotify), which
    searches all that is in it."""
    if os.geteuid() != 0:
        raise CannotRun("only root may ask for files to be opened")
    neighbours(stage)
    folder, scanned = stage.directory / "documents", stage.directory / "scanned"
    folder.mkdir()
    (folder / "photos.zip").write_bytes(os.urandom(100_000))
    scanner = stage.start([program_called("scanner"), folder, scanned], **PIPES)
    read_line(scanner.stdout)
    reader = reader_of(stage, folder)
    reader.tell(str(folder / "photos.zip"))
    seen = stage.hold(lambda: (must_wait_in(reader.pid, "fanotify"), computing(scanner.pid)))
    scanned.touch()
    return Truth(
        text="LongRunning in search_archive; root c-scanner, which the kernel asks",
        victims=(reader.pid,),
        roots=(Root(scanner.pid, ("LongRunning",)),),
        frozen=span_of(stage, reader),
        witness=f"/proc: {reader.pid} waits in {seen[0]}; {seen[1]}",
        function=r"\bsearch_archive\b",
        waits_in="read_document",
    )


@freeze("files", "lease-not-given-up")
def lease(stage):
    """A program opens a file on which another has a lease, as a file server has, and which it gives
    up late."""
    neighbours(stage)
    table = stage.directory / "table"
    lender = stage.start([program_called("lender"), table], **PIPES)
    read_line(lender.stdout)
    reader = reader_of(stage, stage.directory)
    reader.tell(str(table))

    def look():
        # lslocks cannot read the lines of leases.
        lines = LOCKS.read_text(encoding="ascii").splitlines()
        held = [line for line in lines if "LEASE" in line and f" {lender.pid} " in line]
        return must_wait_in(reader.pid), must_wait_in(lender.pid, "pipe"), held

    place, other, held = stage.hold(look)
    lender.stdin.write(b"written\n")
    if not held or "BREAKING" not in held[0]:
        raise Fault(f"/proc/locks: {held}")
    return Truth(
        text="LongWait; root c-lender, which has a lease on the file and waits for its input",
        victims=(reader.pid,),
        roots=(Root(lender.pid, ("LongWait",)),),
        outside=True,
        frozen=span_of(stage, reader),
        witness=f"/proc/locks: {held[0]}; {reader.pid} waits in {place}, {lender.pid} in {other}",
        waits_in="read_document",
    )


@freeze("memory", "page-fetched-late")
def fetched_late(stage):
    """A program reads a page of memory that a thread of it fetches from a server (userfaultfd), and
    the server computes before it answers."""
    neighbours(stage)
    port, unpacked = free_port(), stage.directory / "unpacked"
    store = stage.start([PYTHON, PROGRAMS / "model_store.py", port, unpacked], **PIPES)
    read_line(store.stdout)
    program = stage.program([program_called("models"), port], **PIPES)
    if program.line() != "ready":
        raise CannotRun("userfaultfd is not allowed")
    for number in range(40):
        program.tell(str(number))
        program.line()
    turns(stage, program, "7")
    program.tell("1000")
    wait_for("the store", lambda: cpu_s(store.pid) > 0.2)
    seen = stage.hold(lambda: (activities(program.pid), computing(store.pid)))
    unpacked.touch()
    main = must_wait(seen[0], program.pid)
    if "userfault" not in main.waits_in:
        raise Fault(f"/proc: {main}")
    return Truth(
        text="LongRunning in unpack_part; root model_store, which the thread that fetches asks",
        victims=(program.pid,),
        roots=(Root(store.pid, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {main}; {seen[1]}",
        function=r"\bunpack_part\b",
    )


@freeze("memory", "core-dump-packed", whole_machine=True)
def core_dump(stage):
    """A supervisor waits for the end of its program, which has crashed: the kernel writes its
    memory to xz, which packs it."""
    if os.geteuid() != 0:
        raise CannotRun("only root may say where core dumps go")
    need(PYTHON, "xz")
    neighbours(stage)
    sample = stage.directory / "sample"
    sample.write_bytes(os.urandom(4 * TRIAL))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(["xz", "-T1", "-1", "--keep", "--force", sample])
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    size = 4 * ample_s(stage) / took
    handler, core = stage.directory / "take_core", stage.directory / "core.xz"
    handler.write_text(f"#!/bin/sh\nexec xz -T1 -1 -c - >{core}\n")
    handler.chmod(0o755)
    before = CORE_PATTERN.read_text(encoding="ascii")
    stage.callback(CORE_PATTERN.write_text, before, encoding="ascii")
    CORE_PATTERN.write_text(f"|{handler}", encoding="ascii")
    program = stage.program(
        [PYTHON, HERE / "supervisor.py", PYTHON, HERE / "import_data.py"], **PIPES
    )
    program.line()
    turns(stage, program, "end")
    crashed = until_descendant(program.pid, "import_data")
    program.tell(f"{size:.1f}")
    wait_for("the core dump", core.exists)
    xz = running("xz", "-T1")
    stage.callback(subprocess.run, ["kill", str(xz)], capture_output=True, check=False)

    def look():
        places = must_wait_in(program.pid, "wait"), must_wait_in(crashed, "pipe")
        return places, activities(xz)

    places, found = stage.hold(look)
    return Truth(
        text="LongRunning; root xz, which takes the core dump of import_data",
        victims=(program.pid, crashed),
        roots=(Root(xz, ("LongRunning",)),),
        frozen=span_of(stage, program),
        witness=f"/proc: {program.pid} waits in {places[0]}, {crashed} in {places[1]}; "
        f"{runners(found)[0]}",
    )
