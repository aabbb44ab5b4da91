//! Page faults, against what the kernel counts for the program that has them.

use crate::support::{machine, number};
use hangdog_trace::ids::NONE;
use hangdog_trace::residence::Snapshot;
use hangdog_trace::tables::{Areas, Faults, Files, PageCache};
use hangdog_trace::words::{AreaKind, CacheAction};

const PAGES: u64 = 300;

/// Each page of a file that is read through a mapping is a major fault, with its duration, its file and its
/// address; with --faults the page cache says that each came in once.
#[test]
fn every_page_of_a_cold_file_is_a_major_fault() {
    let pages = PAGES.to_string();
    for options in [&[][..], &["--faults"]] {
        let Some(machine) = machine() else { return };
        let program = machine.program("backwards");
        let (program, file) = (program.to_str().expect("a path"), machine.path("cold"));
        let file = file.to_str().expect("a path");
        let live = machine.recorded(options, &[program, file, &pages]);
        let fact = &live.facts[0];
        if number(&fact["resident"]) > 0 {
            eprintln!("NOT RUN: {file} cannot be taken out of memory");
            return;
        }
        assert_eq!(number(&fact["major"]), PAGES);
        let thread = live.utid(&fact["tid"]);
        let (faults, areas, files): (Faults, Areas, Files) =
            (live.table(), live.table(), live.table());
        let of_file = |row: &usize| {
            let area = faults.area[*row];
            let mapped = areas.file.get(area as usize).filter(|&&file| file != NONE);
            let path = mapped.map(|&file| files.path[file as usize].as_str());
            faults.thread[*row] == thread && faults.major[*row] && path == Some(file)
        };
        let own: Vec<usize> = (0..faults.ts.len()).filter(of_file).collect();
        assert_eq!(own.len() as u64, PAGES, "{options:?}");
        // Backwards, a page at a time.
        let addresses: Vec<u64> = own.iter().map(|&row| faults.address[row] / 4096).collect();
        assert!(addresses.windows(2).all(|two| two[0] == two[1] + 1));
        // A thread that is moved to another CPU in a fault may hide when it began.
        let timed = own.iter().filter(|&&row| faults.duration[row] > 0).count();
        assert!(timed as u64 >= PAGES * 9 / 10, "{timed}");
        let kind = areas.kind[faults.area[own[0]] as usize];
        assert_eq!(AreaKind::from(kind), AreaKind::File);
        if options.is_empty() {
            continue;
        }
        let rows: PageCache = live.table();
        let id = areas.file[faults.area[own[0]] as usize];
        let key = (files.device[id as usize], files.inode[id as usize]);
        let pages = |action: CacheAction| -> u64 {
            let is_one = |&row: &usize| {
                let file = rows.file[row] as usize;
                let same = files
                    .inode
                    .get(file)
                    .is_some_and(|&inode| (files.device[file], inode) == key);
                same && CacheAction::from(rows.action[row]) == action
            };
            let rows_of = (0..rows.ts.len()).filter(is_one);
            rows_of.map(|row| u64::from(rows.pages[row])).sum()
        };
        // Once when they were written, and once by the faults.
        assert_eq!(pages(CacheAction::Added), 2 * PAGES);
        assert_eq!(pages(CacheAction::Faulted), PAGES);
        assert!(pages(CacheAction::Removed) >= PAGES);
    }
}

/// Memory is looked at at the beginning, when SIGUSR1 asks for it, and at the end: what a program has by then is
/// there, by kind, with what is locked of it.
#[test]
fn memory_is_looked_at_when_asked() {
    let Some(machine) = machine() else { return };
    let program = machine.program("grown");
    let program = program.to_str().expect("a path");
    let live = machine.recorded(&["--memory-every", "1h"], &[program]);
    let fact = &live.facts[0];
    let (shares, files) = (live.table(), live.table());
    let snapshots = Snapshot::read(&shares, &files, &live.threads);
    let of = |snapshot: &Snapshot| {
        let pid = number(&fact["tid"]) as u32;
        let process = snapshot.processes.iter().find(|it| it.pid == pid)?;
        let segments = process.segments.iter();
        let own = segments.filter(|it| it.kind == AreaKind::Anonymous);
        Some((
            own.clone().map(|it| it.bytes.resident).sum::<u64>(),
            own.map(|it| it.bytes.locked).sum::<u64>(),
        ))
    };
    let found: Vec<_> = snapshots.values().map(of).collect();
    let [first, asked, last] = &*found else {
        panic!("{} snapshots", found.len());
    };
    let (bytes, locked) = (number(&fact["bytes"]), number(&fact["locked"]));
    // At the first it waits to be let go, at the last it has ended.
    assert!(
        first.is_some_and(|(resident, _)| resident < bytes / 2),
        "{first:?}"
    );
    let (resident, kept) = asked.expect("the process when it asked");
    assert!((bytes..bytes + bytes / 4).contains(&resident), "{resident}");
    assert_eq!(kept, locked);
    assert_eq!(*last, None);
    let this_program = snapshots.values().flat_map(|it| &it.files);
    let mut cached = this_program.filter(|file| file.path == program);
    assert!(cached.any(|file| file.cached > 0));
}
