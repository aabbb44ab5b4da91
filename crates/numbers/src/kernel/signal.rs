//! What a signal costs.
//!
//! A signal's handler is the process's: one visit at a time has it, and what was there before is
//! put back.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

const SIGNAL: i32 = libc::SIGUSR1;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// How often the handler ran.
static RUNS: AtomicU64 = AtomicU64::new(0);

pub(crate) const CAUGHT: Method = Method {
    id: "kernel.signal",
    section: Section::Kernel,
    figures: &[Kind::ns("kernel.signal", "a signal")],
    how: "A thread sends itself a signal (tgkill), whose handler counts: from before the call, \
          through the handler, until it has returned from both.",
    source: "lmbench's lat_sig catch (McVoy and Staelin 1996)",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let handler = Handler::install()?;
        let time = meter.time_left();
        meter.batches("kernel.signal", None, time, |count| {
            let (took, runs) = handler.raise(count)?;
            if runs != count {
                return Err(Untried(format!("{count} signals, {runs} caught")));
            }
            Ok(took)
        })
    },
};

pub(crate) const INSTALL: Method = Method {
    id: "kernel.signal_install",
    section: Section::Kernel,
    figures: &[Kind::ns("kernel.signal_install", "install a handler")],
    how: "sigaction that sets a signal's handler, and asks which it was before.",
    source: "lmbench's lat_sig install (McVoy and Staelin 1996)",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let handler = Handler::install()?;
        meter.repeat("kernel.signal_install", || handler.install_again())
    },
};

extern "C" fn count(_: libc::c_int) {
    // Only the thread that sent it runs here.
    RUNS.store(RUNS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn action() -> libc::sigaction {
    // SAFETY: a sigaction of zeros is one without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = count as *const () as usize;
    action
}

/// The handler is there, and the signal not blocked in this thread, until this is dropped.
struct Handler {
    action: libc::sigaction,
    action_before: libc::sigaction,
    mask_before: libc::sigset_t,
    process: i32,
    thread: i32,
    _only: MutexGuard<'static, ()>,
}

impl Handler {
    fn install() -> Result<Handler, Untried> {
        let only = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let action = action();
        // SAFETY: the structures are plain, zero is valid for them, and the calls fill them; the
        // handler does nothing that a handler may not.
        unsafe {
            let mut action_before: libc::sigaction = mem::zeroed();
            if libc::sigaction(SIGNAL, &action, &mut action_before) != 0 {
                return Err(Untried::last("sigaction"));
            }
            let mut mask: libc::sigset_t = mem::zeroed();
            let mut mask_before: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&mut mask);
            libc::sigaddset(&mut mask, SIGNAL);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &mask, &mut mask_before);
            Ok(Handler {
                action,
                action_before,
                mask_before,
                process: libc::getpid(),
                thread: libc::gettid(),
                _only: only,
            })
        }
    }

    #[inline]
    fn install_again(&self) -> Result<(), Untried> {
        // SAFETY: as above.
        unsafe {
            let mut before: libc::sigaction = mem::zeroed();
            if libc::sigaction(SIGNAL, &self.action, &mut before) != 0 {
                return Err(Untried::last("sigaction"));
            }
        }
        Ok(())
    }

    /// Sends so many signals, one after the other: how long it took, and how often the handler ran.
    fn raise(&self, count: u64) -> Result<(Duration, u64), Untried> {
        let before = RUNS.load(Ordering::Relaxed);
        let start = Instant::now();
        for _ in 0..count {
            // SAFETY: a signal to this thread, which has a handler for it.
            let result =
                unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, SIGNAL) };
            if result != 0 {
                return Err(Untried::last("tgkill"));
            }
        }
        let took = start.elapsed();
        Ok((took, RUNS.load(Ordering::Relaxed) - before))
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: both were given by the calls that are undone here.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask_before, ptr::null_mut());
            libc::sigaction(SIGNAL, &self.action_before, ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler_now() -> usize {
        // SAFETY: only asks.
        unsafe {
            let mut now: libc::sigaction = mem::zeroed();
            assert_eq!(libc::sigaction(SIGNAL, ptr::null(), &mut now), 0);
            now.sa_sigaction
        }
    }

    /// Each signal runs the handler once, before the call that sent it returns; blocked ones too,
    /// because the visit lets them through. Afterwards the handler and the mask are as before.
    #[test]
    fn each_signal_is_caught_once() {
        // SAFETY: plain structures that the calls fill.
        let blocked = |how: Option<i32>| unsafe {
            let mut mask: libc::sigset_t = mem::zeroed();
            libc::sigaddset(&mut mask, SIGNAL);
            let mut before: libc::sigset_t = mem::zeroed();
            match how {
                Some(how) => libc::pthread_sigmask(how, &mask, ptr::null_mut()),
                None => libc::pthread_sigmask(0, ptr::null(), &mut before),
            };
            libc::sigismember(&before, SIGNAL) == 1
        };
        blocked(Some(libc::SIG_BLOCK));
        let handler = Handler::install().unwrap();
        assert_eq!(handler_now(), count as *const () as usize);
        for count in [1, 10, 1000] {
            assert_eq!(handler.raise(count).unwrap().1, count);
        }
        assert_ne!(handler_now(), handler.action_before.sa_sigaction);
        drop(handler);
        assert!(blocked(None));
        blocked(Some(libc::SIG_UNBLOCK));
    }

    /// What is timed as installing installs: a handler that was taken away is there again.
    #[test]
    fn installing_installs() {
        let handler = Handler::install().unwrap();
        // SAFETY: the default action for a signal that nobody sends now.
        unsafe {
            let mut none: libc::sigaction = mem::zeroed();
            none.sa_sigaction = libc::SIG_DFL;
            assert_eq!(libc::sigaction(SIGNAL, &none, ptr::null_mut()), 0);
        }
        assert_eq!(handler_now(), libc::SIG_DFL);
        handler.install_again().unwrap();
        assert_eq!(handler_now(), count as *const () as usize);
    }
}
