//! Waits that lead from thread to thread: the verdict names the one at the end, and the blame is
//! what each on the way truly took.

use crate::support::*;
use hangdog_diagnose::Class;

const COND: &str = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;await_result";

/// A chain of six waits. Thread i blocks at 1.0 + i/10 ms for thread i+1; the last one computes
/// until 91 ms. Then each runs 0.1 ms after a wake of 0.1 ms and signals the one before. So of the
/// 91 ms until main is woken, the last thread has 89.5 ms, and the five between have 0.2 ms of
/// running and 0.1 ms of waiting for a CPU each.
#[test]
fn chain_of_six() {
    let mut text = String::from("process app 100\nthread t0 app 100 name=app\n");
    for i in 1..=6 {
        text += &format!("thread t{i} app {}\n", 100 + i);
    }
    for i in 0..=6 {
        text += &format!("0 cpu{i} switch idle -> t{i}\n");
    }
    for i in 0..6 {
        text += &format!("{}us cpu{i} switch t{i} -> idle {COND}\n", 1000 + 100 * i);
        let woken = 91_000 + 200 * (5 - i);
        let waker = i + 1;
        text += &format!(
            "{woken}us cpu{waker} wake t{waker} -> t{i} futex op=wake stack=pthread_cond_signal;give
             {}us cpu{i} switch idle -> t{i}\n",
            woken + 100
        );
    }
    text += &samples(6, "t6", 5..90, "multiply;crunch;main_loop");
    // The innermost function varies; what is common is above it.
    text += &samples(6, "t6", 5..90, "add;crunch;main_loop");
    let recording = record(&format!("{text}end 95ms"));
    let verdict = explain(&recording, "t0", 1_000..92_000);

    assert_eq!(verdict.root.who.tid, 106);
    assert_eq!(verdict.root.class, Class::LongRunning);
    assert_eq!(verdict.root.function.as_deref(), Some("crunch"));
    assert_eq!(verdict.problem.class, Class::LongWait);
    assert_eq!(of_thread(&verdict, 106, "run"), 89_500);
    for tid in 101..=105 {
        assert_eq!(of_thread(&verdict, tid, "run"), 200, "{tid}");
        assert_eq!(of_thread(&verdict, tid, "runnable"), 100, "{tid}");
    }
    assert_eq!(
        (of_kind(&verdict, "run"), of_kind(&verdict, "runnable")),
        (90_500, 500)
    );
    let expected = [
        ("app", "signal"),
        ("t1", "signal"),
        ("t2", "signal"),
        ("t3", "signal"),
        ("t4", "signal"),
        ("t5", "signal"),
        ("t6", ""),
    ];
    assert_eq!(way(&verdict), expected);
    assert!(verdict.root.confidence > 0.6, "all edges are strong");
    assert!(verdict.sentence.contains("app/t6") && verdict.sentence.contains("crunch"));
}

/// A convoy: slow holds the lock until 19 ms, innocent has it for 0.1 ms and then wakes main. The
/// unlocker is not to blame; the chain leads through its own wait to slow.
#[test]
fn innocent_unlocker() {
    let lock = "sleeping futex op=wait object=futex:0x10 stack=__lll_lock_wait;take";
    let unlock = "futex op=wake object=futex:0x10 stack=__lll_lock_wake;release";
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread slow app 101
        thread innocent app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> slow
        0 cpu2 switch idle -> innocent
        1ms cpu2 switch innocent -> idle {lock} holder=slow
        2ms cpu0 switch main -> idle {lock} holder=slow
        19ms cpu1 wake slow -> innocent {unlock}
        19.1ms cpu2 switch idle -> innocent
        19.2ms cpu2 wake innocent -> main {unlock}
        19.3ms cpu0 switch idle -> main
        {}
        end 30ms",
        samples(1, "slow", 1..19, "hold_for_long")
    ));
    let verdict = explain(&recording, "main", 2_000..19_200);
    assert_eq!(verdict.root.who.thread, "slow");
    assert_eq!(verdict.root.function.as_deref(), Some("hold_for_long"));
    assert_eq!(
        way(&verdict),
        [("app", "unlock"), ("innocent", "unlock"), ("slow", "")]
    );
    let strength = |at: usize| verdict.path[at].edge.as_ref().map(|edge| edge.strength);
    assert_eq!((strength(0), strength(1)), (Some("weak"), Some("strong")));
    assert!(verdict.root.confidence < 1.0, "one edge is weak");
    assert_eq!(of_thread(&verdict, 101, "run"), 17_000);
    assert_eq!(of_thread(&verdict, 102, "run"), 100);
    assert_eq!(of_thread(&verdict, 102, "runnable"), 100);
}

/// A request over three processes: client to server by a unix socket, server to backend by a
/// pipe, and the backend computes from 3 ms to 40 ms.
#[test]
fn pipeline_over_processes() {
    let recording = record(&format!(
        "process client 100
        thread client client 100
        process server 200
        thread server server 200
        thread acceptor server 201
        process backend 300
        thread backend backend 300
        0 cpu0 switch idle -> client
        1ms cpu0 switch client -> idle sleeping recvfrom object=unix:5 stack=recv;ask
        1.1ms cpu1 switch idle -> server
        2ms cpu1 switch server -> idle sleeping read object=pipe:7 stack=read;fetch
        2.5ms cpu2 switch idle -> backend
        40ms cpu2 wake backend -> server write object=pipe:7
        40.5ms cpu1 switch idle -> server
        41ms cpu1 wake server -> client sendto object=unix:6
        41.1ms cpu0 switch idle -> client
        {}
        end 50ms",
        samples(2, "backend", 3..40, "deflate;compress")
    ));
    let verdict = explain(&recording, "client", 1_000..41_000);
    let root = &verdict.root;
    assert_eq!((root.who.process.as_str(), root.who.pid), ("backend", 300));
    assert_eq!(root.function.as_deref(), Some("deflate"));
    assert_eq!(
        way(&verdict),
        [
            ("client", "message"),
            ("server", "message"),
            ("backend", "")
        ]
    );
    let processes: Vec<&str> = verdict
        .path
        .iter()
        .map(|step| step.who.process.as_str())
        .collect();
    assert_eq!(processes, ["client", "server", "backend"]);
    // The server's own first 0.1 ms on its way, and the backend's 0.5 ms, are for a CPU.
    assert_eq!(of_thread(&verdict, 300, "run"), 37_500);
    assert_eq!(of_thread(&verdict, 200, "run"), 900 + 500);
    assert_eq!(of_kind(&verdict, "unknown"), 0);
}

/// A parent that waits for its child: the child's own time is the cause, from its fork on.
#[test]
fn child_that_is_waited_for() {
    let recording = record(&format!(
        "process sh 100
        thread sh sh 100
        process job 200
        0 cpu0 switch idle -> sh
        1ms fork sh -> job job 200
        1ms cpu0 wake sh -> job fork new
        2ms cpu0 switch sh -> job sleeping wait4 arg=200 stack=wait4;run_job
        50ms cpu0 wake job -> sh exit_group
        50.1ms exit job 0
        50.1ms cpu0 switch job -> sh dead
        {}
        end 60ms",
        samples(0, "job", 2..50, "work")
    ));
    let verdict = explain(&recording, "sh", 2_000..50_000);
    assert_eq!(verdict.root.who.tid, 200);
    assert_eq!(verdict.root.function.as_deref(), Some("work"));
    assert_eq!(way(&verdict), [("sh", "exit"), ("job", "")]);
    assert_eq!(of_thread(&verdict, 200, "run"), 48_000);
}

/// What the kernel's worker waits for on the disk, it waits for on behalf of the thread that
/// waits for it: not a kernel thread is named, but the program's.
#[test]
fn kernel_thread_on_behalf() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        kthread kworker/u8:1 7
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> kworker/u8:1
        1ms cpu0 switch main -> idle uninterruptible renameat2 stack=save;main kstack=schedule;wait_for_completion
        2ms cpu1 switch kworker/u8:1 -> idle uninterruptible kstack=io_schedule;folio_wait_bit
        30ms cpu1 wake idle -> kworker/u8:1 in=softirq vector=4
        30.5ms cpu1 switch idle -> kworker/u8:1
        31ms cpu1 wake kworker/u8:1 -> main
        31.5ms cpu0 switch idle -> main
        end 40ms",
    );
    let verdict = explain(&recording, "main", 1_000..31_000);
    assert_eq!(verdict.root.who.tid, 100);
    assert_eq!(verdict.root.class, Class::LongWait);
    assert_eq!(verdict.root.function.as_deref(), Some("save"));
    assert_eq!(of_thread(&verdict, 100, "disk"), 28_000);
    assert_eq!(of_thread(&verdict, 7, "run"), 1_500);
    assert_eq!(of_thread(&verdict, 7, "runnable"), 500);
}

/// Three threads have a lock one after the other, each in the same function: together they are the cause,
/// whoever had it longest. A fourth that computes something else with it is not one of them.
#[test]
fn one_after_the_other() {
    let lock = "sleeping futex op=wait object=futex:0x10 stack=__lll_lock_wait;take";
    let unlock = "futex op=wake object=futex:0x10 stack=__lll_lock_wake;release";
    let mut text = format!(
        "process app 100
        thread main app 100 name=app
        thread first app 101 name=first
        thread second app 102 name=second
        thread third app 103 name=third
        thread other app 104 name=other
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> other
        0 cpu2 switch idle -> first
        0 cpu3 switch idle -> second
        0 cpu4 switch idle -> third
        1ms cpu0 switch main -> idle {lock} holder=other
        1ms cpu2 switch first -> idle {lock} holder=other
        1ms cpu3 switch second -> idle {lock} holder=other
        1ms cpu4 switch third -> idle {lock} holder=other
"
    );
    // Each is woken, runs, and wakes the next.
    let turns = [
        ("other", 10),
        ("first", 22),
        ("second", 36),
        ("third", 48),
        ("main", 0),
    ];
    for pair in turns.windows(2) {
        let ((who, until), (next, _)) = (pair[0], pair[1]);
        let (cpu, function) = match who {
            "other" => (1, "count"),
            _ => (0, "update"),
        };
        for at in until - 8..until {
            text += &format!("{at}ms cpu{cpu} sample {who} stack={function};main\n");
        }
        text += &format!("{until}ms cpu{cpu} wake {who} -> {next} {unlock}\n");
        text += &format!("{until}.001ms cpu{cpu} switch {who} -> idle sleeping\n");
        text += &format!("{until}.002ms cpu0 switch idle -> {next}\n");
    }
    text += "end 60ms";
    let verdict = explain(&record(&text), "main", 1_000..48_002);
    assert_eq!(verdict.root.who.thread, "second");
    assert_eq!(verdict.root.others, 2);
    assert_eq!(verdict.root.function.as_deref(), Some("update"));
    let others = "and 2 other threads of its process ran update";
    assert!(verdict.sentence.contains(others), "{}", verdict.sentence);
    assert!(
        (verdict.root.share - 38.0 / 47.0).abs() < 0.01,
        "{}",
        verdict.root.share
    );
    let left = 9 * MS;
    assert!(
        verdict.without_root_ns.abs_diff(left) < MS,
        "{}",
        verdict.without_root_ns
    );
}

/// A lock that is never given back, a join whose time runs out: the holder's and the thread's own
/// doing is the cause, to the end of the wait.
#[test]
fn holder_and_awaited() {
    for (wait, ends, edge) in [
        (
            "futex arg=128 object=futex:0x10 holder=worker",
            "",
            "holder",
        ),
        (
            "futex op=wait object=futex:0x10 holder=worker",
            "51ms cpu0 wake idle -> main in=timer\n51ms cpu0 switch idle -> main",
            "awaited",
        ),
    ] {
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread worker app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker
            1ms cpu0 switch main -> idle sleeping {wait}
            {ends}
            {}
            end 51ms",
            samples(1, "worker", 1..50, "spin")
        ));
        let verdict = explain(&recording, "main", 1_000..51_000);
        assert_eq!(way(&verdict), [("app", edge), ("worker", "")]);
        assert_eq!(verdict.root.function.as_deref(), Some("spin"));
        assert_eq!(of_thread(&verdict, 101, "run"), 50_000);
    }
}

/// A thread that did not exist for a part of the wait for it: that part is its maker's.
#[test]
fn before_birth() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        thread maker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> maker
        1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10
        11ms fork maker -> late app 102
        11ms cpu2 switch idle -> late
        21ms cpu2 wake late -> main futex op=wake object=futex:0x10
        21.5ms cpu0 switch idle -> main
        end 30ms",
    );
    let verdict = explain(&recording, "main", 1_000..21_000);
    assert_eq!(of_thread(&verdict, 102, "run"), 10_000);
    assert_eq!(of_thread(&verdict, 101, "run"), 10_000);
    assert_eq!(of_kind(&verdict, "unknown"), 0);
}
