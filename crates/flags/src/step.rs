//! Single steps of one thread: where it was and what its registers held, instruction by instruction.
//!
//! This is ptrace, so the thread is stopped between steps (some 50,000 a second), and a system call
//! that it is in is interrupted and begun again, as a signal would do. Nothing is written into its
//! memory.

use std::io;
use std::time::{Duration, Instant};

use crate::registers::Step;
use crate::stepper::{Task, ask};
use crate::traced::{Stop, Traced, request};

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

/// Steps thread `tid` by a process of its own. Fewer steps than asked for: the time was over, or the
/// thread ended.
///
/// # Errors
/// If the thread may not be traced, has a tracer already, or is gone.
pub fn record(tid: u32, limits: Limits) -> io::Result<Vec<Step>> {
    let ms = limits.time.as_millis() as u64;
    ask(Task::Thread, &[tid.into(), limits.steps as u64, ms])
}

/// What [`record`] asks for, in the process that steps.
pub(crate) fn answer(numbers: &[u64]) -> io::Result<Vec<Step>> {
    let &[tid, steps, ms] = numbers else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let end = Instant::now() + Duration::from_millis(ms);
    let most = steps as usize;
    let tid = tid as i32;
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
    let pass = traced.walk(end, pass, |step| {
        let goes_on = steps.len() < most;
        if goes_on {
            steps.push(step);
        }
        goes_on
    });
    traced.let_go(pass);
    Ok(steps)
}
