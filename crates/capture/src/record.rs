//! A recording from start to end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hangdog_symbols::{Namer, helper, unread};
use hangdog_trace::TraceWriter;
use hangdog_trace::meta::{Clock, Marking, Meta, Mode, RecordingState, Unread};
use hangdog_trace::tables::Loss;
use hangdog_trace::words::LossKind;

use crate::clock;
use crate::command::Command;
use crate::error::{Error, Result};
use crate::marks::Marks;
use crate::owner::asked_by;
use crate::pace::Guard;
use crate::privileges::{self, Recorder};
use crate::procfs;
use crate::save::{Saver, finish};
use crate::session::{Options, Session};
use crate::snapshots::Snapshots;
use crate::system::{
    machine, monotonic_ns, snapshot_asked, snapshot_on_signal, stop_asked, stop_on_signals, unix_ns,
};
use crate::world::{Pending, World};

/// What to record, and until when.
#[derive(Clone, Debug)]
pub struct Request {
    /// The trace to make; must not exist.
    pub output: PathBuf,
    /// What to record.
    pub options: Options,
    /// The command to start; empty for none. The recording ends with it.
    pub command: Vec<OsString>,
    /// Ends after this long, whatever else.
    pub duration: Option<Duration>,
    /// A command that is not done after this long hangs: the recording ends, and the command with
    /// all of its process group.
    pub limit: Option<Duration>,
    /// How often to look what memory processes have, beside at the beginning, at the end and where SIGUSR1
    /// asks for it; not at all without.
    pub memory_every: Option<Duration>,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// It runs: for how long, and how many events so far.
    Recording {
        /// Since the start.
        elapsed: Duration,
        /// Read so far.
        events: u64,
    },
    /// Frames get names: how many of how many.
    Naming {
        /// Done.
        done: usize,
        /// Of these.
        of: usize,
    },
}

/// What came of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The command's exit code as a shell gives it, or [`HUNG`]; `None` without a command.
    pub exit_code: Option<i32>,
    /// Events recorded.
    pub events: u64,
    /// Records lost, of any kind.
    pub lost: u64,
    /// How long it was, ns.
    pub duration_ns: u64,
}

/// The exit code of a command that was ended at its limit, as timeout(1) has it.
pub const HUNG: i32 = 124;
/// How often the rings are read. Each time is short, so that no thread waits long for the CPU, and what was
/// recorded is still in the CPU's caches.
const PERIOD: Duration = Duration::from_millis(20);
/// Where a thread's marks fill that share of its ring between two rounds, rounds come sooner, and
/// before all else that runs: rings of marks are small.
const HURRIED: f64 = 0.05;
const HURRIED_PERIOD: Duration = Duration::from_millis(5);
/// How late a round may be at most. It is less where what came since the last one would fill a
/// quarter of its room sooner.
const LATEST: Duration = Duration::from_secs(1);
/// The same while stacks wait for the unwind tables of a program: each round puts tables that were built
/// where the kernel side finds them, and allows it more copies.
const LATEST_UNSETTLED: Duration = Duration::from_millis(60);
/// How often rows are handed to the disk: what a killed recording may lose.
const PART: Duration = Duration::from_secs(1);
/// Marks are handed over sooner where there are so many.
const PART_MARKS: usize = 1 << 20;
/// So many wait for the disk; more are lost.
const MOST_MARKS: usize = 1 << 22;
/// A record may be this late: its writer was interrupted between clock and commit.
const LATENESS_NS: u64 = 2_000_000;
/// How long a recording waits for the unwind tables of what runs before it starts its command.
const TABLES_PATIENCE: Duration = Duration::from_millis(500);
/// How long a snapshot of memory is waited for, at the beginning and at the end.
const MEMORY_PATIENCE: Duration = Duration::from_secs(1);
/// How long a command that was asked to end is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where a signal asked us to end, which should take 5 s in all.
const HURRIED_PATIENCE: Duration = Duration::from_millis(1500);

/// What `meta.json` says of a recording that begins at `start` (ns of CLOCK_MONOTONIC).
pub(crate) fn describe(session: &Session, options: &Options, start: u64, mode: Mode) -> Meta {
    let (host, kernel, arch) = machine();
    Meta {
        hangdog: env!("CARGO_PKG_VERSION").into(),
        state: RecordingState::Recording,
        mode,
        recorder_pid: Some(std::process::id()),
        started_unix_ns: unix_ns(start),
        started: clock::rfc3339(unix_ns(start)),
        clock: Clock {
            monotonic_start_ns: start,
        },
        host,
        kernel,
        arch,
        cpus: session.cpus as u32,
        options: hangdog_trace::meta::Options {
            stacks: options.stacks,
            sample_hz: options.sample_hz,
            transfers: options.transfers,
            calls: options.calls.any(),
            faults: options.faults,
        },
        hooks: session.hooks.clone(),
        yardstick: options.yardstick.clone(),
        ..Meta::default()
    }
}

/// What came of the marks of programs, with those that turned out to be no thread's.
pub(crate) fn marking(figures: Marking, world: &World) -> Marking {
    Marking {
        lost: figures.lost.saturating_add(world.strange_marks),
        ..figures
    }
}

/// The files of which names or unwind rules are missing because they could not be read.
pub(crate) fn unread_files() -> Vec<Unread> {
    let files = unread().into_iter().map(|unread| Unread {
        reason: unread.reason.text().to_owned(),
        files: unread.files as u64,
        example: unread.example,
    });
    files.collect()
}

/// Counts what is lost, and writes a row whenever there is something new.
#[derive(Default)]
pub(crate) struct Losses {
    records: Vec<u64>,
    definitions: Vec<u64>,
    transfers: Vec<u64>,
    handoffs: Vec<u64>,
    marks: u64,
    mappings: u64,
    skipped: u64,
    pub total: u64,
}

impl Losses {
    pub(crate) fn note(
        &mut self,
        world: &mut World,
        ts: u64,
        cpu: u16,
        kind: LossKind,
        count: u64,
    ) {
        if count > 0 {
            // What is beyond the limit is left out on purpose.
            let is_meant = matches!(
                kind,
                LossKind::Transfers | LossKind::Handoffs | LossKind::OverwrittenMarks
            );
            if !is_meant {
                self.total += count;
            }
            world.tables.losses.push(Loss {
                ts,
                cpu,
                kind: kind.into(),
                count,
            });
        }
    }

    /// Notes the marks that were lost since the last time.
    pub(crate) fn look_at_marks(&mut self, figures: Marking, world: &mut World, ts: u64) {
        let lost = marking(figures, world).lost;
        let new = lost.saturating_sub(std::mem::replace(&mut self.marks, lost));
        self.note(world, ts, u16::MAX, LossKind::Marks, new);
    }

    /// Compares the counters of the session with what was noted before.
    pub(crate) fn look(&mut self, session: &Session, world: &mut World, ts: u64) {
        self.records.resize(session.cpus, 0);
        for (cpu, now) in session.rings.lost_records().enumerate() {
            let new = now - std::mem::replace(&mut self.records[cpu], now);
            self.note(world, ts, cpu as u16, LossKind::Events, new);
        }
        self.definitions.resize(session.cpus, 0);
        for (cpu, now) in session.rings.lost_definitions().enumerate() {
            let new = now - std::mem::replace(&mut self.definitions[cpu], now);
            self.note(world, ts, cpu as u16, LossKind::Definitions, new);
        }
        self.transfers.resize(session.cpus, 0);
        for (cpu, now) in session.rings.refused_transfers().enumerate() {
            let new = now - std::mem::replace(&mut self.transfers[cpu], now);
            self.note(world, ts, cpu as u16, LossKind::Transfers, new);
        }
        self.handoffs.resize(session.cpus, 0);
        for (cpu, now) in session.rings.refused_handoffs().enumerate() {
            let new = now - std::mem::replace(&mut self.handoffs[cpu], now);
            self.note(world, ts, cpu as u16, LossKind::Handoffs, new);
        }
        let new = session.lost_mappings() - self.mappings;
        self.mappings += new;
        self.note(world, ts, u16::MAX, LossKind::Mappings, new);
        let new = session.skipped_runs() - self.skipped;
        self.skipped += new;
        self.note(world, ts, u16::MAX, LossKind::Recursion, new);
    }
}

/// Which share of their rings what has come since the last time takes, where it is most.
struct Filled {
    /// Of the ring of the thread that marks most.
    by_marks: f64,
    by_definitions: f64,
}

impl Filled {
    fn most(&self) -> f64 {
        self.by_marks.max(self.by_definitions)
    }
}

/// How long it takes until a quarter of a ring is filled, of which `filled` was in `time`.
fn quarter(time: Duration, filled: f64) -> Duration {
    time.div_f64(filled.max(1e-6) * 4.0)
}

/// How a recording came to its end.
enum End {
    /// The command ended with this code.
    Exited(i32),
    /// The time is over or a signal asked to stop; the command, if there is one, may still run.
    Stopped,
    /// The command is not done at its limit.
    Hung,
}

impl End {
    fn exit_code(&self) -> Option<i32> {
        match self {
            End::Exited(code) => Some(*code),
            End::Stopped => None,
            End::Hung => Some(HUNG),
        }
    }
}

/// Records until the command ends, the time is over, or a signal asks to stop. `hung` is called where
/// the command is not done at its limit: the trace is there by then, and the command still hangs.
///
/// # Errors
/// If the kernel does not let us record, the command cannot be started, or the trace cannot be
/// written; what was written before an error stays readable.
pub fn record(
    request: &Request,
    mut progress: impl FnMut(Progress),
    hung: impl FnOnce(),
) -> Result<Outcome> {
    stop_on_signals().map_err(|cause| Error::system("handle signals", cause))?;
    if request.memory_every.is_some() {
        snapshot_on_signal().map_err(|cause| Error::system("handle signals", cause))?;
    }
    privileges::check_namespace()?;
    // Those who read files come from a process that still has all privileges; without it names are
    // missing, and the trace says so.
    let _ = helper::start();
    // Before the programs are loaded: a bad path should be told at once.
    let begin = Meta {
        state: RecordingState::Recording,
        ..Meta::default()
    };
    let writer = TraceWriter::create_for(&request.output, begin, asked_by())?;
    // A recording that never began leaves no empty trace behind: the writer sees to it.
    Recording::start(request, writer).and_then(|mut recording| {
        let end = recording.run(&mut progress);
        if let Err(why @ Error::Command { .. }) = end {
            // Its thread has the writer, and may not be left with it.
            let _ = recording.saver.join();
            return Err(why);
        }
        let command = recording.command.take();
        let finished = recording.finish(&mut progress);
        let hangs = matches!(end, Ok(End::Hung));
        let outcome = end.and_then(|end| {
            Ok(Outcome {
                exit_code: end.exit_code(),
                ..finished?
            })
        });
        if let (true, Some(mut command)) = (hangs, command) {
            if outcome.is_ok() {
                hung();
            }
            command.end(PATIENCE);
        }
        outcome
    })
}

struct Recording<'a> {
    request: &'a Request,
    session: Session,
    command: Option<Command>,
    world: World,
    pending: Pending,
    cursor: crate::ring::Cursor,
    marks: Marks,
    /// How many names of marks have rows.
    mark_names: usize,
    losses: Losses,
    snapshots: Option<Snapshots>,
    meta: Meta,
    guard: Guard,
    saver: Saver,
    start: u64,
    events: u64,
}

impl<'a> Recording<'a> {
    fn start(request: &'a Request, writer: TraceWriter) -> Result<Recording<'a>> {
        // The fork comes first: the child must not inherit what the session opens.
        let command = match request.command.as_slice() {
            [] => None,
            words => Some(Command::prepare(words, request.limit.is_some())?),
        };
        let mut session = Session::start(&request.options)?;
        let start = session.begun;
        privileges::give_up(Recorder::Record {
            command: command.is_some(),
        })?;
        session.find_markers()?;
        let cursor = session.rings.oldest();
        let found = session.look_around();
        let population = procfs::population();
        let calls = &request.options.calls;
        let logged = calls.pids(&population)?;
        session.logged().set_family(&logged);
        if let Some(command) = command.as_ref().filter(|_| calls.command) {
            session.logged().set(command.pid);
        }
        session.adopt(&population, TABLES_PATIENCE);
        let mut world = World::new(start, &population);
        world.watch(&request.options.flags, start);
        let mut marks = Marks::new(start);
        marks.adopt(population.processes.keys());
        world.probe(marks.of_probes(&request.options.probes));
        let mut snapshots = request.memory_every.map(Snapshots::start).transpose()?;
        if let Some(snapshots) = &mut snapshots {
            for taken in snapshots.now(MEMORY_PATIENCE) {
                world.keep(&taken);
            }
        }
        let mut meta = describe(&session, &request.options, start, Mode::Record);
        meta.command = request
            .command
            .iter()
            .map(|w| w.to_string_lossy().into())
            .collect();
        meta.command_tid = command.as_ref().map(|command| command.pid);
        let mut pending = Pending {
            events: session.take_in(found),
            ..Pending::default()
        };
        pending.events.extend(session.look_at_tasks());
        // That the command waits for us to let it go is not its own affair.
        let command_tid = command.as_ref().map(|command| command.pid);
        pending
            .events
            .retain(|found| Some(found.tid) != command_tid);
        meta.hooks.clone_from(&session.hooks);
        writer.update(meta.clone())?;
        let guard = Guard::start();
        Ok(Recording {
            request,
            session,
            command,
            world,
            pending,
            cursor,
            marks,
            mark_names: 0,
            losses: Losses::default(),
            snapshots,
            meta,
            saver: Saver::new(writer, guard.handle()),
            guard,
            start,
            events: 0,
        })
    }

    /// Reads the rings until something says stop.
    fn run(&mut self, progress: &mut impl FnMut(Progress)) -> Result<End> {
        // The recorder's own threads, which read what was there, have no unwind tables meanwhile and
        // may have taken all the room for copies of stacks: the command's first stacks need it.
        self.read(monotonic_ns().saturating_sub(LATENESS_NS))?;
        if let Some(command) = &mut self.command {
            command.go()?;
        }
        let pace = self.guard.handle().join(LATEST_UNSETTLED);
        let began = Instant::now();
        let mut part = Instant::now();
        let mut round = Instant::now();
        let mut period = PERIOD;
        let mut end = self.request.duration.map(|duration| began + duration);
        let mut failed = false;
        let mut terminating = false;
        loop {
            std::thread::sleep(period);
            // First whether the command has ended, then one more look at what it left.
            let exit_code = self.command.as_mut().and_then(Command::exit_code);
            let now = monotonic_ns();
            let unread = self.session.rings.filled(&self.cursor);
            let filled = self.read(now.saturating_sub(LATENESS_NS))?;
            let took = std::mem::replace(&mut round, Instant::now()).elapsed();
            let latest = match self.session.unsettled_since() {
                u64::MAX => LATEST,
                _ => LATEST_UNSETTLED,
            };
            let left = end.map_or(latest, |end| end.saturating_duration_since(round));
            let room = quarter(took, filled.most().max(unread)).min(left);
            period = match filled.by_marks {
                HURRIED.. => {
                    pace.again_first_within(room.clamp(HURRIED_PERIOD, latest));
                    HURRIED_PERIOD
                }
                _ => {
                    pace.again_within(room.clamp(PERIOD, latest));
                    PERIOD
                }
            };
            self.session.rest_flags(&mut self.pending.events);
            self.session.look_at_limits_if_due();
            let taken = (self.snapshots.as_mut()).and_then(|it| it.go_on(snapshot_asked()));
            if let Some(taken) = taken {
                self.world.keep(&taken);
            }
            if part.elapsed() >= PART || self.world.tables.marks.len() >= PART_MARKS {
                part = Instant::now();
                let ts = now - self.start;
                self.losses.look(&self.session, &mut self.world, ts);
                let figures = self.marks.figures();
                self.losses.look_at_marks(figures, &mut self.world, ts);
                failed = !self.saver.offer(&mut self.world.tables);
            }
            progress(Progress::Recording {
                elapsed: began.elapsed(),
                events: self.events,
            });
            if let Some(code) = exit_code {
                return Ok(End::Exited(code));
            }
            let limit = self.request.limit.filter(|_| !terminating);
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                return Ok(End::Hung);
            }
            let over = end.is_some_and(|end| Instant::now() >= end);
            if over && terminating {
                // It does not heed the request: it is left alone.
                return Ok(End::Stopped);
            }
            if !terminating && (over || failed || stop_asked()) {
                // Whatever ends the recording, nobody is left with a command that runs unattended.
                let Some(command) = &mut self.command else {
                    return Ok(End::Stopped);
                };
                command.terminate();
                terminating = true;
                let patience = match stop_asked() {
                    true => HURRIED_PATIENCE,
                    false => PATIENCE,
                };
                end = Some(Instant::now() + patience);
            }
        }
    }

    /// Takes what the small rings hold, marks and definitions; with `last`, all that still comes.
    fn read_small(&mut self, last: bool) -> Result<Filled> {
        let by_marks = self.read_marks();
        let by_definitions = self
            .session
            .drain_definitions(&mut self.pending.definitions, last)?;
        let markers = self.session.take_markers();
        self.marks.hear(markers);
        if last {
            self.read_marks();
        }
        Ok(Filled {
            by_marks,
            by_definitions,
        })
    }

    /// Reads all that there is, and makes rows of what is older than `cutoff`.
    fn read(&mut self, cutoff: u64) -> Result<Filled> {
        let before = self.pending.events.len();
        let lost = self
            .session
            .rings
            .read(&mut self.cursor, &mut self.pending.events);
        self.events += (self.pending.events.len() - before) as u64;
        // After the events: whatever they refer to was defined before they were written.
        let filled = self.read_small(cutoff == u64::MAX)?;
        let cutoff = cutoff.min(self.session.unsettled_since());
        let ts = monotonic_ns() - self.start;
        for (cpu, count) in lost.into_iter().enumerate() {
            self.losses
                .note(&mut self.world, ts, cpu as u16, LossKind::Events, count);
        }
        self.world.advance(&mut self.pending, cutoff);
        Ok(filled)
    }

    /// Returns which share of its ring the thread that marks most has filled since the last time.
    fn read_marks(&mut self) -> f64 {
        let before = self.pending.marks.len();
        let filled = self.marks.read(&mut self.pending.marks);
        if self.world.tables.marks.len() >= MOST_MARKS {
            let new = self.pending.marks.len() - before;
            self.pending.marks.truncate(before);
            self.marks.lose(new as u64);
        }
        self.events += (self.pending.marks.len() - before) as u64;
        let names = &mut self.world.tables.mark_names;
        self.marks.write_names(&mut self.mark_names, names);
        filled
    }

    fn finish(mut self, progress: &mut impl FnMut(Progress)) -> Result<Outcome> {
        if let Some(snapshots) = &mut self.snapshots {
            for taken in snapshots.now(MEMORY_PATIENCE) {
                self.world.keep(&taken);
            }
        }
        let missing = (self.snapshots.as_ref()).map_or(0, Snapshots::missing);
        let tasks = self.session.look_at_tasks();
        self.pending.events.extend(tasks);
        let end = monotonic_ns();
        self.session.look_at_descriptors();
        self.session.detach();
        self.read(u64::MAX)?;
        self.world.note_titles(end);
        let at = end - self.start;
        self.losses.look(&self.session, &mut self.world, at);
        self.losses
            .note(&mut self.world, at, u16::MAX, LossKind::Snapshots, missing);
        let figures = self.marks.figures();
        self.losses.look_at_marks(figures, &mut self.world, at);
        self.meta.marks =
            Some(marking(figures, &self.world)).filter(|it| *it != Marking::default());
        let tables = self.world.into_named(&mut Namer::default(), |done, of| {
            progress(Progress::Naming { done, of });
        });
        self.guard.end();
        let writer = self.saver.join()?;
        self.meta.state = RecordingState::Complete;
        self.meta.duration_ns = end - self.start;
        self.meta.unwinding = self.session.unwinding();
        self.meta.unread = unread_files();
        finish(writer, tables, self.meta)?;
        Ok(Outcome {
            exit_code: None,
            events: self.events,
            lost: self.losses.total,
            duration_ns: end - self.start,
        })
    }
}
