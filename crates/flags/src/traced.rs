//! A thread that is traced by ptrace: stopped, stepped, and let go as if nothing had been.

use std::io;
use std::time::{Duration, Instant};

use crate::registers::Step;

/// A request of ptrace whose data is a plain number.
pub(crate) fn request(kind: libc::c_uint, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: the kinds that are used here take a plain number as data, and no address.
    match unsafe { libc::ptrace(kind, tid, 0usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A thread that is traced; see [`let_go`](Traced::let_go).
pub(crate) struct Traced {
    pub tid: i32,
    pub stopped: bool,
}

/// How the thread stopped.
pub(crate) enum Stop {
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
    pub(crate) fn stop(&mut self, end: Instant) -> Stop {
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

    pub(crate) fn registers(&self) -> io::Result<Step> {
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
    pub(crate) fn let_go(&mut self, mut pass: i32) {
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

impl Traced {
    /// Steps it from where it stands until `end`, as long as `see` says of each step that it goes on. Returns
    /// the signal that it is to get next; `pass` is one that it is to get now.
    pub(crate) fn walk(
        &mut self,
        end: Instant,
        mut pass: i32,
        mut see: impl FnMut(Step) -> bool,
    ) -> i32 {
        while Instant::now() < end {
            let Ok(step) = self.registers() else {
                return pass;
            };
            if !see(step) {
                return pass;
            }
            if request(libc::PTRACE_SINGLESTEP, self.tid, pass as usize).is_err() {
                return 0;
            }
            self.stopped = false;
            pass = match self.stop(end) {
                Stop::Trap => 0,
                Stop::Signal(signal) => signal,
                Stop::Asked | Stop::Gone | Stop::Late => return 0,
            };
        }
        pass
    }
}
