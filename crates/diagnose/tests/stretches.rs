//! Spurious wakeups do not end a wait, and a loop is not one wait: seen in the verdict's path.

use crate::support::*;

const PEOPLE: &str = "
process app 100
thread main app 100 name=app
thread culprit app 101
thread decoy app 102
thread other app 103
0 cpu0 switch idle -> main
0 cpu1 switch idle -> culprit
0 cpu2 switch idle -> decoy
0 cpu3 switch idle -> other
";
const WAIT: &str = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;await_result";
const SIGNAL: &str = "futex op=wake object=futex:0x10 stack=pthread_cond_signal;give";

/// `waker` wakes main at `at` µs; main comes 20 µs later.
fn wake(waker: &str, cpu: u16, at: u64) -> String {
    format!(
        "{at}us cpu{cpu} wake {waker} -> main {SIGNAL}\n{}us cpu0 switch idle -> main\n",
        at + 20
    )
}

/// main, woken at `at` µs, looks for 30 µs and waits on.
fn look(waker: &str, cpu: u16, at: u64) -> String {
    format!(
        "{}{}us cpu0 switch main -> idle {WAIT}\n",
        wake(waker, cpu, at),
        at + 50
    )
}

/// A shell waits for one child, and others end meanwhile, one after a long time: one wait, for the one child.
#[test]
fn a_shell_that_waits_for_one_child() {
    let blame = |function: &str| {
        let wait = format!("sleeping wait4 stack=wait4;{function};main");
        let recording = record(&format!(
            "process sh 100
            thread sh sh 100
            process sleep 200
            thread sleep sleep 200
            process job 300
            thread job job 300
            process date 400
            thread date date 400
            0 cpu0 switch idle -> sh
            0 cpu3 switch idle -> date
            0 cpu1 switch idle -> sleep
            0 cpu2 switch idle -> job
            1ms cpu0 switch sh -> idle {wait}
            2ms cpu1 switch sleep -> idle sleeping clock_nanosleep arg=600s
            3ms cpu2 switch job -> idle sleeping clock_nanosleep arg=700ms
            600ms cpu1 wake idle -> sleep in=timer
            600.1ms cpu1 switch idle -> sleep
            600.2ms cpu1 wake sleep -> sh exit_group
            600.2ms exit sleep 0
            600.3ms cpu0 switch idle -> sh
            600.4ms cpu0 switch sh -> idle {wait}
            610ms cpu3 wake date -> sh exit_group
            610ms exit date 0
            610.1ms cpu0 switch idle -> sh
            610.2ms cpu0 switch sh -> idle {wait}
            703ms cpu2 wake idle -> job in=timer
            703.1ms cpu2 switch idle -> job
            703.2ms cpu2 wake job -> sh exit_group
            703.2ms exit job 0
            703.3ms cpu0 switch idle -> sh
            end 710ms"
        ));
        let verdict = explain(&recording, "sh", 1_000..703_300);
        verdict.root.who.thread.clone()
    };
    assert_eq!(blame("wait_for_single_pid"), "job");
    assert_eq!(blame("waitpid"), "sleep");
}

/// A client polls with a timeout of its own, and sleeps for no time before it polls on: one wait, in which
/// nobody woke it spuriously.
#[test]
fn polls_with_a_pause_between_them_are_joined() {
    let mut text = PEOPLE.to_owned();
    let poll = "poll arg=1s object=inet:5 stack=poll;ask;main";
    for second in 0..3u64 {
        let at = second * 1_000_000 + 1_000;
        text += &format!(
            "{at}us cpu0 switch main -> idle sleeping {poll}
            {}us cpu0 wake idle -> main in=timer
            {}us cpu0 switch idle -> main
            {}us cpu0 switch main -> idle sleeping clock_nanosleep arg=0ns stack=nanosleep;ask;main
            {}us cpu0 wake idle -> main in=timer
            {}us cpu0 switch idle -> main\n",
            at + 999_000,
            at + 999_010,
            at + 999_200,
            at + 999_250,
            at + 999_260,
        );
    }
    text += &format!(
        "3001000us cpu0 switch main -> idle sleeping {poll}
        3499900us cpu1 wake culprit -> main write object=inet:6 stack=write;reply
        3500000us cpu0 switch idle -> main
        end 3600ms"
    );
    let recording = record(&text);
    let found = problems(&recording, Some(100));
    assert!(
        found.contains(&("app".to_owned(), 1_000..3_499_900)),
        "{found:?}"
    );
    let verdict = explain(&recording, "main", 1_000..3_500_000);
    let doing = &verdict.path[0].doing;
    assert!(doing.contains("(3 timeouts)"), "{doing}");
}

/// Woken twice spuriously by a decoy, then by the culprit: one wait from 1 ms to 50 ms, which the
/// last wake ended; the two looks of 50 µs are nobody else's.
#[test]
fn spurious_wakes_are_joined() {
    let text = format!(
        "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}{}{}end 60ms",
        look("decoy", 2, 10_000),
        look("decoy", 2, 30_000),
        wake("culprit", 1, 50_000)
    );
    let recording = record(&text);
    let verdict = explain(&recording, "main", 1_000..50_000);
    assert_eq!(verdict.root.who.thread, "culprit");
    let step = &verdict.path[0];
    assert_eq!((step.from_ns, step.to_ns), (MS, 50 * MS));
    assert!(step.doing.contains("2 spurious wakeups"), "{}", step.doing);
    assert_eq!(of_thread(&verdict, 101, "run"), 48_900);
    assert_eq!(of_thread(&verdict, 102, "run"), 0);
    // The looks are its own.
    assert_eq!(of_thread(&verdict, 100, "run"), 60);
    assert_eq!(of_thread(&verdict, 100, "runnable"), 40);
    let found = problems(&recording, Some(100));
    assert_eq!(found[0], ("app".to_owned(), 1_000..50_000));
}

/// An interrupt that comes while a thread looks, and leaves work to the kernel's own thread, is nothing that
/// the thread caused.
#[test]
fn work_of_an_interrupt_does_not_end_the_wait() {
    let mut text = format!("kthread ksoftirqd/0 9\n{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n");
    for at in [20_000, 40_000, 60_000] {
        text += &wake("decoy", 2, at);
        text += &format!(
            "{}us cpu0 wake main -> ksoftirqd/0 futex op=wait object=futex:0x10
            {}us cpu0 switch main -> idle {WAIT}\n",
            at + 30,
            at + 50
        );
    }
    text += &wake("culprit", 1, 80_000);
    let recording = record(&format!("{text}82ms cpu0 switch main -> idle dead"));
    let verdict = explain(&recording, "main", 1_000..80_000);
    assert_eq!(verdict.root.who.thread, "culprit");
    let step = &verdict.path[0];
    assert_eq!((step.from_ns, step.to_ns), (MS, 80 * MS));
}

/// A look that causes something is no look: each wait then has its own end.
#[test]
fn a_turn_that_causes_something_ends_the_wait() {
    let text = format!(
        "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}
        10.03ms cpu0 wake main -> other write object=pipe:9
        10.05ms cpu0 switch main -> idle {WAIT}\n{}end 60ms",
        wake("decoy", 2, 10_000),
        wake("culprit", 1, 50_000)
    );
    let verdict = explain(&record(&text), "main", 1_000..50_000);
    assert_eq!(of_thread(&verdict, 102, "run"), 9_000);
    assert_eq!(of_thread(&verdict, 101, "run"), 39_950);
}

/// Neither is one that computes for long.
#[test]
fn a_turn_that_computes_ends_the_wait() {
    let text = format!(
        "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}
        15ms cpu0 switch main -> idle {WAIT}\n{}end 60ms",
        wake("decoy", 2, 10_000),
        wake("culprit", 1, 50_000)
    );
    let verdict = explain(&record(&text), "main", 1_000..50_000);
    assert_eq!(of_thread(&verdict, 102, "run"), 9_000);
    assert_eq!(of_thread(&verdict, 100, "run"), 4_980);
    assert_eq!(of_thread(&verdict, 101, "run"), 35_000);
}

/// Nor one that comes back to wait elsewhere: another place, or another pipe.
#[test]
fn another_place_is_another_wait() {
    for (first, second) in [
        (
            WAIT,
            "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;elsewhere",
        ),
        (
            WAIT,
            "sleeping futex op=wait object=futex:0x1000 stack=pthread_cond_wait;await_result",
        ),
        ("sleeping read object=pipe:5", "sleeping read object=pipe:6"),
    ] {
        let text = format!(
            "{PEOPLE}1ms cpu0 switch main -> idle {first}\n{}
            10.05ms cpu0 switch main -> idle {second}\n{}end 60ms",
            wake("decoy", 2, 10_000),
            wake("culprit", 1, 50_000)
        );
        let verdict = explain(&record(&text), "main", 1_000..50_000);
        assert_eq!(of_thread(&verdict, 102, "run"), 9_000, "{second}");
        assert_eq!(of_thread(&verdict, 101, "run"), 39_950, "{second}");
    }
}

/// Stacks of the same frames are one place, also where they have different ids because one was
/// taken before its code was known.
#[test]
fn same_frames_are_one_place() {
    let text = format!(
        "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}
        10.05ms cpu0 switch main -> idle {WAIT};!root\n{}end 60ms",
        wake("decoy", 2, 10_000),
        wake("culprit", 1, 50_000)
    );
    let verdict = explain(&record(&text), "main", 1_000..50_000);
    assert_eq!(of_thread(&verdict, 102, "run"), 0);
    assert_eq!(of_thread(&verdict, 101, "run"), 48_950);
}

/// A condition variable uses several futexes in turn: they are one place.
#[test]
fn futexes_of_one_condition() {
    let text = format!(
        "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}
        10.05ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x14 stack=pthread_cond_wait;await_result\n{}end 60ms",
        wake("decoy", 2, 10_000),
        wake("culprit", 1, 50_000)
    );
    let verdict = explain(&record(&text), "main", 1_000..50_000);
    assert_eq!(of_thread(&verdict, 101, "run"), 48_950);
}

/// To look, a thread gets the lock back that goes with the condition: a wait for it does not end
/// the wait for the condition, however long, if the stack tells that it is this lock; any other
/// does only if it is short.
#[test]
fn a_relock_in_between() {
    for (until, stack, is_one) in [
        ("12", "__lll_lock_wait;pthread_cond_wait;await_result", true),
        ("30", "__lll_lock_wait;pthread_cond_wait;await_result", true),
        ("12", "__lll_lock_wait;take;await_result", true),
        ("30", "__lll_lock_wait;take;await_result", false),
    ] {
        let text = format!(
            "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}
            10.03ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x80 stack={stack}
            {until}ms cpu2 wake decoy -> main futex op=wake object=futex:0x80 stack=__lll_lock_wake;give
            {until}.02ms cpu0 switch idle -> main
            {until}.05ms cpu0 wake main -> other futex op=wake object=futex:0x80 stack=pthread_mutex_unlock;pthread_cond_wait
            {until}.06ms cpu0 switch main -> idle {WAIT}\n{}end 60ms",
            wake("decoy", 2, 10_000),
            wake("culprit", 1, 50_000)
        );
        let verdict = explain(&record(&text), "main", 1_000..50_000);
        // The looks are its own, 90 µs. If the wait ended, the culprit has what is left from
        // 30.06 ms on, the decoy the rest.
        let culprits = if is_one { 48_910 } else { 19_940 };
        assert_eq!(of_thread(&verdict, 101, "run"), culprits, "{until} {stack}");
    }
}

/// A loop that reads at one place, with one turn of ten that took long: that turn is a wait of
/// its own and a problem; the others are not joined to it.
#[test]
fn a_slow_turn_stands_out() {
    let mut text = format!("{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n");
    for turn in 1..=5 {
        text += &look("decoy", 2, 1_000 + turn * 1_000);
    }
    // The sixth wait lasts from 6.05 ms to 46 ms.
    for turn in 0..5 {
        text += &look("culprit", 1, 46_000 + turn * 1_000);
    }
    let recording = record(&format!("{text}end 60ms"));
    // 50.05 ms to the end is one more, never ended: it is not asked about.
    let found = problems(&recording, Some(100));
    assert!(
        found.contains(&("app".to_owned(), 6_050..46_000)),
        "{found:?}"
    );
    let verdict = explain(&recording, "main", 6_050..46_000);
    assert_eq!(verdict.root.who.thread, "culprit");
    assert_eq!(of_thread(&verdict, 101, "run"), 39_950);
}

/// Who has cried wolf is believed less than who usually ends such waits: the decoy wakes main
/// four times without a result, and then, while main is awake for a fifth look, the result comes.
/// Before, the culprit had ended two such waits.
#[test]
fn crying_wolf() {
    let mut text = format!("{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n");
    // Two turns that go on: main then works for 1 ms.
    for turn in 0..2u64 {
        let at = 3_000 + turn * 4_000;
        text += &wake("culprit", 1, at);
        text += &format!("{}us cpu0 switch main -> idle {WAIT}\n", at + 2_000);
    }
    for turn in 0..4 {
        text += &look("decoy", 2, 15_000 + turn * 8_000);
    }
    text += &wake("decoy", 2, 47_000);
    let recording = record(&format!("{text}end 60ms"));
    let verdict = explain(&recording, "main", 9_000..47_000);
    assert_eq!(verdict.root.who.thread, "culprit");
    let edge = verdict.path[0].edge.as_ref().expect("an edge");
    assert_eq!((edge.kind, edge.strength), ("habit", "weak"));
    assert!(edge.reason.contains("spurious"), "{}", edge.reason);
}

/// A window that begins and ends within one wait explains just that part of it.
#[test]
fn a_window_within_a_wait() {
    let text = format!(
        "{PEOPLE}1ms cpu0 switch main -> idle {WAIT}\n{}end 60ms",
        wake("culprit", 1, 50_000)
    );
    let verdict = explain(&record(&text), "main", 20_000..30_000);
    assert_eq!(of_thread(&verdict, 101, "run"), 10_000);
    let step = &verdict.path[0];
    assert_eq!((step.from_ns, step.to_ns), (20 * MS, 30 * MS));
}

/// A client polls for several files with a timeout, and reads what comes in pieces: each piece ends a wait, and
/// what comes last does not stand for those before. Where nothing was read it only looked.
#[test]
fn what_was_read_ends_a_poll_for_several() {
    let is_one_wait = |reads: bool| {
        let mut text = format!(
            "{PEOPLE}0 socket app object=inet:5 peer=inet:6 local=127.0.0.1:4000 remote=127.0.0.1:80
            0 socket app object=inet:6 peer=inet:5 local=127.0.0.1:80 remote=127.0.0.1:4000\n"
        );
        let poll = "sleeping poll arg=1s stack=poll;curl_multi_poll;main";
        for (at, waker, cpu) in [(500_000, "culprit", 1), (1_000_000, "decoy", 2)] {
            text += &format!(
                "{}us cpu0 switch main -> idle {poll}
                {at}us cpu{cpu} wake {waker} -> main in=softirq vector=3
                {}us cpu0 switch idle -> main\n",
                at - 499_900,
                at + 20
            );
            if reads {
                text += &format!(
                    "{}us transfer main received 100 object=inet:5 peer=inet:6\n",
                    at + 30
                );
            }
        }
        let recording = record(&(text + "end 1100ms"));
        let verdict = explain(&recording, "main", 100..1_000_000);
        verdict.path[0].doing.contains("in 2 waits")
    };
    assert!(!is_one_wait(true));
    assert!(is_one_wait(false));
}

/// A server that polls for what a program's output brings, and tells its client every five seconds that it is
/// still there, waits for that program all along. The program's end is the end of its output.
#[test]
fn a_timeout_that_says_still_there_ends_no_wait() {
    let poll = "sleeping poll arg=5s object=pipe:7 stack=poll;copy_to_client;main";
    let recording = record(&format!(
        "process server 100
        thread main server 100 name=server
        process hook 200
        thread hook hook 200
        process client 300
        thread client client 300
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> hook
        0 cpu2 switch client -> idle sleeping read object=pipe:8 stack=read;client
        1ms cpu1 switch hook -> idle sleeping clock_nanosleep arg=8s stack=nanosleep;hook
        1ms cpu0 switch main -> idle {poll}
        5001ms cpu0 wake idle -> main in=timer
        5001.1ms cpu0 switch idle -> main
        5001.15ms cpu0 transfer main sent 4 object=pipe:8
        5001.15ms cpu0 wake main -> client write object=pipe:8
        5001.2ms cpu2 switch idle -> client
        5001.2ms cpu0 switch main -> idle {poll}
        5001.3ms cpu2 switch client -> idle sleeping read object=pipe:8 stack=read;client
        8001ms cpu1 wake idle -> hook in=timer
        8001.1ms cpu1 switch idle -> hook
        8002ms cpu1 wake hook -> main exit
        8002.1ms exit hook 0
        8002.1ms cpu1 switch hook -> idle dead
        8002.1ms cpu0 switch idle -> main
        8003ms exit main 0
        8003ms cpu0 switch main -> idle dead
        end 9s"
    ));
    let verdict = explain(&recording, "main", 1_000..8_002_100);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// A thread of the waiter's own process writes to the other end of its pair of sockets, again and again, and what
/// the waiter reads makes room there, of which the kernel tells the service at that end: all of that is one wait
/// until its timeout, for the service, which has taken the request and does not answer.
#[test]
fn ticks_that_make_room_are_spurious() {
    const TICKS: u64 = 100;
    let mut text = String::from(
        "process app 100
        thread asker app 100 name=app
        thread ticker app 101
        process service 200
        thread server service 200
        0 socket app object=unix:1 peer=unix:2
        0 socket service object=unix:2 peer=unix:1
        0 cpu0 switch idle -> asker
        0 cpu1 switch idle -> ticker
        0 cpu2 switch idle -> server
        10us cpu2 switch server -> idle sleeping read object=unix:2 stack=read;accept
        20us transfer asker sent 1 object=unix:1 peer=unix:2
        20us cpu0 wake asker -> server write object=unix:1 stack=write;ask
        30us cpu2 switch idle -> server
        40us transfer server received 1 object=unix:2 peer=unix:1
        50us cpu2 switch server -> idle sleeping read object=unix:2 stack=read;accept
        60us cpu1 switch ticker -> idle sleeping clock_nanosleep arg=5ms stack=nanosleep;tickle
        70us cpu0 switch asker -> idle sleeping ppoll object=unix:1 stack=ppoll;ask\n",
    );
    for tick in 1..TICKS {
        let at = |us: u64| tick * 5_000 + us;
        text += &format!(
            "{}us cpu1 wake idle -> ticker in=timer
            {}us cpu1 switch idle -> ticker
            {}us transfer ticker sent 1 object=unix:2 peer=unix:1
            {}us cpu1 wake ticker -> asker write object=unix:2 stack=write;tickle
            {}us cpu1 switch ticker -> idle sleeping clock_nanosleep arg=5ms stack=nanosleep;tickle
            {}us cpu0 switch idle -> asker
            {}us transfer asker received 1 object=unix:1 peer=unix:2
            {}us cpu0 wake asker -> server read object=unix:1 stack=read;ask
            {}us cpu2 switch idle -> server
            {}us cpu0 switch asker -> idle sleeping ppoll object=unix:1 stack=ppoll;ask
            {}us cpu2 switch server -> idle sleeping read object=unix:2 stack=read;accept\n",
            at(0),
            at(5),
            at(10),
            at(10),
            at(15),
            at(20),
            at(30),
            at(30),
            at(40),
            at(50),
            at(60)
        );
    }
    text += "499980us cpu0 wake idle -> asker in=timer\n500ms cpu0 switch idle -> asker\n";
    let verdict = explain(&record(&format!("{text}end 600ms")), "asker", 70..500_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(verdict.path.len(), 2, "{}", verdict.sentence);
}

/// An event loop sleeps for a time of its own while its only connection is at rest, and then asks by that: the time was
/// not for the answer, which came at once.
#[test]
fn a_pause_of_an_event_loop_is_not_for_the_answer_after_it() {
    const REST: &str = "sleeping epoll_wait arg=300 object=inet:1 stack=epoll_wait;loop";
    let text = format!(
        "process app 100\nthread app app 100
        process base 200\nthread base base 200
        0 socket base object=inet:9 local=127.0.0.1:90
        0 open base object=inet:9 kind=listener
        0 socket app object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:90
        0 socket base object=inet:2 local=127.0.0.1:90 remote=127.0.0.1:5001
        0 open app object=inet:1 last=received ago=1s
        0 open base object=inet:2 last=sent ago=1s
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> base
        1ms cpu1 switch base -> idle sleeping recvfrom object=inet:2 stack=recv;serve
        2ms cpu0 switch app -> idle {REST}
        302ms cpu0 wake idle -> app in=timer
        302.1ms cpu0 switch idle -> app
        302.2ms transfer app sent 20 object=inet:1
        302.2ms cpu0 wake app -> base write in=softirq vector=3 object=inet:1
        302.2ms cpu1 switch idle -> base
        302.3ms transfer base received 20 object=inet:2
        302.4ms cpu0 switch app -> idle {REST}
        302.6ms transfer base sent 20 object=inet:2
        302.6ms cpu1 wake base -> app write in=softirq vector=3 object=inet:2
        302.6ms cpu0 switch idle -> app
        302.7ms transfer app received 20 object=inet:1
        302.8ms cpu1 switch base -> idle sleeping recvfrom object=inet:2 stack=recv;serve
        400ms cpu0 switch app -> idle {REST}
        end 1s"
    );
    let verdict = explain(&record(&text), "app", 2_000..302_600);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    assert!(verdict.knot.is_none(), "{}", verdict.sentence);
}
