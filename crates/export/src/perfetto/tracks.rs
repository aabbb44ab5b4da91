//! What has a track: the calls that threads waited in, and the problems that were found.

use std::io::{self, Write};

use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::object::Object;

use super::interned::Interned;
use super::packets::Packets;
use super::proto::{
    DebugAnnotation, InternedData, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use crate::fold::{Waker, left_at, waker};
use crate::words::{call_name, waker_name};
use crate::{Selection, Source, Span};

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
/// Above all threads' numbers, which are 32 bits.
const PROBLEMS: u64 = 1 << 40;
/// A thread's track is its utid, with this added: 0 is no track.
const THREADS: u64 = 1 << 32;

/// Writes a track for each thread with the calls that it waited in.
pub(crate) fn write_waits<W: Write>(
    source: &Source<'_>,
    selection: &Selection,
    interned: &mut Interned,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    for thread in source.timeline.threads() {
        if source.threads.thread(thread).is_kernel() {
            continue;
        }
        let mut described = false;
        let intervals = source.timeline.intervals(thread);
        for i in intervals.indexes(selection.from, selection.to) {
            let Some(interval) = intervals.get(i) else {
                break;
            };
            let (State::Blocked, Cause::Switch(row)) = (interval.state, interval.cause) else {
                continue;
            };
            if !described {
                describe(source, thread, packets)?;
                described = true;
            }
            // The call ends when the thread runs again.
            let end = intervals
                .get(i + 1)
                .filter(|next| next.state == State::Runnable)
                .map_or(interval.end, |next| next.end);
            let mut data = InternedData::default();
            let event = TrackEvent {
                r#type: Some(SLICE_BEGIN),
                track_uuid: Some(track_of(thread)),
                name_iid: Some(interned.event(&call_name(source, row as usize), &mut data)),
                category_iids: vec![interned.category("wait", &mut data)],
                debug_annotations: arguments(
                    source,
                    row as usize,
                    waker(source, intervals, i),
                    interned,
                    &mut data,
                ),
                callstack_iid: interned.stack(source, left_at(source, intervals, i), &mut data),
                name: None,
            };
            let start = interval.start.max(selection.from);
            packets.write_at(start, data, event.into())?;
            if end < selection.to {
                packets.write_at(end, InternedData::default(), end_of(track_of(thread)))?;
            }
        }
    }
    Ok(())
}

fn track_of(thread: Utid) -> u64 {
    THREADS + u64::from(thread)
}

fn end_of(track: u64) -> TracePacket {
    TrackEvent {
        r#type: Some(SLICE_END),
        track_uuid: Some(track),
        ..TrackEvent::default()
    }
    .into()
}

impl From<TrackEvent> for TracePacket {
    fn from(event: TrackEvent) -> TracePacket {
        TracePacket {
            track_event: Some(event),
            ..TracePacket::default()
        }
    }
}

fn describe<W: Write>(
    source: &Source<'_>,
    thread: Utid,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let traced = source.threads.thread(thread);
    let start = source.timeline.life(thread).start;
    let track = TrackDescriptor {
        uuid: Some(track_of(thread)),
        thread: Some(ThreadDescriptor {
            pid: Some(traced.pid as i32),
            tid: Some(traced.tid.into()),
            thread_name: Some(traced.name().into()),
        }),
        ..TrackDescriptor::default()
    };
    packets.write_at(
        start,
        InternedData::default(),
        TracePacket {
            track_descriptor: Some(track),
            ..TracePacket::default()
        },
    )
}

fn arguments(
    source: &Source<'_>,
    row: usize,
    waker: Waker,
    interned: &mut Interned,
    data: &mut InternedData,
) -> Vec<DebugAnnotation> {
    let object = Object(source.switches.object[row]);
    let object = (!object.is_none()).then(|| object.to_string());
    [("on", object), ("woken by", waker_name(source, waker))]
        .into_iter()
        .filter_map(|(name, value)| {
            Some(DebugAnnotation {
                string_value_iid: Some(interned.value(&value?, data)),
                name_iid: Some(interned.annotation(name, data)),
                uint_value: None,
            })
        })
        .collect()
}

/// Writes the problems on tracks of their own, as many as it takes that none overlap on one.
pub(crate) fn write_problems<W: Write>(
    source: &Source<'_>,
    problems: &[Span],
    interned: &mut Interned,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    write_track(PROBLEMS, None, "hangdog", packets)?;
    let mut sorted: Vec<&Span> = problems.iter().collect();
    sorted.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    // When each track is free again.
    let mut free: Vec<u64> = Vec::new();
    for span in sorted {
        let lane = match free.iter().position(|&end| end <= span.start) {
            Some(lane) => lane,
            None => {
                free.push(0);
                let track = PROBLEMS + free.len() as u64;
                write_track(track, Some(PROBLEMS), "problems", packets)?;
                free.len() - 1
            }
        };
        free[lane] = span.end;
        let track = PROBLEMS + 1 + lane as u64;
        let mut data = InternedData::default();
        let thread = source.threads.thread(span.thread);
        let event = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            name: Some(span.name.clone()),
            category_iids: vec![interned.category("problem", &mut data)],
            debug_annotations: vec![
                DebugAnnotation {
                    name_iid: Some(interned.annotation("thread", &mut data)),
                    string_value_iid: Some(interned.value(thread.name(), &mut data)),
                    uint_value: None,
                },
                DebugAnnotation {
                    name_iid: Some(interned.annotation("tid", &mut data)),
                    string_value_iid: None,
                    uint_value: Some(thread.tid.into()),
                },
            ],
            name_iid: None,
            callstack_iid: None,
        };
        packets.write_at(span.start, data, event.into())?;
        packets.write_at(span.end, InternedData::default(), end_of(track))?;
    }
    Ok(())
}

fn write_track<W: Write>(
    uuid: u64,
    parent_uuid: Option<u64>,
    name: &str,
    packets: &mut Packets<W>,
) -> io::Result<()> {
    let track = TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid,
        name: Some(name.into()),
        thread: None,
    };
    packets.write(&TracePacket {
        track_descriptor: Some(track),
        ..TracePacket::default()
    })
}
