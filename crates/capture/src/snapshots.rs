//! Snapshots of memory during a recording.
//!
//! A thread of their own takes them: a process with much memory takes the kernel a while to go through, a
//! file on a dead mount for ever, and the rings are read meanwhile. It works for a twentieth of the time at
//! most, whatever was asked for.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hangdog_trace::residence::Snapshot;

use crate::error::{Error, Result};
use crate::residence::look;
use crate::system::monotonic_ns;

/// So many times as long as a snapshot took passes before the next one.
const REST: u32 = 19;

/// A snapshot of all processes.
pub(crate) struct Taken {
    /// When it was begun, ns of CLOCK_MONOTONIC.
    pub ts: u64,
    pub snapshot: Snapshot,
    took: Duration,
}

/// Takes snapshots until it is dropped.
pub(crate) struct Snapshots {
    every: Duration,
    order: Sender<()>,
    taken: Receiver<Taken>,
    /// One was ordered and is not there yet.
    under_way: bool,
    /// Somebody asked for one that is not ordered yet.
    asked: bool,
    /// When the next one is due, and before when there is none.
    due: Instant,
    rested: Instant,
}

impl Snapshots {
    /// Has one taken every so often.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub(crate) fn start(every: Duration) -> Result<Snapshots> {
        let (order, orders) = channel();
        let (done, taken) = channel();
        let work = move || {
            while orders.recv().is_ok() {
                let (ts, began) = (monotonic_ns(), Instant::now());
                let (snapshot, _) = look(|_, _| true, None);
                let took = began.elapsed();
                let is_heard = done.send(Taken { ts, snapshot, took });
                if is_heard.is_err() {
                    break;
                }
            }
        };
        let named = thread::Builder::new().name("memory".into());
        named
            .spawn(work)
            .map_err(|cause| Error::system("start a thread", cause))?;
        let now = Instant::now();
        Ok(Snapshots {
            every,
            order,
            taken,
            under_way: false,
            asked: false,
            due: now,
            rested: now,
        })
    }

    /// Orders what is due, and returns what is there. `asked` says whether somebody wants one now.
    pub(crate) fn go_on(&mut self, asked: bool) -> Option<Taken> {
        self.asked |= asked;
        let taken = self.taken.try_recv().ok();
        if let Some(taken) = &taken {
            self.rest(taken);
        }
        let now = Instant::now();
        if !self.under_way && now >= self.rested && (self.asked || now >= self.due) {
            self.asked = false;
            self.due = now + self.every;
            self.order();
        }
        taken
    }

    /// One of this moment, and what was under way before it; without what is not there in time.
    pub(crate) fn now(&mut self, patience: Duration) -> Vec<Taken> {
        let until = Instant::now() + patience;
        let mut all = Vec::new();
        let mut wait = |own: &mut Snapshots| {
            let left = until.saturating_duration_since(Instant::now());
            if own.under_way
                && let Ok(taken) = own.taken.recv_timeout(left)
            {
                own.rest(&taken);
                all.push(taken);
            }
        };
        wait(self);
        if !self.under_way {
            self.due = Instant::now() + self.every;
            self.order();
            wait(self);
        }
        all
    }

    /// How many were ordered and are not there yet.
    pub(crate) fn missing(&self) -> u64 {
        u64::from(self.under_way)
    }

    fn order(&mut self) {
        self.under_way = self.order.send(()).is_ok();
    }

    fn rest(&mut self, taken: &Taken) {
        self.under_way = false;
        self.rested = Instant::now() + taken.took * REST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of this moment comes, with this process; the next is due after the time and not before; who
    /// asks gets one sooner, but not before it has rested.
    #[test]
    fn snapshots_come_when_they_are_due_or_asked_for() {
        let mut snapshots = Snapshots::start(Duration::from_secs(3600)).unwrap();
        let before = monotonic_ns();
        let first = snapshots.now(Duration::from_secs(60));
        let [first] = &*first else {
            panic!("{} snapshots", first.len());
        };
        assert!(first.ts >= before);
        let own = std::process::id();
        assert!(first.snapshot.processes.iter().any(|it| it.pid == own));
        assert!(snapshots.go_on(false).is_none() && !snapshots.under_way);
        assert!(snapshots.go_on(true).is_none());
        // Whatever the machine does, it is ordered once it has rested, and comes.
        let second = loop {
            match snapshots.go_on(false) {
                Some(taken) => break taken,
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(second.ts >= first.ts + (first.took * REST).as_nanos() as u64);
        assert!(snapshots.go_on(false).is_none() && !snapshots.under_way);
        // One that was ordered is missing until it is there.
        assert_eq!(snapshots.missing(), 0);
        snapshots.order();
        assert_eq!(snapshots.missing(), 1);
        assert_eq!(snapshots.now(Duration::from_secs(60)).len(), 2);
        assert_eq!(snapshots.missing(), 0);
    }
}
