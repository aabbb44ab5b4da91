//! What somebody who did not know the diagnosis made freeze, and what it first took for the cause: each
//! as a trace small enough to read, with the cause that it was made with. Here: editors, package
//! managers, emulators and terminals.

mod support;

use hangdog_diagnose::Class;
use support::*;

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
