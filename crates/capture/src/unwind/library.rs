//! The unwind tables of files, each built once, on threads of its own, and shared by all processes
//! that map the file. Large files have a thread to themselves: the others do not wait for them.
//!
//! The rows live in the kernel side's array alone, which is what bounds them: where a new table
//! finds no room, neighbours that were used longest ago make it.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hangdog_symbols::Reader;
use hangdog_symbols::place::Place;
use hangdog_symbols::tables;
use hangdog_trace::meta::Unwinding;
use hangdog_unwind::{Row, Rule, Table};

use super::arrays::{Runs, Shared};
use super::layout::{Code, Layouts};
use crate::pace;
use crate::procfs;
use crate::records::RawMapping;
use crate::system::monotonic_ns;
use hangdog_symbols::interpreter::Interpreter;

/// How long a table that had to make room is not built again.
const REST: Duration = Duration::from_secs(10);
/// As `bpf/unwind.h` has them.
const ROWS_MISSING: u64 = 0;
const ROWS_FRAME_POINTER: u64 = 1;
const ROWS_NONE: u64 = 2;

enum State {
    Building,
    Loaded {
        first: u32,
        count: u32,
    },
    /// It has no unwind information.
    FramePointers,
    /// It could not be read, or is not what was mapped.
    Unreadable,
    /// It had to make room.
    Evicted(Instant),
}

/// What is known of the rules at a place.
pub(super) enum Rules {
    Rule(Rule),
    /// They are being made.
    Building,
    /// They cannot be had now.
    Absent,
}

struct Request {
    file: u32,
    path: String,
    /// Where the file may be found, the surest first.
    places: Vec<Place>,
    build_id: String,
    is_interpreter: bool,
    /// Of the mapping, bytes: what building its table takes goes with it.
    size: u64,
    /// It was mapped while the recording went on.
    is_new: bool,
}

struct Built {
    file: u32,
    is_interpreter: bool,
    found: tables::Unwinding,
    interpreter: Option<Interpreter>,
}

pub(super) struct Library {
    rows: Shared<Row>,
    runs: Runs,
    by_name: HashMap<String, u32>,
    files: Vec<State>,
    /// When each file was last mapped or its rules looked up, ns of CLOCK_MONOTONIC.
    last_used: Vec<u64>,
    /// The interpreters whose functions can be told.
    interpreters: HashMap<u32, Interpreter>,
    /// What the builders will work with, until there is something to build: threads that start before
    /// the recorder has given its privileges up would keep them.
    unstarted: Vec<(Receiver<Request>, Sender<Built>)>,
    /// Requests of small files and of large ones.
    requests: [Sender<Request>; 2],
    built: Receiver<Built>,
    building: usize,
    /// How many of them are interpreters by their names.
    building_interpreters: usize,
    /// What was there at the start is known: what is mapped from now on is new.
    has_begun: bool,
    /// What is to be built only when somebody walks through it; none if everything is built at once.
    unwanted: Option<HashMap<u32, Request>>,
    /// Tables that wait for room.
    homeless: Vec<(u32, Vec<Row>)>,
    vdso: Option<(Code, u64)>,
    figures: Unwinding,
}

impl Library {
    /// A library of all files that are mapped or, if `lazy`, of those that walks go through.
    pub(super) fn new(rows: Shared<Row>, lazy: bool) -> Library {
        let (small, of_small) = channel();
        let (large, of_large) = channel();
        let (outgoing, built) = channel();
        Library {
            unstarted: vec![(of_small, outgoing.clone()), (of_large, outgoing)],
            unwanted: lazy.then(HashMap::new),
            ..Library::served_by([small, large], built, rows)
        }
    }

    /// A library whose tables somebody else builds.
    fn served_by(
        requests: [Sender<Request>; 2],
        built: Receiver<Built>,
        rows: Shared<Row>,
    ) -> Library {
        let mut library = Library {
            runs: Runs::new(rows.count()),
            figures: Unwinding {
                memory_limit: (rows.count() * size_of::<Row>()) as u64,
                ..Unwinding::default()
            },
            rows,
            by_name: HashMap::new(),
            files: Vec::new(),
            last_used: Vec::new(),
            interpreters: HashMap::new(),
            unstarted: Vec::new(),
            requests,
            built,
            building: 0,
            building_interpreters: 0,
            has_begun: false,
            unwanted: None,
            homeless: Vec::new(),
            vdso: None,
        };
        library.load_vdso();
        library
    }

    /// The kernel's own code is the same in every process: ours is at hand.
    fn load_vdso(&mut self) {
        let Some(image) = procfs::vdso() else {
            return;
        };
        let Ok(table) = Table::from_image(&image) else {
            return;
        };
        let file = self.files.len() as u32;
        self.files.push(State::Building);
        self.last_used.push(u64::MAX);
        if let Some(state) = self.place(table.rows()) {
            self.files[file as usize] = state;
            self.vdso = Some((Code::File(file), image.len() as u64));
        }
    }

    /// The code of the vdso, mapped at `start`; `None` if there is none.
    pub(super) fn vdso(&self, start: u64) -> Option<(RawMapping, Code)> {
        let (code, length) = self.vdso.filter(|_| start != 0)?;
        let mapping = RawMapping {
            start,
            end: start.checked_add(length)?,
            file_offset: 0,
            path: procfs::VDSO.into(),
            build_id: String::new(),
        };
        Some((mapping, code))
    }

    /// What the rules of a mapping of process `pid` are found by; has them built if they are not.
    pub(super) fn code(&mut self, mapping: &RawMapping, pid: u32) -> Code {
        if mapping.path == procfs::VDSO {
            return self.vdso.map_or(Code::Anonymous, |(code, _)| code);
        }
        if !mapping.is_file() {
            return Code::Anonymous;
        }
        let name = match mapping.build_id.as_str() {
            "" => mapping.path.clone(),
            build_id => build_id.to_owned(),
        };
        let next = self.files.len() as u32;
        let file = *self.by_name.entry(name).or_insert(next);
        let wanted = if file == next {
            self.files.push(State::Building);
            self.last_used.push(0);
            true
        } else {
            // One more process has it: worth another try, if not at once.
            match self.files[file as usize] {
                State::Evicted(since) => since.elapsed() >= REST,
                _ => false,
            }
        };
        self.last_used[file as usize] = monotonic_ns();
        if wanted {
            self.files[file as usize] = State::Building;
            let request = Request {
                file,
                path: mapping.path.clone(),
                places: vec![
                    procfs::mapped_file(pid, mapping),
                    Place::Path(mapping.path.clone().into()),
                ],
                build_id: mapping.build_id.clone(),
                is_interpreter: names_interpreter(&mapping.path),
                size: mapping.end.saturating_sub(mapping.start),
                is_new: self.has_begun,
            };
            // What interpreters there are must be known before stacks are copied.
            match &mut self.unwanted {
                Some(unwanted) if !request.is_interpreter => {
                    unwanted.insert(file, request);
                }
                _ => self.request(request),
            }
        }
        Code::File(file)
    }

    fn request(&mut self, request: Request) {
        for (requests, results) in self.unstarted.drain(..) {
            std::thread::spawn(move || build_all(requests, results));
        }
        self.building_interpreters += usize::from(request.is_interpreter);
        let is_large = request.size >= LARGE && !request.is_interpreter;
        // Even if nobody takes it: what comes of it tells then that nobody builds.
        let _ = self.requests[usize::from(is_large)].send(request);
        self.building += 1;
    }

    /// A walk goes through `code`, whose rules are not there.
    pub(super) fn want(&mut self, code: Code) {
        if let (Code::File(file), Some(unwanted)) = (code, &mut self.unwanted)
            && let Some(request) = unwanted.remove(&file)
        {
            self.request(request);
        }
    }

    /// What was there at the start has been mapped.
    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Whether tables are being built or wait for room.
    pub(super) fn is_busy(&self) -> bool {
        self.building > 0 || !self.homeless.is_empty()
    }

    /// Whether an interpreter is among what is being built, by its name.
    pub(super) fn awaits_interpreter(&self) -> bool {
        self.building_interpreters > 0
    }

    /// Loads what has been built, waiting up to `patience` for the first. Returns the code whose
    /// rules have moved.
    pub(super) fn take_built(&mut self, patience: Duration, layouts: &Layouts) -> HashSet<Code> {
        let mut changed = HashSet::new();
        self.runs.tick();
        let mut next = match self.building {
            0 => None,
            _ => match self.built.recv_timeout(patience) {
                Ok(built) => Some(built),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.give_up_building(&mut changed);
                    None
                }
            },
        };
        while let Some(Built {
            file,
            is_interpreter,
            found,
            interpreter,
        }) = next
        {
            self.building -= 1;
            self.building_interpreters -= usize::from(is_interpreter);
            match interpreter {
                Some(Interpreter::Unknown) => self.figures.unread_interpreters += 1,
                Some(known) => {
                    self.interpreters.insert(file, known);
                }
                None => {}
            }
            match found {
                tables::Unwinding::Rows(rows) if !rows.is_empty() => {
                    self.homeless.push((file, rows));
                }
                tables::Unwinding::Rows(_) | tables::Unwinding::NoTable => {
                    self.settle(file, State::FramePointers, &mut changed);
                }
                tables::Unwinding::Nothing => {
                    self.figures.unreadable_files += 1;
                    self.settle(file, State::Unreadable, &mut changed);
                }
            }
            next = self.built.try_recv().ok();
        }
        for (file, rows) in std::mem::take(&mut self.homeless) {
            if let Some(state) = self.place(&rows) {
                self.settle(file, state, &mut changed);
            } else if rows.len() <= self.rows.count()
                && (self.runs.is_resting() || self.make_room(rows.len(), layouts, &mut changed))
            {
                // What was evicted is free only when the kernel side has surely left it.
                self.homeless.push((file, rows));
            } else {
                self.figures.evicted += 1;
                self.settle(file, State::Evicted(Instant::now()), &mut changed);
            }
        }
        changed
    }

    /// Nobody builds any more: what is not there will not come.
    fn give_up_building(&mut self, changed: &mut HashSet<Code>) {
        self.building = 0;
        self.building_interpreters = 0;
        for file in 0..self.files.len() as u32 {
            let is_homeless = self.homeless.iter().any(|(homeless, _)| *homeless == file);
            if matches!(self.files[file as usize], State::Building) && !is_homeless {
                self.figures.unreadable_files += 1;
                self.settle(file, State::Unreadable, changed);
            }
        }
    }

    fn settle(&mut self, file: u32, state: State, changed: &mut HashSet<Code>) {
        self.files[file as usize] = state;
        changed.insert(Code::File(file));
    }

    fn place(&mut self, rows: &[Row]) -> Option<State> {
        let count = u32::try_from(rows.len()).ok()?;
        let first = self.runs.take(count)?;
        self.rows.fill(first as usize, rows);
        self.figures.files += 1;
        self.figures.memory += memory(count);
        Some(State::Loaded { first, count })
    }

    /// Has neighbours make room for `count` rows: those of which the one used last was used longest
    /// ago. `false` if there are none.
    fn make_room(&mut self, count: usize, layouts: &Layouts, changed: &mut HashSet<Code>) -> bool {
        for (code, used) in layouts.last_uses() {
            if let Code::File(file) = code {
                let last = &mut self.last_used[file as usize];
                *last = used.max(*last);
            }
        }
        let Some(evicted) = self.cheapest_neighbours(count) else {
            return false;
        };
        for file in evicted {
            if let State::Loaded { first, count } = self.files[file as usize] {
                self.runs.retire(first, count);
                self.figures.memory -= memory(count);
            }
            self.figures.evicted += 1;
            self.settle(file, State::Evicted(Instant::now()), changed);
        }
        true
    }

    /// Files that lie side by side and leave room for `count` rows when they go.
    fn cheapest_neighbours(&self, count: usize) -> Option<Vec<u32>> {
        let mut loaded: Vec<(u32, u32, u32)> = self
            .files
            .iter()
            .zip(0..)
            .filter_map(|(state, file)| match *state {
                State::Loaded { first, count } => Some((first, count, file)),
                _ => None,
            })
            .collect();
        loaded.sort_unstable();
        let used = |at: usize| self.last_used[loaded[at].2 as usize];
        let (mut best, mut best_used) = (None, u64::MAX);
        for from in 0..loaded.len() {
            let begin = match from {
                0 => 0,
                _ => loaded[from - 1].0 + loaded[from - 1].1,
            };
            let mut latest = 0;
            for to in from..loaded.len() {
                latest = used(to).max(latest);
                let end = loaded
                    .get(to + 1)
                    .map_or(self.rows.count() as u32, |next| next.0);
                if latest >= best_used || (end - begin) as usize >= count {
                    if latest < best_used {
                        (best, best_used) = (Some(from..to + 1), latest);
                    }
                    break;
                }
            }
        }
        Some(loaded[best?].iter().map(|&(_, _, file)| file).collect())
    }

    /// How the kernel side finds the rules of `code`.
    pub(super) fn rows_word(&self, code: Code) -> u64 {
        match code {
            Code::Anonymous => ROWS_FRAME_POINTER,
            Code::File(file) => match self.files[file as usize] {
                State::Building | State::Evicted(_) => ROWS_MISSING,
                State::Loaded { first, count } => u64::from(first) | u64::from(count) << 32,
                State::FramePointers => ROWS_FRAME_POINTER,
                State::Unreadable => ROWS_NONE,
            },
        }
    }

    /// The interpreter that `code` is, if its functions can be told.
    pub(super) fn interpreter(&self, code: Code) -> Option<Interpreter> {
        match code {
            Code::Anonymous => None,
            Code::File(file) => self.interpreters.get(&file).copied(),
        }
    }

    /// The rule at an offset of `code`.
    pub(super) fn rule(&self, code: Code, offset: u64) -> Rules {
        Rules::Rule(match code {
            Code::Anonymous => Rule::FRAME_POINTER,
            Code::File(file) => match self.files[file as usize] {
                State::Building => return Rules::Building,
                State::Evicted(_) | State::Unreadable => return Rules::Absent,
                State::FramePointers => Rule::FRAME_POINTER,
                State::Loaded { first, count } => {
                    let rows = self.rows.slice(first as usize, count as usize);
                    let at = rows.partition_point(|row| u64::from(row.pc) <= offset);
                    rows[..at].last().map_or(Rule::NONE, |row| row.rule)
                }
            },
        })
    }

    pub(super) fn figures(&self) -> Unwinding {
        self.figures
    }
}

/// Of so many rows, bytes.
fn memory(rows: u32) -> u64 {
    u64::from(rows) * size_of::<Row>() as u64
}

/// Whether a file may be an interpreter, by its name, which may be wrong either way: it is built first.
/// Extension modules have a Python's name in their directory only.
fn names_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    const STARTS: [&str; 9] = [
        "python",
        "libpython",
        "libjvm.so",
        "libnode.so",
        "libruby",
        "php",
        "libphp",
        "perl",
        "libperl",
    ];
    STARTS.iter().any(|start| name.starts_with(start)) || name == "node"
}

/// Files with more code than this are large, bytes: their tables take up to a second on a busy machine.
const LARGE: u64 = 16 << 20;

/// What is built next. Interpreters come first: their functions can only be read while the threads that
/// wait in them still do. What was mapped last runs now, and may be gone soon; of what was there at the
/// start the smallest come first, since most stacks lie in small files.
fn next_of(wanted: &mut Vec<Request>) -> Option<Request> {
    let key = |request: &Request| {
        let size = if request.is_new { 0 } else { request.size };
        (request.is_interpreter, std::cmp::Reverse(size))
    };
    let (at, _) = (wanted.iter().enumerate()).max_by_key(|(_, request)| key(request))?;
    Some(wanted.remove(at))
}

/// Builds tables until nobody wants any.
fn build_all(requests: Receiver<Request>, results: Sender<Built>) {
    // Stacks of a new program are copied, without its interpreter's functions, until its tables are there.
    pace::like_any_other();
    let mut reader = Reader::default();
    let mut wanted: Vec<Request> = Vec::new();
    loop {
        wanted.extend(requests.try_iter());
        let Some(Request {
            file,
            path,
            places,
            build_id,
            is_interpreter,
            ..
        }) = next_of(&mut wanted).or_else(|| requests.recv().ok())
        else {
            return;
        };
        let (found, interpreter) = reader.unwinding(&path, &places, &build_id);
        let built = Built {
            file,
            is_interpreter,
            found,
            interpreter,
        };
        if results.send(built).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    fn shared<T: Copy>(count: usize) -> Shared<T> {
        // SAFETY: the name ends with 0, and the descriptor that comes back is nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"rows".as_ptr(), 0)) };
        let file = std::fs::File::from(file);
        file.set_len((count * size_of::<T>()) as u64).expect("room");
        Shared::map(file.as_fd(), count).expect("a mapping")
    }

    #[test]
    fn interpreters_are_told_by_their_files_names() {
        for path in [
            "/usr/bin/python3.11",
            "/opt/lib/libpython3.12.so.1.0",
            "/usr/lib/jvm/lib/server/libjvm.so",
            "/usr/bin/node",
            "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2",
            "/usr/sbin/php-fpm8.2",
            "/usr/bin/perl",
        ] {
            assert!(names_interpreter(path), "{path}");
        }
        for path in ["/usr/lib/python3.11/lib-dynload/_queue.so", "/usr/bin/app"] {
            assert!(!names_interpreter(path), "{path}");
        }
    }

    /// Interpreters come first, then what is new, the last of it first, then what was there by its size.
    #[test]
    fn what_runs_now_is_built_first() {
        let request = |path: &str, size, is_new| Request {
            file: 0,
            path: path.into(),
            places: Vec::new(),
            build_id: String::new(),
            is_interpreter: names_interpreter(path),
            size,
            is_new,
        };
        let mut wanted = vec![
            request("/usr/bin/large", 20 << 20, false),
            request("/lib/libc.so.6", 2 << 20, false),
            request("/lib/libm.so.6", 1 << 20, false),
            request("/usr/bin/python3.11", 3 << 20, false),
            request("/bin/first", 4 << 20, true),
            request("/bin/second", 8 << 20, true),
        ];
        let order: Vec<String> =
            std::iter::from_fn(|| next_of(&mut wanted).map(|request| request.path)).collect();
        let expected = [
            "/usr/bin/python3.11",
            "/bin/second",
            "/bin/first",
            "/lib/libm.so.6",
            "/lib/libc.so.6",
            "/usr/bin/large",
        ];
        assert_eq!(order, expected);
    }

    /// When nobody builds tables any more, a file that waits for one is settled without, and nothing
    /// is waited for.
    #[test]
    fn a_builder_that_died_keeps_nobody_waiting() {
        let requests = [channel().0, channel().0];
        let (_, built) = channel();
        let mut library = Library::served_by(requests, built, shared(1 << 16));
        let layouts = Layouts::new(shared(16));
        let mapping = RawMapping {
            start: 0x1000,
            end: 0x2000,
            file_offset: 0,
            path: "/file".into(),
            build_id: String::new(),
        };
        let code = library.code(&mapping, 1);
        assert!(library.is_busy() && matches!(library.rule(code, 0), Rules::Building));
        let changed = library.take_built(Duration::from_secs(60), &layouts);
        assert!(changed.contains(&code) && !library.is_busy());
        assert!(matches!(library.rule(code, 0), Rules::Absent));
    }
}
