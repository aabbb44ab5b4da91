"""Commands that build, test, import or install something."""

import random
import shutil
import subprocess

from commands_cases import BY_TREE, Command, Part, by_cpu, by_tree, command
from stage import CannotRun, need

DEBIAN_PYTHON = "/usr/bin/python3"
SMALL_FILES, FUNCTIONS = 6, 120
MODULES, LIBRARIES = 2000, 40
C_FUNCTION = """int f{n}_{k}(int *a, int b) {{
  int s = {c};
  for (int i = 0; i < b; i++) for (int j = i; j < b; j++) s ^= a[j] * {c} + (a[i] >> (s & 7));
  switch (s & 15) {{ case 1: s += a[0]; break; case 2: s *= 3; break; case 5: return s / {c}; }}
  return s;
}}
"""


def c_files(folder, files, functions):
    """Writes files of C that take a compiler some time."""
    draw = random.Random(1)
    for n in range(files):
        body = "".join(
            C_FUNCTION.format(n=n, k=k, c=draw.randrange(3, 999)) for k in range(functions)
        )
        (folder / f"part{n}.c").write_text(body)
    calls = "".join(
        f"int f{n}_{k}(int *, int);\n" for n in range(files) for k in range(functions)
    )
    sums = "".join(
        f"  s += f{n}_{k}(a, count);\n" for n in range(files) for k in range(functions)
    )
    (folder / "main.c").write_text(
        f"{calls}int main(int count, char **words) {{\n  int a[64] = {{0}}, s = 0;\n{sums}"
        "  return s & 1;\n}\n"
    )


def make_of(stage, folder, **more):
    """The command `make` in a folder, from scratch each time."""
    need("make", "gcc", "g++", "strace")

    def prepare():
        for path in [*folder.glob("*.o"), folder / "program"]:
            path.unlink(missing_ok=True)

    return Command(
        stage, ["make", "-s", "-j1"], measured=by_tree, witness=BY_TREE, cwd=folder,
        prepare=prepare, **more,
    )


@command("build-link")
def build_link(stage):
    """make of some C files with link-time optimization, of which the link step takes longest."""
    folder = stage.directory / "tree"
    folder.mkdir()
    c_files(folder, SMALL_FILES, FUNCTIONS)
    (folder / "Makefile").write_text(
        "CFLAGS = -O2 -flto\nLDFLAGS = -O2 -flto=1 -flto-partition=one\n"
        "program: $(patsubst %.c,%.o,$(sort $(wildcard *.c)))\n\tgcc $(LDFLAGS) -o $@ $^\n"
    )
    return make_of(
        stage,
        folder,
        parts=(
            Part("link-time optimization", r"^lto1", "run"),
            Part("compiling", r"^cc1$", "run"),
        ),
    )


CPP = """#include <regex>
#include <map>
#include <string>
#include <vector>
#include <algorithm>
template <int N> struct Table {
  std::map<std::string, std::vector<int>> rows;
  int add(const std::string &key) {
    auto &row = rows[key + std::to_string(N)];
    row.push_back(N);
    std::sort(row.begin(), row.end());
    return row.size() + Table<N - 1>().add(key);
  }
};
template <> struct Table<0> { int add(const std::string &) { return 0; } };
int matches(const std::string &text) {
  std::regex pattern("a(b|c)*d");
  return std::regex_match(text, pattern) + Table<35>().add(text);
}
"""


@command("build-compile")
def build_compile(stage):
    """make of some C files and one C++ file with many templates, which takes longest."""
    folder = stage.directory / "tree"
    folder.mkdir()
    c_files(folder, 2, FUNCTIONS)
    (folder / "table.cpp").write_text(CPP)
    (folder / "Makefile").write_text(
        "CFLAGS = -O1\nCXXFLAGS = -O2\n"
        "program: $(patsubst %.c,%.o,$(sort $(wildcard *.c))) table.o\n\tg++ -o $@ $^\n"
    )
    return make_of(
        stage,
        folder,
        parts=(
            Part("compiling the C++ file", r"^cc1plus$", "run"),
            Part("compiling the C files", r"^cc1$", "run"),
        ),
    )


@command("python-import")
def python_import(stage):
    """A Python package of 2,000 modules is imported, and one of them looks for shared libraries,
    which Python has the compiler do."""
    need(DEBIAN_PYTHON, "strace", "gcc")
    folder = stage.directory / "large"
    folder.mkdir()
    functions = "".join(
        f"def function{k}(a, b={k}):\n    if a > b:\n        return [a * n for n in range(b)]\n"
        f"    return {{'a': a, 'b': b, 'key{k}': (a, b)}}\n\n\n"
        for k in range(25)
    )
    for n in range(MODULES):
        (folder / f"module{n}.py").write_text(f"NUMBER = {n}\n\n\n{functions}")
    (folder / "libraries.py").write_text(
        "from ctypes.util import find_library\n"
        f"FOUND = [find_library(f'absent{{n}}') for n in range({LIBRARIES})]\n"
    )
    imports = "".join(f"from large import module{n}\n" for n in range(MODULES))
    (folder / "__init__.py").write_text(f"{imports}from large import libraries\n")
    # As where the folder cannot be written to: each time all is compiled anew.
    stage.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return Command(
        stage,
        [DEBIAN_PYTHON, "-c", "import large"],
        parts=(
            Part("importing the modules", r"^python3", "run"),
            Part("looking for libraries", r"^(sh|gcc|cc|collect2|ld|ldconfig|objdump)\b", "any"),
        ),
        measured=by_tree,
        witness=BY_TREE,
    )


SUITE = """
import time, unittest

class TestAll(unittest.TestCase):
    def test_slow_answer(self):
        time.sleep(3)
"""


@command("test-suite")
def test_suite(stage):
    """A suite of fifty tests that compute, and one that sleeps for 3 s."""
    need(DEBIAN_PYTHON)
    names = "".join(
        f"\n    def test_{n}(self):\n        sum(n * n % 7 for n in range(600_000))\n"
        for n in range(50)
    )
    (stage.directory / "test_all.py").write_text(SUITE + names)
    return Command(
        stage,
        [DEBIAN_PYTHON, "-m", "unittest", "-q", "test_all"],
        parts=(
            Part("tests that compute", r"^python3", "run"),
            Part("the test that sleeps", r"^python3", "timer"),
        ),
        measured=by_cpu,
        witness="rusage: CPU time; the rest is the sleep of 3 s",
    )


@command("venv")
def venv(stage):
    """A virtual environment is made, into which pip is installed."""
    need(DEBIAN_PYTHON)
    folder = stage.directory / "environment"
    check = subprocess.run(
        [DEBIAN_PYTHON, "-c", "import ensurepip, venv"], check=False, capture_output=True
    )
    if check.returncode:
        raise CannotRun("not installed: python3-venv")
    return Command(
        stage,
        [DEBIAN_PYTHON, "-m", "venv", folder],
        parts=(Part("installing, in Python", r"^python", "run"),),
        measured=by_cpu,
        witness="rusage: CPU time of all processes, one of which works at a time",
        prepare=lambda: shutil.rmtree(folder, ignore_errors=True),
    )
