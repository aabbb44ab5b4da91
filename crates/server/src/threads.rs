//! Threads as the list of tracks shows them.

use hangdog_report::Recording;
use hangdog_report::select::Who;
use hangdog_timeline::summary::summaries;
use hangdog_trace::ids::Utid;
use serde::Serialize;

/// A thread as the list of tracks shows it.
#[derive(Serialize)]
pub struct ThreadRow<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    upid: u32,
    is_kernel: bool,
    start_ns: u64,
    end_ns: u64,
    states_ns: [u64; 5],
    switches: u64,
}

/// The threads that are to be kept, with their time in the whole trace.
pub fn thread_rows(recording: &Recording, keep: impl Fn(Utid) -> bool) -> Vec<ThreadRow<'_>> {
    let (timeline, threads) = (&recording.timeline, &recording.threads);
    summaries(timeline, 0, timeline.end())
        .into_iter()
        .filter(|&(utid, _)| keep(utid))
        .map(|(utid, summary)| {
            let (thread, life) = (threads.thread(utid), timeline.life(utid));
            ThreadRow {
                who: Who::new(threads, utid),
                upid: thread.upid,
                is_kernel: thread.is_kernel(),
                start_ns: life.start,
                end_ns: life.end,
                states_ns: summary.time,
                switches: summary.switches,
            }
        })
        .collect()
}
