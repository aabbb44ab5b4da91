//! The verdict in one sentence that a person can act on.

use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;

use crate::blame::{BlameKind, Knot};
use crate::function::Function;
use crate::problem::Problem;
use crate::starvation::Starvation;
use crate::verdict::Class;

pub(crate) struct Facts<'a, 'e> {
    pub evidence: &'a Evidence<'e>,
    pub problem: &'a Problem,
    pub victim: Utid,
    pub culprit: Utid,
    pub class: Class,
    pub kind: BlameKind,
    pub function: Option<&'a Function>,
    pub starvation: Option<&'a Starvation>,
    pub knot: Option<&'a Knot>,
    /// Nothing names who should have ended the wait that it comes down to.
    pub is_open: bool,
    pub share: f64,
    /// Of a single moment: what the victim does in it.
    pub now: Option<&'a str>,
}

pub(crate) fn of(facts: &Facts<'_, '_>) -> String {
    let name = |thread| facts.evidence.name(thread);
    let victim = name(facts.victim);
    let time = duration(facts.problem.duration());
    let alone = facts.victim == facts.culprit;
    let (head, what) = match facts.now {
        Some(now) => (format!("{victim} {now}"), present(&reason(facts))),
        None => (format!("{victim} was held up for {time}"), reason(facts)),
    };
    // Two threads of one name are told apart by their tids.
    let named_alike = !alone && name(facts.culprit) == victim;
    let who = if named_alike {
        let tid = facts.evidence.threads.thread(facts.culprit).tid;
        format!("{victim} ({tid})")
    } else if alone {
        "it".to_owned()
    } else {
        name(facts.culprit)
    };
    let share = match facts.share {
        share if share < 0.995 => format!(" for {:.0} % of that time", share * 100.0),
        _ => String::new(),
    };
    match (facts.class, facts.knot, facts.starvation) {
        (Class::Circular, Some(knot), _) => {
            if let [only] = knot.threads[..] {
                return format!("{head}: a lock that {} itself has.", name(only));
            }
            let names: Vec<String> = knot.threads.iter().map(|&thread| name(thread)).collect();
            let wait = match facts.now {
                Some(_) => "wait",
                None => "waited",
            };
            format!(
                "{head}: {} {wait} for each other in a circle.",
                names.join(" and ")
            )
        }
        (_, _, Some(Starvation::Quota)) => {
            let whose = if alone { "its" } else { &format!("{who}'s") };
            format!("{head}: the CPU quota of {whose} control group was used up{share}.")
        }
        (_, _, Some(Starvation::Hog { cpu, outranks, .. })) => {
            let rank = if *outranks {
                ", which has the stronger priority,"
            } else {
                ""
            };
            let doing = match facts.function {
                Some(function) => format!(" for {}", function.name),
                None => String::new(),
            };
            format!("{head}: {who}{rank} kept CPU {cpu} busy{doing}{share}.")
        }
        (_, _, Some(Starvation::Crowd { most: Some(_) })) => {
            format!(
                "{head}: it, or a thread that it waited for, was runnable and got no CPU time{share}; {who} got more of that than others."
            )
        }
        (_, _, Some(Starvation::Crowd { most: None })) => {
            let doing = match facts.function {
                Some(function) => format!(" for {}", function.name),
                None => String::new(),
            };
            format!("{head}: {who} wanted a CPU{doing}, and others had them{share}.")
        }
        (Class::Unknown, ..) if facts.now.is_some() => {
            format!("{head}: for whom cannot be told.")
        }
        (Class::Unknown, ..) => format!("{head}: the trace does not tell by what."),
        _ if facts.now.is_some() && alone => format!("{victim} {what}."),
        _ if facts.is_open && facts.now.is_some() => {
            format!("{head}: the chain of waits ends at {who}, which {what}.")
        }
        _ if facts.is_open && alone => {
            format!("{head}, the trace does not show by whom: it {what}{share}.")
        }
        _ if facts.is_open => format!(
            "{head}, the trace does not show by whom: the chain of waits ends at {who}, which {what}{share}."
        ),
        _ => format!("{head}: {who} {what}{share}."),
    }
}

fn reason(facts: &Facts<'_, '_>) -> String {
    let within = match facts.function {
        Some(function) => match &function.inlined_into {
            Some(outer) => format!(" in {} (inlined into {outer})", function.name),
            None => format!(" in {}", function.name),
        },
        None => String::new(),
    };
    if facts.class == Class::RepeatedYield {
        return format!("polled{within}, yielding or sleeping for moments");
    }
    match facts.kind {
        BlameKind::Run => match facts.function {
            Some(Function {
                name,
                place,
                inlined_into,
                ..
            }) => match inlined_into {
                Some(outer) => format!("ran {name} ({}, inlined into {outer})", file_of(place)),
                None => format!("ran {name} ({})", file_of(place)),
            },
            None => "ran".to_owned(),
        },
        BlameKind::Runnable => "wanted a CPU".to_owned(),
        BlameKind::Interrupt => "was interrupted".to_owned(),
        BlameKind::Lock => format!("waited for a lock{within}"),
        BlameKind::Message => format!("waited for a message from outside{within}"),
        BlameKind::Disk => format!("waited for the disk{within}"),
        BlameKind::Network => format!("waited for the network{within}"),
        BlameKind::Timer => format!("slept or let a time-out pass{within}"),
        BlameKind::Stopped => "was stopped by a signal, a debugger or a freezer".to_owned(),
        BlameKind::Kernel => format!("waited inside the kernel{within}"),
        BlameKind::Paging => format!("waited for memory to be brought in{within}"),
        BlameKind::Unknown => "was not seen".to_owned(),
    }
}

/// A phrase that begins with a verb in the past, told of the present.
pub(crate) fn present(phrase: &str) -> String {
    const VERBS: [(&str, &str); 7] = [
        ("waited", "waits"),
        ("slept", "sleeps"),
        ("was", "is"),
        ("had", "has"),
        ("ran", "runs"),
        ("wanted", "wants"),
        ("polled", "polls"),
    ];
    let (verb, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
    match VERBS.iter().find(|(past, _)| *past == verb) {
        Some((_, now)) if rest.is_empty() => (*now).to_owned(),
        Some((_, now)) => format!("{now} {rest}"),
        None => phrase.to_owned(),
    }
}

/// A source line or module without its folders.
fn file_of(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}

/// A duration with three digits.
pub(crate) fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1_000_000_000 => (ns as f64 / 1e9, "s"),
        ns if ns >= 1_000_000 => (ns as f64 / 1e6, "ms"),
        ns => (ns as f64 / 1e3, "µs"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}
