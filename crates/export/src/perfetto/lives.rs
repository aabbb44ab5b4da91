//! Who the threads and processes are: those that were there, then those that came.

use std::io::{self, Write};

use hangdog_trace::Thread as Traced;
use hangdog_trace::ids::IDLE;

use super::packets::Packets;
use super::proto::ftrace_event::Event;
use super::proto::{
    FtraceEvent, FtraceEventBundle, InternedData, Process, ProcessTree, SchedProcessFree,
    TaskNewtask, TaskRename, Thread, TracePacket,
};
use super::sched::tid;
use crate::{Selection, Source};

/// The flag of clone(2) by which a thread joins its creator's process.
const CLONE_THREAD: u64 = 0x10000;
/// The kernel thread that all others are children of.
const KTHREADD: i32 = 2;

/// Writes the lives of threads that have a part in a window.
pub(crate) fn write<W: Write>(
    source: &Source<'_>,
    selection: &Selection,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let (mut before, mut later) = (ProcessTree::default(), Vec::new());
    for thread in source.threads.iter().filter(|thread| thread.utid != IDLE) {
        let life = source.timeline.life(thread.utid);
        if life.start >= selection.to || life.end < selection.from {
            continue;
        }
        match life.start <= selection.from || thread.start == 0 {
            true => add(source, thread, selection.from, &mut before),
            false => later.push(thread),
        }
        write_changes(source, selection, thread, packets)?;
    }
    let tree = |process_tree| TracePacket {
        process_tree: Some(process_tree),
        ..TracePacket::default()
    };
    packets.write_at(selection.from, InternedData::default(), tree(before))?;
    for thread in later {
        let mut one = ProcessTree::default();
        add(source, thread, thread.start, &mut one);
        packets.write_at(thread.start, InternedData::default(), tree(one))?;
    }
    Ok(())
}

fn add(source: &Source<'_>, thread: &Traced, ts: u64, tree: &mut ProcessTree) {
    let process = source.threads.process_of(thread.utid);
    let pid = thread.pid as i32;
    if thread.is_main() || thread.is_kernel() {
        let parent = source.threads.process(process.parent);
        let command = match process.command.as_str() {
            "" => vec![thread.name_at(ts).to_owned()],
            command => command.split(' ').map(String::from).collect(),
        };
        tree.processes.push(match thread.is_kernel() {
            true => Process {
                pid: Some(pid),
                ppid: Some(if pid == KTHREADD { 0 } else { KTHREADD }),
                cmdline: vec![thread.name_at(ts).into()],
                is_kthread: Some(true),
            },
            false => Process {
                pid: Some(pid),
                ppid: Some(parent.pid as i32),
                cmdline: command,
                is_kthread: None,
            },
        });
    }
    tree.threads.push(Thread {
        tid: Some(thread.tid as i32),
        name: Some(thread.name_at(ts).into()),
        tgid: Some(pid),
    });
}

/// Writes what happened to a thread: its start, its names, its end.
fn write_changes<W: Write>(
    source: &Source<'_>,
    selection: &Selection,
    thread: &Traced,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let pid = Some(thread.tid as i32);
    let mut events = Vec::new();
    let mut happen = |ts: u64, pid: i32, event| {
        if selection.has_time(ts) {
            events.push(FtraceEvent {
                timestamp: Some(packets.time(ts)),
                pid: Some(pid as u32),
                common_flags: None,
                event: Some(event),
            });
        }
    };
    if thread.start > 0 {
        let parent = source.threads.thread(thread.parent);
        let joins = parent.upid == thread.upid && !thread.is_kernel();
        let new = TaskNewtask {
            pid,
            comm: Some(thread.name_at(thread.start).into()),
            clone_flags: Some(if joins { CLONE_THREAD } else { 0 }),
        };
        happen(
            thread.start,
            tid(source, parent.utid),
            Event::TaskNewtask(new),
        );
    }
    for pair in thread.names.windows(2) {
        let ((_, old), (ts, new)) = (&pair[0], &pair[1]);
        let rename = TaskRename {
            pid,
            oldcomm: Some(old.clone()),
            newcomm: Some(new.clone()),
        };
        happen(*ts, thread.tid as i32, Event::TaskRename(rename));
    }
    let end = source.timeline.life(thread.utid).end;
    if end < source.timeline.end() {
        // After the switch by which it left its last CPU, which is at its end.
        let free = SchedProcessFree {
            comm: Some(thread.name().into()),
            pid,
        };
        happen(end.saturating_add(1), 0, Event::SchedProcessFree(free));
    }
    match events.is_empty() {
        true => Ok(()),
        // Which CPU it was is not recorded; no table asks for it.
        false => packets.write_bundle(FtraceEventBundle {
            cpu: Some(0),
            event: events,
            compact_sched: None,
        }),
    }
}
