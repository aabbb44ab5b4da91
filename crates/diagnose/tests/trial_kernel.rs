//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with. Here: processes that are
//! stopped, traced or end, CPUs, memory, and what else the kernel keeps waiting.

use crate::support::*;
use hangdog_diagnose::Class;

/// Two programs talk by pipes, each in turn, until both wait for the other. A harness then ends one of
/// them by a signal, which brings it nothing: its killer is not the cause, even where the thread lives on
/// for a while.
#[test]
fn who_ends_a_hung_program_is_not_the_cause() {
    let recording = record(
        "process convert 100
        thread convert convert 100
        process harness 200
        thread harness harness 200
        0 cpu0 switch idle -> convert
        0 cpu1 switch idle -> harness
        1ms cpu0 switch convert -> idle sleeping write object=pipe:5 stack=write;run
        2ms cpu1 switch harness -> idle sleeping nanosleep arg=497ms stack=nanosleep;hold
        499ms cpu1 wake idle -> harness in=timer
        499ms cpu1 switch idle -> harness
        500ms cpu1 wake harness -> convert kill arg=15
        500ms cpu0 switch idle -> convert
        560ms exit convert 15
        560ms cpu0 switch convert -> idle dead
        end 600ms",
    );
    let verdict = explain(&recording, "convert", 1_000..500_000);
    assert_ne!(verdict.root.who.tid, 200, "{}", verdict.sentence);
}

/// The kernel closes the pipe of a process that ends where the last of its threads dies, which had slept
/// on a futex. What the reader waited for is the first thread, which computed.
#[test]
fn the_end_of_a_process_is_its_first_threads() {
    let text = format!(
        "process tee 100
        thread tee tee 100
        process node 200
        thread node node 200
        thread inspector node 201
        0 cpu0 switch idle -> tee
        0 cpu1 switch idle -> node
        0 cpu2 switch idle -> inspector
        1ms cpu0 switch tee -> idle sleeping read object=pipe:5 stack=read
        1ms cpu2 switch inspector -> idle sleeping futex op=wait object=futex:0x10 stack=uv_sem_wait
        {}
        400ms exit node 0
        400ms cpu1 wake node -> inspector exit_group
        400ms cpu1 switch node -> idle dead
        400ms cpu2 switch idle -> inspector
        400.1ms cpu2 wake inspector -> tee futex
        400.2ms exit inspector 0
        400.2ms cpu2 switch inspector -> idle dead
        400.3ms cpu0 switch idle -> tee
        end 500ms",
        samples(1, "node", 2..399, "build;main")
    );
    let verdict = explain(&record(&text), "tee", 1_000..400_300);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (200, Class::LongRunning)
    );
    assert_eq!(verdict.root.function.as_deref(), Some("build"));
}

/// A debugger stops a program and lets it go on after its own script slept.
#[test]
fn a_debugger_had_stopped_it() {
    let recording = record(
        "process quotes 100
        thread quotes quotes 100
        process gdb 200
        thread gdb gdb 200
        0 cpu0 switch idle -> quotes
        0 cpu1 switch idle -> gdb
        1ms cpu0 switch quotes -> idle stopped
        2ms cpu1 switch gdb -> idle sleeping nanosleep arg=398ms stack=nanosleep;script
        400ms cpu1 wake idle -> gdb in=timer
        400ms cpu1 switch idle -> gdb
        400ms cpu1 wake gdb -> quotes ptrace
        400ms cpu0 switch idle -> quotes
        end 500ms",
    );
    let verdict = explain(&recording, "quotes", 1_000..400_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_eq!(way(&verdict)[0], ("quotes", "holder"));
}

/// A debugger at its prompt: the program that it has stopped is the root, and not what the debugger waits for.
#[test]
fn a_debugger_waits_for_its_user() {
    let recording = record(
        "process quotes 100
        thread quotes quotes 100
        process gdb 200
        thread gdb gdb 200
        0 cpu0 switch idle -> quotes
        0 cpu1 switch idle -> gdb
        1ms cpu0 switch quotes -> idle stopped holder=gdb
        2ms cpu1 switch gdb -> idle sleeping poll stack=poll;prompt
        end 900ms",
    );
    let verdict = explain(&recording, "quotes", 1_000..900_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    let stopped = "it was stopped by gdb, which debugs it";
    assert!(verdict.sentence.contains(stopped), "{}", verdict.sentence);
}

/// A debugger that runs while it has a program stopped: the sentence on a client of that program says so.
#[test]
fn a_debugger_at_work_has_its_program_stopped() {
    let recording = record(
        "process quotes-tool 50\nthread tool quotes-tool 50
        process quotes 100\nthread quotes quotes 100
        process gdb 200\nthread gdb gdb 200
        0 socket quotes-tool object=unix:1 peer=unix:2 peer-process=quotes
        0 socket quotes object=unix:2 peer=unix:1 peer-process=quotes-tool local=/run/quotes
        0 open quotes-tool object=unix:1 last=sent
        0 cpu0 switch quotes -> idle stopped holder=gdb
        0 cpu1 switch idle -> gdb
        1ms cpu0 switch tool -> idle sleeping read object=unix:1 stack=read;ask
        end 900ms",
    );
    let verdict = explain(&recording, "tool", 1_000..900_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    let stopped = "leads through quotes, which gdb has stopped";
    assert!(verdict.sentence.contains(stopped), "{}", verdict.sentence);
}

/// A thread that computes and shares its CPU evenly with others had its share: what it computes is the
/// cause. It runs 4 ms of each 9, and waits 5 ms for its turn.
#[test]
fn a_fair_share_of_a_cpu_is_no_starvation() {
    let mut text = String::from(
        "process php 100
        thread php php 100
        process cc 200
        thread cc cc 200
        0 cpu0 switch idle -> php\n",
    );
    for turn in 0..40 {
        let at = 9 * turn;
        text += &format!(
            "{}ms cpu0 switch php -> cc preempted\n{}ms cpu0 switch cc -> php preempted\n",
            at + 4,
            at + 9
        );
        text += &format!("{}ms cpu0 sample php stack=render;main\n", at + 2);
    }
    let verdict = explain(&record(&format!("{text}end 400ms")), "php", 0..360_000);
    assert_eq!(
        (verdict.root.who.tid, verdict.root.class),
        (100, Class::LongRunning)
    );
    assert_eq!(verdict.root.function.as_deref(), Some("render"));
    assert!((verdict.root.share - 4.0 / 9.0).abs() < 1e-6);
}

/// `record -- sleep 1` asks what else went on: the sleep is the recording's clock. A program of the
/// user's that sleeps as long is a problem.
#[test]
fn the_clock_of_a_recording_has_no_problem() {
    let text = |name: &str| {
        format!(
            "process hangdog 50
            thread hangdog hangdog 50
            process {name} 100
            0 cpu0 switch idle -> hangdog
            1ms fork hangdog -> command {name} 100
            1ms cpu0 wake hangdog -> command fork new
            1ms exec command /bin/{name}
            1ms cpu0 switch hangdog -> command sleeping wait4 arg=100
            2ms cpu0 switch command -> idle sleeping nanosleep arg=998ms stack=nanosleep;main
            1s cpu0 wake idle -> command in=timer
            1s cpu0 switch idle -> command
            1001ms exit command 0
            1001ms cpu0 switch command -> hangdog dead
            end 1002ms"
        )
    };
    let found = |name: &str| {
        let mut recording = record(&text(name));
        recording.recorder = Some(50);
        problems(&recording, Some(100))
    };
    assert_eq!(found("sleep"), []);
    assert!(!found("app").is_empty());
}

/// What the kernel alone keeps waiting, by a state that a person brought about, is called by its name:
/// a frozen file system, a memory limit, a terminal that was halted. Its terminal's program has
/// nothing to do, so that is not the one that keeps it.
#[test]
fn what_the_kernel_keeps_waiting_is_named() {
    const HALTED: &str = "2ms open app object=char:4 kind=halted";
    let cases = [
        (
            "uninterruptible openat stack=open;insert kstack=schedule;percpu_rwsem_wait;mnt_want_write;do_sys_openat2",
            "frozen file system",
        ),
        (
            "uninterruptible stack=fill kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault",
            "memory limit of its control group",
        ),
        (
            "sleeping write object=char:3 stack=write;list",
            "a terminal or device, stopped by Ctrl-S or not read, to take output",
        ),
        (
            "sleeping write object=char:4 stack=write;list",
            "its terminal, stopped by Ctrl-S, to take output",
        ),
    ];
    for (wait, says) in cases {
        let recording = record(&format!(
            "process term 50
            thread term term 50
            process app 100
            0 cpu1 switch idle -> term
            1us fork term -> app app 100
            2us cpu1 wake term -> app fork new
            5us cpu0 switch idle -> app
            10us cpu1 switch term -> idle sleeping poll stack=poll;loop
            10us cpu0 switch app -> idle {wait}
            {HALTED}
            end 3s"
        ));
        let verdict = explain(&recording, "app", 1_000..3_000_000);
        assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
        assert_eq!(verdict.root.class, Class::LongWait, "{}", verdict.sentence);
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
    }
}

/// What was swapped out to compressed memory comes back without a wait, while the thread runs: that is paging
/// all the same. Faults that only give new memory are not.
#[test]
fn a_thread_that_runs_to_swap_in_is_paging() {
    for (function, class) in [
        ("do_swap_page", Class::Paging),
        ("do_anonymous_page", Class::LongRunning),
    ] {
        let samples: String = (1..100)
            .map(|at| {
                format!(
                    "{at}0ms cpu0 sample sort stack=fill kstack={function};handle_mm_fault;exc_page_fault\n"
                )
            })
            .collect();
        let recording = record(&format!(
            "process sort 100
            thread sort sort 100
            0 cpu0 switch idle -> sort
            {samples}
            end 1s"
        ));
        let verdict = explain(&recording, "sort", 10..1_000_000);
        assert_eq!(verdict.root.class, class, "{}", verdict.sentence);
    }
}

/// Whoever raises the limit of a control group's memory is not who kept a program waiting for it.
#[test]
fn who_raises_a_memory_limit_is_not_the_cause() {
    let recording = record(
        "process index 100
        thread index index 100
        process bash 200
        thread bash bash 200
        0 cpu0 switch idle -> index
        0 cpu1 switch idle -> bash
        10us cpu0 switch index -> idle uninterruptible stack=fill kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault
        20us cpu1 switch bash -> idle sleeping nanosleep arg=2900ms stack=nanosleep
        2920ms cpu1 wake idle -> bash in=timer
        2921ms cpu1 switch idle -> bash
        2930ms cpu1 wake bash -> index write stack=write kstack=mem_cgroup_resize_max;mem_cgroup_write
        2931ms cpu0 switch idle -> index
        end 3s",
    );
    let verdict = explain(&recording, "index", 10..2_931_000);
    assert_eq!(verdict.root.who.tid, 100, "{}", verdict.sentence);
    assert!(
        verdict.sentence.contains("memory limit"),
        "{}",
        verdict.sentence
    );
    let unknown = (verdict.blame.iter()).find(|part| part.kind == "unknown");
    assert!(unknown.is_none(), "{unknown:?}");
}

/// A page fault first waits at the memory limit for seconds, and then for a disk for a moment: the disk is
/// not what took the seconds.
#[test]
fn two_waits_of_a_page_fault_are_two() {
    let recording = record(
        "process sort 100
        thread sort sort 100
        process bash 200
        thread bash bash 200
        0 cpu0 switch idle -> sort
        0 cpu1 switch idle -> bash
        10us cpu0 switch sort -> idle uninterruptible stack=fill kstack=schedule;mem_cgroup_oom_synchronize;exc_page_fault
        20us cpu1 switch bash -> idle sleeping nanosleep arg=2900ms stack=nanosleep
        2920ms cpu1 wake idle -> bash in=timer
        2921ms cpu1 switch idle -> bash
        2930ms cpu1 wake bash -> sort write stack=write kstack=mem_cgroup_oom_control_write;cgroup_file_write
        2931ms cpu0 switch idle -> sort
        2931050us cpu0 switch sort -> idle uninterruptible stack=fill kstack=schedule;io_schedule;folio_wait_bit_common;exc_page_fault
        2932ms cpu0 wake idle -> sort in=softirq vector=4
        2933ms cpu0 switch idle -> sort
        end 3s",
    );
    let verdict = explain(&recording, "sort", 10..2_935_000);
    assert!(
        verdict.sentence.contains("memory limit"),
        "{}",
        verdict.sentence
    );
    assert_ne!(verdict.root.class, Class::Paging, "{}", verdict.sentence);
}

/// Threads of one name are told apart by their ids, in every sentence.
#[test]
fn namesakes_have_ids() {
    let recording = record(
        "process a 100
        thread one a 100 name=flock
        process b 200
        thread two b 200 name=flock
        process c 300
        thread other c 300
        0 cpu0 switch idle -> one
        end 10ms",
    );
    let evidence = recording.evidence();
    assert_eq!(evidence.name(recording.t("one")), "flock (100)");
    assert_eq!(evidence.name(recording.t("other")), "other");
}

/// Somebody opens a FIFO that nobody else opens. That its exec let its parent go on from vfork is no
/// request, and who waits for its end waits for it, so that there is no circle.
#[test]
fn the_end_of_a_vfork_is_no_request() {
    let recording = record(
        "process sh 100
        thread sh sh 100
        process bash 200
        process ruby 50
        thread ruby ruby 50
        0 cpu1 switch idle -> ruby
        1us cpu0 switch idle -> sh
        1us open ruby object=pipe:5 access=read
        10ms fork sh -> bash bash 200
        10ms cpu0 switch sh -> bash uninterruptible vfork stack=vfork;run kstack=schedule;wait_for_completion_state
        10200us cpu0 switch bash -> idle uninterruptible read stack=read kstack=schedule;io_schedule
        10400us cpu0 wake idle -> bash in=softirq vector=4
        10500us cpu0 switch idle -> bash
        11ms cpu0 wake bash -> sh execve stack=execve
        11050us cpu1 switch ruby -> sh sleeping poll object=pipe:5 stack=poll;drain
        11200us cpu1 switch sh -> idle sleeping wait4 arg=200 stack=wait4;run
        11400us open bash object=pipe:5 access=write
        11500us cpu0 switch bash -> idle sleeping openat stack=open;do_redirections kstack=schedule;wait_for_partner;fifo_open
        end 3s",
    );
    let verdict = explain(&recording, "ruby", 12_000..3_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    assert_ne!(verdict.root.class, Class::Circular);
    let says = "waited for another program to open the other end of a FIFO";
    assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
}

/// A program that naps at times and looks is one that polls; one that naps as often, but is kept from a
/// CPU for most of the time, is kept by whoever has it.
#[test]
fn who_polls_and_is_kept_from_a_cpu_is_starved() {
    let text = |runnable_ms: u64| {
        let mut text = "process app 100
            thread app app 100
            process rt 200
            thread rt rt 200
            0 cpu0 switch idle -> app\n"
            .to_owned();
        let turn = 25 + runnable_ms;
        for at in (0..20).map(|turn_number| 1 + turn_number * turn) {
            text += &format!(
                "{at}ms cpu0 switch app -> rt sleeping nanosleep arg=20ms stack=nanosleep;tick
                {}ms cpu0 wake rt -> app in=timer
                {}ms cpu0 switch rt -> app preempted\n",
                at + 20,
                at + 20 + runnable_ms,
            );
        }
        text + &format!("{}ms cpu0 switch app -> idle dead\nend 10s", 2 + 20 * turn)
    };
    let verdict = |runnable_ms: u64| {
        let end = (1 + 20 * (25 + runnable_ms)) * 1_000;
        explain(&record(&text(runnable_ms)), "app", 1_000..end)
    };
    let polls = verdict(0);
    assert_eq!(polls.root.class, Class::RepeatedYield, "{}", polls.sentence);
    let starved = verdict(200);
    assert_ne!(
        starved.root.class,
        Class::RepeatedYield,
        "{}",
        starved.sentence
    );
    assert_eq!(starved.root.who.tid, 200, "{}", starved.sentence);
}

/// A program that sends something between its naps, and gets no answer, takes its time on purpose; one that asks, is
/// answered and naps again polls.
#[test]
fn who_sends_between_naps_does_not_poll() {
    let class = |is_answered: bool| {
        let mut text =
            "process app 100\nthread app app 100\n0 cpu0 switch idle -> app\n".to_owned();
        for at in (1..2_001).step_by(100) {
            text += &format!("{at}ms transfer app sent 32768 object=unix:1\n");
            if is_answered {
                text += &format!("{at}.1ms transfer app received 8 object=unix:1\n");
            }
            text += &format!(
                "{at}.5ms cpu0 switch app -> idle sleeping nanosleep arg=99ms stack=nanosleep;limit_rate
                {}.4ms cpu0 wake idle -> app in=timer
                {}.5ms cpu0 switch idle -> app\n",
                at + 99,
                at + 99,
            );
        }
        let recording = record(&(text + "end 3s"));
        explain(&recording, "app", 1_500..2_001_000).root.class
    };
    assert_eq!(class(false), Class::LongWait);
    assert_eq!(class(true), Class::RepeatedYield);
}

/// A process that is asked about and was stopped was not idle, nor was one that waits for a process of
/// its own, though nothing shows that either owed anybody anything.
#[test]
fn who_was_stopped_was_not_idle() {
    let stopped = record(
        "process vi 100
        thread vi vi 100
        0 cpu0 switch idle -> vi
        1ms cpu0 switch vi -> idle stopped read stack=read;edit
        end 3s",
    );
    let verdict = explain(&stopped, "vi", 1_000..3_000_000);
    assert!(!verdict.sentence.contains("idle"), "{}", verdict.sentence);
}

/// Who got page after page from a program that serves a file system waits for it also at the end, where nobody
/// brings the last.
#[test]
fn the_last_page_comes_from_where_the_others_did() {
    const FAULT: &str = "uninterruptible stack=copy;load kstack=io_schedule;folio_wait_bit_common;filemap_fault;exc_page_fault";
    let mut text = String::from(
        "process app 100
        thread app app 100
        process server 200
        thread server server 200
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> server\n",
    );
    for at in (10..1_000).step_by(50) {
        text += &format!(
            "{at}ms cpu0 switch app -> idle {FAULT}
            {at}.1ms cpu1 switch server -> idle sleeping nanosleep arg=49ms stack=nanosleep;limit_rate\n"
        );
        if at < 950 {
            let then = at + 49;
            text += &format!(
                "{then}.1ms cpu1 wake idle -> server in=timer
                {then}.2ms cpu1 switch idle -> server
                {then}.7ms cpu1 wake server -> app writev stack=writev;reply kstack=folio_wake_bit;fuse_dev_do_write
                {then}.8ms cpu0 switch idle -> app\n"
            );
        }
    }
    let verdict = explain(&record(&(text + "end 1s")), "app", 11_000..1_000_000);
    assert_eq!(verdict.root.who.tid, 200, "{}", verdict.sentence);
    // It brings a page after each sleep: it looks for nothing.
    assert_eq!(verdict.root.class, Class::LongWait, "{}", verdict.sentence);
}

/// The sentence says what stopped a thread: the wakes before and after the stop tell.
#[test]
fn what_stopped_a_thread_is_told() {
    for (stop, go_on, says) in [
        (
            "10ms cpu1 wake sh -> server kill arg=19
            10.1ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "kill arg=18",
            "server was stopped by a signal from sh.",
        ),
        // It ran until then.
        (
            "10ms cpu0 switch idle -> server
            10.1ms cpu1 handoff sh signal submitted other=server detail=19
            10.2ms cpu0 switch server -> idle stopped arg=19",
            "kill arg=18",
            "server was stopped by a signal (SIGSTOP) from sh.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "kill arg=18",
            "server was stopped by a signal.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "write kstack=__thaw_task;freezer_write",
            "server was frozen by its control group.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped",
            "",
            "server was stopped by a signal, a debugger or the freezer of its control group.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped read object=char:5 arg=21 kstack=do_signal_stop;get_signal",
            "kill arg=18",
            "server was stopped by a signal (SIGTTIN: it read from its terminal in the background).",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped kstack=do_signal_stop;get_signal",
            "",
            "server was stopped by a signal.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped kstack=do_freezer_trap;get_signal",
            "",
            "server was frozen by its control group.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped kstack=hrtimer_nanosleep",
            "",
            "server was frozen by its control group.",
        ),
        (
            "10ms cpu0 switch idle -> server
            10.2ms cpu0 switch server -> idle stopped kstack=ptrace_stop;get_signal",
            "",
            "server was stopped by a debugger or tracer.",
        ),
    ] {
        let go_on = match go_on {
            "" => String::new(),
            by => format!("2s cpu1 wake sh -> server {by}\n2.1s cpu0 switch idle -> server"),
        };
        let recording = record(&format!(
            "process sh 100
            thread sh sh 100
            process server 200
            thread server server 200
            0 cpu1 switch idle -> sh
            0 cpu0 switch idle -> server
            1ms cpu0 switch server -> idle sleeping read object=pipe:7 stack=read;serve
            {stop}
            {go_on}
            end 3s"
        ));
        let sentence = explain(&recording, "server", 10_200..2_000_000).sentence;
        let says = says.replace("server was", "it was");
        assert!(sentence.ends_with(&says), "{sentence}");
    }
}

/// A program that opens a file to change it waits until overlayfs has copied all of it: neither the call nor the
/// program's function tells that, but the kernel's stack does.
#[test]
fn a_copy_of_overlayfs_is_told() {
    let sentence = |kernel: &str| {
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            0 cpu0 switch idle -> main
            1ms cpu0 switch main -> idle uninterruptible openat object=file:42 stack=open;load_state kstack=io_schedule;folio_wait_bit_common;{kernel};vfs_open
            end 3s"
        ));
        explain(&recording, "main", 1_000..3_000_000).sentence
    };
    let copied = sentence("ovl_copy_up_file");
    assert!(
        copied.contains("overlayfs copies the whole file up"),
        "{copied}"
    );
    assert!(!sentence("ext4_file_open").contains("overlayfs"));
}

/// Who looks into a directory that is mounted as it is asked for waits for the automounter's newest thread, and that
/// for the program which it asks where to mount it from.
#[test]
fn an_automounter_waits_for_its_map() {
    let recording = record(
        "process ls 100
        thread ls ls 100
        process automount 200
        process map 300
        thread automount automount 200
        0.1ms cpu0 switch idle -> automount
        0.2ms open automount object=char:9 kind=mounter
        0.3ms cpu0 switch automount -> idle sleeping rt_sigtimedwait stack=sigwait;main
        0.4ms cpu1 switch idle -> ls
        1ms fork automount -> lookup automount 201
        1.1ms cpu0 switch idle -> lookup
        1.2ms fork lookup -> map map 300
        1.3ms cpu1 switch ls -> idle uninterruptible statx stack=statx;ls kstack=autofs_wait;autofs_mount_wait
        1.4ms open automount object=pipe:7 access=read
        1.4ms open map object=pipe:7 access=write
        1.5ms cpu0 switch lookup -> map sleeping read object=pipe:7 stack=read;lookup_mount
        end 3s",
    );
    let verdict = explain(&recording, "ls", 1_300..3_000_000);
    assert_eq!(verdict.root.who.tid, 300);
    assert_eq!(verdict.root.class, Class::LongRunning);
    assert!(
        verdict.sentence.contains("automount") && !verdict.sentence.contains("kernel"),
        "{}",
        verdict.sentence
    );
}

/// A server that finds its file system full sleeps before it tries again: whoever asked it waits for that, and not
/// for another of its clients, though it was about to write a row.
#[test]
fn a_database_without_space_sleeps() {
    let recording = record(
        "process client 100
        thread client client 100
        process mariadbd 200
        thread main mariadbd 200 name=mariadbd
        thread one mariadbd 201
        0 socket client object=unix:1 peer=unix:2
        0 socket mariadbd object=unix:2 peer=unix:1
        0 socket client object=unix:3 peer=unix:4
        0 socket mariadbd object=unix:4 peer=unix:3
        0.1ms cpu0 switch idle -> client
        0.1ms cpu1 switch idle -> one
        1ms cpu0 switch client -> idle sleeping recvfrom object=unix:1 stack=recv;query
        1ms cpu1 switch one -> idle sleeping futex arg=137 object=futex:0x10 stack=pthread_cond_timedwait;mariadb_sleep_for_space;my_pwrite;handler::ha_write_row(unsigned_char)
        end 3s",
    );
    let verdict = explain(&recording, "one", 1_000..3_000_000);
    assert_eq!(verdict.root.class, Class::LongWait);
    assert!(
        verdict
            .sentence
            .contains("slept in mariadb_sleep_for_space"),
        "{}",
        verdict.sentence
    );
}

/// A thread is woken again and again, and each time has no CPU for some microseconds, though nobody has it: the CPU slept.
/// For as long in one piece something keeps the thread from it.
#[test]
fn a_cpu_that_sleeps_takes_a_while_to_wake() {
    let sentence = |turns: u64, runnable_us: u64| {
        let mut text = String::from(
            "process tool 100\nthread tool tool 100
            process other 200\nthread other other 200
            0 cpu0 switch idle -> other
            0 cpu1 switch idle -> tool\n",
        );
        let turn = 2 * runnable_us;
        for at in (0..turns).map(|nth| 1_000 + nth * turn) {
            text += &format!(
                "{at}us cpu1 switch tool -> idle sleeping read object=pipe:5 stack=read;trace
                {}us cpu0 wake other -> tool write object=pipe:5 stack=write;stop
                {}us cpu1 switch idle -> tool\n",
                at + 1,
                at + 1 + runnable_us,
            );
        }
        let end = 2_000 + turns * turn;
        let recording = record(&format!("{text}end {end}us"));
        explain(&recording, "tool", 1_000..end - 1_000).sentence
    };
    let often = sentence(5_000, 40);
    let wakes = "40.0 µs each time, though the CPUs were free for 100 % of it: waking an idle CPU takes that long.";
    assert!(often.ends_with(wakes), "{often}");
    let once = sentence(4, 50_000);
    assert!(once.contains("a limit"), "{once}");
}
