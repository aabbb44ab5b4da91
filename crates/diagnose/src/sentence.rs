//! The verdict in one sentence.

use std::borrow::Cow;

use hangdog_graph::edge::tracer;
use hangdog_graph::owed::is_descendant;
use hangdog_graph::{Evidence, Mark, Wait, WaitKind, owed};
use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::ObjectKind;

use crate::beside;
use crate::blame::{BlameKind, Knot};
use crate::function::{self, Function};
use crate::limit;
use crate::owed::wait_before;
use crate::problem::Problem;
use crate::starvation::Starvation;
use crate::stretch::wake_of;
use crate::suspect::Started;
use crate::verdict::Class;

pub(crate) struct Facts<'a, 'e> {
    pub evidence: &'a Evidence<'e>,
    pub problem: &'a Problem,
    pub victim: Utid,
    pub culprit: Utid,
    /// Whose time it is: of one that was kept from a CPU not the culprit's.
    pub starved: Utid,
    pub class: Class,
    pub kind: BlameKind,
    pub function: Option<&'a Function>,
    /// The longest wait that the culprit is blamed for.
    pub wait: Option<Wait>,
    pub starvation: Option<&'a Starvation>,
    /// Most of the time is that of many processes that the culprit started.
    pub started: Option<&'a Started>,
    /// So many other threads of the culprit's process did the same at other times.
    pub alike: usize,
    pub knot: Option<&'a Knot>,
    /// The culprit was asked over a connection, or has the other end of a pipe.
    pub is_asked: bool,
    /// The culprit was asked, or sent at last what was waited for, and had nothing to do in the longest of its
    /// waits.
    pub is_idle_server: bool,
    /// Nothing names who should have ended the wait that it comes down to.
    pub is_open: bool,
    /// Who should have ended that wait, if that one waited for the culprit, too.
    pub in_turn: Option<Utid>,
    pub share: f64,
    /// Of a single moment: what the victim does in it.
    pub now: Option<&'a str>,
}

pub(crate) fn of(facts: &Facts<'_, '_>) -> String {
    let name = |thread| facts.evidence.name(thread);
    let victim = name(facts.victim);
    let time = duration(match &facts.problem.many {
        Some(many) => many.duration(),
        None => facts.problem.duration(),
    });
    let alone = facts.victim == facts.culprit;
    let (head, what) = match facts.now {
        Some(now) => (format!("{victim} {now}"), present(&reason(facts))),
        None => {
            let by = waits(facts).unwrap_or_default();
            (
                format!("{victim} was held up for {time}{by}"),
                reason(facts),
            )
        }
    };
    let who = match alone {
        true => "it".to_owned(),
        false => match sleeper_of(facts) {
            Some(script) => format!("{}, which {script} started,", name(facts.culprit)),
            None => name(facts.culprit),
        },
    };
    let share = match facts.function {
        Some(function) if is_ran(facts) => ran_for(facts, function),
        _ => of_that_time(facts.share),
    };
    if facts.now.is_none() && facts.problem.may_be_idle() && !surely_waited(facts) {
        let doing = if facts.class == Class::Unknown {
            "waited".to_owned()
        } else {
            what
        };
        let looks = facts.class == Class::RepeatedYield
            || facts.wait.is_some_and(|wait| wait.kind == WaitKind::Sleep);
        let beside = looks.then(|| beside(facts, facts.starved)).flatten();
        let beside = beside.unwrap_or_default();
        return format!(
            "{victim} may have been idle: nothing shows that it was waiting for a reply or a \
             result. Its longest wait took {time}: {who} {doing}{share}{beside}."
        );
    }
    match (facts.class, facts.knot, facts.starvation) {
        (Class::Circular, Some(knot), _) => {
            let waited = match facts.now {
                Some(_) => present("waited"),
                None => "waited".to_owned(),
            };
            if let [only] = knot.threads[..] {
                let name = match only == facts.victim {
                    true => "it".to_owned(),
                    false => name(only),
                };
                return match facts.wait.map(|wait| wait.kind) {
                    Some(WaitKind::Message | WaitKind::Poll | WaitKind::Kernel) => {
                        format!(
                            "{head}: {name} asked itself, and waits for its own answer{}.",
                            within(facts)
                        )
                    }
                    _ => format!(
                        "{head}: {name} {waited} for a lock{} that it has itself.",
                        within(facts)
                    ),
                };
            }
            let window = &facts.problem.window;
            let middle = window.start + (window.end - window.start) / 2;
            let members = knot.threads.iter().map(|&thread| {
                let wait = wait_before(facts.evidence, thread, middle);
                let stack = wait.map(|wait| wait.user_stack(facts.evidence));
                match stack.and_then(|stack| function::own(facts.evidence, stack)) {
                    Some(function) => format!("{} in {}", name(thread), brief(&function.name)),
                    None => name(thread),
                }
            });
            let names: Vec<String> = members.collect();
            let Some((last, others)) = names.split_last() else {
                return format!("{head}: threads waited for each other in a circle.");
            };
            let wait = match facts.now {
                Some(_) => "wait",
                None => "waited",
            };
            format!(
                "{head}: {} and {last} {wait} for each other in a circle.",
                others.join(", ")
            )
        }
        (_, _, Some(Starvation::Quota)) if facts.now.is_some() && alone => format!("{head}."),
        (_, _, Some(Starvation::Quota)) => {
            let whose = if alone { "its" } else { &format!("{who}'s") };
            let (of, by) = quota(facts);
            format!("{head}: the CPU quota of {whose} control group{of} was used up{share}{by}.")
        }
        (
            _,
            _,
            Some(Starvation::Hog {
                cpu,
                outranks,
                share: had,
                ..
            }),
        ) => {
            let share = of_that_time(facts.share * had);
            let rank = match (*outranks, facts.starved == facts.victim) {
                (true, true) => ", which has a higher priority,",
                (true, false) => &format!(
                    ", which has a higher priority than {},",
                    name(facts.starved)
                ),
                (false, _) => "",
            };
            let doing = match facts.function {
                Some(function) => format!(" in {}", brief(&function.name)),
                None => String::new(),
            };
            format!("{head}: {who}{rank} kept CPU {cpu} busy{doing}{share}.")
        }
        (
            _,
            _,
            Some(Starvation::Crowd {
                most: Some(_),
                outranks,
                ..
            }),
        ) => {
            let rank = if *outranks {
                " of a higher priority"
            } else {
                ""
            };
            let starved = match facts.starved == facts.victim {
                true => "it".to_owned(),
                false => name(facts.starved),
            };
            let (was, held) = tense(facts);
            format!(
                "{head}: {starved} {was} runnable while other threads{rank} {held} the CPUs{share}, \
                 mostly {who}."
            )
        }
        (_, _, Some(Starvation::Crowd { most: None, .. })) => {
            let doing = match facts.function {
                Some(function) => format!(" in {}", brief(&function.name)),
                None => String::new(),
            };
            let (was, held) = tense(facts);
            format!(
                "{head}: {who} {was} runnable{doing} while other threads {held} the CPUs{share}."
            )
        }
        (Class::LongWait, ..)
            if (facts.wait).is_some_and(|wait| owed::starves_own_pool(facts.evidence, &wait)) =>
        {
            format!(
                "{head}: each worker of {}'s pool waits for a task that only they could run; the chain \
                 of waits ends at {who}{}.",
                program_of(facts),
                within(facts)
            )
        }
        (Class::Unknown | Class::LongWait, ..)
            if (facts.wait).is_some_and(|wait| is_left_by_fork(facts, &wait)) =>
        {
            let waited = match facts.now {
                Some(_) => present("waited"),
                None => "waited".to_owned(),
            };
            format!(
                "{head}: {who} {waited} for a lock{} that no thread in its process can release; the \
                 process was forked from a multithreaded one, and another thread may have held the \
                 lock at the fork.",
                within(facts)
            )
        }
        (Class::Unknown | Class::LongWait, ..)
            if facts.kind == BlameKind::Gone && is_deadlocked(facts) =>
        {
            format!(
                "{head}{}: {who} {what}, and no thread is left in its process that could do so.",
                within(facts)
            )
        }
        (Class::Unknown | Class::LongWait, ..)
            if is_deadlocked(facts) && !owed::has_mates(facts.evidence, facts.culprit) =>
        {
            const LEFT: &str = "and no other thread of its process is left that could end that";
            match facts.now.is_some() && alone {
                true => format!("{victim} {what}, {LEFT}."),
                false => format!("{head}: {who} {what}, {LEFT}."),
            }
        }
        (Class::Unknown | Class::LongWait, ..) if is_deadlocked(facts) => {
            format!(
                "{head}: each thread of {} waits for a lock, a condition or another of them, so that none \
             is left to wake one; the chain of waits ends at {who}{}.",
                program_of(facts),
                within(facts)
            )
        }
        (Class::Unknown, ..) if facts.now.is_some() && alone => {
            format!("{head}{}: the trace does not show for whom.", within(facts))
        }
        (Class::Unknown, ..) if facts.now.is_some() => format!(
            "{head}: the chain of waits ends at {who}{}; the trace does not show what {who} waits \
             for.",
            within(facts)
        ),
        (Class::Unknown, ..) if alone => {
            format!("{head}{}: the trace does not show by what.", within(facts))
        }
        (Class::Unknown, ..) => format!(
            "{head}: the chain of waits ends at {who}{}; the trace does not show what {who} \
             waited for.",
            within(facts)
        ),
        _ if facts.now.is_some() && alone => {
            format!("{victim} {what}{}.", limit(facts).unwrap_or_default())
        }
        _ if facts.is_open && facts.now.is_some() => {
            format!("{head}: the chain of waits ends at {who}, which {what}.")
        }
        _ if facts.is_open && alone => {
            format!("{head}, the trace does not show by whom: it {what}{share}.")
        }
        _ if facts.is_open => {
            format!("{head}: the chain of waits ends at {who}, which {what}{share}.")
        }
        (Class::RepeatedYield, ..) => {
            let setter = only_other(facts).or_else(|| beside(facts, facts.starved));
            let setter = setter.unwrap_or_default();
            format!("{head}: {who} {what}{share}{setter}.")
        }
        _ if facts.alike > 0 => {
            let others = match facts.alike {
                1 => "another thread".to_owned(),
                count => format!("{count} other threads"),
            };
            format!("{head}: {who} and {others} of its process {what}{share}.")
        }
        _ => {
            // A shell's loop looks again and again, with naps in between.
            let naps = (facts.started).is_some_and(|started| started.name == "sleep");
            let beside = naps.then(|| beside(facts, facts.culprit)).flatten();
            let more = beside.or_else(|| limit(facts)).unwrap_or_default();
            format!("{head}: {who} {what}{share}{more}.")
        }
    }
}

/// A limit of the culprit's control group that its wait may come from.
fn limit(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let process = evidence.threads.thread(facts.culprit).upid;
    let writes = facts.wait.is_some_and(|wait| stores(evidence, &wait));
    let limit = limit::of(evidence, process, facts.kind, writes)?;
    Some(format!("; {limit}"))
}

/// How much CPU time the starved thread's control group may have, and who else in it had most of that.
fn quota(facts: &Facts<'_, '_>) -> (String, String) {
    let evidence = facts.evidence;
    let process = evidence.threads.thread(facts.starved).upid;
    let Some((cpus, most)) = limit::quota(evidence, process, &facts.problem.window) else {
        return Default::default();
    };
    let by = most.map(|(other, share)| {
        let name = evidence.program(other);
        format!(
            "; {name} in the same group had {:.0} % of what it got",
            share * 100.0
        )
    });
    let unit = if cpus == 1.0 { "CPU" } else { "CPUs" };
    (format!(" ({cpus} {unit})"), by.unwrap_or_default())
}

/// Whether a wait for a disk is for it to have taken something.
fn stores(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    wait.writes(evidence)
        || wait.row.is_some_and(|row| {
            let call = evidence.call(evidence.switches.call[row]);
            matches!(call, Call::Fsync)
        })
}

/// How a thread is runnable and others hold the CPUs: now, or in a recording.
fn tense(facts: &Facts<'_, '_>) -> (&'static str, &'static str) {
    match facts.now {
        Some(_) => ("is", "hold"),
        None => ("was", "held"),
    }
}

/// What the only other thread of a process did while one polled: who else is to set what that looks for?
fn only_other(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let window = &facts.problem.window;
    let middle = window.start + (window.end - window.start) / 2;
    let process = evidence.threads.process_of(facts.starved);
    let mut others = process.threads.iter().copied().filter(|&thread| {
        let life = evidence.timeline.life(thread);
        thread != facts.starved && life.start <= middle && middle < life.end
    });
    let other = others.next().filter(|_| others.next().is_none())?;
    let wait = wait_before(evidence, other, middle);
    let did = match wait.map(|wait| wait.kind) {
        None => "ran",
        Some(WaitKind::Sleep) => "slept",
        Some(WaitKind::Disk) => "waited for the disk",
        Some(WaitKind::Lock) => "waited for a lock",
        Some(_) => "waited",
    };
    let function = wait.and_then(|wait| function::own(evidence, wait.user_stack(evidence)));
    let within = function.map(|function| format!(" in {}", brief(&function.name)));
    Some(format!(
        "; the only other thread of its process, {}, {did}{}",
        evidence.name(other),
        within.unwrap_or_default()
    ))
}

/// What the only program that was started with the one that polls, and was at work, did meanwhile.
fn beside(facts: &Facts<'_, '_>, thread: Utid) -> Option<String> {
    let window = &facts.problem.window;
    let other = beside::only_one_at_work(facts.evidence, thread, window)?;
    let function = other.function.map(|name| format!(" {}", brief(&name)));
    Some(format!(
        "; of the programs started beside it, {} alone worked for most of that time: it ran{}",
        facts.evidence.name(other.thread),
        function.unwrap_or_default()
    ))
}

/// Of a problem that consists of many small waits: how many, and how long each is.
fn waits(facts: &Facts<'_, '_>) -> Option<String> {
    let many = facts
        .problem
        .many
        .as_ref()
        .filter(|_| facts.started.is_none())?;
    let mean = duration(many.waited_ns.checked_div(many.waits)?);
    let within = match function::own(facts.evidence, many.stack) {
        Some(function) => format!(" in {}", brief(&function.name)),
        None => String::new(),
    };
    Some(format!(
        " in {} waits of {mean} on average{within}",
        many.waits
    ))
}

/// Whether the victim was no idle thread, though nothing shows that it asked: it was stopped, part of a
/// circle, or waited for a process that its own had started, or for another that could not go on, or
/// computed.
fn surely_waited(facts: &Facts<'_, '_>) -> bool {
    let process = |thread| facts.evidence.threads.thread(thread).upid;
    let (own, other) = (process(facts.victim), process(facts.culprit));
    let is_stopped = wait_before(facts.evidence, facts.victim, facts.problem.window.end)
        .is_some_and(|wait| wait.kind == WaitKind::Stopped);
    facts.class == Class::Circular
        || is_stopped
        || own != other
            && (is_descendant(facts.evidence, other, own)
                || matches!(
                    facts.kind,
                    BlameKind::Stopped | BlameKind::Run | BlameKind::Runnable
                ))
}

/// The culprit's program.
fn program_of(facts: &Facts<'_, '_>) -> String {
    let process = facts.evidence.threads.thread(facts.culprit).upid;
    facts.evidence.program(process)
}

/// Whether the problem lasts to the end, and no thread of the culprit's process is left then that could
/// end its wait.
fn is_deadlocked(facts: &Facts<'_, '_>) -> bool {
    let process = facts.evidence.threads.thread(facts.culprit).upid;
    let lasts = facts.problem.window.end >= facts.evidence.timeline.end();
    lasts && owed::is_deadlocked(facts.evidence, process)
}

/// Whether the culprit waits to the end for a lock that its process has had since it was forked, by a program of
/// several threads, and has no other thread that could have it.
fn is_left_by_fork(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    let evidence = facts.evidence;
    let process = evidence.threads.process_of(facts.culprit);
    let parent = evidence.threads.process(process.parent);
    // Who executes a program has another command line, but for one that starts itself anew.
    let is_copy = !process.command.is_empty() && process.command == parent.command;
    let lasts = facts.problem.window.end >= evidence.timeline.end();
    let is_lock = wait.is_for_own_lock(evidence) && wait.holder.is_none();
    process.threads.len() == 1 && parent.threads.len() > 1 && is_copy && lasts && is_lock
}

/// The culprit's function, as the end of a phrase.
fn within(facts: &Facts<'_, '_>) -> String {
    match facts.function {
        Some(function) => match &function.inlined_into {
            Some(outer) => format!(" in {} (inlined into {outer})", brief(&function.name)),
            None => format!(" in {}", brief(&function.name)),
        },
        None => String::new(),
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

fn reason(facts: &Facts<'_, '_>) -> String {
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
        return format!("{}{within}", gate.text());
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
            format!("waited for input from a terminal or device{within}")
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
        BlameKind::Disk => format!("waited for the disk{within}"),
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
            Some(WaitKind::Timer) => format!("waited for a timer{within}"),
            Some(_) => format!("waited{within} until a timeout"),
            None => format!("slept, or waited for a timeout{within}"),
        },
        BlameKind::Stopped
            if let Some(tracer) =
                (facts.wait).and_then(|wait| wait.holder.or_else(|| debugger(facts, &wait))) =>
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
        BlameKind::Gone => match facts.evidence.threads.thread(facts.culprit).fatal_signal() {
            Some(signal) => format!("was killed by {signal}"),
            None => "exited without waking it".to_owned(),
        },
        BlameKind::Kernel => match facts.wait.and_then(|wait| wait.system_v(facts.evidence)) {
            Some(what) => format!("waited for {what}{within}"),
            None => format!("waited inside the kernel{within}"),
        },
        BlameKind::Paging => format!("waited for a page-in{within}"),
        BlameKind::Unknown => "had no recorded events".to_owned(),
    }
}

/// Whether the sentence names the function as one that ran.
fn is_ran(facts: &Facts<'_, '_>) -> bool {
    facts.kind == BlameKind::Run
        && facts.starvation.is_none()
        && facts.started.is_none()
        && facts.class != Class::RepeatedYield
        && !facts.is_idle_server
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
fn ran_for(facts: &Facts<'_, '_>, function: &Function) -> String {
    let mut text = of_that_time(facts.share * function.share);
    if let Some(beside) = &function.beside {
        let (name, place) = (brief(&beside.name), file_of(&beside.place));
        let percent = facts.share * beside.share * 100.0;
        text += &format!(" and {name} ({place}) for {percent:.0} %");
    }
    text
}

/// The program that started the culprit, where that is sleep(1), which does nothing of its own accord.
fn sleeper_of<'f>(facts: &'f Facts<'_, '_>) -> Option<&'f str> {
    let threads = facts.evidence.threads;
    let process = threads.process_of(facts.culprit);
    let parent = threads.process(process.parent);
    let is_sleep = process.name == "sleep" && facts.kind == BlameKind::Timer;
    let is_known = parent.upid == process.parent && !parent.name.is_empty();
    (is_sleep && is_known).then_some(parent.name.as_str())
}

/// The debugger that let the culprit go on when it had been stopped.
fn debugger(facts: &Facts<'_, '_>, wait: &Wait) -> Option<Utid> {
    let evidence = facts.evidence;
    let intervals = evidence.timeline.intervals(wait.thread);
    let next = intervals.get(intervals.index_at(wait.end)?)?;
    tracer(evidence, wake_of(evidence, wait.thread, &next)?)
}

/// The address that the culprit's wait is for.
fn remote<'f>(facts: &'f Facts<'_, '_>) -> Option<&'f str> {
    let object = facts.wait?.object(facts.evidence);
    let (_, remote) = facts.evidence.sockets.addresses(object)?;
    (!remote.is_empty()).then_some(remote)
}

/// Whether a wait is for a condition, not for a lock of the language's own that is made of one.
fn is_condition(facts: &Facts<'_, '_>, wait: &Wait) -> bool {
    wait.kind == WaitKind::Condition && !wait.is_for_own_lock(facts.evidence)
}

/// How much of a problem's time something took, as the end of a clause; nothing where that is all of it.
fn of_that_time(share: f64) -> String {
    match share {
        share if share < 0.995 => format!(" for {:.0} % of that time", share * 100.0),
        _ => String::new(),
    }
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

/// Whether the culprit sleeps before it tries again what failed.
fn tries_again(facts: &Facts<'_, '_>) -> bool {
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

/// A phrase that begins with a verb in the past tense, in the present tense.
pub(crate) fn present(phrase: &str) -> String {
    const VERBS: [(&str, &str); 9] = [
        ("did", "does"),
        ("waited", "waits"),
        ("slept", "sleeps"),
        ("slept,", "sleeps,"),
        ("was", "is"),
        ("had", "has"),
        ("ran", "runs"),
        ("polled", "polls"),
        ("exited", "has exited"),
    ];
    let (verb, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
    match VERBS.iter().find(|(past, _)| *past == verb) {
        Some((_, now)) if rest.is_empty() => (*now).to_owned(),
        Some((_, now)) => format!("{now} {rest}"),
        None => phrase.to_owned(),
    }
}

/// A function's name without its parameters, where these make it long; of what is long even so, the
/// beginning.
fn brief(name: &str) -> Cow<'_, str> {
    const LONG: usize = 60;
    const LONGEST: usize = 90;
    let mut depth = 0_i32;
    let parameters = name.char_indices().skip(1).find(|&(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        c == '(' && depth == 0
    });
    let name = match parameters {
        Some((at, _)) if name.len() > LONG => &name[..at],
        _ => name,
    };
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &name[..at]).into(),
        None => name.into(),
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
