//! How long the problem would have taken without its root cause: only what nothing else hides is
//! saved.

use crate::support::*;

const COND: &str = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;await_result";
const SIGNAL: &str = "futex op=wake stack=pthread_cond_signal;give";

/// A single chain saves its share: main waits from 10 to 110 ms for worker, worker from 20 to 90
/// for store, which computes. Of the 100 ms store had 70; 0.1 ms after its wake worker goes on.
#[test]
fn a_chain_saves_its_share() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        thread store app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        0 cpu2 switch idle -> store
        10ms cpu0 switch main -> idle {COND}
        20ms cpu1 switch worker -> idle {COND}
        90ms cpu2 wake store -> worker {SIGNAL}
        90.1ms cpu1 switch idle -> worker
        110ms cpu1 wake worker -> main {SIGNAL}
        110.1ms cpu0 switch idle -> main
        end 120ms"
    ));
    let verdict = explain(&recording, "main", 10_000..110_000);
    assert_eq!(verdict.root.who.thread, "store");
    assert_eq!(of_thread(&verdict, 102, "run"), 70_000);
    assert_eq!(verdict.without_root_ns, 30 * MS);
}

/// Two workers that end at nearly the same moment, which main waits for one after the other:
/// without the first, main would have waited for the second as long. first has 90 of the 90.5 ms,
/// and still nothing is saved.
#[test]
fn a_second_cause_that_ends_with_the_first_saves_nothing() {
    let recording = record(&two(100_000, 100_500));
    let verdict = explain(&recording, "main", 10_000..100_500);
    assert_eq!(verdict.root.who.thread, "first");
    assert_eq!(of_thread(&verdict, 101, "run"), 90_000);
    assert_eq!(verdict.without_root_ns, 90_500_000);
}

/// Where the second takes 30 ms longer than the first, the first has most of the time, and all of
/// it remains without it: the second was at it all along.
#[test]
fn what_runs_beside_the_root_remains() {
    let recording = record(&two(70_000, 100_000));
    let verdict = explain(&recording, "main", 10_000..100_000);
    assert_eq!(verdict.root.who.thread, "first", "60 of 90 ms");
    assert_eq!(verdict.without_root_ns, 90 * MS);
}

/// main waits from 10 ms on for first until `first` µs, has a CPU 0.1 ms later, runs 0.1 ms, and
/// waits for second until `second` µs; both run all the time.
fn two(first: u64, second: u64) -> String {
    format!(
        "process app 100
        thread main app 100 name=app
        thread first app 101
        thread second app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> first
        0 cpu2 switch idle -> second
        10ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;join_first
        {first}us cpu1 wake first -> main {SIGNAL}
        {}us cpu0 switch idle -> main
        {}us cpu0 switch main -> idle sleeping futex op=wait object=futex:0x900 stack=pthread_cond_wait;join_second
        {second}us cpu2 wake second -> main {SIGNAL}
        {}us cpu0 switch idle -> main
        end 120ms",
        first + 100,
        first + 200,
        second + 100
    )
}

/// Who is only waited for in turns saves what it had of each: main asks worker three times, and
/// computes 10 ms in between, which remain.
#[test]
fn many_turns_save_each_of_theirs() {
    let mut text = String::from(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker\n",
    );
    for turn in 0..3 {
        let from = 10 + turn * 30;
        text += &format!(
            "{from}ms cpu0 switch main -> idle {COND}
             {}ms cpu1 wake worker -> main {SIGNAL}
             {}ms cpu0 switch idle -> main\n",
            from + 20,
            from + 20
        );
    }
    let recording = record(&format!("{text}end 110ms"));
    let verdict = explain(&recording, "main", 10_000..100_000);
    assert_eq!(verdict.root.who.thread, "worker");
    assert_eq!(of_thread(&verdict, 101, "run"), 60_000);
    assert_eq!(verdict.without_root_ns, 30 * MS);
}

/// What the problem's thread did itself is saved as well: 40 of 60 ms were its own.
#[test]
fn its_own_work() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        40ms cpu0 switch main -> idle {COND}
        60ms cpu1 wake worker -> main {SIGNAL}
        60ms cpu0 switch idle -> main
        end 70ms"
    ));
    let verdict = explain(&recording, "main", 0..60_000);
    assert_eq!(verdict.root.who.tid, 100);
    // Without it main comes to wait at once, but worker gives the result at 60 ms all the same.
    assert_eq!(verdict.without_root_ns, 60 * MS);
}

/// An event loop takes what comes in the order in which it comes. main computes 70 ms, asks the server, and
/// has its answer 10 ms later; shortly before, the server served another who only then came to ask. Without
/// what main computes, its own answer comes earlier too.
#[test]
fn a_server_answers_who_asks_earlier() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        process server 200
        thread server server 200
        process other 300
        thread other other 300
        0 cpu0 switch idle -> main
        1ms cpu1 switch server -> idle sleeping epoll_wait stack=epoll_wait;serve
        69ms cpu2 wake other -> server sendto stack=send
        69ms cpu1 switch idle -> server
        69.5ms cpu1 switch server -> idle sleeping epoll_wait stack=epoll_wait;serve
        70ms cpu0 wake main -> server sendto stack=send
        70ms cpu1 switch idle -> server
        70.1ms cpu0 switch main -> idle sleeping recvfrom object=inet:1 stack=recv;ask
        80ms cpu1 wake server -> main sendto stack=send
        80ms cpu0 switch idle -> main
        end 90ms",
    );
    let verdict = explain(&recording, "main", 0..80_000);
    assert_eq!(verdict.root.who.tid, 100);
    assert!(
        verdict.without_root_ns < 12 * MS,
        "{} ms",
        verdict.without_root_ns / MS
    );
}

/// A program waits in the kernel for a kernel thread, which waits for the disk, and looks in between once
/// itself. Both the disk and its look are its own; without them it need not wait for the kernel thread.
#[test]
fn a_disk_behind_a_kernel_thread_takes_no_time() {
    let recording = record(
        "process umount 100
        thread umount umount 100
        kthread xfsaild 9
        0 cpu0 switch idle -> umount
        0 cpu1 switch idle -> xfsaild
        10ms cpu0 switch umount -> idle uninterruptible umount2 kstack=xfs_ail_push_all_sync stack=umount2;main
        11ms cpu1 switch xfsaild -> idle uninterruptible kstack=io_schedule;xfs_buf_submit
        30ms cpu1 wake idle -> xfsaild in=softirq vector=4
        30ms cpu1 switch idle -> xfsaild
        30.1ms cpu1 wake xfsaild -> umount
        30.1ms cpu0 switch idle -> umount
        30.2ms cpu1 switch xfsaild -> idle uninterruptible kstack=io_schedule;xfs_buf_submit
        30.2ms cpu0 switch umount -> idle uninterruptible umount2 kstack=xfs_ail_push_all_sync stack=umount2;main
        69ms cpu1 wake idle -> xfsaild in=softirq vector=4
        69ms cpu1 switch idle -> xfsaild
        70ms cpu1 wake xfsaild -> umount
        70ms cpu0 switch idle -> umount
        end 90ms",
    );
    let verdict = explain(&recording, "umount", 10_000..70_000);
    assert!(of_kind(&verdict, "disk") > 50_000, "{}", verdict.sentence);
    assert!(
        verdict.without_root_ns <= 3 * MS,
        "{}",
        verdict.without_root_ns
    );
}

/// A build that starts fifty programs one after the other, for 10 ms each: without those, it would have been
/// done at once.
#[test]
fn what_was_started_goes_with_its_starter() {
    let mut text = "
        process user 100
        thread user user 100
        process make 101
        0 cpu0 switch idle -> user
        1ms fork user -> make make 101
        1ms cpu0 switch user -> make sleeping wait4 stack=wait4;run\n"
        .to_owned();
    for turn in 0..50 {
        let (at, pid) = (2 + 10 * turn, 200 + turn);
        text += &format!(
            "process cc{turn} {pid}
            {at}ms fork make -> c{turn} cc{turn} {pid}
            {at}ms rename c{turn} cc
            {at}.1ms cpu0 switch make -> c{turn} sleeping wait4 stack=wait4;reap_children
            {}ms exit c{turn} 0
            {}ms cpu0 wake c{turn} -> make exit
            {}.1ms cpu0 switch c{turn} -> make dead\n",
            at + 9,
            at + 9,
            at + 9
        );
    }
    text += "503ms exit make 0
        503ms cpu0 wake make -> user exit
        503.1ms cpu0 switch make -> user dead
        end 600ms";
    let verdict = explain(&record(&text), "user", 1_000..503_000);
    assert_eq!(verdict.root.who.thread, "make");
    assert!(verdict.root.share > 0.8, "{}", verdict.root.share);
    assert!(
        verdict.without_root_ns < 100 * MS,
        "{} ns",
        verdict.without_root_ns
    );
}

/// Who tries a lock every 100 ms has it after the pause in which it was released, whatever who had it did then.
#[test]
fn who_tries_again_comes_after_the_release() {
    let mut text = "
        process waiter 100
        thread waiter waiter 100
        process holder 200
        thread holder holder 200
        process script 300
        thread script script 300
        0 cpu0 switch idle -> waiter
        0 cpu1 switch idle -> holder
        0 cpu2 switch idle -> script
        0 open script object=pipe:7 access=write
        1ms cpu2 switch script -> idle sleeping nanosleep arg=4s stack=nanosleep;main
        1ms cpu1 handoff holder file-lock taken object=file:9
        5ms cpu1 switch holder -> idle sleeping nanosleep arg=3s stack=nanosleep;think\n"
        .to_owned();
    for turn in 0..31 {
        let at = 10 + 100 * turn;
        text += &format!(
            "{at}ms cpu0 handoff waiter file-lock refused object=file:9 other=holder
            {at}.1ms cpu0 switch waiter -> idle sleeping nanosleep arg=99ms stack=nanosleep;busy_handler\n"
        );
        if turn == 29 {
            text += "3005ms cpu1 wake idle -> holder in=timer
                3005.1ms cpu1 switch idle -> holder
                3006ms cpu1 handoff holder file-lock released object=file:9
                3007ms cpu1 switch holder -> idle sleeping read object=pipe:7 stack=read;main\n";
        }
        if turn == 30 {
            continue;
        }
        text += &format!(
            "{}.8ms cpu0 wake idle -> waiter in=timer
            {}.9ms cpu0 switch idle -> waiter\n",
            at + 99,
            at + 99
        );
    }
    let text = text.replace("3010ms cpu0 handoff waiter file-lock refused object=file:9 other=holder\n            3010.1ms cpu0 switch waiter -> idle sleeping nanosleep arg=99ms stack=nanosleep;busy_handler\n", "3010ms cpu0 handoff waiter file-lock taken object=file:9\n");
    let recording = record(&format!(
        "{text}4001ms cpu2 wake idle -> script in=timer
        4001ms cpu2 switch idle -> script
        4002ms cpu2 wake script -> holder write object=pipe:7
        4002.1ms cpu1 switch idle -> holder
        end 5s"
    ));
    let verdict = explain(&recording, "waiter", 10_100..3_009_900);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert!(
        verdict.without_root_ns < 200 * MS,
        "{} ns",
        verdict.without_root_ns
    );
}
