//! `hangdog watch`: a flight recorder that saves its ring when something hangs.
//!
//! Three threads: one records, one looks for hangs, one saves and explains what was found while the
//! others go on. They speak on standard error alone, through the one that records.

mod keeper;

use self::keeper::Keeper;
use crate::args::WatchArgs;
use crate::commands::flight;
use crate::status::StatusLine;
use anyhow::{Context, Result, bail};
use hangdog_capture::flight::{Listeners, Status, fly, socket_path};
use hangdog_capture::{Followed, Step};
use hangdog_report::format;
use hangdog_trace::words::{MarkKind, Pairing};
use hangdog_watch::archive::Archive;
use hangdog_watch::budgets::{Budgets, Mark};
use hangdog_watch::processes::Process;
use hangdog_watch::stalls::Stalls;
use hangdog_watch::standing::Limits;
use hangdog_watch::{Hang, Sign, Watcher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// How often it is looked for hangs.
const PERIOD: Duration = Duration::from_millis(250);

/// What the threads share.
#[derive(Default)]
struct Shared {
    flies: AtomicBool,
    stops: AtomicBool,
    /// How far back the ring reaches, ns; 0 while it reaches back to the start.
    holds: AtomicU64,
    windows: AtomicUsize,
    threads: AtomicUsize,
    caught: AtomicUsize,
}

/// Watches until a signal asks to stop.
pub fn run(args: &WatchArgs) -> Result<()> {
    let limits = |limit_ns: u64| Limits {
        limit_ns,
        most_ns: args.most.ns(),
    };
    let mut given = vec![args.window_limit.ns()];
    given.extend(args.stall.iter().map(|stall| stall.limit.ns()));
    given.extend(args.region.iter().map(|region| region.limit.ns()));
    if given.contains(&0) {
        bail!("--window-limit, --stall and --region need a duration above 0");
    }
    let mut archive = Archive::at(&std::path::absolute(&args.dir)?);
    archive.create()?;
    let stalls = args.stall.iter();
    let stalls = stalls
        .map(|stall| Stalls::new(stall.what.clone(), limits(stall.limit.ns())))
        .collect();
    let regions = args.region.iter();
    let regions = regions.map(|region| (region.what.0.clone(), limits(region.limit.ns())));
    let budgets = Arc::new(Mutex::new(Budgets::new(regions.collect())));
    let windows = limits(args.window_limit.ns());
    let watcher = Watcher::new(windows, stalls, Arc::clone(&budgets)).context(
        "cannot list windows: the kernel does not list unix sockets \
         (CONFIG_UNIX_DIAG, module unix_diag)",
    )?;
    let keeper = Keeper {
        socket: socket_path(),
        archive: &archive,
        keep: args.keep.bytes(),
    };
    let patience = Patience {
        most_ns: args.most.ns(),
        pause: Duration::from_nanos(args.pause.ns()),
    };
    let shared = Shared::default();
    let (tell, told) = channel();
    let (give, given) = sync_channel(0);
    let mut line = StatusLine::new();
    let flown = thread::scope(|scope| {
        let (shared, keeper, say) = (&shared, &keeper, tell.clone());
        let keep = move || {
            for (hang, process) in given {
                shared.caught.fetch_add(1, Ordering::Relaxed);
                let _ = say.send(keeper.keep(&hang, &process));
            }
        };
        let look = move || look_out(watcher, shared, patience, &give, &tell);
        let mut was_full = false;
        let begun = || {
            Builder::new()
                .name("keeper".into())
                .spawn_scoped(scope, keep)?;
            Builder::new()
                .name("lookout".into())
                .spawn_scoped(scope, look)?;
            Ok(())
        };
        let options = flight::options(&args.flight)?;
        let show = |status: Status| {
            if !shared.flies.swap(true, Ordering::Relaxed) {
                line.tell(&format!(
                    "watching; hangs are saved in {} (`hangdog hangs` lists them), Ctrl-C stops",
                    archive.folder().display()
                ));
            }
            told.try_iter().for_each(|text: String| line.tell(&text));
            if status.full && !was_full && !line.is_on() {
                let holds = flight::holds(status.holds);
                line.tell(&format!("the ring holds {holds} at the present rate"));
            }
            was_full = status.full;
            if status.full {
                let holds = status.holds.as_nanos() as u64;
                shared.holds.store(holds, Ordering::Relaxed);
            }
            line.show(|| text(status, shared));
        };
        let names: Vec<String> = args.region.iter().map(|it| it.what.0.clone()).collect();
        let listeners = Listeners {
            begun: Box::new(begun),
            status: Box::new(show),
            names: &names,
            followed: Box::new(|followed| heed(&budgets, followed)),
        };
        let flown = fly(&options, &keeper.socket, listeners);
        shared.stops.store(true, Ordering::Relaxed);
        anyhow::Ok(flown?)
    });
    line.clear();
    told.try_iter().for_each(|text| line.tell(&text));
    flown
}

/// A mark of a region that is watched.
fn heed(budgets: &Mutex<Budgets>, followed: Followed) {
    let mut budgets = budgets.lock().unwrap_or_else(PoisonError::into_inner);
    match followed {
        Followed::Missed { pid } => budgets.miss(pid),
        Followed::Mark(Step {
            kind: MarkKind::Point | MarkKind::Unknown,
            ..
        }) => {}
        Followed::Mark(step) => budgets.heed(Mark {
            ts: step.ts,
            pid: step.pid,
            tid: step.tid,
            budget: step.name,
            begins: step.kind == MarkKind::Begin,
            common: match step.pairing {
                Pairing::Argument => (1, step.argument),
                Pairing::Code => (2, 0),
                Pairing::Thread | Pairing::Unknown => (0, step.tid.into()),
            },
        }),
    }
}

/// How long is waited for what.
struct Patience {
    /// For a hang's end, ns.
    most_ns: u64,
    /// From one that was saved to the next.
    pause: Duration,
}

/// Looks for hangs until it is told to stop. One that it finds is given away if it can be saved
/// now, and told of in any case.
fn look_out(
    mut watcher: Watcher,
    shared: &Shared,
    patience: Patience,
    give: &SyncSender<(Hang, Process)>,
    tell: &Sender<String>,
) {
    let mut saved: Option<Instant> = None;
    let mut was_blind = false;
    while !shared.stops.load(Ordering::Relaxed) {
        thread::sleep(PERIOD);
        // What hung before there are events cannot be explained.
        if !shared.flies.load(Ordering::Relaxed) {
            continue;
        }
        let holds = shared.holds.load(Ordering::Relaxed);
        if holds > 0 {
            // What a hang began with is worth more than its end.
            watcher.wait_at_most(patience.most_ns.min(holds / 4 * 3));
        }
        let hangs = match watcher.look() {
            Ok(hangs) => hangs,
            Err(why) => {
                if !was_blind {
                    let _ = tell.send(format!("cannot list windows: {why}; retrying"));
                }
                was_blind = true;
                continue;
            }
        };
        was_blind = false;
        let (windows, threads) = watcher.watched();
        shared.windows.store(windows, Ordering::Relaxed);
        shared.threads.store(threads, Ordering::Relaxed);
        for hang in hangs {
            let Some(process) = hang.process.clone() else {
                let what = match &hang.sign {
                    Sign::Region(name) => format!("region {} took", format::printable(name)),
                    Sign::Window | Sign::Stall => "a window did not respond for".to_owned(),
                };
                let _ = tell.send(format!(
                    "{what} {}; not saved: its process is unknown",
                    length(&hang)
                ));
                continue;
            };
            let noticed = notice(&hang, &process);
            let rests = saved.is_some_and(|saved| saved.elapsed() < patience.pause);
            if rests {
                let _ = tell.send(format!(
                    "{noticed}; not saved: within --pause of the last one"
                ));
            } else if give.try_send((hang, process)).is_ok() {
                saved = Some(Instant::now());
            } else {
                let _ = tell.send(format!(
                    "{noticed}; not saved: the last one is being explained"
                ));
            }
        }
    }
}

fn length(hang: &Hang) -> String {
    let window = &hang.stretch.window;
    format::duration(window.end - window.start)
}

/// What was noticed, as far as it is known without looking into a trace.
fn notice(hang: &Hang, process: &Process) -> String {
    let name = format::printable(&process.name);
    let what = match &hang.sign {
        Sign::Window => format!("{name} ({}) did not respond for", process.pid),
        Sign::Stall => format!("{name}: thread {} stalled for", hang.tid),
        Sign::Region(region) => format!("{name}: region {} took", format::printable(region)),
    };
    format!("{what} {}", length(hang))
}

fn text(status: Status, shared: &Shared) -> String {
    let count = |number: &AtomicUsize, one, many| {
        format::things(number.load(Ordering::Relaxed) as u64, one, many)
    };
    format!(
        "watching {} and {}; the ring holds {}; {} caught",
        count(&shared.windows, "window", "windows"),
        count(&shared.threads, "named thread", "named threads"),
        flight::holds(status.holds),
        count(&shared.caught, "hang", "hangs"),
    )
}
