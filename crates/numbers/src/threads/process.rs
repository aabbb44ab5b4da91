//! What a process costs: to fork, to spawn, to replace by another program.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr;
use std::time::Instant;

use super::common::{checked, one_by_one};
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// A copy of this process that ends at once.
pub(super) const FORK: Method = Method {
    id: "process.fork",
    section: Section::Threads,
    figures: &[Kind::ns("process.fork", "fork a process")],
    how: "fork, the child calls _exit at once, waitpid; all on one CPU. The process that is copied \
        is this one, with few MiB of memory in use: a larger one takes longer",
    source: "lmbench lat_proc fork (McVoy and Staelin 1996)",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        timed(place, meter, "process.fork", || wait(fork(|| 0)?))
    },
};

/// A small program, started without a copy of this process.
pub(super) const SPAWN: Method = Method {
    id: "process.spawn",
    section: Section::Threads,
    figures: &[Kind::ns("process.spawn", "spawn a program")],
    how: "posix_spawn of `true` (dynamically linked on most systems) without environment, waitpid; \
        all on one CPU",
    source: "posix_spawn(3); lmbench lat_proc exec with another call",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let program = Program::find("true")?;
        timed(place, meter, "process.spawn", || wait(program.spawn()?))
    },
};

/// A copy of this process that becomes a small program.
pub(super) const EXEC: Method = Method {
    id: "process.exec",
    section: Section::Threads,
    figures: &[Kind::ns("process.exec", "fork and exec a program")],
    how: "fork, the child calls execve of `true` (dynamically linked on most systems) without \
        environment, waitpid; all on one CPU",
    source: "lmbench lat_proc exec (McVoy and Staelin 1996), whose program prints a line, unseen",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let program = Program::find("true")?;
        timed(place, meter, "process.exec", || wait(program.fork_exec()?))
    },
};

/// Takes samples of an operation that gives the exit status of a child, which must be 0.
fn timed(
    place: &Place,
    meter: &mut Meter,
    figure: &'static str,
    mut operation: impl FnMut() -> Result<i32, Untried>,
) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    one_by_one(meter, |meter| {
        let start = Instant::now();
        let status = operation()?;
        let took = start.elapsed();
        if status != 0 {
            return Err(Untried(format!(
                "a child failed with wait status {status:#x}"
            )));
        }
        meter.push(figure, took.as_nanos() as f64);
        Ok(())
    })
}

/// Starts a child that ends with the code that `child` returns. It may only make system calls, as
/// other threads of this process may hold any lock.
fn fork(child: impl FnOnce() -> i32) -> Result<libc::pid_t, Untried> {
    // SAFETY: the child does nothing but system calls.
    match unsafe { libc::fork() } {
        -1 => Err(Untried::last("fork")),
        // SAFETY: ends the child without running anything of the parent's.
        0 => unsafe { libc::_exit(child()) },
        pid => Ok(pid),
    }
}

/// Waits for a child's end, and gives its wait status.
fn wait(pid: libc::pid_t) -> Result<i32, Untried> {
    let mut status = 0;
    loop {
        // SAFETY: the status is ours.
        if unsafe { libc::waitpid(pid, &mut status, 0) } == pid {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(Untried::call("waiting for a child", error));
        }
    }
}

/// A program to start, without arguments.
struct Program(CString);

impl Program {
    /// Looks in the usual places, then in PATH.
    fn find(name: &str) -> Result<Program, Untried> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        ["/bin", "/usr/bin"]
            .into_iter()
            .map(PathBuf::from)
            .chain(std::env::split_paths(&path))
            .map(|dir| dir.join(name))
            .find(|program| program.is_file())
            .and_then(|program| {
                CString::new(program.into_os_string().into_vec())
                    .ok()
                    .map(Program)
            })
            .ok_or_else(|| Untried(format!("there is no program `{name}` to start")))
    }

    fn arguments(&self) -> [*const libc::c_char; 2] {
        [self.0.as_ptr(), ptr::null()]
    }

    fn spawn(&self) -> Result<libc::pid_t, Untried> {
        let mut pid = 0;
        // SAFETY: all strings and lists end in zero; lists are not written, whatever their type says.
        let error = unsafe {
            libc::posix_spawn(
                &mut pid,
                self.0.as_ptr(),
                ptr::null(),
                ptr::null(),
                self.arguments().as_ptr().cast(),
                NO_ENVIRONMENT.as_ptr().cast(),
            )
        };
        checked("posix_spawn", error)?;
        Ok(pid)
    }

    fn fork_exec(&self) -> Result<libc::pid_t, Untried> {
        let (program, arguments) = (self.0.as_ptr(), self.arguments());
        fork(|| {
            // SAFETY: as above. It returns only if it failed.
            unsafe { libc::execve(program, arguments.as_ptr(), NO_ENVIRONMENT.as_ptr()) };
            CANNOT_RUN
        })
    }
}

const NO_ENVIRONMENT: [*const libc::c_char; 1] = [ptr::null()];

/// What a shell's exit status is for a program that cannot be run.
const CANNOT_RUN: i32 = 127;

#[cfg(test)]
mod tests {
    use super::*;

    fn exit_code(status: i32) -> Option<i32> {
        libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
    }

    /// Waited for once more, it is no child any more.
    fn assert_reaped(pid: libc::pid_t) {
        assert!(wait(pid).unwrap_err().0.contains("No child"), "{pid}");
    }

    /// A forked child is another process, does what it was told, and is reaped.
    #[test]
    fn a_forked_child_is_a_process_of_its_own() {
        // SAFETY: takes nothing and only reads.
        let parent = unsafe { libc::getpid() };
        // SAFETY: as above.
        let pid = fork(|| unsafe { 3 + i32::from(libc::getppid() == parent) }).unwrap();
        assert_ne!(pid, parent);
        assert_eq!(exit_code(wait(pid).unwrap()), Some(4));
        assert_reaped(pid);
    }

    /// The program itself ran: `true` and `false` end differently, whichever way they are started.
    #[test]
    fn the_program_runs_and_is_reaped() {
        for (name, code) in [("true", 0), ("false", 1)] {
            let program = Program::find(name).unwrap();
            for pid in [program.spawn().unwrap(), program.fork_exec().unwrap()] {
                assert_eq!(exit_code(wait(pid).unwrap()), Some(code), "{name}");
                assert_reaped(pid);
            }
        }
    }

    /// What cannot be run says so, and is not taken for a program that ended well.
    #[test]
    fn a_program_that_cannot_be_run_fails() {
        assert!(Program::find("no-such-program-here").is_err());
        let none = Program(c"/no/such/program".into());
        assert!(none.spawn().is_err());
        let status = wait(none.fork_exec().unwrap()).unwrap();
        assert_eq!(exit_code(status), Some(CANNOT_RUN));
    }
}
