//! Small traces as text, for tests in every crate.
//!
//! One declaration or event a line; `#` begins a comment; indentation and blank lines are free.
//!
//! ```text
//! process app 100                     # name pid
//! thread  main app 100                # thread, process, tid; name=NAME if it differs
//! thread  worker app 101
//! kthread kworker 7                   # thread, tid
//! 0     cpu0 switch idle -> main      # 'idle' is the idle thread; how prev left: preempted
//! 1ms   cpu0 switch main -> idle sleeping futex op=wait object=futex:0x1000 holder=worker stack=wait;main
//! 2ms   cpu1 switch idle -> worker priority=110
//! 2.5ms cpu1 wake worker -> main futex op=wake object=futex:0x1000 stack=signal;produce
//! 3ms   cpu1 wake idle -> main in=timer kstack=hrtimer_wakeup    # vector=N, new
//! 3ms   cpu0 irq 20us hard 33 main    # duration, hard|soft|timer, vector, interrupted thread
//! 4ms   io 5ms main read 4096         # duration, thread, operation, bytes; device=8:1 sector=64
//! 4ms   cpu0 sample worker stack=a;b
//! 4ms   cpu0 counters worker cycles=4000 instructions=6000 cache-misses=3 tlb-misses=1
//! 0     goroutine shop 18 stack=f;g      # a goroutine of the thread's process waits, by its number; awaited=19
//! 0     away worker 37s                # the thread was found off its CPU, for how long by then; lived=50s
//! 5ms   fork main -> child app 105    # new thread, process, tid
//! 5ms   exec main /bin/other           # with its arguments, if wanted
//! 5ms   rename worker novice          # the text goes on calling it worker
//! 5ms   transfer main sent 20 object=unix:5 peer=unix:6
//! 4ms   call 30us main read result=12 args=3,0x1000,4096 stack=read;main   # duration, thread, call; error=2
//! 5ms   cpu0 handoff main work-item submitted key=0x10 work=flush    # object= other= detail= in=
//! 5ms   socket app object=unix:5 peer=unix:6 peer-process=app local=@/tmp/x   # namespace= remote= connecting=yes
//! 5ms   open app object=unix:5 unread=2   # kind=listener access=read or write, last=sent or received, ago=20ms
//! 5ms   limit app memory 4096 used=4000 group=/app   # process, kind, bytes, or bytes or operations a second
//! 5ms   mark main begin decode 7 -1   # point, begin or end; code or name; up to 4 arguments; pair=argument or code, colour=red
//! flag  ready app 0x1000              # name, process, address; size=4, reads=no, memory=FLAG that is the same
//! 5ms   access worker ready write 1   # thread (idle where paused, resumed), flag, access, value; stack=
//! area  app 0x1000..0x3000 library file=/lib/x.so   # process, addresses, kind; offset=, writable, executable, shared
//! 5ms   fault 2ms main major 0x1000 of-file stack=a;b   # duration, thread, major or minor, address; in-kernel
//! 5ms   cache main added /lib/x.so 0 16   # thread, what became of the pages, file, first page, pages
//! 5ms   memory app heap 8192 swapped=4096  # process, kind, bytes in memory; proportional=, private=, locked=, file=
//! 5ms   cached /lib/x.so 90000 8192       # file, its size, bytes in the page cache
//! 5ms   stall 2ms main direct-reclaim 32  # duration, thread, kind, pages made free
//! 6ms   exit worker 0
//! 6ms   out-of-memory worker                 # the kernel chose it to be killed
//! 7ms   cpu0 lost 5 events            # cpuN where it belongs to one
//! end   10ms
//! ```
//!
//! Times are a number and `ns`, `us`, `ms` or `s`, or a bare 0. Calls go by their x86-64 name, or
//! `fault`; left out, the thread is in none. `op=` is a futex
//! operation, `arg=` a number, a time in ns or `none`. A counter that is left out is not known.
//! Stacks are function names, innermost first, each with its source as `name@file:line` if wanted; `a^b` is one frame, of b with a inlined
//! into it, and a last `!WORD` says why the stack ends there (words::StackEnd). Threads have utids from 1 in the order
//! in which they are named, processes upids from 1.

mod line;
mod parser;
mod stacks;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use crate::all::Tables;
use crate::error::{Error, Result};
use crate::ids::Utid;
use crate::meta::Meta;
use crate::writer::TraceWriter;

use line::Words;
use parser::Parser;

/// What a text says.
#[derive(Clone, Debug, Default)]
pub struct TextTrace {
    /// The events.
    pub tables: Tables,
    /// Where the data ends, ns: the `end` line, otherwise the last event.
    pub end: u64,
    /// The threads by what the text calls them.
    pub threads: BTreeMap<String, Utid>,
}

impl TextTrace {
    /// The thread that the text calls `name`.
    ///
    /// # Panics
    /// If there is none: the test has a typing error.
    pub fn t(&self, name: &str) -> Utid {
        match self.threads.get(name) {
            Some(&utid) => utid,
            None => panic!("the text names no thread {name}"),
        }
    }

    /// Makes a trace of it on disk. `meta` is completed: machine and duration come from the text, and
    /// whether the page cache was recorded.
    ///
    /// # Errors
    /// As [`TraceWriter`] has them.
    pub fn write_to(&self, path: impl AsRef<Path>, mut meta: Meta) -> Result<()> {
        meta.arch = ARCH.into();
        meta.options.faults |= !self.tables.page_cache.ts.is_empty();
        meta.duration_ns = self.end;
        let mut writer = TraceWriter::create(path, meta.clone())?;
        writer.tables = self.tables.clone();
        writer.finish(meta)
    }
}

/// Reads a text.
///
/// # Errors
/// [`Error::Text`] with the line and what is wrong with it.
pub fn parse(text: &str) -> Result<TextTrace> {
    let mut parser = Parser::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = Words::of(line);
        if words.peek().is_some() {
            parser
                .line(&mut words)
                .map_err(|what| Error::Text { line: i + 1, what })?;
        }
    }
    Ok(parser.finish())
}

/// The machine whose system calls the text names.
const ARCH: &str = "x86_64";
/// A piece of a line, or what is wrong with it.
type Parsed<T> = Result<T, String>;
