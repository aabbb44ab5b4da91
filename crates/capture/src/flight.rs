//! The flight recorder: always on, overwriting, asked now and then for what it holds.
//!
//! Events stay in the kernel's rings; only definitions are read. Those that the rings have
//! outlived are folded into a [`Population`], so that memory does not grow with time: what is kept
//! is who lives now, and what happened since the rings begin. A snapshot copies the rings while
//! they are written, and is put on disk by a thread of its own: the recorder flies on.
//!
//! A snapshot is asked for over a unix socket that only its owner can open: the client writes one
//! line, the path of the trace to make, and reads one line, `ok ...` or `error ...`.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hangdog_trace::TraceWriter;
use hangdog_trace::meta::{Mode, RecordingState};
use hangdog_trace::words::StackEnd;

use crate::error::{Error, Result};
use crate::event::Event;
use crate::owner::hand_over;
use crate::population::Population;
use crate::procfs;
use crate::record::{Losses, describe};
use crate::records::{Definition, What};
use crate::save::finish;
use crate::session::{Options, Session};
use crate::symbols::Namer;
use crate::system::{monotonic_ns, stop_asked, stop_on_signals};
use crate::world::{Pending, World};

/// What a running flight recorder says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// How far back the rings reach on every CPU.
    pub holds: Duration,
    /// Whether the rings have come round: before that, they hold all since the start.
    pub full: bool,
    /// Snapshots taken so far.
    pub snapshots: u64,
}

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Events in it.
    pub events: u64,
    /// How far back it reaches, ns.
    pub duration_ns: u64,
}

/// How often definitions are read: what has been executed since has no unwind rules until then.
const PERIOD: Duration = Duration::from_millis(20);
/// So many stacks, Python functions and sockets are kept; beyond it those that are no longer met are
/// forgotten.
const MOST_STACKS: usize = 300_000;
/// How long a client may take to write its line.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);

/// Names the socket instead of the place that is usual: for a second flight recorder.
const SOCKET_VARIABLE: &str = "HANGDOG_SOCKET";

/// Where a flight recorder listens: what HANGDOG_SOCKET says, else in /run/hangdog, which only
/// root can enter, or the user's own runtime folder.
pub fn socket_path() -> PathBuf {
    if let Some(path) = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()) {
        return path.into();
    }
    // SAFETY: geteuid has no preconditions.
    let folder = match (
        unsafe { libc::geteuid() },
        std::env::var_os("XDG_RUNTIME_DIR"),
    ) {
        (0, _) | (_, None) => PathBuf::from("/run/hangdog"),
        (_, Some(runtime)) => PathBuf::from(runtime).join("hangdog"),
    };
    folder.join("flight.sock")
}

/// Records until a signal asks to stop.
///
/// # Errors
/// If the kernel does not let us record, or a flight recorder listens at `socket` already.
pub fn fly(options: &Options, socket: &Path, mut status: impl FnMut(Status)) -> Result<()> {
    stop_on_signals().map_err(|source| Error::system("handle signals", source))?;
    let listener = Listener::bind(socket)?;
    let mut flight = Flight::start(options)?;
    while !stop_asked() {
        std::thread::sleep(PERIOD);
        flight.keep_up(false)?;
        if let Some(client) = listener.accept() {
            flight.serve(client);
        }
        status(flight.status());
    }
    flight.savers.into_iter().for_each(|saver| {
        // The client has been told what happened.
        let _ = saver.join();
    });
    Ok(())
}

/// Asks the flight recorder at `socket` to save what it holds as `output`.
///
/// # Errors
/// If none answers, or it could not save.
pub fn snap(socket: &Path, output: &Path) -> Result<Snapshot> {
    let absent = |_| Error::NoFlight {
        path: socket.to_owned(),
    };
    let output = std::path::absolute(output)
        .map_err(|source| Error::system("find the current folder", source))?;
    let path = output.to_str().filter(|path| !path.contains('\n'));
    let path = path.ok_or_else(|| Error::Snapshot("the path is not plain text".into()))?;
    let mut stream = UnixStream::connect(socket).map_err(absent)?;
    writeln!(stream, "{path}").map_err(absent)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(absent)?;
    let answer = answer.trim_end();
    if let Some(numbers) = answer.strip_prefix("ok ") {
        let mut numbers = numbers.split(' ').filter_map(|number| number.parse().ok());
        if let (Some(events), Some(duration_ns)) = (numbers.next(), numbers.next()) {
            hand_over(&output)
                .map_err(|source| Error::system("give the trace to its user", source))?;
            return Ok(Snapshot {
                events,
                duration_ns,
            });
        }
    }
    let reason = answer
        .strip_prefix("error ")
        .unwrap_or("it ended in the middle");
    Err(Error::Snapshot(reason.to_owned()))
}

struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    fn bind(path: &Path) -> Result<Listener> {
        let doing = || format!("listen at {}", path.display());
        if UnixStream::connect(path).is_ok() {
            return Err(Error::FlightRuns {
                path: path.to_owned(),
            });
        }
        if let Some(folder) = path.parent()
            && !folder.exists()
        {
            fs::create_dir_all(folder).map_err(|source| Error::system(doing(), source))?;
            let owner_only = fs::Permissions::from_mode(0o700);
            fs::set_permissions(folder, owner_only)
                .map_err(|source| Error::system(doing(), source))?;
        }
        // Nobody answers at it: what is left of one that was killed.
        let _ = fs::remove_file(path);
        // SAFETY: umask only changes this process's mask; no other thread makes files yet.
        let before = unsafe { libc::umask(0o177) };
        let socket = UnixListener::bind(path);
        // SAFETY: as above.
        unsafe { libc::umask(before) };
        let socket = socket.map_err(|source| Error::system(doing(), source))?;
        socket
            .set_nonblocking(true)
            .map_err(|source| Error::system(doing(), source))?;
        Ok(Listener {
            socket,
            path: path.to_owned(),
        })
    }

    fn accept(&self) -> Option<UnixStream> {
        let (stream, _) = self.socket.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(CLIENT_PATIENCE)).ok()?;
        Some(stream)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A stack as the kernel side defined it.
struct KnownStack {
    id: u32,
    ts: u64,
    frames: Vec<u64>,
    end: StackEnd,
}

struct Flight {
    options: Options,
    session: Session,
    started: u64,
    /// Who lived when the log begins.
    population: Population,
    /// What happened since the rings begin, stacks apart.
    log: Vec<Definition>,
    /// By process; 0 is the kernel.
    stacks: HashMap<u32, Vec<KnownStack>>,
    /// Python functions, by process.
    functions: HashMap<u32, Vec<Definition>>,
    /// Sockets, by object: what was known last.
    sockets: HashMap<u64, Definition>,
    /// When the kernel side was last told to send every stack anew.
    forgotten_at: u64,
    /// Definitions that went missing: said in every snapshot from then on.
    losses: Losses,
    /// Who waited when it began.
    waiting: Vec<Event>,
    /// What was open then, and when the last snapshot was made.
    open: Vec<Definition>,
    /// When that first look was over.
    looked: u64,
    snapshots: u64,
    savers: Vec<JoinHandle<()>>,
    namer: Arc<Mutex<Namer>>,
}

impl Flight {
    fn start(options: &Options) -> Result<Flight> {
        let started = monotonic_ns();
        let mut session = Session::start(options)?;
        let population = procfs::population();
        session.adopt(&population, Duration::ZERO);
        let waiting = session.look_around();
        Ok(Flight {
            options: options.clone(),
            session,
            started,
            population,
            log: Vec::new(),
            stacks: HashMap::new(),
            functions: HashMap::new(),
            sockets: HashMap::new(),
            forgotten_at: 0,
            losses: Losses::default(),
            waiting,
            open: Vec::new(),
            looked: monotonic_ns(),
            snapshots: 0,
            savers: Vec::new(),
            namer: Arc::default(),
        })
    }

    fn status(&self) -> Status {
        let horizon = self.session.rings.horizon();
        let since = horizon.unwrap_or(self.started);
        Status {
            holds: Duration::from_nanos(monotonic_ns().saturating_sub(since)),
            full: horizon.is_some(),
            snapshots: self.snapshots,
        }
    }

    /// Reads definitions and forgets what the rings have outlived.
    /// With `last`, stacks that wait for unwind tables are waited for.
    fn keep_up(&mut self, last: bool) -> Result<()> {
        let mut definitions = Vec::new();
        self.session.drain_definitions(&mut definitions, last)?;
        definitions.sort_by_key(|definition| definition.ts);
        for Definition { ts, what } in definitions {
            match what {
                What::Stack {
                    id,
                    pid,
                    frames,
                    end,
                } => {
                    self.stacks.entry(pid).or_default().push(KnownStack {
                        id,
                        ts,
                        frames,
                        end,
                    });
                }
                What::Python { pid, .. } => {
                    let functions = self.functions.entry(pid).or_default();
                    functions.push(Definition { ts, what });
                }
                What::Open(_) => self.open.push(Definition { ts, what }),
                What::Socket(ref socket) => {
                    self.sockets.insert(socket.object, Definition { ts, what });
                }
                what => self.log.push(Definition { ts, what }),
            }
        }
        let Some(horizon) = self.session.rings.horizon() else {
            return Ok(());
        };
        let outlived = self
            .log
            .partition_point(|definition| definition.ts < horizon);
        for Definition { what, .. } in self.log.drain(..outlived) {
            if let Some(ended) = self.population.apply(&what) {
                self.stacks.remove(&ended);
                self.functions.remove(&ended);
            }
        }
        if self.forgotten_at > 0 && horizon > self.forgotten_at {
            // Every stack that the rings refer to has been sent since.
            for stacks in self.stacks.values_mut() {
                stacks.retain(|stack| stack.ts >= self.forgotten_at);
            }
            for functions in self.functions.values_mut() {
                functions.retain(|function| function.ts >= self.forgotten_at);
            }
            let forgotten_at = self.forgotten_at;
            self.sockets.retain(|_, socket| socket.ts >= forgotten_at);
            self.forgotten_at = 0;
        }
        let stacks: usize = self.stacks.values().map(Vec::len).sum();
        let functions: usize = self.functions.values().map(Vec::len).sum();
        if self.forgotten_at == 0 && stacks + functions + self.sockets.len() > MOST_STACKS {
            self.forgotten_at = monotonic_ns();
            self.session.forget();
        }
        let saving = self.savers.len();
        self.savers.retain(|saver| !saver.is_finished());
        if self.savers.len() < saving {
            give_back();
        }
        Ok(())
    }

    /// Answers one client.
    fn serve(&mut self, mut client: UnixStream) {
        let mut line = String::new();
        let read = BufReader::new(&client).read_line(&mut line);
        let path = PathBuf::from(line.trim_end_matches('\n'));
        let refused = match read {
            Err(why) if why.kind() == ErrorKind::WouldBlock => return,
            Err(why) => Some(why.to_string()),
            Ok(_) if !path.is_absolute() => Some("the path must be absolute".to_owned()),
            Ok(_) => None,
        };
        let begun = match refused {
            Some(why) => Err(Error::Snapshot(why)),
            None => self.snapshot(&path),
        };
        match begun {
            Ok(save) => {
                self.snapshots += 1;
                self.savers
                    .push(std::thread::spawn(move || answer(&mut client, save())));
            }
            Err(why) => answer(&mut client, Err(why)),
        }
    }

    /// Copies the rings. What is left, to write it all, is given back to be done elsewhere.
    fn snapshot(
        &mut self,
        output: &Path,
    ) -> Result<impl FnOnce() -> Result<Snapshot> + Send + 'static> {
        // Before the rings are copied: whoever waits now and has no event in them has waited since
        // they begin.
        let looked = self.looked;
        self.open.retain(|open| open.ts <= looked);
        let mut pending = Pending {
            events: self.session.look_around(),
            ..Pending::default()
        };
        pending.events.extend_from_slice(&self.waiting);
        self.session.rings.snapshot(&mut pending.events);
        let end = monotonic_ns();
        self.keep_up(true)?;

        // The CPU that was busiest reaches back least: from there on all are complete.
        let first_by_cpu = |cpu| {
            pending
                .events
                .iter()
                .filter(|e| e.cpu == cpu)
                .map(|e| e.ts)
                .min()
        };
        let is_full = self.session.rings.horizon().is_some();
        let start = match is_full {
            true => (0..self.session.cpus as u16).filter_map(first_by_cpu).max(),
            false => None,
        }
        .unwrap_or(self.started);
        pending.events.retain(|event| event.ts >= start);

        let mut meta = describe(&self.session, &self.options, start, Mode::Flight);
        meta.duration_ns = end.saturating_sub(start);
        meta.unwinding = self.session.unwinding();
        let writer = TraceWriter::create(output, meta.clone())?;
        meta.state = RecordingState::Complete;

        let mut world = World::new(start, &self.population);
        pending.definitions.extend(self.log.iter().cloned());
        let functions = self.functions.values().flatten();
        pending.definitions.extend(functions.cloned());
        pending.definitions.extend(self.sockets.values().cloned());
        pending.definitions.extend(self.open.iter().cloned());
        for (&pid, stacks) in &self.stacks {
            pending
                .definitions
                .extend(stacks.iter().map(|stack| Definition {
                    ts: stack.ts,
                    what: What::Stack {
                        id: stack.id,
                        pid,
                        frames: stack.frames.clone(),
                        end: stack.end,
                    },
                }));
        }
        let events = pending.events.len() as u64;
        self.losses
            .look(&self.session, &mut world, end.saturating_sub(start));
        let duration_ns = meta.duration_ns;
        let namer = Arc::clone(&self.namer);
        Ok(move || {
            world.advance(&mut pending, u64::MAX);
            let mut namer = namer.lock().unwrap_or_else(PoisonError::into_inner);
            let tables = world.into_named(&mut namer, |_, _| ());
            drop(namer);
            finish(writer, tables, meta)?;
            Ok(Snapshot {
                events,
                duration_ns,
            })
        })
    }
}

/// Returns to the system what a snapshot took: the allocator would keep it for the next one.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn answer(client: &mut UnixStream, saved: Result<Snapshot>) {
    let line = match saved {
        Ok(snapshot) => format!("ok {} {}", snapshot.events, snapshot.duration_ns),
        Err(why) => format!("error {}", why.to_string().replace('\n', " ")),
    };
    // A client that has gone does not need the answer.
    let _ = writeln!(client, "{line}");
}
