//! Which of the problems of a trace a person reads first.

#[path = "../../diagnose/tests/support/mod.rs"]
mod support;

use hangdog_diagnose::problem::ProblemKind;
use hangdog_diagnose::{Answers, Class, Problem, Verdict, diagnose};
use hangdog_graph::Evidence;
use hangdog_report::rank::ranked;
use support::{record, setting};

fn explained(evidence: &Evidence<'_>, problem: &Problem) -> Verdict {
    let answers = Answers::default();
    diagnose(evidence, problem, setting(false, &answers))
}

/// The end of most traces here, ns.
const END: u64 = 2_000_000_000;

/// The cause of the worst problem is not known, that of another is. The other comes first if it is nearly
/// as bad, and of one that was surely felt only then.
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
    let explain = |problem: &Problem| explained(&evidence, problem);
    let problem = |thread: &str, until_ms: u64, score: f64| Problem {
        score,
        ..Problem::picked(recording.t(thread), 20_000..until_ms * 1_000_000)
    };
    let felt = problem("app", 2_000, 100.0);
    let hardly_felt = Problem {
        felt: 0.1,
        ..felt.clone()
    };
    let shown = |worst: &Problem, score| {
        let tool = Problem {
            felt: worst.felt,
            ..problem("tool", 2_000, score)
        };
        let problems = [worst.clone(), tool];
        let first = ranked(problems.to_vec(), END, explain).0.swap_remove(0);
        first.thread == recording.t("tool")
    };
    for worst in [&felt, &hardly_felt] {
        assert!(shown(worst, 90.0));
        assert!(!shown(worst, 10.0));
    }
    // One that was surely felt gives way to hardly any other.
    assert!(!shown(&felt, 50.0));
    assert!(shown(&hardly_felt, 50.0));
}

/// What comes again and again is felt each time: together the hitches of a program weigh more than one wait that
/// is about as long, or that may be idle; not more than one that is much longer.
#[test]
fn hitches_add_up() {
    let mut text = "process app 100
        thread app app 100
        process tool 200
        thread tool tool 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> tool
        10us cpu1 switch tool -> idle sleeping futex op=wait object=futex:0x1 stack=wait_for_it;main\n"
        .to_owned();
    for at in 0..1_000 {
        text += &format!("{}ms cpu0 sample app stack=rebuild;main\n", at + 1);
    }
    let recording = record(&format!("{text}end 2s"));
    let evidence = recording.evidence();
    let explain = |problem: &Problem| explained(&evidence, problem);
    const MS: u64 = 1_000_000;
    let first = |wait_ms: u64, owed: f64, wait_score: f64| {
        let of = |thread: &str, from: u64, ms: u64, score: f64| Problem {
            score,
            ..Problem::picked(recording.t(thread), from..from + ms * MS)
        };
        let wait = Problem {
            kind: ProblemKind::Wait,
            owed,
            felt: owed,
            ..of("tool", 20_000, wait_ms, wait_score)
        };
        let hitches = (0..4).map(|at| Problem {
            kind: ProblemKind::Turn,
            ..of("app", (10 + at * 200) * MS, 150, 40.0)
        });
        let problems: Vec<Problem> = std::iter::once(wait).chain(hitches).collect();
        ranked(problems, END, explain).0.swap_remove(0).thread
    };
    assert_eq!(first(160, 1.0, 100.0), recording.t("app"));
    assert_eq!(first(1_900, 1.0, 100.0), recording.t("tool"));
    assert_eq!(first(1_900, 0.001, 100.0), recording.t("app"));
    assert_eq!(first(160, 1.0, 800.0), recording.t("tool"));
}

/// A script that lets time pass by sleep(1) does what somebody chose: unless that was surely felt, another comes
/// first that took nearly as long.
#[test]
fn what_a_script_sleeps_comes_after_what_hangs() {
    let recording = record(
        "process script 100
        thread script script 100
        process sleep 200
        process app 300
        thread app app 300
        0 cpu0 switch idle -> script
        0 cpu1 switch idle -> app
        1us fork script -> sleep sleep 200
        2us cpu0 wake script -> sleep fork new
        3us cpu0 switch script -> sleep sleeping wait4 arg=200 stack=wait4;script
        4us cpu0 switch sleep -> idle sleeping clock_nanosleep arg=1900ms stack=nanosleep;main
        5us cpu1 switch app -> idle sleeping read object=char:5 stack=read;prompt
        1900ms cpu0 wake idle -> sleep in=timer
        1900ms cpu0 switch idle -> sleep
        1901ms cpu0 wake sleep -> script exit
        1901ms cpu0 switch sleep -> script dead
        end 2s",
    );
    let evidence = recording.evidence();
    let explain = |problem: &Problem| explained(&evidence, problem);
    let first = |felt: f64| {
        let of = |thread: &str, score: f64| Problem {
            score,
            felt,
            ..Problem::picked(recording.t(thread), 10_000..1_901_000_000)
        };
        let problems = vec![of("script", 100.0), of("app", 70.0)];
        ranked(problems, END, explain).0.swap_remove(0).thread
    };
    assert_eq!(first(0.05), recording.t("app"));
    assert_eq!(first(1.0), recording.t("script"));
}

/// Of what lasts as long as the recording, what another thread does about it comes before what may be as it
/// should be.
#[test]
fn what_lasts_all_along_is_read_by_its_cause() {
    let recording = record(
        "process app 100
        thread app app 100
        process tool 200
        thread tool tool 200
        process server 300
        thread server server 300
        0 cpu0 switch idle -> server
        0 cpu1 switch idle -> tool
        2s cpu1 switch tool -> idle sleeping futex op=wait object=futex:0x9 stack=nap;main
        0 socket app object=unix:5 peer=unix:6 peer-process=server
        0 socket server object=unix:6 peer=unix:5 peer-process=app
        1us transfer app sent 20 object=unix:5 peer=unix:6
        2us cpu2 switch app -> idle sleeping recvfrom object=unix:5 stack=ask;main
        end 2s",
    );
    let evidence = recording.evidence();
    let explain = |problem: &Problem| explained(&evidence, problem);
    let of = |thread: &str, score: f64| Problem {
        score,
        kind: ProblemKind::Wait,
        ..Problem::picked(recording.t(thread), 0..END)
    };
    let verdict = explain(&of("app", 1.0));
    assert_eq!(verdict.root.who.thread, "server", "{}", verdict.sentence);
    let first = |app: f64, tool: f64| {
        let problems = vec![of("tool", tool), of("app", app)];
        let first = ranked(problems, END, explain).0.swap_remove(0);
        evidence.name(first.thread).to_owned()
    };
    assert_eq!(first(50.0, 100.0), "app");
    assert_eq!(first(20.0, 100.0), "tool");
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
    let explain = |problem: &Problem| explained(&evidence, problem);
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
        let first = ranked(vec![worst.clone(), other], 2 * END, explain)
            .0
            .swap_remove(0);
        (first.thread, first.window) != (worst.thread, worst.window.clone())
    };
    assert!(shown("tool"));
    assert!(!shown("app"));
}

/// A pool of threads that all compute is at work, whoever waits for it; threads that each wait until another
/// has done the same under a lock are a problem.
#[test]
fn a_pool_at_work_is_read_later() {
    let first = |waits_in: &str, wakes_in: &str| {
        let wait = format!("sleeping futex op=wait object=futex:0x1 stack={waits_in};main");
        let mut text = format!(
            "process build 100
            thread main build 100 name=build
            thread one build 101
            thread two build 102
            thread three build 103
            process tool 200
            thread tool tool 200
            0 cpu0 switch idle -> one
            0 cpu3 switch idle -> tool
            1us cpu1 switch idle -> main
            2us cpu1 switch main -> idle {wait}
"
        );
        let turns = [
            ("one", 0, 700),
            ("two", 700, 1_400),
            ("three", 1_400, 2_000),
        ];
        for (at, (who, from, to)) in turns.into_iter().enumerate() {
            for sample in (from + 5..to).step_by(10) {
                text += &format!("{sample}ms cpu0 sample {who} stack=compute;main\n");
            }
            let (wakes, next) = match turns.get(at + 1) {
                Some((next, ..)) => (*next, *next),
                None => ("main", "idle"),
            };
            let done = format!("futex op=wake object=futex:0x1 stack={wakes_in};pass_on");
            text += &format!(
                "{to}ms cpu0 wake {who} -> {wakes} {done}
                {to}.001ms cpu0 switch {who} -> {next} sleeping futex op=wait object=futex:0x1 stack=rest
"
            );
        }
        let recording = record(&format!(
            "{text}2001ms cpu1 switch idle -> main\nend 2100ms"
        ));
        let evidence = recording.evidence();
        let explain = |problem: &Problem| explained(&evidence, problem);
        let of = |thread: &str, score: f64| Problem {
            score,
            kind: ProblemKind::Wait,
            ..Problem::picked(recording.t(thread), 20_000..END)
        };
        let worst = explain(&of("main", 1.0));
        assert_eq!(worst.root.others, 2, "{}", worst.sentence);
        let problems = vec![of("main", 100.0), of("tool", 50.0)];
        let first = ranked(problems, 2 * END, explain).0.swap_remove(0);
        evidence.name(first.thread).to_owned()
    };
    assert_eq!(first("pthread_cond_wait", "pthread_cond_signal"), "tool");
    assert_eq!(first("__lll_lock_wait;take", "__lll_lock_wake"), "build");
}

/// Nothing but a person ends a circle: it is read first, whoever felt it by now.
#[test]
fn a_circle_is_read_first() {
    let recording = record(
        "process batch 100
        thread one batch 100
        thread two batch 101
        process tool 200
        thread tool tool 200
        0 cpu0 switch idle -> one
        0 cpu1 switch idle -> two
        1ms cpu0 switch one -> tool sleeping futex op=wait object=futex:0x1 holder=two stack=lock_b;main
        1ms cpu1 switch two -> idle sleeping futex op=wait object=futex:0x2 holder=one stack=lock_a;run
        end 2s",
    );
    let evidence = recording.evidence();
    let explain = |problem: &Problem| explained(&evidence, problem);
    let of = |thread: &str, felt: f64, score: f64| Problem {
        score,
        felt,
        ..Problem::picked(recording.t(thread), 1_000_000..END)
    };
    let circle = of("one", 0.1, 20.0);
    let verdict = explain(&circle);
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
    let first = ranked(vec![of("tool", 1.0, 100.0), circle], END, explain).0;
    assert_eq!(evidence.name(first[0].thread), "one");
}

/// A client waits for a lock that a server has, and that for another program's. The server's problem scores more; the client's comes first, as
/// both come down to the same root. The shell that waits for the client to end comes behind it.
#[test]
fn who_asked_comes_before_the_server_between() {
    let recording = record(
        "process shell 50
        thread shell shell 50
        process client 100
        process server 200
        thread server server 200
        process worker 300
        thread worker worker 300
        0 cpu0 switch idle -> shell
        0 cpu1 switch idle -> server
        0 cpu2 switch idle -> worker
        1us fork shell -> client client 100
        2us cpu0 wake shell -> client fork new
        3us cpu3 switch idle -> client
        4us cpu0 switch shell -> idle sleeping wait4 arg=100 stack=wait4;main
        10us cpu3 switch client -> idle sleeping futex op=lock-pi object=futex:0x1 holder=server stack=ask;main
        12us cpu1 switch server -> idle sleeping futex op=lock-pi object=futex:0x2 holder=worker stack=serve;main
        end 2s",
    );
    let evidence = recording.evidence();
    let explain = |problem: &Problem| explained(&evidence, problem);
    let problem = |thread: &str, score: f64| Problem {
        score,
        ..Problem::picked(recording.t(thread), 20_000..END)
    };
    let problems = vec![
        problem("server", 100.0),
        problem("shell", 90.0),
        problem("client", 80.0),
    ];
    let order: Vec<_> = (ranked(problems, END, explain).0.iter())
        .map(|problem| problem.thread)
        .collect();
    assert_eq!(order[0], recording.t("client"));
    assert_eq!(order[1], recording.t("server"));
}
