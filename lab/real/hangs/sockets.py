"""Clients whose server does not answer, does not accept, does not read or is stopped."""

import contextlib
import os
import pathlib
import signal
import subprocess

from hangs import builds
from hangs.program import hung, truth
from hangs.witness import At, child, descendants, field, name_of, sleeps, socket_line
from stage import CannotRun, accepts, free_port, need, output_of, read_line, wait_for

RECEIVE = ("recvfrom", "read")


def server(stage, pattern, *words):
    """Starts server.py; gives its process id and the port that it prints."""
    process = stage.start([*builds.python("server"), pattern, *words], stdout=subprocess.PIPE)
    return process.pid, read_line(process.stdout)


def client(stage, pattern, address):
    """Starts client.py; gives its process id."""
    return stage.start([*builds.python("client"), pattern, address]).pid


@hung("unix-backlog-full")
def backlog(stage):
    """A client connects to a Unix socket whose queue of clients is full, for the server accepts
    none."""
    path = str(stage.directory / "socket")
    deaf, _ = server(stage, "deaf", path)
    asker = client(stage, "connect", path)
    return truth(
        "LongWait; root the server, which sleeps",
        [At(asker, ("connect",)), sleeps(deaf)],
        socket_line("-x", path, "LISTEN"),
    )


@hung("unix-datagrams-unread")
def datagrams(stage):
    """logger sends lines to the socket of a stopped server, until there is no room for more."""
    need("logger", "socat")
    path, lines = stage.directory / "log", stage.directory / "lines"
    lines.write_text("all is well\n" * 5000)
    daemon = stage.start(["socat", "-u", f"UNIX-RECV:{path}", "OPEN:/dev/null"])
    wait_for("socat", path.exists)
    daemon.send_signal(signal.SIGSTOP)
    logger = stage.start(["logger", "--socket", path, "--file", lines])
    return truth(
        "LongWait; root the server, which is stopped",
        [At(logger.pid, ("sendmsg", "sendto", "write")), At(daemon.pid, state="T")],
    )


@hung("tcp-not-accepted")
def not_accepted(stage):
    """A client waits for the answer of a server that has never accepted it."""
    deaf, port = server(stage, "deaf")
    asker = client(stage, "ask", port)
    return truth(
        "LongWait; root the server, which sleeps",
        [At(asker, RECEIVE), sleeps(deaf)],
        socket_line("-t", f"pid={asker},", f"127.0.0.1:{port} "),
    )


@hung("tcp-window-full")
def window_full(stage):
    """dd sends to a server that does not read, until its window and the buffers are full."""
    reader, port = server(stage, "unread")
    words = f"exec 3<>/dev/tcp/127.0.0.1/{port} && exec dd if=/dev/zero bs=64k status=none >&3"
    sender = stage.start(["bash", "-c", words])
    return truth(
        "LongWait; root the server, which sleeps",
        [At(sender.pid, ("write",)), sleeps(reader)],
        socket_line("-t", f"pid={sender.pid},", "ESTAB"),
    )


@hung("tcp-two")
def two(stage):
    """A client and a server that each wait for the other to speak first."""
    listener, port = server(stage, "polite")
    speaker = client(stage, "listen", port)
    return truth(
        "Circular; client and server read from each other",
        [At(speaker, RECEIVE), At(listener, RECEIVE)],
        socket_line("-t", f"pid={speaker},", "ESTAB"),
        cycle=(speaker, listener),
    )


@hung("redis-stopped")
def redis(stage):
    """redis-cli waits for the answer of a redis-server that is stopped."""
    need("redis-server", "redis-cli")
    port = free_port()
    options = ["--bind", "127.0.0.1", "--save", "", "--dir", stage.directory]
    process = stage.start(["redis-server", "--port", port, *options])
    wait_for("redis-server", lambda: accepts(port))
    process.send_signal(signal.SIGSTOP)
    asker = stage.start(["redis-cli", "-p", port, "GET", "stock"])
    return truth(
        "LongWait; root redis-server, which is stopped",
        [At(asker.pid, RECEIVE), At(process.pid, state="T")],
        socket_line("-t", f"pid={asker.pid},", "ESTAB"),
    )


@hung("nginx-backend")
def nginx(stage):
    """curl waits for nginx, which waits for the server behind it, which reads the request and does
    not answer."""
    need("nginx", "curl")
    silent, back = server(stage, "silent")
    folder, port = stage.directory, free_port()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    scratch = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;\n"
        "worker_processes 1; events {}\n"
        f"http {{ access_log off; proxy_read_timeout 365d; {scratch}\n"
        f"server {{ listen 127.0.0.1:{port};\n"
        f"location / {{ proxy_pass http://127.0.0.1:{back}; }} }} }}\n"
    )
    master = stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    worker = child(master.pid)
    wait_for("nginx", lambda: accepts(port))
    asker = stage.start(["curl", "-s", f"http://127.0.0.1:{port}/"])
    return truth(
        "LongWait; root the server behind nginx, which sleeps",
        [
            # It looks every second whether it should give up.
            At(asker.pid, ("poll",), turns=True),
            At(worker, ("epoll",)),
            sleeps(silent),
        ],
        socket_line("-t", f"pid={worker},", f"127.0.0.1:{back} "),
    )


def end_descendants(pid):
    """Ends all that a process has started. First all are stopped, so that none starts another one
    that would be left behind."""
    found = set()
    while new := set(descendants(pid)) - found:
        for one in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
        found |= new
    for one in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def sshd(stage):
    """Starts an SSH server and gives it and the words that log in at it."""
    need("ssh", "ssh-keygen", "sshd")
    if os.geteuid() != 0:
        raise CannotRun("only root can start an SSH server that lets somebody in")
    # Where Debian's server goes to have nothing to write to.
    pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder, port = stage.directory, free_port()
    for name in ("host", "user"):
        output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n"
    )
    daemon = stage.start(["/usr/sbin/sshd", "-D", "-f", folder / "sshd_config"])
    # What it starts leaves the session that the stage ends.
    stage.callback(end_descendants, daemon.pid)
    wait_for("sshd", lambda: accepts(port))
    options = ["StrictHostKeyChecking=no", f"UserKnownHostsFile={folder}/known", "BatchMode=yes"]
    words = ["ssh", "-F", "none", "-i", folder / "user", "-p", port]
    return daemon, words + [word for option in options for word in ("-o", option)] + ["127.0.0.1"]


@hung("ssh-stopped-peer")
def ssh(stage):
    """ssh runs a command, whose output it waits for; the server's process for this session is
    stopped."""
    daemon, words = sshd(stage)
    asker = stage.start([*words, "sleep infinity"])
    # The other children are those of who only saw whether the server accepts.
    command = wait_for(
        "the command", lambda: [pid for pid in descendants(daemon.pid) if name_of(pid) == "sleep"]
    )[0]
    session = int(field(command, "PPid"))
    os.kill(session, signal.SIGSTOP)
    return truth(
        "LongWait; root sshd, which is stopped",
        [At(asker.pid, ("poll",)), At(session, state="T")],
        socket_line("-t", f"pid={asker.pid},", "ESTAB"),
    )
