//! Each table of a trace, declared once: its columns, their units and their meaning.
//!
//! The macro makes of each declaration a row (`Switch`) and a struct of columns (`Switches`).
//! The description that it keeps is what docs/TRACE.md is checked against and what the file's
//! schema is made from, so that a column exists in one place. `= value` after a column's type is
//! what the column reads as in a trace that lacks it; otherwise that is 0, false or empty.

use std::ops::Range;

use crate::budget::Budget;
use crate::error::Result;
use crate::part::{Encoder, Part, read_column};
use crate::times;

/// A column's place in a table's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in the file.
    pub name: &'static str,
    /// Rust type: `u8`, `u16`, `i16`, `u32`, `u64`, `i64`, `bool`, `String` or `Vec<u32>`.
    pub kind: &'static str,
    /// Unit and meaning, as docs/TRACE.md has it.
    pub doc: &'static str,
}

/// A table of a trace: the struct of its columns.
///
/// It is implemented by the tables of this module and cannot be implemented elsewhere.
pub trait Table: Stored + Default + Clone + PartialEq + std::fmt::Debug + Send {
    /// What [`push`](Table::push) takes.
    type Row;
    /// The table's name: its folder inside the trace.
    const NAME: &'static str;
    /// What docs/TRACE.md says of the table.
    const DOC: &'static str;
    /// The columns in order.
    const COLUMNS: &'static [Column];

    /// Appends a row.
    fn push(&mut self, row: Self::Row);
    /// Number of rows.
    fn len(&self) -> usize;
    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Forgets all rows and keeps the memory.
    fn clear(&mut self);
}

mod stored {
    use super::*;

    /// How a table goes to disk and comes back.
    pub trait Stored: Sized {
        /// Writes the columns' `rows`.
        fn encode(&self, rows: Range<usize>, encoder: &mut Encoder<'_>) -> Result<()>;
        /// Declares the columns in order.
        fn declare(schema: &mut crate::part::Schema);
        /// Memory that a row takes, bytes, beside what its texts and lists hold.
        const ROW_BYTES: usize;
        /// Whether the rows of a part ascend by `ts`: what has a duration is written when it ends.
        const ASCENDS: bool;
        /// The rows of all parts, in order.
        fn decode(parts: &[Part], budget: &Budget) -> Result<Self>;
        /// Says which rows, if any, have a time after `latest` or, of a part's, an earlier one than
        /// those before though they are to ascend: the first such row, and what is wrong with it.
        fn check_times(&self, parts: &[Part], latest: u64) -> Result<(), (usize, String)>;
        /// Forgets the first `rows`.
        fn forget(&mut self, rows: usize);
        /// Sorts by `ts`, stably, if there is such a column and it is not in order.
        fn sort(&mut self);
        /// Brings `ts` and `duration` below `end`.
        #[cfg(test)]
        fn bound_times(&mut self, end: u64);
        /// Puts the chosen values into a row; the row behind the last is added.
        #[cfg(fuzzing)]
        fn alter(&mut self, row: usize, choose: &mut dyn FnMut(&'static Column) -> Option<u64>);
        /// Any table of so many rows.
        #[cfg(test)]
        fn arbitrary(rows: usize) -> proptest::strategy::BoxedStrategy<Self>;
    }
}
pub(crate) use stored::Stored;

/// Whether a column has that name; for constants.
const fn is_column(name: &str, wanted: &str) -> bool {
    let (name, wanted) = (name.as_bytes(), wanted.as_bytes());
    let mut at = 0;
    while at < name.len() && at < wanted.len() && name[at] == wanted[at] {
        at += 1;
    }
    at == name.len() && at == wanted.len()
}

/// The row numbers in order of time, unless they are so already.
fn order_by_time(column: &str, values: &dyn std::any::Any) -> Option<Vec<u32>> {
    if column != "ts" {
        return None;
    }
    let ts: &Vec<u64> = values.downcast_ref()?;
    if ts.is_sorted() {
        return None;
    }
    let mut order: Vec<u32> = (0..ts.len() as u32).collect();
    order.sort_by_key(|&i| ts[i as usize]);
    Some(order)
}

/// The values in the order of the row numbers, each of which is named once.
fn reorder<T: Default>(values: &mut Vec<T>, order: &[u32]) {
    *values = order
        .iter()
        .map(|&i| std::mem::take(&mut values[i as usize]))
        .collect();
}

macro_rules! tables {
    ($($(#[doc = $doc:literal])+ $table:ident of $row:ident as $name:literal {
        $(#[doc = $cdoc:literal] $column:ident: $kind:ty $(= $default:expr)?,)+
    })+) => {
        $(
            $(#[doc = $doc])+
            #[doc = concat!("\n\nOne row of `", $name, "`.")]
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $row { $(#[doc = $cdoc] pub $column: $kind,)+ }

            $(#[doc = $doc])+
            #[doc = concat!("\n\nThe columns of `", $name, "`, all of one length.")]
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct $table { $(#[doc = $cdoc] pub $column: Vec<$kind>,)+ }

            impl $table {
                /// The table's name: its folder inside the trace.
                pub const NAME: &'static str = $name;
                /// What docs/TRACE.md says of the table.
                pub const DOC: &'static str = concat!($($doc),+);
                /// The columns in order.
                pub const COLUMNS: &'static [Column] = &[
                    $(Column { name: stringify!($column), kind: stringify!($kind), doc: $cdoc },)+
                ];

                /// Appends a row.
                pub fn push(&mut self, row: $row) { $(self.$column.push(row.$column);)+ }

                /// The row at `i`.
                ///
                /// # Panics
                /// If there are not that many rows.
                pub fn row(&self, i: usize) -> $row {
                    $row { $($column: self.$column[i].clone(),)+ }
                }

                /// Number of rows.
                pub fn len(&self) -> usize { tables!(@first $(self.$column),+).len() }

                /// Whether there are no rows.
                pub fn is_empty(&self) -> bool { self.len() == 0 }

                /// Forgets all rows and keeps the memory.
                pub fn clear(&mut self) { $(self.$column.clear();)+ }
            }

            impl Table for $table {
                type Row = $row;
                const NAME: &'static str = $table::NAME;
                const DOC: &'static str = $table::DOC;
                const COLUMNS: &'static [Column] = $table::COLUMNS;
                fn push(&mut self, row: $row) { $table::push(self, row) }
                fn len(&self) -> usize { $table::len(self) }
                fn clear(&mut self) { $table::clear(self) }
            }

            impl Stored for $table {
                fn encode(&self, rows: Range<usize>, encoder: &mut Encoder<'_>) -> Result<()> {
                    $(encoder.column(&self.$column[rows.clone()])?;)+
                    Ok(())
                }

                fn declare(schema: &mut crate::part::Schema) {
                    $(schema.add::<$kind>(stringify!($column));)+
                }

                const ROW_BYTES: usize = 0 $(+ size_of::<$kind>())+;

                const ASCENDS: bool = !(false $(|| is_column(stringify!($column), "duration"))+);

                fn check_times(&self, parts: &[Part], latest: u64) -> Result<(), (usize, String)> {
                    let columns: [(&str, &dyn std::any::Any); _] =
                        [$((stringify!($column), &self.$column)),+];
                    times::check(&columns, Self::ASCENDS, parts.iter().map(Part::rows), latest)
                }

                fn decode(parts: &[Part], budget: &Budget) -> Result<$table> {
                    // The columns are independent of each other: each is a task of its own.
                    $(let mut $column = Ok(Vec::new());)+
                    rayon::scope(|tasks| {
                        $({
                            let values = &mut $column;
                            tasks.spawn(move |_| {
                                let default = tables!(@default $kind $(, $default)?);
                                *values = read_column(parts, stringify!($column), default, budget);
                            });
                        })+
                    });
                    Ok($table { $($column: $column?,)+ })
                }

                #[cfg(test)]
                fn bound_times(&mut self, end: u64) {
                    $(if matches!(stringify!($column), "ts" | "duration") {
                        let values: &mut dyn std::any::Any = &mut self.$column;
                        let times = values.downcast_mut::<Vec<u64>>().expect("times");
                        times.iter_mut().for_each(|time| *time %= end);
                    })+
                }

                #[cfg(fuzzing)]
                fn alter(
                    &mut self,
                    row: usize,
                    choose: &mut dyn FnMut(&'static Column) -> Option<u64>,
                ) {
                    let row = row.min($table::len(self));
                    if row == $table::len(self) {
                        $(self.$column.push(Default::default());)+
                    }
                    let mut columns = Self::COLUMNS.iter();
                    $(if let Some(value) = columns.next().and_then(|it| choose(it)) {
                        self.$column[row] = crate::chosen::Chosen::of(value);
                    })+
                }

                #[cfg(test)]
                fn arbitrary(rows: usize) -> proptest::strategy::BoxedStrategy<$table> {
                    use proptest::prelude::*;
                    let table = Just($table::default()).boxed();
                    $(let column = proptest::collection::vec(any::<$kind>(), rows);
                    let table = (table, column)
                        .prop_map(|(table, $column)| $table { $column, ..table })
                        .boxed();)+
                    table
                }

                fn forget(&mut self, rows: usize) { $(self.$column.drain(..rows);)+ }

                fn sort(&mut self) {
                    let order = None$(.or_else(|| order_by_time(stringify!($column), &self.$column)))+;
                    if let Some(order) = order {
                        $(reorder(&mut self.$column, &order);)+
                    }
                }
            }

            impl FromIterator<$row> for $table {
                fn from_iter<I: IntoIterator<Item = $row>>(rows: I) -> $table {
                    let mut table = $table::default();
                    rows.into_iter().for_each(|row| table.push(row));
                    table
                }
            }
        )+
    };
    (@first $first:expr $(, $rest:expr)*) => { $first };
    (@default $kind:ty) => { <$kind as Default>::default() };
    (@default $kind:ty, $default:expr) => { $default };
}

tables! {
    /// A CPU went from one thread to another; or a thread was found off its CPU when the recording began.
    Switches of Switch as "switches" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// On which CPU. 65535: `prev` was not seen to leave. It was found off its CPU, of this moment are its call and stacks, and it has been so since its last event or, where it has none before, since before the trace; `next` is 0 and says nothing.
        cpu: u16,
        /// The thread that left (utid; 0 is idle).
        prev: u32,
        /// The thread that came (utid; 0 is idle).
        next: u32,
        /// How `prev` left: words::Left.
        left: u8,
        /// Kernel priority of `next`: 0-98 realtime (lower is stronger), 100-139 nice -20 to 19; 255 SCHED_DEADLINE, which goes before all.
        next_priority: u8,
        /// System call that `prev` was in, by the machine's number; -1 in none (a page fault where it blocked), -2 kernel thread.
        call: i16 = -1,
        /// What `prev` waits on where the call tells: object::Object.
        object: u64,
        /// By call: futex operation; requested sleep in ns (clock_nanosleep, nanosleep; until a time by another clock than the monotonic one 0); timeout in ms (poll, epoll_wait), u64::MAX none, and of a poll without descriptors 2^62 and the time in ns; child's pid (wait4), u64::MAX any; faulting address (call -1); otherwise the second argument. Where `object` is a kernel lock: words::KernelLock. Where `prev` was stopped: the signal that did it, 0 if none did.
        arg: u64,
        /// Who holds what `prev` waits for (utid), u32::MAX where that is not known. For a futex: the thread named in the owner field that a pthread mutex keeps beside it; of threads of Python that were found waiting, the one that has entered the lock, or that is joined. For a kernel lock: its owner, of several readers the last that came. For a file lock (fcntl, flock): the first thread of the process that holds it. Of a thread that is stopped: its debugger. Of threads that were found waiting also: the last user of a System V semaphore or queue.
        holder: u32 = u32::MAX,
        /// User stack of `prev` where it blocks (stack id, 0 none).
        user_stack: u32,
        /// Kernel stack of `prev` where the registers do not tell why it blocks (stack id, 0 none).
        kernel_stack: u32,
    }

    /// A thread was made runnable.
    Wakes of Wake as "wakes" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// CPU that the waker ran on.
        cpu: u16,
        /// The thread that was on the CPU (utid): the cause only where `context` is thread.
        waker: u32,
        /// The thread made runnable (utid).
        wakee: u32,
        /// What the CPU was running: words::Context.
        context: u8,
        /// Number of the interrupt or softirq; 0 otherwise.
        vector: u16,
        /// Whether the wakee is new: its first wake after fork or clone.
        new: bool,
        /// System call that the waker was in, as in switches; -1 in none, -2 kernel thread. Where context is thread, and in a softirq that delivers what the thread on the CPU sends within the machine.
        call: i16 = -1,
        /// What the waker's call works on: object::Object. Of a unix socket, this end.
        object: u64,
        /// By call: futex operation; signal number (kill, tgkill, tkill); otherwise the second argument.
        arg: u64,
        /// User stack of the waker (stack id, 0 none).
        user_stack: u32,
        /// Kernel stack of the waker where call and context do not tell the mechanism (stack id, 0 none).
        kernel_stack: u32,
    }

    /// An interrupt or softirq ran.
    Interrupts of Interrupt as "interrupts" {
        /// When it began, ns since the trace's start. A part has its rows in the order in which they ended.
        ts: u64,
        /// How long it took, ns.
        duration: u64,
        /// On which CPU.
        cpu: u16,
        /// words::InterruptKind.
        kind: u8,
        /// Number of the interrupt or softirq; 0 for the local timer.
        vector: u16,
        /// The thread that it interrupted (utid).
        thread: u32,
    }

    /// A block device did some work, from issue to completion.
    Ios of Io as "ios" {
        /// When it was issued to the driver, ns since the trace's start. A part has its rows in the order in which they ended.
        ts: u64,
        /// Until completion, ns.
        duration: u64,
        /// The thread that issued it (utid); often a kernel worker.
        thread: u32,
        /// Device number, major << 20 | minor.
        device: u32,
        /// First sector of 512 bytes.
        sector: u64,
        /// Length in bytes.
        bytes: u32,
        /// words::IoOperation.
        operation: u8,
    }

    /// A page fault ended: each major one, and each minor one where these were asked for (record --faults). One that blocked and ended as a minor one is otherwise among the switches alone.
    Faults of Fault as "faults" {
        /// When it began, ns since the trace's start. A part has its rows in the order in which they ended.
        ts: u64,
        /// How long it took, ns; 0 where its beginning was not seen.
        duration: u64,
        /// The thread (utid).
        thread: u32,
        /// Whether the kernel counted it as major: its page was not in memory, or the fault had to be tried again.
        major: bool,
        /// Whether it was the kernel's, on behalf of the system call that the thread was in.
        in_kernel: bool,
        /// Whether its page was looked for in the page cache of a file. A major fault that was not: swapped out.
        of_file: bool,
        /// The address.
        address: u64,
        /// What memory that is (areas), u32::MAX unknown.
        area: u32 = u32::MAX,
        /// User stack (stack id, 0 none).
        user_stack: u32,
    }

    /// A thread that wanted memory first had to make some free.
    Stalls of Stall as "stalls" {
        /// When it began, ns since the trace's start. A part has its rows in the order in which they ended.
        ts: u64,
        /// How long it took, ns.
        duration: u64,
        /// The thread (utid).
        thread: u32,
        /// words::StallKind.
        kind: u8,
        /// Pages that it made free; 0 for compaction.
        pages: u64,
    }

    /// Pages of a file in the page cache, where that was asked for (record --faults): they came in, were used, or went.
    PageCache of CacheStep as "page_cache" {
        /// When it was over, or the thread went on to something else, ns since the trace's start; ascending.
        ts: u64,
        /// The thread that was on the CPU (utid).
        thread: u32,
        /// words::CacheAction.
        action: u8,
        /// The file (files), u32::MAX unknown.
        file: u32 = u32::MAX,
        /// The first page, counted from the file's beginning in pages of 4 KiB.
        first: u64,
        /// How many pages in a row.
        pages: u32,
    }

    /// Memory that a process had at one moment, of one kind or of one file, where that was asked for (record --memory-every). Processes that the recorder may not look at are left out.
    MemoryShares of MemoryShare as "memory" {
        /// When it was looked at, ns since the trace's start; the same for all that belongs together.
        ts: u64,
        /// The process (upid).
        process: u32,
        /// words::AreaKind.
        kind: u8,
        /// The file; empty where there is none.
        path: String,
        /// In memory, bytes.
        resident: u64,
        /// Of these, the process's own share, bytes: what several processes have is divided among them.
        proportional: u64,
        /// Swapped out, bytes.
        swapped: u64,
        /// In memory, and of no other process, bytes.
        private: u64,
        /// That cannot be swapped out or dropped (mlock), bytes.
        locked: u64,
    }

    /// How much of a file that processes had mapped was in the page cache at one moment, where that was asked for (record --memory-every).
    CachedFiles of CachedFile as "cached_files" {
        /// When it was looked at, ns since the trace's start; the same for all that belongs together.
        ts: u64,
        /// Its path.
        path: String,
        /// How long it was, bytes.
        size: u64,
        /// In the page cache, bytes.
        cached: u64,
        /// Of these, changed and not yet written, bytes; u64::MAX unknown.
        dirty: u64,
        /// That went from the page cache a short time before, bytes; u64::MAX unknown.
        recently_evicted: u64,
    }

    /// Bytes went into or came out of a socket (and, where asked for, a pipe or eventfd).
    Transfers of Transfer as "transfers" {
        /// When the kernel took or gave them, ns since the trace's start; ascending.
        ts: u64,
        /// The thread that sent or received (utid).
        thread: u32,
        /// This end: object::Object.
        object: u64,
        /// The other end where known: object::Object. Of a pipe, the same as `object`.
        peer: u64,
        /// Whether it was sent; otherwise received.
        sent: bool,
        /// Bytes; negative results are not recorded.
        bytes: u32,
    }

    /// Work or a lock went from one context to another, step by step: who handed over, and who took up what when.
    Handoffs of Handoff as "handoffs" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// On which CPU.
        cpu: u16,
        /// The thread that was on the CPU (utid): who did it only where `context` is thread.
        thread: u32,
        /// What the CPU was running: words::Context.
        context: u8,
        /// What was handed over: words::HandoffKind.
        kind: u8,
        /// words::HandoffStep.
        step: u8,
        /// Which one: the steps of one item have the same key, which is used again for a later one. By kind: the kernel's address of the work item, request or timer; the owner of the file lock (the process's files, or the open file); the receiver's pid << 32 | number of the signal.
        key: u64,
        /// What it works on, where that is known: object::Object. The file that is locked, the file or socket of an io_uring request, the timerfd.
        object: u64,
        /// The other thread, where there is one (utid), u32::MAX none: who holds the file lock that is waited for or refused (first thread of that process), who gets the signal.
        other: u32 = u32::MAX,
        /// Frame id of the kernel function that the work item is to run (submitted, begun); otherwise u32::MAX.
        frame: u32 = u32::MAX,
        /// By kind: of a file lock, 1 exclusive or 0 shared, | 0 fcntl's, 1 flock's or 2 an open file's << 8 | device number << 32; of an io_uring request, its operation << 56 | the ring's number (the value of its object::Object); of a signal, its number.
        detail: u64,
    }

    /// A flag in memory that was watched: where threads hand over by memory alone.
    Flags of Flag as "flags" {
        /// Flag id; from 0.
        flag: u32,
        /// When watching began, ns since the trace's start.
        ts: u64,
        /// The process in which it was watched (upid).
        process: u32,
        /// Its address there.
        address: u64,
        /// Its size in bytes: 1, 2, 4 or 8.
        size: u8,
        /// The first flag that is the same memory, which processes share; otherwise its own id.
        memory: u32,
        /// Whether reads were watched too. Otherwise there are writes alone.
        reads: bool,
        /// What the user called it: a symbol, or the address.
        name: String,
    }

    /// A thread used a flag that was watched.
    FlagAccesses of FlagAccess as "flag_accesses" {
        /// When, ns since the trace's start; ascending. A write is noted some microseconds after it was made, so that a read of the new value may stand shortly before.
        ts: u64,
        /// The thread (utid); 0 where `access` is paused or resumed.
        thread: u32,
        /// Flag id.
        flag: u32,
        /// words::Access.
        access: u8,
        /// What the flag held right after the access, in the machine's byte order and without sign. Where `access` is paused or resumed, of which: words::Access.
        value: u64,
        /// Address of the instruction behind the one that did it.
        instruction: u64,
        /// User stack (stack id, 0 none); its innermost frame is `instruction`.
        user_stack: u32,
    }

    /// A thread that was off its CPU already when the recording, or the snapshot of a flight recorder, looked at all threads. Its row of `switches` says how.
    FoundWaitings of FoundWaiting as "found_waiting" {
        /// When it was looked at, ns since the trace's start; ascending.
        ts: u64,
        /// The thread (utid).
        thread: u32,
        /// How long it had been off its CPU then, ns; 0 where the kernel does not tell.
        age: u64,
        /// How long it had lived then, ns; 0 where that is not known.
        lived: u64,
    }

    /// A goroutine of a Go program, or a task of asyncio in a program of Python 3.11, that waited when the recording began or ended, or when the snapshot was taken. A goroutine's stack was read from the program's memory, up to 16 KiB; a task's has the functions of its coroutine and of those that it awaits. Of a process with more than 1,000, or with more than 4 MiB of such stacks or 20,000 such functions, some are left out, and of a machine with more than 10,000, or 64 MiB.
    Goroutines of Goroutine as "goroutines" {
        /// When it was looked at, ns since the trace's start; ascending.
        ts: u64,
        /// Its process (upid).
        process: u32,
        /// Of a goroutine the number that Go gave it (`goid`), not used again in the process; of a task its address, which no other has at the same time.
        number: u64,
        /// Of a task the number of the one that it awaits, or that has entered the lock or semaphore that it waits for, which it may be itself; 0 if that is not known.
        awaited: u64 = 0,
        /// What it waits in (stack id, 0 none).
        user_stack: u32,
    }

    /// A socket, with what is known of its other end, when it was first waited on or used; again when more is known.
    Sockets of Socket as "sockets" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// This end: object::Object.
        object: u64,
        /// The process that used it then (upid).
        process: u32,
        /// The other end where the kernel has it (unix sockets): object::Object.
        peer: u64,
        /// Of a connected unix socket, the process that made the other end: that connected, or that listens (upid); u32::MAX unknown.
        peer_process: u32 = u32::MAX,
        /// Network namespace, by its inode number.
        namespace: u32,
        /// Whether it was connecting then, as a TCP client, and nothing had answered.
        connecting: bool,
        /// Its address: ADDRESS:PORT, [ADDRESS]:PORT, or the unix socket's path (@ for an abstract one); empty if it has none.
        local: String,
        /// The other end's address, the same way.
        remote: String,
    }

    /// A pipe, socket or locked file that a process had open when somebody looked, and what lay in it: when the recording began, and when it ended.
    Descriptors of Descriptor as "descriptors" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// The process (upid).
        process: u32,
        /// The pipe, this end of the socket, the locked file, or the device by which the process serves a file system: object::Object.
        object: u64,
        /// What it is: words::DescriptorKind.
        kind: u8,
        /// What the process may do with it: 1 read, 2 write, 3 both.
        access: u8,
        /// What lay there unread: bytes (TCP), messages (other sockets), buffers (pipes), connections not yet accepted (listeners).
        unread: u32,
        /// Which way the last bytes of a TCP connection went: words::LastTransfer.
        last: u8,
        /// How long before `ts` they went, ns, as exactly as the kernel's clock ticks; 0 where `last` is 0.
        ago: u64,
    }

    /// A limit of the control group of a process, or of one around it: the nearest of each kind, and of each disk; of CPU time the least. The limits of all processes are read when the recording begins and ends. In between groups are read every second, or less often where that takes long: a process that has come into a group with limits has rows then, and once more when the group has used up its memory. Of threads the limit is there only where the group has nearly as many. And the processes that had nearly as many files open as they may, looked for every few seconds.
    Limits of Limit as "limits" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// The process (upid).
        process: u32,
        /// What is limited: words::LimitKind.
        kind: u8,
        /// How much of it is allowed: bytes, bytes or operations a second, thousandths of a CPU, open files, or threads, as the kind says.
        limit: u64,
        /// Of memory, how much the group had, bytes; of files, how many the process had open; of threads, how many the group had; otherwise 0.
        used: u64,
        /// The control group, from the root of its hierarchy; empty of files.
        group: String,
        /// Of a disk, what the kernel calls it: loop0; otherwise empty.
        device: String,
    }

    /// A system call of a process whose calls were asked for (record --calls), once it has returned: not exit, and not one that a thread is in before or behind the recording.
    SystemCalls of SystemCall as "calls" {
        /// When it began, ns since the trace's start. A part has its rows in the order in which they ended.
        ts: u64,
        /// Until it returned, ns.
        duration: u64,
        /// The thread (utid).
        thread: u32,
        /// By the machine's number.
        call: i16 = -1,
        /// What it returned, as a signed number of 64 bits has it: -1 is u64::MAX. 0 where it failed.
        result: u64,
        /// Where it failed, its errno; otherwise 0. From 512 on the kernel's own, which the program does not see: the call is begun again.
        error: u16,
        /// The caller's user stack (stack id, 0 none).
        stack: u32,
        /// First argument, as the register has it.
        arg0: u64,
        /// Second argument.
        arg1: u64,
        /// Third argument.
        arg2: u64,
        /// Fourth argument. A call that takes fewer has anything here and behind.
        arg3: u64,
        /// Fifth argument.
        arg4: u64,
        /// Sixth argument.
        arg5: u64,
    }

    /// What a CPU was running when the sampling clock fired.
    Samples of Sample as "samples" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// On which CPU.
        cpu: u16,
        /// The thread that was running (utid).
        thread: u32,
        /// Its user stack (stack id, 0 none).
        user_stack: u32,
        /// Its kernel stack where it was in the kernel (stack id, 0 none).
        kernel_stack: u32,
    }

    /// What a thread ran by the hardware's counters, since it came on the CPU or was last counted there. Only where there are such counters: see hooks in meta.json.
    Counters of Count as "counters" {
        /// When the counters were read, ns since the trace's start; ascending.
        ts: u64,
        /// Whose counters.
        cpu: u16,
        /// The thread that ran (utid); never idle.
        thread: u32,
        /// Cycles of the CPU in which it was not halted; u64::MAX not known: not counted, or not all the time.
        cycles: u64 = u64::MAX,
        /// Instructions that it retired; u64::MAX not known.
        instructions: u64 = u64::MAX,
        /// Misses of the last cache; u32::MAX not known, one less for any number beyond.
        cache_misses: u32 = u32::MAX,
        /// Reads that missed the data TLB; u32::MAX not known, one less for any number beyond.
        tlb_misses: u32 = u32::MAX,
    }

    /// A program said where it was: a point, or the begin or end of a region.
    Marks of Mark as "marks" {
        /// When, ns since the trace's start; ascending.
        ts: u64,
        /// The thread that marked (utid).
        thread: u32,
        /// What was marked: a code below 16384, otherwise a name (see mark_names).
        code: u32,
        /// words::MarkKind.
        kind: u8,
        /// Which begin and end are one region, as the program said: words::Pairing.
        pairing: u8,
        /// words::Colour.
        colour: u8,
        /// First argument; 0 where the program gave none.
        arg0: i64,
        /// Second argument.
        arg1: i64,
        /// Third argument.
        arg2: i64,
        /// Fourth argument.
        arg3: i64,
    }

    /// The steps of threads' lives, from which threads and processes are known.
    Lifecycle of LifecycleEvent as "lifecycle" {
        /// When, ns since the trace's start; ascending; 0 for what was there before.
        ts: u64,
        /// words::LifecycleKind.
        kind: u8,
        /// The thread (utid).
        thread: u32,
        /// Its process (upid).
        process: u32,
        /// The kernel's thread id.
        tid: u32,
        /// The kernel's process id (tgid).
        pid: u32,
        /// The thread that created it (utid), u32::MAX unknown.
        parent: u32 = u32::MAX,
        /// The thread's name from here on.
        name: String,
        /// By kind: command line or file (seen, executed), command line where it was found to be another one (renamed), exit status (exited); otherwise empty.
        detail: String,
    }

    /// A stack, once.
    Stacks of Stack as "stacks" {
        /// Stack id; from 1.
        stack: u32,
        /// The process whose stack it is (upid); 0 for a kernel stack.
        process: u32,
        /// Frame ids, innermost first.
        frames: Vec<u32>,
        /// Why it goes no further out: words::StackEnd; 0 where that was not recorded. Where a rule or memory is missing, an interpreter's functions may follow after a gap.
        end: u8,
    }

    /// A place in code, once.
    Frames of Frame as "frames" {
        /// Frame id; from 0.
        frame: u32,
        /// Module id; u32::MAX where no mapping is known for the address.
        module: u32 = u32::MAX,
        /// Offset in the module (see modules.kind), or the bare address where no module is known.
        offset: u64,
    }

    /// What code was mapped from, once.
    Modules of Module as "modules" {
        /// Module id; from 0.
        module: u32,
        /// words::ModuleKind.
        kind: u8,
        /// Path of the file, or a name in brackets.
        path: String,
        /// Build-id in hexadecimal; empty if the file has none.
        build_id: String,
        /// For anonymous code the process that it lives in (upid); u32::MAX otherwise.
        process: u32 = u32::MAX,
    }

    /// The name of a frame: of the function whose code it is, and of each that was inlined there.
    Symbols of Symbol as "symbols" {
        /// Frame id.
        frame: u32,
        /// 0 for the function whose code it is, 1 for the one inlined into that at the frame, 2 for the one inlined into 1, and so on inwards.
        inline_depth: u16,
        /// Demangled function name.
        function: String,
        /// Offset of the frame from the function's start, bytes; 0 for an inlined function.
        function_offset: u64,
        /// Source file and line where debug information has it, as file:line; otherwise empty.
        source: String,
        /// Kernel module that the function is in, in brackets; otherwise empty.
        kernel_module: String,
    }

    /// Executable memory of a process.
    Mappings of Mapping as "mappings" {
        /// When it was mapped, ns since the trace's start; 0 for what was there before.
        ts: u64,
        /// The process (upid).
        process: u32,
        /// First address.
        start: u64,
        /// Address behind the last.
        end: u64,
        /// Offset in the file of `start`.
        file_offset: u64,
        /// Module id.
        module: u32,
    }

    /// Memory of a process in which a fault was, as it was mapped then; again when it has changed.
    Areas of Area as "areas" {
        /// Area id; from 0.
        area: u32,
        /// When it was described, ns since the trace's start.
        ts: u64,
        /// The process (upid).
        process: u32,
        /// First address.
        start: u64,
        /// Address behind the last.
        end: u64,
        /// The file that is mapped (files), u32::MAX none.
        file: u32 = u32::MAX,
        /// Offset in the file of `start`.
        file_offset: u64,
        /// words::AreaKind.
        kind: u8,
        /// Whether the process may write there.
        writable: bool,
        /// Whether it may execute what is there.
        executable: bool,
        /// Whether other processes see what it writes.
        shared: bool,
    }

    /// A file in whose mapping a fault was, or whose pages came or went.
    Files of File as "files" {
        /// File id; from 0.
        file: u32,
        /// Device number, major << 20 | minor.
        device: u32,
        /// Inode number.
        inode: u64,
        /// Magic number of the file system, as statfs(2) tells it.
        magic: u32,
        /// Path where its file system was mounted for the recorder; a lone name where it lies in no directory (shared memory), empty where it has none.
        path: String,
    }

    /// A name that marks have instead of a code, once.
    MarkNames of MarkName as "mark_names" {
        /// What stands for it in marks; from 16384.
        code: u32,
        /// The name, of at most 60 bytes where a program gave it.
        name: String,
    }

    /// What was lost. No row: nothing was.
    Losses of Loss as "losses" {
        /// When it was noticed, ns since the trace's start.
        ts: u64,
        /// CPU; 65535 where it belongs to none.
        cpu: u16,
        /// words::LossKind.
        kind: u8,
        /// How many.
        count: u64,
    }
}
