//! What memory processes have at one moment, and the rows of a trace that keep it: a row of
//! [`MemoryShares`] for each segment of each process, and one of [`CachedFiles`] for each file that is mapped.

use crate::ids::Upid;
use crate::tables::{CachedFile, CachedFiles, MemoryShare, MemoryShares};
use crate::threads::Threads;
use crate::words::AreaKind;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// In memory.
    pub resident: u64,
    /// Of these, the process's own share: what several processes have is divided among them.
    pub proportional: u64,
    /// Swapped out.
    pub swapped: u64,
    /// In memory, and of no other process.
    pub private: u64,
    /// That cannot be swapped out or dropped (mlock).
    pub locked: u64,
    /// Of what is in memory, what was used while somebody looked for that; none in a trace.
    pub touched: Option<u64>,
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        let add = |own: &mut u64, other| *own = own.saturating_add(other);
        add(&mut self.resident, other.resident);
        add(&mut self.proportional, other.proportional);
        add(&mut self.swapped, other.swapped);
        add(&mut self.private, other.private);
        add(&mut self.locked, other.locked);
        if let Some(touched) = other.touched {
            add(self.touched.get_or_insert(0), touched);
        }
    }
}

/// Memory of a process that is of one kind or of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What the process has it for.
    pub kind: AreaKind,
    /// The file; empty where there is none.
    pub path: String,
    /// How much.
    pub bytes: Bytes,
}

/// A process and its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The kernel's process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// All together.
    pub bytes: Bytes,
    /// By segment, the largest share first.
    pub segments: Vec<Segment>,
}

/// A file that processes have mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// Its path.
    pub path: String,
    /// How long it is, bytes.
    pub size: u64,
    /// In the page cache, bytes.
    pub cached: u64,
    /// Of these, changed and not yet written; none where the kernel does not tell.
    pub dirty: Option<u64>,
    /// That went from the page cache so short a time ago that they would not have gone if there were
    /// a little more memory; none where the kernel does not tell.
    pub recently_evicted: Option<u64>,
}

/// The memory of processes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The processes, the largest share first.
    pub processes: Vec<Process>,
    /// The files that they have mapped, those with most in the page cache first.
    pub files: Vec<Cached>,
}

/// Stands in a row for a figure that the kernel does not tell.
const UNKNOWN: u64 = u64::MAX;

impl Process {
    /// A process with these segments.
    pub fn new(pid: u32, name: String, mut segments: Vec<Segment>) -> Process {
        segments
            .sort_by_key(|segment| Reverse((segment.bytes.proportional, segment.bytes.swapped)));
        let mut bytes = Bytes::default();
        for segment in &segments {
            bytes += segment.bytes;
        }
        Process {
            pid,
            name,
            bytes,
            segments,
        }
    }
}

impl Snapshot {
    /// Brings processes and files into their order.
    pub fn sort(&mut self) {
        (self.processes).sort_by_key(|it| Reverse((it.bytes.proportional, it.pid)));
        self.files.sort_by_key(|file| Reverse(file.cached));
    }

    /// Appends its rows. `upid` tells the trace's number of a process; one that has none is left out.
    pub fn write(
        &self,
        ts: u64,
        upid: impl Fn(u32) -> Option<Upid>,
        shares: &mut MemoryShares,
        files: &mut CachedFiles,
    ) {
        for process in &self.processes {
            let Some(upid) = upid(process.pid) else {
                continue;
            };
            for segment in &process.segments {
                let bytes = segment.bytes;
                shares.push(MemoryShare {
                    ts,
                    process: upid,
                    kind: segment.kind.into(),
                    path: segment.path.clone(),
                    resident: bytes.resident,
                    proportional: bytes.proportional,
                    swapped: bytes.swapped,
                    private: bytes.private,
                    locked: bytes.locked,
                });
            }
        }
        for file in &self.files {
            files.push(CachedFile {
                ts,
                path: file.path.clone(),
                size: file.size,
                cached: file.cached,
                dirty: file.dirty.unwrap_or(UNKNOWN),
                recently_evicted: file.recently_evicted.unwrap_or(UNKNOWN),
            });
        }
    }

    /// The snapshots of a trace by their time, ns since its start. Processes that it does not know are
    /// left out.
    pub fn read(
        shares: &MemoryShares,
        files: &CachedFiles,
        threads: &Threads,
    ) -> BTreeMap<u64, Snapshot> {
        let mut segments: BTreeMap<(u64, Upid), Vec<Segment>> = BTreeMap::new();
        for row in 0..shares.ts.len() {
            let segment = Segment {
                kind: shares.kind[row].into(),
                path: shares.path[row].clone(),
                bytes: Bytes {
                    resident: shares.resident[row],
                    proportional: shares.proportional[row],
                    swapped: shares.swapped[row],
                    private: shares.private[row],
                    locked: shares.locked[row],
                    touched: None,
                },
            };
            let key = (shares.ts[row], shares.process[row]);
            segments.entry(key).or_default().push(segment);
        }
        let mut snapshots: BTreeMap<u64, Snapshot> = BTreeMap::new();
        for ((ts, upid), segments) in segments {
            if let Some(process) = threads.known_process(upid) {
                let process = Process::new(process.pid, process.name.clone(), segments);
                snapshots.entry(ts).or_default().processes.push(process);
            }
        }
        for row in 0..files.ts.len() {
            let known = |bytes| Some(bytes).filter(|&bytes| bytes != UNKNOWN);
            let snapshot = snapshots.entry(files.ts[row]).or_default();
            snapshot.files.push(Cached {
                path: files.path[row].clone(),
                size: files.size[row],
                cached: files.cached[row],
                dirty: known(files.dirty[row]),
                recently_evicted: known(files.recently_evicted[row]),
            });
        }
        for snapshot in snapshots.values_mut() {
            snapshot.sort();
        }
        snapshots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    /// What is written is read again, each snapshot by its own time; a process that the trace does not know
    /// is left out.
    #[test]
    fn a_snapshot_written_and_read_is_the_same() {
        let trace = text::parse(
            "process app 100
            thread app app 100",
        );
        let tables = trace.expect("a trace in text form").tables;
        let threads = Threads::new(&tables.lifecycle);
        let bytes = |resident, swapped| Bytes {
            resident,
            proportional: resident / 2,
            swapped,
            private: 1,
            locked: 2,
            touched: None,
        };
        let segment = |kind, path: &str, bytes| Segment {
            kind,
            path: path.into(),
            bytes,
        };
        let snapshot = |resident| Snapshot {
            processes: vec![Process::new(
                100,
                "app".into(),
                vec![
                    segment(AreaKind::Heap, "", bytes(resident, 7)),
                    segment(AreaKind::Program, "/bin/app", bytes(4096, 0)),
                ],
            )],
            files: vec![Cached {
                path: "/bin/app".into(),
                size: 9000,
                cached: 8192,
                dirty: Some(0),
                recently_evicted: None,
            }],
        };
        let (first, second) = (snapshot(8192), snapshot(1 << 30));
        let known = threads.processes().find(|process| process.pid == 100);
        let upid = known.expect("the process is there").upid;
        let (mut shares, mut files) = (MemoryShares::default(), CachedFiles::default());
        let of = |pid| (pid == 100).then_some(upid);
        first.write(5, of, &mut shares, &mut files);
        let mut strange = second.clone();
        let other = Process::new(7, "other".into(), Vec::new());
        strange.processes.push(other);
        strange.write(9, of, &mut shares, &mut files);
        let read = Snapshot::read(&shares, &files, &threads);
        assert_eq!(read, [(5, first), (9, second)].into());
    }
}
