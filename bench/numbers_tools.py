"""The other tools, and how each is run so that it meets what `hangdog numbers` meets.

lmbench's programs keep to their own harness: the median of 11 repetitions. Left to itself it
lengthens each until the clock's unsteadiness is nothing, which in a guest takes a second and more;
ENOUGH says 20 ms instead, TIMING_O and LOOP_O that its own cost (ns) is not taken off.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import typing

import numbers_parse as parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATIENCE_S = 60
LMBENCH_ENVIRONMENT = {"ENOUGH": "20000", "TIMING_O": "0", "LOOP_O": "0"}
FILE = "file"
FILE_BYTES = 64 << 20
PIECE = bytes(64 << 10)
# lat_proc exec runs this program and no other.
HELLO = pathlib.Path("/var/tmp/lmbench/hello")
LOCKS = 4_000_000


class Unavailable(Exception):
    """A tool that cannot be run here; says why."""


@dataclasses.dataclass(frozen=True)
class Tool:
    """A command: words, in which {file} is a cached file of 64 MiB and {cpus} the number of
    CPUs. It runs in an empty directory `here`, on the CPU that hangdog measures on; on `two` CPUs
    that lmbench chooses; or on `all`. A long one has a `label` for the table."""

    words: str
    read: typing.Callable[[str], dict]
    on: str = "here"
    label: str = ""

    @property
    def is_lmbench(self):
        """Whether the first word is one of lmbench's programs."""
        return self.words.startswith(("lat_", "bw_"))

    @property
    def name(self):
        """As the table names it."""
        place = {"two": ", two CPUs", "all": ", all CPUs"}.get(self.on, "")
        words = (self.label or self.words).replace(" {file}", "").replace(" -P {cpus}", "")
        return f"{'lmbench ' if self.is_lmbench else ''}{words}{place}"


def lmbench(words, read=parse.microseconds, on="here"):
    """One of lmbench's."""
    return Tool(words, read, on)


def bandwidth(size, what, on="here"):
    """lmbench's loops through memory."""
    parallel = "-P {cpus} " if on == "all" else ""
    return lmbench(f"bw_mem {parallel}{size} {what}", parse.lmbench_rate, on)


def file_rate(size, what):
    """lmbench's reading of a cached file."""
    return lmbench(f"bw_file_rd {size} {what} {{file}}", parse.lmbench_rate)


def perf_copy(size):
    """perf's bench of glibc's memcpy; as many loops as make some 4 GB."""
    loops = (4 << 30) // (int(size[:-2]) << {"KB": 10, "MB": 20}[size[-2:]])
    return Tool(
        f"perf bench mem memcpy -f default -s {size} -l {loops}",
        parse.perf_rate,
        label=f"perf bench mem memcpy -s {size}",
    )


LATENCY = lmbench("lat_mem_rd -t -N 1 64 64", parse.lat_mem_rd)
READ_WORDS = Tool(
    "sysbench memory --memory-oper=read --memory-block-size=64M --memory-total-size=1000G"
    " --time=1 run",
    parse.sysbench_rate,
    label="sysbench memory read, 64M",
)
LOCK = Tool(
    f"sysbench mutex --threads=1 --mutex-num=1 --mutex-loops=0 --mutex-locks={LOCKS} run",
    parse.sysbench_each(LOCKS),
    label="sysbench mutex, one thread",
)
SYSCALL = Tool(
    "perf bench syscall basic -l 2000000", parse.perf_usecs, label="perf bench syscall basic"
)
SCHED_PIPE = Tool(
    "perf bench sched pipe -l 100000", parse.perf_usecs, label="perf bench sched pipe"
)
SWITCH = Tool(
    "stress-ng --switch 1 --switch-method pipe -t 1 --metrics",
    parse.stress_nanosecs,
    label="stress-ng --switch, pipe",
)
CLOCK = Tool(
    "stress-ng --vdso 1 --vdso-func clock_gettime -t 1 --metrics",
    parse.stress_nanosecs,
    label="stress-ng --vdso, clock_gettime",
)
SLEEP = lmbench("lat_usleep -u nanosleep 1000", parse.less(parse.microseconds, 1e6))
CONTEXT = lmbench("lat_ctx -s 0 2", parse.lat_ctx)
# It takes 20 s where it repeats, and all sizes up to 10 KiB where it is asked for 0.
FILES = {size: lmbench(f"lat_fs -N 1 -s {size}", parse.lat_fs) for size in (1024, 4096)}
# Its file lies in the directory beforehand: see prepared().
FSYNC = Tool(
    "sysbench fileio --file-num=1 --file-total-size=4K --file-test-mode=seqrewr"
    " --file-block-size=4096 --file-fsync-all=on --percentile=50 --time=2 run",
    parse.sysbench_median,
    label="sysbench fileio, rewrite + fsync",
)


def lmbench_programs():
    """Where lmbench's programs lie: installed, or unpacked by scripts/setup.sh bench."""
    for root in (pathlib.Path("/"), ROOT / "target/lmbench"):
        for found in root.glob("usr/lib/lmbench/bin/*/lat_syscall"):
            return found.parent
    return None


@dataclasses.dataclass
class Place:
    """What the tools are given."""

    directory: pathlib.Path
    here: int
    cpus: int
    programs: pathlib.Path | None
    hello: bool = False

    def command(self, tool):
        """The words to run, and what its environment has more."""
        # Relative, as hangdog's: a long path takes longer to open.
        words = [word.format(file=FILE, cpus=self.cpus) for word in tool.words.split()]
        environment = {}
        if tool.is_lmbench:
            if self.programs is None:
                raise Unavailable("lmbench is neither installed nor could it be fetched")
            if tool.words == "lat_proc exec" and not self.hello:
                raise Unavailable(f"it wants {HELLO}, which cannot be put there")
            words[0] = str(self.programs / words[0])
            environment = dict(LMBENCH_ENVIRONMENT)
        elif shutil.which(words[0]) is None:
            raise Unavailable(f"there is no {words[0]}")
        if tool.on == "two":
            if self.cpus < 2:
                raise Unavailable("there is one CPU")
            environment["LMBENCH_SCHED"] = "UNIQUE"
        elif tool.on == "here":
            words = ["taskset", "-c", str(self.here), *words]
        return words, environment

    def run(self, tool):
        """Runs it once and gives what it read."""
        words, environment = self.command(tool)
        # lat_fs makes its files in TMPDIR: where options are given, it takes no directory.
        environment |= {"TMPDIR": str(self.directory), "LC_ALL": "C"}
        process = subprocess.Popen(
            words,
            cwd=self.directory,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            # Its children too: lmbench's outlive their parent.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Unavailable(f"not done after {PATIENCE_S} s") from None
        try:
            return tool.read(output)
        except parse.Unreadable as error:
            raise Unavailable(f"exit code {process.returncode}, {error}") from None


@contextlib.contextmanager
def hello(programs):
    """lat_proc's program where it looks for it; gone afterwards. Whether it could be put there: all
    may write to /var/tmp, and another's directory is left alone."""
    with contextlib.suppress(FileExistsError):
        HELLO.parent.mkdir(mode=0o755)
    found = HELLO.parent.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        yield False
        return
    try:
        shutil.copy(programs / HELLO.name, HELLO)
        yield True
    finally:
        shutil.rmtree(HELLO.parent)


@contextlib.contextmanager
def prepared(directory: pathlib.Path):
    """A place with all that the tools want."""
    allowed = os.sched_getaffinity(0)
    programs = lmbench_programs()
    # hangdog measures on the last CPU that it may use.
    place = Place(directory, max(allowed), len(allowed), programs)
    with open(directory / FILE, "wb", buffering=0) as file:
        # As hangdog writes its own: how much at a time decides how large the cache's pages are.
        for _ in range(FILE_BYTES // len(PIECE)):
            file.write(PIECE)
        # Pages on their way to the disk are dearer to map.
        os.fsync(file.fileno())
    (directory / "test_file.0").write_bytes(bytes(4096))
    with contextlib.ExitStack() as stack:
        if programs is not None:
            place.hello = stack.enter_context(hello(programs))
        yield place
