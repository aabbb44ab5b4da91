//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with. Here: locks, conditions and pools.

use crate::support::*;
use hangdog_diagnose::Class;

const PLAYER: &str = "
    process player 100
    thread player player 100
    thread decoder player 101
    thread audio player 102
";
const SEMAPHORE: &str =
    "sleeping futex op=wait object=futex:0x10 stack=__new_sem_wait_slow;present_frame";

const WORKER: &str = "Condition.wait;Future.result;outer;_WorkItem.run;_worker";

/// The decoder gives a semaphore six times, every 10 ms, and exits at 62 ms. The player waits on, for
/// good; a third thread that naps is not to blame. From 70 ms on all time is the decoder's, which had
/// exited.
#[test]
fn a_partner_that_exited_is_missed() {
    let mut text = format!("{PLAYER}0 cpu0 switch idle -> player\n0 cpu1 switch idle -> decoder\n");
    for turn in 0..6 {
        let at = 1 + 10 * turn;
        text += &format!(
            "{at}ms cpu0 switch player -> idle {SEMAPHORE}
            {}ms cpu1 wake decoder -> player futex op=wake object=futex:0x10 stack=sem_post;decode
            {}us cpu0 switch idle -> player\n",
            at + 9,
            (at + 9) * 1000 + 10
        );
    }
    text += &format!(
        "61ms cpu0 switch player -> idle {SEMAPHORE}
        62ms exit decoder 0
        62ms cpu1 switch decoder -> audio dead\n"
    );
    for at in (70..600).step_by(20) {
        text += &format!(
            "{at}ms cpu1 switch audio -> idle sleeping nanosleep arg=19ms stack=nanosleep;play
            {}ms cpu1 wake idle -> audio in=timer
            {}us cpu1 switch idle -> audio\n",
            at + 19,
            (at + 19) * 1000 + 10
        );
    }
    let recording = record(&format!("{text}end 600ms"));
    let verdict = explain(&recording, "player", 70_000..600_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (101, Class::LongWait)
    );
    assert_eq!(of_thread(&verdict, 101, "exited"), 530_000);
    assert!(
        verdict.sentence.contains("player/decoder exited"),
        "{}",
        verdict.sentence
    );
}

/// Two threads wait at a barrier for a third, which returned early: nobody is left that could end that. Threads
/// that exited long before are not missed, nor one of which the last act was to wake the waiters.
#[test]
fn a_thread_that_returned_early_is_missed_at_the_barrier() {
    const WAIT: &str = "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;step;main";
    let verdict = |before: &str, exit: &str| {
        let recording = record(&format!(
            "process simulate 100
            thread first simulate 100
            thread second simulate 101
            thread third simulate 102
            0 cpu0 switch idle -> first
            0 cpu1 switch idle -> second
            0 cpu2 switch idle -> third
            {before}
            {exit} exit third 0
            {exit} cpu2 switch third -> idle dead
            2500ms cpu0 switch first -> idle {WAIT}
            2501ms cpu1 switch second -> idle {WAIT}
            end 9s"
        ));
        explain(&recording, "first", 2_501_000..9_000_000)
    };
    let missed = verdict("", "2450ms");
    assert_eq!(missed.root.who.tid, 102, "{}", missed.sentence);
    let says = "in step: first/third exited without waking it, and no thread is left";
    assert!(missed.sentence.contains(says), "{}", missed.sentence);
    let long_gone = verdict("", "100ms");
    assert_ne!(long_gone.root.who.tid, 102, "{}", long_gone.sentence);
    let brought = format!(
        "2000ms cpu0 switch first -> idle {WAIT}
        2000ms cpu1 switch second -> idle {WAIT}
        2449.8ms cpu2 wake third -> second futex op=wake object=futex:0x10 stack=pthread_cond_signal;send
        2449.85ms cpu1 switch idle -> second
        2449.9ms cpu2 wake third -> first futex op=wake object=futex:0x10 stack=pthread_cond_signal;send
        2449.95ms cpu0 switch idle -> first"
    );
    let done = verdict(&brought, "2450ms");
    assert_ne!(done.root.who.tid, 102, "{}", done.sentence);
    assert!(done.sentence.contains("none is left"), "{}", done.sentence);
}

/// The task of a pool waits for a task of the same pool. No thread of the process is left that could wake
/// another: the sentence says so, and the problem comes first. The worker is the root.
#[test]
fn a_pool_that_waits_for_itself() {
    let recording = record(&format!(
        "process app 100
        thread main app 100
        thread one app 101
        process shell 200
        thread shell shell 200
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> one
        5us cpu1 switch one -> idle sleeping futex arg=128 object=futex:0x1 stack=sem_wait;PyThread_acquire_lock_timed;{WORKER}
        10us cpu0 switch main -> shell sleeping futex arg=128 object=futex:0x2 stack=sem_wait;PyThread_acquire_lock_timed;Condition.wait;Future.result;main
        20us cpu0 switch shell -> idle sleeping read object=pipe:1 stack=read
        end 3s"
    ));
    let found = problems(&recording, None);
    assert_eq!(found[0].0, "main", "{found:?}");
    let verdict = explain(&recording, "main", 1_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 101, "{}", verdict.sentence);
    assert!(
        verdict
            .sentence
            .contains("waits for a task that only they could run"),
        "{}",
        verdict.sentence
    );

    // A thread that something from outside can wake may wake the others.
    let other = record(&format!(
        "process app 100
        thread main app 100
        thread one app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> one
        10us cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x2 stack=sem_wait;PyThread_acquire_lock_timed;Condition.wait;{WORKER}
        15us cpu1 switch one -> idle sleeping epoll_wait object=epoll:1 stack=epoll_wait;loop
        end 3s"
    ));
    let verdict = explain(&other, "main", 1_000..3_000_000);
    assert!(
        !verdict
            .sentence
            .contains("waits for a task that only they could run"),
        "{}",
        verdict.sentence
    );
}

/// A thread of Python waits for the global lock, 5 ms at a time, and another computes: it is that
/// one's time, and not that of the timeouts. The function that waits has no name.
#[test]
fn pythons_global_lock_is_with_who_computes() {
    let mut text = "process python 100
        thread python python 100
        thread worker python 101
        0 cpu0 switch idle -> python
        0 cpu1 switch idle -> worker\n"
        .to_owned();
    for at in (1..400).step_by(6) {
        text += &format!(
            "{at}ms cpu0 switch python -> idle sleeping futex op=wait object=futex:0x10 \
             stack=pthread_cond_timedwait;PyEval_RestoreThread;select
            {}ms cpu0 wake idle -> python in=timer
            {}.1ms cpu0 switch idle -> python\n",
            at + 5,
            at + 5
        );
    }
    text += "410ms cpu1 switch worker -> idle dead\nend 420ms";
    let verdict = explain(&record(&text), "python", 1_000..402_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (101, Class::LongRunning),
        "{}",
        verdict.sentence
    );
    let lock = "by Python's global lock (GIL): ";
    assert!(verdict.sentence.contains(lock), "{}", verdict.sentence);
}

/// All threads of a Java program wait while one runs a loop without a safepoint: it is the cause, also where the
/// recording begins and ends amid that.
#[test]
fn who_is_late_for_a_safepoint_keeps_all_waiting() {
    let asks = "sleeping futex object=futex:9 op=wait \
                stack=pthread_cond_wait;VMThread::wait_until_executed(VM_Operation*);allocate";
    let nap = "sleeping clock_nanosleep arg=1ms \
               stack=nanosleep;SafepointSynchronize::synchronize_threads(long)";
    let mut text = format!(
        "process java 200
        thread main java 200 name=java
        thread cruncher java 201 name=cruncher
        thread vm java 202 name=VM_Thread
        thread requests java 203 name=requests
        0 cpu0 switch idle -> cruncher
        1ms cpu1 switch idle -> requests
        2ms cpu1 wake requests -> vm futex object=futex:8
        3ms cpu1 switch requests -> vm {asks}\n"
    );
    for at in (4..3_000).step_by(2) {
        text += &format!(
            "{at}ms cpu1 switch vm -> idle {nap}
            {}.8ms cpu1 wake idle -> vm in=timer
            {}.9ms cpu1 switch idle -> vm\n",
            at + 1,
            at + 1
        );
    }
    text += &format!("3000ms cpu1 switch vm -> idle {nap}\n");
    text += &samples(0, "cruncher", 4..3_000, "Server.checksum;run");
    let verdict = explain(
        &record(&(text + "end 3001ms")),
        "requests",
        3_000..3_001_000,
    );
    assert_eq!(verdict.root.who.tid, 201, "{}", verdict.sentence);
    assert_eq!(verdict.root.class, Class::LongRunning);
}

/// A worker that was woken and waits again where it did before has done what it could: who waits for the pool
/// waits for the one that works.
#[test]
fn a_worker_that_went_home_is_not_whom_is_waited_for() {
    const WAIT: &str =
        "sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;flush;main";
    const HOME: &str =
        "sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;pool;start";
    let mut text = format!(
        "process app 100
        thread main app 100
        thread idler app 101
        thread worker app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> idler
        0 cpu2 switch idle -> worker
        1ms cpu1 switch idler -> idle {HOME}
        10ms cpu0 wake main -> idler futex op=wake object=futex:0x20 stack=pthread_cond_signal;flush
        10.1ms cpu0 switch main -> idle {WAIT}
        10.2ms cpu1 switch idle -> idler
        10.3ms cpu1 switch idler -> idle {HOME}\n"
    );
    for at in [200, 400, 600, 800] {
        text += &format!(
            "{at}ms cpu2 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;pool
            {at}.1ms cpu0 switch idle -> main
            {at}.2ms cpu0 switch main -> idle {WAIT}\n"
        );
    }
    text += "990ms cpu2 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;pool
        990.1ms cpu0 switch idle -> main\n";
    text += &samples(2, "worker", 20..990, "compress;pool;start");
    let verdict = explain(&record(&(text + "end 1s")), "main", 11_000..990_000);
    assert_eq!(verdict.root.who.tid, 102, "{}", verdict.sentence);
}

/// A thread has the lock of the log and no room in the log's pipe, which another program reads slowly; two more
/// wait for the lock. Those two are no circle.
#[test]
fn who_writes_to_a_full_pipe_has_the_lock() {
    const LOCKED: &str =
        "sleeping futex arg=128 object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;log";
    let recording = record(&format!(
        "process gateway 100
        thread orders gateway 100
        thread meters gateway 101
        thread writer gateway 102
        process shipper 200
        thread shipper shipper 200
        0 open gateway object=pipe:5 access=write
        0 open shipper object=pipe:5 access=read
        0 cpu0 switch idle -> orders
        0 cpu1 switch idle -> meters
        0 cpu2 switch idle -> writer
        0 cpu3 switch idle -> shipper
        1ms cpu2 switch writer -> idle sleeping write object=pipe:5 stack=write;log;main
        2ms cpu0 switch orders -> idle {LOCKED};take_order;main
        3ms cpu1 switch meters -> idle {LOCKED};read_meters;run
        end 3s"
    ));
    let verdict = explain(&recording, "orders", 2_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_ne!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
}

/// A program that was told to wait for a debugger waits for that, whoever else of it has woken its main thread
/// before.
#[test]
fn a_program_waits_for_a_debugger() {
    const INSPECTOR: &str = "node::inspector::MainThreadInterface::WaitForFrontendEvent();node::inspector::Agent::Start";
    let verdict = |stack: &str| {
        let recording = record(&format!(
            "process node 100
            thread main node 100 name=node
            thread worker node 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker
            1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;start
            1.5ms cpu1 wake worker -> main futex op=wake object=futex:0x10
            1.6ms cpu0 switch idle -> main
            2ms cpu1 switch worker -> idle sleeping futex arg=128 object=futex:0x50 stack=pthread_cond_wait;work
            2ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;{stack}
            end 3s"
        ));
        explain(&recording, "main", 2_000..3_000_000)
    };
    let waits = verdict(INSPECTOR);
    assert_eq!(
        (waits.root.who.tid, waits.root.class),
        (100, Class::LongWait)
    );
    assert!(
        waits.sentence.contains("waited for a debugger to attach"),
        "{}",
        waits.sentence
    );
    let by_python = verdict("Event.wait;PyDB.block_until_configuration_done;main");
    assert!(by_python.sentence.contains("debugger"), "{by_python:?}");
    for own in ["Agent::Start", "wait_for_client;main"] {
        assert!(!verdict(own).sentence.contains("debugger"), "{own}");
    }
}

/// Two threads of a test wait for each other, one of which the other has started. Another test's thread ended just
/// before, as it should: it is not missed.
#[test]
fn a_thread_that_ended_is_not_missed_by_who_started_others() {
    const WAIT: &str = "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;send;run";
    let sentence = |starter: &str| {
        let recording = record(&format!(
            "process tests 100
            thread main tests 100 name=tests
            0 cpu0 switch idle -> main
            1ms fork main -> short tests 101
            1ms fork main -> album tests 102
            1.1ms cpu1 switch idle -> short
            1.2ms cpu2 switch idle -> album
            2ms fork {starter} -> thumb tests 103
            2.1ms cpu3 switch idle -> thumb
            3ms exit short 0
            3ms cpu1 switch short -> idle dead
            3.5ms cpu2 switch album -> idle {WAIT}
            3.6ms cpu3 switch thumb -> idle {WAIT}
            4ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x90 stack=pthread_cond_wait;recv;main
            end 6s"
        ));
        explain(&recording, "album", 3_500..6_000_000).sentence
    };
    let own = sentence("album");
    assert!(!own.contains("exited"), "{own}");
    let other = sentence("main");
    assert!(other.contains("short exited"), "{other}");
}

/// A task of an asynchronous runtime waits for a lock, and no other thread of the process does anything: the lock is
/// with a task that was suspended, and it is the waiting thread that would have to run that. The event loop of the
/// main thread has it not. Another thread that is in the middle of work may have it.
#[test]
fn a_suspended_task_has_the_lock() {
    let found = |task: &str, worker: &str| {
        let recording = record(&format!(
            "process app 100
            thread main app 100
            thread executor app 101
            thread worker app 102
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> executor
            0 cpu2 switch idle -> worker
            1ms cpu0 switch main -> idle sleeping epoll_wait object=epoll:3 stack=epoll_wait;block_on;main
            2ms cpu2 switch worker -> idle sleeping {worker}
            3ms cpu1 switch executor -> idle sleeping futex arg=128 object=futex:0x10 stack=pthread_mutex_lock;order;{task};run
            end 3s"
        ));
        explain(&recording, "executor", 3_000..3_000_000)
    };
    let idle = "epoll_wait object=epoll:4 stack=epoll_wait;accept_loop";
    let task = "tokio::runtime::task::raw::poll";
    let own = found(task, idle);
    assert_eq!(own.root.class, Class::Circular, "{}", own.sentence);
    assert_eq!(own.root.who.tid, 101, "{}", own.sentence);
    let says = "waited for a lock in order that it has itself";
    assert!(own.sentence.contains(says), "{}", own.sentence);
    let works = "nanosleep arg=9s stack=nanosleep;report";
    assert_eq!(found(task, works).root.who.tid, 102);
    let guessed = found("handle", idle);
    assert_ne!(guessed.root.class, Class::Circular, "{}", guessed.sentence);
}

/// The thread of a window waits for the result of a task that a worker computes. That it is woken by the thread that
/// reads the display where it has no task, and by the same object, says nothing of that; and the thread that started
/// the program waits for its end.
#[test]
fn a_window_waits_for_the_result_of_a_task() {
    let parks = "sleeping futex arg=128 object=futex:0x10 stack=pthread_cond_wait;Parker::park;java.util.concurrent";
    let mut text = String::from(
        "process app 100\nthread launcher app 100\nthread events app 101\nthread display app 102\nthread worker app 103
        0 cpu0 switch idle -> launcher\n0 cpu1 switch idle -> display
        1ms cpu0 switch launcher -> events sleeping futex arg=128 object=futex:0x90 stack=pthread_cond_wait;jni_DestroyJavaVM\n",
    );
    for turn in 0..10 {
        let at = 10 + 20 * turn;
        text += &format!(
            "{at}ms cpu0 switch events -> idle {parks}.LinkedBlockingQueue.take;java.awt.EventQueue.getNextEvent
            {}ms cpu1 wake display -> events futex op=wake object=futex:0x10 stack=pthread_cond_signal;post
            {}us cpu0 switch idle -> events\n",
            at + 10,
            (at + 10) * 1000 + 50
        );
    }
    let recording = record(&format!(
        "{text}
        215ms cpu1 switch display -> worker sleeping poll object=inet:9 stack=poll;waitForEvents
        220ms cpu0 switch events -> idle {parks}.FutureTask.get;javax.swing.SwingWorker.get;actionPerformed
        end 3s"
    ));
    let verdict = explain(&recording, "events", 220_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 103, "{}", verdict.sentence);
    let victims = problems(&recording, None);
    let is_launcher = |(name, _): &(String, _)| name == "launcher";
    assert!(!victims.iter().any(is_launcher), "{victims:?}");
}

/// The workers of a pool that wait for one lock do not have it. The one that is further on in the function which takes
/// the lock has it, and waits there for a part of its work that another worker has.
#[test]
fn who_is_beyond_the_lock_has_it() {
    let recording = record(
        "process tiler 100\nthread main tiler 100\nthread first tiler 101\nthread second tiler 102\nthread third tiler 103
        0 cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x50 stack=futex_wait;pthread_cond_wait;LockLatch::wait;run
        0 cpu0 switch first -> idle sleeping futex arg=128 object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;glyph;render;steal;wait_until
        0 cpu0 switch second -> idle sleeping futex arg=128 object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;glyph;render;steal;wait_until
        0 cpu0 switch third -> idle sleeping futex arg=393 object=futex:0x90 stack=futex_wait;pthread_cond_wait;wait_until;<rayon_core::job::StackJob>::execute;rasterize;glyph;render
        end 3s",
    );
    let verdict = explain(&recording, "first", 0..3_000_000);
    let knot = verdict.knot.iter().flatten();
    let members: Vec<u32> = knot.map(|member| member.tid).collect();
    assert!(members.contains(&103), "{}", verdict.sentence);
}

/// A worker that took another task while it waited for a part of the first is in one function twice, and waits for
/// the lock that it has taken there. The other worker, which waits for the same lock, does not have it.
#[test]
fn who_is_in_the_function_twice_has_the_lock() {
    let recording = record(
        "process tiler 100\nthread main tiler 100\nthread first tiler 101\nthread second tiler 102
        0 cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x50 stack=futex_wait;pthread_cond_wait;LockLatch::wait;run
        0 cpu0 switch first -> idle sleeping futex arg=128 object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;glyph;render;steal;wait_until;rasterize;glyph;render
        0 cpu0 switch second -> idle sleeping futex arg=128 object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;glyph;render;steal;wait_until
        end 3s",
    );
    for thread in ["first", "second"] {
        let verdict = explain(&recording, thread, 0..3_000_000);
        let knot = verdict.knot.iter().flatten();
        let members: Vec<u32> = knot.map(|member| member.tid).collect();
        assert_eq!(members, [101], "{thread}: {}", verdict.sentence);
    }
}

/// Where the workers of a pool take a lock in the function that they all begin with, one that waits for work there is
/// beyond it, too. Who computes has the lock.
#[test]
fn who_waits_for_work_is_not_beyond_the_lock() {
    let recording = record(
        "process app 100\nthread main app 100\nthread first app 101\nthread second app 102\nthread third app 103
        0 cpu0 switch main -> idle sleeping futex arg=265 object=futex:0x50 stack=futex;__pthread_clockjoin_ex;main
        0 cpu0 switch second -> idle sleeping futex arg=393 object=futex:0x90 stack=futex;pthread_cond_wait;wait_for_job;worker
        0 cpu1 switch idle -> third
        0 cpu0 switch first -> idle sleeping futex arg=128 object=futex:0x10 stack=__lll_lock_wait;pthread_mutex_lock;worker
        end 3s",
    );
    let verdict = explain(&recording, "first", 0..3_000_000);
    assert_eq!(verdict.root.who.tid, 103, "{}", verdict.sentence);
}

/// All permits of a semaphore are gone, and each worker waits for one within a task: nobody could run the task that its
/// program's main thread waits for, though such workers have ended its waits before.
#[test]
fn permits_that_nobody_gives_back() {
    const TASK: &str = "pthread_cond_wait;Parker::park;java.util.concurrent.Semaphore.acquire;Limiter.enter;java.util.concurrent.ThreadPoolExecutor.runWorker";
    const RESULT: &str =
        "pthread_cond_wait;Parker::park;java.util.concurrent.FutureTask.get;Mailer.main";
    let recording = record(&format!(
        "process java 100\nthread main java 100 name=main
        thread pool-1 java 101\nthread pool-2 java 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> pool-1
        0 cpu2 switch idle -> pool-2
        1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x9 stack={RESULT}
        40ms cpu1 wake pool-1 -> main futex object=futex:0x9 stack=pthread_cond_signal;java.util.concurrent.FutureTask.set
        40.1ms cpu0 switch idle -> main
        41ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x9 stack={RESULT}
        80ms cpu1 wake pool-1 -> main futex object=futex:0x9 stack=pthread_cond_signal;java.util.concurrent.FutureTask.set
        80.1ms cpu0 switch idle -> main
        81ms cpu1 switch pool-1 -> idle sleeping futex arg=128 object=futex:0x1 stack={TASK}
        82ms cpu2 switch pool-2 -> idle sleeping futex arg=128 object=futex:0x2 stack={TASK}
        83ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x9 stack={RESULT}
        end 3s"
    ));
    let verdict = explain(&recording, "main", 83_000..3_000_000);
    let says = "waits for a permit of a semaphore, and none is left to release one";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
    assert!([101, 102].contains(&verdict.root.who.tid));
}

/// A client of a database waits since before the recording. The thread that has waited since right after it asked serves
/// it; it waits for a table's lock, and the only other that executes something has that. One that began to wait at another
/// time serves somebody else.
#[test]
fn whom_a_table_lock_keeps_waiting() {
    const KEPT: &str = "sleeping futex arg=137 object=futex:0x10 stack=pthread_cond_timedwait;thr_multi_lock;mysql_update;do_command";
    let path = |first: &str, second: &str| {
        let recording = record(&format!(
            "process mariadb 100\nthread client mariadb 100
            process mariadbd 200\nthread main mariadbd 200
            thread first mariadbd 201\nthread second mariadbd 202\nthread select mariadbd 203
            0 socket mariadb object=unix:1 peer=unix:2 peer-process=mariadbd
            0 socket mariadbd object=unix:2 peer=unix:1 peer-process=mariadb
            0.01ms away client 842.5ms
            0.01ms away main 9s
            0.01ms away first {first}
            0.01ms away second {second}
            0.01ms cpu65535 switch client -> idle sleeping poll object=unix:1 stack=poll;mysql_real_query;main
            0.01ms cpu65535 switch main -> idle sleeping poll stack=poll;handle_connections_sockets;main
            0.01ms cpu65535 switch first -> idle {KEPT}
            0.01ms cpu65535 switch second -> idle {KEPT}
            0.01ms cpu1 switch idle -> select
            {}end 1s",
            samples(1, "select", 1..1000, "match;do_command"),
        ));
        let verdict = explain(&recording, "client", 10..1_000_000);
        let says = "by a lock of the database";
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
        verdict.path.iter().map(|step| step.who.tid).collect()
    };
    let first: Vec<u32> = path("841.7ms", "300ms");
    assert_eq!(first, [100, 201, 203]);
    let second: Vec<u32> = path("3s", "841.7ms");
    assert_eq!(second, [100, 202, 203]);
}

/// A thread is waited for that waits for a condition, and the only other one waits for what its own program writes to a
/// pipe: that one acts on orders alone, and none is left. Where another program can write there, it may end the wait; where
/// it goes on by itself after a while, it is one that is left.
#[test]
fn who_takes_orders_of_its_program_ends_no_wait() {
    let root = |writer: &str, call: &str| {
        let recording = record(&format!(
            "process app 100\nthread main app 100\nthread loader app 101\nthread notifier app 102
            process other 200\nthread other other 200
            0 open app object=pipe:7 access=read
            0 open {writer} object=pipe:7 access=write
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> loader
            0 cpu2 switch idle -> notifier
            0 cpu3 switch idle -> other
            1ms cpu2 switch notifier -> idle sleeping {call} object=pipe:7 stack=select;notify
            2ms cpu3 switch other -> idle sleeping read object=pipe:9 stack=read;main
            3ms cpu1 switch loader -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_cond_wait;load_rows;start
            4ms cpu0 switch main -> idle sleeping futex arg=265 object=futex:0x50 holder=loader stack=futex;__pthread_clockjoin_ex;on_load;main
            end 3s"
        ));
        let verdict = explain(&recording, "main", 4_000..3_000_000);
        (verdict.root.who.tid, verdict.sentence)
    };
    let (own, sentence) = root("app", "poll arg=4294967295");
    assert_eq!(own, 101, "{sentence}");
    assert!(sentence.contains("none is left to wake one"), "{sentence}");
    let (others, sentence) = root("other", "poll arg=4294967295");
    assert_ne!(others, 101, "{sentence}");
    let (_, sentence) = root("app", "poll arg=9000");
    assert!(!sentence.contains("none is left"), "{sentence}");
}

/// Workers wait for work that nobody brings any more, and the main thread for one of them to end: the way ends at a worker,
/// whichever is looked at.
#[test]
fn who_waits_for_a_worker_to_end_brings_it_nothing() {
    let recording = record(
        "process app 100\nthread main app 100\nthread first app 101\nthread second app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> first
        0 cpu2 switch idle -> second
        1ms cpu1 switch first -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_cond_wait;JobQueue::pop;worker
        2ms cpu2 switch second -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_cond_wait;JobQueue::pop;worker
        4ms cpu0 switch main -> idle sleeping futex arg=265 object=futex:0x50 holder=first stack=__pthread_clockjoin_ex;join;main
        end 3s",
    );
    for thread in ["main", "first", "second"] {
        let verdict = explain(&recording, thread, 4_000..3_000_000);
        assert_ne!(verdict.root.who.tid, 100, "{thread}: {}", verdict.sentence);
        assert_eq!(verdict.root.function.as_deref(), Some("JobQueue::pop"));
    }
}

/// A test waits for a lock in a worker whose only other thread reads what its parent sends: that has no lock, so the test has it
/// itself, and the parent's threads are not in the circle. It is known who writes the pipe, or it has been seen.
#[test]
fn who_reads_orders_has_no_lock() {
    let found = |pipes: &str| {
        let recording = record(&format!(
            "process pytest 100\nthread main pytest 100\nthread reader pytest 101
            process worker 200
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> reader
            0.1ms fork main -> test worker 200
            0.2ms cpu2 switch idle -> test
            0.3ms fork test -> receiver worker 201
            0.4ms cpu3 switch idle -> receiver
            {pipes}
            1ms cpu3 switch receiver -> idle sleeping read object=pipe:7 stack=read;from_io;thread_receiver
            1.1ms cpu0 wake main -> receiver write object=pipe:7
            1.2ms cpu3 switch idle -> receiver
            1.3ms cpu3 switch receiver -> idle sleeping read object=pipe:7 stack=read;from_io;thread_receiver
            1.4ms cpu1 switch reader -> idle sleeping read object=pipe:8 stack=read;from_io;thread_receiver
            1.5ms cpu0 switch main -> idle sleeping futex object=futex:0x10 op=wait stack=pthread_cond_wait;loop_once
            2ms cpu2 switch test -> idle sleeping futex arg=128 object=futex:0x20 stack=pthread_mutex_lock;charge;reserve;test_ledger
            end 3s"
        ));
        explain(&recording, "test", 2_000..3_000_000)
    };
    let known = "0.5ms open pytest object=pipe:7 access=write
        0.5ms open worker object=pipe:7 access=read
        0.5ms open pytest object=pipe:8 access=read
        0.5ms open worker object=pipe:8 access=write";
    for pipes in [known, ""] {
        let verdict = found(pipes);
        assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
        let says = "waited for a lock in charge that it has itself";
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
    }
}

/// The thread that runs Tk joins another, which waits within the module for Tk until that one does what it calls: they wait for
/// each other, though one thread sleeps beside them.
#[test]
fn a_call_to_the_thread_that_runs_tk() {
    let recording = record(
        "process shop 100
        thread shop shop 100
        thread export shop 101
        thread save shop 102
        thread other shop 103
        0 cpu0 switch idle -> shop
        0 cpu1 switch idle -> other
        0.1ms cpu1 switch other -> export sleeping futex arg=137 object=futex:0x30 stack=pthread_cond_wait;await_work
        0.2ms cpu1 switch export -> save sleeping futex arg=137 object=futex:0x20 stack=pthread_cond_wait;_tkinter_call;show_progress@script
        1ms cpu1 switch save -> idle sleeping clock_nanosleep arg=9s stack=clock_nanosleep;autosave@script
        1ms cpu0 switch shop -> idle sleeping futex arg=393 object=futex:0x10 holder=export stack=sem_wait;Thread._wait_for_tstate_lock@script;Thread.join@script;on_export@script
        end 3s",
    );
    let verdict = explain(&recording, "shop", 2_000..3_000_000);
    assert!(verdict.knot.is_some(), "{}", verdict.sentence);
}

/// A thread of Ruby sleeps by the function in which it also waits for work, for which another has woken it: at the place where it
/// always went on by a timer it sleeps this time, too.
#[test]
fn a_place_where_timers_end_the_waits_is_a_sleep() {
    let mut text = "process puma 200
        thread main puma 200
        thread worker puma 201
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker\n"
        .to_owned();
    for at in (1..40).step_by(4) {
        text += &format!(
            "{at}ms cpu1 switch worker -> idle sleeping futex arg=137 object=futex:0x10 stack=pthread_cond_timedwait;native_wait;next_job
            {}ms cpu0 wake main -> worker futex op=wake object=futex:0x10
            {}.1ms cpu1 switch idle -> worker\n",
            at + 2,
            at + 2
        );
    }
    for at in (50..600).step_by(150) {
        text += &format!(
            "{at}ms cpu1 switch worker -> idle sleeping futex arg=137 object=futex:0x10 stack=pthread_cond_timedwait;native_wait;back_off
            {}ms cpu1 wake idle -> worker in=timer
            {}.1ms cpu1 switch idle -> worker\n",
            at + 140,
            at + 140
        );
    }
    let recording =
        record(&(text + "700ms cpu0 switch main -> idle sleeping poll stack=poll;loop\nend 800ms"));
    let verdict = explain(&recording, "worker", 500_000..640_000);
    assert_eq!(verdict.blame[0].kind, "timer", "{}", verdict.sentence);
    assert_eq!(verdict.root.who.tid, 201, "{}", verdict.sentence);
}
