//! Threads that only pass on what many bring: whose work came last before a wait ended.

use crate::support::*;
use hangdog_diagnose::{Class, Verdict};

/// A client whose main thread waits for the answer to a request from 2 ms to 900.3 ms. Its engine reads the only connection to
/// the server, by which its thread beat asks something every 50 ms too: the server's thread fast answers that, `worker` the request.
fn scene(worker: &str) -> String {
    let engine = "sleeping epoll_wait object=epoll:1 stack=epoll_wait;engine_loop";
    let fast = "sleeping futex object=futex:0x40 op=wait stack=pthread_cond_wait;take_task";
    let mut text = format!(
        "process client 100
        thread main client 100\nthread engine client 101\nthread beat client 102
        process server 200
        thread listen server 200\nthread worker server 201\nthread fast server 202
        0 socket server object=inet:3 local=127.0.0.1:80
        0 open server object=inet:3 kind=listener
        0 socket client object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5001
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        0 cpu65535 switch listen -> idle sleeping epoll_wait object=epoll:2 stack=epoll_wait;listen_loop
        0 cpu65535 switch fast -> idle {fast}
        0 cpu65535 switch engine -> idle {engine}
        0 cpu65535 switch beat -> idle sleeping clock_nanosleep arg=50ms stack=clock_nanosleep;beat
        1ms cpu1 switch worker -> idle sleeping futex object=futex:0x50 op=wait stack=pthread_cond_wait;take_task
        1.5ms cpu0 wake main -> worker write in=softirq vector=3 object=inet:1
        1.5ms transfer main sent 40 object=inet:1
        1.6ms cpu1 switch idle -> worker
        1.6ms transfer worker received 40 object=inet:2
        2ms cpu0 switch main -> idle sleeping futex object=futex:0x10 op=wait stack=pthread_cond_wait;await_reply;checkout\n"
    );
    let beats = |at: u64| {
        format!(
            "{at}.000ms cpu2 wake idle -> beat in=timer
            {at}.010ms cpu2 switch idle -> beat
            {at}.020ms cpu2 wake beat -> fast write in=softirq vector=3 object=inet:1
            {at}.020ms transfer beat sent 10 object=inet:1
            {at}.030ms cpu3 switch idle -> fast
            {at}.030ms transfer fast received 10 object=inet:2
            {at}.040ms cpu2 switch beat -> idle sleeping futex object=futex:0x20 op=wait stack=pthread_cond_wait;await_reply;beat
            {at}.100ms cpu3 wake fast -> engine write in=softirq vector=3 object=inet:2
            {at}.100ms transfer fast sent 10 object=inet:2
            {at}.110ms cpu4 switch idle -> engine
            {at}.110ms transfer engine received 10 object=inet:1
            {at}.120ms cpu3 switch fast -> idle {fast}
            {at}.150ms cpu4 wake engine -> beat futex object=futex:0x20
            {at}.160ms cpu2 switch idle -> beat
            {at}.170ms cpu4 switch engine -> idle {engine}
            {at}.200ms cpu2 switch beat -> idle sleeping clock_nanosleep arg=50ms stack=clock_nanosleep;beat\n"
        )
    };
    let mut lines: Vec<String> = vec![worker.into()];
    lines.extend((50..900).step_by(50).map(beats));
    text += &lines.concat();
    text += "900.1ms cpu1 wake worker -> engine write in=softirq vector=3 object=inet:2
        900.1ms transfer worker sent 10 object=inet:2
        900.15ms cpu4 switch idle -> engine
        900.15ms transfer engine received 10 object=inet:1
        900.2ms cpu4 wake engine -> main futex object=futex:0x10
        900.3ms cpu0 switch idle -> main
        end 1s";
    text
}

fn root(verdict: &Verdict) -> (u32, Class, &str) {
    let function = verdict.root.function.as_deref().unwrap_or_default();
    (verdict.root.who.tid, verdict.root.class, function)
}

/// The engine and the server's other thread had many turns meanwhile; who worked on the request is found from its answer
/// backwards.
#[test]
fn who_sent_the_answer_had_the_time() {
    let text = scene(
        "2.1ms cpu1 switch worker -> idle sleeping clock_nanosleep arg=898ms stack=clock_nanosleep;price_basket;take_task\n",
    );
    let text = text.replace(
        "900.1ms cpu1 wake worker",
        "900ms cpu1 wake idle -> worker in=timer
        900.05ms cpu1 switch idle -> worker
        900.1ms cpu1 wake worker",
    );
    let verdict = explain(&record(&text), "main", 2_000..900_300);
    let expected = (201, Class::LongWait, "price_basket");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
    assert!(verdict.root.share > 0.95, "{}", verdict.root.share);
    assert!(!verdict.sentence.contains("beat"), "{}", verdict.sentence);
}

/// The same of one that ran all the time.
#[test]
fn who_computed_the_answer_had_the_time() {
    let text = scene("") + "\n";
    let text = text.replace(
        "end 1s",
        &format!(
            "{}end 1s",
            samples(1, "worker", 3..899, "price_basket;take_task")
        ),
    );
    let verdict = explain(&record(&text), "main", 2_000..900_300);
    let expected = (201, Class::LongRunning, "price_basket");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
}

/// The answer has not come by the end of the recording. The server's thread that answers what others ask by the connection does not
/// work on it; the only other one that is at something does, since before that.
#[test]
fn who_answers_others_does_not_work_for_this_one() {
    let text = scene(
        "2.1ms cpu1 switch worker -> idle sleeping clock_nanosleep arg=9s stack=clock_nanosleep;price_basket;take_task\n",
    );
    let (text, _) = text.split_once("900.1ms").expect("an answer");
    let text = text.replace(
        "futex object=futex:0x10 op=wait stack=pthread_cond_wait;await_reply;checkout",
        "epoll_wait object=epoll:9 stack=epoll_wait;_UnaryUnaryMultiCallable._blocking;checkout",
    );
    let recording = record(&format!("{text}end 880ms"));
    let found = problems(&recording, None);
    assert_eq!(found[0].0, "main", "{found:?}");
    let verdict = explain(&recording, "main", 3_000..880_000);
    let expected = (201, Class::LongWait, "price_basket");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
}

/// A driver's thread io passes a client's question to its session, the session's to the browser, and both answers back: it is on the
/// way twice, and the browser had the time.
#[test]
fn one_that_passes_on_question_and_answer() {
    let io = "sleeping epoll_wait object=epoll:1 stack=epoll_wait;io_loop";
    let mut text = format!(
        "process client 100\nthread client client 100
        process driver 200\nthread main driver 200\nthread io driver 201\nthread session driver 202
        process browser 300\nthread browser browser 300
        0 socket driver object=inet:3 local=127.0.0.1:80
        0 open driver object=inet:3 kind=listener
        0 socket client object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:80
        0 socket driver object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5001
        0 socket driver object=inet:11 local=127.0.0.1:6001 remote=127.0.0.1:90
        0 socket browser object=inet:12 local=127.0.0.1:90 remote=127.0.0.1:6001
        0 cpu0 switch idle -> client
        0 cpu65535 switch main -> idle sleeping futex object=futex:0x10 op=wait stack=pthread_cond_wait;main_loop
        0 cpu65535 switch io -> idle {io}
        0 cpu65535 switch session -> idle sleeping futex object=futex:0x20 op=wait stack=pthread_cond_wait;next_command
        0 cpu65535 switch browser -> idle sleeping epoll_wait object=epoll:2 stack=epoll_wait;browser_loop
        1ms cpu0 wake client -> io write in=softirq vector=3 object=inet:1
        1.01ms cpu1 switch idle -> io
        1.1ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;find_element
        1.2ms cpu1 wake io -> session futex object=futex:0x20
        1.21ms cpu2 switch idle -> session
        1.3ms cpu2 switch session -> idle sleeping futex object=futex:0x30 op=wait stack=pthread_cond_wait;await_reply;find
        1.4ms cpu1 wake io -> browser write in=softirq vector=3 object=inet:11
        1.41ms cpu3 switch idle -> browser
        1.5ms cpu1 switch io -> idle {io}
        900ms cpu3 wake browser -> io write in=softirq vector=3 object=inet:12
        900.01ms cpu1 switch idle -> io
        900.1ms cpu1 wake io -> session futex object=futex:0x30
        900.11ms cpu2 switch idle -> session
        900.15ms cpu1 switch io -> idle {io}
        900.2ms cpu2 wake session -> main futex object=futex:0x10
        900.21ms cpu4 switch idle -> main
        900.3ms cpu4 wake main -> io write object=eventfd:7
        900.31ms cpu1 switch idle -> io
        900.4ms cpu1 wake io -> client write in=softirq vector=3 object=inet:2
        900.41ms cpu0 switch idle -> client\n"
    );
    text += &samples(3, "browser", 2..899, "recount;browser_loop");
    let verdict = explain(&record(&(text + "end 1s")), "client", 1_100..900_400);
    let expected = (300, Class::LongRunning, "recount");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
}

/// All of that began before the recording: times show what the driver asked as its thread began to wait.
#[test]
fn what_was_asked_as_the_wait_began() {
    // What is deep in work is not at home.
    let deep = (0..12)
        .map(|at| format!("f{at}"))
        .collect::<Vec<_>>()
        .join(";");
    let found = |others: &str| {
        let recording = record(&format!(
            "process client 100\nthread client client 100
            process driver 200\nthread main driver 200\nthread session driver 202
            process browser 300\nthread browser browser 300
            process log 400\nthread log log 400
            0 socket driver object=inet:3 local=127.0.0.1:80
            0 open driver object=inet:3 kind=listener
            0 socket browser object=inet:5 local=127.0.0.1:90\n0 open browser object=inet:5 kind=listener
            0 socket log object=inet:6 local=127.0.0.1:91\n0 open log object=inet:6 kind=listener
            0 socket client object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:80
            0 socket driver object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5001
            0 socket driver object=inet:11 local=127.0.0.1:6001 remote=127.0.0.1:90
            0 socket browser object=inet:12 local=127.0.0.1:90 remote=127.0.0.1:6001
            0 socket driver object=inet:13 local=127.0.0.1:6002 remote=127.0.0.1:91
            0 socket log object=inet:14 local=127.0.0.1:91 remote=127.0.0.1:6002
            0 open client object=inet:1 last=sent ago=2s
            0 open driver object=inet:2 last=received ago=2s
            0 open driver object=inet:11 last=sent ago=2s
            0 open browser object=inet:12 last=received ago=2s
            {others}
            0 away client 2s\n0 away session 2s\n0 away main 2s
            0 cpu65535 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;find_element
            0 cpu65535 switch main -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;main_loop
            0 cpu65535 switch session -> idle sleeping futex object=futex:0x30 op=wait stack=pthread_cond_wait;await_reply;{deep};find
            0 cpu65535 switch log -> idle sleeping epoll_wait object=epoll:3 stack=epoll_wait;log_loop
            0 cpu3 switch idle -> browser\n{}end 1s",
            samples(3, "browser", 1..999, "recount;browser_loop")
        ));
        let verdict = explain(&recording, "client", 0..1_000_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (root, sentence) = found(
        "0 open driver object=inet:13 last=sent ago=7s
        0 open log object=inet:14 last=received ago=7s",
    );
    assert_eq!(root, 300, "{sentence}");
    // Of two that were asked then it is not known which.
    let (root, sentence) = found(
        "0 open driver object=inet:13 last=sent ago=2s
        0 open log object=inet:14 last=received ago=2s",
    );
    assert_ne!(root, 400, "{sentence}");
}
