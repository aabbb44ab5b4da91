//! Chains of waits that come to a thread that looks idle: whether it is another of its process that works,
//! its user that it waits for, its own pool of threads, or itself.

use crate::support::*;
use hangdog_diagnose::problem::{ProblemKind, Scope};
use hangdog_diagnose::{Answers, Class, Problem, diagnose, problem};

/// A client on CPU 0 that asks a server by a connection, whose first thread polls, and a second thread.
const SERVED: &str = "
    process client 100
    thread client client 100
    process server 200
    thread loop server 200
    thread worker server 201
    0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
    0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
    0 socket server object=inet:3 local=127.0.0.1:80
    0 open client object=inet:1
    0 open server object=inet:2
    0 open server object=inet:3 kind=listener
    0 cpu0 switch idle -> client
    0 cpu1 switch idle -> loop
    1ms transfer client sent 9 object=inet:1
    1ms cpu0 switch client -> worker sleeping poll object=inet:1 stack=poll;ask
    1100us transfer loop received 9 object=inet:2
    2ms cpu1 switch loop -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;run_loop
";

fn root(text: &str, victim: &str) -> (u32, Class, String) {
    let recording = record(text);
    let verdict = explain(&recording, victim, 2_000..1_000_000);
    (verdict.root.who.tid, verdict.root.class, verdict.sentence)
}

/// The event loop of a server that was asked has nothing to do, but a thread of it reads from a disk: that
/// one has the work. One that sleeps, or waits for work, has none.
#[test]
fn a_worker_has_what_the_event_loop_handed_on() {
    let with = |wait: &str| {
        root(
            &format!("{SERVED} 3ms cpu0 switch worker -> idle {wait}\nend 1s"),
            "client",
        )
    };
    let (tid, class, sentence) = with(
        "uninterruptible read object=file:7 stack=read;load_page kstack=io_schedule;folio_wait_bit_common",
    );
    assert_eq!((tid, class), (201, Class::LongWait), "{sentence}");
    assert!(sentence.contains("waited for the disk"), "{sentence}");
    for idle in [
        "sleeping clock_nanosleep arg=9s stack=nanosleep;tick",
        "sleeping futex arg=128 object=futex:0x9 stack=pthread_cond_wait;next_job",
    ] {
        let (tid, _, sentence) = with(idle);
        assert_eq!(tid, 200, "{idle}: {sentence}");
    }
}

/// A program with a window whose event loop is idle waits for its user; the display owes it nothing. One
/// that asked the display and waits for the reply is owed that.
#[test]
fn an_idle_window_waits_for_its_user() {
    let window = |stack: &str| {
        root(
            &format!(
                "process tool 100
                thread tool tool 100
                process dialog 200
                thread dialog dialog 200
                process Xvfb 300
                thread Xvfb Xvfb 300
                0 socket dialog object=unix:1 peer=unix:2 peer-process=Xvfb remote=@/tmp/.X11-unix/X1
                0 socket Xvfb object=unix:2 peer=unix:1 peer-process=dialog local=@/tmp/.X11-unix/X1
                0 open dialog object=unix:1
                0 open Xvfb object=unix:2
                0 open tool object=pipe:5 access=read
                0 open dialog object=pipe:5 access=write
                0 cpu0 switch idle -> tool
                0 cpu1 switch idle -> Xvfb
                1ms cpu1 switch Xvfb -> dialog sleeping epoll_wait object=epoll:9 stack=epoll_wait;WaitForSomething
                1ms cpu0 switch tool -> idle sleeping read object=pipe:5 stack=read;ask_passphrase
                2ms cpu1 switch dialog -> idle sleeping poll object=unix:1 stack={stack}
                end 1s"
            ),
            "tool",
        )
    };
    let (tid, class, sentence) = window("poll;g_main_loop_run;gtk_main");
    assert_eq!((tid, class), (200, Class::LongWait), "{sentence}");
    assert!(
        sentence.contains("waited for input from its user"),
        "{sentence}"
    );
    let (tid, _, sentence) = window("poll;_XReply;XSync;g_main_loop_run;gtk_main");
    assert_eq!(tid, 300, "{sentence}");
}

/// An interpreter that waits at its prompt, by whatever call, waits for a command.
#[test]
fn a_prompt_waits_for_a_command() {
    let sentence = |stack: &str| {
        let (tid, _, sentence) = root(
            &format!(
                "process tool 100
                thread tool tool 100
                process sqlite3 200
                thread sqlite3 sqlite3 200
                0 open tool object=pipe:5 access=read
                0 open sqlite3 object=pipe:5 access=write
                0 cpu0 switch idle -> tool
                0 cpu1 switch idle -> sqlite3
                1ms cpu0 switch tool -> idle sleeping read object=pipe:5 stack=read;ask
                2ms cpu1 switch sqlite3 -> idle sleeping pselect6 stack={stack}
                end 1s"
            ),
            "tool",
        );
        assert_eq!(tid, 200, "{sentence}");
        sentence
    };
    let prompt = sentence("__pselect;_rl_timeout_select;rl_getc;readline;main");
    assert!(prompt.contains("waited for its next command"), "{prompt}");
    let other = sentence("__pselect;serve;main");
    assert!(!other.contains("command"), "{other}");
}

/// A shell that was refused another process sleeps before it tries again: the sentence says that it does.
#[test]
fn a_sleep_between_two_attempts() {
    let sentence = |within: &str| {
        let sleep = "sleeping clock_nanosleep arg=4s";
        let text = format!(
            "process bash 100
            thread bash bash 100
            0 cpu0 switch idle -> bash
            1ms cpu0 switch bash -> idle {sleep} stack=nanosleep;{within};main
            end 1s"
        );
        root(&text, "bash").2
    };
    let refused = sentence("make_child");
    assert!(
        refused.contains("slept between two attempts in make_child"),
        "{refused}"
    );
    let naps = sentence("nap");
    assert!(!naps.contains("attempts"), "{naps}");
}

/// Where the control group of the shell has all the processes that it may have, the sentence says so.
#[test]
fn a_group_without_room_for_a_process() {
    let sentence = |used: u32, within: &str| {
        let text = format!(
            "process bash 100
            thread bash bash 100
            0 limit bash tasks 7 used={used} group=/deploy
            0 cpu0 switch idle -> bash
            1ms cpu0 switch bash -> idle sleeping clock_nanosleep arg=4s stack=nanosleep;{within};main
            end 1s"
        );
        root(&text, "bash").2
    };
    let full = "; its control group /deploy has all 7 threads and processes that it may have.";
    assert!(sentence(7, "make_child").ends_with(full));
    assert!(!sentence(6, "make_child").contains("control group"));
    assert!(!sentence(7, "nap").contains("control group"));
}

/// PostgreSQL's commit waits for a standby: not for whoever signals that this has answered, nor for the server
/// whose end its processes learn of by a pipe.
#[test]
fn a_commit_waits_for_its_standby() {
    let (tid, class, sentence) = root(
        "process postmaster 100
        thread postmaster postmaster 100
        process postgres 200
        thread backend postgres 200 name=postgres
        process walsender 300
        thread walsender walsender 300
        0 open postmaster object=pipe:7
        0 open postgres object=pipe:7 access=read
        0 open walsender object=pipe:7 access=read
        0 cpu0 switch idle -> backend
        0 cpu1 switch idle -> walsender
        1ms cpu1 switch walsender -> idle sleeping epoll_wait object=pipe:7 stack=epoll_wait;WaitLatch;WalSndLoop
        2ms cpu0 switch backend -> idle sleeping epoll_wait object=pipe:7 stack=epoll_wait;WaitLatch;SyncRepWaitForLSN
        900ms cpu1 switch idle -> walsender
        901ms cpu1 wake walsender -> backend kill arg=23
        901ms cpu0 switch idle -> backend
        950ms cpu0 switch backend -> idle dead
        end 1s",
        "backend",
    );
    assert_eq!((tid, class), (200, Class::LongWait), "{sentence}");
    assert!(
        sentence.contains("waited for a standby to confirm its commit"),
        "{sentence}"
    );
}

/// Each worker of a pool waits for a task that is given to the pool; while one of them has nothing to do,
/// it would take that.
#[test]
fn a_pool_starves_itself() {
    const TASK: &str = "pthread_cond_wait;java.util.concurrent.FutureTask.get;Shop.render;java.util.concurrent.ThreadPoolExecutor.runWorker";
    let pool = |second: &str| {
        root(
            &format!(
                "process shop 100
                thread main shop 100
                thread pool-1 shop 101
                thread pool-2 shop 102
                0 cpu0 switch idle -> pool-1
                0 cpu1 switch idle -> pool-2
                1ms cpu0 switch pool-1 -> main sleeping futex arg=128 object=futex:0x1 stack={TASK}
                1ms cpu1 switch pool-2 -> idle sleeping futex arg=128 object=futex:0x2 stack={second}
                2ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;serve
                end 1s"
            ),
            "pool-1",
        )
    };
    let says = "each worker of main's pool waits for a task that only they could run";
    let (tid, class, sentence) = pool(TASK);
    assert_eq!((tid, class), (101, Class::LongWait), "{sentence}");
    assert!(sentence.contains(says), "{sentence}");
    let (_, _, sentence) =
        pool("pthread_cond_wait;java.util.concurrent.ThreadPoolExecutor.getTask");
    assert!(!sentence.contains(says), "{sentence}");
}

/// A program with one thread asks itself, by a connection that it cannot accept meanwhile. One that another
/// thread of it could accept is not lost; nor does a server that waits for connections ask itself.
#[test]
fn a_program_asks_itself() {
    let asks = |thread: &str, object: &str| {
        root(
            &format!(
                "process site 100
                thread site site 100
                {thread}
                0 socket site object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
                0 socket site object=inet:3 local=127.0.0.1:80
                0 open site object=inet:1
                0 open site object=inet:3 kind=listener unread=1
                0 cpu0 switch idle -> site
                1ms cpu0 switch site -> idle sleeping poll object={object} stack=poll;load_menu
                end 1s"
            ),
            "site",
        )
    };
    let says = "asked itself, and waits for its own answer in load_menu";
    let (tid, class, sentence) = asks("", "inet:1");
    assert_eq!((tid, class), (100, Class::Circular), "{sentence}");
    assert!(sentence.contains(says), "{sentence}");
    let other = "thread other site 101
                0 cpu1 switch idle -> other
                1ms cpu1 switch other -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;serve";
    for (thread, object) in [(other, "inet:1"), ("", "inet:3")] {
        let (_, _, sentence) = asks(thread, object);
        assert!(!sentence.contains(says), "{sentence}");
    }
}

/// A program looks again and again, with naps, whether its child has ended: the child is what it waits for.
/// One that has nothing to do is not.
#[test]
fn a_child_is_looked_after_between_naps() {
    let looks = |child: &str| {
        let mut text = format!(
            "process editor 100
            thread editor editor 100
            process lint 200
            0 cpu0 switch idle -> editor
            1ms fork editor -> child lint 200
            1ms cpu1 switch idle -> child
            2ms cpu1 switch child -> idle {child}\n"
        );
        for turn in 0..50 {
            let at = 3 + 10 * turn;
            text += &format!(
                "{at}ms cpu0 switch editor -> idle sleeping clock_nanosleep arg=9900us stack=nanosleep;wait_for_child;main
                {}us cpu0 wake idle -> editor in=timer
                {}us cpu0 switch idle -> editor\n",
                at * 1000 + 9900,
                at * 1000 + 9950
            );
        }
        let recording = record(&format!("{text}end 510ms"));
        let verdict = explain(&recording, "editor", 3_000..500_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (tid, sentence) =
        looks("uninterruptible read object=file:7 stack=read;load kstack=io_schedule");
    assert_eq!(tid, 200, "{sentence}");
    let (tid, sentence) = looks("sleeping epoll_wait object=epoll:9 stack=epoll_wait;serve");
    assert_eq!(tid, 100, "{sentence}");
}

/// A select for no descriptor lets time pass, as Perl's sleep for a part of a second does.
#[test]
fn a_select_for_nothing_is_a_sleep() {
    let sentence = |argument: &str| {
        let text = format!(
            "process app 100
            thread app app 100
            0 cpu0 switch idle -> app
            1ms cpu0 switch app -> idle sleeping pselect6 arg={argument} stack=select;wait_for_lease
            end 1s"
        );
        root(&text, "app").2
    };
    assert!(
        sentence("9000000000").contains("slept in"),
        "{}",
        sentence("9000000000")
    );
    assert!(!sentence("0").contains("slept in"), "{}", sentence("0"));
}

/// So does a poll of no descriptor, which its argument tells: it waits for nobody, whom it has asked or not.
#[test]
fn a_poll_of_nothing_is_a_sleep() {
    let sentence = |argument: u64| {
        let text = format!(
            "process app 100
            thread app app 100
            process store 200
            thread store store 200
            0 cpu0 switch idle -> app
            0 cpu1 switch idle -> store
            0.5ms cpu1 switch store -> idle sleeping poll object=inet:9
            0.9ms cpu0 wake app -> store sendto object=inet:8
            1ms cpu0 switch app -> idle sleeping poll arg={argument} stack=poll;retry_later
            1.1ms cpu1 switch idle -> store
            1.2ms cpu1 switch store -> idle sleeping poll object=inet:9
            900ms cpu0 wake idle -> app in=timer
            901ms cpu0 switch idle -> app
            end 1s"
        );
        let verdict = explain(&record(&text), "app", 1_000..900_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (tid, sleeps) = sentence(1 << 62 | 899_000_000);
    assert_eq!(tid, 100);
    assert!(sleeps.contains("slept"), "{sleeps}");
    let (_, polls) = sentence(899);
    assert!(!polls.contains("slept"), "{polls}");
}

/// A child that has nothing to do, but has started one that has, is looked after for that one's sake. That the program
/// says so on its output meanwhile changes nothing: who reads that owes it no answer.
#[test]
fn a_child_is_looked_after_for_its_own_child() {
    let looks = |idle: bool| {
        let last = match idle {
            true => "sleeping epoll_wait object=epoll:8 stack=epoll_wait;serve",
            false => "uninterruptible read object=file:7 stack=read;load kstack=io_schedule",
        };
        let mut text = format!(
            "process shell 40
            process script 60
            process starter 100
            process tail 150
            process server 200
            process writer 300
            process loader 400
            thread shell shell 40
            0 cpu3 switch idle -> shell
            0.1ms fork shell -> script script 60
            0.1ms fork shell -> tail tail 150
            0.2ms cpu3 switch shell -> idle sleeping wait4
            0.2ms cpu2 switch idle -> tail
            0.3ms cpu2 switch tail -> idle sleeping read object=pipe:5
            0.4ms cpu0 switch idle -> script
            150ms fork script -> sh starter 100
            150.4ms cpu0 switch script -> sh sleeping wait4
            151ms fork sh -> server server 200
            151ms cpu1 switch idle -> server
            151.1ms fork server -> writer writer 300
            151.2ms fork server -> loader loader 400
            151.3ms cpu1 switch server -> writer sleeping epoll_wait object=epoll:9 stack=epoll_wait;serve
            151.4ms cpu1 switch writer -> loader sleeping epoll_wait object=epoll:7 stack=epoll_wait;serve
            152ms cpu1 switch loader -> idle {last}\n"
        );
        for turn in 0..50 {
            let at = 153_000 + 10_000 * turn;
            text += &format!(
                "{at}us cpu0 switch sh -> idle sleeping clock_nanosleep arg=9700us stack=nanosleep;wait_for_server;main
                {}us cpu0 wake idle -> sh in=timer
                {}us cpu0 switch idle -> sh\n",
                at + 9_700,
                at + 9_750
            );
            if turn % 10 == 9 {
                let at = at + 9_800;
                text += &format!(
                    "{at}us cpu0 wake sh -> tail write object=pipe:5
                    {}us cpu2 switch idle -> tail
                    {}us cpu2 switch tail -> idle sleeping read object=pipe:5\n",
                    at + 10,
                    at + 30
                );
            }
        }
        let recording = record(&format!("{text}end 660ms"));
        let verdict = explain(&recording, "sh", 153_000..650_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (tid, sentence) = looks(false);
    assert_eq!(tid, 400, "{sentence}");
    let (tid, sentence) = looks(true);
    assert_eq!(tid, 100, "{sentence}");
}

/// A script looks again and again for what another that was started with it is to make: no event says for whom,
/// but that one alone computes. Where two do, none is named.
#[test]
fn who_polls_is_told_what_is_at_work_beside_it() {
    let sentence = |share_ms: u32| {
        let mut text = String::from(
            "process shell 50\nthread shell shell 50
            process trainer 100\nprocess loader 200\nprocess other 300
            0 cpu3 switch idle -> shell
            0.1ms fork shell -> main trainer 100\n0.1ms fork shell -> loader loader 200
            0.1ms fork shell -> other other 300
            0.1ms rename main trainer\n0.1ms rename loader loader
            0.2ms cpu0 switch idle -> main
            0.2ms cpu1 switch idle -> loader
            0.2ms cpu2 switch idle -> other
            0.3ms cpu3 switch shell -> idle sleeping wait4\n",
        );
        text +=
            &format!("{share_ms}ms cpu2 switch other -> idle sleeping epoll_wait object=epoll:9\n");
        for nap in 0..400 {
            let at = 1_000 + nap * 5_000;
            text += &format!(
                "{at}us cpu0 switch main -> idle sleeping clock_nanosleep arg=4900us stack=nanosleep;next_batch
                {}us cpu0 wake idle -> main in=timer
                {}us cpu0 switch idle -> main\n",
                at + 4_900,
                at + 4_950
            );
        }
        text += &samples(1, "loader", 2..1_990, "decode_images;main");
        let recording = record(&format!("{text}end 2003ms"));
        explain(&recording, "main", 1_000..2_000_000).sentence
    };
    let told = "loader alone worked for most of that time: it ran decode_images";
    assert!(sentence(10).contains(told), "{}", sentence(10));
    assert!(!sentence(1_500).contains(told), "{}", sentence(1_500));
}

/// A display server served one client, which has exited since, more than any other. It waits for whatever comes
/// next, and misses nobody; a program whose partner has exited, which is no client of it, does.
#[test]
fn a_server_does_not_miss_a_client_that_exited() {
    let owed = |client: &str| {
        let mut text = format!(
            "process Xvfb 100
            thread Xvfb Xvfb 100
            process xdotool 200
            thread xdotool xdotool 200
            0 socket xdotool object=unix:1 {client}
            0 cpu0 switch idle -> Xvfb
            0 cpu1 switch idle -> xdotool\n"
        );
        for turn in 1..9 {
            text += &format!(
                "{turn}ms cpu0 switch Xvfb -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;WaitForSomething
                {turn}500us cpu1 wake xdotool -> Xvfb writev object=unix:1
                {turn}510us cpu0 switch idle -> Xvfb\n"
            );
        }
        text += "9ms cpu0 switch Xvfb -> idle sleeping epoll_wait object=epoll:9 stack=epoll_wait;WaitForSomething
            10ms exit xdotool 0
            10ms cpu1 switch xdotool -> idle dead
            900ms cpu1 wake idle -> Xvfb in=softirq vector=3
            900ms cpu0 switch idle -> Xvfb
            end 1s";
        let recording = record(&text);
        let found = hangdog_diagnose::problem::find(
            &recording.evidence(),
            hangdog_diagnose::problem::Scope::default(),
        );
        let own = found.iter().find(|it| it.window.start == 9 * MS);
        own.map_or(0.0, |problem| problem.owed)
    };
    let to_display = "peer=unix:2 peer-process=Xvfb remote=@/tmp/.X11-unix/X0";
    assert!(
        owed("") > 5.0 * owed(to_display),
        "{} {}",
        owed(""),
        owed(to_display)
    );
}

/// Node keeps a thread that waits for its debugger to be started: it has nothing to do with what node's event
/// loop is asked for. A dialog in a terminal polls that for its user.
#[test]
fn a_pipe_leads_to_nodes_loop_and_not_to_its_debugger() {
    let recording = record(
        "process tool 100
        thread tool tool 100
        process node 200
        thread node node 200
        thread signals node 201
        0 open tool object=pipe:5 access=read
        0 open node object=pipe:5 access=write
        0 cpu0 switch idle -> tool
        0 cpu1 switch idle -> node
        1ms cpu2 switch signals -> idle sleeping futex arg=128 object=futex:0x9 stack=uv_sem_wait;node::inspector::(anonymous_namespace)::StartIoThreadMain(void*);start_thread
        2ms cpu1 switch node -> idle sleeping poll object=char:3 stack=poll;wgetch;main
        3ms cpu0 switch tool -> idle sleeping read object=pipe:5 stack=read;communicate
        end 2s",
    );
    let verdict = explain(&recording, "tool", 3_000..2_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    let says = "waited for input from a terminal or device";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
}

/// A program polls the pipes of its child, which ends: the last of the child's threads to die closes them, in
/// whatever call that was. Its first thread stands for the child.
#[test]
fn the_end_of_a_child_is_its_first_threads() {
    let recording = record(
        "process tool 100
        thread tool tool 100
        process node 200
        thread node node 200
        thread pool node 201
        0 cpu0 switch idle -> tool
        0 cpu1 switch idle -> node
        1ms cpu2 switch pool -> idle sleeping futex arg=128 object=futex:0x9 stack=uv_sem_wait;node::inspector::(anonymous_namespace)::StartIoThreadMain(void*)
        2ms cpu1 switch node -> idle sleeping epoll_wait object=epoll:3 stack=epoll_wait;uv_run;main
        3ms cpu0 switch tool -> idle sleeping poll stack=poll;communicate
        900ms exit node 0
        900ms cpu1 wake node -> pool exit_group
        900ms cpu2 switch idle -> pool
        900.1ms cpu2 wake pool -> tool futex object=futex:0x9
        900.2ms cpu0 switch idle -> tool
        900.2ms exit pool 0
        900.3ms cpu2 switch pool -> idle dead
        end 1s",
    );
    let verdict = explain(&recording, "tool", 3_000..900_100);
    let way: Vec<u32> = verdict.path.iter().map(|step| step.who.tid).collect();
    assert_eq!(way[..2], [100, 200], "{}", verdict.sentence);
}

/// Of a language with a scheduler of its own any thread may go on with what another began: where the one that took
/// the request has nothing to do, the one that works all the time has it.
#[test]
fn another_thread_of_the_scheduler_goes_on_with_a_request() {
    let with = |home: &str, events: &str| {
        let text = SERVED.replace("stack=epoll_wait;run_loop", home);
        root(&format!("{text} {events}\nend 1s"), "client")
    };
    let works = samples(0, "worker", 3..990, "defragment;run");
    let home = "stack=runtime.epollwait;runtime.findRunnable;runtime.schedule";
    let (tid, class, sentence) = with(home, &works);
    assert_eq!((tid, class), (201, Class::LongRunning), "{sentence}");
    // One that works for a moment does not.
    let (tid, ..) = with(
        home,
        "300ms cpu0 switch worker -> idle sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;runtime.findRunnable",
    );
    assert_ne!(tid, 201);
}

/// The scheduler of a language has nothing to run and waits for the one connection that there is: what was asked for by
/// that is owed, and where nothing was, nothing is.
#[test]
fn a_scheduler_waits_for_what_was_asked_for() {
    let felt = |text: &str| {
        let scheduler = "runtime.netpoll;runtime.findRunnable;runtime.schedule";
        let text = text.replace("stack=poll;ask", &format!("stack={scheduler}"));
        let text = text.replace("sleeping poll object", "sleeping epoll_pwait object");
        let recording = record(&format!("{text} end 1s"));
        let found = problem::find(&recording.evidence(), Scope::default());
        let client = recording.t("client");
        let of_client = found.iter().find(|problem| problem.thread == client);
        of_client.map_or(0.0, |problem| problem.felt)
    };
    assert!(felt(SERVED) > 0.5);
    let asked = "1ms transfer client sent 9 object=inet:1";
    assert!(felt(&SERVED.replace(asked, "")) < 0.1);
}

/// A worker that takes jobs from a broker waits for nothing that anybody owes; whoever gave the broker a job does.
#[test]
fn a_worker_at_a_broker_waits_for_jobs() {
    let with = |function: &str| {
        let text = SERVED
            .replace("process server", "process gearmand")
            .replace("server ", "gearmand ");
        let text = text.replace("stack=poll;ask", &format!("stack=poll;{function};main"));
        let recording = record(&format!(
            "{text} 3ms cpu0 switch worker -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;wait_for_work
            900ms cpu1 wake loop -> client write object=inet:1
            900ms cpu0 switch idle -> client
            end 1s"
        ));
        let scope = Scope::default();
        let found = problem::find(&recording.evidence(), scope);
        let client = recording.t("client");
        let of_client = found.iter().find(|problem| problem.thread == client);
        of_client.map_or(0.0, |problem| problem.felt)
    };
    assert!(with("gearman_client_run_tasks") > 0.9);
    assert!(with("gearman_worker_grab_job") < 0.1);
}

/// The sentence on a program that may have been idle says how often timers woke it: it may poll by calls that do not
/// wait.
#[test]
fn timers_of_a_program_that_may_be_idle_are_told() {
    let sentence = |times: u64| {
        let mut text = "process app 100
            thread main app 100 name=app
            thread poller app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> poller
            1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;wait_for_work\n"
            .to_owned();
        for turn in 0..times {
            let at = 10 + turn * 100;
            text += &format!(
                "{at}ms cpu1 switch poller -> idle sleeping epoll_wait object=epoll:5 arg=99 stack=epoll_wait;run
                {}ms cpu1 wake idle -> poller in=timer
                {}.1ms cpu1 switch idle -> poller\n",
                at + 99,
                at + 99,
            );
        }
        text += "2500ms cpu1 switch poller -> idle sleeping epoll_wait object=epoll:5 stack=epoll_wait;run\nend 3s";
        let recording = record(&text);
        let evidence = recording.evidence();
        let problem = Problem {
            kind: ProblemKind::Wait,
            owed: 0.0,
            ..Problem::picked(recording.t("main"), MS..3_000 * MS)
        };
        assert!(problem.may_be_idle());
        diagnose(&evidence, &problem, setting(false, &Answers::default())).sentence
    };
    let looks = sentence(20);
    let told = " Timers woke threads of its program 20 times meanwhile";
    assert!(looks.contains(told), "{looks}");
    let rests = sentence(2);
    assert!(
        rests.contains("may have been idle") && !rests.contains("Timers"),
        "{rests}"
    );
}

/// A worker's main thread waits until its other thread has read an order of the parent from a pipe: that is owed to nobody. Its
/// neighbour, which waits for a lock, is the problem.
#[test]
fn a_worker_that_is_told_by_pipe() {
    let mut text =
        String::from("process pytest 100\nthread main pytest 100\n0 cpu0 switch idle -> main\n");
    for (number, name) in [(1, "rests"), (2, "locked")] {
        let pid = number * 100 + 100;
        text += &format!(
            "process {name} {pid}
            0.1ms fork main -> {name} {name} {pid}
            0.2ms cpu{number} switch idle -> {name}
            0.3ms fork {name} -> reader{number} {name} {}
            0.4ms cpu{} switch idle -> reader{number}
            0.5ms open pytest object=pipe:{number} access=write
            0.5ms open {name} object=pipe:{number} access=read
            1ms cpu{} switch reader{number} -> idle sleeping read object=pipe:{number} stack=read;from_io;thread_receiver\n",
            pid + 1,
            number + 4,
            number + 4
        );
    }
    text += "1.5ms cpu0 switch main -> idle sleeping clock_nanosleep arg=9s stack=clock_nanosleep;pause
        500ms cpu1 switch rests -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_cond_wait;wait_for_order
        600ms cpu2 switch locked -> idle sleeping futex arg=128 object=futex:0x30 stack=pthread_mutex_lock;charge;reserve
        end 3s";
    let found = problems(&record(&text), None);
    assert_eq!(found[0].0, "locked", "{found:?}");
}
