//! Traces that are damaged on purpose, the same for the same seed.

use hangdog_trace::Meta;
use hangdog_trace::text::{self, TextTrace};
use std::fs;
use std::path::{Path, PathBuf};

/// Endless numbers from one (splitmix64).
pub struct Noise(pub u64);

impl Noise {
    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The traces that the golden tests have, in turn.
pub fn sound(at: u64) -> TextTrace {
    let names = ["page", "knot", "handover", "paging"];
    let name = names[at as usize % names.len()];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.trace"));
    let text = fs::read_to_string(path).expect("the trace's text");
    text::parse(&text).expect("a trace in text form")
}

/// Writes it as a complete trace.
pub fn write(trace: &TextTrace, path: &Path) {
    let meta = Meta {
        command_tid: Some(100),
        ..Meta::default()
    };
    trace.write_to(path, meta).expect("a trace on disk");
}

/// The files of a trace, sorted.
pub fn files(trace: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![trace.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
}

/// Overwrites one value of one column.
pub fn damage(trace: &mut TextTrace, noise: &mut Noise) {
    let id = |noise: &mut Noise| match noise.below(4) {
        0 => u32::MAX,
        1 => 4_000_000_000,
        2 => 1000,
        _ => noise.below(8) as u32,
    };
    let time = |noise: &mut Noise| match noise.below(4) {
        0 => u64::MAX,
        1 => 0,
        2 => noise.next(),
        _ => noise.next() % 60_000_000,
    };
    let tables = &mut trace.tables;
    let ids = [
        &mut tables.switches.prev,
        &mut tables.switches.next,
        &mut tables.switches.holder,
        &mut tables.switches.user_stack,
        &mut tables.switches.kernel_stack,
        &mut tables.wakes.waker,
        &mut tables.wakes.wakee,
        &mut tables.wakes.user_stack,
        &mut tables.samples.thread,
        &mut tables.samples.user_stack,
        &mut tables.lifecycle.thread,
        &mut tables.lifecycle.process,
        &mut tables.lifecycle.parent,
        &mut tables.lifecycle.tid,
        &mut tables.stacks.stack,
        &mut tables.stacks.process,
        &mut tables.frames.frame,
        &mut tables.frames.module,
        &mut tables.modules.module,
        &mut tables.symbols.frame,
        &mut tables.interrupts.thread,
    ];
    let times = [
        &mut tables.switches.ts,
        &mut tables.switches.arg,
        &mut tables.switches.object,
        &mut tables.wakes.ts,
        &mut tables.samples.ts,
        &mut tables.lifecycle.ts,
        &mut tables.interrupts.ts,
        &mut tables.interrupts.duration,
        &mut tables.losses.count,
    ];
    let words = [
        &mut tables.switches.left,
        &mut tables.switches.next_priority,
        &mut tables.wakes.context,
        &mut tables.lifecycle.kind,
        &mut tables.modules.kind,
        &mut tables.losses.kind,
    ];
    match noise.below(8) {
        0..=3 => {
            let at = noise.below(ids.len());
            let column = ids.into_iter().nth(at).filter(|column| !column.is_empty());
            if let Some(column) = column {
                let row = noise.below(column.len());
                column[row] = id(noise);
            }
        }
        4 | 5 => {
            let at = noise.below(times.len());
            let column = times
                .into_iter()
                .nth(at)
                .filter(|column| !column.is_empty());
            if let Some(column) = column {
                let row = noise.below(column.len());
                column[row] = time(noise);
            }
        }
        6 => {
            let at = noise.below(words.len());
            let column = words
                .into_iter()
                .nth(at)
                .filter(|column| !column.is_empty());
            if let Some(column) = column {
                let row = noise.below(column.len());
                column[row] = noise.next() as u8;
            }
        }
        _ => trace.end = time(noise),
    }
}
