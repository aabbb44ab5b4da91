//! A trace as a directory: what is written comes back, and what is not a trace is distinguished.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hangdog_trace::meta::RecordingState;
use hangdog_trace::tables::*;
use hangdog_trace::{Error, Meta, Trace, TraceWriter, text};

const STORY: &str = "
    process app 100
    thread main app 100
    thread worker app 101
    kthread kworker/0:1 7
    0     cpu0 switch idle -> main
    1ms   cpu0 switch main -> idle sleeping futex op=wait object=futex:0x1000 holder=worker stack=lock;main
    2.5ms cpu1 wake worker -> main futex op=wake stack=unlock;work kstack=futex_wake
    3ms   cpu0 irq 20us hard 33 main
    4ms   io 5ms main read 4096
    5ms   cpu1 sample worker stack=work
    6ms   fork main -> child app 105
    7ms   transfer main sent 20 object=unix:5 peer=unix:6
    8ms   lost 5 events
    9ms   exit worker 0
    end   10ms
";

/// Every table that a text gives comes back from disk as it was.
#[test]
fn tables_survive() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let story = text::parse(STORY).unwrap();
    story.write_to(&path, Meta::default()).unwrap();
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.read_all().unwrap(), story.tables);
    assert_eq!(trace.meta().duration_ns, 10_000_000);
    assert_eq!(trace.meta().state, RecordingState::Complete);
    assert_eq!(
        trace.read::<Mappings>().unwrap().len(),
        0,
        "never written is empty"
    );
}

/// A trace and its files can be read by their owner alone.
#[test]
fn only_the_owner_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    text::parse(STORY)
        .unwrap()
        .write_to(&path, Meta::default())
        .unwrap();
    let mode = |p: &std::path::Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("switches")), 0o700);
    assert_eq!(mode(&path.join("switches/000001.parquet")), 0o600);
    assert_eq!(mode(&path.join("meta.json")), 0o600);
}

fn wake(ts: u64) -> Wake {
    Wake {
        ts,
        cpu: 0,
        waker: 1,
        wakee: 2,
        context: 0,
        vector: 0,
        new: false,
        call: -1,
        object: u64::MAX,
        arg: 0,
        user_stack: 0,
        kernel_stack: 0,
    }
}

/// A recording that was killed between two parts opens with the parts that are whole, in state
/// recording; an unfinished file beside them is not read.
#[test]
fn killed_recording_opens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
    for ts in [10, 20] {
        writer.tables.wakes.push(wake(ts));
        writer.write_part().unwrap();
    }
    drop(writer);
    fs::write(path.join("wakes/000003.tmp"), b"PAR1 half of it").unwrap();
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.meta().state, RecordingState::Recording);
    assert_eq!(trace.read::<Wakes>().unwrap().ts, [10, 20]);
    let info = trace.tables_info().unwrap();
    let wakes = info.iter().find(|info| info.name == "wakes").unwrap();
    let on_disk: u64 = ["000001", "000002"]
        .map(|n| {
            fs::metadata(path.join(format!("wakes/{n}.parquet")))
                .unwrap()
                .len()
        })
        .iter()
        .sum();
    assert_eq!((wakes.rows, wakes.parts, wakes.bytes), (2, 2, on_disk));
}

/// Rows that came out of order are read in order, those of one time as they came.
#[test]
fn rows_are_sorted_by_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
    for (ts, wakee) in [(30, 1), (10, 2)] {
        writer.tables.wakes.push(Wake { wakee, ..wake(ts) });
    }
    writer.write_part().unwrap();
    for (ts, wakee) in [(20, 3), (10, 4)] {
        writer.tables.wakes.push(Wake { wakee, ..wake(ts) });
    }
    writer.finish(Meta::default()).unwrap();
    let wakes: Wakes = Trace::open(&path).unwrap().read().unwrap();
    assert_eq!(wakes.ts, [10, 10, 20, 30]);
    assert_eq!(wakes.wakee, [2, 4, 3, 1]);
}

/// Each way of not being a trace has its own error.
#[test]
fn aliens_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"hello").unwrap();
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let broken = dir.path().join("broken.hang");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("meta.json"), b"{\"format\":").unwrap();
    let newer = dir.path().join("newer.hang");
    fs::create_dir(&newer).unwrap();
    fs::write(
        newer.join("meta.json"),
        b"{\"format\": 2, \"state\": {\"other\": []}}",
    )
    .unwrap();

    let error = |path: &std::path::Path| Trace::open(path).unwrap_err();
    assert!(matches!(
        error(&dir.path().join("absent")),
        Error::Missing { .. }
    ));
    assert!(matches!(error(&file), Error::NotATrace { what, .. } if what == "it is a file"));
    assert!(matches!(error(&empty), Error::NotATrace { what, .. } if what.contains("empty")));
    assert!(matches!(error(dir.path()), Error::NotATrace { what, .. } if what.contains("meta")));
    assert!(matches!(error(&broken), Error::Damaged { file, .. } if file.ends_with("meta.json")));
    assert!(matches!(error(&newer), Error::TooNew { version: 2, .. }));
    let exists = TraceWriter::create(&empty, Meta::default()).unwrap_err();
    assert!(matches!(exists, Error::Exists { .. }));
}

/// Fields that a later version added to meta.json do not keep it from being read.
#[test]
fn unknown_fields_are_tolerated() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("meta.json"),
        br#"{"format": 1, "host": "h", "weather": {"sun": 1}}"#,
    )
    .unwrap();
    assert_eq!(Trace::open(dir.path()).unwrap().meta().host, "h");
}

/// A disk of 64 kB of the test's own.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]);
        mount.arg(disk.0.path()).stderr(std::process::Stdio::null());
        mount
            .status()
            .is_ok_and(|status| status.success())
            .then_some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg(self.0.path())
            .status();
    }
}

/// When the disk fills up in the middle of a part, that is the error, no torn file stays behind,
/// what was saved before is readable, and what was not is still in memory.
#[test]
fn full_disk_loses_nothing_saved() {
    let Some(disk) = SmallDisk::mount() else {
        return eprintln!(
            "NOT RUN: full_disk_loses_nothing_saved: needs root to mount a small disk"
        );
    };
    let path = disk.0.path().join("t.hang");
    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
    writer.tables.wakes.push(wake(10));
    writer.write_part().unwrap();
    writer.tables.wakes.push(wake(20));
    let filler = disk.0.path().join("filler");
    let filled = fs::write(&filler, vec![1; 1 << 20]);
    assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    let error = writer.write_part().unwrap_err();
    assert!(matches!(&error, Error::DiskFull { file } if file.ends_with("wakes/000002.parquet")));
    assert_eq!(fs::read_dir(path.join("wakes")).unwrap().count(), 1);
    assert_eq!(
        Trace::open(&path).unwrap().read::<Wakes>().unwrap().ts,
        [10]
    );
    assert_eq!(writer.tables.wakes.ts, [20]);
    fs::remove_file(&filler).unwrap();
    writer.write_part().unwrap();
    assert_eq!(
        Trace::open(&path).unwrap().read::<Wakes>().unwrap().ts,
        [10, 20]
    );
}

/// A writer that ends before its first part leaves nothing.
#[test]
fn nothing_written_nothing_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let writer = TraceWriter::create(&path, Meta::default()).unwrap();
    assert!(path.join("meta.json").exists());
    drop(writer);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Damage says which file, what, and what to do, in one sentence without the word panic.
#[test]
fn damage_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    text::parse(STORY)
        .unwrap()
        .write_to(&path, Meta::default())
        .unwrap();
    fs::write(path.join("wakes/000001.parquet"), b"not parquet at all").unwrap();
    let error = refused(&path);
    assert!(error.contains("wakes/000001.parquet is damaged"), "{error}");
}

/// A recording that was killed when it had one row.
fn begun(path: &std::path::Path) {
    let mut writer = TraceWriter::create(path, Meta::default()).unwrap();
    writer.tables.losses.push(Loss {
        ts: 0,
        cpu: 0,
        kind: 0,
        count: 1,
    });
    writer.write_part().unwrap();
}

/// Writes a part with one column of numbers and one of text, as another version might.
fn foreign_part(trace: &std::path::Path, table: &str, number: &str, text: &str) {
    use parquet::data_type::{ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    let schema = format!(
        "message t {{ required int64 {number} (INTEGER(64, false)); required binary {text} (STRING); }}"
    );
    let schema = parquet::schema::parser::parse_message_type(&schema).unwrap();
    fs::create_dir(trace.join(table)).unwrap();
    let file = fs::File::create(trace.join(table).join("000001.parquet")).unwrap();
    let mut file = SerializedFileWriter::new(file, schema.into(), Default::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(&[7, 8], None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ["a".into(), "b".into()];
    column
        .typed::<ByteArrayType>()
        .write_batch(&text, None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
}

/// Swaps, in a trace in files, one file's content; gives what each way of reading says.
fn refused(path: &std::path::Path) -> String {
    match Trace::open(path).and_then(|trace| trace.read_all()) {
        Ok(_) => "it was read".into(),
        Err(error) => error.to_string(),
    }
}

/// A complete trace is as it was recorded or is refused, in a sentence that names the file: with a
/// part changed in one bit, missing, another's, or one too many, and with a changed meta.json.
#[test]
fn whole_or_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let story = text::parse(STORY).unwrap();
    story.write_to(&path, Meta::default()).unwrap();
    let part = path.join("switches/000001.parquet");
    let whole = fs::read(&part).unwrap();
    assert!(
        Trace::open(&path)
            .unwrap()
            .verify()
            .unwrap()
            .damaged
            .is_empty()
    );

    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&part, &bytes).unwrap();
    let named = "switches/000001.parquet is damaged (it is not as it was recorded)";
    assert!(refused(&path).contains(named), "{}", refused(&path));
    let verified = Trace::open(&path).unwrap().verify().unwrap();
    assert_eq!(verified.damaged.len(), 1);

    fs::write(&part, &whole[1..]).unwrap();
    assert!(
        refused(&path).contains("bytes and was recorded with"),
        "{}",
        refused(&path)
    );
    fs::copy(path.join("wakes/000001.parquet"), &part).unwrap();
    assert!(refused(&path).contains("switches/000001.parquet is damaged"));
    fs::remove_file(&part).unwrap();
    assert!(refused(&path).contains("switches/000001.parquet is damaged (it is missing)"));
    fs::remove_dir(path.join("switches")).unwrap();
    assert!(refused(&path).contains("switches/000001.parquet is damaged (it is missing)"));
    fs::create_dir(path.join("switches")).unwrap();
    fs::write(&part, &whole).unwrap();
    fs::write(path.join("switches/000002.parquet"), &whole).unwrap();
    assert!(refused(&path).contains("switches/000002.parquet is damaged (it is not part"));
    fs::remove_file(path.join("switches/000002.parquet")).unwrap();
    assert_eq!(refused(&path), "it was read");

    let meta = path.join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    for (from, to) in [
        ("10000000", "10000001"),
        ("complete", "recording"),
        ("\"parts\"", "\"ports\""),
        ("\"checksum\"", "\"checksun\""),
    ] {
        assert!(text.contains(from));
        fs::write(&meta, text.replacen(from, to, 1)).unwrap();
        assert!(
            refused(&path).contains("meta.json is damaged"),
            "{from}: {}",
            refused(&path)
        );
    }
}

/// A trace of an older version, whose meta.json has no list of parts, opens as it always did.
#[test]
fn older_traces_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    let story = text::parse(STORY).unwrap();
    story.write_to(&path, Meta::default()).unwrap();
    let older = br#"{"format": 1, "state": "complete", "duration_ns": 10000000}"#;
    fs::write(path.join("meta.json"), older).unwrap();
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.read_all().unwrap(), story.tables);
    assert!(trace.verify().is_none());
    assert!(
        trace
            .tables_info()
            .unwrap()
            .iter()
            .any(|table| table.rows > 0)
    );
}

/// A part, a table or a meta.json that is a pipe or a link is damage, and nobody waits for it.
#[test]
fn pipes_and_links_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = |path: &std::path::Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    for (number, name) in ["wakes/000001.parquet", "wakes", "meta.json"]
        .iter()
        .enumerate()
    {
        for listed in [true, false] {
            for link in [true, false] {
                let path = dir.path().join(format!("{number}{listed}{link}.hang"));
                if listed {
                    text::parse(STORY)
                        .unwrap()
                        .write_to(&path, Meta::default())
                        .unwrap();
                } else {
                    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
                    writer.tables.wakes.push(wake(10));
                    writer.write_part().unwrap();
                }
                let (file, elsewhere) = (path.join(name), dir.path().join("elsewhere"));
                fs::rename(&file, &elsewhere).unwrap();
                match link {
                    true => std::os::unix::fs::symlink(&elsewhere, &file).unwrap(),
                    false => pipe(&file),
                }
                let said = refused(&path);
                assert!(
                    said.contains("is damaged"),
                    "{name} {listed} {link}: {said}"
                );
                match elsewhere.is_dir() {
                    true => fs::remove_dir_all(&elsewhere).unwrap(),
                    false => fs::remove_file(&elsewhere).unwrap(),
                }
            }
        }
    }
}

/// Times that cannot be are refused where no checksum tells: after the end, and out of order.
#[test]
fn impossible_times_are_refused() {
    let cases = [
        ("10000000", vec![10, u64::MAX], "lies outside the recording"),
        (
            "10000000",
            vec![10, 100_000_000_000],
            "lies outside the recording",
        ),
        ("0", vec![10, u64::MAX], "lies outside the recording"),
        ("0", vec![10, 100_000_000_000], "it was read"),
    ];
    for (duration, ts, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.hang");
        let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
        ts.iter().for_each(|&ts| writer.tables.wakes.push(wake(ts)));
        writer.write_part().unwrap();
        drop(writer);
        let meta = format!(r#"{{"format": 1, "state": "complete", "duration_ns": {duration}}}"#);
        fs::write(path.join("meta.json"), meta).unwrap();
        let said = refused(&path);
        assert!(said.contains(expected), "{duration} {ts:?}: {said}");
    }
}

/// A column that a part lacks reads as none where the table says so and as 0 elsewhere; one that
/// the table does not have is ignored.
#[test]
fn other_columns_than_expected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    begun(&path);
    foreign_part(&path, "switches", "ts", "mood");
    let switches: Switches = Trace::open(&path).unwrap().read().unwrap();
    assert_eq!(switches.ts, [7, 8]);
    assert_eq!(switches.holder, [u32::MAX; 2]);
    assert_eq!(switches.call, [-1; 2]);
    assert_eq!(switches.prev, [0; 2]);
    assert_eq!(switches.len(), 2);
}

/// A column of another type than the table's is damage, not other numbers.
#[test]
fn wrong_type_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    begun(&path);
    foreign_part(&path, "switches", "ts", "cpu");
    foreign_part(&path, "stacks", "frames", "mood");
    let trace = Trace::open(&path).unwrap();
    let error = trace.read::<Switches>().unwrap_err().to_string();
    assert!(error.contains("column cpu is not of type u16"), "{error}");
    let error = trace.read::<Stacks>().unwrap_err().to_string();
    assert!(error.contains("column frames is not of type"), "{error}");
}

/// A file where a table's folder should be is damage.
#[test]
fn table_that_is_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.hang");
    begun(&path);
    fs::write(path.join("wakes"), b"").unwrap();
    let error = Trace::open(&path).unwrap().read::<Wakes>().unwrap_err();
    assert!(matches!(error, Error::Damaged { file, .. } if file.ends_with("wakes")));
}

/// Tells the child of [`killed_in_the_middle`] where to write.
const CHILD: &str = "HANGDOG_TEST_WRITES_UNTIL_KILLED";
/// Rows in each of its parts.
const CHILD_ROWS: u64 = 1000;

#[test]
#[ignore = "it is the child process of killed_in_the_middle"]
fn writes_until_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let mut writer = TraceWriter::create(path, Meta::default()).unwrap();
    for part in 0.. {
        for row in 0..CHILD_ROWS {
            writer.tables.wakes.push(wake(part * CHILD_ROWS + row));
        }
        writer.write_part().unwrap();
    }
}

/// kill -9 at any moment leaves a trace that opens and holds whole parts from the first on.
#[test]
fn killed_in_the_middle() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    for attempt in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.hang");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "writes_until_killed"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !path.join("wakes/000003.parquet").exists() {
            assert!(
                child.try_wait().unwrap().is_none(),
                "the child ended by itself"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(attempt * 170));
        child.kill().unwrap();
        child.wait().unwrap();
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.meta().state, RecordingState::Recording);
        let ts = trace.read::<Wakes>().unwrap().ts;
        assert!(ts.len() as u64 >= 3 * CHILD_ROWS && (ts.len() as u64).is_multiple_of(CHILD_ROWS));
        assert!(ts.iter().copied().eq(0..ts.len() as u64));
    }
}

/// A command prints an error and then what caused it. The text of ours has the cause already, so there
/// is none besides.
#[test]
fn a_cause_is_printed_once() {
    let error = TraceWriter::create(
        std::path::Path::new("/nonexistent/dir/t.hang"),
        Meta::default(),
    );
    let error = error.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("os error 2"), "{error}");
    assert!(std::error::Error::source(&error).is_none());
}
