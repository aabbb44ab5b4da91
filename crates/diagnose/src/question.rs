//! Questions to the user, asked only where another answer would give another verdict.
//!
//! Each doubt that weighs enough is tried out: the diagnosis is made once more for every other
//! possibility. If root thread and class stay the same, nobody need be troubled.

use hangdog_graph::{Edge, Evidence, Source};
use hangdog_trace::ids::Utid;

use crate::blame::{Blame, Doubt};
use crate::problem::Problem;
use crate::setting::Setting;
use crate::shape::{NOBODY, source_of};
use crate::suspect::Suspect;
use crate::verdict::{Class, Possibility, Question};

/// No more is asked.
const MOST: usize = 3;
/// So many diagnoses are made to find out what to ask.
const MOST_TRIALS: usize = 12;
/// Less likely possibilities are not worth a question.
const LEAST: f64 = 0.15;

/// Who is to blame, and for what: what a question must change.
type Root = (Utid, Class);

/// The questions of a diagnosis, those first that most of the time hangs on.
pub(crate) fn questions(
    evidence: &Evidence<'_>,
    problem: &Problem,
    blame: &Blame,
    setting: Setting<'_>,
    root: Root,
) -> Vec<Question> {
    let mut doubts: Vec<&Doubt> = Vec::new();
    for doubt in &blame.doubts {
        // Of the waits of one shape the longest stands for all.
        match doubts.iter_mut().find(|other| other.shape == doubt.shape) {
            Some(other) if length(other) < length(doubt) => *other = doubt,
            Some(_) => {}
            None => doubts.push(doubt),
        }
    }
    doubts.sort_by_key(|doubt| std::cmp::Reverse(length(doubt)));
    let mut trials = MOST_TRIALS;
    let mut questions = Vec::new();
    for doubt in doubts {
        if questions.len() == MOST {
            break;
        }
        let mut changes = false;
        let mut possibilities = Vec::new();
        for (at, belief) in doubt.beliefs.iter().enumerate() {
            let source = source_of(evidence, &belief.edge);
            let is_chosen = doubt.chosen == Some(at);
            let outcome = if is_chosen {
                root
            } else if trials == 0 || belief.probability < LEAST {
                continue;
            } else {
                trials -= 1;
                let supposed = (setting.answers).supposing(doubt.shape.clone(), source.clone());
                let supposed = Setting {
                    answers: &supposed,
                    ..setting
                };
                outcome(evidence, problem, supposed)
            };
            changes |= outcome != root;
            possibilities.push(Possibility {
                choice: source,
                text: possibility(evidence, &belief.edge),
                because: belief.edge.reason.clone(),
                probability: belief.probability,
                root: format!("{:?} of {}", outcome.1, evidence.name(outcome.0)),
                chosen: is_chosen,
            });
        }
        if !changes && doubt.answer.is_none() {
            continue;
        }
        possibilities.push(Possibility {
            choice: NOBODY.to_owned(),
            text: NOBODY.to_owned(),
            because: "somebody that the trace does not show".to_owned(),
            probability: 0.0,
            root: "the wait itself".to_owned(),
            chosen: doubt.chosen.is_none(),
        });
        questions.push(Question {
            number: questions.len() + 1,
            text: text(evidence, doubt),
            at: evidence
                .stacks
                .stack(doubt.waiting.wait.user_stack(evidence))
                .map(|frame| frame.to_string())
                .collect(),
            from_ns: doubt.waiting.from,
            to_ns: doubt.waiting.to,
            possibilities,
            wait: doubt.shape.clone(),
            answer: doubt.answer,
        });
    }
    questions
}

fn length(doubt: &Doubt) -> u64 {
    doubt.waiting.to - doubt.waiting.from
}

fn outcome(evidence: &Evidence<'_>, problem: &Problem, setting: Setting<'_>) -> Root {
    let blame = Blame::of_problem(evidence, problem, setting);
    let knot = blame.knot(problem);
    let suspect = Suspect::first(evidence, &blame, problem.thread, knot);
    (suspect.culprit(), suspect.class)
}

fn text(evidence: &Evidence<'_>, doubt: &Doubt) -> String {
    let wait = &doubt.waiting.wait;
    format!(
        "{} {}: who should have ended this wait?",
        evidence.name(wait.thread),
        wait.phrase(evidence)
    )
}

pub(crate) fn possibility(evidence: &Evidence<'_>, edge: &Edge) -> String {
    match edge.source {
        Source::Thread(thread) => evidence.name(thread),
        Source::Timer => "its own timeout: no other thread was expected".to_owned(),
        Source::Disk => "a block device".to_owned(),
        Source::Network => "the network".to_owned(),
        Source::Device(number) => format!("a device (interrupt {number})"),
        Source::Nobody => "nobody in the trace".to_owned(),
    }
}
