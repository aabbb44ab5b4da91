//! Small traces as text, with all that the exports ask of a trace.

use hangdog_export::{Selection, Source};
use hangdog_timeline::Timeline;
use hangdog_trace::ids::Utid;
use hangdog_trace::meta::Options;
use hangdog_trace::text::{self, TextTrace};
use hangdog_trace::{Calls, Meta, StackTable, Threads};

/// A trace.
pub struct Fixture {
    pub trace: TextTrace,
    pub meta: Meta,
    threads: Threads,
    timeline: Timeline,
    stacks: StackTable,
    calls: Calls,
}

impl Fixture {
    /// Of a text; sampled a thousand times a second.
    #[allow(dead_code, reason = "not every test writes its trace")]
    pub fn new(text: &str) -> Fixture {
        Fixture::of(text::parse(text).unwrap_or_else(|e| panic!("{e}")))
    }

    /// Of a trace in memory.
    pub fn of(trace: TextTrace) -> Fixture {
        let tables = &trace.tables;
        let threads = Threads::new(&tables.lifecycle);
        let meta = Meta {
            options: Options {
                sample_hz: 1000,
                ..Options::default()
            },
            kernel: "6.18.0".into(),
            arch: "x86_64".into(),
            cpus: 2,
            started_unix_ns: 1_000_000_000_000_000_000,
            clock: hangdog_trace::meta::Clock {
                monotonic_start_ns: 5_000_000_000,
            },
            ..Meta::default()
        };
        Fixture {
            timeline: Timeline::build(
                &tables.switches,
                &tables.wakes,
                &tables.interrupts,
                &threads,
                trace.end,
            ),
            stacks: StackTable::new(
                tables.stacks.clone(),
                tables.frames.clone(),
                tables.modules.clone(),
                tables.symbols.clone(),
            ),
            calls: Calls::new("x86_64"),
            threads,
            meta,
            trace,
        }
    }

    pub fn source(&self) -> Source<'_> {
        let tables = &self.trace.tables;
        Source {
            meta: &self.meta,
            switches: &tables.switches,
            wakes: &tables.wakes,
            interrupts: &tables.interrupts,
            samples: &tables.samples,
            threads: &self.threads,
            timeline: &self.timeline,
            stacks: &self.stacks,
            calls: &self.calls,
        }
    }

    /// All of it.
    pub fn all(&self) -> Selection {
        Selection::all(0, u64::MAX)
    }

    /// A thread of it.
    #[allow(dead_code, reason = "not every test names a thread")]
    pub fn t(&self, name: &str) -> Utid {
        self.trace.t(name)
    }
}

#[allow(dead_code, reason = "not every test tells it")]
/// A process that waits for a lock, is woken by another thread, then waits for its CPU, sleeps,
/// and reads from a disk; sampled on the way.
pub const STORY: &str = "
process app 100
thread  main app 100 name=app
thread  worker app 101
kthread kworker 7
0       cpu0 switch idle -> main
0       cpu1 switch idle -> worker
0.5ms   cpu0 sample main stack=parse^inner;main;!root
0.7ms   cpu0 sample main stack=read;main;!depth kstack=ksys_read;do_syscall_64
0.8ms   cpu0 sample main
0.9ms   cpu1 sample worker stack=spin;spin;work;!root
1ms     cpu0 switch main -> kworker sleeping futex op=wait object=futex:0x1000 stack=lock;main
3ms     cpu1 wake worker -> main futex op=wake object=futex:0x1000 stack=unlock;work kstack=futex_wake
3.5ms   cpu0 switch kworker -> main preempted
4ms     cpu0 switch main -> idle sleeping nanosleep arg=2ms stack=nap;main
6ms     cpu0 wake idle -> main in=timer kstack=hrtimer_wakeup;asm_sysvec_apic_timer_interrupt;do_idle
6.1ms   cpu0 switch idle -> main
7ms     cpu0 switch main -> idle uninterruptible fsync stack=fsync;main kstack=io_schedule;do_syscall_64
9ms     cpu0 wake idle -> main in=softirq vector=4
9.2ms   cpu0 switch idle -> main
9.5ms   cpu0 switch main -> idle sleeping poll arg=none stack=poll;main
end     10ms
";
