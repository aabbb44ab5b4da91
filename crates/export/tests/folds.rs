//! Weighted stacks against figures worked out by hand from the story in `common`.

mod common;

use common::{Fixture, STORY};
use hangdog_export::top::{By, Top};
use hangdog_export::{Fold, Selection, View, flame, folded};

fn lines(fixture: &Fixture, selection: &Selection, view: View) -> Vec<String> {
    let fold = Fold::new(&fixture.source(), selection, view);
    let mut out = Vec::new();
    folded::write(&fixture.source(), &fold, &mut out).expect("memory");
    let text = String::from_utf8(out).expect("UTF-8");
    text.lines().map(String::from).collect()
}

fn main_of(fixture: &Fixture) -> Selection {
    Selection::of(vec![fixture.t("main")], 0, u64::MAX)
}

/// On the CPU each sample counts once: the kernel's functions on the user's, what is inlined on
/// what it is inlined into; a sample without a stack says so.
#[test]
fn on_cpu() {
    let fixture = Fixture::new(STORY);
    assert_eq!(
        lines(&fixture, &fixture.all(), View::OnCpu),
        [
            "app;[no stack] 1",
            "app;main;inner;parse_[i] 1",
            "app;main;read;do_syscall_64_[k];ksys_read_[k] 1",
            "worker;work;spin;spin 1",
        ]
    );
}

/// Blocked time is that from the switch to the wake, by the stack of the switch; the time from
/// there to the CPU stands apart.
#[test]
fn off_cpu() {
    let fixture = Fixture::new(STORY);
    assert_eq!(
        lines(&fixture, &main_of(&fixture), View::OffCpu),
        [
            "app;[waiting for a CPU];main;fsync;do_syscall_64_[k];io_schedule_[k] 200000",
            "app;[waiting for a CPU];main;lock 500000",
            "app;[waiting for a CPU];main;nap 100000",
            "app;main;fsync;do_syscall_64_[k];io_schedule_[k] 2000000",
            "app;main;lock 2000000",
            "app;main;nap 2000000",
            "app;main;poll 500000",
        ]
    );
}

/// A window cuts waits at its ends: from 2 to 5 ms, 1 ms of the lock, its 0.5 ms of waiting for a
/// CPU and 1 ms of the nap.
#[test]
fn off_cpu_window() {
    let fixture = Fixture::new(STORY);
    let window = Selection::of(vec![fixture.t("main")], 2_000_000, 5_000_000);
    assert_eq!(
        lines(&fixture, &window, View::OffCpu),
        [
            "app;[waiting for a CPU];main;lock 500000",
            "app;main;lock 1000000",
            "app;main;nap 1000000",
        ]
    );
}

/// A waker's stack stands upside down on the blocked one. An interrupt is no thread, and what it
/// interrupted is not shown. The last wait was never ended.
#[test]
fn wakes() {
    let fixture = Fixture::new(STORY);
    assert_eq!(
        lines(&fixture, &main_of(&fixture), View::Wakes),
        [
            "app;main;fsync;do_syscall_64_[k];io_schedule_[k];--;[softirq block] 2000000",
            "app;main;lock;--;futex_wake_[k];unlock;work;worker 2000000",
            "app;main;nap;--;hrtimer_wakeup_[k];asm_sysvec_apic_timer_interrupt_[k];[timer] \
             2000000",
            "app;main;poll;--;[not woken] 500000",
        ]
    );
}

/// A function that calls itself counts once a stack in total; self times add up to the whole.
#[test]
fn top_counts_recursion_once() {
    let fixture = Fixture::new(STORY);
    let fold = Fold::new(&fixture.source(), &fixture.all(), View::OnCpu);
    let top = Top::new(&fixture.source(), &fold, By::Total);
    let rows: Vec<(&str, u64, u64)> = top
        .functions
        .iter()
        .map(|f| (f.name.as_str(), f.own.count, f.total.count))
        .collect();
    assert_eq!(
        rows,
        [
            ("main", 0, 2),
            ("[no stack]", 1, 1),
            ("ksys_read", 1, 1),
            ("parse", 1, 1),
            ("spin", 1, 1),
            ("do_syscall_64", 0, 1),
            ("inner", 0, 1),
            ("read", 0, 1),
            ("work", 0, 1),
        ]
    );
    assert_eq!((top.whole.count, top.whole.ns), (4, 4_000_000));
    let stacks = top.stacks;
    assert_eq!(
        (
            stacks.of_programs.count,
            stacks.without.count,
            stacks.incomplete.count,
            stacks.unknown.count
        ),
        (4, 1, 1, 0)
    );
}

/// Off the CPU, time waiting for a CPU belongs to no function.
#[test]
fn top_of_blocked_time() {
    let fixture = Fixture::new(STORY);
    let fold = Fold::new(&fixture.source(), &main_of(&fixture), View::OffCpu);
    let top = Top::new(&fixture.source(), &fold, By::Own);
    let own: Vec<(&str, u64)> = top
        .functions
        .iter()
        .map(|f| (f.name.as_str(), f.own.ns))
        .filter(|&(_, ns)| ns > 0)
        .collect();
    assert_eq!(
        own,
        [
            ("io_schedule", 2_000_000),
            ("lock", 2_000_000),
            ("nap", 2_000_000),
            ("poll", 500_000),
        ]
    );
    assert_eq!(top.whole.ns, 6_500_000);
}

/// Names cannot break the format: what it reserves is replaced.
#[test]
fn hostile_names() {
    let fixture = Fixture::new(
        "process app 1\nthread a app 1 name=x;y\n0 cpu0 switch idle -> a\n\
         1ms cpu0 sample a stack=f\nend 2ms",
    );
    assert_eq!(lines(&fixture, &fixture.all(), View::OnCpu), ["x:y;f 1"]);
}

/// The picture has the title and a box for each function, with its share.
#[test]
fn flame_graph() {
    let fixture = Fixture::new(STORY);
    let draw = |view, selection: &Selection| {
        let fold = Fold::new(&fixture.source(), selection, view);
        let mut out = Vec::new();
        flame::write(&fixture.source(), &fold, "a title", "a line", &mut out)
            .map(|()| String::from_utf8(out).expect("UTF-8"))
    };
    let on = draw(View::OnCpu, &fixture.all()).expect("a picture");
    for text in [
        "a title",
        "a line",
        "ksys_read (1 samples, 25.00%)",
        "main (2 samples, 50.00%)",
    ] {
        assert!(on.contains(text), "{text}");
    }
    let off = draw(View::OffCpu, &main_of(&fixture)).expect("a picture");
    assert!(off.contains("nap (2,000 µs, 27.40%)"), "2 of 7.3 ms");
    let nothing = Selection::all(9_999_999, 10_000_000);
    assert!(draw(View::OnCpu, &nothing).is_err());
}

/// A wait that began before the trace says so, and does not count against the stacks.
#[test]
fn waits_from_before() {
    let fixture = Fixture::new(
        "process app 1\nthread a app 1\n1ms cpu0 wake idle -> a in=timer\n\
         2ms cpu0 switch idle -> a\n3ms cpu0 switch a -> idle sleeping poll stack=poll\nend 7ms",
    );
    assert_eq!(
        lines(&fixture, &fixture.all(), View::OffCpu),
        [
            "a;[start not recorded] 1000000",
            "a;[waiting for a CPU] 1000000",
            "a;poll 4000000"
        ]
    );
    let fold = Fold::new(&fixture.source(), &fixture.all(), View::OffCpu);
    let top = Top::new(&fixture.source(), &fold, By::Own);
    assert_eq!(top.whole.ns, 5_000_000);
    assert_eq!(top.stacks.of_programs.ns, 4_000_000);
    assert_eq!(top.stacks.without.ns, 0);
}
