//! What each stack shows, worked out once for all stacks of a trace.
//!
//! Whether a stack waits for a lock or gives one back is asked at every wait and every wake, of
//! which there are millions, while there are some ten thousand stacks: so each is looked through
//! for the functions of [`names`](crate::names) once, and is a number from then on.

use hangdog_trace::ids::StackId;
use hangdog_trace::stacks::StackTable;
use std::collections::HashMap;

use crate::names;

/// Something that the functions on a stack tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Mark {
    /// A lock is waited for.
    LockWait = 1,
    /// A condition is waited for, perhaps its lock.
    ConditionWait = 2,
    /// A lock is given back.
    Unlock = 4,
    /// A condition is signalled.
    Signal = 8,
    /// The kernel waits for a block device.
    DiskWait = 16,
    /// The kernel completes block I/O.
    DiskWake = 32,
    /// The kernel delivers what the thread itself just sent.
    Sending = 64,
    /// The language's scheduler, or a pool of threads, has nothing for the thread to do.
    Idle = 128,
    /// The kernel waits for the program that serves a file system, or takes its answer.
    ServedFile = 256,
    /// The kernel hands on what came in by a terminal.
    Terminal = 512,
    /// A library's function that asks and waits for the answer.
    Asks = 1024,
    /// The kernel waits for somebody to open the other end of a FIFO.
    OpensFifo = 2048,
    /// A library's function that waits for a child to end.
    AwaitsChild = 4096,
    /// A language waits for a lock, perhaps for that of a condition.
    LanguageLock = 8192,
    /// A language waits for a condition, or for work.
    LanguageCondition = 16384,
    /// A library's function that sleeps.
    Sleeps = 32768,
    /// A database waits for a lock on what it keeps.
    DatabaseLock = 65536,
    /// The freezer of a control group keeps the thread from running, or lets it go on.
    Frozen = 1 << 17,
    /// The kernel lets go on whom a setting of its own kept: of a control group, or a file system.
    Setting = 1 << 18,
    /// A library's function that asks somebody on a message bus.
    AsksBus = 1 << 19,
    /// The kernel handles a page fault.
    PageFault = 1 << 20,
    /// A toolkit or a pool of threads has the program handle an event or a task.
    Handles = 1 << 21,
    /// The kernel waits for a program to allow that a file is opened.
    Permission = 1 << 22,
    /// A semaphore is waited for: who is woken there has got it.
    Semaphore = 1 << 23,
    /// The kernel waits for a lock of which each CPU has a part.
    PercpuLock = 1 << 24,
    /// The kernel begins to change a file system.
    ChangesFiles = 1 << 25,
    /// The kernel waits until a control group uses less memory.
    MemoryLimit = 1 << 26,
    /// The wait is limited in time.
    Timed = 1 << 27,
    /// The kernel sleeps so that any signal ends it.
    Freezable = 1 << 28,
    /// A shell or another interpreter reads what it is to do next.
    ReadsCommands = 1 << 29,
    /// The result of a task is waited for that was given to a pool of threads.
    AwaitsResult = 1 << 30,
    /// The event loop of a program with a window.
    EventLoop = 1 << 31,
    /// The kernel brings in a page that was swapped out.
    SwapIn = 1 << 32,
    /// A library tries again and again to make a file that serves as a lock.
    PollsLock = 1 << 33,
    /// A library sleeps before it tries again what failed.
    Retries = 1 << 34,
    /// The next piece of work is waited for.
    TakesWork = 1 << 35,
    /// An event is being handled, and no event loop runs within that.
    AmidEvent = 1 << 36,
    /// The kernel waits for a signal that is to be read from a descriptor.
    ReadsSignal = 1 << 37,
    /// A database waits until a standby has what it commits.
    AwaitsStandby = 1 << 38,
    /// A virtual machine waits until all of its threads have stopped.
    AwaitsSafepoint = 1 << 39,
    /// A thread waits for a virtual machine's own one.
    AsksMachine = 1 << 40,
    /// A session of a database waits for a process of the server that does what it asked for.
    AwaitsUpkeep = 1 << 41,
    /// A signal keeps the thread from running.
    StoppedBySignal = 1 << 42,
    /// The thread waits for who traces it.
    StoppedByTracer = 1 << 43,
    /// A shell waits for one child; that others end does not end the wait.
    AwaitsOneChild = 1 << 44,
    /// A thread waits for those that do parts of its own work.
    JoinsHelpers = 1 << 45,
    /// A thread that runs any of its language's tasks has none.
    Scheduler = 1 << 46,
    /// A program that ends waits for its threads to end.
    AwaitsThreads = 1 << 47,
    /// A virtual machine waits for a debugger.
    AwaitsDebugger = 1 << 48,
    /// A language imports a module.
    Imports = 1 << 49,
    /// A thread waits for another to have imported a module.
    AwaitsImport = 1 << 50,
    /// A thread waits for the tasks of a pool of threads to end.
    AwaitsPool = 1 << 51,
    /// A virtual machine that ends waits for the threads that a program has for that.
    AwaitsHooks = 1 << 52,
    /// The kernel waits for a program to mount a file system, or ends that wait.
    AwaitsMount = 1 << 53,
    /// A thread waits for another one to end.
    Joins = 1 << 54,
    /// The task that a language's scheduler parked last waits for another one.
    AwaitsTask = 1 << 55,
    /// The same for a lock that another one has.
    AwaitsTaskLock = 1 << 56,
    /// A runtime executes a task that others of the thread's may be suspended beside.
    RunsTask = 1 << 57,
    /// The kernel reads pages of a file.
    ReadsPages = 1 << 58,
    /// A session of a database takes a lock that outlasts transactions.
    AdvisoryLock = 1 << 59,
    /// A process takes from a queue that several processes take from.
    SharesQueue = 1 << 60,
    /// A permit of a semaphore is waited for, which any thread may give back.
    AwaitsPermit = 1 << 61,
    /// A message of another process of a parallel program is waited for, without giving the CPU away.
    SpinsForPeers = 1 << 62,
    /// What the owner of the clipboard or of another selection has is waited for.
    AwaitsSelection = 1 << 63,
}

/// Marks that one of the innermost few frames shows, by a part of its function's name.
const INNERMOST: [(Mark, &[&str]); 7] = [
    (Mark::LockWait, names::LOCK_WAIT),
    (Mark::ConditionWait, names::CONDITION_WAIT),
    (Mark::Unlock, names::UNLOCK),
    (Mark::Signal, names::SIGNAL),
    (Mark::Semaphore, names::SEMAPHORE),
    (Mark::Timed, names::TIMED),
    (Mark::Idle, names::TAKES_TASKS),
];
/// So many functions are the innermost few.
const FEW: usize = 6;

/// Marks that any frame shows, by its function's name, or by the start of it.
const ANYWHERE: [(Mark, &[&str]); 57] = [
    (Mark::Idle, names::IDLE),
    (Mark::DiskWait, names::DISK_WAIT),
    (Mark::DiskWake, names::DISK_WAKE),
    (Mark::Sending, names::SENDING),
    (Mark::ServedFile, names::SERVED_FILE),
    (Mark::Terminal, names::TERMINAL),
    (Mark::Handles, names::HANDLES),
    (Mark::ReadsCommands, names::READS_COMMANDS),
    (Mark::Permission, names::PERMISSION),
    (Mark::Asks, names::ASKS),
    (Mark::OpensFifo, names::OPENS_FIFO),
    (Mark::AwaitsChild, names::AWAITS_CHILD),
    (Mark::AwaitsOneChild, names::AWAITS_ONE_CHILD),
    (Mark::PollsLock, names::POLLS_LOCK),
    (Mark::Retries, names::RETRIES),
    (Mark::TakesWork, names::TAKES_WORK),
    (Mark::LanguageLock, names::LANGUAGE_LOCK),
    (Mark::LanguageCondition, names::LANGUAGE_CONDITION),
    (Mark::Sleeps, names::SLEEPS),
    (Mark::DatabaseLock, names::DATABASE_LOCK),
    (Mark::Frozen, names::FROZEN),
    (Mark::StoppedBySignal, names::STOPPED_BY_SIGNAL),
    (Mark::StoppedByTracer, names::STOPPED_BY_TRACER),
    (Mark::Setting, names::SETTING),
    (Mark::AsksBus, names::ASKS_BUS),
    (Mark::PageFault, names::PAGE_FAULT),
    (Mark::SwapIn, names::SWAP_IN),
    (Mark::PercpuLock, names::PERCPU_LOCK),
    (Mark::ChangesFiles, names::CHANGES_FILES),
    (Mark::ReadsPages, names::READS_PAGES),
    (Mark::MemoryLimit, names::MEMORY_LIMIT),
    (Mark::Freezable, names::FREEZABLE),
    (Mark::ReadsSignal, names::READS_SIGNAL),
    (Mark::AwaitsResult, names::AWAITS_RESULT),
    (Mark::EventLoop, names::EVENT_LOOP),
    (Mark::AwaitsStandby, names::AWAITS_STANDBY),
    (Mark::AwaitsSafepoint, names::AWAITS_SAFEPOINT),
    (Mark::AsksMachine, names::ASKS_MACHINE),
    (Mark::AwaitsUpkeep, names::AWAITS_UPKEEP),
    (Mark::AdvisoryLock, names::ADVISORY_LOCK),
    (Mark::SharesQueue, names::SHARES_QUEUE),
    (Mark::AwaitsPermit, names::AWAITS_PERMIT),
    (Mark::SpinsForPeers, names::SPINS_FOR_PEERS),
    (Mark::AwaitsSelection, names::AWAITS_SELECTION),
    (Mark::JoinsHelpers, names::JOINS_HELPERS),
    (Mark::Scheduler, names::SCHEDULER),
    (Mark::AwaitsThreads, names::AWAITS_THREADS),
    (Mark::AwaitsDebugger, names::AWAITS_DEBUGGER),
    (Mark::Imports, names::IMPORTS),
    (Mark::AwaitsImport, names::AWAITS_IMPORT),
    (Mark::AwaitsPool, names::AWAITS_POOL),
    (Mark::AwaitsHooks, names::AWAITS_HOOKS),
    (Mark::AwaitsMount, names::AWAITS_MOUNT),
    (Mark::Joins, names::JOINS),
    (Mark::AwaitsTask, names::AWAITS_TASK),
    (Mark::AwaitsTaskLock, names::AWAITS_TASK_LOCK),
    (Mark::RunsTask, names::RUNS_TASK),
];

/// The marks of all stacks, by their rows.
pub(crate) struct Marks {
    marks: Vec<u64>,
    /// The first stack of the same frames.
    same: Vec<StackId>,
    /// The first stack of the same innermost frames.
    near: Vec<StackId>,
}

/// Stacks that agree in so many innermost frames stand at one place, whatever led there.
const NEAR: usize = 3;

impl Marks {
    pub(crate) fn new(stacks: &StackTable) -> Marks {
        let mut by_function: HashMap<&str, (u64, u64)> = HashMap::new();
        let mut first: HashMap<&[u32], StackId> = HashMap::new();
        let mut first_near: HashMap<&[u32], StackId> = HashMap::new();
        let (mut marks, mut same, mut near) = (Vec::new(), Vec::new(), Vec::new());
        for stack in stacks.ids() {
            let mut shown = 0;
            for (at, frame) in stacks.stack(stack).enumerate() {
                let Some(function) = frame.function else {
                    continue;
                };
                let (innermost, anywhere) = *by_function
                    .entry(function)
                    .or_insert_with(|| marks_of(function));
                if anywhere & Mark::Handles as u64 != 0 && shown & Mark::EventLoop as u64 == 0 {
                    shown |= Mark::AmidEvent as u64;
                }
                shown |= anywhere | if at < FEW { innermost } else { 0 };
            }
            marks.push(shown);
            let frames = stacks.frame_ids(stack);
            same.push(*first.entry(frames).or_insert(stack));
            let innermost = &frames[..frames.len().min(NEAR)];
            near.push(*first_near.entry(innermost).or_insert(stack));
        }
        Marks { marks, same, near }
    }

    pub(crate) fn shows(&self, stacks: &StackTable, stack: StackId, mark: Mark) -> bool {
        stacks
            .row(stack)
            .is_some_and(|row| self.marks[row] & mark as u64 != 0)
    }

    pub(crate) fn near(&self, stacks: &StackTable, stack: StackId) -> StackId {
        stacks.row(stack).map_or(0, |row| self.near[row])
    }

    pub(crate) fn same_frames(&self, stacks: &StackTable, stack: StackId) -> StackId {
        stacks.row(stack).map_or(0, |row| self.same[row])
    }
}

/// Whether a function only calls what is due: an event loop, or what hands on an event or a task.
pub fn hands_out_work(function: &str) -> bool {
    let lists = [names::EVENT_LOOP, names::HANDLES, names::LOOPS];
    let mut all = lists.into_iter().flatten();
    all.any(|name| is_named(function, name))
}

/// Whether a function is one of a language's library in which threads wait, whatever the program wants with that.
pub fn waits_for_anything(function: &str) -> bool {
    names::WAITS.iter().any(|name| is_named(function, name))
}

/// Whether a function has a name; one that ends with a star is the start of several.
pub(crate) fn is_named(function: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => function.starts_with(start),
        None => function == name,
    }
}

/// What a function shows among the innermost few, and what anywhere.
fn marks_of(function: &str) -> (u64, u64) {
    let innermost = INNERMOST
        .iter()
        .filter(|(_, parts)| parts.iter().any(|&part| function.contains(part)))
        .fold(0, |marks, (mark, _)| marks | *mark as u64);
    let anywhere = ANYWHERE
        .iter()
        .filter(|(_, names)| names.iter().any(|name| is_named(function, name)))
        .fold(0, |marks, (mark, _)| marks | *mark as u64);
    (innermost, anywhere)
}
