//! Whom a thread waits for, where the functions of its language's library tell.

mod common;

use common::Recording;
use hangdog_graph::Source;

fn source(recording: &Recording, name: &str) -> Option<u32> {
    match recording.last_edge(name).source {
        Source::Thread(thread) => Some(thread),
        _ => None,
    }
}

/// The main thread of Python imports a package, of which the code waits for two threads to end; they import a
/// module of the same package, and wait for its lock. A thread that does neither is not waited for, and one that
/// joins threads which compute does not wait for them in this way.
#[test]
fn threads_that_import_what_waits_for_them() {
    const JOINS: &str =
        "sem_wait;PyThread_acquire_lock_timed;Thread._wait_for_tstate_lock;Thread.join";
    const LOAD: &str =
        "sem_wait;PyThread_acquire_lock_timed;_ModuleLock.acquire;_find_and_load;load";
    let recording = |loads: &str| {
        Recording::of(&format!(
            "process python 100\nthread main python 100 name=python
            thread other python 101\nthread first python 102\nthread second python 103
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> first
            0 cpu2 switch idle -> second
            0 cpu3 switch idle -> other
            1ms cpu3 switch other -> idle sleeping nanosleep arg=60s stack=clock_nanosleep;tick
            1ms cpu1 switch first -> idle sleeping futex arg=393 object=futex:0x10 stack={loads}
            1ms cpu2 switch second -> idle sleeping futex arg=393 object=futex:0x10 stack={loads}
            2ms cpu0 switch main -> idle sleeping futex arg=393 object=futex:0x90 stack={JOINS};<module>;_find_and_load
            end 5s"
        ))
    };
    let kept = recording(LOAD);
    assert_eq!(source(&kept, "first"), Some(kept.t("main")));
    assert_eq!(source(&kept, "second"), Some(kept.t("main")));
    assert_eq!(source(&kept, "main"), Some(kept.t("first")));
    assert!(kept.last_edge("main").reason.contains("waits for it"));
    let apart = recording("sem_wait;PyThread_acquire_lock_timed;load");
    assert!(!apart.last_edge("main").reason.contains("waits for it"));
}

/// A task of a pool ends the program, which waits for the thread that it has for that, which waits for the pool's
/// tasks to end. A worker that has no task is not waited for.
#[test]
fn a_program_that_is_ended_by_a_task_that_it_waits_for() {
    const PARK: &str = "pthread_cond_wait;Unsafe_Park";
    const POOL: &str = "java.util.concurrent.ThreadPoolExecutor";
    let recording = Recording::of(&format!(
        "process java 100\nthread main java 100 name=java\nthread spare java 101\nthread worker java 102
        thread signal java 103 name=Signal\nthread compiler java 104 name=C1
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        0 cpu2 switch idle -> spare
        1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x90 stack={PARK};java.util.concurrent.FutureTask.get;Main.main
        1ms cpu2 switch spare -> idle sleeping futex arg=128 object=futex:0x50 stack={PARK};{POOL}.getTask;{POOL}.runWorker
        1.1ms fork worker -> hook java 105
        1.2ms cpu1 switch worker -> hook sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;JVM_MonitorWait;java.lang.Thread.join;java.lang.ApplicationShutdownHooks.runHooks;Main.load;{POOL}.runWorker
        2ms cpu1 switch hook -> idle sleeping futex arg=128 object=futex:0x70 stack={PARK};{POOL}.awaitTermination;Main.close
        end 5s"
    ));
    assert_eq!(source(&recording, "worker"), Some(recording.t("hook")));
    assert_eq!(source(&recording, "hook"), Some(recording.t("worker")));
}

/// In a pid namespace a program asks for its child by a number that the trace does not know: then it waits for the
/// child that it has.
#[test]
fn a_child_has_another_number_in_its_namespace() {
    let recording = Recording::of(
        "process make 100\nthread make make 100\nprocess compiler 200
        0 cpu0 switch idle -> make
        1ms fork make -> compiler compiler 200
        2ms cpu1 switch idle -> compiler
        3ms cpu0 switch make -> idle sleeping wait4 arg=7 stack=wait4;main
        end 5s",
    );
    assert_eq!(source(&recording, "make"), Some(recording.t("compiler")));
}

/// What a thread of Go with nothing to run waits in: what a goroutine waits in at both looks around it, the last one found
/// within, or the next one that is held up. One that may have nothing to do says so only of a wait that it was found in,
/// and other threads' waits are their own.
#[test]
fn goroutines_stand_for_threads_with_nothing_to_run() {
    let waits_in = |looks: &str| {
        let recording = Recording::of(&format!(
            "process shop 200\nthread main shop 200\nthread other shop 201
            {looks}
            0 cpu0 switch idle -> main
            1ms cpu0 switch main -> other sleeping futex arg=128 object=futex:0x10 stack=runtime.futex;runtime.stopm;runtime.mcall
            2ms cpu0 wake other -> main futex op=wake object=futex:0x10
            3ms cpu0 switch other -> main sleeping read object=pipe:3 stack=read;main.copy
            end 9ms"
        ));
        let evidence = recording.evidence();
        let innermost = |thread: &str| {
            let (wait, _) = recording.waits(recording.t(thread)).pop().expect("a wait");
            let stack = wait.user_stack(&evidence);
            let functions = evidence.stacks.stack(stack).filter_map(|it| it.function);
            functions.last().unwrap_or_default().to_owned()
        };
        assert_eq!(innermost("other"), "main.copy");
        innermost("main")
    };
    let row = |ms: &str, number: u32, stack: &str| {
        format!("{ms}ms goroutine main {number} stack=runtime.gopark;{stack}\n")
    };
    let (lock, receive) = (
        "sync.runtime_SemacquireRWMutexR;main.look",
        "runtime.chanrecv1;main.work",
    );
    assert_eq!(waits_in(""), "runtime.mcall");
    assert_eq!(waits_in(&row("1.5", 2, receive)), "main.work");
    assert_eq!(waits_in(&row("5", 2, receive)), "runtime.mcall");
    assert_eq!(waits_in(&row("5", 2, lock)), "main.look");
    assert_eq!(waits_in(&row("0", 2, lock)), "runtime.mcall");
    let both = |first, second| row("0", 2, first) + &row("5", 2, second);
    assert_eq!(waits_in(&both(receive, receive)), "main.work");
    assert_eq!(waits_in(&both(lock, receive)), "runtime.mcall");
    // It may have nothing to do, and what the program asked a database for is waited for.
    let asks = "0 socket shop object=inet:4 local=10.0.0.2:50000 remote=10.0.0.1:80\n";
    let asking = |stack| waits_in(&(asks.to_owned() + &row("1.5", 2, stack)));
    assert_eq!(asking(receive), "runtime.mcall");
    assert_eq!(asking(lock), "main.look");
    // It is another one.
    assert_eq!(
        waits_in(&(row("0", 2, receive) + &row("5", 3, receive))),
        "runtime.mcall"
    );
    assert_eq!(
        waits_in(&row("1.5", 2, "internal/poll.runtime_pollWait;main.serve")),
        "runtime.mcall"
    );
}
