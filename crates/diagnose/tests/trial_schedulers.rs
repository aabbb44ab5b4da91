//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with. Here: the threads of a language's
//! scheduler, what a program has used up, and what several processes share.

use crate::support::*;
use hangdog_diagnose::Class;

/// The holder of a lock that two processes share is a thread of a scheduler: it naps while two others compute
/// in turns, in several functions. The program computes, and no thread of it by itself; while none of them
/// runs, one wants to.
#[test]
fn a_scheduler_computes_by_all_of_its_threads() {
    let mut text = "process asker 50
        thread asker asker 50
        process tool 100
        thread holder tool 100
        thread one tool 101
        thread two tool 102
        0 cpu0 switch idle -> asker
        0 cpu1 switch idle -> holder
        1ms cpu1 switch holder -> one sleeping nanosleep arg=800ms stack=nanosleep;runtime.usleep;runtime.sysmon
        2ms cpu0 switch asker -> idle sleeping futex op=lock-pi object=futex:0x20 holder=holder stack=pthread_mutex_lock;lock_store\n"
        .to_owned();
    for turn in 0..4_u64 {
        let (from, to) = (1 + turn * 200, 91 + turn * 200);
        let function = ["hash", "hash", "hash", "copy"][turn as usize];
        text += &samples(
            1,
            "one",
            from + 1..to,
            &format!("{function};work;runtime.goexit"),
        );
        text += &format!(
            "{to}ms cpu1 switch one -> idle sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;runtime.stopm;runtime.findRunnable
            {to}.1ms cpu0 wake idle -> two in=timer
            {to}.2ms cpu1 switch idle -> two\n"
        );
        let end = from + 190;
        text += &samples(
            1,
            "two",
            to + 1..end,
            &format!("{function};work;runtime.goexit"),
        );
        text += &format!(
            "{end}ms cpu1 switch two -> idle sleeping futex arg=128 object=futex:0x11 stack=runtime.futex;runtime.stopm;runtime.findRunnable
            {end}.1ms cpu0 wake idle -> one in=timer
            {}ms cpu1 switch idle -> one\n",
            from + 200
        );
    }
    text += "801.5ms cpu0 wake idle -> holder in=timer
        802ms cpu1 switch one -> holder preempted
        803ms cpu1 wake holder -> asker futex op=unlock-pi object=futex:0x20
        803.1ms cpu0 switch idle -> asker
        end 804ms";
    let recording = record(&text);
    let verdict = explain(&recording, "asker", 2_000..802_000);
    let root = &verdict.root;
    assert_eq!(root.class, Class::LongRunning, "{}", verdict.sentence);
    assert_eq!(
        (root.who.pid, root.others),
        (100, 1),
        "{}",
        verdict.sentence
    );
    // The samples of both are told together: each was in the one function and in the other.
    assert_eq!(
        root.function.as_deref(),
        Some("hash"),
        "{}",
        verdict.sentence
    );
    let ran = verdict.ran.as_ref().expect("it ran");
    assert_eq!(ran.threads, 2);
    let ms = |kind| of_kind(&verdict, kind) / 1_000;
    assert!((740..=760).contains(&ms("run")), "{}", ms("run"));
    assert!((35..=45).contains(&ms("runnable")), "{}", ms("runnable"));
    assert_eq!(
        verdict.blame.iter().map(|row| row.ns).sum::<u64>(),
        800_000_000
    );
}

const ASKED: &str = "
    process client 100
    thread client client 100
    process server 200
    thread server server 200
    0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
    0 socket server object=inet:3 local=127.0.0.1:80
    0 open server object=inet:3 kind=listener unread=1
    0 cpu0 switch idle -> client
    0 cpu1 switch idle -> server
    1ms cpu1 switch server -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;serve
    2ms transfer client sent 9 object=inet:1
    3ms cpu0 switch client -> idle sleeping poll object=inet:1 stack=poll;curl_multi_poll";

/// A server that may open no more files does not accept: the answer says so, and the way says that the connection
/// is not accepted. One that has files left, or whose files another limit is about, is not said to.
#[test]
fn a_server_without_files_left_is_told() {
    let verdict = |limit: &str| {
        let recording = record(&format!("{ASKED}\n4ms {limit}\nend 6s"));
        explain(&recording, "client", 3_000..6_000_000)
    };
    let told = verdict("limit server descriptors 32 used=32");
    assert_eq!(told.root.who.pid, 200, "{}", told.sentence);
    let files = "server has as many files open as it may, 32 (RLIMIT_NOFILE)";
    assert!(told.sentence.contains(files), "{}", told.sentence);
    let edge = told.path[0].edge.as_ref().expect("it leads on");
    let reason = &edge.reason;
    assert!(reason.contains("has not accepted that yet"), "{reason}");
    for other in [
        "limit client descriptors 32 used=32",
        "limit server memory 32 used=32",
    ] {
        let told = verdict(other);
        assert!(!told.sentence.contains("files"), "{}", told.sentence);
    }
}

/// A connection that comes about late: by a server that may open no more files, though it has nothing else to do, and
/// not by the network, as where the server has some left.
#[test]
fn a_server_without_files_left_accepts_late() {
    let root = |limit: &str| {
        let recording = record(&format!(
            "process client 100
            thread client client 100
            process server 200
            thread server server 200
            0 socket server object=inet:3 local=127.0.0.1:80
            0 open server object=inet:3 kind=listener
            0 cpu0 switch idle -> client
            0 cpu1 switch idle -> server
            1ms cpu1 switch server -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;serve
            2ms socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80 connecting=yes
            3ms cpu0 switch client -> idle sleeping connect object=inet:1 stack=connect;load
            {limit}
            5000ms cpu0 wake idle -> client in=softirq vector=3
            5000.1ms cpu0 switch idle -> client
            5000.2ms transfer client sent 8 object=inet:1
            5000.3ms cpu0 switch client -> idle dead
            end 6s"
        ));
        let verdict = explain(&recording, "client", 3_000..5_000_000);
        (verdict.root.who.pid, verdict.sentence)
    };
    let (pid, sentence) = root("4000ms limit server descriptors 32 used=32");
    assert_eq!(pid, 200, "{sentence}");
    let (pid, sentence) = root("4000ms limit client memory 32 used=32");
    assert_eq!(pid, 100, "{sentence}");
    assert!(sentence.contains("over the network"), "{sentence}");
}

/// Two workers of a queue of Python's multiprocessing: one has the queue's lock, which all processes share, and has
/// no room in the pipe that only the parent reads, which waits for the other worker to end. The one that waits for the
/// lock is not idle, and the wait cycle is reported.
#[test]
fn the_lock_of_a_queue_that_processes_share_is_held_by_a_copy() {
    const TAKES: &str =
        "stack=__new_sem_wait_slow64;SemLock_acquire;Queue._feed@script;Thread.run@script";
    let recording = record(&format!(
        "process report 100
        thread report report 100
        process north 200
        process south 300
        0 cpu0 switch idle -> report
        0 exec report /usr/bin/python3 report.py
        1ms fork report -> north north 200
        1ms fork report -> south south 300
        2ms fork north -> northfeed north 201
        2ms fork south -> southfeed south 301
        2ms open report object=pipe:7 access=read
        2ms open south object=pipe:7 access=write
        2ms open north object=pipe:7 access=write
        3ms cpu1 switch idle -> southfeed
        4ms cpu1 switch southfeed -> northfeed sleeping write object=pipe:7 stack=write;Connection._send@script;Queue._feed@script;Thread.run@script
        5ms cpu1 switch northfeed -> north sleeping futex arg=265 object=futex:0x30 {TAKES}
        6ms cpu1 switch north -> south sleeping futex arg=128 object=futex:0x40 stack=sem_wait;Thread.join@script
        7ms cpu1 switch south -> idle sleeping futex arg=128 object=futex:0x40 stack=sem_wait;Thread.join@script
        8ms cpu0 switch report -> idle sleeping wait4 arg=200 stack=wait4;Popen.wait@script
        end 3s"
    ));
    let verdict = explain(&recording, "report", 8_000..3_000_000);
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
    let steps: Vec<u32> = verdict.path.iter().map(|step| step.who.tid).collect();
    assert_eq!(steps, [100, 200, 201, 301], "{}", verdict.sentence);
}

/// A supervisor that has told a program to stop asks without a pause whether that has ended: it runs all the time, and
/// waits all the same, for the shell of which the child computes. Where no call asks for children it computes.
#[test]
fn who_asks_for_a_child_again_and_again_waits_for_it() {
    let verdict = |asks: &str| {
        let mut text = "process ctl 50
            thread ctl ctl 50
            process super 100
            thread super super 100
            process shell 200
            process xz 300
            0 socket ctl object=unix:1 peer=unix:2 peer-process=super
            0 cpu0 switch idle -> ctl
            0 cpu1 switch idle -> super
            1ms fork super -> shell shell 200
            1ms fork shell -> xz xz 300
            2ms transfer ctl sent 9 object=unix:1
            2ms cpu0 switch ctl -> shell sleeping recvfrom object=unix:1 stack=recv;stop
            3ms cpu0 switch shell -> xz sleeping wait4 arg=300 stack=wait4;wait_for\n"
            .to_owned();
        // The samples of both, in the order of time: each tenth of the supervisor's lies in the call.
        for ms in (4..1996).step_by(4) {
            let within = if ms % 40 == 0 { asks } else { "tick" };
            text += &format!(
                "{ms}ms cpu1 sample super stack={within};runforever\n{ms}ms cpu0 sample xz stack=encode;main\n"
            );
        }
        let recording = record(&format!("{text}end 2s"));
        explain(&recording, "ctl", 2_000..2_000_000)
    };
    let asked = verdict("wait4");
    assert_eq!(asked.root.who.tid, 300, "{}", asked.sentence);
    assert_eq!(asked.root.class, Class::LongRunning, "{}", asked.sentence);
    let way: Vec<u32> = asked.path.iter().map(|step| step.who.tid).collect();
    assert_eq!(way, [50, 100, 200, 300]);
    let computed = verdict("poll");
    assert_eq!(computed.root.who.tid, 100, "{}", computed.sentence);
}

/// A test run is done, but for a thread that it left behind, which waits with a time limit: the program waits for that
/// thread, and nothing says that nobody could wake it.
#[test]
fn a_thread_that_was_left_behind_keeps_a_program_from_ending() {
    let recording = record(
        "process tests 100
        thread main tests 100 name=tests
        thread timer tests 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> timer
        1ms cpu1 switch timer -> idle sleeping futex arg=137 object=futex:0x10 stack=__new_sem_wait_slow64;PyThread_acquire_lock_timed;Condition.wait@script;main_loop@script
        500ms cpu0 switch main -> idle sleeping futex arg=393 object=futex:0x20 stack=__new_sem_wait_slow64;PyThread_acquire_lock_timed;_shutdown@script
        end 3s",
    );
    let verdict = explain(&recording, "main", 500_000..3_000_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (101, Class::LongWait),
        "{}",
        verdict.sentence
    );
    assert!(
        verdict.sentence.contains(", with a time limit"),
        "{}",
        verdict.sentence
    );
    assert!(
        !verdict.sentence.contains("none is left"),
        "{}",
        verdict.sentence
    );
    let found = hangdog_diagnose::problem::find(
        &recording.evidence(),
        hangdog_diagnose::problem::Scope::default(),
    );
    assert!(
        found
            .iter()
            .any(|it| it.thread == recording.t("main") && it.felt > 0.5)
    );
}

/// A thread of a program with a window was asked by another process, and waits for a condition until the main thread
/// comes to it, which computes. A thread that waits so for work does not.
#[test]
fn a_request_waits_for_the_main_thread() {
    let root = |function: &str| {
        let work = samples(0, "main", 3..1_990, "layout;main");
        let recording = record(&format!(
            "process second 50
            thread second second 50
            process office 100
            thread main office 100 name=office
            thread pipe office 101
            0 socket second object=unix:1 peer=unix:2 peer-process=office
            0 socket office object=unix:2 peer=unix:1 peer-process=second
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> pipe
            0.5ms transfer pipe received 9 object=unix:2
            1ms cpu1 switch pipe -> second sleeping futex arg=393 object=futex:0x10 stack=pthread_cond_wait;{function};handle
            2ms cpu1 switch second -> idle sleeping read object=unix:1 stack=read;await_reply
            {work}
            end 2s"
        ));
        explain(&recording, "second", 2_000..2_000_000).root.who.tid
    };
    assert_eq!(root("process_in_main"), 100);
    assert_eq!(root("Queue.get"), 101);
}

/// Of a scheduler with more tasks at work than there are CPUs the thread that has a lock wants one, and its own program's
/// other threads have them: the program computes, and is not kept from the CPUs.
#[test]
fn a_scheduler_that_wants_more_cpus_computes() {
    let work = samples(0, "hasher", 3..990, "hash;work");
    let recording = record(&format!(
        "process asker 50
        thread asker asker 50
        process tool 100
        thread holder tool 100
        thread hasher tool 101
        thread idler tool 102
        0 cpu0 switch idle -> holder
        0 cpu1 switch idle -> asker
        0.5ms cpu1 switch asker -> idler sleeping futex op=lock-pi object=futex:0x20 holder=holder stack=pthread_mutex_lock;lock_store
        1ms cpu1 switch idler -> idle sleeping futex arg=128 object=futex:0x11 stack=runtime.futex;runtime.stopm;runtime.findRunnable
        1ms cpu0 switch holder -> hasher preempted
        {work}
        end 1s"
    ));
    let verdict = explain(&recording, "asker", 1_000..1_000_000);
    let root = &verdict.root;
    assert_eq!(root.class, Class::LongRunning, "{}", verdict.sentence);
    assert_eq!(root.who.tid, 101, "{}", verdict.sentence);
    assert_eq!(
        root.function.as_deref(),
        Some("hash"),
        "{}",
        verdict.sentence
    );
}

/// A test run waits for its program, all of whose goroutines wait for each other: no thread of it has one to run. Where
/// it asks somebody for something, that may bring one.
#[test]
fn no_goroutine_can_run() {
    let sentence = |socket: &str| {
        let text = format!(
            "process go 100
            thread go go 100
            process shop 200
            thread second shop 201
            thread third shop 202
            {socket}
            0 cpu0 switch idle -> go
            1ms fork go -> shop shop 200
            2ms cpu1 switch idle -> shop
            3ms cpu0 switch go -> idle sleeping wait4 arg=200 stack=wait4;test
            4ms cpu1 switch shop -> second sleeping epoll_pwait object=epoll:5 arg=600000 stack=runtime.netpoll;runtime.findRunnable;runtime.schedule
            5ms cpu1 switch second -> third sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;runtime.notesleep;runtime.stopm;runtime.findRunnable
            6ms cpu1 switch third -> idle sleeping futex arg=128 object=futex:0x20 stack=runtime.futex;runtime.notetsleep;runtime.sysmon
            end 8s"
        );
        explain(&record(&text), "go", 3_000..8_000_000).sentence
    };
    let stuck = sentence("");
    let asks = sentence("0 socket shop object=inet:1 local=10.0.0.2:50000 remote=10.0.0.1:80");
    assert!(
        stuck.ends_with(
            "no goroutine of shop could run; each waited for another, a timer or a message."
        ),
        "{stuck}"
    );
    assert!(!asks.contains("goroutine"), "{asks}");
}

/// A client waits for a server of Go, no thread of which has a goroutine to run, though it has asked a database
/// before. Behind its scheduler a thread's stack shows the goroutine that it parked last: the one that waits for
/// a lock, else the deepest of those that wait for others, tells what the server waits for; one that waits for the
/// network does not, and neither does a function of it.
#[test]
fn a_parked_goroutine_tells_what_is_waited_for() {
    const IDLE: &str = "runtime.stopm;runtime.findRunnable;runtime.schedule;runtime.park_m;runtime.mcall;runtime.gopark";
    let verdict = |second: &str| {
        let recording = record(&format!(
            "process curl 100
            thread curl curl 100
            process shop 200
            thread first shop 200 name=shop
            thread second shop 201
            thread third shop 202
            process database 300
            thread database database 300
            0 socket curl object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket shop object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
            0 socket shop object=inet:3 local=127.0.0.1:80
            0 open shop object=inet:3 kind=listener
            0 socket shop object=inet:4 local=127.0.0.1:5001 remote=127.0.0.1:5432
            0 socket database object=inet:5 local=127.0.0.1:5432 remote=127.0.0.1:5001
            0 socket database object=inet:6 local=127.0.0.1:5432
            0 open database object=inet:6 kind=listener
            0 cpu0 switch idle -> curl
            0 cpu1 switch idle -> first
            0 cpu2 switch idle -> second
            0 cpu3 switch idle -> third
            0 cpu4 switch idle -> database
            1ms cpu4 switch database -> idle sleeping recvfrom object=inet:5 stack=recv;serve
            2ms transfer curl sent 80 object=inet:1 peer=inet:2
            2ms cpu0 switch curl -> idle sleeping poll object=inet:1 stack=poll;curl_easy_perform
            3ms cpu3 switch third -> idle sleeping futex arg=128 object=futex:0x30 stack=runtime.futex;{IDLE};runtime.chanrecv1;main.worker;main.deeper;main.deepest;runtime.goexit
            4ms cpu2 switch second -> idle sleeping futex arg=128 object=futex:0x20 stack=runtime.futex;{IDLE};{second};runtime.goexit
            5ms cpu1 switch first -> idle sleeping epoll_pwait object=epoll:4 stack=runtime.netpoll;{IDLE};internal/poll.runtime_pollWait;main.accept;runtime.goexit
            end 8s"
        ));
        explain(&recording, "curl", 2_000..8_000_000)
    };
    let locks = verdict(
        "sync.runtime_SemacquireMutex;sync.(*Mutex).Lock;database/sql.(*DB).conn;main.list",
    );
    assert_eq!(
        (locks.root.who.tid, locks.root.class),
        (201, Class::LongWait)
    );
    assert!(
        locks.sentence.ends_with(
            "waited for another goroutine to unlock a mutex in main.list, which called database/sql.(*DB).conn."
        ),
        "{}",
        locks.sentence
    );
    let deepest = verdict("runtime.selectgo;main.wait");
    assert_eq!(deepest.root.who.tid, 202, "{}", deepest.sentence);
    let polls = verdict("time.Sleep;main.tick");
    assert_eq!(polls.root.who.tid, 202, "{}", polls.sentence);
}

/// A recording has looked at all goroutines of a Go program, whose threads have gone on with one that ticks. Who waits to
/// send on a channel or for a lock at the next look, or in the same place at the looks before and after, tells what the
/// program waits for; of those that wait for the same the one most deep in work.
#[test]
fn a_goroutine_that_waits_at_looks_tells_what_is_waited_for() {
    const IDLE: &str = "runtime.stopm;runtime.findRunnable;runtime.schedule;runtime.park_m;runtime.mcall;runtime.gopark";
    let sentence = |before: &str, after: &str| {
        let looks = [(before, 0), (after, 7_999)].map(|(look, ms)| {
            let row = |(number, stack): (usize, &str)| {
                let number = number + 1;
                format!(
                    "{ms}ms goroutine shop {number} stack=runtime.gopark;{stack};runtime.goexit\n"
                )
            };
            let rows = look.split_whitespace().enumerate();
            rows.map(row).collect::<String>()
        });
        let mut ticks = String::new();
        for at in (5..7_900).step_by(100) {
            ticks += &format!(
                "{at}.0ms cpu1 switch shop -> idle sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;{IDLE};runtime.chanrecv2;main.tick;runtime.goexit
                {}.8ms cpu1 wake idle -> shop in=timer
                {}.9ms cpu1 switch idle -> shop\n",
                at + 99,
                at + 99
            );
        }
        let [first, last] = looks;
        let recording = record(&format!(
            "process curl 100\nthread curl curl 100
            process shop 200\nthread shop shop 200
            0 socket curl object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket shop object=inet:2 peer=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
            {first}
            0 cpu0 switch idle -> curl
            0 cpu1 switch idle -> shop
            1ms transfer curl sent 9 object=inet:1 peer=inet:2
            2ms cpu0 switch curl -> idle sleeping poll object=inet:1 stack=poll;wait_for_reply
            {ticks}
            7905ms cpu1 switch shop -> idle sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;{IDLE};runtime.chanrecv2;main.tick;runtime.goexit
            {last}
            end 8s"
        ));
        explain(&recording, "curl", 2_000..8_000_000).sentence
    };
    let send = "runtime.chansend1;main.submit";
    let lock = "internal/sync.runtime_SemacquireMutex;internal/sync.(*Mutex).lockSlow;main.enter";
    let receive = "runtime.chanrecv1;main.collect;main.handle";
    let idle = "runtime.chanrecv1;main.work";
    for (before, after, expected) in [
        (send, send, "to receive from a channel in main.submit."),
        ("", send, "to receive from a channel in main.submit."),
        ("", lock, "to unlock a mutex in main.enter."),
        ("", &format!("{lock} {send}"), "in main.submit."),
        ("", &format!("{lock} {lock};main.deep"), "in main.enter."),
        (receive, receive, "to send on a channel in main.collect."),
        (
            &format!("{idle} {receive}"),
            &format!("{idle} {receive}"),
            "in main.collect.",
        ),
        ("", receive, "to send on a channel in main.collect."),
    ] {
        let sentence = sentence(before, after);
        assert!(
            sentence.ends_with(expected),
            "{before} / {after}: {sentence}"
        );
    }
}

/// A Go program that is asked about, one of whose goroutines waits for a mutex at both looks: that is the problem, for all
/// the time between, though one that ticks keeps its threads going. Of one that is not asked about it is not reported.
#[test]
fn goroutines_that_hold_each_other_up_are_a_problem() {
    let mut text = "process shop 200
        thread shop shop 200
        0 goroutine shop 1 stack=runtime.gopark;internal/sync.runtime_SemacquireMutex;main.enter;runtime.goexit
        0 cpu1 switch idle -> shop\n"
        .to_owned();
    for at in (5..900).step_by(100) {
        text += &format!(
            "{at}ms cpu1 switch shop -> idle sleeping epoll_pwait object=epoll:4 stack=runtime.netpoll;runtime.findRunnable;runtime.mcall
            {}.8ms cpu1 wake idle -> shop in=timer
            {}.9ms cpu1 switch idle -> shop\n",
            at + 99,
            at + 99
        );
    }
    text += "906ms cpu1 switch shop -> idle sleeping epoll_pwait object=epoll:4 stack=runtime.netpoll;runtime.findRunnable;runtime.mcall
        999ms goroutine shop 1 stack=runtime.gopark;internal/sync.runtime_SemacquireMutex;main.enter;runtime.goexit
        end 1s";
    let recording = record(&text);
    let whole = ("shop".to_owned(), 0..1_000_000);
    assert_eq!(problems(&recording, Some(200)).first(), Some(&whole));
    assert!(!problems(&recording, None).contains(&whole));
}

/// Two threads of a scheduler take turns at a task, and each sample of them is taken within the interrupt that a
/// trace has for it: they show what ran.
#[test]
fn samples_within_interrupts_count_for_threads_that_take_turns() {
    const REST: &str = "sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;runtime.stopm;runtime.findRunnable";
    let mut text = "process asker 50
        thread asker asker 50
        process tool 100
        thread one tool 100 name=tool
        thread two tool 101
        0 cpu0 switch idle -> asker
        0.1ms cpu1 switch idle -> one
        1ms cpu0 switch asker -> idle sleeping futex op=lock-pi object=futex:0x20 holder=one stack=pthread_mutex_lock;lock_store\n"
        .to_owned();
    for turn in 0..10_u64 {
        let from = 1 + turn * 100;
        let (own, other) = match turn % 2 {
            0 => ("one", "two"),
            _ => ("two", "one"),
        };
        for at in (from + 2..from + 99).step_by(5) {
            text += &format!(
                "{at}ms cpu1 irq 100us hard 33 {own}
                {at}.05ms cpu1 sample {own} stack=hash;work;runtime.goexit\n"
            );
        }
        text += &format!(
            "{}ms cpu1 wake {own} -> {other} futex op=wake object=futex:0x10
            {}.5ms cpu1 switch {own} -> {other} {REST}\n",
            from + 99,
            from + 99
        );
    }
    text += "1002ms cpu1 wake one -> asker futex op=unlock-pi object=futex:0x20
        1003ms cpu0 switch idle -> asker
        end 1004ms";
    let verdict = explain(&record(&text), "asker", 1_000..1_000_000);
    assert!(
        verdict.sentence.contains("ran hash (app)"),
        "{}",
        verdict.sentence
    );
}

/// A server of Go wakes up when a slow client has read, and then answers another: the way leads through the function whose
/// goroutine waited for the slow one. Where it waited for nothing, the server's name is all.
#[test]
fn the_function_of_a_goroutine_on_the_way() {
    let sentence = |parked: &str| {
        let recording = record(&format!(
            "process curl 100\nthread curl curl 100
            process shop 200\nthread shop shop 200
            process slow 300\nthread slow slow 300
            0 socket curl object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket shop object=inet:2 peer=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
            0 socket slow object=inet:3 peer=inet:4 local=127.0.0.1:5001 remote=127.0.0.1:80
            0 socket shop object=inet:4 peer=inet:3 local=127.0.0.1:80 remote=127.0.0.1:5001
            0 socket shop object=inet:5 local=127.0.0.1:80
            0 cpu0 switch idle -> curl
            0 cpu1 switch idle -> shop
            0 cpu2 switch idle -> slow
            1ms cpu1 switch shop -> idle sleeping epoll_pwait object=epoll:7 stack=runtime.netpoll;runtime.findRunnable;runtime.schedule;runtime.park_m;runtime.mcall;runtime.gopark;{parked}
            2ms transfer curl sent 9 object=inet:1 peer=inet:2
            3ms cpu0 switch curl -> idle sleeping poll object=inet:1 stack=poll;wait_for_reply
            4ms cpu2 switch slow -> idle sleeping clock_nanosleep arg=3s stack=nanosleep;limit_rate
            3004ms cpu2 wake idle -> slow in=timer
            3004.1ms cpu2 switch idle -> slow
            3004.2ms cpu2 wake slow -> shop recvfrom in=softirq vector=3 object=inet:3
            3004.3ms transfer slow received 90000 object=inet:3 peer=inet:4
            3004.4ms cpu1 switch idle -> shop
            3005ms cpu1 wake shop -> curl write in=softirq vector=3 object=inet:2
            3005ms transfer shop sent 9 object=inet:2 peer=inet:1
            3005.1ms cpu0 switch idle -> curl
            end 3100ms"
        ));
        explain(&recording, "curl", 3_000..3_005_000).sentence
    };
    let export = "runtime.netpollblock;internal/poll.runtime_pollWait;net.(*conn).Write;main.(*store).exportReport";
    let way = "the chain of waits leads through shop in main.(*store).exportReport.";
    assert!(sentence(export).ends_with(way), "{}", sentence(export));
    let idle = sentence("runtime.bgscavenge");
    assert!(
        idle.ends_with("the chain of waits leads through shop."),
        "{idle}"
    );
}
