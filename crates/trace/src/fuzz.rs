//! What the fuzzer (fuzz/) needs: any values in any table, and a `meta.json` whose checksum is right.

use crate::all::{Tables, Visitor};
use crate::error::Result;
use crate::tables::{Column, Table};

/// Puts values into a row of the table of that number (they are counted round), for each column that
/// `choose` has a value for. One row more than there are adds it. `rows` becomes the row's number from
/// how many there are.
pub fn alter(
    tables: &mut Tables,
    number: usize,
    row: impl FnOnce(usize) -> usize,
    choose: &mut dyn FnMut(&'static Column) -> Option<u64>,
) {
    struct At<'a, F> {
        left: usize,
        row: Option<F>,
        choose: &'a mut dyn FnMut(&'static Column) -> Option<u64>,
    }
    impl<F: FnOnce(usize) -> usize> Visitor for At<'_, F> {
        fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
            if self.left == 0
                && let Some(row) = self.row.take()
            {
                table.alter(row(table.len()), self.choose);
            }
            self.left = self.left.wrapping_sub(1);
            Ok(())
        }
    }
    let mut at = At {
        left: number % Tables::ALL.len(),
        row: Some(row),
        choose,
    };
    // It refuses nothing.
    let _ = tables.each(&mut at);
}

/// A `meta.json` of this content, which ends before its last bracket, with its checksum.
pub fn sealed(body: &[u8]) -> String {
    crate::meta::seal(body)
}
