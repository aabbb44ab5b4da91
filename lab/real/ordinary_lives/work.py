"""Jobs that compute or copy because they were told to, one after the other for ever."""

import random

import life
from ordinary_lives.register import longest_without_cpu, ordinary, slowest_file
from ordinary_lives.tools import DEBIAN_PYTHON, again_and_again
from stage import need, output_of, wait_for

COPIED_FILES, COPIED_BYTES = 50, 10 << 20
TESTS = 60
LINES = 150_000


@ordinary("compile")
def compilation(stage):
    """make compiles one file after the other (life.py)."""
    life.compilation(stage)
    tree = stage.directory / "tree"
    wait_for("an object", lambda: any(tree.glob("*.o")))
    return slowest_file([tree], "*.o", "files", least=5)


@ordinary("package manager")
def packages(stage):
    """Somebody looks through the packages with apt-cache, dpkg and apt-get -s."""
    need("apt-cache", "dpkg", "apt-get")
    log = again_and_again(
        stage,
        ["apt-cache", "policy", "bash"],
        ["dpkg", "-l"],
        ["apt-get", "-s", "install", "--reinstall", "coreutils"],
        ["apt-cache", "showpkg", "libc6"],
    )
    return longest_without_cpu(log, "commands")


def history(folder, commits, files, seed=1):
    """The words of `git fast-import` that make a history: each commit changes one file."""
    draw = random.Random(seed)
    lines = [[f"line {n} of the file" for n in range(200)] for _ in range(files)]
    parts = []
    for number in range(commits):
        which = number % files
        lines[which][draw.randrange(200)] = f"change {number}: {draw.random()}"
        text = "\n".join(lines[which]) + "\n"
        parts.append(
            f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + number} +0000\n"
            f"data <<EOT\nchange {number}\nEOT\n"
            f"M 644 inline folder{which % 10}/file{which}.txt\ndata {len(text)}\n{text}\n"
        )
    (folder / "history").write_text("".join(parts))
    output_of(["git", "init", "-q", "-b", "main", folder / "tree"])
    with (folder / "history").open("rb") as stream:
        output_of(["git", "-C", folder / "tree", "fast-import", "--quiet"], stdin=stream)
    output_of(["git", "-C", folder / "tree", "reset", "-q", "--hard"])
    return folder / "tree"


@ordinary("git")
def git(stage):
    """Somebody looks at a repository and has it packed."""
    need("git")
    tree = history(stage.directory, commits=2000, files=100)
    log = again_and_again(
        stage,
        ["git", "status"],
        ["git", "log", "--stat"],
        ["git", "log", "-p", "--max-count=1000"],
        ["git", "grep", "-c", "change"],
        ["git", "-c", "pack.threads=1", "gc", "--quiet"],
        cwd=tree,
    )
    return longest_without_cpu(log, "commands")


TEST_FILE = """
import time, unittest

class TestSome(unittest.TestCase):
    def compute(self, number):
        self.assertGreater(sum(n * n % 7 for n in range(20_000 + 1000 * number)), 0)

    def wait(self):
        begin = time.monotonic()
        time.sleep(0.005)
        self.assertGreater(time.monotonic(), begin)
"""


@ordinary("test suite")
def tests(stage):
    """A suite of small tests is run again and again: most compute, some sleep 5 ms."""
    need(DEBIAN_PYTHON)
    folder = stage.directory / "suite"
    folder.mkdir()
    for number in range(5):
        bodies = ["wait()" if n % 6 == 0 else f"compute({n})" for n in range(TESTS)]
        names = "".join(
            f"\n    def test_{n}(self):\n        self.{body}\n" for n, body in enumerate(bodies)
        )
        (folder / f"test_part{number}.py").write_text(TEST_FILE + names)
    log = again_and_again(stage, [DEBIAN_PYTHON, "-m", "unittest", "-q"], cwd=folder)
    # Its fifty sleeps take 0.25 s together.
    return longest_without_cpu(log, "runs of the suite")


@ordinary("copy")
def copy(stage):
    """A folder of 500 MB is copied by cp, then by rsync, again and again."""
    need("cp", "rsync")
    source = stage.directory / "source"
    source.mkdir()
    block = random.Random(1).randbytes(1 << 20)
    for number in range(COPIED_FILES):
        with (source / f"file{number}").open("wb") as file:
            for _ in range(COPIED_BYTES >> 20):
                file.write(block)
    by_cp, by_rsync = stage.directory / "by_cp", stage.directory / "by_rsync"
    # One of the copies is always whole, for the witness.
    again_and_again(
        stage,
        ["rm", "-rf", by_cp],
        ["cp", "-r", source, by_cp],
        ["rm", "-rf", by_rsync],
        ["rsync", "-a", f"{source}/", by_rsync],
        pause_s=0.5,
    )
    return slowest_file([by_cp, by_rsync], "file*", "files", least=COPIED_FILES)


@ordinary("pipelines")
def pipelines(stage):
    """Somebody counts words by pipelines of sort, uniq and awk."""
    need("sort", "uniq", "awk")
    draw = random.Random(1)
    words = stage.directory / "words.txt"
    words.write_text("".join(f"word{draw.randrange(20_000)} {n}\n" for n in range(LINES)))
    log = again_and_again(
        stage,
        ["sh", "-c", "cut -d' ' -f1 words.txt | sort | uniq -c | sort -rn | head -20"],
        ["sh", "-c", "awk '{n[$1]++} END {for (w in n) print n[w], w}' words.txt | sort -n | tail"],
    )
    return longest_without_cpu(log, "pipelines")
