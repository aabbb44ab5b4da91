//! Which intervals are problems, and which is the worst.

use crate::support::*;
use hangdog_diagnose::problem;
use hangdog_trace::ids::NONE;

const PEOPLE: &str = "
process app 100
thread main app 100 name=app
thread worker app 101
process other 200
thread other other 200
kthread kworker/0:1 7
";

fn found(events: &str, command_tid: Option<u32>) -> Vec<(String, std::ops::Range<u64>)> {
    problems(&record(&format!("{PEOPLE}{events}")), command_tid)
}

/// A trace of nothing, of idle CPUs, or of threads that never wait for more than a moment has no
/// problem.
#[test]
fn nothing() {
    assert_eq!(problems(&record(""), None), []);
    assert_eq!(problems(&record("end 10s"), Some(1)), []);
    let mut moments = String::from("process app 100\nthread main app 100\nkthread ticker 7\n");
    for turn in 0..10 {
        let at = 1000 * turn;
        moments += &format!(
            "{at}us cpu0 switch main -> idle sleeping read object=pipe:5
            {}us cpu1 wake ticker -> main
            {}us cpu0 switch idle -> main\n",
            at + 500,
            at + 510
        );
    }
    assert_eq!(
        problems(&record(&format!("{moments}end 9900us")), Some(100)),
        []
    );
}

/// The kernel's own threads have none, however long they wait or run.
#[test]
fn kernel_threads_have_none() {
    let events = "
        1ms cpu0 switch idle -> kworker/0:1
        500ms cpu0 switch kworker/0:1 -> idle uninterruptible
        end 1s";
    let text = format!("kthread kworker/0:1 7\n{events}");
    assert_eq!(problems(&record(&text), None), []);
}

/// The main thread of the command stands for its user: a wait of 5 ms of it is worse than one of
/// 40 ms of its worker, and than a computation of 60 ms of another program.
#[test]
fn main_thread_of_the_command_first() {
    let events = "
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        0 cpu2 switch idle -> other
        10ms cpu0 switch main -> idle uninterruptible fsync object=file:5 stack=fsync;save
        15ms cpu0 wake idle -> main in=softirq vector=4
        15ms cpu0 switch idle -> main
        15.5ms cpu0 switch main -> idle dead
        5ms cpu1 switch worker -> idle sleeping futex op=wait stack=pthread_cond_wait;next_job
        45ms cpu1 wake other -> worker futex op=wake
        45ms cpu1 switch idle -> worker
        45.5ms cpu1 switch worker -> idle dead
        60ms cpu2 switch other -> idle dead
        end 70ms";
    let found = found(events, Some(100));
    let who: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(who[0], "app");
    let at = |name: &str| who.iter().position(|&who| who == name);
    assert!(
        at("other") > at("app/worker"),
        "strangers come last: {found:?}"
    );
    assert!(
        found.contains(&("app".to_owned(), 10_000..15_000)),
        "{found:?}"
    );
}

/// A computation that nobody is known to wait for is a problem only if it is long.
#[test]
fn short_computations_of_nobody_are_none() {
    for (ms, count) in [(40, 0), (60, 1)] {
        let events = format!(
            "0 cpu2 switch idle -> other
            {ms}ms cpu2 switch other -> idle dead
            end 70ms"
        );
        assert_eq!(found(&events, None).len(), count, "{ms} ms");
    }
}

/// What is usual at a place is subtracted: a wait of 40 ms that is so every time is less of a
/// problem than one of 30 ms elsewhere.
#[test]
fn the_usual_is_subtracted() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    let mut wait = |at: u64, length: u64, place: &str| {
        events += &format!(
            "{at}us cpu0 switch main -> idle uninterruptible fsync object=file:5 stack=fsync;{place}
            {}us cpu0 wake idle -> main in=softirq vector=4
            {}us cpu0 switch idle -> main\n",
            at + length,
            at + length
        );
    };
    for turn in 0..3 {
        wait(10_000 + 50_000 * turn, 40_000, "always");
    }
    wait(170_000, 30_000, "once");
    let found = found(
        &format!("{events}210ms cpu0 switch main -> idle dead\nend 210ms"),
        Some(100),
    );
    assert_eq!(found[0], ("app".to_owned(), 170_000..200_000));
    // All 40 ms waits are there too, only later.
    assert!(
        found.contains(&("app".to_owned(), 10_000..50_000)),
        "{found:?}"
    );
}

/// A shell that only waits for its child is not the problem: what the child waited for is.
#[test]
fn a_wrapper_is_looked_behind() {
    let text = "
        process sh 100
        thread sh sh 100
        process job 200
        0 cpu0 switch idle -> sh
        1ms fork sh -> job job 200
        1ms cpu0 wake sh -> job fork new
        2ms cpu0 switch sh -> job sleeping wait4 arg=200 stack=wait4;run_job
        5ms cpu0 switch job -> idle uninterruptible fsync object=file:5 stack=fsync;save
        45ms cpu0 wake idle -> job in=softirq vector=4
        45.1ms cpu0 switch idle -> job
        100ms cpu0 wake job -> sh exit_group
        100ms exit job 0
        100ms cpu0 switch job -> sh dead
        101ms cpu0 switch sh -> idle dead
        end 110ms";
    let found = problems(&record(text), Some(100));
    assert_eq!(found[0].0, "job", "{found:?}");
    assert!(
        found.contains(&("job".to_owned(), 5_000..45_000)),
        "{found:?}"
    );
    assert_ne!(found[1].0, "sh", "{found:?}");
}

/// Small waits for the disk with little in between add up to one problem; each alone would be a
/// small one.
#[test]
fn small_disk_waits_add_up() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    for turn in 0..20 {
        let at = 20_000 + 2_500 * turn;
        events += &format!(
            "{at}us cpu0 switch main -> idle uninterruptible fsync object=file:5 stack=fsync;save
            {}us cpu0 wake idle -> main in=softirq vector=4
            {}us cpu0 switch idle -> main\n",
            at + 2_000,
            at + 2_000
        );
    }
    let found = found(
        &format!("{events}85ms cpu0 switch main -> idle dead\nend 90ms"),
        Some(100),
    );
    // From the first's beginning to the last's end: 20 + 19 * 2.5 + 2 ms.
    assert_eq!(found[0], ("app".to_owned(), 20_000..69_500), "{found:?}");
}

/// Two series with a long computation between them are two.
#[test]
fn series_end() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    for at in (0..10)
        .map(|turn| 20_000 + 2_500 * turn)
        .chain((0..12).map(|turn| 75_000 + 2_500 * turn))
    {
        events += &format!(
            "{at}us cpu0 switch main -> idle uninterruptible fsync object=file:5 stack=fsync;save
            {}us cpu0 wake idle -> main in=softirq vector=4
            {}us cpu0 switch idle -> main\n",
            at + 2_000,
            at + 2_000
        );
    }
    let found = found(
        &format!("{events}110ms cpu0 switch main -> idle dead\nend 110ms"),
        Some(100),
    );
    for window in [20_000..44_500, 75_000..104_500] {
        assert!(found.contains(&("app".to_owned(), window)), "{found:?}");
    }
}

/// A computation goes on over the waits for those that do parts of it, as V8's for its collectors; over others that
/// are as long it does not.
#[test]
fn a_computation_over_what_it_has_others_do() {
    let longest = |waits_in: &str| {
        let mut text = String::from(
            "process app 100\nthread main app 100 name=app\nthread helper app 101
            0 cpu0 switch idle -> main\n",
        );
        for turn in 1..=10 {
            let at = turn * 100;
            text += &format!(
                "{at}ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;{waits_in}
                {at}.1ms cpu1 switch idle -> helper
                {}ms cpu1 wake helper -> main futex op=wake object=futex:0x10
                {}.1ms cpu0 switch idle -> main
                {}.2ms cpu1 switch helper -> idle sleeping futex op=wait object=futex:0x20\n",
                at + 8,
                at + 8,
                at + 8
            );
        }
        let found = problems(&record(&format!("{text}end 1100ms")), Some(100));
        let of_main = found.into_iter().filter(|(name, _)| name == "app");
        of_main.map(|(_, window)| window.end - window.start).max()
    };
    let joins = longest("v8::platform::DefaultJobState::Join()");
    assert!(joins >= Some(1_000_000), "{joins:?}");
    let others = longest("next_item");
    assert!(others < Some(200_000), "{others:?}");
}

/// A computation is one problem over the interrupts and short waits within it.
#[test]
fn a_computation_over_moments() {
    let events = "
        2ms cpu0 switch idle -> main
        20ms cpu0 irq 100us hard 33 main
        30ms cpu0 switch main -> other preempted
        30.2ms cpu0 switch other -> main sleeping
        40ms cpu0 switch main -> idle sleeping futex op=wait stack=pthread_cond_wait;moment
        40.1ms cpu1 wake other -> main futex op=wake
        40.1ms cpu0 switch idle -> main
        60ms cpu0 switch main -> idle sleeping read object=pipe:5 stack=read;next
        end 61ms";
    let found = found(events, Some(100));
    assert_eq!(found[0].0, "app", "{found:?}");
    assert_eq!(found[0].1.end, 60_000, "{found:?}");
    assert!(found[0].1.start <= 2_000, "{found:?}");
}

/// A turn that computes for much longer than those before and after it is a problem of its own, though
/// they are only moments apart.
#[test]
fn a_computation_that_stands_out() {
    let mut events = String::from("1ms cpu0 switch idle -> main\n");
    let mut at = 1_000;
    for length in [5_000, 6_000, 5_000, 80_000, 5_000, 6_000] {
        at += length;
        events += &format!(
            "{at}us cpu0 switch main -> idle sleeping read object=pipe:5 stack=read;next
            {}us cpu1 wake other -> main write object=pipe:5
            {}us cpu0 switch idle -> main\n",
            at + 300,
            at + 300
        );
        at += 300;
    }
    let found = found(
        &format!("{events}110ms cpu0 switch main -> idle dead"),
        None,
    );
    assert_eq!(found[0], ("app".to_owned(), 17_900..97_900), "{found:?}");
}

/// A turn with many more page-ins than those before and after it is a problem of its own, whether the next
/// request comes from a parent or by a connection that the server made itself.
#[test]
fn a_turn_of_page_ins_that_stands_out() {
    for (connection, request) in [
        ("", "read object=pipe:5"),
        (
            "0 socket app object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80\n",
            "recvfrom object=inet:1",
        ),
    ] {
        let mut events = format!("{connection}1ms cpu0 switch idle -> main\n");
        let mut at = 1_000;
        let mut long = 0..0;
        for pages in [50, 52, 50, 300, 50, 51, 52] {
            let begin = at;
            for _ in 0..pages {
                events += &format!(
                    "{}us cpu0 switch main -> idle uninterruptible fault arg=0x7000 stack=touch;work
                    {}us cpu0 wake idle -> main in=softirq vector=4
                    {}us cpu0 switch idle -> main\n",
                    at + 50,
                    at + 950,
                    at + 960
                );
                at += 1_000;
            }
            if pages == 300 {
                long = begin + 50..at - 50;
            }
            events += &format!(
                "{at}us cpu0 switch main -> idle sleeping {request} stack=read;next
                {}us cpu1 wake other -> main write
                {}us cpu0 switch idle -> main\n",
                at + 300,
                at + 300
            );
            at += 300;
        }
        let found = found(
            &format!("{events}{at}us cpu0 switch main -> idle dead"),
            None,
        );
        assert_eq!(found[0], ("app".to_owned(), long), "{request}: {found:?}");
    }
}

/// Requests of usual length, with naps in between, are no part of one that takes much longer.
#[test]
fn a_request_that_stands_out() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    let mut at = 1_000;
    for length in [20_000, 30_000, 20_000, 600_000, 20_000, 30_000] {
        events += &format!(
            "{}us cpu0 wake main -> worker futex op=wake object=futex:0x20 stack=pthread_cond_signal;ask
            {at}us cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;ask
            {at}us cpu1 switch idle -> worker
            {}us cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;answer
            {}us cpu1 switch worker -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;serve
            {}us cpu0 switch idle -> main
            {}us cpu0 switch main -> idle sleeping clock_nanosleep arg=700us stack=nanosleep;turn
            {}us cpu0 wake idle -> main in=timer
            {}us cpu0 switch idle -> main\n",
            at - 10,
            at + length,
            at + length + 5,
            at + length + 10,
            at + length + 100,
            at + length + 800,
            at + length + 810,
        );
        at += length + 900;
    }
    let found = found(
        &format!("{events}{at}us cpu0 switch main -> idle dead"),
        None,
    );
    let first = 1_000 + 70_000 + 3 * 900;
    assert_eq!(
        found[0],
        ("app".to_owned(), first..first + 600_000),
        "{found:?}"
    );
}

/// A wait for a condition that is all of a worker's life counts for little: there was no work. One
/// for a lock that somebody has does not.
#[test]
fn waits_of_a_whole_life() {
    let whole_life = |holder: &str| {
        format!(
            "0 cpu0 switch idle -> main
            0.1ms cpu1 switch worker -> idle sleeping futex arg=128 object=futex:0x10 {holder}
            60ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;ask
            70ms cpu2 wake other -> main futex op=wake
            70ms cpu0 switch idle -> main
            70.5ms cpu0 switch main -> idle dead
            end 100ms"
        )
    };
    let score = |events: &str| {
        let recording = record(&format!("{PEOPLE}{events}"));
        let worker = recording.t("worker");
        let all = problem::find(&recording.evidence(), problem::Scope::default());
        let of_worker = all.iter().find(|problem| problem.thread == worker);
        of_worker.map_or(0.0, |problem| problem.score)
    };
    let (unnamed, named) = (
        score(&whole_life("stack=pthread_cond_wait;work")),
        score(&whole_life("stack=__lll_lock_wait;take holder=main")),
    );
    assert!(unnamed < named / 10.0, "{unnamed} {named}");
}

/// A command whose main thread waits for a worker nearly all of its life was held up by it; a
/// program that was there before may do nothing else but work and wait for that.
#[test]
fn a_command_that_only_waits() {
    let events = "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;ask
        98ms cpu1 wake worker -> main futex op=wake object=futex:0x20 stack=pthread_cond_signal;give
        98ms cpu0 switch idle -> main
        end 100ms";
    let worst = &found(events, Some(100))[0];
    assert_eq!(*worst, ("app".into(), 1_000..98_000));
    let recording = record(&format!("{PEOPLE}{events}"));
    let all = problem::find(&recording.evidence(), problem::Scope::default());
    assert!(all.iter().all(|problem| problem.felt < 0.1), "{all:?}");
}

/// A damaged trace in which two processes are each other's parents is no endless search.
#[test]
fn parents_in_a_circle() {
    let mut trace = hangdog_trace::text::parse(
        "process a 100
        thread a a 100
        process b 200
        0 cpu0 switch idle -> a
        0.1ms fork a -> b b 200
        0.2ms cpu0 switch a -> b sleeping wait4 arg=none
        0.3ms cpu0 switch b -> idle sleeping wait4 arg=none
        end 10ms",
    )
    .expect("a trace in text form");
    let (a, b) = (trace.t("a"), trace.t("b"));
    for (thread, parent) in trace
        .tables
        .lifecycle
        .thread
        .iter()
        .zip(&mut trace.tables.lifecycle.parent)
    {
        *parent = if *thread == a { b } else { a };
        assert_ne!(*parent, NONE);
    }
    let found = problems(&Recording::new(trace), Some(100));
    assert!(found.len() <= 2, "{found:?}");
}

/// A circle of waits is the worst that can be, though each of its waits alone would be a batch job's:
/// a program waits for the end of one that it started and whose output it does not read.
#[test]
fn a_circle_is_felt() {
    let found = |call: &str| {
        let recording = record(&format!(
            "process app 100\nthread main app 100 name=app\nprocess tool 300
            0 cpu0 switch idle -> main
            1ms fork main -> child tool 300
            1ms cpu1 switch idle -> child
            2ms cpu1 switch child -> idle sleeping {call} object=pipe:5
            3ms cpu0 switch main -> idle sleeping wait4 arg=300
            end 5s"
        ));
        let scope = problem::Scope::default();
        problem::find(&recording.evidence(), scope)
            .first()
            .map(|first| first.felt)
    };
    assert_eq!(found("write"), Some(1.0));
    assert!(found("read").is_none_or(|felt| felt < 0.5));
}

/// A program that is stopped and let go in turns, as by a tool that limits what it gets: the sum of
/// its stops is one problem.
#[test]
fn stopped_in_turns() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    for turn in 0..10 {
        let at = 1000 + 200 * turn;
        events += &format!(
            "{at}ms cpu0 switch main -> idle stopped
            {}ms cpu1 wake other -> main kill arg=18
            {}ms cpu0 switch idle -> main\n",
            at + 190,
            at + 190
        );
    }
    let found = found(&format!("{events}end 3100ms"), None);
    assert_eq!(found[0], ("app".to_owned(), 1_000_000..2_990_000));
}

/// A program that is stopped amid its work is held up; one that was stopped before may have been left so.
#[test]
fn a_stop_is_a_problem() {
    let problems = found(
        "0 cpu0 switch idle -> main
        0 cpu1 switch other -> idle stopped
        1s cpu0 switch main -> idle stopped
        1800ms cpu0 wake idle -> main kill arg=18
        1800ms cpu0 switch idle -> main
        2s cpu0 switch main -> other preempted
        2013ms cpu0 switch other -> main
        2100ms cpu0 switch main -> idle dead
        end 2200ms",
        None,
    );
    assert_eq!(
        problems[0],
        ("app".to_owned(), 1_000_000..1_800_000),
        "{problems:?}"
    );
}

/// Who is runnable and never gets one is kept from something; who computes all the time keeps
/// nobody waiting that is known, though it took as long.
#[test]
fn the_starved_before_the_busy() {
    let found = found(
        "0 cpu0 switch idle -> other
        0 cpu1 switch idle -> main
        1ms cpu1 switch main -> other preempted
        3s cpu1 switch other -> main
        3.1s cpu1 switch main -> idle dead
        end 3.2s",
        None,
    );
    assert_eq!(found[0].0, "app", "{found:?}");
}

/// Who has a lower priority than two that share its CPU does not wait for its turn: it gets none.
#[test]
fn the_outranked_before_the_busy() {
    let mut events = String::from(
        "process gzip 100
        thread gzip gzip 100
        process md5sum 200
        thread md5sum md5sum 200
        process sha1sum 300
        thread sha1sum sha1sum 300
        0 cpu0 switch idle -> gzip priority=139
        1ms cpu0 switch gzip -> md5sum preempted priority=120\n",
    );
    for turn in 0..300 {
        let at = 10 * turn;
        events += &format!(
            "{}ms cpu0 switch md5sum -> sha1sum preempted priority=120
            {}ms cpu0 switch sha1sum -> md5sum preempted priority=120\n",
            at + 5,
            at + 10
        );
    }
    let recording = record(&format!(
        "{events}3001ms cpu0 switch md5sum -> gzip preempted priority=139
        3100ms cpu0 switch gzip -> idle dead
        end 3200ms"
    ));
    let problems = problems(&recording, None);
    assert_eq!(problems[0].0, "gzip", "{problems:?}");
}

/// Long waits for a disk, one after the other, are one problem of as much weight as each alone.
#[test]
fn long_disk_waits_are_one() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    for turn in 0..4 {
        let at = 10 + 310 * turn;
        events += &format!(
            "{at}ms cpu0 switch main -> idle uninterruptible read object=file:9 stack=read;load kstack=io_schedule
            {}ms cpu0 wake idle -> main in=softirq vector=4
            {}ms cpu0 switch idle -> main\n",
            at + 300,
            at + 300
        );
    }
    let problems = found(
        &format!("{events}1400ms cpu0 switch main -> idle dead"),
        None,
    );
    assert_eq!(problems[0], ("app".to_owned(), 10_000..1_240_000));
}

/// A program that another one started and awaits computes: that is the problem of the one that waits.
/// Of a shell it is the program's own.
#[test]
fn a_computation_is_its_starter_s() {
    let recorded = |starter: &str| {
        let recording = record(&format!(
            "process {starter} 100
            thread main {starter} 100 name={starter}
            process tool 300
            0 cpu0 switch idle -> main
            5ms fork main -> child tool 300
            6ms cpu0 switch main -> idle sleeping wait4 arg=300 stack=wait4;run
            6ms cpu1 switch idle -> child
            2s cpu1 wake child -> main exit
            2s cpu1 switch child -> idle dead
            2001ms cpu0 switch idle -> main
            2005ms cpu0 switch main -> idle dead
            end 2100ms"
        ));
        problems(&recording, None)[0].0.clone()
    };
    assert_eq!(recorded("editor"), "editor");
    assert_eq!(recorded("bash"), "child");
}

/// A collector stops a program again and again, and the program computes a little in between: that is one problem,
/// as long as all of it.
#[test]
fn pauses_that_follow_each_other_are_one() {
    let pauses = |computes: u64| {
        let mut events = String::from("0 cpu0 switch idle -> main\n");
        let mut at = 10;
        for _ in 0..20 {
            let (end, next) = (at + 100, at + 100 + computes);
            events += &format!(
                "{at}ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;VMThread::wait_until_executed
                {at}ms cpu1 switch idle -> worker
                {end}ms cpu1 wake worker -> main futex arg=128 object=futex:0x10
                {end}ms cpu1 switch worker -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_cond_wait;loop
                {end}ms cpu0 switch idle -> main\n"
            );
            at = next;
        }
        let found = found(&format!("{events}end {at}ms"), None);
        let first = found.iter().find(|(name, _)| name == "app");
        let (_, window) = first.unwrap_or_else(|| panic!("{found:?}"));
        (window.end - window.start) / 1_000
    };
    assert!(pauses(8) >= 2_000, "{}", pauses(8));
    assert!(pauses(80) < 200, "{}", pauses(80));
}

/// A program that was stopped before the recording began may have been left so, unless something that another has
/// sent lies there.
#[test]
fn a_stopped_program_with_something_to_read_is_told() {
    let stopped = |unread: &str| {
        let events = format!(
            "0 socket app object=unix:1 peer=unix:2 peer-process=other
            0 open app object=unix:1 {unread}
            0 cpu1 switch idle -> other
            0 cpu0 switch idle -> main
            0 cpu0 switch main -> idle stopped stack=poll;main
            2900ms cpu1 switch other -> idle dead
            end 3s"
        );
        found(&events, None).iter().any(|(name, _)| name == "app")
    };
    assert!(stopped("unread=8"));
    assert!(!stopped(""));
}

/// Programs that started each other, and each of which awaits the next, be they ever so many, do what the last one
/// does: that is nobody's problem as long as it goes on, beside a computation that began meanwhile.
#[test]
fn a_long_line_of_starters_is_one_job() {
    const DEPTH: u32 = 24;
    const FILES: u32 = 9;
    let mut text = String::from(
        "process editor 50
        thread editor editor 50
        process make0 100
        thread make0 make0 100\n",
    );
    for depth in 1..=DEPTH {
        text += &format!("process make{depth} {}\n", 100 + depth);
    }
    for file in 0..FILES {
        text += &format!("process cc{file} {}\n", 200 + file);
    }
    text += "0 cpu0 switch idle -> editor
        0 cpu1 switch idle -> make0\n";
    for depth in 1..=DEPTH {
        let (starter, pid) = (depth - 1, 100 + depth);
        text += &format!(
            "{depth}us fork make{starter} -> make{depth} make{depth} {pid}
            {depth}.5us cpu1 switch make{starter} -> make{depth} sleeping wait4 arg={pid} stack=wait4;make\n"
        );
    }
    text += "1ms cpu0 switch editor -> idle sleeping poll stack=poll;editor\n";
    for file in 0..FILES {
        let (begin, pid) = (10 + file * 500, 200 + file);
        text += match file {
            2 => "1s cpu0 wake idle -> editor in=softirq vector=3\n1s cpu0 switch idle -> editor\n",
            8 => "4s cpu0 switch editor -> idle sleeping poll stack=poll;editor\n",
            _ => "",
        };
        text += &format!(
            "{begin}ms fork make{DEPTH} -> cc{file} cc{file} {pid}
            {begin}.1ms cpu1 switch make{DEPTH} -> cc{file} sleeping wait4 arg={pid} stack=wait4;make
            {end}ms cpu1 wake cc{file} -> make{DEPTH} exit
            {end}.1ms cpu1 switch cc{file} -> make{DEPTH} dead\n",
            end = begin + 490,
        );
    }
    let found = problems(&record(&format!("{text}end 4600ms")), None);
    assert_eq!(found[0].0, "editor", "{found:?}");
}

/// A program of which a thread awaits the end of what it started, and whose first thread sleeps meanwhile, is
/// not held up by that: the computation is its own problem.
#[test]
fn a_computation_that_is_awaited_in_passing() {
    let recorded = |first: &str| {
        let recording = record(&format!(
            "process server 100
            thread main server 100 name=server
            thread reaper server 101
            process tool 300
            0 cpu0 switch idle -> main
            1ms cpu0 switch main -> idle sleeping {first}
            2ms cpu1 switch idle -> reaper
            5ms fork reaper -> child tool 300
            6ms cpu1 switch reaper -> idle sleeping wait4 arg=300 stack=wait4;reap
            6ms cpu0 switch idle -> child
            2s cpu0 wake child -> reaper exit
            2s cpu0 switch child -> idle dead
            2001ms cpu1 switch idle -> reaper
            2002ms cpu1 wake reaper -> main futex arg=128
            2003ms cpu1 switch reaper -> idle dead
            2010ms cpu0 switch idle -> main
            2015ms cpu0 switch main -> idle dead
            end 2100ms"
        ));
        problems(&recording, None)[0].0.clone()
    };
    assert_eq!(
        recorded("clock_nanosleep arg=2s stack=nanosleep;hold"),
        "child"
    );
    assert_ne!(
        recorded("futex object=futex:1 arg=128 stack=wait;join"),
        "child"
    );
}

/// One that naps between two tries for a file's lock was kept out before the first refusal that was
/// seen, if the recording began in such a nap, and after the last, if it ends in one.
#[test]
fn naps_at_both_ends_count() {
    let nap = "sleeping clock_nanosleep arg=1s stack=nanosleep;retry";
    let events = format!(
        "0 cpu65535 switch main -> idle {nap}
        900ms cpu0 wake idle -> main in=timer
        900ms cpu0 switch idle -> main
        900ms cpu0 handoff main file-lock refused object=file:9 other=other
        901ms cpu0 switch main -> idle {nap}
        1901ms cpu0 wake idle -> main in=timer
        1901ms cpu0 switch idle -> main
        1901ms cpu0 handoff main file-lock refused object=file:9 other=other
        1902ms cpu0 switch main -> idle {nap}
        end 2500ms"
    );
    assert_eq!(found(&events, None)[0], ("app".to_owned(), 0..2_500_000));
}

/// A program's main thread that often waits for the result of what it gave to others was kept waiting when
/// one takes long; one that often waits for a condition that could be anything waits for work.
#[test]
fn a_result_that_is_late_is_felt() {
    let owed = |waits_in: &str| {
        let wait = format!(
            "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;{waits_in};App.main"
        );
        let mut text = "process app 100
            thread main app 100 name=app
            thread worker app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker
"
        .to_owned();
        let mut turns: Vec<(u64, u64)> = (0..40).map(|turn| (10 + turn * 20, 5)).collect();
        turns.push((900, 2_000));
        for (at, takes) in turns {
            let end = at + takes;
            text += &format!(
                "{at}ms cpu0 switch main -> idle {wait}
                {end}ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=complete;run
                {end}.1ms cpu0 switch idle -> main
"
            );
        }
        text += &samples(1, "worker", 901..2_899, "App.score;run");
        let recording = record(&format!("{text}end 3200ms"));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let main = recording.t("main");
        let late = (found.iter())
            .find(|problem| problem.thread == main && problem.window.start == 900_000_000);
        late.map_or(0.0, |problem| problem.owed)
    };
    let (result, work) = (
        owed("java.util.concurrent.CompletableFuture.join"),
        owed("App.take"),
    );
    assert!(result >= 0.3 && work < 0.1, "{result} {work}");
}

/// A program that often waits for its workers waits for work, but not where the one that comes in the end had to wait
/// for the disk or for a child: it had work.
#[test]
fn a_worker_that_had_work_is_owed() {
    let owed = |meanwhile: &str| {
        let turns: String = (1..40)
            .map(|at| {
                format!(
                    "{at}0ms cpu0 switch main -> idle sleeping futex arg=393 object=futex:0x10 stack=sem_wait;update;loop
                    {at}1ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=sem_post;run
                    {at}1.1ms cpu0 switch idle -> main\n"
                )
            })
            .collect();
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread worker app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker
            {turns}
            500ms cpu0 switch main -> idle sleeping futex arg=393 object=futex:0x10 stack=sem_wait;update;loop
            501ms cpu1 switch worker -> idle {meanwhile}
            2999ms cpu1 wake idle -> worker in=interrupt vector=33
            2999.1ms cpu1 switch idle -> worker
            3000ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=sem_post;run
            3000.1ms cpu0 switch idle -> main
            end 3200ms"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let main = recording.t("main");
        let late = (found.iter())
            .find(|problem| problem.thread == main && problem.window.start == 500_000_000);
        late.map_or(0.0, |problem| problem.owed)
    };
    for had_work in [
        "sleeping wait4 stack=wait4;run",
        "uninterruptible fdatasync object=file:42 stack=fdatasync;run kstack=io_schedule;wait",
    ] {
        assert!(owed(had_work) >= 0.15, "{had_work}: {}", owed(had_work));
    }
    let idle = "sleeping clock_nanosleep arg=9s stack=nanosleep;run";
    assert!(owed(idle) < 0.09, "{}", owed(idle));
}

/// A program that waits for one result for all of its life was kept waiting where the result came; where it did not
/// come, it may be a server that waits for its own end.
#[test]
fn a_result_that_came_was_owed() {
    let owed = |end: &str| {
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread worker app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker
            1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;java.util.concurrent.FutureTask.get;App.main
            {end}
            end 3200ms"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let main = recording.t("main");
        let wait = found.iter().find(|problem| problem.thread == main);
        wait.map_or(0.0, |problem| problem.owed)
    };
    let came = "3000ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=complete;run
        3000.1ms cpu0 switch idle -> main
        3001ms cpu0 switch main -> idle dead";
    assert!(
        owed(came) >= 0.3 && owed("") < 0.1,
        "{} {}",
        owed(came),
        owed("")
    );
}

/// An event loop that waits until the only child has ended that it has just started waits for that; where
/// the child was there before, for whatever comes.
#[test]
fn an_event_loop_waits_out_the_child_that_it_has_just_started() {
    let owed = |started_ms: u64| {
        let mut text = format!(
            "process npm 100
            thread main npm 100 name=npm
            process node 200
            0 cpu0 switch idle -> main
            {started_ms}ms fork main -> child node 200
            {started_ms}ms cpu1 switch idle -> child
"
        );
        for at in [1_000, 1_010, 1_020, 1_030] {
            text += &format!(
                "{at}ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;uv_run
                {at}.5ms cpu0 wake idle -> main in=timer
                {at}.6ms cpu0 switch idle -> main
"
            );
        }
        text += "1100ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;uv_run
            4100ms cpu1 wake child -> main exit_group
            4100.1ms exit child 0
            4100.2ms cpu1 switch child -> idle dead
            4100.3ms cpu0 switch idle -> main
            end 4500ms";
        let recording = record(&text);
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let main = recording.t("main");
        let late = (found.iter())
            .find(|problem| problem.thread == main && problem.window.start == 1_100_000_000);
        late.map_or(0.0, |problem| problem.owed)
    };
    let (started, was_there) = (owed(1_050), owed(1));
    assert!(started >= 0.1 && was_there < 0.1, "{started} {was_there}");
}

/// A timer of a program's own interrupts its event loop for moments while its only child works: both parts of the wait
/// are for the child. Where the program worked for a part of that time, it did something else beside.
#[test]
fn an_event_loop_waits_on_for_its_child_after_a_timer() {
    let owed = |worked_ms: u64| {
        let text = format!(
            "process npm 100
            thread main npm 100 name=npm
            process node 200
            0 cpu0 switch idle -> main
            1000ms fork main -> child node 200
            1000ms cpu1 switch idle -> child
            1001ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;uv_run
            2000ms cpu0 wake idle -> main in=timer
            2000.1ms cpu0 switch idle -> main
            {}ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;uv_run
            4100ms cpu1 wake child -> main exit_group
            4100.1ms exit child 0
            4100.2ms cpu1 switch child -> idle dead
            4100.3ms cpu0 switch idle -> main
            end 4500ms",
            2000 + worked_ms
        );
        let recording = record(&text);
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        let main = recording.t("main");
        let of = |start_ns: u64| {
            (found.iter())
                .find(|problem| problem.thread == main && problem.window.start == start_ns)
                .map_or(0.0, |problem| problem.owed)
        };
        of(1_001_000_000)
    };
    let (for_moments, long) = (owed(5), owed(1_000));
    assert!(for_moments >= 0.1 && long < 0.1, "{for_moments} {long}");
}

/// Somebody asks about a test runner whose own threads only wait: one of its two workers runs all the time, and is
/// reported. The runner's idle pool is not, though it waits longest.
#[test]
fn a_program_that_is_named_stands_for_what_it_started() {
    let mut text = String::from(
        "process runner 100
        thread main runner 100 name=runner
        thread pool runner 101
        process busy 200
        process idle 300
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> pool
        1ms cpu1 switch pool -> idle sleeping futex arg=128 object=futex:0x10 stack=uv_cond_wait;java.util.concurrent.ForkJoinPool.awaitWork
        2ms fork main -> worker busy 200
        3ms fork main -> other idle 300
        4ms cpu1 switch idle -> worker
        5ms cpu2 switch idle -> other
        6ms cpu2 switch other -> idle sleeping epoll_wait object=epoll:6 stack=epoll_wait;uv_run
        7ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;uv_run
",
    );
    for second in 1..9 {
        text += &format!(
            "        {second}s cpu0 wake idle -> main in=timer
        {second}000.1ms cpu0 switch idle -> main
        {second}000.3ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;uv_run
"
        );
    }
    text += "        end 9s";
    let recording = record(&text);
    let runner = ["main", "pool"].map(|name| recording.t(name));
    let found = problem::find_of(&recording.evidence(), problem::Scope::default(), |thread| {
        runner.contains(&thread)
    });
    let verdict = explain_ns(&recording, found[0].thread, found[0].window.clone());
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    let pool = recording.t("pool");
    let of_pool = |problem: &problem::Problem| {
        problem.thread == pool && problem.kind == problem::ProblemKind::Wait
    };
    assert!(!found.iter().any(of_pool), "{found:?}");
}

/// A program's first thread hands work to a stage, that to another, and waits for the result by a pipe each
/// time. Once the first stage computes for long: that is the program's problem, not that of the stage, which
/// takes turns too.
#[test]
fn a_program_waits_for_its_own_stages() {
    let mut text = String::from(
        "process app 100
        thread main app 100 name=app
        thread first app 101
        thread last app 102
        0 open app object=pipe:1 access=write
        0 open app object=pipe:1 access=read
        0 open app object=pipe:2 access=write
        0 open app object=pipe:2 access=read
        0 open app object=pipe:3 access=write
        0 open app object=pipe:3 access=read
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> first
        0 cpu2 switch idle -> last
        100us cpu1 switch first -> idle sleeping read object=pipe:1 stack=read;first
        100us cpu2 switch last -> idle sleeping read object=pipe:2 stack=read;last
        ",
    );
    let mut at = 1_000;
    for turn in 0..14 {
        let work = if turn == 12 { 400_000 } else { 2_000 };
        let done = at + 5 + work;
        text += &format!(
            "{at}us cpu0 wake main -> first write object=pipe:1
            {at}us transfer main sent 8 object=pipe:1
            {asked}us cpu0 switch main -> idle sleeping read object=pipe:3 stack=read;turn
            {asked}us cpu1 switch idle -> first
            {asked}us transfer first received 8 object=pipe:1
            {done}us cpu1 wake first -> last write object=pipe:2
            {done}us transfer first sent 8 object=pipe:2
            {last}us cpu1 switch first -> idle sleeping read object=pipe:1 stack=read;first
            {last}us cpu2 switch idle -> last
            {last}us transfer last received 8 object=pipe:2
            {told}us cpu2 wake last -> main write object=pipe:3
            {told}us transfer last sent 8 object=pipe:3
            {end}us cpu2 switch last -> idle sleeping read object=pipe:2 stack=read;last
            {end}us cpu0 switch idle -> main
            {end}us transfer main received 8 object=pipe:3
            ",
            asked = at + 5,
            last = done + 5,
            told = done + 10,
            end = done + 15,
        );
        at = done + 20;
    }
    let found = problems(&record(&format!("{text}end {at}us")), Some(100));
    let (name, window) = &found[0];
    assert_eq!(name, "app");
    assert!(window.end - window.start >= 400_000, "{window:?}");
}

/// Who sleeps before it tries again what failed, or tries to make a lock file, is kept; who only sleeps is not.
#[test]
fn naps_between_two_tries_are_felt() {
    let sleeps = |within: &str| {
        found(
            &format!(
                "0 cpu0 switch idle -> main
                10ms cpu0 switch main -> idle sleeping clock_nanosleep arg=4s stack=nanosleep;{within};fetch
                4s cpu0 wake idle -> main in=timer
                4s cpu0 switch idle -> main
                end 4100ms"
            ),
            None,
        )
    };
    let main = |found: &[(String, std::ops::Range<u64>)]| {
        found
            .iter()
            .any(|(name, window)| name == "app" && window.end - window.start > 3_000_000)
    };
    assert!(main(&sleeps("Retry._sleep_backoff")));
    assert!(main(&sleeps("BaseFileLock.acquire")));
    assert!(!main(&sleeps("tick")));
}

/// Who sleeps, and has a file open of which another process has the lock, may try again for that: of a look at
/// one moment nothing else tells.
#[test]
fn a_nap_with_a_locked_file_open_is_felt() {
    let sleeps = |open: &str| {
        found(
            &format!(
                "0 open other object=file:7 kind=file-lock
                0 open app object=file:{open} kind=locked-file
                0 cpu0 switch idle -> main
                0 cpu1 switch idle -> other
                1ms cpu0 switch main -> idle sleeping clock_nanosleep arg=100ms stack=nanosleep;step
                1s cpu1 switch other -> idle dead
                end 1s"
            ),
            None,
        )
    };
    let has_main = |found: &[(String, std::ops::Range<u64>)]| found.iter().any(|it| it.0 == "app");
    assert!(has_main(&sleeps("7")));
    assert!(!has_main(&sleeps("8")));
}

/// The first thread of the recorded command sleeps for 150 ms. What it waits for much longer comes before that: a
/// signal, or what comes by one pipe that it polls.
#[test]
fn a_short_sleep_of_the_command_is_not_the_worst() {
    let first = |wait: &str| {
        let events = format!(
            "0 cpu0 switch idle -> main
            1ms cpu0 switch main -> idle sleeping {wait} stack=wait;main
            400ms cpu1 wake other -> main write
            400ms cpu0 switch idle -> main
            401ms cpu0 switch main -> idle sleeping clock_nanosleep arg=150ms stack=nanosleep;main
            551ms cpu0 wake idle -> main in=timer
            551ms cpu0 switch idle -> main
            552ms cpu0 switch main -> idle dead
            end 600ms"
        );
        found(&events, Some(100)).remove(0).1.start
    };
    assert_eq!(first("rt_sigtimedwait"), 1_000);
    assert_eq!(first("ppoll object=pipe:5"), 1_000);
}

/// A window waits for its display in its event loop, and is woken by what that sends.
const WINDOW: &str = "
    process app 200
    thread app app 200
    process Xvfb 300
    thread Xvfb Xvfb 300
    0 socket app object=unix:1 peer=unix:2 peer-process=Xvfb remote=@/tmp/.X11-unix/X1
    0 socket Xvfb object=unix:2 peer=unix:1 peer-process=app local=@/tmp/.X11-unix/X1
    0 cpu0 switch idle -> app
    0 cpu1 switch idle -> Xvfb
    1ms cpu0 switch app -> idle sleeping poll stack=poll;g_main_loop_run
    10ms cpu1 wake Xvfb -> app writev object=unix:2
    10.1ms cpu0 switch idle -> app
    10.2ms transfer Xvfb sent 32 object=unix:2 peer=unix:1
";

/// A window that draws asks its filter for each of many values. Some of these waits, close upon each other, count as
/// one that kept its event loop from coming back; the problem is all of them.
#[test]
fn many_small_waits_within_one_turn() {
    const VALUE_US: u32 = 16_000;
    let mut text = format!(
        "{WINDOW}
        process filter 400
        11ms cpu1 switch Xvfb -> idle sleeping epoll_wait
        12ms fork app -> filter filter 400
        12.1ms cpu2 switch idle -> filter\n"
    );
    let mut at = 20_000;
    for values in [20, 5, 5, 5, 5, 5] {
        for _value in 0..values {
            let came = at + VALUE_US - 300;
            let then = came + 20;
            text += &format!(
                "{at}us cpu0 switch app -> idle sleeping read object=pipe:5 stack=read;ask;g_main_context_dispatch;main
                {came}us cpu2 wake filter -> app write object=pipe:5
                {then}us cpu0 switch idle -> app\n"
            );
            at += VALUE_US;
        }
        let drawn = at + 8_000;
        text += &format!("{drawn}us cpu0 wake app -> Xvfb writev object=unix:1\n");
        at += 9_000;
    }
    let found = problems(&record(&format!("{text}end {at}us")), None);
    let own = found.iter().find(|(name, _)| name == "app");
    let (_, window) = own.expect("a problem of the window");
    assert!(window.end - window.start > 600_000, "{found:?}");
}

/// Where so much is sent that some of it is not recorded, what a program on the display received may be
/// missing: it has read what made its event loop turn, once it waits there again. A program that computes
/// meanwhile has not.
#[test]
fn an_event_loop_that_waits_again_has_read() {
    let input = |then: &str| {
        let recording = record(&format!(
            "{WINDOW}
                {then}
                3001ms transfer app received 32 object=unix:1 peer=unix:2
                3002ms cpu0 switch app -> idle sleeping poll stack=poll;g_main_loop_run
                end 4s"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        found
            .iter()
            .any(|it| it.kind == problem::ProblemKind::Input)
    };
    let waits = "10.3ms cpu0 switch app -> idle sleeping poll stack=poll;g_main_loop_run
        3000ms cpu1 wake Xvfb -> app writev object=unix:2
        3000.1ms cpu0 switch idle -> app
        3000.2ms transfer Xvfb sent 32 object=unix:2 peer=unix:1";
    assert!(!input(waits));
    assert!(input(""));
    let waits_elsewhere = waits.replace(
        "10.3ms cpu0 switch app -> idle sleeping poll stack=poll;",
        "10.3ms cpu0 switch app -> idle sleeping poll stack=poll;call_sync;",
    );
    assert!(input(&waits_elsewhere));
    // The server's call came back after the loop had read, and waited again.
    let quick = format!(
        "{}
        3000ms cpu1 wake Xvfb -> app writev object=unix:2
        3000.1ms cpu0 switch idle -> app
        end 4s",
        WINDOW.replace(
            "10.2ms transfer",
            "10.15ms cpu0 switch app -> idle sleeping poll stack=poll;g_main_loop_run
            10.2ms transfer"
        )
    );
    let received = "5ms transfer app received 32 object=unix:1 peer=unix:2\n    10ms cpu1 wake";
    let recording = record(&quick.replace("10ms cpu1 wake", received));
    let found = problem::find(&recording.evidence(), problem::Scope::default());
    assert!(
        !found
            .iter()
            .any(|it| it.kind == problem::ProblemKind::Input)
    );
    // On the very connection, nothing can have lain there.
    let waits_for_reply =
        waits_elsewhere.replace("sleeping poll stack", "sleeping poll object=unix:1 stack");
    assert!(!input(&waits_for_reply));
}

/// Who reads what its display sent in the middle of a turn does not answer before the turn is over.
#[test]
fn input_that_is_read_amid_a_turn_is_not_answered() {
    let recording = record(&format!(
        "{WINDOW}
        2000ms transfer app received 32 object=unix:1 peer=unix:2
        5000ms cpu0 switch app -> idle sleeping poll stack=poll;g_main_loop_run
        end 6s"
    ));
    let found = problem::find(&recording.evidence(), problem::Scope::default());
    let input = |it: &&problem::Problem| it.kind == problem::ProblemKind::Input;
    let problem = found.iter().find(input).expect("it did not answer");
    assert_eq!(problem.window.end, 5_000 * MS);
}

/// A program that asks the display for something and ends soon has no window; one that lasts may have.
#[test]
fn who_ends_soon_has_no_window() {
    let input = |end: &str| {
        let recording = record(&format!(
            "process sh 100\nthread sh sh 100
            process tool 200
            process Xvfb 300\nthread Xvfb Xvfb 300
            0 socket Xvfb object=unix:2 local=@/tmp/.X11-unix/X1
            0 cpu0 switch idle -> sh
            0 cpu1 switch idle -> Xvfb
            1ms fork sh -> tool tool 200
            1.1ms cpu0 wake sh -> tool fork new
            1.2ms cpu0 switch sh -> tool sleeping wait4 arg=200 stack=wait4;sh
            2ms socket tool object=unix:1 peer=unix:2 peer-process=Xvfb remote=@/tmp/.X11-unix/X1
            3ms transfer tool sent 8 object=unix:1 peer=unix:2
            4ms transfer tool received 32 object=unix:1 peer=unix:2
            10ms transfer Xvfb sent 32 object=unix:2 peer=unix:1
            600ms transfer tool received 32 object=unix:1 peer=unix:2
            {end}
            end 6s"
        ));
        let found = problem::find(&recording.evidence(), problem::Scope::default());
        found
            .iter()
            .any(|it| it.kind == problem::ProblemKind::Input)
    };
    assert!(!input(
        "700ms exit tool 0\n700ms cpu0 switch tool -> idle dead"
    ));
    assert!(input(""));
}

/// Turns that another thread of the program does, one right after the other, are no part of one that takes a hundred
/// times as long.
#[test]
fn ordinary_turns_beside_a_long_one() {
    let rest = "sleeping futex arg=128 object=futex:0x20 stack=sem_wait;serve";
    let wait = "sleeping futex arg=128 object=futex:0x10 stack=sem_wait;wait_for_worker;turn";
    let mut text = format!(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        100us cpu1 switch worker -> idle {rest}\n"
    );
    let mut at = 1_000;
    for turn in 0..41 {
        let length = if turn == 20 { 1_000_000 } else { 8_000 };
        let end = at + length;
        text += &format!(
            "{at}us cpu0 wake main -> worker futex op=wake object=futex:0x20 stack=sem_post;turn
            {}us cpu1 switch idle -> worker
            {}us cpu0 switch main -> idle {wait}
            {end}us cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=sem_post;serve
            {}us cpu1 switch worker -> idle {rest}
            {}us cpu0 switch idle -> main\n",
            at + 3,
            at + 5,
            end + 5,
            end + 10
        );
        at = end + 20;
    }
    text += &format!("{at}us cpu0 switch main -> idle sleeping poll\nend 2s");
    let found = found(&text, None);
    let (_, window) = found.first().expect("a problem");
    let length = window.end - window.start;
    assert!((999_000..1_010_000).contains(&length), "{found:?}");
}
