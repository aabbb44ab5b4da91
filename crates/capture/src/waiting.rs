//! What the recording did not see begin: threads that wait already, and what lies in the pipes and
//! sockets that processes have open.
//!
//! A pass over all threads (`bpf/waiting.h`) tells of each that is off its CPU what its switch would
//! have told, and stops none. Their user stacks are copied from outside and walked like the copies
//! that the kernel side sends. A thread may go on between the look at it and the copy: then what
//! was copied leads nowhere, and the stack ends early.
//!
//! The pass comes first of all, since a thread that goes on is seen no more. Where an interpreter keeps
//! its frames is known only once its file was read: the functions that it runs are read then, of the
//! threads that still stand where they were.

use std::collections::HashMap;
use std::fs;
use std::mem::size_of;
use std::ops::Range;

use hangdog_trace::ids::NO_CPU;
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::words::{Left, StackEnd};

use crate::chain::{self, Numbers};
use crate::event::{Event, Happening, Switch};
use crate::function::Function;
use crate::language::{self, Runtime};
use crate::polled::{Opened, epolled, epolls, polled, polls};
use crate::procfs;
use crate::python::locks::Locks;
use crate::records::{Definition, Open, StackCopy, What};
use crate::sockets::{self, Description};
use crate::system::tick_ns;
use crate::sysv;
use hangdog_symbols::memory::{Memory, ProcessMemory, copy_from};

const KERNEL_FRAMES: usize = 64;
/// As `bpf/records.h` has it.
const ON_CPU: u8 = 255;
/// So much of a stack is copied: twice what most programs ever have there.
const STACK_BYTES: usize = 64 << 10;
/// Memory is read in pieces of this size, of which the last may not be there.
const PAGE: u64 = 4096;

/// `struct waiting_thread` of `bpf/records.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawWaiting {
    ts: u64,
    object: u64,
    arg: u64,
    tid: u32,
    pid: u32,
    call: i16,
    left: u8,
    padding: u8,
    kernel_count: u32,
    ip: u64,
    sp: u64,
    fp: u64,
    link: u64,
    born_at: u64,
    left_at: u64,
    reader_came: u64,
    thread_pointer: u64,
    kernel: [u64; KERNEL_FRAMES],
}

/// `struct open_descriptor` of `bpf/records.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawDescriptor {
    ts: u64,
    object: u64,
    pid: u32,
    unread: u32,
    access: u8,
    kind: u8,
    last: u8,
    padding: u8,
    jiffies: u32,
}

impl RawDescriptor {
    /// Since its last bytes went: those may have gone while the pass looked, after it read the clock.
    fn jiffies(&self) -> u32 {
        const JUST_NOW: u32 = u32::MAX - 1000;
        if self.jiffies > JUST_NOW {
            0
        } else {
            self.jiffies
        }
    }
}

impl RawWaiting {
    /// Whether the thread left its CPU right when whoever looks came to one.
    fn had_to_leave_for_reader(&self) -> bool {
        /// What a switch takes, with some room, ns.
        const SWITCH: u64 = 50_000;
        self.left_at.abs_diff(self.reader_came) <= SWITCH
    }
}

/// Reads what the pass over all open files wrote. Of several descriptors of a process for one thing
/// one is told of, with all that may be done by them.
pub(crate) fn parse_descriptors(bytes: &[u8]) -> Vec<Definition> {
    let mut seen: HashMap<(u32, u64), usize> = HashMap::new();
    let mut found: Vec<(u64, Open)> = Vec::new();
    let tick = tick_ns();
    for record in bytes.chunks_exact(size_of::<RawDescriptor>()) {
        // SAFETY: the record has the size of `RawDescriptor`, which holds plain numbers; it is read
        // wherever it lies.
        let raw: RawDescriptor =
            unsafe { record.as_ptr().cast::<RawDescriptor>().read_unaligned() };
        let at = *seen.entry((raw.pid, raw.object)).or_insert(found.len());
        match found.get_mut(at) {
            Some((_, open)) => {
                open.access |= raw.access;
                // One of several descriptors may be the one that has the lock.
                open.kind = open.kind.max(raw.kind);
            }
            None => found.push((
                raw.ts,
                Open {
                    pid: raw.pid,
                    object: raw.object,
                    unread: raw.unread,
                    access: raw.access,
                    kind: raw.kind,
                    last: raw.last,
                    ago: u64::from(raw.jiffies()).saturating_mul(tick),
                },
            )),
        }
    }
    let definition = |(ts, open)| Definition {
        ts,
        what: What::Open(open),
    };
    found.into_iter().map(definition).collect()
}

/// Whether an event tells by its argument who has what is waited for: the holder of a file's lock, the
/// last user of a System V semaphore or queue, the debugger of a thread that is stopped.
pub(crate) fn names_other(call: i64, left: u8) -> bool {
    matches!(call, libc::SYS_fcntl | libc::SYS_flock) || is_stopped(left) || sysv::is_wait(call)
}

/// Whether a thread left its CPU since it was stopped.
pub(crate) fn is_stopped(left: u8) -> bool {
    Left::from(left) == Left::Stopped
}

/// What was found: an event for each thread, and what these refer to.
#[derive(Default)]
pub(crate) struct Found {
    pub events: Vec<Event>,
    pub definitions: Vec<Definition>,
    /// Whose stacks were copied.
    copied: Vec<Copied>,
    /// Who was on a CPU, or wanted one.
    pub running: Vec<Running>,
    /// Where among `events` a thread is, by its tid and when it left its CPU by the scheduler's clock.
    places: HashMap<(u32, u64), usize>,
}

/// A thread that does not wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    pub tid: u32,
    pub pid: u32,
    /// It was on a CPU, or would have been but for whoever looks.
    pub on_cpu: bool,
    pub thread_pointer: u64,
}

/// How far the scheduler's clock is behind CLOCK_MONOTONIC, in ns, wrapping around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchedulerClock(u64);

impl SchedulerClock {
    /// From the looks of one pass. Who looks got its CPU by the scheduler's clock before it looked by
    /// the other: the shortest time between the two is closest to none.
    fn of(raws: impl Iterator<Item = RawWaiting>) -> Option<SchedulerClock> {
        let told = raws.filter(|raw| raw.left != ON_CPU && raw.left_at != 0);
        told.map(|raw| raw.ts.wrapping_sub(raw.reader_came) as i64)
            .min()
            .map(|behind| SchedulerClock(behind as u64))
    }

    /// Since when a thread has been off its CPU, by CLOCK_MONOTONIC, ns.
    fn of_thread(self, raw: &RawWaiting) -> Option<u64> {
        let since = raw.left_at.wrapping_add(self.0);
        (raw.left_at != 0 && since <= raw.ts).then_some(since)
    }
}

/// A thread whose stack was copied.
struct Copied {
    tid: u32,
    thread_pointer: u64,
    /// The copy, among the definitions.
    definition: usize,
}

/// What is needed to tell of stacks.
pub(crate) trait Stacks {
    /// A number that no other stack has.
    fn next_stack(&mut self) -> u32;
    /// A number that no other function has.
    fn next_function(&mut self) -> u32;
    /// The interpreter of a process, if it has one whose functions can be read.
    fn interpreter(&self, pid: u32) -> Option<Runtime>;
    /// Where a process has the list of its goroutines, if it is a Go program.
    fn goroutines(&self, pid: u32) -> Option<u64>;
}

impl Found {
    /// Reads what the pass wrote; `open` is what processes have open. Without `stacks` none are wanted. The
    /// event of a thread that has not had a CPU since the look `before` is taken from that.
    pub(crate) fn parse(
        bytes: &[u8],
        open: &[Definition],
        mut stacks: Option<impl Stacks>,
        before: Option<&Found>,
    ) -> Found {
        let open = Opened::of(open);
        let mut found = Found::default();
        let mut locks = None;
        let read = |record: &[u8]| {
            // SAFETY: a record has the size of `RawWaiting`, which holds plain numbers; it is read
            // wherever it lies.
            unsafe { record.as_ptr().cast::<RawWaiting>().read_unaligned() }
        };
        let raws = || bytes.chunks_exact(size_of::<RawWaiting>()).map(read);
        let clock = SchedulerClock::of(raws());
        for raw in raws() {
            let on_cpu = raw.left == ON_CPU;
            if on_cpu || Left::from(raw.left) == Left::Preempted {
                found.running.push(Running {
                    tid: raw.tid,
                    pid: raw.pid,
                    on_cpu: on_cpu || raw.had_to_leave_for_reader(),
                    thread_pointer: raw.thread_pointer,
                });
            }
            if on_cpu {
                continue;
            }
            if raw.left_at != 0 {
                let place = (raw.tid, raw.left_at);
                found.places.insert(place, found.events.len());
                if let Some(event) = before.and_then(|before| before.of(place)) {
                    found.events.push(Event {
                        ts: raw.ts,
                        ..event.clone()
                    });
                    continue;
                }
            }
            let (mut user_stack, mut kernel_stack) = (0, 0);
            if let Some(stacks) = &mut stacks {
                user_stack = found.user_stack(&raw, stacks);
                kernel_stack = found.kernel_stack(&raw, stacks);
            }
            if let Some(description) = connects_to(&raw) {
                let what = What::Socket(description);
                found.definitions.push(Definition { ts: raw.ts, what });
            }
            let other = match i64::from(raw.call) {
                _ if is_stopped(raw.left) => procfs::tracer(raw.tid),
                libc::SYS_fcntl | libc::SYS_flock => locks
                    .get_or_insert_with(FileLocks::read)
                    .holder_for(raw.pid),
                call => sysv::last_user(raw.tid, call),
            };
            let chosen = match raw.object {
                0 if polls(raw.call) => open.awaited(raw.pid, &polled(raw.tid, raw.pid, raw.call)),
                _ if epolls(raw.call) => open.awaited_by_epoll(raw.pid, &epolled(raw.tid, raw.pid)),
                _ => 0,
            };
            found.events.push(Event {
                ts: raw.ts,
                tid: raw.tid,
                cpu: NO_CPU,
                what: Happening::Waiting {
                    is_chosen: chosen != 0,
                    born: raw.born_at,
                    since: clock
                        .and_then(|clock| clock.of_thread(&raw))
                        .unwrap_or(raw.ts),
                    switch: Switch {
                        next: 0,
                        left: raw.left,
                        next_priority: 0,
                        call: raw.call,
                        object: match chosen {
                            0 => raw.object,
                            chosen => chosen,
                        },
                        arg: match names_other(raw.call.into(), raw.left) {
                            true => u64::from(other) << 32 | raw.arg & 0xffff_ffff,
                            false => raw.arg,
                        },
                        user_stack,
                        kernel_stack,
                    },
                },
            });
        }
        found
    }

    /// The event of a thread, by its tid and when it left its CPU.
    fn of(&self, place: (u32, u64)) -> Option<&Event> {
        self.places.get(&place).and_then(|&at| self.events.get(at))
    }

    fn user_stack(&mut self, raw: &RawWaiting, stacks: &mut impl Stacks) -> u32 {
        let bytes = stack_of(raw.pid, raw.sp..u64::MAX);
        if bytes.is_empty() {
            return 0;
        }
        let id = stacks.next_stack();
        self.copied.push(Copied {
            tid: raw.tid,
            thread_pointer: raw.thread_pointer,
            definition: self.definitions.len(),
        });
        self.definitions.push(Definition {
            ts: raw.ts,
            what: What::StackCopy(StackCopy {
                id,
                pid: raw.pid,
                frames: vec![raw.ip],
                sp: raw.sp,
                fp: raw.fp,
                exact: true,
                link: raw.link,
                tid: raw.tid,
                thread_pointer: raw.thread_pointer,
                top: raw.sp,
                bytes,
                chain: Vec::new(),
            }),
        });
        id
    }

    /// Reads the functions of the threads that still wait where their stacks were copied.
    pub(crate) fn read_functions(&mut self, mut stacks: impl Stacks) {
        let mut numbers: HashMap<u32, Numbers> = HashMap::new();
        let mut functions = Vec::new();
        let mut holders = HashMap::new();
        for copied in &self.copied {
            let definition = &mut self.definitions[copied.definition];
            let What::StackCopy(copy) = &mut definition.what else {
                continue;
            };
            let (pid, ts) = (copy.pid, definition.ts);
            let Some(runtime) = stacks.interpreter(pid) else {
                continue;
            };
            if !stands_still(copied.tid, copy.sp) {
                continue;
            }
            let numbers = numbers.entry(pid).or_default();
            let thread = (pid, copied.thread_pointer);
            let (chain, new) = functions_of(&mut stacks, runtime, thread, ts, numbers);
            copy.chain = chain;
            functions.extend(new);
            holders.insert(copy.id, (runtime, thread));
        }
        self.definitions.append(&mut functions);
        self.note_holders(&holders);
    }

    /// Notes who has the locks that threads of Python wait for; `threads` are those of interpreters, by the stacks that they wait in.
    fn note_holders(&mut self, threads: &HashMap<u32, (Runtime, (u32, u64))>) {
        let waits = |switch: &Switch| match threads.get(&switch.user_stack) {
            Some(&(Runtime::Python(runtime), thread))
                if i64::from(switch.call) == libc::SYS_futex =>
            {
                Some((runtime, thread, Object(switch.object).value()))
            }
            _ => None,
        };
        let mut waiters: HashMap<(u32, u64), Vec<u64>> = HashMap::new();
        for event in &self.events {
            if let Happening::Waiting { switch, .. } = &event.what
                && let Some((_, (pid, pointer), futex)) = waits(switch)
            {
                waiters.entry((pid, futex)).or_default().push(pointer);
            }
        }
        let mut locks: HashMap<u32, Locks> = HashMap::new();
        for event in &mut self.events {
            if let Happening::Waiting { switch, .. } = &mut event.what
                && let Some((runtime, (pid, pointer), futex)) = waits(switch)
            {
                let others = waiters.get(&(pid, futex)).map_or(&[][..], Vec::as_slice);
                let locks = locks.entry(pid);
                let locks = locks.or_insert_with(|| Locks::read(&ProcessMemory(pid), runtime));
                if let Some(tid) = locks.holder(pointer, (futex, others)) {
                    switch.arg = u64::from(tid) << 32 | switch.arg & 0xffff_ffff;
                }
            }
        }
    }

    fn kernel_stack(&mut self, raw: &RawWaiting, stacks: &mut impl Stacks) -> u32 {
        let count = KERNEL_FRAMES.min(raw.kernel_count as usize);
        if count == 0 {
            return 0;
        }
        let id = stacks.next_stack();
        self.definitions.push(Definition {
            ts: raw.ts,
            what: What::Stack {
                id,
                pid: 0,
                frames: raw.kernel[..count].to_vec(),
                end: StackEnd::Root,
            },
        });
        id
    }
}

/// Notes who has a lock that was found at the end also where the wait for it began within these events.
pub(crate) fn pass_on_holders(events: &mut [Event]) {
    let of_futex = |switch: &Switch| i64::from(switch.call) == libc::SYS_futex;
    let holder_of = |event: &Event| match &event.what {
        Happening::Waiting { switch, .. } if of_futex(switch) && switch.arg >> 32 != 0 => {
            Some((event.tid, (event.ts, switch.object, switch.arg >> 32)))
        }
        _ => None,
    };
    let found: HashMap<u32, (u64, u64, u64)> = events.iter().filter_map(holder_of).collect();
    if found.is_empty() {
        return;
    }
    let mut last: HashMap<u32, (u64, usize)> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        if let Happening::Switch(_) = event.what
            && let Some(&(until, ..)) = found.get(&event.tid)
            && event.ts <= until
            && last.get(&event.tid).is_none_or(|&(ts, _)| ts <= event.ts)
        {
            last.insert(event.tid, (event.ts, at));
        }
    }
    for (tid, (_, at)) in last {
        let Happening::Switch(switch) = &mut events[at].what else {
            continue;
        };
        let (_, object, holder) = found[&tid];
        if of_futex(switch) && switch.object == object && switch.arg >> 32 == 0 {
            switch.arg |= holder << 32;
        }
    }
}

/// Reads the rest of the stack and the functions that `running` is in now, for a copy of the top of its
/// stack from a moment ago: what is at the root of the stack stays there. Functions that were read with the copy are
/// kept.
pub(crate) fn read_functions_of_running(
    stacks: &mut impl Stacks,
    running: Running,
    (ts, copy): (u64, &mut StackCopy),
    numbers: &mut Numbers,
) -> Vec<Definition> {
    extend(running.pid, copy);
    if !copy.chain.is_empty() {
        return Vec::new();
    }
    let Some(runtime) = stacks.interpreter(running.pid) else {
        return Vec::new();
    };
    let thread = (running.pid, running.thread_pointer);
    let (chain, functions) = functions_of(stacks, runtime, thread, ts, numbers);
    copy.chain = chain::on_stack_from(copy.sp, chain);
    functions
}

/// Adds to a copy of the top of a running thread's stack what lies further out on it now, if the thread is
/// still where it was: most of what the copy has at its end still lies there.
fn extend(pid: u32, copy: &mut StackCopy) {
    /// The kernel side copies no more; less is the whole stack.
    const COPIED: usize = 4096;
    /// So much of its end is compared.
    const COMPARED: usize = 1024;
    let Some(compared) = copy.bytes.len().checked_sub(COMPARED) else {
        return;
    };
    if copy.bytes.len() < COPIED {
        return;
    }
    let now = stack_of(pid, copy.sp.saturating_add(compared as u64)..u64::MAX);
    let Some((same, rest)) = now.split_at_checked(COMPARED) else {
        return;
    };
    let before = copy.bytes[compared..].chunks_exact(8);
    let equal = before.zip(same.chunks_exact(8)).filter(|(a, b)| a == b);
    if equal.count() > COMPARED / 8 / 2 {
        copy.bytes.extend_from_slice(rest);
    }
}

/// A thread whose stack was copied a moment ago.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Still {
    pub ts: u64,
    pub pid: u32,
    pub tid: u32,
    pub thread_pointer: u64,
    /// Where its stack began.
    pub sp: u64,
}

/// Reads the functions that a thread is in, if it has waited since its stack was copied.
pub(crate) fn read_functions_of_waiting(
    stacks: &mut impl Stacks,
    still: Still,
    numbers: &mut Numbers,
) -> Option<(Vec<u64>, Vec<Definition>)> {
    let runtime = stacks.interpreter(still.pid)?;
    if !stands_still(still.tid, still.sp) {
        return None;
    }
    let thread = (still.pid, still.thread_pointer);
    let read = functions_of(stacks, runtime, thread, still.ts, numbers);
    stands_still(still.tid, still.sp).then_some(read)
}

/// The chain of functions that a thread, by its process and thread pointer, is in, and what says what those
/// are called that were not met before.
fn functions_of(
    stacks: &mut impl Stacks,
    runtime: Runtime,
    (pid, thread_pointer): (u32, u64),
    ts: u64,
    numbers: &mut Numbers,
) -> (Vec<u64>, Vec<Definition>) {
    let mut new = Vec::new();
    let number = numbering(stacks, (pid, ts), &mut new);
    let chain = language::read(
        &ProcessMemory(pid),
        runtime,
        thread_pointer,
        numbers,
        number,
    );
    (chain, new)
}

/// Gives a number to each function of a process that has none yet, and adds what says so to the `new` definitions.
pub(crate) fn numbering(
    stacks: &mut impl Stacks,
    (pid, ts): (u32, u64),
    new: &mut Vec<Definition>,
) -> impl FnMut(Function) -> u32 {
    move |function| {
        let number = stacks.next_function();
        let what = What::Function {
            number,
            pid,
            function,
        };
        new.push(Definition { ts, what });
        number
    }
}

/// Whether a thread is off its CPU with its stack pointer at `sp`.
fn stands_still(tid: u32, sp: u64) -> bool {
    procfs::stack_pointer(tid) == Some(sp)
}

/// The unix socket by which a thread waits to be connected, with the address that it gave: the kernel
/// ties the two only once it is.
fn connects_to(raw: &RawWaiting) -> Option<Description> {
    if i64::from(raw.call) != libc::SYS_connect || Object(raw.object).kind() != ObjectKind::Unix {
        return None;
    }
    let &[_, _, address, length, ..] = &procfs::system_call(raw.tid)?[..] else {
        return None;
    };
    let mut bytes = [0; size_of::<libc::sockaddr_un>()];
    let length = bytes.len().min(usize::try_from(length).ok()?);
    ProcessMemory(raw.pid).read(address, &mut bytes[..length])?;
    Some(Description {
        object: raw.object,
        peer: 0,
        pid: raw.pid,
        peer_pid: 0,
        connecting: false,
        namespace: 0,
        local: String::new(),
        remote: sockets::unix_path(&bytes[..length])?,
    })
}

/// What lies on a stack of process `pid` from the first of these addresses on, as much as is ever copied; nothing where it
/// cannot be read.
pub(crate) fn stack_of(pid: u32, addresses: Range<u64>) -> Vec<u8> {
    let size = addresses.end.saturating_sub(addresses.start);
    let mut bytes = vec![0u8; STACK_BYTES.min(usize::try_from(size).unwrap_or(STACK_BYTES))];
    let mut remote = Vec::new();
    let mut at = addresses.start;
    let end = at.saturating_add(bytes.len() as u64);
    while at < end {
        let next = ((at / PAGE + 1).saturating_mul(PAGE)).min(end);
        remote.push(libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: (next - at) as usize,
        });
        at = next;
    }
    let read = copy_from(pid, &remote, &mut bytes);
    bytes.truncate(read);
    // Most are short, and of thousands of threads there are thousands.
    bytes.shrink_to_fit();
    bytes
}

/// The locks of files that somebody waits for, by /proc/locks.
pub(crate) struct FileLocks(Vec<(u32, u32)>);

impl FileLocks {
    fn read() -> FileLocks {
        FileLocks::parse(&fs::read_to_string("/proc/locks").unwrap_or_default())
    }

    /// A line names a lock, and those below it with an arrow who waits for it:
    /// `1: FLOCK  ADVISORY  WRITE 4711 fe:01:42 0 EOF`, `1: -> FLOCK  ADVISORY  WRITE 4712 ...`.
    pub(crate) fn parse(text: &str) -> FileLocks {
        let mut waiters = Vec::new();
        let mut holder = None;
        for line in text.lines() {
            let mut words = line.split_whitespace().skip(1).peekable();
            let waits = words.next_if_eq(&"->").is_some();
            let pid = words.nth(3).and_then(|pid| pid.parse().ok());
            match (waits, pid, holder) {
                (false, pid, _) => holder = pid,
                (true, Some(pid), Some(holder)) => waiters.push((pid, holder)),
                _ => {}
            }
        }
        FileLocks(waiters)
    }

    /// The process whose lock a process waits for; 0 for none. A process that waits for two at once
    /// is not told which of its threads waits for which: the first.
    pub(crate) fn holder_for(&self, pid: u32) -> u32 {
        let found = self.0.iter().find(|(waiter, _)| *waiter == pid);
        found.map_or(0, |&(_, holder)| holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::skeleton::types;

    /// The mirror has the size that the C compiler chose.
    #[test]
    fn the_mirror_has_the_size_of_the_original() {
        assert_eq!(size_of::<RawWaiting>(), size_of::<types::waiting_thread>());
        // The skeleton has no type that no variable has; bpf/records.h asserts the same.
        assert_eq!(size_of::<RawDescriptor>(), 32);
    }

    /// Two descriptors of a process for one pipe are one, with both kinds of access.
    #[test]
    fn descriptors_of_one_thing_are_one() {
        let raw = |pid, access| RawDescriptor {
            ts: 7,
            object: 2 << 56 | 5,
            pid,
            unread: 3,
            access,
            kind: 0,
            last: 0,
            padding: 0,
            jiffies: 2,
        };
        // One that the kernel noted after the pass had read its clock.
        let raced = RawDescriptor {
            jiffies: u32::MAX,
            ..raw(2, 2)
        };
        let mut bytes = Vec::new();
        for one in [raw(1, 1), raced, raw(1, 2)] {
            bytes.extend_from_slice(&one.ts.to_ne_bytes());
            bytes.extend_from_slice(&one.object.to_ne_bytes());
            bytes.extend_from_slice(&one.pid.to_ne_bytes());
            bytes.extend_from_slice(&one.unread.to_ne_bytes());
            bytes.extend_from_slice(&[one.access, one.kind, one.last, one.padding]);
            bytes.extend_from_slice(&one.jiffies.to_ne_bytes());
        }
        // A record that was cut off is left out.
        bytes.extend_from_slice(&[1; 9]);
        let found: Vec<_> = parse_descriptors(&bytes)
            .into_iter()
            .map(|definition| match definition.what {
                What::Open(open) => (open.pid, open.access, open.unread, open.ago / tick_ns()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found, [(1, 3, 3, 2), (2, 2, 3, 0)]);
    }

    /// For each process that waits for a lock the one that holds it is found.
    #[test]
    fn waiters_are_told_with_the_holder() {
        let locks = FileLocks::parse(
            "1: POSIX  ADVISORY  WRITE 700 fe:01:99 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE 4711 fe:01:42 0 EOF\n\
             2: -> FLOCK  ADVISORY  WRITE 4712 fe:01:42 0 EOF\n\
             2: -> FLOCK  ADVISORY  READ  4713 fe:01:42 0 EOF\n\
             3: OFDLCK ADVISORY  WRITE -1 fe:01:43 0 EOF\n\
             3: -> POSIX  ADVISORY  WRITE 4714 fe:01:43 0 EOF\n\
             nonsense\n",
        );
        assert_eq!(locks.holder_for(4712), 4711);
        assert_eq!(locks.holder_for(4713), 4711);
        assert_eq!(locks.holder_for(4714), 0, "nobody's by number");
        assert_eq!(locks.holder_for(700), 0);
    }

    /// Of a stack that ends, what is there is read; of none, nothing.
    #[test]
    fn a_stack_is_read_as_far_as_it_goes() {
        let here = 0x1122_3344_5566_7788_u64;
        let at = (&raw const here) as u64;
        let bytes = stack_of(std::process::id(), at..u64::MAX);
        assert!(bytes.len() >= 8);
        assert_eq!(bytes[..8], here.to_ne_bytes());
        assert!(stack_of(std::process::id(), 0..u64::MAX).is_empty());
    }
}
