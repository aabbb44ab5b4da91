//! What factors consist of, and what else differs: running time by function, from samples; interrupts by
//! source; who had the CPU that was wanted; what waits led to. Where that takes long to find out, some
//! occurrences of each group stand for all.

use hangdog_graph::Evidence;
use hangdog_graph::role::role;
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::{IDLE, NO_CPU, NO_STACK, Utid};
use hangdog_trace::words::{InterruptKind, softirq};
use std::collections::{BTreeMap, HashMap, HashSet};

use super::resample::mean;
use super::vector::{Factor, is_for_session};
use super::{Detail, Item, Other, Side, Two};
use crate::blame::{Blame, Piece};
use crate::function::is_collector;
use crate::kind::BlameKind;
use crate::origin::nearest;

/// So many occurrences of a group stand for it.
const LOOKED_AT: usize = 200;
/// With fewer samples of the slow ones no functions are reported.
const ENOUGH_SAMPLES: u64 = 10;
/// A share of the time that differs by so much is reported.
const MUCH: f64 = 0.2;
/// So many details of a factor are told, and so many other figures.
const MOST: usize = 8;

/// Functions of the kernel that serve a page fault of user code.
const FAULTS: [&str; 5] = [
    "asm_exc_page_fault",
    "exc_page_fault",
    "do_user_addr_fault",
    "handle_mm_fault",
    "do_page_fault",
];

/// Times of both groups by what they are.
#[derive(Default)]
struct Sums {
    fast: BTreeMap<String, f64>,
    slow: BTreeMap<String, f64>,
}

impl Sums {
    /// The parts, largest difference first; those that are nothing in both are left out.
    fn details(self) -> Vec<Detail> {
        let names: HashSet<&String> = self.fast.keys().chain(self.slow.keys()).collect();
        let of = |group: &BTreeMap<String, f64>, name: &String| group.get(name).copied();
        let mut details: Vec<Detail> = (names.into_iter())
            .map(|name| Detail {
                what: name.clone(),
                fast_ns: of(&self.fast, name).unwrap_or(0.0),
                slow_ns: of(&self.slow, name).unwrap_or(0.0),
            })
            .collect();
        details.sort_by(|a, b| {
            let by_size = b.difference().abs().total_cmp(&a.difference().abs());
            by_size.then_with(|| a.what.cmp(&b.what))
        });
        details.truncate(MOST);
        details
    }
}

/// The details of all factors.
pub(super) fn of(
    sides: &[Side<'_, '_>],
    items: &[Item],
    two: &Two,
) -> HashMap<Factor, Vec<Detail>> {
    let mut sums: BTreeMap<Factor, Sums> = BTreeMap::new();
    for (group, is_slow) in [(&two.fast, false), (&two.slow, true)] {
        let mut times: BTreeMap<(Factor, String), f64> = BTreeMap::new();
        for &i in group {
            for (&(kind, vector), &ns) in &items[i].vector.interrupts {
                let part = (Factor::Interrupted, source(kind, vector));
                *times.entry(part).or_default() += ns as f64 / group.len() as f64;
            }
        }
        let some = some(group);
        for &i in &some {
            let item = &items[i];
            let mut add = |factor: &Factor, what: String, ns: u64| {
                let part = (factor.clone(), what);
                *times.entry(part).or_default() += ns as f64 / some.len() as f64;
            };
            who_had_the_cpu(&sides[item.side], item, &mut add);
            what_waits_led_to(&sides[item.side], item, &mut add);
        }
        for ((factor, what), ns) in times {
            let sums = sums.entry(factor).or_default();
            let group = match is_slow {
                true => &mut sums.slow,
                false => &mut sums.fast,
            };
            group.insert(what, ns);
        }
    }
    if let Some(functions) = functions(sides, items, two) {
        sums.insert(Factor::Ran, functions);
    }
    (sums.into_iter())
        .map(|(factor, sums)| (factor, sums.details()))
        .collect()
}

/// Some of a group, evenly.
fn some(group: &[usize]) -> Vec<usize> {
    let count = group.len().min(LOOKED_AT);
    (0..count).map(|i| group[i * group.len() / count]).collect()
}

/// An interrupt by its source.
fn source(kind: u8, vector: u16) -> String {
    match InterruptKind::from(kind) {
        InterruptKind::Soft => format!("softirq {}", softirq(vector)),
        InterruptKind::Hard => format!("interrupt {vector}"),
        kind => kind.text().to_owned(),
    }
}

/// A thread by what it is for, so that those of a pool are one.
fn label(evidence: &Evidence<'_>, thread: Utid) -> String {
    let known = evidence.threads.thread(thread);
    let process = &evidence.threads.process(known.upid).name;
    match known.is_kernel() || process == known.name() {
        true => role(known.name()),
        false => role(&format!("{process}/{}", known.name())),
    }
}

/// Running time by function: each group's mean, divided as its samples are.
fn functions(sides: &[Side<'_, '_>], items: &[Item], two: &Two) -> Option<Sums> {
    let samples: Vec<HashMap<Utid, Vec<usize>>> = (sides.iter().enumerate())
        .map(|(at, side)| {
            let of_side = items.iter().filter(|item| item.side == at);
            let threads: HashSet<Utid> = of_side.map(|item| item.occurrence.thread).collect();
            let mut rows: HashMap<Utid, Vec<usize>> = HashMap::new();
            for (row, thread) in side.evidence.samples.thread.iter().enumerate() {
                if threads.contains(thread) {
                    rows.entry(*thread).or_default().push(row);
                }
            }
            rows
        })
        .collect();
    let of = |group: &[usize]| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for &i in group {
            let item = &items[i];
            let evidence = sides[item.side].evidence;
            let Some(rows) = samples[item.side].get(&item.occurrence.thread) else {
                continue;
            };
            let ts = |row: usize| evidence.samples.ts[row];
            let first = rows.partition_point(|&row| ts(row) < item.occurrence.from);
            let within = rows[first..].iter();
            for &row in within.take_while(|&&row| ts(row) < item.occurrence.to) {
                *counts.entry(place(evidence, row)).or_default() += 1;
            }
        }
        let ran = |&i: &usize| {
            items[i]
                .vector
                .factors
                .get(&Factor::Ran)
                .copied()
                .unwrap_or(0)
        };
        let ran = mean(group.iter().map(|i| ran(i) as f64));
        let total: u64 = counts.values().sum();
        let share = |count: u64| ran * count as f64 / total.max(1) as f64;
        let times: BTreeMap<String, f64> = (counts.into_iter())
            .map(|(place, count)| (place, share(count)))
            .collect();
        (times, total)
    };
    let ((fast, of_fast), (slow, of_slow)) = (of(&two.fast), of(&two.slow));
    (of_slow >= ENOUGH_SAMPLES && of_fast > 0).then_some(Sums { fast, slow })
}

/// Where a sample met its thread: the function that speaks for its stack, and whether it was in a page fault or
/// a collection of garbage there.
fn place(evidence: &Evidence<'_>, row: usize) -> String {
    let samples = evidence.samples;
    let user: Vec<_> = evidence.stacks.stack(samples.user_stack[row]).collect();
    let function = nearest(user.iter()).map(|own| user[own].to_string());
    let function = function.or_else(|| user.first().map(ToString::to_string));
    let mut kernel = evidence.stacks.stack(samples.kernel_stack[row]);
    let why = if kernel.any(|frame| frame.function.is_some_and(|name| FAULTS.contains(&name))) {
        Some("page faults")
    } else if user
        .iter()
        .any(|frame| frame.function.is_some_and(is_collector))
    {
        Some("garbage collection")
    } else {
        None
    };
    match (why, function) {
        (Some(why), Some(function)) => format!("{why} in {function}"),
        (Some(why), None) => why.to_owned(),
        (None, Some(function)) => function,
        (None, None) => match samples.kernel_stack[row] {
            NO_STACK => "?".to_owned(),
            _ => "the kernel".to_owned(),
        },
    }
}

/// Who had the CPU that the thread wanted: the one that it then came on.
fn who_had_the_cpu(side: &Side<'_, '_>, item: &Item, add: &mut impl FnMut(&Factor, String, u64)) {
    let evidence = side.evidence;
    let occurrence = &item.occurrence;
    let mut parts: Vec<_> = (evidence.timeline)
        .between(occurrence.thread, occurrence.from, occurrence.to)
        .collect();
    parts.reverse();
    let mut cpu = None;
    for part in parts {
        if let (true, Cause::Switch(row)) = (part.state.is_on_cpu(), part.cause) {
            cpu = Some(evidence.switches.cpu[row as usize]).filter(|&cpu| cpu != NO_CPU);
        }
        let Some(cpu) = cpu.filter(|_| part.state.wants_cpu()) else {
            continue;
        };
        let factor = Factor::of(evidence, occurrence.thread, &part);
        let occupancy = evidence.timeline.cpu(evidence.switches, cpu);
        for occupant in occupancy.between(part.start, part.end) {
            let who = match occupant.thread {
                IDLE => "the CPU was idle".to_owned(),
                thread => format!("{} had the CPU", label(evidence, thread)),
            };
            add(&factor, who, occupant.end - occupant.start);
        }
    }
}

/// What the thread's waits led to.
fn what_waits_led_to(side: &Side<'_, '_>, item: &Item, add: &mut impl FnMut(&Factor, String, u64)) {
    let evidence = side.evidence;
    let occurrence = &item.occurrence;
    let waits: Vec<_> = (evidence.timeline)
        .between(occurrence.thread, occurrence.from, occurrence.to)
        .filter(|part| part.state == State::Blocked)
        .map(|part| (part.start, Factor::of(evidence, occurrence.thread, &part)))
        .collect();
    if waits.is_empty() {
        return;
    }
    let window = occurrence.from..occurrence.to;
    let blame = Blame::of(evidence, occurrence.thread, window, side.setting);
    for piece in &blame.pieces {
        if piece.step == 0 && piece.wait.is_none() {
            continue;
        }
        let who = || label(evidence, blame.answerable(piece));
        let what = match piece.kind {
            BlameKind::Run => format!("{} ran", who()),
            BlameKind::Runnable => format!("{} was waiting for a CPU", who()),
            BlameKind::Interrupt => "interrupts".to_owned(),
            BlameKind::Lock => format!("{} held it", who()),
            BlameKind::Message => "a message from outside the trace".to_owned(),
            BlameKind::Disk => "the disk".to_owned(),
            BlameKind::Network => "the network".to_owned(),
            BlameKind::Timer => "a timer".to_owned(),
            BlameKind::Paging => "memory that was paged in".to_owned(),
            BlameKind::Stopped => format!("{} was stopped", who()),
            BlameKind::Gone => format!("{} had exited", who()),
            BlameKind::Kernel => "the kernel".to_owned(),
            BlameKind::Unknown => "it is not known what".to_owned(),
        };
        let what = by_way_of(evidence, &blame, piece) + &what;
        let times = piece.parts.stands_for();
        for part in piece.parts.iter() {
            let at = waits.partition_point(|&(start, _)| start <= part.start);
            if let Some((_, factor)) = at.checked_sub(1).map(|at| &waits[at]) {
                let ns = (part.end - part.start) as f64 * times;
                add(factor, what.clone(), ns as u64);
            }
        }
    }
}

/// The threads between a wait and whom it led to in the end, as the beginning of a phrase; nothing where there
/// are none.
fn by_way_of(evidence: &Evidence<'_>, blame: &Blame, piece: &Piece) -> String {
    const SHOWN: usize = 4;
    let mut way = blame.way_to(piece.step);
    let ends_there = blame.steps[piece.step].thread == piece.thread && piece.wait.is_none();
    if ends_there {
        way.pop();
    }
    let waits_for_session = |step: usize| {
        let next = blame.steps.iter().find(|other| other.above == Some(step));
        let reached = next.and_then(|next| next.reached.as_ref());
        let wait = match &piece.wait {
            Some((waiting, _)) if step == piece.step => Some(waiting.wait),
            _ => reached.map(|(waiting, _)| waiting.wait),
        };
        wait.is_some_and(|wait| is_for_session(evidence, &wait))
    };
    // The first is the thread itself.
    let mut names: Vec<String> = (way.iter().skip(1))
        .map(|&step| {
            let name = label(evidence, blame.steps[step].thread);
            match waits_for_session(step) {
                true => format!("{name} (which waited for another session of the database)"),
                false => name,
            }
        })
        .collect();
    names.dedup();
    names.truncate(SHOWN);
    match names.is_empty() {
        true => String::new(),
        false => format!("by way of {}: ", names.join(", ")),
    }
}

/// What else differs: how often the thread changed its CPU, and who ran on the others meanwhile, which
/// share caches and perhaps a core with it.
pub(super) fn others(sides: &[Side<'_, '_>], items: &[Item], two: &Two) -> Vec<Other> {
    let migrations =
        |group: &[usize]| mean(group.iter().map(|&i| items[i].vector.migrations as f64));
    let mut others = Vec::new();
    let (fast, slow) = (migrations(&two.fast), migrations(&two.slow));
    if (slow - fast).abs() >= 0.5 {
        others.push(Other {
            what: "changes of the CPU".to_owned(),
            fast,
            slow,
        });
    }
    let beside = |group: &[usize]| {
        let some = some(group);
        let mut shares: BTreeMap<String, f64> = BTreeMap::new();
        for &i in &some {
            let (ran, beside) = beside(&sides[items[i].side], &items[i]);
            for (who, ns) in beside {
                let share = ns as f64 / ran.max(1) as f64;
                *shares.entry(who).or_default() += share / some.len() as f64;
            }
        }
        shares
    };
    let sums = Sums {
        fast: beside(&two.fast),
        slow: beside(&two.slow),
    };
    let much = |detail: &Detail| detail.difference().abs() >= MUCH;
    others.extend(sums.details().into_iter().filter(much).map(|detail| Other {
        what: format!(
            "share of its running time with {} on another CPU",
            detail.what
        ),
        fast: detail.fast_ns,
        slow: detail.slow_ns,
    }));
    others
}

/// How long the thread ran, and how long each other one did on another CPU at the same time.
fn beside(side: &Side<'_, '_>, item: &Item) -> (u64, BTreeMap<String, u64>) {
    let evidence = side.evidence;
    let occurrence = &item.occurrence;
    let mut ran = 0;
    let mut others: HashMap<Utid, u64> = HashMap::new();
    let mut cpu = None;
    for part in (evidence.timeline).between(occurrence.thread, occurrence.from, occurrence.to) {
        if let (State::Running, Cause::Switch(row)) = (part.state, part.cause) {
            cpu = Some(evidence.switches.cpu[row as usize]);
        }
        let Some(own) = cpu.filter(|_| part.state == State::Running) else {
            continue;
        };
        ran += part.duration();
        for cpu in (0..evidence.timeline.cpu_count() as u16).filter(|&cpu| cpu != own) {
            let occupancy = evidence.timeline.cpu(evidence.switches, cpu);
            for occupant in occupancy.between(part.start, part.end) {
                *others.entry(occupant.thread).or_default() += occupant.end - occupant.start;
            }
        }
    }
    let is_recorder = |thread| Some(evidence.threads.thread(thread).pid) == evidence.recorder;
    let mut by_label: BTreeMap<String, u64> = BTreeMap::new();
    for (thread, ns) in others {
        if thread != IDLE && !is_recorder(thread) {
            *by_label.entry(label(evidence, thread)).or_default() += ns;
        }
    }
    (ran, by_label)
}
