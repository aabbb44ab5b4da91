//! What holds for any trace: it survives the disk, and no damage to it makes a reader panic.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::all::{Tables, Visitor};
use crate::error::{Error, Result};
use crate::meta::Meta;
use crate::reader::Trace;
use crate::tables::*;
use crate::writer::TraceWriter;

/// Fills each table with some random rows, made of one seed.
struct Fill(TestRunner);

impl Visitor for Fill {
    fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
        let tree = (1usize..40)
            .prop_flat_map(T::arbitrary)
            .new_tree(&mut self.0);
        *table = tree.expect("no filter rejects").current();
        Ok(())
    }
}

struct Sort;

impl Visitor for Sort {
    fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
        table.sort();
        Ok(())
    }
}

/// Any tables.
fn tables() -> impl Strategy<Value = Tables> {
    any::<[u8; 32]>().prop_map(|seed| {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut tables = Tables::default();
        tables
            .each(&mut Fill(TestRunner::new_with_rng(Config::default(), rng)))
            .unwrap();
        tables.each(&mut Bound).unwrap();
        tables
    })
}

/// Brings what is arbitrary into the recording's time.
struct Bound;

impl Visitor for Bound {
    fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
        table.bound_times(1 << 40);
        Ok(())
    }
}

/// A trace that has rows in every table, to be damaged one file at a time.
struct Sample {
    dir: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Sample {
    /// Complete with its list of parts, or as a recording that was killed leaves it.
    fn new(complete: bool) -> Sample {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.hang");
        let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
        writer
            .tables
            .each(&mut Fill(TestRunner::deterministic()))
            .unwrap();
        writer.tables.each(&mut Bound).unwrap();
        writer.write_part().unwrap();
        if complete {
            writer.finish(Meta::default()).unwrap();
        }
        let parts = Tables::ALL
            .iter()
            .map(|(table, ..)| format!("{table}/000001.parquet"));
        let files = parts.chain(["meta.json".into()]).map(|file| {
            let file = path.join(file);
            let bytes = fs::read(&file).expect("the seed gives rows to every table");
            (file, bytes)
        });
        Sample {
            files: files.collect(),
            dir,
        }
    }

    /// Reads everything while the file has other content.
    fn read_with(&self, file: &Path, content: &[u8], original: &[u8]) -> Result<()> {
        fs::write(file, content).unwrap();
        let read = || {
            let trace = Trace::open(self.dir.path().join("t.hang"))?;
            trace.tables_info()?;
            trace.read_all().map(drop)
        };
        let outcome = read();
        fs::write(file, original).unwrap();
        outcome
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any tables that are written read back the same, in order of time.
    #[test]
    fn any_tables_survive(mut tables in tables()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.hang");
        let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
        writer.tables = tables.clone();
        writer.finish(Meta::default()).unwrap();
        tables.each(&mut Sort).unwrap();
        prop_assert_eq!(Trace::open(&path).unwrap().read_all().unwrap(), tables);
    }

    /// However rows are spread over parts, they read back as one table in order of time, those of
    /// one time in the order in which they were written.
    #[test]
    fn parts_are_one_table(parts in vec((0usize..30).prop_flat_map(Wakes::arbitrary), 0..5)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.hang");
        let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
        let mut rows = Vec::new();
        for mut part in parts {
            // Few times, so that many are equal.
            part.ts.iter_mut().for_each(|ts| *ts %= 8);
            rows.extend((0..part.len()).map(|i| part.row(i)));
            writer.tables.wakes = part;
            writer.write_part().unwrap();
        }
        writer.finish(Meta::default()).unwrap();
        rows.sort_by_key(|row| row.ts);
        let wakes: Wakes = Trace::open(&path).unwrap().read().unwrap();
        prop_assert_eq!(wakes, rows.into_iter().collect::<Wakes>());
    }
}

/// Bytes changed anywhere in any file of a complete trace give an error that names the file.
#[test]
fn changed_bytes_are_noticed() {
    let sample = Sample::new(true);
    let changes = vec((any::<Index>(), any::<u8>()), 1..4);
    TestRunner::new(ProptestConfig::with_cases(1000))
        .run(&(any::<Index>(), changes), |(file, changes)| {
            let (file, original) = file.get(&sample.files);
            let mut bytes = original.clone();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            match sample.read_with(file, &bytes, original) {
                Ok(()) => prop_assert_eq!(&bytes, original),
                Err(Error::TooNew { .. }) => prop_assert!(file.ends_with("meta.json")),
                Err(Error::Damaged { file: named, .. }) => prop_assert_eq!(&named, file),
                Err(other) => prop_assert!(false, "{}", other),
            }
            Ok(())
        })
        .unwrap();
}

/// Without a list of parts they give an error that names the file or its table, or other valid
/// data; never a panic.
#[test]
fn changed_bytes_never_panic() {
    let sample = Sample::new(false);
    let changes = vec((any::<Index>(), any::<u8>()), 1..4);
    TestRunner::new(ProptestConfig::with_cases(1000))
        .run(&(any::<Index>(), changes), |(file, changes)| {
            let (file, original) = file.get(&sample.files);
            let mut bytes = original.clone();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            match sample.read_with(file, &bytes, original) {
                Ok(()) | Err(Error::TooNew { .. }) => {}
                Err(Error::Damaged { file: named, .. }) => prop_assert!(file.starts_with(&named)),
                Err(other) => prop_assert!(false, "{}", other),
            }
            Ok(())
        })
        .unwrap();
}

/// A file that lost its end is an error that names it.
#[test]
fn truncation_is_an_error() {
    for complete in [true, false] {
        let sample = Sample::new(complete);
        TestRunner::new(ProptestConfig::with_cases(200))
            .run(&(any::<Index>(), any::<Index>()), |(file, end)| {
                let (file, original) = file.get(&sample.files);
                let content = &original[..end.index(original.len())];
                match sample.read_with(file, content, original) {
                    Err(Error::Damaged { file: named, .. }) => prop_assert_eq!(&named, file),
                    other => prop_assert!(false, "{:?}", other),
                }
                Ok(())
            })
            .unwrap();
    }
}
