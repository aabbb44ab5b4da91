//! Hears of mappings as they are made, and opens the memory of programs that say that they mark while
//! these are still there.
//!
//! It is a thread of its own at the usual priority: the one that reads the rings runs when nobody else
//! does, and a program may end before that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::area::Area;
use super::ticks::Ticks;
use super::{Found, LEASE_NS, PATH, look};
use crate::perf::MappingEvents;
use crate::records::{Definition, What};
use crate::system::monotonic_ns;

/// How often it listens.
const PERIOD: Duration = Duration::from_millis(10);

/// What the kernel has told of mappings and was not taken yet.
#[derive(Default)]
struct Heard {
    events: Vec<MappingEvents>,
    definitions: Vec<Definition>,
    lost: u64,
    found: Vec<Found>,
    /// Processes that have said that they mark, and were gone.
    gone: u64,
}

impl Heard {
    fn listen(&mut self, ticks: &Ticks) {
        let from = self.definitions.len();
        for events in &mut self.events {
            self.lost += events.drain(&mut self.definitions);
        }
        let markers: Vec<u32> = self
            .definitions
            .extract_if(from.., is_of_marks)
            .filter_map(pid)
            .collect();
        for pid in markers {
            let mut found = look(pid);
            if found.is_empty() {
                self.gone += 1;
            }
            for area in found
                .iter_mut()
                .filter_map(|found| found.area.as_mut().ok())
            {
                promise(area, ticks);
            }
            self.found.append(&mut found);
        }
    }
}

/// Tells a program that it is recorded.
pub(super) fn promise(area: &mut Area, ticks: &Ticks) {
    let until = monotonic_ns() + LEASE_NS;
    area.record_until(match area.counts_ticks() {
        true => ticks.ticks(until),
        false => until,
    });
}

/// Whether it is the mapping by which a program says that it marks, which is no code.
fn is_of_marks(definition: &mut Definition) -> bool {
    matches!(&definition.what, What::Map { mapping, .. } if mapping.path == PATH)
}

fn pid(definition: Definition) -> Option<u32> {
    match definition.what {
        What::Map { pid, .. } => Some(pid),
        _ => None,
    }
}

/// Listens to mappings until it is dropped.
pub(crate) struct Finder(Arc<Mutex<Heard>>);

impl Finder {
    /// Of these events; begins to listen with [`listen`](Finder::listen).
    pub(crate) fn new(events: Vec<MappingEvents>) -> Finder {
        Finder(Arc::new(Mutex::new(Heard {
            events,
            ..Heard::default()
        })))
    }

    /// Listens on a thread of its own from now on.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub(crate) fn listen(&self) -> std::io::Result<()> {
        let heard = Arc::downgrade(&self.0);
        std::thread::Builder::new().spawn(move || attend(&heard))?;
        Ok(())
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        lock(&self.0)
    }

    /// Takes the mappings of code that have come, and adds what the kernel dropped to `lost`.
    pub(crate) fn take(&self, into: &mut Vec<Definition>, lost: &mut u64, ticks: &Ticks) {
        let mut heard = self.heard();
        heard.listen(ticks);
        into.append(&mut heard.definitions);
        *lost += std::mem::take(&mut heard.lost);
    }

    /// Takes the memory that was found, and how many programs were gone before it could be.
    pub(crate) fn take_found(&self) -> (Vec<Found>, u64) {
        let mut heard = self.heard();
        (
            std::mem::take(&mut heard.found),
            std::mem::take(&mut heard.gone),
        )
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attend(heard: &Weak<Mutex<Heard>>) {
    let mut ticks = Ticks::new();
    while let Some(heard) = heard.upgrade() {
        lock(&heard).listen(&ticks);
        drop(heard);
        std::thread::sleep(PERIOD);
        ticks.measure();
    }
}
