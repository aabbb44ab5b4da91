//! Rows to disk, away from the thread that reads the rings: a disk that is slow for a moment must
//! not cost events.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hangdog_trace::Tables;
use hangdog_trace::TraceWriter;
use hangdog_trace::meta::Meta;

use crate::error::{Error, Result};
use crate::pace::Handle;

/// Parts that may wait for the disk: at one a second, so many seconds.
const WAITING_PARTS: usize = 16;
/// How long a part may take: before as many wait as may.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes parts of one trace on a thread of its own.
pub(crate) struct Saver {
    parts: SyncSender<Tables>,
    writer: JoinHandle<Result<TraceWriter>>,
}

impl Saver {
    pub(crate) fn new(writer: TraceWriter, handle: Handle) -> Saver {
        let (parts, incoming) = sync_channel(WAITING_PARTS);
        let writer = std::thread::spawn(move || write_parts(writer, incoming, &handle));
        Saver { parts, writer }
    }

    /// Hands the rows over, if the disk keeps up; otherwise they stay where they are for the next
    /// time. `false` if writing has failed.
    pub(crate) fn offer(&self, tables: &mut Tables) -> bool {
        match self.parts.try_send(std::mem::take(tables)) {
            Ok(()) => true,
            Err(TrySendError::Full(back)) => {
                *tables = back;
                true
            }
            Err(TrySendError::Disconnected(back)) => {
                *tables = back;
                false
            }
        }
    }

    /// Waits for what is under way and gives the writer back, or says why writing failed.
    pub(crate) fn join(self) -> Result<TraceWriter> {
        drop(self.parts);
        self.writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write_parts(
    mut writer: TraceWriter,
    incoming: Receiver<Tables>,
    handle: &Handle,
) -> Result<TraceWriter> {
    let pace = handle.join(PATIENCE);
    for tables in incoming {
        pace.again_within(PATIENCE);
        writer.tables = tables;
        writer.write_part().map_err(Error::from)?;
    }
    Ok(writer)
}

/// Writes the rest and the end of a trace.
pub(crate) fn finish(mut writer: TraceWriter, rest: Tables, meta: Meta) -> Result<()> {
    writer.tables = rest;
    Ok(writer.finish(meta)?)
}
