//! What /proc says of threads whose start was not recorded.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use hangdog_symbols::place::Place;
use hangdog_symbols::text::text;
use hangdog_symbols::{Reader, maps};

use crate::population::{Member, Population};
use crate::records::RawMapping;

/// Every thread and its process's executable mappings. What disappears while we look is left out.
pub(crate) fn population() -> Population {
    let mut population = Population::default();
    for pid in numbers("/proc") {
        let mappings = mappings(pid);
        let is_kernel = mappings.is_empty() && is_kernel_thread(pid);
        let stat = stat(pid).unwrap_or_default();
        let parent = (stat.get(1))
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let threads = numbers(&format!("/proc/{pid}/task"));
        // It only waits to be noticed by its parent, and nothing else is to be waited for in it.
        if threads.len() <= 1 && stat.first().is_some_and(|state| state == "Z") {
            continue;
        }
        for tid in threads {
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
    identify(&mut population);
    population
}

/// The threads of the processes and of all that descend from them, by tid.
pub(crate) fn family(of: &HashSet<u32>) -> HashSet<u32> {
    let parent = |pid| stat(pid)?.get(1)?.parse().ok();
    let parents: HashMap<u32, u32> = numbers("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let belongs = |pid: u32| {
        let mut at = pid;
        // No line is longer than there are processes, also where a number was given anew meanwhile.
        (0..=parents.len()).any(|_| {
            let is_one = of.contains(&at);
            at = parents.get(&at).copied().unwrap_or(0);
            is_one
        })
    };
    (parents.keys().filter(|&&pid| belongs(pid)))
        .flat_map(|pid| numbers(&format!("/proc/{pid}/task")))
        .collect()
}

/// Finds the build-ids of all that is mapped; each file is asked once.
fn identify(population: &mut Population) {
    let mut files: HashMap<&str, Place> = HashMap::new();
    for (&pid, company) in &population.processes {
        for mapping in company.mappings.iter().filter(|mapping| mapping.is_file()) {
            files
                .entry(&mapping.path)
                .or_insert_with(|| mapped_file(pid, mapping));
        }
    }
    let files: Vec<_> = (files.into_iter())
        .map(|(path, place)| (path.to_owned(), place))
        .collect();
    let ids = build_ids(&files);
    let ids: HashMap<&str, String> = files
        .iter()
        .map(|(path, _)| path.as_str())
        .zip(ids)
        .collect();
    let companies = population.processes.values_mut();
    for mapping in companies.flat_map(|company| &mut company.mappings) {
        if let Some(id) = ids.get(mapping.path.as_str()) {
            mapping.build_id.clone_from(id);
        }
    }
}

/// The build-ids of files, in hexadecimal; empty for one that has none, or that cannot be read in time.
/// With each place stands the path that the file has.
pub(crate) fn build_ids(files: &[(String, Place)]) -> Vec<String> {
    static READER: Mutex<Option<Reader>> = Mutex::new(None);
    let mut reader = READER.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = reader.get_or_insert_default().build_ids(files).into_iter();
    // A note of another kind with the same number may be taken for one; those are longer.
    let id = |id: String| if id.len() <= 40 { id } else { String::new() };
    ids.map(id).collect()
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

/// The command lines of these processes, of each the first 4 KiB, as far as they can be read in 0.2 s. A thread of its own
/// reads them, because a read blocks while another thread holds the process's memory map. As long as one read is
/// blocked, later calls return nothing.
pub(crate) fn command_lines(pids: Vec<u32>) -> HashMap<u32, String> {
    const PATIENCE: Duration = Duration::from_millis(200);
    const LONGEST: usize = 4096;
    static IS_READING: AtomicBool = AtomicBool::new(false);
    if pids.is_empty() || IS_READING.swap(true, Ordering::AcqRel) {
        return HashMap::new();
    }
    let (send, lines) = mpsc::channel();
    let read = move || {
        for pid in pids {
            let Some(mut line) = command_line(pid) else {
                continue;
            };
            line.truncate(line.floor_char_boundary(LONGEST));
            // Nobody listens any more where it took too long.
            if send.send((pid, line)).is_err() {
                break;
            }
        }
        IS_READING.store(false, Ordering::Release);
    };
    // Without a thread there are no command lines, and the recording is saved all the same.
    if std::thread::Builder::new().spawn(read).is_err() {
        IS_READING.store(false, Ordering::Release);
    }
    let end = Instant::now() + PATIENCE;
    let next = || {
        lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
            .ok()
    };
    std::iter::from_fn(next).collect()
}

/// The name that the kernel gives to its own code in a process.
pub(crate) const VDSO: &str = "[vdso]";

/// The kernel's own code that every process has, as it lies in this one; `None` if there is none.
pub(crate) fn vdso() -> Option<Vec<u8>> {
    let maps = maps::executable(std::process::id());
    let vdso = maps.iter().find(|mapping| mapping.path == VDSO)?;
    let length = usize::try_from(vdso.end - vdso.start).ok()?;
    // SAFETY: the kernel mapped it readable into this process, where it stays for good.
    Some(unsafe { std::slice::from_raw_parts(vdso.start as *const u8, length) }.to_vec())
}

/// The file that process `pid` has mapped there, whatever became of its path.
pub(crate) fn mapped_file(pid: u32, mapping: &RawMapping) -> Place {
    Place::Mapped {
        pid,
        start: mapping.start,
        end: mapping.end,
    }
}

pub(crate) fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// The fields of /proc/PID/stat from the state on, which is behind the name, that may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    Some(behind_name.split(' ').map(str::to_owned).collect())
}

/// The arguments of the system call that a thread is in; the first number is the call's.
pub(crate) fn system_call(tid: u32) -> Option<Vec<u64>> {
    let line = fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    let (call, rest) = line.split_once(' ')?;
    let call = call.parse().ok()?;
    Some(std::iter::once(call).chain(hexadecimal(rest)?).collect())
}

/// The user stack pointer of a thread that is off its CPU, in a system call or not: in a page fault, say.
pub(crate) fn stack_pointer(tid: u32) -> Option<u64> {
    stack_pointer_of(&fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?)
}

/// Of a line as `/proc/TID/syscall` has it: the number of the call, six arguments, and the stack pointer and
/// instruction pointer; outside of a call -1 and the two pointers; on a CPU the word `running`.
pub(crate) fn stack_pointer_of(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(' ')?;
    hexadecimal(rest)?.iter().rev().nth(1).copied()
}

fn hexadecimal(words: &str) -> Option<Vec<u64>> {
    let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    words.split_whitespace().map(number).collect()
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
    stat(pid)
        .and_then(|stat| stat.get(6)?.parse::<u64>().ok())
        .is_some_and(|flags| flags & PF_KTHREAD != 0)
}

pub(crate) fn mappings(pid: u32) -> Vec<RawMapping> {
    maps::executable(pid)
        .into_iter()
        .map(RawMapping::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The stack pointer comes last but one, whether the thread is in a call or not.
    #[test]
    fn the_stack_pointer_is_told_outside_of_calls_too() {
        let call = "0 0x3 0x7f8dbeb3c000 0x20000 0x7f8dbebc8b60 0xffffffff 0x0 0x7ffd0ec14348 0x7f8dbecb12ad\n";
        assert_eq!(stack_pointer_of(call), Some(0x7ffd_0ec1_4348));
        let fault = "-1 0x7ffd0ec14348 0x7f8dbecb12ad\n";
        assert_eq!(stack_pointer_of(fault), Some(0x7ffd_0ec1_4348));
        assert_eq!(stack_pointer_of("running\n"), None);
        assert_eq!(stack_pointer_of("-1 0x7ffd0ec14348\n"), None);
        assert_eq!(stack_pointer_of(""), None);
    }
}
