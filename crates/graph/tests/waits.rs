//! What a blocked thread is said to wait for, told by its call, object and stacks.

mod common;

use common::Recording;
use hangdog_graph::WaitKind::{self, *};
use hangdog_graph::belief::gave_up;

/// The kind of the wait that a switch with these words begins, and its phrase.
fn wait(left: &str) -> (WaitKind, String) {
    let recording = Recording::of(&format!(
        "process app 100\nthread main app 100 name=app\nthread worker app 101\n\
         0 cpu0 switch idle -> main\n1ms cpu0 switch main -> idle {left}\nend 2ms"
    ));
    let (wait, _) = recording.waits(recording.t("main"))[0];
    assert_eq!((wait.start, wait.end), (1_000_000, 2_000_000));
    (wait.kind, wait.phrase(&recording.evidence()))
}

/// Locks are told from conditions by the operation, by the stack, or by a holder in the lock's
/// own memory; a join has a holder too, but a shared futex.
#[test]
fn futexes() {
    const PRIVATE_WAIT: &str = "arg=128";
    for (left, kind) in [
        ("op=wait stack=__lll_lock_wait;take".to_owned(), Lock),
        ("op=wait stack=a;b;c;pthread_mutex_lock;d".to_owned(), Lock),
        ("op=lock-pi".to_owned(), Lock),
        ("op=lock-pi2 stack=pthread_cond_wait".to_owned(), Lock),
        (format!("{PRIVATE_WAIT} holder=worker"), Lock),
        ("op=wait holder=worker".to_owned(), Condition),
        (PRIVATE_WAIT.to_owned(), Condition),
        (
            "op=wait stack=pthread_cond_wait;await".to_owned(),
            Condition,
        ),
        // A thread of Go's that has nothing to do, whatever its futex holds.
        (
            format!(
                "{PRIVATE_WAIT} holder=worker stack=runtime.futex;runtime.notesleep;runtime.stopm"
            ),
            Idle,
        ),
        // A function that takes locks, but too far out to be where it waits.
        (
            "op=wait stack=a;b;c;d;e;f;pthread_mutex_lock".to_owned(),
            Condition,
        ),
    ] {
        let found = wait(&format!("sleeping futex {left} object=futex:0x1000"));
        assert_eq!(found.0, kind, "{left}");
    }
}

/// Descriptors by what is behind them; a device or the disk however it is waited for.
#[test]
fn calls_and_objects() {
    for (left, kind) in [
        ("sleeping read object=pipe:5", Message),
        ("sleeping write object=pipe:5", Message),
        ("sleeping recvfrom object=unix:5", Message),
        ("sleeping accept4 object=inet:5", Message),
        ("sleeping connect object=inet:5", Message),
        ("sleeping read object=eventfd:5", Message),
        ("sleeping read", Message),
        ("sleeping read object=timerfd:5", Timer),
        ("sleeping read object=char:5", Device),
        ("sleeping read object=epoll:5", Poll),
        ("sleeping epoll_wait object=epoll:5", Poll),
        ("sleeping poll arg=none", Poll),
        ("sleeping wait4 arg=none", Child),
        ("sleeping clock_nanosleep arg=5ms", Sleep),
        ("uninterruptible fsync object=file:5", Disk),
        (
            "uninterruptible read object=file:5 kstack=schedule;io_schedule;folio_wait_bit",
            Disk,
        ),
        ("uninterruptible read object=file:5", Kernel),
        (
            "uninterruptible write object=file:5 kstack=down_write",
            Kernel,
        ),
        // Ruby's sleep, and its wait for whatever comes.
        (
            "sleeping ppoll arg=100 object=eventfd:5 stack=ppoll;rb_sigwait_sleep;main",
            Sleep,
        ),
        (
            "sleeping ppoll arg=none object=eventfd:5 stack=ppoll;rb_sigwait_sleep;main",
            Poll,
        ),
        (
            "sleeping ppoll arg=100 object=eventfd:5 stack=ppoll;main",
            Poll,
        ),
        ("sleeping fsync object=file:5", Kernel),
        ("uninterruptible fault kstack=io_schedule", Paging),
        ("uninterruptible fault", Paging),
        (
            "uninterruptible fault kstack=rwsem_down_read_slowpath",
            Kernel,
        ),
        ("stopped", Stopped),
        ("stopped read object=pipe:5", Stopped),
    ] {
        assert_eq!(wait(left).0, kind, "{left}");
    }
}

/// A wait whose beginning the trace did not see is not given a meaning.
#[test]
fn unseen_beginning() {
    let recording = Recording::of(
        "process app 100\nthread main app 100 name=app\nthread other app 101\n\
         2ms cpu0 wake other -> main futex op=wake\n3ms cpu0 switch idle -> main\nend 4ms",
    );
    let (wait, wake) = recording.waits(recording.t("main"))[0];
    assert_eq!((wait.start, wait.end), (0, 2_000_000));
    assert_eq!((wait.kind, wait.row, wake), (Unknown, None, Some(0)));
    let phrase = wait.phrase(&recording.evidence());
    assert_eq!(phrase, "was off the CPU; the trace does not show why");
}

/// Phrases name what is known: holder, thread that is joined, descriptor, time asked for, place
/// in the kernel below the scheduler's own functions.
#[test]
fn phrases() {
    for (left, phrase) in [
        (
            "sleeping futex arg=128 holder=worker object=futex:0x10",
            "waited for a lock held by app/worker",
        ),
        ("sleeping futex op=lock-pi", "waited for a lock"),
        (
            "sleeping futex op=wait holder=worker object=futex:0x10",
            "waited for app/worker to end",
        ),
        ("sleeping futex op=wait", "waited for a condition"),
        ("sleeping read object=pipe:77", "waited in read of pipe 77"),
        ("sleeping poll arg=none", "waited in poll"),
        (
            "sleeping nanosleep arg=1500us",
            "slept in nanosleep, as asked for 1.5 ms",
        ),
        ("sleeping nanosleep", "slept in nanosleep"),
        (
            "sleeping semtimedop",
            "waited for a System V semaphore in semtimedop",
        ),
        (
            "sleeping msgrcv",
            "waited for a System V message queue in msgrcv",
        ),
        (
            "sleeping ppoll arg=100 object=eventfd:5 stack=ppoll;rb_sigwait_sleep;main",
            "slept in ppoll, as asked for 100 ms",
        ),
        (
            "uninterruptible fsync object=file:5",
            "waited for the disk in fsync",
        ),
        (
            "sleeping wait4 arg=none",
            "waited for a child process to end",
        ),
        ("uninterruptible fault", "waited for a page-in"),
        (
            "uninterruptible mmap kstack=__schedule;schedule;rwsem_down_write_slowpath;do_mmap",
            "waited in the kernel in mmap, at rwsem_down_write_slowpath",
        ),
    ] {
        assert_eq!(wait(left).1, phrase, "{left}");
    }
}

/// A thread for timers has some set while its program begins, then waits for them to expire. That the first one does is no wait that
/// it gave up, where it goes on so; where it does not, it is.
#[test]
fn a_thread_for_timers_gives_nothing_up() {
    let gives_up = |later: usize| {
        let wait = "sleeping futex arg=137 object=futex:0x20 stack=cond_timedwait;timer_handler";
        let mut text = String::from("0 cpu0 switch idle -> main\n0 cpu1 switch idle -> worker\n");
        for at in [1, 11, 21, 31] {
            text += &format!(
                "{at}ms cpu1 switch worker -> idle {wait}
                {}ms cpu0 wake main -> worker futex object=futex:0x20
                {}ms cpu1 switch idle -> worker\n",
                at + 5,
                at + 5
            );
        }
        for turn in 0..later {
            let at = 50 + 500 * turn;
            text += &format!(
                "{at}ms cpu1 switch worker -> idle {wait}
                {}ms cpu1 wake idle -> worker in=timer
                {}.1ms cpu1 switch idle -> worker\n",
                at + 490,
                at + 490
            );
        }
        let people = "process server 100\nthread main server 100\nthread worker server 101\n";
        let recording = Recording::of(&format!("{people}{text}end 4s"));
        let waits = recording.waits(recording.t("worker"));
        gave_up(&recording.evidence(), &waits[4].0)
    };
    assert!(!gives_up(6));
    assert!(gives_up(1));
}
