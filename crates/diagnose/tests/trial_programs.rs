//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with. Here: what has to be known of
//! single programs and languages.

use crate::support::*;
use hangdog_diagnose::Class;

/// vim looks at its shell's terminal until that has run a command: it waits for the command, also if it began before the
/// recording.
#[test]
fn an_editor_waits_for_its_command() {
    let recording = record(
        "process vim 100\nthread vim vim 100\nthread gmain vim 101
        process sh 200
        0 fork vim -> tidy sh 200
        0 open vim object=char:91
        0 cpu1 switch idle -> tidy
        0 cpu0 switch gmain -> idle sleeping poll object=eventfd:3 stack=poll;g_main_loop_run
        0 cpu0 switch vim -> idle sleeping pselect6 object=char:91 stack=select;call_shell;do_cmdline
        end 1s",
    );
    let verdict = explain(&recording, "vim", 0..1_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(verdict.root.class, Class::LongRunning);
}

/// apt sleeps between two attempts at the lock of dpkg's files, for which it has no file open meanwhile: the program
/// that installs packages too and has a lock has it, and not another that has a lock.
#[test]
fn a_package_manager_waits_for_another() {
    let recording = record(
        "process apt-get 100\nthread apt apt-get 100
        process dpkg 200\nthread dpkg dpkg 200
        process cron 300\nthread cron cron 300
        0 open cron object=file:7 kind=file-lock
        0 open dpkg object=file:8 kind=file-lock
        0 cpu0 switch cron -> idle sleeping nanosleep arg=60s stack=nanosleep;main_loop
        0 cpu0 switch dpkg -> idle sleeping read object=char:3 stack=read;prompt
        0 cpu0 switch apt -> idle sleeping clock_nanosleep arg=1s stack=clock_nanosleep;pkgCacheFile::BuildCaches(OpProgress*,bool)
        end 1s",
    );
    let verdict = explain(&recording, "apt", 0..1_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// An emulator's main thread polls for the end of a write, and holds the lock that a processor's thread waits for. Of its
/// other threads the one that writes is meant, not the one that waits for the lock.
#[test]
fn who_writes_comes_before_who_waits_for_the_lock() {
    let recording = record(
        "process monitor 100\nthread monitor monitor 100
        process qemu 200\nthread main qemu 200 name=qemu\nthread vcpu qemu 201\nthread worker qemu 202
        0 socket monitor object=unix:1 peer=unix:2 peer-process=qemu
        0 socket qemu object=unix:2 peer=unix:1 peer-process=monitor local=/run/monitor
        0 open monitor object=unix:1 last=sent
        0 open qemu object=unix:2 last=received
        0 cpu0 switch vcpu -> idle sleeping futex object=futex:0x10 arg=128 holder=main stack=__lll_lock_wait;pthread_mutex_lock;run_cpu
        0 cpu0 switch worker -> idle uninterruptible pwrite64 object=file:9 stack=pwrite;handle_write kstack=io_schedule;wait
        0 cpu0 switch main -> idle sleeping ppoll object=eventfd:5 stack=ppoll;aio_poll;save
        end 3s",
    );
    let verdict = explain(&recording, "main", 0..3_000_000);
    assert_eq!(verdict.root.who.tid, 202, "{}", verdict.sentence);
}

/// Of a stripped program the function has no name; the C library's one that it called has.
#[test]
fn a_function_without_a_name_is_told_by_what_it_calls() {
    let sentence = |own: &str| {
        let text = samples(0, "main", 1..1999, &format!("read;__GI___poll;{own};main"));
        let recording = record(&format!(
            "process app 100\nthread main app 100 name=app
            0 cpu0 switch idle -> main\n{text}end 2s"
        ));
        explain(&recording, "main", 0..2_000_000).sentence
    };
    let nameless = sentence("app+0x96410");
    assert!(nameless.contains("100 % in poll ("), "{nameless}");
    let named = sentence("search_back");
    assert!(!named.contains("poll"), "{named}");
}

/// A log daemon's thread that was sent a message waits for room in a full queue: the thread that empties the queue
/// sends over a connection whose other end does not confirm. The main thread is idle.
#[test]
fn a_full_queue_is_emptied_by_the_thread_at_work() {
    let recording = record(
        "process logger 100\nthread logger logger 100
        process rsyslogd 200\nthread main rsyslogd 200 name=rsyslogd\nthread input rsyslogd 201\nthread output rsyslogd 202
        0 socket logger object=unix:1 peer=unix:2 peer-process=rsyslogd
        0 socket rsyslogd object=inet:5 local=10.0.0.1:5000 remote=10.0.0.2:514
        0 open logger object=unix:1
        0 open rsyslogd object=unix:2
        0 open rsyslogd object=inet:5 last=sent
        0 cpu0 switch idle -> logger
        0 cpu1 switch idle -> output
        0 cpu2 switch main -> idle sleeping pselect6 stack=select;mainloop
        0 cpu2 switch idle -> input
        1ms cpu1 switch output -> idle sleeping sendto object=inet:5 stack=send;commit
        2ms transfer logger sent 8 object=unix:1
        3ms transfer input received 8 object=unix:2
        4ms cpu2 switch input -> idle sleeping futex arg=137 object=futex:0x10 stack=pthread_cond_timedwait;qqueueEnqMsg;submit
        5ms cpu0 switch logger -> idle sleeping sendmsg object=unix:1 stack=sendmsg;log
        end 3s",
    );
    let verdict = explain(&recording, "input", 4_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 202, "{}", verdict.sentence);
}

/// A session of a database waits for a standby to confirm its commit, and what another process of the server sent to the
/// standby does not arrive: the network. The standby's end waits for that, too.
#[test]
fn what_is_sent_to_a_standby_does_not_arrive() {
    let standby = |last: &str| {
        format!(
            "process postmaster 100\nthread postmaster postmaster 100
            process backend 200\nprocess walsender 300
            process walreceiver 400\nthread walreceiver walreceiver 400
            0 fork postmaster -> backend backend 200
            0 fork postmaster -> walsender walsender 300
            0 socket walsender object=inet:1 local=127.0.0.2:5432 remote=127.0.0.1:5000
            0 socket walreceiver object=inet:2 local=127.0.0.1:5000 remote=127.0.0.2:5432
            0 socket postmaster object=inet:3 local=127.0.0.2:5432
            0 open postmaster object=inet:3 kind=listener
            0 open walsender object=inet:1 last={last}
            0 open walreceiver object=inet:2 last=received
            0 cpu0 switch postmaster -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;ServerLoop
            0 cpu0 switch backend -> idle sleeping epoll_wait object=epoll:2 stack=epoll_wait;WaitLatch;SyncRepWaitForLSN
            0 cpu0 switch walsender -> idle sleeping epoll_wait object=epoll:3 stack=epoll_wait;WalSndLoop
            0 cpu0 switch walreceiver -> idle sleeping poll object=inet:2 stack=poll;WalReceiverMain
            end 3s"
        )
    };
    let recording = |last: &str| record(&standby(last));
    let kind = |recording: &Recording, thread: &str| {
        let verdict = explain(recording, thread, 0..3_000_000);
        let main = verdict.blame.iter().max_by_key(|part| part.ns);
        (
            main.map(|part| part.kind.to_string()).unwrap_or_default(),
            verdict.sentence,
        )
    };
    let lost = recording("lost");
    let (network, sentence) = kind(&lost, "backend");
    assert_eq!(network, "network", "{sentence}");
    assert!(sentence.contains("is not acknowledged") || sentence.contains("was not acknowledged"));
    assert_eq!(kind(&lost, "walreceiver").0, "network");
    assert_ne!(kind(&recording("sent"), "backend").0, "network");
    // It is another session whose client is out of reach.
    let other = record(&standby("lost").replace("walsender", "session"));
    assert_ne!(kind(&other, "backend").0, "network");
}

/// A pool of processes works on the result that a thread waits for, and not the thread of the same process that only
/// sleeps.
#[test]
fn a_pool_of_processes_comes_before_a_thread_that_sleeps() {
    let recording = record(
        "process report 100\nthread main report 100 name=report\nthread metrics report 101\nthread handler report 102
        process worker 200
        0 fork main -> worker worker 200
        0 cpu1 switch idle -> worker
        0 cpu0 switch handler -> idle sleeping futex arg=393 object=futex:0x50 stack=sem_wait;Condition.wait;Queue.get;Pool._handle_tasks
        0 cpu0 switch metrics -> idle sleeping clock_nanosleep arg=20ms stack=clock_nanosleep;flush_metrics
        0 cpu0 switch main -> idle sleeping futex arg=393 object=futex:0x10 stack=sem_wait;Condition.wait;ApplyResult.wait;ApplyResult.get
        end 1s",
    );
    let verdict = explain(&recording, "main", 0..1_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// An executable of OCaml has the language's runtime in it: the program's own function is named.
#[test]
fn the_runtime_of_ocaml_is_not_the_program() {
    let stack = "extern_value;caml_output_value_to_bytes;camlStdlib__Marshal__to_bytes_90;camlSrv__save_snapshot_557;camlThread__fun_314;caml_main;main";
    let recording = record(&format!(
        "process srv 100\nthread main srv 100 name=srv
        0 cpu0 switch idle -> main\n{}end 2s",
        samples(0, "main", 1..1999, stack)
    ));
    let verdict = explain(&recording, "main", 0..2_000_000);
    assert!(
        verdict.sentence.contains("camlSrv__save_snapshot_557"),
        "{}",
        verdict.sentence
    );
}

/// Java's process reaper waits for the child on behalf of the thread in waitFor, which is the one that would read the
/// child's output: parent and child wait for each other.
#[test]
fn java_waits_for_a_child_whose_output_it_does_not_read() {
    let recording = record(
        "process java 100\nthread launcher java 100\nthread main java 101 name=java\nthread reaper java 102
        process git 200
        0 fork main -> git git 200
        0 open java object=pipe:7 access=read
        0 open git object=pipe:7 access=write last=sent
        0 cpu0 switch launcher -> idle sleeping futex arg=265 object=futex:0x20 stack=futex;__pthread_clockjoin_ex;main
        0 cpu0 switch reaper -> idle sleeping wait4 arg=200 stack=wait4;java.lang.ProcessHandleImpl.waitForProcessExit0
        0 cpu0 switch main -> idle sleeping futex arg=393 object=futex:0x10 stack=futex_wait;pthread_cond_wait;java.lang.Object.wait;java.lang.ProcessImpl.waitFor;Report.history
        0 cpu0 switch git -> idle sleeping write object=pipe:7 stack=write;show_log
        end 3s",
    );
    let verdict = explain(&recording, "main", 0..3_000_000);
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
    let knot = verdict.knot.iter().flatten();
    let mut members: Vec<u32> = knot.map(|member| member.tid).collect();
    members.sort_unstable();
    assert_eq!(members, [101, 200], "{}", verdict.sentence);
}

/// psql has its answer and waits for its user's next command: whom it sent the last one to is not asked for anything,
/// though it was woken by that right before.
#[test]
fn who_reads_commands_has_asked_nobody() {
    let recording = record(
        "process psql 100\nthread psql psql 100
        process postgres 200\nthread backend postgres 200
        0 socket psql object=unix:1 peer=unix:2 peer-process=postgres
        0 socket postgres object=unix:2 peer=unix:1 peer-process=psql local=/run/postgres
        0 cpu0 switch psql -> idle sleeping pselect6 object=char:3 stack=pselect;rl_getc;readline
        0 cpu1 switch backend -> idle sleeping epoll_wait object=unix:2 stack=epoll_wait;secure_read
        10ms cpu0 wake idle -> psql in=interrupt vector=33
        10.1ms cpu0 switch idle -> psql
        10.2ms cpu0 wake psql -> backend
        10.3ms cpu1 switch idle -> backend
        10.4ms cpu1 switch backend -> idle sleeping epoll_wait object=unix:2 stack=epoll_wait;secure_read
        10.5ms cpu0 switch psql -> idle sleeping pselect6 object=char:3 stack=pselect;rl_getc;readline
        end 3s",
    );
    let verdict = explain(&recording, "psql", 10_500..3_000_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
}

/// A worker of a pool of processes waits for its turn to take a task, and the program for a result: if all workers wait, no
/// one works on that. A worker that was killed before had the task.
#[test]
fn a_pool_whose_workers_are_idle() {
    let recording = |killed: &str| {
        record(&format!(
            "process flake 100
            process first 200\nprocess second 300\nprocess third 400
            thread flake flake 100\nthread handler flake 101\nthread results flake 102
            0 cpu4 switch handler -> idle sleeping poll stack=poll;handle_workers
            0 cpu5 switch results -> idle sleeping poll stack=poll;handle_results
            0 open flake object=pipe:5 access=write\n0 open second object=pipe:5 access=read
            0 cpu0 switch idle -> flake
            0.1ms fork flake -> first first 200
            0.2ms fork flake -> second second 300
            0.3ms cpu1 switch idle -> first
            0.4ms cpu2 switch idle -> second
            1ms cpu2 switch second -> idle sleeping read object=pipe:5 stack=read;SimpleQueue.get;worker
            2ms cpu1 switch first -> idle sleeping futex arg=393 object=futex:0x10 stack=sem_wait;SemLock.__enter__;SimpleQueue.get;worker
            3ms fork flake -> third third 400
            3.1ms cpu3 switch idle -> third
            {killed}
            5ms cpu0 switch flake -> idle sleeping futex arg=393 object=futex:0x50 stack=sem_wait;PyThread_acquire_lock_timed;Condition.wait;IMapIterator.next;run_checks
            end 8s"
        ))
    };
    let waits = "4ms cpu3 switch third -> idle sleeping futex arg=393 object=futex:0x10 stack=sem_wait;SemLock.__enter__;SimpleQueue.get;worker";
    let idle = recording(waits);
    let sentence = explain(&idle, "flake", 5_000..8_000_000).sentence;
    assert!(
        sentence
            .ends_with("the trace does not show by what; its 3 worker processes wait for tasks."),
        "{sentence}"
    );
    let works = recording("");
    let sentence = explain(&works, "flake", 5_000..8_000_000).sentence;
    assert!(!sentence.contains("wait for tasks"), "{sentence}");
}

/// node waits for a debugger, which does not come until somebody ends it. That another thread ended such a wait once, when
/// node's own tools were started, is no sign that it is to end this one.
#[test]
fn who_waits_for_a_debugger_waits_for_no_thread() {
    const WAIT: &str = "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;uv_cond_wait;node::inspector::MainThreadInterface::WaitForFrontendEvent();main";
    let recording = record(&format!(
        "process node 100\nthread node node 100\nthread worker node 101
        process sh 200\nthread sh sh 200
        0 cpu0 switch idle -> node
        0 cpu1 switch idle -> worker
        1ms cpu0 switch node -> idle {WAIT}
        2ms cpu1 wake worker -> node futex op=wake object=futex:0x10 stack=pthread_cond_signal;uv_cond_signal
        2.1ms cpu0 switch idle -> node
        3ms cpu0 wake node -> worker futex op=wake object=futex:0x20 stack=pthread_cond_signal
        3.1ms cpu1 switch worker -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_cond_wait;uv_cond_wait;node::(anonymous_namespace)::PlatformWorkerThread(void*)
        4ms cpu0 switch node -> idle {WAIT}
        3004ms cpu1 switch idle -> sh
        3005ms cpu1 wake sh -> node kill arg=9
        3005.1ms cpu0 switch idle -> node
        3005.2ms exit node 9
        3005.2ms exit worker 9
        3005.3ms cpu0 switch node -> idle dead
        end 3100ms"
    ));
    let verdict = explain(&recording, "node", 4_000..3_005_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    let says = "waited for a debugger to attach or to let it continue";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
}

/// A process of a parallel program looks for messages without waiting, and computes to all appearance: it waits for the one
/// of its like that does not look for messages. If all look, or a program of another name computes, it is its own.
#[test]
fn a_process_of_a_parallel_program_waits_for_a_late_one() {
    const LOOKS: &str = "poll_queue;opal_progress;MPI_Allreduce;main";
    let root = |name: &str, stack: &str| {
        let recording = record(&format!(
            "process mpirun 90\nthread mpirun mpirun 90
            process halo 100\nprocess late 200
            0 cpu2 switch idle -> mpirun
            1us fork mpirun -> one halo 100
            2us fork mpirun -> two late 200
            3us cpu0 wake mpirun -> one fork new
            4us cpu1 wake mpirun -> two fork new
            5us cpu2 switch mpirun -> idle sleeping poll object=pipe:1 stack=poll;event_loop
            6us rename one halo
            7us rename two {name}
            10us cpu0 switch idle -> one
            10us cpu1 switch idle -> two
            {}{}end 2s",
            samples(0, "one", 1..2000, LOOKS),
            samples(1, "two", 1..2000, stack),
        ));
        let verdict = explain(&recording, "one", 10..2_000_000);
        (verdict.root.who.tid, verdict.root.function)
    };
    let refines = "refine_cells;main";
    assert_eq!(root("halo", refines), (200, Some("refine_cells".into())));
    assert_eq!(root("halo", LOOKS).0, 100);
    assert_eq!(root("other", refines).0, 100);
}
