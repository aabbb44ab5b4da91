//! Which problem is explained where a person names none.

#[path = "../../diagnose/tests/support/mod.rs"]
mod support;

use hangdog_diagnose::{Answers, Problem, diagnose};
use hangdog_report::which::more_convincing;
use support::{record, setting};

/// The cause of the worst problem is not known, that of another is. The other is shown in its place only
/// if it is nearly as bad and lasts nearly as long.
#[test]
fn an_alternative_is_nearly_as_bad() {
    let recording = record(
        "process app 100
        thread app app 100
        process tool 200
        thread tool tool 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> tool
        10us cpu0 switch app -> idle sleeping futex op=wait object=futex:0x1 stack=wait_for_it;main
        end 2s",
    );
    let evidence = recording.evidence();
    let explain = |problem: &Problem| {
        let answers = Answers::default();
        diagnose(&evidence, problem, setting(false, &answers))
    };
    let problem = |thread: &str, until_ms: u64, score: f64| Problem {
        score,
        ..Problem::picked(recording.t(thread), 20_000..until_ms * 1_000_000)
    };
    let felt = problem("app", 2_000, 100.0);
    let hardly_felt = Problem {
        felt: 0.1,
        ..felt.clone()
    };
    let shown = |worst: &Problem, until_ms, score| {
        let problems = [worst.clone(), problem("tool", until_ms, score)];
        more_convincing(&explain(worst), &problems, explain).map(|(at, _)| at)
    };
    for worst in [&felt, &hardly_felt] {
        assert_eq!(shown(worst, 2_000, 90.0), Some(1));
        assert_eq!(shown(worst, 2_000, 10.0), None);
        assert_eq!(shown(worst, 300, 90.0), None);
    }
    // One that was surely felt gives way to hardly any other.
    assert_eq!(shown(&felt, 2_000, 50.0), None);
    assert_eq!(shown(&hardly_felt, 2_000, 50.0), Some(1));
}

/// The alternative names the thread that the worst names too: then it speaks for the worst, which stays.
#[test]
fn an_alternative_names_another_root() {
    let recording = record(
        "process app 100
        thread app app 100
        process tool 200
        thread tool tool 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> tool
        2s cpu0 switch app -> idle sleeping futex op=wait object=futex:0x1 stack=wait_for_it;main
        end 4s",
    );
    let evidence = recording.evidence();
    let explain = |problem: &Problem| {
        let answers = Answers::default();
        diagnose(&evidence, problem, setting(false, &answers))
    };
    let second = 1_000_000_000;
    let worst = Problem {
        score: 100.0,
        ..Problem::picked(recording.t("app"), 2 * second..4 * second)
    };
    let shown = |thread: &str| {
        let other = Problem {
            score: 90.0,
            ..Problem::picked(recording.t(thread), 0..2 * second)
        };
        let problems = [worst.clone(), other];
        more_convincing(&explain(&worst), &problems, explain).map(|(at, _)| at)
    };
    assert_eq!(shown("tool"), Some(1));
    assert_eq!(shown("app"), None);
}
