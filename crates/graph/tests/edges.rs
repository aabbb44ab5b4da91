//! What is said to have ended a wait, from traces whose truth is known.

mod common;

use common::Recording;
use hangdog_graph::{Edge, EdgeKind, InVain, Source, Strength, beliefs};
use hangdog_trace::ids::IDLE;

const PEOPLE: &str = "
process app 100
thread main app 100 name=app
thread worker app 101
thread other app 102
process bystander 200
thread bystander bystander 200
kthread kworker/0:1 7
0 cpu0 switch idle -> main
0 cpu1 switch idle -> worker
";

/// main leaves with the words `left` at 1 ms and is woken by `wake` at 5 ms.
fn ended(left: &str, wake: &str) -> (Recording, Edge) {
    let recording = Recording::of(&format!(
        "{PEOPLE}
        1ms cpu0 switch main -> bystander {left}
        5ms cpu1 wake {wake}
        6ms cpu0 switch bystander -> main
        end 10ms"
    ));
    let edge = recording.last_edge("main");
    (recording, edge)
}

#[track_caller]
fn assert_edge(
    left: &str,
    wake: &str,
    kind: EdgeKind,
    strength: Strength,
    by: Option<&str>,
    says: &str,
) {
    let (recording, edge) = ended(left, wake);
    assert_eq!(
        (edge.kind, edge.strength),
        (kind, strength),
        "{left}: {wake}"
    );
    if let Some(name) = by {
        assert_eq!(edge.source, Source::Thread(recording.t(name)), "{wake}");
        let name = recording.evidence().name(recording.t(name));
        assert!(edge.reason.contains(&name), "{}", edge.reason);
        assert_eq!(edge.wake, Some(0), "{wake}");
    }
    assert!(edge.reason.contains(says), "{}", edge.reason);
}

use EdgeKind as Kind;
use Strength::{Strong, Weak};

const CONDITION: &str = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;wait";
const LOCK: &str =
    "sleeping futex op=wait object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;take";

/// A signal is what a condition was waited for: strong, from the signalling thread.
#[test]
fn signal() {
    for stack in [
        "pthread_cond_signal;produce",
        "pthread_cond_broadcast;produce",
        "futex_wake;sem_post;produce",
    ] {
        let wake = format!("worker -> main futex op=wake object=futex:0x10 stack={stack}");
        assert_edge(
            CONDITION,
            &wake,
            Kind::Signal,
            Strong,
            Some("worker"),
            "signalled",
        );
    }
}

/// Without a stack the same futex is strong evidence, another one is not.
#[test]
fn futex_without_stack() {
    let same = "worker -> main futex op=wake object=futex:0x10";
    assert_edge(
        CONDITION,
        same,
        Kind::Signal,
        Strong,
        Some("worker"),
        "woke the futex",
    );
    let other = "worker -> main futex op=wake object=futex:0x20";
    assert_edge(
        CONDITION,
        other,
        Kind::Signal,
        Weak,
        Some("worker"),
        "woke the futex",
    );
}

/// Who gives a lock back caused the wait only if it is known to have held it: an innocent
/// unlocker is weak. The wake of a waiter for a lock is an unlock whatever the stack.
#[test]
fn unlock() {
    let unlock = "worker -> main futex op=wake object=futex:0x10 stack=__lll_lock_wake;pthread_mutex_unlock;work";
    let bare = "worker -> main futex op=wake object=futex:0x10";
    for wake in [unlock, bare] {
        assert_edge(
            LOCK,
            wake,
            Kind::Unlock,
            Weak,
            Some("worker"),
            "others may have held it",
        );
        let held = format!("{LOCK} holder=worker");
        assert_edge(
            &held,
            wake,
            Kind::Unlock,
            Strong,
            Some("worker"),
            "which held the lock",
        );
        let by_other = format!("{LOCK} holder=other");
        assert_edge(
            &by_other,
            wake,
            Kind::Unlock,
            Weak,
            Some("worker"),
            "others",
        );
    }
}

/// Bytes: written to the same pipe, sent over a socket, or read so that there is room.
#[test]
fn message() {
    assert_edge(
        "sleeping read object=pipe:5",
        "worker -> main write object=pipe:5",
        Kind::Message,
        Strong,
        Some("worker"),
        "wrote to the same pipe 5 (write)",
    );
    assert_edge(
        "sleeping recvfrom object=unix:5",
        "bystander -> main sendto object=unix:6",
        Kind::Message,
        Strong,
        Some("bystander"),
        "sent (sendto)",
    );
    assert_edge(
        "sleeping write object=pipe:5",
        "worker -> main read object=pipe:5",
        Kind::Message,
        Strong,
        Some("worker"),
        "freed buffer space (read)",
    );
}

/// The end of a thread or process, an exec, a signal, and what is less clear.
#[test]
fn other_calls() {
    let child = "sleeping wait4 arg=none";
    assert_edge(
        child,
        "bystander -> main exit_group",
        Kind::Exit,
        Strong,
        Some("bystander"),
        "ended",
    );
    assert_edge(
        child,
        "bystander -> main execve",
        Kind::Exit,
        Strong,
        Some("bystander"),
        "executed",
    );
    let poll = "sleeping poll arg=none";
    assert_edge(
        poll,
        "worker -> main tgkill",
        Kind::Kill,
        Strong,
        Some("worker"),
        "sent it a signal",
    );
    assert_edge(
        poll,
        "worker -> main io_uring_enter",
        Kind::Wake,
        Weak,
        Some("worker"),
        "io_uring_enter",
    );
    assert_edge(
        poll,
        "kworker/0:1 -> main",
        Kind::Wake,
        Weak,
        Some("kworker/0:1"),
        "kernel thread",
    );
}

/// A wake out of an interrupt is the timer's, the disk's, the network's or a device's, and never
/// that of the thread that happened to run there.
#[test]
fn interrupts_are_nobodys_doing() {
    use Source::{Device, Disk, Network, Timer};
    let poll = "sleeping poll arg=none";
    let read = "sleeping read object=inet:5";
    let read_file = "uninterruptible read object=file:5 kstack=io_schedule";
    for (left, how, kind, source) in [
        (
            "sleeping read object=timerfd:5",
            "in=timer",
            Kind::Timer,
            Timer,
        ),
        (poll, "in=timer kstack=hrtimer_wakeup", Kind::Timer, Timer),
        (poll, "in=kernel-timer", Kind::Timer, Timer),
        (poll, "in=softirq vector=1", Kind::Timer, Timer),
        (
            read,
            "in=softirq vector=3 kstack=tcp_v4_rcv",
            Kind::Network,
            Network,
        ),
        (poll, "in=softirq vector=2", Kind::Network, Network),
        (poll, "in=softirq vector=4", Kind::Disk, Disk),
        (
            poll,
            "in=interrupt vector=33 kstack=bio_endio;nvme_irq",
            Kind::Disk,
            Disk,
        ),
        (poll, "in=interrupt vector=33", Kind::Interrupt, Device(33)),
        (poll, "in=softirq vector=9", Kind::Interrupt, Device(9)),
        (read_file, "in=softirq vector=4", Kind::Disk, Disk),
        (read_file, "in=interrupt vector=33", Kind::Disk, Disk),
    ] {
        // Whatever the interrupted thread's own stack and call say.
        for victim in ["worker", "bystander", "idle"] {
            let wake = format!("{victim} -> main {how} stack=pthread_cond_signal;work");
            let (_, edge) = ended(left, &wake);
            assert_eq!((edge.kind, edge.source), (kind, source), "{left}: {wake}");
            assert!(!edge.reason.contains("worker"), "{}", edge.reason);
        }
    }
}

/// Over the loopback the softirq that delivers is the sender's own: the kernel stack shows its
/// call. The very same softirq without that call is the network's.
#[test]
fn loopback_is_the_senders() {
    let read = "sleeping recvfrom object=inet:5";
    assert_edge(
        read,
        "bystander -> main sendto in=softirq vector=3 kstack=sock_def_readable;tcp_v4_rcv;__sys_sendto",
        Kind::Message,
        Strong,
        Some("bystander"),
        "within this machine",
    );
    let (_, edge) = ended(
        read,
        "bystander -> main in=softirq vector=3 kstack=sock_def_readable;tcp_v4_rcv;net_rx_action",
    );
    assert_eq!(edge.source, Source::Network);
}

/// A timeout expires, and before the thread runs again what it waits for arrives: the sender ended the wait. What
/// arrives later, after a look that found nothing, did not.
#[test]
fn a_message_that_overtakes_the_timeouts_thread() {
    let edge = |sent: &str| {
        let recording = Recording::of(&format!(
            "{PEOPLE}0 socket app object=inet:5 peer=inet:6
            0 cpu1 switch idle -> worker
            1ms cpu0 switch main -> bystander sleeping poll object=inet:5 arg=2s
            2001ms cpu0 wake idle -> main in=timer
            {sent}
            2003ms cpu0 switch bystander -> main preempted
            2003.2ms transfer main received 900 object=inet:5 peer=inet:6
            end 2010ms"
        ));
        recording.last_edge("main")
    };
    let before = edge("2002ms transfer worker sent 900 object=inet:6 peer=inet:5");
    let worker = Recording::of(PEOPLE).t("worker");
    assert_eq!(before.source, Source::Thread(worker), "{}", before.reason);
    assert_eq!((before.kind, before.strength), (Kind::Message, Strong));
    let later = edge("");
    assert_eq!(later.source, Source::Timer, "{}", later.reason);
}

/// A sleep is as long as was asked for, and a disk wait is the disk's, whoever woke the thread.
#[test]
fn what_the_wait_itself_tells() {
    for (left, kind, source) in [
        ("sleeping nanosleep arg=4ms", Kind::Timer, Source::Timer),
        (
            "uninterruptible fsync object=file:5",
            Kind::Disk,
            Source::Disk,
        ),
        ("uninterruptible fault", Kind::Disk, Source::Disk),
    ] {
        for wake in [
            "kworker/0:1 -> main",
            "idle -> main in=timer",
            "worker -> main futex op=wake",
        ] {
            let (_, edge) = ended(left, wake);
            assert_eq!((edge.kind, edge.strength), (kind, Strong), "{left}: {wake}");
            assert_eq!(edge.source, source, "{left}: {wake}");
        }
    }
}

/// A waker that is the idle thread or the thread itself is none.
#[test]
fn no_waker() {
    for wake in ["idle -> main", "main -> main futex op=wake"] {
        let (_, edge) = ended(CONDITION, wake);
        assert_eq!(edge.source, Source::Nobody, "{wake}");
        assert_eq!((edge.kind, edge.strength), (Kind::Unknown, Weak), "{wake}");
    }
}

/// A timeout does not explain a wait: the holder of the lock does, or the thread that should
/// have ended. The expired timer is the answer only where nobody is named.
#[test]
fn time_out() {
    let timer = "idle -> main in=timer kstack=hrtimer_wakeup";
    let lock = "sleeping futex arg=128 object=futex:0x10 holder=worker";
    assert_edge(
        lock,
        timer,
        Kind::Holder,
        Strong,
        Some("worker"),
        "as its holder",
    );
    let join = "sleeping futex op=wait object=futex:0x10 holder=worker";
    assert_edge(join, timer, Kind::Awaited, Strong, Some("worker"), "to end");
    let (_, edge) = ended(CONDITION, timer);
    assert_eq!((edge.kind, edge.source), (Kind::Timer, Source::Timer));
    assert!(edge.reason.contains("timeout"), "{}", edge.reason);
}

/// A wait that never ends leads to the holder, to the child that is waited for, or, where nothing
/// names anybody, nowhere.
#[test]
fn never_ended() {
    let edge = |left: &str| {
        let recording = Recording::of(&format!(
            "{PEOPLE}
            0.1ms fork main -> child bystander 201
            1ms cpu0 switch main -> idle {left}
            end 10ms"
        ));
        recording.last_edge("main")
    };
    let recording = Recording::of(PEOPLE);
    let holder = edge("sleeping futex arg=128 object=futex:0x10 holder=worker");
    assert_eq!(holder.kind, Kind::Holder);
    assert_eq!(holder.source, Source::Thread(recording.t("worker")));
    assert_eq!(holder.wake, None);
    let nobody = edge("sleeping futex op=wait object=futex:0x10");
    assert_eq!((nobody.kind, nobody.strength), (Kind::Unknown, Weak));
    assert_eq!(nobody.source, Source::Nobody);
}

/// A descriptor that stands for a process says which one is waited for, whoever made it.
#[test]
fn who_waits_by_a_descriptor_of_a_process() {
    for call in ["poll", "waitid arg=none"] {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app
            process first 200\nprocess second 300\nprocess grandchild 500
            0 cpu0 switch idle -> main
            100ms fork main -> first first 200
            200ms fork main -> second second 300
            250ms fork first -> grandchild grandchild 500
            300ms cpu0 switch main -> idle sleeping {call} object=process:500
            end 900ms"
        ));
        let edge = recording.last_edge("main");
        assert_eq!(edge.kind, Kind::Awaited, "{call}");
        assert_eq!(
            edge.source,
            Source::Thread(recording.t("grandchild")),
            "{call}"
        );
    }
}

/// waitpid: the child of that pid; for any child, the only one alive. With two alive that are not
/// asked for by pid, it is not guessed. A child's threads and other processes' children are none.
#[test]
fn children() {
    let edge_of = |second: &str, more: &str, arg: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app\n\
             process first 200\nprocess second 300\nprocess third 400\nprocess grandchild 500
            0 cpu0 switch idle -> main
            0.1ms fork main -> first first 200
            0.25ms fork first -> thread first 201
            0.3ms fork first -> grandchild grandchild 500
            {second} fork main -> second second 300
            {more}
            300ms cpu0 switch main -> idle sleeping wait4 arg={arg}
            end 900ms"
        ));
        let source = recording.last_edge("main").source;
        match source {
            Source::Thread(t) => recording.evidence().name(t),
            _ => String::new(),
        }
    };
    let edge = |more: &str, arg: &str| edge_of("200ms", more, arg);
    assert_eq!(edge("", "300"), "second");
    assert_eq!(edge("", "200"), "first");
    assert_eq!(edge("", "500"), "", "a grandchild cannot be waited for");
    assert_eq!(edge("", "none"), "", "two children are alive");
    assert_eq!(
        edge_of("0.4ms", "", "none"),
        "second",
        "the last of two that were started together, as of a pipeline"
    );
    assert_eq!(
        edge_of(
            "200ms",
            "210ms cpu1 switch idle -> first\n211ms cpu1 switch first -> idle stopped",
            "none"
        ),
        "first",
        "of several one that is stopped"
    );
    assert_eq!(edge("250ms exit first 0", "none"), "second");
    assert_eq!(edge("302ms fork second -> third third 400", "none"), "");
}

/// Where nobody brought it this time, whoever brought it before should have, the last of them
/// first: at the same place, and at no other.
#[test]
fn habit() {
    let recording = |place: &str| {
        Recording::of(&format!(
            "{PEOPLE}
            1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;work
            2ms cpu1 wake other -> main futex op=wake stack=pthread_cond_signal;give
            2.1ms cpu0 switch idle -> main
            3ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;work
            4ms cpu1 wake worker -> main futex op=wake stack=pthread_cond_signal;give
            4.1ms cpu0 switch idle -> main
            5ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x30 stack=pthread_cond_wait;{place}
            end 10ms"
        ))
    };
    let same = recording("work");
    let believed = same.last_beliefs("main");
    let edge = &believed[0].edge;
    assert_eq!((edge.kind, edge.strength), (Kind::Habit, Weak));
    assert_eq!(edge.source, Source::Thread(same.t("worker")));
    assert_eq!(believed[1].edge.source, Source::Thread(same.t("other")));
    assert!(
        edge.reason.contains("app/worker has ended one such wait"),
        "{}",
        edge.reason
    );
    let elsewhere = recording("rest").last_beliefs("main");
    assert!(
        elsewhere
            .iter()
            .all(|belief| belief.edge.kind != Kind::Habit)
    );
}

/// Who changes a setting of the kernel by which a thread was kept is not the one it waited for: the
/// freezer of a control group stops it, and a memory limit is its group's.
#[test]
fn settings_are_no_answers() {
    let edge = |kstack: &str| {
        let recording = Recording::of(&format!(
            "{PEOPLE}
            1ms cpu0 switch main -> idle uninterruptible kstack=schedule;mem_cgroup_oom_synchronize
            20ms cpu1 wake worker -> main write object=file:7 kstack={kstack}
            20.1ms cpu0 switch idle -> main
            end 100ms"
        ));
        let edge = recording.last_edge("main");
        (edge.kind, edge.source)
    };
    let nobody = Source::Nobody;
    assert_eq!(
        edge("try_to_wake_up;memory_max_write"),
        (Kind::Kill, nobody)
    );
    assert_eq!(
        edge("try_to_wake_up;cgroup_do_freeze"),
        (Kind::Kill, nobody)
    );
    assert!(matches!(
        edge("try_to_wake_up;vfs_write").1,
        Source::Thread(_)
    ));
}

/// A wake that only let the thread die, killed with its process, is not what it waited for: the
/// holder is. One that it survives by more than a moment is taken for what it is.
#[test]
fn killed_while_waiting() {
    let edge = |wake: &str, death: &str| {
        let recording = Recording::of(&format!(
            "{PEOPLE}
            1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 holder=other
            20ms cpu1 wake worker -> main {wake}
            20.1ms cpu0 switch idle -> main
            {death} exit main 9
            {death} cpu0 switch main -> idle dead
            end 100ms"
        ));
        let edge = recording.last_edge("main");
        let other = edge.source == Source::Thread(recording.t("other"));
        (edge.kind, other)
    };
    assert_eq!(edge("exit_group", "20.2ms"), (Kind::Holder, true));
    assert_eq!(edge("kill", "20.2ms"), (Kind::Holder, true));
    // A signal brings no lock, whether the thread dies of it or not.
    assert_eq!(edge("kill", "30ms"), (Kind::Holder, true));
    assert_eq!(edge("futex op=wake", "20.2ms"), (Kind::Unlock, false));
}

/// The idle thread and threads that the trace does not know have a name, and nothing else.
#[test]
fn names() {
    let recording = Recording::of(PEOPLE);
    let evidence = recording.evidence();
    for (thread, name) in [
        (recording.t("main"), "app"),
        (recording.t("worker"), "app/worker"),
        (recording.t("bystander"), "bystander"),
        (recording.t("kworker/0:1"), "kworker/0:1"),
        (IDLE, "swapper/idle"),
        (4_000_000, "unknown"),
    ] {
        assert_eq!(evidence.name(thread), name);
    }
}

/// Of an interpreter its script is named too, of its threads and of what it forks; a process is found by
/// it, and by a thread's tid.
#[test]
fn scripts() {
    let recording = Recording::of(
        "process shell 100
        thread main shell 100
        process forker 200
        process forked 300
        process starter 400
        thread forker forker 200
        thread starter starter 400
        1ms exec main /usr/bin/python3 -u /srv/login.py --port 1
        2ms fork main -> worker shell 101
        3ms fork main -> child forked 300
        4ms exec forker /srv/login.py
        5ms exec starter /usr/bin/python3 /srv/billing_service.py
        5ms rename starter billing_service
        end 10ms",
    );
    let evidence = recording.evidence();
    for (thread, name) in [
        ("main", "python3 login.py"),
        ("worker", "python3 login.py/worker"),
        ("child", "child login.py"),
        ("forker", "login.py"),
        ("starter", "billing_service"),
    ] {
        assert_eq!(evidence.name(recording.t(thread)), name);
    }
    let main = evidence.threads.thread(recording.t("main")).upid;
    assert_eq!(evidence.threads.find_processes("101"), [main]);
    assert_eq!(evidence.threads.find_processes("python3"), [main]);
}

/// A timeout alone is no reason to suspect whoever brought it once before: it may be a pause. One
/// that ends a wait much longer than all that somebody brought, several times, is.
#[test]
fn time_outs_and_habits() {
    let wait = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;pause";
    let first = |times: u64, length: u64| {
        let mut events = String::new();
        for at in (1..=times).map(|turn| 4 * turn) {
            events += &format!(
                "{at}ms cpu0 switch main -> idle {wait}
                {at}500us cpu1 wake worker -> main futex op=wake stack=pthread_cond_signal;give
                {at}600us cpu0 switch idle -> main\n"
            );
        }
        let recording = Recording::of(&format!(
            "{PEOPLE}{events}
            50ms cpu0 switch main -> idle {wait}
            {end}us cpu0 wake idle -> main in=timer
            {on_cpu}us cpu0 switch idle -> main
            end 100ms",
            end = 50_000 + length,
            on_cpu = 50_100 + length
        ));
        let edge = recording.last_beliefs("main").remove(0).edge;
        (
            edge.kind,
            edge.source == Source::Thread(recording.t("worker")),
        )
    };
    assert_eq!(first(1, 20_000), (Kind::Timer, false));
    assert_eq!(first(6, 20_000), (Kind::Habit, true));
    assert_eq!(first(6, 1_000), (Kind::Timer, false));
}

/// Who usually ends such waits is who brought the thread on, by a wake after which it woke
/// somebody itself; not who woke it more often spuriously.
#[test]
fn who_usually_ends_a_wait() {
    let wait = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;take_job";
    let wakes = |causes: &str| {
        let mut events = format!("0.5ms cpu0 switch main -> idle {wait}\n");
        for (at, waker) in [
            "other", "worker", "other", "worker", "other", "worker", "other",
        ]
        .iter()
        .enumerate()
        {
            let at = at as u64 + 1;
            let work = match *waker {
                "worker" => format!("{at}.05ms cpu0 wake main -> bystander {causes}"),
                _ => String::new(),
            };
            events += &format!(
                "{at}ms cpu1 wake {waker} -> main futex op=wake object=futex:0x10
                {at}.02ms cpu0 switch idle -> main
                {work}
                {at}.1ms cpu0 switch main -> idle {wait}\n"
            );
        }
        let recording = Recording::of(&format!("{PEOPLE}{events}end 10ms"));
        let waits = recording.waits(recording.t("main"));
        let (last, _) = waits.last().expect("a wait");
        let first = beliefs(&recording.evidence(), last, None, InVain::default(), &[]).remove(0);
        (first.edge.source, first.probability)
    };
    let worker = Recording::of(PEOPLE).t("worker");
    let (source, probability) = wakes("write object=pipe:9");
    assert_eq!(source, Source::Thread(worker));
    assert!(probability > 0.6, "{probability}");
    // To give a lock back is no work; and of two who both woke it spuriously neither is believed
    // much.
    let (_, probability) = wakes("futex op=wake stack=pthread_mutex_unlock;look");
    assert!(probability < 0.6, "{probability}");
}

/// A softirq that delivers what the running thread itself sends: the recorder names that thread's call.
/// Without a call it came with an interrupt, and says nothing of the thread that it interrupted.
#[test]
fn a_softirq_of_the_sender_s_own() {
    let edge = |call: &str| {
        let recording = Recording::of(&format!(
            "{PEOPLE}
            1ms cpu0 switch main -> idle sleeping recvfrom object=inet:1
            5ms cpu1 wake other -> main {call} in=softirq vector=3
            6ms cpu0 switch idle -> main
            end 10ms"
        ));
        let edge = recording.last_edge("main");
        (
            edge.kind,
            edge.source == Source::Thread(recording.t("other")),
        )
    };
    assert_eq!(edge("sendto"), (Kind::Message, true));
    assert_eq!(edge(""), (Kind::Network, false));
}

/// Two wait for room in a pipe; who reads lets the first go on, and that one the second: the reader ended both waits.
/// One that did not wait itself is who it is.
#[test]
fn room_in_a_pipe_is_made_by_its_reader() {
    let source = |first: &str| {
        let recording = Recording::of(&format!(
            "process a 100
            thread a a 100
            process b 200
            thread b b 200
            process reader 300
            thread reader reader 300
            0 cpu0 switch idle -> a
            0 cpu1 switch idle -> b
            0 cpu2 switch idle -> reader
            1ms cpu0 switch a -> idle {first}
            2ms cpu1 switch b -> idle sleeping write object=pipe:7
            10ms cpu2 wake reader -> a read object=pipe:7
            10.1ms cpu0 switch idle -> a
            10.2ms cpu0 wake a -> b write object=pipe:7
            10.3ms cpu1 switch idle -> b
            end 20ms"
        ));
        let edge = recording.last_edge("b");
        (edge.kind, edge.source)
    };
    let (reader, first) = (Source::Thread(3), Source::Thread(1));
    assert_eq!(
        source("sleeping write object=pipe:7"),
        (Kind::Message, reader)
    );
    assert_eq!(source("sleeping nanosleep arg=9ms"), (Kind::Message, first));
}
