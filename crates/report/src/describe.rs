//! What threads wait in and wake by, in words: system calls with what they work on.

use crate::format;
use hangdog_trace::calls::{Call, Calls, FutexOp, sleep_of_poll};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::stacks::StackTable;
use hangdog_trace::words::KernelLock;
pub use hangdog_trace::words::softirq;
use serde::Serialize;
use std::borrow::Cow;

/// A timeout or child that the call leaves open.
const ANY: u64 = u64::MAX;

/// A system call and its arguments as far as they are recorded.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// Its name; `page fault` and `kernel thread` stand for no call.
    pub name: Cow<'static, str>,
    /// The operation of a futex call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// What it works on, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The recorded argument; its meaning depends on the call (docs/TRACE.md).
    pub argument: u64,
    #[serde(skip)]
    kind: Call,
    /// The lock inside the kernel that the thread waits for, in place of what the call is about.
    #[serde(skip)]
    lock: Option<KernelLock>,
}

impl CallInfo {
    /// Of a row's columns.
    pub fn new(calls: &Calls, call: i16, object: u64, argument: u64) -> CallInfo {
        let kind = calls.kind(call);
        let object = Object(object);
        let lock = (object.kind() == ObjectKind::KernelLock)
            .then(|| KernelLock::from(u8::try_from(argument).unwrap_or(u8::MAX)));
        CallInfo {
            name: calls.name(call),
            operation: (kind == Call::Futex && lock.is_none())
                .then(|| FutexOp::of(argument).text()),
            object: (!object.is_none()).then(|| object.to_string()),
            argument,
            kind,
            lock,
        }
    }

    /// Whether it is a system call at all.
    pub fn is_call(&self) -> bool {
        !matches!(self.kind, Call::None | Call::KernelThread)
    }

    /// The call as a phrase: `futex wait on futex 0x1000`.
    pub fn text(&self) -> String {
        if let (Some(lock), Some(object)) = (self.lock, &self.object) {
            return format!("{} on {object} ({})", self.name, lock.text());
        }
        let mut text = self.name.to_string();
        if let Some(operation) = self.operation {
            text = format!("{text} {operation}");
        }
        match &self.object {
            Some(object) if self.kind == Call::Futex => text = format!("{text} on {object}"),
            Some(object) => text = format!("{text} of {object}"),
            None => {}
        }
        match (self.kind, self.argument) {
            (Call::None, address) => text = format!("{text} at {address:#x}"),
            (Call::Sleep, ns) => text = format!("{text} for {}", format::duration(ns)),
            // Their second argument is no time.
            (Call::Poll, _) if ["select", "pselect6", "epoll_pwait2"].contains(&&*self.name) => {}
            (Call::Poll, ANY) => text.push_str(" without timeout"),
            (Call::Poll, argument) if let Some(ns) = sleep_of_poll(argument) => {
                text = format!("{text} of nothing for {}", format::duration(ns));
            }
            (Call::Poll, ms) => {
                let timeout = format::duration(ms.saturating_mul(1_000_000));
                text = format!("{text}, timeout {timeout}");
            }
            (Call::WaitChild, ANY) => text.push_str(" for any child"),
            (Call::WaitChild, pid) => text = format!("{text} for child {pid}"),
            (Call::Kill, signal) => text = format!("{text} with signal {signal}"),
            _ => {}
        }
        text
    }
}

/// The frames of a stack, innermost first.
pub fn frames(stacks: &StackTable, stack: u32) -> Vec<String> {
    stacks.stack(stack).map(|frame| frame.to_string()).collect()
}

/// The first named frames of a stack, innermost first, in one line; the first as it is where
/// none has a name. None where there is no stack.
pub fn stack_line(stacks: &StackTable, stack: u32) -> Option<String> {
    const SHOWN: usize = 5;
    let named: Vec<&str> = stacks
        .stack(stack)
        .filter_map(|frame| frame.function)
        .take(SHOWN)
        .collect();
    match named.is_empty() {
        true => stacks.stack(stack).next().map(|frame| frame.to_string()),
        false => Some(named.join(" < ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::object::ObjectKind;

    fn text(call: &str, object: u64, argument: u64) -> String {
        let calls = Calls::new("x86_64");
        let number = match call {
            "fault" => -1,
            "kernel" => -2,
            call => calls.number(call).expect("a call of x86-64"),
        };
        CallInfo::new(&calls, number, object, argument).text()
    }

    /// Each kind of call says what of its argument matters.
    #[test]
    fn calls_in_words() {
        let pipe = Object::new(ObjectKind::Pipe, 77).0;
        let futex = Object::new(ObjectKind::Futex, 0x1000).0;
        let private_wait = 128;
        let lock = Object::new(ObjectKind::KernelLock, 0x40).0;
        assert_eq!(
            text("futex", futex, private_wait),
            "futex wait on futex 0x1000"
        );
        assert_eq!(text("read", pipe, 4096), "read of pipe 77");
        assert_eq!(text("nanosleep", 0, 10_000_000), "nanosleep for 10 ms");
        assert_eq!(text("poll", 0, u64::MAX), "poll without timeout");
        assert_eq!(text("poll", 0, 1500), "poll, timeout 1.5 s");
        let sleep = 1 << 62 | 11_000_000_000;
        assert_eq!(text("poll", 0, sleep), "poll of nothing for 11 s");
        let negative = i64::from(-5i32).cast_unsigned();
        assert!(text("poll", 0, negative).starts_with("poll, timeout"));
        assert_eq!(text("wait4", 0, u64::MAX), "wait4 for any child");
        assert_eq!(text("wait4", 0, 105), "wait4 for child 105");
        assert_eq!(text("tgkill", 0, 9), "tgkill with signal 9");
        assert_eq!(text("fault", 0, 0x7000), "page fault at 0x7000");
        assert_eq!(text("kernel", 0, 0), "kernel thread");
        assert_eq!(text("fsync", 0, 0), "fsync");
        assert_eq!(text("write", lock, 1), "write on kernel lock 0x40 (mutex)");
        assert_eq!(
            text("futex", lock, 3),
            "futex on kernel lock 0x40 (write lock)"
        );
        assert_eq!(text("poll", lock, 99), "poll on kernel lock 0x40 (unknown)");
    }
}
