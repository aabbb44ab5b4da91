//! Waits for flags in memory: which looks are one wait, and which write ended it.

mod common;

use common::Recording;
use hangdog_graph::{Edge, FlagWait, Source};
use hangdog_trace::ids::NONE;

const PEOPLE: &str = "
process app 100
process other 200
thread main app 100
thread setter app 101
thread toggler app 102
thread remote other 200
flag ready app 0x1000
flag second app 0x2000
flag theirs other 0x9000 memory=ready
";

fn waits(accesses: &str) -> (Recording, Vec<FlagWait>) {
    let recording = Recording::of(&format!("{PEOPLE}{accesses}\nend 10s"));
    let main = recording.t("main");
    let waits = recording.evidence().flag_waits(main, 0..u64::MAX).to_vec();
    (recording, waits)
}

/// Looks of `main` at a flag, every ms in that time, all of one value.
fn looks(flag: &str, ms: std::ops::Range<u64>, value: u64) -> String {
    ms.map(|ms| format!("{ms}ms access main {flag} read {value}\n"))
        .collect()
}

/// The wait is from the first look to the last, which sees the write; its reason names writer, value and
/// flag.
#[test]
fn looks_are_a_wait() {
    let (recording, waits) = waits(&format!(
        "{}5.4ms access setter ready write 1 stack=set\n6ms access main ready read 1",
        looks("ready", 1..6, 0)
    ));
    let [wait] = waits[..] else {
        panic!("{waits:?}")
    };
    assert_eq!((wait.from, wait.to, wait.looks), (1_000_000, 6_000_000, 6));
    assert_eq!(wait.writer, recording.t("setter"));
    let edge = Edge::of_flag(&recording.evidence(), &wait);
    assert_eq!(edge.source, Source::Thread(recording.t("setter")));
    assert!(
        edge.reason.contains("setter wrote 0x1 to ready"),
        "{}",
        edge.reason
    );
}

/// A look that saw the write may be noted a little earlier than that.
#[test]
fn a_write_may_be_noted_late() {
    let (recording, waits) = waits(&format!(
        "{}6ms access main ready read 1\n6.02ms access setter ready write 1 stack=set",
        looks("ready", 1..6, 0)
    ));
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].writer, recording.t("setter"));
}

/// What a look found is read right behind it. Where the write came in between, the thread looks once more before it
/// goes on.
#[test]
fn a_write_right_behind_a_look() {
    let (recording, waits) = waits(&format!(
        "{}6ms access main ready read 1\n6.02ms access setter ready write 1 stack=set
        6.1ms access main ready read 1",
        looks("ready", 1..6, 0)
    ));
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].writer, recording.t("setter"));
}

/// Of a word that changes for other reasons those bits decide that were always the same before.
#[test]
fn the_bits_that_decide() {
    let mut text = String::new();
    for ms in 1..9 {
        text += &format!(
            "{ms}.5ms access toggler ready write {} stack=toggle\n",
            (ms + 1) % 2
        );
        text += &format!("{ms}ms access main ready read {}\n", ms % 2);
    }
    // The setter's bit is in the word when the toggler writes after it.
    text += "8.6ms access setter ready write 65 stack=set
             8.7ms access toggler ready write 64 stack=toggle
             9ms access main ready read 64";
    let (recording, waits) = waits(&text);
    let [wait] = waits[..] else {
        panic!("{waits:?}")
    };
    assert_eq!(wait.writer, recording.t("setter"));
    assert_eq!((wait.from, wait.to), (1_000_000, 9_000_000));
}

/// A loop that looks at two flags goes on by the one that changed least.
#[test]
fn one_of_two_flags() {
    let mut text = looks("second", 1..9, 0);
    for ms in 1..9 {
        text += &format!("{ms}.2ms access main ready read {ms}\n");
        text += &format!(
            "{ms}.5ms access toggler ready write {} stack=count\n",
            ms + 1
        );
    }
    text += "8.6ms access setter second write 1 stack=set
             9ms access main second read 1
             9.2ms access main ready read 9";
    let (recording, waits) = waits(&text);
    let writers: Vec<_> = waits.iter().map(|wait| wait.writer).collect();
    assert_eq!(writers, [recording.t("setter")]);
}

/// A handler of the thread's own writes on behalf of who sent the signal.
#[test]
fn a_signal_handler_writes() {
    let story = format!(
        "{}5.3ms cpu0 handoff setter signal submitted other=main
        5.4ms access main ready write 1 stack=on_signal\n6ms access main ready read 1",
        looks("ready", 1..6, 0)
    );
    let (recording, found) = waits(&story);
    let [wait] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (wait.writer, wait.by_handler),
        (recording.t("setter"), true)
    );
    let alone = story.replace(
        "handoff setter signal submitted other=main",
        "handoff setter timer submitted",
    );
    assert_eq!(waits(&alone).1[0].writer, NONE);
}

/// Where looks came too often and were not watched, the write of another value ended the wait; if the
/// thread looks on afterwards, it had not ended.
#[test]
fn looks_that_were_not_watched() {
    let hot: String = (0..50)
        .map(|us| format!("{}us access main ready read 0\n", 1000 + us * 4))
        .collect();
    let story = format!(
        "0 cpu0 switch idle -> main
        {hot}1.3ms access idle ready paused 0
        700ms access setter ready write 0 stack=reset
        800ms access setter ready write 1 stack=set
        1001ms access idle ready resumed 0"
    );
    let (recording, found) = waits(&story);
    let [wait] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((wait.writer, wait.to), (recording.t("setter"), 800_000_000));
    let more: String = (0..5)
        .map(|us| format!("{}us access main ready read 1\n", 1_001_100 + us * 4))
        .collect();
    let (_, found) = waits(&format!("{story}\n{more}"));
    // It saw the value and went on looking: by the last look nothing else was written.
    assert!(found.is_empty(), "{found:?}");
}

/// One that waits for the same flag again and again has as many waits, also where looks were not watched as the first
/// of them ended.
#[test]
fn waits_for_one_flag_one_after_the_other() {
    let looks = |from_ms: u64, value: u64| -> String {
        let look = |at: u64| {
            format!(
                "{}us access main ready read {value}\n",
                from_ms * 1000 + at * 50
            )
        };
        (0..10).map(look).collect()
    };
    let turn = |from_ms: u64, value: u64| {
        format!(
            "{}{}ms access setter ready write {} stack=set
            {}us access main ready read {}
            {}ms cpu0 switch main -> idle sleeping clock_nanosleep arg=1ms
            {}ms cpu0 wake idle -> main in=timer
            {}ms cpu0 switch idle -> main\n",
            looks(from_ms, value),
            from_ms + 1,
            value + 1,
            from_ms * 1000 + 1_010,
            value + 1,
            from_ms + 2,
            from_ms + 3,
            from_ms + 3
        )
    };
    let (recording, found) = waits(&format!("{}{}", turn(10, 0), turn(20, 1)));
    let setter = recording.t("setter");
    let ends: Vec<u64> = found.iter().map(|wait| wait.to / 1_000_000).collect();
    assert_eq!(ends, [11, 21], "{found:?}");
    assert!(found.iter().all(|wait| wait.writer == setter));
    let unseen = format!(
        "{}10.6ms access idle ready paused 0
        100ms access setter ready write 1 stack=set
        101ms cpu0 switch main -> idle sleeping clock_nanosleep arg=1ms
        102ms cpu0 wake idle -> main in=timer
        102ms cpu0 switch idle -> main
        110ms access idle ready resumed 0
        {}",
        looks(10, 0),
        turn(120, 1)
    );
    let (_, found) = waits(&unseen);
    let ends: Vec<u64> = found.iter().map(|wait| wait.to / 1_000_000).collect();
    assert_eq!(ends, [100, 121], "{found:?}");
    // What follows the nap is not known to be something else than looking.
    let later = unseen.replace(
        "110ms access idle ready resumed",
        "119.9ms access idle ready resumed",
    );
    let (_, found) = waits(&later);
    assert_eq!(found[1].from / 1_000_000, 102, "{found:?}");
}

/// The same memory in another process is the same flag.
#[test]
fn shared_memory_is_one_flag() {
    let (recording, waits) = waits(&format!(
        "{}5.4ms access remote theirs write 1 stack=set\n6ms access main ready read 1",
        looks("ready", 1..6, 0)
    ));
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].writer, recording.t("remote"));
}

/// Nobody wrote, or the thread looked once or twice, or looks on: no write ended a wait.
#[test]
fn what_is_no_wait() {
    let write = "5.4ms access setter ready write 1 stack=set\n";
    for story in [
        looks("ready", 1..20, 0),
        format!("5ms access main ready read 0\n{write}6ms access main ready read 1"),
        format!(
            "{}{write}{}",
            looks("ready", 1..6, 0),
            looks("ready", 6..30, 1)
        ),
        format!(
            "{}500ms access setter ready write 1",
            looks("ready", 1..6, 0)
        ),
    ] {
        assert_eq!(waits(&story).1, [], "{story}");
    }
}

/// One that tries to take a lock writes to look: who gave it back ended the wait.
#[test]
fn a_spin_lock() {
    let tries: String = (1..6)
        .map(|ms| format!("{ms}ms access main ready write 1 stack=lock\n"))
        .collect();
    let (recording, waits) = waits(&format!(
        "{tries}5.4ms access setter ready write 0 stack=unlock\n6ms access main ready write 1 stack=lock"
    ));
    let [wait] = waits[..] else {
        panic!("{waits:?}")
    };
    assert_eq!(wait.writer, recording.t("setter"));
}
