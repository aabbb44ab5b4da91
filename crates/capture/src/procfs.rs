//! What /proc tells of threads that nobody saw start.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::perf::hexadecimal;
use crate::population::{Member, Population};
use crate::records::{RawMapping, text};

/// Every thread and its process's executable mappings. What disappears while we look is left out.
pub(crate) fn population() -> Population {
    let mut population = Population::default();
    let mut build_ids = HashMap::new();
    for pid in numbers("/proc") {
        let mut mappings = mappings(pid);
        for mapping in mappings.iter_mut().filter(|mapping| mapping.is_file()) {
            mapping.build_id = build_ids
                .entry(mapping.path.clone())
                .or_insert_with(|| build_id(&mapped_file(pid, mapping.start, mapping.end)))
                .clone();
        }
        let is_kernel = mappings.is_empty() && is_kernel_thread(pid);
        let parent = stat_field(pid, 1)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        for tid in numbers(&format!("/proc/{pid}/task")) {
            let Ok(name) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) else {
                continue;
            };
            let name = text(&name).trim_end_matches('\n').to_owned();
            population.add(
                tid,
                Member {
                    pid,
                    name,
                    parent,
                    is_kernel,
                },
            );
        }
        let process = population.process(pid);
        process.command = command_line(pid).unwrap_or_default();
        process.mappings = mappings;
    }
    population
}

/// The build-id of a file, in hexadecimal; empty if it has none.
pub(crate) fn build_id(path: &Path) -> String {
    blazesym::helper::read_elf_build_id(path)
        .ok()
        .flatten()
        // A note of another kind with the same number may be taken for one; those are longer.
        .filter(|id| id.len() <= 20)
        .map(|id| hexadecimal(&id))
        .unwrap_or_default()
}

/// The command line of a process, its arguments divided by blanks; `None` if it has none or is gone.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = bytes
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The name that the kernel gives to its own code in a process.
pub(crate) const VDSO: &str = "[vdso]";

/// The kernel's own code that every process has, as it lies in this one; `None` if there is none.
pub(crate) fn vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let vdso = maps.lines().filter_map(mapping).find(|m| m.path == VDSO)?;
    let length = usize::try_from(vdso.end - vdso.start).ok()?;
    // SAFETY: the kernel mapped it readable into this process, where it stays for good.
    Some(unsafe { std::slice::from_raw_parts(vdso.start as *const u8, length) }.to_vec())
}

/// The file that process `pid` has mapped there, whatever became of its path.
pub(crate) fn mapped_file(pid: u32, start: u64, end: u64) -> PathBuf {
    format!("/proc/{pid}/map_files/{start:x}-{end:x}").into()
}

fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// A field of /proc/PID/stat, counted from the state (0) behind the name, which may hold anything.
fn stat_field(pid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    behind_name.split(' ').nth(field).map(str::to_owned)
}

/// The arguments of the system call that a thread is in; the first number is the call's.
pub(crate) fn system_call(tid: u32) -> Option<Vec<u64>> {
    let line = std::fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    let (call, rest) = line.split_once(' ')?;
    let arguments = rest.split_whitespace().map(|word| {
        let digits = word.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    std::iter::once(call.parse().ok())
        .chain(arguments)
        .collect()
}

/// The process that traces a thread; 0 for none.
pub(crate) fn tracer(tid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    line.and_then(|pid| pid.trim().parse().ok()).unwrap_or(0)
}

fn is_kernel_thread(pid: u32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    stat_field(pid, 6)
        .and_then(|flags| flags.parse::<u64>().ok())
        .is_some_and(|flags| flags & PF_KTHREAD != 0)
}

pub(crate) fn mappings(pid: u32) -> Vec<RawMapping> {
    let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else {
        return Vec::new();
    };
    String::from_utf8_lossy(&maps)
        .lines()
        .filter_map(mapping)
        .collect()
}

/// One line of /proc/PID/maps, if it is executable.
fn mapping(line: &str) -> Option<RawMapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let file_offset = words.next()?;
    let path = words.nth(2).unwrap_or("").trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    permissions.contains('x').then_some(())?;
    Some(RawMapping {
        start: number(start)?,
        end: number(end)?,
        file_offset: number(file_offset)?,
        path: path.to_owned(),
        build_id: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of maps is read with a path that has blanks; data and nonsense are passed over.
    #[test]
    fn maps_lines_are_read() {
        let line = "7f00-7fff r-xp 00001000 fe:00 77                         /a b/c.so";
        let read = mapping(line).unwrap();
        assert_eq!(
            (read.start, read.end, read.file_offset),
            (0x7f00, 0x7fff, 0x1000)
        );
        assert_eq!(read.path, "/a b/c.so");
        assert_eq!(mapping("7f00-7fff rw-p 00000000 00:00 0"), None);
        assert_eq!(mapping("nonsense"), None);
        assert_eq!(mapping("7f00-7fff r-xp 00000000 00:00 0").unwrap().path, "");
    }

    /// This very process is found with its threads and its own code.
    #[test]
    fn this_process_is_found() {
        let population = population();
        let pid = std::process::id();
        assert_eq!(population.threads[&pid].pid, pid);
        assert!(!population.threads[&pid].is_kernel);
        let here = this_process_is_found as *const () as u64;
        assert!(
            population.processes[&pid]
                .mappings
                .iter()
                .any(|m| (m.start..m.end).contains(&here))
        );
    }
}
