//! Fast against slow turns of a loop: the shares are worked out by hand from how each turn is made.

use crate::support::*;
use hangdog_diagnose::Answers;
use hangdog_diagnose::compare::{
    self, Comparison, Difference, FactorRow, Occurrence, Side, Split, between, within,
};

/// A loop of 40 turns, 10 ms apart, of which every fourth has the `slow` body and the others the `fast`
/// one. A body is given when its turn begins, in µs, and says how long the turn is.
fn recording(
    fast: impl Fn(u64) -> (String, u64),
    slow: impl Fn(u64) -> (String, u64),
) -> Recording {
    let mut text = "process app 100
        thread app app 100
        process other 200
        thread other other 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> other
        500us cpu0 switch app -> idle sleeping read object=pipe:1 stack=read;serve\n"
        .to_owned();
    for turn in 0..40 {
        let at = 10_000 * (turn + 1);
        let (body, us) = match turn % 4 == 3 {
            true => slow(at),
            false => fast(at),
        };
        text += &format!(
            "{at}us cpu0 wake idle -> app in=interrupt
             {at}us cpu0 switch idle -> app
             {body}
             {}us cpu0 switch app -> idle sleeping read object=pipe:1 stack=read;serve\n",
            at + us
        );
    }
    record(&(text + "end 420ms"))
}

fn runs(us: u64) -> impl Fn(u64) -> (String, u64) {
    move |_| (String::new(), us)
}

fn compared_by(recording: &Recording, split: Split) -> Comparison {
    let evidence = recording.evidence();
    let answers = Answers::default();
    let side = side(recording, &evidence, &answers);
    within(&side, "turns", split).expect("enough turns")
}

fn side<'a, 'e>(
    recording: &'a Recording,
    evidence: &'a hangdog_graph::Evidence<'e>,
    answers: &'a Answers,
) -> Side<'a, 'e> {
    let thread = recording.t("app");
    let home = compare::home(evidence, thread).expect("a home");
    Side {
        evidence,
        interrupts: &recording.trace.tables.interrupts,
        counters: &recording.trace.tables.counters,
        setting: setting(false, answers),
        occurrences: compare::turns(evidence, thread, home),
    }
}

fn difference(recording: &Recording) -> Difference {
    let comparison = compared_by(recording, Split::Apart);
    let difference = comparison.difference.clone();
    difference.unwrap_or_else(|| panic!("a difference: {comparison:#?}"))
}

fn first(difference: &Difference) -> &FactorRow {
    let shares: f64 = difference.factors.iter().map(|factor| factor.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{difference:#?}");
    difference.factors.first().expect("a factor")
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

/// Fast turns run for 1 ms. Slow ones run for 1.6 ms and wait for a lock for 2.4 ms, which another thread
/// that runs gives back: 80 % of the 3 ms are the lock.
#[test]
fn a_lock_is_told_with_who_held_it() {
    let recording = recording(runs(1000), |at| {
        let body = format!(
            "{}us cpu0 switch app -> idle sleeping futex op=wait arg=128 object=futex:0x10 holder=other stack=__lll_lock_wait;pthread_mutex_lock;work
             {}us cpu1 wake other -> app futex op=wake object=futex:0x10 stack=pthread_mutex_unlock;hold
             {1}us cpu0 switch idle -> app",
            at + 600,
            at + 3000
        )
        .replace("op=wait arg=128", "op=wait");
        (body, 4000)
    });
    let difference = difference(&recording);
    let first = first(&difference);
    assert_eq!(
        (first.kind, first.factor.as_str()),
        ("wait", "waiting for a lock (futex)")
    );
    near(first.share, 0.8);
    near(first.difference_ns, 2.4e6);
    near(first.sure, 1.0);
    near(difference.factors[1].share, 0.2);
    assert_eq!(difference.factors[1].kind, "running");
    let part = first.details.first().expect("who held it");
    assert_eq!(part.what, "other ran");
    near(part.slow_ns, 2.4e6);
    assert_eq!((difference.slow.count, difference.fast.count), (10, 30));
    let told = compared_by(&recording, Split::Apart).sentence;
    assert_eq!(
        told,
        "Of 40 turns 10 are slow: 4.00 ms on average, the 30 fast ones 1.00 ms. The slow ones spend 2.40 ms \
         more waiting for a lock (futex): 80 % of the difference (80 % to 80 % in nine of ten draws); 2.40 ms of \
         it other ran."
    );
}

/// Slow turns lose their CPU to another program for 3 ms of 4.
#[test]
fn who_took_the_cpu_is_told() {
    let recording = recording(runs(1000), |at| {
        let body = format!(
            "{}us cpu0 switch app -> other preempted
             {}us cpu0 switch other -> app preempted",
            at + 500,
            at + 3500
        );
        (body, 4000)
    });
    let difference = difference(&recording);
    let first = first(&difference);
    assert_eq!(first.kind, "cpu");
    near(first.share, 1.0);
    assert_eq!(first.details[0].what, "other had the CPU");
}

/// Slow turns lose 2 ms to softirqs.
#[test]
fn interrupts_are_told_by_source() {
    let recording = recording(runs(1000), |at| {
        (format!("{}us cpu0 irq 2ms soft 3 app", at + 100), 3000)
    });
    let difference = difference(&recording);
    let first = first(&difference);
    assert_eq!(first.kind, "interrupt");
    near(first.difference_ns, 2e6);
    assert_eq!(first.details[0].what, "softirq NET_RX");
    near(first.details[0].slow_ns, 2e6);
    assert!(
        difference
            .ruled_out
            .contains(&"running longer (0 %)".to_owned())
    );
}

/// Slow turns run for 4 ms and fast ones for 1: it is told in which function, and, by what the hardware
/// counted, that it was memory; without that, what it was not and what to do.
#[test]
fn running_longer_is_told_with_function_and_hardware() {
    let body = |counted: bool, us: u64| {
        move |at: u64| {
            let samples = (0..us / 500).map(|i| {
                let function = if i < 1 { "parse" } else { "memset" };
                format!(
                    "{}us cpu0 sample app stack={function};serve\n",
                    at + 250 + 500 * i
                )
            });
            let counters = match counted {
                true => format!(
                    "{}us cpu0 counters app cycles={} instructions=1000000 cache-misses={} tlb-misses=5\n",
                    at + us,
                    us * 1000,
                    us
                ),
                false => String::new(),
            };
            (samples.collect::<String>() + &counters, us)
        }
    };
    let counted = difference(&recording(body(true, 1000), body(true, 4000)));
    let row = first(&counted);
    assert_eq!(row.kind, "running");
    // Half of the fast turns' 1 ms are memset's, and seven eighths of the slow ones' 4 ms.
    assert_eq!(row.details[0].what, "memset");
    near(row.details[0].fast_ns, 0.5e6);
    near(row.details[0].slow_ns, 3.5e6);
    let hardware = counted.hardware.as_ref().expect("counters");
    assert_eq!(
        hardware.conclusion,
        "at the same instruction count, with 4.0 times the cache misses: memory, not code"
    );
    assert_eq!(counted.next, None);
    let uncounted = difference(&recording(body(false, 1000), body(false, 4000)));
    assert!(uncounted.hardware.is_none());
    assert!(uncounted.next.is_some_and(|next| next.contains("PMU")));
    for what in [
        "interrupts (0 %)",
        "waiting for a CPU (0 %)",
        "page faults (0 %, by samples)",
    ] {
        assert!(uncounted.ruled_out.iter().any(|it| it == what), "{what}");
    }
}

/// Turns whose durations are spread evenly are of one kind, and nothing is explained; asked for, the
/// slowest are compared all the same.
#[test]
fn turns_of_one_kind_are_alike() {
    let spread = |at: u64| (String::new(), 1000 + at / 10_000 * 37 % 41 * 12);
    let recording = recording(spread, spread);
    let comparison = compared_by(&recording, Split::Apart);
    assert!(comparison.difference.is_none(), "{comparison:#?}");
    assert!(
        comparison
            .sentence
            .ends_with("There is no difference to explain.")
    );
    let slowest = compared_by(&recording, Split::Slowest(0.1));
    let difference = slowest.difference.expect("a difference");
    assert_eq!((difference.slow.count, difference.fast.count), (4, 20));
    assert_eq!(first(&difference).kind, "running");
}

/// Where the slow turns follow each other, that is told: the last 20 of 40 are slow, which makes two runs.
#[test]
fn slow_turns_in_a_row_are_told() {
    let late = |at: u64| (String::new(), if at > 200_000 { 4000 } else { 1000 });
    let in_a_row = difference(&recording(late, late));
    let found = in_a_row.runs.expect("one trace");
    assert_eq!((found.count, found.in_a_row), (2, true));
    // 20 fast and 20 slow ones: 1 + 2 * 20 * 20 / 40.
    near(found.by_chance, 21.0);
    let mixed = difference(&recording(runs(1000), runs(4000)));
    assert!(!mixed.runs.expect("one trace").in_a_row);
}

/// Two traces: alike where their turns are, and explained where one's turns wait for the disk.
#[test]
fn two_traces_are_compared() {
    let spread = |at: u64| (String::new(), 1000 + at / 10_000 * 37 % 41 * 5);
    let good = recording(spread, spread);
    let bad = recording(
        |at| {
            let body = format!(
                "{}us cpu0 switch app -> idle uninterruptible fsync stack=fsync;save kstack=io_schedule
                 {}us cpu0 wake idle -> app in=softirq vector=4
                 {1}us cpu0 switch idle -> app",
                at + 500,
                at + 2500
            );
            (body, 3000)
        },
        spread,
    );
    let (one, other) = (good.evidence(), bad.evidence());
    let answers = Answers::default();
    let sides = [side(&good, &one, &answers), side(&bad, &other, &answers)];
    let comparison = between(&sides, "turns").expect("enough turns");
    let difference = comparison.difference.expect("a difference");
    let first = first(&difference);
    assert_eq!(first.kind, "wait");
    assert!(first.factor.contains("fsync"), "{}", first.factor);
    assert!(
        comparison
            .sentence
            .starts_with("The turns of the second trace are slower")
    );
    let same = [side(&good, &one, &answers), side(&good, &one, &answers)];
    let comparison = between(&same, "turns").expect("enough turns");
    assert!(comparison.difference.is_none(), "{comparison:#?}");
}

/// A turn is from the end of a wait to the next wait in the same call; a request from what was sent first until
/// what comes first.
#[test]
fn occurrences_are_found_without_marks() {
    let recording = record(
        "process app 100
        thread app app 100
        0 cpu0 switch idle -> app
        1ms cpu0 switch app -> idle sleeping poll object=inet:1
        5ms cpu0 wake idle -> app in=interrupt
        5.5ms cpu0 switch idle -> app
        6ms transfer app sent 10 object=inet:2 peer=inet:3
        6.1ms transfer app sent 10 object=inet:2 peer=inet:3
        6.2ms cpu0 switch app -> idle sleeping recvfrom object=inet:2
        8ms cpu0 wake idle -> app in=interrupt
        8ms cpu0 switch idle -> app
        8ms transfer app received 10 object=inet:2 peer=inet:3
        8.1ms transfer app received 10 object=inet:2 peer=inet:3
        9ms cpu0 switch app -> idle sleeping poll object=inet:1
        end 20ms",
    );
    let evidence = recording.evidence();
    let thread = recording.t("app");
    let home = compare::home(&evidence, thread).expect("a home");
    assert_eq!(evidence.calls.name(home.call), "poll");
    let found = |from: u64, to: u64| Occurrence { thread, from, to };
    assert_eq!(
        compare::turns(&evidence, thread, home),
        [found(5 * MS, 9 * MS)]
    );
    assert_eq!(
        compare::requests(&evidence, thread),
        [found(6 * MS, 8 * MS)]
    );
}
