//! Work that others do in many small pieces, of which none is a problem alone.

use crate::support::*;
use hangdog_diagnose::problem::{ProblemKind, Scope};
use hangdog_diagnose::{Answers, Class, Problem, Verdict, diagnose, problem};

/// The first problem, and its verdict, which must hold together.
fn first(recording: &Recording) -> (Problem, Verdict) {
    let evidence = recording.evidence();
    let found = problem::find(&evidence, Scope::default());
    let first = found.first().expect("a problem").clone();
    let verdict = diagnose(&evidence, &first, setting(false, &Answers::default()));
    if let Err(what) = check(&verdict, &first) {
        panic!("{what}\n{verdict:#?}");
    }
    (first, verdict)
}

/// A shell starts a program every 10 ms, fifty times, and each runs for 8 ms. No wait is long, and no
/// program runs long: the loop is, and the shell answers for all of it.
#[test]
fn a_loop_that_starts_programs() {
    starts_programs("wait4", "run_command");
}

/// The same where the output of each is waited for by a poll of several pipes, as Python's `subprocess.run`
/// does.
#[test]
fn a_loop_that_reads_what_programs_write() {
    starts_programs("poll", "poll;Popen._communicate;run_command");
}

fn starts_programs(call: &str, stack: &str) {
    let mut text = "process shell 100
        thread shell shell 100
        0 cpu0 switch idle -> shell
        1ms cpu0 switch shell -> idle sleeping read stack=read;wait_for_input
        20ms cpu0 wake idle -> shell in=interrupt
        20.1ms cpu0 switch idle -> shell\n"
        .to_owned();
    for turn in 0..50 {
        let (at, pid) = (21 + 10 * turn, 200 + turn);
        text += &format!(
            "process expr{turn} {pid}
            {at}ms fork shell -> e{turn} expr{turn} {pid}
            {at}ms rename e{turn} expr
            {at}ms cpu0 wake shell -> e{turn} fork new
            {at}.1ms cpu0 switch shell -> e{turn} sleeping {call} stack={stack}
            {}ms exit e{turn} 0
            {}ms cpu0 wake e{turn} -> shell exit
            {}.1ms cpu0 switch e{turn} -> shell dead\n",
            at + 8,
            at + 8,
            at + 8
        );
    }
    text += "525ms cpu0 switch shell -> idle sleeping read stack=read;wait_for_input\nend 1s";
    let (problem, verdict) = first(&record(&text));
    assert_eq!(problem.kind, ProblemKind::Many);
    // From the first wait to the wakeup that ended the last.
    assert_eq!(problem.window, 21_100_000..519_000_000);
    assert_eq!(verdict.problem.who.pid, 100);
    assert_eq!(
        (verdict.root.who.pid, verdict.root.class),
        (100, Class::LongRunning)
    );
    assert!(
        verdict.sentence.contains("it started 50 processes in"),
        "{}",
        verdict.sentence
    );
    assert!(verdict.whole.is_some(), "sums by program");
}

const CONNECTION: &str = "
    process app 100
    thread app app 100
    process db 200
    thread db db 200
    0 socket db object=inet:1 peer=inet:2 local=127.0.0.1:5432 remote=127.0.0.1:40000
    0 socket app object=inet:2 peer=inet:1 local=127.0.0.1:40000 remote=127.0.0.1:5432
    0 open db object=inet:9 kind=listener
    0 socket db object=inet:9 local=127.0.0.1:5432
    0 cpu0 switch idle -> app
    0 cpu1 switch idle -> db
    1ms cpu1 switch db -> idle sleeping recvfrom object=inet:1 stack=read;next_query\n";

/// app asks db at `at` ms; the answer wakes it 4 ms later.
fn ask(at: u64) -> String {
    format!(
        "{at}ms transfer app sent 20 object=inet:2 peer=inet:1
            {at}ms cpu0 wake app -> db sendto stack=send;load_orders
            {at}.1ms cpu0 switch app -> idle sleeping recvfrom object=inet:2 stack=read;load_orders
            {at}.1ms cpu1 switch idle -> db
            {at}.2ms transfer db received 20 object=inet:1 peer=inet:2
            {}ms transfer db sent 9 object=inet:1 peer=inet:2
            {}ms cpu1 wake db -> app sendto stack=send;run_query
            {}.1ms cpu0 switch idle -> app
            {}.2ms cpu1 switch db -> idle sleeping recvfrom object=inet:1 stack=read;next_query
            {}.2ms transfer app received 9 object=inet:2 peer=inet:1\n",
        at + 4,
        at + 4,
        at + 4,
        at + 4,
        at + 4
    )
}

/// A program asks a database a hundred times, and each answer takes 3.9 ms: it is the asking that takes
/// long, and the sentence says how often and where. The same holds for a client that polls: what it receives after
/// the poll shows which connection it polled.
#[test]
fn a_loop_that_asks_a_server() {
    const READS: &str = "sleeping recvfrom object=inet:2 stack=read;load_orders";
    for waits in [READS, "sleeping poll stack=poll;load_orders"] {
        let mut text = CONNECTION.to_owned();
        text.extend((0..100).map(|turn| ask(2 + 5 * turn).replace(READS, waits)));
        text +=
            "503ms cpu0 switch app -> idle sleeping nanosleep arg=400ms stack=nanosleep\nend 800ms";
        let (problem, verdict) = first(&record(&text));
        assert_eq!(problem.kind, ProblemKind::Many);
        assert_eq!(verdict.problem.who.pid, 100);
        assert_eq!(
            (verdict.root.who.pid, verdict.root.class),
            (200, Class::LongRunning)
        );
        assert!(
            verdict
                .sentence
                .contains("in 100 waits of 3.90 ms on average in load_orders"),
            "{}",
            verdict.sentence
        );
    }
}

/// A turn that took far longer than the others is what was slow, and not the asking before and after it: in
/// one of its turns a program reads from the disk forty times.
#[test]
fn a_turn_that_stands_out() {
    let mut text = CONNECTION.to_owned();
    text.extend((0..20).map(|turn| ask(2 + 5 * turn)));
    for read in 0..40 {
        let at = 102 + 5 * read;
        text += &format!(
            "{at}ms cpu0 switch app -> idle uninterruptible read object=file:42 stack=read;rebuild \
             kstack=io_schedule;wait
            {}ms cpu0 wake idle -> app in=interrupt
            {}.1ms cpu0 switch idle -> app\n",
            at + 4,
            at + 4
        );
    }
    text.extend((0..20).map(|turn| ask(302 + 5 * turn)));
    text += "403ms cpu0 switch app -> idle sleeping nanosleep arg=400ms stack=nanosleep\nend 800ms";
    let recording = record(&text);
    let scope = Scope {
        command_tid: Some(100),
        ..Scope::default()
    };
    let first = &problem::find(&recording.evidence(), scope)[0];
    assert_eq!(first.kind, ProblemKind::Wait);
    assert_eq!(first.window, 102_000_000..301_000_000);
}

/// A server waits for the next request in between, however short: none of it is its problem.
#[test]
fn a_server_that_is_asked_again_and_again_is_not_held_up() {
    let mut text = CONNECTION.to_owned();
    for turn in 0..100 {
        let at = 2 + 5 * turn;
        text += &format!(
            "{at}ms cpu0 wake app -> db sendto stack=send;load_orders
            {at}.1ms cpu1 switch idle -> db
            {at}.3ms cpu1 switch db -> idle sleeping recvfrom object=inet:1 stack=read;next_query\n"
        );
    }
    text += "503ms cpu0 switch app -> idle sleeping nanosleep arg=400ms stack=nanosleep\nend 800ms";
    let recording = record(&text);
    let found = problem::find(&recording.evidence(), Scope::default());
    let many = found
        .iter()
        .filter(|problem| problem.kind == ProblemKind::Many);
    assert_eq!(many.count(), 0);
}

/// Of very many small waits the first are explained, and the verdict has how long all of them took: the loop is
/// one problem, however long it is.
#[test]
fn very_many_waits_are_one_problem() {
    const WAITS: u64 = 20_500;
    let mut text = CONNECTION.to_owned();
    for turn in 0..WAITS {
        let at = 2_000 + 1_000 * turn;
        text += &format!(
            "{at}us transfer app sent 20 object=inet:2 peer=inet:1
            {at}us cpu0 wake app -> db sendto stack=send;load_orders
            {}us cpu0 switch app -> idle sleeping recvfrom object=inet:2 stack=read;load_orders
            {}us cpu1 switch idle -> db
            {}us transfer db received 20 object=inet:1 peer=inet:2
            {}us transfer db sent 9 object=inet:1 peer=inet:2
            {}us cpu1 wake db -> app sendto stack=send;run_query
            {}us cpu0 switch idle -> app
            {}us cpu1 switch db -> idle sleeping recvfrom object=inet:1 stack=read;next_query
            {}us transfer app received 9 object=inet:2 peer=inet:1\n",
            at + 2,
            at + 3,
            at + 4,
            at + 900,
            at + 900,
            at + 902,
            at + 904,
            at + 905
        );
    }
    let end = 2_000 + 1_000 * WAITS;
    text += &format!(
        "{end}us cpu0 switch app -> idle sleeping nanosleep arg=400ms stack=nanosleep\nend 21s"
    );
    let recording = record(&text);
    let evidence = recording.evidence();
    let found = problem::find(&evidence, Scope::default());
    let many = found.iter().filter(|one| one.kind == ProblemKind::Many);
    assert_eq!(many.count(), 1, "{found:?}");
    let first = found.iter().find(|one| one.kind == ProblemKind::Many);
    let first = first.expect("the loop");
    let verdict = diagnose(&evidence, first, setting(false, &Answers::default()));
    let all = verdict
        .problem
        .all_ns
        .expect("that it is explained in part");
    assert_eq!(all, first.duration());
    assert!(
        verdict.problem.duration_ns < all,
        "{}",
        verdict.problem.duration_ns
    );
    let blamed: u64 = verdict.blame.iter().map(|row| row.ns).sum();
    assert_eq!(blamed, verdict.problem.duration_ns);
    let says = format!("in {WAITS} waits");
    assert!(verdict.sentence.contains(&says), "{}", verdict.sentence);
}
