"""The programs of the part that are compiled, each once."""

import fcntl
import os
import pathlib
import shutil

from stage import CannotRun, Fault, output_of

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "programs" / "hung"
BUILD = SOURCES.parent.parent.parent / "build" / "real"
# Debian's own, which finds its modules (dbus, gi).
PYTHON = "/usr/bin/python3"


def _compile(source, made, words):
    """Runs a compiler where the source is newer than what was made of it."""
    tool = shutil.which(words[0])
    if tool is None:
        raise CannotRun(f"not installed: {words[0]}; scripts/setup.sh lab-real")
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            output_of([tool, *words[1:]], env=os.environ | {"GOCACHE": str(BUILD / "go-cache")})
    return made


def c(name):
    """A C program, optimised as distributions do it, and without frame pointers."""
    source, made = SOURCES / f"{name}.c", BUILD / name
    options = ["-std=gnu17", "-O2", "-g", "-fomit-frame-pointer", "-Wall", "-D_GNU_SOURCE"]
    return _compile(source, made, ["gcc", *options, "-pthread", "-o", made, source])


def go(name):
    """A Go program."""
    source, made = SOURCES / f"{name}.go", BUILD / name
    return _compile(source, made, ["go", "build", "-o", made, source])


def rust(name):
    """A Rust program."""
    source, made = SOURCES / f"{name}.rs", BUILD / name
    return _compile(source, made, ["rustc", "--edition=2021", "-O", "-g", "-o", made, source])


def java(name):
    """A Java class; gives the words that run it."""
    source, made = SOURCES / f"{name}.java", BUILD / f"{name}.class"
    _compile(source, made, ["javac", "-d", BUILD, source])
    return ["java", "-cp", BUILD, name]


def python(name):
    """The words that run a Python program."""
    return [PYTHON, SOURCES / f"{name}.py"]


def need_modules(*names):
    """Sees to it that Python has modules."""
    try:
        output_of([PYTHON, "-c", f"import {', '.join(names)}"])
    except (Fault, FileNotFoundError):
        text = f"{PYTHON} lacks one of {', '.join(names)}; scripts/setup.sh lab-real"
        raise CannotRun(text) from None
