//! The ways in which one thread can wake another that the ping-pong measures.

use std::cell::UnsafeCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::futex::Word;
use crate::kind::Kind;

/// Something that two sides, 0 and 1, hand to each other. Whoever takes it blocks until it is given
/// to him.
pub(super) trait Wakeup: Sync + Sized {
    /// The figure with both sides on one CPU.
    const SAME: Kind;
    /// The figure with the sides on two cores.
    const ACROSS: Kind;
    /// How it is measured.
    const HOW: &str;
    /// Where that comes from.
    const SOURCE: &str;

    fn new() -> io::Result<Self>;
    /// Wakes the other side.
    fn give(&self, to: usize) -> io::Result<()>;
    /// Waits until this side was given it.
    fn take(&self, side: usize) -> io::Result<()>;
}

/// What is said of each, around what differs.
macro_rules! how {
    ($means:literal) => {
        concat!(
            "two threads, each pinned, on one CPU or on two cores; ",
            $means,
            "; half a round trip, the mean of a batch. With two CPUs the waiter's has nothing else \
             to do and falls asleep each time: waking it, which in a guest the hypervisor has to \
             do, can be most of the figure"
        )
    };
}

fn result_of(returned: libc::c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Of a call that returns the error's number.
fn checked(returned: libc::c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// A POSIX semaphore for the threads of one process. Boxed, so that it stays where it is.
pub(super) struct Sem(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: semaphores are made to be used by several threads at once.
unsafe impl Sync for Sem {}

impl Sem {
    /// Begins at 0.
    pub fn new() -> io::Result<Sem> {
        // SAFETY: zero is a valid bit pattern of plain memory that sem_init fills.
        let sem = Sem(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: the memory is ours, and stays where it is.
        result_of(unsafe { libc::sem_init(sem.0.get(), 0, 0) })?;
        Ok(sem)
    }

    /// Adds one, and wakes a waiter.
    pub fn post(&self) -> io::Result<()> {
        // SAFETY: initialized by `new`.
        result_of(unsafe { libc::sem_post(self.0.get()) })
    }

    /// Waits until it is above 0, and takes one.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            // SAFETY: initialized by `new`.
            match result_of(unsafe { libc::sem_wait(self.0.get()) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Drop for Sem {
    fn drop(&mut self) {
        // SAFETY: initialized by `new`; nobody else holds it any more.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// Two POSIX semaphores.
pub(super) struct Semaphore([Sem; 2]);

impl Wakeup for Semaphore {
    const SAME: Kind = Kind::ns("pingpong.semaphore.same", "semaphore, one CPU");
    const ACROSS: Kind = Kind::ns("pingpong.semaphore.across", "semaphore, two CPUs");
    const HOW: &str =
        how!("a POSIX semaphore (sem_t) each: sem_post of the other's, sem_wait for one's own");
    const SOURCE: &str =
        "D. Kurkin, AppsConf 2018, semaphore switching time; lmbench lat_sem uses System V's";

    fn new() -> io::Result<Self> {
        Ok(Semaphore([Sem::new()?, Sem::new()?]))
    }

    fn give(&self, to: usize) -> io::Result<()> {
        self.0[to].post()
    }

    fn take(&self, side: usize) -> io::Result<()> {
        self.0[side].wait()
    }
}

/// Two futex words, and the system calls themselves.
pub(super) struct Futex([Word; 2]);

impl Wakeup for Futex {
    const SAME: Kind = Kind::ns("pingpong.futex.same", "futex, one CPU");
    const ACROSS: Kind = Kind::ns("pingpong.futex.across", "futex, two CPUs");
    const HOW: &str = how!(
        "a word each: set the other's and FUTEX_WAKE, FUTEX_WAIT (both private) for one's own"
    );
    const SOURCE: &str = "futex(2); the semaphore's method without the C library";

    fn new() -> io::Result<Self> {
        Ok(Futex([Word::default(), Word::default()]))
    }

    fn give(&self, to: usize) -> io::Result<()> {
        self.0[to].give().map(|_| ())
    }

    fn take(&self, side: usize) -> io::Result<()> {
        self.0[side].take()
    }
}

/// A mutex, the side whose turn it is, and a condition variable for each side.
pub(super) struct Condition(Box<Turn>);

struct Turn {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    conditions: [UnsafeCell<libc::pthread_cond_t>; 2],
    /// Guarded by the mutex.
    given: UnsafeCell<[bool; 2]>,
}

// SAFETY: mutex and conditions are made to be used by several threads at once, and `given` is only
// touched while the mutex is held.
unsafe impl Sync for Condition {}

impl Wakeup for Condition {
    const SAME: Kind = Kind::ns("pingpong.condvar.same", "condition variable, one CPU");
    const ACROSS: Kind = Kind::ns("pingpong.condvar.across", "condition variable, two CPUs");
    const HOW: &str = how!(
        "one mutex and a condition variable each: set under the mutex whose turn it is, unlock, \
         pthread_cond_signal the other's, pthread_cond_wait for one's own"
    );
    const SOURCE: &str = "POSIX threads; the semaphore's method with a condition variable";

    fn new() -> io::Result<Self> {
        Ok(Condition(Box::new(Turn {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            conditions: [const { UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER) }; 2],
            given: UnsafeCell::new([false; 2]),
        })))
    }

    fn give(&self, to: usize) -> io::Result<()> {
        let turn = &*self.0;
        // SAFETY: mutex and condition are initialized and stay where they are; `given` is written
        // with the mutex held.
        unsafe {
            checked(libc::pthread_mutex_lock(turn.mutex.get()))?;
            (*turn.given.get())[to] = true;
            checked(libc::pthread_mutex_unlock(turn.mutex.get()))?;
            checked(libc::pthread_cond_signal(turn.conditions[to].get()))
        }
    }

    fn take(&self, side: usize) -> io::Result<()> {
        let turn = &*self.0;
        // SAFETY: as above; pthread_cond_wait returns with the mutex held.
        unsafe {
            checked(libc::pthread_mutex_lock(turn.mutex.get()))?;
            while !(*turn.given.get())[side] {
                checked(libc::pthread_cond_wait(
                    turn.conditions[side].get(),
                    turn.mutex.get(),
                ))?;
            }
            (*turn.given.get())[side] = false;
            checked(libc::pthread_mutex_unlock(turn.mutex.get()))
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: initialized, and nobody else holds them any more.
        unsafe {
            for condition in &self.conditions {
                libc::pthread_cond_destroy(condition.get());
            }
            libc::pthread_mutex_destroy(self.mutex.get());
        }
    }
}

/// Two eventfds.
pub(super) struct Event([File; 2]);

impl Wakeup for Event {
    const SAME: Kind = Kind::ns("pingpong.eventfd.same", "eventfd, one CPU");
    const ACROSS: Kind = Kind::ns("pingpong.eventfd.across", "eventfd, two CPUs");
    const HOW: &str = how!("an eventfd each: write 1 to the other's, read one's own");
    const SOURCE: &str = "eventfd(2); lmbench lat_pipe's method with another descriptor";

    fn new() -> io::Result<Self> {
        let event = || {
            // SAFETY: makes a descriptor that nobody else has.
            match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
                -1 => Err(io::Error::last_os_error()),
                // SAFETY: it is open and ours.
                fd => Ok(unsafe { File::from_raw_fd(fd) }),
            }
        };
        Ok(Event([event()?, event()?]))
    }

    fn give(&self, to: usize) -> io::Result<()> {
        (&self.0[to]).write_all(&1u64.to_ne_bytes())
    }

    fn take(&self, side: usize) -> io::Result<()> {
        (&self.0[side]).read_exact(&mut [0; 8])
    }
}

/// Two pipes: each side reads one and writes the other.
pub(super) struct Pipe([(File, File); 2]);

impl Wakeup for Pipe {
    const SAME: Kind = Kind::ns("pingpong.pipe.same", "pipe, one CPU");
    const ACROSS: Kind = Kind::ns("pingpong.pipe.across", "pipe, two CPUs");
    const HOW: &str = how!("a pipe in each direction: write a byte, read a byte");
    const SOURCE: &str =
        "lmbench lat_pipe (McVoy and Staelin 1996), between threads as perf bench sched pipe -T";

    fn new() -> io::Result<Self> {
        let pipe = || -> io::Result<(File, File)> {
            let (reader, writer) = io::pipe()?;
            Ok((
                File::from(OwnedFd::from(reader)),
                File::from(OwnedFd::from(writer)),
            ))
        };
        Ok(Pipe([pipe()?, pipe()?]))
    }

    fn give(&self, to: usize) -> io::Result<()> {
        (&self.0[to].1).write_all(&[1])
    }

    fn take(&self, side: usize) -> io::Result<()> {
        (&self.0[side].0).read_exact(&mut [0])
    }
}

/// A pair of stream sockets: each side has one.
pub(super) struct UnixSocket([UnixStream; 2]);

impl Wakeup for UnixSocket {
    const SAME: Kind = Kind::ns("pingpong.unix.same", "Unix socket, one CPU");
    const ACROSS: Kind = Kind::ns("pingpong.unix.across", "Unix socket, two CPUs");
    const HOW: &str = how!("a socketpair of streams: write a byte, read a byte");
    const SOURCE: &str = "lmbench lat_unix (McVoy and Staelin 1996), between threads";

    fn new() -> io::Result<Self> {
        let (one, other) = UnixStream::pair()?;
        Ok(UnixSocket([one, other]))
    }

    fn give(&self, to: usize) -> io::Result<()> {
        (&self.0[1 - to]).write_all(&[1])
    }

    fn take(&self, side: usize) -> io::Result<()> {
        (&self.0[side]).read_exact(&mut [0])
    }
}
