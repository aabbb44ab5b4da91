"""Redis: a server of the stage's own that is kept busy by another client's command."""

import subprocess

from case import Root, Truth, freeze
from freezes.interactive import Shell, meanwhile
from freezes.procfs import cpu_s
from stage import Fault, need, output_of, wait_for

KEYS = 2000
LONG_NAME = "session:" + "ab" * 400
# Costs the length of each name squared.
PATTERN = "session:*a*b*c"
# By the server's own clock.
SCRIPT = """local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
local till = now() + ARGV[1]
local sum = 0
while now() < till do for n = 1, 1000 do sum = sum + n % 7 end end
return sum"""


class Server:
    """A server reached by a socket."""

    def __init__(self, stage):
        need("redis-server", "redis-cli")
        self.stage, self.socket = stage, stage.directory / "redis.sock"
        options = {
            "port": 0, "unixsocket": self.socket, "save": "", "dir": stage.directory,
            "enable-debug-command": "local", "slowlog-log-slower-than": 1_000_000,
            # It would tell the others that it is busy.
            "busy-reply-threshold": 60_000,
        }
        words = [part for key, value in options.items() for part in (f"--{key}", value)]
        self.process = stage.start(["redis-server", *words])
        self.pid = self.process.pid
        wait_for("redis-server", self.socket.exists)

    def words(self):
        """The command line of a shell."""
        return ["redis-cli", "-s", self.socket]

    def ask(self, *command):
        """The server's answer to a command."""
        return output_of([*self.words(), *command], env=self.stage.environment).strip()


def freeze_behind(stage, server, command, **truth):
    """Somebody's command keeps the server from answering a GET in redis-cli. `truth` is the rest
    of the truth."""
    client = Shell(stage, server.words())
    client.ask("SET visits 1")
    meanwhile(stage, lambda: client.ask("INCR visits"))
    other = stage.start([*server.words(), *command])
    wait_for("the other's command", lambda: other.poll() is not None or unread(server))
    client.begin_to_ask("GET visits")
    stage.hold()
    frozen = client.answered()
    if other.wait() != 0:
        raise Fault(f"redis-cli: exit code {other.returncode}")
    if frozen[1] - frozen[0] < 0.6e9 * stage.freeze_s:
        raise Fault(f"redis-cli was answered after {(frozen[1] - frozen[0]) / 1e9:.1f} s")
    # Number, time and microseconds of the latest that was slow.
    slow = server.ask("SLOWLOG", "GET", "1").split("\n")
    if len(slow) < 4 or int(slow[2]) < 0.8 * (frozen[1] - frozen[0]) / 1e3:
        raise Fault(f"redis: SLOWLOG says {slow}")
    return Truth(
        victims=(client.pid, other.pid),
        frozen=frozen,
        witness=f"SLOWLOG: {slow[3]} took {int(slow[2]) / 1e6:.1f} s",
        **truth,
    )


def unread(server):
    """Whether the server leaves a request unanswered for a moment."""
    try:
        subprocess.run([*server.words(), "PING"], timeout=0.4, check=True, capture_output=True)
    except subprocess.TimeoutExpired:
        return True
    return False


@freeze("databases", "redis-slow-script")
def slow_script(stage):
    """A GET in redis-cli waits while the server runs another client's Lua script."""
    server = Server(stage)
    return freeze_behind(
        stage,
        server,
        ["EVAL", SCRIPT, "0", int(stage.freeze_s * 1000)],
        text="LongRunning; root redis-server, in a script",
        roots=(Root(server.pid, ("LongRunning",)),),
    )


@freeze("databases", "redis-keys")
def keys(stage):
    """A GET in redis-cli waits while the server compares all names of its keys with the pattern of
    another client's KEYS."""
    server = Server(stage)
    fill = "for n = 1, tonumber(ARGV[1]) do redis.call('SET', ARGV[2] .. n, n) end"
    server.ask("EVAL", fill, "0", KEYS, LONG_NAME)
    used = cpu_s(server.pid)
    server.ask("KEYS", PATTERN)
    # As many keys as take long enough, with a margin.
    many = int(KEYS * 1.6 * stage.freeze_s / (cpu_s(server.pid) - used))
    server.ask("EVAL", fill, "0", many, LONG_NAME)
    return freeze_behind(
        stage,
        server,
        ["KEYS", PATTERN],
        text="LongRunning; root redis-server, in KEYS",
        roots=(Root(server.pid, ("LongRunning",)),),
        function=r"\b(keysCommand|stringmatchlen)",
    )


@freeze("databases", "redis-sleep")
def sleep(stage):
    """A GET in redis-cli waits while the server sleeps, as another client's DEBUG command asks."""
    server = Server(stage)
    return freeze_behind(
        stage,
        server,
        ["DEBUG", "SLEEP", stage.freeze_s],
        text="LongWait; root redis-server, which sleeps in DEBUG SLEEP",
        roots=(Root(server.pid, ("LongWait",)),),
    )
