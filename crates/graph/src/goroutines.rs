//! Goroutines of Go programs that waited when the recording looked at them.
//!
//! Go runs goroutines on any of its threads, and one that waits has no thread. So while a thread of Go has nothing to
//! run, neither it nor its stack says what the program waits for; the list of its goroutines does. Of those at one look
//! the one that tells most is kept: who waits to send on a channel hands on what others wait for; who waits for a lock is
//! held up, too; who waits to receive may just have nothing to do. Of several that wait for the same the one most deep
//! in work tells more.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use hangdog_trace::ids::{FrameId, StackId, Upid};
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::Goroutines;

use crate::marks::is_named;
use crate::names;

/// By process what was found at each look, in order of time.
#[derive(Default)]
pub(crate) struct GoroutineTable(HashMap<Upid, Vec<Look>>);

/// The goroutines of a process at a look.
struct Look {
    ts: u64,
    /// The one that tells most.
    most: Parked,
    /// The one that tells most among those that wait in the same place as at the look before.
    still: Option<Parked>,
}

/// A goroutine that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Parked {
    awaits: Awaits,
    depth: usize,
    stack: StackId,
}

impl Parked {
    /// Whether another holds it up for sure. Who waits to receive may have nothing to do.
    fn is_held_up(self) -> bool {
        self.awaits >= Awaits::Lock
    }
}

/// What a goroutine waits for, in the order of how much that says about what its program waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Awaits {
    Receive,
    Group,
    Lock,
    Send,
}

impl GoroutineTable {
    pub(crate) fn new(table: &Goroutines, stacks: &StackTable) -> GoroutineTable {
        let mut looks: HashMap<Upid, Vec<Look>> = HashMap::new();
        let mut found: BTreeMap<(Upid, u64), Vec<usize>> = BTreeMap::new();
        for row in 0..table.len() {
            let look = (table.process[row], table.ts[row]);
            found.entry(look).or_default().push(row);
        }
        let mut before: (Upid, HashMap<u64, &[FrameId]>) = Default::default();
        for ((process, ts), rows) in found {
            let waits_in = |row: usize| stacks.frame_ids(table.user_stack[row]);
            let parked = |row: usize| {
                let stack = table.user_stack[row];
                Some(Parked {
                    awaits: awaits(stacks, stack)?,
                    depth: waits_in(row).len(),
                    stack,
                })
            };
            let most = |rows: &mut dyn Iterator<Item = usize>| rows.filter_map(parked).max();
            let is_still = |row: &usize| {
                before.0 == process && before.1.get(&table.number[*row]) == Some(&waits_in(*row))
            };
            if let Some(first) = most(&mut rows.iter().copied()) {
                looks.entry(process).or_default().push(Look {
                    ts,
                    most: first,
                    still: most(&mut rows.iter().copied().filter(is_still)),
                });
            }
            let all = rows.iter().map(|&row| (table.number[row], waits_in(row)));
            before = (process, all.collect());
        }
        GoroutineTable(looks)
    }

    /// The stack of the goroutine of `process` that tells most of what it waited for within `window`: it waited in the same
    /// place at a look before and the next one after, or at one within, or at the next for a lock or to send. A snapshot
    /// looks once, after what it is taken for. Where it `asks` other programs, one that waits to receive may have nothing to do, and what it asked for is what is
    /// waited for.
    pub(crate) fn within(
        &self,
        process: Upid,
        window: Range<u64>,
        asks: impl FnOnce() -> bool,
    ) -> Option<StackId> {
        let looks = self.0.get(&process)?;
        let (before, rest) = looks.split_at(looks.partition_point(|look| look.ts < window.start));
        let next = rest.first()?;
        let still = next.still.filter(|_| !before.is_empty());
        let inside = || {
            let within = rest.iter().take_while(|look| look.ts <= window.end);
            within.last().map(|look| look.most)
        };
        let held_up = || Some(next.most).filter(|most| most.is_held_up());
        let found = still.or_else(inside).or_else(held_up)?;
        (found.is_held_up() || !asks()).then_some(found.stack)
    }

    /// Since when at least a goroutine of `process` has been held up by another, if one is when it is looked at last: since the
    /// look before, if one that waited in the same place was held up then, else since that last look.
    pub(crate) fn held_up_since(&self, process: Upid) -> Option<u64> {
        let (last, before) = self.0.get(&process)?.split_last()?;
        let was_before = last.still.is_some_and(Parked::is_held_up);
        let since = before.last().filter(|_| was_before).unwrap_or(last);
        last.most.is_held_up().then_some(since.ts)
    }
}

/// What a goroutine with that stack waits for, if it is for another.
fn awaits(stacks: &StackTable, stack: StackId) -> Option<Awaits> {
    /// It is parked by a function or two of the runtime's.
    const FEW: usize = 4;
    let innermost = stacks.stack(stack).take(FEW);
    let mut functions = innermost.filter_map(|frame| frame.function);
    functions.find_map(|function| {
        let is = |list: &[&str]| list.iter().any(|name| is_named(function, name));
        match function {
            "runtime.chansend1" => Some(Awaits::Send),
            "runtime.chanrecv1" | "runtime.chanrecv2" | "runtime.selectgo" => Some(Awaits::Receive),
            _ if is(names::AWAITS_TASK_LOCK) => Some(Awaits::Lock),
            _ if is(names::AWAITS_TASK) => Some(Awaits::Group),
            _ => None,
        }
    })
}
