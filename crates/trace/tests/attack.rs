//! Root writes a trace into a folder of a user who wants to be given a file of root's, or have it
//! overwritten.
//!
//! The user renames the trace away while it is written and handed over, and exchanges it with
//! folders and links of its own that lead to the file. HANGDOG_ATTACK_SECONDS says for how long.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hangdog_trace::tables::{Loss, Wake};
use hangdog_trace::{Meta, Owner, TraceWriter};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// An id that no user has.
const USER: u32 = 54_321;
/// Tells the child where to attack.
const PLACE: &str = "HANGDOG_TEST_ATTACKS";
/// The names that a writer uses inside a trace.
const NAMES: [&str; 10] = [
    "meta.tmp",
    "meta.json",
    "wakes/000001.tmp",
    "wakes/000001.parquet",
    "wakes/000002.tmp",
    "wakes/000002.parquet",
    "losses/000001.tmp",
    "losses/000001.parquet",
    "losses/000002.tmp",
    "losses/000002.parquet",
];

/// Root's file, and a folder of root's with a file in it.
struct Treasure {
    file: PathBuf,
    folder: PathBuf,
}

const CONTENT: &str = "root's own";

impl Treasure {
    fn bury(at: &Path) -> Treasure {
        let treasure = Treasure {
            file: at.join("canary"),
            folder: at.join("folder"),
        };
        fs::create_dir(&treasure.folder).unwrap();
        for file in [treasure.file.clone(), treasure.folder.join("meta.json")] {
            fs::write(&file, CONTENT).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
        treasure
    }

    /// Whether all is as it was buried.
    fn check(&self, round: u64) {
        for file in [self.file.clone(), self.folder.join("meta.json")] {
            let found = fs::symlink_metadata(&file).unwrap();
            let told = (found.uid(), found.gid(), found.mode() & 0o7777);
            assert_eq!(told, (0, 0, 0o600), "{} in round {round}", file.display());
            let content = fs::read(&file).unwrap();
            assert_eq!(
                content,
                CONTENT.as_bytes(),
                "{} in round {round}",
                file.display()
            );
        }
        let found = fs::metadata(&self.folder).unwrap();
        assert_eq!(
            (found.uid(), fs::read_dir(&self.folder).unwrap().count()),
            (0, 1)
        );
    }
}

/// Nothing of root's changes its owner, mode or content, whatever the owner of the folder does.
#[test]
fn the_owner_of_the_folder_attacks() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("NOT RUN: the_owner_of_the_folder_attacks: needs root");
    }
    let seconds = std::env::var("HANGDOG_ATTACK_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(5);
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
    let treasure = Treasure::bury(base.path());
    let place = base.path().join("theirs");
    fs::create_dir(&place).unwrap();
    chown(&place, Some(USER), Some(USER)).unwrap();
    let mut attacker = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "attacks"])
        .env(PLACE, &place)
        .uid(USER)
        .gid(USER)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut written) = (0, 0);
    while Instant::now() < end && attacker.try_wait().unwrap().is_none() {
        written += u64::from(write(&place.join("t.hang")));
        rounds += 1;
        treasure.check(rounds);
    }
    let alive = attacker.try_wait().unwrap().is_none();
    attacker.kill().unwrap();
    attacker.wait().unwrap();
    assert!(alive, "the attack ended by itself");
    eprintln!("{rounds} rounds, {written} traces written and given");
}

/// Writes a trace for the user, as `hangdog record` does under sudo; whether it was written.
fn write(path: &Path) -> bool {
    let owner = Owner {
        user: USER,
        group: USER,
    };
    let Ok(mut writer) = TraceWriter::create_for(path, Meta::default(), Some(owner)) else {
        return false;
    };
    for ts in 0..2 {
        fill(&mut writer, ts);
        if writer.write_part().is_err() {
            return false;
        }
    }
    writer.finish(Meta::default()).is_ok()
}

fn fill(writer: &mut TraceWriter, ts: u64) {
    writer.tables.wakes.push(Wake {
        ts,
        cpu: 0,
        waker: 1,
        wakee: 2,
        context: 0,
        vector: 0,
        new: false,
        call: -1,
        object: 0,
        arg: 0,
        user_stack: 0,
        kernel_stack: 0,
    });
    writer.tables.losses.push(Loss {
        ts,
        cpu: 0,
        kind: 0,
        count: 1,
    });
}

/// Makes a folder with all names of a trace: links to the treasure, or plain files.
fn plant(place: &Path, name: &str, links: bool) {
    let base = place.parent().unwrap();
    for file in NAMES {
        let file = place.join(name).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        match links {
            true => symlink(base.join("canary"), file).unwrap(),
            false => fs::write(file, "theirs").unwrap(),
        }
    }
}

#[test]
#[ignore = "it is the child process of the_owner_of_the_folder_attacks"]
fn attacks() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    plant(&place, "links", true);
    plant(&place, "files", false);
    fs::create_dir(place.join("empty")).unwrap();
    symlink("../folder", place.join("link")).unwrap();
    let exchange = |a: &str, b: &str| {
        let (a, b) = (place.join(a), place.join(b));
        renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).is_ok()
    };
    for round in 0u64.. {
        // Away with it: the writer goes on with its descriptor, or begins anew under the name.
        let away = place.join(format!("away{round}"));
        let moved = fs::rename(place.join("t.hang"), &away).is_ok();
        for (number, other) in ["links", "files", "empty", "link"].into_iter().enumerate() {
            if (round + number as u64).is_multiple_of(3) {
                let there = place.join("t.hang").symlink_metadata().is_ok();
                match there {
                    true => drop(exchange("t.hang", other) && exchange("t.hang", other)),
                    // Where a folder is made and then opened by its name, this is what is opened.
                    false => {
                        let put = fs::rename(place.join(other), place.join("t.hang"));
                        exchange("links", "files");
                        if put.is_ok() {
                            let _ = fs::rename(place.join("t.hang"), place.join(other));
                        }
                    }
                }
            }
        }
        if moved && away.metadata().is_ok_and(|found| found.uid() == USER) {
            let _ = fs::remove_dir_all(&away);
        }
    }
}
