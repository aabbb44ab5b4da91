//! The memory that is shared with the recorder, as docs/MARKS.md describes it.
//!
//! It lies at `AREA` for as long as the process lives; a forked child makes its own in place of it.

use std::cell::Cell;
use std::fs;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Code;

const MAGIC: u64 = 0x736b_7261_6d67_6468;
const RINGS: usize = 256;
const RECORDS: usize = 65536;
const NAMES: usize = 1024;
const NAME_LENGTH: usize = 60;
/// The first number that stands for a name.
pub(crate) const FIRST_NAME: u32 = 16384;
/// For so long a new program takes it that it is recorded: until a recorder has found it. In ns, and in
/// units of any time stamp counter.
const GRACE: [u64; 2] = [200_000_000, 500_000_000];
const TSC: u32 = 1;

/// A record, of which the recorder reads those that are done.
#[repr(C)]
struct Record {
    sequence: AtomicU64,
    time: AtomicU64,
    tid: AtomicU32,
    code: AtomicU32,
    kind: AtomicU8,
    pairing: AtomicU8,
    colour: AtomicU8,
    reserved: [u8; 5],
    arguments: [AtomicU64; 4],
}

#[repr(C)]
struct Ring {
    begun: AtomicU64,
    done: AtomicU64,
    owner: AtomicU32,
    reserved: [u32; 11],
}

#[repr(C)]
struct Name {
    length: AtomicU32,
    text: [AtomicU8; NAME_LENGTH],
}

#[repr(C)]
struct Area {
    magic: AtomicU64,
    version: AtomicU32,
    pid: AtomicU32,
    rings: AtomicU32,
    records: AtomicU32,
    names: AtomicU32,
    clock: AtomicU32,
    reserved0: [u32; 8],
    recorded_until: AtomicU64,
    reserved1: [u64; 7],
    unplaced: AtomicU64,
    reserved2: [u64; 7],
    name_count: AtomicU32,
    reserved3: [u8; 3900],
    ring: [Ring; RINGS],
    name: [Name; NAMES],
    record: [[Record; RECORDS]; RINGS],
}

const _: () = {
    assert!(size_of::<Record>() == 64 && size_of::<Ring>() == 64 && size_of::<Name>() == 64);
    assert!(std::mem::offset_of!(Area, recorded_until) == 64);
    assert!(std::mem::offset_of!(Area, unplaced) == 128);
    assert!(std::mem::offset_of!(Area, ring) == 4096);
};

static AREA: AtomicPtr<Area> = AtomicPtr::new(ptr::null_mut());
/// Held while the area is made and while names are given, and across fork.
static LOCK: Mutex<bool> = Mutex::new(false);
/// Where the memory could not be had.
const NOWHERE: *mut Area = ptr::dangling_mut();

thread_local! {
    static OWN: Own = const { Own { area: Cell::new(ptr::null_mut()), at: Cell::new(0), tid: Cell::new(0) } };
}

/// The ring of a thread.
struct Own {
    area: Cell<*mut Area>,
    at: Cell<usize>,
    tid: Cell<u32>,
}

impl Drop for Own {
    fn drop(&mut self) {
        // Of an area that was left behind by fork nothing is to be given back.
        if let Some(area) = current()
            && ptr::eq(self.area.get(), area)
        {
            area.ring[self.at.get()].owner.store(0, Release);
        }
    }
}

fn lock() -> MutexGuard<'static, bool> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The area, if there is one.
#[inline]
fn current() -> Option<&'static Area> {
    let area = AREA.load(Acquire);
    if area.is_null() || ptr::eq(area, NOWHERE) {
        return None;
    }
    // SAFETY: it was mapped whole, is of atomics and unused bytes only, and is unmapped by nobody but a
    // forked child, in which this thread is then the only one and does not hold the reference.
    Some(unsafe { &*area })
}

/// The area, made if need be.
#[inline]
fn area() -> Option<&'static Area> {
    if AREA.load(Relaxed).is_null() {
        start();
    }
    current()
}

#[cold]
fn start() {
    let mut is_set_up = lock();
    if !AREA.load(Relaxed).is_null() {
        return;
    }
    if !*is_set_up {
        // SAFETY: the functions live as long as the program, unless this is in a library that is
        // unloaded, which Rust does not support with thread-locals either.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        *is_set_up = failed == 0;
    }
    let made = if *is_set_up { make() } else { None };
    AREA.store(made.unwrap_or(NOWHERE), Release);
}

/// Of a child: what it inherited is its parent's.
extern "C" fn forked() {
    let Some(old) = current() else { return };
    let made = make();
    if let Some(new) = made {
        // SAFETY: it has just been mapped.
        let new = unsafe { &*new };
        let count = old.name_count.load(Relaxed).min(NAMES as u32);
        for (from, to) in old.name.iter().zip(&new.name).take(count as usize) {
            for (from, to) in from.text.iter().zip(&to.text) {
                to.store(from.load(Relaxed), Relaxed);
            }
            to.length.store(from.length.load(Relaxed), Release);
        }
        new.name_count.store(count, Release);
    }
    AREA.store(made.unwrap_or(NOWHERE), Release);
    // SAFETY: it was mapped with this length; the only thread of the child does not use it any more.
    unsafe { libc::munmap(ptr::from_ref(old).cast_mut().cast(), size_of::<Area>()) };
}

/// A new area; none if that cannot be.
fn make() -> Option<*mut Area> {
    // SAFETY: plain calls whose pointers are to live values; each result is checked, and the descriptor
    // is closed once.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        // A larger file would end the program with SIGXFSZ.
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0
            && limit.rlim_cur < size_of::<Area>() as u64
        {
            return None;
        }
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let fd = libc::memfd_create(c"hangdog-marks".as_ptr(), flags);
        if fd < 0 {
            return None;
        }
        let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        let is_sealed = libc::ftruncate(fd, size_of::<Area>() as libc::off_t) == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0;
        let place = match is_sealed {
            true => libc::mmap(
                ptr::null_mut(),
                size_of::<Area>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                fd,
                0,
            ),
            false => libc::MAP_FAILED,
        };
        if place == libc::MAP_FAILED {
            libc::close(fd);
            return None;
        }
        libc::madvise(place, size_of::<Area>(), libc::MADV_DONTDUMP);
        let area: *mut Area = place.cast();
        (*area).version.store(1, Relaxed);
        (*area).pid.store(std::process::id(), Relaxed);
        (*area).rings.store(RINGS as u32, Relaxed);
        (*area).records.store(RECORDS as u32, Relaxed);
        (*area).names.store(NAMES as u32, Relaxed);
        let clock = clock();
        (*area).clock.store(clock, Relaxed);
        let until = now(clock) + GRACE[clock as usize];
        (*area).recorded_until.store(until, Relaxed);
        (*area).magic.store(MAGIC, Release);
        // The kernel tells recorders of executable mappings: this is how one that runs hears of us.
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let told = libc::mmap(ptr::null_mut(), 4096, protection, libc::MAP_SHARED, fd, 0);
        if told != libc::MAP_FAILED {
            libc::munmap(told, 4096);
        }
        libc::close(fd);
        Some(area)
    }
}

/// The CPU's counter is read in half the time, and serves where the kernel itself goes by it.
fn clock() -> u32 {
    const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let is_tsc = cfg!(target_arch = "x86_64")
        && fs::read_to_string(FILE).is_ok_and(|name| name.trim() == "tsc");
    if is_tsc { TSC } else { 0 }
}

#[inline]
fn now(clock: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if clock == TSC {
        // SAFETY: every x86-64 CPU has the instruction, which only reads.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    let _ = clock;
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it fills one live value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub(crate) fn is_recorded() -> bool {
    area().is_some_and(|area| area.recorded_until.load(Relaxed) != 0)
}

#[inline]
pub(crate) fn mark(kind: u8, code: Code, arguments: &[i64]) {
    if let Some(area) = area() {
        let until = area.recorded_until.load(Relaxed);
        if until != 0 {
            write(area, until, kind, code, arguments);
        }
    }
}

#[inline(never)]
fn write(area: &'static Area, until: u64, kind: u8, code: Code, arguments: &[i64]) {
    let now = now(area.clock.load(Relaxed));
    if now >= until {
        // Whoever recorded has not said for a while that they still do.
        let _ = (area.recorded_until).compare_exchange(until, 0, Relaxed, Relaxed);
        return;
    }
    let is_written = OWN.try_with(|own| {
        if !ptr::eq(own.area.get(), area) && !join(area, own) {
            return false;
        }
        let ring = &area.ring[own.at.get()];
        // A signal's handler may come between any two of these, and marks too.
        let number = ring.begun.load(Relaxed);
        ring.begun.store(number + 1, Relaxed);
        fence(Release);
        let record = &area.record[own.at.get()][number as usize % RECORDS];
        record.time.store(now, Relaxed);
        record.tid.store(own.tid.get(), Relaxed);
        record.code.store(code.number, Relaxed);
        record.kind.store(kind, Relaxed);
        record.pairing.store(code.pairing, Relaxed);
        record.colour.store(code.colour, Relaxed);
        for (at, place) in record.arguments.iter().enumerate() {
            place.store(arguments.get(at).copied().unwrap_or(0) as u64, Relaxed);
        }
        record.sequence.store(number + 1, Release);
        ring.done.store(ring.begun.load(Relaxed), Release);
        true
    });
    if is_written != Ok(true) {
        area.unplaced.fetch_add(1, Relaxed);
    }
}

/// A ring for the calling thread; false if all are taken.
#[cold]
fn join(area: &'static Area, own: &Own) -> bool {
    // SAFETY: gettid has no preconditions.
    let tid = unsafe { libc::gettid() } as u32;
    let free = |ring: &Ring| {
        ring.owner
            .compare_exchange(0, tid, Acquire, Relaxed)
            .is_ok()
    };
    let Some(at) = area.ring.iter().position(free) else {
        return false;
    };
    own.at.set(at);
    own.tid.set(tid);
    own.area.set(ptr::from_ref(area).cast_mut());
    true
}

/// The number of a name, which is the same in all of the program.
pub(crate) fn name(name: &str) -> u32 {
    let Some(area) = area() else {
        return FIRST_NAME;
    };
    let _lock = lock();
    let cut = |name: &str| name.as_bytes()[..name.len().min(NAME_LENGTH)].to_vec();
    let mut text = cut(name);
    let count = area.name_count.load(Relaxed) as usize;
    let has = |known: &Name| {
        let length = known.length.load(Relaxed) as usize;
        let same = |(known, own): (&AtomicU8, &u8)| known.load(Relaxed) == *own;
        length == text.len() && known.text.iter().zip(&text).all(same)
    };
    if let Some(at) = area.name[..count.min(NAMES)].iter().position(has) {
        return FIRST_NAME + at as u32;
    }
    if count >= NAMES {
        return FIRST_NAME + NAMES as u32 - 1;
    }
    if count == NAMES - 1 {
        text = cut("(more names)");
    }
    for (place, byte) in area.name[count].text.iter().zip(&text) {
        place.store(*byte, Relaxed);
    }
    area.name[count].length.store(text.len() as u32, Release);
    area.name_count.store(count as u32 + 1, Release);
    FIRST_NAME + count as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of names are the same every time, follow each other, and long names are cut.
    #[test]
    fn names() {
        let first = name("one of the tests");
        assert_eq!(name("one of the tests"), first);
        assert_ne!(name("another of the tests"), first);
        assert!(first >= FIRST_NAME);
        let long = "x".repeat(100);
        assert_eq!(name(&long), name(&long[..NAME_LENGTH]));
    }

    /// While it is recorded, a mark is in the ring of its thread, with all that was said; while it is
    /// not, it is not. A thread that has ended leaves its ring to another.
    #[test]
    fn marks_are_written() {
        let area = area().expect("memory");
        let rings = |count: usize| {
            std::thread::spawn(move || {
                for number in 0..count {
                    mark(2, Code::of(7).by_argument(), &[number as i64, -1]);
                }
                OWN.with(|own| (own.at.get(), own.tid.get()))
            })
            .join()
            .expect("no panic")
        };
        area.recorded_until.store(u64::MAX, Relaxed);
        let (at, tid) = rings(3);
        let ring = &area.ring[at];
        assert_eq!(
            (ring.owner.load(Relaxed), ring.begun.load(Relaxed)),
            (0, ring.done.load(Relaxed))
        );
        let last = ring.done.load(Relaxed) - 1;
        let record = &area.record[at][last as usize % RECORDS];
        assert_eq!(record.sequence.load(Relaxed), last + 1);
        assert_eq!(
            (record.tid.load(Relaxed), record.code.load(Relaxed)),
            (tid, 7)
        );
        assert_eq!(
            (record.kind.load(Relaxed), record.pairing.load(Relaxed)),
            (2, 1)
        );
        let arguments = record
            .arguments
            .each_ref()
            .map(|argument| argument.load(Relaxed) as i64);
        assert_eq!(arguments, [2, -1, 0, 0]);

        // A recorder that has not said so for long records no more.
        area.recorded_until.store(1, Relaxed);
        let before = ring.begun.load(Relaxed);
        mark(0, Code::of(7), &[]);
        assert_eq!(area.recorded_until.load(Relaxed), 0);
        rings(3);
        assert_eq!(ring.begun.load(Relaxed), before);
    }
}
