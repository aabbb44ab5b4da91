//! Raw records become rows: tids become threads, addresses become frames, in the order of time.
//!
//! A tid means a thread only together with a moment, so events and definitions are merged by time
//! before either is read. A record may be late by as long as its writer was held up; what is newer
//! than the cutoff waits for the next round.

mod handoffs;
mod paging;

use hangdog_symbols::{Namer, Origin, Process};
use hangdog_trace::Tables;
use hangdog_trace::ids::{IDLE, KERNEL_PROCESS, NO_STACK, NONE, StackId, Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::{
    Count, Descriptor, Flag, FlagAccess, FoundWaiting, Frames, Goroutine, Interrupt, Io,
    LifecycleEvent, Limit, Mark, Sample, Socket, Switch, SystemCall, Transfer, Wake,
};
use hangdog_trace::threads::NAMELESS;
use hangdog_trace::words::{Colour, IoOperation, Left, LifecycleKind};
use std::collections::HashMap;

use crate::code::{AddressSpace, Code};
use crate::event::{self, Event, Happening, Probed};
use crate::flag;
use crate::marker::{self, TextMarks};
use crate::marks::RawMark;
use crate::population::Population;
use crate::probe::Probe;
use crate::procfs;
use crate::records::{Definition, What};
use crate::snapshots::Taken;
use crate::system::unix_ns;

struct ThreadState {
    tid: u32,
    process: Upid,
    name: String,
    exited: bool,
    /// Its start was seen; a fork of its tid is another thread's.
    forked: bool,
}

struct ProcessState {
    pid: u32,
    /// When it was made, ns of CLOCK_MONOTONIC, if that was seen.
    born: Option<u64>,
    /// It was forked and has executed no program since.
    is_forked: bool,
    /// It had written a title over its command line.
    has_title: bool,
    space: AddressSpace,
}

/// What is not yet old enough to be read.
#[derive(Default)]
pub(crate) struct Pending {
    pub events: Vec<Event>,
    pub marks: Vec<RawMark>,
    pub definitions: Vec<Definition>,
}

/// What is waited for in shared memory may be any small number. Tids below this are given only once,
/// to what starts first.
const LATE_TIDS: u32 = 300;

/// The kernel returns an errno as a negative number down to this; what is below is a result.
const LAST_ERROR: u16 = 4095;

/// Who and what exists, and the rows made so far.
pub(crate) struct World {
    /// The trace's time 0, ns of CLOCK_MONOTONIC.
    start: u64,
    threads: Vec<ThreadState>,
    processes: Vec<ProcessState>,
    /// tid → utid; a plain array, since every event looks two up.
    by_tid: Vec<Utid>,
    by_pid: HashMap<u32, Upid>,
    /// Who holds the file lock that a thread waits for.
    file_locks: HashMap<Utid, Utid>,
    /// What a thread waited for that was found waiting for several things at once, and by which call:
    /// while it goes on to wait by that, nobody looks again.
    polled: HashMap<Utid, (i16, u64)>,
    /// The kernel side's stack ids → ours.
    stacks: HashMap<u32, StackId>,
    /// What faults and pages refer to.
    memory: paging::Memory,
    /// Marks of threads that no process has that marks so.
    pub strange_marks: u64,
    /// The probes of programs by number, with the codes of their marks.
    probes: Vec<(Probe, u32)>,
    /// What programs wrote into trace_marker.
    texts: TextMarks,
    pub code: Code,
    pub tables: Tables,
}

impl World {
    /// A world in which `population` is alive at `start`.
    pub(crate) fn new(start: u64, population: &Population) -> World {
        let mut world = World {
            start,
            threads: Vec::new(),
            processes: Vec::new(),
            by_tid: Vec::new(),
            by_pid: HashMap::new(),
            file_locks: HashMap::new(),
            polled: HashMap::new(),
            stacks: HashMap::new(),
            memory: paging::Memory::default(),
            strange_marks: 0,
            probes: Vec::new(),
            texts: TextMarks::default(),
            code: Code::default(),
            tables: Tables::default(),
        };
        world.add_process(0);
        world.add_thread(0, KERNEL_PROCESS, "idle");
        world.note(start, LifecycleKind::Seen, IDLE, NONE, String::new());

        let mut tids: Vec<_> = population.threads.keys().copied().collect();
        // Leaders first: a process is named by them.
        tids.sort_unstable_by_key(|tid| (population.threads[tid].pid != *tid, *tid));
        let found: Vec<_> = (tids.into_iter())
            .map(|tid| {
                let member = &population.threads[&tid];
                let process = world.process(member.pid, member.is_kernel);
                (tid, world.add_thread(tid, process, &member.name))
            })
            .collect();
        // Only now, since a parent may have the greater number.
        for (tid, thread) in found {
            let member = &population.threads[&tid];
            let command = match population.processes.get(&member.pid) {
                Some(company) if tid == member.pid => company.command.clone(),
                _ => String::new(),
            };
            let parent = world.known(member.parent).unwrap_or(NONE);
            world.note(start, LifecycleKind::Seen, thread, parent, command);
        }
        for (&pid, company) in &population.processes {
            if let Some(&process) = world.by_pid.get(&pid) {
                let state = &mut world.processes[process as usize];
                state.is_forked = company.is_forked;
                state.has_title = is_title(&company.command);
            }
            for mapping in &company.mappings {
                world.map(start, pid, mapping);
            }
        }
        world
    }

    /// Reads everything in `pending` that is older than `cutoff`.
    pub(crate) fn advance(&mut self, pending: &mut Pending, cutoff: u64) {
        // Both are runs of sorted records, one run a CPU, which the stable sort makes use of.
        pending.events.sort_by_key(|event| event.ts);
        pending.definitions.sort_by_key(|definition| definition.ts);
        let ready = pending.events.partition_point(|event| event.ts < cutoff);
        let defined = pending
            .definitions
            .partition_point(|definition| definition.ts < cutoff);
        // Numbers of functions are never used again. A stack with an earlier time may have
        // one, where two CPUs met the function at the same moment.
        for definition in &pending.definitions {
            if let What::Function {
                number, function, ..
            } = &definition.what
            {
                self.code.function(*number, function, &mut self.tables);
            }
        }
        pending.marks.sort_by_key(|mark| mark.ts);
        let marked = pending.marks.partition_point(|mark| mark.ts < cutoff);
        let mut marks = pending.marks.drain(..marked).peekable();
        let mut definitions = pending.definitions.drain(..defined).peekable();
        let mut mark_until = |world: &mut World, ts: u64| {
            while let Some(mark) = marks.next_if(|mark| mark.ts < ts) {
                world.mark(&mark);
            }
        };
        for event in pending.events.drain(..ready) {
            while let Some(definition) = definitions.next_if(|d| d.ts <= event.ts) {
                mark_until(self, definition.ts);
                self.define(definition);
            }
            // These make marks themselves.
            if let Happening::Probed(_) | Happening::Written(_) = event.what {
                mark_until(self, event.ts);
            }
            self.happen(&event);
        }
        for definition in definitions {
            mark_until(self, definition.ts);
            self.define(definition);
        }
        mark_until(self, cutoff);
    }

    /// A mark becomes a row, if the thread is one of the process in whose memory it was.
    fn mark(&mut self, mark: &RawMark) {
        let thread = self.known(mark.tid).filter(|&thread| {
            let process = self.threads[thread as usize].process;
            process != KERNEL_PROCESS && self.processes[process as usize].pid == mark.pid
        });
        let Some(thread) = thread else {
            self.strange_marks += 1;
            return;
        };
        let [arg0, arg1, arg2, arg3] = mark.args;
        self.tables.marks.push(Mark {
            ts: self.since_start(mark.ts),
            thread,
            code: mark.code,
            kind: mark.kind,
            pairing: mark.pairing,
            colour: mark.colour,
            arg0,
            arg1,
            arg2,
            arg3,
        });
    }

    /// A snapshot of memory becomes rows. Of a process that nobody announced yet there are none.
    pub(crate) fn keep(&mut self, taken: &Taken) {
        let ts = self.since_start(taken.ts);
        let (shares, files) = (&mut self.tables.memory, &mut self.tables.cached_files);
        let upid = |pid| self.by_pid.get(&pid).copied();
        taken.snapshot.write(ts, upid, shares, files);
    }

    /// Says which probes there are, with the codes of their marks.
    pub(crate) fn probe(&mut self, probes: Vec<(Probe, u32)>) {
        self.probes = probes;
    }

    /// What a probe of a program tells becomes a mark.
    fn probed(&mut self, ts: u64, thread: Utid, probed: &Probed) {
        let Some((probe, code)) = self.probes.get(usize::from(probed.probe)) else {
            return;
        };
        let (kind, pairing, [arg0, arg1, arg2, arg3]) = probe.mark(probed);
        self.tables.marks.push(Mark {
            ts,
            thread,
            code: *code,
            kind: kind.into(),
            pairing: pairing.into(),
            colour: Colour::None.into(),
            arg0,
            arg1,
            arg2,
            arg3,
        });
    }

    /// What a thread wrote into trace_marker becomes a mark.
    fn written(&mut self, ts: u64, thread: Utid, text: &[u8; marker::LONGEST]) {
        if text[0] == 0 {
            self.strange_marks += 1;
        }
        let names = &mut self.tables.mark_names;
        let Some(mark) = self.texts.read(thread, text, names) else {
            return;
        };
        self.tables.marks.push(Mark {
            ts,
            thread,
            code: mark.code,
            kind: mark.kind.into(),
            pairing: mark.pairing.into(),
            colour: Colour::None.into(),
            arg0: mark.argument,
            arg1: 0,
            arg2: 0,
            arg3: 0,
        });
    }

    /// Says which flags are watched from `ts` on.
    pub(crate) fn watch(&mut self, flags: &[flag::Flag], ts: u64) {
        let ts = self.since_start(ts);
        for (number, it) in flags.iter().enumerate() {
            let process = self.process(it.pid, false);
            self.tables.flags.push(Flag {
                flag: number as u32,
                ts,
                process,
                address: it.address,
                size: it.size,
                memory: it.memory as u32,
                reads: flag::watches_reads(flags, it),
                name: it.name.clone(),
            });
        }
    }

    /// The rows made so far, with the names of all frames. `progress` is told how many frames of
    /// how many are done.
    pub(crate) fn into_named(
        mut self,
        namer: &mut Namer,
        progress: impl FnMut(usize, usize),
    ) -> Tables {
        let frames = std::mem::take(&mut self.code.frames);
        self.name(namer, &frames, progress);
        self.tables
    }

    /// Names these frames.
    pub(crate) fn name(
        &mut self,
        namer: &mut Namer,
        frames: &Frames,
        progress: impl FnMut(usize, usize),
    ) {
        let World {
            code,
            processes,
            tables,
            ..
        } = self;
        let process = |upid: Upid| {
            let state = processes.get(upid as usize)?;
            Some(Process {
                pid: state.pid,
                started_unix_ns: state.born.map(unix_ns),
            })
        };
        let origin = Origin {
            same_boot: true,
            process: &process,
            mapped_from: &|module| code.mapped_from.get(&module).copied(),
        };
        namer.name(
            &code.modules,
            frames,
            &origin,
            &mut tables.symbols,
            progress,
        );
    }

    fn since_start(&self, ts: u64) -> u64 {
        ts.saturating_sub(self.start)
    }

    fn known(&self, tid: u32) -> Option<Utid> {
        self.by_tid
            .get(tid as usize)
            .copied()
            .filter(|&utid| utid != NONE)
    }

    fn add_process(&mut self, pid: u32) -> Upid {
        let process = self.processes.len() as Upid;
        self.processes.push(ProcessState {
            pid,
            born: None,
            is_forked: false,
            has_title: false,
            space: AddressSpace::default(),
        });
        self.by_pid.insert(pid, process);
        process
    }

    fn process(&mut self, pid: u32, is_kernel: bool) -> Upid {
        if is_kernel {
            return KERNEL_PROCESS;
        }
        match self.by_pid.get(&pid) {
            Some(&process) => process,
            None => self.add_process(pid),
        }
    }

    fn add_thread(&mut self, tid: u32, process: Upid, name: &str) -> Utid {
        let thread = self.threads.len() as Utid;
        self.threads.push(ThreadState {
            tid,
            process,
            name: name.to_owned(),
            exited: false,
            forked: false,
        });
        self.point(tid, thread);
        thread
    }

    fn point(&mut self, tid: u32, thread: Utid) {
        let at = tid as usize;
        if self.by_tid.len() <= at {
            self.by_tid.resize(at + 1, NONE);
        }
        self.by_tid[at] = thread;
    }

    fn note(&mut self, ts: u64, kind: LifecycleKind, thread: Utid, parent: Utid, detail: String) {
        let ts = self.since_start(ts);
        let state = &self.threads[thread as usize];
        let pid = match state.process {
            KERNEL_PROCESS => state.tid,
            process => self.processes[process as usize].pid,
        };
        self.tables.lifecycle.push(LifecycleEvent {
            ts,
            kind: kind.into(),
            thread,
            process: state.process,
            tid: state.tid,
            pid,
            parent,
            name: state.name.clone(),
            detail,
        });
    }

    /// The thread that a tid means now; one that nobody announced is noted as seen.
    fn thread(&mut self, ts: u64, tid: u32) -> Utid {
        if let Some(thread) = self.known(tid) {
            return thread;
        }
        let process = self.process(tid, false);
        let thread = self.add_thread(tid, process, NAMELESS);
        self.note(ts, LifecycleKind::Seen, thread, NONE, String::new());
        thread
    }

    fn map(&mut self, ts: u64, pid: u32, mapping: &crate::records::RawMapping) {
        let process = self.process(pid, false);
        let ts = self.since_start(ts);
        let space = &mut self.processes[process as usize].space;
        self.code.map(ts, process, space, mapping, &mut self.tables);
    }

    fn define(&mut self, definition: Definition) {
        let ts = definition.ts;
        match definition.what {
            What::Stack {
                id,
                pid,
                frames,
                end,
            } => {
                let (process, space) = match pid {
                    0 => (KERNEL_PROCESS, None),
                    pid => {
                        let process = self.process(pid, false);
                        (process, Some(&self.processes[process as usize].space))
                    }
                };
                let stack = self
                    .code
                    .stack(process, space, &frames, end, &mut self.tables);
                self.stacks.insert(id, stack);
            }
            What::Fork {
                tid,
                pid,
                parent,
                name,
                is_kernel,
                ..
            } => {
                self.fork(ts, (tid, pid), parent, &name, is_kernel);
            }
            What::Exec {
                old_tid,
                pid,
                name,
                command,
                ..
            } => {
                let thread = self.thread(ts, old_tid);
                if old_tid != pid {
                    self.point(pid, thread);
                    self.by_tid[old_tid as usize] = NONE;
                }
                let state = &mut self.threads[thread as usize];
                state.tid = pid;
                state.name = name;
                let process = &mut self.processes[state.process as usize];
                process.is_forked = false;
                process.has_title = false;
                self.note(ts, LifecycleKind::Executed, thread, NONE, command);
            }
            What::Rename { tid, name } => {
                let thread = self.thread(ts, tid);
                let state = &mut self.threads[thread as usize];
                if state.name != name {
                    state.name = name;
                    self.note(ts, LifecycleKind::Renamed, thread, NONE, String::new());
                }
            }
            What::Exit { tid, status, .. } => {
                let thread = self.thread(ts, tid);
                self.threads[thread as usize].exited = true;
                self.note(ts, LifecycleKind::Exited, thread, NONE, status.to_string());
            }
            What::OutOfMemory { pid } => {
                let thread = self.thread(ts, pid);
                self.note(ts, LifecycleKind::OutOfMemory, thread, NONE, String::new());
            }
            What::ClearMappings { pid } => {
                let process = self.process(pid, false);
                self.processes[process as usize].space.clear();
            }
            What::Socket(socket) => {
                // A flight's sockets may be older than all that is known of who lived.
                let process = |pid| self.by_pid.get(&pid).copied().unwrap_or(NONE);
                let row = Socket {
                    ts: self.since_start(ts),
                    object: socket.object,
                    process: process(socket.pid),
                    peer: socket.peer,
                    peer_process: match socket.peer_pid {
                        0 => NONE,
                        pid => process(pid),
                    },
                    namespace: socket.namespace,
                    connecting: socket.connecting,
                    local: socket.local,
                    remote: socket.remote,
                };
                self.tables.sockets.push(row);
            }
            What::Open(open) => {
                if let Some(&process) = self.by_pid.get(&open.pid) {
                    self.tables.descriptors.push(Descriptor {
                        ts: self.since_start(ts),
                        process,
                        object: open.object,
                        kind: open.kind,
                        access: open.access,
                        unread: open.unread,
                        last: open.last,
                        ago: open.ago,
                    });
                }
            }
            What::Limit(of) => {
                // One that ended before anybody knew of it tells nothing.
                if let Some(&process) = self.by_pid.get(&of.pid) {
                    let ts = self.since_start(ts);
                    self.tables.limits.push(Limit {
                        ts,
                        process,
                        kind: of.kind.into(),
                        limit: of.limit,
                        used: of.used,
                        group: of.group,
                        device: of.device,
                    });
                }
            }
            What::Map { pid, mapping } => self.map(ts, pid, &mapping),
            What::File(file) => self.describe_file(&file),
            What::Area(area) => self.describe_area(ts, &area),
            // It comes back as a stack when it has been walked.
            What::StackCopy(_) => {}
            // Known since it came.
            What::Function { .. } => {}
            #[cfg(test)]
            What::StackProof(_) => {}
        }
    }

    fn fork(&mut self, ts: u64, (tid, pid): (u32, u32), parent: u32, name: &str, is_kernel: bool) {
        let parent = self.thread(ts, parent);
        // A thread that started between the first hook and the look at /proc is known already.
        let early = self.known(tid).filter(|&utid| {
            let state = &self.threads[utid as usize];
            !state.exited && !state.forked
        });
        let thread = match early {
            Some(thread) => thread,
            None => {
                let process = if tid == pid && !is_kernel {
                    // A process has its parent's code until it executes another program.
                    let creator = self.threads[parent as usize].process;
                    let space = self.processes[creator as usize].space.clone();
                    let process = self.add_process(pid);
                    let state = &mut self.processes[process as usize];
                    state.space = space;
                    state.born = Some(ts);
                    state.is_forked = true;
                    process
                } else {
                    self.process(pid, is_kernel)
                };
                self.add_thread(tid, process, name)
            }
        };
        self.threads[thread as usize].forked = true;
        self.note(ts, LifecycleKind::Forked, thread, parent, String::new());
    }

    /// Notes the command lines of the processes that are alive and were forked, or had overwritten theirs by the time they
    /// were found: servers write there what their workers are, and what they do. `ts` is now.
    pub(crate) fn note_titles(&mut self, ts: u64) {
        let leaders: Vec<(Utid, u32)> = (self.threads.iter().enumerate())
            .filter(|(_, state)| {
                let process = &self.processes[state.process as usize];
                let may_differ = process.is_forked || process.has_title;
                !state.exited && may_differ && state.tid == process.pid
            })
            .map(|(thread, state)| (thread as Utid, state.tid))
            .collect();
        let mut titles = procfs::command_lines(leaders.iter().map(|&(_, pid)| pid).collect());
        for (thread, pid) in leaders {
            if let Some(title) = titles.remove(&pid) {
                self.note(ts, LifecycleKind::Renamed, thread, NONE, title);
            }
        }
    }

    fn stack(&self, id: u32) -> StackId {
        self.stacks.get(&id).copied().unwrap_or(NO_STACK)
    }

    /// What a thread waits for: as it was found, where it waits again by the same call for several things.
    /// `is_chosen` says that it was found so.
    fn awaited_object(&mut self, thread: Utid, switch: &event::Switch, is_chosen: bool) -> u64 {
        let is_epoll = |object: u64| Object(object).kind() == ObjectKind::Epoll;
        if is_chosen {
            self.polled.insert(thread, (switch.call, switch.object));
        }
        let waits = matches!(
            Left::from(switch.left),
            Left::Sleeping | Left::Uninterruptible
        );
        let Some(&(call, object)) = self.polled.get(&thread).filter(|_| waits) else {
            return switch.object;
        };
        if call != switch.call {
            self.polled.remove(&thread);
        }
        match switch.object {
            own if call == switch.call && (own == 0 || is_epoll(own)) => object,
            own => own,
        }
    }

    /// The thread that a futex names as its holder, if there is such a one: in the same process,
    /// unless the futex is shared by processes. It may be the one that waits for it.
    fn holder(&self, waiter: Utid, tid: u32, is_shared: bool) -> Utid {
        let process = self.threads[waiter as usize].process;
        self.known(tid)
            .filter(|&holder| {
                let holder = &self.threads[holder as usize];
                let may = holder.process == process || is_shared && tid >= LATE_TIDS;
                may && tid != 0 && holder.process != KERNEL_PROCESS && !holder.exited
            })
            .unwrap_or(NONE)
    }

    fn happen(&mut self, event: &Event) {
        let (ts, cpu) = (self.since_start(event.ts), event.cpu);
        // What began before the trace is cut there.
        let began = |duration: u64| ts.saturating_sub(duration);
        let thread = self.thread(event.ts, event.tid);
        match event.what {
            Happening::Switch(ref switch) | Happening::Waiting { ref switch, .. } => {
                let next = self.thread(event.ts, switch.next);
                let was_found = matches!(event.what, Happening::Waiting { .. });
                if let Happening::Waiting { born, since, .. } = event.what {
                    self.tables.found_waiting.push(FoundWaiting {
                        ts,
                        thread,
                        age: event.ts.saturating_sub(since),
                        lived: event.ts.saturating_sub(born),
                    });
                }
                let (arg, holder) = self.what_is_waited_for(thread, switch, was_found);
                let is_chosen = matches!(
                    event.what,
                    Happening::Waiting {
                        is_chosen: true,
                        ..
                    }
                );
                let object = self.awaited_object(thread, switch, is_chosen);
                self.tables.switches.push(Switch {
                    ts,
                    cpu,
                    prev: thread,
                    next,
                    left: switch.left,
                    next_priority: switch.next_priority,
                    call: switch.call,
                    object,
                    arg,
                    holder,
                    user_stack: self.stack(switch.user_stack),
                    kernel_stack: self.stack(switch.kernel_stack),
                });
            }
            Happening::Goroutine {
                number,
                awaited,
                user_stack,
            } => {
                self.tables.goroutines.push(Goroutine {
                    ts,
                    process: self.threads[thread as usize].process,
                    number,
                    awaited,
                    user_stack: self.stack(user_stack),
                });
            }
            Happening::Wake(wake) => {
                let wakee = self.thread(event.ts, wake.wakee);
                self.tables.wakes.push(Wake {
                    ts,
                    cpu,
                    waker: thread,
                    wakee,
                    context: wake.context,
                    vector: wake.vector.into(),
                    new: wake.is_new,
                    call: wake.call,
                    object: wake.object,
                    arg: wake.arg.into(),
                    user_stack: self.stack(wake.user_stack),
                    kernel_stack: self.stack(wake.kernel_stack),
                });
            }
            Happening::Handoff(ref handoff) => self.hand_over(event, thread, handoff),
            Happening::Fault(ref fault) => self.fault(event.ts, thread, fault),
            Happening::Cache(ref row) => self.cache(event.ts, thread, row),
            Happening::Stall {
                kind,
                duration,
                pages,
            } => self.stall(event.ts, thread, kind, duration, pages),
            Happening::Flag(used) => {
                let used = FlagAccess {
                    ts,
                    thread,
                    flag: used.flag.into(),
                    access: used.access,
                    value: used.value,
                    instruction: used.instruction,
                    user_stack: self.stack(used.user_stack),
                };
                self.tables.flag_accesses.push(used);
            }
            Happening::Probed(ref probed) => self.probed(ts, thread, probed),
            Happening::Written(ref text) => self.written(ts, thread, text),
            Happening::Interrupt {
                kind,
                vector,
                duration,
            } => self.tables.interrupts.push(Interrupt {
                ts: began(duration),
                duration: ts - began(duration),
                cpu,
                kind,
                vector: vector as u16,
                thread,
            }),
            Happening::Io {
                issuer,
                device,
                sector,
                bytes,
                operation,
                duration,
            } => {
                let thread = self.thread(event.ts, issuer);
                self.tables.ios.push(Io {
                    ts: began(duration),
                    duration: ts - began(duration),
                    thread,
                    device,
                    sector,
                    bytes,
                    operation: io_operation(operation).into(),
                });
            }
            Happening::Transfer {
                object,
                peer,
                sent,
                bytes,
            } => self.tables.transfers.push(Transfer {
                ts,
                thread,
                object,
                peer,
                sent,
                bytes,
            }),
            Happening::Sample {
                user_stack,
                kernel_stack,
            } => self.tables.samples.push(Sample {
                ts,
                cpu,
                thread,
                user_stack: self.stack(user_stack),
                kernel_stack: self.stack(kernel_stack),
            }),
            Happening::Counters {
                cycles,
                instructions,
                cache_misses,
                tlb_misses,
            } => self.tables.counters.push(Count {
                ts,
                cpu,
                thread,
                cycles,
                instructions,
                cache_misses,
                tlb_misses,
            }),
            Happening::Call(ref call) => {
                let [arg0, arg1, arg2, arg3, arg4, arg5] = call.arguments;
                let error = u16::try_from(-i128::from(call.result)).ok();
                let error = error.filter(|&error| error <= LAST_ERROR).unwrap_or(0);
                self.tables.calls.push(SystemCall {
                    ts: began(call.duration),
                    duration: ts - began(call.duration),
                    thread,
                    call: call.number,
                    result: match error {
                        0 => call.result.cast_unsigned(),
                        _ => 0,
                    },
                    error,
                    stack: self.stack(call.stack),
                    arg0,
                    arg1,
                    arg2,
                    arg3,
                    arg4,
                    arg5,
                });
            }
        }
    }
}

/// Whether a command line is a title that a program has written there, as "postgres: shop app 10.0.0.7 idle".
fn is_title(command: &str) -> bool {
    let first = command.split(' ').next();
    first.is_some_and(|word| word.ends_with(':'))
}

/// The kernel's `enum req_op` in our words.
fn io_operation(op: u8) -> IoOperation {
    match op {
        0 => IoOperation::Read,
        1 => IoOperation::Write,
        2 => IoOperation::Flush,
        3 | 5 | 9 => IoOperation::Discard,
        _ => IoOperation::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Member;

    /// Who was there at the start has its parent, also where the numbers of processes have begun anew
    /// since that was made.
    #[test]
    fn a_parent_may_have_the_greater_number() {
        let mut population = Population::default();
        for (pid, parent, name) in [(500, 30_000, "child"), (30_000, 7, "parent")] {
            let member = Member {
                pid,
                parent,
                name: name.into(),
                is_kernel: false,
            };
            population.add(pid, member);
        }
        let world = World::new(0, &population);
        let rows = &world.tables.lifecycle;
        let row = |pid: u32| rows.pid.iter().position(|&it| it == pid).unwrap();
        assert_eq!(rows.parent[row(500)], rows.thread[row(30_000)]);
        assert_eq!(rows.parent[row(30_000)], NONE);
    }

    /// A program writes a title over its command line.
    #[test]
    fn a_title_is_told_from_a_command_line() {
        for title in [
            "postgres: shop app [local] idle",
            "sshd: user@pts/0",
            "nginx: worker process",
        ] {
            assert!(is_title(title), "{title}");
        }
        for command in [
            "/usr/sbin/sshd -D",
            "python3 -m http.server 80",
            "",
            "ssh host:22 ls",
        ] {
            assert!(!is_title(command), "{command}");
        }
    }

    /// A process that had a title when it was found is asked for it again at the end: it changes.
    #[test]
    fn titles_are_noted_again() {
        let own = std::process::id();
        let noted = |command: &str| {
            let mut population = Population::default();
            let member = Member {
                pid: own,
                parent: 1,
                name: "server".into(),
                is_kernel: false,
            };
            population.add(own, member);
            population.process(own).command = command.into();
            let mut world = World::new(0, &population);
            world.note_titles(3);
            let kinds = &world.tables.lifecycle.kind;
            kinds.contains(&u8::from(LifecycleKind::Renamed))
        };
        assert!(noted("server: idle"));
        assert!(!noted("server -x"));
    }

    /// A process that was forked and lives is asked for its command line at the end; one that has executed a program, or
    /// has ended, is not.
    #[test]
    fn the_titles_of_forked_processes_are_noted() {
        let own = std::process::id();
        let steps = |after: &[What]| {
            let mut world = World::new(0, &Population::default());
            world.fork(1, (own, own), 1, "worker", false);
            for what in after {
                world.define(Definition {
                    ts: 2,
                    what: what.clone(),
                });
            }
            world.note_titles(3);
            let rows = &world.tables.lifecycle;
            let at = rows
                .kind
                .iter()
                .position(|&kind| kind == u8::from(LifecycleKind::Renamed))?;
            Some(rows.detail[at].clone())
        };
        let exec = What::Exec {
            old_tid: own,
            pid: own,
            name: "app".into(),
            command: "app -x".into(),
            vdso: 0,
            epoch: 0,
        };
        let exit = What::Exit {
            tid: own,
            pid: own,
            status: 0,
        };
        assert_eq!(steps(&[]), procfs::command_line(own));
        assert_eq!(steps(&[exec]), None);
        assert_eq!(steps(&[exit]), None);
    }

    /// The object that was chosen of several, for a thread that was found waiting for them, is that of its next waits
    /// for several by the same call. That of a wait for one thing alone is not.
    #[test]
    fn only_a_choice_among_several_is_kept() {
        let select = libc::SYS_pselect6 as i16;
        let pipe = Object::new(ObjectKind::Pipe, 5).0;
        let objects = |is_chosen: bool| {
            let mut world = World::new(0, &Population::default());
            let wait = |object| event::Switch {
                next: 0,
                left: Left::Sleeping.into(),
                next_priority: 0,
                call: select,
                object,
                arg: 0,
                user_stack: 0,
                kernel_stack: 0,
            };
            let found = Happening::Waiting {
                switch: wait(pipe),
                born: 0,
                since: 0,
                is_chosen,
            };
            for (ts, what) in [(1, found), (2, Happening::Switch(wait(0)))] {
                world.happen(&Event {
                    ts,
                    tid: 7,
                    cpu: 0,
                    what,
                });
            }
            world.tables.switches.object
        };
        assert_eq!(objects(true), [pipe, pipe]);
        assert_eq!(objects(false), [pipe, 0]);
    }
}
