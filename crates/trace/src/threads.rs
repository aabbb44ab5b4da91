//! Who the threads and processes of a trace are, derived from its `lifecycle` table.
//!
//! A thread that other tables mention and `lifecycle` does not (its definition was lost) is
//! answered with a placeholder named "unknown", so that a lossy trace reads like any other.

use std::collections::BTreeMap;

use crate::command_line;
use crate::ids::{IDLE, KERNEL_PROCESS, NONE, Upid, Utid};
use crate::tables::{Lifecycle, LifecycleEvent};
use crate::words::LifecycleKind;

/// Name of the idle thread.
const IDLE_NAME: &str = "swapper/idle";
/// Name of the process of kernel threads.
const KERNEL_NAME: &str = "kernel";
const UNKNOWN: &str = "unknown";

/// The name of a thread, and of its process, that ended before anything could be learnt of it.
pub const NAMELESS: &str = "?";

/// What is known of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its id in the trace; [`NONE`] for the placeholder of an unknown thread.
    pub utid: Utid,
    /// Its process.
    pub upid: Upid,
    /// The kernel's thread id.
    pub tid: u32,
    /// The kernel's process id.
    pub pid: u32,
    /// Its names, each with the time from which it bore it (ns); never empty.
    pub names: Vec<(u64, String)>,
    /// When its life began, ns; 0 if it was there before. Where its start was lost, when it was
    /// first seen.
    pub start: u64,
    /// When it first executed a program, ns; none if the trace did not see it do so.
    pub executed: Option<u64>,
    /// When it exited, ns; none if it outlived the trace.
    pub end: Option<u64>,
    /// The thread that created it; [`NONE`] unknown.
    pub parent: Utid,
    /// Its exit status as wait(2) gives it, a decimal number, if it exited.
    pub exit_status: Option<String>,
    /// Whether the kernel chose its process to be killed, as memory had run out.
    pub out_of_memory: bool,
}

impl Thread {
    fn new(utid: Utid, upid: Upid, name: &str) -> Thread {
        Thread {
            utid,
            upid,
            tid: 0,
            pid: 0,
            names: vec![(0, name.into())],
            start: 0,
            executed: None,
            end: None,
            parent: NONE,
            exit_status: None,
            out_of_memory: false,
        }
    }

    /// Its latest name.
    pub fn name(&self) -> &str {
        self.names.last().map_or(UNKNOWN, |(_, name)| name)
    }

    /// The name that it bore at `ts`; its first one before that.
    pub fn name_at(&self, ts: u64) -> &str {
        let i = self.names.partition_point(|(from, _)| *from <= ts).max(1) - 1;
        self.names.get(i).map_or(UNKNOWN, |(_, name)| name)
    }

    /// Whether it is a thread of the kernel, the idle thread included.
    pub fn is_kernel(&self) -> bool {
        self.upid == KERNEL_PROCESS
    }

    /// The signal that it died of, if that was one of a fault or SIGKILL: not one by which programs ask
    /// each other to end.
    pub fn fatal_signal(&self) -> Option<&'static str> {
        // These numbers are the same on all machines that hangdog knows.
        match self.ending_signal()? {
            4 => Some("SIGILL"),
            6 => Some("SIGABRT"),
            7 => Some("SIGBUS"),
            8 => Some("SIGFPE"),
            9 => Some("SIGKILL"),
            11 => Some("SIGSEGV"),
            _ => None,
        }
    }

    /// By what it was killed, in words, where that was a fatal signal or the kernel.
    pub fn killed_by(&self) -> Option<&'static str> {
        let signal = self.fatal_signal()?;
        Some(match self.out_of_memory {
            true => "the kernel for lack of memory",
            false => signal,
        })
    }

    /// Whether it ended by a call of its own, and not by a signal, as far as that is known.
    pub fn exited(&self) -> bool {
        self.ending_signal() == Some(0)
    }

    /// The signal that it died of, 0 where it ended by itself: the low seven bits of a status of wait(2).
    fn ending_signal(&self) -> Option<u32> {
        let status: u32 = self.exit_status.as_ref()?.parse().ok()?;
        Some(status & 0x7f)
    }

    /// Whether it is its process's first thread.
    pub fn is_main(&self) -> bool {
        self.tid == self.pid
    }
}

/// What is known of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id in the trace; [`NONE`] for the placeholder of an unknown process.
    pub upid: Upid,
    /// The kernel's process id.
    pub pid: u32,
    /// Latest name of its main thread, or of its first known one.
    pub name: String,
    /// Latest command line or file that it executed, what it has written over that, or what its parent had when it
    /// forked; empty if not known.
    pub command: String,
    /// The command lines that it had, each with the moment at which it was seen, ns since the trace's start.
    pub commands: Vec<(u64, String)>,
    /// Its threads, ascending.
    pub threads: Vec<Utid>,
    /// The process that created it; [`NONE`] unknown.
    pub parent: Upid,
}

impl Process {
    fn new(upid: Upid, name: &str) -> Process {
        Process {
            upid,
            pid: 0,
            name: name.into(),
            command: String::new(),
            commands: Vec::new(),
            threads: Vec::new(),
            parent: NONE,
        }
    }

    /// The last command line that was seen by a moment, ns since the trace's start; empty if none was.
    pub fn command_at(&self, moment: u64) -> &str {
        let seen = self.commands.iter().rev().find(|(ts, _)| *ts <= moment);
        seen.map_or("", |(_, command)| command)
    }

    /// What an interpreter runs in it, where its own name does not tell: `server.py` of
    /// `python3 -u /srv/server.py`.
    pub fn script(&self) -> Option<&str> {
        let script = command_line::script(&self.command)?;
        let stem = script.rsplit_once('.').map_or(script, |(stem, _)| stem);
        // The kernel keeps 15 bytes of a name; a program may have written more behind it.
        let kept = |text: &str| text.bytes().take(15).collect::<Vec<u8>>();
        let name = self.name.as_bytes();
        let is_told = name.starts_with(&kept(script)) || name == kept(stem);
        (!is_told).then_some(script)
    }

    /// What it was asked to do, of a program with several uses: `commit` of `podman commit c image`.
    fn subcommand(&self) -> Option<&str> {
        let program = self.command.split(' ').next()?.rsplit('/').next()?;
        command_line::subcommand(&self.command).filter(|_| program == self.name)
    }

    /// What the process calls itself, where it has written that over its command line, cut to its first words:
    /// `postgres: background writer`, `nginx: worker process`.
    fn title(&self) -> Option<&str> {
        /// So many bytes of it are shown.
        const MOST: usize = 32;
        let rest = self.command.strip_prefix(self.name.as_str())?;
        let says = rest.strip_prefix(": ")?.trim();
        let end = self.command.len() - rest.len() + ": ".len() + says.len();
        let title = &self.command[..end];
        if says.is_empty() || title.len() <= MOST {
            return (!says.is_empty()).then_some(title);
        }
        let cut = title.char_indices().take_while(|(at, _)| *at <= MOST);
        let begins = self.name.len() + ": ".len();
        let (at, _) = { cut }
            .filter(|&(at, letter)| letter == ' ' && at > begins)
            .last()?;
        Some(title[..at].trim_end())
    }

    /// What a person knows it by: its name, with what it runs or calls itself where that tells more.
    pub fn label(&self) -> String {
        match (self.script(), self.title()) {
            (Some(script), _) => format!("{} {script}", self.name),
            (None, Some(title)) => title.to_owned(),
            (None, None) => match self.subcommand() {
                Some(subcommand) => format!("{} {subcommand}", self.name),
                None => self.name.clone(),
            },
        }
    }
}

/// All threads and processes of a trace.
#[derive(Clone, Debug)]
pub struct Threads {
    /// By ascending utid.
    threads: Vec<Thread>,
    /// By ascending upid.
    processes: Vec<Process>,
    unknown_thread: Thread,
    unknown_process: Process,
}

impl Threads {
    /// Derives threads and processes from the steps of their lives.
    pub fn new(lifecycle: &Lifecycle) -> Threads {
        let mut threads = BTreeMap::from([(IDLE, Thread::new(IDLE, KERNEL_PROCESS, IDLE_NAME))]);
        let mut processes =
            BTreeMap::from([(KERNEL_PROCESS, Process::new(KERNEL_PROCESS, KERNEL_NAME))]);
        for i in 0..lifecycle.len() {
            let event = lifecycle.row(i);
            if event.thread != NONE && event.thread != IDLE {
                live(&mut threads, &mut processes, event);
            }
        }
        for thread in threads.values() {
            let parent = threads
                .get(&thread.parent)
                .map_or(NONE, |parent| parent.upid);
            let process = processes
                .entry(thread.upid)
                .or_insert_with(|| Process::new(thread.upid, UNKNOWN));
            if thread.upid != KERNEL_PROCESS {
                if thread.is_main() || process.threads.is_empty() {
                    process.name = thread.name().into();
                    process.pid = thread.pid;
                }
                if parent != thread.upid && (thread.is_main() || process.parent == NONE) {
                    process.parent = parent;
                }
            }
            process.threads.push(thread.utid);
        }
        Threads {
            threads: threads.into_values().collect(),
            processes: processes.into_values().collect(),
            unknown_thread: Thread::new(NONE, NONE, UNKNOWN),
            unknown_process: Process::new(NONE, UNKNOWN),
        }
    }

    /// The thread, or a placeholder named "unknown" with utid [`NONE`].
    pub fn thread(&self, utid: Utid) -> &Thread {
        self.known(utid).unwrap_or(&self.unknown_thread)
    }

    /// The thread, if it is known.
    pub fn known(&self, utid: Utid) -> Option<&Thread> {
        at_id(&self.threads, utid, |thread| thread.utid)
    }

    /// The process, or a placeholder named "unknown" with upid [`NONE`].
    pub fn process(&self, upid: Upid) -> &Process {
        self.known_process(upid).unwrap_or(&self.unknown_process)
    }

    /// The process, if it is known.
    pub fn known_process(&self, upid: Upid) -> Option<&Process> {
        at_id(&self.processes, upid, |process| process.upid)
    }

    /// The process of a thread, or the placeholder.
    pub fn process_of(&self, utid: Utid) -> &Process {
        self.process(self.thread(utid).upid)
    }

    /// Every thread, the idle thread first, by ascending utid.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Thread> {
        self.threads.iter()
    }

    /// Every process, the kernel's first, by ascending upid.
    pub fn processes(&self) -> impl DoubleEndedIterator<Item = &Process> + ExactSizeIterator {
        self.processes.iter()
    }

    /// The threads that a person means by `selector`, ascending; empty if nothing fits.
    ///
    /// - A number is a tid (several threads if the kernel used it again).
    /// - A name is a thread's. Threads inherit their process's name: if a main thread has it, that
    ///   is meant, and not those that inherited it.
    /// - `process/thread` names both, each by name or number; `process/` means all its threads.
    ///
    /// Names are matched exactly; only where none fits, a name may begin with the selector.
    pub fn find(&self, selector: &str) -> Vec<Utid> {
        let selector = selector.trim();
        let exact: fn(&str, &str) -> bool = |name, wanted| name == wanted;
        let prefix: fn(&str, &str) -> bool = |name, wanted| name.starts_with(wanted);
        if selector.is_empty() {
            return Vec::new();
        }
        for fits in [exact, prefix] {
            // Names of kernel threads contain slashes too (kworker/0:1): the whole comes first.
            let mut found = self.find_alone(selector, fits);
            if let (true, Some((process, thread))) = (found.is_empty(), selector.split_once('/')) {
                found = self.find_pair(process, thread, fits);
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The processes that a person means: a pid, the tid of a thread, a name, where none fits how a name
    /// begins, and where none does the file that one runs or that its command line names first:
    /// `python3 server.py` is `server.py`.
    pub fn find_processes(&self, selector: &str) -> Vec<Upid> {
        let selector = selector.trim();
        let number: Option<u32> = selector.parse().ok();
        if selector.is_empty() {
            return Vec::new();
        }
        let has_thread = |process: &Process| {
            let mut threads = process.threads.iter();
            threads.any(|&thread| number == Some(self.thread(thread).tid))
        };
        let ways: [&dyn Fn(&Process) -> bool; 5] = [
            &|process| number == Some(process.pid),
            &has_thread,
            &|process| process.name == selector,
            &|process| process.name.starts_with(selector),
            &|process| command_line::runs(&process.command, selector),
        ];
        let select = |fits: &dyn Fn(&Process) -> bool| -> Vec<Upid> {
            let fitting = self.processes().filter(|process| fits(process));
            fitting.map(|process| process.upid).collect()
        };
        let found = ways.into_iter().map(select);
        found
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    fn find_alone(&self, wanted: &str, fits: fn(&str, &str) -> bool) -> Vec<Utid> {
        if let Ok(number) = wanted.parse::<u32>() {
            let by_tid = self.select(|t| t.tid == number);
            if !by_tid.is_empty() {
                return by_tid;
            }
        }
        let named = self.select(|t| fits(t.name(), wanted));
        let main: Vec<Utid> = named
            .iter()
            .copied()
            .filter(|&t| self.thread(t).is_main())
            .collect();
        if main.is_empty() { named } else { main }
    }

    fn find_pair(&self, process: &str, thread: &str, fits: fn(&str, &str) -> bool) -> Vec<Utid> {
        if process.is_empty() {
            return Vec::new();
        }
        let (pid, tid) = (process.parse::<u32>().ok(), thread.parse::<u32>().ok());
        self.select(|t| {
            (pid == Some(t.pid) || fits(&self.process(t.upid).name, process))
                && (thread.is_empty() || tid == Some(t.tid) || fits(t.name(), thread))
        })
    }

    fn select(&self, fits: impl Fn(&Thread) -> bool) -> Vec<Utid> {
        self.threads
            .iter()
            .filter(|t| t.utid != IDLE && fits(t))
            .map(|t| t.utid)
            .collect()
    }
}

/// The entry with an id in a list that ascends by ids, most of which lie at their own index.
fn at_id<T>(all: &[T], id: u32, id_of: impl Fn(&T) -> u32) -> Option<&T> {
    match all.get(id as usize) {
        Some(found) if id_of(found) == id => Some(found),
        _ => all.get(all.binary_search_by_key(&id, id_of).ok()?),
    }
}

/// Applies one step of a life.
fn live(
    threads: &mut BTreeMap<Utid, Thread>,
    processes: &mut BTreeMap<Upid, Process>,
    event: LifecycleEvent,
) {
    let kind = LifecycleKind::from(event.kind);
    let inherited = threads
        .get(&event.parent)
        .filter(|_| kind == LifecycleKind::Forked)
        .and_then(|parent| processes.get(&parent.upid))
        .map(|parent| parent.command.clone());
    let process = processes
        .entry(event.process)
        .or_insert_with(|| Process::new(event.process, UNKNOWN));
    let has_command = matches!(
        kind,
        LifecycleKind::Seen | LifecycleKind::Executed | LifecycleKind::Renamed
    );
    if has_command && !event.detail.is_empty() {
        process.command = event.detail.clone();
        process.commands.push((event.ts, event.detail.clone()));
    } else if let Some(command) = inherited.filter(|_| process.command.is_empty()) {
        process.command = command;
    }
    // The kernel keeps 15 bytes of a name, and cuts some behind a blank: "process reaper (pid ...)".
    let name = match event.name.trim_end() {
        "" => event.name.as_str(),
        name => name,
    };
    let thread = threads.entry(event.thread).or_insert_with(|| Thread {
        names: vec![(event.ts, name.to_owned())],
        start: event.ts,
        ..Thread::new(event.thread, event.process, name)
    });
    thread.upid = event.process;
    thread.tid = event.tid;
    thread.pid = event.pid;
    if event.parent != NONE {
        thread.parent = event.parent;
    }
    if thread.name() != name && !name.is_empty() {
        thread.names.push((event.ts, name.to_owned()));
    }
    if kind == LifecycleKind::Executed {
        thread.executed.get_or_insert(event.ts);
    }
    thread.out_of_memory |= kind == LifecycleKind::OutOfMemory;
    if kind == LifecycleKind::Exited {
        thread.end = Some(event.ts);
        thread.exit_status = Some(event.detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process has written over its command line tells what it does, as far as it is short; a command
    /// line that is one tells no more than its script.
    #[test]
    fn labels() {
        let label = |name: &str, command: &str| {
            let process = Process {
                command: command.to_owned(),
                ..Process::new(1, name)
            };
            process.label()
        };
        assert_eq!(label("postgres", "postgres: logger "), "postgres: logger");
        assert_eq!(label("podman", "/bin/podman commit c i"), "podman commit");
        // A copy of it that became another program.
        assert_eq!(label("conmon", "podman commit c i"), "conmon");
        let launcher = "postgres: logical replication launcher ";
        assert_eq!(label("postgres", launcher), "postgres: logical replication");
        assert_eq!(
            label("nginx", "nginx: worker process"),
            "nginx: worker process"
        );
        let long = format!("sshd: {}", "x".repeat(80));
        assert_eq!(label("sshd", &long), "sshd");
        assert_eq!(label("postgres", "postgres: "), "postgres");
        assert_eq!(
            label("python3", "python3 -u /srv/server.py"),
            "python3 server.py"
        );
        assert_eq!(label("cat", "cat file: b"), "cat");
    }

    /// A name ends where its text does.
    #[test]
    fn blanks_at_the_end_of_a_name_are_cut() {
        let mut lifecycle = Lifecycle::default();
        for (id, name) in [(1, "process reaper "), (2, " ")] {
            lifecycle.push(LifecycleEvent {
                ts: 0,
                kind: LifecycleKind::Seen.into(),
                thread: id,
                process: 1,
                tid: 100 + id,
                pid: 100,
                parent: NONE,
                name: name.into(),
                detail: String::new(),
            });
        }
        let threads = Threads::new(&lifecycle);
        assert_eq!(threads.thread(1).name(), "process reaper");
        assert_eq!(threads.thread(2).name(), " ");
    }

    /// A worker that was forked has its parent's command line until it is found to have written another one over it.
    #[test]
    fn a_worker_is_named_by_what_it_wrote_over_its_command_line() {
        let mut lifecycle = Lifecycle::default();
        let steps = [
            (LifecycleKind::Executed, 1, NONE, "/usr/sbin/nginx -c f"),
            (LifecycleKind::Forked, 2, 1, ""),
            (LifecycleKind::Renamed, 2, NONE, "nginx: worker process"),
        ];
        for (ts, (kind, id, parent, detail)) in steps.into_iter().enumerate() {
            lifecycle.push(LifecycleEvent {
                ts: ts as u64,
                kind: kind.into(),
                thread: id,
                process: id,
                tid: 100 + id,
                pid: 100 + id,
                parent,
                name: "nginx".into(),
                detail: detail.into(),
            });
        }
        let threads = Threads::new(&lifecycle);
        assert_eq!(threads.process(1).command, "/usr/sbin/nginx -c f");
        assert_eq!(threads.process(2).command, "nginx: worker process");
    }
}
