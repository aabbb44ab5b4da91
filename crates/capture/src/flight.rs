//! The flight recorder: records continuously into overwritten rings, and saves them on request.
//!
//! Events stay in the kernel's rings; only definitions are read. Those that the rings have
//! outlived are folded into a [`Population`], so that memory does not grow with time: what is kept
//! is who lives now, and what happened since the rings begin. A snapshot copies the rings while
//! they are written, and is put on disk by a thread of its own: recording continues.
//!
//! A snapshot is asked for over a unix socket that only its owner can open: the client writes one
//! line, the path of the trace to make, and reads one line, `ok ...` or `error ...`. Before the path
//! may stand the ids of the user and group that it is for, as `1000 1000 /home/ann/slow.hang`: sudo
//! told them to the client.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hangdog_symbols::{Namer, helper};
use hangdog_trace::meta::{Marking, Mode, RecordingState};
use hangdog_trace::words::{LimitKind, LossKind, StackEnd};
use hangdog_trace::{Owner, TraceWriter};

use crate::error::{Error, Result};
use crate::event::Event;
use crate::marks::{Followed, Followers, Marks};
use crate::owner::asked_by;
use crate::population::Population;
use crate::privileges::{self, Recorder};
use crate::procfs;
use crate::record::{Losses, describe, marking, unread_files};
use crate::records::{Definition, What};
use crate::save::finish;
use crate::session::{Options, Session};
use crate::system::{monotonic_ns, stop_asked, stop_on_signals};
use crate::waiting::pass_on_holders;
use crate::world::{Pending, World};

/// What a running flight recorder says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// How far back the rings reach on every CPU.
    pub holds: Duration,
    /// Whether the rings have wrapped around: before that, they hold all since the start.
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
/// So many stacks, Python functions, sockets and areas of memory are kept; beyond it those that are no
/// longer met are forgotten.
const MOST_STACKS: usize = 300_000;
/// How long a client may take to write its line.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);
/// No line is longer, bytes: a path, and two numbers.
const LONGEST_LINE: u64 = 8192;

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

/// The callbacks of a running flight recorder.
pub struct Listeners<'a> {
    /// Called once privileges have been given up: threads that it starts have no more than the recorder.
    pub begun: Box<dyn FnOnce() -> std::io::Result<()> + 'a>,
    /// Called with the recorder's status some fifty times a second.
    pub status: Box<dyn FnMut(Status) + 'a>,
    /// Names of marks, or their codes in digits, that `followed` gets.
    pub names: &'a [String],
    /// Called for each mark of these names, in the order of time.
    pub followed: Box<dyn FnMut(Followed) + 'a>,
}

/// Records until a signal asks to stop.
///
/// # Errors
/// If the kernel does not let us record, or a flight recorder listens at `socket` already.
pub fn fly(options: &Options, socket: &Path, mut listeners: Listeners<'_>) -> Result<()> {
    stop_on_signals().map_err(|cause| Error::system("handle signals", cause))?;
    privileges::check_namespace()?;
    // Those who read files come from a process that still has all privileges; without it names are
    // missing, and traces say so.
    let _ = helper::start();
    let listener = Listener::bind(socket)?;
    let mut flight = Flight::start(options)?;
    (listeners.begun)().map_err(|cause| Error::system("start a thread", cause))?;
    let mut followers = Followers::of(listeners.names);
    while !stop_asked() {
        std::thread::sleep(PERIOD);
        flight.session.look_at_limits_if_due();
        flight.keep_up(false)?;
        if let Some(client) = listener.accept() {
            flight.serve(client);
        }
        followers.follow(&mut flight.marks, &mut listeners.followed);
        (listeners.status)(flight.status());
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
    let absent = |cause: std::io::Error| match cause.kind() {
        ErrorKind::PermissionDenied => Error::NotAllowed {
            path: socket.to_owned(),
        },
        _ => Error::NoFlight {
            path: socket.to_owned(),
        },
    };
    let output = std::path::absolute(output)
        .map_err(|cause| Error::system("find the current folder", cause))?;
    let path = output.to_str().filter(|path| !path.contains('\n'));
    let path = path.ok_or_else(|| Error::Snapshot("the path is not plain text".into()))?;
    let mut stream = UnixStream::connect(socket).map_err(absent)?;
    let request = Order {
        path,
        owner: asked_by(),
    };
    writeln!(stream, "{request}").map_err(absent)?;
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST_LINE))
        .read_line(&mut answer)
        .map_err(absent)?;
    answered(answer.trim_end())
}

/// What the recorder's line says.
pub(crate) fn answered(line: &str) -> Result<Snapshot> {
    if let Some(numbers) = line.strip_prefix("ok ") {
        let mut numbers = numbers.split(' ').filter_map(|number| number.parse().ok());
        if let (Some(events), Some(duration_ns)) = (numbers.next(), numbers.next()) {
            return Ok(Snapshot {
                events,
                duration_ns,
            });
        }
    }
    let reason = line
        .strip_prefix("error ")
        .unwrap_or("it ended in the middle");
    Err(Error::Snapshot(reason.to_owned()))
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order<'a> {
    path: &'a str,
    owner: Option<Owner>,
}

impl std::fmt::Display for Order<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(Owner { user, group }) = self.owner {
            write!(f, "{user} {group} ")?;
        }
        f.write_str(self.path)
    }
}

impl<'a> Order<'a> {
    /// Reads a client's line; none if it is no order.
    pub(crate) fn parse(line: &'a str) -> Option<Order<'a>> {
        let path = line.find('/').and_then(|at| line.get(at..))?;
        let mut ids = line.strip_suffix(path)?.split_terminator(' ');
        let owner = match (ids.next(), ids.next(), ids.next()) {
            (None, ..) => None,
            (Some(user), Some(group), None) => Some(Owner {
                user: user.parse().ok()?,
                group: group.parse().ok()?,
            }),
            _ => return None,
        };
        Some(Order { path, owner })
    }
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
            fs::create_dir_all(folder).map_err(|cause| Error::system(doing(), cause))?;
            let owner_only = fs::Permissions::from_mode(0o700);
            fs::set_permissions(folder, owner_only)
                .map_err(|cause| Error::system(doing(), cause))?;
        }
        // Nobody answers at it: what is left of one that was killed.
        let _ = fs::remove_file(path);
        // SAFETY: umask only changes this process's mask; no other thread makes files yet.
        let before = unsafe { libc::umask(0o177) };
        let socket = UnixListener::bind(path);
        // SAFETY: as above.
        unsafe { libc::umask(before) };
        let socket = socket.map_err(|cause| Error::system(doing(), cause))?;
        socket
            .set_nonblocking(true)
            .map_err(|cause| Error::system(doing(), cause))?;
        Ok(Listener {
            socket,
            path: path.to_owned(),
        })
    }

    fn accept(&self) -> Option<UnixStream> {
        let (stream, _) = self.socket.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
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
    /// Files and areas of memory, by what they are told by: device and inode; process, first and last.
    memory: HashMap<(u64, u64, u64), Definition>,
    /// When the kernel side was last told to send every stack anew.
    forgotten_at: u64,
    /// Definitions that went missing: said in every snapshot from then on.
    losses: Losses,
    marks: Marks,
    /// Who waited when it began.
    waiting: Vec<Event>,
    /// What was open then, and when the last snapshot was made.
    open: Vec<Definition>,
    /// The limits of control groups, by process and what they limit: of memory as they were when the group had most.
    limits: HashMap<u32, HashMap<(u8, String), Definition>>,
    /// When that first look was over.
    looked: u64,
    /// Snapshots that are on disk.
    snapshots: Arc<AtomicU64>,
    savers: Vec<JoinHandle<()>>,
    namer: Arc<Mutex<Namer>>,
}

impl Flight {
    fn start(options: &Options) -> Result<Flight> {
        let mut session = Session::start(options)?;
        let started = session.begun;
        privileges::give_up(Recorder::Flight)?;
        session.find_markers()?;
        let found = session.look_around();
        let looked = monotonic_ns();
        let population = procfs::population();
        session.adopt(&population, Duration::ZERO);
        let mut marks = Marks::new(started);
        marks.adopt(population.processes.keys());
        let waiting = session.take_in(found);
        Ok(Flight {
            options: options.clone(),
            session,
            started,
            population,
            log: Vec::new(),
            stacks: HashMap::new(),
            functions: HashMap::new(),
            sockets: HashMap::new(),
            memory: HashMap::new(),
            forgotten_at: 0,
            losses: Losses::default(),
            marks,
            waiting,
            open: Vec::new(),
            limits: HashMap::new(),
            looked,
            snapshots: Arc::default(),
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
            snapshots: self.snapshots.load(Relaxed),
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
                What::Function { pid, .. } => {
                    let functions = self.functions.entry(pid).or_default();
                    functions.push(Definition { ts, what });
                }
                // Who has no files left is looked for again and again: each look is an event.
                What::Limit(ref limit) if limit.kind == LimitKind::Descriptors => {
                    self.log.push(Definition { ts, what });
                }
                // A process may have ended by the next snapshot, so that no look finds its limits then.
                What::Limit(ref limit) => {
                    let limits = self.limits.entry(limit.pid).or_default();
                    let of = limit.of();
                    let had_more = limits.get(&of).is_some_and(|known| match &known.what {
                        What::Limit(known) => known.limit == limit.limit && known.used > limit.used,
                        _ => false,
                    });
                    if !had_more {
                        limits.insert(of, Definition { ts, what });
                    }
                }
                What::Open(_) => self.open.push(Definition { ts, what }),
                What::Socket(ref socket) => {
                    self.sockets.insert(socket.object, Definition { ts, what });
                }
                What::File(ref file) => {
                    let key = (u64::from(file.device), file.inode, 0);
                    self.memory.insert(key, Definition { ts, what });
                }
                What::Area(ref area) => {
                    let key = (u64::from(area.pid), area.start, area.end);
                    self.memory.insert(key, Definition { ts, what });
                }
                what => self.log.push(Definition { ts, what }),
            }
        }
        let markers = self.session.take_markers();
        self.marks.hear(markers);
        let horizon = self.session.rings.horizon();
        self.marks.glance(horizon.unwrap_or(self.started));
        let Some(horizon) = horizon else {
            return Ok(());
        };
        let outlived = self
            .log
            .partition_point(|definition| definition.ts < horizon);
        for Definition { what, .. } in self.log.drain(..outlived) {
            if let Some(ended) = self.population.apply(&what) {
                self.stacks.remove(&ended);
                self.functions.remove(&ended);
                self.limits.remove(&ended);
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
            self.memory.retain(|_, known| known.ts >= forgotten_at);
            self.forgotten_at = 0;
        }
        let stacks: usize = self.stacks.values().map(Vec::len).sum();
        let functions: usize = self.functions.values().map(Vec::len).sum();
        if self.forgotten_at == 0
            && stacks + functions + self.sockets.len() + self.memory.len() > MOST_STACKS
        {
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
        let line = match read_line(&client, CLIENT_PATIENCE) {
            Err(why) if why.kind() == ErrorKind::WouldBlock => return,
            read => read.map_err(|why| why.to_string()),
        };
        let order = line.as_deref().map_err(String::clone).and_then(|line| {
            Order::parse(line).ok_or_else(|| "the path must be absolute".to_owned())
        });
        let begun = match order {
            Err(why) => Err(Error::Snapshot(why)),
            Ok(order) => self.snapshot(order),
        };
        match begun {
            Ok(save) => {
                let snapshots = Arc::clone(&self.snapshots);
                self.savers.push(std::thread::spawn(move || {
                    let saved = save();
                    if saved.is_ok() {
                        snapshots.fetch_add(1, Relaxed);
                    }
                    answer(&mut client, saved);
                }));
            }
            Err(why) => answer(&mut client, Err(why)),
        }
    }

    /// Copies the rings. What is left, to write it all, is given back to be done elsewhere.
    fn snapshot(
        &mut self,
        order: Order<'_>,
    ) -> Result<impl FnOnce() -> Result<Snapshot> + Send + use<>> {
        // Before the rings are copied: whoever waits now and has no event in them has waited since
        // they begin.
        let looked = self.looked;
        self.open.retain(|open| open.ts <= looked);
        let found = self.session.look_around();
        let mut pending = Pending {
            events: self.session.take_in(found),
            ..Pending::default()
        };
        pending.events.extend(self.session.look_at_tasks());
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
        pass_on_holders(&mut pending.events);
        self.marks.snapshot(start, &mut pending.marks);

        let mut meta = describe(&self.session, &self.options, start, Mode::Flight);
        meta.duration_ns = end.saturating_sub(start);
        meta.unwinding = self.session.unwinding();
        let writer = TraceWriter::create_for(order.path, meta.clone(), order.owner)?;
        meta.state = RecordingState::Complete;

        let mut world = World::new(start, &self.population);
        world.probe(self.marks.of_probes(&self.options.probes));
        pending.definitions.extend(self.log.iter().cloned());
        let functions = self.functions.values().flatten();
        pending.definitions.extend(functions.cloned());
        pending.definitions.extend(self.sockets.values().cloned());
        pending.definitions.extend(self.memory.values().cloned());
        pending.definitions.extend(self.open.iter().cloned());
        let limits = self.limits.values().flat_map(HashMap::values);
        pending.definitions.extend(limits.cloned());
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
        self.marks.write_names(&mut 0, &mut world.tables.mark_names);
        let overwritten = self.marks.figures().overwritten;
        self.losses.note(
            &mut world,
            0,
            u16::MAX,
            LossKind::OverwrittenMarks,
            overwritten,
        );
        let figures = self.marks.figures();
        self.losses
            .look_at_marks(figures, &mut world, end.saturating_sub(start));
        let duration_ns = meta.duration_ns;
        let namer = Arc::clone(&self.namer);
        Ok(move || {
            world.advance(&mut pending, u64::MAX);
            world.note_titles(end);
            let strange = world.strange_marks;
            Losses::default().note(&mut world, 0, u16::MAX, LossKind::Marks, strange);
            meta.marks = Some(marking(figures, &world)).filter(|it| *it != Marking::default());
            let mut namer = namer.lock().unwrap_or_else(PoisonError::into_inner);
            let tables = world.into_named(&mut namer, |_, _| ());
            drop(namer);
            meta.unread = unread_files();
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

/// A client's line, without its end. All of it must come in so long, since nothing else is done
/// meanwhile; a client that ends, ends its line.
fn read_line(mut client: &UnixStream, patience: Duration) -> io::Result<String> {
    let end = Instant::now() + patience;
    let mut line = Vec::new();
    let mut piece = [0; 512];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        client.set_read_timeout(Some(left))?;
        let read = match client.read(&mut piece) {
            Err(why) if why.kind() == ErrorKind::Interrupted => continue,
            read => &piece[..read?],
        };
        let length = read.iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&read[..length.unwrap_or(read.len())]);
        if line.len() as u64 > LONGEST_LINE {
            return Err(io::Error::other("the line is too long"));
        }
        if length.is_some() || read.is_empty() {
            return String::from_utf8(line).map_err(|_| io::Error::other("the line is no text"));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client's line is read whole, also if it comes in pieces. One without an end is refused before it
    /// fills the memory, and who writes it slowly is not waited for.
    #[test]
    fn lines_have_limits() {
        const LONG: Duration = Duration::from_secs(60);
        let read = |text: &'static [u8], patience: Duration, pause: Duration| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let writer = std::thread::spawn(move || {
                for piece in text.chunks(1 + text.len() / 50) {
                    std::thread::sleep(pause);
                    // Whoever is refused is not listened to.
                    let _ = theirs.write_all(piece);
                }
            });
            let read = read_line(&ours, patience);
            drop(ours);
            writer.join().unwrap();
            read
        };
        assert_eq!(read(b"/a b\n/c", LONG, Duration::ZERO).unwrap(), "/a b");
        assert_eq!(read(b"/a b", LONG, Duration::ZERO).unwrap(), "/a b");
        assert!(read(&[b'/'; 1 << 20], LONG, Duration::ZERO).is_err());
        assert!(read(b"\xff\n", LONG, Duration::ZERO).is_err());
        let slow = read(
            &[b'/'; 50],
            Duration::from_millis(50),
            Duration::from_millis(10),
        );
        assert_eq!(slow.unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    /// What a client writes is what the recorder reads, and anything else is no order.
    #[test]
    fn orders() {
        let owner = Owner {
            user: 1000,
            group: 7,
        };
        for (path, owner) in [
            ("/a b/c.hang", None),
            ("/a b/1 2 /c.hang", Some(owner)),
            ("/", Some(owner)),
        ] {
            let order = Order { path, owner };
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
        for line in [
            "", "t.hang", "1 /t", "1 x /t", "1 2 3 /t", "-1 2 /t", "t/x", " /t",
        ] {
            assert_eq!(Order::parse(line), None, "{line:?}");
        }
    }
}
