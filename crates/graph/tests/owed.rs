//! Who owes a thread what it waits for, where nothing ended the wait: told apart by how that is
//! known.

mod common;

use common::Recording;
use hangdog_graph::owed::asked_again;
use hangdog_graph::{EdgeKind, Source};

/// A thread sends over a connection that other uses at its other end, and waits for the reply:
/// other is its peer. Another time it wakes other right after a nap, and
/// then waits for a condition: then it is asked.
#[test]
fn a_peer_is_not_one_that_was_asked() {
    let peer = "1ms socket app object=unix:1 peer=unix:2 peer-process=service
        1ms transfer other received 1 object=unix:2 peer=unix:1
        2ms transfer main sent 8 object=unix:1 peer=unix:2
        3ms cpu0 switch main -> idle sleeping recvfrom object=unix:1";
    let asked = "1ms cpu0 switch main -> idle sleeping clock_nanosleep
        1500us cpu0 wake idle -> main in=timer
        1600us cpu0 switch idle -> main
        2ms cpu0 wake main -> other futex op=wake object=futex:0x20
        3ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10";
    for (events, kind) in [(peer, EdgeKind::Peer), (asked, EdgeKind::Asked)] {
        let recording = Recording::of(&format!(
            "process app 100
            thread main app 100 name=app
            process service 200
            thread other service 200
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> other
            {events}
            end 50ms"
        ));
        let found: Vec<EdgeKind> = recording
            .last_beliefs("main")
            .into_iter()
            .filter(|belief| belief.edge.source == Source::Thread(recording.t("other")))
            .map(|belief| belief.edge.kind)
            .collect();
        assert_eq!(found, [kind]);
    }
}

/// A program, its other threads, and processes beside it; `events` end with a wait of `main` that
/// nothing ends. Who is believed to owe it, and how that is known.
fn owed(people: &str, events: &str) -> Option<(String, EdgeKind)> {
    let recording = Recording::of(&format!(
        "process app 100
        thread main app 100 name=app
        {people}
        0 cpu0 switch idle -> main
        {events}
        end 5s"
    ));
    let believed = recording.last_beliefs("main");
    let edge = &believed.first()?.edge;
    match edge.source {
        Source::Thread(thread) => {
            let name = recording
                .trace
                .threads
                .iter()
                .find(|(_, utid)| **utid == thread);
            Some((name?.0.clone(), edge.kind))
        }
        _ => None,
    }
}

fn by(name: &str, kind: EdgeKind) -> Option<(String, EdgeKind)> {
    Some((name.to_owned(), kind))
}

/// A request over a connection that was closed before anybody looked at what is open: what the
/// thread sent last. One that it sent before it received something else is done with.
#[test]
fn a_request_by_a_connection_that_was_never_seen_open() {
    let people = "process server 200\nthread server server 200
        0 socket app object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket server object=inet:3 local=127.0.0.1:80
        0 socket app object=inet:4 local=127.0.0.1:6000 remote=127.0.0.1:90
        0 cpu1 switch idle -> server
        0 open server object=inet:3 kind=listener
        1ms cpu1 switch server -> idle sleeping read object=file:7";
    let wait = "3ms cpu0 switch main -> idle sleeping poll";
    let asked = format!("2ms transfer main sent 8 object=inet:1\n{wait}");
    assert_eq!(owed(people, &asked), by("server", EdgeKind::Peer));
    let done = format!(
        "1ms transfer main sent 8 object=inet:1
        2ms transfer main received 8 object=inet:4\n{wait}"
    );
    assert_eq!(owed(people, &done), None);
}

/// A pipe of which nobody was seen with the other end: it is for what the process started, as a pager or
/// a filter, whether it is read or written.
#[test]
fn a_pipe_that_was_never_seen_open() {
    let child = "0.5ms fork main -> child tool 300
        0.5ms cpu1 switch idle -> child
        1ms cpu1 switch child -> idle sleeping clock_nanosleep arg=9s";
    let wait =
        |call: &str| format!("{child}\n2ms cpu0 switch main -> idle sleeping {call} object=pipe:5");
    for call in ["read", "write"] {
        assert_eq!(
            owed("process tool 300", &wait(call)),
            by("child", EdgeKind::Peer)
        );
    }
}

/// A program that started the one which writes to a pipe has the pipe open too: it brings what comes only where it
/// does not sleep meanwhile.
#[test]
fn who_sleeps_does_not_look_after_what_it_started() {
    let people = |does: &str| {
        format!(
            "process helper 200\nthread helper helper 200
            process filter 300
            0 open app object=pipe:5 access=read
            0 open helper object=pipe:5 access=write
            0 open filter object=pipe:5 access=write
            0 cpu1 switch idle -> helper
            0.1ms fork helper -> filter filter 300
            0.2ms cpu2 switch idle -> filter
            1ms cpu1 switch helper -> idle {does}
            1ms cpu2 switch filter -> idle sleeping wait4"
        )
    };
    let wait = "2ms cpu0 switch main -> idle sleeping read object=pipe:5";
    let asleep = people("sleeping clock_nanosleep arg=9s");
    assert_eq!(owed(&asleep, wait), by("filter", EdgeKind::Peer));
    let waiting = people("sleeping wait4");
    assert_eq!(owed(&waiting, wait), by("helper", EdgeKind::Peer));
}

/// A pipe that the reader's process has to itself, to read and to write: no other process is named, and
/// never the recorder.
#[test]
fn a_pipe_of_its_own() {
    let child = "process tool 300\n0 open app object=pipe:5 access=read";
    let wait = "0.5ms fork main -> child tool 300
        0.5ms cpu1 switch idle -> child
        1ms cpu1 switch child -> idle sleeping clock_nanosleep arg=9s
        2ms cpu0 switch main -> idle sleeping read object=pipe:5";
    assert_eq!(owed(child, wait), by("child", EdgeKind::Peer));
    let both = format!("{child}\n0 open app object=pipe:5 access=write");
    assert_eq!(owed(&both, wait), None);

    let mut recording = Recording::of(&format!(
        "process app 100\nthread main app 100
        {child}\n0 cpu0 switch idle -> main\n{wait}\nend 5s"
    ));
    let source = |recording: &Recording| recording.last_beliefs("main")[0].edge.source;
    assert_eq!(source(&recording), Source::Thread(recording.t("child")));
    recording.recorder = Some(300);
    assert_eq!(source(&recording), Source::Nobody);
}

/// A program that talks to itself: its request is with the thread that is in the middle of work, or with
/// the only one that waits for a condition, not with the one that waits for connections. Of two that
/// wait for a condition neither is named.
#[test]
fn a_connection_to_its_own_process() {
    let at_lock = "sem_wait;PyThread_acquire_lock_timed;handle";
    let at_condition = "sem_wait;PyThread_acquire_lock_timed;Condition.wait;Queue.get;handle";
    let people = |handler: &str, more: &str| {
        format!(
            "thread handler app 101\nthread acceptor app 102\nthread third app 103
            0 socket app object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket app object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
            0 socket app object=inet:3 local=127.0.0.1:80
            0 open app object=inet:1 last=sent
            0 open app object=inet:2 last=received
            0 open app object=inet:3 kind=listener
            0 cpu1 switch idle -> handler
            0 cpu2 switch idle -> acceptor
            0 cpu3 switch idle -> third
            1ms cpu1 switch handler -> idle sleeping futex arg=128 object=futex:0x1 stack={handler}
            1ms cpu2 switch acceptor -> idle sleeping accept object=inet:3
            1ms cpu3 switch third -> idle {more}"
        )
    };
    let wait = "2ms cpu0 switch main -> idle sleeping recvfrom object=inet:1";
    let dead = "dead";
    let idle = format!("sleeping futex arg=128 object=futex:0x2 stack={at_condition}");
    let handler = by("handler", EdgeKind::Peer);
    assert_eq!(owed(&people(at_lock, dead), wait), handler);
    assert_eq!(owed(&people(at_lock, &idle), wait), handler);
    assert_eq!(owed(&people(at_condition, dead), wait), handler);
    assert_eq!(owed(&people(at_condition, &idle), wait), None);
}

/// A lock that names no holder, by the functions of the language: who of the other threads is amid
/// something may have it; one that waits for work has not.
#[test]
fn a_lock_without_a_name() {
    let people = "thread sleeper app 101\nthread idler app 102
        0 cpu1 switch idle -> sleeper
        0 cpu2 switch idle -> idler
        1ms cpu1 switch sleeper -> idle sleeping clock_nanosleep arg=9s stack=nanosleep;retry
        1ms cpu2 switch idler -> idle sleeping futex arg=128 object=futex:0x9 stack=pthread_cond_wait;_worker";
    let wait = |stack: &str| {
        format!(
            "2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x1 stack={stack}"
        )
    };
    let lock = "sem_wait;PyThread_acquire_lock_timed;refresh";
    assert_eq!(owed(people, &wait(lock)), by("sleeper", EdgeKind::Amid));
    let java = "pthread_cond_timedwait;park;ObjectMonitor::EnterI(JavaThread*)";
    assert_eq!(owed(people, &wait(java)), by("sleeper", EdgeKind::Amid));
}

/// A process that is stopped, two hands away: the one that was asked is idle, and its helper at the
/// other end of a pipe does not go on. Where nobody is stopped, nobody is named beyond the first.
#[test]
fn one_that_is_stopped_within_reach() {
    let people = |left: &str| {
        format!(
            "process relay 200\nthread relay relay 200
            process helper 300\nthread helper helper 300
            0 open app object=pipe:4 access=read
            0 open relay object=pipe:4 access=write
            0 open relay object=pipe:5 access=read
            0 open helper object=pipe:5 access=write
            0 cpu1 switch idle -> relay
            0 cpu2 switch idle -> helper
            1ms cpu1 switch relay -> idle sleeping poll
            1ms cpu2 switch helper -> idle {left}"
        )
    };
    let wait = "2ms cpu0 switch main -> idle sleeping poll";
    assert_eq!(owed(&people("stopped"), wait), by("helper", EdgeKind::Peer));
    assert_eq!(owed(&people("sleeping poll"), wait), None);
}

/// A database's thread that waits for a lock: another client of it has that, which waits for nothing
/// from it.
#[test]
fn a_lock_of_a_database() {
    let people = "process one 200\nthread one one 200
        process two 300\nthread two two 300
        0 socket app object=unix:1 peer=unix:11 peer-process=one local=/run/db
        0 socket one object=unix:11 peer=unix:1 remote=/run/db
        0 socket app object=unix:2 peer=unix:12 peer-process=two local=/run/db
        0 socket two object=unix:12 peer=unix:2 remote=/run/db
        0 open app object=unix:1\n0 open app object=unix:2
        0 open one object=unix:11\n0 open two object=unix:12
        0 cpu1 switch idle -> one
        0 cpu2 switch idle -> two
        1ms cpu1 switch one -> idle sleeping recvfrom object=unix:11
        1ms cpu2 switch two -> idle sleeping read object=char:3";
    let wait = "2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x1 stack=pthread_cond_wait;lock_wait(que_thr_t*)";
    assert_eq!(owed(people, wait), by("two", EdgeKind::Holder));
}

/// A client that waits for one of several descriptors, as ssh does, and asked before the recording began:
/// nobody knows which way the last bytes went. The server at the other end of its only connection has a
/// child at work; one that has nothing to do owes nothing.
#[test]
fn the_only_server_of_a_client() {
    let who = |does: &str| {
        let recording = Recording::of(&format!(
            "process ssh 100\nthread ssh ssh 100
            process sshd 200\nthread sshd sshd 200
            process hook 300
            0 socket ssh object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:22
            0 socket sshd object=inet:2 local=127.0.0.1:22 remote=127.0.0.1:5001
            0 socket sshd object=inet:9 local=127.0.0.1:22
            0 open ssh object=inet:1
            0 open sshd object=inet:2
            0 cpu0 switch idle -> ssh
            0 cpu1 switch idle -> sshd
            0.1ms fork sshd -> hook hook 300
            0.2ms cpu2 switch idle -> hook
            {does}
            1ms cpu1 switch sshd -> idle sleeping poll
            2ms cpu0 switch ssh -> idle sleeping poll
            end 5s"
        ));
        recording.last_edge("ssh").source == Source::Thread(recording.t("sshd"))
    };
    assert!(who(""));
    assert!(!who("0.3ms cpu2 switch hook -> idle sleeping poll"));
}

/// An editor polls, and a thread of it does so too; the server of a language that it has started, and is connected with, asked
/// somebody else and has got no answer. One that waits for its next order has no work.
#[test]
fn a_child_that_a_program_is_connected_with() {
    let who = |does: &str| {
        let recording = Recording::of(&format!(
            "process editor 100\nthread editor editor 100\nthread screen editor 101
            process language 200
            process schemas 300\nthread schemas schemas 300
            0 socket schemas object=inet:9 local=127.0.0.1:90
            0 open schemas object=inet:9 kind=listener
            0 cpu0 switch idle -> editor
            0.1ms fork editor -> language language 200
            0.2ms socket editor object=unix:3 peer=unix:4 peer-process=language
            0.2ms socket language object=unix:4 peer=unix:3 peer-process=editor
            0.2ms open editor object=unix:3\n0.2ms open language object=unix:4
            0.3ms cpu1 switch idle -> language
            0.3ms socket language object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:90
            0.3ms socket schemas object=inet:2 local=127.0.0.1:90 remote=127.0.0.1:5001
            0.3ms open language object=inet:1\n0.3ms open schemas object=inet:2
            0.4ms transfer language sent 141 object=inet:1
            0.5ms cpu65535 switch screen -> idle sleeping epoll_wait object=epoll:2 stack=epoll_wait;uv_run
            0.5ms cpu65535 switch schemas -> idle sleeping epoll_wait object=epoll:3 stack=epoll_wait;serve
            1ms cpu1 switch language -> idle sleeping {does}
            2ms cpu0 switch editor -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;uv_run;loop_poll_events
            end 5s"
        ));
        recording.last_edge("editor").source == Source::Thread(recording.t("language"))
    };
    assert!(who("ppoll object=inet:1 stack=ppoll;load_schema"));
    assert!(!who("recvfrom object=unix:4 stack=recv;next_order"));
}

/// A browser's own threads do nothing, and one reads its own pipe; what was asked of it is with the process that its helper has
/// started, which computes. Where none does, its main thread should answer.
#[test]
fn a_program_of_several_processes() {
    let who = |does: &str| {
        let recording = Recording::of(&format!(
            "process driver 100\nthread driver driver 100
            process browser 200\nthread main browser 200\nthread detector browser 201
            process zygote 300\nprocess renderer 400
            0 socket driver object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:90
            0 socket browser object=inet:2 local=127.0.0.1:90 remote=127.0.0.1:5001
            0 socket browser object=inet:9 local=127.0.0.1:90
            0 open driver object=inet:1
            0 open browser object=inet:2
            0 open browser object=pipe:7
            0 cpu0 switch idle -> driver
            0 cpu1 switch idle -> main
            0.1ms fork main -> zygote zygote 300
            0.2ms cpu2 switch idle -> zygote
            0.3ms fork zygote -> renderer renderer 400
            0.4ms cpu2 switch zygote -> idle sleeping recvfrom object=unix:5
            0.5ms cpu3 switch idle -> renderer
            0.5ms cpu65535 switch detector -> idle sleeping read object=pipe:7
            {does}
            1ms cpu1 switch main -> idle sleeping poll
            2ms cpu0 switch driver -> idle sleeping recvfrom object=inet:1
            end 5s"
        ));
        recording.last_edge("driver").source == Source::Thread(recording.t("renderer"))
    };
    assert!(who(""));
    assert!(!who("0.6ms cpu3 switch renderer -> idle sleeping poll"));
}

/// A bus starts a service by a copy of itself, which only looks after it: a client of the bus that waits is
/// kept by the service, as long as that is in the middle of work.
#[test]
fn a_service_that_a_copy_of_the_bus_started() {
    let who = |does: &str| {
        let recording = Recording::of(&format!(
            "process bus 200\nthread bus bus 200
            process copy 300\nprocess service 400
            0 socket bus object=unix:9 local=/run/bus
            0 open bus object=unix:9 kind=listener
            0 socket bus object=unix:2 peer=unix:1 local=/run/bus
            0 open bus object=unix:2
            0 cpu1 switch idle -> bus
            0.1ms fork bus -> copy copy 300
            0.1ms rename copy bus
            0.2ms fork copy -> service service 400
            0.2ms cpu2 switch idle -> service
            0.3ms cpu2 switch service -> idle sleeping {does}
            2ms cpu1 switch bus -> idle sleeping epoll_wait object=epoll:7
            end 5s"
        ));
        recording.last_edge("bus").source == Source::Thread(recording.t("service"))
    };
    assert!(who("clock_nanosleep arg=9s stack=nanosleep;load_index"));
    assert!(!who("poll stack=poll;run_loop"));
}

/// A process that looks again and again whether its child has ended waits for that child.
#[test]
fn a_child_that_is_looked_after() {
    let events = "0.5ms fork main -> child tool 300
        0.5ms cpu1 switch idle -> child
        2ms cpu0 switch main -> idle sleeping poll stack=poll;Popen._communicate;convert";
    assert_eq!(
        owed("process tool 300", events),
        by("child", EdgeKind::Awaited)
    );
}

/// A listening server on port 6379, in the process of this name, and connections of clients to it, each
/// with its object and after that the server's end.
fn served(server: &str, clients: &[&str]) -> String {
    let mut text = format!(
        "0 socket {server} object=inet:9 local=127.0.0.1:6379
        0 open {server} object=inet:9 kind=listener\n"
    );
    for (n, client) in clients.iter().enumerate() {
        let (own, other, port) = (2 * n + 1, 2 * n + 2, 5001 + n);
        text += &format!(
            "0 socket {client} object=inet:{own} local=127.0.0.1:{port} remote=127.0.0.1:6379
            0 socket {server} object=inet:{other} local=127.0.0.1:6379 remote=127.0.0.1:{port}
            0 open {client} object=inet:{own}\n"
        );
    }
    text
}

/// A broker waits for what a client of its is to send: the one that took something last and works on
/// it, and not one that waits at the broker itself.
#[test]
fn a_broker_waits_for_whoever_took_the_job() {
    let people = |name: &str| {
        format!(
            "process {name} 200\nthread broker {name} 200 name={name}
        process taker 300\nthread taker taker 300
        process idler 400\nthread idler idler 400
        {}
        0 cpu1 switch idle -> broker
        0 cpu2 switch idle -> taker
        0 cpu3 switch idle -> idler
        1ms cpu3 switch idler -> idle sleeping recvfrom object=inet:5
        1ms transfer broker sent 8 object=inet:4",
            served(name, &["app", "taker", "idler"])
        )
    };
    let who = |name: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app\n{}
            2ms cpu1 switch broker -> idle sleeping epoll_wait object=epoll:7
            end 5s",
            people(name)
        ));
        recording.last_edge("broker").source == Source::Thread(recording.t("taker"))
    };
    assert!(who("redis-server"));
    assert!(!who("web-server"), "one that keeps nothing for others");
}

/// One that takes the jobs and has a child do them waits at the broker as who has nothing to do: the child
/// is the one.
#[test]
fn a_broker_waits_for_whom_the_taker_has_at_work() {
    let who = |child: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app
            process redis-server 200\nthread broker redis-server 200 name=redis-server
            process taker 300\nthread taker taker 300
            process worker 400
            {}
            0 cpu1 switch idle -> broker
            0 cpu2 switch idle -> taker
            0.2ms fork taker -> worker worker 400
            0.3ms cpu3 switch idle -> worker
            {child}
            1ms cpu2 switch taker -> idle sleeping epoll_wait object=epoll:5
            2ms cpu1 switch broker -> idle sleeping epoll_wait object=epoll:7
            end 5s",
            served("redis-server", &["app", "taker"])
        ));
        recording.last_edge("broker").source == Source::Thread(recording.t("worker"))
    };
    assert!(who(""));
    assert!(!who(
        "0.5ms cpu3 switch worker -> idle sleeping epoll_wait object=epoll:8"
    ));
}

/// A library that tries again and again to make a lock file waits for the only other process that runs the
/// same program, unless that tries too.
#[test]
fn who_has_a_lock_file() {
    let wait = "2ms cpu0 switch main -> idle sleeping clock_nanosleep arg=1s stack=nanosleep;TimeoutTimer.timed_out_or_sleep;create";
    let holder = |other: &str, does: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app
            process other 200\nthread other other 200 name={other}
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> other
            1ms cpu1 switch other -> idle sleeping {does}
            {wait}
            end 5s"
        ));
        let evidence = recording.evidence();
        let (wait, _) = *recording.waits(recording.t("main")).last().expect("a wait");
        let edge = asked_again(&evidence, &wait, None, wait.end)?;
        Some((edge.source, edge.kind))
    };
    let reads = "read object=pipe:5 stack=read;copy";
    let polls = "clock_nanosleep arg=1s stack=nanosleep;TimeoutTimer.timed_out_or_sleep;create";
    assert_eq!(
        holder("app", reads),
        Some((Source::Thread(2), EdgeKind::Amid))
    );
    assert_eq!(holder("shop", reads), None);
    assert_eq!(holder("app", polls), None);
}

/// The lock of an open file's description, of which the kernel tells no owner: whoever was seen with
/// it. A lease, or a program that allows others to open files, is named by the wait inside the kernel.
#[test]
fn holders_that_were_seen_with_what_is_waited_for() {
    let people = "process holder 200\nthread holder holder 200
        0 cpu1 switch idle -> holder
        1ms cpu1 switch holder -> idle sleeping clock_nanosleep arg=9s";
    let lock = "1ms open holder object=file:7 kind=file-lock
        1ms open app object=file:7 kind=locked-file
        2ms cpu0 switch main -> idle sleeping fcntl object=file:7";
    let holder = |events: &str| {
        let recording = Recording::of(&format!(
            "process app 100\nthread main app 100 name=app\n{people}
            0 cpu0 switch idle -> main\n{events}\nend 5s"
        ));
        let (wait, _) = recording.waits(recording.t("main"))[0];
        let edge = asked_again(&recording.evidence(), &wait, None, wait.end);
        edge.map(|edge| edge.source == Source::Thread(recording.t("holder")))
    };
    assert_eq!(holder(lock), Some(true));
    let nobody = "2ms cpu0 switch main -> idle sleeping fcntl object=file:7";
    assert_eq!(holder(nobody), None);
    let asked = |kind: &str| {
        format!(
            "1ms open holder {kind}
            2ms cpu0 switch main -> idle uninterruptible openat kstack=schedule;fanotify_handle_event;vfs_open"
        )
    };
    assert_eq!(
        owed(people, &asked("kind=keeper")),
        by("holder", EdgeKind::Peer)
    );
    assert_eq!(owed(people, &asked("object=pipe:3")), None);
}

/// Who writes to a full pipe is in the middle of work, and has the lock rather than one that wants
/// it too.
#[test]
fn a_lock_is_had_by_whoever_waits_for_room() {
    let people = "thread writer app 101\nthread waiter app 102
        0 cpu1 switch idle -> writer
        0 cpu2 switch idle -> waiter
        1ms cpu1 switch writer -> idle sleeping write object=pipe:5
        1ms cpu2 switch waiter -> idle sleeping futex arg=128 object=futex:0x9 stack=PyThread_acquire_lock_timed;emit";
    let wait = "2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x9 stack=PyThread_acquire_lock_timed;emit";
    assert_eq!(owed(people, wait), by("writer", EdgeKind::Amid));
}

/// A process that reads its signals from a descriptor waits for its child, as one in sigwait does; one that
/// reads events of files does not.
#[test]
fn a_signalfd_is_read_for_the_child() {
    let read = |kernel: &str| {
        owed(
            "process gzip 200",
            &format!(
                "1ms fork main -> gzip gzip 200
                1ms cpu1 switch idle -> gzip
                2ms cpu0 switch main -> idle sleeping clock_nanosleep
                30ms cpu0 wake idle -> main in=timer
                30100us cpu0 switch idle -> main
                31ms cpu0 switch main -> idle sleeping read object=anonymous:9 stack=read;run;main kstack={kernel};vfs_read"
            ),
        )
    };
    let expected = Some("gzip".to_owned());
    assert_eq!(read("signalfd_read_iter").map(|(name, _)| name), expected);
    assert_eq!(read("inotify_read"), None);
}

/// Processes may share an eventfd: one that has written to it each time is missed once it does not. A private
/// futex has no such partner, and a stranger's wake was an interruption.
#[test]
fn a_partner_by_a_shared_eventfd_is_expected() {
    let waits = |wait: &str| {
        let mut events = String::from("0 cpu1 switch idle -> partner\n");
        for turn in 0..12 {
            let at = 10 + 10 * turn;
            events += &format!(
                "{at}ms cpu0 switch main -> idle sleeping {wait}
                {}ms cpu1 wake partner -> main write stack=write;give
                {}us cpu0 switch idle -> main
                {}us cpu0 wake main -> helper write\n",
                at + 6,
                at * 1000 + 6010,
                at * 1000 + 6020
            );
        }
        events += &format!(
            "200ms cpu0 switch main -> idle sleeping {wait}
            900ms cpu0 wake idle -> main in=timer
            900ms cpu0 switch idle -> main
            901ms cpu0 switch main -> idle dead"
        );
        let people = "process partner 200
            thread partner partner 200
            process helper 300
            thread helper helper 300";
        owed(people, &events)
    };
    let by_eventfd = "ppoll object=eventfd:7 stack=ppoll;take_from";
    assert_eq!(
        waits(by_eventfd).map(|(name, _)| name).as_deref(),
        Some("partner")
    );
    let by_futex = "futex arg=128 object=futex:0x10 stack=pthread_cond_wait;take_from";
    assert_eq!(waits(by_futex), None);
}

/// A program that naps again and again since it signalled another, or wrote to it, waits for that; not one that
/// signalled the shell that started it, or that naps but a few times.
#[test]
fn who_was_asked_before_the_naps() {
    let asked = |asks: &str, nap: &str| {
        let recording = Recording::of(&format!(
            "process shell 50\nthread shell shell 50
            process service 200\nthread service service 200
            process stop 300
            0 cpu0 switch idle -> shell
            1ms fork shell -> stop stop 300
            900ms cpu1 switch idle -> stop
            901ms cpu1 wake stop -> {asks}
            902ms cpu1 switch stop -> idle sleeping clock_nanosleep arg={nap} stack=nanosleep;main
            end 5s"
        ));
        let evidence = recording.evidence();
        let (wait, _) = *recording.waits(recording.t("stop")).last()?;
        let edge = asked_again(&evidence, &wait, None, wait.end)?;
        Some((edge.source, edge.kind))
    };
    let service = Some((Source::Thread(2), EdgeKind::Asked));
    assert_eq!(asked("service kill arg=15", "100ms"), service);
    assert_eq!(asked("service write object=pipe:7", "100ms"), service);
    assert_eq!(asked("shell kill arg=15", "100ms"), None);
    assert_eq!(asked("service kill arg=15", "3s"), None);
}

/// A program that looks again and again whether a service has ended, and had sent its signal before the recording: its
/// command line names the service. What names a program that it started itself, or two apart, tells nothing.
#[test]
fn who_is_named_by_the_command_line_is_awaited() {
    let named = |command: &str, more: &str| {
        let recording = Recording::of(&format!(
            "process shell 50\nthread shell shell 50
            process lighttpd 200\nthread lighttpd lighttpd 200
            process stop 300
            {more}
            0 cpu0 switch idle -> shell
            1ms fork shell -> stop stop 300
            2ms exec stop {command}
            900ms cpu1 switch idle -> stop
            902ms cpu1 switch stop -> idle sleeping clock_nanosleep arg=100ms stack=nanosleep;main
            end 5s"
        ));
        let evidence = recording.evidence();
        let (wait, _) = *recording.waits(recording.t("stop")).last()?;
        let edge = asked_again(&evidence, &wait, None, wait.end)?;
        (edge.source == Source::Thread(recording.t("lighttpd"))).then_some(edge.kind)
    };
    let asked = Some(EdgeKind::Asked);
    for command in [
        "start-stop-daemon --stop --pidfile /run/lighttpd.pid",
        "start-stop-daemon --stop --exec=/usr/sbin/lighttpd",
        "killall -w lighttpd",
        "tail --pid=200",
        "waitfor --pid 200",
    ] {
        assert_eq!(named(command, ""), asked, "{command}");
    }
    assert_eq!(named("grep errors /var/log/lighttpd/errors 200", ""), None);
    assert_eq!(named("rapid-server --port 200", ""), None, "a port");
    let second = "process other 201\nthread second other 201 name=lighttpd";
    assert_eq!(named("killall -w lighttpd", second), None);
}

/// A server of one thread that waits for its next client has nothing to answer; one that reads, or that has another
/// thread, may have.
#[test]
fn a_server_that_accepts_is_done() {
    let edge = |server: &str, other: &str| {
        let recording = Recording::of(&format!(
            "process client 100
            thread client client 100
            process server 200
            thread server server 200
            {other}
            0 socket client object=inet:5 peer=inet:6 peer-process=server remote=127.0.0.1:443
            0 socket server object=inet:6 peer=inet:5 local=127.0.0.1:443
            0 cpu0 switch idle -> client
            0 cpu1 switch idle -> server
            1ms cpu1 switch server -> idle sleeping {server}
            2ms transfer client sent 24 object=inet:5 peer=inet:6
            3ms cpu0 switch client -> idle sleeping poll object=inet:5 arg=95ms
            98ms cpu0 wake idle -> client in=timer
            98.1ms cpu0 switch idle -> client
            end 200ms"
        ));
        recording.last_edge("client").source
    };
    let server = Source::Thread(2);
    assert_eq!(edge("accept4 object=inet:9", ""), Source::Timer);
    assert_eq!(edge("read object=inet:8", ""), server);
    assert_eq!(
        edge("accept4 object=inet:9", "thread worker server 201"),
        server
    );
}

/// Who is kept from a file within the kernel, by a lock that has no name, waits for the only other that is in a call
/// on it; not for one that uses another file, or where several use it.
#[test]
fn who_is_in_a_call_on_the_same_file() {
    let is_writer_where_other_has = |second: &str| {
        let recording = Recording::of(&format!(
            "process a 100\nthread reader a 100
            process b 200\nthread writer b 200
            process c 300\nthread other c 300
            0 cpu0 switch idle -> reader
            0 cpu1 switch idle -> writer
            0 cpu2 switch idle -> other
            1ms cpu1 switch writer -> idle uninterruptible fallocate object=file:7 stack=fallocate kstack=io_schedule;folio_wait_writeback;xfs_file_fallocate
            1ms cpu2 switch other -> idle uninterruptible write object=file:{second} stack=write kstack=io_schedule;write
            2ms cpu0 switch reader -> idle uninterruptible read object=file:7 stack=read kstack=rwsem_down_read_slowpath;xfs_ilock;xfs_file_read_iter
            end 5s"
        ));
        recording.last_edge("reader").source == Source::Thread(recording.t("writer"))
    };
    assert!(is_writer_where_other_has("8"));
    assert!(!is_writer_where_other_has("7"));
}

/// A parent made a pair of sockets and left it to its child. Nobody was seen to use the other end before the wait
/// ended: the thread that uses it afterwards is the peer, not the parent.
#[test]
fn who_uses_the_other_end_later() {
    let recording = Recording::of(
        "process parent 100\nthread boss parent 100
        process app 200\nthread main app 200\nthread other app 201
        0 socket app object=unix:1 peer=unix:2 peer-process=parent
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> other
        0 cpu2 switch idle -> boss
        1ms cpu2 switch boss -> idle sleeping wait4 stack=wait4;main
        1ms cpu1 switch other -> idle sleeping futex arg=128 object=futex:0x10 stack=sem_wait;work
        2ms cpu0 switch main -> idle sleeping ppoll object=unix:1 stack=ppoll;await_answer
        500ms cpu0 wake idle -> main in=timer
        500.1ms cpu0 switch idle -> main
        600ms cpu0 wake main -> other futex op=wake object=futex:0x10
        600.1ms cpu1 switch idle -> other
        610ms transfer other received 1 object=unix:2 peer=unix:1
        end 1s",
    );
    assert_eq!(
        recording.last_edge("main").source,
        Source::Thread(recording.t("other"))
    );
}
