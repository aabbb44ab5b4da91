//! One of each table.

use crate::error::Result;
use crate::tables::*;

macro_rules! all_tables {
    ($($(#[$doc:meta])* $field:ident: $table:ident,)+) => {
        /// One of each table: what a whole trace holds beside its `meta.json`.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Tables { $($(#[$doc])* pub $field: $table,)+ }

        /// Something to be done with each table in turn.
        pub trait Visitor {
            /// Does it for one table.
            ///
            /// # Errors
            /// Any error ends the round.
            fn visit<T: Table>(&mut self, table: &mut T) -> Result<()>;
        }

        impl Tables {
            /// Description of each table: name, what it holds, columns.
            pub const ALL: &'static [(&'static str, &'static str, &'static [Column])] =
                &[$(($table::NAME, $table::DOC, $table::COLUMNS)),+];

            /// Takes `visitor` to every table, from the last that is declared to the first: to what
            /// others refer to before what refers to it. A recording that is killed between two
            /// files of a part has then no event whose thread or stack nothing describes.
            ///
            /// # Errors
            /// The visitor's first.
            pub fn each<V: Visitor>(&mut self, visitor: &mut V) -> Result<()> {
                let visits: [fn(&mut Tables, &mut V) -> Result<()>; Tables::ALL.len()] =
                    [$(|tables, visitor| visitor.visit(&mut tables.$field)),+];
                visits.iter().rev().try_for_each(|visit| visit(self, visitor))
            }

            /// Rows in all tables together.
            pub fn rows(&self) -> usize { 0 $(+ self.$field.len())+ }
        }
    };
}

all_tables! {
    /// CPUs going from one thread to another.
    switches: Switches,
    /// Threads made runnable.
    wakes: Wakes,
    /// Interrupts and softirqs.
    interrupts: Interrupts,
    /// Work of block devices.
    ios: Ios,
    /// Page faults.
    faults: Faults,
    /// Threads that had to make memory free.
    stalls: Stalls,
    /// Pages of files that came, were used and went.
    page_cache: PageCache,
    /// Memory of processes at moments.
    memory: MemoryShares,
    /// What of their files was in the page cache then.
    cached_files: CachedFiles,
    /// Bytes through sockets and pipes.
    transfers: Transfers,
    /// Work and locks from one context to another.
    handoffs: Handoffs,
    /// Flags that were watched.
    flags: Flags,
    /// Reads and writes of these.
    flag_accesses: FlagAccesses,
    /// Who waited already.
    found_waiting: FoundWaitings,
    /// Goroutines that waited at a look.
    goroutines: Goroutines,
    /// Sockets and their other ends.
    sockets: Sockets,
    /// What processes had open.
    descriptors: Descriptors,
    /// Limits of their control groups.
    limits: Limits,
    /// System calls, where they were asked for.
    calls: SystemCalls,
    /// What CPUs were running when sampled.
    samples: Samples,
    /// What threads ran by the hardware's counters.
    counters: Counters,
    /// Points and regions that programs marked.
    marks: Marks,
    /// Steps of threads' lives.
    lifecycle: Lifecycle,
    /// Stacks.
    stacks: Stacks,
    /// Places in code.
    frames: Frames,
    /// What code was mapped from.
    modules: Modules,
    /// Names of frames.
    symbols: Symbols,
    /// Executable memory.
    mappings: Mappings,
    /// Memory in which faults were.
    areas: Areas,
    /// Files of these, and of pages.
    files: Files,
    /// Names of marks.
    mark_names: MarkNames,
    /// What was lost.
    losses: Losses,
}
