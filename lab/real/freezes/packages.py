"""Debian's package tools: one waits for the lock that another holds while that asks a person, and
one waits for the script of a package."""

import subprocess

from case import Root, Truth, freeze
from freezes.pipes import connect
from freezes.procfs import must_wait_in, running, status, until_named, until_waiting
from freezes.runtimes import must_last
from stage import Fault, need, now_ns, output_of, wait_for

STATUS = """Package: {0}
Status: install ok installed
Maintainer: lab <lab@lab.test>
Architecture: all
Version: 1
Description: a package of the lab

"""


def private_root(stage):
    """A folder with a package database of its own, which has two packages; gives the folder and
    apt's options for it."""
    need("apt-get", "dpkg")
    root = stage.directory / "root"
    for part in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/apt/lists/partial",
                 "var/cache/apt/archives/partial", "var/log/apt", "etc/apt"):  # fmt: skip
        (root / part).mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text(STATUS.format("shop") + STATUS.format("office"))
    for package in ("shop", "office"):
        (root / f"var/lib/dpkg/info/{package}.list").write_text("/.\n")
    options = (f"Dir={root}", f"Dir::State::status={root}/var/lib/dpkg/status",
               f"Dpkg::Options::=--root={root}", "Dpkg::Options::=--force-not-root",
               "DPkg::Lock::Timeout=60", "APT::Architecture=amd64")  # fmt: skip
    return root, [word for option in options for word in ("-o", option)]


@freeze("shells", "apt-lock")
def apt_lock(stage):
    """apt-get waits for the lock on the package database, which another apt-get holds while it
    asks a person whether to go on."""
    need("lslocks")
    root, options = private_root(stage)
    holder = stage.start(
        ["apt-get", *options, "remove", "shop"], stdin=subprocess.PIPE
    )
    lock = root / "var/lib/dpkg/lock-frontend"
    until_waiting(holder.pid, "pipe_read")

    def holders():
        words = ["lslocks", "--noheadings", "--raw", "--notruncate", "-o", "PID,PATH"]
        rows = [line.split(maxsplit=1) for line in output_of(words).splitlines()]
        return {int(row[0]) for row in rows if row[1:] == [str(lock)]}

    waiter = stage.program(["apt-get", *options, "install", "-y", "office"])
    begin = until_named(waiter.pid, "apt-get")
    seen = stage.hold(holders)
    channel = must_wait_in(holder.pid, "pipe_read")
    holder.stdin.write(b"n\n")
    holder.stdin.close()
    end = waiter.ended()
    if seen != {holder.pid}:
        raise Fault(f"lslocks: the lock is held by {seen}, not by {holder.pid}")
    return Truth(
        text="RepeatedYield; root the other apt-get, which waits for a person",
        victims=(waiter.pid,),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=must_last(stage, (begin, end)),
        witness=f"lslocks: {holder.pid} has the lock; /proc: it waits in {channel}",
    )


@freeze("shells", "dpkg-postinst")
def dpkg_postinst(stage):
    """dpkg waits for the script of a package that it installs, in which socat waits for a
    connection."""
    need("dpkg-deb", "socat")
    root, _ = private_root(stage)
    path, folder = stage.directory / "service", stage.directory / "package"
    control = folder / "DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(
        "Package: service\nVersion: 1\nArchitecture: all\nMaintainer: lab <lab@lab.test>\n"
        "Description: a package of the lab\n"
    )
    script = control / "postinst"
    script.write_text(f"#!/bin/sh\nset -e\nsocat -u UNIX-LISTEN:{path} -\necho done\n")
    script.chmod(0o755)
    package = stage.directory / "service.deb"
    output_of(["dpkg-deb", "--build", "--root-owner-group", "-Znone", folder, package])
    words = [f"--root={root}", "--force-script-chrootless", "-i", str(package)]
    dpkg = stage.program(["dpkg", *words])
    begin = until_named(dpkg.pid, "dpkg")
    wait_for("the script", path.exists)
    waits = now_ns()
    socat = running("socat", path)
    # The shell that runs the script.
    shell = int(status(socat)["PPid"])
    channel = stage.hold(lambda: must_wait_in(dpkg.pid, "wait"))
    connect(path)
    end = dpkg.ended()
    return Truth(
        text="LongWait for a connection; root socat in the package's script",
        victims=(dpkg.pid, shell),
        roots=(Root(socat, ("LongWait",)),),
        outside=True,
        frozen=(waits, end),
        troubled=(begin, end),
        witness=f"/proc: dpkg waits in {channel}",
    )
