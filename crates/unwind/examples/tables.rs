//! Builds the table of every ELF file under the paths given, and says what that costs and what the
//! tables hold: `cargo run --release --example tables -- /usr/bin /usr/lib/x86_64-linux-gnu`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangdog_unwind::{Error, Kind, Row, Table};

#[derive(Default)]
struct Sum {
    files: usize,
    rows: usize,
    skipped: u64,
    time: Duration,
    slowest: (Duration, PathBuf),
    kinds: BTreeMap<String, usize>,
    refused: BTreeMap<String, usize>,
}

impl Sum {
    fn add(&mut self, path: &Path) {
        if path.is_symlink() {
            return;
        }
        if path.is_dir() {
            for entry in path.read_dir().into_iter().flatten().flatten() {
                self.add(&entry.path());
            }
            return;
        }
        let begin = Instant::now();
        let table = match Table::from_file(path) {
            Ok(table) => table,
            Err(Error::NotElf("it does not start like one")) => return,
            Err(error) => {
                *self.refused.entry(error.to_string()).or_default() += 1;
                return;
            }
        };
        let time = begin.elapsed();
        self.files += 1;
        self.time += time;
        self.rows += table.rows().len();
        self.skipped += table.skipped();
        if time > self.slowest.0 {
            self.slowest = (time, path.to_path_buf());
        }
        for row in table.rows() {
            *self
                .kinds
                .entry(format!("{:?}", row.rule.kind()))
                .or_default() += 1;
        }
        let odd = table
            .rows()
            .iter()
            .filter(|row| row.rule.kind() == Kind::Unsupported);
        if odd.clone().count() * 20 > table.rows().len() {
            println!(
                "{}: {} of {} rows unsupported",
                path.display(),
                odd.count(),
                table.rows().len()
            );
        }
    }
}

fn main() {
    let mut sum = Sum::default();
    for path in std::env::args_os().skip(1) {
        sum.add(Path::new(&path));
    }
    println!(
        "{} files, {} rows, {} bytes, {} FDEs left out, {:.3?}; slowest {:.3?} {}",
        sum.files,
        sum.rows,
        sum.rows * size_of::<Row>(),
        sum.skipped,
        sum.time,
        sum.slowest.0,
        sum.slowest.1.display()
    );
    for (kind, rows) in sum.kinds {
        println!(
            "{rows:10} rows {:8.4} % {kind}",
            rows as f64 * 100.0 / sum.rows as f64
        );
    }
    for (why, files) in sum.refused {
        println!("{files:10} files: {why}");
    }
}
