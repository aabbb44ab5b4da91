"""apt and dpkg, which lock their database against each other. It is one of the stage's own, so that
nothing is installed."""

import pathlib
import shutil
import subprocess

from case import Root, Truth, freeze
from freezes.file_locks import LONGER_S, SLEEPS
from freezes.runtimes import must_last
from freezes.slow_disk import must_wait_in, start_of
from freezes.sqlite import lock_holders
from processes import of_session
from stage import Fault, need, output_of, wait_for

POSTINST = pathlib.Path(__file__).resolve().parent.parent / "programs" / "file_postinst.py"
PACKAGE = "slow-service"
CONTROL = f"""Package: {PACKAGE}
Version: 1
Architecture: all
Maintainer: Nobody <nobody@example.org>
Description: restarts a service when it is configured
"""
# The script sleeps so much longer, because it must be at it before apt-get is started, which takes
# a recorder a while.
START_S = 3
FOLDERS = (
    "var/lib/dpkg/info",
    "var/lib/dpkg/updates",
    "var/lib/apt/lists/partial",
    "var/cache/apt/archives/partial",
    "etc/apt",
)


def make_package(stage):
    """Builds the package; gives its file."""
    control = stage.directory / "package" / "DEBIAN"
    control.mkdir(parents=True)
    # dpkg-deb is particular about the modes.
    control.parent.chmod(0o755)
    control.chmod(0o755)
    (control / "control").write_text(CONTROL, encoding="ascii")
    shutil.copy(POSTINST, control / "postinst")
    (control / "postinst").chmod(0o755)
    file = stage.directory / f"{PACKAGE}.deb"
    output_of(["dpkg-deb", "--build", control.parent, file])
    return file


@freeze("files", "apt-waits-for-dpkg")
def apt_waits_for_dpkg(stage):
    """apt-get asks again and again for the lock of dpkg, which configures a package whose script
    sleeps until a service should be there."""
    need("apt-get", "dpkg", "dpkg-deb", "lslocks")
    package = make_package(stage)
    root = stage.directory / "root"
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    status = root / "var/lib/dpkg/status"
    status.touch()
    # Without dpkg's options the script would need all of a system in that folder.
    options = ["--force-not-root", "--force-script-chrootless", "--log=/dev/null"]
    seconds = stage.freeze_s + LONGER_S + START_S
    dpkg = stage.start(
        ["dpkg", f"--root={root}", *options, "--install", package],
        env=stage.environment | {"RESTART_SECONDS": str(seconds)},
    )

    def script():
        return [pid for pid, command in of_session(dpkg.pid) if "postinst configure" in command]

    postinst = wait_for("the package's script", script)[0]
    apt = stage.program(
        ["apt-get", "check", "-o", f"Dir={root}", "-o", f"Dir::State::status={status}"]
        + ["-o", "DPkg::Lock::Timeout=60"],
        stdout=subprocess.PIPE,
    )
    start = start_of(apt, "apt-get")
    lock = status.parent / "lock-frontend"
    holders, place = stage.hold(lambda: (lock_holders(lock), must_wait_in(postinst, SLEEPS)))
    end = apt.ended()
    if holders != {dpkg.pid}:
        raise Fault(f"lslocks: the lock is of {holders}, not of {dpkg.pid}")
    return Truth(
        text="RepeatedYield; root dpkg's postinst, which sleeps",
        # dpkg has the lock, but waits for its script itself.
        victims=(apt.pid, dpkg.pid),
        roots=(Root(postinst, ("LongWait",)),),
        frozen=must_last(stage, (start, end)),
        witness=f"lslocks: {dpkg.pid} (dpkg) has the lock; /proc: its child {postinst} waits in "
        f"{place}",
        function=r"\bawait_service$",
    )
