//! Who owes a thread what it waits for by way of another that only hands it on: a thread of its own process, a
//! child, a queue of connections, a server's other client.

mod common;

use common::Recording;
use hangdog_graph::{EdgeKind, Source};

const SERVED: &str = "process app 100\nthread main app 100 name=app\nthread io app 101
    process server 200\nthread server server 200
    0 socket app object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
    0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
    0 socket server object=inet:3 local=127.0.0.1:80
    0 open server object=inet:3 kind=listener
    0 cpu0 switch idle -> main
    0 cpu1 switch idle -> io
    0 cpu2 switch idle -> server\n";

fn source(recording: &Recording, name: &str) -> Option<u32> {
    match recording.last_edge(name).source {
        Source::Thread(thread) => Some(thread),
        _ => None,
    }
}

/// A library's own thread has the connection, and hands on the answer to what it asked when the wait began: then
/// the server ended the wait. A request that it made later was not the waiter's, and a thread that computed
/// meanwhile is the cause itself.
#[test]
fn a_helper_hands_on_an_answer() {
    let waker = |asked_ms: u32, then: &str| {
        let recording = Recording::of(&format!(
            "{SERVED}1ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:7
            {asked_ms}ms transfer io sent 8 object=inet:1
            {asked_ms}.1ms cpu1 switch io -> idle sleeping epoll_wait object=epoll:8
            {then}
            900ms transfer server sent 8 object=inet:2
            900ms cpu2 wake server -> io sendto object=inet:2
            900.1ms cpu1 switch idle -> io
            900.2ms transfer io received 8 object=inet:1
            900.3ms cpu1 wake io -> main write object=eventfd:5
            900.4ms cpu0 switch idle -> main
            end 1s"
        ));
        let thread = source(&recording, "main");
        ["io", "server"]
            .into_iter()
            .find(|name| thread == Some(recording.t(name)))
    };
    assert_eq!(waker(2, ""), Some("server"));
    assert_eq!(waker(400, ""), Some("io"));
    let computes = "3ms cpu1 wake server -> io sendto\n3ms cpu1 switch idle -> io
        800ms cpu1 switch io -> idle sleeping epoll_wait object=epoll:8";
    assert_eq!(waker(2, computes), Some("io"));
}

/// What ended a long wait for anything was that a connection came about: its first use follows at once. The
/// listener's program had not accepted any.
#[test]
fn a_connection_that_is_accepted_late() {
    let network = |before: &str, behind: &str, wait_ms: u32| {
        let recording = Recording::of(&format!(
            "{SERVED}{before}
            {wait_ms}ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:7
            3000ms cpu0 wake idle -> main in=softirq vector=3
            3000.1ms cpu0 switch idle -> main
            {behind}
            3000.2ms transfer main sent 8 object=inet:1
            3001ms transfer server received 8 object=inet:2
            end 4s"
        ));
        source(&recording, "main") == Some(recording.t("server"))
    };
    let busy = "1ms cpu2 switch server -> idle sleeping write object=pipe:9 stack=write;report";
    assert!(network(busy, "", 5));
    let ready =
        "1ms cpu2 switch server -> idle sleeping poll object=inet:3 stack=poll;serve_forever";
    assert!(
        !network(ready, "", 5),
        "a listener that is ready has not been reached"
    );
    assert!(!network("1ms transfer main sent 3 object=inet:1", "", 5));
    assert!(
        !network("", "", 2_900),
        "the kernel asks again after a second"
    );
    let asked = "3000.15ms transfer main received 8 object=inet:77";
    assert!(!network("", asked, 5), "it was asked for something");
}

/// A server has received what was asked, and waits for somebody else: it is not the network that is slow, though on
/// another CPU it was received before the call that sent it came back.
#[test]
fn what_was_received_has_arrived() {
    let is_network = |received: &str| {
        let recording = Recording::of(&format!(
            "{SERVED}1ms transfer main sent 8 object=inet:1
            1.1ms transfer server received 8 object=inet:2
            1.2ms transfer server sent 8 object=inet:2
            1.3ms transfer main received 8 object=inet:1
            {received}
            2ms transfer main sent 8 object=inet:1
            2.1ms cpu0 switch main -> idle sleeping recvfrom object=inet:1
            2.2ms cpu2 switch server -> idle sleeping epoll_wait object=epoll:4
            3000ms cpu2 wake idle -> main in=softirq vector=3
            3000ms cpu0 switch idle -> main
            end 4s"
        ));
        recording.last_edge("main").kind == EdgeKind::Network
    };
    assert!(is_network(""));
    assert!(!is_network(
        "1.9ms transfer server received 8 object=inet:2"
    ));
}

/// A program polls the pipes to the only child that it is connected with, which has a child itself: that is in
/// the middle of work. A pipe that it inherited does not matter; a child that sleeps does not work for it.
#[test]
fn a_child_that_is_all_it_is_connected_with() {
    let asked = |other: &str, work: &str| {
        let recording = Recording::of(&format!(
            "process shell 90\nthread shell shell 90
            process app 100
            process middle 200\nprocess worker 300
            0 cpu3 switch idle -> shell
            0.05ms fork shell -> main app 100
            0.1ms fork main -> middle middle 200
            0.2ms fork middle -> worker worker 300
            0.1ms rename main app
            0.3ms cpu0 switch idle -> main
            0.3ms cpu1 switch idle -> middle
            0.3ms cpu2 switch idle -> worker
            1ms open app object=pipe:5 access=read
            1ms open middle object=pipe:5 access=write
            1ms open middle object=pipe:6 access=read
            1ms open worker object=pipe:6 access=write
            1ms open shell object=pipe:9 access=read
            1ms open app object=pipe:9 access=write
            {other}
            2ms cpu1 switch middle -> idle sleeping poll
            2ms cpu2 switch worker -> idle {work}
            3ms cpu0 switch main -> idle sleeping poll
            4ms cpu3 switch shell -> idle sleeping wait4
            end 5s"
        ));
        source(&recording, "main") == Some(recording.t("middle"))
    };
    let writes = "uninterruptible openat stack=open;write_file";
    assert!(asked("", writes));
    assert!(!asked(
        "",
        "sleeping clock_nanosleep arg=9s stack=nanosleep"
    ));
    let server =
        "1ms open app object=unix:1\n1ms socket app object=unix:1 peer=unix:2 peer-process=shell
        1ms open other object=unix:2";
    let server = format!("process other 400\nthread other other 400\n{server}");
    assert!(!asked(&server, writes));
}

/// `expect` waits for what its only child writes to a terminal, and that reads what `expect` is to write.
#[test]
fn a_child_that_reads_the_terminal() {
    let recording = Recording::of(
        "process expect 100\nthread main expect 100 name=expect
        process keygen 200
        0 cpu0 switch idle -> main
        0.1ms fork main -> keygen keygen 200
        0.2ms cpu1 switch idle -> keygen
        1ms cpu0 switch main -> idle sleeping select
        3ms cpu1 switch keygen -> idle sleeping read object=char:1
        end 5s",
    );
    let believed = recording.last_beliefs("main");
    assert_eq!(
        believed[0].edge.source,
        Source::Thread(recording.t("keygen"))
    );
}

/// A program with one thread and one child waits for that: where it polls what is not known, and where it polls a
/// pipe that only itself writes to, as it does when a signal comes. A second thread may be what writes there, of
/// two children it is not told which one it waits for, and of one that is idle only the end can be awaited.
#[test]
fn one_thread_and_one_child() {
    let asked = |more: &str, wait: &str, child: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app
            process child 200\nprocess other 300\nprocess grand 400
            0 open app object=pipe:5 access=read\n0 open app object=pipe:5 access=write
            0 cpu0 switch idle -> main
            0.1ms fork main -> child child 200
            {more}
            0.2ms cpu1 switch idle -> child
            1ms cpu1 switch child -> idle sleeping {child}
            200ms cpu0 switch main -> idle sleeping {wait}
            end 5s"
        ));
        source(&recording, "main") == Some(recording.t("child"))
    };
    let (polls, own) = ("pselect6", "pselect6 object=pipe:5");
    let works = "read object=inet:9 stack=read;fetch";
    assert!(asked("", polls, works));
    assert!(asked("", own, works));
    assert!(!asked("", "read object=pipe:5", works), "it left it open");
    let second = "0.15ms fork main -> mate app 101";
    assert!(!asked(second, polls, works));
    assert!(!asked(second, own, works));
    let two = "0.15ms fork main -> other other 300";
    assert!(!asked(two, polls, works));
    assert!(!asked(two, own, works));
    let idle = "epoll_wait object=epoll:3 stack=epoll_wait;serve";
    assert!(!asked("", polls, idle));
    assert!(asked("", own, idle));
    let grandchild = "0.15ms fork child -> grand grand 400
        0.2ms cpu2 switch idle -> grand
        1ms cpu2 switch grand -> idle sleeping read object=inet:9 stack=read;fetch";
    assert!(asked(grandchild, polls, polls), "which polls for its own");
    assert!(!asked("", polls, polls));
}

/// None of a process's threads can go on: its main thread waits for others to end, and the one that is most
/// deep in work stands for them.
#[test]
fn a_main_thread_of_a_deadlocked_process() {
    let recording = Recording::of(
        "process app 100\nthread main app 100 name=app\nthread first app 101\nthread second app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> first
        0 cpu2 switch idle -> second
        1ms cpu1 switch first -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;wait;load;parse;run
        1ms cpu2 switch second -> idle sleeping futex arg=128 object=futex:0x50 stack=pthread_cond_wait;wait;run
        2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x90 stack=pthread_cond_wait;join_all
        end 5s",
    );
    let believed = recording.last_beliefs("main");
    assert_eq!(
        believed[0].edge.source,
        Source::Thread(recording.t("first"))
    );
}

/// A main thread waits for a condition, and of the others one does too, within work; those that wait for the
/// next piece of work, or read what the process is to do, owe nothing.
#[test]
fn the_only_other_thread_at_a_condition() {
    let owed = |stack: &str| {
        let recording = Recording::of(&format!(
            "process boss 90\nthread boss boss 90
            process app 100\nthread reader app 101\nthread exporter app 102
            0 cpu3 switch idle -> boss
            0 fork boss -> main app 100
            0 open boss object=pipe:5 access=write
            0 open app object=pipe:5 access=read
            0.1ms cpu0 switch idle -> main
            0.1ms cpu1 switch idle -> reader
            0.1ms cpu2 switch idle -> exporter
            1ms cpu1 switch reader -> idle sleeping read object=pipe:5 stack=read;receive
            1ms cpu2 switch exporter -> idle sleeping futex arg=128 object=futex:0x50 stack=pthread_cond_wait;{stack}
            2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x90 stack=pthread_cond_wait;wait_for_export
            end 5s"
        ));
        let believed = recording.last_beliefs("main");
        believed[0].edge.source == Source::Thread(recording.t("exporter"))
    };
    assert!(owed("Event.wait;flush_rows"));
    assert!(!owed("Queue.get;serve"));
}

/// A commit waits for a standby, of which another process of the server has the connection: the standby is
/// stopped in the middle of a look at it.
#[test]
fn a_standby_that_is_stopped() {
    let recording = Recording::of(
        "process postmaster 100\nthread postmaster postmaster 100 name=postgres
        process backend 101\nprocess sender 102
        process standby 300\nthread standby standby 300
        0 cpu0 switch idle -> postmaster
        0.1ms fork postmaster -> main backend 101
        0.1ms fork postmaster -> sender sender 102
        0.1ms rename main postgres\n0.1ms rename sender postgres
        0.2ms cpu1 switch idle -> main
        0.2ms cpu2 switch idle -> sender
        0.2ms cpu3 switch idle -> standby
        0.2ms socket standby object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:5432
        0.2ms socket sender object=inet:2 peer=inet:1 local=127.0.0.1:5432 remote=127.0.0.1:5000
        0.2ms socket postmaster object=inet:3 local=127.0.0.1:5432
        0.2ms open postmaster object=inet:3 kind=listener
        0.2ms open standby object=inet:1
        0.2ms open sender object=inet:2
        1ms cpu3 switch standby -> idle stopped poll object=inet:1
        2ms cpu2 switch sender -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;exec_replication_command
        2ms cpu1 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;SyncRepWaitForLSN
        end 5s",
    );
    assert_eq!(source(&recording, "main"), Some(recording.t("standby")));
}

/// An event loop that has a connection to itself, to be woken by, has not asked itself.
#[test]
fn a_loop_does_not_ask_itself() {
    let recording = Recording::of(
        "process app 100\nthread main app 100 name=app
            0.1ms socket app object=inet:1 peer=inet:2 local=127.0.0.1:4000 remote=127.0.0.1:4001
            0.1ms socket app object=inet:2 peer=inet:1 local=127.0.0.1:4001 remote=127.0.0.1:4000
            0.1ms socket app object=inet:3 local=127.0.0.1:4001
            0.1ms open app object=inet:3 kind=listener
            0.1ms open app object=inet:1
            0.1ms open app object=inet:2
            0.2ms cpu1 switch idle -> main
            1ms transfer main sent 1 object=inet:1 peer=inet:2
            2ms cpu1 switch main -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;publish
            end 5s",
    );
    assert_ne!(source(&recording, "main"), Some(recording.t("main")));
}

/// A pipe of its parent's brings an event loop nothing if that can only write to it, or if others read it too: then
/// it tells them that the parent has exited.
#[test]
fn a_pipe_that_brings_nothing() {
    let owed = |access: &str, other: &str| {
        let recording = Recording::of(&format!(
            "process master 100\nthread master master 100\nprocess app 101\nprocess other 102
            0 cpu0 switch idle -> master
            0.1ms fork master -> main app 101
            0.1ms fork master -> sibling other 102
            0.2ms cpu1 switch idle -> main
            0.3ms open app object=pipe:7 access={access}
            {other}
            0.3ms open master object=pipe:7
            1ms cpu0 switch master -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;serve
            2ms cpu1 switch main -> idle sleeping epoll_wait object=pipe:7 stack=epoll_wait;serve
            end 5s"
        ));
        source(&recording, "main") == Some(recording.t("master"))
    };
    assert!(owed("read", ""));
    assert!(!owed("write", ""));
    assert!(!owed("read", "0.3ms open other object=pipe:7 access=read"));
}

/// A thread that waits for a lock, while another sleeps: one that began to before may have it; one that has
/// gone through several short sleeps since goes on, and has not.
#[test]
fn who_sleeps_may_have_a_lock() {
    let holder = |length: &str, naps: u32| {
        let mut text = format!(
            "process app 100\nthread main app 100 name=app\nthread other app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> other
            1ms cpu1 switch other -> idle sleeping clock_nanosleep arg={length}
            2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 stack=sem_wait;PyThread_acquire_lock_timed;reload\n"
        );
        for nap in 1..naps {
            let at = 1_000 * nap;
            text += &format!(
                "{at}ms cpu1 wake idle -> other in=timer
                {at}ms cpu1 switch idle -> other
                {}ms cpu1 switch other -> idle sleeping clock_nanosleep arg={length}\n",
                at + 1
            );
        }
        let recording = Recording::of(&format!("{text}end 9s"));
        let believed = recording.last_beliefs("main");
        believed[0].edge.source == Source::Thread(recording.t("other"))
    };
    assert!(holder("9s", 1));
    assert!(!holder("1s", 9));
}

/// A signal's handler that allocates while its thread is within the allocator waits for itself; a thread that
/// waits for a static variable waits for the one that initialises it.
#[test]
fn locks_whose_holder_the_stacks_tell() {
    let alone = |stack: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app\nthread loader app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> loader
            1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x90 stack=pthread_join;Config;instance;main
            1ms cpu1 switch loader -> idle sleeping futex arg=128 object=futex:0x10 stack={stack}
            end 5s"
        ));
        let source = source(&recording, "loader");
        ["main", "loader"]
            .into_iter()
            .find(|name| source == Some(recording.t(name)))
    };
    let wait = "__lll_lock_wait_private;malloc";
    assert_eq!(
        alone(&format!("{wait};flush;handler;_int_malloc;malloc;parse")),
        Some("loader")
    );
    assert_ne!(alone(&format!("{wait};_int_malloc;parse")), Some("loader"));
    assert_eq!(
        alone("syscall;__cxa_guard_acquire;instance;load"),
        Some("main")
    );
}

/// Two threads of Java that each initialise a class that uses the other's; the one that only computes while it
/// initialises one waits for none.
#[test]
fn classes_that_wait_for_each_other() {
    const WAITS: &str =
        "pthread_cond_wait;ObjectMonitor::wait(long);InstanceKlass::initialize_impl(JavaThread*)";
    let recording = Recording::of(&format!(
        "process java 100\nthread main java 100 name=java\nthread a java 101\nthread b java 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> a
        0 cpu2 switch idle -> b
        1ms cpu1 switch a -> idle sleeping futex arg=128 object=futex:0x10 stack={WAITS};A.<clinit>
        1ms cpu2 switch b -> idle sleeping futex arg=128 object=futex:0x50 stack={WAITS};B.<clinit>
        2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x90 stack=pthread_cond_wait;join
        end 5s"
    ));
    assert_eq!(source(&recording, "a"), Some(recording.t("b")));
    assert_eq!(source(&recording, "b"), Some(recording.t("a")));
    assert_eq!(source(&recording, "main"), None);
}

/// Two locks of a circle, one of which a database keeps: a thread that waits for the other in its program, and
/// the one that asked for a row.
#[test]
fn a_row_and_a_lock_of_the_program() {
    let recording = Recording::of(
        "process app 200\nthread boss app 200 name=app\nthread restock app 201\nthread sell app 202
        process postmaster 100\nthread postmaster postmaster 100 name=postgres
        process first 101\nprocess second 102
        0 cpu0 switch idle -> postmaster
        0.1ms fork postmaster -> first first 101
        0.1ms fork postmaster -> second second 102
        0.1ms rename first postgres\n0.1ms rename second postgres
        0.2ms cpu1 switch idle -> first
        0.2ms cpu2 switch idle -> second
        0.2ms cpu3 switch idle -> restock
        0.2ms cpu4 switch idle -> sell
        0.2ms cpu5 switch idle -> boss
        0.2ms socket app object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:5432
        0.2ms socket first object=inet:2 peer=inet:1 local=127.0.0.1:5432 remote=127.0.0.1:5000
        0.2ms socket app object=inet:3 peer=inet:4 local=127.0.0.1:5001 remote=127.0.0.1:5432
        0.2ms socket second object=inet:4 peer=inet:3 local=127.0.0.1:5432 remote=127.0.0.1:5001
        0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
        0.2ms open postmaster object=inet:5 kind=listener
        0.2ms open app object=inet:1 last=sent
        0.2ms open app object=inet:3 last=received
        0.2ms open first object=inet:2
        0.2ms open second object=inet:4
        1ms cpu4 switch sell -> idle sleeping futex arg=128 object=futex:0x10 stack=sem_wait;PyThread_acquire_lock_timed;sell
        1ms cpu3 switch restock -> idle sleeping poll object=inet:1 stack=poll;PQgetResult;restock
        1ms cpu5 switch boss -> idle sleeping futex arg=128 object=futex:0x50 stack=sem_wait;PyThread_acquire_lock_timed;Thread._wait_for_tstate_lock
        2ms cpu2 switch second -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;PostgresMain
        2ms cpu1 switch first -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;WaitLatch;ProcSleep
        end 5s",
    );
    assert_eq!(source(&recording, "first"), Some(recording.t("sell")));
    let believed = recording.last_beliefs("sell");
    assert_eq!(
        believed[0].edge.source,
        Source::Thread(recording.t("restock"))
    );
}
