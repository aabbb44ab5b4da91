//! Switches, wakes and interrupts become bundles of ftrace events, a CPU at a time, from which
//! Perfetto makes its own tables of scheduling and thread states.
//!
//! Most events take a compact form of some ten bytes, in which the thread that leaves a CPU, or
//! wakes another, is the one that came last. Where that is not so (at the start, or where a switch
//! was lost) the event is written in full. A switch that was lost has one that stands in for it,
//! at the time at which the timeline, too, has the thread off its CPU; Perfetto counts these as
//! `task_state_invalid`.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use hangdog_timeline::Cause;
use hangdog_trace::ids::{IDLE, NO_CPU, NONE, Utid};
use hangdog_trace::words::{Context, InterruptKind, Left};

use super::packets::Packets;
use super::proto::ftrace_event::Event;
use super::proto::{
    CompactSched, FtraceEvent, FtraceEventBundle, IrqHandlerEntry, IrqHandlerExit, LocalTimer,
    SchedSwitch, SchedWaking, Softirq,
};
use crate::{Selection, Source};

/// Events of a CPU that are collected before they are written.
const BATCH: usize = 4096;
/// The flags of `common_flags` that say what the CPU was running.
const IN_HARDIRQ: u32 = 0x08;
const IN_SOFTIRQ: u32 = 0x10;
/// A number that is not known where the compact form needs one.
const UNKNOWN: i32 = -1;
/// State of a thread that left its CPU nobody knows how: a number that stands for no state.
const UNSEEN: i64 = 0x4000;
/// Name of the idle thread, as the kernel has it.
const IDLE_COMM: &str = "swapper";

/// Writes the switches and wakes of a window.
pub(crate) fn write<W: Write>(
    source: &Source<'_>,
    selection: &Selection,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let (switches, wakes) = (source.switches, source.wakes);
    let mut cpus: BTreeMap<u16, Cpu> = BTreeMap::new();
    let mut priorities: HashMap<Utid, u8> = HashMap::new();
    let start = |ts: &[u64]| ts.partition_point(|&ts| ts < selection.from);
    let end = |ts: &[u64]| ts.partition_point(|&ts| ts < selection.to);
    let (mut wake, last_wake) = (start(&wakes.ts), end(&wakes.ts));
    for row in start(&switches.ts)..=end(&switches.ts) {
        let until = switches.ts.get(row).filter(|&&ts| ts < selection.to);
        while wake < last_wake && until.is_none_or(|&until| wakes.ts[wake] <= until) {
            let number = wakes.cpu[wake];
            let cpu = cpus.entry(number).or_insert_with(Cpu::new);
            let priority = priorities.get(&wakes.wakee[wake]).copied();
            cpu.wake(source, packets.time(wakes.ts[wake]), wake, priority);
            cpu.write_full(number, packets)?;
            wake += 1;
        }
        // Who was found off its CPU did not switch there.
        let number = switches.cpu.get(row).copied().unwrap_or(NO_CPU);
        if until.is_some() && number != NO_CPU {
            let cpu = cpus.entry(number).or_insert_with(Cpu::new);
            let priority = priorities.get(&switches.prev[row]).copied();
            cpu.switch(source, packets.time(switches.ts[row]), row, priority);
            priorities.insert(switches.next[row], switches.next_priority[row]);
            cpu.write_full(number, packets)?;
        }
    }
    for (number, mut cpu) in cpus {
        cpu.write(number, packets)?;
    }
    Ok(())
}

/// What a CPU did since its last bundle.
struct Cpu {
    /// The thread that came last.
    current: Utid,
    /// When the last event was, in the file's time.
    last: u64,
    compact: CompactSched,
    last_switch: u64,
    last_waking: u64,
    names: HashMap<String, u32>,
    full: Vec<FtraceEvent>,
}

impl Cpu {
    fn new() -> Cpu {
        Cpu {
            current: NONE,
            last: 0,
            compact: CompactSched::default(),
            last_switch: 0,
            last_waking: 0,
            names: HashMap::new(),
            full: Vec::new(),
        }
    }

    fn switch(&mut self, source: &Source<'_>, ts: u64, row: usize, prev_priority: Option<u8>) {
        let switches = source.switches;
        let (prev, next) = (switches.prev[row], switches.next[row]);
        let state = prev_state(Left::from(switches.left[row]), prev);
        let priority = i32::from(switches.next_priority[row]);
        let next_name = name_at(source, next, switches.ts[row]);
        if self.current == prev {
            let index = self.intern(next_name);
            let compact = &mut self.compact;
            compact
                .switch_timestamp
                .push(ts.saturating_sub(self.last_switch));
            compact.switch_prev_state.push(state);
            compact.switch_next_pid.push(tid(source, next));
            compact.switch_next_prio.push(priority);
            compact.switch_next_comm_index.push(index);
            self.last_switch = ts;
        } else {
            if left_unseen(source, self.current, switches.ts[row]) {
                let lost = in_full(
                    source,
                    row,
                    ts,
                    (self.current, UNSEEN, None),
                    (prev, UNKNOWN),
                );
                self.full.push(lost);
            }
            let (left, came) = ((prev, state, prev_priority), (next, priority));
            self.full.push(in_full(source, row, ts, left, came));
        }
        self.current = next;
        self.last = ts;
    }

    fn wake(&mut self, source: &Source<'_>, ts: u64, row: usize, priority: Option<u8>) {
        let wakes = source.wakes;
        let (waker, wakee) = (wakes.waker[row], wakes.wakee[row]);
        let flags = match Context::from(wakes.context[row]) {
            Context::Task | Context::Unknown => 0,
            Context::Softirq | Context::Timer => IN_SOFTIRQ,
            Context::Hardirq | Context::Hrtimer => IN_HARDIRQ,
        };
        let name = name_at(source, wakee, wakes.ts[row]);
        let priority = priority.map_or(UNKNOWN, i32::from);
        // Of a switch and a wake of one time, which came first does not show in columns.
        if self.current == waker && ts > self.last {
            let index = self.intern(name);
            let compact = &mut self.compact;
            compact
                .waking_timestamp
                .push(ts.saturating_sub(self.last_waking));
            compact.waking_pid.push(tid(source, wakee));
            compact.waking_target_cpu.push(UNKNOWN);
            compact.waking_prio.push(priority);
            compact.waking_comm_index.push(index);
            compact.waking_common_flags.push(flags);
            self.last_waking = ts;
        } else {
            self.full.push(FtraceEvent {
                timestamp: Some(ts),
                pid: Some(tid(source, waker) as u32),
                common_flags: Some(flags),
                event: Some(Event::SchedWaking(SchedWaking {
                    comm: Some(name.into()),
                    pid: Some(tid(source, wakee)),
                    prio: Some(priority),
                    success: Some(1),
                    target_cpu: Some(UNKNOWN),
                })),
            });
        }
        self.last = ts;
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.names.get(name) {
            return index;
        }
        let index = self.compact.intern_table.len() as u32;
        self.compact.intern_table.push(name.into());
        self.names.insert(name.into(), index);
        index
    }

    fn len(&self) -> usize {
        let compact = &self.compact;
        compact.switch_timestamp.len() + compact.waking_timestamp.len() + self.full.len()
    }

    /// Writes what was collected, if that is enough.
    fn write_full<W: Write>(&mut self, number: u16, packets: &mut Packets<W>) -> io::Result<()> {
        match self.len() < BATCH {
            true => Ok(()),
            false => self.write(number, packets),
        }
    }

    fn write<W: Write>(&mut self, number: u16, packets: &mut Packets<W>) -> io::Result<()> {
        if self.len() == 0 {
            return Ok(());
        }
        let compact = std::mem::take(&mut self.compact);
        self.names.clear();
        (self.last_switch, self.last_waking) = (0, 0);
        packets.write_bundle(FtraceEventBundle {
            cpu: Some(number.into()),
            event: std::mem::take(&mut self.full),
            compact_sched: (compact != CompactSched::default()).then_some(compact),
        })
    }
}

/// Whether a thread that was on a CPU had left it unseen by `ts`, because the switch was lost:
/// then Perfetto, which has no such rule, is told of a switch in place of the lost one.
fn left_unseen(source: &Source<'_>, thread: Utid, ts: u64) -> bool {
    let intervals = source.timeline.intervals(thread);
    let interval = intervals.index_at(ts).and_then(|i| intervals.get(i));
    interval.is_some_and(|interval| interval.start == ts && interval.cause == Cause::Unknown)
}

/// A switch written in full: who left, how, with which priority; who came, with which.
fn in_full(
    source: &Source<'_>,
    row: usize,
    ts: u64,
    (prev, state, prev_priority): (Utid, i64, Option<u8>),
    (next, next_priority): (Utid, i32),
) -> FtraceEvent {
    let name = |thread| Some(name_at(source, thread, source.switches.ts[row]).into());
    FtraceEvent {
        timestamp: Some(ts),
        pid: Some(tid(source, prev) as u32),
        common_flags: None,
        event: Some(Event::SchedSwitch(SchedSwitch {
            prev_comm: name(prev),
            prev_pid: Some(tid(source, prev)),
            prev_prio: Some(prev_priority.map_or(UNKNOWN, i32::from)),
            prev_state: Some(state),
            next_comm: name(next),
            next_pid: Some(tid(source, next)),
            next_prio: Some(next_priority),
        })),
    }
}

/// Writes the interrupts of a window: each as its entry and its exit.
pub(crate) fn write_interrupts<W: Write>(
    source: &Source<'_>,
    selection: &Selection,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let interrupts = source.interrupts;
    let mut cpus: BTreeMap<u16, Vec<FtraceEvent>> = BTreeMap::new();
    let bundle = |cpu: u16, event| FtraceEventBundle {
        cpu: Some(cpu.into()),
        event,
        compact_sched: None,
    };
    for row in 0..interrupts.len() {
        let ts = interrupts.ts[row];
        if !selection.has_time(ts) {
            continue;
        }
        let vector = interrupts.vector[row];
        let Some((entry, exit)) = entry_and_exit(interrupts.kind[row].into(), vector) else {
            continue;
        };
        let cpu = interrupts.cpu[row];
        let events = cpus.entry(cpu).or_default();
        let pid = tid(source, interrupts.thread[row]) as u32;
        let stop = ts.saturating_add(interrupts.duration[row]);
        for (ts, event) in [(ts, entry), (stop, exit)] {
            events.push(FtraceEvent {
                timestamp: Some(packets.time(ts)),
                pid: Some(pid),
                common_flags: None,
                event: Some(event),
            });
        }
        if events.len() >= BATCH {
            let events = std::mem::take(events);
            packets.write_bundle(bundle(cpu, events))?;
        }
    }
    for (cpu, events) in cpus {
        packets.write_bundle(bundle(cpu, events))?;
    }
    Ok(())
}

fn entry_and_exit(kind: InterruptKind, vector: u16) -> Option<(Event, Event)> {
    let irq = Some(i32::from(vector));
    Some(match kind {
        InterruptKind::Hard => (
            Event::IrqHandlerEntry(IrqHandlerEntry {
                irq,
                name: Some(format!("interrupt {vector}")),
            }),
            Event::IrqHandlerExit(IrqHandlerExit { irq, ret: Some(1) }),
        ),
        InterruptKind::Soft => {
            let softirq = Softirq {
                vec: Some(vector.into()),
            };
            (
                Event::SoftirqEntry(softirq.clone()),
                Event::SoftirqExit(softirq),
            )
        }
        InterruptKind::LocalTimer => {
            let timer = LocalTimer { vector: irq };
            (
                Event::LocalTimerEntry(timer.clone()),
                Event::LocalTimerExit(timer),
            )
        }
        InterruptKind::Unknown => return None,
    })
}

/// The kernel's number for how a thread left a CPU (the layout since Linux 4.14).
fn prev_state(left: Left, thread: Utid) -> i64 {
    const PREEMPTED: i64 = 0x100;
    match left {
        // The idle thread is never preempted: it steps aside.
        Left::Preempted | Left::Throttled if thread != IDLE => PREEMPTED,
        Left::Preempted | Left::Throttled | Left::Yielded => 0,
        Left::Sleeping | Left::Unknown => 0x01,
        Left::Uninterruptible => 0x02,
        Left::Stopped => 0x04,
        Left::Dead => 0x10,
        Left::Idle => 0x80,
    }
}

/// A thread's tid as the file has it.
pub(crate) fn tid(source: &Source<'_>, thread: Utid) -> i32 {
    // Tids need 22 bits; only a damaged trace has others.
    source.threads.thread(thread).tid as i32
}

pub(crate) fn name_at<'a>(source: &Source<'a>, thread: Utid, ts: u64) -> &'a str {
    match thread {
        IDLE => IDLE_COMM,
        thread => source.threads.thread(thread).name_at(ts),
    }
}
