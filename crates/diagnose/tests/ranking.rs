//! Which of several problems is the worst, where each is one by itself.

use crate::support::*;
use hangdog_diagnose::problem::{self, Scope};

/// Two programs that have run for a while, on a trace's first moment.
const PEOPLE: &str = "
    process app 100
    thread main app 100 name=app
    thread worker app 101
    process tool 200
    process sh 300
    thread sh sh 300
    0 cpu0 switch idle -> main
    0 cpu1 switch idle -> sh\n";
/// A program waits for a computation of its own, for 3 s.
const COMPUTES: &str = "
    1s cpu0 switch main -> worker sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;await_sum
    4s cpu0 wake worker -> main futex op=wake stack=pthread_cond_signal;give
    4s cpu0 switch worker -> main sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;next_sum
    end 5s";

fn reads(from_ms: u64, to_ms: u64) -> String {
    format!(
        "{from_ms}ms cpu1 switch tool -> idle uninterruptible read object=file:7 stack=read;load kstack=io_schedule;wait
        {to_ms}ms cpu1 wake idle -> tool in=interrupt
        {to_ms}.1ms cpu1 switch idle -> tool\n"
    )
}

/// Whose problem is the worst, of a recording or of a snapshot.
fn worst(text: &str, is_snapshot: bool) -> String {
    let recording = record(text);
    let evidence = recording.evidence();
    let scope = Scope {
        is_snapshot,
        ..Scope::default()
    };
    evidence.name(problem::find(&evidence, scope)[0].thread)
}

/// Who waits for the disk for 1.1 s as it starts has to read what is not in memory yet: a program that does
/// not go on for 3 s is worse. One that waits so long in the middle of its life was not to be expected to.
#[test]
fn a_start_takes_its_time() {
    let starts = format!(
        "{PEOPLE}500ms fork sh -> tool tool 200
        500ms cpu1 switch sh -> tool sleeping wait4 stack=wait4
        {}{COMPUTES}",
        reads(510, 1610)
    );
    let names = |text: &str| -> Vec<String> {
        let found = problems(&record(text), None);
        found.into_iter().map(|(name, _)| name).collect()
    };
    let found = names(&starts);
    assert_eq!(found[0], "app", "{found:?}");
    assert!(found.contains(&"tool".to_owned()), "{found:?}");
    let runs = format!(
        "{PEOPLE}thread tool tool 200\n0 cpu1 switch sh -> tool sleeping wait4 stack=wait4
        {}{COMPUTES}",
        reads(2510, 3610)
    );
    assert_eq!(names(&runs)[0], "tool");
}

/// Of two waits for the disk the longer one is worse, but for who has just taken a snapshot: that is for the
/// one that has just been over.
#[test]
fn a_snapshot_is_for_what_has_just_been() {
    let text = format!(
        "{PEOPLE}thread tool tool 200\n0 cpu1 switch sh -> tool sleeping wait4 stack=wait4
        {}
        13s cpu0 switch main -> idle uninterruptible fsync object=file:42 stack=fsync;save kstack=io_schedule;wait
        13800ms cpu0 wake idle -> main in=interrupt
        13801ms cpu0 switch idle -> main
        end 14s",
        reads(3000, 3900)
    );
    assert_eq!(worst(&text, false), "tool");
    assert_eq!(worst(&text, true), "app");
}

/// A server that is stopped feels nothing. Its client does, though it only waits for a thread of its own that
/// has asked.
#[test]
fn whoever_asked_one_that_is_stopped() {
    let text = "
        process sh 50
        thread sh sh 50
        process client 100
        process server 200
        thread server server 200
        0 socket server object=unix:1 peer=unix:2 local=/run/bus
        0 cpu0 switch idle -> sh
        0 cpu1 switch idle -> server
        100ms cpu1 switch server -> idle stopped poll stack=poll;loop
        140ms fork sh -> main client 100
        140ms rename main client
        140ms cpu0 switch sh -> main sleeping wait4 stack=wait4
        141ms socket client object=unix:2 peer=unix:1 remote=/run/bus
        145ms fork main -> gdbus client 101
        145ms cpu0 wake main -> gdbus fork new
        146ms cpu2 switch idle -> gdbus
        150ms transfer gdbus sent 20 object=unix:2 peer=unix:1
        150ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;call_sync
        151ms cpu2 switch gdbus -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;g_main_loop_run
        3100ms cpu3 wake idle -> server kill arg=18
        3101ms cpu1 switch idle -> server
        3102ms transfer server received 20 object=unix:1 peer=unix:2
        3103ms transfer server sent 20 object=unix:1 peer=unix:2
        3103ms cpu1 wake server -> gdbus sendto stack=send;answer
        3104ms cpu2 switch idle -> gdbus
        3105ms transfer gdbus received 20 object=unix:2 peer=unix:1
        3105ms cpu2 wake gdbus -> main futex op=wake stack=pthread_cond_signal;done
        3106ms cpu0 switch idle -> main
        3107ms cpu1 switch server -> idle sleeping poll object=unix:1 stack=poll;loop
        3108ms exit gdbus 0
        3109ms exit main 0
        end 4s";
    let found = problems(&record(text), None);
    assert_eq!(
        found[0],
        ("client".to_owned(), 150_000..3_105_000),
        "{found:?}"
    );
    let of_server = |(name, window): &&(String, std::ops::Range<u64>)| {
        name == "server" && window.end > 3_000_000
    };
    assert_eq!(found.iter().find(of_server), None);
}

/// Through a server in between, which waits on long after the answer: it is whoever asked that the stopped one
/// kept waiting, for as long as that was stopped.
#[test]
fn whoever_asked_through_another() {
    let text = "
        process owner 100
        thread owner owner 100
        process Xvfb 200
        thread Xvfb Xvfb 200
        process reader 300
        thread reader reader 300
        0 socket Xvfb object=unix:1 peer=unix:2 peer-process=owner local=@/tmp/.X11-unix/X1
        0 socket owner object=unix:2 peer=unix:1 peer-process=Xvfb remote=@/tmp/.X11-unix/X1
        0 socket Xvfb object=unix:3 peer=unix:4 peer-process=reader local=@/tmp/.X11-unix/X1
        0 socket reader object=unix:4 peer=unix:3 peer-process=Xvfb remote=@/tmp/.X11-unix/X1
        0 cpu0 switch idle -> Xvfb
        0 cpu1 switch idle -> owner
        0 cpu2 switch idle -> reader
        100ms cpu1 switch owner -> idle stopped poll object=unix:2 stack=poll;xcb_wait_for_event;XNextEvent
        200.1ms cpu2 switch reader -> idle sleeping poll object=unix:4 stack=poll;xcb_wait_for_event;XNextEvent
        200.2ms transfer Xvfb sent 20 object=unix:1 peer=unix:2
        200.3ms cpu0 switch Xvfb -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;dispatch
        3200ms cpu3 wake idle -> owner kill arg=18
        3201ms cpu1 switch idle -> owner
        3202ms transfer owner received 20 object=unix:2 peer=unix:1
        3203ms transfer owner sent 20 object=unix:2 peer=unix:1
        3203ms cpu1 wake owner -> Xvfb writev object=unix:2 stack=writev;answer
        3203.1ms cpu0 switch idle -> Xvfb
        3203.12ms cpu0 wake Xvfb -> reader writev object=unix:3 stack=writev;pass_on
        3203.15ms cpu0 switch Xvfb -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;dispatch
        3203.4ms cpu2 switch idle -> reader
        3203.5ms transfer reader received 20 object=unix:4 peer=unix:3
        3204ms cpu1 switch owner -> idle sleeping nanosleep arg=1096000000 stack=nanosleep;pause_a_little
        3205ms exit reader 0
        4300ms cpu1 wake idle -> owner in=timer
        4300.1ms cpu1 switch idle -> owner
        4300.2ms cpu1 wake owner -> Xvfb writev object=unix:2 stack=writev;tell
        4300.3ms cpu0 switch idle -> Xvfb
        end 4400ms";
    let found = problems(&record(text), None);
    assert_eq!(found[0].0, "reader", "{found:?}");
    let of_server = |(name, window): &(String, std::ops::Range<u64>)| {
        name == "Xvfb" && window.contains(&1_000_000)
    };
    assert!(!found.iter().any(of_server), "{found:?}");
}

/// A worker that its program's main thread usually wakes may only be idle: when that is stopped, it is the
/// main thread that is.
#[test]
fn a_guess_makes_nobody_the_client_of_one_that_is_stopped() {
    let mut text = "
        process app 100
        thread main app 100 name=app
        thread worker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker\n"
        .to_owned();
    let wait = "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;next_task";
    for turn in 0..20 {
        let at = 10 + 40 * turn;
        text += &format!(
            "{at}ms cpu1 switch worker -> idle {wait}
            {}ms cpu0 wake main -> worker futex op=wake stack=pthread_cond_signal;submit
            {}.1ms cpu1 switch idle -> worker\n",
            at + 20,
            at + 20
        );
    }
    text += &format!(
        "900ms cpu1 switch worker -> idle {wait}
        1s cpu0 switch main -> idle stopped
        3s cpu2 wake idle -> main kill arg=18
        3001ms cpu0 switch idle -> main
        end 3100ms"
    );
    let found = problems(&record(&text), None);
    assert_eq!(
        found[0],
        ("app".to_owned(), 1_000_000..3_000_000),
        "{found:?}"
    );
}

/// Who has just taken a snapshot felt what is over, not a computation that went on all along and that nobody
/// waited for.
#[test]
fn a_computation_all_along_is_not_what_was_felt() {
    let text = format!(
        "process job 400
        thread job job 400
        0 cpu2 switch idle -> job
        {PEOPLE}thread tool tool 200\n0 cpu1 switch sh -> tool sleeping wait4 stack=wait4
        {}
        2s cpu0 switch main -> idle sleeping nanosleep arg=9s stack=nanosleep;main
        end 6s",
        reads(3000, 3120)
    );
    assert_eq!(worst(&text, false), "job");
    assert_eq!(worst(&text, true), "tool");
}

/// Who names a program asks also for what it waited for while a program that it started computed.
#[test]
fn the_work_of_a_child_is_whoevers_is_named() {
    let text = "
        process npm 50
        thread npm npm 50
        process make 100
        process cc 200
        0 cpu0 switch idle -> npm
        1ms fork npm -> make make 100
        1ms cpu2 switch idle -> make
        2ms cpu0 switch npm -> idle sleeping epoll_wait object=epoll:4 stack=epoll_wait;loop
        300ms fork make -> cc cc 200
        300ms cpu1 switch idle -> cc
        310ms cpu1 switch cc -> idle uninterruptible read object=file:42 stack=read;main kstack=io_schedule;wait
        600ms cpu2 switch make -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;loop
        610ms cpu1 wake idle -> cc in=interrupt
        610.1ms cpu1 switch idle -> cc
        3s exit cc 0
        3s cpu1 wake cc -> make exit
        3s cpu1 switch cc -> idle dead
        3000.1ms cpu2 switch idle -> make
        3010ms exit make 0
        3010ms cpu2 wake make -> npm exit
        3010ms cpu2 switch make -> idle dead
        3010.1ms cpu0 switch idle -> npm
        end 3100ms";
    let recording = record(text);
    let evidence = recording.evidence();
    let is_make = |thread| evidence.name(thread) == "make";
    let found = problem::find_of(&evidence, Scope::default(), is_make);
    let window = &found[0].window;
    assert!(window.end - window.start > 2_000_000_000, "{found:?}");
    assert!(found[0].felt >= 0.05, "{found:?}");
}

/// A program that two others of its rank keep from the CPU that they share is worse off than either, though
/// each of those has only half of it; four that take turns are not told apart.
#[test]
fn who_has_no_turn_in_a_crowd() {
    let mut text = "
        process hash 100
        thread first hash 100 name=hash
        process sum 200
        thread second sum 200 name=sum
        process zip 300
        thread zip zip 300
        0 cpu0 switch idle -> zip\n"
        .to_owned();
    text += "10ms cpu0 switch zip -> first preempted priority=120\n";
    for turn in 0..50 {
        let at = 10 + 60 * turn;
        text += &format!(
            "{}ms cpu0 switch first -> second preempted priority=120
            {}ms cpu0 switch second -> zip preempted priority=120
            {}.1ms cpu0 switch zip -> first preempted priority=120\n",
            at + 30,
            at + 59,
            at + 59
        );
    }
    text += "3100ms cpu0 switch first -> idle dead\nend 4s";
    assert_eq!(worst(&text, false), "zip");
}

/// A program that writes into the pipe of one that works at a pace, and cannot go on while that computes, is the
/// one that is held up.
#[test]
fn who_waits_for_a_turn_is_held_up() {
    let nap = |from_ms: u64| {
        format!(
            "{from_ms}ms cpu1 switch importer -> idle sleeping nanosleep arg=8ms stack=nanosleep;pace
            {}ms cpu1 wake idle -> importer in=timer
            {}.01ms cpu1 switch idle -> importer\n",
            from_ms + 8,
            from_ms + 8
        )
    };
    let mut text = "
        process cat 100
        thread cat cat 100
        process importer 200
        thread importer importer 200
        0 open cat object=pipe:7 access=write
        0 open importer object=pipe:7 access=read
        0 cpu0 switch idle -> cat
        0 cpu1 switch idle -> importer\n"
        .to_owned();
    text += &(10..200).step_by(10).map(nap).collect::<String>();
    text += "
        200ms cpu0 switch cat -> idle sleeping write object=pipe:7 stack=write;main kstack=pipe_write
        3200ms cpu1 wake importer -> cat read object=pipe:7
        3200.1ms cpu0 switch idle -> cat\n";
    text += &nap(3201);
    text += "3210ms cpu0 switch cat -> idle dead\nend 3211ms";
    assert_eq!(worst(&text, false), "cat");
}

/// A name server that replied to somebody, and then waits for whoever asks next, asked nobody: it is who asks
/// again after a timeout that was held up.
#[test]
fn who_replies_by_datagrams_asks_nobody() {
    let text = "
        process dns 100
        thread dns dns 100
        process wget 200
        thread wget wget 200
        0 cpu0 switch idle -> dns
        0 cpu1 switch idle -> wget
        5ms transfer dns received 40 object=inet:5
        6ms transfer dns sent 80 object=inet:5
        7ms cpu0 switch dns -> idle sleeping poll stack=poll;loop
        8ms transfer wget sent 40 object=inet:6
        9ms cpu1 switch wget -> idle sleeping poll object=inet:6 arg=5s stack=poll;__res_context_send;main
        5008ms cpu1 wake idle -> wget in=timer
        5008.1ms cpu1 switch idle -> wget
        5009ms cpu1 wake wget -> dns sendto in=softirq vector=3
        5009ms transfer wget sent 40 object=inet:6
        5009.1ms cpu0 switch idle -> dns
        5009.2ms transfer dns received 40 object=inet:5
        5009.5ms cpu1 switch wget -> idle sleeping poll object=inet:6 arg=5s stack=poll;__res_context_send;main
        5010ms cpu0 switch dns -> idle dead
        end 5011ms";
    assert_eq!(worst(text, false), "wget");
}

/// The wait of a launcher for the thread that is the program says nothing beside what that waits for.
#[test]
fn a_launcher_is_not_held_up() {
    let text = "
        process java 100
        thread launcher java 100 name=java
        process pool 200
        0 cpu0 switch idle -> launcher
        1900ms fork launcher -> main java 101
        1900ms cpu1 switch idle -> main
        1901ms cpu0 switch launcher -> idle sleeping futex op=wait object=futex:0x10 holder=main stack=__pthread_clockjoin_ex;launch
        2s cpu1 switch main -> idle uninterruptible read object=file:7 stack=read;load kstack=io_schedule;wait
        5s cpu1 wake idle -> main in=interrupt
        5000.1ms cpu1 switch idle -> main
        end 6s";
    let recording = record(text);
    let evidence = recording.evidence();
    let found = problem::find_of(&evidence, Scope::default(), |_| true);
    assert!(
        found
            .iter()
            .all(|problem| problem.window.end - problem.window.start <= 3_000_000_000),
        "{found:?}"
    );
}

/// A program that writes to a disk which is slow throughout is held up once, though it reads a little in between.
#[test]
fn waits_for_a_slow_disk_are_one() {
    let mut text = "
        process dd 100
        thread dd dd 100
        process source 200
        thread source source 200
        0 open source object=pipe:7 access=write
        0 cpu0 switch idle -> dd
        0 cpu1 switch idle -> source\n"
        .to_owned();
    for turn in 0..5 {
        let at = 10 + 1000 * turn;
        text += &format!(
            "{at}ms cpu0 switch dd -> idle uninterruptible write object=file:7 stack=write;copy kstack=io_schedule;wait
            {}ms cpu1 wake idle -> dd in=interrupt
            {}.1ms cpu0 switch idle -> dd\n",
            at + 980,
            at + 980
        );
        if turn < 3 {
            text += &format!(
                "{}ms cpu0 switch dd -> idle sleeping read object=pipe:7 stack=read;copy
                {}ms cpu1 wake source -> dd write object=pipe:7
                {}.1ms cpu0 switch idle -> dd\n",
                at + 998,
                at + 999,
                at + 999
            );
        }
    }
    text += "5010ms cpu0 switch dd -> idle dead\nend 6s";
    let found = problems(&record(&text), None);
    assert_eq!(found[0], ("dd".to_owned(), 10_000..4_990_000), "{found:?}");
}

/// A database writes out in the background, and its program waits for that again and again: the program is held up, each
/// time for a part of what the writer waits for the disk. A program that waits for little of that is not.
#[test]
fn a_program_is_held_up_in_turns() {
    const COND: &str =
        "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;make_room;put";
    let turn = |waits: u64, ends: u64| {
        format!(
            "{waits}ms cpu0 wake idle -> main in=timer
            {waits}.01ms cpu0 switch idle -> main
            {waits}.1ms cpu0 switch main -> idle {COND}
            {ends}ms cpu1 wake idle -> writer in=interrupt vector=33
            {ends}.01ms cpu1 switch idle -> writer
            {ends}.1ms cpu1 wake writer -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;write_out
            {ends}.11ms cpu0 switch idle -> main
            {ends}.2ms cpu1 switch writer -> idle uninterruptible fdatasync object=file:42 stack=fdatasync;write_out kstack=io_schedule;wait
            {ends}.3ms cpu0 switch main -> idle sleeping clock_nanosleep arg=9s stack=nanosleep;next\n"
        )
    };
    let victims = |share: u64| {
        let turns = [(100, 1_900), (2_000, 3_950), (4_000, 5_990)];
        let turns = turns.map(|(begin, end)| turn(end - (end - begin) * share / 10, end));
        let recording = record(&format!(
            "process app 100
            thread main app 100
            thread writer app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> writer
            1ms cpu0 switch main -> idle sleeping clock_nanosleep arg=9s stack=nanosleep;next
            2ms cpu1 switch writer -> idle uninterruptible fdatasync object=file:42 stack=fdatasync;write_out kstack=io_schedule;wait
            {}
            6100ms cpu0 wake idle -> main in=timer
            end 7s",
            turns.concat()
        ));
        problems(&recording, None)
    };
    let found = victims(5);
    assert_eq!(found[0].0, "main", "{found:?}");
    let found = victims(1);
    assert_eq!(found[0].0, "main/writer", "{found:?}");
}

/// A thread that is only there to see a shell end is not held up, though it waits all along; the shell is, for the part
/// in which it waits for a program that computes.
#[test]
fn a_watcher_of_a_shell_is_not_held_up() {
    let recording = record(
        "process lab 100
            thread main lab 100 name=lab
            thread watcher lab 101
            process sh 200
            process gzip 300
            0 cpu0 switch idle -> main
            0 cpu2 switch idle -> watcher
            1us fork main -> sh sh 200
            2us cpu1 wake main -> sh fork new
            5us cpu1 switch idle -> sh
            6us cpu2 switch watcher -> idle sleeping poll object=process:200 stack=select;see_end
            10us cpu1 switch sh -> idle sleeping read object=pipe:1 stack=read;sh
            20us cpu0 switch main -> idle sleeping clock_nanosleep arg=3s stack=nanosleep;main
            2990ms cpu0 wake idle -> main in=timer
            2990.1ms cpu0 switch idle -> main
            2991ms cpu0 wake main -> sh write object=pipe:1 stack=write;tell
            2991.1ms cpu1 switch idle -> sh
            2991.2ms cpu0 switch main -> idle sleeping read object=pipe:2 stack=read;answer
            2992ms fork sh -> gzip gzip 300
            2992ms cpu1 wake sh -> gzip fork new
            2992.1ms cpu1 switch sh -> gzip sleeping wait4 arg=300 stack=wait4;sh
            5990ms cpu1 wake gzip -> sh exit
            5990.1ms cpu1 switch gzip -> sh dead
            5991ms cpu1 wake sh -> watcher exit
            5991.1ms cpu1 switch sh -> idle dead
            5991.2ms cpu2 switch idle -> watcher
            5999ms cpu2 switch watcher -> idle dead
            end 6s",
    );
    let found = problems(&recording, None);
    assert_eq!(found[0].0, "sh", "{found:?}");
}
