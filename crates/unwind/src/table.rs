//! The table of one file.

use std::fs::File;
use std::path::Path;

use object::read::ReadRef;

use crate::cfi::Rows;
use crate::elf::Layout;
use crate::error::Result;
use crate::rule::{Row, Rule};
use crate::sections;

/// How to unwind from each place of a file: rows sorted by place, no two neighbours with one rule.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Row>,
    skipped: u64,
}

impl From<Rows> for Table {
    fn from(Rows { rows, skipped }: Rows) -> Table {
        Table { rows, skipped }
    }
}

impl Table {
    /// The table of the file at `path`. Only the parts that are needed are read, and never mapped:
    /// a file that shrinks meanwhile is an error, not a signal.
    ///
    /// # Errors
    /// [`Error::Read`](crate::Error::Read) if it cannot be opened; otherwise as [`Table::from_elf`].
    pub fn from_file(path: &Path) -> Result<Table> {
        Table::of(&sections::open(path)?)
    }

    /// The table of an open file, read as [`Table::from_file`] does.
    ///
    /// # Errors
    /// As [`Table::from_elf`].
    pub fn of(file: &File) -> Result<Table> {
        sections::read_file::<Rows>(file).map(Table::from)
    }

    /// The table of an ELF file's bytes; its places are offsets in the file.
    ///
    /// # Errors
    /// All but [`Error::Read`](crate::Error::Read).
    pub fn from_elf(bytes: &[u8]) -> Result<Table> {
        Table::new(bytes, Layout::File)
    }

    /// The table of an ELF file as the loader put it into memory, such as the vdso; its places are
    /// offsets from its start.
    ///
    /// # Errors
    /// As [`Table::from_elf`].
    pub fn from_image(bytes: &[u8]) -> Result<Table> {
        Table::new(bytes, Layout::Image)
    }

    fn new<'data, R: ReadRef<'data>>(data: R, layout: Layout) -> Result<Table> {
        sections::read::<Rows, R>(data, layout).map(Table::from)
    }

    /// The table of code that has no unwind information but keeps frame pointers.
    pub fn of_frame_pointers() -> Table {
        Table {
            rows: vec![Row {
                pc: 0,
                rule: Rule::FRAME_POINTER,
            }],
            skipped: 0,
        }
    }

    /// The table with one rule for all code from `start` to `end`.
    #[must_use]
    pub fn with_rule(mut self, start: u32, end: u32, rule: Rule) -> Table {
        let behind = Row {
            pc: end,
            rule: self.rule(end.into()),
        };
        self.rows.retain(|row| !(start..=end).contains(&row.pc));
        self.rows.extend([Row { pc: start, rule }, behind]);
        self.rows.sort_by_key(|row| row.pc);
        self
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows, with the code from `start` to `end` of each of `loops` marked as an interpreter's loop.
    pub fn rows_with_loops(&self, loops: &[(u64, u64)]) -> Vec<Row> {
        let is_loop = |pc: u32| {
            let pc = u64::from(pc);
            loops.iter().any(|&(start, end)| (start..end).contains(&pc))
        };
        let edges = loops.iter().flat_map(|&(start, end)| [start, end]);
        let edges = edges.filter_map(|edge| {
            Some(Row {
                pc: u32::try_from(edge).ok()?,
                rule: self.rule(edge),
            })
        });
        let mut rows: Vec<Row> = self.rows.iter().copied().chain(edges).collect();
        rows.sort_by_key(|row| row.pc);
        rows.dedup_by_key(|row| row.pc);
        for row in rows.iter_mut().filter(|row| is_loop(row.pc)) {
            row.rule = row.rule.in_loop();
        }
        rows
    }

    /// How many FDEs were left out: damaged, without code in the file, or hidden by another with
    /// the same start.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The rule at an offset; [`Rule::NONE`] before the first row.
    pub fn rule(&self, offset: u64) -> Rule {
        let after = self.rows.partition_point(|row| u64::from(row.pc) <= offset);
        after
            .checked_sub(1)
            .map_or(Rule::NONE, |at| self.rows[at].rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Kind;

    /// A piece of code gets another rule, and what lies around it keeps its own.
    #[test]
    fn a_piece_has_its_own_rule() {
        let rule = |cfa| Rule::new(Kind::Sp, cfa, 0).expect("a rule");
        let row = |pc, rule| Row { pc, rule };
        let rows = vec![row(10, rule(1)), row(20, rule(2)), row(30, rule(3))];
        let table = Table { rows, skipped: 0 }.with_rule(15, 30, Rule::TASK);
        let expected = [row(10, rule(1)), row(15, Rule::TASK), row(30, rule(3))];
        assert_eq!(table.rows(), expected);
        let table = Table::of_frame_pointers().with_rule(15, 30, Rule::TASK);
        let rules = [14, 15, 29, 30].map(|at| table.rule(at));
        let pointer = Rule::FRAME_POINTER;
        assert_eq!(rules, [pointer, Rule::TASK, Rule::TASK, pointer]);
    }

    /// All code of a loop is marked, and none besides, whether rows begin and end with it or not.
    #[test]
    fn loops_are_marked_from_edge_to_edge() {
        let rule = |cfa| Rule::new(Kind::Sp, cfa, 0).expect("a rule");
        let row = |pc, rule| Row { pc, rule };
        let rows = vec![row(10, rule(1)), row(20, rule(2)), row(30, rule(3))];
        let table = Table { rows, skipped: 0 };
        let marked = table.rows_with_loops(&[(15, 30), (40, 50)]);
        let expected = [
            row(10, rule(1)),
            row(15, rule(1).in_loop()),
            row(20, rule(2).in_loop()),
            row(30, rule(3)),
            row(40, rule(3).in_loop()),
            row(50, rule(3)),
        ];
        assert_eq!(marked, expected);
        assert_eq!(table.rows_with_loops(&[]), table.rows());
    }
}
