//! The verdict in one sentence.

use hangdog_graph::asyncio::Circle;
use hangdog_graph::owed::is_descendant;
use hangdog_graph::{Evidence, Gate, Mark, Wait, WaitKind, descriptors_used_up, owed};
use hangdog_timeline::{Interval, State};
use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use hangdog_trace::words::Context;

use crate::beside;
use crate::function;
use crate::kind::BlameKind;
use crate::limit;
use crate::problem::LEAST_FELT;
use crate::starvation::{self, Limit, Starvation};
use crate::stretch::wait_before;
use crate::tasks;
use crate::verdict::Class;

mod doing;
mod facts;
mod words;

use doing::{debugger, is_ran, ran_for, reason, sleeper_of, within};
pub(crate) use facts::Facts;
use words::{brief, in_function, of_that_time};
pub(crate) use words::{duration, present};

pub(crate) fn of(facts: &Facts<'_, '_>) -> String {
    let mut sentence = who_did_what(facts);
    if let Some(files) = files_used_up(facts) {
        sentence = format!("{}; {files}.", sentence.trim_end_matches('.'));
    }
    let is_unsaid = |thread: &&Utid| !says(&sentence, &facts.evidence.name(**thread));
    let between: Vec<Utid> = facts.between.iter().filter(is_unsaid).copied().collect();
    match (facts.class, &between[..]) {
        // The members of a circle are named.
        (Class::Circular, _) | (_, []) => sentence,
        (_, between) => {
            const ENDS: &str = "the chain of waits ends at ";
            let stopped = match stopped_by_culprit(facts, between) {
                true => format!(", which {} has stopped", facts.evidence.name(facts.culprit)),
                false => String::new(),
            };
            let through = format!(
                "the chain of waits leads through {}{stopped}",
                list(facts, between)
            );
            match sentence.contains(ENDS) {
                true => sentence.replacen(ENDS, &format!("{through} and ends at "), 1),
                false => format!("{}; {through}.", sentence.trim_end_matches('.')),
            }
        }
    }
}

/// That the culprit, which answered nobody, may open no more files: it can accept no connection then.
fn files_used_up(facts: &Facts<'_, '_>) -> Option<String> {
    let does_nothing = matches!(
        facts.class,
        Class::LongWait | Class::RepeatedYield | Class::Unknown
    );
    let files = descriptors_used_up(
        facts.evidence,
        facts.evidence.threads.thread(facts.culprit).upid,
        &facts.problem.window,
    );
    let (open, limit) = files.filter(|_| does_nothing)?;
    let program = program_of(facts);
    let files = match open < limit {
        true => format!("{open} of at most {limit} files open"),
        false => format!("as many files open as it may, {limit}"),
    };
    Some(format!(
        "{program} has {files} (RLIMIT_NOFILE): it may be unable to accept a connection or to open a file"
    ))
}

/// Whether the last of those between is one that the culprit debugs, and has stopped.
fn stopped_by_culprit(facts: &Facts<'_, '_>, between: &[Utid]) -> bool {
    let window = &facts.problem.window;
    let middle = window.start + (window.end - window.start) / 2;
    let stopped = |&thread: &Utid| {
        let wait = wait_before(facts.evidence, thread, middle)
            .filter(|wait| wait.kind == WaitKind::Stopped)?;
        wait.holder.or_else(|| debugger(facts.evidence, &wait))
    };
    let last = between.last().and_then(stopped);
    last == Some(facts.culprit)
}

/// Whether a sentence has a name in it, and not only as a part of a word.
fn says(sentence: &str, name: &str) -> bool {
    let ends = |end: Option<char>| end.is_none_or(|end| !end.is_alphanumeric() && end != '-');
    let mut places = sentence.match_indices(name);
    places.any(|(at, found)| {
        let (before, behind) = (&sentence[..at], &sentence[at + found.len()..]);
        ends(before.chars().next_back()) && ends(behind.chars().next())
    })
}

/// A thread's name; of a Go thread also the function whose goroutine it had parked in its longest wait.
fn with_task(facts: &Facts<'_, '_>, thread: Utid) -> String {
    const LOOKED_AT: usize = 4096;
    let evidence = facts.evidence;
    let name = evidence.name(thread);
    let window = &facts.problem.window;
    let parts = evidence
        .timeline
        .between(thread, window.start, window.end)
        .take(LOOKED_AT);
    let longest = parts
        .filter(|part| part.state == State::Blocked)
        .max_by_key(Interval::duration);
    let parked = longest.and_then(|longest| {
        let wait = Wait::new(evidence, thread, &longest);
        function::parked_in(evidence, wait.user_stack(evidence))
    });
    match parked {
        Some(function) => format!("{name} in {}", brief(&function)),
        None => name,
    }
}

/// The names of some threads, the first few of many.
fn list(facts: &Facts<'_, '_>, threads: &[Utid]) -> String {
    const MOST: usize = 3;
    let names = |threads: &[Utid]| -> Vec<String> {
        threads
            .iter()
            .map(|&thread| with_task(facts, thread))
            .collect()
    };
    match threads {
        [] => String::new(),
        [only] => with_task(facts, *only),
        [first @ .., last] if threads.len() <= MOST => {
            format!(
                "{} and {}",
                names(first).join(", "),
                with_task(facts, *last)
            )
        }
        _ => format!(
            "{} and {} others",
            names(&threads[..MOST - 1]).join(", "),
            threads.len() - (MOST - 1)
        ),
    }
}

/// That timers woke the threads of the victim's process again and again meanwhile: it may look for something, in
/// calls that do not wait.
fn looked_around(facts: &Facts<'_, '_>) -> Option<String> {
    const OFTEN: u64 = 10;
    const SLOWEST_NS: u64 = 1_000_000_000;
    let evidence = facts.evidence;
    let window = &facts.problem.window;
    // A language's own scheduler naps besides, whatever the program does.
    let is_of_program = |thread: Utid, interval: &Interval| {
        let wait = Wait::new(evidence, thread, interval);
        wait.kind != WaitKind::Sleep || !wait.is_idle(evidence)
    };
    let by_timer = |thread: Utid| {
        let mut intervals = (evidence.timeline)
            .between(thread, window.start, window.end)
            .peekable();
        let mut times = 0;
        while let Some(interval) = intervals.next() {
            let wake = intervals.peek().and_then(|next| next.wake());
            let is_timer =
                wake.is_some_and(|row| Context::from(evidence.wakes.context[row]).is_timer());
            let waited = interval.state == State::Blocked;
            times += u64::from(is_timer && waited && is_of_program(thread, &interval));
        }
        times
    };
    let threads = &evidence.threads.process_of(facts.victim).threads;
    let times: u64 = threads.iter().map(|&thread| by_timer(thread)).sum();
    let apart = facts.problem.duration() / times.max(1);
    (times >= OFTEN && apart <= SLOWEST_NS).then(|| {
        format!(
            " Timers woke threads of its program {times} times meanwhile, {} apart on average: it may look for \
             something.",
            duration(apart)
        )
    })
}

fn who_did_what(facts: &Facts<'_, '_>) -> String {
    let name = |thread| facts.evidence.name(thread);
    let victim = name(facts.victim);
    let time = duration(match &facts.problem.many {
        Some(many) => many.duration(),
        None => facts.problem.duration(),
    });
    let alone = facts.victim == facts.culprit;
    let is_circle = facts.class == Class::Circular;
    let lock = facts.lock.filter(|_| !is_circle);
    let (head, what) = match facts.now {
        Some(now) => {
            let by = lock.map_or_else(String::new, |lock| format!(", held up by {lock}"));
            (format!("{victim} {now}{by}"), present(&reason(facts)))
        }
        None => {
            let lock = || Some(format!(" by {}", lock?));
            let by = waits(facts).or_else(lock).unwrap_or_default();
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
        // It went once; what took so long is the wait for it.
        _ if facts.kind == BlameKind::Gone => String::new(),
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
        let looked = looked_around(facts).unwrap_or_default();
        return format!(
            "{victim} may have been idle: nothing shows that it was waiting for a reply or a \
             result. Its longest wait took {time}: {who} {doing}{share}{beside}.{looked}"
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
                    Some(function) => name(thread) + &in_function(&function.name),
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
                Some(function) => in_function(&function.name),
                None => String::new(),
            };
            let idle = idle_meanwhile(facts);
            let waited = match facts.starved == facts.victim || *outranks {
                true => String::new(),
                false => {
                    let (was, _) = tense(facts);
                    format!("; {} {was} runnable meanwhile", name(facts.starved))
                }
            };
            format!("{head}: {who}{rank} kept CPU {cpu} busy{doing}{share}{waited}{idle}.")
        }
        (
            _,
            _,
            Some(Starvation::Crowd {
                most: Some(_),
                outranks,
                processes,
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
            let idle = idle_meanwhile(facts);
            if *processes > 1 {
                let program = program_of(facts);
                return format!(
                    "{head}: {starved} {was} runnable while {processes} {program} processes{rank} {held} the \
                     CPUs{share}{idle}."
                );
            }
            format!(
                "{head}: {starved} {was} runnable while other threads{rank} {held} the CPUs{share}, \
                 mostly {who}{idle}."
            )
        }
        (
            _,
            _,
            Some(Starvation::Withheld {
                by: limit,
                share: free,
            }),
        ) => {
            let (was, _) = tense(facts);
            let free = free * 100.0;
            match limit {
                Limit::Deadline => format!(
                    "{head}: {who} {was} runnable, but had no CPU{share}: the runtime that SCHED_DEADLINE \
                     gives it in each of its periods was used up."
                ),
                Limit::Realtime => format!(
                    "{head}: {who} has a real-time priority and {was} runnable, but had no CPU{share}, \
                     though no thread of its rank or above held one: the limit of real-time threads, of its \
                     control group (cpu.rt_runtime_us) or of all (sched_rt_runtime_us), was used up."
                ),
                Limit::Any if facts.now.is_some() => format!(
                    "{head}: {who} is runnable, but has no CPU, though nobody else runs: a limit (of its \
                     control group, of real-time threads or of SCHED_DEADLINE) keeps it from the CPUs."
                ),
                Limit::Any => format!(
                    "{head}: {who} was runnable, but had no CPU{share}, though the CPUs were free for \
                     {free:.0} % of it: a limit (of its control group, of real-time threads or of \
                     SCHED_DEADLINE) kept it from them, or its CPU affinity did."
                ),
                Limit::Wakeup { each } => format!(
                    "{head}: {who} {was} runnable{share}, {} each time, though the CPUs were free for \
                     {free:.0} % of it: waking an idle CPU takes that long.",
                    duration(*each)
                ),
                Limit::Group => format!(
                    "{head}: {who} {was} runnable, but had no CPU{share}, though the CPUs were free for \
                     {free:.0} % of it: a limit of its control group, or its CPU affinity, kept it from them."
                ),
            }
        }
        (_, _, Some(Starvation::Crowd { most: None, .. })) => {
            let doing = match facts.function {
                Some(function) => in_function(&function.name),
                None => String::new(),
            };
            let (was, held) = tense(facts);
            let idle = idle_meanwhile(facts);
            format!(
                "{head}: {who} {was} runnable{doing} while other threads {held} the CPUs{share}{idle}."
            )
        }
        (Class::LongWait, ..)
            if (facts.wait).is_some_and(|wait| owed::starves_own_pool(facts.evidence, &wait)) =>
        {
            let is_permit = facts.wait.is_some_and(|wait| {
                let stack = wait.user_stack(facts.evidence);
                facts.evidence.shows(stack, Mark::AwaitsPermit)
            });
            let what = match is_permit {
                true => "a permit of a semaphore, and none is left to release one",
                false => "a task that only they could run",
            };
            format!(
                "{head}: each worker of {}'s pool waits for {what}; the chain of waits ends at \
                 {who}{}.",
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
        (Class::Unknown | Class::LongWait, ..) if has_stuck_goroutines(facts) => {
            let program = program_of(facts);
            let awaits_other = |wait| tasks::awaits_other(facts.evidence, &wait);
            let (can, waits) = match facts.now {
                Some(_) => ("can", "waits"),
                None => ("could", "waited"),
            };
            let one = match (facts.wait.is_some_and(awaits_other), facts.function) {
                (true, Some(function)) => {
                    let within = in_function(&function.name);
                    let wants = (facts.wait).map_or("", |wait| tasks::wants(facts.evidence, &wait));
                    format!("; one {waits} for another{wants}{within}")
                }
                _ => format!("; each {waits} for another, a timer or a message"),
            };
            format!("{head}: no goroutine of {program} {can} run{one}.")
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
            let idle = idle_workers(facts).unwrap_or_default();
            format!(
                "{head}{}: the trace does not show for whom{idle}.",
                within(facts)
            )
        }
        (Class::Unknown, ..) if facts.now.is_some() => format!(
            "{head}: the chain of waits ends at {who}{}; the trace does not show what {who} waits \
             for.",
            within(facts)
        ),
        (Class::Unknown, ..) if alone => {
            let idle = idle_workers(facts).unwrap_or_default();
            format!(
                "{head}{}: the trace does not show by what{idle}.",
                within(facts)
            )
        }
        (Class::Unknown, ..) => format!(
            "{head}: the chain of waits ends at {who}{}; the trace does not show what {who} \
             waited for.",
            within(facts)
        ),
        _ if facts.now.is_some() && alone => {
            let idle = match may_be_idle_now(facts) {
                true => "; it may be idle: nothing names who should answer it",
                false => "",
            };
            format!("{victim} {what}{}{idle}.", limit(facts).unwrap_or_default())
        }
        _ if facts.is_open && facts.now.is_some() => {
            format!("{head}: the chain of waits ends at {who}, which {what}.")
        }
        _ if facts.is_open && alone => {
            let is_known = (facts.wait.and_then(|wait| wait.task))
                .is_some_and(|task| task.is_awaited || task.circle != Circle::None);
            let by = if is_known {
                ""
            } else {
                ", the trace does not show by whom"
            };
            format!("{head}{by}: it {what}{share}.")
        }
        _ if facts.is_open => {
            let limit = limit_met(facts).unwrap_or_default();
            format!("{head}: the chain of waits ends at {who}, which {what}{share}{limit}.")
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

/// That all processes which the culprit's started wait for tasks, where it waits for a result: none of them works on it.
fn idle_workers(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let wait = facts.wait?;
    if !evidence.shows(wait.user_stack(evidence), Mark::AwaitsResult) {
        return None;
    }
    let own = evidence.threads.thread(facts.culprit).upid;
    let children = evidence.threads.processes().filter(|it| it.parent == own);
    let firsts = children.filter_map(|child| child.threads.first().copied());
    let last = wait.end.saturating_sub(1);
    let alive: Vec<Utid> = firsts
        .filter(|&first| evidence.timeline.life(first).contains(&last))
        .collect();
    let is_idle = |&first: &Utid| {
        wait_before(evidence, first, wait.end)
            .is_some_and(|there| evidence.shows(there.user_stack(evidence), Mark::SharesQueue))
    };
    match alive.len() {
        0 => None,
        _ if !alive.iter().all(is_idle) => None,
        1 => Some("; its worker process waits for a task".to_owned()),
        count => Some(format!("; its {count} worker processes wait for tasks")),
    }
}

/// The memory limit that the culprit's wait shows, or for which it was killed.
fn limit_met(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let culprit = evidence.threads.thread(facts.culprit);
    let is_at_limit = |wait: &Wait| wait.gate(evidence) == Some(Gate::MemoryLimit);
    let at = match culprit.end {
        Some(end) if culprit.out_of_memory && facts.kind == BlameKind::Gone => end,
        _ => facts.wait.filter(is_at_limit)?.end,
    };
    let limit = limit::of_memory(evidence, culprit.upid, at)?;
    Some(format!("; {limit}"))
}

/// A limit of the culprit's control group that its wait may come from, or its computation: what is paged in again and
/// again was taken from it before, which takes CPU time as well.
fn limit(facts: &Facts<'_, '_>) -> Option<String> {
    const PAGED: f64 = 0.1;
    let evidence = facts.evidence;
    let process = evidence.threads.thread(facts.culprit).upid;
    if let Some(met) = limit_met(facts) {
        return Some(met);
    }
    if facts.kind == BlameKind::Run && facts.paged < PAGED {
        return None;
    }
    if facts.kind == BlameKind::Timer && !doing::tries_again(facts) {
        return None;
    }
    let writes = facts.wait.is_some_and(|wait| stores(evidence, &wait));
    let limit = limit::of(evidence, process, facts.kind, writes)?;
    Some(format!("; {limit}"))
}

/// How much CPU time the starved thread's control group may have, and who else in it had most of that.
fn quota(facts: &Facts<'_, '_>) -> (String, String) {
    let evidence = facts.evidence;
    let process = evidence.threads.thread(facts.starved).upid;
    let Some(quota) = limit::quota(evidence, process, &facts.problem.window) else {
        return Default::default();
    };
    let by = match quota.most {
        Some((other, share)) => {
            let name = evidence.program(other);
            let share = share * 100.0;
            Some(format!(
                "; {name} in the same group had {share:.0} % of what it got"
            ))
        }
        None => limit::used_by(evidence, process, &facts.problem.window).map(|used| {
            let share = used.share * 100.0;
            format!("; {share:.0} % of what it ran was in {}", used.name)
        }),
    };
    let unit = if quota.cpus == 1.0 { "CPU" } else { "CPUs" };
    let of = format!(" {} ({} {unit})", quota.group, quota.cpus);
    (of, by.unwrap_or_default())
}

/// Whether a wait for a disk is for it to have taken something.
fn stores(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let reads = evidence.shows(wait.kernel_stack(evidence), Mark::ReadsPages);
    wait.writes(evidence) && !reads
        || wait.row.is_some_and(|row| {
            let call = evidence.call(evidence.switches.call[row]);
            matches!(call, Call::Fsync)
        })
}

/// The CPU that was idle while the starved thread was runnable, as the end of a sentence.
fn idle_meanwhile(facts: &Facts<'_, '_>) -> String {
    if facts.now.is_some() {
        return String::new();
    }
    let (evidence, starved) = (facts.evidence, facts.starved);
    let idle = starvation::idle_meanwhile(evidence, starved, &facts.problem.window);
    idle.map_or_else(String::new, |(cpu, share)| {
        format!(
            "; CPU {cpu} was idle for {:.0} % of that time, but is not in the CPU affinity of {}",
            share * 100.0,
            evidence.name(starved)
        )
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
    let within = function.map(|function| in_function(&function.name));
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
        Some(function) => in_function(&function.name),
        None => String::new(),
    };
    Some(format!(
        " in {} waits of {mean} on average{within}",
        many.waits
    ))
}

/// Whether the victim was no idle thread, though nothing shows that it asked: it was stopped, part of a
/// circle, or waited for a process that its own had started, or for another that could not go on, or
/// computed; or it slept while the one that had started it waited for it to end.
fn surely_waited(facts: &Facts<'_, '_>) -> bool {
    let process = |thread| facts.evidence.threads.thread(thread).upid;
    let (own, other) = (process(facts.victim), process(facts.culprit));
    let is_stopped = wait_before(facts.evidence, facts.victim, facts.problem.window.end)
        .is_some_and(|wait| wait.kind == WaitKind::Stopped);
    facts.class == Class::Circular
        || is_stopped
        || sleeps_for_its_parent(facts)
        || own != other
            && (is_descendant(facts.evidence, other, own)
                || matches!(
                    facts.kind,
                    BlameKind::Stopped | BlameKind::Run | BlameKind::Runnable
                ))
}

/// Whether the victim slept while its parent did nothing but wait for it to end, as a shell does for a command.
fn sleeps_for_its_parent(facts: &Facts<'_, '_>) -> bool {
    let (evidence, window) = (facts.evidence, &facts.problem.window);
    let middle = window.start + (window.end - window.start) / 2;
    let process = evidence.threads.process_of(facts.victim);
    let parent = evidence.threads.process(process.parent);
    let awaits = |&thread: &Utid| {
        wait_before(evidence, thread, middle).is_some_and(|wait| wait.kind == WaitKind::Child)
    };
    facts.victim == facts.culprit
        && facts.wait.is_some_and(|wait| wait.kind == WaitKind::Sleep)
        && evidence.stands_for_program(facts.victim)
        && parent.upid != process.upid
        && parent.threads.first().is_some_and(awaits)
}

/// The culprit's program.
fn program_of(facts: &Facts<'_, '_>) -> String {
    let process = facts.evidence.threads.thread(facts.culprit).upid;
    facts.evidence.program(process)
}

/// Of a moment: whether it waits where programs wait for whatever comes next, and nothing shows that somebody is
/// to answer it.
fn may_be_idle_now(facts: &Facts<'_, '_>) -> bool {
    let polls =
        |wait: &Wait| matches!(wait.kind, WaitKind::Poll | WaitKind::Idle) && wait.task.is_none();
    let wait = facts.wait.filter(|wait| facts.is_open && polls(wait));
    wait.is_some_and(|wait| crate::owed::owed(facts.evidence, &wait, false) < LEAST_FELT)
}

/// Whether Go's scheduler runs the culprit's program, and had no goroutine that could run.
fn has_stuck_goroutines(facts: &Facts<'_, '_>) -> bool {
    let Some(wait) = facts.wait else {
        return false;
    };
    let process = facts.evidence.threads.thread(facts.culprit).upid;
    let middle = wait.start + wait.duration() / 2;
    let mut frames = facts.evidence.stacks.stack(wait.user_stack(facts.evidence));
    frames.any(|frame| frame.function.is_some_and(|it| it.starts_with("runtime.")))
        && tasks::none_can_run(facts.evidence, process, middle)
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
    let lasts = facts.problem.window.end >= evidence.timeline.end() || is_ended(evidence, wait);
    let is_lock = wait.is_for_own_lock(evidence) && wait.holder.is_none();
    process.threads.len() == 1 && parent.threads.len() > 1 && is_copy && lasts && is_lock
}

/// Whether a wait ended only as a signal ended its process.
fn is_ended(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const SOON_NS: u64 = 20_000_000;
    let life = evidence.timeline.life(wait.thread);
    let is_soon = life.end.saturating_sub(wait.end) < SOON_NS;
    let thread = evidence.threads.thread(wait.thread);
    let is_killed = thread.exit_status.is_some() && !thread.exited();
    life.end < evidence.timeline.end() && is_soon && is_killed
}
