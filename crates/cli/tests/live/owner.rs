//! Whose a trace is that root makes for somebody else.

use crate::flight::{Flight, on_socket};
use crate::support::{Machine, hangdog, machine, wait_until};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An id that no user has.
const USER: u32 = 54_321;

/// A folder of that user's.
fn theirs(machine: &Machine) -> PathBuf {
    let path = machine.path("theirs");
    fs::create_dir(&path).expect("a folder");
    chown(&path, Some(USER), Some(USER)).expect("another owner");
    path
}

/// As sudo calls it for that user.
fn under_sudo(command: &mut Command) -> &mut Command {
    command
        .env("SUDO_UID", USER.to_string())
        .env("SUDO_GID", USER.to_string())
}

/// Everything in a trace, and itself, is the user's and closed to all others.
fn check(trace: &Path) {
    let mut todo = vec![trace.to_owned()];
    let mut files = 0;
    while let Some(path) = todo.pop() {
        let found = fs::symlink_metadata(&path).expect("a file");
        let told = (found.uid(), found.gid(), found.mode() & 0o077);
        assert_eq!(told, (USER, USER, 0), "{}", path.display());
        if found.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder");
            todo.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            files += 1;
        }
    }
    assert!(files > 3, "{files} files");
}

/// A recording, a snapshot and a look at this moment belong to whoever called sudo.
#[test]
fn traces_belong_to_who_called_sudo() {
    let Some(machine) = machine() else { return };
    let theirs = theirs(&machine);
    let run = |command: &mut Command| {
        let output = under_sudo(command).output().expect("a run");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{errors}");
    };
    let recorded = theirs.join("recorded.hang");
    run(hangdog()
        .args(["record", "--for", "200ms", "-o"])
        .arg(&recorded));
    check(&recorded);
    let moment = theirs.join("moment.hang");
    run(hangdog().args(["why", "--live", "-o"]).arg(&moment));
    check(&moment);
    let _flight = Flight::start(&machine, &["--memory", "16M"]);
    let snapped = theirs.join("snapped.hang");
    run(on_socket(&machine).args(["snap", "-o"]).arg(&snapped));
    check(&snapped);
}

/// A snapshot that does not fit on its disk is an error, leaves the recorder running, and is not
/// counted.
#[test]
fn a_snapshot_that_failed_does_not_count() {
    let Some(machine) = machine() else { return };
    let disk = machine.path("disk");
    fs::create_dir(&disk).expect("a folder");
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=16k", "none"])
        .arg(&disk);
    assert!(mount.status().expect("mount").success());
    let flight = Flight::start(&machine, &["--memory", "16M"]);
    let snap = |path: &Path| {
        let output = on_socket(&machine).args(["snap", "-o"]).arg(path).output();
        output.expect("a run").status.code()
    };
    let failed = snap(&disk.join("t.hang"));
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.expect("umount").success());
    assert_eq!(failed, Some(2));
    assert_eq!(snap(&machine.path("good.hang")), Some(0));
    wait_until("it tells of the snapshot", || {
        flight.said().contains("snapshot 1 of")
    });
    assert!(!flight.said().contains("snapshot 2"), "{}", flight.said());
}

/// Without permission `snap` says so, and not that no recorder answers.
#[test]
fn snap_without_permission() {
    use std::os::unix::process::CommandExt;
    let Some(machine) = machine() else { return };
    fs::set_permissions(machine.dir(), Permissions::from_mode(0o755)).expect("a mode");
    let _flight = Flight::start(&machine, &["--memory", "16M"]);
    // Where the command lies may be closed to that user.
    let command = machine.path("hangdog");
    fs::copy(env!("CARGO_BIN_EXE_hangdog"), &command).expect("a copy");
    let output = Command::new(command)
        .args(["snap", "-o", "t.hang"])
        .env("HANGDOG_SOCKET", machine.path("flight.sock"))
        .current_dir("/")
        .uid(USER)
        .gid(USER)
        .output()
        .expect("a run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("only the user who started"), "{errors}");
}
