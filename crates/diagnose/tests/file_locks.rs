//! Naps of threads that cannot get the lock of a file: they are attributed to who has it, and no
//! other naps are.
//!
//! Who has file 9 runs throughout. The waiter asks for the lock, is refused, naps and asks again.

use crate::support::*;
use hangdog_diagnose::{Class, Verdict};

const NAP: &str = "sleeping clock_nanosleep stack=nanosleep;retry;work";

/// Two processes that take locks, each with two threads that run throughout, and what happens.
fn locks(events: &str) -> Recording {
    record(&format!(
        "process app 100
        thread main app 100 name=app
        process one 200
        thread first one 200 name=one
        thread second one 201
        process two 300
        thread other two 300 name=two
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> first
        0 cpu2 switch idle -> second
        0 cpu3 switch idle -> other
        {events}
        end 1s"
    ))
}

/// A nap of main from `from` to `to` ms.
fn nap(from: u64, to: u64) -> String {
    format!(
        "{from}ms cpu0 switch main -> idle {NAP}
         {to}ms cpu0 wake idle -> main in=timer
         {to}ms cpu0 switch idle -> main\n"
    )
}

/// Main is refused the lock of a file at a time in ms, because of `holder`.
fn refused(at: u64, file: u64, holder: &str) -> String {
    format!("{at}ms cpu0 handoff main file-lock refused object=file:{file} other={holder}\n")
}

/// A thread takes the lock of a file, or gives it back.
fn step(at: u64, thread: &str, step: &str, file: u64) -> String {
    format!("{at}ms cpu1 handoff {thread} file-lock {step} object=file:{file}\n")
}

/// The time that main's own naps took, and that who ran at last did, in ms: first, second, other.
fn laid_to(verdict: &Verdict) -> (u64, [u64; 3]) {
    let ran = |tid| of_thread(verdict, tid, "run") / 1000;
    let own = of_thread(verdict, 100, "timer") / 1000;
    (own, [ran(200), ran(201), ran(300)])
}

/// The nap after a refusal is the holder's doing; a nap of the same thread 100 ms later, for which
/// it asked for other reasons, is its own.
#[test]
fn a_nap_that_no_refusal_led_to_is_its_own() {
    let events = refused(10, 9, "first") + &nap(11, 111) + &nap(211, 511);
    let verdict = explain(&locks(&events), "main", 10_000..511_000);
    assert_eq!(laid_to(&verdict), (300, [100, 0, 0]));
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
}

/// Two naps after two refusals by two: each is attributed to its own holder.
#[test]
fn each_nap_has_its_own_holder() {
    let events = refused(10, 9, "first")
        + &nap(11, 111)
        + &refused(211, 8, "other")
        + &nap(212, 412)
        + &refused(512, 9, "first")
        + &nap(513, 613);
    let verdict = explain(&locks(&events), "main", 10_000..613_000);
    assert_eq!(laid_to(&verdict), (0, [200, 0, 200]));
}

/// Who was refused, asked once more and got the lock before it slept does not sleep for it.
#[test]
fn who_got_it_before_it_slept_is_not_kept_out() {
    let events = refused(10, 9, "first") + &step(11, "main", "taken", 9) + &nap(12, 212);
    let verdict = explain(&locks(&events), "main", 10_000..212_000);
    assert_eq!(laid_to(&verdict), (200, [0, 0, 0]));
    // The lock of another file is no help.
    let events = refused(10, 9, "first") + &step(11, "main", "taken", 7) + &nap(12, 212);
    let verdict = explain(&locks(&events), "main", 10_000..212_000);
    assert_eq!(laid_to(&verdict), (0, [200, 0, 0]));
}

/// The kernel names the first thread of the process that has the lock; the one that took it is
/// found by the file, whatever other files' locks another thread took since.
#[test]
fn the_thread_that_took_this_file_has_it() {
    let events = step(1, "second", "taken", 9)
        + &step(2, "first", "taken", 7)
        + &step(3, "other", "taken", 9)
        + &refused(10, 9, "first")
        + &nap(11, 211)
        + &step(300, "first", "taken", 9);
    let verdict = explain(&locks(&events), "main", 10_000..211_000);
    assert_eq!(laid_to(&verdict), (0, [0, 200, 0]));
}

/// A lock that has parts, as a database's: it gets one, and is refused the next right after. All of
/// that is one time of being kept out.
#[test]
fn kept_out_though_it_got_a_part() {
    let mut events = String::new();
    for at in [10, 110, 210, 310] {
        events += &step_of_main(at, "taken");
        events += &refused(at + 1, 9, "first");
        events += &nap(at + 2, at + 99);
    }
    let found = problems(&locks(&(events + &step_of_main(410, "taken"))), None);
    let kept_out = found.iter().find(|(name, _)| name == "app");
    assert_eq!(
        kept_out.map(|(_, window)| window.clone()),
        Some(11_000..410_000)
    );
}

/// A lock of the whole file, as flock has it, is not got in part: who got it, gave it back and wants it
/// again at once is kept out anew.
#[test]
fn kept_out_anew_by_flock() {
    let flock = 1 << 8;
    let mut events = String::new();
    for (refused, taken) in [(100_000, 160_000), (160_700, 700_000)] {
        for (at, step) in [
            (refused, "refused"),
            (taken, "taken"),
            (taken + 300, "released"),
        ] {
            events += &format!(
                "{at}us cpu0 handoff main file-lock {step} object=file:9 other=first detail={flock}\n"
            );
        }
    }
    let found = problems(&locks(&events), None);
    let kept_out: Vec<_> = found.iter().filter(|(name, _)| name == "app").collect();
    assert!(
        kept_out
            .iter()
            .any(|(_, window)| *window == (160_700..700_000)),
        "{kept_out:?}"
    );
}

fn step_of_main(at: u64, step: &str) -> String {
    format!("{at}ms cpu0 handoff main file-lock {step} object=file:9\n")
}

/// A script has flock(1) take a lock by a file that the script has open. The lock stays with the script, which
/// waits for a program that it runs.
#[test]
fn a_lock_that_was_taken_for_a_script() {
    let recording = record(
        "process script 100
        thread script script 100
        process flock 200
        process gzip 300
        process app 400
        thread app app 400
        0 cpu0 switch idle -> script
        0 cpu1 switch idle -> app
        1us fork script -> flock flock 200
        2us cpu0 switch script -> flock sleeping wait4 arg=200 stack=wait4;script
        3us cpu0 handoff flock file-lock taken object=file:9 detail=256
        4us cpu0 wake flock -> script exit
        5us cpu0 switch flock -> script dead
        6us fork script -> gzip gzip 300
        7us cpu0 switch script -> gzip sleeping wait4 arg=300 stack=wait4;script
        1ms cpu1 handoff app file-lock waiting object=file:9 other=flock detail=256
        1ms cpu1 switch app -> idle sleeping flock object=file:9 stack=flock;app
        end 3s",
    );
    let verdict = explain(&recording, "app", 1_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// A script has flock(1) take a lock, starts a server in the background, and ends. The server has inherited the file,
/// and the lock with it; what started the script has neither.
#[test]
fn a_server_in_the_background_inherits_a_lock() {
    let recording = record(
        "process case 50
        thread case case 50
        process script 100
        process flock 200
        process server 300
        process app 400
        thread app app 400
        0 cpu0 switch idle -> case
        0 cpu1 switch idle -> app
        1us fork case -> script script 100
        2us cpu0 switch case -> script sleeping wait4 arg=100 stack=wait4;case
        3us fork script -> flock flock 200
        4us cpu0 switch script -> flock sleeping wait4 arg=200 stack=wait4;script
        5us cpu0 handoff flock file-lock taken object=file:9 detail=256
        6us cpu0 wake flock -> script exit
        7us cpu0 switch flock -> script dead
        8us fork script -> server server 300
        9us cpu0 wake script -> case exit
        10us cpu0 switch script -> server dead
        20us cpu0 switch server -> case sleeping epoll_wait object=epoll:1 stack=epoll_wait;serve
        30us cpu0 switch case -> idle sleeping clock_nanosleep arg=5s stack=nanosleep;case
        1ms cpu1 handoff app file-lock waiting object=file:9 other=flock detail=256
        1ms cpu1 switch app -> idle sleeping flock object=file:9 stack=flock;app
        end 3s",
    );
    let verdict = explain(&recording, "app", 1_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// Two scripts hold the lock of a file each, which flock(1) took for them before the recording began, and wait for
/// flock(1) to take the other's. Somebody ends one of them: the lock comes free as it exits.
#[test]
fn a_circle_of_locks_that_a_kill_breaks() {
    let recording = record(
        "process backup 100
        thread backup backup 100
        process rotate 200
        thread rotate rotate 200
        process first 300
        process second 400
        process sh 500
        thread sh sh 500
        0 cpu0 switch idle -> backup
        0 cpu1 switch idle -> rotate
        1us fork backup -> first first 300
        2us cpu0 switch backup -> first sleeping wait4 arg=300 stack=wait4;backup
        3us cpu0 handoff first file-lock waiting object=file:8 detail=257
        4us cpu0 switch first -> idle sleeping flock object=file:8 stack=flock
        5us fork rotate -> second second 400
        6us cpu1 switch rotate -> second sleeping wait4 arg=400 stack=wait4;rotate
        7us cpu1 handoff second file-lock waiting object=file:9 detail=257
        8us cpu1 switch second -> idle sleeping flock object=file:9 stack=flock
        5s cpu1 switch idle -> sh
        5000.01ms cpu1 wake sh -> rotate kill arg=15
        5000.02ms cpu1 wake sh -> second kill arg=15
        5000.03ms cpu1 switch sh -> rotate sleeping read stack=read;sh
        5000.1ms cpu1 handoff rotate file-lock released object=file:9 detail=256
        5000.11ms cpu1 handoff rotate file-lock released object=file:8 detail=256
        5000.12ms cpu1 wake rotate -> first exit
        5000.13ms cpu1 switch rotate -> second dead
        5000.14ms cpu0 switch idle -> first
        5000.2ms cpu1 switch second -> idle dead
        5000.2ms cpu0 wake first -> backup exit
        5000.21ms exit first 0
        5000.22ms cpu0 switch first -> backup dead
        5000.3ms cpu0 handoff backup file-lock released object=file:8 detail=256
        5000.31ms cpu0 handoff backup file-lock released object=file:9 detail=256
        5000.4ms cpu0 switch backup -> idle dead
        end 6s",
    );
    let verdict = explain(&recording, "first", 4..5_000_140);
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
}

/// Who has the lock of a file waits for the network, and gives the lock back as it ends: the problem is that of the one
/// who waits for the lock, though the other waits a little longer.
#[test]
fn who_is_kept_out_until_the_holder_ends_suffers() {
    let recording = record(
        "process shell 50\nthread shell shell 50
        process list 100\nthread list list 100
        process ban 200\nthread ban ban 200
        0 socket list object=inet:1 local=10.0.0.1:4000 remote=10.0.0.2:53
        0 cpu0 switch idle -> list
        0 cpu1 switch idle -> ban
        1ms cpu0 handoff list file-lock taken object=file:9
        2ms transfer list sent 40 object=inet:1
        3ms cpu0 switch list -> idle sleeping poll object=inet:1 stack=poll;res_send;list_names
        900ms cpu1 handoff ban file-lock waiting object=file:9
        901ms cpu1 switch ban -> idle sleeping flock object=file:9 stack=flock;add_rule
        5s cpu0 wake idle -> list in=timer
        5s cpu0 switch idle -> list
        5000.1ms transfer list sent 40 object=inet:1
        5000.2ms cpu0 switch list -> idle sleeping poll object=inet:1 stack=poll;res_send;list_names
        10s cpu0 wake idle -> list in=timer
        10s cpu0 switch idle -> list
        10000.7ms exit list 0
        10001ms cpu0 wake list -> ban exit_group
        10001.01ms cpu0 handoff list file-lock released object=file:9
        10002ms cpu0 switch list -> idle dead
        10002ms cpu1 switch idle -> ban
        end 11s",
    );
    let found = problems(&recording, None);
    assert_eq!(found[0].0, "ban", "{found:?}");
}
