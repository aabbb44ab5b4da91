//! One thread's intervals as entries of a story: each says what the thread did and who or what
//! put it there. Text and JSON are made from the same entries, one at a time.

use crate::calls::{self, Called, ThreadCalls};
use crate::case::Recording;
use crate::describe::{self, CallInfo};
use crate::format;
use crate::samples::{self, Sampled, ThreadSamples};
use crate::select::{Who, Window};
use hangdog_timeline::{Cause, Interval, Intervals, State};
use hangdog_trace::calls::Calls;
use hangdog_trace::ids::{IDLE, NONE, Utid};
use hangdog_trace::stacks::StackTable;
use hangdog_trace::words::{Context, InterruptKind, Left};
use hangdog_trace::yardstick::{Compared, Operation};
use serde::Serialize;
use std::borrow::Cow;

/// The story of a thread within a window.
pub struct Story<'a> {
    /// The trace.
    pub recording: &'a Recording,
    /// Its stacks.
    pub stacks: &'a StackTable,
    /// System calls of the machine that was recorded.
    pub calls: &'a Calls,
    /// What was sampled of the thread.
    pub samples: &'a ThreadSamples,
    /// Its system calls, where they are wanted and recorded.
    pub called: Option<&'a ThreadCalls>,
    /// Whose story it is.
    pub thread: Utid,
    /// Of which time.
    pub window: Window,
}

/// One interval.
#[derive(Serialize, Debug)]
pub struct Entry<'a> {
    /// When it began, ns since the trace's start; no earlier than the window.
    pub start_ns: u64,
    /// How long it took within the window, ns.
    pub duration_ns: u64,
    /// running, runnable, preempted, blocked, interrupted.
    pub state: &'static str,
    /// Where it was seen while it ran, most often first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<Sampled>,
    /// The system calls that began in it, where they were recorded; they may end later.
    #[serde(skip_serializing_if = "<[Called]>::is_empty")]
    pub called: &'a [Called],
    /// What happened.
    #[serde(flatten)]
    pub what: What<'a>,
}

/// What happened in an interval, by how it came about.
#[derive(Serialize, Debug)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What<'a> {
    /// It ran.
    Ran {
        /// Where.
        cpu: u16,
        /// How long it had waited for a CPU just before, ns.
        waited_ns: u64,
        /// That time held against a context switch on the machine; none if that was not measured.
        compared: Option<Compared>,
    },
    /// It was made runnable.
    Woken(Box<Woken<'a>>),
    /// It gave the CPU up, or was taken off it.
    Displaced {
        /// preempted, throttled, yielded.
        how: &'static str,
        /// Which CPU.
        cpu: u16,
        /// Who came; none if the CPU went idle.
        by: Option<Who<'a>>,
    },
    /// It waited.
    Waited(Box<Waited<'a>>),
    /// An interrupt had its CPU.
    Interrupt {
        /// hard, soft, timer.
        kind: &'static str,
        /// Number of the interrupt or softirq.
        vector: u16,
        /// Which CPU.
        cpu: u16,
    },
    /// It was so when the trace began.
    Before,
    /// It had just been created.
    Created,
    /// It left its CPU unseen, because the event was lost.
    Lost,
}

/// Who or what made a thread runnable.
#[derive(Serialize, Debug)]
pub struct Woken<'a> {
    /// thread, timer, interrupt, softirq, kernel timer.
    pub context: &'static str,
    /// Number of the interrupt or softirq.
    pub vector: u16,
    /// The waking thread; none where no thread did it.
    pub by: Option<Who<'a>>,
    /// Whether this is the thread's first wake after its creation.
    pub new: bool,
    /// What the waker was in.
    pub call: Option<CallInfo>,
    /// User frames of the waker, innermost first.
    pub stack: Vec<String>,
    /// Kernel frames, innermost first.
    pub kernel_stack: Vec<String>,
    /// The same stacks in a line each.
    #[serde(skip)]
    lines: Vec<String>,
}

/// What a thread waited for.
#[derive(Serialize, Debug)]
pub struct Waited<'a> {
    /// sleeping, uninterruptible, stopped, idle, dead.
    pub how: &'static str,
    /// The system call that it waits in.
    pub call: CallInfo,
    /// Who held the lock, if the lock says so.
    pub holder: Option<Who<'a>>,
    /// The time held against what the machine takes for such a call, where that was measured.
    pub compared: Option<Compared>,
    /// User frames, innermost first.
    pub stack: Vec<String>,
    /// Kernel frames, innermost first.
    pub kernel_stack: Vec<String>,
    #[serde(skip)]
    lines: Vec<String>,
}

impl<'a> Story<'a> {
    fn intervals(&self) -> Intervals<'a> {
        self.recording.timeline.intervals(self.thread)
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.intervals()
            .indexes(self.window.from, self.window.to)
            .len()
    }

    /// The entries in order, each made when it is asked for.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + '_ {
        let intervals = self.intervals();
        let Window { from, to } = self.window;
        intervals
            .indexes(from, to)
            .zip(intervals.between(from, to))
            .map(move |(i, interval)| self.entry_of(intervals, i, interval))
    }

    /// The entry of the thread's interval at `index`, whole whatever the window; none if there are
    /// not that many.
    pub fn entry(&self, index: usize) -> Option<Entry<'a>> {
        let intervals = self.intervals();
        let interval = intervals.get(index)?;
        Some(self.entry_of(intervals, index, interval))
    }

    fn entry_of(&self, intervals: Intervals<'a>, i: usize, interval: Interval) -> Entry<'a> {
        Entry {
            start_ns: interval.start,
            duration_ns: interval.duration(),
            state: interval.state.text(),
            sampled: match interval.state {
                State::Running => {
                    let (start, end) = (interval.start, interval.end);
                    self.samples.between(self.stacks, start, end)
                }
                _ => Vec::new(),
            },
            called: self
                .called
                .map_or(&[], |called| called.between(interval.start, interval.end)),
            what: self.what(intervals, i, interval),
        }
    }

    fn what(&self, intervals: Intervals<'a>, i: usize, interval: Interval) -> What<'a> {
        let switches = &self.recording.switches;
        match interval.cause {
            Cause::Unknown if i > 0 => What::Lost,
            Cause::Unknown if self.recording.timeline.life(self.thread).start == 0 => What::Before,
            Cause::Unknown => What::Created,
            Cause::Wake(row) => What::Woken(Box::new(self.woken(row as usize))),
            Cause::Interrupt(row) => {
                let interrupts = &self.recording.interrupts;
                let row = row as usize;
                What::Interrupt {
                    kind: InterruptKind::from(interrupts.kind[row]).text(),
                    vector: interrupts.vector[row],
                    cpu: interrupts.cpu[row],
                }
            }
            Cause::Switch(row) => {
                let row = row as usize;
                match interval.state {
                    State::Running | State::Interrupted => {
                        let waited_ns = waited(intervals, i);
                        What::Ran {
                            cpu: switches.cpu[row],
                            waited_ns,
                            compared: self.compare(waited_ns, Some(Operation::HandOver)),
                        }
                    }
                    State::Runnable | State::Preempted => What::Displaced {
                        how: Left::from(switches.left[row]).text(),
                        cpu: switches.cpu[row],
                        by: self.who(switches.next[row]),
                    },
                    State::Blocked => What::Waited(Box::new(self.waited(row, interval.duration()))),
                }
            }
        }
    }

    fn woken(&self, row: usize) -> Woken<'a> {
        let wakes = &self.recording.wakes;
        let context = Context::from(wakes.context[row]);
        let by = (context == Context::Task)
            .then(|| self.who(wakes.waker[row]))
            .flatten();
        let call = CallInfo::new(
            self.calls,
            wakes.call[row],
            wakes.object[row],
            wakes.arg[row],
        );
        let (user, kernel) = (wakes.user_stack[row], wakes.kernel_stack[row]);
        Woken {
            context: context.text(),
            vector: wakes.vector[row],
            new: wakes.new[row],
            call: (by.is_some() && call.is_call()).then_some(call),
            by,
            stack: describe::frames(self.stacks, user),
            kernel_stack: describe::frames(self.stacks, kernel),
            lines: self.stack_lines(user, kernel),
        }
    }

    fn waited(&self, row: usize, ns: u64) -> Waited<'a> {
        let switches = &self.recording.switches;
        let (user, kernel) = (switches.user_stack[row], switches.kernel_stack[row]);
        let call = CallInfo::new(
            self.calls,
            switches.call[row],
            switches.object[row],
            switches.arg[row],
        );
        Waited {
            how: Left::from(switches.left[row]).text(),
            compared: self.compare(ns, operation(&call, Left::from(switches.left[row]))),
            call,
            holder: (switches.holder[row] != NONE)
                .then(|| self.who(switches.holder[row]))
                .flatten(),
            stack: describe::frames(self.stacks, user),
            kernel_stack: describe::frames(self.stacks, kernel),
            lines: self.stack_lines(user, kernel),
        }
    }

    fn compare(&self, ns: u64, operation: Option<Operation>) -> Option<Compared> {
        let yardstick = self.recording.trace.meta().yardstick.as_ref()?;
        yardstick.compare(ns, operation?)
    }

    fn stack_lines(&self, user: u32, kernel: u32) -> Vec<String> {
        let user = describe::stack_line(self.stacks, user).map(|line| format!("in {line}"));
        let kernel =
            describe::stack_line(self.stacks, kernel).map(|line| format!("in the kernel: {line}"));
        user.into_iter().chain(kernel).collect()
    }

    /// Who a thread is; none for idle.
    fn who(&self, utid: Utid) -> Option<Who<'a>> {
        (utid != IDLE).then(|| Who::new(&self.recording.threads, utid))
    }
}

/// What a wait in a call can be held against: one for the disk alone, where it cannot be
/// interrupted.
fn operation(call: &CallInfo, left: Left) -> Option<Operation> {
    match &*call.name {
        "fsync" | "fdatasync" => Some(Operation::Sync),
        "page fault" if left == Left::Uninterruptible => Some(Operation::MajorFault),
        "read" | "pread64" | "readv" | "preadv" if left == Left::Uninterruptible => {
            Some(Operation::DiskRead)
        }
        _ => None,
    }
}

/// How long a thread that has a CPU in interval `i` had waited for it just before, ns.
fn waited(intervals: Intervals<'_>, i: usize) -> u64 {
    (0..i)
        .rev()
        .map_while(|i| intervals.get(i).filter(|before| before.state.wants_cpu()))
        .map(|before| before.duration())
        .sum()
}

impl Entry<'_> {
    /// What happened, in a line.
    pub fn text(&self) -> String {
        match &self.what {
            What::Ran {
                cpu, waited_ns: 0, ..
            } => format!("on CPU {cpu}"),
            What::Ran {
                cpu,
                waited_ns,
                compared,
            } => {
                let waited = format::duration(*waited_ns);
                let text = format!("on CPU {cpu}, after {waited} of waiting for it");
                with(text, compared)
            }
            What::Woken(woken) => woken.text(),
            What::Displaced { how, cpu, by: None } => format!("{how} on CPU {cpu}"),
            What::Displaced {
                how,
                cpu,
                by: Some(who),
            } => {
                format!("{how} on CPU {cpu}, {} came", who.text())
            }
            What::Waited(waited) => waited.text(),
            What::Interrupt { kind, vector, cpu } => {
                format!("{} on CPU {cpu}", interrupt(kind, *vector))
            }
            What::Before => "since before the trace".into(),
            What::Created => "newly created".into(),
            What::Lost => "unknown, because the event was lost".into(),
        }
    }

    /// Where in the code it was, in further lines.
    pub fn places(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let stacks = match &self.what {
            What::Woken(woken) => &woken.lines[..],
            What::Waited(waited) => &waited.lines[..],
            _ => &[],
        };
        let sampled = samples::line(&self.sampled).map(Cow::from);
        let called = calls::lines(self.called).into_iter().map(Cow::from);
        (sampled.into_iter().chain(called)).chain(stacks.iter().map(Cow::from))
    }
}

/// A text with what its time is held against.
fn with(text: String, compared: &Option<Compared>) -> String {
    match compared {
        Some(compared) => format!("{text}: {}", compared.text),
        None => text,
    }
}

/// An interrupt or the context of a wake, with its number where it has one; timers have none.
fn interrupt(kind: &str, vector: u16) -> String {
    if kind == InterruptKind::Soft.text() {
        format!("{kind} {}", describe::softirq(vector))
    } else if kind == InterruptKind::Hard.text() {
        format!("{kind} {vector}")
    } else {
        format!("a {kind}")
    }
}

impl Woken<'_> {
    fn text(&self) -> String {
        let verb = if self.new { "started" } else { "woken" };
        let by = match &self.by {
            Some(who) => who.text(),
            None if self.context == Context::Task.text() => "the idle thread".into(),
            None => interrupt(self.context, self.vector),
        };
        match &self.call {
            Some(call) => format!("{verb} by {by} in {}", call.text()),
            None => format!("{verb} by {by}"),
        }
    }
}

impl Waited<'_> {
    fn text(&self) -> String {
        let mut text = if self.how == Left::Stopped.text() {
            "stopped by a signal or a debugger".into()
        } else if self.how == Left::Idle.text() {
            "nothing to do".into()
        } else {
            self.call.text()
        };
        if let Some(holder) = &self.holder {
            text = format!("{text}, held by {}", holder.text());
        }
        if self.how == Left::Uninterruptible.text() {
            text.push_str(", uninterruptible");
        }
        with(text, &self.compared)
    }
}
