//! What holds for any trace: it survives the disk, and no damage to it makes a reader panic.

use std::fs;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::all::{Tables, Visitor};
use crate::error::{Error, Result};
use crate::meta::Meta;
use crate::reader::Trace;
use crate::tables::*;
use crate::writer::TraceWriter;

/// Fills each table with up to 40 random rows, made of one seed.
struct Fill(proptest::test_runner::TestRunner);

impl Visitor for Fill {
    fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
        use proptest::strategy::ValueTree;
        let tree = (0usize..40)
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
        use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut tables = Tables::default();
        tables
            .each(&mut Fill(TestRunner::new_with_rng(Config::default(), rng)))
            .unwrap();
        tables
    })
}

/// Every file of a trace that has rows in every table.
fn sample_files() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
    let rng = proptest::test_runner::TestRunner::deterministic();
    writer.tables.each(&mut Fill(rng)).unwrap();
    writer
        .finish(Meta {
            host: "h".into(),
            ..Meta::default()
        })
        .unwrap();
    let mut files = vec![path.join("meta.json")];
    for (table, ..) in Tables::ALL {
        let part = path.join(table).join("000001.parquet");
        if part.exists() {
            files.push(part);
        }
    }
    (dir, files)
}

/// Opens and reads everything, and tells which file an error names.
fn read_all(dir: &tempfile::TempDir) -> Result<()> {
    let trace = Trace::open(dir.path().join("t.hang"))?;
    trace.tables_info()?;
    trace.read_all().map(drop)
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Bytes changed anywhere in any file of a trace give an error that names the file or other
    /// valid data; never a panic.
    #[test]
    fn changed_bytes_never_panic(
        file in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (dir, files) = sample_files();
        let file = file.get(&files);
        let mut bytes = fs::read(file).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fs::write(file, bytes).unwrap();
        match read_all(&dir) {
            Ok(()) | Err(Error::TooNew { .. }) => {}
            Err(Error::Damaged { file: named, .. }) => prop_assert_eq!(&named, file),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    /// A file that lost its end is an error that names it.
    #[test]
    fn truncation_is_an_error(file in any::<prop::sample::Index>(), end in any::<prop::sample::Index>()) {
        let (dir, files) = sample_files();
        let file = file.get(&files);
        let bytes = fs::read(file).unwrap();
        // The final newline of meta.json carries nothing.
        let length = bytes.len() - usize::from(file.ends_with("meta.json"));
        fs::write(file, &bytes[..end.index(length)]).unwrap();
        match read_all(&dir) {
            Err(Error::Damaged { file: named, .. }) => prop_assert_eq!(&named, file),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
