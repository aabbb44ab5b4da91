//! Servers that serve many at once: what they wait for on behalf of one client, while others keep them busy.

use crate::support::*;
use hangdog_diagnose::{Class, Verdict};

const HOME: &str = "sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop";

/// A client, another that sends a request every 20 ms, a server, and two that it asks: `right` by inet:11, `wrong` by inet:13.
fn scene(server_threads: &str) -> String {
    format!(
        "process client 100\nthread client client 100
        process other 150\nthread other other 150
        process server 200\nthread server server 200\n{server_threads}
        process right 300\nthread right right 300
        process wrong 400\nthread wrong wrong 400
        0 socket server object=inet:3 local=127.0.0.1:80
        0 open server object=inet:3 kind=listener
        0 socket right object=inet:5 local=127.0.0.1:90
        0 open right object=inet:5 kind=listener
        0 socket wrong object=inet:6 local=127.0.0.1:91
        0 open wrong object=inet:6 kind=listener
        0 socket client object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5001
        0 socket other object=inet:7 local=127.0.0.1:5002 remote=127.0.0.1:80
        0 socket server object=inet:8 local=127.0.0.1:80 remote=127.0.0.1:5002
        0 socket server object=inet:11 local=127.0.0.1:6001 remote=127.0.0.1:90
        0 socket right object=inet:12 local=127.0.0.1:90 remote=127.0.0.1:6001
        0 socket server object=inet:13 local=127.0.0.1:6002 remote=127.0.0.1:91
        0 socket wrong object=inet:14 local=127.0.0.1:91 remote=127.0.0.1:6002\n"
    )
}

/// One end of what is sent: a thread, the CPU that it runs on, and the socket by which it sends or receives.
type End<'a> = (&'a str, u32, &'a str);

/// A thread sends to one that waits, which runs then, `at` so many us.
fn message(at: u64, (from, own_cpu, own): End<'_>, (to, other_cpu, other): End<'_>) -> String {
    let call = match own.starts_with("inet") {
        true => "write in=softirq vector=3",
        false => "sendmsg",
    };
    format!(
        "{at}us cpu{own_cpu} wake {from} -> {to} {call} object={own}
        {at}us cpu{other_cpu} switch idle -> {to}
        {}us transfer {from} sent 40 object={own}
        {}us transfer {to} received 40 object={other}\n",
        at + 10,
        at + 20
    )
}

const CLIENT: End<'_> = ("client", 0, "inet:1");

/// A server's end of the connection with the client, from one of its threads.
fn to_client(server: &str) -> End<'_> {
    (server, if server == "server" { 1 } else { 5 }, "inet:2")
}

/// The client asks a server's thread, which waits, at 2 ms, and waits for the answer from 2.1 ms on.
fn asks(server: &str) -> String {
    let waits =
        "2100us cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;main\n";
    message(2_000, CLIENT, to_client(server)) + waits
}

/// The server answers at a time in us, and waits for the next request.
fn answers(at: u64) -> String {
    let rests = format!("{}us cpu1 switch server -> idle {HOME}\nend 1s", at + 100);
    message(at, to_client("server"), CLIENT) + &rests
}

/// What the other client has the server do from 20 ms to 980 ms.
fn turns(server: &str) -> String {
    let (other, server) = (("other", 2, "inet:7"), (server, 1, "inet:8"));
    let turn = |ms: u64| {
        let at = ms * 1_000;
        let mut text = message(at, other, server);
        text += &format!(
            "{}us cpu2 switch other -> idle sleeping recvfrom object=inet:7 stack=recv;ask\n",
            at + 100
        );
        text += &message(at + 200, server, other);
        text += &format!(
            "{}us cpu1 switch {} -> idle {HOME}
            {}us cpu2 switch other -> idle sleeping clock_nanosleep arg=19000000 stack=clock_nanosleep;pause
            {}us cpu2 wake idle -> other in=timer
            {}us cpu2 switch idle -> other\n",
            at + 300,
            server.0,
            at + 400,
            at + 19_500,
            at + 19_600
        );
        text
    };
    (20..980).step_by(20).map(turn).collect()
}

fn root(verdict: &Verdict) -> (u32, Class, &str) {
    let function = verdict.root.function.as_deref().unwrap_or_default();
    (verdict.root.who.tid, verdict.root.class, function)
}

/// All of them wait since before the recording. By when it was asked, one that the server asks works for this client, the
/// other for whoever asked earlier.
#[test]
fn what_was_asked_before_the_recording_belongs_to_the_request_before_it() {
    let verdict = |right: &str, wrong: &str| {
        let text = scene("")
            + &format!(
                "0 open client object=inet:1 last=sent ago=2s
                0 open server object=inet:2 last=received ago=2s
                0 open server object=inet:11 last=sent {right}
                0 open server object=inet:13 last=sent {wrong}
                0 cpu65535 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;main
                0 cpu65535 switch server -> idle {HOME}
                0 cpu65535 switch right -> idle sleeping clock_nanosleep arg=9000000000 stack=clock_nanosleep;fetch_prices
                0 cpu65535 switch wrong -> idle sleeping clock_nanosleep arg=9000000000 stack=clock_nanosleep;write_report
                0 cpu2 switch idle -> other\n"
            )
            + &turns("server")
            + "end 1s";
        explain(&record(&text), "client", 0..1_000_000)
    };
    let found = verdict("ago=1996ms", "ago=5s");
    let expected = (300, Class::LongWait, "fetch_prices");
    assert_eq!(root(&found), expected, "{}", found.sentence);
    let found = verdict("ago=1996ms", "ago=900ms");
    assert_eq!(root(&found), expected, "{}", found.sentence);
    let found = verdict("ago=5s", "ago=2s");
    let expected = (400, Class::LongWait, "write_report");
    assert_eq!(root(&found), expected, "{}", found.sentence);
}

/// The thread that gives the answer is not the one that asked for it, as where a scheduler has several.
#[test]
fn what_a_server_asked_for_an_answer_by_another_thread() {
    let (second, right) = (("second", 5, "inet:11"), ("right", 3, "inet:12"));
    let mut text = scene("thread second server 201")
        + &format!(
            "0 cpu0 switch idle -> client
            0 cpu1 switch idle -> server
            0 cpu2 switch idle -> other
            0 cpu3 switch idle -> right
            0 cpu5 switch idle -> second
            0.1ms cpu3 switch right -> idle sleeping recvfrom object=inet:12 stack=recv;serve
            0.2ms cpu5 switch second -> idle {HOME}
            1ms cpu1 switch server -> idle {HOME}\n"
        );
    text += &asks("second");
    text += &message(2_300, second, right);
    text += &format!(
        "2.4ms cpu5 switch second -> idle {HOME}
        3ms cpu3 switch right -> idle sleeping clock_nanosleep arg=980000000 stack=clock_nanosleep;fetch_prices\n"
    );
    text += &turns("server");
    text += "983ms cpu3 wake idle -> right in=timer\n983.1ms cpu3 switch idle -> right\n";
    text += &message(984_000, right, ("server", 1, "inet:11"));
    text += "984.1ms cpu3 switch right -> idle sleeping recvfrom object=inet:12 stack=recv;serve\n";
    text += &answers(985_000);
    let verdict = explain(&record(&text), "client", 2_100..985_000);
    let expected = (300, Class::LongWait, "fetch_prices");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
    assert!(of_thread(&verdict, 150, "timer") < 1_000, "{verdict:?}");
}

/// The server answers when a time of its own is over; what others ask meanwhile is not what the client waits for.
#[test]
fn requests_of_others_are_no_part_of_a_server_s_own_pause() {
    let mut text = scene("")
        + &format!(
            "0 cpu0 switch idle -> client
            0 cpu1 switch idle -> server
            0 cpu2 switch idle -> other
            1ms cpu1 switch server -> idle {HOME}\n"
        );
    text += &asks("server");
    text += "2.4ms cpu1 switch server -> idle sleeping epoll_wait arg=980 object=epoll:1 stack=epoll_wait;loop\n";
    text += &turns("server").replace("epoll_wait object", "epoll_wait arg=500 object");
    text += "982ms cpu1 wake idle -> server in=timer\n982.1ms cpu1 switch idle -> server\n";
    text += &answers(983_000);
    let verdict = explain(&record(&text), "client", 2_100..983_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert!(of_thread(&verdict, 200, "timer") > 900_000, "{verdict:?}");
}

/// A server that ticks, and accepts connections of others, answers in a turn that one of its timers began: it waited for its own
/// timers, whatever else woke it.
#[test]
fn a_server_that_answers_by_its_own_timer_among_others() {
    let woken = |ms: u64, by: &str| {
        format!(
            "{ms}ms cpu1 wake idle -> server in={by}
            {ms}.1ms cpu1 switch idle -> server
            {ms}.2ms transfer server sent 40 object=inet:8
            {}ms cpu1 switch server -> idle {HOME}\n",
            ms + 5
        )
    };
    let ticks = (50..900).step_by(50).map(|ms| match ms % 100 {
        0 => woken(ms, "softirq vector=3 object=inet:3"),
        _ => woken(ms, "timer"),
    });
    let text = scene("")
        + "0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server
        1ms cpu1 switch server -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop\n"
        + &asks("server")
        + &format!("2500us cpu1 switch server -> idle {HOME}\n")
        + &ticks.collect::<String>()
        + "950ms cpu1 wake idle -> server in=timer
        950.1ms cpu1 switch idle -> server\n"
        + &answers(951_000).replacen("951000us cpu1 switch idle -> server\n", "", 1);
    let verdict = explain(&record(&text), "client", 2_100..951_000);
    let blame = verdict.blame.iter().find(|it| it.kind == "timer");
    assert!(
        blame.is_some_and(|it| it.share > 0.9),
        "{:?}",
        verdict.blame
    );
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// The server keeps a request until its own timer lets it go on, and asks another only then, which answers at once, in one piece or after
/// an acknowledgement that TCP had delayed: the time is the server's, and no one waits for the other.
#[test]
fn a_server_that_delays_a_request_by_its_own_timer() {
    let right = ("right", 3, "inet:12");
    for pause in [0, 40_000] {
        let mut text = scene("")
            + &format!(
                "0 cpu0 switch idle -> client
                0 cpu1 switch idle -> server
                0 cpu2 switch idle -> other
                0 cpu3 switch idle -> right
                0.1ms cpu3 switch right -> idle sleeping recvfrom object=inet:12 stack=recv;serve
                1ms cpu1 switch server -> idle {HOME}\n"
            );
        text += &asks("server");
        text += &format!("2.4ms cpu1 switch server -> idle {HOME}\n");
        text += &turns("server");
        text += "982ms cpu1 wake idle -> server in=timer\n982.1ms cpu1 switch idle -> server\n";
        text += &message(982_200, ("server", 1, "inet:11"), right);
        text += &format!("982.3ms cpu1 switch server -> idle {HOME}\n");
        let mut at = 983_000;
        if pause > 0 {
            // The rest of the request comes once the first part has been acknowledged.
            text += "982.4ms cpu3 switch right -> idle sleeping recvfrom object=inet:12 stack=recv;serve\n";
            at += pause;
            text += &format!(
                "{at}us cpu1 wake idle -> server in=softirq vector=3\n{at}us cpu1 switch idle -> server\n"
            );
            text += &message(at + 100, ("server", 1, "inet:11"), right);
            text += &format!("{}us cpu1 switch server -> idle {HOME}\n", at + 200);
            at += 1_000;
        }
        text += &message(at, right, ("server", 1, "inet:11"));
        text += &format!(
            "{}us cpu3 switch right -> idle sleeping recvfrom object=inet:12 stack=recv;serve\n",
            at + 100
        );
        text += &answers(at + 300).replace("end 1s", "end 1100ms");
        let verdict = explain(&record(&text), "client", 2_100..at + 300);
        let (sentence, tid) = (&verdict.sentence, verdict.root.who.tid);
        assert_eq!(
            (tid, verdict.root.class),
            (200, Class::LongWait),
            "{sentence}"
        );
        assert!(of_thread(&verdict, 200, "timer") > 800_000, "{verdict:?}");
        assert!(!sentence.contains("right"), "{sentence}");
    }
}

/// Two threads of a server's pool take turns with the work for a client; each does part of it.
#[test]
fn each_thread_of_a_pool_does_part_of_the_work() {
    const RESTS: &str = "sleeping futex arg=128 object=futex:0x10 stack=futex_wait;worker";
    let mut text = scene("thread one server 201\nthread two server 202")
        + &format!(
            "0 cpu0 switch idle -> client
            0 cpu1 switch idle -> server
            0 cpu2 switch idle -> other
            0 cpu3 switch idle -> one
            0 cpu4 switch idle -> two
            1ms cpu1 switch server -> idle {HOME}
            1ms cpu4 switch two -> idle {RESTS}\n"
        );
    text += &asks("server");
    text += &format!("2.4ms cpu1 switch server -> idle {HOME}\n");
    let all = turns("server");
    let half = all
        .find("500000us cpu2 wake other")
        .expect("a turn at 500 ms");
    text += &all[..half];
    text += &format!(
        "499.9ms cpu3 wake one -> two futex
        499.91ms cpu4 switch idle -> two
        499.92ms cpu3 switch one -> idle {RESTS}\n"
    );
    text += &all[half..];
    text += "982ms cpu4 wake two -> server write object=eventfd:9\n982.1ms cpu1 switch idle -> server\n";
    text += &answers(983_000);
    let verdict = explain(&record(&text), "client", 2_100..983_000);
    assert!(
        (201..=202).contains(&verdict.root.who.tid),
        "{}",
        verdict.sentence
    );
    assert_eq!(
        verdict.root.class,
        Class::LongRunning,
        "{}",
        verdict.sentence
    );
    for worker in [201, 202] {
        assert!(of_thread(&verdict, worker, "run") > 400_000, "{verdict:?}");
    }
}

/// A client asks a service by a bus, and the service another by the same bus, while somebody else asks the first service every
/// 20 ms: the way leads through the bus twice, to the service that is at work.
#[test]
fn the_way_leads_through_a_bus_twice() {
    let rest = |at: u64, thread: &str, cpu: u32| {
        format!("{at}us cpu{cpu} switch {thread} -> idle {HOME}\n")
    };
    let mut text = String::new();
    let names = [
        ("client", 1),
        ("bus", 2),
        ("orders", 3),
        ("stock", 4),
        ("other", 5),
    ];
    for (name, number) in names {
        let process = if name == "bus" { "dbus-daemon" } else { name };
        text += &format!(
            "process {process} {number}00\nthread {name} {process} {number}00 name={process}\n"
        );
    }
    for (name, end) in [("client", 11), ("orders", 13), ("stock", 14), ("other", 15)] {
        text += &format!(
            "0 socket {name} object=unix:{end} peer=unix:{} peer-process=dbus-daemon
            0 socket dbus-daemon object=unix:{} peer=unix:{end} local=/run/bus\n",
            end + 10,
            end + 10
        );
    }
    for (name, number) in names {
        text += &format!("0.{number}ms cpu{number} switch idle -> {name}\n");
    }
    for (name, number) in &names[1..4] {
        text += &rest(1_000 + u64::from(*number), name, *number);
    }
    // From the asker by the bus to who is asked, and back: each waits once it has sent.
    let (client, orders, stock, other) = (
        ("client", 1, "unix:11"),
        ("orders", 3, "unix:13"),
        ("stock", 4, "unix:14"),
        ("other", 5, "unix:15"),
    );
    let passed = |at: u64, from: End<'_>, by: [&str; 2], to: End<'_>| {
        let bus = |end| ("bus", 2, end);
        message(at, from, bus(by[0]))
            + &rest(at + 50, from.0, from.1)
            + &message(at + 100, bus(by[1]), to)
            + &rest(at + 150, "bus", 2)
    };
    text += &passed(2_000, client, ["unix:21", "unix:23"], orders);
    text += &passed(2_300, orders, ["unix:23", "unix:24"], stock);
    text += "2.6ms cpu4 switch stock -> idle sleeping clock_nanosleep arg=900000000 stack=clock_nanosleep;count_shelves\n";
    for turn in (20..900).step_by(20) {
        let at = turn * 1_000;
        text += &passed(at, other, ["unix:25", "unix:23"], orders);
        text += &passed(at + 300, orders, ["unix:23", "unix:25"], other);
    }
    text += "902.5ms cpu4 wake idle -> stock in=timer\n902.51ms cpu4 switch idle -> stock\n";
    text += &passed(903_000, stock, ["unix:24", "unix:23"], orders);
    text += &passed(903_300, orders, ["unix:23", "unix:21"], client);
    let verdict = explain(&record(&format!("{text}end 1s")), "client", 2_050..903_400);
    let expected = (400, Class::LongWait, "count_shelves");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
}

/// Two clients of a broker are at something else: one has come back for more all the time, the other has not since it took
/// its job. That one has what a third waits for.
#[test]
fn who_comes_back_for_more_has_done_its_job() {
    let mut text = String::from(
        "process waiter 100\nthread waiter waiter 100
        process redis-server 200\nthread redis redis-server 200 name=redis-server
        process taker 300\nthread taker taker 300
        process other 400\nthread other other 400
        0 socket redis-server object=inet:9 local=127.0.0.1:6379
        0 open redis-server object=inet:9 kind=listener\n",
    );
    for (number, name) in [(1, "waiter"), (2, "taker"), (3, "other")] {
        let last = |way: &str| match name {
            "other" => String::new(),
            _ => format!("last={way} ago=2s"),
        };
        let (own, server) = match name {
            "waiter" => ("sent", "received"),
            _ => ("received", "sent"),
        };
        text += &format!(
            "0 socket {name} object=inet:1{number} local=127.0.0.1:500{number} remote=127.0.0.1:6379
            0 socket redis-server object=inet:2{number} local=127.0.0.1:6379 remote=127.0.0.1:500{number}
            0 open {name} object=inet:1{number} {}
            0 open redis-server object=inet:2{number} {}\n",
            last(own),
            last(server)
        );
    }
    text += &format!(
        "0 cpu65535 switch waiter -> idle sleeping recvfrom object=inet:11 stack=recv;main
        0 cpu65535 switch redis -> idle {HOME}
        0 cpu3 switch idle -> taker
        0.1ms cpu2 switch idle -> other\n"
    );
    text += &turns("redis")
        .replace("inet:8", "inet:23")
        .replace("inet:7", "inet:13");
    text += &samples(3, "taker", 1..999, "render_batch;main");
    let verdict = explain(&record(&format!("{text}end 1s")), "waiter", 0..1_000_000);
    let expected = (300, Class::LongRunning, "render_batch");
    assert_eq!(root(&verdict), expected, "{}", verdict.sentence);
}

/// A damaged trace has two buses wake each other at the same moments: the way from one to the other ends all the same.
#[test]
fn two_buses_that_wake_each_other_at_once() {
    let mut text = format!(
        "process client 100\nthread client client 100 name=client
        process dbus-daemon 200\nthread one dbus-daemon 200 name=dbus-daemon
        process dbus-broker 300\nthread two dbus-broker 300 name=dbus-broker
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> one
        0 cpu2 switch idle -> two
        1ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;main
        1ms cpu1 switch one -> idle {HOME}
        1ms cpu2 switch two -> idle {HOME}\n"
    );
    for at in [30, 60, 90] {
        text += &format!(
            "{at}ms cpu2 wake two -> one sendmsg object=unix:3
            {at}ms cpu1 wake one -> two sendmsg object=unix:4
            {at}ms cpu1 switch idle -> one
            {at}ms cpu2 switch idle -> two\n"
        );
        if at < 90 {
            text += &format!(
                "{at}.1ms cpu1 switch one -> idle {HOME}
                {at}.1ms cpu2 switch two -> idle {HOME}\n"
            );
        }
    }
    text += "91ms cpu1 wake one -> client sendmsg object=unix:2
        91.1ms cpu0 switch idle -> client
        end 100ms";
    let verdict = explain(&record(&text), "client", 1_000..91_000);
    assert_ne!(verdict.root.who.tid, 100, "{}", verdict.sentence);
}

/// A browser's process for the network asks a server for the page that a client of the browser waits for: that is who the client
/// waits for, whether the server has answered by then or not. None of the threads between waits for that in one go.
#[test]
fn a_process_of_the_same_program_asks_for_it() {
    let scene = "process client 100\nthread client client 100
        process browser 200\nthread browser browser 200
        process net 201
        process origin 300\nthread origin origin 300
        0 socket browser object=inet:3 local=127.0.0.1:80
        0 open browser object=inet:3 kind=listener
        0 socket origin object=inet:5 local=127.0.0.1:90
        0 open origin object=inet:5 kind=listener
        0 socket client object=inet:1 local=127.0.0.1:5001 remote=127.0.0.1:80
        0 socket browser object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5001
        0 socket net object=inet:11 local=127.0.0.1:6001 remote=127.0.0.1:90
        0 socket origin object=inet:12 local=127.0.0.1:90 remote=127.0.0.1:6001
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> browser
        0.1ms fork browser -> net net 201
        0.1ms cpu1 wake browser -> net fork new
        0.2ms exec net /bin/browser
        0.2ms cpu2 switch idle -> net
        0.3ms cpu3 switch idle -> origin
        0.4ms cpu3 switch origin -> idle sleeping epoll_wait arg=950 object=epoll:5 stack=epoll_wait;origin_loop
        0.5ms cpu2 switch net -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;loop
        1ms cpu1 switch browser -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop\n"
        .replace("net net 201 name", "net net 201");
    let asked = asks("browser").replace("cpu5", "cpu1")
        + "2200us cpu2 wake idle -> net in=timer
        2210us cpu2 switch idle -> net
        2300us cpu1 switch browser -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop\n"
        + &message(2_400, ("net", 2, "inet:11"), ("origin", 3, "inet:12"))
        + "2500us cpu2 switch net -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;loop
        2600us cpu3 switch origin -> idle sleeping epoll_wait arg=950 object=epoll:5 stack=epoll_wait;origin_loop\n";
    let beats: String = (20..940)
        .step_by(40)
        .map(|ms| {
            format!(
                "{ms}ms cpu1 wake idle -> browser in=timer
                {ms}.1ms cpu1 switch idle -> browser
                {ms}.2ms cpu1 switch browser -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop\n"
            )
        })
        .collect();
    let answered = "950ms cpu3 wake idle -> origin in=timer
        950.1ms cpu3 switch idle -> origin\n"
        .to_owned()
        + &message(951_000, ("origin", 3, "inet:12"), ("net", 2, "inet:11"))
        + "951500us cpu1 wake idle -> browser in=timer
        951510us cpu1 switch idle -> browser
        951600us cpu2 switch net -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;loop\n"
        + &message(952_000, ("browser", 1, "inet:2"), CLIENT).replacen(
            "952000us cpu1 switch idle -> browser\n",
            "",
            1,
        ) + "end 1s";
    for (end, to) in [(answered.as_str(), 952_000), ("end 1s", 1_000_000)] {
        let text = format!("{scene}{asked}{beats}{end}");
        let verdict = explain(&record(&text), "client", 2_100..to);
        assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
    }
}
