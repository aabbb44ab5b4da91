//! Files and messages that somebody else may have written.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use hangdog_diagnose::Answers;
use hangdog_diagnose::shape::Shape;
use hangdog_flags::call_file::Recorded;
use hangdog_report::loss::Loss;
use hangdog_report::spans::{self, Ground};
use hangdog_timeline::Regions;
use hangdog_trace::tables::{MarkNames, Marks};
use hangdog_trace::{Threads, Trace, text};
use hangdog_watch::archive::{Archive, Catch, Occasion};

/// A folder that is this program's alone: scripts/fuzz.sh gives it one in memory.
pub fn folder() -> PathBuf {
    std::env::temp_dir()
}

/// A file of answers, which is changed as a user does.
pub fn answers(bytes: &[u8]) {
    let Ok(mut answers) = Answers::parse(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    let shape = Shape {
        waiter: "app/main".to_owned(),
        call: "futex".to_owned(),
        at: vec!["f".to_owned(), "\"]\n".to_owned()],
    };
    let count = answers.iter().len();
    answers.to(&shape);
    if let Ok(number) = answers.add("who?", shape.clone(), "nobody") {
        let again = Answers::parse(answers.text()).expect("what was written is read");
        assert_eq!(again.iter().len(), count + 1);
        assert!(
            again
                .to(&shape)
                .is_some_and(|answer| answer.number == number)
        );
    }
    let numbers: Vec<u32> = answers.iter().map(|answer| answer.number).collect();
    for number in numbers {
        let _ = answers.forget(number);
    }
}

/// A file of a call that was stepped, compared with itself.
pub fn call(bytes: &[u8]) {
    let path = folder().join("call");
    fs::write(&path, [b"hangdog call 1\n", bytes].concat()).expect("a file");
    if let Ok(recorded) = Recorded::load(&path) {
        let _ = hangdog_flags::diverge::compare(&recorded.call, &recorded.call);
    }
}

/// Files in which compilers say what they made.
pub fn compiled(bytes: &[u8]) {
    hangdog_symbols::fuzz::compiled(
        bytes,
        &[0, 0x1000, 0x1008, 0x2000, 0x3000, 1 << 40, u64::MAX],
    );
}

/// Datagrams, records and texts of the kernel that hold what others chose.
pub fn kernel(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 4 {
        0 => {
            assert!(hangdog_watch::fuzz::datagram(bytes) <= bytes.len());
        }
        1 => hangdog_capture::fuzz::record(u32::from(kind / 4), bytes),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            hangdog_capture::fuzz::proc_text(&text);
            hangdog_symbols::fuzz::proc_text(&text);
            hangdog_watch::fuzz::proc_text(&text);
        }
    }
}

/// A trace's `meta.json`, as it is or with a checksum that is right.
pub fn meta(bytes: &[u8]) {
    let trace = folder().join("meta.hang");
    fs::create_dir_all(&trace).expect("a folder");
    let sealed = hangdog_trace::fuzz::sealed(bytes);
    for content in [bytes, sealed.as_bytes()] {
        fs::write(trace.join("meta.json"), content).expect("a file");
        if let Ok(trace) = Trace::open(&trace) {
            let _ = trace.tables_info();
            let _ = trace.threads();
            let _ = trace.verify();
            trace.meta().is_instant();
            if let Ok(loss) = Loss::of(&trace) {
                loss.text();
            }
        }
    }
}

/// A report of watch, which is read and added to.
pub fn reports(bytes: &[u8]) {
    let folder = folder().join("hangs");
    let mut archive = Archive::at(&folder);
    archive.create().expect("a folder");
    fs::write(folder.join("report-aa.json"), bytes).expect("a file");
    let Ok((reports, _)) = archive.reports() else {
        return;
    };
    let Some(report) = reports.first() else {
        return;
    };
    for occasion in &report.occasions {
        archive.trace_of(occasion);
    }
    let catch = Catch {
        signature: "aa".to_owned(),
        program: "app".to_owned(),
        sign: "stall".to_owned(),
        sentence: String::new(),
        occasion: Occasion {
            trace: "20261122-140322-app.hang".to_owned(),
            ..report.occasions[0].clone()
        },
    };
    let added = archive
        .add(&catch, &"the verdict")
        .expect("it can be written");
    assert!(added.count >= 1 && added.occasions.len() <= 50);
}

/// Lines of the flight recorder and its clients.
pub fn snap(bytes: &[u8]) {
    hangdog_capture::fuzz::line(&String::from_utf8_lossy(bytes));
}

/// A file of OpenTelemetry's spans, or what was kept of one.
pub fn spans(bytes: &[u8]) {
    static THREADS: OnceLock<Threads> = OnceLock::new();
    let threads = THREADS.get_or_init(|| {
        let trace = "process app 100\nthread main app 100\nthread pool app 101\n\
                     1ms cpu0 switch main -> idle sleeping read";
        Threads::new(&text::parse(trace).expect("a trace").tables.lifecycle)
    });
    let trace = folder().join("spans.hang");
    fs::create_dir_all(&trace).expect("a folder");
    let add = || {
        let mut names = MarkNames::default();
        if let Ok(marks) = spans::add(&trace, threads, Marks::default(), &mut names) {
            Regions::pair(&marks, threads, None, 60_000_000);
        }
    };
    fs::write(trace.join("spans.json"), bytes).expect("a file");
    add();
    for processes in [&[][..], &[1]] {
        let ground = Ground {
            threads,
            started_unix_ns: 1_000_000,
            end: 60_000_000,
            processes,
        };
        if let Ok((spans, tally)) = spans::lay(bytes, &ground) {
            assert_eq!(spans.len(), tally.kept());
            spans::store(&trace, spans).expect("it can be written");
            add();
        }
    }
}
