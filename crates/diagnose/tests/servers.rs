//! Servers and the programs between them: who worked for an answer, and what only looks like an answer.

use crate::support::*;
use hangdog_diagnose::Class;

/// A server forks a program for one client's request, and serves another client every 10 ms meanwhile. Its
/// answer comes from the program: that has the time, although the server never waits for long.
#[test]
fn work_for_an_answer_between_other_turns() {
    const HOME: &str = "sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop";
    let mut text = format!(
        "process client 100\nthread client client 100
        process other 150\nthread other other 150
        process server 200\nthread server server 200
        process cgi 300
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server
        0 cpu2 switch idle -> other
        1ms cpu1 switch server -> idle {HOME}
        2ms cpu0 wake client -> server write object=unix:1
        2ms cpu1 switch idle -> server
        2.1ms fork server -> worker cgi 300
        2.2ms cpu3 switch idle -> worker
        2.3ms cpu1 switch server -> idle {HOME}
        2.4ms cpu0 switch client -> idle sleeping poll object=unix:1 stack=poll;ask\n"
    );
    for at in (10..200).step_by(10) {
        text += &format!(
            "{at}ms cpu2 wake other -> server write object=unix:3
            {at}ms cpu1 switch idle -> server
            {at}.1ms cpu2 switch other -> idle sleeping poll object=unix:3 stack=poll;ask
            {at}.3ms cpu1 wake server -> other write object=unix:4
            {at}.3ms cpu2 switch idle -> other
            {at}.4ms cpu1 switch server -> idle {HOME}\n"
        );
    }
    text += &samples(3, "worker", 3..199, "build_index;main");
    text += &format!(
        "200ms cpu3 wake worker -> server write object=pipe:9
        200ms cpu1 switch idle -> server
        200.2ms cpu1 wake server -> client write object=unix:2
        200.2ms cpu0 switch idle -> client
        200.3ms cpu1 switch server -> idle {HOME}
        201ms cpu3 switch worker -> idle dead
        end 220ms"
    );
    let verdict = explain(&record(&text), "client", 2_400..200_200);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (300, Class::LongRunning),
        "{}",
        verdict.sentence
    );
    assert_eq!(verdict.root.function.as_deref(), Some("build_index"));
    assert_eq!(of_thread(&verdict, 300, "run"), 197_600);
}

/// A pooler looks around every 300 ms, and its timeouts come while its CPU is idle, as a packet does at last:
/// that is no false alarm for the timeouts before it, and its sender counts more than who used to send.
#[test]
fn a_packet_after_timeouts_is_an_answer() {
    const HOME: &str = "sleeping epoll_wait arg=300 object=epoll:1 stack=epoll_wait;loop";
    let mut text = String::from(
        "process pooler 100\nthread pooler pooler 100
        process script 200\nthread script script 200
        process base 300\nthread base base 300
        0 socket pooler object=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket script object=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 cpu0 switch idle -> pooler
        0 cpu1 switch idle -> script
        0 cpu2 switch idle -> base\n",
    );
    for at in (10..100).step_by(10) {
        text += &format!(
            "{at}ms cpu0 switch pooler -> idle {HOME}
            {}ms cpu2 wake base -> pooler write object=unix:4
            {}.01ms cpu0 switch idle -> pooler
            {}ms cpu0 wake pooler -> base write object=unix:5\n",
            at + 5,
            at + 5,
            at + 6
        );
    }
    text += "100ms cpu2 switch base -> idle sleeping read object=unix:4 stack=read;serve\n";
    for turn in 0..8 {
        let at = 101 + 300 * turn;
        text += &format!(
            "{at}ms cpu0 switch pooler -> idle {HOME}
            {}ms cpu0 wake idle -> pooler in=timer
            {}.95ms cpu0 switch idle -> pooler\n",
            at + 299,
            at + 299
        );
    }
    text += &samples(1, "script", 100..2590, "transform_rows;main");
    text += &format!(
        "2501ms cpu0 switch pooler -> idle {HOME}
        2600.000ms transfer script sent 99 object=inet:2
        2600.01ms cpu0 wake idle -> pooler in=softirq vector=3
        2600.05ms cpu0 switch idle -> pooler
        2600.1ms transfer pooler received 99 object=inet:1
        2601ms cpu0 wake pooler -> base write object=unix:5
        2700ms cpu0 switch pooler -> idle dead
        end 3s"
    );
    let verdict = explain(&record(&text), "pooler", 101_000..2_600_010);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// A backend that waits for a lock polls with a pipe that tells of its parent's end: that is not what it
/// waits for. Another backend that works may have the lock.
#[test]
fn a_lock_of_a_database_is_not_its_parents() {
    let verdict = |second: &str| {
        let recording = record(&format!(
            "process client 50\nthread client client 50
            process postmaster 100\nthread postmaster postmaster 100 name=postgres
            process first 101\nprocess second 102
            0 cpu0 switch idle -> postmaster
            0 cpu5 switch idle -> client
            0.1ms fork postmaster -> first first 101
            0.1ms fork postmaster -> second second 102
            0.1ms rename first postgres\n0.1ms rename second postgres
            0.2ms cpu1 switch idle -> first
            0.2ms cpu2 switch idle -> second
            0.2ms socket client object=inet:3 peer=inet:4 local=127.0.0.1:5001 remote=127.0.0.1:5432
            0.2ms socket second object=inet:4 peer=inet:3 local=127.0.0.1:5432 remote=127.0.0.1:5001
            0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
            0.2ms open postmaster object=inet:5 kind=listener
            0.2ms open postmaster object=pipe:7 access=write
            0.2ms open first object=pipe:7 access=read
            0.2ms open second object=pipe:7 access=read
            1ms cpu5 switch client -> idle sleeping poll object=inet:3 stack=poll;PQgetResult
            2ms cpu0 switch postmaster -> idle sleeping select stack=select;PostmasterMain
            2ms cpu1 switch first -> idle sleeping epoll_wait object=pipe:7 stack=epoll_wait;WaitLatch;ProcSleep
            {second}
            end 5s"
        ));
        let verdict = explain(&recording, "first", 2_000..5_000_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let works = samples(2, "second", 3..4999, "ExecNestLoop;PostgresMain");
    let (root, sentence) = verdict(&works);
    assert_eq!(root, 102, "{sentence}");
    // Nobody is at work.
    let waits = "3ms cpu2 switch second -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;PostgresMain";
    let (root, sentence) = verdict(waits);
    assert_eq!(root, 101, "{sentence}");
    assert!(
        sentence.contains("waited for another session of the database in ProcSleep"),
        "{sentence}"
    );
}

/// Two backends that wait for locks, and no third that could have one: each has what the other waits for. With
/// a third session that is not so; one that has ended is none.
#[test]
fn two_sessions_of_a_database() {
    let verdict = |third: &str| {
        let sockets = ["one", "two", "three"].iter().enumerate().map(|(at, name)| {
            let (client, server, port) = (10 + 2 * at, 11 + 2 * at, 5001 + at);
            format!(
                "0.2ms socket client{name} object=inet:{client} peer=inet:{server} local=127.0.0.1:{port} remote=127.0.0.1:5432
                0.2ms socket {name} object=inet:{server} peer=inet:{client} local=127.0.0.1:5432 remote=127.0.0.1:{port}\n"
            )
        });
        let sockets: String = sockets.collect();
        let recording = record(&format!(
            "process clientone 51\nthread clientone clientone 51
            process clienttwo 52\nthread clienttwo clienttwo 52
            process clientthree 53\nthread clientthree clientthree 53
            process postmaster 100\nthread postmaster postmaster 100 name=postgres
            process one 101\nprocess two 102\nprocess three 103
            0 cpu0 switch idle -> postmaster
            0 cpu5 switch idle -> clientone
            0.1ms fork postmaster -> one one 101
            0.1ms fork postmaster -> two two 102
            0.1ms fork postmaster -> three three 103
            0.1ms rename one postgres\n0.1ms rename two postgres\n0.1ms rename three postgres
            0.2ms cpu1 switch idle -> one
            0.2ms cpu2 switch idle -> two
            0.2ms cpu3 switch idle -> three
            {sockets}
            0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
            0.2ms open postmaster object=inet:5 kind=listener
            0.3ms cpu6 switch idle -> clienttwo
            0.3ms cpu7 switch idle -> clientthree
            1ms cpu5 switch clientone -> idle sleeping poll object=inet:10 stack=poll;PQgetResult
            1ms cpu6 switch clienttwo -> idle sleeping poll object=inet:12 stack=poll;PQgetResult
            1ms cpu7 switch clientthree -> idle sleeping poll object=inet:14 stack=poll;PQgetResult
            {third}
            2ms cpu0 switch postmaster -> idle sleeping select stack=select;PostmasterMain
            2ms cpu1 switch one -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;WaitLatch;ProcSleep
            2ms cpu2 switch two -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;WaitLatch;ProcSleep
            end 5s"
        ));
        explain(&recording, "clientone", 2_000..5_000_000)
    };
    let ended = verdict("1.5ms exit three 0\n1.5ms cpu3 switch three -> idle dead");
    assert_eq!(ended.root.class, Class::Circular, "{}", ended.sentence);
    let mut circle: Vec<u32> = ended.knot.iter().flatten().map(|it| it.tid).collect();
    circle.sort_unstable();
    assert_eq!(circle, [101, 102], "{}", ended.sentence);
    let third = verdict(
        "1.5ms cpu3 switch three -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;PostgresMain",
    );
    assert_ne!(third.root.class, Class::Circular, "{}", third.sentence);
}

/// A session that asks another one, as dblink does, which waits for a lock: of the first, since there is no third.
/// Each waits for the other, and the database does not see it.
#[test]
fn a_session_that_asks_another() {
    let recording = record(
        "process client 51\nthread client client 51
        process postmaster 100\nthread postmaster postmaster 100 name=postgres
        process one 101\nprocess two 102
        0 cpu0 switch idle -> postmaster
        0 cpu3 switch idle -> client
        0.1ms fork postmaster -> one one 101
        0.1ms fork postmaster -> two two 102
        0.1ms rename one postgres\n0.1ms rename two postgres
        0.2ms cpu1 switch idle -> one
        0.2ms cpu2 switch idle -> two
        0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
        0.2ms open postmaster object=inet:5 kind=listener
        0.2ms socket client object=inet:10 peer=inet:11 local=127.0.0.1:5001 remote=127.0.0.1:5432
        0.2ms socket one object=inet:11 peer=inet:10 local=127.0.0.1:5432 remote=127.0.0.1:5001
        0.2ms socket one object=inet:12 peer=inet:13 local=127.0.0.1:5002 remote=127.0.0.1:5432
        0.2ms socket two object=inet:13 peer=inet:12 local=127.0.0.1:5432 remote=127.0.0.1:5002
        0.2ms open client object=inet:10\n0.2ms open one object=inet:11
        0.2ms open one object=inet:12\n0.2ms open two object=inet:13
        1ms transfer client sent 9 object=inet:10 peer=inet:11
        1ms cpu3 switch client -> idle sleeping poll object=inet:10 stack=poll;PQgetResult
        1.1ms transfer one received 9 object=inet:11 peer=inet:10
        1.2ms transfer one sent 9 object=inet:12 peer=inet:13
        1.3ms transfer two received 9 object=inet:13 peer=inet:12
        2ms cpu0 switch postmaster -> idle sleeping select stack=select;PostmasterMain
        2ms cpu1 switch one -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;WaitLatchOrSocket;dblink_exec
        2ms cpu2 switch two -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;WaitLatch;ProcSleep
        end 5s",
    );
    let verdict = explain(&recording, "client", 2_000..5_000_000);
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
    let mut circle: Vec<u32> = verdict.knot.iter().flatten().map(|it| it.tid).collect();
    circle.sort_unstable();
    assert_eq!(circle, [101, 102], "{}", verdict.sentence);
}

/// A queue of jobs (task-spooler): the server of one program, with a client that waits for its turn and one that
/// runs the job at its turn, by a child. What the job does is the answer.
#[test]
fn a_job_of_a_queue() {
    let verdict = |runner: &str| {
        let recording = record(&format!(
            "process server 100\nthread server server 100 name=tsp
            process runner 101\nthread runner runner 101 name=tsp
            process client 102\nthread client client 102 name=tsp
            process job 103
            0 socket server object=unix:1 local=/run/tsp
            0 open server object=unix:1 kind=listener
            0 socket server object=unix:2 peer=unix:3 peer-process=runner local=/run/tsp
            0 socket runner object=unix:3 peer=unix:2 peer-process=server remote=/run/tsp
            0 socket server object=unix:4 peer=unix:5 peer-process=client local=/run/tsp
            0 socket client object=unix:5 peer=unix:4 peer-process=server remote=/run/tsp
            0 open server object=unix:2\n0 open server object=unix:4
            0 open runner object=unix:3\n0 open client object=unix:5
            0 cpu0 switch idle -> server
            0 cpu1 switch idle -> runner
            0 cpu2 switch idle -> client
            0.1ms rename runner {runner}
            1ms fork runner -> job job 103
            1ms cpu3 switch idle -> job
            2ms cpu1 switch runner -> idle sleeping wait4 arg=103 stack=wait4;run_job
            2ms transfer client sent 8 object=unix:5 peer=unix:4
            3ms cpu2 switch client -> idle sleeping recvfrom object=unix:5 stack=recv;wait_turn
            3ms transfer server received 8 object=unix:4 peer=unix:5
            4ms cpu0 switch server -> idle sleeping pselect6 stack=select;server_loop
            {}
            end 5s",
            samples(3, "job", 2..4999, "compress")
        ));
        explain(&recording, "client", 3_000..5_000_000)
    };
    let found = verdict("tsp");
    assert_eq!(found.root.who.tid, 103, "{}", found.sentence);
    assert_eq!(found.root.function.as_deref(), Some("compress"));
    // A client that is another program waits for its own child.
    assert_ne!(verdict("other").root.who.tid, 103);
}

/// `timeout` lets time pass for its command, which it ends at last: the command took the time.
#[test]
fn a_time_limit_is_for_the_command() {
    let recording = record(&format!(
        "process timeout 100\nthread timeout timeout 100
        process xz 101
        0 cpu0 switch idle -> timeout
        1ms fork timeout -> xz xz 101
        1ms cpu1 switch idle -> xz
        2ms cpu0 switch timeout -> idle sleeping rt_sigsuspend stack=sigsuspend;main
        {}
        2s cpu0 wake idle -> timeout in=timer
        2s cpu0 switch idle -> timeout
        2001ms cpu0 wake timeout -> xz kill arg=15
        2002ms exit xz 15
        2002ms cpu1 wake xz -> timeout exit
        2002ms cpu1 switch xz -> idle dead
        2003ms cpu0 switch timeout -> idle dead
        end 2100ms",
        samples(1, "xz", 3..1999, "lzma_code;main")
    ));
    let verdict = explain(&recording, "timeout", 2_000..2_000_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (101, Class::LongRunning),
        "{}",
        verdict.sentence
    );
}

/// Of a server that has left a request unread, the thread that works answers for it: not its main thread, which
/// sleeps for minutes, nor one that waits for more by the connection.
#[test]
fn who_answers_for_a_server() {
    let root = |main: &str, reader: &str| {
        let recording = record(&format!(
            "process client 50\nthread client client 50
            process server 100\nthread main server 100 name=server
            thread reader server 101\nthread worker server 102
            0 socket client object=unix:1 peer=unix:2 peer-process=server
            0 socket server object=unix:2 peer=unix:1 peer-process=client
            0 open client object=unix:1
            0 open server object=unix:2 unread=1
            0 cpu0 switch idle -> client
            0 cpu1 switch idle -> main
            0 cpu2 switch idle -> reader
            0 cpu3 switch idle -> worker
            1ms cpu1 switch main -> idle sleeping {main}
            1ms cpu2 switch reader -> idle sleeping {reader}
            2ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;ask
            {}
            end 3s",
            samples(3, "worker", 3..2999, "train;run")
        ));
        let verdict = explain(&recording, "client", 2_000..3_000_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let parked = "clock_nanosleep arg=600s stack=nanosleep;main";
    let condition = "futex arg=128 object=futex:0x10 stack=pthread_cond_wait;run";
    let (tid, sentence) = root(parked, condition);
    assert_eq!(tid, 102, "{sentence}");
    let waits_for_more = "epoll_wait object=unix:2 stack=epoll_wait;io_thread";
    let (tid, sentence) = root(condition, waits_for_more);
    assert_eq!(tid, 102, "{sentence}");
}

/// The recorder may wake a thread by what it looks at and closes: that is no answer, and it never is the root.
#[test]
fn the_recorder_is_not_the_root() {
    let mut recording = record(
        "process reader 100\nthread reader reader 100
        process hangdog 200\nthread hangdog hangdog 200
        0 cpu0 switch idle -> reader
        1ms cpu0 switch reader -> idle sleeping openat stack=open;load kstack=__break_lease
        2ms cpu1 switch idle -> hangdog
        3ms cpu1 switch hangdog -> idle sleeping clock_nanosleep arg=2s stack=nanosleep
        2003ms cpu1 wake idle -> hangdog in=timer
        2003ms cpu1 switch idle -> hangdog
        2004ms cpu1 wake hangdog -> reader close
        2004ms cpu0 switch idle -> reader
        2100ms cpu0 switch reader -> idle dead
        end 3s",
    );
    recording.recorder = Some(200);
    let verdict = explain(&recording, "reader", 1_000..2_004_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
}

/// A program has its own futex: another process that interrupted such waits by signals is not who should end
/// the next. Nobody is: it is alone, and says so.
#[test]
fn a_signal_is_no_habit() {
    const WAIT: &str = "sleeping futex arg=128 object=futex:0x10 stack=sem_wait;PyThread_acquire_lock_timed;reload";
    let mut text = String::from(
        "process daemon 100\nthread daemon daemon 100
        process shell 200\nthread shell shell 200
        0 cpu0 switch idle -> daemon
        0 cpu1 switch idle -> shell\n",
    );
    for at in (10..60).step_by(10) {
        text += &format!(
            "{at}ms cpu0 switch daemon -> idle {WAIT}
            {}ms cpu1 wake shell -> daemon kill arg=1
            {}ms cpu0 switch idle -> daemon\n",
            at + 5,
            at + 5
        );
    }
    text += &format!(
        "60ms cpu0 switch daemon -> idle {WAIT}
        70ms cpu1 switch shell -> idle sleeping nanosleep arg=3s stack=nanosleep
        end 3s"
    );
    let verdict = explain(&record(&text), "daemon", 60_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    let left = "no other thread of its process is left that could end that";
    assert!(verdict.sentence.contains(left), "{}", verdict.sentence);
}

/// A program that is stopped while it polls, and polls on when it is continued, was stopped.
#[test]
fn a_stop_is_no_part_of_a_poll() {
    let recording = record(
        "process client 100\nthread client client 100
        process server 200\nthread server server 200
        process shell 300\nthread shell shell 300
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server
        0 cpu2 switch idle -> shell
        1ms cpu1 switch server -> idle sleeping ppoll stack=ppoll;loop
        2ms cpu0 switch client -> idle sleeping poll object=unix:1 stack=poll;ask
        1s cpu2 wake shell -> server kill arg=19
        1s cpu1 switch idle -> server
        1000.1ms cpu1 switch server -> idle stopped ppoll stack=ppoll;loop
        3s cpu2 wake shell -> server kill arg=18
        3s cpu1 switch idle -> server
        3000.1ms cpu1 switch server -> idle sleeping ppoll stack=ppoll;loop
        3900ms cpu2 wake shell -> server write object=pipe:5
        3900ms cpu1 switch idle -> server
        3901ms cpu1 wake server -> client write object=unix:2
        3901ms cpu0 switch idle -> client
        3902ms cpu0 switch client -> idle dead
        end 4s",
    );
    let verdict = explain(&recording, "client", 2_000..3_901_000);
    assert!(
        of_kind(&verdict, "stopped") > 1_900_000,
        "{:?}",
        verdict.blame
    );
    assert!(verdict.sentence.contains("stopped"), "{}", verdict.sentence);
}

/// A thread whose sleeps take forty times as long as it asked for says so.
#[test]
fn sleeps_that_last_too_long() {
    let mut text =
        String::from("process servo 100\nthread servo servo 100\n0 cpu0 switch idle -> servo\n");
    for turn in 0..8 {
        let at = 10 + 410 * turn;
        text += &format!(
            "{at}ms cpu0 switch servo -> idle sleeping clock_nanosleep arg=10ms stack=nanosleep;wait_next
            {}ms cpu0 wake idle -> servo in=timer
            {}ms cpu0 switch idle -> servo\n",
            at + 409,
            at + 409
        );
    }
    let verdict = explain(
        &record(&format!("{text}end 4s")),
        "servo",
        10_000..3_280_000,
    );
    let told = "for up to 409 ms at a time, and had asked for 10.0 ms";
    assert!(verdict.sentence.contains(told), "{}", verdict.sentence);
}

/// Of an idle server that has a thread which looks after something now and then, the event loop answers.
#[test]
fn who_looks_after_things_does_not_answer() {
    let mut text = String::from(
        "process client 50\nthread client client 50
        process server 100\nthread main server 100 name=server
        thread upkeep server 101
        thread spare server 102
        0 socket client object=unix:1 peer=unix:2 peer-process=server
        0 socket server object=unix:2 peer=unix:1 peer-process=client
        0 open client object=unix:1
        0 open server object=unix:2 unread=1
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> main
        0 cpu2 switch idle -> upkeep
        0 cpu3 switch idle -> spare
        1ms cpu3 switch spare -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;work
        1ms cpu1 switch main -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;loop
        2ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;ask\n",
    );
    for turn in 0..6 {
        let at = 10 + 500 * turn;
        text += &format!(
            "{at}ms cpu2 switch upkeep -> idle sleeping clock_nanosleep arg=499ms stack=usleep;upkeep
            {}ms cpu2 wake idle -> upkeep in=timer
            {}ms cpu2 switch idle -> upkeep\n",
            at + 499,
            at + 499
        );
    }
    text += "3010ms cpu2 switch upkeep -> idle sleeping clock_nanosleep arg=499ms stack=usleep;upkeep\n";
    let verdict = explain(
        &record(&format!("{text}end 3200ms")),
        "client",
        2_000..3_200_000,
    );
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
}

/// A thread that waits for the end of the very one that waits for good is not where that comes from.
#[test]
fn who_joins_the_waiter_is_not_its_root() {
    let recording = record(
        "process java 100\nthread launcher java 100 name=java
        thread main java 101
        0 cpu0 switch idle -> launcher
        0 cpu1 switch idle -> main
        1ms cpu0 switch launcher -> idle sleeping futex object=futex:0x20 stack=pthread_join;wait_for_main;start;launch;run;main;libc_start holder=main
        2ms cpu1 switch main -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;publish
        end 3s",
    );
    let verdict = explain(&recording, "main", 2_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 101, "{}", verdict.sentence);
    assert!(verdict.sentence.contains("publish"), "{}", verdict.sentence);
}

/// A virtual machine's own thread waits for work, however long nobody who used to give it some has any.
#[test]
fn a_virtual_machine_s_thread_is_no_victim() {
    const WAIT: &str =
        "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_timedwait;next_task";
    let found = |name: &str| {
        let mut text = format!(
            "process java 100\nthread main java 100 name=java
            thread helper java 101 name={name}
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> helper\n"
        );
        for at in (10..100).step_by(10) {
            text += &format!(
                "{at}ms cpu1 switch helper -> idle {WAIT}
                {}ms cpu0 wake main -> helper futex op=wake object=futex:0x10 stack=pthread_cond_signal
                {}.01ms cpu1 switch idle -> helper
                {}ms cpu1 wake helper -> main futex op=wake object=futex:0x20\n",
                at + 2,
                at + 2,
                at + 5
            );
        }
        text += &format!(
            "100ms cpu1 switch helper -> idle {WAIT}
            200ms exit main 0
            200ms cpu0 switch main -> idle dead
            5s cpu1 wake idle -> helper in=timer
            5s cpu1 switch idle -> helper
            5100ms cpu1 switch helper -> idle dead
            end 6s"
        );
        let all = problems(&record(&text), None);
        all.iter()
            .any(|(thread, window)| thread.contains(name) && window.end - window.start > 1_000_000)
    };
    assert!(found("worker"));
    assert!(!found("Finalizer"));
}

/// A request has reached a server whose threads all stand still while its memory is collected: the worker that
/// had the connection before waits for a task, and reads nothing by itself. It is not the network.
#[test]
fn a_worker_that_waits_for_a_task_does_not_read() {
    let recording = record(
        "process client 100
        thread client client 100
        process server 200
        thread server server 200
        thread dispatch server 201
        thread worker server 202
        thread collector server 203
        0 socket client object=inet:1 peer=inet:2 peer-process=server local=127.0.0.1:4000 remote=127.0.0.1:80
        0 socket server object=inet:2 peer=inet:1 peer-process=client local=127.0.0.1:80 remote=127.0.0.1:4000
        0 open client object=inet:1
        0 open server object=inet:2
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> worker
        0 cpu2 switch idle -> dispatch
        0 cpu3 switch idle -> collector
        1ms transfer worker received 10 object=inet:2 peer=inet:1
        2ms transfer worker sent 10 object=inet:2 peer=inet:1
        3ms cpu1 switch worker -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;java.util.concurrent.ThreadPoolExecutor.getTask;java.util.concurrent.ThreadPoolExecutor.runWorker
        4ms cpu2 switch dispatch -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;sun.nio.ch.EPoll.wait
        5ms transfer client received 10 object=inet:1 peer=inet:2
        10ms transfer client sent 10 object=inet:1 peer=inet:2
        10ms cpu0 wake client -> dispatch in=softirq vector=3
        10.1ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;read_answer
        10.2ms cpu2 switch idle -> dispatch
        10.3ms cpu2 switch dispatch -> idle sleeping futex op=wait object=futex:0x20 stack=syscall;SafepointSynchronize::block(JavaThread*)
        800ms cpu3 wake collector -> dispatch futex op=wake stack=syscall;SafepointSynchronize::end()
        800.1ms cpu2 switch idle -> dispatch
        801ms cpu2 wake dispatch -> worker futex op=wake stack=pthread_cond_signal;submit
        801.1ms cpu1 switch idle -> worker
        801.2ms transfer worker received 10 object=inet:2 peer=inet:1
        802ms transfer worker sent 10 object=inet:2 peer=inet:1
        802ms cpu1 wake worker -> client in=softirq vector=3
        802.1ms cpu0 switch idle -> client
        802.2ms transfer client received 10 object=inet:1 peer=inet:2
        end 900ms",
    );
    let verdict = explain(&recording, "client", 10_100..802_000);
    assert_eq!(verdict.root.who.tid, 203, "{}", verdict.sentence);
}

/// A program reads from its standard input, and the only process at the other end is the server that started it
/// and waits for it: the sentence names that server, and no message from outside the trace.
#[test]
fn each_waits_for_the_other() {
    let recording = record(
        "process server 100
        thread server server 100
        process search 200
        0 cpu0 switch idle -> server
        1ms fork server -> search search 200
        1ms rename search search
        1ms socket server object=unix:1 peer=unix:2 peer-process=search
        1ms socket search object=unix:2 peer=unix:1 peer-process=server
        1ms open server object=unix:1
        1ms open search object=unix:2
        1ms cpu0 wake server -> search fork new
        1.1ms cpu1 switch idle -> search
        2ms cpu0 switch server -> idle sleeping wait4 arg=200 stack=wait4;run_search
        3ms cpu1 switch search -> idle sleeping read object=unix:2 stack=read;read_input
        end 2s",
    );
    let verdict = explain(&recording, "server", 2_000..2_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    let says = "search waited in read for a message from server, and server for it";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
}

/// A server is behind that of its threads which reads from a connection of its own, not behind its main thread or one
/// that ticks, though nothing went over the connections since the recording began.
#[test]
fn who_reads_from_a_connection_is_at_work() {
    let recording = record(
        "process client 100
        thread client client 100
        process server 200
        thread main server 200 name=server
        thread ticker server 201 name=ticker
        thread worker server 202 name=worker
        process base 300
        thread base base 300
        0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket server object=inet:3 local=127.0.0.1:5001 remote=127.0.0.1:99
        0 socket base object=inet:4 local=127.0.0.1:99 remote=127.0.0.1:5001
        0 open client object=inet:1 last=sent
        0 open server object=inet:2 last=received
        0 open server object=inet:3 last=sent
        0 open base object=inet:4 last=received
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> base
        1ms cpu0 switch client -> main sleeping read object=inet:1 stack=read;main
        2ms cpu0 switch main -> ticker sleeping epoll_wait object=epoll:7 stack=epoll_wait;loop
        3ms cpu0 switch ticker -> worker sleeping read object=timerfd:6 stack=read;tick
        4ms cpu0 switch worker -> idle sleeping read object=inet:3 stack=read;fetch;main
        end 2s",
    );
    let verdict = explain(&recording, "client", 1_000..2_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// A session of a database that asked for a checkpoint waits for the process that writes it.
#[test]
fn a_checkpoint_is_waited_for() {
    let recording = record(
        "process postgres 100
        thread postmaster postgres 100 name=postgres
        0 cpu0 switch idle -> postmaster
        process writer 101
        process session 102
        1ms fork postmaster -> writer writer 101
        1ms exec writer postgres: checkpointer
        1ms rename writer postgres
        2ms fork postmaster -> session session 102
        2ms rename session postgres
        3ms cpu0 switch postmaster -> writer sleeping select stack=select;ServerLoop
        4ms cpu0 switch writer -> session uninterruptible fsync object=file:7 stack=fsync;FileSync kstack=io_schedule;wait
        5ms cpu0 switch session -> idle sleeping epoll_wait object=epoll:3 stack=epoll_wait;WaitLatch;RequestCheckpoint
        end 2s",
    );
    let verdict = explain(&recording, "session", 5_000..2_000_000);
    assert_eq!(verdict.root.who.tid, 101, "{}", verdict.sentence);
}

/// A session that ends a backup looks each second whether its log has been archived: it waits for the process that does so, and that for its
/// command.
#[test]
fn an_archive_is_waited_for() {
    let mut text = "process postgres 100
        thread postmaster postgres 100 name=postgres
        0 cpu0 switch idle -> postmaster
        process archiver 101
        process session 102
        process push 103
        1ms fork postmaster -> archiver archiver 101
        1ms exec archiver postgres: archiver
        1ms rename archiver postgres
        2ms fork postmaster -> session session 102
        2ms rename session postgres
        3ms cpu0 switch postmaster -> archiver sleeping select stack=select;ServerLoop
        3.1ms fork archiver -> push push 103
        3.1ms exec push push_wal.sh
        3.2ms cpu1 wake archiver -> push fork new
        3.3ms cpu1 switch idle -> push
        4ms cpu1 switch push -> idle sleeping clock_nanosleep arg=60s stack=nanosleep;try_again
        4ms cpu0 switch archiver -> session sleeping wait4 arg=103 stack=wait4;pgarch_archiveXlog\n"
        .to_owned();
    for at in (5..4_000).step_by(1_000) {
        text += &format!(
            "{at}ms cpu0 switch session -> idle sleeping epoll_wait object=epoll:3 arg=1000 stack=epoll_wait;WaitLatch;do_pg_backup_stop
            {}ms cpu0 wake idle -> session in=timer
            {}.1ms cpu0 switch idle -> session\n",
            at + 999,
            at + 999
        );
    }
    let verdict = explain(&record(&(text + "end 4006ms")), "session", 5_000..4_005_000);
    assert_eq!(verdict.root.who.tid, 103, "{}", verdict.sentence);
}

/// One client has a database build an index, and another one's session waits for the lock that this takes: the problem
/// is that of the other client, though the first waits longer, for what it asked for.
#[test]
fn who_is_locked_out_by_the_work_for_another_suffers() {
    let mut text = String::from(
        "process admin 51\nthread admin admin 51
        process shop 52\nthread shop shop 52
        process postmaster 100\nthread postmaster postmaster 100 name=postgres
        process builder 101\nprocess session 102
        0 cpu0 switch idle -> postmaster
        0 cpu5 switch idle -> admin\n0 cpu6 switch idle -> shop
        0.1ms fork postmaster -> builder builder 101
        0.1ms fork postmaster -> session session 102
        0.1ms rename builder postgres\n0.1ms rename session postgres
        0.2ms cpu1 switch idle -> builder
        0.2ms cpu2 switch idle -> session
        0.2ms socket admin object=inet:10 peer=inet:11 local=127.0.0.1:5001 remote=127.0.0.1:5432
        0.2ms socket builder object=inet:11 peer=inet:10 local=127.0.0.1:5432 remote=127.0.0.1:5001
        0.2ms socket shop object=inet:12 peer=inet:13 local=127.0.0.1:5002 remote=127.0.0.1:5432
        0.2ms socket session object=inet:13 peer=inet:12 local=127.0.0.1:5432 remote=127.0.0.1:5002
        0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
        0.2ms open postmaster object=inet:5 kind=listener
        0.3ms cpu0 switch postmaster -> idle sleeping select stack=select;PostmasterMain
        1ms transfer admin sent 9 object=inet:10 peer=inet:11
        1ms cpu5 switch admin -> idle sleeping poll object=inet:10 stack=poll;PQgetResult
        1.1ms transfer builder received 9 object=inet:11 peer=inet:10
        2000ms transfer shop sent 9 object=inet:12 peer=inet:13
        2000ms cpu6 switch shop -> idle sleeping poll object=inet:12 stack=poll;PQgetResult
        2000.1ms transfer session received 9 object=inet:13 peer=inet:12
        2001ms cpu2 switch session -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;WaitLatch;ProcSleep\n",
    );
    text += &samples(1, "builder", 2..9_999, "ginbuild;PostgresMain");
    text += "10000ms cpu1 wake builder -> session kill arg=23 stack=kill;ProcWakeup
        10000.1ms cpu1 wake builder -> admin sendto in=softirq vector=3 object=inet:10
        10000.1ms transfer builder sent 9 object=inet:11 peer=inet:10
        10000.2ms cpu5 switch idle -> admin
        10000.2ms cpu2 switch idle -> session
        10000.3ms transfer session sent 9 object=inet:13 peer=inet:12
        10000.3ms cpu2 wake session -> shop sendto in=softirq vector=3 object=inet:12
        10000.4ms cpu6 switch idle -> shop
        10000.5ms transfer admin received 9 object=inet:10 peer=inet:11
        10000.5ms transfer shop received 9 object=inet:12 peer=inet:13
        10001ms cpu1 switch builder -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;PostgresMain
        10001ms cpu2 switch session -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;PostgresMain
        end 11s";
    let found = problems(&record(&text), None);
    assert_eq!(found[0].0, "shop", "{found:?}");
}

/// A session waits for a lock. Beside it a client is idle, of which it is not known that it is in a transaction, and
/// another session executes something all along: that has the lock, unless it is one that outlasts transactions.
#[test]
fn who_executes_something_has_the_lock_rather_than_who_is_idle() {
    let root = |function: &str| {
        let mut text = format!(
            "process admin 51\nthread admin admin 51
            process shop 52\nthread shop shop 52
            process psql 53\nthread psql psql 53
            process postmaster 100\nthread postmaster postmaster 100 name=postgres
            process builder 101\nprocess session 102\nprocess rests 103
            0 cpu0 switch idle -> postmaster
            0 cpu5 switch idle -> admin\n0 cpu6 switch idle -> shop\n0 cpu7 switch idle -> psql
            0.1ms fork postmaster -> builder builder 101
            0.1ms fork postmaster -> session session 102
            0.1ms fork postmaster -> rests rests 103
            0.1ms rename builder postgres\n0.1ms rename session postgres\n0.1ms rename rests postgres
            0.2ms cpu1 switch idle -> builder
            0.2ms cpu2 switch idle -> session
            0.2ms cpu3 switch idle -> rests
            0.2ms socket admin object=inet:10 peer=inet:11 local=127.0.0.1:5001 remote=127.0.0.1:5432
            0.2ms socket builder object=inet:11 peer=inet:10 local=127.0.0.1:5432 remote=127.0.0.1:5001
            0.2ms socket shop object=inet:12 peer=inet:13 local=127.0.0.1:5002 remote=127.0.0.1:5432
            0.2ms socket session object=inet:13 peer=inet:12 local=127.0.0.1:5432 remote=127.0.0.1:5002
            0.2ms socket psql object=inet:14 peer=inet:15 local=127.0.0.1:5003 remote=127.0.0.1:5432
            0.2ms socket rests object=inet:15 peer=inet:14 local=127.0.0.1:5432 remote=127.0.0.1:5003
            0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
            0.2ms open admin object=inet:10\n0.2ms open builder object=inet:11
            0.2ms open shop object=inet:12\n0.2ms open session object=inet:13
            0.2ms open psql object=inet:14\n0.2ms open rests object=inet:15
            0.2ms open postmaster object=inet:5 kind=listener
            0.3ms cpu0 switch postmaster -> idle sleeping select stack=select;PostmasterMain
            1ms cpu5 switch admin -> idle sleeping poll object=inet:10 stack=poll;PQgetResult
            1ms cpu6 switch shop -> idle sleeping poll object=inet:12 stack=poll;PQgetResult
            1ms cpu7 switch psql -> idle sleeping read object=char:9 stack=read;readline
            1ms cpu3 switch rests -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;PostgresMain
            2ms cpu2 switch session -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;WaitLatch;ProcSleep;{function}\n"
        );
        text += &samples(1, "builder", 2..4_999, "ginbuild;PostgresMain");
        text += "end 5s";
        let verdict = explain(&record(&text), "shop", 2_000..5_000_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (executes, sentence) = root("LockRelationOid");
    assert_eq!(executes, 101, "{sentence}");
    let (rests, sentence) = root("pg_advisory_lock_int8");
    assert_eq!(rests, 53, "{sentence}");
}

/// Of two clients of a database neither is known to be in a transaction. One comes back for more all the time; the other cannot
/// go on, since nobody reads what it writes: that one has what a third waits for.
#[test]
fn a_client_that_cannot_go_on_has_the_lock() {
    let mut text = String::from(
        "process alter 51\nthread alter alter 51
        process pgbench 52\nthread pgbench pgbench 52
        process psql 53\nthread psql psql 53
        process less 54\nthread less less 54
        process postmaster 100\nthread postmaster postmaster 100 name=postgres
        process waits 101\nprocess serves 102\nprocess rests 103
        0 cpu0 switch idle -> postmaster
        0 cpu5 switch idle -> alter\n0 cpu6 switch idle -> pgbench\n0 cpu7 switch idle -> psql
        0 cpu4 switch idle -> less
        0.1ms fork postmaster -> waits waits 101
        0.1ms fork postmaster -> serves serves 102
        0.1ms fork postmaster -> rests rests 103
        0.1ms rename waits postgres\n0.1ms rename serves postgres\n0.1ms rename rests postgres
        0.2ms cpu1 switch idle -> waits
        0.2ms cpu2 switch idle -> serves
        0.2ms cpu3 switch idle -> rests
        0.2ms socket postmaster object=inet:5 local=127.0.0.1:5432
        0.2ms open postmaster object=inet:5 kind=listener
        0.2ms open psql object=pipe:7 access=write
        0.2ms open less object=pipe:7 access=read\n",
    );
    for (number, client, server) in [
        (1, "alter", "waits"),
        (2, "pgbench", "serves"),
        (3, "psql", "rests"),
    ] {
        text += &format!(
            "0.2ms socket {client} object=inet:1{number} peer=inet:2{number} local=127.0.0.1:500{number} remote=127.0.0.1:5432
            0.2ms socket {server} object=inet:2{number} peer=inet:1{number} local=127.0.0.1:5432 remote=127.0.0.1:500{number}\n"
        );
    }
    text += "0.3ms cpu0 switch postmaster -> idle sleeping select stack=select;PostmasterMain
        0.4ms transfer psql sent 9 object=inet:13
        0.5ms transfer rests received 9 object=inet:23
        0.6ms transfer rests sent 900 object=inet:23
        0.6ms transfer psql received 900 object=inet:13
        0.7ms cpu3 switch rests -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;PostgresMain
        0.8ms cpu7 switch psql -> idle sleeping write object=pipe:7 stack=write;print_rows
        0.9ms cpu4 switch less -> idle sleeping read object=char:3 stack=read;getch
        1ms transfer alter sent 9 object=inet:11
        1ms cpu5 switch alter -> idle sleeping poll object=inet:11 stack=poll;PQgetResult
        1.1ms transfer waits received 9 object=inet:21
        2ms cpu1 switch waits -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;WaitLatch;ProcSleep
        2ms cpu2 switch serves -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;PostgresMain\n";
    for at in (20..2_000).step_by(20) {
        text += &format!(
            "{at}.0ms transfer pgbench sent 9 object=inet:12
            {at}.0ms cpu6 wake pgbench -> serves sendto in=softirq vector=3 object=inet:12
            {at}.1ms cpu2 switch idle -> serves
            {at}.1ms transfer serves received 9 object=inet:22
            {at}.2ms cpu6 switch pgbench -> idle sleeping poll object=inet:12 stack=poll;PQgetResult
            {at}.3ms transfer serves sent 9 object=inet:22
            {at}.3ms cpu2 wake serves -> pgbench sendto in=softirq vector=3 object=inet:22
            {at}.4ms cpu6 switch idle -> pgbench
            {at}.4ms transfer pgbench received 9 object=inet:12
            {at}.5ms cpu2 switch serves -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;PostgresMain
            {at}.6ms cpu6 switch pgbench -> idle sleeping clock_nanosleep arg=19ms stack=clock_nanosleep;script_sleep
            {at}.9ms cpu6 wake idle -> pgbench in=timer
            {at}.9ms cpu6 switch idle -> pgbench\n"
        );
    }
    let verdict = explain(&record(&(text + "end 2s")), "alter", 1_000..2_000_000);
    assert_eq!(verdict.root.who.tid, 54, "{}", verdict.sentence);
}
