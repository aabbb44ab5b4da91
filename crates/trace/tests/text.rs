//! The text form says exactly what it seems to say, and refuses what it does not understand.

use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::*;
use hangdog_trace::words::*;
use hangdog_trace::{Error, text};

const CAST: &str = "process app 100\nthread main app 100\nthread worker app 101\nkthread kw 7\n";

fn parse(events: &str) -> text::TextTrace {
    text::parse(&format!("{CAST}{events}")).unwrap()
}

/// A switch line becomes a row with every column as written.
#[test]
fn switch() {
    let story = parse(
        "1.5ms cpu3 switch main -> worker sleeping futex op=wait object=futex:0x10 holder=worker \
         stack=a;b kstack=c priority=99",
    );
    assert_eq!(
        (
            story.t("main"),
            story.t("worker"),
            story.t("kw"),
            story.t("idle")
        ),
        (1, 2, 3, 0)
    );
    let expected = Switch {
        ts: 1_500_000,
        cpu: 3,
        prev: 1,
        next: 2,
        left: Left::Sleeping.into(),
        next_priority: 99,
        call: 202,
        object: Object::new(ObjectKind::Futex, 0x10).0,
        arg: 0,
        holder: 2,
        user_stack: 1,
        kernel_stack: 2,
    };
    assert_eq!(story.tables.switches.row(0), expected);
    assert_eq!(story.tables.stacks.frames, [vec![0, 1], vec![2]]);
    assert_eq!(story.tables.stacks.process, [1, 0]);
    assert_eq!(
        story.end, 1_500_000,
        "without an end line the last event is the end"
    );
}

/// What a switch line leaves out is what is usual: preempted, in no call, nothing waited for.
#[test]
fn switch_defaults() {
    let story = parse("0 cpu0 switch main -> idle\n1ns cpu0 switch kw -> idle\nend 5ns");
    let row = story.tables.switches.row(0);
    assert_eq!(
        (row.left, row.call, row.next_priority),
        (Left::Preempted.into(), -1, 120)
    );
    assert_eq!(
        (row.object, row.arg, row.holder, row.user_stack),
        (0, 0, u32::MAX, 0)
    );
    assert_eq!(story.tables.switches.call[1], -2, "a kernel thread");
    assert_eq!(story.end, 5);
}

/// Wakes: the context by its word, the vector, whether the wakee is new.
#[test]
fn wake() {
    let story = parse(
        "1us cpu0 wake idle -> main in=kernel-timer vector=1
         2us cpu1 wake worker -> main futex op=wake stack=x new
         3us cpu1 wake kw -> main",
    );
    let row = story.tables.wakes.row(0);
    assert_eq!((row.ts, row.waker, row.wakee), (1000, 0, 1));
    assert_eq!(
        (row.context, row.vector, row.new),
        (Context::Timer.into(), 1, false)
    );
    assert_eq!(row.call, -1, "an interrupt is in no call");
    let row = story.tables.wakes.row(1);
    assert_eq!(
        (row.call, row.arg, row.new, row.user_stack),
        (202, 1, true, 1)
    );
    assert_eq!((row.context, row.vector), (Context::Task.into(), 0));
    assert_eq!(story.tables.wakes.call[2], -2, "a kernel thread");
}

/// Handoffs and sockets: every column as written, and what is left out is none.
#[test]
fn handoffs_and_sockets() {
    let story = parse(
        "1ms cpu1 handoff main work-item submitted key=0x10 object=timerfd:7 work=flush detail=3
         2ms cpu0 handoff idle timer begun in=timer
         3ms cpu0 handoff main file-lock refused object=file:9 other=worker
         4ms socket app object=unix:5 peer=unix:6 peer-process=app namespace=3 connecting=yes local=@/x remote=/y
         5ms socket app object=inet:8",
    )
    .tables;
    let expected = Handoff {
        ts: 1_000_000,
        cpu: 1,
        thread: 1,
        context: Context::Task.into(),
        kind: HandoffKind::Work.into(),
        step: HandoffStep::Submitted.into(),
        key: 16,
        object: Object::new(ObjectKind::Timerfd, 7).0,
        other: u32::MAX,
        frame: 0,
        detail: 3,
    };
    assert_eq!(story.handoffs.row(0), expected);
    assert_eq!(story.symbols.function, ["flush"]);
    let fired = story.handoffs.row(1);
    assert_eq!((fired.thread, fired.frame, fired.key), (0, u32::MAX, 0));
    assert_eq!(Context::from(fired.context), Context::Hrtimer);
    assert_eq!(story.handoffs.other[2], 2);
    let expected = Socket {
        ts: 4_000_000,
        object: Object::new(ObjectKind::Unix, 5).0,
        process: 1,
        peer: Object::new(ObjectKind::Unix, 6).0,
        peer_process: 1,
        namespace: 3,
        connecting: true,
        local: "@/x".into(),
        remote: "/y".into(),
    };
    assert_eq!(story.sockets.row(0), expected);
    let bare = story.sockets.row(1);
    assert_eq!((bare.peer, bare.peer_process), (0, u32::MAX));
}

/// Events of the other tables.
#[test]
fn others() {
    let story = parse(
        "1ms cpu2 irq 20us soft 3 main
         2ms io 5ms worker write 4096 device=8:1 sector=64
         3ms cpu1 sample main stack=x
         3ms cpu1 counters main cycles=4000 instructions=6000 tlb-misses=1
         4ms transfer main received 20 object=unix:5 peer=unix:6
         5ms cpu1 lost 9 definitions",
    )
    .tables;
    let (ts, duration) = (1_000_000, 20_000);
    let kind = InterruptKind::Soft.into();
    let row = Interrupt {
        ts,
        duration,
        cpu: 2,
        kind,
        vector: 3,
        thread: 1,
    };
    assert_eq!(story.interrupts.row(0), row);
    let row = Io {
        ts: 2_000_000,
        duration: 5_000_000,
        thread: 2,
        device: 8 << 20 | 1,
        sector: 64,
        bytes: 4096,
        operation: IoOperation::Write.into(),
    };
    assert_eq!(story.ios.row(0), row);
    let row = Sample {
        ts: 3_000_000,
        cpu: 1,
        thread: 1,
        user_stack: 1,
        kernel_stack: 0,
    };
    assert_eq!(story.samples.row(0), row);
    let row = Count {
        ts: 3_000_000,
        cpu: 1,
        thread: 1,
        cycles: 4_000,
        instructions: 6_000,
        cache_misses: u32::MAX,
        tlb_misses: 1,
    };
    assert_eq!(story.counters.row(0), row);
    let (object, peer) = (
        Object::new(ObjectKind::Unix, 5).0,
        Object::new(ObjectKind::Unix, 6).0,
    );
    let row = Transfer {
        ts: 4_000_000,
        thread: 1,
        object,
        peer,
        sent: false,
        bytes: 20,
    };
    assert_eq!(story.transfers.row(0), row);
    let row = Loss {
        ts: 5_000_000,
        cpu: 1,
        kind: LossKind::Definitions.into(),
        count: 9,
    };
    assert_eq!(story.losses.row(0), row);
}

/// The arguments of calls: times in ns, `none` for no limit, numbers as they are.
#[test]
fn arguments() {
    let arg = |text: &str| {
        let story = parse(&format!(
            "0 cpu0 switch main -> idle sleeping clock_nanosleep {text}"
        ));
        story.tables.switches.arg[0]
    };
    assert_eq!(arg("arg=1.5ms"), 1_500_000);
    assert_eq!(arg("arg=none"), u64::MAX);
    assert_eq!(arg("arg=17"), 17);
    assert_eq!(arg("arg=0xff"), 255);
}

/// Lines may come in any order; rows are by time.
#[test]
fn rows_are_by_time() {
    let story = parse("2ms cpu0 switch main -> idle\n1ms cpu0 switch idle -> main");
    assert_eq!(story.tables.switches.ts, [1_000_000, 2_000_000]);
    assert_eq!(story.end, 2_000_000);
}

/// What is not understood is refused with its line and a hint.
#[test]
fn errors() {
    for (line, hint) in [
        ("1ms cpu0 switch main -> nobody", "no thread 'nobody'"),
        ("1ms switch main -> idle", "needs its CPU"),
        ("1ms cpu0 switch main idle", "should be '->'"),
        ("1ms cpu0 dance main", "no event 'dance'"),
        ("1 cpu0 switch main -> idle", "neither a time"),
        ("1.5ns cpu0 switch main -> idle", "neither a time"),
        (
            "1ms cpu0 switch main -> idle sleeping reed",
            "'reed' is not understood",
        ),
        (
            "1ms cpu0 switch main -> idle color=red",
            "'color=red' is not understood",
        ),
        (
            "1ms cpu0 switch main -> idle sleeping futex op=eat",
            "not a futex operation",
        ),
        ("1ms cpu0 wake worker -> main in=bed", "not one of: thread"),
        (
            "1ms cpu0 switch main -> idle object=chair:5",
            "no kind of object",
        ),
        ("thread main app 105", "two threads main"),
        ("thread x nowhere 105", "no process 'nowhere'"),
        ("process app 9", "two processes app"),
        ("end", "the time is missing"),
        ("end 5ms 6ms", "one word too many"),
        ("1ms io 5ms main read lots", "'lots' should be the bytes"),
    ] {
        match text::parse(&format!("{CAST}{line}")) {
            Err(Error::Text { line: 5, what }) => assert!(what.contains(hint), "{line}: {what}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

/// Faults, stalls and pages become rows; a fault is in the area of its process that has its address.
#[test]
fn paging() {
    let story = parse(
        "area app 0x1000..0x3000 library file=/lib/x.so offset=4096 executable\n\
         area app 0x8000..0x9000 heap writable\n\
         1ms fault 2ms worker major 0x2fff of-file stack=a;b\n\
         2ms fault 1us main minor 0x3000 in-kernel\n\
         3ms cache main added /lib/x.so 5 16\n\
         4ms stall 7us main direct-reclaim 32\n",
    );
    let expected = Fault {
        ts: 1_000_000,
        duration: 2_000_000,
        thread: 2,
        major: true,
        in_kernel: false,
        of_file: true,
        address: 0x2fff,
        area: 0,
        user_stack: 1,
    };
    let tables = &story.tables;
    assert_eq!(tables.faults.row(0), expected);
    let second = tables.faults.row(1);
    assert_eq!(
        (second.area, second.major, second.in_kernel),
        (u32::MAX, false, true)
    );
    let expected = CacheStep {
        ts: 3_000_000,
        thread: 1,
        action: CacheAction::Added.into(),
        file: 0,
        first: 5,
        pages: 16,
    };
    assert_eq!(tables.page_cache.row(0), expected);
    assert_eq!(tables.files.path, ["/lib/x.so"]);
    assert_eq!((tables.areas.file[0], tables.areas.file[1]), (0, u32::MAX));
    assert_eq!(
        (tables.stalls.duration[0], tables.stalls.pages[0]),
        (7_000, 32)
    );
}
