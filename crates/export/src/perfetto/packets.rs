//! Packets go to the file one at a time, so that a trace of any length needs little memory.

use std::io::{self, Write};

use prost::Message;

use super::proto::{FtraceEventBundle, InternedData, TracePacket};

/// The one sequence of packets: all who intern something share it.
const SEQUENCE: u32 = 1;
/// Sequence flag: what was interned before is forgotten.
const STATE_CLEARED: u32 = 1;
/// Sequence flag: the packet refers to what was interned.
const NEEDS_STATE: u32 = 2;
/// Tag of `Trace.packet`: field 1, of known length.
const PACKET_TAG: u8 = 1 << 3 | 2;

/// Writes packets.
pub(crate) struct Packets<W> {
    out: W,
    /// CLOCK_MONOTONIC at the trace's time 0, ns.
    start: u64,
    is_first: bool,
    buffer: Vec<u8>,
}

impl<W: Write> Packets<W> {
    pub(crate) fn new(out: W, start: u64) -> Packets<W> {
        Packets {
            out,
            start,
            is_first: true,
            buffer: Vec::new(),
        }
    }

    /// The time that the file has for a time of the trace.
    pub(crate) fn time(&self, ts: u64) -> u64 {
        self.start.saturating_add(ts)
    }

    /// Writes a packet as it is.
    pub(crate) fn write(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        // A vector grows: encoding into it does not fail.
        packet
            .encode_length_delimited(&mut self.buffer)
            .map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    /// Writes what one CPU did.
    pub(crate) fn write_bundle(&mut self, bundle: FtraceEventBundle) -> io::Result<()> {
        self.write(&TracePacket {
            ftrace_events: Some(bundle),
            trusted_packet_sequence_id: Some(SEQUENCE + 1),
            ..TracePacket::default()
        })
    }

    /// Writes a packet of the sequence, at a time of the trace, with what it is the first to
    /// refer to.
    pub(crate) fn write_at(
        &mut self,
        ts: u64,
        interned: InternedData,
        packet: TracePacket,
    ) -> io::Result<()> {
        let flags = if self.is_first { STATE_CLEARED } else { 0 };
        self.is_first = false;
        let interned = (interned != InternedData::default()).then_some(interned);
        self.write(&TracePacket {
            timestamp: Some(self.time(ts)),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(flags | NEEDS_STATE),
            interned_data: interned,
            ..packet
        })
    }
}
