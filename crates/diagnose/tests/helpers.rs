//! Who works for a thread that waits, where nothing names it: children, those started beside it, threads of
//! its own process.

use crate::support::*;
use hangdog_diagnose::Class;

/// The tid of the root, and its class.
fn root(text: &str, thread: &str, window_us: std::ops::Range<u64>) -> (u32, Class, String) {
    let verdict = explain(&record(text), thread, window_us);
    (verdict.root.who.tid, verdict.root.class, verdict.sentence)
}

/// A builder waits for messages of its threads with a timeout, and waits on after each: the timeouts end
/// nothing. Who brought the last message has the next one, and waits for its program. A single timeout is
/// the end of its wait.
#[test]
fn timeouts_of_a_wait_that_is_taken_up_again_end_nothing() {
    let wait =
        "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_timedwait;drain_queue;main";
    let waits = |times: u64| {
        let mut text = format!(
            "process tool 100
            thread main tool 100 name=tool
            thread job tool 101
            process script 200
            0 open tool object=pipe:7 access=read
            0 open script object=pipe:7 access=write
            0 cpu0 switch idle -> main
            0 cpu2 switch idle -> job
            1ms fork main -> script script 200
            1ms cpu1 switch idle -> script
            2ms cpu0 switch main -> idle {wait}
            4ms cpu2 wake job -> main futex op=wake object=futex:0x10 stack=notify;job
            4.01ms cpu0 switch idle -> main
            5ms cpu2 switch job -> idle sleeping read object=pipe:7 stack=read;job
"
        );
        let length = 3_900 / times;
        for turn in 0..times {
            let (from, to) = (10 + turn * length, 9 + (turn + 1) * length);
            text += &format!(
                "{from}ms cpu0 switch main -> idle {wait}
                {to}ms cpu0 wake idle -> main in=timer
                {to}.01ms cpu0 switch idle -> main
"
            );
        }
        text += &samples(1, "script", 2..3_950, "generate_tables;main");
        root(&format!("{text}end 4s"), "main", 10_000..3_909_000)
    };
    let (tid, class, sentence) = waits(8);
    assert_eq!((tid, class), (200, Class::LongRunning), "{sentence}");
    let (tid, _, sentence) = waits(1);
    assert_eq!(tid, 100, "{sentence}");
}

/// An event loop reads requests by a pipe and has started a program for the last of them: whoever waits for
/// its answer waits for that program. While nothing is at work, it waits for requests.
#[test]
fn an_event_loop_waits_for_what_it_started() {
    let asked = |child: &str| {
        root(
            &format!(
                "process editor 100
                thread editor editor 100
                process server 200
                thread server server 200
                process checker 300
                0 open editor object=pipe:5 access=read
                0 open server object=pipe:5 access=write
                0 open editor object=pipe:6 access=write
                0 open server object=pipe:6 access=read
                0 cpu0 switch idle -> editor
                0 cpu1 switch idle -> server
                1ms fork server -> checker checker 300
                1ms cpu2 switch idle -> checker
                2ms cpu0 switch editor -> idle sleeping read object=pipe:5 stack=read;goto_definition;main
                2ms cpu1 switch server -> idle sleeping epoll_wait object=pipe:6 stack=epoll_wait;loop
                {child}
                end 2s"
            ),
            "editor",
            2_000..2_000_000,
        )
    };
    let (tid, class, sentence) = asked(&samples(2, "checker", 2..1_999, "expand;main"));
    assert_eq!((tid, class), (300, Class::LongRunning), "{sentence}");
    let idle = "3ms cpu2 switch checker -> idle sleeping epoll_wait stack=epoll_wait;loop";
    let (tid, _, sentence) = asked(idle);
    assert_eq!(tid, 200, "{sentence}");
}

/// Two processes of one parent wait at a semaphore that they share with a third, which computes. A futex of
/// the process's own is no matter of the others.
#[test]
fn a_sibling_that_works_may_have_what_is_shared() {
    let shared = |arg: u32| {
        let wait =
            format!("sleeping futex arg={arg} object=futex:0x10 stack=__new_sem_wait;take;main");
        root(
            &format!(
                "process farm 100
                thread farm farm 100
                process crawler 200
                process lister 300
                process indexer 400
                0 cpu0 switch idle -> farm
                1ms fork farm -> crawler crawler 200
                1ms fork farm -> lister lister 300
                1ms fork farm -> indexer indexer 400
                1ms exec crawler name=farm
                1ms exec lister name=farm
                1ms exec indexer name=farm
                1ms cpu1 switch idle -> crawler
                1ms cpu2 switch idle -> lister
                1ms cpu3 switch idle -> indexer
                2ms cpu0 switch farm -> idle sleeping wait4 arg=200 stack=wait4;join;main
                2ms cpu1 switch crawler -> idle {wait}
                2ms cpu2 switch lister -> idle {wait}
                {}
                end 2s",
                samples(3, "indexer", 2..1_999, "write_index;main")
            ),
            "crawler",
            2_000..2_000_000,
        )
    };
    let (tid, class, sentence) = shared(0);
    assert_eq!((tid, class), (400, Class::LongRunning), "{sentence}");
    let (tid, _, sentence) = shared(128);
    assert_ne!(tid, 400, "{sentence}");
}

/// A parent awaits the exit of a child, which waits for its feeder to write what the parent does not read.
/// A feeder that has no room for what it writes has something to do.
#[test]
fn a_feeder_without_room_is_part_of_the_circle() {
    let verdict = explain(
        &record(
            "process parent 100
            thread parent parent 100
            process child 200
            thread feeder child 201
            0 open parent object=pipe:5 access=read
            0 open child object=pipe:5 access=write
            0 cpu0 switch idle -> parent
            1ms fork parent -> main child 200
            1ms cpu1 switch idle -> main
            1ms cpu2 switch idle -> feeder
            2ms cpu0 switch parent -> idle sleeping wait4 arg=200 stack=wait4;join
            2ms cpu2 switch feeder -> idle sleeping write object=pipe:5 stack=write;Queue._feed;Thread.run
            2ms cpu1 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=sem_wait;Thread.join
            end 2s",
        ),
        "main",
        2_000..2_000_000,
    );
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
}

/// A worker of a pool was killed amid its task: the thread that passes on results has none to pass on, and
/// the one that made a new worker does not know of the task. A worker that was asked to end had done its work.
#[test]
fn a_worker_that_was_killed_owes_the_result() {
    let wait = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_timedwait;get;main";
    let reads = "sleeping read object=pipe:5 stack=read;recv;handle_results";
    let with_status = |status: u32, victim: &str| {
        let mut text = "process app 100
            thread main app 100 name=app
            thread results app 101
            process worker 200
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> results
            1ms fork main -> worker worker 200
            1ms cpu2 switch idle -> worker
            2ms cpu1 switch results -> idle sleeping read object=pipe:5 stack=read;recv;handle_results
            3ms cpu2 switch worker -> idle sleeping read object=pipe:6 stack=read;take_task;worker
"
        .to_owned();
        // How it usually goes.
        for turn in 0..4 {
            let at = 10 + turn * 10;
            text += &format!(
                "{at}ms cpu0 switch main -> idle {wait}
                {at}.1ms cpu1 wake idle -> results in=timer
                {at}.2ms cpu1 switch idle -> results
                {at}.3ms cpu1 wake results -> main futex op=wake object=futex:0x10 stack=notify;handle_results
                {at}.4ms cpu1 switch results -> idle {reads}
                {at}.5ms cpu0 switch idle -> main
"
            );
        }
        text += &format!(
            "99ms cpu2 wake main -> worker write object=pipe:6
            100ms cpu0 switch main -> idle {wait}
            101ms cpu2 switch idle -> worker
            {victim}
            102ms cpu2 exit worker {status}
            102.1ms cpu2 switch worker -> idle dead
            4100ms cpu0 wake idle -> main in=timer
            4100.1ms cpu0 switch idle -> main
            end 4200ms"
        );
        root(&text, "main", 100_000..4_100_000)
    };
    let (tid, class, sentence) = with_status(9, "");
    assert_eq!((tid, class), (200, Class::LongWait), "{sentence}");
    assert!(
        sentence.contains("worker was killed by SIGKILL"),
        "{sentence}"
    );
    let (_, _, sentence) = with_status(9, "101.5ms out-of-memory worker");
    assert!(
        sentence.contains("worker was killed by the kernel for lack of memory"),
        "{sentence}"
    );
    let (tid, _, sentence) = with_status(15, "");
    assert_ne!(tid, 200, "{sentence}");
}

/// The last thread of a program that dies tells its parent, in whatever call it was: the program ran.
#[test]
fn a_child_ends_where_its_last_thread_dies() {
    let mut text = "process sh 100
        thread sh sh 100 name=sh
        process node 200
        thread node node 200 name=node
        thread helper node 201
        0 cpu0 switch idle -> sh
        0 cpu1 switch idle -> node
        1ms cpu2 switch idle -> helper
        2ms cpu2 switch helper -> idle sleeping futex op=wait object=futex:0x20 stack=uv_sem_wait
        3ms cpu0 switch sh -> idle sleeping wait4 arg=none stack=wait4;main
"
    .to_owned();
    text += &samples(1, "node", 4..2_000, "build;main");
    text += "2001ms cpu1 wake node -> helper exit_group
        2001.1ms exit node 0
        2001.2ms cpu1 switch node -> idle dead
        2001.3ms cpu2 switch idle -> helper
        2001.4ms cpu2 wake helper -> sh futex
        2001.5ms exit helper 0
        2001.6ms cpu2 switch helper -> idle dead
        2001.7ms cpu0 switch idle -> sh
        end 2100ms";
    let (tid, class, sentence) = root(&text, "sh", 3_000..2_001_400);
    assert_eq!((tid, class), (200, Class::LongRunning), "{sentence}");
}

/// Both workers of a pool wait for tasks that only they could run. Who gave them their tasks gives up and
/// interrupts them: that is no circle. Without the end, the chain leads to a worker as well.
#[test]
fn who_gives_up_on_a_pool_that_waits_for_itself_is_no_part_of_it() {
    let get = "stack=park;java.util.concurrent.CompletableFuture.get";
    let task = format!("{get};App.price;java.util.concurrent.CompletableFuture$AsyncSupply.run");
    // How it usually goes.
    let answers: String = (2..8)
        .map(|at| {
            format!(
                "{at}ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 {get};App.serve;main
                {at}.2ms cpu1 wake one -> main futex op=wake object=futex:0x10 stack=complete;run
                {at}.3ms cpu0 switch idle -> main
                "
            )
        })
        .collect();
    let stuck = format!(
        "process app 100
        thread main app 100 name=app
        thread one app 101 name=pool-1-thread-1
        thread two app 102 name=pool-1-thread-2
        0 cpu0 switch idle -> main
        1ms cpu1 switch idle -> one
        1ms cpu2 switch idle -> two
        {answers}9ms cpu1 switch one -> idle sleeping futex op=wait object=futex:0x20 {task}
        9.1ms cpu2 switch two -> idle sleeping futex op=wait object=futex:0x30 {task}
        10ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 {get};App.serve;main
"
    );
    let interrupted = "5000ms cpu0 wake idle -> main in=timer
        5000.1ms cpu0 switch idle -> main
        5001ms cpu0 wake main -> one futex op=wake object=futex:0x20 stack=pthread_cond_signal;interrupt
        5001ms cpu0 wake main -> two futex op=wake object=futex:0x30 stack=pthread_cond_signal;interrupt
        5001.1ms cpu1 switch idle -> one
        5001.1ms cpu2 switch idle -> two
        end 5100ms";
    for end in [interrupted, "end 5000ms"] {
        let (tid, class, sentence) = root(&format!("{stuck}{end}"), "main", 10_000..5_000_000);
        assert!([101, 102].contains(&tid), "{sentence}");
        assert_ne!(class, Class::Circular, "{sentence}");
        assert!(
            sentence.contains("a task that only they could run"),
            "{sentence}"
        );
    }
}

/// A program has two workers, forked and named after what they do. Each of the three has both ends of every
/// queue, which is a pipe. One worker has the semaphore that they share and asks a server; the other wants it,
/// and the program waits for what that one is to put into a queue.
#[test]
fn workers_that_share_a_semaphore_are_told_apart_by_what_they_do() {
    let recording = record(
        "process office 100
        process refunds 101
        process sales 102
        process bank 200
        thread office office 100
        thread bank bank 200
        0 cpu0 switch idle -> office
        0 cpu1 switch idle -> bank
        1us fork office -> refunds refunds 101
        2us fork office -> sales sales 102
        0 socket refunds object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket bank object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        3us open office object=pipe:7
        3us open refunds object=pipe:7
        3us open sales object=pipe:7
        10us cpu2 switch idle -> refunds
        20us cpu2 switch refunds -> sales sleeping recvfrom object=inet:1 stack=recv;refund;main
        30us cpu2 switch sales -> idle sleeping futex op=wait object=futex:0x70 stack=do_futex_wait;sem_wait;sell;main
        40us cpu0 switch office -> idle sleeping read object=pipe:7 stack=read;get;main
        50us cpu1 switch bank -> idle sleeping nanosleep arg=9s stack=nanosleep;limit_rate;serve;main
        end 3s",
    );
    for waiter in ["sales", "office"] {
        let verdict = explain(&recording, waiter, 1_000..3_000_000);
        assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    }
}
