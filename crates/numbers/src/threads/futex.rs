//! The futex calls themselves, without a C library between.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A word that is 1 when it was given, and that one thread at a time waits for.
#[derive(Debug, Default)]
pub(super) struct Word(AtomicU32);

impl Word {
    /// Sets it and wakes who waits; says whether somebody slept.
    pub fn give(&self) -> io::Result<bool> {
        self.0.store(1, Ordering::Release);
        let call = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word lives as long as `self`; the kernel only looks at it.
        match unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), call, 1) } {
            -1 => Err(io::Error::last_os_error()),
            woken => Ok(woken > 0),
        }
    }

    /// Waits until it is set, and clears it.
    pub fn take(&self) -> io::Result<()> {
        let call = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        let forever = ptr::null::<libc::timespec>();
        while self.0.swap(0, Ordering::Acquire) == 0 {
            // SAFETY: as above; no time limit is passed.
            let result =
                unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), call, 0, forever) };
            if result == -1 {
                let error = io::Error::last_os_error();
                // Given in between, or a signal: look again.
                if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
