//! Causes other than another thread's wait: no CPU, polling, memory, devices, time.

use crate::support::*;
use hangdog_diagnose::{Class, Verdict};

const PEOPLE: &str = "
process app 100
thread main app 100 name=app
thread helper app 101
process hog 200
thread hog hog 200
process others 300
thread x others 300
thread y others 301
thread z others 302
";

/// main wants CPU 0 from 2 ms to 52 ms, and has it before and after.
fn starved(events: &str) -> Verdict {
    let recording = record(&format!("{PEOPLE}{events}\nend 60ms"));
    explain(&recording, "main", 2_000..52_000)
}

/// One thread has the CPU: it is the culprit, with its function, and it is told whether it has
/// the stronger priority.
#[test]
fn starved_by_a_hog() {
    for (priority, outranks) in [("49", true), ("120", false), ("139", false)] {
        let verdict = starved(&format!(
            "0 cpu0 switch idle -> main
            2ms cpu0 switch main -> hog preempted priority={priority}
            52ms cpu0 switch hog -> main sleeping priority=120
            {}",
            samples(0, "hog", 3..51, "spin_hard")
        ));
        assert_eq!(verdict.root.class, Class::Starved);
        assert_eq!(verdict.problem.class, Class::Starved);
        assert_eq!(verdict.root.who.tid, 200);
        assert_eq!(verdict.root.function.as_deref(), Some("spin_hard"));
        assert_eq!(verdict.root.place.as_deref(), Some("CPU 0"));
        assert_eq!(of_thread(&verdict, 100, "runnable"), 50_000);
        let told = verdict.sentence.contains("higher priority");
        assert_eq!(told, outranks, "{priority}: {}", verdict.sentence);
        assert!(verdict.sentence.contains("hog") && verdict.sentence.contains("spin_hard"));
    }
}

/// A CPU that is idle while a thread is runnable is one that the thread may not use; where it is idle for a part
/// of that time only, the thread had no luck.
#[test]
fn an_idle_cpu_that_the_starved_may_not_use() {
    for (idle_from_ms, told) in [(100, true), (1_500, false)] {
        let recording = record(&format!(
            "{PEOPLE}
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> x
            2ms cpu0 switch main -> hog preempted
            {idle_from_ms}ms cpu1 switch x -> idle sleeping nanosleep
            2s cpu0 switch hog -> main sleeping
            end 3s"
        ));
        let sentence = explain(&recording, "main", 2_000..2_000_000).sentence;
        assert_eq!(sentence.contains("CPU 1 was idle"), told, "{sentence}");
        assert!(!sentence.contains("CPU 0 was idle"), "{sentence}");
    }
}

/// The sentence tells for which share of the time one thread kept the CPU busy.
#[test]
fn a_hog_for_a_part() {
    let verdict = starved(&format!(
        "0 cpu0 switch idle -> main
        2ms cpu0 switch main -> hog preempted
        32ms cpu0 switch hog -> x preempted
        52ms cpu0 switch x -> main preempted
        {}",
        samples(0, "hog", 3..31, "spin_hard")
    ));
    assert_eq!(verdict.root.who.tid, 200);
    assert!(
        verdict.sentence.contains("for 60 % of that time"),
        "{}",
        verdict.sentence
    );
}

/// What the recorder's helpers take of a CPU as they start is nobody's doing: nobody is named for it, and it
/// counts less than what another program takes.
#[test]
fn starved_by_the_recorder() {
    let events = |helper: &str| {
        record(&format!(
            "process app 100
            thread main app 100 name=app
            process {helper} 200
            thread {helper} {helper} 200
            0 cpu0 switch idle -> main
            2ms cpu0 switch main -> {helper} preempted
            502ms cpu0 switch {helper} -> main sleeping
            end 600ms"
        ))
    };
    let score = |helper: &str| {
        let recording = events(helper);
        let evidence = recording.evidence();
        hangdog_diagnose::problem::find_of(&evidence, Default::default(), |_| true)[0].score
    };
    assert!(
        score("hangdog") < 0.5 * score("other"),
        "{} {}",
        score("hangdog"),
        score("other")
    );
    let verdict = explain(&events("hangdog"), "main", 2_000..502_000);
    assert!(
        !verdict.sentence.contains("hangdog"),
        "{}",
        verdict.sentence
    );
}

/// The same for a thread that is woken and finds its CPU taken, and does not get it for long.
#[test]
fn starved_after_a_wake() {
    let verdict = starved(
        "0 cpu0 switch main -> hog sleeping poll arg=none
        2ms cpu1 wake helper -> main write object=pipe:5
        52ms cpu0 switch hog -> main sleeping",
    );
    assert_eq!(
        (verdict.root.class, verdict.root.who.tid),
        (Class::Starved, 200)
    );
}

/// The quota of a control group: no thread is to blame, though others ran.
#[test]
fn starved_by_a_quota() {
    let verdict = starved(
        "0 cpu0 switch idle -> main
        2ms cpu0 switch main -> hog throttled
        52ms cpu0 switch hog -> main sleeping",
    );
    assert_eq!(verdict.root.class, Class::Starved);
    assert_eq!(verdict.root.who.tid, 100);
    let place = verdict.root.place.as_deref();
    assert!(
        place.is_some_and(|place| place.contains("quota")),
        "{place:?}"
    );
    assert!(verdict.sentence.contains("CPU quota of its control group"));
}

/// A CPU that nobody has, and one that only threads have which a real-time one goes before, is kept from a thread
/// by a limit: the sentence names no other thread.
#[test]
fn a_limit_keeps_it_from_a_cpu() {
    let sentence = |priority: &str, other: &str| {
        let verdict = starved(&format!(
            "0 cpu0 switch idle -> main priority={priority}
            2ms cpu0 switch main -> {other}
            52ms cpu0 switch {} -> main preempted priority={priority}",
            other.split(' ').next().unwrap_or_default()
        ));
        assert_eq!(verdict.root.class, Class::Starved);
        (verdict.root.who.tid, verdict.sentence)
    };
    let realtime = "the limit of real-time threads";
    for other in ["idle preempted", "hog preempted priority=120"] {
        for (priority, limit) in [("89", realtime), ("255", "SCHED_DEADLINE")] {
            let (root, text) = sentence(priority, other);
            assert!(root == 100 && text.contains(limit), "{other}: {text}");
            assert!(!text.contains("other threads held"), "{text}");
        }
    }
    let (root, text) = sentence("120", "idle preempted");
    assert!(
        root == 100 && text.contains("a limit of its control group"),
        "{text}"
    );
    for (priority, other) in [
        ("89", "hog preempted priority=49"),
        ("89", "hog preempted priority=255"),
        ("120", "hog preempted priority=120"),
    ] {
        let (root, text) = sentence(priority, other);
        assert!(root == 200 && !text.contains("limit"), "{text}");
    }
}

/// Three that share the CPU, none of which has it for most of the time: a crowd, of which the one
/// that had more than the others is named.
#[test]
fn starved_by_a_crowd() {
    let mut events = String::from("0 cpu0 switch idle -> main\n2ms cpu0 switch main -> x\n");
    for (turn, (from, to)) in [("x", "y"), ("y", "z"), ("z", "x")]
        .iter()
        .cycle()
        .take(9)
        .enumerate()
    {
        events += &format!("{}ms cpu0 switch {from} -> {to}\n", 7 + 5 * turn);
    }
    let verdict = starved(&format!("{events}52ms cpu0 switch x -> main sleeping"));
    assert_eq!(
        (verdict.root.class, verdict.root.who.thread.as_str()),
        (Class::Starved, "x")
    );
    assert!(
        verdict.sentence.contains("mostly x"),
        "{}",
        verdict.sentence
    );
}

/// Starvation further down: main waits for helper, which wants a CPU that the hog has.
#[test]
fn starved_at_the_end_of_a_chain() {
    let recording = record(&format!(
        "{PEOPLE}
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> helper
        2ms cpu0 switch main -> idle sleeping futex op=wait stack=pthread_cond_wait;ask
        3ms cpu1 switch helper -> hog preempted
        51ms cpu1 switch hog -> helper sleeping
        52ms cpu1 wake helper -> main futex op=wake stack=pthread_cond_signal;give
        52.1ms cpu0 switch idle -> main
        end 60ms"
    ));
    let verdict = explain(&recording, "main", 2_000..52_000);
    assert_eq!(
        (verdict.root.class, verdict.root.who.tid),
        (Class::Starved, 200)
    );
    assert_eq!(verdict.problem.class, Class::LongWait);
    assert_eq!(of_thread(&verdict, 101, "runnable"), 48_000);
    assert_eq!(of_thread(&verdict, 101, "run"), 2_000);
}

/// Polling by short sleeps, with a question for the flag.
#[test]
fn polls_by_sleeping() {
    let mut events = String::new();
    for turn in 0..50 {
        let at = 2000 + turn * 1000;
        events += &format!(
            "{at}us cpu0 switch main -> idle sleeping nanosleep arg=900us stack=nanosleep;until_ready;load
            {}us cpu0 wake idle -> main in=timer
            {}us cpu0 switch idle -> main\n",
            at + 900,
            at + 950
        );
    }
    let verdict = starved(&format!("0 cpu0 switch idle -> main\n{events}"));
    assert_eq!(verdict.root.class, Class::RepeatedYield);
    assert_eq!(verdict.root.who.tid, 100);
    assert_eq!(verdict.root.function.as_deref(), Some("until_ready"));
    assert!(of_kind(&verdict, "timer") >= 45_000);
    assert!(
        verdict.sentence.contains("polled in until_ready"),
        "{}",
        verdict.sentence
    );
    let question = verdict.hints.first().expect("a hint");
    assert!(question.text.contains("until_ready"), "{}", question.text);
}

/// The same with the flag watched: who wrote it is the root, by what it did meanwhile, and all of the
/// time until then is attributed to that; no question is left.
#[test]
fn polls_a_flag_that_is_watched() {
    let mut events = String::from("flag ready app 0x1000\n");
    for turn in 0..50 {
        let at = 2000 + turn * 1000;
        events += &format!(
            "{at}us access main ready read 0 stack=until_ready;load
            {}us cpu0 switch main -> idle sleeping nanosleep arg=900us stack=nanosleep;until_ready;load
            {}us cpu0 wake idle -> main in=timer
            {}us cpu0 switch idle -> main\n",
            at + 10,
            at + 900,
            at + 950
        );
    }
    let verdict = starved(&format!(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> helper
        {events}
        51.5ms access helper ready write 1 stack=publish;compute
        51.95ms access main ready read 1 stack=until_ready;load
        {}",
        samples(1, "helper", 2..52, "crunch;compute")
    ));
    assert_eq!(
        verdict.root.class,
        Class::LongRunning,
        "{}",
        verdict.sentence
    );
    assert_eq!(verdict.root.who.tid, 101);
    // Of 2 ms to 52 ms all but the last 50 us.
    assert_eq!(of_thread(&verdict, 101, "run"), 49_950);
    let edge = verdict.path[0].edge.as_ref().expect("an edge");
    assert_eq!((edge.kind, edge.strength), ("flag", "strong"));
    assert_eq!(verdict.path[0].doing, "polled ready");
    assert_eq!(verdict.hints, []);
}

/// One long sleep is a sleep, not polling, and asks no question.
#[test]
fn a_sleep_is_no_polling() {
    let verdict = starved(
        "0 cpu0 switch idle -> main
        2ms cpu0 switch main -> idle sleeping nanosleep arg=50ms stack=nanosleep;nap
        52ms cpu0 wake idle -> main in=timer
        52.1ms cpu0 switch idle -> main",
    );
    assert_eq!(verdict.root.class, Class::LongWait);
    assert_eq!(of_kind(&verdict, "timer"), 50_000);
    assert!(verdict.hints.is_empty());
}

/// Yields to a competitor: a switch each, with nearly all of the time spent off the CPU. The
/// samples of the rest tell where. So it is where each yield is too short to be looked at alone.
#[test]
fn polls_by_yielding() {
    for (window_us, turn_us, off_us) in [(50_000, 1000, 950), (1_000_000, 36, 19)] {
        let mut events = String::from("0 cpu0 switch idle -> main\n");
        for turn in 0..window_us / turn_us {
            let at = 2000 + turn * turn_us;
            let back = at + off_us;
            events += &format!(
                "{at}us cpu0 switch main -> hog yielded sched_yield
                {back}us cpu0 switch hog -> main\n"
            );
            if turn % 10 == 0 {
                let at = back + 1;
                events += &format!("{at}us cpu0 sample main stack=sched_yield;until_ready;load\n");
            }
        }
        let recording = record(&format!("{PEOPLE}{events}end 2s"));
        let verdict = explain(&recording, "main", 2_000..2_000 + window_us);
        assert_eq!(verdict.root.class, Class::RepeatedYield, "{window_us}");
        assert_eq!(verdict.root.who.tid, 100);
        assert_eq!(verdict.root.function.as_deref(), Some("until_ready"));
        assert_eq!(of_kind(&verdict, "runnable"), window_us / turn_us * off_us);
        assert!(!verdict.hints.is_empty());
    }
}

/// Of a program that polls and has one other thread, the sentence says what that did meanwhile; of several
/// it is not known which is to come.
#[test]
fn the_only_other_thread_is_told_of() {
    let polls = |others: &[&str]| {
        let mut declared = "process encoder 100\nthread main encoder 100 name=encoder\n".to_owned();
        let mut events = "0 cpu0 switch idle -> main\n".to_owned();
        for (at, other) in others.iter().enumerate() {
            let (cpu, tid) = (at + 1, at + 101);
            declared += &format!("thread {other} encoder {tid}\n");
            events += &format!(
                "1ms cpu{cpu} switch idle -> {other}
                2ms cpu{cpu} switch {other} -> idle sleeping nanosleep arg=9s stack=read_camera\n"
            );
        }
        let spins = samples(0, "main", 2..900, "sched_yield;await_frame;main");
        let recording = record(&format!("{declared}{events}{spins}end 1s"));
        explain(&recording, "main", 2_000..900_000).sentence
    };
    let told = "the only other thread of its process, encoder/camera, slept in read_camera.";
    let sentence = polls(&["camera"]);
    assert!(sentence.ends_with(told), "{sentence}");
    let sentence = polls(&["camera", "audio"]);
    assert!(!sentence.contains("other thread"), "{sentence}");
}

/// Yields without a competitor leave no switch: the samples show them, and who makes them.
#[test]
fn polls_by_yielding_alone() {
    let verdict = starved(&format!(
        "0 cpu0 switch idle -> main\n{}",
        samples(0, "main", 2..52, "sched_yield;until_ready;load")
    ));
    assert_eq!(verdict.root.class, Class::RepeatedYield);
    assert_eq!(verdict.root.function.as_deref(), Some("until_ready"));
    let verdict = starved(&format!(
        "0 cpu0 switch idle -> main\n{}{}",
        samples(0, "main", 2..42, "until_ready;load"),
        samples(0, "main", 42..52, "sched_yield;until_ready;load")
    ));
    assert_eq!(
        verdict.root.class,
        Class::LongRunning,
        "yields a fifth of the time only"
    );
}

/// Memory that is paged in page by page.
#[test]
fn paging() {
    let mut events = String::new();
    for turn in 0..50 {
        let at = 2000 + turn * 1000;
        events += &format!(
            "{at}us cpu0 switch main -> idle uninterruptible fault arg=0x7000 stack=touch_all;load
            {}us cpu0 wake idle -> main in=softirq vector=4
            {}us cpu0 switch idle -> main\n",
            at + 900,
            at + 950
        );
    }
    let verdict = starved(&format!("0 cpu0 switch idle -> main\n{events}"));
    assert_eq!(
        (verdict.root.class, verdict.root.who.tid),
        (Class::Paging, 100)
    );
    assert_eq!(verdict.root.function.as_deref(), Some("touch_all"));
    assert!(of_kind(&verdict, "paging") >= 45_000);
}

/// Interrupts that take the CPU for most of the time.
#[test]
fn interrupted() {
    let verdict = starved("0 cpu0 switch idle -> main\n5ms cpu0 irq 40ms hard 33 main");
    assert_eq!(verdict.root.class, Class::Interrupted);
    assert_eq!(
        (of_kind(&verdict, "interrupt"), of_kind(&verdict, "run")),
        (40_000, 10_000)
    );
}

/// The disk, the network, a device: the wait is the thread's own, by the kind of its end.
#[test]
fn devices() {
    for (wait, wake, kind) in [
        (
            "uninterruptible fsync object=file:5",
            "in=softirq vector=4",
            "disk",
        ),
        (
            "sleeping recvfrom object=inet:5",
            "in=softirq vector=3 kstack=tcp_v4_rcv",
            "network",
        ),
        ("sleeping read object=timerfd:5", "in=timer", "timer"),
        (
            "sleeping ioctl object=char:5",
            "in=interrupt vector=33",
            "message",
        ),
    ] {
        // hog is what the interrupt found on the CPU; it has nothing to do with it.
        let verdict = starved(&format!(
            "0 cpu0 switch idle -> main
            0 cpu1 switch idle -> hog
            2ms cpu0 switch main -> idle {wait} stack=read;fetch
            52ms cpu1 wake hog -> main {wake}
            52.1ms cpu0 switch idle -> main"
        ));
        assert_eq!(of_thread(&verdict, 100, kind), 50_000, "{wait}");
        assert_eq!(verdict.root.who.tid, 100, "{wait}");
        assert_eq!(verdict.root.function.as_deref(), Some("fetch"), "{wait}");
    }
}

/// A computation: the function that nearly all samples have in common, not its details, and not
/// one that other times of the thread show.
#[test]
fn long_running() {
    let verdict = starved(&format!(
        "0 cpu0 switch idle -> main\n{}{}{}",
        samples(0, "main", 0..2, "read_input;main_loop"),
        samples(0, "main", 2..40, "mul;invert@math.c:10;main_loop"),
        samples(0, "main", 40..52, "add;invert@math.c:10;main_loop"),
    ));
    assert_eq!(
        (verdict.root.class, verdict.root.who.tid),
        (Class::LongRunning, 100)
    );
    // mul alone is in 38 of 50 samples: enough for it to be what the time went to.
    assert_eq!(verdict.root.function.as_deref(), Some("mul"));
    assert!((verdict.root.share - 1.0).abs() < 1e-9);
    let verdict = starved(&format!(
        "0 cpu0 switch idle -> main\n{}{}",
        samples(0, "main", 2..32, "mul;invert@math.c:10;main_loop"),
        samples(0, "main", 32..52, "add;invert@math.c:10;main_loop"),
    ));
    // Here it is in 30 of 50: what they have in common is one above.
    assert_eq!(verdict.root.function.as_deref(), Some("invert"));
    assert_eq!(verdict.root.place.as_deref(), Some("math.c:10"));
}

/// Where most of the time was spent in the kernel, the sentence names the kernel's function beside the program's.
#[test]
fn time_in_the_kernel_is_told() {
    let sentence = |in_kernel: std::ops::Range<u64>| {
        let inner = samples(0, "main", in_kernel.clone(), "read;scan;main").replace(
            "stack=read",
            "kstack=lzma_main;squashfs_readahead stack=read",
        );
        let outer = samples(0, "main", in_kernel.end..52, "compare;scan;main");
        starved(&format!("0 cpu0 switch idle -> main\n{inner}{outer}")).sentence
    };
    let most = sentence(2..47);
    assert!(most.contains("it ran scan"), "{most}");
    assert!(most.contains(", 90 % in the kernel (lzma_main)"), "{most}");
    let little = sentence(2..22);
    assert!(!little.contains("kernel"), "{little}");
}

/// A library has the program's own functions do the work, which have no names: the place in the program says
/// more than the library's function. One that the library does itself has that one's name.
#[test]
fn a_place_in_the_program_says_more_than_who_called_it() {
    let function = |stack: &str| {
        let verdict = starved(&format!(
            "0 cpu0 switch idle -> main\n{}",
            samples(0, "main", 2..52, stack)
        ));
        verdict.root.function
    };
    let own = function("app+0x17090;app+0x16cc0;png_process_data;app+0x10;main");
    assert_eq!(own.as_deref(), Some("app+0x17090"));
    let library = function("png_filter;png_process_data;app+0x10;main");
    assert_eq!(library.as_deref(), Some("png_filter"));
}

/// Where nothing is known nothing is claimed: the class is unknown, the confidence nothing.
#[test]
fn unknown() {
    let verdict = starved(
        "0 cpu0 switch idle -> main
        2ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;ask",
    );
    assert_eq!(verdict.root.class, Class::Unknown);
    assert_eq!(of_kind(&verdict, "unknown"), 50_000);
    assert!(verdict.root.confidence < 1e-9);
    assert!(
        verdict.sentence.contains("does not show what"),
        "{}",
        verdict.sentence
    );
}

/// Moments without a CPU all over the problem do not hide who had it for the one long time: of
/// 1 s, main runs for 220 ms, sleeps for 260 ms, waits for the disk for 200 ms, and the hog has
/// its CPU for 320 ms.
#[test]
fn moments_do_not_hide_the_hog() {
    let mut events = String::from("0 cpu0 switch idle -> main\n");
    let moments = (0..20).map(|turn| 5_000 + 10_000 * turn).chain([995_000]);
    for at in moments {
        events += &format!(
            "{at}us cpu0 switch main -> x preempted\n{}us cpu0 switch x -> main sleeping\n",
            at + 10
        );
    }
    let recording = record(&format!(
        "{PEOPLE}{events}
        200ms cpu0 switch main -> hog preempted
        520ms cpu0 switch hog -> main sleeping
        520.1ms cpu0 switch main -> idle sleeping nanosleep arg=260ms stack=nanosleep;nap
        780.1ms cpu0 wake idle -> main in=timer
        780.1ms cpu0 switch idle -> main
        780.2ms cpu0 switch main -> idle uninterruptible fsync object=file:5 stack=fsync;save
        980ms cpu0 wake idle -> main in=softirq vector=4
        980ms cpu0 switch idle -> main
        end 1s"
    ));
    let verdict = explain(&recording, "main", 0..1_000_000);
    assert_eq!(verdict.root.class, Class::Starved);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(of_kind(&verdict, "runnable"), 320_000 + 21 * 10);
}

/// Limits of control groups that a wait for a disk or a page may come from are named: of a process that was
/// started later, those of the one that started it. A memory limit that is not reached is not named.
#[test]
fn limits_of_control_groups_are_named() {
    let says = |limit: &str, wait: &str| {
        let recording = record(&format!(
            "process sh 100
            thread sh sh 100
            process app 200
            0 limit sh {limit} group=/batch
            0 cpu0 switch idle -> sh
            1us fork sh -> app app 200
            2us cpu0 wake sh -> app fork new
            3us cpu0 switch sh -> app sleeping wait4 stack=wait4;run
            10us cpu0 switch app -> idle uninterruptible {wait}
            end 3s"
        ));
        explain(&recording, "app", 10..3_000_000).sentence
    };
    const READ: &str =
        "read object=file:7 stack=read;load kstack=io_schedule;folio_wait_bit_common";
    const FAULT: &str = "stack=load kstack=io_schedule;folio_wait_bit_common;exc_page_fault";
    const SYNC: &str =
        "fsync object=file:7 stack=fsync;store kstack=io_schedule;folio_wait_bit_common";
    for (limit, wait, expected) in [
        (
            "disk-read 1048576",
            READ,
            "; its control group /batch limits reads from a disk to 1.0 MB per second.",
        ),
        (
            "disk-write 300000",
            SYNC,
            "; its control group /batch limits writes to a disk to 300 kB per second.",
        ),
        // What it sends has to be read before.
        (
            "disk-read 1048576 device=loop0",
            "sendfile object=file:7 stack=sendfile;send_file kstack=io_schedule;folio_wait_bit_common;filemap_splice_read",
            "; its control group /batch limits reads from loop0 to 1.0 MB per second.",
        ),
        ("disk-write 300000", READ, ""),
        (
            "memory 16000000 used=15900000",
            FAULT,
            "; its control group /batch has used up its memory limit of 16.0 MB.",
        ),
        ("memory 16000000 used=3000000", FAULT, ""),
        // Whatever was used when somebody looked, the kernel shows that it is used up.
        (
            "memory 16000000 used=3000000",
            "stack=load kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault",
            "; the limit of /batch is 16.0 MB.",
        ),
    ] {
        let sentence = says(limit, wait);
        match expected {
            "" => assert!(!sentence.contains("control group"), "{sentence}"),
            _ => assert!(sentence.ends_with(expected), "{sentence}"),
        }
    }
}

/// Of a group that limits several devices all are named, each once and with its last limit: any may be the one.
#[test]
fn each_device_has_its_limit() {
    let recording = record(
        "process app 100
        thread app app 100
        0 limit app disk-reads 300 device=loop0 group=/tt
        0 limit app disk-reads 50 device=loop1 group=/tt
        0 cpu0 switch app -> idle uninterruptible read object=file:7 stack=read;load kstack=io_schedule;folio_wait_bit_common
        1s limit app disk-reads 60 device=loop1 group=/tt
        end 3s",
    );
    let sentence = explain(&recording, "app", 0..3_000_000).sentence;
    let expected = "; its control group /tt limits reads from loop0 to 300 per second and reads from loop1 to 60 per second.";
    assert!(sentence.ends_with(expected), "{sentence}");
}

/// In the first version of control groups the groups of memory and of disks are apart: each limit is named with its own.
#[test]
fn each_limit_is_of_its_own_group() {
    let recording = record(
        "process app 100
        thread app app 100
        0 limit app disk-read 1048576 group=/
        0 limit app memory 16000000 used=15900000 group=/small
        0 cpu0 switch app -> idle uninterruptible stack=load kstack=io_schedule;folio_wait_bit_common;exc_page_fault
        end 3s",
    );
    let sentence = explain(&recording, "app", 0..3_000_000).sentence;
    let expected = "; its control group /small has used up its memory limit of 16.0 MB, and the root control group \
                    limits reads from a disk to 1.0 MB per second.";
    assert!(sentence.ends_with(expected), "{sentence}");
}

/// The sentence gives the size of a CPU quota, and the program in the group that used most of it.
#[test]
fn a_quota_has_its_amount_and_its_user() {
    let recording = record(
        "process app 100
        thread app app 100
        process xz 200
        thread xz xz 200
        process other 300
        thread other other 300
        0 limit app cpu 100 group=/batch
        0 limit xz cpu 100 group=/batch
        0 limit other cpu 5000 group=/rest
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> xz
        0 cpu2 switch idle -> other
        10ms cpu0 switch app -> idle throttled
        90ms cpu1 switch xz -> idle throttled
        1000ms cpu0 switch idle -> app
        end 1s",
    );
    let sentence = explain(&recording, "app", 0..1_000_000).sentence;
    let says = "the CPU quota of its control group /batch (0.1 CPUs) was used up for 99 % of that time; xz in the \
                same group had 90 % of what it got.";
    assert!(sentence.ends_with(says), "{sentence}");
}

/// Of a program that used its quota up by itself the sentence tells in which function, be it in another thread.
#[test]
fn a_quota_was_used_up_by_a_function() {
    let text = format!(
        "process app 100
        thread app app 100
        thread worker app 101
        0 limit app cpu 100 group=/batch
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> worker
        {}{}
        10ms cpu0 switch app -> idle throttled
        100ms cpu1 switch worker -> idle throttled
        1000ms cpu0 switch idle -> app
        end 1s",
        samples(1, "worker", 10..70, "reindex"),
        samples(1, "worker", 70..95, "compact"),
    );
    let sentence = explain(&record(&text), "app", 10_000..1_000_000).sentence;
    let says = "(0.1 CPUs) was used up; 71 % of what it ran was in reindex.";
    assert!(sentence.ends_with(says), "{sentence}");
}

/// A helper has ended most of such waits, as it had something to tell each time. In the one that is asked
/// about it is idle from before the wait until after it. A worker wakes the waiter three times
/// spuriously, and then because it is done: the wait is for the worker.
#[test]
fn who_has_nothing_to_do_all_the_while_is_not_whom_it_waits_for() {
    const WAIT: &str =
        "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;drain;main";
    const WAKE: &str = "futex op=wake object=futex:0x10 stack=pthread_cond_signal;push";
    let mut text = String::from(
        "process build 100
        thread main build 100 name=build
        thread helper build 101
        thread worker build 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> helper
        0 cpu2 switch idle -> worker\n",
    );
    for turn in 0..30 {
        let at = 10 + 10 * turn;
        text += &format!(
            "{at}ms cpu0 switch main -> idle {WAIT}
            {}ms cpu1 wake helper -> main {WAKE}
            {}us cpu0 switch idle -> main\n",
            at + 5,
            (at + 5) * 1000 + 10
        );
    }
    text += "400ms cpu1 switch helper -> idle sleeping epoll_wait stack=epoll_wait;listen\n";
    for (from, to) in [(410, 500), (500, 600), (600, 700), (700, 800)] {
        text += &format!(
            "{}us cpu0 switch main -> idle {WAIT}
            {to}ms cpu2 wake worker -> main {WAKE}
            {}us cpu0 switch idle -> main\n",
            from * 1000 + 20,
            to * 1000 + 10
        );
    }
    let recording = record(&format!("{text}end 2s"));
    let verdict = explain(&recording, "main", 410_000..800_000);
    assert_eq!(verdict.root.who.tid, 102, "{}", verdict.sentence);
}

/// Several processes of one program that had the CPU in turns had it together.
#[test]
fn starved_by_processes_of_one_program() {
    let mut text = String::from("process app 100\nthread main app 100 name=app\n");
    for (name, pid) in [("g1", 201), ("g2", 202), ("g3", 203), ("g4", 204)] {
        text +=
            &format!("process {name} {pid}\nthread {name} {name} {pid}\n0 rename {name} gzip\n");
    }
    text += "0 cpu0 switch idle -> main\n2ms cpu0 switch main -> g1 preempted\n";
    let turns = [("g1", "g2"), ("g2", "g3"), ("g3", "g4"), ("g4", "g1")];
    for (turn, (from, to)) in turns.iter().cycle().take(16).enumerate() {
        text += &format!("{}ms cpu0 switch {from} -> {to} preempted\n", 7 + 5 * turn);
    }
    let recording = record(&format!(
        "{text}90ms cpu0 switch g1 -> main preempted\nend 100ms"
    ));
    let verdict = explain(&recording, "main", 0..95_000);
    assert_eq!(verdict.root.class, Class::Starved);
    assert_eq!(verdict.root.who.process, "gzip", "{}", verdict.sentence);
    let said = "it was runnable while 4 gzip processes held the CPUs";
    assert!(verdict.sentence.contains(said), "{}", verdict.sentence);
}

/// Of many disk waits the verdict names the function with most of the time, not that of the longest wait, and says
/// that there are others.
#[test]
fn many_waits_for_the_disk() {
    let mut text =
        "process app 100\nthread main app 100 name=app\n0 cpu0 switch idle -> main\n".to_owned();
    let mut at = 1_000;
    let calls = ["rename", "open", "open", "open", "unlink", "open", "open"];
    for call in calls {
        let (call, stack, length) = match call {
            "rename" => ("rename", "move_file;main", 30_000),
            "unlink" => ("unlink", "remove_file;main", 15_000),
            _ => ("openat", "open_file;main", 20_000),
        };
        text += &format!(
            "{at}us cpu0 switch main -> idle uninterruptible {call} stack={stack} kstack=io_schedule;wait
            {}us cpu0 wake idle -> main in=interrupt vector=33 kstack=bio_endio
            {}us cpu0 switch idle -> main\n",
            at + length,
            at + length + 10
        );
        at += length + 200;
    }
    let recording = record(&format!("{text}end 200ms"));
    let verdict = explain(&recording, "main", 1_000..at);
    assert_eq!(
        verdict.root.function.as_deref(),
        Some("open_file"),
        "{}",
        verdict.sentence
    );
    let said = "waited for the disk in open_file and elsewhere";
    assert!(verdict.sentence.contains(said), "{}", verdict.sentence);
    let last = verdict.path.last().expect("a step");
    assert!(
        last.doing
            .contains("in openat and in other waits, 7 in all"),
        "{}",
        last.doing
    );
}

/// A program computes, and its control group has used up its memory: what it needs is taken from it and paged in again.
/// If it is not paged in, the limit is not mentioned.
#[test]
fn a_computation_that_is_paged_in_again_and_again() {
    let says = |faults: u64| {
        let mut text = String::from(
            "process app 100\nthread app app 100
            0 limit app memory 124211200 used=124084224 group=/builder
            0 cpu0 switch idle -> app\n",
        );
        for at in (0..faults).map(|fault| 100 + 10 * fault) {
            text += &format!(
                "{at}ms cpu0 switch app -> idle uninterruptible stack=parse kstack=io_schedule;folio_wait_bit_common;exc_page_fault
                {}ms cpu0 wake idle -> app in=interrupt vector=33
                {}ms cpu0 switch idle -> app\n",
                at + 3,
                at + 3
            );
        }
        let recording = record(&(text + "end 3s"));
        explain(&recording, "app", 100_000..1_100_000).sentence
    };
    let (often, rarely) = (says(100), says(5));
    let expected = "; its control group /builder has used up its memory limit of 124 MB.";
    assert!(often.ends_with(expected), "{often}");
    assert!(!rarely.contains("memory limit"), "{rarely}");
}
