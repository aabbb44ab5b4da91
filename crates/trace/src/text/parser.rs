//! Lines become rows.

mod flags;
mod handoffs;
mod marks;
mod paging;

use std::collections::HashMap;

use super::line::Words;
use super::stacks::{Stacks, declare_modules};
use super::values::{argument, device, integer, object, time, word_of};
use super::{ARCH, Parsed, TextTrace};
use crate::calls::{Calls, KERNEL_THREAD, NO_CALL};
use crate::ids::{IDLE, KERNEL_PROCESS, NO_STACK, NONE, StackId, Upid, Utid};
use crate::tables::{
    Count, FoundWaiting, Goroutine, Interrupt, Io, LifecycleEvent, Limit, Loss, Sample, Stored,
    Switch, SystemCall, Transfer, Wake,
};
use crate::words::*;

/// What a running thread's priority is if the text does not say: nice 0.
const PRIORITY: u8 = 120;

pub(super) struct Parser {
    trace: TextTrace,
    end: Option<u64>,
    last: u64,
    calls: Calls,
    /// By name: upid and pid.
    processes: HashMap<String, (Upid, u32)>,
    /// By utid; the idle thread first.
    lives: Vec<Life>,
    stacks: Stacks,
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
    pub(super) fn new() -> Parser {
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
            stacks: Stacks::default(),
        }
    }

    pub(super) fn line(&mut self, words: &mut Words<'_>) -> Parsed<()> {
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
            "flag" => self.flag(words)?,
            "area" => self.area(words)?,
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
            "away" => {
                let thread = self.thread(words)?;
                let age = time(words.next("how long it was off its CPU")?)?;
                let options = words.options(&["lived"])?;
                let lived = options.get("lived").map_or(Ok(0), |lived| time(lived))?;
                self.trace.tables.found_waiting.push(FoundWaiting {
                    ts,
                    thread,
                    age,
                    lived,
                });
                Ok(())
            }
            "goroutine" => {
                let thread = self.thread(words)?;
                let number = words.number("its number")?;
                let options = words.options(&["stack", "awaited"])?;
                let (user_stack, _) = self.both_stacks(&options, thread)?;
                let process = self.lives[thread as usize].process;
                let awaited = options.get("awaited").map_or(Ok(0), |it| integer(it))?;
                self.trace.tables.goroutines.push(Goroutine {
                    ts,
                    process,
                    number,
                    awaited,
                    user_stack,
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
                let (user_stack, kernel_stack) = self.both_stacks(&options, thread)?;
                self.trace.tables.samples.push(Sample {
                    ts,
                    cpu,
                    thread,
                    user_stack,
                    kernel_stack,
                });
                Ok(())
            }
            "counters" => {
                let cpu = on_cpu()?;
                let thread = self.thread(words)?;
                let known = ["cycles", "instructions", "cache-misses", "tlb-misses"];
                let options = words.options(&known)?;
                self.trace.tables.counters.push(Count {
                    ts,
                    cpu,
                    thread,
                    cycles: options.get("cycles").map_or(Ok(u64::MAX), |n| integer(n))?,
                    instructions: options
                        .get("instructions")
                        .map_or(Ok(u64::MAX), |n| integer(n))?,
                    cache_misses: options
                        .get("cache-misses")
                        .map_or(Ok(u32::MAX), |n| integer(n))?,
                    tlb_misses: options
                        .get("tlb-misses")
                        .map_or(Ok(u32::MAX), |n| integer(n))?,
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
            "call" => self.system_call(ts, words),
            "handoff" => self.handoff(ts, on_cpu()?, words),
            "mark" => self.mark(ts, words),
            "access" => self.access(ts, words),
            "socket" => self.socket(ts, words),
            "open" => self.open(ts, words),
            "limit" => {
                let (process, _) = self.process(words.next("the process's name")?)?;
                let kind = word_of(LimitKind::ALL, words.next("what is limited")?)?.into();
                let limit = words.number("the limit")?;
                let options = words.options(&["used", "group", "device"])?;
                let used = options.get("used").map_or(Ok(0), |used| integer(used))?;
                let group = options.get("group").map_or("/", |group| *group).to_owned();
                self.trace.tables.limits.push(Limit {
                    ts,
                    process,
                    kind,
                    limit,
                    used,
                    group,
                    device: options.get("device").map_or("", |it| *it).to_owned(),
                });
                Ok(())
            }
            "fault" => self.fault(ts, words),
            "cache" => self.cache(ts, words),
            "memory" => self.memory(ts, words),
            "cached" => self.cached(ts, words),
            "stall" => self.stall(ts, words),
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
            "fork" | "exec" | "rename" | "exit" | "out-of-memory" => self.life(ts, kind, words),
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
                let mut command = file.to_owned();
                while words.peek().is_some() {
                    command += " ";
                    command += words.next("an argument")?;
                }
                self.live(ts, LifecycleKind::Executed, thread, NONE, &command);
            }
            "rename" => {
                self.lives[thread as usize].name = words.next("the new name")?.into();
                self.live(ts, LifecycleKind::Renamed, thread, NONE, "");
            }
            "out-of-memory" => self.live(ts, LifecycleKind::OutOfMemory, thread, NONE, ""),
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
        let (user_stack, kernel_stack) = self.both_stacks(&options, prev)?;
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
        let (user_stack, kernel_stack) = self.both_stacks(&options, waker)?;
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

    fn system_call(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let duration = time(words.next("the duration")?)?;
        let thread = self.thread(words)?;
        let call = self.call(words).ok_or("the name of a call is missing")?;
        let options = words.options(&["result", "error", "args", "stack"])?;
        let (stack, _) = self.both_stacks(&options, thread)?;
        let mut args = [0; 6];
        let given = options.get("args").map_or("", |args| *args);
        let given = given.split(',').filter(|arg| !arg.is_empty());
        for (i, arg) in given.enumerate() {
            *args.get_mut(i).ok_or("a call has at most six arguments")? = integer(arg)?;
        }
        self.trace.tables.calls.push(SystemCall {
            ts,
            duration,
            thread,
            call,
            result: options.get("result").map_or(Ok(0), |n| integer(n))?,
            error: options.get("error").map_or(Ok(0), |n| integer(n))?,
            stack,
            arg0: args[0],
            arg1: args[1],
            arg2: args[2],
            arg3: args[3],
            arg4: args[4],
            arg5: args[5],
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

    fn both_stacks(
        &mut self,
        options: &HashMap<&str, &str>,
        thread: Utid,
    ) -> Parsed<(StackId, StackId)> {
        let process = self.lives[thread as usize].process;
        let (stacks, tables) = (&mut self.stacks, &mut self.trace.tables);
        let user = options
            .get("stack")
            .map_or(Ok(NO_STACK), |s| stacks.user(s, process, tables))?;
        let kernel = options
            .get("kstack")
            .map_or(Ok(NO_STACK), |s| stacks.kernel(s, tables))?;
        Ok((user, kernel))
    }

    pub(super) fn finish(self) -> TextTrace {
        let mut trace = self.trace;
        let tables = &mut trace.tables;
        declare_modules(tables);
        tables.switches.sort();
        tables.wakes.sort();
        tables.interrupts.sort();
        tables.ios.sort();
        tables.faults.sort();
        tables.stalls.sort();
        tables.page_cache.sort();
        tables.transfers.sort();
        tables.handoffs.sort();
        tables.flag_accesses.sort();
        tables.found_waiting.sort();
        tables.goroutines.sort();
        tables.limits.sort();
        tables.sockets.sort();
        tables.descriptors.sort();
        tables.calls.sort();
        tables.samples.sort();
        tables.counters.sort();
        tables.marks.sort();
        tables.lifecycle.sort();
        tables.losses.sort();
        trace.end = self.end.unwrap_or(self.last);
        trace
    }
}
