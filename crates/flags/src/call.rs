//! One call of a function, step by step, with what each instruction loaded.
//!
//! All threads of the process are traced until one of them comes to the function, at which a
//! breakpoint of the CPU stops it; the others are let go then, and this one is stepped until it
//! returns. Threads that begin meanwhile have tracer and breakpoint from the thread that makes them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use serde::{Deserialize, Serialize};

use crate::address_space::{Map, Memory, maps};
use crate::breakpoint;
use crate::executed::execute;
use crate::flow::INSTRUCTION_BYTES;
use crate::registers::Step;
use crate::stepper::{Task, ask};
use crate::traced::{Traced, request};

/// Which call, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The process.
    pub pid: u32,
    /// Where the function begins in its memory.
    pub address: u64,
    /// The how manieth call from now on, counted from 1.
    pub nth: u64,
    /// So many steps at most.
    pub steps: usize,
    /// How long the call is waited for.
    pub patience: Duration,
    /// Whether the process is stopped, and is to go on once the breakpoint is set.
    pub is_stopped: bool,
}

/// A call that was stepped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The thread.
    pub tid: u32,
    /// Why there are no more steps.
    pub end: End,
    /// What the process had mapped as the call began.
    pub maps: Vec<Map>,
    /// The bytes of each instruction, by its address.
    pub code: BTreeMap<u64, Vec<u8>>,
    /// From the function's first instruction on.
    pub steps: Vec<Seen>,
}

/// Why a call was stepped no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It returned.
    Returned,
    /// It took more steps than were asked for.
    Steps,
    /// It took too long.
    Time,
    /// The thread ended.
    Gone,
}

/// A step, and what its instruction loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Right before the instruction.
    pub step: Step,
    /// In the order in which the instruction has them.
    pub loads: Vec<Loaded>,
}

/// Memory that was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// Its address.
    pub address: u64,
    /// Bytes, at most 8.
    pub size: u8,
    /// What it held.
    pub value: u64,
}

/// How long a call is stepped at most.
const LONGEST: Duration = Duration::from_secs(120);

/// Steps a call by a process of its own.
///
/// # Errors
/// If the process may not be traced or has a tracer (EPERM), is gone (ESRCH), has no breakpoint left
/// (ENOSPC), or does not call the function in time (ETIMEDOUT).
pub fn record(wanted: &Wanted) -> io::Result<Call> {
    ask(
        Task::Call,
        &[
            wanted.pid.into(),
            wanted.address,
            wanted.nth,
            wanted.steps as u64,
            wanted.patience.as_millis() as u64,
            wanted.is_stopped.into(),
        ],
    )
}

/// What [`record`] asks for, in the process that steps.
pub(crate) fn answer(numbers: &[u64]) -> io::Result<Call> {
    let &[pid, address, nth, steps, ms, is_stopped] = numbers else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let pid = pid as u32;
    let memory = Memory::of(pid)?;
    let mut family = Family::default();
    let hit = family.trace(pid, address).and_then(|()| {
        if is_stopped != 0 {
            // SAFETY: a signal to a process; that this is still the one is all that could be wrong.
            unsafe { libc::kill(pid as i32, libc::SIGCONT) };
        }
        family.wait(nth, Instant::now() + Duration::from_millis(ms))
    });
    family.breakpoints.clear();
    let hit = hit.inspect_err(|_| family.let_go(None))?;
    family.let_go(Some(hit));
    // Or a thread that it makes would wait for us.
    let _ = request(libc::PTRACE_SETOPTIONS, hit, 0);
    let mut traced = Traced {
        tid: hit,
        stopped: true,
    };
    Ok(walk(&mut traced, pid, &memory, steps as usize))
}

/// The threads of a process that are traced.
#[derive(Default)]
struct Family {
    threads: HashSet<i32>,
    breakpoints: Vec<OwnedFd>,
}

impl Family {
    /// Traces all threads and sets their breakpoints, until no new one is found.
    fn trace(&mut self, pid: u32, address: u64) -> io::Result<()> {
        loop {
            let listed = fs::read_dir(format!("/proc/{pid}/task"))?;
            let tids = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            let new: Vec<i32> = tids.filter(|tid| !self.threads.contains(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                match request(libc::PTRACE_SEIZE, tid, libc::PTRACE_O_TRACECLONE as usize) {
                    Err(why) if why.raw_os_error() == Some(libc::ESRCH) => continue,
                    // One that a traced thread has made is traced already.
                    Err(why) if !is_traced_by_us(tid) => return Err(why),
                    _ => {}
                }
                self.threads.insert(tid);
                match breakpoint::set(tid, address) {
                    Err(why) if why.raw_os_error() == Some(libc::ESRCH) => {}
                    set => self.breakpoints.push(set?),
                }
            }
        }
    }

    /// Waits for the `nth` time that a thread comes to the breakpoint; it stands there then.
    fn wait(&mut self, mut nth: u64, end: Instant) -> io::Result<i32> {
        while !self.threads.is_empty() {
            let mut status = 0;
            // SAFETY: waitpid writes the status into an integer that lives.
            let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) };
            if tid <= 0 {
                if Instant::now() >= end {
                    return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
                }
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            if !libc::WIFSTOPPED(status) {
                self.threads.remove(&tid);
                continue;
            }
            self.threads.insert(tid);
            let (event, signal) = (status >> 16, libc::WSTOPSIG(status));
            let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
            let (go_on, pass) = match event {
                libc::PTRACE_EVENT_STOP if stops.contains(&signal) => (libc::PTRACE_LISTEN, 0),
                0 if signal == libc::SIGTRAP && is_at_breakpoint(tid) => {
                    nth = nth.saturating_sub(1);
                    if nth == 0 {
                        return Ok(tid);
                    }
                    (libc::PTRACE_CONT, 0)
                }
                0 => (libc::PTRACE_CONT, signal),
                _ => (libc::PTRACE_CONT, 0),
            };
            let _ = request(go_on, tid, pass as usize);
        }
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }

    /// Lets all threads go but one.
    fn let_go(&mut self, but: Option<i32>) {
        for tid in self.threads.drain().filter(|&tid| Some(tid) != but) {
            Traced {
                tid,
                stopped: false,
            }
            .let_go(0);
        }
    }
}

fn is_traced_by_us(tid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.and_then(|pid| pid.trim().parse().ok()) == Some(std::process::id())
}

/// Whether a thread has stopped for a perf event's signal.
fn is_at_breakpoint(tid: i32) -> bool {
    const TRAP_PERF: i32 = 6;
    // SAFETY: all of its fields are numbers, for which 0 is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills one siginfo_t at the address, which lives.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0usize, &raw mut info) };
    got == 0 && info.si_code == TRAP_PERF
}

/// Steps a thread that stands at the first instruction of a function until that returns, and lets it go.
fn walk(traced: &mut Traced, pid: u32, memory: &Memory, most: usize) -> Call {
    let mut call = Call {
        tid: traced.tid as u32,
        end: End::Time,
        maps: maps(pid),
        code: BTreeMap::new(),
        steps: Vec::new(),
    };
    let mut factory = InstructionInfoFactory::new();
    let mut decoded: HashMap<u64, Instruction> = HashMap::new();
    let mut back = None;
    let pass = traced.walk(Instant::now() + LONGEST, 0, |step| {
        let (return_to, sp) = *back.get_or_insert_with(|| (word(memory, step.sp(), 8), step.sp()));
        if step.ip == return_to && step.sp() > sp {
            call.end = End::Returned;
            return false;
        }
        if call.steps.len() >= most {
            call.end = End::Steps;
            return false;
        }
        let instruction = *decoded.entry(step.ip).or_insert_with(|| {
            let bytes = memory.read(step.ip, INSTRUCTION_BYTES);
            let instruction = Decoder::with_ip(64, &bytes, step.ip, DecoderOptions::NONE).decode();
            call.code.insert(step.ip, bytes);
            instruction
        });
        let loads = execute(&mut factory, instruction, &step).loads.into_iter();
        let loads = loads.map(|(address, size)| Loaded {
            address,
            size,
            value: word(memory, address, size),
        });
        call.steps.push(Seen {
            step,
            loads: loads.collect(),
        });
        true
    });
    if call.end == End::Time && traced.registers().is_err() {
        call.end = End::Gone;
    }
    traced.let_go(pass);
    call
}

/// A number of at most 8 bytes in memory; 0 where there is none.
fn word(memory: &Memory, address: u64, size: u8) -> u64 {
    let mut bytes = memory.read(address, size.min(8).into());
    bytes.resize(8, 0);
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}
