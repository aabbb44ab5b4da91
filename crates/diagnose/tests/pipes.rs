//! Who is to send something by a pipe or a pair of sockets: by whom it can come, and by whom it cannot.

use crate::support::*;
use hangdog_diagnose::Class;
use hangdog_diagnose::problem::{self, ProblemKind, Scope};

/// A script reads what its filter writes, and the filter keeps that back until it has more to read, which
/// only the script can write: none of the two goes on. Where somebody else can write to the filter, or the
/// script has another thread, it is no circle.
#[test]
fn a_script_and_its_filter_wait_for_each_other() {
    let class = |more: &str| {
        let recording = record(&format!(
            "process script 100
            thread script script 100
            process filter 200
            process other 300
            thread other other 300
            0 open script object=pipe:1 access=read
            0 open script object=pipe:2 access=write
            0 open filter object=pipe:1 access=write
            0 open filter object=pipe:2 access=read
            {more}
            0 cpu0 switch idle -> script
            0 cpu1 switch idle -> other
            1us fork script -> filter filter 200
            2us cpu0 wake script -> filter fork new
            5us cpu1 switch other -> filter sleeping poll stack=poll;serve
            10us cpu1 switch filter -> idle sleeping read object=pipe:2 stack=read;fill
            20us cpu0 switch script -> idle sleeping read object=pipe:1 stack=read;ask
            end 3s"
        ));
        let verdict = explain(&recording, "script", 20..3_000_000);
        (verdict.root.class, verdict.sentence)
    };
    let (alone, sentence) = class("");
    assert_eq!(alone, Class::Circular, "{sentence}");
    for more in [
        "0 open other object=pipe:2 access=write",
        "0 cpu5 switch idle -> helper\n0 cpu5 switch helper -> idle sleeping poll stack=poll;serve",
    ] {
        let declared = match more.contains("helper") {
            true => "thread helper script 101\n",
            false => "",
        };
        let (class, sentence) = class(&format!("{declared}{more}"));
        assert_ne!(class, Class::Circular, "{sentence}");
    }
}

/// A program waits for the end of what it started, and that for room in a pipe that only the program reads. What
/// they were killed by at last is no way out of it; that the filter went on is one.
#[test]
fn a_circle_lasts_until_a_kill() {
    let class = |end: &str| {
        let recording = record(&format!(
            "process lister 100
            thread lister lister 100
            process find 200
            process shell 300
            thread shell shell 300
            0 cpu0 switch idle -> lister
            0 cpu2 switch idle -> shell
            1us fork lister -> find find 200
            2us cpu0 wake lister -> find fork new
            5us cpu1 switch idle -> find
            10us cpu0 switch lister -> idle sleeping wait4 arg=200 stack=wait4;list
            20us cpu1 switch find -> idle sleeping write object=pipe:1 stack=write;find
            {end}
            3000.3ms cpu1 switch find -> idle dead
            3000.4ms cpu0 wake find -> lister exit
            3000.5ms cpu0 switch idle -> lister
            3001ms cpu0 switch lister -> idle dead
            end 4s"
        ));
        explain(&recording, "find", 20..3_000_000).root.class
    };
    let killed = "3000ms cpu2 wake shell -> find kill arg=15
        3000.1ms cpu1 switch idle -> find";
    assert_eq!(class(killed), Class::Circular);
    let read = "2000ms cpu2 wake shell -> find read object=pipe:1 stack=read;sh
        2000.1ms cpu1 switch idle -> find";
    assert_ne!(class(read), Class::Circular);
}

/// A program reads the output of what it started, and that writes errors that nobody reads. A time limit ends the program,
/// by which the pipe has no reader: that the other went on by this is no way out. Who has which end is only guessed.
#[test]
fn a_circle_lasts_until_one_of_it_ends() {
    let class = |end: &str| {
        let recording = record(&format!(
            "process build 100
            thread build build 100
            process linter 200
            process shell 300
            thread shell shell 300
            0 cpu0 switch idle -> build
            0 cpu2 switch idle -> shell
            1us fork build -> linter linter 200
            2us cpu0 wake build -> linter fork new
            5us cpu1 switch idle -> linter
            10us cpu0 switch build -> idle sleeping read object=pipe:1 stack=read;run_linter
            20us cpu1 switch linter -> idle sleeping write object=pipe:2 stack=write;report
            {end}
            3200ms cpu1 switch linter -> idle dead
            end 4s"
        ));
        explain(&recording, "build", 10..3_000_000).root.class
    };
    let killed = "3000ms cpu2 wake shell -> build kill arg=15
        3000.05ms cpu0 switch idle -> build
        3000.1ms cpu0 wake build -> linter exit
        3000.15ms cpu0 switch build -> idle dead
        3000.2ms cpu1 switch idle -> linter";
    assert_eq!(class(killed), Class::Circular);
    let read = "2999ms cpu2 wake shell -> linter read object=pipe:2 stack=read;sh
        2999.1ms cpu1 switch idle -> linter
        3000ms cpu1 wake linter -> build write object=pipe:1
        3000.1ms cpu0 switch idle -> build";
    assert_ne!(class(read), Class::Circular);
}

/// The recorder and its helpers have open what the shell had that started them. They are to send nothing.
#[test]
fn the_recorder_only_inherited_the_pipe() {
    let recording = record(
        "process client 100
        thread client client 100
        process script 200
        thread script script 200
        process hangdog 300
        thread hangdog hangdog 300
        0 open client object=pipe:1 access=read
        0 open script object=pipe:1 access=write
        0 open hangdog object=pipe:1 access=write
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> script
        0 cpu2 switch idle -> hangdog
        5us cpu2 switch hangdog -> idle sleeping recvmsg stack=recvmsg;receive
        10us cpu0 switch client -> idle sleeping read object=pipe:1 stack=read;next_line
        10us cpu1 switch script -> idle sleeping clock_nanosleep arg=9s stack=nanosleep;pause
        end 3s",
    );
    let verdict = explain(&recording, "client", 10..3_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// Who runs a script with a recording in it, and shows what that prints, waits for the recording: that is no
/// problem, though what is recorded prints there too.
#[test]
fn who_shows_what_a_recording_prints() {
    let victims = |recorder: &str| {
        let mut recording = record(&format!(
            "process tool 50\nthread tool tool 50
            process bash 60\nthread bash bash 60
            process make 100\nthread make make 100
            process cc 200\nthread cc cc 200
            process hangdog 300\nthread hangdog hangdog 300
            0 open tool object=pipe:1 access=read
            0 open bash object=pipe:1 access=write
            0 open bash object=pipe:2 access=read
            0 open make object=pipe:2 access=write
            0 open cc object=pipe:2 access=write
            0 open make object=pipe:3 access=read
            0 open cc object=pipe:3 access=write
            {recorder}
            0 cpu0 switch tool -> idle sleeping read object=pipe:1 stack=read;collect
            0 cpu0 switch bash -> idle sleeping read object=pipe:2 stack=read;zread
            0 cpu0 switch make -> idle sleeping read object=pipe:3 stack=read;gather
            0 cpu2 switch hangdog -> idle sleeping nanosleep stack=nanosleep;record
            0 cpu1 switch idle -> cc
            3s cpu1 switch cc -> idle sleeping read object=inet:9 stack=read;main
            end 6s"
        ));
        recording.recorder = Some(300);
        let victims = problems(&recording, None).into_iter();
        victims.map(|(name, _)| name).collect::<Vec<String>>()
    };
    let apart = victims("");
    assert_eq!(apart[0], "tool", "{apart:?}");
    let shares = victims("0 open hangdog object=pipe:2 access=write");
    assert_eq!(shares[0], "make", "{shares:?}");
}

/// Who opens the other end of a FIFO in the end need not have been expected to. One that worked all along
/// was.
#[test]
fn who_opens_a_fifo_at_last() {
    let root = |opener: &str| {
        let recording = record(&format!(
            "process logger 100
            thread logger logger 100
            process reader 200
            thread reader reader 200
            0 cpu0 switch idle -> logger
            0 cpu1 switch idle -> reader
            10us cpu0 switch logger -> idle sleeping openat stack=open;redirect kstack=schedule;wait_for_partner;fifo_open
            {opener}
            2900ms cpu1 wake reader -> logger openat stack=open;main kstack=wake_up_partner;fifo_open
            2910ms cpu0 switch idle -> logger
            end 3s"
        ));
        let verdict = explain(&recording, "logger", 10..2_910_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let slept =
        "20us cpu1 switch reader -> idle sleeping clock_nanosleep arg=2800ms stack=nanosleep;main
            2820ms cpu1 wake idle -> reader in=timer
            2821ms cpu1 switch idle -> reader";
    let (tid, sentence) = root(slept);
    assert_eq!(tid, 100, "{sentence}");
    assert!(sentence.contains("FIFO"), "{sentence}");
    let (tid, sentence) = root("");
    assert_eq!(tid, 200, "{sentence}");
}

/// What sleep(1) does, a script had it do.
#[test]
fn who_started_sleep_is_named() {
    let recording = record(
        "process client 100
        thread client client 100
        process deploy 200
        thread deploy deploy 200
        process sleep 300
        0 open client object=pipe:1 access=read
        0 open deploy object=pipe:1 access=write
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> deploy
        1us fork deploy -> sleep sleep 300
        2us cpu1 wake deploy -> sleep fork new
        5us cpu0 switch client -> sleep sleeping read object=pipe:1 stack=read;next_line
        6us cpu1 switch deploy -> idle sleeping wait4 stack=wait4;waitchld
        10us cpu0 switch sleep -> idle sleeping clock_nanosleep arg=2900ms stack=nanosleep;main
        2910ms cpu0 wake idle -> sleep in=timer
        2910ms cpu0 switch idle -> sleep
        2911ms exit sleep 0
        2911ms cpu0 wake sleep -> deploy exit
        2911ms cpu0 switch sleep -> idle dead
        2911ms cpu1 switch idle -> deploy
        2912ms cpu1 wake deploy -> client write object=pipe:1
        2912ms cpu0 switch idle -> client
        end 3s",
    );
    let verdict = explain(&recording, "client", 10..2_912_000);
    assert!(
        verdict.sentence.contains("which deploy started, slept"),
        "{}",
        verdict.sentence
    );
}

/// A child that answers its parent by a pair of sockets and then waits for what it is to do next is not kept
/// waiting. The parent that asks it is.
#[test]
fn a_child_takes_orders_by_a_pair_of_sockets() {
    let recording = record(
        "process browser 100
        thread browser browser 100
        process zygote 200
        0 socket browser object=unix:1 peer=unix:2 peer-process=browser
        0 cpu0 switch idle -> browser
        1us fork browser -> zygote zygote 200
        2us cpu0 wake browser -> zygote fork new
        2us socket zygote object=unix:2 peer=unix:1 peer-process=browser
        3us cpu1 switch idle -> zygote
        10us transfer zygote sent 4 object=unix:2
        15us transfer browser received 4 object=unix:1
        20us cpu1 switch zygote -> idle sleeping recvmsg object=unix:2 stack=recvmsg;next_order
        30us cpu0 switch browser -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;run
        2500ms cpu0 wake idle -> browser in=timer
        2501ms cpu0 switch idle -> browser
        2502ms transfer browser sent 8 object=unix:1
        2502ms cpu0 wake browser -> zygote sendmsg object=unix:1
        2503ms cpu1 switch idle -> zygote
        2504ms transfer zygote received 8 object=unix:2
        end 3s",
    );
    let found = problem::find(&recording.evidence(), Scope::default());
    let of_zygote = |kind: ProblemKind| {
        let zygote = recording.t("zygote");
        found
            .iter()
            .any(|problem| problem.thread == zygote && problem.kind == kind)
    };
    assert!(!of_zygote(ProblemKind::Request), "{found:?}");
}

/// A browser's zygote that has just started a child, and waits for the next order by its pair of sockets, does
/// not wait for that child to end.
#[test]
fn a_zygote_does_not_wait_for_what_it_started() {
    let recording = record(
        "process browser 100
        thread browser browser 100
        process zygote 200
        process page 300
        0 socket browser object=unix:1 peer=unix:2 peer-process=browser
        0 cpu0 switch idle -> browser
        1us fork browser -> zygote zygote 200
        2us cpu0 wake browser -> zygote fork new
        2us socket zygote object=unix:2 peer=unix:1 peer-process=browser
        3us cpu1 switch idle -> zygote
        1ms fork zygote -> page page 300
        2ms cpu1 wake zygote -> page fork new
        3ms cpu1 switch zygote -> page sleeping ppoll object=unix:2 stack=ppoll;next_order
        4ms cpu1 switch page -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;run
        5ms cpu0 switch browser -> idle sleeping nanosleep arg=140ms stack=nanosleep
        145ms cpu0 wake idle -> browser in=timer
        145.1ms cpu0 switch idle -> browser
        150ms cpu0 switch browser -> idle sleeping epoll_wait object=epoll:7 stack=epoll_wait;run
        end 3s",
    );
    assert_eq!(problems(&recording, None), []);
}

/// One thread of a program passes on to a helper what another program sends, while its first thread reads what the helper
/// prints: the helper waits for what the other program sends, not for the thread that waits for it.
#[test]
fn of_a_program_that_feeds_its_helper_the_thread_that_does_counts() {
    let recording = record(
        "process clone 100
        thread clone clone 100
        thread demux clone 101
        process index 200
        thread index index 200
        process pack 300
        thread pack pack 300
        0 open clone object=pipe:1 access=read
        0 open index object=pipe:1 access=write
        0 open clone object=pipe:2 access=write
        0 open index object=pipe:2 access=read
        0 open clone object=pipe:3 access=read
        0 open pack object=pipe:3 access=write
        0 cpu0 switch idle -> pack
        0.1ms cpu1 switch idle -> index
        0.2ms cpu1 switch index -> demux sleeping read object=pipe:2 stack=read;parse
        0.3ms cpu1 switch demux -> clone sleeping read object=pipe:3 stack=read;demux
        0.4ms cpu1 switch clone -> idle sleeping read object=pipe:1 stack=read;get_pack
        end 6s",
    );
    let verdict = explain(&recording, "clone", 400..6_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
}

/// Who reads a part of what somebody writes makes room for a part of the rest: the writer waits on, but its
/// wakeups were not spurious, and who reads is whom it waits for, not the program that started it.
#[test]
fn each_reading_makes_some_room() {
    let recording = record(&format!(
        "process xargs 100
        thread xargs xargs 100
        process cat 200
        process gzip 300
        thread gzip gzip 300
        0 cpu0 switch idle -> xargs
        0 cpu1 switch idle -> gzip
        1us fork xargs -> cat cat 200
        2us cpu0 wake xargs -> cat fork new
        5us cpu0 switch xargs -> cat sleeping wait4 arg=200 stack=wait4;xargs
        10us cpu0 switch cat -> idle sleeping write object=pipe:1 stack=write;cat
        {}
        1s cpu0 switch cat -> idle dead
        1000.1ms cpu1 wake cat -> xargs exit
        1000.2ms cpu0 switch idle -> xargs
        1001ms cpu0 switch xargs -> idle dead
        end 2s",
        (1..100)
            .map(|at| format!(
                "{at}0ms cpu1 wake gzip -> cat read object=pipe:1 stack=read;gzip
                {at}0.01ms cpu0 switch idle -> cat
                {at}0.02ms cpu0 switch cat -> idle sleeping write object=pipe:1 stack=write;cat\n"
            ))
            .chain([
                "995ms cpu1 wake gzip -> cat read object=pipe:1 stack=read;gzip
                995.01ms cpu0 switch idle -> cat\n"
                    .to_owned()
            ])
            .collect::<String>()
    ));
    let verdict = explain(&recording, "xargs", 1_000..1_000_000);
    assert_eq!(verdict.root.who.tid, 300, "{}", verdict.sentence);
    assert_eq!(verdict.root.class, Class::LongRunning);
    let step = &verdict.path[1];
    assert!(step.doing.contains("(99 partial writes)"), "{}", step.doing);
}
