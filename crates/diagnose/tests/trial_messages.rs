//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with. Here: pipes, connections
//! and terminals.

use crate::support::*;
use hangdog_diagnose::{Class, problem};
use hangdog_trace::ids::NO_CPU;

/// A client and its server in one process, begun before the recording: the handler was asked, and waits
/// for a queue that nobody serves any more. That its client could hold a lock makes no circle.
#[test]
fn a_queue_that_nobody_serves_is_no_circle() {
    for queue in ["get", "Condition.wait;Queue.get"] {
        let recording = record(&format!(
            "process app 100
        thread main app 100
        thread handler app 101
        0 socket app object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket app object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket app object=inet:3 local=127.0.0.1:80
        0 open app object=inet:1 last=sent
        0 open app object=inet:2 last=received
        0 open app object=inet:3 kind=listener
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> handler
        1ms cpu1 switch handler -> idle sleeping futex arg=128 object=futex:0x1 stack=sem_wait;PyThread_acquire_lock_timed;{queue};handle
        1ms cpu0 switch main -> idle sleeping recvfrom object=inet:1 stack=recv;ask
        end 3s"
        ));
        let verdict = explain(&recording, "main", 1_000..3_000_000);
        assert_eq!(verdict.root.who.tid, 101, "{}", verdict.sentence);
        assert_ne!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
    }
}

/// A program that has no room to write in its terminal waits for the terminal's program if that does not
/// read: it was stopped, or computes. A shell in between waits for the program itself.
#[test]
fn a_terminal_that_does_not_read_is_named() {
    for (term, class) in [
        (
            "10us cpu1 switch term -> idle stopped stack=poll;loop",
            Class::LongWait,
        ),
        ("", Class::LongRunning),
    ] {
        let recording = record(&format!(
            "process term 50
            thread term term 50
            process shell 100
            process app 200
            0 cpu1 switch idle -> term
            1us fork term -> shell shell 100
            2us cpu1 wake term -> shell fork new
            3us cpu0 switch idle -> shell
            4us fork shell -> app app 200
            5us cpu0 wake shell -> app fork new
            6us cpu0 switch shell -> app sleeping wait4 stack=wait4;waitjobs
            20us cpu0 switch app -> idle sleeping write object=char:3 stack=write;list
            {term}
            end 3s"
        ));
        let verdict = explain(&recording, "app", 1_000..3_000_000);
        assert_eq!(verdict.root.who.tid, 50, "{}", verdict.sentence);
        assert_eq!(verdict.root.class, class, "{}", verdict.sentence);
    }
}

/// A thread that reads what a child writes ends when the child does, and its process goes on: the child's
/// exit is what it waited for, and no death.
#[test]
fn who_ends_after_the_end_of_a_pipe_did_not_die_of_it() {
    let recording = record(
        "process cargo 100
        thread cargo cargo 100
        thread job cargo 101
        process script 200
        0 cpu0 switch idle -> cargo
        1ms cpu0 switch cargo -> idle sleeping futex op=wait object=futex:0x1000 stack=syscall;drain
        1ms cpu1 switch idle -> job
        1ms fork job -> script script 200
        1ms cpu1 wake job -> script fork new
        2ms cpu1 switch job -> idle sleeping poll stack=poll;read2
        3ms cpu0 switch idle -> script
        4ms cpu0 switch script -> idle sleeping nanosleep arg=3s stack=nanosleep;wait_for_license
        3004ms cpu0 wake idle -> script in=timer
        3005ms cpu0 switch idle -> script
        3006ms cpu0 wake script -> job exit_group
        3007ms cpu1 switch idle -> job
        3007ms cpu0 switch script -> idle dead
        3007ms exit script 0
        3008ms cpu1 wake job -> cargo futex op=wake object=futex:0x1000
        3008100us cpu0 switch idle -> cargo
        3009ms cpu1 switch job -> idle dead
        3009ms exit job 0
        end 4s",
    );
    let verdict = explain(&recording, "cargo", 1_000..3_008_000);
    let root = &verdict.root;
    assert_eq!(root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(root.function.as_deref(), Some("wait_for_license"));
}

/// A packet from this machine is delivered after the sender's call, in a softirq that is nobody's doing:
/// the sender is found by what the receiver reads.
#[test]
fn a_packet_from_this_machine_has_a_sender() {
    let recording = record(
        "process client 100
        thread client client 100
        process server 200
        thread server server 200
        0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server
        5us transfer client sent 10 object=inet:1
        10us cpu0 switch client -> idle sleeping poll stack=poll;ask
        500ms transfer server sent 99 object=inet:2
        500010us cpu1 wake server -> client in=softirq vector=3 kstack=tcp_data_queue
        500100us cpu0 switch idle -> client
        500110us transfer client received 99 object=inet:1
        600ms cpu1 switch server -> idle sleeping poll stack=poll;serve
        end 1s",
    );
    let verdict = explain(&recording, "client", 10..500_100);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (200, Class::LongRunning),
        "{}",
        verdict.sentence
    );
}

/// Whoever reads from a program that waits to be asked misses nothing; from one that sleeps, it may.
#[test]
fn a_pipe_from_an_idle_program_is_quiet() {
    let owed = |wait: &str| {
        let recording = record(&format!(
            "process shell 100
            thread shell shell 100
            process log 200
            thread log log 200
            0 open shell object=pipe:1 access=write
            0 open log object=pipe:1 access=read
            0 cpu0 switch idle -> shell
            0 cpu1 switch idle -> log
            end 3s
            0 cpu0 switch shell -> idle {wait}
            0 cpu1 switch log -> idle sleeping read object=pipe:1 stack=read"
        ));
        problems(&recording, None)
            .iter()
            .any(|(thread, _)| thread == "log")
    };
    assert!(!owed("sleeping poll stack=poll;prompt"));
    assert!(owed("sleeping nanosleep arg=9s stack=nanosleep;work"));
}

/// Who cannot connect because a listener takes none of the connections that it has got waits for the
/// listener's process, also where it takes itself for connected and polls for the answer; where the listener
/// has none, for the network.
#[test]
fn a_full_listener_keeps_who_connects() {
    let calls = ["connect", "poll"];
    for ((unread, root), call) in [(2, 200), (0, 100)]
        .into_iter()
        .flat_map(|case| calls.map(|call| (case, call)))
    {
        let recording = record(&format!(
            "process app 100
            thread app app 100
            process server 200
            thread server server 200
            0 socket app object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket server object=inet:3 local=127.0.0.1:80
            0 open app object=inet:1 last=lost
            0 open server object=inet:3 kind=listener unread={unread}
            0 cpu0 switch idle -> app
            0 cpu1 switch idle -> server
            1ms cpu1 switch server -> idle sleeping nanosleep arg=9s stack=nanosleep;reindex
            1ms cpu0 switch app -> idle sleeping {call} object=inet:1 stack={call};upload
            end 3s"
        ));
        let verdict = explain(&recording, "app", 1_000..3_000_000);
        assert_eq!(verdict.root.who.tid, root, "{}", verdict.sentence);
    }
}

/// A client sends 50 µs after its server began to wait, and the server is woken 40 ms later by the
/// network: the data was on its way all that time, and the client had no part in it. Where it is sent
/// right before the wakeup, the client took the time.
#[test]
fn data_on_its_way_is_the_networks() {
    for (sent_us, kind) in [(1_050, "network"), (40_900, "run")] {
        let recording = record(&format!(
            "process stock 100
            thread stock stock 100
            process list 200
            thread list list 200
            0 socket stock object=inet:1 peer=inet:2 local=127.0.0.1:80 remote=127.0.0.1:40000
            0 socket list object=inet:2 peer=inet:1 local=127.0.0.1:40000 remote=127.0.0.1:80
            0 cpu0 switch idle -> stock
            0 cpu1 switch idle -> list
            1ms cpu0 switch stock -> idle sleeping recvfrom object=inet:1 stack=read;serve
            {sent_us}us transfer list sent 20 object=inet:2 peer=inet:1
            41ms cpu0 wake idle -> stock in=softirq vector=3
            41.01ms cpu0 switch idle -> stock
            41.02ms transfer stock received 20 object=inet:1 peer=inet:2
            50ms cpu1 switch list -> idle dead
            end 60ms"
        ));
        let verdict = explain(&recording, "stock", 1_000..41_000);
        assert_eq!(verdict.blame[0].kind, kind, "{}", verdict.sentence);
    }
}

/// Who reads from a pipe that only its own child writes to waits for what that does, though the child
/// waits for a message itself. A supervisor whose shell waits for a command does not.
#[test]
fn who_reads_what_its_child_writes() {
    let found = |child: &str| {
        let recording = record(&format!(
            "process ssh 100
            thread ssh ssh 100
            process helper 200
            0 fork ssh -> helper helper 200
            0 open ssh object=pipe:1 access=read
            0 open helper object=pipe:1 access=write
            0 cpu0 switch ssh -> idle sleeping read object=pipe:1 stack=read;exchange
            0 cpu1 switch helper -> idle sleeping poll stack=poll;{child}
            end 4s"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let ssh = recording.t("ssh");
        found.iter().any(|problem| problem.thread == ssh)
    };
    assert!(found("proxy"));
    assert!(!found("read_builtin"));
}

/// A shell that reads the output of a command waits for whoever has the pipe, also if that is no child
/// of it any more.
#[test]
fn a_command_substitution_waits_for_its_end() {
    let found = |function: &str| {
        let recording = record(&format!(
            "process bash 100
            thread bash bash 100
            process socat 200
            thread socat socat 200
            0 open bash object=pipe:1 access=read
            0 open socat object=pipe:1 access=write
            0 cpu0 switch bash -> idle sleeping read object=pipe:1 stack=read;{function}
            0 cpu1 switch socat -> idle sleeping poll stack=poll;relay
            end 4s"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        found.first().map(|first| (first.thread, first.duration()))
    };
    let bash = Some((1, 4_000 * MS));
    assert_eq!(found("command_substitute"), bash);
    assert_ne!(found("main"), bash);
}

/// Two threads of a process are at the ends of a connection. Nobody used the other end before the wait,
/// and one did afterwards: that one is waited for, whoever else is busy.
#[test]
fn who_uses_the_other_end_later_has_it() {
    let recording = record(
        "process app 100
        thread asks app 100
        thread answers app 101
        thread busy app 102
        0 socket app object=unix:1 peer=unix:2 peer-process=app
        0 socket app object=unix:2 peer=unix:1 peer-process=app
        0 cpu0 switch idle -> asks
        0 cpu1 switch idle -> busy
        0 cpu2 switch idle -> answers
        1ms cpu2 switch answers -> idle sleeping read object=file:9 stack=read;other
        1ms cpu0 switch asks -> idle sleeping read object=unix:1 stack=read;ask
        500ms cpu2 wake idle -> answers in=interrupt
        500.1ms cpu2 switch idle -> answers
        500.2ms transfer answers sent 1 object=unix:2 peer=unix:1
        501ms cpu0 wake idle -> asks in=timer
        501.1ms cpu0 switch idle -> asks
        510ms cpu1 switch busy -> idle dead
        end 520ms",
    );
    let verdict = explain(&recording, "asks", 1_000..499_000);
    let path: Vec<u32> = verdict.path.iter().map(|step| step.who.tid).collect();
    assert_eq!(path, [100, 101], "{}", verdict.sentence);
}

/// A client that gives up waiting and asks once more is no answer: the server waits for whom it asked itself.
#[test]
fn who_asks_once_more_is_no_answer() {
    let recording = record(
        "process client 100
        thread client client 100
        process relay 200
        thread relay relay 200
        process sink 300
        thread sink sink 300
        0 socket client object=inet:1 peer=inet:2 peer-process=relay
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> relay
        1ms cpu1 switch relay -> sink sleeping poll stack=poll;serve
        2ms cpu1 switch sink -> idle sleeping recvfrom object=inet:9 stack=recvfrom;answer
        10ms cpu0 wake client -> relay sendto object=inet:1
        10.1ms cpu0 switch client -> idle sleeping poll object=inet:1 stack=poll;send_dg
        10.2ms cpu1 switch idle -> relay
        10.3ms cpu1 wake relay -> sink sendto object=inet:8
        10.4ms cpu1 switch relay -> sink sleeping poll stack=poll;serve
        10.6ms cpu1 switch sink -> idle sleeping recvfrom object=inet:9 stack=recvfrom;answer
        3000ms cpu0 wake idle -> client in=timer
        3000.1ms cpu0 switch idle -> client
        3000.2ms cpu0 wake client -> relay sendto object=inet:1
        3000.3ms cpu0 switch client -> idle sleeping poll object=inet:1 stack=poll;send_dg
        3000.4ms cpu1 switch idle -> relay
        3000.6ms cpu1 switch relay -> idle sleeping poll stack=poll;serve
        end 3100ms",
    );
    let verdict = explain(&recording, "client", 11_000..2_999_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// Of a daemon's threads the one that waits for a program which that has started works for who is waiting, not
/// the one that sleeps for minutes.
#[test]
fn a_daemon_works_by_the_thread_that_waits_for_its_helper() {
    let recording = record(
        "process syslogd 100
        thread main syslogd 100
        thread input syslogd 101
        process helper 200
        process logger 300
        thread logger logger 300
        0 socket logger object=unix:1 peer=unix:2 remote=/run/log
        0 socket syslogd object=unix:2 local=/run/log
        0 open syslogd object=unix:2
        0 open syslogd object=pipe:7 access=read
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> input
        1us fork main -> helper helper 200
        2us cpu0 wake main -> helper fork new
        3us cpu0 switch main -> helper sleeping pselect6 arg=600s stack=pselect;main
        4us open helper object=pipe:7 access=write
        5us cpu1 switch input -> idle sleeping poll object=pipe:7 stack=poll;confirm
        6us cpu1 switch idle -> logger
        10us cpu1 switch logger -> idle sleeping sendmsg object=unix:1 stack=sendmsg;log
        end 3s",
    );
    let verdict = explain(&recording, "logger", 100..3_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// Two programs of a pipeline: one waits for what the other writes, and that for what comes from elsewhere. That
/// the first may have the other end of its pipe is a guess, and no circle.
#[test]
fn a_pipeline_that_goes_on_is_no_circle() {
    let recording = record(
        "process sh 100
        thread sh sh 100
        process head 201
        process cut 202
        0 cpu0 switch idle -> sh
        1us fork sh -> cut cut 202
        2us cpu1 wake sh -> cut fork new
        3us fork sh -> head head 201
        4us cpu2 wake sh -> head fork new
        5us cpu0 switch sh -> idle sleeping wait4 stack=wait4;sh
        6us cpu1 switch idle -> cut
        6us cpu2 switch idle -> head
        1ms cpu2 switch head -> idle sleeping read object=pipe:8 stack=read;head
        2ms cpu1 switch cut -> idle sleeping read object=pipe:7 stack=read;cut
        350ms cpu1 wake idle -> cut in=interrupt
        350.1ms cpu1 switch idle -> cut
        351ms cpu1 wake cut -> head write object=pipe:8 stack=write;cut
        351.1ms cpu2 switch idle -> head
        352ms cpu2 switch head -> idle dead
        end 400ms",
    );
    let verdict = explain(&recording, "head", 1_000..351_000);
    assert_ne!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
}

/// Who looks up a user's name over a connection that it had before waits for the answer, though nothing shows that it
/// asked; who polls such a connection anywhere else need not.
#[test]
fn a_look_up_of_a_name_awaits_its_answer() {
    let felt = |function: &str| {
        let recording = record(&format!(
            "process ls 100
            thread main ls 100 name=ls
            process server 200
            thread server server 200
            0 socket ls object=unix:1 peer=unix:2 peer-process=server
            0 cpu0 switch idle -> server
            0 cpu1 switch idle -> main
            1ms cpu1 switch main -> idle sleeping poll object=unix:1 stack=poll;{function};print_owner
            1ms cpu0 switch server -> idle sleeping poll object=inet:9 stack=poll;connect_elsewhere
            end 3s"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let main = recording.t("main");
        let of_main = found.iter().find(|problem| problem.thread == main);
        of_main.map_or(0.0, |problem| problem.felt)
    };
    assert!(felt("getpwuid") > 0.9, "{}", felt("getpwuid"));
    assert!(felt("wait_for_events") < 0.5, "{}", felt("wait_for_events"));
}

/// A server with one place for a job looks every second whether its client has hung up, and whether the compiler that
/// it started for it has ended: what another client waits for is the compiler, not the first client, which waits for
/// its answer.
#[test]
fn a_server_that_watches_its_client_waits_for_its_child() {
    let mut text = String::from(
        "process first 100
        thread first first 100
        process second 150
        thread second second 150
        process server 200
        thread server server 200
        process compiler 300
        0 socket first object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:3633
        0 socket server object=inet:2 peer=inet:1 local=127.0.0.1:3633 remote=127.0.0.1:5000
        0 socket server object=inet:3 local=127.0.0.1:3633
        1ms transfer first sent 100 object=inet:1 peer=inet:2
        1.1ms cpu0 switch idle -> first
        1.2ms cpu1 switch idle -> server
        1.5ms cpu0 switch first -> idle sleeping pselect6 object=inet:1 stack=select;wait_for_reply
        2ms transfer server received 100 object=inet:2 peer=inet:1
        3ms fork server -> compiler compiler 300
        4ms cpu2 switch idle -> compiler
        5ms cpu1 switch server -> idle sleeping pselect6 object=inet:2 stack=select;watch_client
",
    );
    for second in 1..8 {
        text += &format!(
            "        {0}005ms cpu1 wake idle -> server in=timer
        {0}005.1ms cpu1 switch idle -> server
        {0}005.2ms cpu1 switch server -> idle sleeping pselect6 object=inet:2 stack=select;watch_client
",
            second
        );
    }
    text += "        end 8500ms";
    let verdict = explain(&record(&text), "first", 1_500..8_500_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
    assert_eq!(verdict.root.class, Class::LongRunning);
}

/// A server lets a client wait on purpose, in a poll of the client's connection with a time limit: both wait for each
/// other, but the one has a limit, and is to go on when that is over.
#[test]
fn a_poll_that_is_to_last_for_a_while_waits_for_its_time_limit() {
    let sentence = |limit: &str| {
        let text = format!(
            "process client 100
            thread client client 100
            process server 200
            thread server server 200
            0 socket client object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:25
            0 socket server object=inet:2 peer=inet:1 local=127.0.0.1:25 remote=127.0.0.1:5000
            0 socket server object=inet:3 local=127.0.0.1:25
            1ms transfer client sent 100 object=inet:1 peer=inet:2
            1.1ms cpu0 switch idle -> client
            1.2ms cpu1 switch idle -> server
            1.5ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;reply
            2ms transfer server received 100 object=inet:2 peer=inet:1
            5ms cpu1 switch server -> idle sleeping poll object=inet:2 {limit} stack=poll;delay
            end 6s"
        );
        explain(&record(&text), "client", 1_500..6_000_000).sentence
    };
    let (limited, for_good) = (sentence("arg=9000"), sentence(""));
    assert!(
        limited.ends_with("server, which waited in delay until a timeout of 9.00 s."),
        "{limited}"
    );
    assert!(!for_good.contains("timeout"), "{for_good}");
}

/// A program was started in the background over ssh, and what started it has ended. It has the pipes open that the
/// server's session reads, so that neither that nor the client ends. Threads that it made and that wait as soon as they
/// run are not what it waits for.
#[test]
fn a_program_in_the_background_keeps_a_pipe_open() {
    let recording = record(
            "process ssh 100\nthread ssh ssh 100
            process sshd 200\nthread sshd sshd 200
            process bash 300\nprocess daemon 400
            0 socket ssh object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:22
            0 socket sshd object=inet:2 local=127.0.0.1:22 remote=127.0.0.1:5000
            0 socket sshd object=inet:3 local=127.0.0.1:22
            0 open ssh object=inet:1 last=received
            0 open sshd object=inet:2 last=sent
            0 open sshd object=inet:3 kind=listener
            0 open sshd object=pipe:7 access=read
            0 open daemon object=pipe:7 access=write
            0 cpu0 switch idle -> ssh
            0 cpu1 switch idle -> sshd
            0.1ms fork sshd -> bash bash 300
            0.2ms fork bash -> daemon daemon 400
            0.3ms cpu2 switch idle -> daemon
            0.4ms cpu3 switch idle -> bash
            0.5ms cpu2 switch daemon -> idle uninterruptible read object=file:9 stack=read;settings kstack=io_schedule;wait
            0.7ms cpu2 wake idle -> daemon in=interrupt vector=33
            0.8ms cpu2 switch idle -> daemon
            0.9ms exit bash 0
            1ms fork daemon -> helper daemon 401
            1ms cpu2 wake daemon -> helper fork new
            1.1ms cpu3 switch bash -> helper dead
            1.2ms fork daemon -> second daemon 402
            1.3ms cpu2 wake daemon -> second fork new
            1.4ms cpu3 switch helper -> second sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;maintain
            1.5ms cpu3 switch second -> idle sleeping futex arg=128 object=futex:0x50 stack=pthread_cond_wait;sweep
            2ms cpu2 switch daemon -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;serve
            3ms cpu1 switch sshd -> idle sleeping ppoll stack=ppoll;session
            4ms cpu0 switch ssh -> idle sleeping poll stack=poll;client_loop
            end 6s",
    );
    let verdict = explain(&recording, "ssh", 4_000..6_000_000);
    let says = "daemon, which kept a pipe open that sshd reads";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
}

/// All workers of a server's pool wait for another service: the way to that says how many. Of three it says nothing.
#[test]
fn how_many_threads_wait_for_one_service() {
    let reason = |workers: usize| {
        let mut text = String::from(
            "process client 100\nthread client client 100
            process web 200\nthread web web 200
            process service 300\nthread service service 300
            0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket web object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
            0 socket web object=inet:3 local=127.0.0.1:80
            0 socket service object=inet:4 local=127.0.0.1:90
            0 cpu0 switch idle -> client\n0 cpu1 switch idle -> service\n",
        );
        for worker in 0..workers {
            let (own, end, port) = (10 + worker, 40 + worker, 6000 + worker);
            text += &format!(
                "thread worker{worker} web {}
                0 socket web object=inet:{own} local=127.0.0.1:{port} remote=127.0.0.1:90
                0 socket service object=inet:{end} local=127.0.0.1:90 remote=127.0.0.1:{port}
                {}ms cpu2 switch idle -> worker{worker}
                {}.5ms transfer worker{worker} sent 8 object=inet:{own}
                {}.7ms cpu2 switch worker{worker} -> idle sleeping recvfrom object=inet:{own} stack=recv;fetch\n",
                201 + worker,
                1 + worker,
                1 + worker,
                1 + worker
            );
        }
        let recording = record(&format!(
            "{text}
            20ms cpu1 switch service -> idle sleeping nanosleep arg=9s stack=nanosleep;render
            21ms transfer client sent 8 object=inet:1
            22ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;ask
            23ms cpu3 switch idle -> web
            24ms cpu3 switch web -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;serve
            end 3s"
        ));
        let verdict = explain(&recording, "client", 22_000..3_000_000);
        assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
        let reasons = verdict.path.iter().filter_map(|step| step.edge.as_ref());
        reasons
            .map(|edge| edge.reason.clone())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let says = "threads of its process wait for that";
    assert!(reason(5).contains(&format!("5 {says}")), "{}", reason(5));
    assert!(!reason(3).contains(says), "{}", reason(3));
}

/// A server's main thread polls the connection by which it was asked before the recording, and hands on what comes to
/// a thread that computes the answer. That the answer comes at last does not make the connection one that was used
/// before.
#[test]
fn a_main_thread_that_polls_hands_on_what_comes() {
    let recording = record(
        "process client 100\nthread client client 100
        process server 200\nthread main server 200 name=server\nthread worker server 201
        0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket server object=inet:3 local=127.0.0.1:80
        0 open client object=inet:1
        0 open server object=inet:2
        0 open server object=inet:3 kind=listener
        0 cpu1 switch idle -> worker
        0 cpu0 switch client -> idle sleeping poll object=inet:1 stack=poll;ask
        0 cpu0 switch main -> idle sleeping poll object=inet:2 arg=60000 stack=poll;dispatch
        2440ms transfer worker sent 8 object=inet:2
        2441ms cpu1 wake worker -> client sendto in=softirq vector=3
        2441.1ms cpu0 switch idle -> client
        2441.2ms transfer client received 8 object=inet:1
        2442ms cpu1 switch worker -> idle sleeping futex arg=393 object=futex:0x10 stack=sem_wait;take
        2443ms cpu0 switch client -> idle sleeping read object=char:3 stack=read;prompt
        end 6s",
    );
    let verdict = explain(&recording, "client", 0..2_441_000);
    assert_eq!(verdict.root.who.tid, 201, "{}", verdict.sentence);
    assert_eq!(verdict.root.class, Class::LongRunning);
    let victims = problems(&recording, None);
    assert_eq!(victims[0].0, "client", "{victims:?}");
}

/// Apache's parent has both ends of the pipe to its log's program open, and reads nothing there: of those that may read
/// from the pipe, the one that could not write to it is meant.
#[test]
fn a_parent_keeps_both_ends_of_a_pipe_open() {
    let recording = record(
        "process apache2 100\nthread parent apache2 100
        process worker 200
        process rotatelogs 300
        0 fork parent -> worker worker 200
        0 fork parent -> rotatelogs rotatelogs 300
        0 open apache2 object=pipe:7 access=read
        0 open apache2 object=pipe:7 access=write
        0 open worker object=pipe:7 access=write
        0 open rotatelogs object=pipe:7 access=read
        0 cpu0 switch parent -> idle sleeping pselect6 arg=1s stack=select;ap_wait_or_timeout
        0 cpu0 switch rotatelogs -> idle uninterruptible write object=file:9 stack=write;doRotate kstack=percpu_rwsem_wait;mnt_want_write
        0 cpu0 switch worker -> idle sleeping write object=pipe:7 stack=write;log_transaction
        end 900ms",
    );
    let verdict = explain(&recording, "worker", 0..900_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
    assert!(
        verdict.sentence.contains("frozen file system"),
        "{}",
        verdict.sentence
    );
}

/// A command asks a service of the desktop for a password by the message bus, and the service shows a dialog that nobody
/// sees: the command waits for whoever should answer that.
#[test]
fn a_dialog_keeps_a_command_waiting() {
    let recording = record(
        "process sh 50\nthread sh sh 50
        process secret-tool 100
        0 fork sh -> tool secret-tool 100
        0 rename tool secret-tool
        process dbus-daemon 200\nthread bus dbus-daemon 200 name=dbus-daemon
        process gcr-prompter 300\nthread dialog gcr-prompter 300 name=gcr-prompter
        process Xvfb 400\nthread display Xvfb 400 name=Xvfb
        0 socket secret-tool object=unix:1 peer=unix:2 peer-process=dbus-daemon remote=/run/bus
        0 socket dbus-daemon object=unix:2 peer=unix:1 peer-process=secret-tool local=/run/bus
        0 socket gcr-prompter object=unix:3 peer=unix:4 peer-process=Xvfb remote=@/tmp/.X11-unix/X0
        0 socket Xvfb object=unix:4 peer=unix:3 peer-process=gcr-prompter local=@/tmp/.X11-unix/X0
        0 open secret-tool object=unix:1 last=received
        0 open gcr-prompter object=unix:3 last=received
        0 cpu0 switch bus -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;run
        0 cpu0 switch display -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;WaitForSomething
        0 cpu0 switch dialog -> idle sleeping poll object=unix:3 stack=poll;g_main_loop_run
        0 cpu0 switch sh -> idle sleeping wait4 arg=100 stack=wait4;run
        0 cpu0 switch tool -> idle sleeping poll object=eventfd:5 stack=poll;g_main_loop_run
        end 3s",
    );
    let verdict = explain(&recording, "tool", 0..3_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// A browser's main process waits for its page, which waits for what another process of the browser has asked a server
/// for.
#[test]
fn a_program_waits_for_what_its_helper_asked() {
    let recording = record(
        "process chromium 100\nthread browser chromium 100 name=chromium
        process network 200\nthread net network 201\nthread inotify network 202
        process haproxy 300\nthread proxy haproxy 300
        0 fork browser -> service network 200
        0 rename service chromium
        0 socket network object=inet:1 peer=inet:2 peer-process=haproxy remote=127.0.0.1:80
        0 socket haproxy object=inet:3 local=127.0.0.1:80
        0 socket haproxy object=inet:2 peer=inet:1 peer-process=network local=127.0.0.1:80
        0 open network object=inet:1 last=sent
        0 open haproxy object=inet:2 last=received
        0 cpu1 switch idle -> proxy
        0 cpu0 switch service -> idle sleeping futex object=futex:0x10 arg=393 stack=futex;pthread_cond_wait;run
        0 cpu0 switch net -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;loop
        0 cpu0 switch inotify -> idle sleeping poll object=anonymous:7 stack=poll;read_files
        0 cpu0 switch browser -> idle sleeping poll stack=poll;g_main_context_iteration;ChromeMain
        end 3s",
    );
    let verdict = explain(&recording, "browser", 0..3_000_000);
    assert_eq!(
        verdict.root.who.tid,
        300,
        "{} {:?}",
        verdict.sentence,
        way(&verdict)
    );
}

/// One name server asks another by a datagram, and that one a third, whose packets are dropped: it waits for the network.
/// Who was asked and has received the question is no such case.
#[test]
fn a_datagram_is_not_answered() {
    let recording = record(
        "process curl 100\nthread curl curl 100
        process near 200\nthread near near 200
        process far 300\nthread far far 300
        0 socket curl object=inet:1 peer=inet:2 peer-process=near remote=127.0.0.1:53
        0 socket near object=inet:2 peer=inet:1 peer-process=curl local=127.0.0.1:53
        0 socket near object=inet:3 local=0.0.0.0:4003
        0 socket far object=inet:4 local=127.0.0.2:53
        0 socket far object=inet:5 local=0.0.0.0:4005
        0 cpu0 switch near -> idle sleeping poll stack=poll;do_poll
        0 cpu1 switch far -> idle sleeping poll stack=poll;do_poll
        1ms cpu0 switch idle -> curl
        2.0ms cpu0 wake curl -> near
        2.0ms transfer curl sent 27 object=inet:1 peer=inet:2
        2.1ms cpu0 switch curl -> near sleeping poll object=inet:1 stack=poll;res_send
        2.2ms transfer near received 27 object=inet:2 peer=inet:1
        2.3ms cpu0 wake near -> far
        2.3ms transfer near sent 27 object=inet:3
        2.4ms cpu0 switch near -> idle sleeping poll stack=poll;do_poll
        2.4ms cpu1 switch idle -> far
        2.5ms transfer far received 27 object=inet:4
        2.6ms transfer far sent 27 object=inet:5
        2.7ms cpu1 switch far -> idle sleeping poll stack=poll;do_poll
        end 3s",
    );
    let verdict = explain(&recording, "curl", 2_100..3_000_000);
    assert_eq!(
        verdict.root.who.tid,
        300,
        "{} {:?}",
        verdict.sentence,
        way(&verdict)
    );
    let says = "waited for an answer to a datagram that it had sent";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
}

/// A program of a toolkit has two buses: of what it asks for, it asks the one of the session.
#[test]
fn the_bus_of_screen_readers_comes_last() {
    let recording = record(
        "process search 100\nthread search search 100
        process dbus-daemon 200\nthread readers dbus-daemon 200 name=dbus-daemon
        process dbus-session 300\nthread session dbus-session 300 name=dbus-daemon
        0 socket search object=unix:1 peer=unix:2 peer-process=dbus-daemon remote=/run/at-spi/bus_0
        0 socket dbus-daemon object=unix:2 peer=unix:1 peer-process=search local=/run/at-spi/bus_0
        0 socket search object=unix:3 peer=unix:4 peer-process=dbus-session remote=/run/bus
        0 socket dbus-session object=unix:4 peer=unix:3 peer-process=search local=/run/bus
        0 cpu0 switch readers -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;run
        0 cpu0 switch session -> idle sleeping epoll_wait object=epoll:8 stack=epoll_wait;run
        0 cpu0 switch search -> idle sleeping poll object=eventfd:5 stack=poll;g_dbus_connection_call_sync;on_key
        end 3s",
    );
    let verdict = explain(&recording, "search", 0..3_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// A client sends a request in two pieces, and TCP keeps the second until the first is acknowledged: neither of the two
/// programs is at fault, and no time is the server's.
#[test]
fn what_tcp_held_back_was_sent_long_before() {
    let sentence = |ms: u64| {
        let recording = record(&format!(
            "process client 100\nthread client client 100
            process server 200\nthread server server 200
            0 socket client object=inet:1 peer=inet:2 peer-process=server remote=127.0.0.1:80
            0 socket server object=inet:2 peer=inet:1 peer-process=client local=127.0.0.1:80
            0 socket server object=inet:3 local=127.0.0.1:80
            0 cpu1 switch server -> idle sleeping recvfrom object=inet:2 stack=recv;serve
            1ms cpu0 switch idle -> client
            2ms transfer client sent 10 object=inet:1 peer=inet:2
            2.1ms cpu0 wake client -> server sendto in=softirq vector=3 object=inet:2
            2.2ms cpu1 switch idle -> server
            2.3ms transfer client sent 11 object=inet:1 peer=inet:2
            2.3ms transfer server received 10 object=inet:2 peer=inet:1
            2.4ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;ask
            2.4ms cpu1 switch server -> idle sleeping recvfrom object=inet:2 stack=recv;serve
            {ms}ms cpu1 wake idle -> server in=softirq vector=3 object=inet:2
            {ms}.1ms cpu1 switch idle -> server
            {ms}.2ms transfer server received 11 object=inet:2 peer=inet:1
            {ms}.3ms transfer server sent 5 object=inet:2 peer=inet:1
            {ms}.4ms cpu1 wake server -> client sendto in=softirq vector=3 object=inet:1
            {ms}.5ms cpu0 switch idle -> client
            {ms}.6ms transfer client received 5 object=inet:1 peer=inet:2
            {ms}.7ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;ask
            end 1s"
        ));
        explain(&recording, "client", 2_400..ms * 1_000).sentence
    };
    let late = "for TCP to deliver what it had sent in ask (as with Nagle's algorithm and delayed acknowledgements)";
    let (held_back, lost, soon) = (sentence(44), sentence(244), sentence(12));
    assert!(held_back.contains(late), "{held_back}");
    assert!(lost.contains("as after a packet was lost"), "{lost}");
    assert!(!soon.contains("TCP"), "{soon}");
}

/// In a single moment two ends of a connection may both wait while what one has sent is under way. Only if they have
/// waited for long do they wait for each other.
#[test]
fn what_is_under_way_is_no_circle() {
    let class = |age: &str| {
        let mut recording = record(&format!(
            "process client 100\nthread client client 100
            process server 200\nthread server server 200
            0 socket client object=inet:1 peer=inet:2 peer-process=server remote=127.0.0.1:80
            0 socket server object=inet:2 peer=inet:1 peer-process=client local=127.0.0.1:80
            0 open client object=inet:1 last=sent
            0 open server object=inet:2 last=received
            0 away client {age} lived=10s
            0 away server {age} lived=10s
            0 cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;ask
            0 cpu1 switch server -> idle sleeping recvfrom object=inet:2 stack=recv;serve
            end 1s"
        ));
        recording.trace.tables.switches.cpu.fill(NO_CPU);
        explain(&recording, "client", 0..1_000_000).root.class
    };
    assert_eq!(class("30ms"), Class::LongWait);
    assert_eq!(class("3s"), Class::Circular);
}

/// A test starts a server in the background and ends. It is what the test runner polls the pipes of its output for, all
/// along, though the server's threads sleep or wait for clients.
#[test]
fn a_server_that_a_test_left_behind_keeps_its_output_open() {
    const OPEN: &str = "0 open prove object=pipe:7 access=read
            0 open prove object=pipe:8 access=read
            0 open memcached object=pipe:7 access=write
            0 open memcached object=pipe:8 access=write";
    // Who has the pipes open is not known of a recorder's snapshot after the server's end.
    const ENDS: &str = "7999ms exit memcached 15
            7999ms cpu2 switch idle -> memcached
            7999.1ms cpu2 wake memcached -> prove exit_group
            7999.2ms cpu0 switch idle -> prove
            7999.3ms cpu2 switch memcached -> idle dead";
    for (poll, open, ends) in [
        ("pselect6", OPEN, ""),
        ("pselect6 object=pipe:7", OPEN, ""),
        ("pselect6", "", ENDS),
    ] {
        let recording = record(&format!(
            "process shell 50\nthread shell shell 50
            process prove 100
            process test 200\nprocess memcached 300
            {open}
            0 cpu0 switch idle -> shell
            0.1ms fork shell -> prove prove 100
            0.2ms cpu0 wake shell -> prove fork new
            0.3ms cpu0 switch shell -> prove sleeping wait4 arg=100 stack=wait4;sh
            0.4ms fork prove -> test test 200
            0.5ms cpu1 wake prove -> test fork new
            0.6ms cpu1 switch idle -> test
            0.7ms fork test -> memcached memcached 300
            0.8ms cpu2 wake test -> memcached fork new
            0.9ms cpu2 switch idle -> memcached
            1ms fork memcached -> worker memcached 301
            1ms fork memcached -> keeper memcached 302
            1.1ms cpu3 wake memcached -> worker fork new
            1.2ms cpu3 switch idle -> worker
            1.3ms cpu3 switch worker -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;serve
            1.4ms cpu3 wake memcached -> keeper fork new
            1.5ms cpu3 switch idle -> keeper
            1.6ms cpu3 switch keeper -> idle sleeping clock_nanosleep arg=10s stack=nanosleep;maintain
            2ms cpu0 switch prove -> idle sleeping {poll} stack=select;can_read
            500ms cpu2 wake memcached -> worker write object=pipe:3
            500.1ms cpu3 switch idle -> worker
            500.2ms cpu2 switch memcached -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;serve
            500.3ms cpu3 switch worker -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;serve
            600ms exit test 0
            600.1ms cpu1 switch test -> idle dead
            {ends}
            end 8s"
        ));
        let found = problems(&recording, None);
        assert_eq!(found[0].0, "prove", "{found:?}");
        let verdict = explain(&recording, "prove", 600_000..7_999_000);
        assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
        let says = "memcached, which kept a pipe open that prove reads";
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
    }
}

/// A server waits for room to send: what it has sent lies unread with a client on this machine, which takes its time.
/// The packet by which that says that there is room may come in anybody's time.
#[test]
fn who_leaves_unread_what_was_sent_keeps_the_sender_waiting() {
    let root = |unread: &str| {
        let recording = record(&format!(
            "process client 100\nthread client client 100
            process server 200\nthread server server 200
            0 socket client object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket server object=inet:2 peer=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
            0 socket server object=inet:3 local=127.0.0.1:80
            0 open client object=inet:1 last=received {unread}
            0 open server object=inet:2 last=sent
            0 cpu0 switch client -> idle sleeping poll arg=3000 object=unix:9 stack=poll;limit_rate
            1ms cpu1 switch idle -> server
            2ms transfer server sent 60000 object=inet:2 peer=inet:1
            3ms cpu1 switch server -> idle sleeping epoll_wait object=inet:2 stack=epoll_wait;serve
            900ms cpu1 wake idle -> server in=softirq vector=3
            900.1ms cpu1 switch idle -> server
            end 1s"
        ));
        explain(&recording, "server", 3_000..900_000).root.who.tid
    };
    assert_eq!(root("unread=50000"), 100);
    assert_eq!(root(""), 200, "it may not have arrived");
}

/// Of a pipeline whose pipes were not seen each program reads what the one before it writes, and not what the last does.
#[test]
fn a_pipeline_is_in_order() {
    let recording = record(
        "process sh 100\nthread sh sh 100
        process tar 201\nprocess head 202\nprocess xz 203\nprocess wc 204
        0 cpu0 switch idle -> sh
        1us fork sh -> tar tar 201
        2us cpu1 wake sh -> tar fork new
        3us fork sh -> head head 202
        4us cpu1 wake sh -> head fork new
        5us fork sh -> xz xz 203
        6us cpu2 wake sh -> xz fork new
        7us fork sh -> wc wc 204
        8us cpu3 wake sh -> wc fork new
        9us cpu0 switch sh -> idle sleeping wait4 stack=wait4;sh
        10us cpu1 switch idle -> tar
        20us cpu1 switch tar -> head sleeping write object=pipe:1 stack=write;archive
        30us cpu1 switch head -> idle sleeping write object=pipe:2 stack=write;copy
        40us cpu2 switch idle -> xz
        50us cpu3 switch idle -> wc
        60us cpu3 switch wc -> idle sleeping read object=pipe:3 stack=read;count
        end 3s",
    );
    let verdict = explain(&recording, "tar", 1_000..3_000_000);
    let threads: Vec<u32> = verdict.path.iter().map(|step| step.who.tid).collect();
    assert_eq!(threads, [201, 202, 203], "{}", verdict.sentence);
    let verdict = explain(&recording, "wc", 1_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 203, "{}", verdict.sentence);
}

/// A server that was asked waits in its event loop for a connection that it has begun to make right before, until it
/// gives up; where it began long before, that may be another's.
#[test]
fn an_event_loop_that_gives_up_on_a_connection() {
    let sentence = |begun: &str| {
        let recording = record(&format!(
            "process curl 100\nthread curl curl 100
            process nginx 200\nthread nginx nginx 200
            0 socket nginx object=inet:3 local=127.0.0.1:80
            0 open nginx object=inet:3 kind=listener
            0 socket curl object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
            0 socket nginx object=inet:2 peer=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
            0 open curl object=inet:1
            0 open nginx object=inet:2
            0 cpu0 switch idle -> curl
            0 cpu1 switch nginx -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;serve
            {begun} socket nginx object=inet:5 local=10.0.0.1:4000 remote=10.0.0.9:80 connecting=yes
            500ms transfer curl sent 90 object=inet:1 peer=inet:2
            500.1ms cpu0 wake curl -> nginx sendto in=softirq vector=3 object=inet:1
            500.2ms cpu1 switch idle -> nginx
            500.3ms cpu0 switch curl -> idle sleeping recvfrom object=inet:1 stack=recv;get
            500.4ms transfer nginx received 90 object=inet:2 peer=inet:1
            501ms cpu1 switch nginx -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;serve
            3000ms cpu1 wake idle -> nginx in=timer
            3000.1ms cpu1 switch idle -> nginx
            3000.2ms transfer nginx sent 50 object=inet:2 peer=inet:1
            3000.3ms cpu1 wake nginx -> curl sendto in=softirq vector=3 object=inet:2
            3000.4ms cpu0 switch idle -> curl
            end 3100ms"
        ));
        explain(&recording, "curl", 500_300..3_000_300).sentence
    };
    let says = "nginx waited in serve for a connection to 10.0.0.9:80, which did not answer";
    let soon = sentence("499.9ms");
    assert!(soon.contains(says), "{soon}");
    let long_before = sentence("100ms");
    assert!(!long_before.contains("10.0.0.9"), "{long_before}");
}

/// A server that waits for a database is woken by the one who asked it, who gives up or checks whether it is there:
/// that is no answer. Whom it asked before the recording began is not known; one that waits for a lock is amid work.
#[test]
fn who_asked_brings_no_answer() {
    let people = "process curl 100\nthread curl curl 100
        process shop 200\nthread shop shop 200\nthread monitor shop 201
        process postgres 300\nthread postgres postgres 300
        0 socket shop object=inet:3 local=127.0.0.1:80
        0 open shop object=inet:3 kind=listener
        0 socket curl object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket shop object=inet:2 peer=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket shop object=inet:5 peer=inet:6 local=127.0.0.1:6000 remote=127.0.0.1:5432
        0 socket postgres object=inet:6 peer=inet:5 local=127.0.0.1:5432 remote=127.0.0.1:6000
        0 socket postgres object=inet:9 local=127.0.0.1:5432
        0 open postgres object=inet:9 kind=listener
        0 open curl object=inet:1 last=sent
        0 open shop object=inet:2 last=received
        0 open shop object=inet:5
        0 open postgres object=inet:6";
    let sysmon = "sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;runtime.notetsleep;runtime.sysmon";
    let root = |does: &str| {
        let recording = record(&format!(
            "{people}
            0 cpu0 switch curl -> idle sleeping poll object=inet:1 stack=poll;get
            0 cpu3 switch monitor -> idle {sysmon}
            0 cpu1 switch shop -> idle sleeping epoll_pwait object=epoll:7 stack=Syscall6;runtime.netpoll;runtime.findRunnable;runtime.schedule
            0 cpu2 switch postgres -> idle sleeping epoll_wait object=epoll:8 stack={does}
            2000ms cpu0 wake idle -> curl in=timer
            2000.1ms cpu0 switch idle -> curl
            2000.2ms cpu0 wake curl -> shop close in=softirq vector=3
            2000.3ms cpu1 switch idle -> shop
            2000.35ms cpu1 wake shop -> monitor futex object=futex:0x10
            2000.37ms cpu3 switch idle -> monitor
            2000.39ms cpu3 switch monitor -> idle {sysmon}
            2000.4ms cpu0 switch curl -> idle sleeping poll object=inet:1 stack=poll;get
            2000.5ms cpu1 switch shop -> idle sleeping epoll_pwait object=epoll:7 stack=Syscall6;runtime.netpoll;runtime.findRunnable;runtime.schedule;runtime.goexit0
            end 2100ms"
        ));
        let verdict = explain(&recording, "curl", 0..2_100_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (tid, sentence) = root("epoll_wait;WaitLatch;ProcSleep;LockAcquireExtended;exec");
    assert_eq!(tid, 300, "{sentence}");
    let (tid, sentence) = root("epoll_wait;WaitLatch;secure_read;PostgresMain");
    assert_eq!(tid, 200, "{sentence}");
}

/// A client polls again and again, a second at a time, for a connection that it makes: nothing answers, though somebody
/// listens there. With the first byte it is connected, and so it is if anything but its own time limit woke it.
#[test]
fn a_connection_that_nothing_answers() {
    let root = |at: &str, connecting: &str, more: &str, woken: &str| {
        let recording = record(&format!(
            "process curl 100\nthread curl curl 100
            process server 200\nthread server server 200
            0 socket server object=inet:3 local=127.0.0.1:42101
            0 open server object=inet:3 kind=listener
            0 cpu1 switch server -> idle sleeping accept object=inet:3 stack=accept;serve
            {at} socket curl object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:42101 {connecting}
            9.2ms cpu0 switch idle -> curl
            {more}
            10ms cpu0 switch curl -> idle sleeping poll object=inet:1 arg=1000 stack=poll;curl_multi_poll
            1010ms cpu0 wake idle -> curl {woken}
            1010.1ms cpu0 switch idle -> curl
            1011ms cpu0 switch curl -> idle sleeping poll object=inet:1 arg=1000 stack=poll;curl_multi_poll
            2011ms cpu0 wake idle -> curl in=timer
            2011.1ms cpu0 switch idle -> curl
            2012ms cpu0 switch curl -> idle sleeping poll object=inet:1 arg=1000 stack=poll;curl_multi_poll
            end 3s"
        ));
        let verdict = explain(&recording, "curl", 10_000..2_900_000);
        verdict.sentence
    };
    let timer = "in=timer";
    let says = "for a connection to 127.0.0.1:42101, which did not answer";
    let sentence = root("9ms", "connecting=yes", "", timer);
    assert!(sentence.contains(says), "{sentence}");
    let sent = "9.5ms transfer curl sent 9 object=inet:1";
    let packet = "in=softirq vector=3";
    for (at, connecting, more, woken) in [
        ("9ms", "", "", timer),
        ("9ms", "connecting=yes", sent, timer),
        ("9ms", "connecting=yes", "", packet),
        ("0", "connecting=yes", "", timer),
    ] {
        let sentence = root(at, connecting, more, woken);
        assert!(!sentence.contains(says), "{sentence}");
    }
}

/// Who pastes waits for the owner of the clipboard, which the display asked, and not for its own time limit; that a
/// thread waits with a time limit elsewhere says nothing of the clipboard.
#[test]
fn who_pastes_waits_for_the_owner_of_the_clipboard() {
    let root = |function: &str| {
        let recording = record(&format!(
            "process Xvfb 100\nthread Xvfb Xvfb 100
            process calculator 200\nthread main calculator 200 name=calculator
            process emacs 300\nthread emacs emacs 300
            0 socket Xvfb object=unix:1 peer=unix:2 local=@/tmp/.X11-unix/X9
            0 socket calculator object=unix:2 peer=unix:1 remote=@/tmp/.X11-unix/X9
            0 socket Xvfb object=unix:3 peer=unix:4 local=@/tmp/.X11-unix/X9
            0 socket emacs object=unix:4 peer=unix:3 remote=@/tmp/.X11-unix/X9
            0 open Xvfb object=unix:1\n0 open Xvfb object=unix:3
            0 open calculator object=unix:2\n0 open emacs object=unix:4 unread=32
            0 cpu2 switch idle -> emacs
            0 cpu0 switch main -> idle sleeping futex arg=137 object=futex:0x10 stack=pthread_cond_timedwait;QWaitCondition::wait;{function};QMimeData::text()
            0 cpu1 switch Xvfb -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;WaitForSomething
            3s cpu0 wake idle -> main in=timer
            3.001s cpu0 switch idle -> main
            end 3.1s"
        ));
        explain(&recording, "main", 0..3_000_000).root.who.tid
    };
    assert_eq!(
        root("QInternalMimeData::retrieveData(QString,QVariant::Type)"),
        300
    );
    assert_eq!(root("Timer::pause()"), 200);
}

/// A server's processes wait for the next order of their client, which waits for a connection itself: the client is who
/// is held up. A program that asks the server meanwhile is kept waiting itself.
#[test]
fn a_server_that_waits_for_its_client_is_not_held_up() {
    let found = |helper: &str| {
        let recording = record(&format!(
            "process curl 100\nthread curl curl 100
            process parent 200\nthread parent parent 200 name={helper}
            process vsftpd 300\nthread child vsftpd 300 name=vsftpd
            0 socket vsftpd object=inet:3 local=127.0.0.1:21
            0 socket curl object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:21
            0 socket vsftpd object=inet:2 peer=inet:1 local=127.0.0.1:21 remote=127.0.0.1:5000
            0 socket parent object=unix:5 peer=unix:6
            0 socket vsftpd object=unix:6 peer=unix:5
            0 open parent object=unix:5 last=sent
            0 open vsftpd object=unix:6 last=received
            0 open vsftpd object=inet:2 last=sent
            0 open curl object=inet:7 last=lost
            0 socket curl object=inet:7 local=127.0.0.1:5001 remote=127.0.0.1:42101
            0 cpu0 switch curl -> idle sleeping poll object=inet:7 stack=poll;curl_multi_poll
            0 cpu1 switch parent -> idle sleeping read object=unix:5 stack=read;parent_loop
            0 cpu2 switch child -> idle sleeping recvfrom object=inet:2 stack=recv;session
            end 3s"
        ));
        problems(&recording, None)
    };
    assert_eq!(found("vsftpd")[0].0, "curl");
    assert_eq!(found("monitor")[0].0, "monitor");
}

/// A script that drives a program by a terminal waits for what that prints, and the program for what is typed there: who
/// started it may have the other end. A shell that waits for the program to end does not.
#[test]
fn a_prompt_that_nobody_answers() {
    let sentence = |waits: &str| {
        let recording = record(&format!(
            "process expect 100
            thread expect expect 100
            process openssl 200
            0 cpu0 switch idle -> expect
            1us fork expect -> openssl openssl 200
            2us cpu1 wake expect -> openssl fork new
            5us cpu1 switch idle -> openssl
            10us cpu0 switch expect -> idle sleeping {waits}
            20us cpu1 switch openssl -> idle sleeping read object=char:9 stack=read;UI_process
            end 6s"
        ));
        explain(&recording, "expect", 1_000..6_000_000).sentence
    };
    let driven = sentence("pselect6 stack=select;Tcl_WaitForEvent");
    let says = "input from a terminal or device (expect may have its other end) in UI_process";
    assert!(driven.contains(says), "{driven}");
    let started = sentence("wait4 arg=200 stack=wait4;sh");
    assert!(!started.contains("other end"), "{started}");
}

/// A program asks a server by a System V message queue, and waits for the answer. It has got all of them from that
/// server, which is stopped now.
#[test]
fn an_answer_by_a_message_queue() {
    let turns: String = (1..20)
        .map(|at| {
            format!(
                "{at}0ms cpu0 wake cp -> faked msgsnd stack=msgsnd;ask
                {at}0.01ms cpu1 switch idle -> faked
                {at}0.02ms cpu0 switch cp -> idle sleeping msgrcv stack=msgrcv;ask
                {at}0.1ms cpu1 wake faked -> cp msgsnd stack=msgsnd;serve
                {at}0.11ms cpu0 switch idle -> cp
                {at}0.2ms cpu1 switch faked -> idle sleeping msgrcv stack=msgrcv;serve\n"
            )
        })
        .collect();
    let recording = record(&format!(
        "process cp 100
        thread cp cp 100
        process faked 200
        thread faked faked 200
        process sh 300
        thread sh sh 300
        0 cpu0 switch idle -> cp
        0 cpu1 switch idle -> faked
        1ms cpu1 switch faked -> idle sleeping msgrcv stack=msgrcv;serve
        {turns}
        300ms cpu2 wake sh -> faked kill arg=19
        300.01ms cpu1 switch idle -> faked
        300.02ms cpu1 switch faked -> idle stopped msgrcv arg=19 stack=msgrcv;serve
        310ms cpu0 switch cp -> idle sleeping msgrcv stack=msgrcv;ask
        end 6s"
    ));
    let verdict = explain(&recording, "cp", 310_000..6_000_000);
    assert_eq!(verdict.root.who.pid, 200, "{}", verdict.sentence);
    assert!(verdict.sentence.contains("stopped"), "{}", verdict.sentence);
}
