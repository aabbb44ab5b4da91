//! What a thread ran: functions with their shares, the one that all have in common, what began it.

use crate::support::*;
use hangdog_diagnose::verdict::{Begun, FunctionShare, Ran};

const PEOPLE: &str = "
process app 100
thread main app 100 name=app
thread helper app 101
";

/// main runs on CPU 0 from 0 to 60 ms, and the window is from 10 to 50 ms.
fn ran_all_along(samples: &str) -> Ran {
    let text = format!("{PEOPLE}0 cpu0 switch idle -> main\n{samples}\nend 60ms");
    let verdict = explain(&record(&text), "main", 10_000..50_000);
    verdict.ran.expect("it ran")
}

fn function<'a>(ran: &'a Ran, name: &str) -> &'a FunctionShare {
    let mut all = ran.functions.iter();
    all.find(|function| function.function == name)
        .unwrap_or_else(|| panic!("no {name} in {ran:#?}"))
}

/// Self and total shares of a function, in percent.
fn shares(ran: &Ran, name: &str) -> (u64, u64) {
    let found = function(ran, name);
    let percent = |share: f64| (share * 100.0).round() as u64;
    (percent(found.own), percent(found.total))
}

fn common(ran: &Ran) -> &str {
    ran.common
        .as_ref()
        .map_or("", |common| &common.function.function)
}

/// Of 40 samples 20 are in scale, 12 in memcpy for scale, 4 in resize itself, 2 in the kernel for
/// scale, 2 without a stack; those outside the window do not count.
#[test]
fn self_and_total() {
    let mut text = samples(0, "main", 0..10, "elsewhere;main");
    text += &samples(0, "main", 10..30, "scale@image.c:7;resize@image.c:20;main");
    text += &samples(
        0,
        "main",
        30..42,
        "memcpy;scale@image.c:9;resize@image.c:20;main",
    );
    text += &samples(0, "main", 42..46, "resize@image.c:21;main");
    text += &samples(
        0,
        "main",
        46..48,
        "scale@image.c:7;resize@image.c:20;main kstack=clear_page",
    );
    text += "48ms cpu0 sample main\n49ms cpu0 sample main\n";
    let ran = ran_all_along(&text);
    assert_eq!((ran.samples, ran.ns), (40, 40 * MS));
    assert_eq!(shares(&ran, "scale"), (50, 85));
    assert_eq!(shares(&ran, "memcpy"), (30, 30));
    assert_eq!(shares(&ran, "resize"), (10, 95));
    assert_eq!(shares(&ran, "clear_page"), (5, 5));
    assert_eq!(shares(&ran, "main"), (0, 95));
    assert!((ran.unknown - 0.05).abs() < 1e-9);
    assert!(function(&ran, "clear_page").kernel);
    assert_eq!(
        function(&ran, "memcpy").module.as_deref(),
        Some("libc.so.6")
    );
    // Most samples that have scale are in line 7, of those in line 9 memcpy is the innermost.
    assert_eq!(function(&ran, "scale").source.as_deref(), Some("image.c:7"));
    let order: Vec<&str> = ran.functions.iter().map(|f| f.function.as_str()).collect();
    assert_eq!(order, ["scale", "memcpy", "resize", "clear_page", "main"]);
    // 0.98 / sqrt(40) = 0.155.
    let error = ran.share_error.expect("an error");
    assert!((error - 0.155).abs() < 0.001, "{error}");
    let scale = ran.common.as_ref().expect("a common function");
    assert_eq!(scale.function.function, "scale");
    let hot: Vec<(&str, u64)> = scale
        .hot
        .iter()
        .map(|hot| (hot.function.as_str(), (hot.share * 100.0).round() as u64))
        .collect();
    assert_eq!(hot, [("scale", 50), ("memcpy", 30), ("clear_page", 5)]);
}

/// A function that calls itself counts once a stack, also where others are in between.
#[test]
fn recursion() {
    let mut text = samples(0, "main", 10..40, "walk;visit;walk;visit;walk;main");
    text += &samples(0, "main", 40..50, "visit;walk;main");
    let ran = ran_all_along(&text);
    assert_eq!(shares(&ran, "walk"), (75, 100));
    assert_eq!(shares(&ran, "visit"), (25, 100));
    assert_eq!(common(&ran), "walk");
}

/// What is inlined goes by its own name, with that of the function that holds its code.
#[test]
fn inlined() {
    let text = samples(
        0,
        "main",
        10..50,
        "mix@mix.h:3^blend@mix.h:9^shade@scene.c:40;main",
    );
    let text = format!("{PEOPLE}0 cpu0 switch idle -> main\n{text}end 60ms");
    let verdict = explain(&record(&text), "main", 10_000..50_000);
    assert_eq!(verdict.root.function.as_deref(), Some("mix"));
    assert_eq!(verdict.root.inlined_into.as_deref(), Some("shade"));
    assert_eq!(verdict.root.place.as_deref(), Some("mix.h:3"));
    assert!(
        verdict
            .sentence
            .ends_with("ran mix (mix.h:3, inlined into shade)."),
        "{}",
        verdict.sentence
    );
    let ran = verdict.ran.expect("it ran");
    assert_eq!(
        function(&ran, "blend").inlined_into.as_deref(),
        Some("shade")
    );
    assert_eq!(function(&ran, "shade").inlined_into, None);
    assert_eq!(shares(&ran, "mix"), (100, 100));
    assert_eq!(shares(&ran, "shade"), (0, 100));
}

/// The deepest of those that are on at least 70 % of the samples: also where the outer one is
/// nearer to the top of the few stacks that lack it; the outer one below that share.
#[test]
fn deepest_common() {
    let stacks = |deep_until| {
        let mut text = samples(0, "main", 10..deep_until, "leaf;e;d;c;inner;outer;main");
        text += &samples(0, "main", 10..deep_until, "leaf2;e;d;c;inner;outer;main")
            .replace("ms", ".5ms");
        text + &samples(0, "main", deep_until..50, "outer;main").repeat(2)
    };
    // 28 of 40 are 70 %, and the deepest that both kinds of leaves have is e.
    assert_eq!(common(&ran_all_along(&stacks(38))), "e");
    assert_eq!(common(&ran_all_along(&stacks(37))), "outer");
}

/// A name says more the more it is the program's own: its functions go before a library's that
/// they call, a library's before main, main before the C library's.
#[test]
fn whose_function() {
    for (stack, expected) in [
        ("memcpy;png_row;load;main", "load"),
        ("memcpy;png_row;main", "png_row"),
        ("memcpy;main", "main"),
        ("memcpy", "memcpy"),
        // A callback that the library calls is the program's.
        ("compare;qsort;load;main", "compare"),
    ] {
        let ran = ran_all_along(&samples(0, "main", 10..50, stack));
        assert_eq!(common(&ran), expected, "{stack}");
    }
    // The comparator is not on enough samples, its caller is.
    let mut text = samples(0, "main", 10..35, "compare;qsort;load;main");
    text += &samples(0, "main", 35..50, "qsort;load;main");
    assert_eq!(common(&ran_all_along(&text)), "load");
}

/// A loop that calls what is due says nothing of it: the time is named after what it called most, with what
/// comes next, each with its own share. One that computes itself keeps the name.
#[test]
fn what_a_loop_called() {
    let named = |text: &str| {
        let text = format!("{PEOPLE}0 cpu0 switch idle -> main\n{text}\nend 60ms");
        let verdict = explain(&record(&text), "main", 10_000..50_000);
        let ran = verdict.ran.as_ref().expect("it ran");
        (common(ran).to_owned(), verdict.sentence)
    };
    for outer in ["g_main_context_dispatch;run", "main"] {
        let mut text = samples(0, "main", 10..34, &format!("leaf;layout;{outer}"));
        text += &samples(0, "main", 34..48, &format!("leaf2;highlight;{outer}"));
        text += &samples(0, "main", 48..50, outer);
        let (function, sentence) = named(&text);
        assert_eq!(function, "leaf");
        let says = "it ran leaf (app) for 60 % of that time and leaf2 (app) for 35 %.";
        assert!(sentence.ends_with(says), "{sentence}");
    }
    let mut text = samples(0, "main", 10..25, "layout;main");
    text += &samples(0, "main", 25..50, "main");
    let (function, sentence) = named(&text);
    assert_eq!(function, "main");
    assert!(sentence.ends_with("it ran main (app)."), "{sentence}");
}

/// Two functions that have nothing in common but main.
#[test]
fn nothing_in_common() {
    let mut text = samples(0, "main", 10..30, "eat;pthread_start");
    text += &samples(0, "main", 30..50, "drink;pthread_go");
    let ran = ran_all_along(&text);
    assert_eq!(ran.common, None);
    assert_eq!(shares(&ran, "eat"), (50, 50));
}

/// Without samples nothing is claimed, but what began it is told.
#[test]
fn no_samples() {
    let ran = ran_all_along("");
    assert_eq!((ran.samples, ran.share_error, ran.unknown), (0, None, 1.0));
    assert_eq!((ran.common, ran.functions), (None, Vec::new()));
    assert_eq!(ran.begun.map(|begun| begun.kind), Some("before"));
}

/// Functions on less than 1 % of the samples are not listed, and their time is not lost.
#[test]
fn others() {
    let mut text = String::new();
    for at in 0..400 {
        let name = if at % 4 == 0 {
            format!("rare{at}")
        } else {
            "often".into()
        };
        text += &format!(
            "{}us cpu0 sample main stack={name};main\n",
            10_000 + at * 100
        );
    }
    let ran = ran_all_along(&text);
    assert_eq!(ran.functions.len(), 2);
    assert!((ran.others - 0.25).abs() < 1e-9, "{}", ran.others);
}

/// Stacks that were walked before the recorder had loaded the program's code lack their outer functions, and say nothing of
/// what all of the time was for; too few others do not either.
#[test]
fn stacks_before_the_code_was_loaded_do_not_count() {
    let common = |loaded_at: u64| {
        let mut text = String::new();
        for at in 10..loaded_at {
            let inner = if at % 2 == 0 { "add" } else { "multiply" };
            text += &samples(0, "main", at..at + 1, &format!("{inner};!not-loaded"));
        }
        text += &samples(0, "main", loaded_at..50, "divide;report;main;!root");
        let ran = ran_all_along(&text);
        ran.common.map(|common| common.function.function)
    };
    assert_eq!(common(28).as_deref(), Some("divide"));
    assert_eq!(common(40), None);
}

/// Stacks that do not reach their outermost function are counted by why they end.
#[test]
fn early_ends() {
    let mut text = samples(0, "main", 10..30, "work;main;!root");
    text += &samples(0, "main", 30..42, "work;!unsupported");
    text += &samples(0, "main", 42..46, "work;main");
    text += &samples(0, "main", 46..50, "work kstack=clear_page").replace("stack=work", "");
    let ran = ran_all_along(&text);
    let ends: Vec<(&str, u64)> = ran
        .early_ends
        .iter()
        .map(|end| (end.why, (end.share * 100.0).round() as u64))
        .collect();
    assert_eq!(
        ends,
        [("unsupported", 30), ("no stack", 10), ("unknown", 10)]
    );
}

/// main waits at 2 ms, is woken at 8 ms and runs work from 9 to 59 ms; what the events say is
/// what began it.
fn begun_by(wait: &str, wake: &str, more: &str) -> Begun {
    let text = format!(
        "{PEOPLE}
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> helper
        2ms cpu0 switch main -> idle {wait}
        8ms cpu1 {wake}
        9ms cpu0 switch idle -> main
        {more}
        {}
        end 60ms",
        samples(0, "main", 10..50, "work;main")
    );
    let ran = explain(&record(&text), "main", 10_000..50_000).ran;
    ran.and_then(|ran| ran.begun).expect("what began it")
}

/// Bytes, with how many and from whom.
#[test]
fn begun_by_a_message() {
    let begun = begun_by(
        "sleeping recvfrom object=unix:7 stack=recv;main",
        "wake helper -> main sendto object=unix:8",
        "8.5ms transfer helper received 99 object=unix:7
        9.1ms transfer main received 5 object=unix:3
        9.2ms transfer main received 34 object=unix:7",
    );
    assert_eq!((begun.kind, begun.at_ns), ("message", 8 * MS));
    assert_eq!(begun.by.map(|by| by.tid), Some(101));
    assert_eq!(begun.bytes, Some(34));
    assert_eq!(
        begun.text,
        "app/helper sent (sendto), 34 bytes through unix socket 7; \
         until then it waited in recvfrom of unix socket 7"
    );
}

/// A poll is told with what then came, by whichever socket.
#[test]
fn begun_by_a_poll() {
    let begun = begun_by(
        "sleeping poll arg=none stack=poll;main",
        "wake helper -> main sendto object=unix:8",
        "9.2ms transfer main received 34 object=unix:7",
    );
    assert_eq!((begun.kind, begun.bytes), ("message", Some(34)));
}

/// A condition, a sleep, a timer, a timeout, and a wake that is not in the trace.
#[test]
fn begun_by_other_events() {
    let condition = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;main";
    let by_timer = "wake idle -> main in=timer";
    for (wait, wake, kind, text) in [
        (
            condition,
            "wake helper -> main futex op=wake stack=pthread_cond_signal;give",
            "signal",
            "app/helper signalled what it waited for",
        ),
        (
            "sleeping nanosleep arg=6ms stack=nanosleep;main",
            by_timer,
            "timer",
            "its sleep ended",
        ),
        (
            "sleeping read object=timerfd:5 stack=read;main",
            by_timer,
            "timer",
            "the timer that it waited for fired",
        ),
        (
            "sleeping poll arg=6 stack=poll;main",
            by_timer,
            "timer",
            "its timeout expired",
        ),
        (condition, by_timer, "timer", "its timeout expired"),
        (
            condition,
            "wake main -> helper",
            "unknown",
            "the trace does not show what woke it",
        ),
    ] {
        let begun = begun_by(wait, wake, "");
        assert_eq!(begun.kind, kind, "{wait} {wake}");
        assert!(begun.text.starts_with(text), "{}", begun.text);
        assert_eq!(begun.at_ns, if kind == "unknown" { 9 * MS } else { 8 * MS });
    }
}

/// What a thread waits for in the middle of its work did not begin it: a lock, the disk, a moment's
/// nap within the function that the time is named after. A nap elsewhere, or a long one, did.
#[test]
fn waits_within_the_work() {
    let message = "sleeping recvfrom object=unix:7 stack=recv;main";
    let sender = "wake helper -> main sendto object=unix:8";
    let pause = |wait: &str, until: &str| {
        begun_by(
            message,
            sender,
            &format!(
                "12ms cpu0 switch main -> idle {wait}
                {until} cpu1 wake idle -> main in=timer
                {until} cpu0 switch idle -> main"
            ),
        )
    };
    for (wait, until, kind) in [
        (
            "sleeping nanosleep arg=1 stack=nanosleep;work;main",
            "12.5ms",
            "message",
        ),
        (
            "sleeping nanosleep arg=1 stack=nanosleep;work;main",
            "25ms",
            "timer",
        ),
        (
            "sleeping nanosleep arg=1 stack=nanosleep;rest;main",
            "12.5ms",
            "timer",
        ),
        (
            "uninterruptible fsync object=file:5 stack=fsync;work;main",
            "20ms",
            "message",
        ),
        (
            "sleeping futex op=wait object=futex:0x10 stack=pthread_mutex_lock;work;main",
            "20ms",
            "message",
        ),
    ] {
        assert_eq!(pause(wait, until).kind, kind, "{wait} until {until}");
    }
}

/// Of two pieces of work in the window the longer one's beginning is told.
#[test]
fn the_longer_piece() {
    for (second_at, at_ns) in [(20, 20 * MS), (45, 8 * MS)] {
        let waits_at = second_at - 1;
        let begun = begun_by(
            "sleeping recvfrom object=unix:7 stack=recv;main",
            "wake helper -> main sendto object=unix:8",
            &format!(
                "{waits_at}ms cpu0 switch main -> idle sleeping recvfrom object=unix:7
                {second_at}ms cpu1 wake helper -> main sendto object=unix:8
                {second_at}ms cpu0 switch idle -> main"
            ),
        );
        assert_eq!(begun.at_ns, at_ns, "{second_at}");
    }
}

/// A thread that had nothing to wait for: it was made for the work, or was at it before.
#[test]
fn begun_with_the_thread() {
    let text = format!(
        "{PEOPLE}
        0 cpu1 switch idle -> main
        5ms fork main -> worker app 102
        5ms cpu1 wake main -> worker clone new
        6ms cpu0 switch idle -> worker
        {}
        end 60ms",
        samples(0, "worker", 10..50, "work;start")
    );
    let ran = explain(&record(&text), "worker", 10_000..50_000).ran;
    let begun = ran.and_then(|ran| ran.begun).expect("what began it");
    assert_eq!((begun.kind, begun.at_ns), ("fork", 5 * MS));
    assert_eq!(begun.by.map(|by| by.tid), Some(100));
    assert_eq!(begun.text, "app created the thread for this work");
}

/// A thread that collected its machine's garbage for a good part of the time: the sentence says so.
#[test]
fn it_collected_garbage() {
    let sentence = |collected: u64| {
        let until = 10 + collected;
        let text = format!(
            "{PEOPLE}
            0 cpu0 switch idle -> main
            {}
            {}
            200ms cpu0 switch main -> idle sleeping nanosleep
            end 210ms",
            samples(
                0,
                "main",
                10..until,
                "v8::internal::MarkCompactCollector::MarkLiveObjects;v8::internal::Heap::CollectGarbage;importList@import.js:12;main"
            ),
            samples(0, "main", until..200, "push;importList@import.js:12;main"),
        );
        explain(&record(&text), "main", 10_000..200_000).sentence
    };
    let much = sentence(110);
    assert!(
        much.contains("importList") && much.contains(", and collected garbage for 58 %"),
        "{much}"
    );
    let little = sentence(20);
    assert!(!little.contains("garbage"), "{little}");
}

/// Of a starved thread it is told what the one ran that had its CPU.
#[test]
fn of_the_hog() {
    let text = format!(
        "{PEOPLE}
        process hog 200
        thread hog hog 200
        0 cpu0 switch idle -> main
        2ms cpu0 switch main -> hog preempted
        52ms cpu0 switch hog -> main sleeping
        {}
        end 60ms",
        samples(0, "hog", 3..51, "spin_hard")
    );
    let ran = explain(&record(&text), "main", 2_000..52_000)
        .ran
        .expect("the hog ran");
    assert_eq!((ran.who.tid, ran.ns, ran.samples), (200, 50 * MS, 48));
    assert_eq!(common(&ran), "spin_hard");
}

/// Of a wait nothing is said to have run, and the function is the one that waits.
#[test]
fn not_of_a_wait() {
    let text = format!(
        "{PEOPLE}
        0 cpu0 switch idle -> main
        2ms cpu0 switch main -> idle sleeping nanosleep arg=50ms stack=nanosleep;nap@a.c:3^doze@a.c:9;main;!unsupported
        52ms cpu0 wake idle -> main in=timer
        52.1ms cpu0 switch idle -> main
        end 60ms"
    );
    let verdict = explain(&record(&text), "main", 2_000..52_000);
    assert_eq!(verdict.ran, None);
    assert_eq!(verdict.root.function.as_deref(), Some("nap"));
    assert_eq!(verdict.root.inlined_into.as_deref(), Some("doze"));
    let step = verdict.path.last().expect("a path");
    assert_eq!(step.stack_end, Some("unsupported"));
}

/// The sentence names the function of a library that the program's function called, if most of the time went there;
/// neither a function further inside the library, nor one that took less.
#[test]
fn the_library_that_did_the_work_is_told() {
    let says = |own_ms: u64| {
        let begin = 100 - own_ms;
        let inner = samples(0, "main", 0..begin, "png_inflate;png_read_row;render;draw");
        let own = samples(0, "main", begin..100, "render;draw");
        let recording = record(&format!(
            "process app 100\nthread main app 100
            0 cpu0 switch idle -> main
            {inner}{own}
            end 100ms"
        ));
        explain(&recording, "main", 0..100_000).sentence
    };
    let told = "ran render (app), 90 % in png_read_row (libpng.so.16)";
    assert!(
        says(10).contains("90 % in png_read_row"),
        "{} {told}",
        says(10)
    );
    assert!(!says(60).contains("png_read_row"), "{}", says(60));
}

/// Most of the time is in one function, and nearly all of it in the one that called it: the sentence has both. If the rest
/// is elsewhere, or hardly anything is left, it has the inner one.
#[test]
fn the_caller_is_named_where_it_did_more() {
    let sentence = |inner: u64, caller: &str| {
        let mut text = samples(0, "main", 10..inner, "insert_entry;clean_up;serve;main");
        text += &samples(0, "main", inner..50, &format!("{caller};serve;main"));
        let text = format!("{PEOPLE}0 cpu0 switch idle -> main\n{text}end 60ms");
        explain(&record(&text), "main", 10_000..50_000).sentence
    };
    let more = "ran insert_entry (app) for 80 % of that time, 100 % in clean_up, which called it.";
    assert!(
        sentence(42, "sort;clean_up").ends_with(more),
        "{}",
        sentence(42, "sort;clean_up")
    );
    assert!(!sentence(42, "sort").contains("which called it"));
    assert!(!sentence(49, "sort;clean_up").contains("which called it"));
}

/// Of a stack that is deeper than is recorded the outer functions are those of complete stacks with the same
/// recursion, unless there it was called in more than one way.
#[test]
fn deep_recursion_has_its_callers() {
    let ran = |other: &str| {
        let complete = samples(0, "main", 10..24, "visit;visit;rank;layout;main;!root");
        let others = samples(0, "main", 24..30, &format!("visit;{other};main;!root"));
        let cut = samples(0, "main", 30..50, "visit;visit;visit;!depth");
        ran_all_along(&(complete + &others + &cut))
    };
    let same = ran("rank;layout");
    assert_eq!(shares(&same, "rank"), (0, 100));
    assert_eq!(shares(&same, "visit"), (100, 100));
    assert!(same.early_ends.is_empty(), "{:?}", same.early_ends);
    let mixed = ran("print");
    assert_eq!(shares(&mixed, "rank"), (0, 35));
    assert_eq!(mixed.early_ends[0].why, "depth");
}
