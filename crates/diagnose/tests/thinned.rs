//! Millions of short waits, of which a sample is looked at.

use crate::support::*;
use std::fmt::Write;

/// Turns of two threads that answer each other over pipes, and how long a turn takes, µs.
const TURNS: u64 = 360_000;
const TURN_US: u64 = 10;
/// After so many turns one waits for the disk.
const BEFORE_DISK: u64 = 200_000;
const DISK_US: u64 = 300_000;

/// Each turn, `ping` runs for 3 µs, `pong` for 6, and `ping` waits for the CPU for 1.
fn ping_pong() -> String {
    let mut text = String::from(
        "process ping 100
        thread ping ping 100
        process pong 200
        thread pong pong 200
        0 cpu0 switch idle -> ping\n",
    );
    let mut at = 0;
    for turn in 0..TURNS {
        if turn == BEFORE_DISK {
            let _ = write!(
                text,
                "{at}us cpu0 switch ping -> idle uninterruptible read object=file:7 stack=read;load kstack=io_schedule;wait
                {0}us cpu0 wake idle -> ping in=interrupt
                {0}.5us cpu0 switch idle -> ping\n",
                at + DISK_US
            );
            at += DISK_US + 1;
        }
        let _ = write!(
            text,
            "{0}us cpu0 wake ping -> pong write object=pipe:1 stack=write;ask
            {0}us cpu0 switch ping -> pong sleeping read object=pipe:2 stack=read;hear
            {1}us cpu0 wake pong -> ping write object=pipe:2 stack=write;answer
            {2}us cpu0 switch pong -> ping sleeping read object=pipe:1 stack=read;listen\n",
            at + 3,
            at + 9,
            at + TURN_US
        );
        at += TURN_US;
    }
    let _ = write!(text, "end {at}us");
    text
}

/// The sums equal those of all intervals, and a wait that is long enough to be listed by itself keeps its exact
/// length. The verdict says how much of it is estimated.
#[test]
fn a_sample_stands_for_all() {
    let recording = record(&ping_pong());
    let end = TURNS * TURN_US + DISK_US + 1;
    let verdict = explain(&recording, "ping", 0..end);
    let is_close = |told: u64, us: u64| (told as f64 - us as f64).abs() < 0.005 * us as f64;
    let told = |tid: u32, kind: &str| of_thread(&verdict, tid, kind);
    assert_eq!(
        verdict.blame.iter().map(|blame| blame.ns).sum::<u64>(),
        end * 1000
    );
    assert_eq!(of_kind(&verdict, "disk"), DISK_US);
    let estimated = verdict.estimated_ns as f64 / (end * 1000) as f64;
    assert!((0.3..0.6).contains(&estimated), "{estimated}");
    assert!(
        is_close(told(100, "run"), 3 * TURNS),
        "{}",
        told(100, "run")
    );
    assert!(
        is_close(told(200, "run"), 6 * TURNS),
        "{}",
        told(200, "run")
    );
    assert!(
        is_close(told(100, "runnable"), TURNS),
        "{}",
        told(100, "runnable")
    );
    // What is drawn covers all of it, too, and its colours have the same shares.
    let spans = &verdict.blame_over_time;
    assert!(spans.len() < 2 * TURNS as usize, "{}", spans.len());
    assert!(
        spans
            .windows(2)
            .all(|pair| pair[0].to_ns == pair[1].from_ns)
    );
    assert_eq!(
        (spans[0].from_ns, spans[spans.len() - 1].to_ns),
        (0, end * 1000)
    );
    let drawn = |kind: &str| -> u64 {
        let of_kind = spans.iter().filter(|span| span.kind == kind);
        of_kind.map(|span| span.to_ns - span.from_ns).sum::<u64>() / 1000
    };
    assert_eq!(drawn("disk"), DISK_US);
    assert!(is_close(drawn("run"), 9 * TURNS), "{}", drawn("run"));
}
