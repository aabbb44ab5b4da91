"""Programs of Python, JavaScript, Java, Go and Rust that wait in the ways of their languages."""

import re
import subprocess

from hangs import builds
from hangs.pipes import fifo
from hangs.program import hung, truth
from hangs.witness import At, call, child, sleeps, thread, threads_of
from stage import need, wait_for

LOCK = ("futex",)
OPEN = ("open",)
POLL = ("poll", "select", "epoll")


def python(stage, pattern, *words):
    """Starts a pattern of python_waits.py; gives its process id."""
    return stage.start([*builds.python("python_waits"), pattern, *words]).pid


@hung("python-locks")
def locks(stage):
    """The main thread joins one of two Python threads that wait for each other's lock."""
    main = python(stage, "locks")
    first, second = thread(main, "first"), thread(main, "second")
    return truth(
        "Circular; two threads wait for each other's lock",
        [At(main, LOCK), At(first, LOCK), At(second, LOCK)],
        cycle=(first, second),
    )


@hung("python-queue")
def from_queue(stage):
    """The main thread waits for what a thread should put into a queue, which opens a FIFO that
    nobody writes."""
    main = python(stage, "queue", fifo(stage))
    producer = thread(main, "producer")
    return truth(
        "LongWait; root the thread that opens a FIFO without a writer",
        [At(main, LOCK), At(producer, OPEN)],
    )


@hung("python-pool")
def pool(stage):
    """The main thread waits for the result of a process of a pool, which opens a FIFO that nobody
    writes; between them is the pool's thread."""
    main = python(stage, "pool", fifo(stage))
    worker = child(main)

    def manager():
        return [tid for tid in threads_of(main) if tid != main and call(tid)[0] in POLL]

    between = wait_for("the pool's thread", manager)[0]
    return truth(
        "LongWait; root the pool's process, which opens a FIFO without a writer",
        [At(main, LOCK), At(between, POLL), At(worker, OPEN)],
    )


@hung("asyncio-future")
def future(stage):
    """The event loop waits for a future that nobody resolves."""
    main = python(stage, "future")
    return truth("LongWait; nobody resolves the future", [At(main, ("epoll",))])


@hung("node-exec")
def node(stage):
    """node waits in execSync for a shell, whose cat opens a FIFO that nobody writes."""
    need("node")
    program = stage.directory / "read.js"
    command = f"cat {fifo(stage)}; echo read"
    program.write_text(f"require('child_process').execSync({command!r})\n")
    main = stage.start(["node", program]).pid
    shell = child(main, "sh")
    cat = child(shell, "cat")
    return truth(
        "LongWait; root cat, which opens a FIFO without a writer",
        [At(main, ("epoll",)), At(shell, ("wait4",)), At(cat, OPEN)],
    )


def java(stage, pattern, says, *names):
    """Starts a pattern of JavaWaits.java; gives its threads of these names, and what jstack says of
    them once it says so."""
    need("jstack")
    pid = stage.start([*builds.java("JavaWaits"), pattern]).pid
    threads = [thread(pid, name) for name in ("asker", *names)]

    def look():
        done = subprocess.run(
            ["jstack", "-l", str(pid)], capture_output=True, text=True, timeout=60, check=False
        )
        return re.search(says, done.stdout, re.DOTALL)

    return *threads, f"jstack: {wait_for('jstack', look)[1]}"


@hung("java-monitors")
def monitors(stage):
    """Two Java threads, the main thread one of them, wait for each other's monitor."""
    says = "(Found one Java-level deadlock)"
    asker, answerer, told = java(stage, "monitors", says, "answerer")
    return truth(
        "Circular; two threads wait for each other's monitor",
        # The virtual machine has one of them look again now and then.
        [At(asker, LOCK, turns=True), At(answerer, LOCK, turns=True)],
        told,
        cycle=(asker, answerer),
    )


@hung("java-lock")
def lock(stage):
    """Java's main thread waits for a ReentrantLock that a parked thread holds."""
    says = r'"asker"[^"]*parking to wait for\s+<\w+> \((a [\w.$]*ReentrantLock\$\w+)'
    asker, holder, told = java(stage, "lock", says, "holder")
    return truth(
        "LongWait; root the holder, which is parked", [At(asker, LOCK), At(holder, LOCK)], told
    )


@hung("java-wait")
def notify(stage):
    """Java's main thread waits in Object.wait for a thread that should notify it, which is
    parked."""
    says = r'"asker"[^"]*(waiting on <\w+> \(a java.lang.Object\))'
    asker, notifier, told = java(stage, "notify", says, "notifier")
    return truth(
        "LongWait; root the notifier, which is parked",
        [At(asker, LOCK), At(notifier, LOCK)],
        told,
    )


@hung("go-mutex")
def go(stage):
    """Go's main goroutine waits for a mutex that another goroutine holds while it waits for a
    program, which sleeps."""
    main = stage.start([builds.go("go_waits")]).pid
    sleeper = child(main, "sleep")
    return truth(
        "LongWait; root sleep, the child that the holder of the mutex waits for",
        # Which of its threads waits for what is up to the runtime.
        [At(main, (), state="S"), sleeps(sleeper)],
    )


@hung("rust-mutex")
def rust(stage):
    """Rust's main thread waits for a mutex whose holder waits for a message of a channel, whose
    sender is parked."""
    main = stage.start([builds.rust("rust_waits")]).pid
    receiver, sender = thread(main, "receiver"), thread(main, "sender")
    return truth(
        "LongWait; root the sender, which is parked",
        [At(main, LOCK), At(receiver, LOCK), At(sender, LOCK)],
    )
