//! Processes that have as many files open as they may: such a program can accept no connection, and open no file.
//!
//! No hook tells of the call that fails, since it does not wait. So all processes are looked at every few
//! seconds: the size of /proc/PID/fd is how many there are (from Linux 6.2 on; before that it is 0).

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use hangdog_trace::words::LimitKind;

use crate::limits::{Limit, read_text};

/// So often; a look takes 1.4 µs for each process (70 of them, the least of 20 looks).
const EVERY: Duration = Duration::from_secs(4);
/// Of more processes only so many are looked at.
const MOST: usize = 4096;
/// Whoever has fewer open is not looked at any further: no program is allowed less.
const FEW: u64 = 8;

/// Looks at the processes now and then.
pub(crate) struct OpenFiles {
    due: Instant,
    /// How many each had at the last look, and may have.
    before: HashMap<u32, (u64, u64)>,
}

impl OpenFiles {
    pub(crate) fn new() -> OpenFiles {
        OpenFiles {
            due: Instant::now() + EVERY,
            before: HashMap::new(),
        }
    }

    /// Those that have no more left, if it is time to look again.
    pub(crate) fn look_if_due(&mut self) -> Vec<Limit> {
        let now = Instant::now();
        if now < self.due {
            return Vec::new();
        }
        self.due = now + EVERY;
        self.look()
    }

    /// Those that have no more left.
    pub(crate) fn look(&mut self) -> Vec<Limit> {
        let before = std::mem::take(&mut self.before);
        let mut all = Vec::new();
        for (pid, open) in processes() {
            // One that has as many open as before, and had some left, is taken to be the same with the same limit.
            let known = before
                .get(&pid)
                .filter(|&&(had, limit)| had == open && !is_full(open, limit));
            let Some(limit) = known.map(|&(_, limit)| limit).or_else(|| allowed(pid)) else {
                continue;
            };
            self.before.insert(pid, (open, limit));
            if is_full(open, limit) {
                all.push(Limit {
                    pid,
                    kind: LimitKind::Descriptors,
                    limit,
                    used: open,
                    group: String::new(),
                    device: String::new(),
                });
            }
        }
        all
    }
}

/// Whether hardly any is left: one that is closed now and then is taken at once.
fn is_full(open: u64, limit: u64) -> bool {
    const HARDLY_ANY: u64 = 4;
    open.saturating_add(HARDLY_ANY.min(limit / 64)) >= limit
}

/// The processes that have more than a few files open, with how many.
fn processes() -> impl Iterator<Item = (u32, u64)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.take(MOST).filter_map(|pid| {
        let open = fs::metadata(format!("/proc/{pid}/fd")).ok()?.len();
        (open >= FEW).then_some((pid, open))
    })
}

/// How many files a process may have open.
fn allowed(pid: u32) -> Option<u64> {
    let limits = read_text(format!("/proc/{pid}/limits").as_ref())?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with as many files open as it may is found, and none with files left.
    #[test]
    fn a_process_without_files_left_is_found() {
        const OPEN_ALL: &str =
            "ulimit -n 10; exec 3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3; echo; read line";
        let mut full = std::process::Command::new("sh")
            .args(["-c", OPEN_ALL])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 1];
        std::io::Read::read_exact(full.stdout.as_mut().unwrap(), &mut line).unwrap();
        let mut files = OpenFiles::new();
        let found = files.look().into_iter().find(|of| of.pid == full.id());
        let own = files.look().iter().any(|of| of.pid == std::process::id());
        full.kill().unwrap();
        full.wait().unwrap();
        if fs::metadata("/proc/self/fd").unwrap().len() == 0 {
            eprintln!("NOT RUN: this kernel does not tell how many files a process has open");
            return;
        }
        let found = found.expect("it is found");
        assert_eq!((found.kind, found.limit), (LimitKind::Descriptors, 10));
        // Those that it inherited may lie beyond its limit.
        assert!(found.used >= 10, "{}", found.used);
        assert!(!own);
    }
}
