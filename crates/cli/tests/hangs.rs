//! `hangdog hangs` on a folder that was filled by hand.

use hangdog_trace::{Meta, text};
use hangdog_watch::archive::{Archive, Catch, Occasion};
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const TRACE: &str = "
process app 100
thread main app 100 name=app
0   cpu0 switch idle -> main
1ms cpu0 switch main -> idle sleeping nanosleep arg=40ms stack=steep;main
41ms cpu0 wake idle -> main in=timer
41ms cpu0 switch idle -> main
end 50ms
";

/// 22 November 2026, 14:03:22 UTC.
const TIME: u64 = 1_795_356_202_000_000_000;

/// A hang of the program `app`, and its trace if that is still there.
fn catch(archive: &Archive, signature: &str, at: u64, has_trace: bool) {
    let path = archive.new_trace(&format!("20261122-14032{at}"), "app");
    let trace = path.file_name().expect("a name").to_str().expect("UTF-8");
    let catch = Catch {
        signature: signature.to_owned(),
        program: "app".to_owned(),
        sign: "window".to_owned(),
        sentence: format!("app was held up at {at}."),
        occasion: Occasion {
            unix_ns: TIME + at * 1_000_000_000,
            duration_ns: 40_000_000,
            goes_on: at == 0,
            pid: 100,
            tid: 100,
            trace: trace.to_owned(),
            from_ns: 1_000_000,
            to_ns: 41_000_000,
        },
    };
    archive.add(&catch, &"the verdict").expect("a report");
    let parsed = text::parse(TRACE).expect("a trace in text form");
    if has_trace {
        parsed.write_to(&path, Meta::default()).expect("a trace");
    }
}

/// Exit status, standard output and standard error.
fn hangs(folder: &TempDir, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_hangdog"))
        .args(["hangs", "--dir", "caught"])
        .args(args)
        .current_dir(folder)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .expect("a run");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn folder() -> (TempDir, Archive) {
    let folder = TempDir::new().expect("a folder");
    let archive = Archive::at(&folder.path().join("caught"));
    (folder, archive)
}

/// A folder that is not there, or has nothing in it, is no error but nothing: exit status 1.
#[test]
fn nothing() {
    let (folder, mut archive) = folder();
    let (code, out, errors) = hangs(&folder, &[]);
    assert_eq!((code, &*out), (Some(1), ""));
    assert!(errors.contains("hangdog watch"), "{errors}");
    archive.create().expect("a folder");
    let (code, out, errors) = hangs(&folder, &[]);
    assert_eq!((code, &*out), (Some(1), ""));
    assert!(errors.contains("no hangs in"), "{errors}");
}

/// Causes are listed once each, the last one first, with time, length, program, count, signature,
/// sentence and trace; a damaged report is named and passed over.
#[test]
fn list() {
    let (folder, mut archive) = folder();
    archive.create().expect("a folder");
    catch(&archive, "aaaa0000aaaa0000", 0, false);
    catch(&archive, "bbbb0000bbbb0000", 5, true);
    catch(&archive, "bbbb0000bbbb0000", 9, true);
    fs::write(folder.path().join("caught/report-cc.json"), "{\"sig").expect("a file");
    let (code, out, errors) = hangs(&folder, &[]);
    assert_eq!(code, Some(0));
    assert!(errors.contains("caught/report-cc.json"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    let expected = "\
2026-11-22 14:03:31    40 ms  app  2 times  bbbb0000bbbb0000
    app was held up at 9.
    caught/20261122-140329-app.hang
2026-11-22 14:03:22   >40 ms  app  1 time  aaaa0000aaaa0000
    app was held up at 0.
    trace removed to stay within --keep
";
    assert_eq!(out, expected);
}

/// One is told in full by how its signature begins: every time, and what why says of its trace; of
/// one whose trace is gone, the sentence.
#[test]
fn in_full() {
    let (folder, mut archive) = folder();
    archive.create().expect("a folder");
    catch(&archive, "aaaa0000aaaa0000", 0, false);
    catch(&archive, "ab00000000000000", 5, true);
    let (code, out, _) = hangs(&folder, &["ab"]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("app, 1 time since 2026-11-22 14:03:27"),
        "{out}"
    );
    assert!(out.contains("LongWait in steep"), "{out}");
    assert!(out.contains("for 40 ms"), "{out}");
    let (_, out, _) = hangs(&folder, &["aa"]);
    assert!(out.ends_with("app was held up at 0.\n"), "{out}");
    let (code, _, errors) = hangs(&folder, &["a"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("more than one"), "{errors}");
}
