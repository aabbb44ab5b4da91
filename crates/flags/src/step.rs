//! Single steps of one thread: where it was and what its registers held, instruction by instruction.
//!
//! This is ptrace, so the thread is stopped between steps (some 50,000 a second), and a system call
//! that it is in is interrupted and begun again, as a signal would do. Nothing is written into its
//! memory. One danger: a thread whose tracer is killed in the middle of a step dies of the trap. So
//! the stepping is done by a process of its own, for a moment, which no terminal reaches and which
//! finishes though whoever asked is gone.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Registers that a step has, as words: 16 general ones in the order of their encoding (rax, rcx, rdx,
/// rbx, rsp, rbp, rsi, rdi, r8-r15), rip, rflags, and the bases of fs and gs.
const WORDS: usize = 20;

/// A thread right before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// General registers, in the order of their encoding.
    pub general: [u64; 16],
    /// The instruction.
    pub ip: u64,
    /// rflags.
    pub flags: u64,
    /// Where fs begins: what is the thread's own.
    pub fs: u64,
    /// Where gs begins.
    pub gs: u64,
}

/// The number of rsp among the general registers.
pub(crate) const SP: usize = 4;

impl Step {
    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.general[SP]
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..16].copy_from_slice(&self.general);
        words[16..].copy_from_slice(&[self.ip, self.flags, self.fs, self.gs]);
        words
    }

    fn of_words(words: &[u64; WORDS]) -> Step {
        let mut step = Step {
            ip: words[16],
            flags: words[17],
            fs: words[18],
            gs: words[19],
            ..Step::default()
        };
        step.general.copy_from_slice(&words[..16]);
        step
    }
}

/// How long a thread is stepped at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps.
    pub steps: usize,
    /// Time; a nap of the thread is one step.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 20_000,
            time: Duration::from_secs(3),
        }
    }
}

/// What tells a process that it is to step a thread. No command has this name.
const NAME: &str = "hangdog-step";
/// This very program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// To be called first in `main`: as the process that steps, it does not return.
pub fn run_if_asked() {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(NAME) {
        return;
    }
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    let code = match numbers[..] {
        [tid, steps, ms] => {
            let limits = Limits {
                steps: steps as usize,
                time: Duration::from_millis(ms),
            };
            answer(tid as i32, limits)
        }
        _ => libc::EINVAL,
    };
    std::process::exit(code);
}

/// Steps and writes the steps to standard output. Returns 0, or the number of the error.
fn answer(tid: i32, limits: Limits) -> i32 {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: to ignore a signal is always allowed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    match trace(tid, limits) {
        Ok(steps) => {
            let words = steps.iter().flat_map(Step::words);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            // Whoever asked may be gone.
            let _ = io::stdout().write_all(&bytes);
            0
        }
        Err(why) => why.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Steps thread `tid` by a process of its own. Fewer steps than asked for: the time was over, or the
/// thread ended.
///
/// # Errors
/// If the thread may not be traced, has a tracer already, or is gone.
pub fn record(tid: u32, limits: Limits) -> io::Result<Vec<Step>> {
    let mut child = Command::new(PROGRAM)
        .arg(NAME)
        .arg(tid.to_string())
        .arg(limits.steps.to_string())
        .arg(limits.time.as_millis().to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut bytes = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut bytes)?;
    }
    match child.wait()?.code() {
        Some(0) => {}
        Some(code) => return Err(io::Error::from_raw_os_error(code)),
        None => return Err(io::Error::other("the stepping process was killed")),
    }
    let words: Vec<u64> = (bytes.chunks_exact(8))
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
        .collect();
    Ok(words
        .chunks_exact(WORDS)
        .map(|words| Step::of_words(words.try_into().expect("as many words")))
        .collect())
}

fn request(kind: libc::c_uint, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: the kinds that are used here take a plain number as data, and no address.
    match unsafe { libc::ptrace(kind, tid, 0usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A thread that is traced; see [`let_go`](Traced::let_go).
struct Traced {
    tid: i32,
    stopped: bool,
}

/// How the thread stopped.
enum Stop {
    /// After a step.
    Trap,
    /// Because it was asked to, or with its whole process.
    Asked,
    /// For a signal, which is to be passed on.
    Signal(i32),
    /// It has ended.
    Gone,
    /// It does not stop in time.
    Late,
}

impl Traced {
    /// Waits for the next stop until `end`.
    fn stop(&mut self, end: Instant) -> Stop {
        loop {
            let mut status = 0;
            // SAFETY: waitpid writes the status into an integer that lives.
            let found =
                unsafe { libc::waitpid(self.tid, &mut status, libc::__WALL | libc::WNOHANG) };
            if found == self.tid && libc::WIFSTOPPED(status) {
                self.stopped = true;
                if status >> 16 == libc::PTRACE_EVENT_STOP {
                    return Stop::Asked;
                }
                return match libc::WSTOPSIG(status) {
                    libc::SIGTRAP => Stop::Trap,
                    signal => Stop::Signal(signal),
                };
            }
            if found != 0 {
                return Stop::Gone;
            }
            if Instant::now() >= end {
                return Stop::Late;
            }
            // A step takes microseconds; a nap may take as long as it wants.
            std::thread::yield_now();
        }
    }

    fn registers(&self) -> io::Result<Step> {
        // SAFETY: all of its fields are numbers, for which 0 is valid.
        let mut r: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills one user_regs_struct at the address, which lives.
        let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.tid, 0usize, &raw mut r) };
        if got == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Step {
            general: [
                r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
                r.r12, r.r13, r.r14, r.r15,
            ],
            ip: r.rip,
            flags: r.eflags,
            fs: r.fs_base,
            gs: r.gs_base,
        })
    }
}

/// How long a thread that sleeps for good in the kernel is waited for.
const STUCK: Duration = Duration::from_secs(600);

impl Traced {
    /// Lets the thread run on as if nothing had been. A step that was under way leaves a trap behind, which
    /// would kill a thread without a tracer, and which comes only after the stop that was asked for: so
    /// it is looked for among the signals that wait, and taken. `pass` is a signal that the thread is to get
    /// still.
    fn let_go(&mut self, mut pass: i32) {
        let end = Instant::now() + STUCK;
        if !self.stopped {
            let _ = request(libc::PTRACE_INTERRUPT, self.tid, 0);
            match self.stop(end) {
                Stop::Gone | Stop::Late => return,
                Stop::Signal(signal) => pass = signal,
                Stop::Trap | Stop::Asked => {}
            }
        }
        while self.has_trap_waiting() {
            if request(libc::PTRACE_CONT, self.tid, pass as usize).is_err() {
                return;
            }
            pass = match self.stop(end) {
                Stop::Trap | Stop::Asked => 0,
                Stop::Signal(signal) => signal,
                Stop::Gone | Stop::Late => return,
            };
        }
        // This also takes back that its next instruction is to be trapped.
        let _ = request(libc::PTRACE_DETACH, self.tid, pass as usize);
    }

    /// Whether a SIGTRAP waits for the thread.
    fn has_trap_waiting(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.tid));
        let status = status.unwrap_or_default();
        let waiting = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
        let waiting = waiting.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        waiting.is_some_and(|signals| signals & 1 << (libc::SIGTRAP - 1) != 0)
    }
}

fn trace(tid: i32, limits: Limits) -> io::Result<Vec<Step>> {
    let end = Instant::now() + limits.time;
    request(libc::PTRACE_SEIZE, tid, 0)?;
    let mut traced = Traced {
        tid,
        stopped: false,
    };
    request(libc::PTRACE_INTERRUPT, tid, 0)?;
    let mut steps = Vec::new();
    let pass = match traced.stop(end) {
        Stop::Gone => return Ok(steps),
        Stop::Signal(signal) => signal,
        Stop::Trap | Stop::Asked => 0,
        Stop::Late => {
            traced.let_go(0);
            return Ok(steps);
        }
    };
    let pass = walk(&mut traced, limits, end, pass, &mut steps);
    traced.let_go(pass);
    Ok(steps)
}

/// Steps it, and returns the signal that it is to get next.
fn walk(
    traced: &mut Traced,
    limits: Limits,
    end: Instant,
    mut pass: i32,
    steps: &mut Vec<Step>,
) -> i32 {
    while steps.len() < limits.steps && Instant::now() < end {
        let Ok(step) = traced.registers() else {
            return pass;
        };
        steps.push(step);
        if request(libc::PTRACE_SINGLESTEP, traced.tid, pass as usize).is_err() {
            return 0;
        }
        traced.stopped = false;
        pass = match traced.stop(end) {
            Stop::Trap => 0,
            Stop::Signal(signal) => signal,
            Stop::Asked | Stop::Gone | Stop::Late => return 0,
        };
    }
    pass
}
