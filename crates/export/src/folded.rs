//! Folded stacks: one stack a line, outermost first, and how much of it there was.
//!
//! `thread;main;work;read_[k] 12`: what flamegraph.pl, inferno, speedscope and others read. Frames
//! of the kernel end in `_[k]`, inlined functions in `_[i]`. The number is samples in the on-CPU
//! view and nanoseconds in the others.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::Source;
use crate::fold::{Fold, View};
use crate::stack::{Entry, Kind, entries};

/// The lines, ascending: a stack, and samples or nanoseconds. Threads of one name that were at the same place are one line.
pub fn lines(source: &Source<'_>, fold: &Fold) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    for (key, weight) in &fold.rows {
        let stack: Vec<String> = entries(source, key).iter().map(annotated).collect();
        let number = match fold.view {
            View::OnCpu => weight.count,
            View::OffCpu | View::Wakes => weight.ns,
        };
        if number > 0 {
            let sum: &mut u64 = lines.entry(stack.join(";")).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    lines
}

/// Writes the lines.
///
/// # Errors
/// What `out` answers.
pub fn write(source: &Source<'_>, fold: &Fold, out: &mut impl Write) -> io::Result<()> {
    for (stack, number) in lines(source, fold) {
        writeln!(out, "{stack} {number}")?;
    }
    Ok(())
}

/// An entry's name with what says what it is, and without what the format reserves.
fn annotated(entry: &Entry<'_>) -> String {
    let mut name: String = entry
        .name
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect();
    name.push_str(match entry.kind {
        Kind::Kernel => "_[k]",
        Kind::Inlined => "_[i]",
        Kind::Thread | Kind::Mark | Kind::User => "",
    });
    name
}
