//! Traces that something has gnawed at: every command answers or refuses, and none panics.

use hangdog_trace::{Meta, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A trace that has a row in most tables.
const TRACE: &str = "
process app 100
thread main app 100
0   cpu0 switch idle -> main
1ms fork main -> child app 101
1ms cpu0 wake main -> child clone new
2ms cpu0 switch main -> child sleeping futex op=wait object=futex:0x10 holder=child stack=a kstack=b
3ms cpu0 irq 10us hard 33 child
4ms cpu0 wake child -> main futex op=wake object=futex:0x10 stack=a kstack=b
4ms cpu0 sample child stack=compute
5ms cpu0 switch child -> main preempted
6ms cpu0 lost 2 events
end 7ms
";

const COMMANDS: [&[&str]; 4] = [
    &["info"],
    &["threads"],
    &["story", "--thread", "100"],
    &["why", "--thread", "100"],
];

/// All files under a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// Ways to damage a file: cut short, overwritten in places, replaced. Always the same ones.
fn damages(whole: &[u8]) -> Vec<Vec<u8>> {
    let mut damages = vec![
        Vec::new(),
        whole[..whole.len() / 2].to_vec(),
        b"PAR1".to_vec(),
    ];
    // The multiplier of a common linear congruential generator: places that look random.
    let mut state = whole.len() as u64;
    for count in [1, 1, 1, 4, 16] {
        let mut damaged = whole.to_vec();
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % damaged.len();
            damaged[at] ^= (state >> 24) as u8 | 1;
        }
        damages.push(damaged);
    }
    damages
}

/// Whatever happens to one file of a trace, each command ends with 0, 1 or 2, and says why if it
/// is not 0.
#[test]
fn no_damage_makes_a_panic() {
    let dir = TempDir::new().expect("a directory");
    let trace = dir.path().join("t.hang");
    text::parse(TRACE)
        .expect("a trace in text form")
        .write_to(&trace, Meta::default())
        .expect("a trace on disk");
    let mut refused = 0;
    for file in files(&trace) {
        let whole = fs::read(&file).expect("a file");
        for damaged in damages(&whole) {
            fs::write(&file, &damaged).expect("a damaged file");
            for command in COMMANDS {
                let output = Command::new(env!("CARGO_BIN_EXE_hangdog"))
                    .args(command)
                    .arg(&trace)
                    .stdin(Stdio::null())
                    .output()
                    .expect("a run");
                let said = String::from_utf8_lossy(&output.stderr);
                let case = format!("{command:?}, {}, {damaged:x?}: {said}", file.display());
                assert!(matches!(output.status.code(), Some(0..=2)), "{case}");
                assert!(!said.contains("panicked"), "{case}");
                let failed = output.status.code() != Some(0);
                assert!(!failed || said.starts_with("hangdog: "), "{case}");
                refused += usize::from(failed);
            }
        }
        fs::write(&file, &whole).expect("the file as it was");
    }
    assert!(refused > 20, "damage was seen {refused} times only");
}
