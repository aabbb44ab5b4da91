"""What the program `compose` said of itself in one run: parameters, truth, hang."""

import dataclasses
import subprocess

import truth as lab

PROGRAM = lab.LAB / "build" / "compose"
FAMILIES = (
    "LongRunning",
    "LongWait",
    "RepeatedYield",
    "Starved",
    "Paging",
    "Circular",
    "LostWake",
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One composed hang. `roots`: every (process, thread) that is right."""

    run: lab.Run
    family: str
    victim: str
    root_class: str
    roots: tuple
    function: str | None
    knot: tuple

    @property
    def asked_ns(self):
        """How long the hang was meant to last."""
        return int(self.run.params["hang_ms"]) * 1_000_000

    def __str__(self):
        names = "|".join(f"{process}/{thread}" for process, thread in self.roots)
        return f"{self.root_class} {names}" + (f" in {self.function}" if self.function else "")


def command(seed, by_memory=False):
    """`by_memory`: one of its links, if any can, is through memory alone."""
    return [str(PROGRAM), "--seed", str(seed), *(["--memory", "1"] if by_memory else [])]


def build():
    """Compiles the program where it changed."""
    done = subprocess.run(["make", "-s", "-C", str(lab.LAB), "build/compose"], check=False)
    if done.returncode != 0:
        raise SystemExit("lab: compose could not be compiled (gcc and make are needed)")


def parse(output):
    """Reads the program's stdout; what makes no sense is a TruthError."""
    run = lab.parse_run(output)
    told = {}
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "truth":
            key, equals, value = rest.partition("=")
            if not equals:
                raise lab.TruthError(f"no '=' in '{line}'")
            told.setdefault(key, []).append(value)

    def one(key):
        values = told.get(key, [])
        if len(values) != 1:
            raise lab.TruthError(f"the program printed {len(values)} truths '{key}'")
        return values[0]

    if one("class") not in lab.CLASSES:
        raise lab.TruthError(f"'{one('class')}' is no class")
    roots = tuple(tuple(root.split("/", 1)) for root in told.get("root", []))
    if not roots or any(len(root) != 2 for root in roots):
        raise lab.TruthError(f"not PROCESS/THREAD: {told.get('root')}")
    if not run.params.get("hang_ms", "").isdigit():
        raise lab.TruthError("the program did not print how long its hang was meant to be")
    family = "LongRunning" if "redrawn" in run.params else run.params.get("family")
    if family not in FAMILIES:
        raise lab.TruthError(f"'{family}' is no family")
    return Case(
        run=run,
        family=family,
        victim=one("victim"),
        root_class=one("class"),
        roots=roots,
        function=told.get("function", [None])[0],
        knot=tuple(told["knot"][0].split(",")) if "knot" in told else (),
    )
