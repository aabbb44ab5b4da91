//! A trace as Perfetto has it: open it at ui.perfetto.dev, or query it with trace_processor.
//!
//! Switches, wakes, interrupts and the lives of threads are ftrace events ([`sched`], [`lives`]),
//! from which Perfetto derives its own tables: `sched`, `thread_state` with who woke whom, and so
//! its critical path. Samples are `perf_sample`s with their stacks. The calls that threads waited
//! in are slices on the threads' tracks, with the stack, the object and who ended the wait; the
//! problems are slices on tracks named hangdog.
//!
//! Times are CLOCK_MONOTONIC. Perfetto takes an ftrace event's time for CLOCK_BOOTTIME, so the
//! clock snapshot says that the two are equal: time in which the machine slept does not count.

mod interned;
mod lives;
mod packets;
#[allow(
    missing_docs,
    reason = "the schema's own documentation describes each field"
)]
pub mod proto;
mod sched;
mod tracks;

use std::io::{self, Write};

use interned::Interned;
use packets::Packets;
use proto::{Clock, ClockSnapshot, InternedData, PerfSample, SystemInfo, TracePacket, Utsname};

use crate::fold::Place;
use crate::{Selection, Source, Span};

/// Numbers of the kernel's clocks in the schema.
const REALTIME: u32 = 1;
const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;

/// Writes what is selected, of all threads, and the problems.
///
/// # Errors
/// What `out` answers.
pub fn write(
    source: &Source<'_>,
    selection: &Selection,
    problems: &[Span],
    out: impl Write,
) -> io::Result<()> {
    let mut packets = Packets::new(out, source.meta.clock.monotonic_start_ns);
    let mut interned = Interned::default();
    write_machine(source, &mut packets)?;
    lives::write(source, selection, &mut packets)?;
    sched::write(source, selection, &mut packets)?;
    sched::write_interrupts(source, selection, &mut packets)?;
    tracks::write_waits(source, selection, &mut interned, &mut packets)?;
    write_samples(source, selection, &mut interned, &mut packets)?;
    tracks::write_problems(source, problems, &mut interned, &mut packets)
}

/// Clocks and kernel: how to read the rest.
fn write_machine<W: Write>(source: &Source<'_>, packets: &mut Packets<W>) -> io::Result<()> {
    let meta = source.meta;
    let start = packets.time(0);
    let clock = |clock_id, timestamp| Clock {
        clock_id: Some(clock_id),
        timestamp: Some(timestamp),
    };
    packets.write(&TracePacket {
        clock_snapshot: Some(ClockSnapshot {
            clocks: vec![
                clock(MONOTONIC, start),
                clock(BOOTTIME, start),
                clock(REALTIME, meta.started_unix_ns),
            ],
            primary_trace_clock: Some(MONOTONIC),
        }),
        ..TracePacket::default()
    })?;
    packets.write(&TracePacket {
        system_info: Some(SystemInfo {
            utsname: Some(Utsname {
                sysname: Some("Linux".into()),
                release: Some(meta.kernel.clone()),
                machine: Some(meta.arch.clone()),
            }),
            num_cpus: Some(meta.cpus),
        }),
        ..TracePacket::default()
    })
}

fn write_samples<W: Write>(
    source: &Source<'_>,
    selection: &Selection,
    interned: &mut Interned,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    const KERNEL_MODE: i32 = 1;
    const USER_MODE: i32 = 2;
    let samples = source.samples;
    for row in 0..samples.len() {
        if !selection.has_time(samples.ts[row]) {
            continue;
        }
        let place = Place {
            user: samples.user_stack[row],
            kernel: samples.kernel_stack[row],
        };
        let thread = source.threads.thread(samples.thread[row]);
        let mut data = InternedData::default();
        let in_kernel = place.kernel != hangdog_trace::ids::NO_STACK;
        let sample = PerfSample {
            cpu: Some(samples.cpu[row].into()),
            pid: Some(thread.pid),
            tid: Some(thread.tid),
            callstack_iid: interned.stack(source, place, &mut data),
            cpu_mode: Some(if in_kernel { KERNEL_MODE } else { USER_MODE }),
        };
        packets.write_at(
            samples.ts[row],
            data,
            TracePacket {
                perf_sample: Some(sample),
                ..TracePacket::default()
            },
        )?;
    }
    Ok(())
}
