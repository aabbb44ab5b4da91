//! The system calls of a trace that recorded them (`record --calls`): what each took and how often it
//! failed, and those of one thread for its story.

use crate::describe;
use crate::format;
use crate::select::{Who, Window};
use hangdog_diagnose::nearest;
use hangdog_trace::calls::{Calls, error_name};
use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::SystemCalls;
use hangdog_trace::{Threads, Trace};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// What a row of the table stands for, beside the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Nothing: the calls of all threads together.
    Call,
    /// The thread that called.
    Thread,
    /// The function that called: of those on the stack that are most of all the program's own the
    /// innermost.
    Function,
}

/// The calls of one kind, of all or of a thread or function.
#[derive(Debug, PartialEq, Serialize)]
pub struct Kind<'a> {
    /// The call's name.
    pub call: String,
    /// Who called; only by thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Who<'a>>,
    /// Where it was called; only by function. Empty where the stack is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// How often.
    pub count: u64,
    /// How often it failed.
    pub errors: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The average, ns.
    pub mean_ns: f64,
    /// The longest, ns.
    pub max_ns: u64,
    /// The standard deviation, ns, of all that there were.
    pub deviation_ns: f64,
    /// All together, ns.
    pub sum_ns: u64,
    /// The errors, most often first.
    pub by_error: Vec<Failed>,
}

/// How often calls failed in one way.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// As errno(3) has it: `ENOENT`.
    pub error: String,
    /// Its number.
    pub errno: u16,
    /// How often.
    pub count: u64,
}

/// Which calls are counted.
pub struct Selection<'a> {
    /// Those that begin in it.
    pub window: Window,
    /// Those of threads of which this is true.
    pub of: &'a dyn Fn(Utid) -> bool,
    /// Who has a row.
    pub by: By,
}

#[derive(Default)]
struct Sums {
    count: u64,
    sum: u64,
    squares: f64,
    min: u64,
    max: u64,
    errors: BTreeMap<u16, u64>,
}

impl Sums {
    fn add(&mut self, ns: u64, error: u16) {
        if self.count == 0 {
            self.min = ns;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(ns);
        self.squares += ns as f64 * ns as f64;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        if error > 0 {
            *self.errors.entry(error).or_default() += 1;
        }
    }

    fn kind<'a>(self, call: String, thread: Option<Who<'a>>, function: Option<String>) -> Kind<'a> {
        let count = self.count.max(1) as f64;
        let mean = self.sum as f64 / count;
        let mut by_error: Vec<Failed> = (self.errors.iter())
            .map(|(&errno, &count)| Failed {
                error: error_name(errno).into_owned(),
                errno,
                count,
            })
            .collect();
        by_error.sort_by_key(|failed| Reverse(failed.count));
        Kind {
            call,
            thread,
            function,
            count: self.count,
            errors: self.errors.values().sum(),
            min_ns: self.min,
            mean_ns: mean,
            max_ns: self.max,
            deviation_ns: (self.squares / count - mean * mean).max(0.0).sqrt(),
            sum_ns: self.sum,
            by_error,
        }
    }
}

/// The calls by kind, by the time that they took, most first.
pub fn kinds<'a>(
    log: &SystemCalls,
    threads: &'a Threads,
    stacks: &StackTable,
    calls: &Calls,
    selection: &Selection<'_>,
) -> Vec<Kind<'a>> {
    let Selection { window, of, by } = selection;
    let mut functions: HashMap<u32, String> = HashMap::new();
    let mut sums: BTreeMap<(i16, Option<Utid>, Option<String>), Sums> = BTreeMap::new();
    for row in 0..log.len() {
        let thread = log.thread[row];
        if !(window.from..window.to).contains(&log.ts[row])
            || threads.known(thread).is_none()
            || !of(thread)
        {
            continue;
        }
        let mut function = || {
            let stack = log.stack[row];
            let known = functions.entry(stack);
            known.or_insert_with(|| caller(stacks, stack)).clone()
        };
        let key = match by {
            By::Call => (log.call[row], None, None),
            By::Thread => (log.call[row], Some(thread), None),
            By::Function => (log.call[row], None, Some(function())),
        };
        (sums.entry(key).or_default()).add(log.duration[row], log.error[row]);
    }
    let mut kinds: Vec<Kind<'a>> = (sums.into_iter())
        .map(|((call, thread, function), sums)| {
            let who = thread.map(|thread| Who::new(threads, thread));
            sums.kind(calls.name(call).into_owned(), who, function)
        })
        .collect();
    kinds.sort_by_key(|kind| Reverse(kind.sum_ns));
    kinds
}

/// The function that speaks for a stack; empty where there is none.
fn caller(stacks: &StackTable, stack: u32) -> String {
    let frames: Vec<_> = stacks.stack(stack).collect();
    let own = nearest(frames.iter()).or((!frames.is_empty()).then_some(0));
    own.map_or(String::new(), |own| frames[own].to_string())
}

/// A call as a story tells it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Called {
    /// When it began, ns since the trace's start.
    pub start_ns: u64,
    /// Until it returned, ns.
    pub duration_ns: u64,
    /// Its name.
    pub call: String,
    /// Its arguments as the registers have them, also those that it does not take.
    pub arguments: [u64; 6],
    /// What it returned; none where it failed.
    pub result: Option<i64>,
    /// How it failed.
    pub error: Option<String>,
    /// The named functions that called, innermost first, in a line.
    pub caller: Option<String>,
}

/// The calls of one thread, ascending by their begin: a thread is in one at a time.
#[derive(Default)]
pub struct ThreadCalls(Vec<Called>);

impl ThreadCalls {
    /// Reads a thread's calls from a trace; none where the trace has none.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn load(
        trace: &Trace,
        thread: Utid,
        calls: &Calls,
        stacks: &StackTable,
    ) -> hangdog_trace::Result<ThreadCalls> {
        let log: SystemCalls = trace.read()?;
        let mut called: Vec<Called> = (0..log.len())
            .filter(|&row| log.thread[row] == thread)
            .map(|row| Called {
                start_ns: log.ts[row],
                duration_ns: log.duration[row],
                call: calls.name(log.call[row]).into_owned(),
                arguments: [
                    log.arg0[row],
                    log.arg1[row],
                    log.arg2[row],
                    log.arg3[row],
                    log.arg4[row],
                    log.arg5[row],
                ],
                result: (log.error[row] == 0).then(|| log.result[row].cast_signed()),
                error: (log.error[row] > 0).then(|| error_name(log.error[row]).into_owned()),
                caller: describe::stack_line(stacks, log.stack[row]),
            })
            .collect();
        called.sort_by_key(|called| called.start_ns);
        Ok(ThreadCalls(called))
    }

    /// The call that the thread is in at a moment.
    pub fn at(&self, t: u64) -> Option<&Called> {
        let behind = self.0.partition_point(|called| called.start_ns <= t);
        let last = self.0.get(behind.checked_sub(1)?)?;
        (t - last.start_ns < last.duration_ns).then_some(last)
    }

    /// Those that begin within `[from, to)`.
    pub fn between(&self, from: u64, to: u64) -> &[Called] {
        let at = |t| self.0.partition_point(|called| called.start_ns < t);
        self.0.get(at(from)..at(to)).unwrap_or_default()
    }
}

impl Called {
    /// `read(0x3, 0x7ffd..., 0x1000) = 12 in 3.1 µs, in read < main`; the arguments up to the last that is
    /// not 0.
    pub fn text(&self) -> String {
        let count = self.arguments.iter().rposition(|&arg| arg != 0);
        let shown = &self.arguments[..count.map_or(0, |last| last + 1)];
        let arguments: Vec<String> = shown.iter().map(|&arg| argument(arg)).collect();
        let result = match (&self.error, self.result) {
            (Some(error), _) => error.clone(),
            (None, Some(result)) => argument(result.cast_unsigned()),
            (None, None) => "?".to_owned(),
        };
        let (call, arguments) = (&self.call, arguments.join(", "));
        let took = format::duration(self.duration_ns);
        let text = format!("called {call}({arguments}) = {result} in {took}");
        match &self.caller {
            Some(caller) => format!("{text}, in {caller}"),
            None => text,
        }
    }
}

/// A number as a person expects it: small ones and those below 0 in decimal, addresses and flags in
/// hexadecimal.
fn argument(value: u64) -> String {
    match value.cast_signed() {
        signed @ -65_536..=65_536 => signed.to_string(),
        _ => format!("{value:#x}"),
    }
}

/// Calls in lines: the longest, in the order of time, and how many others there are of which kind.
pub fn lines(called: &[Called]) -> Vec<String> {
    const SHOWN: usize = 4;
    let mut longest: Vec<usize> = (0..called.len()).collect();
    longest.sort_by_key(|&i| Reverse(called[i].duration_ns));
    longest.truncate(SHOWN);
    longest.sort_unstable();
    let mut lines: Vec<String> = longest.iter().map(|&i| called[i].text()).collect();
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    for (i, other) in called.iter().enumerate() {
        if longest.binary_search(&i).is_err() {
            *others.entry(&other.call).or_default() += 1;
        }
    }
    let mut others: Vec<(&str, u64)> = others.into_iter().collect();
    others.sort_by_key(|&(_, count)| Reverse(count));
    if !others.is_empty() {
        let others: Vec<String> = (others.iter())
            .map(|&(call, count)| format!("{call} {}", format::count(count)))
            .collect();
        lines.push(format!("and shorter calls: {}", others.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::text;

    /// Reads of 10, 20 and 60 µs, one of which fails, by two threads, and one that begins behind the
    /// window.
    const TRACE: &str = "process app 100
        thread app app 100
        thread worker app 101
        0 cpu0 switch idle -> app
        1ms call 10us app read result=5 args=3,0x1000,100 stack=load;main
        2ms call 60us app read error=11 args=3 stack=load;main
        3ms call 20us worker read result=7 stack=store;main
        4ms call 5us worker futex error=110
        9ms call 1ms app read
        end 10ms";

    fn found(by: By) -> Vec<(String, String, u64, u64, u64)> {
        let trace = text::parse(TRACE).expect("a trace in text form");
        let tables = trace.tables;
        let threads = Threads::new(&tables.lifecycle);
        let stacks = StackTable::new(tables.stacks, tables.frames, tables.modules, tables.symbols);
        let window = Window {
            from: 0,
            to: 8_000_000,
        };
        let selection = Selection {
            window,
            of: &|_| true,
            by,
        };
        let calls = Calls::new("x86_64");
        let kinds = kinds(&tables.calls, &threads, &stacks, &calls, &selection);
        let what = |kind: &Kind<'_>| match (&kind.thread, &kind.function) {
            (Some(who), _) => who.thread.to_owned(),
            (None, function) => function.clone().unwrap_or_default(),
        };
        (kinds.iter())
            .map(|kind| {
                let of = what(kind);
                (kind.call.clone(), of, kind.count, kind.sum_ns, kind.errors)
            })
            .collect()
    }

    /// Each call has a row, or each with its thread, or with the function that called.
    #[test]
    fn calls_are_counted_by_what_is_wanted() {
        let row = |call: &str, of: &str, count, sum, errors| {
            (call.to_owned(), of.to_owned(), count, sum, errors)
        };
        assert_eq!(
            found(By::Call),
            [row("read", "", 3, 90_000, 1), row("futex", "", 1, 5_000, 1)]
        );
        assert_eq!(
            found(By::Thread),
            [
                row("read", "app", 2, 70_000, 1),
                row("read", "worker", 1, 20_000, 0),
                row("futex", "worker", 1, 5_000, 1),
            ]
        );
        assert_eq!(
            found(By::Function),
            [
                row("read", "load", 2, 70_000, 1),
                row("read", "store", 1, 20_000, 0),
                row("futex", "", 1, 5_000, 1),
            ]
        );
    }

    /// Deviation and errors are those of the three reads.
    #[test]
    fn figures_of_a_call() {
        let mut sums = Sums::default();
        for (ns, error) in [(10_000, 0), (60_000, 11), (20_000, 0)] {
            sums.add(ns, error);
        }
        let kind = sums.kind("read".into(), None, None);
        assert_eq!(
            (kind.min_ns, kind.max_ns, kind.mean_ns),
            (10_000, 60_000, 30_000.0)
        );
        // The root of ((20² + 30² + 10²) / 3) µs.
        assert!((kind.deviation_ns - 21_602.469).abs() < 0.001);
        let again = Failed {
            error: "EAGAIN".into(),
            errno: 11,
            count: 1,
        };
        assert_eq!(kind.by_error, [again]);
    }

    /// Of many calls the longest are told, in the order of time, and the others counted.
    #[test]
    fn many_calls_take_few_lines() {
        let called = |start_ns, duration_ns, call: &str| Called {
            start_ns,
            duration_ns,
            call: call.into(),
            arguments: [3, 0x7f00_0000_1000, 0, 0, 0, 0],
            result: Some(-1),
            error: None,
            caller: None,
        };
        let mut all: Vec<Called> = (0..10).map(|i| called(i, 100 + i, "read")).collect();
        all.push(called(10, 50, "write"));
        let lines = lines(&all);
        assert_eq!(lines[0], "called read(3, 0x7f0000001000) = -1 in 106 ns");
        assert_eq!(lines[3], "called read(3, 0x7f0000001000) = -1 in 109 ns");
        assert_eq!(lines[4], "and shorter calls: read 6, write 1");
        assert_eq!(lines.len(), 5);
    }
}
