//! What is known: the tables of a trace that causes are read from, and the few ways in which they are
//! looked at.

use hangdog_trace::calls::Call;
use hangdog_trace::ids::{StackId, Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::words::{Context, LastTransfer, StackEnd};
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, Range};
use std::sync::OnceLock;

use crate::asyncio::{self, Task, TaskTable};
use crate::file_locks::{File, FileLocks};
use crate::flags::{FlagWait, FlagWaits};
use crate::goroutines::GoroutineTable;
use crate::marks::{Mark, Marks};
use crate::memo::{Memo, Site};
use crate::names;
use crate::sampling::Sampling;
use crate::tables::Tables;
use crate::upkeep::Upkeep;
use crate::wakers::Wakers;

/// What the recorder's helpers are called.
pub const HELPER: &str = "hangdog";

/// What is known: the tables, and what is looked up so often that it is worked out once.
pub struct Evidence<'a> {
    tables: Tables<'a>,
    marks: Marks,
    wakers: Wakers,
    upkeep: Upkeep,
    sampling: Sampling,
    file_locks: FileLocks,
    goroutines: GoroutineTable,
    tasks: TaskTable,
    flag_waits: FlagWaits,
    /// Rows of `transfers` by object, in order.
    uses: HashMap<u64, Vec<u32>>,
    /// Rows of `transfers` by thread, in order.
    used: Vec<Vec<u32>>,
    /// Of the threads that were found waiting, since when they had been off their CPUs, and when they
    /// were created: ns since the trace's start, which is mostly before it.
    away_since: HashMap<Utid, (i64, Option<i64>)>,
    /// By thread, whether another has its names.
    namesakes: OnceLock<HashSet<Utid>>,
    pub(crate) memo: Memo,
}

impl<'a> Deref for Evidence<'a> {
    type Target = Tables<'a>;

    fn deref(&self) -> &Tables<'a> {
        &self.tables
    }
}

/// A time or a duration that may be compared with one before the trace's start.
pub fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl<'a> Evidence<'a> {
    /// Works out what is looked up often: what each stack shows, who woke whom, and who took the
    /// locks of files.
    pub fn new(tables: Tables<'a>) -> Evidence<'a> {
        let marks = Marks::new(tables.stacks);
        let upkeep = Upkeep::new(&tables);
        let wakers = Wakers::new(tables.wakes, |row| {
            is_own(&tables, &marks, row) && !upkeep.is_wake(&tables, row)
        });
        let threads = tables.timeline.threads().end as usize;
        let mut uses: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut used: Vec<Vec<u32>> = vec![Vec::new(); threads];
        for (row, &object) in tables.transfers.object.iter().enumerate() {
            uses.entry(object).or_default().push(row as u32);
            let thread = tables.transfers.thread[row];
            if let Some(used) = used.get_mut(thread as usize) {
                used.push(row as u32);
            }
        }
        let mut evidence = Evidence {
            uses,
            used,
            sampling: Sampling::new(tables.samples),
            file_locks: FileLocks::new(tables.handoffs, tables.threads, threads),
            goroutines: GoroutineTable::new(tables.goroutines, tables.stacks),
            tasks: TaskTable::new(tables.goroutines, tables.stacks),
            flag_waits: FlagWaits::new(
                tables.flags,
                tables.flag_accesses,
                tables.handoffs,
                tables.threads,
                tables.timeline,
            ),
            tables,
            marks,
            wakers,
            upkeep,
            away_since: HashMap::new(),
            namesakes: OnceLock::new(),
            memo: Memo::default(),
        };
        let found = evidence.tables.found_waiting;
        for row in (0..found.len()).filter(|&row| found.age[row] != 0) {
            let before = |age: u64| signed(found.ts[row]).saturating_sub(signed(age));
            let lived = found.lived[row];
            let away = (before(found.age[row]), (lived != 0).then(|| before(lived)));
            evidence.away_since.entry(found.thread[row]).or_insert(away);
        }
        evidence
    }

    /// The waits of a thread for flags that were watched, which lie in a window or reach into it, in
    /// order.
    pub fn flag_waits(&self, thread: Utid, window: Range<u64>) -> &[FlagWait] {
        self.flag_waits.of(thread, window)
    }

    /// The stack of the goroutine that tells most of what the program of a thread with nothing to run waits for, if one was
    /// found waiting within `window`.
    pub(crate) fn goroutine(&self, thread: Utid, window: Range<u64>) -> Option<StackId> {
        let process = self.threads.thread(thread).upid;
        (self.goroutines).within(process, window, || self.asks_others(process))
    }

    /// The task that explains best what a thread waited for in its event loop of Python, as its `stack` shows, if one was found waiting
    /// within `window` and the program waits for no answer of another's.
    pub(crate) fn task(&self, thread: Utid, stack: StackId, window: &Range<u64>) -> Option<Task> {
        let process = self.threads.thread(thread).upid;
        let task = self.tasks.within(process, window)?;
        let counts = asyncio::is_in_loop(self.stacks, stack) && !self.awaits_answer(process);
        counts.then_some(task)
    }

    /// Since when at least a task of a Python program has been kept from going on by another, ns since the trace's start, if one
    /// is when the recording looks at them last. In a program that serves nobody and asks nobody each that waits for
    /// another counts.
    pub fn task_held_up_since(&self, process: Upid) -> Option<u64> {
        let listens = || (self.sockets.had(process)).any(|object| self.sockets.listens(object));
        let serves = || listens() || self.awaits_answer(process);
        let counts =
            |task: Task| task.is_held_up() || task.awaits == asyncio::Awaits::Other && !serves();
        self.tasks.held_up_since(process, counts)
    }

    /// Whether a process has asked others something, and has no answer.
    fn asks_others(&self, process: Upid) -> bool {
        let mut asked = self.sockets.asks(process);
        asked.any(|object| self.sockets.peer_process(object) != Some(process))
    }

    /// Whether a task of a Python program waits for a lock, or for room in a queue, when the recording looks at them last.
    pub fn has_held_up_task(&self, process: Upid) -> bool {
        self.tasks
            .held_up_since(process, Task::is_held_up)
            .is_some()
    }

    /// Whether a process with tasks has asked others something, and had no answer when somebody looked.
    fn awaits_answer(&self, process: Upid) -> bool {
        let asks = |process: Upid| {
            let is_open = |&object: &Object| {
                let mut holders = self.sockets.holders(object).iter().rev();
                let own = holders.find(|it| it.process == process);
                own.is_none_or(|it| it.last != LastTransfer::Received)
            };
            let mut asked = self.sockets.asks(process).filter(is_open);
            asked.any(|object| self.sockets.peer_process(object) != Some(process))
        };
        let all = || self.tasks.processes().filter(|&it| asks(it)).collect();
        self.memo.asking.get_or_init(all).contains(&process)
    }

    /// Since when at least a goroutine of a Go program has been held up by another, ns since the trace's start, if one is
    /// when the recording looks at them last.
    pub fn goroutine_held_up_since(&self, process: Upid) -> Option<u64> {
        self.goroutines.held_up_since(process)
    }

    /// Since when a thread had been off its CPU that waited already when the recording began, ns since
    /// the trace's start, so that a time before it is negative. None if it did not, or it is not known.
    pub fn away_since(&self, thread: Utid) -> Option<i64> {
        self.away_since.get(&thread).map(|(since, _)| *since)
    }

    /// When a thread was created that waited already when the recording began, in the same way.
    pub fn born_at(&self, thread: Utid) -> Option<i64> {
        self.away_since.get(&thread)?.1
    }

    /// When a process was created, ns since the trace's start, if that is known; negative before it.
    pub fn started_at(&self, process: Upid) -> Option<i64> {
        let first = *self.threads.process(process).threads.first()?;
        match self.timeline.life(first).start {
            0 => self.born_at(first),
            start => Some(signed(start)),
        }
    }

    /// What a flag is called, of which this is a row of `flag_accesses`.
    pub fn flag_name(&self, access: usize) -> &str {
        let flag = self.flag_accesses.flag[access];
        let row = self.flags.flag.iter().position(|&known| known == flag);
        row.map_or("a flag", |row| &self.flags.name[row])
    }

    /// Where the thread waits that leaves its CPU by a row of `switches`.
    pub fn site(&self, row: usize) -> Site {
        let stack = self.switches.user_stack[row];
        (self.switches.call[row], self.same_frames(stack))
    }

    /// Whether two rows of `switches` may wait at one place: in one call, and on stacks of the same
    /// frames as far as both were read. Memory that was paged out ends one early.
    pub fn may_be_one_place(&self, a: usize, b: usize) -> bool {
        let switches = self.switches;
        let stacks = (switches.user_stack[a], switches.user_stack[b]);
        if switches.call[a] != switches.call[b] || stacks.0 == stacks.1 {
            return switches.call[a] == switches.call[b];
        }
        let (one, other) = (
            self.stacks.frame_ids(stacks.0),
            self.stacks.frame_ids(stacks.1),
        );
        let both = one.len().min(other.len());
        let shorter = if one.len() < other.len() {
            stacks.0
        } else {
            stacks.1
        };
        one[..both] == other[..both]
            && (one.len() == other.len() || self.stacks.end(shorter) != StackEnd::Root)
    }

    /// The first stack with the same innermost functions as this; [`NO_STACK`](hangdog_trace::ids::NO_STACK)
    /// of none.
    pub fn near(&self, stack: StackId) -> StackId {
        self.marks.near(self.stacks, stack)
    }

    /// Whether two rows of `switches` wait at nearly one place: on one object, or in one call and
    /// the same innermost functions, whatever led there.
    pub fn are_near(&self, a: usize, b: usize) -> bool {
        let switches = self.switches;
        let near = |row: usize| self.near(switches.user_stack[row]);
        let same_object = switches.object[a] != 0 && switches.object[a] == switches.object[b];
        let same_call = switches.call[a] == switches.call[b];
        same_object || same_call && near(a) != 0 && near(a) == near(b)
    }

    /// The first stack that has the same frames. Two stacks of the same frames can have different
    /// ids: which code was known when they were taken differed.
    pub fn same_frames(&self, stack: StackId) -> StackId {
        self.marks.same_frames(self.stacks, stack)
    }

    /// A thread as reports name it: its name, with its process's in front where that differs, and its tid
    /// behind where another thread in the trace has the same. Of an interpreter's process the script is
    /// named too.
    pub fn name(&self, thread: Utid) -> String {
        let known = self.threads.thread(thread);
        let (process, name) = self.names_of(thread);
        // The kernel cuts names, also right behind a blank.
        let name = name.trim_end();
        let label = match () {
            () if known.is_kernel() => name.to_owned(),
            () if process == name => self.program(known.upid),
            () => format!("{}/{name}", self.program(known.upid)),
        };
        match self.has_namesake(thread) {
            true => format!("{label} ({})", known.tid),
            false => label,
        }
    }

    /// A process as reports name it: with the script that it runs.
    pub fn program(&self, process: Upid) -> String {
        self.threads.process(process).label()
    }

    fn names_of(&self, thread: Utid) -> (&str, &str) {
        let known = self.threads.thread(thread);
        (&self.threads.process(known.upid).name, known.name())
    }

    /// Whether another thread of the trace has the same names of process and thread.
    fn has_namesake(&self, thread: Utid) -> bool {
        let namesakes = self.namesakes.get_or_init(|| {
            let mut of_names: HashMap<(&str, &str), Vec<Utid>> = HashMap::new();
            for thread in self.timeline.threads() {
                of_names
                    .entry(self.names_of(thread))
                    .or_default()
                    .push(thread);
            }
            let several = of_names.into_values().filter(|threads| threads.len() > 1);
            several.flatten().collect()
        });
        namesakes.contains(&thread)
    }

    /// Whether a process passes on what others send: a display server or a message bus. What comes
    /// back from it need not be an answer.
    pub fn passes_on(&self, process: Upid) -> bool {
        let name = &self.threads.process(process).name;
        let is_bus = || {
            names::MESSAGE_BUSES
                .iter()
                .any(|start| name.starts_with(start))
        };
        self.serves_display(process) || is_bus()
    }

    /// Whether a process draws what others show.
    pub fn serves_display(&self, process: Upid) -> bool {
        let name = &self.threads.process(process).name;
        names::DISPLAY_SERVERS
            .iter()
            .any(|start| name.starts_with(start))
    }

    /// Whether a stack shows this.
    pub fn shows(&self, stack: StackId, mark: Mark) -> bool {
        self.marks.shows(self.stacks, stack, mark)
    }

    /// Whether samples deny that a thread ran in `[from, to)`, though its switches say so.
    pub fn is_denied(&self, thread: Utid, from: u64, to: u64) -> bool {
        self.sampling.deny(self.samples, thread, from, to)
    }

    /// The system call that a row of `switches` blocked in.
    pub fn call(&self, number: i16) -> Call {
        self.calls.kind(number)
    }

    /// Whether a row of `wakes` is the doing of the thread that was on the CPU: not an interrupt's
    /// or a device's, but perhaps the softirq that delivers what the thread itself just sent.
    pub fn is_own(&self, row: usize) -> bool {
        is_own(&self.tables, &self.marks, row)
    }

    /// Whether a row of `wakes` is for what the network delivered, from whom is not known.
    pub fn is_by_network(&self, row: usize) -> bool {
        Context::from(self.wakes.context[row]) == Context::Softirq
            && names::NETWORK_SOFTIRQS.contains(&self.wakes.vector[row])
            && !self.is_own(row)
    }

    /// Rows of `transfers` by an end of a connection before a moment, the last first.
    pub fn uses_before(&self, object: Object, ts: u64) -> impl Iterator<Item = usize> + '_ {
        self.before(self.uses.get(&object.0), ts)
    }

    /// The first row of `transfers` by an end of a connection.
    pub fn first_use(&self, object: Object) -> Option<usize> {
        let first = self.uses.get(&object.0)?.first();
        first.map(|&row| row as usize)
    }

    /// The row of `transfers` by which a thread used any connection last before a moment.
    pub(crate) fn last_used(&self, thread: Utid, ts: u64) -> Option<usize> {
        self.before(self.used.get(thread as usize), ts).next()
    }

    /// The connection from which a thread received something first in a time.
    pub fn received(&self, thread: Utid, from: u64, to: u64) -> Option<Object> {
        let within = self.used_within(thread, from, to);
        let first = within.filter(|&row| !self.transfers.sent[row]).last()?;
        Some(Object(self.transfers.object[first]))
    }

    /// The rows of `transfers` that a thread made in a time, the last first.
    pub(crate) fn used_within(
        &self,
        thread: Utid,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = usize> + '_ {
        let used = self.before(self.used.get(thread as usize), to);
        used.take_while(move |&row| self.transfers.ts[row] >= from)
    }

    /// Whether a thread sent something over a connection in a time, and not only
    /// repeated what had not been answered.
    pub fn has_sent(&self, thread: Utid, from: u64, to: u64) -> bool {
        let transfers = self.transfers;
        let sends = |row: usize| transfers.sent[row] && transfers.bytes[row] > 0;
        let is_new = |row: usize| {
            let object = Object(transfers.object[row]);
            let before = self.uses_before(object, transfers.ts[row]);
            let mut own = before.filter(|&earlier| transfers.thread[earlier] == thread);
            own.next().is_none_or(|earlier| !transfers.sent[earlier])
        };
        let mut used = self.used_within(thread, from, to);
        used.any(|row| sends(row) && is_new(row))
    }

    /// When a thread sent something last to a process within a time, as far as was recorded.
    pub fn last_sent_to(&self, thread: Utid, process: Upid, within: Range<u64>) -> Option<u64> {
        const MOST: usize = 4096;
        let transfers = self.transfers;
        let is_to = |&row: &usize| {
            let object = Object(transfers.object[row]);
            transfers.sent[row] && self.sockets.peer_process(object) == Some(process)
        };
        let mut used = self.used_within(thread, within.start, within.end);
        used.by_ref()
            .take(MOST)
            .find(is_to)
            .map(|row| transfers.ts[row])
    }

    /// When a thread sent something first to a process within a time, as far as was recorded.
    pub fn first_sent_to(&self, thread: Utid, process: Upid, within: Range<u64>) -> Option<u64> {
        const MOST: usize = 100_000;
        let transfers = self.transfers;
        let rows = self.used.get(thread as usize)?;
        let first = rows.partition_point(|&row| transfers.ts[row as usize] < within.start);
        let mut rows = rows[first..].iter().take(MOST).map(|&row| row as usize);
        let is_to = |&row: &usize| {
            let object = Object(transfers.object[row]);
            transfers.sent[row] && self.sockets.peer_process(object) == Some(process)
        };
        let sent = rows.find(is_to).map(|row| transfers.ts[row]);
        sent.filter(|&ts| ts < within.end)
    }

    fn before<'s>(
        &'s self,
        rows: Option<&'s Vec<u32>>,
        ts: u64,
    ) -> impl Iterator<Item = usize> + 's {
        let rows = rows.map_or(&[][..], Vec::as_slice);
        let until = rows.partition_point(|&row| self.transfers.ts[row as usize] < ts);
        rows[..until].iter().rev().map(|&row| row as usize)
    }

    /// Whether a row of `wakes` is the answer of a program that serves a file system.
    pub fn is_served_by_waker(&self, row: usize) -> bool {
        Context::from(self.wakes.context[row]) == Context::Task
            && self.shows(self.wakes.kernel_stack[row], Mark::ServedFile)
    }

    /// Whether a process is the recorder or one of its helpers, which are nobody's children.
    pub fn is_recorders(&self, process: Upid) -> bool {
        let known = self.threads.process(process);
        Some(known.pid) == self.recorder || known.name == HELPER
    }

    /// Whether a row of `wakes` is the kernel's upkeep, which is nobody's doing.
    pub(crate) fn is_upkeep(&self, row: usize) -> bool {
        self.upkeep.is_wake(&self.tables, row)
    }

    /// Rows of `wakes` that are `waker`'s own doing, in order.
    pub fn own_wakes(&self, waker: Utid) -> &[u32] {
        self.wakers.rows(waker)
    }

    /// Rows of `wakes` in `[from, to)` that are `waker`'s own doing, in order.
    pub fn wakes_by(&self, waker: Utid, from: u64, to: u64) -> impl Iterator<Item = usize> + '_ {
        let rows = self.wakers.rows(waker);
        let ts = |row: u32| self.wakes.ts[row as usize];
        let first = rows.partition_point(|&row| ts(row) < from);
        rows[first..]
            .iter()
            .take_while(move |&&row| ts(row) < to)
            .map(|&row| row as usize)
    }

    /// Rows of `handoffs` in `[from, to]` at which `thread` took, gave back, waited for or was
    /// refused the lock of a file, in order.
    pub(crate) fn file_lock_steps(
        &self,
        thread: Utid,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = usize> + '_ {
        self.file_locks.of(self.handoffs, thread, from, to)
    }

    /// Who gave the lock of a file back from `from` on, in order of time.
    pub(crate) fn file_lock_releases(
        &self,
        file: Object,
        from: u64,
    ) -> impl Iterator<Item = Utid> + '_ {
        let rows = self.file_locks.released_since(self.handoffs, file.0, from);
        rows.map(|row| self.handoffs.thread[row])
    }

    /// The thread that took a lock of `file` last before a row of `handoffs`, of all of the process
    /// of `named`: the kernel knows the process alone. The one that was named if none was seen to.
    pub(crate) fn file_lock_taker(&self, file: File, named: Utid, before: usize) -> Utid {
        let process = self.threads.thread(named).upid;
        self.file_locks
            .taken_before(file, process, before)
            .map_or(named, |row| self.handoffs.thread[row])
    }
}

fn is_own(tables: &Tables<'_>, marks: &Marks, row: usize) -> bool {
    let wakes = tables.wakes;
    match Context::from(wakes.context[row]) {
        Context::Task => true,
        Context::Softirq => {
            // The recorder names the call only where it is the thread's own doing.
            let is_told = wakes.call[row] >= 0;
            names::NETWORK_SOFTIRQS.contains(&wakes.vector[row])
                && (is_told || marks.shows(tables.stacks, wakes.kernel_stack[row], Mark::Sending))
        }
        _ => false,
    }
}
