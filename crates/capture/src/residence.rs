//! What memory processes have at this moment, segment by segment, and how much of the files that they have
//! mapped is in the page cache. Nobody is stopped.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use hangdog_trace::residence::{Bytes, Cached, Process, Segment, Snapshot};
use hangdog_trace::words::AreaKind;

use crate::memory::is_library;
use crate::procfs::numbers;

/// The processes of which `wanted` is true, by pid and name, and the files that they have mapped; and how
/// many processes may not be looked at. Kernel threads have no memory, and are left out.
///
/// With `hot` also what they use within that time. For that the marks are cleared by which the kernel knows
/// what was used, and which tell it what to drop where memory is short.
pub fn look(wanted: impl Fn(u32, &str) -> bool, hot: Option<Duration>) -> (Snapshot, usize) {
    let mut cleared = HashSet::new();
    if let Some(time) = hot {
        let meant = numbers("/proc").into_iter();
        for pid in meant.filter(|&pid| wanted(pid, &name_of(pid))) {
            // Of pages of every kind.
            if fs::write(format!("/proc/{pid}/clear_refs"), "1").is_ok() {
                cleared.insert(pid);
            }
        }
        thread::sleep(time);
    }
    let mut snapshot = Snapshot::default();
    let mut files: BTreeMap<(u64, u64), (String, String)> = BTreeMap::new();
    let mut unreadable = 0;
    for pid in numbers("/proc") {
        let name = name_of(pid);
        if !wanted(pid, &name) {
            continue;
        }
        let text = match fs::read(format!("/proc/{pid}/smaps")) {
            Ok(text) => text,
            // It may be gone by now.
            Err(why) => {
                unreadable += usize::from(why.kind() == ErrorKind::PermissionDenied);
                continue;
            }
        };
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let mut areas = parse(&String::from_utf8_lossy(&text));
        if !cleared.contains(&pid) {
            for area in &mut areas {
                area.bytes.touched = None;
            }
        }
        if areas.is_empty() {
            continue;
        }
        for area in &areas {
            if area.inode != 0 && area.path.starts_with('/') {
                let map_file = format!("/proc/{pid}/map_files/{}", area.range);
                files
                    .entry((area.device, area.inode))
                    .or_insert((area.path.clone(), map_file));
            }
        }
        let segments = segments(&areas, &program.to_string_lossy());
        let process = Process::new(pid, name, segments);
        snapshot.processes.push(process);
    }
    let cached = (files.into_values()).filter_map(|(path, map_file)| cached(path, &map_file));
    snapshot.files = cached.collect();
    snapshot.sort();
    (snapshot, unreadable)
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end_matches('\n').to_owned()
}

/// An area as smaps has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Area {
    range: String,
    path: String,
    device: u64,
    inode: u64,
    executable: bool,
    shared: bool,
    bytes: Bytes,
}

/// The areas of `/proc/PID/smaps`. What is not understood is passed over.
pub(crate) fn parse(text: &str) -> Vec<Area> {
    let mut areas: Vec<Area> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        let Some(field) = first.strip_suffix(':') else {
            let (Some(permissions), _, Some(device), Some(inode)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let number = |text| u64::from_str_radix(text, 16).ok();
            let device = device.split_once(':');
            let device =
                device.and_then(|(major, minor)| Some(number(major)? << 20 | number(minor)?));
            // The path is what is left, with its blanks.
            let path = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
            areas.push(Area {
                range: first.to_owned(),
                path: path.trim_end_matches(" (deleted)").to_owned(),
                device: device.unwrap_or(0),
                inode: inode.parse().unwrap_or(0),
                executable: permissions.contains('x'),
                shared: permissions.ends_with('s'),
                bytes: Bytes::default(),
            });
            continue;
        };
        let value = words.next().and_then(|kib| kib.parse::<u64>().ok());
        let (Some(area), Some(kib)) = (areas.last_mut(), value) else {
            continue;
        };
        let bytes = &mut area.bytes;
        match field {
            "Rss" => bytes.resident = kib << 10,
            "Pss" => bytes.proportional = kib << 10,
            "Swap" => bytes.swapped = kib << 10,
            "Private_Clean" | "Private_Dirty" => bytes.private += kib << 10,
            "Locked" => bytes.locked = kib << 10,
            "Referenced" => bytes.touched = Some(kib << 10),
            _ => {}
        }
    }
    areas
}

/// The areas that are of one file, or of one kind, together.
pub(crate) fn segments(areas: &[Area], program: &str) -> Vec<Segment> {
    let executed: HashSet<(u64, u64)> = (areas.iter())
        .filter(|area| area.executable && area.inode != 0)
        .map(|area| (area.device, area.inode))
        .collect();
    let mut sums: BTreeMap<(u8, String), Bytes> = BTreeMap::new();
    for area in areas {
        let is_file = area.path.starts_with('/') && area.inode != 0;
        let in_memory = [
            "/memfd:",
            "/SYSV",
            "/dev/zero",
            "/dev/shm/",
            "/drm",
            "/i915",
        ];
        let kind = match &*area.path {
            path if is_file && in_memory.iter().any(|start| path.starts_with(start)) => {
                AreaKind::Shared
            }
            path if is_file && path == program => AreaKind::Program,
            path if is_file
                && (executed.contains(&(area.device, area.inode)) || is_library(path)) =>
            {
                AreaKind::Library
            }
            _ if is_file => AreaKind::File,
            "[heap]" => AreaKind::Heap,
            "[stack]" => AreaKind::Stack,
            path if path.starts_with('[') && !path.starts_with("[anon") => continue,
            _ if area.shared => AreaKind::Shared,
            _ => AreaKind::Anonymous,
        };
        let path = if is_file {
            area.path.clone()
        } else {
            String::new()
        };
        *sums.entry((kind.into(), path)).or_default() += area.bytes;
    }
    let segments = sums.into_iter().map(|((kind, path), bytes)| Segment {
        kind: kind.into(),
        path,
        bytes,
    });
    segments.collect()
}

/// cachestat(2), since Linux 6.5.
const SYS_CACHESTAT: libc::c_long = 451;
const PAGE: u64 = 4096;

#[repr(C)]
#[derive(Default)]
struct CacheStatistics {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// What cachestat(2) says of a whole file; none where the kernel does not have it.
fn statistics(file: &File) -> Option<CacheStatistics> {
    let mut statistics = CacheStatistics::default();
    // The whole file.
    let range = [0u64, 0u64];
    // SAFETY: both structs are those of the kernel's interface, plain integers that live until the
    // call returns; the descriptor is open.
    let failed = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            &raw mut statistics,
            0,
        )
    };
    (failed == 0).then_some(statistics)
}

/// How much of a file is in the page cache, bytes; none where that cannot be asked.
pub(crate) fn cached_bytes(file: &File) -> Option<u64> {
    let size = file.metadata().ok()?.size();
    match statistics(file) {
        Some(statistics) => Some(statistics.cached * PAGE),
        None => by_mincore(file, size),
    }
}

/// The same with what else is known; none where the file cannot be opened. It is opened by `map_file`,
/// whatever its path leads to now, where that is allowed.
fn cached(path: String, map_file: &str) -> Option<Cached> {
    let is_regular = |path: &str| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    // Nothing but a regular file is opened: to open a device or a pipe may do something.
    let found = [map_file, path.as_str()].into_iter().find_map(|name| {
        let size = is_regular(name)?.size();
        Some((File::open(name).ok()?, size))
    });
    let (file, size) = found?;
    let known = statistics(&file);
    Some(Cached {
        cached: cached_bytes(&file)?,
        path,
        size,
        dirty: known.as_ref().map(|known| known.dirty * PAGE),
        recently_evicted: known.as_ref().map(|known| known.recently_evicted * PAGE),
    })
}

/// The same by mincore(2), which older kernels have: for files that the caller might write to.
fn by_mincore(file: &File, size: u64) -> Option<u64> {
    let length = usize::try_from(size).ok().filter(|&length| length > 0)?;
    let pages = length.div_ceil(PAGE as usize);
    let mut there = vec![0u8; pages];
    // SAFETY: a fresh mapping of a descriptor that is ours, of which nothing is read; the result is
    // checked.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the range is that mapping, and `there` has a byte for each of its pages.
    let failed = unsafe { libc::mincore(at, length, there.as_mut_ptr()) };
    // SAFETY: the mapping is ours and nothing refers to it.
    unsafe { libc::munmap(at, length) };
    let count = there.iter().filter(|&&page| page & 1 != 0).count();
    (failed == 0).then_some(count as u64 * PAGE)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use std::io::Write;

    const SMAPS: &str = "\
55d000-55e000 r--p 00000000 fe:00 77                         /opt/a b
Rss:                   4 kB
Pss:                   2 kB
Private_Clean:         0 kB
55e000-55f000 r-xp 00001000 fe:00 77                         /opt/a b
Rss:                   4 kB
Pss:                   2 kB
Private_Clean:         4 kB
VmFlags: rd ex mr mw me sd
560000-580000 rw-p 00000000 00:00 0                          [heap]
Rss:                 100 kB
Pss:                 100 kB
Private_Dirty:       100 kB
Swap:                 28 kB
Locked:                8 kB
7f0000-7f1000 r--p 00000000 fe:00 78                         /usr/lib/libx.so.1
Rss:                   4 kB
Pss:                   1 kB
7f2000-7f3000 rw-s 00000000 00:01 5                          /memfd:ring (deleted)
Rss:                   4 kB
Pss:                   4 kB
7f4000-7f5000 rw-p 00000000 00:00 0
Rss:                   4 kB
Pss:                   4 kB
7ffd00-7ffe00 r-xp 00000000 00:00 0                          [vdso]
Rss:                   4 kB
Pss:                   0 kB
";

    /// Areas of one file are one segment; what a segment is for follows from its path and its program.
    #[test]
    fn smaps_are_summed_by_segment() {
        let areas = parse(SMAPS);
        assert_eq!(areas.len(), 7);
        let process = Process::new(1, "a".into(), segments(&areas, "/opt/a b"));
        let segments = process.segments;
        let found: Vec<_> = (segments.iter())
            .map(|segment| {
                let bytes = segment.bytes;
                (
                    segment.kind,
                    &*segment.path,
                    bytes.resident >> 10,
                    bytes.proportional >> 10,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (AreaKind::Heap, "", 100, 100),
                (AreaKind::Anonymous, "", 4, 4),
                (AreaKind::Program, "/opt/a b", 8, 4),
                (AreaKind::Shared, "/memfd:ring", 4, 4),
                (AreaKind::Library, "/usr/lib/libx.so.1", 4, 1),
            ]
        );
        let heap = segments[0].bytes;
        assert_eq!(
            (heap.swapped >> 10, heap.private >> 10, heap.locked >> 10),
            (28, 100, 8)
        );
        assert_eq!(segments[2].bytes.private >> 10, 4);
    }

    /// Of memory that a program uses a part of over and over, that part is hot, and the rest is not.
    #[test]
    fn what_is_used_is_hot() {
        const BYTES: usize = 32 << 20;
        let used = BYTES / 4;
        let mut memory = vec![1u8; BYTES];
        let stop = AtomicBool::new(false);
        let own = std::process::id();
        let (snapshot, _) = thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    memory[..used]
                        .iter_mut()
                        .step_by(64)
                        .for_each(|byte| *byte = byte.wrapping_add(1));
                }
            });
            let found = look(|pid, _| pid == own, Some(Duration::from_secs(1)));
            stop.store(true, Ordering::Relaxed);
            found
        });
        let bytes = snapshot.processes[0].bytes;
        // Huge pages are used as a whole, and the other tests of this program use memory too.
        let touched = bytes.touched.expect("what was used") as usize;
        assert!(touched >= used, "{touched}");
        assert!(touched <= bytes.resident as usize - BYTES / 2, "{bytes:?}");
        let (snapshot, _) = look(|pid, _| pid == own, None);
        assert_eq!(snapshot.processes[0].bytes.touched, None);
    }

    /// What is not as smaps is written is passed over.
    #[test]
    fn nonsense_is_passed_over() {
        assert_eq!(parse("Rss: 4 kB\n\nnonsense\n55-56 r--p\nRss: x kB\n"), []);
    }

    /// A file that was just written is in the page cache, whole, by either way of asking.
    #[test]
    fn a_written_file_is_in_the_page_cache() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 10 * PAGE as usize]).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let found = cached(path, "/nowhere").unwrap();
        assert_eq!((found.size, found.cached), (10 * PAGE, 10 * PAGE));
        assert_eq!(by_mincore(file.as_file(), found.size), Some(10 * PAGE));
    }

    /// This process is found with memory of its own, and its program's file with pages in the cache.
    #[test]
    fn this_process_is_found() {
        let own = std::process::id();
        let (snapshot, unreadable) = look(|pid, _| pid == own, None);
        assert_eq!((snapshot.processes.len(), unreadable), (1, 0));
        let process = &snapshot.processes[0];
        assert!(process.bytes.resident >= process.bytes.proportional);
        let program = process
            .segments
            .iter()
            .find(|it| it.kind == AreaKind::Program);
        let path = &program.expect("a program").path;
        assert!((snapshot.files.iter()).any(|file| file.path == *path && file.cached > 0));
    }
}
