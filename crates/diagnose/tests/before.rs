//! What began before the recording: how long it had lasted by then tells who can have got what was asked.

use crate::support::*;
use hangdog_diagnose::Class;

/// Two programs that waited when the recording began, and for how long each had done so. One had sent the
/// other a datagram.
fn asked_by_datagram(client_age: &str, server_age: &str) -> Recording {
    record(&format!(
        "process client 100
        thread client client 100
        process server 200
        thread server server 200
        0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:53
        0 socket server object=inet:3 local=127.0.0.1:53
        0 open client object=inet:1 last=sent
        0 open server object=inet:3
        10us away client {client_age}
        10us away server {server_age}
        10us cpu65535 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;resolve;main
        10us cpu65535 switch server -> idle sleeping poll stack=poll;serve;main
        end 3s"
    ))
}

/// A datagram wakes whoever waits for it. A server that has slept since before it was sent has not got it:
/// the network has lost it. One that was woken since has it.
#[test]
fn a_datagram_that_woke_nobody_was_lost() {
    let lost = explain(&asked_by_datagram("2s", "40s"), "client", 0..3_000_000);
    assert_eq!(lost.root.who.tid, 100, "{}", lost.sentence);
    assert_eq!(of_kind(&lost, "network"), 3_000_000, "{}", lost.sentence);
    let taken = explain(&asked_by_datagram("2s", "1900ms"), "client", 0..3_000_000);
    assert_eq!(taken.root.who.tid, 200, "{}", taken.sentence);
}

/// A step of the path says how long its thread had waited before; one that began later says nothing.
#[test]
fn a_path_tells_since_when() {
    let verdict = explain(&asked_by_datagram("2s", "1900ms"), "client", 0..3_000_000);
    let before: Vec<u64> = verdict.path.iter().map(|step| step.before_ns).collect();
    assert_eq!(before, [1_999_990_000, 1_899_990_000]);
    let later = explain(&asked_by_datagram("2s", "1900ms"), "client", 5..3_000_000);
    assert_eq!(later.path[0].before_ns, 0);
}

/// A program waits for a condition all along. If it did so for nearly all of its life, that is what it is
/// for; if it had lived for long and done other things, something keeps it.
#[test]
fn who_did_other_things_before_is_kept() {
    let owed = |age: &str| {
        let recording = record(&format!(
            "process app 100
            thread app app 100
            process tool 200
            thread tool tool 200
            10us away app {age} lived=60s
            10us cpu65535 switch app -> idle sleeping futex op=wait object=futex:0x1 stack=pthread_cond_wait;main
            1ms cpu0 switch idle -> tool
            end 3s"
        ));
        let found = hangdog_diagnose::problem::find(
            &recording.evidence(),
            hangdog_diagnose::problem::Scope::default(),
        );
        let app = recording.t("app");
        let own = found.iter().find(|problem| problem.thread == app);
        own.map_or(0.0, |problem| problem.owed)
    };
    assert!(
        owed("4s") > 2.0 * owed("59s"),
        "{} {}",
        owed("4s"),
        owed("59s")
    );
}

/// A thread dumps core into a pipe, and the reader makes room again and again; then the recording ends. The
/// reader is whom it waits for to the end.
#[test]
fn a_call_that_goes_on_in_the_kernel_waits_for_who_brings_it_on() {
    let mut text = "process app 100
        thread app app 100
        process xz 200
        thread xz xz 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> xz\n"
        .to_owned();
    let wait = "sleeping tgkill stack=raise;abort;main kstack=anon_pipe_write;dump_user_range";
    for turn in 0..20 {
        let at = 1 + turn * 5;
        text += &format!(
            "{at}ms cpu0 switch app -> idle {wait}
            {}us cpu1 wake xz -> app read object=pipe:5 stack=read;pack;main
            {}us cpu0 switch idle -> app\n",
            at * 1000 + 4900,
            at * 1000 + 4950,
        );
    }
    text += &format!("101ms cpu0 switch app -> idle {wait}\nend 110ms");
    let verdict = explain(&record(&text), "app", 1_000..110_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(
        verdict.root.class,
        Class::LongRunning,
        "{}",
        verdict.sentence
    );
}

/// A client polls, and looks when a timeout ends that; which of its descriptors counts is known only the
/// second time. That is one wait, not two.
#[test]
fn who_looks_and_polls_on_still_waits() {
    let recording = record(
        "process client 100
        thread client client 100
        process server 200
        thread server server 200
        0 socket client object=unix:1 peer=unix:2 peer-process=server
        0 socket server object=unix:2 peer=unix:1 peer-process=client
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server
        1ms cpu1 switch server -> idle stopped stack=poll;serve;main
        2ms transfer client sent 20 object=unix:1 peer=unix:2
        2100us cpu0 switch client -> idle sleeping poll stack=poll;send_with_reply;main
        1500ms cpu0 wake idle -> client in=timer
        1500100us cpu0 switch idle -> client
        1500200us cpu0 switch client -> idle sleeping poll object=unix:1 stack=poll;send_with_reply;main
        end 4s",
    );
    let first = problems(&recording, None).swap_remove(0);
    assert_eq!(first, ("client".to_owned(), 2_100..4_000_000));
}

const DISPLAY: &str =
    "0 socket app object=unix:1 peer=unix:2 peer-process=Xvfb remote=@/tmp/.X11-unix/X1
    0 socket Xvfb object=unix:2 peer=unix:1 peer-process=app local=@/tmp/.X11-unix/X1
    0 open app object=unix:1";

/// How much is felt of what `wait` is a part of: the main thread of a program computes for a while and then
/// waits, and another thread of it sleeps.
fn felt(display: &str, wait: &str) -> f64 {
    let recording = record(&format!(
        "process Xvfb 50
        thread Xvfb Xvfb 50
        process app 100
        thread app app 100
        thread loader app 101
        {display}
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> loader
        1ms cpu1 switch loader -> idle sleeping nanosleep arg=9s stack=nanosleep;load
        500ms cpu0 switch app -> idle sleeping {wait}
        end 4s"
    ));
    let found = hangdog_diagnose::problem::find(
        &recording.evidence(),
        hangdog_diagnose::problem::Scope::default(),
    );
    let app = recording.t("app");
    let mut waits =
        (found.iter()).filter(|problem| problem.thread == app && problem.window.end > 500_000_000);
    waits.next().map_or(0.0, |problem| problem.felt)
}

/// The main thread of a program with a window waits for another thread, which sleeps: the window does not
/// answer meanwhile. Without a window nobody is known to be kept.
#[test]
fn a_window_must_not_wait_for_a_thread() {
    let wait = "futex op=wait object=futex:0x1 stack=pthread_cond_wait;on_click;main";
    let (with, without) = (felt(DISPLAY, wait), felt("", wait));
    assert!(with > 2.0 * without, "{with} {without}");
}

/// A window that handles an event and waits for descriptors meanwhile does not answer; one whose event loop
/// waits for them does, also where that runs within the handling of an event.
#[test]
fn a_window_that_handles_an_event_does_not_answer() {
    let poll = |stack: &str| felt(DISPLAY, &format!("poll object=eventfd:9 stack={stack}"));
    let loops = "QEventLoop::exec;QCoreApplication::exec;main";
    let handles = poll(&format!("poll;pack;QApplication::notify;{loops}"));
    assert!(handles > 0.3, "{handles}");
    for idle in [
        format!("poll;{loops}"),
        format!("poll;QDialog::exec;ask;QApplication::notify;{loops}"),
    ] {
        let idle_felt = poll(&idle);
        assert!(idle_felt < handles / 2.0, "{idle}: {idle_felt}");
    }
}
