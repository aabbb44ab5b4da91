//! A trace as a directory: what is written comes back, and what is not a trace is told apart.

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

/// Rows that reached the disk out of order are read in order, those of one time as written.
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
    let exists = TraceWriter::create(&empty, Meta::default()).err().unwrap();
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
