//! Event loops and streams: what goes round while something is owed, and what comes in pieces.

use crate::support::*;
use hangdog_diagnose::problem::{self, Scope};
use hangdog_diagnose::{Class, Verdict};

/// An event loop waits for whatever comes.
const HOME: &str = "sleeping epoll_wait object=epoll:5 stack=epoll_wait;loop";

/// A server sends a piece every 50 ms and computes for half a second now and then. The client's waits for a
/// piece are not one wait, and the long ones of them are what held it up.
#[test]
fn a_stall_in_a_stream_stands_out() {
    let mut text = "
        process client 100
        thread client client 100
        process server 200
        thread server server 200
        0 socket client object=unix:1 peer=unix:2 remote=/run/http
        0 socket server object=unix:2 peer=unix:1 local=/run/http
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server\n"
        .to_owned();
    let mut at = 0;
    for turn in 0..24 {
        let stalls = turn % 8 == 7;
        text += &format!(
            "{at}.2ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;next_tick\n"
        );
        let woken = at + if stalls { 10 } else { 50 };
        text += &format!(
            "{at}.3ms cpu1 switch server -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;loop
            {woken}ms cpu1 wake idle -> server in=timer
            {woken}.1ms cpu1 switch idle -> server\n"
        );
        at += if stalls { 500 } else { 51 };
        text += &format!(
            "{at}ms transfer server sent 20 object=unix:2 peer=unix:1
            {at}ms cpu1 wake server -> client sendto stack=send;tick
            {at}.1ms cpu0 switch idle -> client
            {at}.15ms transfer client received 20 object=unix:1 peer=unix:2\n"
        );
    }
    let recording = record(&format!("{text}end {}ms", at + 100));
    let found = problems(&recording, None);
    let lengths: Vec<u64> = found[..3]
        .iter()
        .map(|(_, window)| (window.end - window.start) / 1000)
        .collect();
    assert_eq!(lengths, [499, 499, 499], "{found:?}");
    let (_, window) = found[0].clone();
    let verdict = explain(&recording, "client", window);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (200, Class::LongRunning)
    );
}

/// A proxy had asked `app` for its client before the recording began, and is woken by another client meanwhile, for
/// nothing: it is still `app` that it waits for.
#[test]
fn a_loop_that_went_round_waits_on_for_whom_it_asked() {
    let text = format!(
        "process client 100
        thread client client 100
        process proxy 200
        thread proxy proxy 200
        process app 300
        thread app app 300
        process other 400
        thread other other 400
        0 socket client object=unix:1 peer=unix:2 remote=/run/http
        0 socket proxy object=unix:2 peer=unix:1 local=/run/http
        0 socket proxy object=unix:3 peer=unix:4 remote=/run/app
        0 open proxy object=unix:3 last=sent
        0 socket app object=unix:4 peer=unix:3 local=/run/app
        0 socket other object=unix:5 peer=unix:6 remote=/run/http
        0 socket proxy object=unix:6 peer=unix:5 local=/run/http
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> proxy
        0 cpu2 switch idle -> app
        0 cpu3 switch idle -> other
        1ms cpu1 switch proxy -> idle {HOME}
        1ms cpu3 switch other -> idle sleeping nanosleep arg=500ms stack=nanosleep;main
        1ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;ask
        {samples}
        501ms cpu3 wake idle -> other in=timer
        501.1ms cpu3 switch idle -> other
        502.2ms transfer other sent 4 object=unix:5 peer=unix:6
        502.2ms cpu3 wake other -> proxy sendto stack=send;ping
        502.3ms cpu1 switch idle -> proxy
        502.4ms transfer proxy received 4 object=unix:6 peer=unix:5
        502.5ms transfer proxy sent 4 object=unix:6 peer=unix:5
        502.6ms cpu1 switch proxy -> idle {HOME}
        503ms cpu3 switch other -> idle sleeping nanosleep arg=5s stack=nanosleep;main
        {later}
        1s transfer app sent 20 object=unix:4 peer=unix:3
        1s cpu2 wake app -> proxy sendto stack=send;answer
        1000.1ms cpu1 switch idle -> proxy
        1000.2ms transfer proxy received 20 object=unix:3 peer=unix:4
        1000.3ms transfer proxy sent 20 object=unix:2 peer=unix:1
        1000.3ms cpu1 wake proxy -> client sendto stack=send;answer
        1000.4ms cpu0 switch idle -> client
        1000.5ms cpu1 switch proxy -> idle {HOME}
        1001ms cpu2 switch app -> idle {HOME}
        end 1100ms",
        samples = samples(2, "app", 2..501, "report;main"),
        later = samples(2, "app", 504..999, "report;main"),
    );
    let verdict = explain(&record(&text), "client", 1_000..1_000_300);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
    let run = of_thread(&verdict, 300, "run");
    assert!(run > 980_000, "{run} µs of {:?}", verdict.blame_by_thread);
}

/// A program asks a server by a connection that it makes in the recording, tells another something, and is woken by
/// that: its answer comes later, by the same connection, and so it was still open.
#[test]
fn a_connection_that_is_used_later_is_open() {
    let text = format!(
        "process page 100
        thread page page 100
        process app 300
        thread app app 300
        process other 400
        thread other other 400
        0 socket page object=unix:5 peer=unix:6
        0 socket other object=unix:6 peer=unix:5
        0 cpu0 switch idle -> page
        0 cpu2 switch idle -> app
        0 cpu3 switch idle -> other
        1ms cpu3 switch other -> idle {HOME}
        2ms socket page object=unix:3 peer=unix:4 remote=/run/app
        2ms socket app object=unix:4 peer=unix:3 local=/run/app
        3ms transfer page sent 20 object=unix:3 peer=unix:4
        3.1ms transfer app received 20 object=unix:4 peer=unix:3
        4ms transfer page sent 4 object=unix:5 peer=unix:6
        5ms cpu0 switch page -> idle {HOME}
        {first}
        500ms cpu3 wake idle -> other in=timer
        500.1ms cpu3 switch idle -> other
        500.2ms transfer other sent 4 object=unix:6 peer=unix:5
        500.2ms cpu3 wake other -> page sendto stack=send;ping
        500.3ms cpu0 switch idle -> page
        500.4ms transfer page received 4 object=unix:5 peer=unix:6
        500.45ms transfer page sent 4 object=unix:5 peer=unix:6
        500.5ms cpu0 switch page -> idle {HOME}
        500.6ms cpu3 switch other -> idle {HOME}
        {second}
        1s transfer app sent 20 object=unix:4 peer=unix:3
        1s cpu2 wake app -> page sendto stack=send;answer
        1000.1ms cpu0 switch idle -> page
        1000.2ms transfer page received 20 object=unix:3 peer=unix:4
        1001ms cpu2 switch app -> idle {HOME}
        end 1100ms",
        first = samples(2, "app", 6..500, "report;main"),
        second = samples(2, "app", 501..999, "report;main"),
    );
    let verdict = explain(&record(&text), "page", 5_000..1_000_000);
    let run = of_thread(&verdict, 300, "run");
    assert!(run > 980_000, "{run} µs of {:?}", verdict.blame_by_thread);
}

/// A server asked before the recording, by one of the connections that it has open: of those at their other ends
/// one alone is at work.
#[test]
fn of_several_servers_the_one_at_work() {
    let text = format!(
        "process client 100
        thread client client 100
        process login 200
        thread login login 200
        process anvil 300
        thread anvil anvil 300
        process auth 400
        thread auth auth 400
        0 socket client object=unix:1 peer=unix:2 remote=/run/imap
        0 socket login object=unix:2 peer=unix:1 local=/run/imap
        0 socket login object=unix:3 peer=unix:4 remote=/run/anvil
        0 socket anvil object=unix:4 peer=unix:3 local=/run/anvil
        0 socket login object=unix:5 peer=unix:6 remote=/run/auth
        0 socket auth object=unix:6 peer=unix:5 local=/run/auth
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> login
        0 cpu2 switch idle -> anvil
        0 cpu3 switch idle -> auth
        1ms cpu2 switch anvil -> idle {HOME}
        1ms cpu1 switch login -> idle {HOME}
        1ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;login
        {}
        end 1s",
        samples(3, "auth", 1..1000, "hash_password;main"),
    );
    let verdict = explain(&record(&text), "client", 1_000..1_000_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (400, Class::LongRunning),
        "{}",
        verdict.sentence
    );
}

/// What a client of a runtime's program waits for is not known where all threads of that have nothing to run; that
/// it has none is.
#[test]
fn a_server_without_work_is_said_to_be_idle() {
    let text = "
        process client 100
        thread client client 100
        process broker 200
        thread broker broker 200
        0 socket client object=unix:1 peer=unix:2 remote=/run/http
        0 socket broker object=unix:2 peer=unix:1 local=/run/http
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> broker
        10ms transfer client sent 20 object=unix:1 peer=unix:2
        10.2ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;publish
        10.3ms transfer broker received 20 object=unix:2 peer=unix:1
        10.4ms cpu1 switch broker -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;check_io;erts_schedule
        1s cpu1 wake idle -> broker in=timer
        1000.1ms cpu1 switch idle -> broker
        1000.2ms transfer broker sent 20 object=unix:2 peer=unix:1
        1000.2ms cpu1 wake broker -> client sendto stack=send;confirm
        1000.3ms cpu0 switch idle -> client
        end 1100ms";
    let verdict = explain(&record(text), "client", 10_200..1_000_200);
    assert_eq!(verdict.root.who.tid, 200);
    assert!(
        verdict.sentence.contains("did not answer, though idle in"),
        "{}",
        verdict.sentence
    );
    assert!(
        verdict.root.confidence < 0.85,
        "{}",
        verdict.root.confidence
    );
}

const LINK: &str = "
    process app 100
    thread app app 100
    process server 200
    thread server server 200
    0 socket app object=unix:1 peer=unix:2 remote=/run/server
    0 socket server object=unix:2 peer=unix:1 local=/run/server
    0 cpu0 switch idle -> app
    0 cpu1 switch idle -> server\n";

/// A process that was stopped for a while and has been let go on since is not why another, which has waited all
/// along, still waits.
#[test]
fn who_goes_on_again_is_not_why_another_waits_on() {
    let verdict = |end: &str| -> Verdict {
        let text = format!(
            "{LINK}1ms cpu0 switch app -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;main
            100ms cpu1 switch server -> idle stopped poll stack=poll;loop
            {end}
            end 1s"
        );
        explain(&record(&text), "app", 1_000..1_000_000)
    };
    assert_eq!(verdict("").root.who.tid, 200);
    let goes_on = "900ms cpu2 wake idle -> server kill arg=18
        900.1ms cpu1 switch idle -> server
        901ms cpu1 switch server -> idle sleeping poll object=unix:2 stack=poll;loop";
    assert_eq!(verdict(goes_on).root.who.tid, 100);
}

/// A server that is stopped is missed by whoever sends it something.
#[test]
fn a_stopped_server_that_was_sent_something() {
    let felt = |sends: &str| {
        let text = format!(
            "{LINK}100ms cpu1 switch server -> idle stopped poll stack=poll;loop
            {sends}
            501ms cpu0 switch app -> idle sleeping nanosleep arg=9s stack=nanosleep;main
            900ms cpu2 wake idle -> server kill arg=18
            900.1ms cpu1 switch idle -> server
            end 1s"
        );
        let recording = record(&text);
        let evidence = recording.evidence();
        let found = problem::find_of(&evidence, Scope::default(), |_| true);
        let of_server = |problem: &&problem::Problem| evidence.name(problem.thread) == "server";
        found.iter().find(of_server).map(|problem| problem.felt)
    };
    let (alone, asked) = (
        felt(""),
        felt("500ms transfer app sent 20 object=unix:1 peer=unix:2"),
    );
    assert!(asked > alone, "{asked:?} {alone:?}");
}

/// What a terminal's input ends is no wait for the child that prints there, though that is looked after, too.
#[test]
fn who_shows_what_its_child_prints_waits_for_nothing() {
    let text = "
        process script 100
        thread script script 100
        process kworker 300
        thread kworker kworker 300
        process less 200
        0 cpu0 switch idle -> script
        100ms fork script -> less less 200
        100ms cpu1 switch idle -> less
        101ms cpu0 switch script -> idle sleeping poll stack=poll;main
        3s cpu2 switch idle -> kworker
        3001ms cpu2 wake kworker -> script kstack=flush_to_ldisc;process_one_work
        3001.1ms cpu0 switch idle -> script
        3002ms cpu1 switch less -> idle dead
        3003ms cpu0 switch script -> idle dead
        end 3100ms";
    let found = problems(&record(text), None);
    let waits = |(name, window): &(String, std::ops::Range<u64>)| {
        name == "script" && window.end - window.start > 2_000_000
    };
    assert!(!found.iter().any(waits), "{found:?}");
}
