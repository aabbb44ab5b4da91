"""Records one freeze in one setting, and holds what hangdog says of it against the truth."""

import contextlib
import dataclasses
import pathlib
import shutil
import subprocess
import tempfile

import ask
import consistency
import life
import others
import quiet
import settings
from case import CASES
from stage import CannotRun, Fault, Stage

# A case that did not freeze, or whose freeze the recording missed, is tried so often.
ATTEMPTS = 3
SETTINGS = ("record", "flight", "middle")


@contextlib.contextmanager
def home(name):
    """A folder for a stage, which goes with it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix=f"hangdog-real-{name}-"))
    # Who must write there gets a folder of his own.
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Beside(contextlib.ExitStack):
    """Ordinary other life, kept for one case after the other as long as they ask for the same."""

    def __init__(self):
        super().__init__()
        self.name, self.stage = None, None

    def of(self, name):
        """Sees to it that this life goes on; gives its stage."""
        if self.name != name:
            self.close()
            directory = self.enter_context(home("life"))
            self.stage = self.enter_context(Stage(directory, settings.Setting(None, None)))
            life.LIVES[name](self.stage)
            self.name = name
        return self.stage

    def close(self):
        self.name = None
        super().close()


def setting_of(name, hangdog, trace, beside, number):
    """The setting by its name; `number` is the case's, for lives that take turns."""
    if name == "flight":
        beside.of(life.of_case(number))
        return settings.Flight(hangdog, trace)
    return {"record": settings.Record, "middle": settings.Middle}[name](hangdog, trace)


def play(case, setting):
    """Plays a case once; gives its truth."""
    with home(case.name) as directory, Stage(directory, setting) as stage:
        setting.begin(stage)
        truth = case.play(stage)
        setting.after(stage)
    return truth


def must_have_missed_both_ends(truth, trace):
    """A recording in the middle of a freeze has neither its begin nor its end."""
    begin, end = ask.window_of(trace)
    if truth.frozen[0] > begin or truth.frozen[1] < end:
        raise Fault(
            f"frozen from {(truth.frozen[0] - begin) / 1e9:.2f} s to "
            f"{(truth.frozen[1] - begin) / 1e9:.2f} s of a recording of {(end - begin) / 1e9:.2f} s"
        )


def record(args, case, name, trace, beside):
    """Records a case, if need be again; gives its truth, and what the failed attempts said."""
    number = sorted(CASES).index(case.name)
    said = []
    for _ in range(ATTEMPTS):
        shutil.rmtree(trace, ignore_errors=True)
        setting = setting_of(name, args.hangdog, trace, beside, number)
        if name != "flight":
            beside.close()
        if name != "flight" and not args.anyway:
            quiet.wait()
        try:
            truth = play(case, setting)
            if name == "middle":
                must_have_missed_both_ends(truth, trace)
            return truth, said
        except (Fault, OSError, subprocess.SubprocessError) as fault:
            said.append(str(fault))
    raise Fault("; ".join(said))


def simple_rules(trace, truth):
    """What the two rules of others.py say, told the victim and the time."""
    begin, end = ask.window_of(trace)
    start, stop = max(truth.frozen[0], begin), min(truth.frozen[1], end)
    rows = {}
    for rule, verdict in others.tell_of(trace, start, stop, truth.victims[0]).items():
        blamed = [one for one in truth.roots if one.pid == verdict["pid"]]
        right = any(verdict["class"] in one.classes for one in blamed)
        rows[rule] = verdict | {"process_right": bool(blamed), "right": right}
    return rows


def assess(args, case, name, trace, beside):
    """One row of the results: `state` is told (by hangdog), cannot run, or failed."""
    hangdog = args.hangdog
    row = {"kind": "freeze", "name": case.name, "group": case.group, "setting": name}
    try:
        truth, failures = record(args, case, name, trace, beside)
        row |= {"truth": dataclasses.asdict(truth), "failed_attempts": failures}
        if name == "flight":
            row["life"] = beside.name
        row |= ask.every_way(hangdog, trace, truth)
        row["rules"] = simple_rules(trace, truth)
        row["contradictions"] = consistency.of_trace(hangdog, trace)
        row["state"] = "told"
    except CannotRun as reason:
        row |= {"state": "cannot run", "reason": str(reason)}
    except (Fault, OSError, subprocess.SubprocessError) as fault:
        row |= {"state": "failed", "reason": str(fault)}
    return row
