"""What is measured: two benchmarks of the scheduler that come with perf, and a compile."""

import dataclasses
import pathlib
import re
import typing

C_FILES = 60
C_FUNCTIONS = 40
# One of two functions: enough for the compiler to think about, and no library needed.
C_FUNCTION = """
static unsigned mix{n}(unsigned *v, unsigned count)
{{
    unsigned sum = {n};
    for (unsigned i = 0; i < count; i++) {{
        v[i] = (v[i] ^ sum) * 2654435761u + {n}u;
        sum += v[i] >> (i % 7);
        if (sum % {modulus} == 0)
            v[i / 2] ^= sum;
    }}
    return sum;
}}
"""


@dataclasses.dataclass(frozen=True)
class Workload:
    """A command, and how its output tells the time of one operation (else: its wall time)."""

    name: str
    command: tuple
    operation: re.Pattern | None = None

    def time_of(self, measured):
        """Seconds: one operation's where the benchmark says, otherwise the whole run's."""
        if self.operation is None:
            return measured["wall_s"]
        return float(self.operation.search(measured["out"]).group(1)) / 1e6


def write_project(directory: pathlib.Path):
    """C files that want nothing but a compiler, and a makefile that compiles all of them anew."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(C_FILES):
        functions = [C_FUNCTION.format(n=n, modulus=n + 3) for n in range(C_FUNCTIONS)]
        calls = " + ".join(f"mix{n}(v, count)" for n in range(C_FUNCTIONS))
        source = f"{''.join(functions)}\nunsigned all{number}(unsigned *v, unsigned count)\n"
        source += f"{{\n    return {calls};\n}}\n"
        (directory / f"file{number}.c").write_text(source)
    (directory / "Makefile").write_text(
        "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c FORCE\n\tgcc -O1 -c -o $@ $<\nFORCE:\n"
    )


def workloads(directory: pathlib.Path, scale: float, last_cpu: int) -> typing.List[Workload]:
    """All of them; `scale` shortens the benchmarks of the scheduler."""
    usecs = re.compile(r"([0-9.]+) usecs/op")
    pipe = ("perf", "bench", "sched", "pipe", "-l", str(int(400_000 * scale)))
    messaging = ("perf", "bench", "sched", "messaging", "-g", "10", "-l", str(int(600 * scale)))
    project = directory / "project"
    write_project(project)
    return [
        Workload("sched pipe, one CPU", ("taskset", "-c", str(last_cpu), *pipe), usecs),
        # It tells little where idle CPUs are dear to wake (docs/PERFORMANCE.md): a short one will do.
        Workload("sched pipe, all CPUs", (*pipe[:-1], str(int(100_000 * scale))), usecs),
        Workload("sched messaging", messaging),
        Workload("compile, make -j2", ("make", "-s", "-j2", "-C", str(project))),
    ]
