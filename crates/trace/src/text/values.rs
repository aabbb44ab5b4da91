//! Single values: times, numbers, objects, words.

use std::collections::HashMap;

use super::Parsed;
use crate::calls::FutexOp;
use crate::object::{Object, ObjectKind};

/// The value whose word is `text`; spaces in a word are written as '-'.
pub(super) fn word_of<T: Copy>(all: &[(T, &str)], text: &str) -> Parsed<T> {
    let found = all.iter().find(|(_, word)| word.replace(' ', "-") == text);
    found.map(|(value, _)| *value).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|(_, word)| word.replace(' ', "-")).collect();
        format!("'{text}' is not one of: {}", known.join(", "))
    })
}

/// A time in ns, exactly.
pub(super) fn time(text: &str) -> Parsed<u64> {
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

pub(super) fn integer<T: TryFrom<u64>>(text: &str) -> Parsed<T> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let number = number.and_then(|n| n.try_into().ok());
    number.ok_or_else(|| format!("'{text}' is not a number that fits"))
}

pub(super) fn device(text: &str) -> Parsed<u32> {
    let wrong = || format!("'{text}' should be a device, as 8:1");
    let (major, minor) = text.split_once(':').ok_or_else(wrong)?;
    Ok(integer::<u32>(major)? << 20 | integer::<u32>(minor)?)
}

pub(super) fn argument(options: &HashMap<&str, &str>) -> Parsed<u64> {
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

pub(super) fn object(text: Option<&&str>) -> Parsed<u64> {
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
        "kernel-lock" => ObjectKind::KernelLock,
        "io-uring" => ObjectKind::IoUring,
        "served-file" => ObjectKind::ServedFile,
        "message-queue" => ObjectKind::MessageQueue,
        "process" => ObjectKind::Process,
        other => return Err(format!("there is no kind of object '{other}'")),
    };
    Ok(Object::new(kind, integer(value)?).0)
}
