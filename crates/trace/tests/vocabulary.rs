//! Threads, calls and stacks as they are asked for.

use hangdog_trace::ids::{IDLE, KERNEL_PROCESS, NONE};
use hangdog_trace::words::StackEnd;
use hangdog_trace::{Call, Calls, FutexOp, StackTable, Threads, text};

fn threads(story: &str) -> (Threads, text::TextTrace) {
    let story = text::parse(story).unwrap();
    (Threads::new(&story.tables.lifecycle), story)
}

const CAST: &str = "
    process app 100
    process server 200
    process application 300
    thread  app app 100
    thread  io app 101
    thread  app2 app 102 name=app      # inherited its process's name
    thread  server server 200
    thread  io2 server 201 name=io
    thread  ui application 300 name=application
    kthread kworker/0:1 7
";

/// A selector means what a person expects: numbers are tids, names prefer main threads, a slash
/// separates process and thread, and a prefix counts only where nothing fits exactly.
#[test]
fn selectors() {
    let (threads, story) = threads(CAST);
    let t = |names: &[&str]| names.iter().map(|name| story.t(name)).collect::<Vec<_>>();
    for (selector, expected) in [
        ("101", &["io"][..]),
        ("100", &["app"]),
        ("app", &["app"]),
        ("io", &["io", "io2"]),
        ("app/io", &["io"]),
        ("server/io", &["io2"]),
        ("200/io", &["io2"]),
        ("app/app", &["app", "app2"]),
        ("app/102", &["app2"]),
        ("app/", &["app", "io", "app2"]),
        ("/io", &[]),
        ("kworker/0:1", &["kworker/0:1"]),
        ("kernel/kworker/0:1", &["kworker/0:1"]),
        ("kwork", &["kworker/0:1"]),
        ("appl", &["ui"]),
        ("serv/i", &["io2"]),
        (" server ", &["server"]),
        ("nobody", &[]),
        ("999", &[]),
        ("", &[]),
        ("/", &[]),
    ] {
        assert_eq!(threads.find(selector), t(expected), "selector '{selector}'");
    }
}

/// Lives are put together from their steps: names by time, parents, processes, ends.
#[test]
fn lives() {
    let (threads, story) = threads(
        "process shell 10
         process tool 20
         thread shell shell 10
         1ms fork shell -> tool tool 20
         2ms exec tool /usr/bin/tool
         3ms fork tool -> helper tool 21
         4ms rename helper crunch
         5ms exit tool 1",
    );
    let tool = threads.thread(story.t("tool"));
    assert_eq!((tool.start, tool.end), (1_000_000, Some(5_000_000)));
    assert_eq!(tool.exit_status.as_deref(), Some("1"));
    assert!(tool.is_main() && !tool.is_kernel());
    let helper = threads.thread(story.t("helper"));
    assert_eq!(helper.name(), "crunch");
    assert_eq!(helper.name_at(0), "helper");
    assert_eq!(helper.name_at(3_999_999), "helper");
    assert_eq!(helper.name_at(4_000_000), "crunch");
    assert_eq!((helper.parent, helper.end), (story.t("tool"), None));
    assert!(!helper.is_main());
    let process = threads.process_of(story.t("helper"));
    assert_eq!((process.pid, process.name.as_str()), (20, "tool"));
    assert_eq!(process.command, "/usr/bin/tool");
    assert_eq!(process.threads, [story.t("tool"), story.t("helper")]);
    assert_eq!(process.parent, threads.thread(story.t("shell")).upid);
}

/// A thread whose start was lost lives from when it was first seen: before that, nothing is known.
#[test]
fn late_sight() {
    let mut lifecycle = text::parse("process app 100\nthread main app 100")
        .unwrap()
        .tables
        .lifecycle;
    lifecycle.ts[0] = 5;
    assert_eq!(Threads::new(&lifecycle).thread(1).start, 5);
}

/// The idle thread is always there, and a thread that is not known is a placeholder, not a panic.
#[test]
fn idle_and_unknown() {
    let (threads, _) = threads("");
    assert_eq!(threads.thread(IDLE).name(), "swapper/idle");
    assert!(threads.thread(IDLE).is_kernel());
    assert_eq!(threads.process(KERNEL_PROCESS).name, "kernel");
    for utid in [1, 77, NONE] {
        assert_eq!(threads.thread(utid).name(), "unknown");
        assert_eq!(threads.thread(utid).utid, NONE);
        assert!(!threads.thread(utid).is_kernel());
        assert_eq!(threads.process_of(utid).name, "unknown");
        assert!(threads.known(utid).is_none());
    }
    assert_eq!(threads.iter().len(), 1);
}

/// One call has other numbers on other machines and the same kind; numbers from the kernel's
/// tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
#[test]
fn calls_by_machine() {
    let x86 = Calls::new("x86_64");
    let arm = Calls::new("aarch64");
    for (name, on_x86, on_arm, kind) in [
        ("read", 0, Some(63), Call::Read),
        ("write", 1, Some(64), Call::Write),
        ("poll", 7, None, Call::Poll),
        ("ppoll", 271, Some(73), Call::Poll),
        ("sched_yield", 24, Some(124), Call::Yield),
        ("nanosleep", 35, Some(101), Call::Sleep),
        ("connect", 42, Some(203), Call::Connect),
        ("recvmsg", 47, Some(212), Call::Receive),
        ("sendto", 44, Some(206), Call::Send),
        ("wait4", 61, Some(260), Call::WaitChild),
        ("fsync", 74, Some(82), Call::Fsync),
        ("tgkill", 234, Some(131), Call::Kill),
        ("futex", 202, Some(98), Call::Futex),
        ("epoll_pwait2", 441, Some(441), Call::Poll),
        ("exit_group", 231, Some(94), Call::Exit),
        ("mmap", 9, Some(222), Call::Other),
    ] {
        assert_eq!((x86.name(on_x86).as_ref(), x86.kind(on_x86)), (name, kind));
        assert_eq!((x86.number(name), arm.number(name)), (Some(on_x86), on_arm));
        if let Some(number) = on_arm {
            assert_eq!((arm.name(number).as_ref(), arm.kind(number)), (name, kind));
        }
    }
}

/// Numbers that name no call have a name all the same.
#[test]
fn calls_without_a_name() {
    let x86 = Calls::new("x86_64");
    assert_eq!(
        (x86.name(-1).as_ref(), x86.kind(-1)),
        ("page fault", Call::None)
    );
    assert_eq!(
        (x86.name(-2).as_ref(), x86.kind(-2)),
        ("kernel thread", Call::KernelThread)
    );
    assert_eq!(
        (x86.name(9999).as_ref(), x86.kind(9999)),
        ("system call 9999", Call::Other)
    );
    assert_eq!(
        (x86.name(i16::MIN).as_ref(), x86.kind(i16::MIN)),
        ("system call -32768", Call::Other)
    );
    let riscv = Calls::new("riscv64");
    assert_eq!(
        (riscv.name(63).as_ref(), riscv.kind(63)),
        ("system call 63", Call::Other)
    );
}

/// The futex operation is shown without the private and clock flags: FUTEX_WAIT_PRIVATE is 128,
/// glibc's timed wait is FUTEX_WAIT_BITSET | PRIVATE | CLOCK_REALTIME = 9 | 128 | 256.
#[test]
fn futex_operations() {
    assert_eq!(FutexOp::of(128), FutexOp::Wait);
    assert_eq!(FutexOp::of(129), FutexOp::Wake);
    assert_eq!(FutexOp::of(9 | 128 | 256), FutexOp::WaitBitset);
    assert_eq!(FutexOp::of(4), FutexOp::CmpRequeue);
    assert_eq!(
        FutexOp::of(2),
        FutexOp::Unknown,
        "FUTEX_FD, gone since Linux 2.6.26"
    );
    assert_eq!(FutexOp::of(u64::MAX), FutexOp::Unknown);
}

/// A stack reads innermost first, with names, sources and modules, or offsets where no name is.
#[test]
fn stacks() {
    let mut story = text::parse(
        "process app 100
         thread main app 100
         1ms cpu0 switch main -> idle sleeping read stack=wait@lock.c:7;main kstack=pipe_read",
    )
    .unwrap()
    .tables;
    let switch = story.switches.row(0);
    // A frame without a symbol, and one without a module.
    story.stacks.frames[0].extend([70, 71, 72]);
    for (frame, module) in [(70, 0), (71, NONE)] {
        story.frames.push(hangdog_trace::tables::Frame {
            frame,
            module,
            offset: 0xbeef,
        });
    }
    let table = StackTable::new(story.stacks, story.frames, story.modules, story.symbols);
    let frames: Vec<_> = table.stack(switch.user_stack).collect();
    let texts: Vec<_> = frames.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["wait", "main", "app+0xbeef", "0xbeef", "0x0"]);
    assert_eq!((frames[0].source, frames[1].source), ("lock.c:7", ""));
    assert_eq!((frames[0].module, frames[3].module), (Some("app"), None));
    let kernel: Vec<_> = table.stack(switch.kernel_stack).collect();
    assert!(kernel.len() == 1 && kernel[0].is_kernel() && !frames[0].is_kernel());
    assert_eq!(kernel[0].function, Some("pipe_read"));
    assert_eq!(table.stack(0).count(), 0, "no stack was taken");
    assert_eq!(table.stack(999).count(), 0);
}

/// A frame with inlined functions reads as a frame for each, innermost first, whatever the order
/// of the rows; of two functions at one depth, which only damage makes, the first counts.
#[test]
fn inlined_functions_are_frames() {
    let mut story = text::parse(
        "process app 100
         thread main app 100
         1ms cpu0 switch main -> idle sleeping read stack=inner@a.h:1^middle@b.h:2^outer@c.c:3;main",
    )
    .unwrap()
    .tables;
    assert_eq!(story.symbols.function, ["outer", "middle", "inner", "main"]);
    assert_eq!(story.symbols.inline_depth, [0, 1, 2, 0]);
    assert_eq!(story.symbols.frame, [0, 0, 0, 1]);
    story.symbols = [2, 3, 0, 1]
        .map(|row| story.symbols.row(row))
        .into_iter()
        .collect();
    story.symbols.push(hangdog_trace::tables::Symbol {
        function: "damage".into(),
        ..story.symbols.row(0)
    });
    let stack = story.switches.user_stack[0];
    let table = StackTable::new(story.stacks, story.frames, story.modules, story.symbols);
    let frames: Vec<_> = table
        .stack(stack)
        .map(|frame| (frame.function.unwrap(), frame.inlined, frame.source))
        .collect();
    let expected = [
        ("inner", true, "a.h:1"),
        ("middle", true, "b.h:2"),
        ("outer", false, "c.c:3"),
        ("main", false, ""),
    ];
    assert_eq!(frames, expected);
    assert_eq!(table.frame_ids(stack).len(), 2);
}

/// A function of a kernel module is told by that module, other kernel code by the kernel.
#[test]
fn kernel_modules_are_told() {
    let mut story = text::parse(
        "process app 100
         thread main app 100
         1ms cpu0 switch main -> idle sleeping read kstack=draw;schedule",
    )
    .unwrap()
    .tables;
    story.symbols.kernel_module[0] = "[gpu]".into();
    let stack = story.switches.kernel_stack[0];
    let table = StackTable::new(story.stacks, story.frames, story.modules, story.symbols);
    let frames: Vec<_> = table
        .stack(stack)
        .map(|frame| {
            (
                frame.function.unwrap(),
                frame.module.unwrap(),
                frame.is_kernel(),
            )
        })
        .collect();
    let expected = [("draw", "[gpu]", true), ("schedule", "[kernel]", true)];
    assert_eq!(frames, expected);
}

/// A stack says why it ends, and nothing where that was not recorded.
#[test]
fn stacks_say_why_they_end() {
    let story = text::parse(
        "process app 100
         thread main app 100
         1ms cpu0 switch main -> idle sleeping read stack=wait;main
         2ms cpu0 switch main -> idle sleeping read stack=wait;main;!no-rule",
    )
    .unwrap()
    .tables;
    let [plain, cut] = story.switches.user_stack[..] else {
        panic!("two switches")
    };
    let table = StackTable::new(story.stacks, story.frames, story.modules, story.symbols);
    assert_eq!(table.end(plain), StackEnd::Unknown);
    assert_eq!(table.end(cut), StackEnd::NoRule);
    assert_eq!(table.frame_ids(plain), table.frame_ids(cut));
    assert_eq!(table.end(999), StackEnd::Unknown);
}
