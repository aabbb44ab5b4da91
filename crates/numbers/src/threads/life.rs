//! The life of a thread, in phases: made, run, finished, joined.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use super::common::{STEPS, checked, now_ns, one_by_one, other_cpu, spin_until, work};
use super::wakeup::Sem;
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// A thread that is made, does a procedure of some 20 µs, and is joined by its maker.
pub(super) const LIFE: Method = Method {
    id: "thread.life",
    section: Section::Threads,
    figures: &[
        Kind::ns("thread.create", "create a thread"),
        Kind::ns("thread.run", "until it runs"),
        Kind::ns("thread.join", "join it"),
        Kind::ns("thread.overhead", "a thread for one task, as a whole"),
    ],
    how: "a thread with default attributes does some 20 µs of work while its maker waits in \
        pthread_join; both may use two CPUs, the maker's and another core's. create: pthread_create \
        from call to return; run: from its call to the thread's first instruction; join: from the \
        thread's last instruction until pthread_join returns; overhead: from the call of \
        pthread_create to the return of pthread_join less the work, which is run + join. The C \
        library reuses the stack of the thread before. Two modes: the CPU that a thread is started on or that \
        its maker wakes on may be awake or have to be woken",
    source: "D. Kurkin, AppsConf 2018, costs of creating a thread; there a join counts from the \
        thread's end as System Trace shows it",
    weight: 2,
    run: |place, meter| {
        let _pinned = cpu::pin(place.here)?;
        if let Some(there) = place.there {
            cpu::stay_on(&[place.here, there])?;
        }
        one_by_one(meter, |meter| {
            let phases = live(&|| work(STEPS))?;
            meter.push("thread.create", phases.create);
            meter.push("thread.run", phases.run);
            meter.push("thread.join", phases.join);
            meter.push("thread.overhead", phases.overhead);
            Ok(())
        })
    },
};

/// A thread's end, seen from another CPU.
pub(super) const FINISH: Method = Method {
    id: "thread.finish",
    section: Section::Threads,
    figures: &[Kind::ns("thread.finish", "finish a thread")],
    how: "from the last instruction of a thread that is pinned to another core until the kernel \
        knows it no more: another thread asks with tgkill (signal 0) without pause. A pthread_join \
        returns before that, as soon as the memory is no more used",
    source: "D. Kurkin, AppsConf 2018, end of a thread (there from System Trace)",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let there = other_cpu(place)?;
        let _pinned = cpu::pin(place.here)?;
        one_by_one(meter, |meter| {
            let took = finish(there, &|| ())?;
            meter.push("thread.finish", took);
            Ok(())
        })
    },
};

/// Nanoseconds.
#[derive(Debug)]
struct Phases {
    create: f64,
    run: f64,
    join: f64,
    overhead: f64,
}

/// What maker and thread share.
struct Task<'a> {
    procedure: &'a (dyn Fn() + Sync),
    began: AtomicU64,
    ended: AtomicU64,
}

extern "C" fn task(argument: *mut libc::c_void) -> *mut libc::c_void {
    let began = now_ns();
    // SAFETY: `live` passes a Task, and joins this thread before it lets go of it.
    let task = unsafe { &*argument.cast::<Task>() };
    task.began.store(began, Ordering::Relaxed);
    (task.procedure)();
    task.ended.store(now_ns(), Ordering::Relaxed);
    ptr::null_mut()
}

/// Does the procedure, which must not panic, in a thread of its own.
fn live(procedure: &(dyn Fn() + Sync)) -> Result<Phases, Untried> {
    let shared = Task {
        procedure,
        began: AtomicU64::new(0),
        ended: AtomicU64::new(0),
    };
    let called = now_ns();
    let thread = start(task, &shared)?;
    let returned = now_ns();
    thread.join()?;
    let joined = now_ns();
    let (began, ended) = (shared.began.into_inner(), shared.ended.into_inner());
    Ok(Phases {
        create: (returned - called) as f64,
        run: (began - called) as f64,
        join: (joined - ended) as f64,
        overhead: (joined - called) as f64 - (ended - began) as f64,
    })
}

/// A thread that was not joined yet; it has to be.
#[must_use]
struct Thread(libc::pthread_t);

type Body = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;

/// `shared` must be what the body takes it for, and live until the thread is joined.
fn start<T: Sync>(body: Body, shared: &T) -> Result<Thread, Untried> {
    let mut thread = 0;
    let argument = ptr::from_ref(shared).cast_mut().cast();
    // SAFETY: body and argument belong together, and callers join before `shared` ends.
    let error = unsafe { libc::pthread_create(&mut thread, ptr::null(), body, argument) };
    checked("making a thread", error)?;
    Ok(Thread(thread))
}

impl Thread {
    fn join(self) -> Result<(), Untried> {
        // SAFETY: made by `start`, and joined once, as this takes `self`.
        let error = unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
        checked("joining a thread", error)
    }
}

/// Ends a thread on CPU `there`, and says how long it took until it was gone, ns. The thread calls
/// `before_the_end`, which must not panic, when it is there.
fn finish(there: usize, before_the_end: &(dyn Fn() + Sync)) -> Result<f64, Untried> {
    let (tid, looked_for) = (AtomicI32::new(0), AtomicBool::new(false));
    let (pinned, ready) = (OnceLock::new(), Sem::new()?);
    let shared = Task {
        procedure: &|| {
            pinned.get_or_init(|| cpu::stay_on(&[there]));
            before_the_end();
            // SAFETY: takes nothing and only reads.
            tid.store(unsafe { libc::gettid() }, Ordering::Relaxed);
            // A semaphore that is initialized and at 0 can be posted.
            let _ = ready.post();
            spin_until(&looked_for);
        },
        began: AtomicU64::new(0),
        ended: AtomicU64::new(0),
    };
    let thread = start(task, &shared)?;
    // Not by spinning: the new thread begins on this CPU, and could not leave it.
    ready.wait()?;
    let tid = tid.load(Ordering::Relaxed);
    looked_for.store(true, Ordering::Release);
    while !is_gone(tid) {}
    let gone = now_ns();
    thread.join()?;
    let ended = shared.ended.into_inner();
    match pinned.into_inner() {
        Some(Err(refused)) => Err(refused),
        _ => Ok((gone - ended) as f64),
    }
}

/// Whether no thread of this process has this id.
fn is_gone(tid: i32) -> bool {
    // SAFETY: signal 0 is none: it is only looked whether it could be sent.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) == -1 }
}

#[cfg(test)]
mod tests {
    use super::super::common::{other_or_not_run, place_here, spin_for};
    use super::*;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    fn own_tid() -> i32 {
        // SAFETY: takes nothing and only reads.
        unsafe { libc::gettid() }
    }

    fn of_task(tid: i32) -> PathBuf {
        format!("/proc/self/task/{tid}").into()
    }

    /// The procedure runs once, in another thread of this process, which is gone afterwards.
    #[test]
    fn the_procedure_runs_in_a_thread_that_is_joined() {
        let tids = std::sync::Mutex::new(Vec::new());
        live(&|| {
            tids.lock()
                .unwrap()
                .push((own_tid(), of_task(own_tid()).exists()))
        })
        .unwrap();
        let tids = tids.into_inner().unwrap();
        let [(tid, was_there)] = tids[..] else {
            panic!("{tids:?}");
        };
        assert!(was_there);
        assert_ne!(tid, own_tid());
        let give_up = Instant::now() + Duration::from_secs(5);
        while of_task(tid).exists() {
            assert!(Instant::now() < give_up, "thread {tid} is still there");
        }
    }

    /// The work does not count: with 20 ms of it the overhead is what it was, and what it is made of.
    #[test]
    fn overhead_is_the_whole_less_the_work() {
        let start = Instant::now();
        let phases = live(&|| spin_for(Duration::from_millis(20))).unwrap();
        let whole = start.elapsed().as_nanos() as f64;
        assert_eq!(phases.overhead, phases.run + phases.join);
        assert!(phases.overhead <= whole - 20e6, "{phases:?} of {whole}");
        for part in [phases.create, phases.run, phases.join] {
            assert!(part > 0.0, "{phases:?}");
        }
    }

    /// A thread that runs is not gone, one that never was is.
    #[test]
    fn a_thread_that_runs_is_not_gone() {
        assert!(!is_gone(own_tid()));
        // Init is no thread of this process.
        assert!(is_gone(1));
    }

    /// The thread whose end is measured was on the other CPU, and is gone.
    #[test]
    fn the_end_is_that_of_a_thread_on_the_other_cpu() {
        let place = place_here();
        let Some(there) = other_or_not_run(&place) else {
            return;
        };
        let seen = std::sync::Mutex::new((0, 0));
        let took = finish(there, &|| {
            *seen.lock().unwrap() = (cpu::current(), own_tid());
        });
        assert!(took.unwrap() > 0.0);
        let (cpu, tid) = seen.into_inner().unwrap();
        assert_eq!(cpu, there);
        assert!(!of_task(tid).exists());
    }
}
