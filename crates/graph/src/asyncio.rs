//! Tasks of Python's asyncio that waited when the recording looked at them.
//!
//! The thread of an event loop that has nothing to run waits in one place, whatever its tasks wait for. What keeps the
//! program is what they wait for: another task that is to release a lock or to put something into a queue, or time to pass. A
//! task that waits for a connection is left out, since the loop waits for that itself. Of several tasks who waits for a lock or for room in a queue
//! is held up for sure; of others the one most deep in work explains more than a heartbeat or a worker that waits for orders. From
//! that one on it is followed who has the lock, or is awaited.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use hangdog_trace::ids::{FrameId, StackId, Upid};
use hangdog_trace::stacks::{ResolvedFrame, StackTable};
use hangdog_trace::tables::Goroutines;
use hangdog_trace::words::ModuleKind;

/// By process what was found at each look, in order of time.
#[derive(Default)]
pub(crate) struct TaskTable(HashMap<Upid, Vec<Look>>);

/// The tasks of a process at a look.
struct Look {
    ts: u64,
    /// The one that explains most.
    most: Task,
    /// The one that explains most among those that wait in the same place as at the look before.
    still: Option<Task>,
}

/// A task that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Task {
    is_held_up: bool,
    depth: usize,
    /// What it waits for.
    pub awaits: Awaits,
    /// Its functions.
    pub stack: StackId,
    /// Whether it was reached from another that waits for it.
    pub is_awaited: bool,
    /// Whether those that it waits for wait for it in turn.
    pub circle: Circle,
}

/// How far a task waits for itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Circle {
    /// It does not, as far as is known.
    None,
    /// It waits for a lock that it has itself.
    Itself,
    /// Another that it waits for waits for it.
    Others,
}

impl Task {
    /// Whether another task keeps it from going on for sure: it waits for a lock, or for room in a queue.
    pub fn is_held_up(self) -> bool {
        self.is_held_up
    }
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Awaits {
    /// Time to pass.
    Time,
    /// Another task, to bring what it waits for or to be done.
    Other,
    /// Another task, to release a lock or a semaphore.
    Lock,
    /// Another task, to make room in a queue.
    Room,
}

impl TaskTable {
    pub(crate) fn new(table: &Goroutines, stacks: &StackTable) -> TaskTable {
        let mut found: BTreeMap<(Upid, u64), Vec<usize>> = BTreeMap::new();
        for row in 0..table.len() {
            let is_task = |frame: ResolvedFrame<'_>| frame.kind == ModuleKind::Script;
            if stacks
                .stack(table.user_stack[row])
                .next()
                .is_some_and(is_task)
            {
                let look = (table.process[row], table.ts[row]);
                found.entry(look).or_default().push(row);
            }
        }
        let mut looks: HashMap<Upid, Vec<Look>> = HashMap::new();
        let mut before: (Upid, HashMap<u64, &[FrameId]>) = Default::default();
        for ((process, ts), rows) in found {
            let waits_in = |row: usize| stacks.frame_ids(table.user_stack[row]);
            let is_still = |row: usize| {
                before.0 == process && before.1.get(&table.number[row]) == Some(&waits_in(row))
            };
            let task = |&row: &usize| Some((task(stacks, table.user_stack[row])?, row));
            let tasks: Vec<_> = rows.iter().filter_map(task).collect();
            let still = tasks
                .iter()
                .copied()
                .filter(|&(_, row)| is_still(row))
                .max();
            if let Some(most) = tasks.iter().copied().max() {
                let all = rows.iter().map(|&row| (table.number[row], row)).collect();
                let followed = |from| follow(table, stacks, &all, from);
                let look = Look {
                    ts,
                    most: followed(most),
                    still: still.map(followed),
                };
                looks.entry(process).or_default().push(look);
            }
            let all = rows.iter().map(|&row| (table.number[row], waits_in(row)));
            before = (process, all.collect());
        }
        TaskTable(looks)
    }

    /// The processes in which tasks were found.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Upid> + '_ {
        self.0.keys().copied()
    }

    /// The task of `process` that explains best what it waited for within `window`: it waited in the same place at a look before
    /// and the next one after, or at one within.
    pub(crate) fn within(&self, process: Upid, window: &Range<u64>) -> Option<Task> {
        let looks = self.0.get(&process)?;
        let (before, rest) = looks.split_at(looks.partition_point(|look| look.ts < window.start));
        let next = rest.first()?;
        let still = next.still.filter(|_| !before.is_empty());
        still.or_else(|| {
            let within = rest.iter().take_while(|look| look.ts <= window.end);
            within.last().map(|look| look.most)
        })
    }

    /// Since when at least a task of `process` has been kept from going on by another, if one is when it is looked at last: since the
    /// look before, if one that waited in the same place was then, else since that last look.
    pub(crate) fn held_up_since(
        &self,
        process: Upid,
        counts: impl Fn(Task) -> bool,
    ) -> Option<u64> {
        let (last, before) = self.0.get(&process)?.split_last()?;
        let was_before = last.still.is_some_and(&counts);
        let since = before.last().filter(|_| was_before).unwrap_or(last);
        counts(last.most).then_some(since.ts)
    }
}

/// What keeps a task, of a row of the table, from going on, along those that it waits for; `all` are the rows of all by their
/// numbers. Where one of these waits for what is not known here, what waits for it is the last that is.
fn follow(
    table: &Goroutines,
    stacks: &StackTable,
    all: &HashMap<u64, usize>,
    (from, row): (Task, usize),
) -> Task {
    let (mut last, mut row) = (from, row);
    let mut way = vec![row];
    while let Some(&next) = all.get(&table.awaited[row]) {
        if way.contains(&next) {
            let circle = if next == row {
                Circle::Itself
            } else {
                Circle::Others
            };
            return Task { circle, ..last };
        }
        let Some(task) = task(stacks, table.user_stack[next]) else {
            break;
        };
        last = Task {
            is_held_up: from.is_held_up,
            is_awaited: true,
            ..task
        };
        way.push(next);
        row = next;
    }
    last
}

/// The task with that stack, if it waits for another or for time to pass.
fn task(stacks: &StackTable, stack: StackId) -> Option<Task> {
    let innermost = stacks.stack(stack).next()?;
    let awaits = awaits(&innermost)?;
    Some(Task {
        is_held_up: matches!(awaits, Awaits::Lock | Awaits::Room),
        depth: stacks.frame_ids(stack).len(),
        awaits,
        stack,
        is_awaited: false,
        circle: Circle::None,
    })
}

/// What a task waits for whose innermost function is that.
fn awaits(innermost: &ResolvedFrame<'_>) -> Option<Awaits> {
    let function = innermost.function?;
    let source = innermost.source;
    if !source.contains("/asyncio/") {
        // What a library waits for may come by a connection.
        let is_program = !LIBRARIES.iter().any(|folder| source.contains(folder));
        return is_program.then_some(Awaits::Other);
    }
    Some(match function {
        "Lock.acquire" | "Semaphore.acquire" => Awaits::Lock,
        "Queue.put" => Awaits::Room,
        "sleep" => Awaits::Time,
        "Queue.get"
        | "Queue.join"
        | "Event.wait"
        | "Condition.wait"
        | "TaskGroup.__aexit__"
        | "wait"
        | "_wait"
        | "Barrier._wait"
        | "Barrier._block" => Awaits::Other,
        _ => return None,
    })
}

/// Folders of Python's libraries.
const LIBRARIES: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];

/// Whether a thread with that stack waits in an event loop of Python for whatever comes next, and not in a task.
pub(crate) fn is_in_loop(stacks: &StackTable, stack: StackId) -> bool {
    let is_script = |frame: &ResolvedFrame<'_>| frame.kind == ModuleKind::Script;
    let innermost = stacks.stack(stack).find(is_script);
    innermost.is_some_and(|frame| {
        let ends = [
            "/selectors.py",
            "/asyncio/base_events.py",
            "/asyncio/runners.py",
        ];
        let file = frame
            .source
            .rsplit_once(':')
            .map_or(frame.source, |(file, _)| file);
        ends.iter().any(|end| file.ends_with(end)) || file.contains("/uvloop/")
    })
}
