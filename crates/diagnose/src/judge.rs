//! From blame to verdict: who is to blame most, and by which way that was found.

use hangdog_graph::{Edge, Evidence, Strength, WaitKind};
use hangdog_trace::ids::Utid;
use hangdog_trace::words::Left;
use std::collections::HashMap;
use std::ops::Range;

use crate::blame::{Blame, BlameKind, Knot, Piece};
use crate::function::{Function, common, frames, mostly_yielding, samples_of};
use crate::problem::Problem;
use crate::sentence::{self, Facts};
use crate::starvation::{self, Starvation};
use crate::verdict::{
    BlameRow, Class, EdgeReport, PathStep, ProblemReport, Question, Root, ThreadBlame, Verdict, Who,
};

/// Why a problem took so long.
///
/// `lost` says that events are missing from the trace, which makes everything less sure.
pub fn diagnose(evidence: &Evidence<'_>, problem: &Problem, lost: bool) -> Verdict {
    let blame = Blame::of(evidence, problem.thread, problem.window.clone());
    Judge {
        evidence,
        problem,
        blame: &blame,
    }
    .verdict(lost)
}

struct Judge<'a, 'e> {
    evidence: &'a Evidence<'e>,
    problem: &'a Problem,
    blame: &'a Blame,
}

/// A thread that the most time was laid to, and what it did in it.
struct Suspect {
    thread: Utid,
    class: Class,
    kind: BlameKind,
    /// Its pieces, in the order of time.
    windows: Vec<Range<u64>>,
    time: u64,
    starvation: Option<Starvation>,
    function: Option<Function>,
}

/// A circle counts as the cause from this share of the problem on.
const CIRCLE_SHARE: f64 = 0.5;
/// So many moments of sleep are polling, if they are this short on average.
const POLLS: usize = 10;
const POLL_NS: u64 = 200_000_000;

impl Judge<'_, '_> {
    fn verdict(&self, lost: bool) -> Verdict {
        let evidence = self.evidence;
        let duration = self.problem.duration().max(1);
        let share = |ns: u64| ns as f64 / duration as f64;
        let knot = self.knot();
        let suspect = self.suspect(knot);
        let path = self.path(&suspect);
        let weak = self.weak_edges(&suspect);
        let unknown: u64 = self.total(|piece| piece.kind == BlameKind::Unknown);

        let culprit = match &suspect.starvation {
            Some(Starvation::Hog { thread, .. }) => *thread,
            _ => suspect.thread,
        };
        let root = Root {
            class: suspect.class,
            who: who(evidence, culprit),
            function: suspect
                .function
                .as_ref()
                .map(|function| function.name.clone()),
            place: self.place(&suspect),
            share: share(suspect.time),
            confidence: (1.0 - share(unknown))
                * WEAK_EDGE.powi(weak as i32)
                * if lost { EVENTS_LOST } else { 1.0 },
        };
        let report = ProblemReport {
            who: who(evidence, self.problem.thread),
            start_ns: self.problem.window.start,
            duration_ns: self.problem.duration(),
            class: self.problem_class(&suspect),
        };
        let sentence = sentence::of(&Facts {
            evidence,
            problem: self.problem,
            victim: self.problem.thread,
            culprit,
            class: suspect.class,
            kind: suspect.kind,
            function: suspect.function.as_ref(),
            starvation: suspect.starvation.as_ref(),
            knot,
            share: share(suspect.time),
        });
        Verdict {
            sentence,
            questions: self.questions(&suspect),
            problem: report,
            root,
            blame: self.by_kind(),
            blame_by_thread: self.by_thread(),
            path,
            knot: knot.map(|knot| knot.threads.iter().map(|&t| who(evidence, t)).collect()),
        }
    }

    fn total(&self, wanted: impl Fn(&Piece) -> bool) -> u64 {
        self.blame
            .pieces
            .iter()
            .filter(|piece| wanted(piece))
            .map(|piece| piece.ns)
            .sum()
    }

    /// The circle that most of the time went round in.
    fn knot(&self) -> Option<&Knot> {
        let longest = self.blame.knots.iter().max_by_key(|knot| knot.duration)?;
        let share = longest.duration as f64 / self.problem.duration().max(1) as f64;
        (share >= CIRCLE_SHARE).then_some(longest)
    }

    fn suspect(&self, knot: Option<&Knot>) -> Suspect {
        let mut times: HashMap<Utid, u64> = HashMap::new();
        for piece in &self.blame.pieces {
            if piece.kind != BlameKind::Unknown {
                *times.entry(piece.thread).or_default() += piece.ns;
            }
        }
        let most = times.iter().max_by_key(|(thread, time)| (**time, **thread));
        let in_knot = knot.and_then(|knot| {
            knot.threads
                .iter()
                .copied()
                .max_by_key(|thread| times.get(thread).copied())
        });
        let thread = in_knot
            .or(most.map(|(&thread, _)| thread))
            .unwrap_or(self.problem.thread);
        let pieces: Vec<&Piece> = self
            .blame
            .pieces
            .iter()
            .filter(|piece| piece.thread == thread)
            .collect();
        let kind = dominant(&pieces);
        let of_kind: Vec<&Piece> = pieces.iter().copied().filter(|p| p.kind == kind).collect();
        let mut suspect = Suspect {
            thread,
            class: class_of(kind),
            kind,
            windows: windows_of(&of_kind),
            time: pieces.iter().map(|piece| piece.ns).sum(),
            starvation: None,
            function: None,
        };
        if knot.is_some() {
            suspect.class = Class::Circular;
        } else if self.polls(&pieces) {
            suspect.class = Class::RepeatedYield;
        }
        if suspect.class == Class::Starved {
            let throttled = of_kind
                .iter()
                .filter(|p| p.left == Some(Left::Throttled))
                .map(|p| p.ns)
                .sum();
            let why = starvation::explain(self.evidence, thread, &suspect.windows, throttled);
            suspect.starvation = Some(why);
        }
        suspect.function = self.function(&suspect, &pieces, &of_kind);
        suspect
    }

    /// Whether a thread's time went to asking again and again.
    fn polls(&self, pieces: &[&Piece]) -> bool {
        let sleeps: usize = pieces
            .iter()
            .filter(|piece| {
                let wait = piece.wait.as_ref();
                wait.is_some_and(|(waiting, _)| waiting.wait.kind == WaitKind::Sleep)
            })
            .map(|piece| piece.count)
            .sum();
        let time = |kind| {
            pieces
                .iter()
                .filter(|p| p.kind == kind)
                .map(|p| p.ns)
                .sum::<u64>()
        };
        let (slept, ran) = (time(BlameKind::Timer), time(BlameKind::Run));
        if sleeps >= POLLS && slept / sleeps as u64 <= POLL_NS && slept > ran {
            return true;
        }
        let yields = pieces
            .iter()
            .filter(|piece| piece.left == Some(Left::Yielded))
            .map(|piece| piece.count)
            .sum::<usize>();
        let yielded: u64 = pieces
            .iter()
            .filter(|piece| piece.left == Some(Left::Yielded))
            .map(|piece| piece.ns)
            .sum();
        if yields >= POLLS && yielded > ran {
            return true;
        }
        // Yields without a competitor leave no switch: only samples show them.
        let Some(thread) = pieces.first().map(|piece| piece.thread) else {
            return false;
        };
        let samples = samples_of(self.evidence, thread, &on_cpu(pieces));
        samples.len() >= POLLS && mostly_yielding(self.evidence, &samples)
    }

    fn function(&self, suspect: &Suspect, all: &[&Piece], of_kind: &[&Piece]) -> Option<Function> {
        let named = |thread, windows: &[Range<u64>]| {
            common(self.evidence, &samples_of(self.evidence, thread, windows))
        };
        match (&suspect.starvation, suspect.kind) {
            (Some(Starvation::Hog { thread, .. }), _) => return named(*thread, &suspect.windows),
            // What it did, if only with the little that it got.
            (_, BlameKind::Run | BlameKind::Runnable) => {
                return named(suspect.thread, &on_cpu(all));
            }
            _ => {}
        }
        let longest = of_kind.iter().max_by_key(|piece| piece.ns)?;
        // A kernel thread that waits on behalf of another has no user stack: that other's tells.
        let way = self.way_to(longest.step).into_iter().rev();
        let above = way
            .filter_map(|step| self.blame.steps[step].reached.as_ref())
            .filter(|(waiting, _)| waiting.wait.thread == suspect.thread);
        longest.wait.iter().chain(above).find_map(|(waiting, _)| {
            let stack = waiting.wait.user_stack(self.evidence);
            let (name, place) = self.evidence.own_function(stack)?;
            Some(Function { name, place, stack })
        })
    }

    fn place(&self, suspect: &Suspect) -> Option<String> {
        match &suspect.starvation {
            Some(Starvation::Quota) => Some("the CPU quota of its control group".to_owned()),
            Some(Starvation::Hog { cpu, .. }) => Some(format!("CPU {cpu}")),
            Some(Starvation::Crowd) => Some("shared CPUs".to_owned()),
            None => suspect
                .function
                .as_ref()
                .map(|function| function.place.clone()),
        }
    }

    fn problem_class(&self, suspect: &Suspect) -> Class {
        if suspect.class == Class::Circular || suspect.thread == self.problem.thread {
            return suspect.class;
        }
        let own: u64 = self.total(|piece| piece.step == 0 && piece.kind == BlameKind::Run);
        let wanting = self.total(|piece| piece.step == 0 && piece.kind == BlameKind::Runnable);
        let waiting = self.problem.duration().saturating_sub(own + wanting);
        match own.max(wanting).max(waiting) {
            most if most == waiting => Class::LongWait,
            most if most == own => Class::LongRunning,
            _ => Class::Starved,
        }
    }

    fn by_kind(&self) -> Vec<BlameRow> {
        let mut times: HashMap<BlameKind, u64> = HashMap::new();
        for piece in &self.blame.pieces {
            *times.entry(piece.kind).or_default() += piece.ns;
        }
        let mut rows: Vec<_> = times.into_iter().collect();
        rows.sort_by_key(|&(kind, ns)| (std::cmp::Reverse(ns), kind));
        let duration = self.problem.duration().max(1) as f64;
        rows.into_iter()
            .map(|(kind, ns)| BlameRow {
                kind: kind.text(),
                ns,
                share: ns as f64 / duration,
            })
            .collect()
    }

    fn by_thread(&self) -> Vec<ThreadBlame> {
        let mut times: HashMap<(Utid, BlameKind), u64> = HashMap::new();
        for piece in &self.blame.pieces {
            *times.entry((piece.thread, piece.kind)).or_default() += piece.ns;
        }
        let mut rows: Vec<_> = times.into_iter().collect();
        rows.sort_by_key(|&(who, ns)| (std::cmp::Reverse(ns), who));
        let duration = self.problem.duration().max(1) as f64;
        rows.into_iter()
            .map(|((thread, kind), ns)| ThreadBlame {
                who: who(self.evidence, thread),
                kind: kind.text(),
                ns,
                share: ns as f64 / duration,
            })
            .collect()
    }

    /// The step in which the suspect spent the most of what it is to blame for; where nothing is
    /// known of it, the step that most of the time was laid to.
    fn main_step(&self, suspect: &Suspect) -> usize {
        let is_suspects =
            |piece: &Piece| piece.thread == suspect.thread && piece.kind == suspect.kind;
        let any = self.blame.pieces.iter().any(is_suspects);
        let mut times: HashMap<usize, u64> = HashMap::new();
        for piece in &self.blame.pieces {
            if !any || is_suspects(piece) {
                *times.entry(piece.step).or_default() += piece.ns;
            }
        }
        times
            .into_iter()
            .max_by_key(|&(step, time)| (time, std::cmp::Reverse(step)))
            .map_or(0, |(step, _)| step)
    }

    /// The steps from the problem down to the suspect's main one.
    fn way_to(&self, step: usize) -> Vec<usize> {
        let mut way: Vec<usize> =
            std::iter::successors(Some(step), |&at| self.blame.steps[at].above).collect();
        way.reverse();
        way
    }

    fn weak_edges(&self, suspect: &Suspect) -> usize {
        self.way_to(self.main_step(suspect))
            .iter()
            .filter_map(|&step| self.blame.steps[step].reached.as_ref())
            .filter(|(_, edge)| edge.strength == Strength::Weak)
            .count()
    }

    fn path(&self, suspect: &Suspect) -> Vec<PathStep> {
        let evidence = self.evidence;
        let main = self.main_step(suspect);
        let way = self.way_to(main);
        let mut path = Vec::new();
        for pair in way.windows(2) {
            let above = &self.blame.steps[pair[0]];
            let Some((waiting, edge)) = &self.blame.steps[pair[1]].reached else {
                continue;
            };
            let mut doing = waiting.wait.phrase(evidence);
            if waiting.parts > 1 {
                let times = match waiting.parts - 1 {
                    1 => "once".to_owned(),
                    times => format!("{times} times"),
                };
                doing = format!("{doing} (and looked {times} in vain)");
            }
            path.push(self.step(
                above.thread,
                waiting.from..waiting.to,
                doing,
                Some(edge),
                waiting.wait.user_stack(evidence),
            ));
        }
        let pieces = self.blame.pieces.iter().filter(|piece| {
            piece.step == main && piece.thread == suspect.thread && piece.kind == suspect.kind
        });
        let Some(longest) = pieces.clone().max_by_key(|piece| piece.ns) else {
            return path;
        };
        let window = pieces.clone().map(|p| p.from).min().unwrap_or(longest.from)
            ..pieces.map(|p| p.to).max().unwrap_or(longest.to);
        let (doing, stack) = self.did(suspect, longest);
        let edge = longest.wait.as_ref().map(|(_, edge)| edge);
        path.push(self.step(longest.thread, window, doing, edge, stack));
        path
    }

    fn step(
        &self,
        thread: Utid,
        window: Range<u64>,
        doing: String,
        edge: Option<&Edge>,
        stack: u32,
    ) -> PathStep {
        let who = who(self.evidence, thread);
        PathStep {
            thread: who.thread,
            process: who.process,
            from_ns: window.start,
            to_ns: window.end,
            doing,
            edge: edge.map(|edge| EdgeReport {
                kind: edge.kind.text(),
                strength: edge.strength.text(),
                reason: edge.reason.clone(),
            }),
            stack: frames(self.evidence, stack),
        }
    }

    /// What the suspect did in its last step, and the stack that shows it.
    fn did(&self, suspect: &Suspect, piece: &Piece) -> (String, u32) {
        let stack = suspect
            .function
            .as_ref()
            .map_or(0, |function| function.stack);
        let named = suspect
            .function
            .as_ref()
            .map(|function| format!(" {}", function.name));
        let named = named.unwrap_or_default();
        if let Some((waiting, _)) = &piece.wait {
            let mut phrase = waiting.wait.phrase(self.evidence);
            if piece.count > 1 {
                phrase = format!("{phrase}, again and again: {} times", piece.count);
            }
            return (phrase, waiting.wait.user_stack(self.evidence));
        }
        let doing = match (suspect.kind, &suspect.starvation) {
            (BlameKind::Run, _) => format!("ran{named}"),
            (BlameKind::Interrupt, _) => "was interrupted".to_owned(),
            (BlameKind::Runnable, Some(Starvation::Quota)) => {
                "wanted a CPU; the quota of its control group was used up".to_owned()
            }
            (
                BlameKind::Runnable,
                Some(Starvation::Hog {
                    thread, cpu, share, ..
                }),
            ) => format!(
                "wanted CPU {cpu}; {} had it {:.0} % of that time",
                self.evidence.name(*thread),
                share * 100.0
            ),
            (BlameKind::Runnable, _) => "wanted a CPU".to_owned(),
            _ => "was not seen".to_owned(),
        };
        (doing, stack)
    }

    fn questions(&self, suspect: &Suspect) -> Vec<Question> {
        if suspect.class != Class::RepeatedYield {
            return Vec::new();
        }
        let name = self.evidence.name(suspect.thread);
        let at = suspect
            .function
            .as_ref()
            .map(|f| format!(" in {}", f.name))
            .unwrap_or_default();
        vec![Question {
            text: format!(
                "{name} polls{at}: which variable does it look at, and who should set it?"
            ),
            how: "find the condition of the loop in the source, then watch the variable: \
                  gdb -p PID -ex 'watch VARIABLE' -ex continue"
                .to_owned(),
        }]
    }
}

/// Confidence is multiplied by this for every weak edge on the way.
const WEAK_EDGE: f64 = 0.85;

/// And by this where events were lost.
const EVENTS_LOST: f64 = 0.7;

/// When a thread was on a CPU. A sample is taken by an interrupt, so the time that interrupts took
/// belongs to it.
fn on_cpu(pieces: &[&Piece]) -> Vec<Range<u64>> {
    let on_cpu = |piece: &&Piece| matches!(piece.kind, BlameKind::Run | BlameKind::Interrupt);
    disjoint(pieces.iter().copied().filter(on_cpu))
}

/// When the pieces were. Sums span more than they are, so they are left out if others are there.
fn windows_of(pieces: &[&Piece]) -> Vec<Range<u64>> {
    let is_whole = |piece: &&Piece| piece.ns == piece.to - piece.from;
    let whole = disjoint(pieces.iter().copied().filter(is_whole));
    match whole.is_empty() {
        true => disjoint(pieces.iter().copied()),
        false => whole,
    }
}

/// The times of pieces, in order and joined where they overlap.
fn disjoint<'p>(pieces: impl Iterator<Item = &'p Piece>) -> Vec<Range<u64>> {
    let mut windows: Vec<_> = pieces.map(|piece| piece.from..piece.to).collect();
    windows.sort_by_key(|window| window.start);
    windows.dedup_by(|next, last| {
        let overlap = next.start < last.end;
        if overlap {
            last.end = last.end.max(next.end);
        }
        overlap
    });
    windows
}

fn dominant(pieces: &[&Piece]) -> BlameKind {
    let mut times: HashMap<BlameKind, u64> = HashMap::new();
    for piece in pieces {
        *times.entry(piece.kind).or_default() += piece.ns;
    }
    let most = times
        .into_iter()
        .max_by_key(|&(kind, time)| (time, std::cmp::Reverse(kind)));
    most.map_or(BlameKind::Unknown, |(kind, _)| kind)
}

fn class_of(kind: BlameKind) -> Class {
    match kind {
        BlameKind::Run => Class::LongRunning,
        BlameKind::Runnable => Class::Starved,
        BlameKind::Interrupt => Class::Interrupted,
        BlameKind::Paging => Class::Paging,
        BlameKind::Unknown => Class::Unknown,
        BlameKind::Lock
        | BlameKind::Message
        | BlameKind::Disk
        | BlameKind::Network
        | BlameKind::Timer => Class::LongWait,
    }
}

/// A thread as the verdict names it.
pub fn who(evidence: &Evidence<'_>, thread: Utid) -> Who {
    let known = evidence.threads.thread(thread);
    Who {
        thread: known.name().to_owned(),
        process: evidence.threads.process(known.upid).name.clone(),
        tid: known.tid,
        pid: known.pid,
    }
}
