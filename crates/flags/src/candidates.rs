//! Which of the loads that decide a loop can be a flag that another thread sets.

use std::fs;
use std::io;

use crate::address_space::{Map, Memory, maps};
use crate::flow::{INSTRUCTION_BYTES, Load, Until, rounds};
use crate::registers::Step;
use crate::step::{self, Limits};

/// Memory that may be the flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its address.
    pub address: u64,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// What it holds.
    pub value: u64,
    /// The instruction that loads it.
    pub instruction: u64,
    /// What ends the loop, where the loop compares it with a constant.
    pub until: Option<Until>,
    /// Whether it lies on the thread's own stack.
    pub on_stack: bool,
    /// Whether it is loaded in a system library.
    pub in_library: bool,
}

/// What a thread's loop looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The best first.
    pub candidates: Vec<Candidate>,
    /// How many of them are as good as the first: the flag is among these.
    pub equals: usize,
    /// The system calls whose results may decide as well, by number: it may wait for a file.
    pub calls: Vec<u64>,
    /// The system calls of a round, by number.
    pub naps: Vec<u64>,
    /// Rounds that were seen.
    pub rounds: usize,
}

/// Why no flag was found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// The thread cannot be stepped.
    #[error("cannot step thread {tid}: {cause}{}", hint(cause))]
    Step {
        /// The thread.
        tid: u32,
        /// What the system said.
        cause: io::Error,
    },
    /// It is a thread of an interpreter.
    #[error(
        "{program} runs interpreted code: its flag is a field of an object, which is reached in a new \
         way each time; no breakpoint can have it"
    )]
    Interpreter {
        /// The program.
        program: String,
    },
    /// It does not come back to where it was.
    #[error("no loop was seen in {steps} instructions: it does more in a round, or it is no loop")]
    NoLoop {
        /// Instructions that were seen.
        steps: usize,
    },
    /// It looks at what the kernel answers: for a file, perhaps.
    #[error("its loop looks at what system calls return")]
    Calls {
        /// These, by number.
        numbers: Vec<u64>,
    },
    /// It looks at nothing that another thread can change.
    #[error("nothing that another thread could change decides its loop")]
    Nothing,
    /// Only x86-64 is understood.
    #[error("flags are found on x86-64 only")]
    Machine,
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EPERM) => " (another user's, or a debugger has it, or kernel.yama.ptrace_scope)",
        Some(libc::ESRCH) => " (it has ended)",
        _ => "",
    }
}

/// sched_yield, nanosleep, futex, clock_gettime, clock_nanosleep.
const NAPS: [u64; 5] = [24, 35, 202, 228, 230];
/// Around where fs begins, the C library keeps a thread's descriptor, and its variables of its own.
const OWN_BYTES: u64 = 0x1000;
/// Programs whose code is no machine code of their own.
const INTERPRETERS: [&str; 6] = ["python", "perl", "ruby", "node", "java", "lua"];

/// Looks for the flag that thread `tid` of process `pid` waits for. The thread is stepped meanwhile.
///
/// # Errors
/// Why there is none.
pub fn find(pid: u32, tid: u32, limits: Limits) -> Result<Found, NotFound> {
    if !cfg!(target_arch = "x86_64") {
        return Err(NotFound::Machine);
    }
    if let Some(program) = interpreter(pid) {
        return Err(NotFound::Interpreter { program });
    }
    let steps = step::record(tid, limits).map_err(|cause| NotFound::Step { tid, cause })?;
    let memory = Memory::of(pid).map_err(|cause| NotFound::Step { tid, cause })?;
    let code = |address| memory.read(address, INSTRUCTION_BYTES);
    let rounds = rounds(&steps, code).ok_or(NotFound::NoLoop { steps: steps.len() })?;
    let maps = maps(pid);
    let last = steps.last().copied().unwrap_or_default();
    let mut candidates: Vec<(u32, Candidate)> = (rounds.loads.iter())
        .filter_map(|load| judge(load, &maps, &last, &memory))
        .collect();
    candidates.sort_by_key(|(rank, _)| *rank);
    // That a nap ended as it should is looked at in most loops.
    let mut calls = rounds.calls;
    calls.retain(|call| !NAPS.contains(call));
    let Some(&(best, _)) = candidates.first() else {
        return Err(match calls.is_empty() {
            true => NotFound::Nothing,
            false => NotFound::Calls { numbers: calls },
        });
    };
    Ok(Found {
        equals: candidates.iter().filter(|(rank, _)| *rank == best).count(),
        candidates: candidates.into_iter().map(|(_, it)| it).collect(),
        calls,
        naps: rounds.naps,
        rounds: rounds.count,
    })
}

/// A load with its rank, the best 0; none if no other thread writes there.
fn judge(load: &Load, maps: &[Map], step: &Step, memory: &Memory) -> Option<(u32, Candidate)> {
    let at = |address: u64| {
        maps.iter()
            .find(|map| (map.start..map.end).contains(&address))
    };
    let place = at(load.address)?;
    // Constants, the clock's page, and what a thread keeps for itself, however it is addressed.
    let is_own = load.own || load.address.abs_diff(step.fs) < OWN_BYTES;
    if is_own || place.path.starts_with("[vvar") || !place.may_change() {
        return None;
    }
    let size = load.size.next_power_of_two();
    if !load.address.is_multiple_of(u64::from(size)) || size != load.size {
        return None;
    }
    let on_stack = at(step.sp()).is_some_and(|stack| stack == place);
    let code = at(load.instruction);
    let in_library = code.is_some_and(Map::is_system_library);
    // What the C library keeps of its own.
    if in_library && owner(maps, load.address).is_some_and(Map::is_system_library) {
        return None;
    }
    let mut bytes = memory.read(load.address, size.into());
    bytes.resize(8, 0);
    let value = u64::from_le_bytes(bytes.try_into().ok()?);
    // A thread that sees its flag as it waits for does not wait for it.
    let holds = load.until.is_some_and(|until| until.holds(value));
    let rank = match (load.atomic, on_stack, in_library) {
        _ if holds => 4,
        (true, _, false) => 0,
        (false, false, false) => 0,
        (_, true, false) => 2,
        (_, _, true) => 3,
    };
    let candidate = Candidate {
        address: load.address,
        size,
        value,
        instruction: load.instruction,
        until: load.until,
        on_stack,
        in_library,
    };
    Some((rank, candidate))
}

/// The mapping of the file that memory belongs to: what has no file and follows a file's, without a gap,
/// is the file's zeroed data.
fn owner(maps: &[Map], address: u64) -> Option<&Map> {
    let at = maps
        .iter()
        .position(|map| (map.start..map.end).contains(&address))?;
    let mut start = maps[at].start;
    for map in maps[..=at].iter().rev() {
        if map.end != start && map.start != start {
            return None;
        }
        if !map.path.is_empty() {
            return Some(map);
        }
        start = map.start;
    }
    None
}

/// The interpreter that a process is, by its program's name.
fn interpreter(pid: u32) -> Option<String> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = program.file_name()?.to_str()?.to_owned();
    let is_one = INTERPRETERS.iter().any(|it| {
        let rest = name.strip_prefix(it);
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    });
    is_one.then_some(name)
}
