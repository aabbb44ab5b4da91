//! The verdict: one structure that text, JSON and pages show alike.

use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;
use hangdog_trace::yardstick::Compared;
use serde::Serialize;

use crate::shape::Shape;

/// Why a problem took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Class {
    /// A thread ran.
    LongRunning,
    /// A thread polled: it yielded or slept for moments, again and again.
    RepeatedYield,
    /// A thread was blocked.
    LongWait,
    /// A thread was runnable and got no CPU.
    Starved,
    /// Memory had to be paged in.
    Paging,
    /// Interrupts took the CPU.
    Interrupted,
    /// Threads waited for each other in a circle.
    Circular,
    /// The trace does not tell.
    Unknown,
}

/// A thread in a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Who {
    /// Its name at the trace's end.
    pub thread: String,
    /// Its process's name.
    pub process: String,
    /// The script, module or class that its process runs, where that is an interpreter's.
    pub script: Option<String>,
    /// The kernel's thread id.
    pub tid: u32,
    /// The kernel's process id.
    pub pid: u32,
}

/// A thread as the verdict names it.
pub fn who(evidence: &Evidence<'_>, thread: Utid) -> Who {
    let known = evidence.threads.thread(thread);
    let process = evidence.threads.process(known.upid);
    Who {
        thread: known.name().to_owned(),
        process: process.name.clone(),
        script: process.script().map(str::to_owned),
        tid: known.tid,
        pid: known.pid,
    }
}

/// What took too long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProblemReport {
    /// Whose time it was.
    #[serde(flatten)]
    pub who: Who,
    /// When it began, ns since the trace's start.
    pub start_ns: u64,
    /// How long it took, ns.
    pub duration_ns: u64,
    /// How long it went on in all, ns, where it consists of so many small waits that only the first of them
    /// are explained.
    pub all_ns: Option<u64>,
    /// What the thread itself did for most of it.
    pub class: Class,
}

/// Who or what is to blame most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Root {
    /// What it did.
    pub class: Class,
    /// The thread.
    #[serde(flatten)]
    pub who: Who,
    /// The function that the time went to, or in which it waited.
    pub function: Option<String>,
    /// The function that holds its code, where it is inlined into that.
    pub inlined_into: Option<String>,
    /// Where that is: source line or module; for starvation, what it did not get.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Its share of the problem's time, 0 to 1; with that of the others.
    pub share: f64,
    /// So many other threads of its process did the same in the same function at other times.
    pub others: usize,
    /// How sure this is, 0 to 1: what is known of the time, less for every edge on the way that
    /// need not be a cause.
    pub confidence: f64,
    /// Whether it only shared the CPUs with others.
    #[serde(skip)]
    pub by_crowd: bool,
    /// Whether it is the many programs that let time pass for a shell's loop.
    #[serde(skip)]
    pub by_naps: bool,
    /// Whether it is sleep(1), which slept for as long as whoever started it wanted.
    #[serde(skip)]
    pub is_sleep: bool,
    /// Whether the several threads that did the same are several at work, not one goroutine that went from thread
    /// to thread.
    #[serde(skip)]
    pub in_parallel: bool,
}

/// How much of the problem's time went to one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameRow {
    /// The kind.
    pub kind: &'static str,
    /// Time, ns; all rows together are the problem's duration.
    pub ns: u64,
    /// Share of the problem's time, 0 to 1.
    pub share: f64,
}

/// How much of the problem's time went to one thread in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadBlame {
    /// The thread.
    #[serde(flatten)]
    pub who: Who,
    /// The kind.
    pub kind: &'static str,
    /// Time, ns; all rows together are the problem's duration.
    pub ns: u64,
    /// Share of the problem's time, 0 to 1.
    pub share: f64,
    /// The time held against what the machine takes for one operation of that kind; none where
    /// that was not measured, or nothing fits.
    pub compared: Option<Compared>,
}

/// What a part of the problem's time went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlameSpan {
    /// Since when, ns since the trace's start.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// Who is to blame: the thread's id within the trace.
    pub utid: Utid,
    /// The kind, as of [`BlameRow`].
    pub kind: &'static str,
}

/// What leads from one step of the path to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeReport {
    /// How a wait was ended, or by whom it should have been.
    pub kind: &'static str,
    /// `strong` or `weak`.
    pub strength: &'static str,
    /// Why this is believed.
    pub reason: String,
}

/// A step from the problem to its root.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathStep {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// The thread's id within the trace.
    pub utid: Utid,
    /// Since when, ns since the trace's start.
    pub from_ns: u64,
    /// Until when, ns since the trace's start.
    pub to_ns: u64,
    /// How long it had been off its CPU already when the recording began, ns; 0 where that is not
    /// known, or it was not.
    pub before_ns: u64,
    /// What it did.
    pub doing: String,
    /// What ended that, and leads to the next step; none where it did not wait.
    pub edge: Option<EdgeReport>,
    /// Its stack, innermost frame first.
    pub stack: Vec<String>,
    /// The frame that speaks for the stack: of those that are most of all the program's own the
    /// innermost; none where no frame has a name.
    pub own_frame: Option<usize>,
    /// Why the stack ends before its outermost function; none if it does not, or if that is not
    /// known.
    pub stack_end: Option<&'static str>,
}

/// A function's part in the time that a thread ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionShare {
    /// Its name; its module in brackets where it has none.
    pub function: String,
    /// File name of its module, without folders, if it is known.
    pub module: Option<String>,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// The line, as file:line, that it was seen in most often, if it is known.
    pub source: Option<String>,
    /// The function that holds its code, where it is inlined into that.
    pub inlined_into: Option<String>,
    /// Share of the samples in which it was the innermost function, 0 to 1.
    #[serde(rename = "self")]
    pub own: f64,
    /// Share of the samples that have it on their stacks, 0 to 1.
    pub total: f64,
}

/// An innermost function and its share of all samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hot {
    /// Its name; its module in brackets where it has none.
    pub function: String,
    /// File name of its module, if it is known.
    pub module: Option<String>,
    /// Share of all samples, 0 to 1.
    pub share: f64,
}

/// The function that the time is named after, and what it went to inside that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Common {
    /// The function.
    #[serde(flatten)]
    pub function: FunctionShare,
    /// The innermost functions of its samples that were seen most, itself perhaps among them.
    pub hot: Vec<Hot>,
}

/// Stacks that end before their outermost function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EarlyEnds {
    /// Why: a word of `hangdog_trace::words::StackEnd`, or `no stack`.
    pub why: &'static str,
    /// Share of the samples, 0 to 1.
    pub share: f64,
}

/// What began a piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Begun {
    /// How: as of an edge; `before` where it went on already when the recording began.
    pub kind: &'static str,
    /// When, ns since the trace's start.
    pub at_ns: u64,
    /// The thread that did it, if it was one.
    pub by: Option<Who>,
    /// Bytes that the thread then received, where that is recorded.
    pub bytes: Option<u32>,
    /// All of that as a sentence's part.
    pub text: String,
}

/// A step of the slice: whose work, and what began it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SliceStep {
    /// Whose work it is.
    #[serde(flatten)]
    pub who: Who,
    /// What began it.
    pub begun: Begun,
}

/// How long a role took in one way, in the problem and in its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The role: names of process and thread, numbers in them left out where several threads differ in these.
    pub role: String,
    /// The kind of blame.
    pub kind: &'static str,
    /// In the problem, ns.
    pub now_ns: u64,
    /// In the baseline, ns.
    pub then_ns: u64,
}

/// A similar wait that went well.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaselineReport {
    /// Whether it comes from another recording.
    pub from_other: bool,
    /// How many of them there are; of these it is the one of median length.
    pub found: usize,
    /// Whose.
    #[serde(flatten)]
    pub who: Who,
    /// When it began, ns since its trace's start.
    pub start_ns: u64,
    /// How long it took, ns.
    pub duration_ns: u64,
    /// How long the problem's took, ns.
    pub now_ns: u64,
    /// Who took how long now and then, the greatest difference first.
    pub compared: Vec<Comparison>,
}

/// What a thread did while it ran, by samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ran {
    /// The thread.
    #[serde(flatten)]
    pub who: Who,
    /// How many threads did this, one after the other or at a time: it, and others of its process.
    pub threads: usize,
    /// How long they ran in the time that is looked at, ns.
    pub ns: u64,
    /// How many samples show it in that time.
    pub samples: u64,
    /// By how much, up or down, a share may be wrong because the samples are so few: at most this
    /// in 95 of 100 cases, 0 to 1. None where there is no sample.
    pub share_error: Option<f64>,
    /// The deepest function that is on at least 70 % of the samples (60 % if none is), one of the
    /// program itself if there is one.
    pub common: Option<Common>,
    /// Functions on at least 1 % of the samples, those that were innermost most often first.
    pub functions: Vec<FunctionShare>,
    /// The share of self time of all other functions, 0 to 1.
    pub others: f64,
    /// The share of samples of which no function and no module is known, 0 to 1. With `others`
    /// and the functions' self time it is 1.
    pub unknown: f64,
    /// Samples whose stacks end early: what is further out may have been more than is shown.
    pub early_ends: Vec<EarlyEnds>,
    /// What began the longest piece of that work.
    pub begun: Option<Begun>,
}

/// What the trace cannot know, and how to find out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hint {
    /// What.
    pub text: String,
    /// How to find out.
    pub how: String,
}

/// One of the things that may have ended a wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Possibility {
    /// What an answer that chooses it says.
    pub choice: String,
    /// Who or what.
    pub text: String,
    /// What speaks for it.
    pub because: String,
    /// How likely it is, 0 to 1.
    pub probability: f64,
    /// Class and thread of the root if it is so.
    pub root: String,
    /// Whether this verdict goes by it.
    pub chosen: bool,
}

/// Something that only the user may know, and that would change the verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// From 1, in the order of importance.
    pub number: usize,
    /// The question.
    pub text: String,
    /// The stack that the thread waited in, innermost frame first.
    pub at: Vec<String>,
    /// Since when it waited, ns since the trace's start.
    pub from_ns: u64,
    /// Until when, ns since the trace's start.
    pub to_ns: u64,
    /// The answers that there are, the likeliest first; the last is always none of the others.
    pub possibilities: Vec<Possibility>,
    /// The waits that an answer holds for.
    pub wait: Shape,
    /// The number of the answer that was given; none if the likeliest was taken.
    pub answer: Option<u32>,
}

/// Why a problem took long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The verdict in a sentence.
    pub sentence: String,
    /// Where the time went by what a person can act on, if the problem is a command's whole run.
    pub whole: Option<Whole>,
    /// What took too long.
    pub problem: ProblemReport,
    /// Who is to blame most.
    pub root: Root,
    /// The root and those who come next, most to blame first.
    pub suspects: Vec<Root>,
    /// How long the problem would have lasted had the root taken no time, ns.
    pub without_root_ns: u64,
    /// Where the time went by kind, most first.
    pub blame: Vec<BlameRow>,
    /// Where the time went by thread and kind, most first.
    pub blame_by_thread: Vec<ThreadBlame>,
    /// The same in the order of time: what each part of the problem's time went to, neighbours of
    /// one thread and kind as one. All together are the problem's duration.
    pub blame_over_time: Vec<BlameSpan>,
    /// How much of the problem's time is estimated from a sample, ns: it went to more short waits than are
    /// looked at one by one.
    pub estimated_ns: u64,
    /// What the one who is to blame ran, where it did; of a starved one what took its CPU.
    pub ran: Option<Ran>,
    /// From the problem to its root.
    pub path: Vec<PathStep>,
    /// From the root back to what set it going, the root's own work first.
    pub slice: Vec<SliceStep>,
    /// The same wait when it went well, if one is known.
    pub baseline: Option<BaselineReport>,
    /// The threads that wait for each other, if some do.
    pub knot: Option<Vec<Who>>,
    /// What only the user may know, and would change the verdict.
    pub questions: Vec<Question>,
    /// What the trace cannot know.
    pub hints: Vec<Hint>,
}

/// Where the time of a run went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Whole {
    /// The longest first. Their times add up to the run's.
    pub entries: Vec<Entry>,
    /// The share of the run's time that the trace does not tell of, 0 to 1.
    pub unknown: f64,
    /// How sure this is, 0 to 1: the known share of the time, less for what is reached only by
    /// edges that need not be causes, and where events were lost.
    pub confidence: f64,
}

/// Time that a program spent in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The program: the name of its process or processes.
    pub process: String,
    /// How many processes of that name it was.
    pub processes: usize,
    /// The kind of blame.
    pub kind: &'static str,
    /// What it did or lacked, in words that follow the program's name: "waiting for the disk".
    pub what: String,
    /// How long, ns.
    pub ns: u64,
    /// Share of the run's time, 0 to 1.
    pub share: f64,
    /// The function that most of it was spent in, or that its longest wait was in; none if no
    /// stack tells.
    pub function: Option<String>,
    /// Where that is: source line or module.
    #[serde(rename = "where")]
    pub place: Option<String>,
}
