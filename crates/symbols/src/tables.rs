//! The unwind rules of files, read as their names are.

use std::time::Duration;

use hangdog_unwind::{Row, Rule};

use crate::interpreter::Interpreter;
use crate::place::{Place, Terms};
use crate::reader::Reader;
use crate::request::{Bytes, Request, Response, TableOf};

/// For a table: that of the largest programs takes a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of looking for a file's unwind rules.
pub enum Unwinding {
    /// Rows, ascending.
    Rows(Vec<Row>),
    /// Readable, and without unwind information that we know.
    NoTable,
    /// Not there, or not what was mapped.
    Nothing,
}

impl Reader {
    /// The unwind rules of the first of these files that has the build-id (empty: of the first), and
    /// which Python it is, if it is one. `label` is what a person calls the file.
    pub fn unwinding(
        &mut self,
        label: &str,
        places: &[Place],
        build_id: &str,
    ) -> (Unwinding, Option<Interpreter>) {
        let files: Vec<_> = places
            .iter()
            .map(|place| (place.clone(), Terms::elf()))
            .collect();
        let request = Request::Table {
            build_id: build_id.to_owned(),
        };
        unwinding_of(self.ask(label, &files, &request, PATIENCE))
    }
}

/// What an answer tells, as far as it can be.
pub(crate) fn unwinding_of(response: Response) -> (Unwinding, Option<Interpreter>) {
    let Response::Table(TableOf { rows, interpreter }) = response else {
        return (Unwinding::Nothing, None);
    };
    let rows = match rows.map(|Bytes(bytes)| rows_of(&bytes)) {
        None => Unwinding::NoTable,
        // They are searched by halves.
        Some(rows) if !rows.is_sorted_by(|a, b| a.pc < b.pc) => Unwinding::Nothing,
        Some(rows) => Unwinding::Rows(rows),
    };
    (rows, interpreter.filter(Interpreter::is_plausible))
}

/// What is cut in the middle of a row is left out.
fn rows_of(bytes: &[u8]) -> Vec<Row> {
    let (words, _) = bytes.as_chunks::<4>();
    let (rows, _) = words.as_chunks::<2>();
    let row = |[pc, rule]: &[[u8; 4]; 2]| Row {
        pc: u32::from_ne_bytes(*pc),
        rule: Rule(u32::from_ne_bytes(*rule)),
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_unwind::Table;
    use std::fs::File;

    /// The rules that come over are those that the file has.
    #[test]
    fn rules_come_over() {
        let own = Table::of(&File::open("/proc/self/exe").unwrap()).unwrap();
        let place = Place::Linked("/proc/self/exe".into());
        let (found, _) = Reader::default().unwinding("own", &[place], "");
        let Unwinding::Rows(rows) = found else {
            panic!("no rows");
        };
        assert!(!rows.is_empty() && rows == own.rows());
    }
}
