//! An opener and a parser, as the recorder sees them.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

use super::{NURSERY, start};
use crate::deadline::is_over;
use crate::place::{Opened, Place, Terms};
use crate::request::{Request, Response};
use crate::wire;

/// How long the nursery may take for a pair.
const BIRTH: Duration = Duration::from_secs(5);
/// How often it is looked, while an answer is waited for, whether all is over.
const PERIOD: Duration = Duration::from_millis(100);
/// The longest answer, bytes: the rows of the largest unwind table take less.
const LONGEST: u32 = 128 << 20;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// None came in time.
    Stalled,
    /// They ended, or what they answer makes no sense.
    Died,
    /// There is no pair.
    NotStarted,
}

/// A pair that reads for us; it ends with this.
pub(crate) struct Pair {
    opener: OwnedFd,
    orders: UnixStream,
    answers: UnixStream,
}

impl Pair {
    /// Has the nursery make one.
    pub(crate) fn start() -> Result<Pair, Failure> {
        Pair::born().map_err(|_| Failure::NotStarted)
    }

    fn born() -> io::Result<Pair> {
        start()?;
        let mut nursery = NURSERY.lock().unwrap_or_else(PoisonError::into_inner);
        let made = nursery.as_ref().map(made_by);
        match made.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into())) {
            Ok(pair) => Ok(pair),
            Err(why) => {
                // The next question starts another.
                *nursery = None;
                Err(why)
            }
        }
    }

    /// Asks a question; the answers come in the order of the questions.
    pub(crate) fn send(
        &mut self,
        files: &[(Place, Terms)],
        request: &Request,
        patience: Duration,
    ) -> Result<(), Failure> {
        // Zero would mean for ever.
        let patience = patience.max(Duration::from_millis(1));
        self.orders
            .set_write_timeout(Some(patience))
            .and_then(|()| wire::send(&self.orders, &files))
            .and_then(|()| wire::send(&self.orders, request))
            .map_err(|why| match why.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::Stalled,
                _ => Failure::Died,
            })
    }

    /// Waits for the next answer.
    pub(crate) fn receive(
        &mut self,
        patience: Duration,
    ) -> Result<(Vec<Opened>, Response), Failure> {
        let end = Instant::now() + patience;
        let mut header = [0; 4];
        self.fill(&mut header, end)?;
        let length = u32::from_ne_bytes(header);
        if length > LONGEST {
            return Err(Failure::Died);
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes, end)?;
        wire::parse(&bytes).map_err(|_| Failure::Died)
    }

    fn fill(&mut self, into: &mut [u8], end: Instant) -> Result<(), Failure> {
        let mut got = 0;
        while got < into.len() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || is_over() {
                return Err(Failure::Stalled);
            }
            let patience = left.min(PERIOD);
            let patient = self.answers.set_read_timeout(Some(patience));
            patient.map_err(|_| Failure::Died)?;
            match self.answers.read(&mut into[got..]) {
                Ok(0) => return Err(Failure::Died),
                Ok(read) => got += read,
                Err(why) => match why.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(Failure::Died),
                },
            }
        }
        Ok(())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Its parser ends with it. One that waits for a dead server ends when that allows it.
        let _ = pidfd_send_signal(&self.opener, Signal::KILL);
    }
}

fn made_by(nursery: &UnixStream) -> io::Result<Pair> {
    let (orders, theirs_to_read) = UnixStream::pair()?;
    let (answers, theirs_to_write) = UnixStream::pair()?;
    nursery.set_read_timeout(Some(BIRTH))?;
    nursery.set_write_timeout(Some(BIRTH))?;
    let ends = [theirs_to_read.as_fd(), theirs_to_write.as_fd()];
    wire::send_bytes(nursery, &[], &ends)?;
    let answer = wire::receive_bytes(nursery)?;
    let opener = answer.and_then(|(_, files)| files.into_iter().next());
    let opener = opener.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Pair {
        opener: opener.into(),
        orders,
        answers,
    })
}
