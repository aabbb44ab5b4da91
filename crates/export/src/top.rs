//! Functions by the time that went to them.
//!
//! Self time is that of the stacks in which a function is innermost, total time that of all
//! stacks in which it is at all; a function that calls itself counts once a stack. A stack whose
//! functions are not known counts for an entry in brackets, so that self times add up to the
//! whole.

use std::cmp::Reverse;
use std::collections::HashMap;

use hangdog_trace::ids::NO_STACK;
use hangdog_trace::words::StackEnd;

use crate::fold::{Doing, Weight};
use crate::stack::{Entry, Kind, functions_at, missing};
use crate::{Fold, Source};

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name; its module in brackets where it has none.
    pub name: String,
    /// File name of its module, if it is known.
    pub module: Option<&'a str>,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// Where it was innermost.
    pub own: Weight,
    /// Where it was at all.
    pub total: Weight,
}

/// By which time functions are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Their own.
    Own,
    /// With what they called.
    Total,
}

/// The functions of a fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top<'a> {
    /// Most first; by name where that is equal.
    pub functions: Vec<Function<'a>>,
    /// The whole that shares are of: samples, or blocked time.
    pub whole: Weight,
    /// How far the stacks tell.
    pub stacks: Completeness,
}

/// How far stacks can be trusted. Threads of the kernel have no user stack and are not counted,
/// nor is what the trace did not see begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// What threads of programs did.
    pub of_programs: Weight,
    /// Of that, what has no user stack.
    pub without: Weight,
    /// Of that, what has a user stack that ends before its outermost function.
    pub incomplete: Weight,
    /// Of that, what has a user stack of which the trace does not say why it ends.
    pub unknown: Weight,
}

/// What makes functions the same: name, module, kernel or not.
type Identity<'a> = (std::borrow::Cow<'a, str>, Option<&'a str>, bool);

impl<'a> Top<'a> {
    /// Sums up a fold. Time waiting for a CPU belongs to no function and is left out.
    pub fn new(source: &Source<'a>, fold: &Fold, by: By) -> Top<'a> {
        let mut sums: HashMap<Identity<'a>, (Weight, Weight)> = HashMap::new();
        let mut top = Top {
            functions: Vec::new(),
            whole: Weight::default(),
            stacks: Completeness::default(),
        };
        for (key, weight) in &fold.rows {
            if key.doing == Doing::WaitingForCpu {
                continue;
            }
            top.whole.add(*weight);
            if !source.threads.thread(key.thread).is_kernel() && !key.is_unseen {
                let user = key.place.user;
                top.stacks
                    .add(user != NO_STACK, source.stacks.end(user), *weight);
            }
            let mut stack: Vec<Identity<'a>> = functions_at(source, key.place)
                .into_iter()
                .map(identity)
                .collect();
            if stack.is_empty() {
                stack.push((missing(key).into(), None, false));
            }
            if let Some(innermost) = stack.last() {
                sums.entry(innermost.clone()).or_default().0.add(*weight);
            }
            stack.sort_unstable();
            stack.dedup();
            for function in stack {
                sums.entry(function).or_default().1.add(*weight);
            }
        }
        top.functions = sums
            .into_iter()
            .map(|((name, module, kernel), (own, total))| Function {
                name: name.into_owned(),
                module,
                kernel,
                own,
                total,
            })
            .collect();
        let size = |weight: Weight| (weight.ns, weight.count);
        top.functions.sort_unstable_by(|a, b| {
            let order = |f: &Function<'_>| match by {
                By::Own => Reverse((size(f.own), size(f.total))),
                By::Total => Reverse((size(f.total), size(f.own))),
            };
            (order(a), &a.name, a.module, a.kernel).cmp(&(order(b), &b.name, b.module, b.kernel))
        });
        top
    }
}

fn identity<'a>(entry: Entry<'a>) -> Identity<'a> {
    (entry.name, entry.module, entry.kind == Kind::Kernel)
}

impl Completeness {
    fn add(&mut self, has_stack: bool, end: StackEnd, weight: Weight) {
        self.of_programs.add(weight);
        match (has_stack, end) {
            (false, _) => self.without.add(weight),
            (true, StackEnd::Root) => {}
            (true, StackEnd::Unknown) => self.unknown.add(weight),
            (true, _) => self.incomplete.add(weight),
        }
    }
}
