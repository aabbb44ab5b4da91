//! What threads and processes cost: to make, to wake, to hand over to.

use crate::method::Method;

mod common;
mod crew;
mod futex;
mod life;
mod lock;
mod pingpong;
mod pool;
mod process;
mod wake;
mod wakeup;

use pingpong::{across, same};
use wakeup::{Condition, Event, Futex, Pipe, Semaphore, UnixSocket};

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[
    &life::LIFE,
    &life::FINISH,
    &process::FORK,
    &process::SPAWN,
    &process::EXEC,
    &same::<Semaphore>(),
    &across::<Semaphore>(),
    &same::<Futex>(),
    &across::<Futex>(),
    &same::<Condition>(),
    &across::<Condition>(),
    &same::<Event>(),
    &across::<Event>(),
    &same::<Pipe>(),
    &across::<Pipe>(),
    &same::<UnixSocket>(),
    &across::<UnixSocket>(),
    &lock::UNCONTENDED,
    &lock::CONTENDED,
    &pool::POOL,
    &wake::IDLE,
    &wake::LOADED,
];
