//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with.

mod support;

use hangdog_diagnose::{Class, problem};
use support::*;

const PLAYER: &str = "
    process player 100
    thread player player 100
    thread decoder player 101
    thread audio player 102
";
const SEMAPHORE: &str =
    "sleeping futex op=wait object=futex:0x10 stack=__new_sem_wait_slow;present_frame";

/// The decoder gives a semaphore six times, every 10 ms, and exits at 62 ms. The player waits on, for
/// good; a third thread that naps is not to blame. From 70 ms on all time is the decoder's, which had
/// exited.
#[test]
fn a_partner_that_exited_is_missed() {
    let mut text = format!("{PLAYER}0 cpu0 switch idle -> player\n0 cpu1 switch idle -> decoder\n");
    for turn in 0..6 {
        let at = 1 + 10 * turn;
        text += &format!(
            "{at}ms cpu0 switch player -> idle {SEMAPHORE}
            {}ms cpu1 wake decoder -> player futex op=wake object=futex:0x10 stack=sem_post;decode
            {}us cpu0 switch idle -> player\n",
            at + 9,
            (at + 9) * 1000 + 10
        );
    }
    text += &format!(
        "61ms cpu0 switch player -> idle {SEMAPHORE}
        62ms exit decoder 0
        62ms cpu1 switch decoder -> audio dead\n"
    );
    for at in (70..600).step_by(20) {
        text += &format!(
            "{at}ms cpu1 switch audio -> idle sleeping nanosleep arg=19ms stack=nanosleep;play
            {}ms cpu1 wake idle -> audio in=timer
            {}us cpu1 switch idle -> audio\n",
            at + 19,
            (at + 19) * 1000 + 10
        );
    }
    let recording = record(&format!("{text}end 600ms"));
    let verdict = explain(&recording, "player", 70_000..600_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (101, Class::LongWait)
    );
    assert_eq!(of_thread(&verdict, 101, "exited"), 530_000);
    assert!(
        verdict.sentence.contains("player/decoder exited"),
        "{}",
        verdict.sentence
    );
}

/// Two threads wait at a barrier for a third, which returned early: nobody is left that could end that. Threads
/// that exited long before are not missed.
#[test]
fn a_thread_that_returned_early_is_missed_at_the_barrier() {
    const WAIT: &str = "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;step;main";
    let verdict = |exit: &str| {
        let recording = record(&format!(
            "process simulate 100
            thread first simulate 100
            thread second simulate 101
            thread third simulate 102
            0 cpu0 switch idle -> first
            0 cpu1 switch idle -> second
            0 cpu2 switch idle -> third
            {exit} exit third 0
            {exit} cpu2 switch third -> idle dead
            2500ms cpu0 switch first -> idle {WAIT}
            2501ms cpu1 switch second -> idle {WAIT}
            end 9s"
        ));
        explain(&recording, "first", 2_501_000..9_000_000)
    };
    let missed = verdict("2450ms");
    assert_eq!(missed.root.who.tid, 102, "{}", missed.sentence);
    let says = "in step: first/third exited without waking it, and no thread is left";
    assert!(missed.sentence.contains(says), "{}", missed.sentence);
    let long_gone = verdict("100ms");
    assert_ne!(long_gone.root.who.tid, 102, "{}", long_gone.sentence);
}

/// Two programs talk by pipes, each in turn, until both wait for the other. A harness then ends one of
/// them by a signal, which brings it nothing: its killer is not the cause, even where the thread lives on
/// for a while.
#[test]
fn who_ends_a_hung_program_is_not_the_cause() {
    let recording = record(
        "process convert 100
        thread convert convert 100
        process harness 200
        thread harness harness 200
        0 cpu0 switch idle -> convert
        0 cpu1 switch idle -> harness
        1ms cpu0 switch convert -> idle sleeping write object=pipe:5 stack=write;run
        2ms cpu1 switch harness -> idle sleeping nanosleep arg=497ms stack=nanosleep;hold
        499ms cpu1 wake idle -> harness in=timer
        499ms cpu1 switch idle -> harness
        500ms cpu1 wake harness -> convert kill arg=15
        500ms cpu0 switch idle -> convert
        560ms exit convert 15
        560ms cpu0 switch convert -> idle dead
        end 600ms",
    );
    let verdict = explain(&recording, "convert", 1_000..500_000);
    assert_ne!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// The kernel closes the pipe of a process that ends where the last of its threads dies, which had slept
/// on a futex. What the reader waited for is the first thread, which computed.
#[test]
fn the_end_of_a_process_is_its_first_threads() {
    let text = format!(
        "process tee 100
        thread tee tee 100
        process node 200
        thread node node 200
        thread inspector node 201
        0 cpu0 switch idle -> tee
        0 cpu1 switch idle -> node
        0 cpu2 switch idle -> inspector
        1ms cpu0 switch tee -> idle sleeping read object=pipe:5 stack=read
        1ms cpu2 switch inspector -> idle sleeping futex op=wait object=futex:0x10 stack=uv_sem_wait
        {}
        400ms exit node 0
        400ms cpu1 wake node -> inspector exit_group
        400ms cpu1 switch node -> idle dead
        400ms cpu2 switch idle -> inspector
        400.1ms cpu2 wake inspector -> tee futex
        400.2ms exit inspector 0
        400.2ms cpu2 switch inspector -> idle dead
        400.3ms cpu0 switch idle -> tee
        end 500ms",
        samples(1, "node", 2..399, "build;main")
    );
    let verdict = explain(&record(&text), "tee", 1_000..400_300);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (200, Class::LongRunning)
    );
    assert_eq!(verdict.root.function.as_deref(), Some("build"));
}

/// A debugger stops a program and lets it go on after its own script slept.
#[test]
fn a_debugger_had_stopped_it() {
    let recording = record(
        "process quotes 100
        thread quotes quotes 100
        process gdb 200
        thread gdb gdb 200
        0 cpu0 switch idle -> quotes
        0 cpu1 switch idle -> gdb
        1ms cpu0 switch quotes -> idle stopped
        2ms cpu1 switch gdb -> idle sleeping nanosleep arg=398ms stack=nanosleep;script
        400ms cpu1 wake idle -> gdb in=timer
        400ms cpu1 switch idle -> gdb
        400ms cpu1 wake gdb -> quotes ptrace
        400ms cpu0 switch idle -> quotes
        end 500ms",
    );
    let verdict = explain(&recording, "quotes", 1_000..400_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(way(&verdict)[0], ("quotes", "holder"));
}

/// A debugger at its prompt: the program that it has stopped is the root, and not what the debugger waits for.
#[test]
fn a_debugger_waits_for_its_user() {
    let recording = record(
        "process quotes 100
        thread quotes quotes 100
        process gdb 200
        thread gdb gdb 200
        0 cpu0 switch idle -> quotes
        0 cpu1 switch idle -> gdb
        1ms cpu0 switch quotes -> idle stopped holder=gdb
        2ms cpu1 switch gdb -> idle sleeping poll stack=poll;prompt
        end 900ms",
    );
    let verdict = explain(&recording, "quotes", 1_000..900_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    let stopped = "it was stopped by gdb, which debugs it";
    assert!(verdict.sentence.contains(stopped), "{}", verdict.sentence);
}

/// A thread that computes and shares its CPU evenly with others had its share: what it computes is the
/// cause. It runs 4 ms of each 9, and waits 5 ms for its turn.
#[test]
fn a_fair_share_of_a_cpu_is_no_starvation() {
    let mut text = String::from(
        "process php 100
        thread php php 100
        process cc 200
        thread cc cc 200
        0 cpu0 switch idle -> php\n",
    );
    for turn in 0..40 {
        let at = 9 * turn;
        text += &format!(
            "{}ms cpu0 switch php -> cc preempted\n{}ms cpu0 switch cc -> php preempted\n",
            at + 4,
            at + 9
        );
        text += &format!("{}ms cpu0 sample php stack=render;main\n", at + 2);
    }
    let verdict = explain(&record(&format!("{text}end 400ms")), "php", 0..360_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (100, Class::LongRunning)
    );
    assert_eq!(verdict.root.function.as_deref(), Some("render"));
    assert!((verdict.root.share - 4.0 / 9.0).abs() < 1e-6);
}

/// `record -- sleep 1` asks what else went on: the sleep is the recording's clock. A program of the
/// user's that sleeps as long is a problem.
#[test]
fn the_clock_of_a_recording_has_no_problem() {
    let text = |name: &str| {
        format!(
            "process hangdog 50
            thread hangdog hangdog 50
            process {name} 100
            0 cpu0 switch idle -> hangdog
            1ms fork hangdog -> command {name} 100
            1ms cpu0 wake hangdog -> command fork new
            1ms exec command /bin/{name}
            1ms cpu0 switch hangdog -> command sleeping wait4 arg=100
            2ms cpu0 switch command -> idle sleeping nanosleep arg=998ms stack=nanosleep;main
            1s cpu0 wake idle -> command in=timer
            1s cpu0 switch idle -> command
            1001ms exit command 0
            1001ms cpu0 switch command -> hangdog dead
            end 1002ms"
        )
    };
    let found = |name: &str| {
        let mut recording = record(&text(name));
        recording.recorder = Some(50);
        problems(&recording, Some(100))
    };
    assert_eq!(found("sleep"), []);
    assert!(!found("app").is_empty());
}

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

/// What the kernel alone keeps waiting, by a state that a person brought about, is called by its name:
/// a frozen file system, a memory limit, a terminal that was halted. Its terminal's program has
/// nothing to do, so that is not the one that keeps it.
#[test]
fn what_the_kernel_keeps_waiting_is_named() {
    let cases = [
        (
            "uninterruptible openat stack=open;insert kstack=schedule;percpu_rwsem_wait;mnt_want_write;do_sys_openat2",
            "frozen file system",
        ),
        (
            "uninterruptible stack=fill kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault",
            "memory limit of its control group",
        ),
        (
            "sleeping write object=char:3 stack=write;list",
            "a terminal or device to take output",
        ),
    ];
    for (wait, says) in cases {
        let recording = record(&format!(
            "process term 50
            thread term term 50
            process app 100
            0 cpu1 switch idle -> term
            1us fork term -> app app 100
            2us cpu1 wake term -> app fork new
            5us cpu0 switch idle -> app
            10us cpu1 switch term -> idle sleeping poll stack=poll;loop
            10us cpu0 switch app -> idle {wait}
            end 3s"
        ));
        let verdict = explain(&recording, "app", 1_000..3_000_000);
        assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
        assert_eq!(verdict.root.class, Class::LongWait, "{}", verdict.sentence);
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
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

/// What was swapped out to compressed memory comes back without a wait, while the thread runs: that is paging
/// all the same. Faults that only give new memory are not.
#[test]
fn a_thread_that_runs_to_swap_in_is_paging() {
    for (function, class) in [
        ("do_swap_page", Class::Paging),
        ("do_anonymous_page", Class::LongRunning),
    ] {
        let samples: String = (1..100)
            .map(|at| {
                format!(
                    "{at}0ms cpu0 sample sort stack=fill kstack={function};handle_mm_fault;exc_page_fault\n"
                )
            })
            .collect();
        let recording = record(&format!(
            "process sort 100
            thread sort sort 100
            0 cpu0 switch idle -> sort
            {samples}
            end 1s"
        ));
        let verdict = explain(&recording, "sort", 10..1_000_000);
        assert_eq!(verdict.root.class, class, "{}", verdict.sentence);
    }
}

/// Whoever raises the limit of a control group's memory is not who kept a program waiting for it.
#[test]
fn who_raises_a_memory_limit_is_not_the_cause() {
    let recording = record(
        "process index 100
        thread index index 100
        process bash 200
        thread bash bash 200
        0 cpu0 switch idle -> index
        0 cpu1 switch idle -> bash
        10us cpu0 switch index -> idle uninterruptible stack=fill kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault
        20us cpu1 switch bash -> idle sleeping nanosleep arg=2900ms stack=nanosleep
        2920ms cpu1 wake idle -> bash in=timer
        2921ms cpu1 switch idle -> bash
        2930ms cpu1 wake bash -> index write stack=write kstack=mem_cgroup_resize_max;mem_cgroup_write
        2931ms cpu0 switch idle -> index
        end 3s",
    );
    let verdict = explain(&recording, "index", 10..2_931_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    assert!(
        verdict.sentence.contains("memory limit"),
        "{}",
        verdict.sentence
    );
    let unknown = (verdict.blame.iter()).find(|part| part.kind == "unknown");
    assert!(unknown.is_none(), "{unknown:?}");
}

/// A page fault first waits at the memory limit for seconds, and then for a disk for a moment: the disk is
/// not what took the seconds.
#[test]
fn two_waits_of_a_page_fault_are_two() {
    let recording = record(
        "process sort 100
        thread sort sort 100
        process bash 200
        thread bash bash 200
        0 cpu0 switch idle -> sort
        0 cpu1 switch idle -> bash
        10us cpu0 switch sort -> idle uninterruptible stack=fill kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault
        20us cpu1 switch bash -> idle sleeping nanosleep arg=2900ms stack=nanosleep
        2920ms cpu1 wake idle -> bash in=timer
        2921ms cpu1 switch idle -> bash
        2930ms cpu1 wake bash -> sort write stack=write kstack=mem_cgroup_oom_control_write;cgroup_file_write
        2931ms cpu0 switch idle -> sort
        2931050us cpu0 switch sort -> idle uninterruptible stack=fill kstack=schedule;io_schedule;folio_wait_bit_common;exc_page_fault
        2932ms cpu0 wake idle -> sort in=softirq vector=4
        2933ms cpu0 switch idle -> sort
        end 3s",
    );
    let verdict = explain(&recording, "sort", 10..2_935_000);
    assert!(
        verdict.sentence.contains("memory limit"),
        "{}",
        verdict.sentence
    );
    assert_ne!(verdict.root.class, Class::Paging, "{}", verdict.sentence);
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

const WORKER: &str = "Condition.wait;Future.result;outer;_WorkItem.run;_worker";

/// The task of a pool waits for a task of the same pool. No thread of the process is left that could wake
/// another: the sentence says so, and the problem comes first. The worker is the root.
#[test]
fn a_pool_that_waits_for_itself() {
    let recording = record(&format!(
        "process app 100
        thread main app 100
        thread one app 101
        process shell 200
        thread shell shell 200
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> one
        5us cpu1 switch one -> idle sleeping futex arg=128 object=futex:0x1 stack=sem_wait;PyThread_acquire_lock_timed;{WORKER}
        10us cpu0 switch main -> shell sleeping futex arg=128 object=futex:0x2 stack=sem_wait;PyThread_acquire_lock_timed;Condition.wait;Future.result;main
        20us cpu0 switch shell -> idle sleeping read object=pipe:1 stack=read
        end 3s"
    ));
    let found = problems(&recording, None);
    assert_eq!(found[0].0, "main", "{found:?}");
    let verdict = explain(&recording, "main", 1_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 101, "{}", verdict.sentence);
    assert!(
        verdict
            .sentence
            .contains("waits for a task that only they could run"),
        "{}",
        verdict.sentence
    );

    // A thread that something from outside can wake may wake the others.
    let other = record(&format!(
        "process app 100
        thread main app 100
        thread one app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> one
        10us cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x2 stack=sem_wait;PyThread_acquire_lock_timed;Condition.wait;{WORKER}
        15us cpu1 switch one -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop
        end 3s"
    ));
    let verdict = explain(&other, "main", 1_000..3_000_000);
    assert!(
        !verdict
            .sentence
            .contains("waits for a task that only they could run"),
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

/// Threads of one name are told apart by their ids, in every sentence.
#[test]
fn namesakes_have_ids() {
    let recording = record(
        "process a 100
        thread one a 100 name=flock
        process b 200
        thread two b 200 name=flock
        process c 300
        thread other c 300
        0 cpu0 switch idle -> one
        end 10ms",
    );
    let evidence = recording.evidence();
    assert_eq!(evidence.name(recording.t("one")), "flock (100)");
    assert_eq!(evidence.name(recording.t("other")), "other");
}

/// Somebody opens a FIFO that nobody else opens. That its exec let its parent go on from vfork is no
/// request, and who waits for its end waits for it, so that there is no circle.
#[test]
fn the_end_of_a_vfork_is_no_request() {
    let recording = record(
        "process sh 100
        thread sh sh 100
        process bash 200
        process ruby 50
        thread ruby ruby 50
        0 cpu1 switch idle -> ruby
        1us cpu0 switch idle -> sh
        1us open ruby object=pipe:5 access=read
        10ms fork sh -> bash bash 200
        10ms cpu0 switch sh -> bash uninterruptible vfork stack=vfork;run kstack=schedule;wait_for_completion_state
        10200us cpu0 switch bash -> idle uninterruptible read stack=read kstack=schedule;io_schedule
        10400us cpu0 wake idle -> bash in=softirq vector=4
        10500us cpu0 switch idle -> bash
        11ms cpu0 wake bash -> sh execve stack=execve
        11050us cpu1 switch ruby -> sh sleeping poll object=pipe:5 stack=poll;drain
        11200us cpu1 switch sh -> idle sleeping wait4 arg=200 stack=wait4;run
        11400us open bash object=pipe:5 access=write
        11500us cpu0 switch bash -> idle sleeping openat stack=open;do_redirections kstack=schedule;wait_for_partner;fifo_open
        end 3s",
    );
    let verdict = explain(&recording, "ruby", 12_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_ne!(verdict.root.class, Class::Circular);
    let says = "waited for another program to open the other end of a FIFO";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
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

/// A program that naps at times and looks is one that polls; one that naps as often, but is kept from a
/// CPU for most of the time, is kept by whoever has it.
#[test]
fn who_polls_and_is_kept_from_a_cpu_is_starved() {
    let text = |runnable_ms: u64| {
        let mut text = "process app 100
            thread app app 100
            process rt 200
            thread rt rt 200
            0 cpu0 switch idle -> app\n"
            .to_owned();
        let turn = 25 + runnable_ms;
        for at in (0..20).map(|turn_number| 1 + turn_number * turn) {
            text += &format!(
                "{at}ms cpu0 switch app -> rt sleeping nanosleep arg=20ms stack=nanosleep;tick
                {}ms cpu0 wake rt -> app in=timer
                {}ms cpu0 switch rt -> app preempted\n",
                at + 20,
                at + 20 + runnable_ms,
            );
        }
        text + &format!("{}ms cpu0 switch app -> idle dead\nend 10s", 2 + 20 * turn)
    };
    let verdict = |runnable_ms: u64| {
        let end = (1 + 20 * (25 + runnable_ms)) * 1_000;
        explain(&record(&text(runnable_ms)), "app", 1_000..end)
    };
    let polls = verdict(0);
    assert_eq!(polls.root.class, Class::RepeatedYield, "{}", polls.sentence);
    let starved = verdict(200);
    assert_ne!(
        starved.root.class,
        Class::RepeatedYield,
        "{}",
        starved.sentence
    );
    assert_eq!(starved.root.who.tid, 200, "{}", starved.sentence);
}

/// A process that is asked about and was stopped was not idle, nor was one that waits for a process of
/// its own, though nothing shows that either owed anybody anything.
#[test]
fn who_was_stopped_was_not_idle() {
    let stopped = record(
        "process vi 100
        thread vi vi 100
        0 cpu0 switch idle -> vi
        1ms cpu0 switch vi -> idle stopped read stack=read;edit
        end 3s",
    );
    let verdict = explain(&stopped, "vi", 1_000..3_000_000);
    assert!(!verdict.sentence.contains("idle"), "{}", verdict.sentence);
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

/// A thread of Python waits for the global lock, 5 ms at a time, and another computes: it is that
/// one's time, and not that of the timeouts. The function that waits has no name.
#[test]
fn pythons_global_lock_is_with_who_computes() {
    let mut text = "process python 100
        thread python python 100
        thread worker python 101
        0 cpu0 switch idle -> python
        0 cpu1 switch idle -> worker\n"
        .to_owned();
    for at in (1..400).step_by(6) {
        text += &format!(
            "{at}ms cpu0 switch python -> idle sleeping futex op=wait object=futex:0x10 \
             stack=pthread_cond_timedwait;PyEval_RestoreThread;select
            {}ms cpu0 wake idle -> python in=timer
            {}.1ms cpu0 switch idle -> python\n",
            at + 5,
            at + 5
        );
    }
    text += "410ms cpu1 switch worker -> idle dead\nend 420ms";
    let verdict = explain(&record(&text), "python", 1_000..402_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (101, Class::LongRunning),
        "{}",
        verdict.sentence
    );
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

/// All threads of a Java program wait while one runs a loop without a safepoint: it is the cause, also where the
/// recording begins and ends amid that.
#[test]
fn who_is_late_for_a_safepoint_keeps_all_waiting() {
    let asks = "sleeping futex object=futex:9 op=wait \
                stack=pthread_cond_wait;VMThread::wait_until_executed(VM_Operation*);allocate";
    let nap = "sleeping clock_nanosleep arg=1ms \
               stack=nanosleep;SafepointSynchronize::synchronize_threads(long)";
    let mut text = format!(
        "process java 200
        thread main java 200 name=java
        thread cruncher java 201 name=cruncher
        thread vm java 202 name=VM_Thread
        thread requests java 203 name=requests
        0 cpu0 switch idle -> cruncher
        1ms cpu1 switch idle -> requests
        2ms cpu1 wake requests -> vm futex object=futex:8
        3ms cpu1 switch requests -> vm {asks}\n"
    );
    for at in (4..3_000).step_by(2) {
        text += &format!(
            "{at}ms cpu1 switch vm -> idle {nap}
            {}.8ms cpu1 wake idle -> vm in=timer
            {}.9ms cpu1 switch idle -> vm\n",
            at + 1,
            at + 1
        );
    }
    text += &format!("3000ms cpu1 switch vm -> idle {nap}\n");
    text += &samples(0, "cruncher", 4..3_000, "Server.checksum;run");
    let verdict = explain(
        &record(&(text + "end 3001ms")),
        "requests",
        3_000..3_001_000,
    );
    assert_eq!(verdict.root.who.tid, 201, "{}", verdict.sentence);
    assert_eq!(verdict.root.class, Class::LongRunning);
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

/// A worker that was woken and waits again where it did before has done what it could: who waits for the pool
/// waits for the one that works.
#[test]
fn a_worker_that_went_home_is_not_whom_is_waited_for() {
    const WAIT: &str =
        "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;flush;main";
    const HOME: &str =
        "sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;pool;start";
    let mut text = format!(
        "process app 100
        thread main app 100
        thread idler app 101
        thread worker app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> idler
        0 cpu2 switch idle -> worker
        1ms cpu1 switch idler -> idle {HOME}
        10ms cpu0 wake main -> idler futex op=wake object=futex:0x20 stack=pthread_cond_signal;flush
        10.1ms cpu0 switch main -> idle {WAIT}
        10.2ms cpu1 switch idle -> idler
        10.3ms cpu1 switch idler -> idle {HOME}\n"
    );
    for at in [200, 400, 600, 800] {
        text += &format!(
            "{at}ms cpu2 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;pool
            {at}.1ms cpu0 switch idle -> main
            {at}.2ms cpu0 switch main -> idle {WAIT}\n"
        );
    }
    text += "990ms cpu2 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;pool
        990.1ms cpu0 switch idle -> main\n";
    text += &samples(2, "worker", 20..990, "compress;pool;start");
    let verdict = explain(&record(&(text + "end 1s")), "main", 11_000..990_000);
    assert_eq!(verdict.root.who.tid, 102, "{}", verdict.sentence);
}

/// Who got page after page from a program that serves a file system waits for it also at the end, where nobody
/// brings the last.
#[test]
fn the_last_page_comes_from_where_the_others_did() {
    const FAULT: &str = "uninterruptible stack=copy;load kstack=io_schedule;folio_wait_bit_common;filemap_fault;exc_page_fault";
    let mut text = String::from(
        "process app 100
        thread app app 100
        process server 200
        thread server server 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> server\n",
    );
    for at in (10..1_000).step_by(50) {
        text += &format!(
            "{at}ms cpu0 switch app -> idle {FAULT}
            {at}.1ms cpu1 switch server -> idle sleeping nanosleep arg=49ms stack=nanosleep;limit_rate\n"
        );
        if at < 950 {
            let then = at + 49;
            text += &format!(
                "{then}.1ms cpu1 wake idle -> server in=timer
                {then}.2ms cpu1 switch idle -> server
                {then}.7ms cpu1 wake server -> app writev stack=writev;reply kstack=folio_wake_bit;fuse_dev_do_write
                {then}.8ms cpu0 switch idle -> app\n"
            );
        }
    }
    let verdict = explain(&record(&(text + "end 1s")), "app", 11_000..1_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    // It brings a page after each sleep: it looks for nothing.
    assert_eq!(verdict.root.class, Class::LongWait, "{}", verdict.sentence);
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

/// How a thread was stopped is told by what woke it right before, and by what let it go on.
#[test]
fn what_stopped_a_thread_is_told() {
    for (stop, go_on, says) in [
        (
            "10ms cpu1 wake sh -> server kill arg=19
            10.1ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "kill arg=18",
            "server was stopped by a signal from sh.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "kill arg=18",
            "server was stopped by a signal.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "write kstack=__thaw_task;freezer_write",
            "server was frozen by its control group.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "",
            "server was stopped by a signal, a debugger or the freezer of its control group.",
        ),
    ] {
        let go_on = match go_on {
            "" => String::new(),
            by => format!("2s cpu1 wake sh -> server {by}\n2.1s cpu0 switch idle -> server"),
        };
        let recording = record(&format!(
            "process sh 100
            thread sh sh 100
            process server 200
            thread server server 200
            0 cpu1 switch idle -> sh
            0 cpu0 switch idle -> server
            1ms cpu0 switch server -> idle sleeping read object=pipe:7 stack=read;serve
            {stop}
            {go_on}
            end 3s"
        ));
        let sentence = explain(&recording, "server", 10_200..2_000_000).sentence;
        let says = says.replace("server was", "it was");
        assert!(sentence.ends_with(&says), "{sentence}");
    }
}
