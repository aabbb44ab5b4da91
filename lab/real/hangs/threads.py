"""Threads of one process that wait for each other or for one of them: locks, conditions, events."""

from hangs import builds
from hangs.program import hung, truth
from hangs.witness import At, must_own, sleeps, thread

LOCK = ("futex",)


def play(stage, pattern, *names):
    """Starts a pattern of threads.c; gives its main thread and those of these names."""
    process = stage.start([builds.c("threads"), pattern])
    return process.pid, *(thread(process.pid, name) for name in names)


@hung("mutex-two")
def two(stage):
    """The main thread joins one of two threads that wait for each other's mutex."""
    main, first, second = play(stage, "abba", "first", "second")
    return truth(
        "Circular; two threads wait for each other's mutex",
        [At(main, LOCK), At(first, LOCK), At(second, LOCK)],
        must_own({first: second, second: first}),
        cycle=(first, second),
    )


@hung("mutex-three")
def three(stage):
    """Three threads, the main thread among them, wait for each other's mutex in a circle."""
    # The main thread has taken the name of the first.
    main, first, second, third = play(stage, "cycle", "first", "second", "third")
    return truth(
        "Circular; three threads wait for each other's mutex",
        [At(first, LOCK), At(second, LOCK), At(third, LOCK)],
        must_own({first: second, second: third, third: main}),
        cycle=(first, second, third),
    )


@hung("mutex-twice")
def twice(stage):
    """A thread takes a mutex that it holds itself."""
    (main,) = play(stage, "twice")
    return truth(
        "Circular; the thread waits for a mutex that it holds itself",
        [At(main, LOCK)],
        must_own({main: main}),
        cycle=(main,),
    )


@hung("mutex-chain")
def chain(stage):
    """The main thread joins the first of three threads, each of which waits for the next one's
    mutex; the last one sleeps."""
    main, first, second, third = play(stage, "chain", "first", "second", "third")
    return truth(
        "LongWait; root the third thread, which sleeps",
        [At(main, LOCK), At(first, LOCK), At(second, LOCK), sleeps(third)],
        must_own({first: second, second: third}),
    )


@hung("rwlock-writer")
def rwlock(stage):
    """The main thread wants to read under a read-write lock that a sleeping thread holds for
    writing."""
    main, writer = play(stage, "rwlock", "writer")
    return truth("LongWait; root the writer, which sleeps", [At(main, LOCK), sleeps(writer)])


@hung("condition-worker")
def condition(stage):
    """The main thread waits for a condition that its only worker, which sleeps, should signal."""
    main, worker = play(stage, "condition", "worker")
    return truth("LongWait; root the worker, which sleeps", [At(main, LOCK), sleeps(worker)])


@hung("join-worker")
def join(stage):
    """The main thread joins a thread that sleeps."""
    main, worker = play(stage, "join", "worker")
    return truth("LongWait; root the worker, which sleeps", [At(main, LOCK), sleeps(worker)])


@hung("eventfd-worker")
def event(stage):
    """The main thread polls, by epoll, an eventfd that its only worker, which sleeps, should
    write."""
    main, worker = play(stage, "event", "worker")
    return truth("LongWait; root the worker, which sleeps", [At(main, ("epoll",)), sleeps(worker)])
