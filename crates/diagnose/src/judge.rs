//! From blame to verdict: the report on who is to blame most, and by which way that was found.

use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Wait, WaitKind};
use hangdog_trace::ids::{Upid, Utid};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::baseline;
use crate::blame::{Blame, Piece, Step};
use crate::confidence;
use crate::function::{self, early_end, frames, own_frame};
use crate::kind::BlameKind;
use crate::origin::{Machine, unnamed};
use crate::owed::is_left_open_by;
use crate::problem::Problem;
use crate::question::questions;
use crate::replay;
use crate::sentence::{self, Facts};
use crate::setting::{EVENTS_LOST, Setting};
use crate::starvation::{Limit, Starvation};
use crate::stretch::Waiting;
use crate::suspect::{POLLS, Suspect};
use crate::tasks;
use crate::verdict::{
    BlameRow, Class, EdgeReport, Hint, PathStep, ProblemReport, Root, ThreadBlame, Verdict, Whole,
    who,
};

/// Why a problem took so long.
pub fn diagnose(evidence: &Evidence<'_>, problem: &Problem, setting: Setting<'_>) -> Verdict {
    let all_ns = problem.duration();
    let problem = &problem.explained();
    let blame = Blame::of_problem(evidence, problem, setting);
    let judge = Judge {
        evidence,
        problem,
        blame: &blame,
        setting,
    };
    let mut verdict = judge.verdict();
    // Of many processes a program's sum tells, and not the time of each.
    if !blame.starters.is_empty() && problem.many.is_some() {
        verdict.whole = Some(Whole::of(evidence, problem, &blame, setting));
    }
    verdict.problem.all_ns = (all_ns > problem.duration()).then_some(all_ns);
    verdict
}

/// Where the time of a command's run went ([`whole`](crate::whole)): a verdict on all of it, with
/// its entries.
pub fn diagnose_run(evidence: &Evidence<'_>, run: &Problem, setting: Setting<'_>) -> Verdict {
    let blame = Blame::of_run(evidence, run.thread, run.window.clone(), setting);
    let judge = Judge {
        evidence,
        problem: run,
        blame: &blame,
        setting,
    };
    let whole = Whole::of(evidence, run, &blame, setting);
    Verdict {
        sentence: whole.sentence(evidence, run),
        whole: Some(whole),
        // What is asked would change the root, which is not what is told here.
        questions: Vec::new(),
        ..judge.verdict()
    }
}

struct Judge<'a, 'e> {
    evidence: &'a Evidence<'e>,
    problem: &'a Problem,
    blame: &'a Blame,
    setting: Setting<'a>,
}

impl Judge<'_, '_> {
    fn verdict(&self) -> Verdict {
        let evidence = self.evidence;
        let knot = self.blame.knot(self.problem);
        let mut suspects = Suspect::rank(evidence, self.blame, self.problem.thread, knot);
        let roots: Vec<Root> = suspects.iter().map(|suspect| self.root(suspect)).collect();
        let suspect = suspects.swap_remove(0);
        let path = self.path(&suspect);
        let culprit = suspect.culprit();
        let report = ProblemReport {
            who: who(evidence, self.problem.thread),
            start_ns: self.problem.window.start,
            duration_ns: self.problem.duration(),
            all_ns: None,
            class: self.problem_class(&suspect),
        };
        let sentence = sentence::of(&Facts {
            evidence,
            problem: self.problem,
            victim: self.problem.thread,
            culprit,
            starved: suspect.thread,
            class: suspect.class,
            kind: suspect.kind,
            function: suspect.function.as_ref(),
            wait: self.longest_wait(&suspect),
            starvation: suspect.starvation.as_ref(),
            started: suspect.started.as_ref(),
            alike: suspect.alike.len(),
            knot,
            is_asked: self.is_asked(&suspect),
            keeps_open: self.keeps_open(&suspect),
            is_idle_server: self.is_idle_server(&suspect),
            is_open: self.is_open(&suspect),
            in_turn: self.in_turn(&suspect),
            share: self.share(suspect.time_of_class),
            paged: self.share(self.paged(culprit)),
            between: &self.between(&suspect),
            lock: self.lock(&suspect),
            now: path
                .first()
                .map(|step| step.doing.as_str())
                .filter(|_| self.setting.instant),
        });
        Verdict {
            sentence,
            hints: self.hints(&suspect),
            questions: questions(
                evidence,
                self.problem,
                self.blame,
                self.setting,
                (culprit, suspect.class),
            ),
            whole: None,
            problem: report,
            root: roots[0].clone(),
            suspects: roots,
            without_root_ns: replay::without(evidence, self.problem, self.blame, &suspect),
            blame: self.by_kind(),
            blame_by_thread: self.by_thread(),
            blame_over_time: self.blame.over_time(),
            estimated_ns: self.blame.estimated_ns(),
            ran: suspect.ran,
            slice: suspect.slice,
            baseline: baseline::find(evidence, self.setting.baseline, self.problem, self.blame),
            path,
            knot: knot.map(|knot| knot.threads.iter().map(|&t| who(evidence, t)).collect()),
        }
    }

    fn root(&self, suspect: &Suspect) -> Root {
        let unknown: u64 = self.total(|piece| piece.kind == BlameKind::Unknown);
        // What the starved thread ran with the little that it got is no function of who had the CPU.
        let is_culprits = !matches!(
            suspect.starvation,
            Some(Starvation::Crowd { most: Some(_), .. })
        );
        let function = suspect.function.as_ref().filter(|_| is_culprits);
        Root {
            class: suspect.class,
            who: who(self.evidence, suspect.culprit()),
            function: function.map(|function| function.name.clone()),
            inlined_into: function.and_then(|function| function.inlined_into.clone()),
            place: self.place(suspect),
            share: self.share(suspect.time_of_class),
            others: suspect.alike.len(),
            by_crowd: matches!(
                suspect.starvation,
                Some(Starvation::Crowd {
                    in_turn: true,
                    outranks: false,
                    ..
                })
            ),
            by_naps: (suspect.started.as_ref()).is_some_and(|started| started.name == "sleep"),
            is_sleep: suspect.kind == BlameKind::Timer
                && (self.evidence.threads.process_of(suspect.culprit())).name == "sleep",
            in_parallel: self.is_in_parallel(suspect),
            confidence: {
                // Of what is so now somebody asks because it hangs.
                let felt = match self.setting.instant {
                    true => 1.0,
                    false => confidence::of_problem(self.problem),
                };
                let evidence = (1.0 - self.share(unknown)) * self.likelihood(suspect) * felt;
                let sure = match suspect.class {
                    Class::Unknown => evidence,
                    _ => confidence::observed(evidence),
                };
                sure * if self.setting.lost { EVENTS_LOST } else { 1.0 }
            },
        }
    }

    /// Whether a suspect and those that did the same are several at work, not one goroutine that went from thread
    /// to thread: those ran, or wanted to, for longer than the problem lasted.
    fn is_in_parallel(&self, suspect: &Suspect) -> bool {
        const AT_ONCE: f64 = 1.3;
        let (window, evidence) = (&self.problem.window, self.evidence);
        let parts = |thread: Utid| evidence.timeline.between(thread, window.start, window.end);
        let busy = |thread: Utid| -> u64 {
            let busy = parts(thread).filter(|it| it.state.is_on_cpu() || it.state.wants_cpu());
            busy.map(|part| part.duration()).sum()
        };
        let mut others = suspect.alike.iter().map(|it| it.thread);
        if !others.any(|other| tasks::runs_any(evidence, other, window)) {
            return !suspect.alike.is_empty();
        }
        let others = suspect.alike.iter().map(|it| it.thread);
        let all = std::iter::once(suspect.thread).chain(others);
        let all = all.map(busy).fold(0, u64::saturating_add);
        all as f64 >= AT_ONCE * self.problem.duration() as f64
    }

    fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.problem.duration().max(1) as f64
    }

    fn total(&self, wanted: impl Fn(&Piece) -> bool) -> u64 {
        self.blame
            .pieces
            .iter()
            .filter(|piece| wanted(piece))
            .map(|piece| piece.ns())
            .sum()
    }

    fn place(&self, suspect: &Suspect) -> Option<String> {
        match &suspect.starvation {
            Some(Starvation::Quota) => Some("the CPU quota of its control group".to_owned()),
            Some(Starvation::Hog { cpu, .. }) => Some(format!("CPU {cpu}")),
            Some(Starvation::Crowd { .. }) => Some("shared CPUs".to_owned()),
            Some(Starvation::Withheld {
                by: Limit::Realtime,
                ..
            }) => Some("a limit of real-time threads".to_owned()),
            Some(Starvation::Withheld {
                by: Limit::Deadline,
                ..
            }) => Some("its SCHED_DEADLINE runtime".to_owned()),
            Some(Starvation::Withheld { .. }) => Some("idle CPUs".to_owned()),
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
        let naps = |step: &Step| match &step.reached {
            Some((waiting, _)) if step.above == Some(0) => {
                usize::from(waiting.wait.kind == WaitKind::Sleep) * waiting.parts
            }
            _ => 0,
        };
        if self.blame.steps.iter().map(naps).sum::<usize>() >= POLLS {
            return Class::RepeatedYield;
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
            *times.entry(piece.kind).or_default() += piece.ns();
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
            *times.entry((piece.thread, piece.kind)).or_default() += piece.ns();
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
                compared: self
                    .setting
                    .yardstick
                    .zip(kind.operation())
                    .and_then(|(yardstick, operation)| yardstick.compare(ns, operation)),
            })
            .collect()
    }

    /// How likely it is that all edges on the way to the suspect are causes, and what it did one.
    fn likelihood(&self, suspect: &Suspect) -> f64 {
        let main = self.blame.main_step(suspect);
        let way = self.blame.way_to(main);
        let edges: f64 = way
            .iter()
            .map(|&step| self.blame.steps[step].likelihood())
            .product();
        let pieces: Vec<&Piece> = self.blame.pieces_of(suspect).collect();
        let end = confidence::of_end(suspect, &pieces, main == 0);
        // What it waits for before it answers, nothing tells.
        let end = match self.is_idle_server(suspect) {
            true => end.min(confidence::IDLE_SERVER),
            false => end,
        };
        edges * end
    }

    /// Whether nothing names who should have ended the longest of what the suspect did.
    fn is_open(&self, suspect: &Suspect) -> bool {
        let longest = (self.blame.pieces_of(suspect)).max_by_key(|piece| piece.ns());
        longest
            .and_then(|piece| piece.wait.as_ref())
            .is_some_and(|(_, edge)| edge.kind == EdgeKind::Unknown)
    }

    /// Who should have ended the longest of the suspect's waits, if that one is on the way to it.
    fn in_turn(&self, suspect: &Suspect) -> Option<Utid> {
        let longest = (self.blame.pieces_of(suspect)).max_by_key(|piece| piece.ns())?;
        let (_, edge) = longest.wait.as_ref()?;
        let Source::Thread(other) = edge.source else {
            return None;
        };
        let way = self.blame.way_to(longest.step);
        let is_on_way = |&step: &usize| self.blame.steps[step].thread == other;
        (other != suspect.thread && way.iter().any(is_on_way)).then_some(other)
    }

    /// Whether the wait before led to the suspect as the one at the other end.
    fn is_asked(&self, suspect: &Suspect) -> bool {
        let main = self.blame.main_step(suspect);
        let reached = self.blame.steps[main].reached.as_ref();
        reached.is_some_and(|(_, belief)| matches!(belief.kind, EdgeKind::Peer | EdgeKind::Asked))
    }

    /// Who reads a pipe to which the suspect can write, which waits for anything itself: a program in the background
    /// keeps what reads the output of those that started it from seeing its end.
    fn keeps_open(&self, suspect: &Suspect) -> Option<Utid> {
        let main = self.blame.main_step(suspect);
        let (waiting, belief) = self.blame.steps[main].reached.as_ref()?;
        let wait = &waiting.wait;
        let is_idle = matches!(suspect.kind, BlameKind::Message | BlameKind::Timer)
            && (self.longest_wait(suspect))
                .is_some_and(|it| matches!(it.kind, WaitKind::Poll | WaitKind::Idle));
        (is_idle && is_left_open_by(self.evidence, wait, belief.kind, suspect.thread))
            .then_some(wait.thread)
    }

    /// For how long of what is explained a thread waited to be paged in, ns.
    fn paged(&self, thread: Utid) -> u64 {
        let pieces = self.blame.pieces.iter();
        pieces
            .filter(|piece| piece.kind == BlameKind::Paging && piece.thread == thread)
            .fold(0, |sum: u64, piece| sum.saturating_add(piece.ns()))
    }

    /// Whether another process asked the suspect, or got from it at last what it waited for, while it had nothing
    /// to do.
    fn is_idle_server(&self, suspect: &Suspect) -> bool {
        let main = self.blame.main_step(suspect);
        let Some((waiting, belief)) = &self.blame.steps[main].reached else {
            return false;
        };
        let process = |thread| self.evidence.threads.thread(thread).upid;
        let is_answer = matches!(
            belief.kind,
            EdgeKind::Peer | EdgeKind::Asked | EdgeKind::Message
        );
        is_answer
            && matches!(suspect.kind, BlameKind::Timer | BlameKind::Message)
            && process(waiting.wait.thread) != process(suspect.thread)
            && (self.longest_wait(suspect))
                .is_some_and(|wait| wait.task.is_none() && wait.is_idle(self.evidence))
    }

    /// The longest wait among what the suspect did, if nothing else took longer.
    fn longest_wait(&self, suspect: &Suspect) -> Option<Wait> {
        let longest = (self.blame.pieces_of(suspect)).max_by_key(|piece| piece.ns());
        longest
            .and_then(|piece| piece.wait.as_ref())
            .map(|(waiting, _)| waiting.wait)
    }

    /// A thread of each program through which the waits lead from the problem to the suspect, in order.
    fn between(&self, suspect: &Suspect) -> Vec<Utid> {
        let thread = |utid: Utid| self.evidence.threads.thread(utid);
        let ends = [self.problem.thread, suspect.thread, suspect.culprit()];
        let mut seen: HashSet<Upid> = ends.iter().map(|&end| thread(end).upid).collect();
        let way = self.blame.way_to(self.blame.main_step(suspect));
        let threads = way.into_iter().map(|step| self.blame.steps[step].thread);
        threads
            .filter(|&utid| !thread(utid).is_kernel() && seen.insert(thread(utid).upid))
            .collect()
    }

    /// The first lock on the way from the problem to the suspect. Of a moment without that of the first wait, which the sentence
    /// begins with.
    fn lock(&self, suspect: &Suspect) -> Option<&'static str> {
        let way = self.blame.way_to(self.blame.main_step(suspect));
        let waits = (way.into_iter())
            .filter_map(|step| Some(self.blame.steps[step].reached.as_ref()?.0.wait));
        let mut others = waits.skip(usize::from(self.setting.instant));
        others.find_map(|wait| wait.lock(self.evidence))
    }

    fn path(&self, suspect: &Suspect) -> Vec<PathStep> {
        let evidence = self.evidence;
        let main = self.blame.main_step(suspect);
        let way = self.blame.way_to(main);
        let mut path = Vec::new();
        for pair in way.windows(2) {
            let above = &self.blame.steps[pair[0]];
            let Some((waiting, edge)) = &self.blame.steps[pair[1]].reached else {
                continue;
            };
            let mut doing = waiting.wait.phrase(evidence);
            if let Some(repeats) = waiting.repeats() {
                doing = format!("{doing} ({repeats})");
            }
            let step = &self.blame.steps[pair[1]];
            if step.times > 1 {
                doing = format!("{doing}, in {} waits", step.times);
            }
            path.push(self.step(
                above.thread,
                waiting.from..step.until,
                doing,
                Some(edge),
                waiting.wait.user_stack(evidence),
            ));
        }
        let pieces = (self.blame.pieces_of(suspect)).filter(|piece| piece.step == main);
        let is_named = |piece: &Piece| {
            let function = suspect.function.as_ref();
            let stack = (piece.wait.as_ref())
                .map(|(waiting, _)| waiting.wait.user_stack(evidence))
                .and_then(|stack| function::own(evidence, stack));
            (function.zip(stack)).is_some_and(|(it, here)| it.name == here.name)
        };
        let longest = pieces.clone().max_by_key(|piece| piece.ns());
        // Of many the one that is named.
        let named = || (pieces.clone().filter(|piece| is_named(piece))).max_by_key(|it| it.ns());
        let Some(longest) =
            longest.map(
                |longest| match longest.wait.is_some() && !is_named(longest) {
                    true => named().unwrap_or(longest),
                    false => longest,
                },
            )
        else {
            return path;
        };
        let window = pieces.clone().map(|p| p.from()).min().unwrap_or(0)
            ..pieces.clone().map(|p| p.to()).max().unwrap_or(0);
        let (mut doing, stack) = self.did(suspect, longest);
        let did: u64 = pieces.clone().map(|piece| piece.ns()).sum();
        const NEARLY_ALL: f64 = 0.9;
        if suspect.kind == BlameKind::Runnable
            && (did as f64) < NEARLY_ALL * (window.end - window.start) as f64
        {
            doing = format!("{doing}, for {} of it", sentence::duration(did));
        }
        let waits = pieces.filter(|piece| piece.wait.is_some());
        let waits = waits.fold(0, |sum: usize, piece| sum.saturating_add(piece.count));
        if let Some((waiting, _)) = longest.wait.as_ref().filter(|_| waits > longest.count) {
            let phrase = waiting.wait.phrase(evidence);
            doing = format!("{phrase} and in other waits, {waits} in all");
        }
        let edge = longest.wait.as_ref().map(|(_, edge)| edge);
        // A thread that had exited did nothing, and one on whose behalf another waits for the network
        // waits for that: the step shows the wait.
        let thread = match (longest.kind, &longest.wait) {
            (BlameKind::Gone | BlameKind::Network, Some((waiting, _))) => waiting.wait.thread,
            _ => longest.thread,
        };
        path.push(self.step(thread, window, doing, edge, stack));
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
        PathStep {
            who: who(self.evidence, thread),
            utid: thread,
            from_ns: window.start,
            to_ns: window.end,
            before_ns: match (window.start, self.evidence.away_since(thread)) {
                (0, Some(since)) => since.min(0).unsigned_abs(),
                _ => 0,
            },
            doing: match self.setting.instant {
                true => sentence::present(&doing),
                false => doing,
            },
            edge: edge.map(|edge| EdgeReport {
                kind: edge.kind.text(),
                strength: edge.strength.text(),
                reason: edge.reason.clone(),
            }),
            stack: frames(self.evidence, stack),
            own_frame: own_frame(self.evidence, stack),
            stack_end: early_end(self.evidence, stack),
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
        if let Some(started) = &suspect.started {
            let doing = format!(
                "started {} processes, mostly {}",
                started.processes, started.name
            );
            return (doing, stack);
        }
        if let Some((waiting, _)) = &piece.wait {
            let mut phrase = waiting.wait.phrase(self.evidence);
            if piece.count > 1 {
                phrase = format!("{phrase}, in {} waits", piece.count);
            }
            return (phrase, waiting.wait.user_stack(self.evidence));
        }
        let doing = match (suspect.kind, &suspect.starvation) {
            (BlameKind::Run, _) => format!("ran{named}"),
            (BlameKind::Interrupt, _) => "was interrupted".to_owned(),
            (BlameKind::Runnable, Some(Starvation::Quota)) => {
                "waited for a CPU; the CPU quota of its control group was used up".to_owned()
            }
            (
                BlameKind::Runnable,
                Some(Starvation::Hog {
                    thread, cpu, share, ..
                }),
            ) => format!(
                "waited for CPU {cpu}; {} held it for {:.0} % of that time",
                self.evidence.name(*thread),
                share * 100.0
            ),
            (BlameKind::Runnable, _) => "waited for a CPU".to_owned(),
            _ => "had no recorded events".to_owned(),
        };
        (doing, stack)
    }

    /// What the trace cannot tell, and how to find out.
    fn hints(&self, suspect: &Suspect) -> Vec<Hint> {
        let mut hints = Vec::new();
        if self.setting.lost {
            hints.push(self.lost());
        }
        hints.extend(self.unnamed(suspect));
        if suspect.class != Class::RepeatedYield {
            return hints;
        }
        let name = self.evidence.name(suspect.thread);
        let thread = self.evidence.threads.thread(suspect.thread);
        let at = suspect
            .function
            .as_ref()
            .map(|f| format!(" in {}", f.name))
            .unwrap_or_default();
        hints.push(Hint {
            text: format!("{name} polls{at}: which variable does it check, and who should set it?"),
            how: format!(
                "while it still polls: sudo hangdog find-flag --pid {} --tid {}; if you know the \
                 variable, record again with --watch {}:VARIABLE",
                thread.pid, thread.tid, thread.pid
            ),
        });
        hints
    }

    /// What is missing where a compiler at run time alone knows the names of functions.
    fn unnamed(&self, suspect: &Suspect) -> Option<Hint> {
        let stack = suspect.function.as_ref()?.stack;
        let pid = self.evidence.threads.thread(suspect.culprit()).pid;
        let frames: Vec<_> = self.evidence.stacks.stack(stack).collect();
        let (language, how) = match unnamed(&frames)? {
            Machine::Java => (
                "Java",
                format!(
                    "with JDK 17 or later, before the recording ends: jcmd {pid} Compiler.perfmap; \
                     -XX:+PreserveFramePointer makes stacks more complete"
                ),
            ),
            Machine::Node => (
                "JavaScript",
                "start it with: node --perf-basic-prof-only-functions \
                 --interpreted-frames-native-stack"
                    .to_owned(),
            ),
            _ => return None,
        };
        Some(Hint {
            text: format!(
                "The trace has no names for the {language} functions of {}: the JIT compiler did \
                 not export them.",
                self.evidence.name(suspect.culprit())
            ),
            how,
        })
    }

    /// What lost events keep from being known.
    fn lost(&self) -> Hint {
        let unknown = self.total(|piece| piece.kind == BlameKind::Unknown);
        let by_habit = self.blame.steps.iter().filter(|step| {
            let is_habit = |(_, edge): &(Waiting, Edge)| edge.kind == EdgeKind::Habit;
            step.reached.as_ref().is_some_and(is_habit)
        });
        Hint {
            text: format!(
                "Events are missing from the recording. A wait whose wakeup is missing is \
                 attributed to the thread that usually ends it ({} on this path), and {:.0} % of \
                 the time is unknown. A thread may have run where it seems to wait, and the \
                 reverse.",
                by_habit.count(),
                self.share(unknown) * 100.0
            ),
            how: "record again with more --memory, or for a shorter time".to_owned(),
        }
    }
}
