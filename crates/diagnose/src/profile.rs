//! What the time of a thread that ran went to, by samples.
//!
//! Each sample counts for its innermost function (`self`), and once for every function on its
//! stacks (`total`), however often a function called itself. Samples of which not even the module
//! is known count as unknown, so that self times and unknown add up to the whole.
//!
//! The time is named after the deepest function that is on at least [`MOST`] of the samples, and where
//! stacks end early, so that none is, on [`MORE`] of them: what is deeper are its details, what is
//! further out says less. Functions of the program itself go before those of libraries, which do what
//! they are told ([`Origin`]).
//!
//! A function that only hands out work (an event loop, `main`) says nothing of what the work was. Where
//! the time would be named after one, it is named after what it called most, and that alone counts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use hangdog_graph::Evidence;
use hangdog_trace::ids::{NO_STACK, StackId, Utid};
use hangdog_trace::words::StackEnd;

use crate::begun;
use crate::function::{Beside, Function, InKernel, is_collector, with_holders};
use crate::origin::{Origin, is_program};
use crate::verdict::who;
use crate::verdict::{Common, EarlyEnds, FunctionShare, Hot, Ran};

/// A function must be on this share of the samples for all of the time to be named after it: then
/// it is on more than twice as many as all else together.
const MOST: f64 = 0.7;
/// Where none is.
const MORE: f64 = 0.6;
/// What a function that hands out work called is on this share of the samples, or does not speak for it.
const CALLED: f64 = 0.25;
/// Fewer samples do not tell what was called most.
const TELLING: u64 = 20;
/// So many complete stacks tell who called a function, if nearly all agree.
const ALIKE: u64 = 5;
/// A function that has this share of the samples for itself does not only hand out work.
const OWN_WORK: f64 = 0.25;
/// A function on a smaller share of the samples is not listed.
const LEAST: f64 = 0.01;
/// A function on at most this share of the samples leaves something to its caller, which is on at least the other.
const CLEARLY_FEWER: f64 = 0.85;
const NEARLY_ALL: f64 = 0.95;
/// So many of the hottest functions within the common one are told.
const HOT: usize = 3;

/// Whether a function is a generic one of Rust's or C++'s own library, which only calls what it was given.
fn is_adapter(function: &str) -> bool {
    const NAMESPACES: [&str; 3] = ["core::", "alloc::", "std::"];
    let name = function.trim_start_matches('<');
    NAMESPACES
        .iter()
        .any(|namespace| name.starts_with(namespace))
}

/// The module of a function that OCaml compiled: `Srv` of `camlSrv__save_557`.
fn ocaml_module(function: &str) -> Option<&str> {
    let name = function.strip_prefix("caml")?;
    let (module, _) = name.split_once("__")?;
    module
        .starts_with(|first: char| first.is_ascii_uppercase())
        .then_some(module)
}

fn is_of_ocaml_itself(module: &str) -> bool {
    const MODULES: [&str; 5] = ["Stdlib", "Thread", "Mutex", "Unix", "Str"];
    module.starts_with("Camlinternal") || MODULES.contains(&module)
}

/// Name, module, and whether it is the kernel's.
type Identity<'a> = (&'a str, Option<&'a str>, bool);

/// How often a function was seen.
#[derive(Default)]
struct Tally<'a> {
    own: u64,
    total: u64,
    origin: Option<Origin>,
    /// In which lines.
    sources: BTreeMap<&'a str, u64>,
    /// Inlined into which functions; none where it was not.
    holders: BTreeMap<Option<&'a str>, u64>,
}

/// A pair of stacks, and how often it was seen.
struct Seen<'a> {
    user: StackId,
    kernel: StackId,
    count: u64,
    /// Its functions, innermost first, each once.
    functions: Vec<Identity<'a>>,
    /// Its outer functions are not known, as the program's code was not loaded yet.
    is_short: bool,
    /// The outermost function of a stack that was deeper than is recorded, until it is completed.
    cut_at: Option<Identity<'a>>,
}

/// The samples of a thread, summed up.
pub(crate) struct Profile<'a> {
    count: u64,
    seen: Vec<Seen<'a>>,
    tallies: HashMap<Identity<'a>, Tally<'a>>,
    unknown: u64,
    common: Option<Identity<'a>>,
    /// What else was called, where the common function is one of several that were handed work.
    beside: Option<Identity<'a>>,
}

impl<'a> Profile<'a> {
    /// Of `samples`, rows of the table of samples.
    pub(crate) fn new(evidence: &'a Evidence<'_>, samples: &[usize]) -> Profile<'a> {
        let mut counts: BTreeMap<(StackId, StackId), u64> = BTreeMap::new();
        for &row in samples {
            let stacks = (
                evidence.samples.user_stack[row],
                evidence.samples.kernel_stack[row],
            );
            *counts.entry(stacks).or_default() += 1;
        }
        let mut profile = Profile {
            count: samples.len() as u64,
            seen: Vec::with_capacity(counts.len()),
            tallies: HashMap::new(),
            unknown: 0,
            common: None,
            beside: None,
        };
        for ((user, kernel), count) in counts {
            profile.add(evidence, user, kernel, count);
        }
        profile.complete(evidence);
        profile.tell_ocaml_from_its_runtime();
        profile.common = profile.find_common();
        if let Some(outer) = profile.common.filter(|&outer| profile.only_calls(outer))
            && let Some(called) = profile.called_most(outer, None)
        {
            profile.common = Some(called);
            profile.beside = profile.called_most(outer, Some(called));
        }
        if let Some(own) = profile.common.and_then(|outer| profile.own_place(outer)) {
            profile.common = Some(own);
        }
        profile
    }

    /// Ranks what an executable of OCaml has of the language's own below its compiled functions: the runtime, which is
    /// in C and in the same file, and the standard library.
    fn tell_ocaml_from_its_runtime(&mut self) {
        let is_of_ocaml = |identity: &&Identity<'a>| ocaml_module(identity.0).is_some();
        let files: HashSet<Option<&str>> = (self.tallies.keys().filter(is_of_ocaml))
            .map(|identity| identity.1)
            .collect();
        for (identity, tally) in &mut self.tallies {
            if tally.origin != Some(Origin::Program) || !files.contains(&identity.1) {
                continue;
            }
            match ocaml_module(identity.0) {
                None => tally.origin = Some(Origin::Machine),
                Some(module) if is_of_ocaml_itself(module) => tally.origin = Some(Origin::Library),
                Some(_) => {}
            }
        }
    }

    /// Where a library has the program do most of the time's work, and the program's functions have no names: the
    /// deepest place in the program that is on most samples.
    fn own_place(&self, outer: Identity<'a>) -> Option<Identity<'a>> {
        if self.tallies[&outer].origin != Some(Origin::Library) {
            return None;
        }
        let stacks = self.within(outer, |_| true);
        let needed = self.count as f64 * MOST;
        let is_own = |identity: Identity<'a>| {
            let tally = &self.tallies[&identity];
            tally.origin == Some(Origin::Nameless)
                && tally.total as f64 >= needed
                && identity.1.is_some_and(is_program)
        };
        self.innermost(&stacks, is_own)
    }

    /// What is deeper than `outer` on the stacks of which `is_meant` is true, and how often each was seen.
    fn within<'s>(
        &'s self,
        outer: Identity<'a>,
        is_meant: impl Fn(&Seen<'a>) -> bool,
    ) -> Vec<(&'s [Identity<'a>], u64)> {
        let inner = |seen: &Seen<'a>| seen.functions.iter().position(|&it| it == outer);
        (self.seen.iter().filter(|seen| is_meant(seen)))
            .filter_map(|seen| Some((&seen.functions[..inner(seen)?], seen.count)))
            .collect()
    }

    /// Whether a function only hands out work.
    fn only_calls(&self, identity: Identity<'a>) -> bool {
        let tally = &self.tallies[&identity];
        // Of a place without a name it is not known what it does; of what it called it may be.
        let hands_out = matches!(
            tally.origin,
            Some(Origin::Entry | Origin::Script | Origin::Nameless)
        ) || hangdog_graph::hands_out_work(identity.0);
        hands_out && self.count >= TELLING && (tally.own as f64) < OWN_WORK * self.count as f64
    }

    /// The deepest function that many samples have in common within `outer`, leaving out those that are in
    /// `but`, if it says more than `outer` does.
    fn called_most(&self, outer: Identity<'a>, but: Option<Identity<'a>>) -> Option<Identity<'a>> {
        let is_in = |seen: &Seen<'a>, function| seen.functions.contains(&function);
        let stacks = self.within(outer, |seen| !but.is_some_and(|but| is_in(seen, but)));
        let mut totals: HashMap<Identity<'a>, u64> = HashMap::new();
        for (functions, count) in &stacks {
            for &identity in *functions {
                *totals.entry(identity).or_default() += count;
            }
        }
        let needed = self.count as f64 * CALLED;
        let outers = self.tallies[&outer].origin;
        let says_more = |origin| origin >= outers && origin > Some(Origin::Nameless);
        totals.retain(|identity, total| {
            *total as f64 >= needed
                && says_more(self.tallies[identity].origin)
                && !hangdog_graph::hands_out_work(identity.0)
        });
        self.innermost(&stacks, |identity| totals.contains_key(&identity))
    }

    /// Of the candidates that are most of all the program's own, the one that is the innermost on the most stacks.
    fn innermost(
        &self,
        stacks: &[(&[Identity<'a>], u64)],
        is_candidate: impl Fn(Identity<'a>) -> bool,
    ) -> Option<Identity<'a>> {
        let origin = |identity: Identity<'a>| self.tallies[&identity].origin;
        let all = || stacks.iter().flat_map(|(functions, _)| functions.iter());
        let best = (all().filter(|it| is_candidate(**it)))
            .filter_map(|&it| origin(it))
            .max()?;
        let is_best = |it: &&Identity<'a>| is_candidate(**it) && origin(**it) == Some(best);
        let mut innermost: HashMap<Identity<'a>, u64> = HashMap::new();
        for (functions, count) in stacks {
            if let Some(identity) = functions.iter().find(is_best) {
                *innermost.entry(*identity).or_default() += count;
            }
        }
        let deepest = innermost
            .into_iter()
            .max_by_key(|&(identity, count)| (count, Reverse(identity)));
        deepest.map(|(identity, _)| identity)
    }

    fn add(&mut self, evidence: &'a Evidence<'_>, user: StackId, kernel: StackId, count: u64) {
        let mut functions: Vec<Identity<'a>> = Vec::new();
        let mut outermost = None;
        let mut frames = with_holders(evidence, kernel);
        frames.extend(with_holders(evidence, user));
        self.unknown += if frames.is_empty() { count } else { 0 };
        for (depth, (frame, holder)) in frames.into_iter().enumerate() {
            let Some(name) = frame.function.or(frame.module) else {
                self.unknown += if depth == 0 { count } else { 0 };
                continue;
            };
            let identity = (name, frame.module, frame.is_kernel());
            outermost = Some(identity);
            let tally = self.tallies.entry(identity).or_default();
            tally.own += if depth == 0 { count } else { 0 };
            if functions.contains(&identity) {
                continue;
            }
            tally.total += count;
            tally.origin = Origin::of(&frame);
            if !frame.source.is_empty() {
                *tally.sources.entry(frame.source).or_default() += count;
            }
            *tally.holders.entry(holder).or_default() += count;
            functions.push(identity);
        }
        self.seen.push(Seen {
            user,
            kernel,
            count,
            functions,
            is_short: evidence.stacks.end(user) == StackEnd::NotLoaded,
            cut_at: outermost.filter(|_| evidence.stacks.end(user) == StackEnd::Depth),
        });
    }

    /// Gives stacks that were deeper than is recorded their outer functions: those that called the outermost
    /// recorded one in nearly all complete stacks that have it, as where a function calls itself many times.
    fn complete(&mut self, evidence: &'a Evidence<'_>) {
        let cut: HashSet<Identity<'a>> = self.seen.iter().filter_map(|seen| seen.cut_at).collect();
        if cut.is_empty() {
            return;
        }
        let mut callers: HashMap<Identity<'a>, HashMap<Vec<Identity<'a>>, u64>> = HashMap::new();
        let is_complete = |seen: &&Seen<'_>| evidence.stacks.end(seen.user) == StackEnd::Root;
        for seen in self.seen.iter().filter(is_complete) {
            let frames = with_holders(evidence, seen.user);
            let frames: Vec<Identity<'a>> = (frames.into_iter())
                .filter_map(|(frame, _)| {
                    let name = frame.function.or(frame.module)?;
                    Some((name, frame.module, frame.is_kernel()))
                })
                .collect();
            for &function in seen.functions.iter().filter(|it| cut.contains(it)) {
                if let Some(at) = frames.iter().rposition(|&it| it == function) {
                    let ways = callers.entry(function).or_default();
                    *ways.entry(frames[at + 1..].to_vec()).or_default() += seen.count;
                }
            }
        }
        for seen in &mut self.seen {
            let Some(ways) = seen.cut_at.and_then(|function| callers.get(&function)) else {
                continue;
            };
            let all: u64 = ways.values().sum();
            let nearly_all =
                |&(_, &count): &(&Vec<_>, &u64)| count as f64 >= NEARLY_ALL * all as f64;
            let Some((way, _)) = ways.iter().find(nearly_all).filter(|_| all >= ALIKE) else {
                continue;
            };
            for &function in way {
                if !seen.functions.contains(&function) {
                    seen.functions.push(function);
                    self.tallies.entry(function).or_default().total += seen.count;
                }
            }
            seen.cut_at = None;
        }
    }

    /// The deepest function that is on most samples. Of all that are, it is the one that is the
    /// innermost on the most stacks: one within it would be so on at least as many.
    fn find_common(&self) -> Option<Identity<'a>> {
        self.deepest_on(MOST).or_else(|| self.deepest_on(MORE))
    }

    /// The deepest function that is on such a share of the samples.
    fn deepest_on(&self, share: f64) -> Option<Identity<'a>> {
        let needed = self.known() as f64 * share;
        let stacks: Vec<(&[Identity<'a>], u64)> = (self.seen.iter())
            .map(|seen| (&seen.functions[..], seen.count))
            .collect();
        self.innermost(&stacks, |identity| {
            self.tallies[&identity].total as f64 >= needed
        })
    }

    /// The samples that tell who called: without those that were walked before the recorder knew the program's code, if the
    /// others are enough.
    fn known(&self) -> u64 {
        /// Of so many samples one may tell for the others.
        const FEW: u64 = 4;
        let short = self.seen.iter().filter(|seen| seen.is_short);
        let known = self.count - short.map(|seen| seen.count).sum::<u64>();
        match known >= TELLING.max(self.count / FEW) {
            true => known,
            false => self.count,
        }
    }

    /// The common function, with the stack that it was seen in most often.
    pub(crate) fn function(&self) -> Option<Function> {
        let common = self.common?;
        let share = self.share(common);
        let seen = self
            .with_common()
            .max_by_key(|seen| (seen.count, Reverse(seen.user)))?;
        Some(Function {
            name: share.function,
            place: share.source.or(share.module)?,
            inlined_into: share.inlined_into,
            stack: match seen.user {
                NO_STACK => seen.kernel,
                user => user,
            },
            share: match 1.0 - share.total {
                missing if missing <= self.error() => 1.0,
                _ => share.total,
            },
            collecting: self.collecting(),
            in_kernel: self.in_kernel().filter(|_| !share.kernel),
            in_library: self.in_library(common),
            caller: self.caller(common),
            beside: self.beside.and_then(|identity| self.beside(identity)),
        })
    }

    fn beside(&self, identity: Identity<'a>) -> Option<Beside> {
        let share = self.share(identity);
        Some(Beside {
            name: share.function,
            place: share.source.or(share.module)?,
            share: share.total,
        })
    }

    /// The function that called `inner`, both of the program itself, if it is on nearly all samples, and `inner` on clearly
    /// fewer: what it called beside belongs to it as well.
    fn caller(&self, inner: Identity<'a>) -> Option<Beside> {
        let is_own = |identity: Identity<'a>| {
            let origin = self.tallies[&identity].origin;
            matches!(origin, Some(Origin::Program | Origin::Script)) && identity.1 == inner.1
        };
        let part = |identity: Identity<'a>| self.part(self.tallies[&identity].total);
        if !is_own(inner)
            || self.beside.is_some()
            || self.count < TELLING
            || part(inner) > CLEARLY_FEWER
        {
            return None;
        }
        let says_more = |identity: Identity<'a>| {
            part(identity) >= NEARLY_ALL && !hangdog_graph::hands_out_work(identity.0)
        };
        let mut callers: HashMap<Identity<'a>, u64> = HashMap::new();
        for seen in self.with_common() {
            let mut outer = seen
                .functions
                .iter()
                .copied()
                .skip_while(|&it| it != inner)
                .skip(1);
            if let Some(nearest) = outer.find(|&it| is_own(it)).filter(|&it| says_more(it)) {
                *callers.entry(nearest).or_default() += seen.count;
            }
        }
        let most = callers
            .into_iter()
            .max_by_key(|&(identity, count)| (count, Reverse(identity)));
        self.beside(most?.0)
    }

    /// The function of a library by which `outer`, of the program itself, called what most of the time went to;
    /// also of the C library where `outer` has no name.
    fn in_library(&self, outer: Identity<'a>) -> Option<Beside> {
        let origin = |identity: &Identity<'a>| self.tallies[identity].origin;
        let is_nameless = origin(&outer) == Some(Origin::Nameless);
        let is_own =
            is_nameless || matches!(origin(&outer), Some(Origin::Program | Origin::Script));
        if !is_own || self.count < TELLING {
            return None;
        }
        let is_of_library = |identity: &&Identity<'a>| {
            let is_told = match origin(identity) {
                Some(Origin::Library | Origin::Package | Origin::ThirdParty) => true,
                Some(Origin::Runtime) => is_nameless,
                _ => false,
            };
            is_told && !is_adapter(identity.0)
        };
        let mut called: HashMap<Identity<'a>, u64> = HashMap::new();
        for (functions, count) in self.within(outer, |_| true) {
            if let Some(&first) = functions.iter().rev().find(is_of_library) {
                *called.entry(first).or_default() += count;
            }
        }
        let most = called
            .into_iter()
            .max_by_key(|&(identity, count)| (count, Reverse(identity)))
            .filter(|&(_, count)| self.part(count) >= MORE);
        let (identity, count) = most?;
        Some(Beside {
            share: self.part(count),
            ..self.beside(identity)?
        })
    }

    /// The share of the samples that are within a collection of garbage.
    fn collecting(&self) -> f64 {
        let collects = |seen: &&Seen<'_>| seen.functions.iter().any(|it| is_collector(it.0));
        let seen = self.seen.iter().filter(collects);
        self.part(seen.map(|seen| seen.count).sum())
    }

    /// How much of the time it ran in the kernel, and in which function most of that, where it is most of the time.
    fn in_kernel(&self) -> Option<InKernel> {
        let is_there = |seen: &&Seen<'_>| seen.functions.first().is_some_and(|it| it.2);
        let count: u64 = (self.seen.iter().filter(is_there))
            .map(|seen| seen.count)
            .sum();
        let share = self.part(count);
        if share < MORE || self.count < TELLING {
            return None;
        }
        let stacks: Vec<(&[Identity<'a>], u64)> = (self.seen.iter().filter(is_there))
            .map(|seen| (&seen.functions[..], seen.count))
            .collect();
        let needed = count as f64 * MORE;
        let is_most = |it: Identity<'a>| it.2 && self.tallies[&it].total as f64 >= needed;
        let (name, ..) = self.innermost(&stacks, is_most)?;
        Some(InKernel {
            name: name.to_owned(),
            share,
        })
    }

    /// By how much shares are off at most, by chance: the normal approximation's 95 %, where it is widest.
    fn error(&self) -> f64 {
        (0.98 / (self.count.max(1) as f64).sqrt()).min(1.0)
    }

    fn with_common(&self) -> impl Iterator<Item = &Seen<'a>> {
        let common = self.common;
        let has = move |seen: &&Seen<'a>| common.is_some_and(|c| seen.functions.contains(&c));
        self.seen.iter().filter(has)
    }

    fn part(&self, count: u64) -> f64 {
        count as f64 / self.count.max(1) as f64
    }

    fn share(&self, identity: Identity<'a>) -> FunctionShare {
        let (name, module, kernel) = identity;
        let tally = &self.tallies[&identity];
        FunctionShare {
            // A function without a name goes by its module.
            function: match tally.origin {
                None if !name.starts_with('[') => format!("[{name}]"),
                _ => name.to_owned(),
            },
            module: module.map(str::to_owned),
            kernel,
            source: most(&tally.sources).map(|&source| source.to_owned()),
            inlined_into: most(&tally.holders).and_then(|holder| holder.map(str::to_owned)),
            own: self.part(tally.own),
            total: self.part(tally.total),
        }
    }

    fn common(&self) -> Option<Common> {
        let common = self.common?;
        let mut own: HashMap<Identity<'a>, u64> = HashMap::new();
        for seen in self.with_common() {
            if let Some(&innermost) = seen.functions.first() {
                *own.entry(innermost).or_default() += seen.count;
            }
        }
        let mut own: Vec<_> = own.into_iter().collect();
        own.sort_by_key(|&(identity, count)| (Reverse(count), identity));
        let hot = own.into_iter().take(HOT).map(|(identity, count)| {
            let share = self.share(identity);
            Hot {
                function: share.function,
                module: share.module,
                share: self.part(count),
            }
        });
        Some(Common {
            hot: hot.collect(),
            function: self.share(common),
        })
    }

    /// Why stacks end early, most often first.
    fn early_ends(&self, evidence: &Evidence<'_>, thread: Utid) -> Vec<EarlyEnds> {
        // A kernel thread has no user stack.
        if evidence.threads.thread(thread).is_kernel() {
            return Vec::new();
        }
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for seen in &self.seen {
            let why = match (seen.user, evidence.stacks.end(seen.user)) {
                (NO_STACK, _) => "no stack",
                (_, StackEnd::Root) => continue,
                (_, StackEnd::Depth) if seen.cut_at.is_none() => continue,
                (_, end) => end.text(),
            };
            *counts.entry(why).or_default() += seen.count;
        }
        let mut ends: Vec<EarlyEnds> = counts
            .into_iter()
            .map(|(why, count)| EarlyEnds {
                why,
                share: self.part(count),
            })
            .collect();
        ends.sort_by(|a, b| b.share.total_cmp(&a.share));
        ends
    }

    /// Whether a stack is one of the work that the time is named after.
    pub(crate) fn is_within(&self, evidence: &Evidence<'_>, stack: StackId) -> bool {
        self.common.is_some_and(|common| {
            let frames = evidence.stacks.stack(stack);
            let mut named = frames.filter(|frame| frame.module == common.1);
            named.any(|frame| frame.function == Some(common.0))
        })
    }

    /// What `thread`, whose profile it is, did in `windows`.
    pub(crate) fn report(
        &self,
        evidence: &Evidence<'_>,
        thread: Utid,
        windows: &[Range<u64>],
    ) -> Ran {
        let intervals = evidence.timeline.intervals(thread);
        let ran = |window: &Range<u64>| {
            let parts = intervals.between(window.start, window.end);
            let on_cpu = parts.filter(|part| part.state.is_on_cpu());
            on_cpu.map(|part| part.duration()).sum::<u64>()
        };
        let mut functions: Vec<FunctionShare> =
            self.tallies.keys().map(|&key| self.share(key)).collect();
        functions.sort_by(|a, b| {
            (b.own.total_cmp(&a.own))
                .then(b.total.total_cmp(&a.total))
                .then_with(|| (&a.function, &a.module).cmp(&(&b.function, &b.module)))
        });
        let (functions, rest): (Vec<_>, Vec<_>) =
            functions.into_iter().partition(|f| f.total >= LEAST);
        Ran {
            who: who(evidence, thread),
            threads: 1,
            ns: windows.iter().map(ran).sum(),
            samples: self.count,
            share_error: (self.count > 0).then(|| self.error()),
            common: self.common(),
            functions,
            others: rest.iter().fold(0.0, |sum, function| sum + function.own),
            unknown: match self.count {
                0 => 1.0,
                _ => self.part(self.unknown),
            },
            early_ends: self.early_ends(evidence, thread),
            begun: begun::of(evidence, thread, windows, |stack| {
                self.is_within(evidence, stack)
            })
            .map(|(begun, _)| begun),
        }
    }
}

/// The key that counts most, the first of equals.
fn most<K: Ord>(counts: &BTreeMap<K, u64>) -> Option<&K> {
    let most = counts
        .iter()
        .max_by_key(|&(key, count)| (*count, Reverse(key)));
    most.map(|(key, _)| key)
}

/// The rows of samples that show `thread` in any of `windows`, which are sorted and disjoint. There
/// can be far more windows than samples.
pub(crate) fn samples_of(
    evidence: &Evidence<'_>,
    thread: Utid,
    windows: &[Range<u64>],
) -> Vec<usize> {
    let samples = evidence.samples;
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Vec::new();
    };
    let begin = samples.ts.partition_point(|&ts| ts < first.start);
    let is_within = |ts: u64| {
        let after = windows.partition_point(|window| window.start <= ts);
        after > 0 && ts < windows[after - 1].end
    };
    (begin..samples.len())
        .take_while(|&row| samples.ts[row] < last.end)
        .filter(|&row| samples.thread[row] == thread && is_within(samples.ts[row]))
        .collect()
}

/// Whether most of the samples show the thread giving up its CPU.
pub(crate) fn mostly_yielding(evidence: &Evidence<'_>, samples: &[usize]) -> bool {
    const YIELD: [&str; 3] = ["sched_yield", "__sched_yield", "__GI_sched_yield"];
    const KERNEL_YIELD: [&str; 4] = [
        "__x64_sys_sched_yield",
        "__arm64_sys_sched_yield",
        "do_sched_yield",
        "__do_sys_sched_yield",
    ];
    let kernel = |row: usize| evidence.stacks.stack(evidence.samples.kernel_stack[row]);
    let yielding = samples
        .iter()
        .filter(|&&row| {
            let innermost = evidence
                .stacks
                .stack(evidence.samples.user_stack[row])
                .next();
            innermost.is_some_and(|frame| frame.function.is_some_and(|f| YIELD.contains(&f)))
                || kernel(row)
                    .any(|frame| frame.function.is_some_and(|f| KERNEL_YIELD.contains(&f)))
        })
        .count();
    yielding * 2 > samples.len()
}
