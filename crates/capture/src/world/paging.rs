//! Page faults, the page cache and stalls: which memory and which file they are of.

use std::collections::{BTreeMap, HashMap};

use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::tables::{self, CacheStep, Fault, Stall};
use hangdog_trace::words::AreaKind;

use super::World;
use crate::event::{self, CacheRow};
use crate::memory::{
    AREA_EXECUTABLE, AREA_HEAP, AREA_PROGRAM, AREA_SHARED, AREA_STACK, AREA_WRITABLE, Area, File,
    Mounts, is_library,
};

const FAULT_MAJOR: u8 = 1;
const FAULT_KERNEL: u8 = 2;
const FAULT_FILE: u8 = 4;
/// The file system of memory that processes share: no disk has what is in it.
const TMPFS: u32 = 0x0102_1994;

/// What faults and pages refer to.
#[derive(Default)]
pub(super) struct Memory {
    mounts: Mounts,
    /// (device, inode) → the file's id, its file system and path.
    files: HashMap<(u32, u64), (u32, u32, String)>,
    /// Of a process, by first address: the address behind the last, and the area's id.
    areas: HashMap<Upid, BTreeMap<u64, (u64, u32)>>,
    last_file: u32,
    last_area: u32,
}

impl World {
    /// A file has this path from now on.
    pub(super) fn describe_file(&mut self, file: &File) {
        let memory = &mut self.memory;
        let key = (file.device, file.inode);
        if file.path.starts_with('/') && !memory.mounts.knows(file.device) {
            // Mounted since, or nowhere here.
            memory.mounts = Mounts::read();
        }
        let path = memory.mounts.path(file);
        if let Some((_, _, known)) = memory.files.get(&key)
            && *known == path
        {
            return;
        }
        let id = memory.last_file;
        memory.last_file += 1;
        memory.files.insert(key, (id, file.magic, path.clone()));
        self.tables.files.push(tables::File {
            file: id,
            device: file.device,
            inode: file.inode,
            magic: file.magic,
            path,
        });
    }

    /// A process has this memory from now on.
    pub(super) fn describe_area(&mut self, ts: u64, area: &Area) {
        let process = self.process(area.pid, false);
        let memory = &mut self.memory;
        let file = memory.files.get(&(area.device, area.inode));
        let file = file.filter(|_| area.inode != 0);
        let has = |flag| area.flags & flag != 0;
        let kind = match file {
            Some((_, magic, _)) if *magic == TMPFS && has(AREA_SHARED) => AreaKind::Shared,
            _ if has(AREA_PROGRAM) => AreaKind::Program,
            Some((_, _, path)) if has(AREA_EXECUTABLE) || is_library(path) => AreaKind::Library,
            Some(_) => AreaKind::File,
            None if area.inode != 0 => AreaKind::File,
            None if has(AREA_HEAP) => AreaKind::Heap,
            None if has(AREA_STACK) => AreaKind::Stack,
            None => AreaKind::Anonymous,
        };
        let id = memory.last_area;
        memory.last_area += 1;
        let areas = memory.areas.entry(process).or_default();
        areas.insert(area.start, (area.end, id));
        self.tables.areas.push(tables::Area {
            area: id,
            ts: self.since_start(ts),
            process,
            start: area.start,
            end: area.end,
            file: self
                .memory
                .files
                .get(&(area.device, area.inode))
                .map_or(NONE, |file| file.0),
            file_offset: area.file_offset,
            kind: kind.into(),
            writable: has(AREA_WRITABLE),
            executable: has(AREA_EXECUTABLE),
            shared: has(AREA_SHARED),
        });
        self.find_area_late(ts, process, area, id);
    }

    /// Gives an area to the faults in it right before it was described: the kernel does not always let
    /// somebody look what lies at an address while its own work there is going on.
    fn find_area_late(&mut self, ts: u64, process: Upid, area: &Area, id: u32) {
        const SHORTLY_NS: u64 = 50_000_000;
        let since = self.since_start(ts).saturating_sub(SHORTLY_NS);
        let faults = &mut self.tables.faults;
        for row in (0..faults.ts.len()).rev() {
            // Rows are in the order in which faults ended; a slow one began long before.
            if faults.ts[row].saturating_add(faults.duration[row]) < since {
                break;
            }
            let is_its = self.threads[faults.thread[row] as usize].process == process;
            if faults.area[row] == NONE
                && is_its
                && (area.start..area.end).contains(&faults.address[row])
            {
                faults.area[row] = id;
            }
        }
    }

    /// A fault becomes a row.
    pub(super) fn fault(&mut self, ts: u64, thread: Utid, fault: &event::Fault) {
        let process = self.threads[thread as usize].process;
        let areas = self.memory.areas.get(&process);
        let below = areas.and_then(|areas| areas.range(..=fault.address).next_back());
        let area = below.filter(|(_, (end, _))| fault.address < *end);
        let end = self.since_start(ts);
        let begin = end.saturating_sub(fault.duration);
        let row = Fault {
            ts: begin,
            duration: end - begin,
            thread,
            major: fault.flags & FAULT_MAJOR != 0,
            in_kernel: fault.flags & FAULT_KERNEL != 0,
            of_file: fault.flags & FAULT_FILE != 0,
            address: fault.address,
            area: area.map_or(NONE, |(_, (_, id))| *id),
            user_stack: self.stack(fault.user_stack),
        };
        self.tables.faults.push(row);
    }

    /// What became of pages becomes a row.
    pub(super) fn cache(&mut self, ts: u64, thread: Utid, row: &CacheRow) {
        let file = self.memory.files.get(&(row.device, row.inode));
        let step = CacheStep {
            ts: self.since_start(ts),
            thread,
            action: row.action,
            file: file.map_or(NONE, |file| file.0),
            first: row.first,
            pages: row.pages,
        };
        self.tables.page_cache.push(step);
    }

    /// A stall becomes a row.
    pub(super) fn stall(&mut self, ts: u64, thread: Utid, kind: u8, duration: u64, pages: u64) {
        let end = self.since_start(ts);
        let begin = end.saturating_sub(duration);
        self.tables.stalls.push(Stall {
            ts: begin,
            duration: end - begin,
            thread,
            kind,
            pages,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::{Member, Population};

    fn world() -> World {
        let mut population = Population::default();
        let member = Member {
            pid: 40,
            parent: 1,
            name: "p".into(),
            is_kernel: false,
        };
        population.add(40, member);
        World::new(1000, &population)
    }

    fn area(start: u64, end: u64, inode: u64, flags: u32) -> Area {
        Area {
            pid: 40,
            start,
            end,
            file_offset: 0,
            inode,
            device: 1,
            flags,
        }
    }

    /// A fault is in the area that has its address, by what was described last or right after it, and in none
    /// between two.
    #[test]
    fn a_fault_is_in_its_area() {
        let mut world = world();
        let thread = world.known(40).unwrap();
        world.describe_area(1000, &area(0x1000, 0x3000, 0, AREA_HEAP));
        world.describe_area(1000, &area(0x5000, 0x6000, 0, AREA_STACK));
        let fault = |address| event::Fault {
            flags: FAULT_MAJOR,
            address,
            duration: 50,
            user_stack: 0,
        };
        world.fault(1100, thread, &fault(0x2fff));
        world.fault(1100, thread, &fault(0x3000));
        // The heap grew.
        world.describe_area(1200, &area(0x1000, 0x4000, 0, AREA_HEAP));
        world.fault(1300, thread, &fault(0x3000));
        world.fault(1300, thread, &fault(0x4000));
        // A slow one, whose area is described when it is over; those before it are too old for that.
        let slow = event::Fault {
            duration: 150_000_000,
            ..fault(0x9000)
        };
        world.fault(300_000_000, thread, &slow);
        world.describe_area(300_001_000, &area(0x4000, 0xa000, 0, AREA_HEAP));
        let faults = &world.tables.faults;
        assert_eq!(faults.area, [0, 2, 2, NONE, 3]);
        assert_eq!((faults.ts[0], faults.duration[0]), (50, 50));
        let kinds: Vec<_> = world
            .tables
            .areas
            .kind
            .iter()
            .map(|&kind| AreaKind::from(kind))
            .collect();
        assert_eq!(
            kinds,
            [
                AreaKind::Heap,
                AreaKind::Stack,
                AreaKind::Heap,
                AreaKind::Heap
            ]
        );
    }

    /// What an area is for follows from its file and flags.
    #[test]
    fn areas_have_kinds() {
        let mut world = world();
        let file = |inode, magic, path: &str| File {
            device: 1,
            inode,
            magic,
            path: path.into(),
        };
        world.describe_file(&file(1, 0xef53, "/usr/bin/app"));
        world.describe_file(&file(2, 0xef53, "/usr/lib/libx.so.6"));
        world.describe_file(&file(3, 0xef53, "/data/table"));
        world.describe_file(&file(4, TMPFS, "memfd:x"));
        for (inode, flags) in [
            (1, AREA_PROGRAM | AREA_EXECUTABLE),
            (2, 0),
            (3, AREA_EXECUTABLE),
            (3, AREA_SHARED),
            (4, AREA_SHARED),
            (0, 0),
        ] {
            world.describe_area(1000, &area(0x1000, 0x2000, inode, flags));
        }
        let kinds: Vec<_> = world
            .tables
            .areas
            .kind
            .iter()
            .map(|&kind| AreaKind::from(kind))
            .collect();
        let expected = [
            AreaKind::Program,
            AreaKind::Library,
            AreaKind::Library,
            AreaKind::File,
            AreaKind::Shared,
            AreaKind::Anonymous,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(world.tables.areas.file, [0, 1, 2, 2, 3, NONE]);
    }
}
