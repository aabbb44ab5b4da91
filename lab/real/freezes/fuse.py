"""File systems in user space (FUSE): programs that use their files wait for the daemon that
answers for them."""

import contextlib
import os
import pathlib
import pwd
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.accessibility import is_stopped
from freezes.runtimes import must_last
from freezes.slow_disk import must_wait_in, start_of
from stage import (
    CannotRun,
    Fault,
    accepts,
    free_port,
    need,
    now_ns,
    output_of,
    wait_for,
)

PYTHON = "/usr/bin/python3"
ARCHIVE = pathlib.Path(__file__).resolve().parent.parent / "programs" / "file_archive_fs.py"
SFTP_SERVER = pathlib.Path("/usr/lib/openssh/sftp-server")
# Where the kernel waits for the daemon's answer: to a request, or to one that reads ahead.
WAITS = ("request_wait_answer", "folio_wait_bit_common")
# The daemon sleeps or computes so much longer than a freeze should last, s.
LONGER_S = 0.7


class Mount:
    """A folder at which a daemon mounts its file system: `words` of the folder is its command."""

    def __init__(self, stage, words, **more):
        if not pathlib.Path("/dev/fuse").exists():
            raise CannotRun("there is no /dev/fuse")
        need("fusermount3", "umount")
        self.folder = stage.directory / "mount"
        self.folder.mkdir()
        self.stage = stage
        # After the daemon has ended, which does not always unmount it.
        stage.callback(
            subprocess.run, ["umount", "--lazy", self.folder], check=False, capture_output=True
        )
        self.daemon = stage.start(words(self.folder), **more)

        def mounted():
            if self.daemon.poll() is not None:
                raise Fault(f"the daemon of {self.folder} ended")
            return os.path.ismount(self.folder)

        wait_for("the mount", mounted)
        # What the kernel tells of its connections, which systemd mounts and others do not.
        control = stage.directory / "fusectl"
        control.mkdir()
        output_of(["mount", "-t", "fusectl", "none", control])
        stage.callback(subprocess.run, ["umount", "--lazy", control], check=False)
        self.connection = control / str(os.minor(os.stat(self.folder).st_dev))

    def prepare_end(self, *stopped):
        """Sees to it that what waits for an answer can be ended with the stage, and continues who
        is stopped. Called when the program has been started."""

        def give_up():
            with contextlib.suppress(OSError):
                (self.connection / "abort").write_text("1", encoding="ascii")
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

        self.stage.callback(give_up)

    def waiting(self):
        """How many requests are not answered, by the kernel's count."""
        return int((self.connection / "waiting").read_text(encoding="ascii"))


def archive(stage):
    """Mounts the file system of file_archive_fs.py."""
    if not pathlib.Path("/usr/lib/python3/dist-packages/fusepy.py").exists():
        raise CannotRun("python3-fusepy is not installed; scripts/setup.sh lab-real")
    seconds = stage.freeze_s + LONGER_S
    return Mount(stage, lambda folder: [PYTHON, ARCHIVE, "archive_fs", folder, str(seconds)])


def read_from_archive(stage, words, name, root_class, function):
    """Starts a program that reads the file `name` of the archive. Gives the truth."""
    need(words[0])
    mount = archive(stage)
    program = stage.program([*words, mount.folder / name], stdout=subprocess.PIPE)
    mount.prepare_end()
    start = start_of(program, words[0])

    def look():
        return must_wait_in(program.pid, WAITS), mount.waiting()

    place, waiting = stage.hold(look)
    end = program.ended()
    if not waiting:
        raise Fault("the daemon owed no answer")
    return Truth(
        text=f"LongWait in FUSE; root archive_fs, {root_class} in {function}",
        victims=(program.pid,),
        roots=(Root(mount.daemon.pid, (root_class,)),),
        frozen=must_last(stage, (start, end)),
        witness=f"/proc: {program.pid} waits in {place}; {waiting} requests without an answer",
        function=rf"\b{function}$",
    )


@freeze("files", "fuse-daemon-sleeps")
def daemon_sleeps(stage):
    """cat reads a file of a FUSE file system, whose daemon waits for its own source of data."""
    return read_from_archive(stage, ["cat"], "remote", "LongWait", "fetch_from_archive")


@freeze("files", "fuse-daemon-computes")
def daemon_computes(stage):
    """sort reads a file of a FUSE file system, whose daemon unpacks it first."""
    return read_from_archive(stage, ["sort"], "packed", "LongRunning", "unpack_member")


@freeze("files", "fuse-df-hung")
def df_hung(stage):
    """df asks for the free space of a FUSE file system whose daemon is stopped."""
    need("df")
    mount = archive(stage)
    os.kill(mount.daemon.pid, signal.SIGSTOP)
    program = stage.program(["df", mount.folder], stdout=subprocess.PIPE)
    mount.prepare_end(mount.daemon.pid)
    start = start_of(program, "df")

    def look():
        return must_wait_in(program.pid, WAITS), mount.waiting(), is_stopped(mount.daemon.pid)

    place, waiting, stopped = stage.hold(look)
    os.kill(mount.daemon.pid, signal.SIGCONT)
    end = program.ended()
    if not waiting or not stopped:
        raise Fault(f"{waiting} requests without an answer; daemon stopped: {stopped}")
    return Truth(
        text="LongWait in FUSE; root archive_fs, stopped",
        victims=(program.pid,),
        roots=(Root(mount.daemon.pid, ("LongWait",)),),
        frozen=must_last(stage, (start, end)),
        witness=f"/proc: {program.pid} waits in {place}, {mount.daemon.pid} is stopped; "
        f"{waiting} requests without an answer",
    )


def ssh_server(stage):
    """Starts sshd on loopback for who runs this; gives its port and the client's options."""
    need("/usr/sbin/sshd", "ssh-keygen", "sshfs", SFTP_SERVER)
    # It insists on this folder, which Debian's start script makes.
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    folder = stage.directory / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
    port = free_port()
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
        f"Subsystem sftp {SFTP_SERVER}\n",
        encoding="ascii",
    )
    stage.start(["/usr/sbin/sshd", "-D", "-e", "-f", folder / "config"])
    wait_for("sshd", lambda: accepts(port))
    client = {
        "port": port,
        "IdentityFile": folder / "user",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
    }
    return [word for name, value in client.items() for word in ("-o", f"{name}={value}")]


def sftp_server(folder):
    """The sftp-server that has a file of a folder open."""

    def look():
        for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if comm.read_text(encoding="ascii", errors="replace") != "sftp-server\n":
                    continue
                links = (os.readlink(link) for link in (comm.parent / "fd").iterdir())
                if any(link.startswith(f"{folder}/") for link in links):
                    return int(comm.parent.name)
        return None

    return wait_for("the sftp-server", look)


@freeze("files", "sshfs-server-stopped")
def sshfs_server_stopped(stage):
    """tail follows a log by way of sshfs when the sftp-server at the other end is stopped."""
    need("tail")
    options = ssh_server(stage)
    folder = stage.directory / "shared"
    folder.mkdir()
    log = folder / "shared.log"
    log.write_text("begin\n", encoding="ascii")
    user = pwd.getpwuid(os.geteuid()).pw_name
    mount = Mount(
        stage,
        lambda target: [
            "sshfs", "-f", f"{user}@127.0.0.1:{folder}", target, *options,
            "-o", "dir_cache=no", "-o", "attr_timeout=0", "-o", "direct_io",
        ],
    )
    tail = stage.program(
        ["tail", "-s", "0.1", "-F", mount.folder / log.name], stdout=subprocess.PIPE
    )
    tail.line()
    # tail keeps the log open, and so does the server.
    server = sftp_server(folder)
    mount.prepare_end(server)
    stage.ordinary()
    start = now_ns()
    os.kill(server, signal.SIGSTOP)

    def look():
        return must_wait_in(tail.pid, WAITS), mount.waiting(), is_stopped(server)

    place, waiting, stopped = stage.hold(look)
    end = now_ns()
    os.kill(server, signal.SIGCONT)
    with log.open("a", encoding="ascii") as file:
        file.write("end\n")
    tail.line()
    if not waiting or not stopped:
        raise Fault(f"{waiting} requests without an answer; sftp-server stopped: {stopped}")
    return Truth(
        text="LongWait in FUSE; root sftp-server, stopped",
        # sshfs cannot answer anybody meanwhile.
        victims=(tail.pid, mount.daemon.pid),
        roots=(Root(server, ("LongWait",)),),
        frozen=must_last(stage, (start, end)),
        witness=f"/proc: {tail.pid} waits in {place}, {server} is stopped; {waiting} requests "
        "without an answer",
    )
