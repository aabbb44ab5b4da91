//! The verdict: one structure that text, JSON and pages show alike.

use serde::Serialize;

/// Why a problem took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Class {
    /// A thread ran.
    LongRunning,
    /// A thread polled: it yielded or slept for moments, again and again.
    RepeatedYield,
    /// A thread was blocked.
    LongWait,
    /// A thread wanted a CPU and did not get one.
    Starved,
    /// Memory had to be brought in.
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
    /// The kernel's thread id.
    pub tid: u32,
    /// The kernel's process id.
    pub pid: u32,
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
    /// Where that is: source line or module; for starvation, what it did not get.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Its share of the problem's time, 0 to 1.
    pub share: f64,
    /// How sure this is, 0 to 1: what is known of the time, less for every edge on the way that
    /// need not be a cause.
    pub confidence: f64,
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
    pub thread: String,
    /// Its process.
    pub process: String,
    /// Since when, ns since the trace's start.
    pub from_ns: u64,
    /// Until when, ns since the trace's start.
    pub to_ns: u64,
    /// What it did.
    pub doing: String,
    /// What ended that, and leads to the next step; none where it did not wait.
    pub edge: Option<EdgeReport>,
    /// Its stack, innermost frame first.
    pub stack: Vec<String>,
}

/// What the trace cannot know, and how to find out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The question.
    pub text: String,
    /// How to answer it.
    pub how: String,
}

/// Why a problem took long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The verdict in a sentence.
    pub sentence: String,
    /// What took too long.
    pub problem: ProblemReport,
    /// Who is to blame most.
    pub root: Root,
    /// Where the time went by kind, most first.
    pub blame: Vec<BlameRow>,
    /// Where the time went by thread and kind, most first.
    pub blame_by_thread: Vec<ThreadBlame>,
    /// From the problem to its root.
    pub path: Vec<PathStep>,
    /// The threads that wait for each other, if some do.
    pub knot: Option<Vec<Who>>,
    /// What the trace cannot know.
    pub questions: Vec<Question>,
}
