//! The least that entering the kernel costs, and a clock that is read without entering it.

use std::hint::black_box;
use std::time::Instant;

use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

pub(crate) const SYSCALL: Method = Method {
    id: "kernel.syscall",
    section: Section::Kernel,
    figures: &[Kind::ns("kernel.syscall", "a system call")],
    how: "getppid through syscall(2), which the C library does not answer itself: into the kernel, \
          hardly any work there, and back.",
    source: "lmbench's lat_syscall null (McVoy and Staelin 1996); perf bench syscall basic",
    weight: 1,
    run: |place, meter| {
        let _pinned = cpu::pin(place.here)?;
        meter.repeat("kernel.syscall", || {
            black_box(parent());
            Ok(())
        })
    },
};

pub(crate) const CLOCK: Method = Method {
    id: "kernel.clock",
    section: Section::Kernel,
    figures: &[Kind::ns("kernel.clock", "read the clock")],
    how: "clock_gettime(CLOCK_MONOTONIC) as programs call it: the vDSO reads the CPU's counter \
          without entering the kernel, unless the clock source of this machine needs a system call.",
    source: "vdso(7); lmbench's loop for short calls",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let left = meter.time_left();
        meter.batches("kernel.clock", None, left, |count| {
            let mut failed = 0;
            let start = Instant::now();
            for _ in 0..count {
                let mut time = NO_TIME;
                // SAFETY: the call fills the two numbers.
                failed |= unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
                black_box(&time);
            }
            let took = start.elapsed();
            match failed {
                0 => Ok(took),
                _ => Err(Untried::last("clock_gettime")),
            }
        })
    },
};

/// The parent's id, as the kernel has it now.
fn parent() -> i64 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) }
}

const NO_TIME: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The monotonic clock.
pub(super) fn now() -> Result<libc::timespec, Untried> {
    let mut time = NO_TIME;
    // SAFETY: the call fills the two numbers.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) } != 0 {
        return Err(Untried::last("clock_gettime"));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::not_run;

    /// Makes the kernel refuse this thread a system call, with an error that no call gives.
    fn refuse(call: i64) -> Result<(), Untried> {
        let step = |code: u32, skip: u8, k: u32| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: skip,
            k,
        };
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
            step(
                libc::BPF_RET | libc::BPF_K,
                0,
                libc::SECCOMP_RET_ERRNO | libc::ENOTNAM as u32,
            ),
            step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_mut_ptr(),
        };
        // SAFETY: the kernel copies the program before the call returns.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
        };
        match result {
            0 => Ok(()),
            _ => Err(Untried::last("seccomp")),
        }
    }

    /// Each measured call asks the kernel: it fails where the kernel is told to refuse it, and says
    /// who the parent is where it is not.
    #[test]
    fn the_system_call_is_one() {
        assert_eq!(parent(), i64::from(std::os::unix::process::parent_id()));
        let refused = std::thread::spawn(|| {
            refuse(libc::SYS_getppid)?;
            Ok((parent(), std::io::Error::last_os_error()))
        });
        match refused.join().unwrap() {
            Ok((result, error)) => {
                assert_eq!(result, -1);
                assert_eq!(error.raw_os_error(), Some(libc::ENOTNAM));
            }
            Err(untried) => not_run(&untried),
        }
    }

    /// The clock is read without the kernel: it goes on where the kernel is told to refuse it.
    #[test]
    fn the_clock_is_read_without_the_kernel() {
        let refused = std::thread::spawn(|| {
            refuse(libc::SYS_clock_gettime)?;
            Ok(now())
        });
        match refused.join().unwrap() {
            Ok(Ok(time)) => assert!(time.tv_sec > 0 || time.tv_nsec > 0),
            Ok(Err(error)) => not_run(&Untried(format!(
                "the clock source of this machine needs a system call ({error})"
            ))),
            Err(untried) => not_run(&untried),
        }
    }
}
