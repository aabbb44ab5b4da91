//! Holds the counters against what the kernel itself keeps of a thread. Few machines that run tests
//! have a PMU, so events of the kernel's software stand in for the hardware's: they go the same way
//! through `bpf/counters.h`, the rings and the table, and getrusage knows what they must come to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hangdog_trace::Threads;
use hangdog_trace::ids::IDLE;

use super::{Counters, HARDWARE, KINDS, Kind};
use crate::call_log::CallsOf;
use crate::procfs;
use crate::session::{Options, Programs, Session, Trial};
use crate::system::monotonic_ns;
use crate::world::{Pending, World};

const TYPE_SOFTWARE: u32 = 1;

/// In place of cycles, instructions, cache misses and TLB misses.
const STAND_INS: [Kind; KINDS] = [
    software("cpu-clock", 0),
    software("task-clock", 1),
    software("page-faults", 2),
    software("context-switches", 3),
];

const fn software(name: &'static str, config: u64) -> Kind {
    Kind {
        name,
        class: TYPE_SOFTWARE,
        config,
    }
}

/// What a thread used, by the kernel's own account.
#[derive(Clone, Copy, Default, Debug)]
struct Usage {
    tid: u32,
    cpu_ns: u64,
    faults: u64,
}

/// Of the thread that calls it, since it began.
fn usage() -> Usage {
    // SAFETY: rusage is plain integers, for which zero is valid; getrusage fills it; gettid has no
    // preconditions.
    let (tid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        (libc::gettid(), usage)
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Usage {
        tid: tid as u32,
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        faults: (usage.ru_minflt + usage.ru_majflt) as u64,
    }
}

/// Writes to `pages` pages that nobody has written to.
fn fault(pages: usize) {
    const PAGE: usize = 4096;
    // SAFETY: a fresh anonymous mapping, checked, used within its length and unmapped once. Without
    // huge pages every page faults by itself.
    unsafe {
        let length = pages * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let base = libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        libc::madvise(base, length, libc::MADV_NOHUGEPAGE);
        for page in 0..pages {
            base.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        libc::munmap(base, length);
    }
}

/// Uses about `time` of a CPU, faults, and sleeps now and then.
fn work(time: Duration, pages: usize) -> Usage {
    fault(pages);
    while usage().cpu_ns < time.as_nanos() as u64 {
        let until = Instant::now() + Duration::from_millis(3);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    usage()
}

#[derive(Clone, Copy, Default, Debug)]
struct Counted {
    records: u64,
    sums: [u64; KINDS],
}

/// The time that the hypervisor has taken from all CPUs, ns: a thread's clocks go on meanwhile, and nobody
/// is charged for it.
fn stolen_ns() -> u64 {
    const FIELD: usize = 8;
    let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let ticks = text
        .lines()
        .next()
        .and_then(|all| all.split_whitespace().nth(FIELD));
    // SAFETY: no preconditions.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u64;
    let ticks: u64 = ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
    ticks * (1_000_000_000 / a_second)
}

/// Clocks and faults in the place of the hardware's counters, summed over all records of a thread,
/// are what getrusage says of it: time within 5 % and what the hypervisor took, faults within 1 %,
/// and what counts switches is what the trace has of them.
#[test]
fn sums_are_what_getrusage_says() {
    let options = Options {
        memory: 32 << 20,
        stacks: false,
        unwind_memory: 0,
        sample_hz: 1000,
        transfers: false,
        calls: CallsOf::default(),
        faults: false,
        yardstick: None,
        flags: Vec::new(),
        probes: Vec::new(),
    };
    let trial = Trial {
        counted: STAND_INS,
        ..Trial::default()
    };
    let mut session = match Session::load(&options, Programs::All, &trial) {
        Ok(session) => session,
        Err(why) => {
            eprintln!("NOT RUN: counters against getrusage: {why}");
            return;
        }
    };
    for kind in STAND_INS {
        let hook = session.hooks.iter().find(|hook| hook.name == kind.name);
        assert!(hook.is_some_and(|hook| hook.attached), "{}", kind.name);
    }
    let mut cursor = session.rings.oldest();
    let mut world = World::new(monotonic_ns(), &procfs::population());
    let mut pending = Pending::default();
    let mut lost = 0;
    let mut read = |session: &mut Session| {
        let events = &mut pending.events;
        lost += session.rings.read(&mut cursor, events).iter().sum::<u64>();
        session
            .drain_definitions(&mut pending.definitions, false)
            .expect("definitions");
    };
    let stolen_before = stolen_ns();
    let done = AtomicBool::new(false);
    let used: Vec<Usage> = std::thread::scope(|scope| {
        let workers = [(400, 5_000), (200, 20_000), (300, 10)]
            .map(|(time, pages)| scope.spawn(move || work(Duration::from_millis(time), pages)));
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                read(&mut session);
            }
        });
        let used = workers.map(|worker| worker.join().expect("no panic"));
        done.store(true, Ordering::Relaxed);
        reader.join().expect("no panic");
        used.into()
    });
    session.detach();
    let stolen = stolen_ns() - stolen_before;
    read(&mut session);
    assert_eq!(lost, 0, "events were lost: the sums lack them");
    world.advance(&mut pending, u64::MAX);
    let (switches, counters) = (&world.tables.switches, &world.tables.counters);
    assert!(!counters.thread.contains(&IDLE), "idle is not told of");
    let threads = Threads::new(&world.tables.lifecycle);
    for used in used {
        let who = |utid: u32| threads.thread(utid).tid == used.tid;
        let left = switches.prev.iter().filter(|&&prev| who(prev)).count() as u64;
        let mut counted = Counted::default();
        for row in (0..counters.len()).map(|i| counters.row(i)) {
            if who(row.thread) {
                counted.records += 1;
                counted.sums[0] += row.cycles;
                counted.sums[1] += row.instructions;
                counted.sums[2] += u64::from(row.cache_misses);
                counted.sums[3] += u64::from(row.tlb_misses);
            }
        }
        println!("{used:?} {counted:?}, left {left} times");
        let near = |sum: u64, expected: u64, share: f64| {
            (sum as f64 - expected as f64).abs() <= share * expected as f64 + 10.0
        };
        let [cpu_clock, task_clock, faults, came] = counted.sums;
        for clock in [cpu_clock, task_clock] {
            let charged = used.cpu_ns as f64;
            let within = charged * 0.95..=charged * 1.05 + stolen as f64;
            let why = format!("{counted:?} {used:?}, {stolen} ns stolen");
            assert!(within.contains(&(clock as f64)), "{why}");
        }
        assert!(near(faults, used.faults, 0.01), "{counted:?} {used:?}");
        // The kernel counts a switch just behind our hook: each is counted by who came with it,
        // and the few that no hook saw by who came next.
        assert!(near(came, left, 0.02), "{counted:?}, left {left} times");
        assert!(counted.records > left, "samples count too");
    }
}

/// What the hardware counts is either opened or refused with a reason, on every machine.
#[test]
fn the_hardware_is_counted_or_the_reason_told() {
    let counters = Counters::probe(HARDWARE, 0);
    for (i, hook) in counters.hooks().enumerate() {
        assert_eq!(hook.attached, counters.mask() & 1 << i != 0);
        assert_eq!(hook.attached, hook.reason.is_empty());
    }
    if counters.mask() == 0 {
        let why = counters.hooks().next().expect("four").reason;
        eprintln!("NOT RUN: counters of the hardware: {why}");
    }
}
