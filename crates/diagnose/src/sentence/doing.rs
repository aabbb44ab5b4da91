//! What the culprit did, as a clause that begins with a verb in the past tense.

use hangdog_graph::asyncio::Circle;
use hangdog_graph::wake::tracer;
use hangdog_graph::{Evidence, Gate, Mark, Wait, WaitKind, owed};
use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::{Object, ObjectKind};

use super::facts::Facts;
use super::words::{brief, duration, file_of, in_function, of_that_time};
use crate::function::{Function, is_collector};
use crate::kind::BlameKind;
use crate::stretch::{wait_before, wake_of};
use crate::tasks;
use crate::verdict::Class;

/// The culprit's function, as the end of a phrase.
pub(crate) fn within(facts: &Facts<'_, '_>) -> String {
    match facts.function {
        Some(function) => match &function.inlined_into {
            Some(outer) => format!("{} (inlined into {outer})", in_function(&function.name)),
            None => in_function(&function.name),
        },
        None => String::new(),
    }
}

/// Where many waits are told as one, and one function is named: that a good part of them was in others.
fn elsewhere(facts: &Facts<'_, '_>) -> &'static str {
    const NEARLY_ALL: f64 = 0.8;
    match facts.function {
        Some(function) if function.share < NEARLY_ALL && !within(facts).is_empty() => {
            " and elsewhere"
        }
        _ => "",
    }
}

/// The longest of the culprit's sleeps and what it had asked for, ns, where they take several times as long:
/// its timer slack is large, or its control group was frozen in between.
fn oversleeps(facts: &Facts<'_, '_>) -> Option<(u64, u64)> {
    const TIMES: u64 = 5;
    const LEAST_NS: u64 = 20_000_000;
    const LOOKED_AT: usize = 4096;
    if facts.kind != BlameKind::Timer || facts.now.is_some() {
        return None;
    }
    let (evidence, window) = (facts.evidence, &facts.problem.window);
    let all = evidence
        .timeline
        .between(facts.culprit, window.start, window.end);
    let sleeps: Vec<(u64, u64)> = all
        .take(LOOKED_AT)
        .filter(|part| part.state == State::Blocked)
        .filter_map(|part| {
            let wait = Wait::new(evidence, facts.culprit, &part);
            Some((wait.duration(), wait.asked_ns(evidence)?))
        })
        .collect();
    let slept: u64 = sleeps.iter().map(|(slept, _)| slept).sum();
    // A trace may claim that anything was asked for.
    let asked = (sleeps.iter()).fold(0_u64, |sum, &(_, asked)| sum.saturating_add(asked));
    let longest = sleeps.into_iter().max()?;
    (slept >= asked.saturating_mul(TIMES) && longest.0 >= LEAST_NS).then_some(longest)
}

/// How long the only poll of a wait was to last at most, where its call tells.
fn limit_of_poll(facts: &Facts<'_, '_>) -> String {
    let limit = facts.wait.and_then(|wait| {
        let limit = wait.poll_limit_ns(facts.evidence)?;
        // One that began in the recording and was over long before its limit did not end by that.
        let is_short = wait.start == 0 || limit <= wait.duration().saturating_mul(2);
        (is_short && limit >= wait.duration() / 10 * 9).then_some(limit)
    });
    limit.map_or_else(String::new, |limit| format!(" of {}", duration(limit)))
}

pub(crate) fn reason(facts: &Facts<'_, '_>) -> String {
    let within = within(facts);
    if let Some(started) = facts.started {
        return format!(
            "started {} processes{within}, mostly {}, and waited for each",
            started.processes, started.name
        );
    }
    if let Some((longest, asked)) = oversleeps(facts) {
        let (longest, asked) = (duration(longest), duration(asked));
        return format!("slept{within} for up to {longest} at a time, and had asked for {asked}");
    }
    if facts.class == Class::RepeatedYield {
        return format!("polled{within}, yielding or sleeping briefly in between");
    }
    if let Some(gate) = facts.wait.and_then(|wait| wait.gate(facts.evidence)) {
        let lost = match (gate, facts.kind) {
            (Gate::Standby, BlameKind::Network) if facts.now.is_some() => {
                ", and what was sent to the standby is not acknowledged"
            }
            (Gate::Standby, BlameKind::Network) => {
                ", and what was sent to the standby was not acknowledged"
            }
            _ => "",
        };
        return format!("{}{within}{lost}", gate.text());
    }
    if facts.kind == BlameKind::Lock
        && (facts.wait).is_some_and(|wait| tasks::awaits_other(facts.evidence, &wait))
    {
        let place = facts
            .wait
            .and_then(|wait| tasks::place_of_task(facts.evidence, &wait));
        let other =
            (facts.wait).map_or_else(String::new, |wait| tasks::other(facts.evidence, &wait));
        let own = facts.function.map(|function| function.name.as_str());
        let called = place.filter(|place| Some(*place) != own);
        let called = called.map_or_else(String::new, |called| format!(", which called {called}"));
        let circle = (facts.wait.and_then(|wait| wait.task)).map(|task| task.circle);
        let in_turn = match circle {
            Some(Circle::Others) => ", and that one for it",
            _ => "",
        };
        return format!("waited for {other}{within}{called}{in_turn}");
    }
    match facts.kind {
        _ if facts.is_idle_server => format!("did not answer, though idle{within}"),
        BlameKind::Run => match facts.function {
            Some(function) => format!("ran {}", ran(function)),
            None => "ran".to_owned(),
        },
        BlameKind::Runnable => "waited for a CPU".to_owned(),
        BlameKind::Interrupt => "was interrupted".to_owned(),
        BlameKind::Lock if facts.wait.is_some_and(|wait| is_condition(facts, &wait)) => {
            format!("waited for a condition{within}")
        }
        BlameKind::Lock => format!("waited for a lock{within}"),
        BlameKind::Message if facts.wait.is_some_and(|wait| reads_device(facts, &wait)) => {
            let driver = drives_terminal(facts).unwrap_or_default();
            format!("waited for input from a terminal or device{driver}{within}")
        }
        BlameKind::Message if facts.wait.is_some_and(|wait| opens_fifo(facts, &wait)) => {
            format!("waited for another program to open the other end of a FIFO{within}")
        }
        BlameKind::Message
            if (facts.wait).is_some_and(|wait| owed::awaits_user(facts.evidence, &wait)) =>
        {
            format!("waited for input from its user{within}")
        }
        BlameKind::Message
            if facts.wait.is_some_and(|wait| {
                let stack = wait.user_stack(facts.evidence);
                facts.evidence.shows(stack, Mark::DatabaseLock)
            }) =>
        {
            format!("waited for another session of the database{within}")
        }
        BlameKind::Message if facts.wait.is_some_and(|wait| reads_commands(facts, &wait)) => {
            format!("waited for its next command{within}")
        }
        BlameKind::Message if let Some(reader) = facts.keeps_open => kept_open(facts, reader),
        BlameKind::Message if facts.is_asked => {
            format!("did not answer, waiting for a message itself{within}")
        }
        BlameKind::Message if facts.wait.is_some_and(|wait| polls_several(facts, &wait)) => {
            format!("waited for one of several files or sockets{within}")
        }
        BlameKind::Message
            if facts
                .wait
                .is_some_and(|it| it.is_within_process(facts.evidence)) =>
        {
            format!("waited for an event of its own process{within}")
        }
        BlameKind::Message => match facts.in_turn {
            Some(other) => {
                let other = facts.evidence.name(other);
                format!("waited{within} for a message from {other}, and {other} for it")
            }
            None => format!("waited for a message from outside the trace{within}"),
        },
        BlameKind::Disk => {
            let purpose = facts
                .wait
                .and_then(|wait| wait.disk_purpose(facts.evidence));
            let purpose = purpose.map_or_else(String::new, |purpose| format!(" ({purpose})"));
            format!("waited for the disk{within}{purpose}{}", elsewhere(facts))
        }
        BlameKind::Network
            if (facts.wait).is_some_and(|it| owed::unanswered(facts.evidence, &it).is_some()) =>
        {
            format!("waited for an answer to a datagram that it had sent{within}")
        }
        BlameKind::Network if let Some(phrase) = held_back(facts) => phrase,
        BlameKind::Network if let Some(remote) = attempt(facts) => {
            format!("waited{within} for a connection to {remote}, which did not answer")
        }
        BlameKind::Network => match remote(facts) {
            Some(remote) => format!("waited for {remote} over the network{within}"),
            None => format!("waited for the network{within}"),
        },
        BlameKind::Timer => match facts.wait.map(|wait| wait.kind) {
            Some(WaitKind::Sleep) if sleeper_of(facts).is_some() => "slept".to_owned(),
            Some(WaitKind::Sleep) if tries_again(facts) => {
                format!("slept between two attempts{within}")
            }
            Some(WaitKind::Sleep) => format!("slept{within}"),
            Some(_) if (facts.wait).is_some_and(|wait| wait.task.is_some()) => {
                format!("slept{within}")
            }
            Some(WaitKind::Timer) => format!("waited for a timer{within}"),
            Some(WaitKind::Condition) if goes_on(facts) => {
                format!("waited for a condition{within}, with a time limit")
            }
            Some(_) if let Some(reader) = facts.keeps_open => kept_open(facts, reader),
            // An event loop that looks up now and then, whatever it waits for.
            Some(WaitKind::Poll)
                if facts.is_asked && facts.wait.is_some_and(|it| it.by_epoll(facts.evidence)) =>
            {
                format!("did not answer, waiting for a message itself{within}")
            }
            Some(_) => format!("waited{within} until a timeout{}", limit_of_poll(facts)),
            None => format!("slept, or waited for a timeout{within}"),
        },
        BlameKind::Stopped
            if let Some(tracer) = (facts.wait)
                .and_then(|wait| wait.holder.or_else(|| debugger(facts.evidence, &wait))) =>
        {
            format!(
                "was stopped by {}, which debugs it",
                facts.evidence.name(tracer)
            )
        }
        BlameKind::Stopped => match facts.wait {
            Some(wait) => wait.phrase(facts.evidence),
            None => "was stopped".to_owned(),
        },
        BlameKind::Gone => match facts.evidence.threads.thread(facts.culprit).killed_by() {
            Some(by) => format!("was killed by {by}"),
            None => "exited without waking it".to_owned(),
        },
        BlameKind::Kernel => match facts.wait.and_then(|wait| wait.system_v(facts.evidence)) {
            Some(what) => format!("waited for {what}{within}"),
            None => format!("waited inside the kernel{within}"),
        },
        BlameKind::Paging => format!("waited for a page-in{within}{}", elsewhere(facts)),
        BlameKind::Unknown => "had no recorded events".to_owned(),
    }
}

/// Whether the sentence names the function as one that ran.
pub(crate) fn is_ran(facts: &Facts<'_, '_>) -> bool {
    facts.kind == BlameKind::Run
        && facts.starvation.is_none()
        && facts.started.is_none()
        && facts.class != Class::RepeatedYield
        && !facts.is_idle_server
}

/// That a program in the background has a pipe open that `reader` reads to its end.
fn kept_open(facts: &Facts<'_, '_>, reader: Utid) -> String {
    let (reader, within) = (facts.evidence.name(reader), within(facts));
    format!("kept a pipe open that {reader} reads, waiting for a message itself{within}")
}

/// A function that ran, with its place.
fn ran(function: &Function) -> String {
    let (name, place) = (brief(&function.name), file_of(&function.place));
    match &function.inlined_into {
        Some(outer) => format!("{name} ({place}, inlined into {outer})"),
        // Its module is in its name.
        None if name.starts_with(place) => name.into_owned(),
        None => format!("{name} ({place})"),
    }
}

/// How much of the problem's time the culprit ran in its function, and what else it ran, as the end of a clause.
pub(crate) fn ran_for(facts: &Facts<'_, '_>, function: &Function) -> String {
    let mut text = of_that_time(facts.share * function.share);
    if let Some(beside) = &function.beside {
        let (name, place) = (brief(&beside.name), file_of(&beside.place));
        let percent = facts.share * beside.share * 100.0;
        text += &format!(" and {name} ({place}) for {percent:.0} %");
    }
    if let Some(caller) = &function.caller {
        let percent = facts.share * caller.share * 100.0;
        text += &format!(
            ", {percent:.0} % in {}, which called it",
            brief(&caller.name)
        );
    }
    if let Some(library) = &function.in_library {
        // The C library calls its own functions by names of its own.
        let exported = (library.name.strip_prefix("__GI_"))
            .map_or(library.name.as_str(), |name| name.trim_start_matches('_'));
        let (name, place) = (brief(exported), file_of(&library.place));
        let percent = facts.share * library.share * 100.0;
        text += &format!(", {percent:.0} % in {name} ({place})");
    }
    if let Some(kernel) = &function.in_kernel {
        let percent = facts.share * kernel.share * 100.0;
        text += &format!(", {percent:.0} % in the kernel ({})", kernel.name);
    }
    text += &collected(facts, function);
    text
}

/// The program that waits for what the culprit prints, and that may be at the other end of the terminal which that
/// reads: it started it, and polls, as expect(1) does.
fn drives_terminal(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let above = *facts.between.last().unwrap_or(&facts.victim);
    let process = evidence.threads.process_of(above);
    let is_child = evidence.threads.process_of(facts.culprit).parent == process.upid;
    let window = &facts.problem.window;
    let middle = window.start + (window.end - window.start) / 2;
    let polls = |&thread: &Utid| {
        wait_before(evidence, thread, middle).is_some_and(|there| there.kind == WaitKind::Poll)
    };
    (is_child && process.threads.iter().any(polls))
        .then(|| format!(" ({} may have its other end)", evidence.name(above)))
}

/// That it collected garbage, where the name of its function does not say so.
fn collected(facts: &Facts<'_, '_>, function: &Function) -> String {
    /// A smaller share of collecting garbage is as usual.
    const MUCH: f64 = 0.3;
    if function.collecting < MUCH {
        return String::new();
    }
    if is_collector(&function.name) {
        let name = function.name.to_lowercase();
        let says_so = ["collect", "garbage", "gc"]
            .iter()
            .any(|word| name.contains(word));
        return if says_so { "" } else { ", collecting garbage" }.to_owned();
    }
    let percent = facts.share * function.collecting * 100.0;
    let collected = match facts.now {
        Some(_) => "collects",
        None => "collected",
    };
    format!(", and {collected} garbage for {percent:.0} %")
}

/// The program that started the culprit, where that is sleep(1), which does nothing of its own accord.
pub(crate) fn sleeper_of<'f>(facts: &'f Facts<'_, '_>) -> Option<&'f str> {
    let threads = facts.evidence.threads;
    let process = threads.process_of(facts.culprit);
    let parent = threads.process(process.parent);
    let is_sleep = process.name == "sleep" && facts.kind == BlameKind::Timer;
    let is_known = parent.upid == process.parent && !parent.name.is_empty();
    (is_sleep && is_known).then_some(parent.name.as_str())
}

/// The debugger that let a thread go on when it had been stopped.
pub(crate) fn debugger(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let intervals = evidence.timeline.intervals(wait.thread);
    let next = intervals.get(intervals.index_at(wait.end)?)?;
    tracer(evidence, wake_of(evidence, wait.thread, &next)?)
}

/// What it waited for, where that had been sent on this machine and came late; and what makes TCP so late.
fn held_back(facts: &Facts<'_, '_>) -> Option<String> {
    /// Linux acknowledges after so many ms at the earliest where it does not do so at once, and sends what was lost
    /// again after 200 at the earliest; with some ms for the timer to be late.
    const ACKNOWLEDGED_MS: std::ops::Range<u64> = 36..60;
    const SENT_AGAIN_MS: u64 = 200;
    let late = owed::held_back(facts.evidence, &facts.wait?)?;
    let ms = late.delay_ns / 1_000_000;
    let whose = match late.sender == facts.culprit {
        true => "it had sent".to_owned(),
        false => format!("{} had sent", facts.evidence.name(late.sender)),
    };
    let why = match ms {
        _ if ACKNOWLEDGED_MS.contains(&ms) => {
            " (as with Nagle's algorithm and delayed acknowledgements)"
        }
        SENT_AGAIN_MS.. => " (as after a packet was lost)",
        _ => "",
    };
    let within = within(facts);
    Some(format!(
        "waited {ms} ms for TCP to deliver what {whose}{within}{why}"
    ))
}

/// The address that the culprit's wait is for.
fn remote<'f>(facts: &'f Facts<'_, '_>) -> Option<&'f str> {
    address(facts, facts.wait?.object(facts.evidence))
}

/// The address that the culprit tries to connect to, and that has not answered.
fn attempt<'f>(facts: &'f Facts<'_, '_>) -> Option<&'f str> {
    address(facts, owed::attempt(facts.evidence, &facts.wait?)?)
}

fn address<'f>(facts: &'f Facts<'_, '_>, object: Object) -> Option<&'f str> {
    let (_, remote) = facts.evidence.sockets.addresses(object)?;
    (!remote.is_empty()).then_some(remote)
}

/// Whether a wait is for a condition, not for a lock of the language's own that is made of one.
fn is_condition(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    wait.kind == WaitKind::Condition && !wait.is_for_own_lock(facts.evidence)
}

fn opens_fifo(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    let stack = wait.kernel_stack(facts.evidence);
    facts.evidence.shows(stack, Mark::OpensFifo)
}

/// Whether a wait is for what comes from a terminal or another device, by a read or a poll of it alone.
fn reads_device(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    let polls =
        wait.kind == WaitKind::Poll && wait.object(facts.evidence).kind() == ObjectKind::CharDevice;
    wait.kind == WaitKind::Device || polls
}

/// Whether a wait is for several things, of which the trace names none.
fn polls_several(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    wait.kind == WaitKind::Poll && wait.object(facts.evidence).is_none()
}

/// Whether the culprit's wait had not ended as the recording did.
fn goes_on(facts: &Facts<'_, '_>) -> bool {
    let end = facts.evidence.timeline.end();
    facts.wait.is_some_and(|wait| wait.end >= end)
}

/// Whether the culprit sleeps before it tries again what failed.
pub(super) fn tries_again(facts: &Facts<'_, '_>) -> bool {
    let evidence = facts.evidence;
    facts
        .wait
        .is_some_and(|wait| evidence.shows(wait.user_stack(evidence), Mark::Retries))
}

/// Whether a wait is a shell's or another interpreter's for what it is to do next.
fn reads_commands(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    let stack = wait.user_stack(facts.evidence);
    wait.kind == WaitKind::Poll && facts.evidence.shows(stack, Mark::ReadsCommands)
}
