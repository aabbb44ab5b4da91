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
//! 5ms   fork main -> child app 105    # new thread, process, tid
//! 5ms   exec main /bin/other
//! 5ms   rename worker novice          # the text goes on calling it worker
//! 5ms   transfer main sent 20 object=unix:5 peer=unix:6
//! 6ms   exit worker 0
//! 7ms   cpu0 lost 5 events            # cpuN where it belongs to one
//! end   10ms
//! ```
//!
//! Times are a number and `ns`, `us`, `ms` or `s`, or a bare 0. Calls go by their x86-64 name, or
//! `fault`; left out, the thread is in none. `op=` is a futex
//! operation, `arg=` a number, a time in ns or `none`. Stacks are function names, innermost first,
//! each with its source as `name@file:line` if wanted. Threads have utids from 1 in the order
//! in which they are named, processes upids from 1.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;

use crate::all::Tables;
use crate::calls::{Calls, FutexOp, KERNEL_THREAD, NO_CALL};
use crate::error::{Error, Result};
use crate::ids::{IDLE, KERNEL_PROCESS, NO_STACK, NONE, StackId, Upid, Utid};
use crate::meta::Meta;
use crate::object::{Object, ObjectKind};
use crate::tables::*;
use crate::words::*;
use crate::writer::TraceWriter;

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

    /// Makes a trace of it on disk. `meta` is completed: machine and duration come from the text.
    ///
    /// # Errors
    /// As [`TraceWriter`] has them.
    pub fn write_to(&self, path: impl AsRef<Path>, mut meta: Meta) -> Result<()> {
        meta.arch = ARCH.into();
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
        let mut words = Words {
            words: line.split_whitespace().collect(),
            at: 0,
        };
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
/// Modules that stacks' functions are in.
const USER_MODULE: u32 = 0;
const KERNEL_MODULE: u32 = 1;
/// What a running thread's priority is if the text does not say: nice 0.
const PRIORITY: u8 = 120;

type Parsed<T> = Result<T, String>;

/// The words of a line, taken from the front.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self, what: &str) -> Parsed<&'a str> {
        let word = self.peek().ok_or_else(|| format!("{what} is missing"))?;
        self.at += 1;
        Ok(word)
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Parsed<T> {
        let word = self.next(what)?;
        word.parse()
            .map_err(|_| format!("'{word}' should be {what}, a number"))
    }

    fn arrow(&mut self) -> Parsed<()> {
        match self.next("'->'")? {
            "->" => Ok(()),
            other => Err(format!("'{other}' should be '->'")),
        }
    }

    /// Takes the next word if `choose` makes something of it.
    fn optional<T>(&mut self, choose: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let chosen = choose(self.peek()?)?;
        self.at += 1;
        Some(chosen)
    }

    /// The rest as key=value; a word alone has an empty value.
    fn options(&mut self, known: &[&str]) -> Parsed<HashMap<&'a str, &'a str>> {
        let mut options = HashMap::new();
        while let Some(word) = self.peek() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if !known.contains(&key) {
                return Err(format!(
                    "'{word}' is not understood here; known: {}",
                    known.join(", ")
                ));
            }
            options.insert(key, value);
            self.at += 1;
        }
        Ok(options)
    }
}

struct Parser {
    trace: TextTrace,
    end: Option<u64>,
    last: u64,
    calls: Calls,
    /// By name: upid and pid.
    processes: HashMap<String, (Upid, u32)>,
    /// By utid; the idle thread first.
    lives: Vec<Life>,
    frames: HashMap<(u32, String), u32>,
    stacks: HashMap<(Upid, Vec<u32>), StackId>,
}

/// What a lifecycle row repeats of its thread.
#[derive(Clone)]
struct Life {
    process: Upid,
    tid: u32,
    pid: u32,
    name: String,
}

impl Parser {
    fn new() -> Parser {
        let idle = Life {
            process: KERNEL_PROCESS,
            tid: 0,
            pid: 0,
            name: "swapper/idle".into(),
        };
        let mut trace = TextTrace::default();
        trace.threads.insert("idle".into(), IDLE);
        Parser {
            trace,
            end: None,
            last: 0,
            calls: Calls::new(ARCH),
            processes: HashMap::new(),
            lives: vec![idle],
            frames: HashMap::new(),
            stacks: HashMap::new(),
        }
    }

    fn line(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        match words.next("an event")? {
            "process" => {
                let name = words.next("the process's name")?;
                let upid = self.processes.len() as Upid + 1;
                let pid = words.number("the pid")?;
                if self.processes.insert(name.into(), (upid, pid)).is_some() {
                    return Err(format!("there are two processes {name}"));
                }
            }
            "thread" => {
                let handle = words.next("the thread's name")?;
                let process = words.next("the process's name")?;
                let tid = words.number("the tid")?;
                let (upid, pid) = self.process(process)?;
                let name = words
                    .options(&["name"])?
                    .get("name")
                    .copied()
                    .unwrap_or(handle);
                let life = Life {
                    process: upid,
                    tid,
                    pid,
                    name: name.into(),
                };
                let utid = self.born(handle, life)?;
                let command = if tid == pid { process } else { "" };
                self.live(0, LifecycleKind::Seen, utid, NONE, command);
            }
            "kthread" => {
                let name = words.next("the thread's name")?;
                let tid = words.number("the tid")?;
                let life = Life {
                    process: KERNEL_PROCESS,
                    tid,
                    pid: tid,
                    name: name.into(),
                };
                let utid = self.born(name, life)?;
                self.live(0, LifecycleKind::Seen, utid, NONE, "");
            }
            "end" => self.end = Some(time(words.next("the time")?)?),
            ts => {
                let ts = time(ts)?;
                self.last = self.last.max(ts);
                self.event(ts, words)?;
            }
        }
        match words.peek() {
            Some(word) => Err(format!("'{word}' is one word too many")),
            None => Ok(()),
        }
    }

    fn event(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let cpu = words.optional(|word| word.strip_prefix("cpu")?.parse::<u16>().ok());
        let kind = words.next("the kind of event")?;
        let on_cpu = || cpu.ok_or_else(|| format!("{kind} needs its CPU, as in: 1ms cpu0 {kind}"));
        match kind {
            "switch" => self.switch(ts, on_cpu()?, words),
            "wake" => self.wake(ts, on_cpu()?, words),
            "irq" => {
                let duration = time(words.next("the duration")?)?;
                let kind = match words.next("hard, soft or timer")? {
                    "hard" => InterruptKind::Hard,
                    "soft" => InterruptKind::Soft,
                    "timer" => InterruptKind::LocalTimer,
                    other => return Err(format!("'{other}' should be hard, soft or timer")),
                };
                let vector = words.number("the vector")?;
                let (kind, cpu) = (kind.into(), on_cpu()?);
                let thread = self.thread(words)?;
                self.trace.tables.interrupts.push(Interrupt {
                    ts,
                    duration,
                    cpu,
                    kind,
                    vector,
                    thread,
                });
                Ok(())
            }
            "io" => {
                let duration = time(words.next("the duration")?)?;
                let thread = self.thread(words)?;
                let operation = word_of(IoOperation::ALL, words.next("the operation")?)?.into();
                let bytes = words.number("the bytes")?;
                let options = words.options(&["device", "sector"])?;
                let device = options.get("device").map_or(Ok(8 << 20), |d| device(d))?;
                let sector = options.get("sector").map_or(Ok(0), |s| integer(s))?;
                self.trace.tables.ios.push(Io {
                    ts,
                    duration,
                    thread,
                    device,
                    sector,
                    bytes,
                    operation,
                });
                Ok(())
            }
            "sample" => {
                let cpu = on_cpu()?;
                let thread = self.thread(words)?;
                let options = words.options(&["stack", "kstack"])?;
                let (user_stack, kernel_stack) = self.both_stacks(&options, thread);
                self.trace.tables.samples.push(Sample {
                    ts,
                    cpu,
                    thread,
                    user_stack,
                    kernel_stack,
                });
                Ok(())
            }
            "transfer" => {
                let thread = self.thread(words)?;
                let sent = match words.next("sent or received")? {
                    "sent" => true,
                    "received" => false,
                    other => return Err(format!("'{other}' should be sent or received")),
                };
                let bytes = words.number("the bytes")?;
                let options = words.options(&["object", "peer"])?;
                let (object, peer) = (object(options.get("object"))?, object(options.get("peer"))?);
                self.trace.tables.transfers.push(Transfer {
                    ts,
                    thread,
                    object,
                    peer,
                    sent,
                    bytes,
                });
                Ok(())
            }
            "lost" => {
                let count = words.number("the count")?;
                let kind = word_of(LossKind::ALL, words.next("what was lost")?)?.into();
                self.trace.tables.losses.push(Loss {
                    ts,
                    cpu: cpu.unwrap_or(u16::MAX),
                    kind,
                    count,
                });
                Ok(())
            }
            "fork" | "exec" | "rename" | "exit" => self.life(ts, kind, words),
            other => Err(format!("there is no event '{other}'")),
        }
    }

    fn life(&mut self, ts: u64, kind: &str, words: &mut Words<'_>) -> Parsed<()> {
        let thread = self.thread(words)?;
        match kind {
            "fork" => {
                words.arrow()?;
                let handle = words.next("the new thread's name")?;
                let (process, pid) = self.process(words.next("the process's name")?)?;
                let tid = words.number("the tid")?;
                let child = self.born(
                    handle,
                    Life {
                        process,
                        tid,
                        pid,
                        name: handle.into(),
                    },
                )?;
                self.live(ts, LifecycleKind::Forked, child, thread, "");
            }
            "exec" => {
                let file = words.next("the file")?;
                self.lives[thread as usize].name = file.rsplit('/').next().unwrap_or(file).into();
                self.live(ts, LifecycleKind::Executed, thread, NONE, file);
            }
            "rename" => {
                self.lives[thread as usize].name = words.next("the new name")?.into();
                self.live(ts, LifecycleKind::Renamed, thread, NONE, "");
            }
            _ => {
                let status = words.next("the exit status")?;
                self.live(ts, LifecycleKind::Exited, thread, NONE, status);
            }
        }
        Ok(())
    }

    fn switch(&mut self, ts: u64, cpu: u16, words: &mut Words<'_>) -> Parsed<()> {
        let prev = self.thread(words)?;
        words.arrow()?;
        let next = self.thread(words)?;
        let left = words
            .optional(|word| word_of(Left::ALL, word).ok())
            .unwrap_or(Left::Preempted);
        let call = self.call(words).unwrap_or(self.no_call(prev));
        let known = [
            "op", "arg", "object", "holder", "stack", "kstack", "priority",
        ];
        let options = words.options(&known)?;
        let (user_stack, kernel_stack) = self.both_stacks(&options, prev);
        let row = Switch {
            ts,
            cpu,
            prev,
            next,
            left: left.into(),
            next_priority: options
                .get("priority")
                .map_or(Ok(PRIORITY), |p| integer(p))?,
            call,
            object: object(options.get("object"))?,
            arg: argument(&options)?,
            holder: options
                .get("holder")
                .map_or(Ok(NONE), |name| self.named(name))?,
            user_stack,
            kernel_stack,
        };
        self.trace.tables.switches.push(row);
        Ok(())
    }

    fn wake(&mut self, ts: u64, cpu: u16, words: &mut Words<'_>) -> Parsed<()> {
        let waker = self.thread(words)?;
        words.arrow()?;
        let wakee = self.thread(words)?;
        let call = self.call(words);
        let known = [
            "op", "arg", "object", "stack", "kstack", "in", "vector", "new",
        ];
        let options = words.options(&known)?;
        let context = options
            .get("in")
            .map_or(Ok(Context::Task), |w| word_of(Context::ALL, w))?;
        let (user_stack, kernel_stack) = self.both_stacks(&options, waker);
        // In an interrupt, what the CPU was running has nothing to do with the wake.
        let no_call = if context == Context::Task {
            self.no_call(waker)
        } else {
            NO_CALL
        };
        self.trace.tables.wakes.push(Wake {
            ts,
            cpu,
            waker,
            wakee,
            context: context.into(),
            vector: options.get("vector").map_or(Ok(0), |v| integer(v))?,
            new: options.contains_key("new"),
            call: call.unwrap_or(no_call),
            object: object(options.get("object"))?,
            arg: argument(&options)?,
            user_stack,
            kernel_stack,
        });
        Ok(())
    }

    /// The number of the call that is named next, if one is.
    fn call(&self, words: &mut Words<'_>) -> Option<i16> {
        words.optional(|word| {
            if word == "fault" {
                Some(NO_CALL)
            } else {
                self.calls.number(word)
            }
        })
    }

    /// The call number of a thread that is in no call.
    fn no_call(&self, thread: Utid) -> i16 {
        match self.lives[thread as usize].process {
            KERNEL_PROCESS => KERNEL_THREAD,
            _ => NO_CALL,
        }
    }

    fn thread(&self, words: &mut Words<'_>) -> Parsed<Utid> {
        self.named(words.next("a thread")?)
    }

    fn named(&self, name: &str) -> Parsed<Utid> {
        let utid = self.trace.threads.get(name).copied();
        utid.ok_or_else(|| format!("there is no thread '{name}'; declare it above with: thread"))
    }

    fn process(&self, name: &str) -> Parsed<(Upid, u32)> {
        let process = self.processes.get(name).copied();
        process
            .ok_or_else(|| format!("there is no process '{name}'; declare it above with: process"))
    }

    fn born(&mut self, handle: &str, life: Life) -> Parsed<Utid> {
        let utid = self.lives.len() as Utid;
        if self.trace.threads.insert(handle.into(), utid).is_some() {
            return Err(format!(
                "there are two threads {handle}; tell them apart and use name="
            ));
        }
        self.lives.push(life);
        Ok(utid)
    }

    fn live(&mut self, ts: u64, kind: LifecycleKind, thread: Utid, parent: Utid, detail: &str) {
        let Life {
            process,
            tid,
            pid,
            name,
        } = self.lives[thread as usize].clone();
        let (kind, detail) = (kind.into(), detail.into());
        let row = LifecycleEvent {
            ts,
            kind,
            thread,
            process,
            tid,
            pid,
            parent,
            name,
            detail,
        };
        self.trace.tables.lifecycle.push(row);
    }

    fn both_stacks(&mut self, options: &HashMap<&str, &str>, thread: Utid) -> (StackId, StackId) {
        let process = self.lives[thread as usize].process;
        let user = options
            .get("stack")
            .map_or(NO_STACK, |s| self.stack(s, USER_MODULE, process));
        let kernel = options
            .get("kstack")
            .map_or(NO_STACK, |s| self.stack(s, KERNEL_MODULE, KERNEL_PROCESS));
        (user, kernel)
    }

    fn stack(&mut self, functions: &str, module: u32, process: Upid) -> StackId {
        let frames: Vec<u32> = functions
            .split(';')
            .map(|name| self.frame(name, module))
            .collect();
        let new = self.stacks.len() as StackId + 1;
        *self
            .stacks
            .entry((process, frames))
            .or_insert_with_key(|(process, frames)| {
                let row = Stack {
                    stack: new,
                    process: *process,
                    frames: frames.clone(),
                };
                self.trace.tables.stacks.push(row);
                new
            })
    }

    fn frame(&mut self, name: &str, module: u32) -> u32 {
        let frame = self.frames.len() as u32;
        *self.frames.entry((module, name.into())).or_insert_with(|| {
            let tables = &mut self.trace.tables;
            tables.frames.push(Frame {
                frame,
                module,
                offset: 0x1000 + u64::from(frame) * 16,
            });
            let (function, source) = name.split_once('@').unwrap_or((name, ""));
            let (function, source) = (function.into(), source.into());
            tables.symbols.push(Symbol {
                frame,
                function,
                function_offset: 0,
                source,
            });
            frame
        })
    }

    fn finish(self) -> TextTrace {
        let mut trace = self.trace;
        if !trace.tables.frames.is_empty() {
            for (module, kind, path) in [
                (USER_MODULE, ModuleKind::File, "/usr/bin/app"),
                (KERNEL_MODULE, ModuleKind::Kernel, "[kernel]"),
            ] {
                let (kind, path, build_id) = (kind.into(), path.into(), String::new());
                trace.tables.modules.push(Module {
                    module,
                    kind,
                    path,
                    build_id,
                    process: NONE,
                });
            }
        }
        let tables = &mut trace.tables;
        tables.switches.sort();
        tables.wakes.sort();
        tables.interrupts.sort();
        tables.ios.sort();
        tables.transfers.sort();
        tables.samples.sort();
        tables.lifecycle.sort();
        tables.losses.sort();
        trace.end = self.end.unwrap_or(self.last);
        trace
    }
}

/// The value whose word is `text`; spaces in a word are written as '-'.
fn word_of<T: Copy>(all: &[(T, &str)], text: &str) -> Parsed<T> {
    let found = all.iter().find(|(_, word)| word.replace(' ', "-") == text);
    found.map(|(value, _)| *value).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|(_, word)| word.replace(' ', "-")).collect();
        format!("'{text}' is not one of: {}", known.join(", "))
    })
}

/// A time in ns, exactly.
fn time(text: &str) -> Parsed<u64> {
    let wrong =
        || format!("'{text}' is neither a time (as 1.5ms) nor process, thread, kthread, end");
    let unit = text
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let digits = match unit {
        "" if number == "0" => return Ok(0),
        "ns" => 0,
        "us" | "µs" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > digits {
        return Err(wrong());
    }
    format!("{whole}{fraction:0<digits$}")
        .parse()
        .map_err(|_| wrong())
}

fn integer<T: TryFrom<u64>>(text: &str) -> Parsed<T> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let number = number.and_then(|n| n.try_into().ok());
    number.ok_or_else(|| format!("'{text}' is not a number that fits"))
}

fn device(text: &str) -> Parsed<u32> {
    let wrong = || format!("'{text}' should be a device, as 8:1");
    let (major, minor) = text.split_once(':').ok_or_else(wrong)?;
    Ok(integer::<u32>(major)? << 20 | integer::<u32>(minor)?)
}

fn argument(options: &HashMap<&str, &str>) -> Parsed<u64> {
    match (options.get("op"), options.get("arg")) {
        (Some(_), Some(_)) => Err("op and arg are the same column: give one".into()),
        (Some(op), None) => match FutexOp::ALL.iter().find(|(_, text)| text == op) {
            Some((op, _)) => Ok(*op as u64),
            None => Err(format!("'{op}' is not a futex operation")),
        },
        (None, Some(&"none")) => Ok(u64::MAX),
        (None, Some(arg)) => integer(arg).or_else(|_| time(arg)),
        (None, None) => Ok(0),
    }
}

fn object(text: Option<&&str>) -> Parsed<u64> {
    let Some(text) = text else { return Ok(0) };
    let (kind, value) = text
        .split_once(':')
        .ok_or_else(|| format!("'{text}' should be an object, as futex:0x1000"))?;
    let kind = match kind {
        "futex" => ObjectKind::Futex,
        "pipe" => ObjectKind::Pipe,
        "unix" => ObjectKind::Unix,
        "inet" => ObjectKind::Inet,
        "socket" => ObjectKind::Socket,
        "eventfd" => ObjectKind::Eventfd,
        "timerfd" => ObjectKind::Timerfd,
        "epoll" => ObjectKind::Epoll,
        "anonymous" => ObjectKind::Anonymous,
        "file" => ObjectKind::File,
        "char" => ObjectKind::CharDevice,
        "block" => ObjectKind::BlockDevice,
        other => return Err(format!("there is no kind of object '{other}'")),
    };
    Ok(Object::new(kind, integer(value)?).0)
}
