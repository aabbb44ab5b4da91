//! What runs in the helpers' processes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_parent_process_death_signal,
};

use super::confine;
use crate::answer::answer;
use crate::place::{Opened, Place, Terms, open};
use crate::request::Request;
use crate::wire::{MOST_FILES, parse, receive_bytes, send, send_bytes};

/// What a process is after a fork.
enum Forked {
    Child,
    Parent(OwnedFd),
}

/// Makes pairs until the recorder has ended. Does not return.
///
/// It is no child of the recorder's: whoever looks for the recorded command finds that alone.
pub(super) fn run() -> ! {
    // SAFETY: this process has just begun and has one thread.
    if unsafe { libc::fork() } != 0 {
        // Where the fork failed the socket closes, and the recorder has no helpers.
        std::process::exit(0);
    }
    // SAFETY: standard input is the socket that this process was started with, and nobody else uses
    // it.
    let recorder = unsafe { UnixStream::from_raw_fd(0) };
    end(confine::nursery().and_then(|()| match serve(&recorder)? {
        Some((orders, answers)) => {
            // Helpers have no way to the nursery's own socket.
            drop(recorder);
            run_opener(orders, answers)
        }
        None => Ok(()),
    }))
}

fn end(result: io::Result<()>) -> ! {
    std::process::exit(i32::from(result.is_err()))
}

/// Makes a pair for each message of the recorder's. Where this returns two sockets, the process is the
/// opener of a pair.
fn serve(recorder: &UnixStream) -> io::Result<Option<(UnixStream, UnixStream)>> {
    while let Some((_, files)) = receive_bytes(recorder)? {
        let mut ends = files.into_iter().map(OwnedFd::from).map(UnixStream::from);
        let (Some(orders), Some(answers)) = (ends.next(), ends.next()) else {
            break;
        };
        match fork()? {
            Forked::Child => return Ok(Some((orders, answers))),
            Forked::Parent(opener) => send_bytes(recorder, &[], &[opener.as_fd()])?,
        }
    }
    Ok(None)
}

/// Makes a process that ends with this one or before it.
fn fork() -> io::Result<Forked> {
    let ourselves = getpid();
    // SAFETY: helpers have one thread, so that the child may do all that its parent could.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have ended before we were tied to it.
            match getppid() == Some(ourselves) {
                true => Ok(Forked::Child),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
        pid => {
            let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Forked::Parent(pidfd_open(pid, PidfdFlags::empty())?))
        }
    }
}

/// Opens what is ordered, and hands it on.
fn run_opener(orders: UnixStream, answers: UnixStream) -> io::Result<()> {
    let (parser, theirs) = UnixStream::pair()?;
    if let Forked::Child = fork()? {
        drop((orders, parser));
        return run_parser(&theirs, &answers);
    }
    drop((theirs, answers));
    confine::opener()?;
    while let Some((order, _)) = receive_bytes(&orders)? {
        let Some((request, _)) = receive_bytes(&orders)? else {
            break;
        };
        let places: Vec<(Place, Terms)> = parse(&order)?;
        let mut opened = Vec::new();
        let mut files: Vec<File> = Vec::new();
        for (place, terms) in places.iter().take(MOST_FILES) {
            let file = open(place, terms);
            opened.push(file.as_ref().map_or_else(|&why| why, |_| Opened::Yes));
            files.extend(file);
        }
        let given: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        let opened = postcard::to_stdvec(&opened).map_err(io::Error::other)?;
        send_bytes(&parser, &opened, &given)?;
        send_bytes(&parser, &request, &[])?;
    }
    Ok(())
}

/// Answers questions about the files that it is given.
fn run_parser(opener: &UnixStream, answers: &UnixStream) -> io::Result<()> {
    confine::parser()?;
    while let Some((bytes, files)) = receive_bytes(opener)? {
        let Some((request, _)) = receive_bytes(opener)? else {
            break;
        };
        let opened: Vec<Opened> = parse(&bytes)?;
        let request: Request = parse(&request)?;
        let mut files = files.into_iter();
        let files = opened.iter().map(|&opened| match opened {
            Opened::Yes => files.next(),
            _ => None,
        });
        let response = answer(&request, files.collect());
        send(answers, &(opened, response))?;
    }
    Ok(())
}
