//! Why an edge of a verdict's path is believed: what was seen, how such waits ended before, and
//! what else it could have been.

use hangdog_graph::belief::beliefs;
use hangdog_graph::history::History;
use hangdog_graph::{Evidence, Source};
use hangdog_trace::ids::Utid;
use hangdog_trace::words::Context;
use serde::Serialize;

use crate::blame::Blame;
use crate::problem::Problem;
use crate::setting::Setting;
use crate::stretch::Waiting;
use crate::suspect::Suspect;
use crate::verdict::who;
use crate::verdict::{EdgeReport, Possibility, Who};

/// A wake as the kernel saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// When, ns since the trace's start.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u16,
    /// The thread that was on it.
    pub on_cpu: Who,
    /// Whether it is that thread's own doing, or an interrupt's.
    pub context: String,
    /// The system call that the thread was in; empty out of one and in an interrupt.
    pub call: String,
    /// The thread's user stack, innermost frame first.
    pub stack: Vec<String>,
    /// The kernel's, where one was taken.
    pub kernel_stack: Vec<String>,
}

/// How often a thread ended such waits before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Before {
    /// The thread.
    #[serde(flatten)]
    pub who: Who,
    /// How often it woke the waiter there.
    pub times: usize,
    /// How often the waiter then went on, instead of looking and waiting again.
    pub went_on: usize,
}

/// Why an edge is believed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Who waited.
    pub waiter: Who,
    /// What it did.
    pub doing: String,
    /// Since when, ns since the trace's start.
    pub from_ns: u64,
    /// Until when, ns since the trace's start.
    pub to_ns: u64,
    /// Where, innermost frame first.
    pub at: Vec<String>,
    /// How often it was woken by another than its own timeout, and went on waiting.
    pub woken_in_vain: usize,
    /// What is believed to have ended it.
    pub edge: EdgeReport,
    /// The wake that made it runnable, if there was one.
    pub wake: Option<Seen>,
    /// Who ended such waits before.
    pub before: Vec<Before>,
    /// How many such waits a timeout ended.
    pub before_by_timer: usize,
    /// How many ended by a device, or by what the trace does not tell.
    pub before_by_others: usize,
    /// The median length of such waits, ns; none if there was none.
    pub before_median_ns: Option<u64>,
    /// All that it could have been, the likeliest first.
    pub possibilities: Vec<Possibility>,
}

/// Explains the edge that leads from step `number` (from 1) of a verdict's path to the next; none
/// if there is no such step, or it did not wait.
pub fn explain(
    evidence: &Evidence<'_>,
    problem: &Problem,
    setting: Setting<'_>,
    number: usize,
) -> Option<Explanation> {
    let problem = &problem.explained();
    let blame = Blame::of_problem(evidence, problem, setting);
    let knot = blame.knot(problem);
    let suspect = Suspect::first(evidence, &blame, problem.thread, knot);
    let step = blame.main_step(&suspect);
    let way = blame.way_to(step);
    let reached = way
        .iter()
        .filter_map(|&at| blame.steps[at].reached.as_ref());
    let own = blame
        .pieces_of(&suspect)
        .filter(|piece| piece.step == step)
        .max_by_key(|piece| piece.ns())
        .and_then(|piece| piece.wait.as_ref());
    let way: Vec<_> = reached.chain(own).take(number).collect();
    let (waiting, edge) = way.get(number.checked_sub(1)?)?;
    let dependent: Vec<Utid> = way.iter().map(|(above, _)| above.wait.thread).collect();
    let wait = &waiting.wait;
    let history = History::of(evidence, wait);
    let mut lengths = history.lengths.clone();
    lengths.sort_unstable();
    Some(Explanation {
        waiter: who(evidence, wait.thread),
        doing: wait.phrase(evidence),
        from_ns: waiting.from,
        to_ns: waiting.to,
        at: frames(evidence, wait.user_stack(evidence)),
        woken_in_vain: waiting.spurious(),
        edge: EdgeReport {
            kind: edge.kind.text(),
            strength: edge.strength.text(),
            reason: edge.reason.clone(),
        },
        wake: waiting.wake.map(|row| seen(evidence, row)),
        before: history
            .by_thread
            .iter()
            .map(|(&thread, ended)| Before {
                who: who(evidence, thread),
                times: ended.times,
                went_on: ended.brought_on,
            })
            .collect(),
        before_by_timer: history.by_timer,
        before_by_others: history.by_others,
        before_median_ns: lengths.get(lengths.len() / 2).copied(),
        possibilities: possibilities(evidence, waiting, &dependent, edge.source),
    })
}

fn possibilities(
    evidence: &Evidence<'_>,
    waiting: &Waiting,
    dependent: &[Utid],
    chosen: Source,
) -> Vec<Possibility> {
    beliefs(
        evidence,
        &waiting.wait,
        waiting.wake,
        waiting.in_vain(),
        dependent,
    )
    .into_iter()
    .map(|belief| Possibility {
        choice: crate::shape::source_of(evidence, &belief.edge),
        text: crate::question::possibility(evidence, &belief.edge),
        because: belief.edge.reason.clone(),
        probability: belief.probability,
        root: String::new(),
        chosen: belief.edge.source == chosen,
    })
    .collect()
}

fn seen(evidence: &Evidence<'_>, row: usize) -> Seen {
    let wakes = evidence.wakes;
    let context = Context::from(wakes.context[row]);
    Seen {
        at_ns: wakes.ts[row],
        cpu: wakes.cpu[row],
        on_cpu: who(evidence, wakes.waker[row]),
        context: match (context, evidence.is_own(row)) {
            (Context::Task, _) => "the waker itself".to_owned(),
            (_, true) => "a softirq that delivers data it sent".to_owned(),
            (context, false) => format!("interrupted by {}", context.text()),
        },
        call: match context {
            Context::Task => evidence.calls.name(wakes.call[row]).into_owned(),
            _ => String::new(),
        },
        stack: frames(evidence, wakes.user_stack[row]),
        kernel_stack: frames(evidence, wakes.kernel_stack[row]),
    }
}

fn frames(evidence: &Evidence<'_>, stack: u32) -> Vec<String> {
    let stack = evidence.stacks.stack(stack);
    stack.map(|frame| frame.to_string()).collect()
}
