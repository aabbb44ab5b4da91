//! One open trace. Reading it takes seconds where it is large, so threads of its own do it:
//! the timeline first, with which tracks can be shown; then all that a diagnosis needs. What needs
//! the diagnosis waits for it; what needs the tracks alone does not.

use crate::calls::{CallTrack, CallTracks};
use crate::regions::{RegionTrack, RegionTracks};
use crate::track::TrackId;
use anyhow::{Result, anyhow};
use hangdog_diagnose::Problem;
use hangdog_graph::Evidence;
use hangdog_levels::Sums;
use hangdog_levels::source::{Cpu, Source, Thread};
use hangdog_report::answers::{ProblemRow, problem_rows};
use hangdog_report::calls::ThreadCalls;
use hangdog_report::rank::{self, Known};
use hangdog_report::{Case, Loading, Recording, answers_file};
use hangdog_trace::ids::Utid;
use hangdog_trace::meta::Mode;
use hangdog_trace::tables::{Losses, Marks, SystemCalls};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use tokio::sync::{oneshot, watch};

/// Makes what takes the progress of reading a trace, and names its functions where it must.
pub type MakeLoading = Arc<dyn Fn() -> Box<dyn Loading + Send> + Send + Sync>;

/// How far a trace is read.
#[derive(Clone)]
pub enum Phase {
    /// This is being read.
    Reading(&'static str),
    /// Tracks can be shown; the rest is being read.
    Tracks(Arc<Ground>),
    /// All can be asked.
    Ready(Arc<Ground>),
    /// It cannot be read, and why.
    Failed(String),
}

/// What tracks are made of.
pub struct Ground {
    /// The trace's timeline and what it was made of.
    pub recording: Arc<Recording>,
    /// Where events are missing, by CPU; those that belong to none are of every CPU.
    pub gaps: Vec<Gap>,
    /// Whether programs marked anything, or may have: a table of the trace may be damaged.
    pub has_marks: bool,
    /// Whether all system calls of a thread were recorded, or may have been.
    has_calls: bool,
    sums: Mutex<HashMap<TrackId, Arc<Sums>>>,
    regions: OnceLock<Result<RegionTracks, String>>,
    calls: OnceLock<Result<CallTracks, String>>,
    /// The calls of the thread that was asked for last, with all that the trace has of them.
    called: Mutex<Option<(Utid, Arc<ThreadCalls>)>>,
}

/// A time of which a CPU's events are missing, in part or wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    /// Which CPU; none where it belongs to none.
    pub cpu: Option<u16>,
    /// Since when, ns since the trace's start: the last event before.
    pub from_ns: u64,
    /// Until when: the moment at which the loss was noticed, or the first event.
    pub to_ns: u64,
    /// How many events; 0 where a ring's begin is meant, before which there is nothing.
    pub count: u64,
}

impl Ground {
    fn new(recording: Arc<Recording>) -> Result<Ground> {
        let losses: Losses = recording.trace.read()?;
        let has = |name: &str| {
            recording.trace.tables_info().map_or(true, |tables| {
                (tables.iter()).any(|table| table.name == name && table.rows > 0)
            })
        };
        Ok(Ground {
            gaps: gaps(&recording, &losses),
            has_marks: has(Marks::NAME),
            has_calls: has(SystemCalls::NAME),
            recording,
            sums: Mutex::default(),
            regions: OnceLock::new(),
            calls: OnceLock::new(),
            called: Mutex::default(),
        })
    }

    /// What programs marked, read when it is first asked for.
    ///
    /// # Errors
    /// Why the marks cannot be read.
    pub fn regions(&self) -> Result<&RegionTracks> {
        let load = || RegionTracks::load(&self.recording).map_err(|error| format!("{error:#}"));
        let regions = self.regions.get_or_init(load).as_ref();
        regions.map_err(|why| anyhow!("{why}"))
    }

    /// The system calls as tracks, read when they are first asked for.
    ///
    /// # Errors
    /// Why the calls cannot be read.
    pub fn calls(&self) -> Result<&CallTracks> {
        let load = || match self.has_calls {
            true => CallTracks::load(&self.recording).map_err(|error| format!("{error:#}")),
            false => Ok(CallTracks::default()),
        };
        let calls = self.calls.get_or_init(load).as_ref();
        calls.map_err(|why| anyhow!("{why}"))
    }

    /// All that the trace has of a thread's system calls. Those of one thread are kept, since many questions
    /// about it follow each other.
    ///
    /// # Errors
    /// Why the calls cannot be read.
    pub fn called(&self, case: &Case, thread: Utid) -> Result<Arc<ThreadCalls>> {
        if !self.has_calls {
            return Ok(Arc::default());
        }
        let mut kept = lock(&self.called);
        if let Some((of, called)) = &*kept
            && *of == thread
        {
            return Ok(called.clone());
        }
        let trace = &self.recording.trace;
        let called = ThreadCalls::load(trace, thread, &case.calls, &case.stacks)?;
        let called = Arc::new(called);
        *kept = Some((thread, called.clone()));
        Ok(called)
    }

    /// A track's sums, made when they are first asked for.
    pub fn sums(&self, track: TrackId) -> Arc<Sums> {
        if let Some(sums) = lock(&self.sums).get(&track) {
            return sums.clone();
        }
        let timeline = &self.recording.timeline;
        let sums = Arc::new(match track {
            TrackId::Thread(utid) => Sums::new(Thread(timeline.intervals(utid))),
            TrackId::Cpu(cpu) => Sums::new(Cpu(timeline.cpu(&self.recording.switches, cpu))),
            TrackId::Region(number) => Sums::new(self.region(number)),
            TrackId::Calls(utid) => Sums::new(self.calls_of(utid)),
        });
        lock(&self.sums).insert(track, sums.clone());
        sums
    }
}

impl Ground {
    /// The track of a region; an empty one where there is none of that number.
    pub(crate) fn region(&self, number: u16) -> &RegionTrack {
        static NOTHING: RegionTrack = RegionTrack::nothing();
        let regions = self.regions().ok();
        let track = regions.and_then(|regions| regions.tracks.get(usize::from(number)));
        track.unwrap_or(&NOTHING)
    }

    /// The track of a thread's system calls; an empty one where it made none.
    pub(crate) fn calls_of(&self, thread: Utid) -> &CallTrack {
        static NOTHING: CallTrack = CallTrack::nothing();
        let track = self.calls().ok().and_then(|calls| calls.track(thread));
        track.unwrap_or(&NOTHING)
    }
}

/// From the last event of the CPU up to where the loss was noticed; and what lies before the first
/// event of a ring that was overwritten.
fn gaps(recording: &Recording, losses: &Losses) -> Vec<Gap> {
    let timeline = &recording.timeline;
    let mut gaps: Vec<Gap> = Vec::new();
    for row in 0..losses.len() {
        let kind = hangdog_trace::words::LossKind::from(losses.kind[row]);
        use hangdog_trace::words::LossKind::{Handoffs, Transfers};
        if matches!(kind, Transfers | Handoffs) || losses.count[row] == 0 {
            continue;
        }
        let (cpu, to) = (losses.cpu[row], losses.ts[row]);
        let is_of_cpu = cpu != u16::MAX;
        let from = match is_of_cpu {
            true => {
                let occupancy = Cpu(timeline.cpu(&recording.switches, cpu));
                let at = occupancy.first_after(0, to.saturating_sub(1));
                at.checked_sub(1).map_or(0, |at| occupancy.start(at))
            }
            false => to,
        };
        gaps.push(Gap {
            cpu: is_of_cpu.then_some(cpu),
            from_ns: from,
            to_ns: to,
            count: losses.count[row],
        });
    }
    if recording.trace.meta().mode == Mode::Flight {
        for cpu in 0..timeline.cpu_count() as u16 {
            let occupancy = Cpu(timeline.cpu(&recording.switches, cpu));
            if occupancy.len() > 1 && occupancy.start(1) > 0 {
                gaps.push(Gap {
                    cpu: Some(cpu),
                    from_ns: 0,
                    to_ns: occupancy.start(1),
                    count: 0,
                });
            }
        }
    }
    gaps.sort_by_key(|gap| (gap.from_ns, gap.to_ns));
    gaps
}

/// What a question is asked of.
pub struct Desk<'a> {
    /// The trace.
    pub case: &'a Case,
    /// What diagnoses go by.
    pub evidence: &'a Evidence<'a>,
    /// The problems, worst first.
    pub problems: &'a [Problem],
    /// The verdicts on the worst of them.
    pub known: &'a Known,
}

type Job = Box<dyn FnOnce(&Desk<'_>) + Send>;

/// So many questions are answered at a time.
const DESKS: usize = 2;

/// A trace that is open, or being opened.
pub struct Opened {
    path: PathBuf,
    phase: watch::Receiver<Phase>,
    jobs: Mutex<Sender<Job>>,
    /// The problems with their sentences, and the text of the answers that they go by.
    listed: Mutex<Option<(String, Arc<Vec<ProblemRow>>)>>,
}

impl Opened {
    /// Begins to read the trace at `path`.
    pub fn begin(path: PathBuf, loading: MakeLoading) -> Arc<Opened> {
        let (phase, seen) = watch::channel(Phase::Reading("trace"));
        let (jobs, asked) = channel();
        let opened = Arc::new(Opened {
            path: path.clone(),
            phase: seen,
            jobs: Mutex::new(jobs),
            listed: Mutex::default(),
        });
        thread::spawn(move || {
            // Whatever becomes of it, whoever waits learns of it.
            let outcome = catch_unwind(AssertUnwindSafe(|| read(&path, &loading, &phase, asked)));
            let why = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => {
                    "internal error: see the terminal of hangdog, and please report it".into()
                }
            };
            phase.send_replace(Phase::Failed(why));
        });
        opened
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is read.
    pub fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// What tracks are made of, as soon as it is there.
    ///
    /// # Errors
    /// Why the trace cannot be read.
    pub async fn ground(&self) -> Result<Arc<Ground>> {
        let mut phase = self.phase.clone();
        let phase = phase
            .wait_for(|phase| !matches!(phase, Phase::Reading(_)))
            .await?;
        match &*phase {
            Phase::Tracks(ground) | Phase::Ready(ground) => Ok(ground.clone()),
            Phase::Failed(why) => Err(anyhow!("{why}")),
            Phase::Reading(_) => Err(anyhow!("the trace is still being read")),
        }
    }

    /// Asks something that needs the whole trace, as soon as that is there.
    ///
    /// # Errors
    /// Why the trace cannot be read, or what the question itself answers.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Desk<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            // Whoever asked may have gone.
            let _ = answer.send(question(desk));
        });
        let sent = lock(&self.jobs).send(job).is_ok();
        match (sent, answered.await) {
            (true, Ok(answer)) => answer,
            _ => Err(match self.phase() {
                Phase::Failed(why) => anyhow!("{why}"),
                _ => anyhow!("internal error: see the terminal of hangdog, and please report it"),
            }),
        }
    }

    /// The problems with their sentences, as the present answers have them.
    ///
    /// # Errors
    /// As [`Opened::ask`], or what is wrong with the file of answers.
    pub async fn problems(&self) -> Result<Arc<Vec<ProblemRow>>> {
        let answers = answers_file::read(&self.path)?;
        let text = answers.text().to_owned();
        if let Some((of, rows)) = &*lock(&self.listed)
            && *of == text
        {
            return Ok(rows.clone());
        }
        let rows = self
            .ask(move |desk| {
                let rows = problem_rows(
                    desk.case,
                    desk.evidence,
                    desk.problems,
                    desk.known,
                    &answers,
                );
                Ok(Arc::new(rows))
            })
            .await?;
        *lock(&self.listed) = Some((text, rows.clone()));
        Ok(rows)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the page how far the reading is.
struct Progress<'a> {
    phase: &'a watch::Sender<Phase>,
    own: Box<dyn Loading + Send>,
}

impl Loading for Progress<'_> {
    fn step(&mut self, what: &'static str) {
        self.own.step(what);
        self.phase.send_replace(Phase::Reading(what));
    }

    fn name_functions(
        &mut self,
        trace: &hangdog_trace::Trace,
        modules: &hangdog_trace::tables::Modules,
        frames: &hangdog_trace::tables::Frames,
        symbols: &mut hangdog_trace::tables::Symbols,
    ) -> Result<()> {
        self.own.name_functions(trace, modules, frames, symbols)
    }
}

/// How much nicer than tracks the first diagnosis is to others.
const BEHIND_TRACKS: i32 = 10;

/// Reads a trace and answers what is asked of it, for as long as anybody can ask.
fn read(
    path: &Path,
    loading: &MakeLoading,
    phase: &watch::Sender<Phase>,
    asked: Receiver<Job>,
) -> Result<()> {
    let mut progress = Progress {
        phase,
        own: loading(),
    };
    let recording = Arc::new(Recording::load(path, &mut progress)?);
    let ground = Arc::new(Ground::new(recording.clone())?);
    phase.send_replace(Phase::Tracks(ground.clone()));
    // Who looks at tracks meanwhile is not to wait for what is found about them.
    let behind = rayon::ThreadPoolBuilder::new()
        .start_handler(|_| {
            // Where it may not, it competes with them.
            let _ = rustix::process::nice(BEHIND_TRACKS);
        })
        .build()?;
    let case = behind.install(|| Case::of(recording, &mut *loading()))?;
    let evidence = behind.install(|| case.evidence());
    let (problems, known) = behind.install(|| rank::problems(&case, &evidence));
    drop(behind);
    let desk = Desk {
        case: &case,
        evidence: &evidence,
        problems: &problems,
        known: &known,
    };
    phase.send_replace(Phase::Ready(ground));
    let asked = Mutex::new(asked);
    thread::scope(|scope| {
        for _ in 0..DESKS {
            scope.spawn(|| {
                loop {
                    let job = lock(&asked).recv();
                    let Ok(job) = job else { break };
                    // A question that panics is one that is not answered, and no end of the server.
                    drop(catch_unwind(AssertUnwindSafe(|| job(&desk))));
                }
            });
        }
    });
    Ok(())
}
