"""The programs that hang on purpose, and the truth beside each.

A program prints what it was (`param KEY=VALUE`) and when it hung (`hang FROM TO`). Its truth,
programs/NAME.toml, becomes the truth of that one run: each [[variant]] whose `when` agrees with
the parameters is laid over it, then {key} in its texts is replaced by the parameter.
"""

import dataclasses
import pathlib
import subprocess
import sys

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit("lab: needs Python 3.11 or later (tomllib): install python3.11, or set PYTHON")

LAB = pathlib.Path(__file__).resolve().parent
CANNOT_RUN = 77
CLASSES = (
    "LongRunning",
    "RepeatedYield",
    "LongWait",
    "Starved",
    "Paging",
    "Interrupted",
    "Circular",
)


class TruthError(Exception):
    """What a program printed, or its truth file, makes no sense."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What a program said of itself in one run."""

    params: dict
    begin_ns: int
    end_ns: int

    @property
    def length_ns(self):
        return self.end_ns - self.begin_ns


def parse_run(output):
    """Reads a program's stdout; other lines are passed over. No hang, or two, is a TruthError."""
    params, hangs = {}, []
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "param":
            key, equals, value = rest.partition("=")
            if not equals:
                raise TruthError(f"no '=' in '{line}'")
            params[key] = value
        elif word == "hang":
            try:
                begin, end = map(int, rest.split())
            except ValueError:
                raise TruthError(f"not two times: '{line}'") from None
            hangs.append((begin, end))
    if len(hangs) != 1:
        raise TruthError(f"the program printed {len(hangs)} lines 'hang FROM TO' instead of one")
    return Run(params, *hangs[0])


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a diagnosis of one run should say."""

    why: str
    victim: str
    process: str
    threads: tuple
    root_class: str
    knot: tuple = ()
    blame: dict | None = None
    # In which of its functions the victim waits; where they are known.
    victim_in: str | None = None
    # By thread: the function of the program in which the root ran or waited.
    functions: dict = dataclasses.field(default_factory=dict)
    inlined_into: str | None = None
    # Functions that ran, with the least share of the samples that have them.
    ran: tuple = ()

    def __str__(self):
        name = f"{self.root_class} {self.process}/{'|'.join(self.threads)}"
        functions = "|".join(dict.fromkeys(self.functions.values()))
        return f"{name} in {functions}" if functions else name


def _overlay(below, above):
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {key: _overlay(below.get(key), value) for key, value in above.items()}


def _fill(value, params):
    if isinstance(value, str):
        return value.format_map(params)
    if isinstance(value, list):
        return [_fill(item, params) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, params) for key, item in value.items()}
    return value


def make_truth(table, params):
    """The truth of the run that had these parameters, from a truth file's contents."""
    table = dict(table)
    for variant in table.pop("variant", []):
        if all(params.get(key) == value for key, value in variant["when"].items()):
            table = _overlay(table, {k: v for k, v in variant.items() if k != "when"})
    try:
        table = _fill(table, params)
        root, expect = table["root"], table.get("expect", {})
        threads = root["thread"]
        threads = (threads,) if isinstance(threads, str) else tuple(threads)
        functions = root.get("function", {})
        if isinstance(functions, str):
            functions = {thread: functions for thread in threads}
        truth = Truth(
            why=table["why"],
            victim=table["problem"]["thread"],
            process=root["process"],
            threads=threads,
            root_class=root["class"],
            knot=tuple(expect.get("knot", ())),
            blame=expect.get("blame"),
            victim_in=table["problem"].get("function"),
            functions=functions,
            inlined_into=root.get("inlined_into"),
            ran=tuple(expect.get("ran", ())),
        )
    except KeyError as error:
        raise TruthError(f"the truth lacks {error} for the parameters {params}") from None
    if not set(truth.functions) <= set(truth.threads):
        raise TruthError(f"functions of {', '.join(truth.functions)}, who are not all roots")
    if truth.root_class not in CLASSES:
        raise TruthError(f"'{truth.root_class}' is no class: {', '.join(CLASSES)}")
    return truth


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of the lab."""

    name: str

    def command(self, seed):
        script = LAB / "programs" / f"{self.name}.py"
        run = [sys.executable, script] if script.exists() else [LAB / "build" / self.name]
        return [str(word) for word in run] + ["--seed", str(seed)]

    def truth(self, params):
        path = LAB / "programs" / f"{self.name}.toml"
        try:
            return make_truth(tomllib.loads(path.read_text()), params)
        except (tomllib.TOMLDecodeError, TruthError) as error:
            raise TruthError(f"{path}: {error}") from None


def programs(only=()):
    """Every program, or those named; a name that is none ends the run."""
    names = sorted(path.stem for path in (LAB / "programs").glob("*.toml"))
    for name in only:
        if name not in names:
            sys.exit(f"lab: there is no program '{name}': {', '.join(names)}")
    return [Program(name) for name in names if not only or name in only]


def build():
    """Compiles what changed."""
    done = subprocess.run(["make", "-s", "-C", str(LAB), "all"], check=False)
    if done.returncode != 0:
        sys.exit("lab: the programs could not be compiled (gcc and make are needed)")


def add_selection(parser, default_seeds):
    """The options that say what to run."""
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seeds",
        type=int,
        default=default_seeds,
        metavar="N",
        help="run seeds 1 to N (default %(default)s)",
    )
    seeds.add_argument("--seed", type=int, metavar="K", help="run this seed alone")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="run this program alone; may be repeated",
    )


def selection(args):
    """Pairs of program and seed."""
    seeds = [args.seed] if args.seed is not None else range(1, args.seeds + 1)
    return [(program, seed) for program in programs(args.only) for seed in seeds]


def closing_line(counts):
    """How a run ends, alone on its line."""
    return f"lab: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
