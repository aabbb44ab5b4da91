//! What is left when something goes wrong: killed, out of room, in the way of something else.

use crate::support::{Background, Live, blocks_in, hangdog, json, machine, number, wait_until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Killed in the middle of much work, a recording opens, says so and can be told of with the names
/// of functions; the command that it had started goes on.
#[test]
fn a_killed_recording_opens() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let load = Background::load(&pingpong);
    let (trace, survived) = (machine.path("killed.hang"), machine.path("survived"));
    let killed = machine.path("killed");
    let script = format!(
        "while ! [ -e {killed} ]; do sleep 0.1; done; echo yes > {survived}",
        killed = killed.display(),
        survived = survived.display()
    );
    let recorder = hangdog()
        .args(["record", "-o"])
        .arg(&trace)
        .args(["--", "sh", "-c", &script])
        .spawn();
    let mut recorder = Background(recorder.expect("a run"));
    // Parts are written now and then; on a busy machine the first comes late. A part's switches are
    // written last.
    wait_until("a part of the trace", || {
        let info = hangdog().args(["info", "--json"]).arg(&trace).output();
        let info = info.expect("a run").stdout;
        let info: serde_json::Value = serde_json::from_slice(&info).unwrap_or_default();
        let kinds = info["events"].as_array().into_iter().flatten();
        let mut switches = kinds.filter(|kind| kind["name"] == "switches");
        switches.any(|kind| kind["rows"].as_u64() > Some(10_000))
    });
    recorder.0.kill().expect("a recorder to kill");
    recorder.0.wait().expect("its end");
    fs::write(&killed, "").expect("a file");

    let info = json(&["info"], &trace);
    assert_eq!(info["loss"]["cut_short"], true);
    assert!(
        number(&info["event_count"]) > 10_000,
        "{}",
        info["event_count"]
    );
    let output = hangdog().arg("info").arg(&trace).output().expect("a run");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("cut short"), "{said}");

    let tid = load.0.id().to_string();
    assert!(blocks_in(&trace, &tid, "main"), "no stack names main");
    wait_until("the command goes on", || survived.exists());
}

/// A ring that is too small says what it lost; one that is large enough loses nothing.
#[test]
fn loss_is_told() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let pingpong = pingpong.to_str().expect("plain text");
    for (options, loses) in [(&["--memory", "100K"][..], true), (&[][..], false)] {
        let recorded = machine.record(options, &[pingpong, "50000"]);
        assert_eq!(recorded.code(), Some(0));
        let info = json(&["info"], &recorded.path);
        let lost = number(&info["loss"]["total"]);
        assert_eq!(lost > 0, loses, "{options:?}: {lost}");
        assert_eq!(recorded.stderr().contains("no loss"), !loses);
        if loses {
            assert_eq!(info["loss"]["by"][0]["kind"], "events");
            // However much is missing: states still add up, and the story can be told.
            json(&["threads"], &recorded.path);
            let tid = Live::open(&recorded.path, Vec::new()).command();
            json(&["story", "--thread", &tid], &recorded.path);
        }
        fs::remove_dir_all(&recorded.path).expect("the trace");
    }
}

/// A file system of so many kB, for as long as the test runs.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kilobytes: u32) -> SmallDisk {
        fs::create_dir(at).expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"])
            .arg(at)
            .status();
        assert!(mounted.expect("mount").success());
        SmallDisk(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// On a disk that fills up a recording ends with exit code 2 and says why, and so does its command;
/// what was written opens.
#[test]
fn a_full_disk() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let disk = SmallDisk::mount(&machine.path("disk"), 2_000);
    let trace = disk.0.join("full.hang");
    let began = Instant::now();
    let output = hangdog()
        .args(["record", "--for", "300s", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&pingpong)
        .arg("0")
        .stdout(Stdio::null())
        .output()
        .expect("a run");
    // The command holds standard error open for as long as it runs, which would be for ever.
    assert!(began.elapsed() < Duration::from_secs(240), "it went on");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("the disk is full"), "{stderr}");
    assert!(stderr.contains("full.hang"), "{stderr}");
    let info = json(&["info"], &trace);
    assert_eq!(info["loss"]["cut_short"], true);
    assert!(
        number(&info["event_count"]) > 1_000,
        "{}",
        info["event_count"]
    );
}

/// What is there already is not overwritten, be it a trace, a file or an empty directory.
#[test]
fn nothing_is_overwritten() {
    let Some(machine) = machine() else { return };
    let recorded = machine.record(&[], &["true"]);
    assert_eq!(recorded.code(), Some(0));
    let before = fs::read(recorded.path.join("meta.json")).expect("a trace");
    let again = machine.record(&[], &["true"]);
    assert_eq!(again.code(), Some(2));
    assert!(
        again.stderr().contains("exists already"),
        "{}",
        again.stderr()
    );
    assert_eq!(
        fs::read(again.path.join("meta.json")).expect("a trace"),
        before
    );

    fs::remove_dir_all(&again.path).expect("the trace");
    fs::write(&again.path, "precious").expect("a file");
    let onto_file = machine.record(&[], &["true"]);
    assert_eq!(onto_file.code(), Some(2));
    assert_eq!(fs::read(&onto_file.path).expect("a file"), b"precious");
}
