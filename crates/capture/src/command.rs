//! The command that is recorded: it exists, with its tid, before it runs.
//!
//! It is forked first and waits at a pipe, so that everything is in place when it executes; its
//! way to tell that it could not is a second pipe that an exec closes.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How long the end of one that was killed is waited for.
const KILLED_PATIENCE: Duration = Duration::from_secs(1);

/// A child that was made and not yet let go, or runs, or has ended.
pub(crate) struct Command {
    name: String,
    pub pid: u32,
    /// It and what it starts can be ended together.
    leads_group: bool,
    go: Option<OwnedFd>,
    failure: OwnedFd,
    ended: Option<i32>,
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last_os("make a pipe"));
    }
    // SAFETY: the kernel has just given us both and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

impl Command {
    /// Forks a child that waits to be let go. With `leads_group` it gets a process group of its own,
    /// and signals go to all of that.
    pub(crate) fn prepare(arguments: &[OsString], leads_group: bool) -> Result<Command> {
        let name = arguments[0].to_string_lossy().into_owned();
        let words = arguments
            .iter()
            .map(|word| CString::new(word.as_bytes()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|_| Error::Command {
                command: name.clone(),
                cause: io::Error::new(io::ErrorKind::InvalidInput, "a NUL in an argument"),
            })?;
        let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
        pointers.push(ptr::null());
        let (wait, go) = pipe()?;
        let (failure, fail) = pipe()?;
        // SAFETY: between fork and exec the child calls only async-signal-safe functions, on
        // memory that was prepared before; it never returns from the block.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::close(go.as_raw_fd());
                if leads_group {
                    libc::setpgid(0, 0);
                }
                let mut byte = 0u8;
                // Nothing to read means that the parent is gone or has given up.
                if libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
                    libc::execvp(pointers[0], pointers.as_ptr());
                    let code = *libc::__errno_location();
                    libc::write(
                        fail.as_raw_fd(),
                        (&raw const code).cast(),
                        size_of_val(&code),
                    );
                }
                libc::_exit(127);
            }
            pid
        };
        if pid < 0 {
            return Err(Error::last_os("fork"));
        }
        Ok(Command {
            name,
            pid: pid as u32,
            leads_group,
            go: Some(go),
            failure,
            ended: None,
        })
    }

    /// Lets it execute; an error if it could not.
    pub(crate) fn go(&mut self) -> Result<()> {
        let Some(go) = self.go.take() else {
            return Ok(());
        };
        let mut code = [0u8; 4];
        // SAFETY: one byte from a live buffer, then at most four into another; both descriptors
        // are ours. The read ends when the exec closes the other end.
        let read = unsafe {
            libc::write(go.as_raw_fd(), code.as_ptr().cast(), 1);
            drop(go);
            loop {
                let read = libc::read(
                    self.failure.as_raw_fd(),
                    code.as_mut_ptr().cast(),
                    code.len(),
                );
                if read >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    break read;
                }
            }
        };
        if read == code.len() as isize {
            let cause = io::Error::from_raw_os_error(i32::from_ne_bytes(code));
            return Err(Error::Command {
                command: self.name.clone(),
                cause,
            });
        }
        Ok(())
    }

    /// Its exit code as a shell gives it, once it has ended: 128 + the signal's number if one
    /// ended it.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: a valid place for the status of our own child.
            let pid = unsafe { libc::waitpid(self.pid as i32, &mut status, libc::WNOHANG) };
            if pid == self.pid as i32 {
                self.ended = Some(if libc::WIFEXITED(status) {
                    libc::WEXITSTATUS(status)
                } else {
                    128 + libc::WTERMSIG(status)
                });
            }
        }
        self.ended
    }

    /// Asks it to end, as a recording that is stopped does.
    pub(crate) fn terminate(&mut self) {
        self.send(libc::SIGTERM);
    }

    /// Ends it with its group, as timeout(1) does; who does not heed the request for so long is asked
    /// no more.
    pub(crate) fn end(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        self.send(libc::SIGTERM);
        // Who is stopped would not hear of it.
        self.send(libc::SIGCONT);
        while (self.exit_code().is_none() || self.has_others()) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        self.send(libc::SIGKILL);
        // One that waits for a dead server or disk ends when that lets it.
        let end = Instant::now() + KILLED_PATIENCE;
        while self.exit_code().is_none() && Instant::now() < end {
            thread::sleep(LOOK);
        }
    }

    /// Whether anybody of its group lives on. One that has ended and for which nobody has waited is still
    /// in the group, but does not count.
    fn has_others(&self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else {
            return false;
        };
        let stats = processes.flatten().filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.parse::<u32>().ok()?;
            fs::read_to_string(entry.path().join("stat")).ok()
        });
        // Behind the name, which may have brackets itself: state, parent, group.
        let is_alive = |stat: String| {
            let mut fields = stat.rsplit(") ").next()?.split(' ');
            let (state, group) = (fields.next()?, fields.nth(1)?);
            Some(state != "Z" && group.parse() == Ok(self.pid))
        };
        self.leads_group && stats.filter_map(is_alive).any(|alive| alive)
    }

    /// Sends it to the process or its group.
    fn send(&mut self, signal: i32) {
        let pid = self.pid as i32;
        let to = if self.leads_group { -pid } else { pid };
        if !self.leads_group && self.exit_code().is_some() {
            return;
        }
        // SAFETY: a process that has not been waited for keeps its pid, and a group its number as
        // long as anybody is in it.
        unsafe { libc::kill(to, signal) };
    }
}
