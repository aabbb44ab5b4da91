#!/usr/bin/env python3
"""Two simple rules for the cause of a hang, told from a trace's tables alone.

Both walk back through the hang from its end, beginning in the thread that hung, and back into that
where one of its waits began. Each nanosecond is charged to the thread, and the state, in which the
walk stands; who is charged with most is the root.

  recent    Most recent wake: a blocked time is replaced by what the thread did that ended it (that
            was on the CPU, whatever the context of the wake; where the CPU was idle, the time
            stays with the one that was blocked).
  perfetto  Perfetto's critical path: the same, but no wake from an interrupt explains anything; and
            the time in which a thread was runnable is charged, as that, to the one that had it.

Needs pyarrow. Knows docs/TRACE.md, nothing of hangdog's code.
"""

import argparse
import bisect
import collections
import json
import pathlib

IDLE = 0
RUNNING, RUNNABLE, BLOCKED = "running", "runnable", "blocked"
CLASS_OF = {RUNNING: "LongRunning", RUNNABLE: "Starved", BLOCKED: "LongWait"}
# docs/TRACE.md, Left: preempted, yielded, throttled are still runnable.
STILL_RUNNABLE = {0, 1, 7}
CONTEXT_THREAD = 0
RULES = ("recent", "perfetto")

Interval = collections.namedtuple("Interval", "start end state cpu waker context")
Names = collections.namedtuple("Names", "process thread")


def read_table(trace, name, columns):
    """The rows of a table by time, as tuples; none where the table is missing."""
    import pyarrow.parquet as parquet  # pylint: disable=import-outside-toplevel

    rows = []
    for part in sorted((trace / name).glob("*.parquet")):
        table = parquet.read_table(part, columns=list(columns))
        rows.extend(zip(*(table.column(column).to_pylist() for column in columns), strict=True))
    rows.sort(key=lambda row: row[0])
    return rows


def intervals_of(switches, wakes, end):
    """What each thread did: its intervals without gap, from its first event to `end`."""
    events = [(ts, 1, row) for row in wakes for ts in row[:1]]
    events += [(ts, 0, row) for row in switches for ts in row[:1]]
    events.sort(key=lambda event: event[:2])
    threads = collections.defaultdict(list)
    # By thread: since when, state, on which CPU.
    now = {}

    def change(thread, ts, state, cpu=None, waker=None, context=None):
        if thread in now:
            since, old, old_cpu = now[thread]
            threads[thread].append(Interval(since, ts, old, old_cpu, waker, context))
        now[thread] = (ts, state, cpu)

    for ts, is_wake, row in events:
        if is_wake:
            _, waker, wakee, context = row
            # A thread that has not left its CPU yet, or that was woken before, is no sleeper.
            if now.get(wakee, (0, BLOCKED))[1] == BLOCKED:
                change(wakee, ts, RUNNABLE, None, waker, context)
        else:
            _, cpu, prev, following, left = row
            if prev != IDLE:
                change(prev, ts, RUNNABLE if left in STILL_RUNNABLE else BLOCKED, cpu)
            if following != IDLE:
                change(following, ts, RUNNING, cpu)
    for thread in list(now):
        change(thread, end, BLOCKED)
    return threads


class Walk:
    """One walk back by one rule."""

    def __init__(self, rule, threads, switches):
        self.rule = rule
        self.threads = threads
        self.starts = {t: [i.start for i in intervals] for t, intervals in threads.items()}
        self.charged = collections.Counter()
        self.by_cpu = collections.defaultdict(list)
        for ts, cpu, _, following, _ in switches:
            self.by_cpu[cpu].append((ts, following))

    def charge(self, thread, state, start, end):
        if end > start:
            self.charged[thread, state] += end - start

    def charge_runners(self, cpu, waiting, start, end):
        """Charges those who had the CPU; idle time, and where none is known, the one that waited."""
        runs = self.by_cpu.get(cpu, [])
        at = bisect.bisect_right(runs, (end, -1)) - 1
        while end > start and at >= 0:
            ts, thread = runs[at]
            begin = max(ts, start)
            if thread in (IDLE, waiting):
                self.charge(waiting, RUNNABLE, begin, end)
            else:
                self.charge(thread, RUNNABLE, begin, end)
            end = min(end, begin)
            at -= 1
        self.charge(waiting, RUNNABLE, start, end)

    def next_cpu(self, thread, end):
        """The CPU that a thread which is runnable before `end` comes to."""
        at = bisect.bisect_left(self.starts[thread], end) - 1
        for interval in self.threads[thread][at : at + 2]:
            if interval.state == RUNNING:
                return interval.cpu
        return None

    def walk(self, victim, start, end):
        """Each wait of the victim by itself: what began in it is left where the wait began. Within
        it the walk stays with whom it has come to, and never goes back to one that it has left."""
        while end > start:
            interval = self.interval_before(victim, end)
            begin = max(interval.start, start) if interval else start
            self.walk_within(victim, begin, end)
            end = begin

    def interval_before(self, thread, end):
        at = bisect.bisect_left(self.starts.get(thread, []), end) - 1
        return self.threads[thread][at] if at >= 0 else None

    def walk_within(self, thread, start, end):
        # Those that were come to without going back in time: lost events can make a circle of them.
        seen = {thread}
        while end > start:
            interval = self.interval_before(thread, end)
            # Where nothing is known, it was not seen to do anything.
            begin = max(interval.start, start) if interval else start
            state = interval.state if interval else BLOCKED
            if state == BLOCKED and interval and self.explains(thread, interval, seen):
                thread = interval.waker
                seen.add(thread)
                continue
            if state == RUNNABLE and self.rule == "perfetto":
                self.charge_runners(self.next_cpu(thread, end), thread, begin, end)
            else:
                self.charge(thread, state, begin, end)
            end = begin
            seen = {thread}

    def explains(self, thread, interval, seen):
        """Whether the walk goes on in the one that ended this wait."""
        if interval.waker in (None, IDLE, thread) or interval.waker in seen:
            return False
        return self.rule == "recent" or interval.context == CONTEXT_THREAD

    def root(self):
        """(thread, class): who has most, by its main state."""
        totals = collections.Counter()
        for (thread, _), ns in self.charged.items():
            totals[thread] += ns
        thread = totals.most_common(1)[0][0]
        state = max(CLASS_OF, key=lambda state: self.charged[thread, state])
        return thread, CLASS_OF[state]


def names_of(lifecycle):
    """By thread: the last names of its process (that of the process's main thread) and of itself."""
    name, main, process_of = {}, {}, {}
    for _, _, thread, process, tid, pid, text in lifecycle:
        process_of[thread] = process
        if text:
            name[thread] = text
        if tid == pid:
            main[process] = thread
    return {
        thread: Names(name.get(main.get(process), ""), name.get(thread, ""))
        for thread, process in process_of.items()
    }


def tell_of(trace, begin_ns, end_ns, victim_tid):
    """By rule: process, thread and their ids, class, for what held up a thread in a time by
    CLOCK_MONOTONIC."""
    meta = json.loads((trace / "meta.json").read_text())
    start = meta["clock"]["monotonic_start_ns"]
    switches = read_table(trace, "switches", ("ts", "cpu", "prev", "next", "left"))
    wakes = read_table(trace, "wakes", ("ts", "waker", "wakee", "context"))
    lifecycle = read_table(
        trace, "lifecycle", ("ts", "kind", "thread", "process", "tid", "pid", "name")
    )
    # A thread id may be used again: the last one that had it by the end of the time.
    victims = [row[2] for row in lifecycle if row[4] == victim_tid and row[0] <= end_ns - start]
    ids = {row[2]: row[4:6] for row in lifecycle}
    names = names_of(lifecycle)
    threads = intervals_of(switches, wakes, meta["duration_ns"])
    verdicts = {}
    for rule in RULES:
        walk = Walk(rule, threads, switches)
        walk.walk(victims[-1] if victims else None, begin_ns - start, end_ns - start)
        root, root_class = walk.root()
        process, thread = names.get(root, Names("", "idle" if root == IDLE else ""))
        tid, pid = ids.get(root, (0, 0))
        verdicts[rule] = {
            "process": process,
            "thread": thread,
            "tid": tid,
            "pid": pid,
            "class": root_class,
        }
    return verdicts


def tell(trace, begin_ns, end_ns):
    """The same for the first thread of the recorded command."""
    meta = json.loads((trace / "meta.json").read_text())
    return tell_of(trace, begin_ns, end_ns, meta["command_tid"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("begin_ns", type=int)
    parser.add_argument("end_ns", type=int)
    args = parser.parse_args()
    print(json.dumps(tell(args.trace, args.begin_ns, args.end_ns)))


if __name__ == "__main__":
    main()
