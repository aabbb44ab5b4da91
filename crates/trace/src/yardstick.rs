//! What basic operations cost on the machine that recorded, to hold a duration against: 98 µs of
//! waiting for a CPU are 30 context switches between threads on one machine, and 5 on another.
//!
//! `hangdog numbers` measures them; a recording takes a copy along in its `meta.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Costs of operations, as they were measured on the machine before it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Yardstick {
    /// When they were measured, seconds since 1970.
    pub taken_unix_s: u64,
    /// Medians, ns, by the names that `hangdog numbers --json` gives them.
    pub costs_ns: BTreeMap<String, f64>,
}

/// What a duration can be held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One thread lets another run on its CPU.
    HandOver,
    /// One thread gets a lock from another, on another CPU.
    LockHandOver,
    /// One thread passes a byte to another, on another CPU.
    Message,
    /// A page is paged in from the disk.
    MajorFault,
    /// 4 KiB are read from the disk.
    DiskRead,
    /// 4 KiB are made to last on the disk.
    Sync,
}

impl Operation {
    /// Its name in [`Yardstick::costs_ns`].
    pub fn id(self) -> &'static str {
        match self {
            Operation::HandOver => "pingpong.futex.same",
            Operation::LockHandOver => "lock.contended",
            Operation::Message => "pingpong.unix.across",
            Operation::MajorFault => "fault.major",
            Operation::DiskRead => "file.read_uncached.4k",
            Operation::Sync => "file.fsync",
        }
    }

    /// Its name for people, as in "30 times a context switch".
    pub fn text(self) -> &'static str {
        match self {
            Operation::HandOver => "a context switch",
            Operation::LockHandOver => "a lock handoff",
            Operation::Message => "a message",
            Operation::MajorFault => "a page fault from the disk",
            Operation::DiskRead => "a read of 4 KiB from the disk",
            Operation::Sync => "an fsync of 4 KiB",
        }
    }
}

/// A duration held against an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// How many times as long, at least 1.
    pub times: f64,
    /// The operation's name in [`Yardstick::costs_ns`].
    pub operation: &'static str,
    /// What it costs on the machine, ns.
    pub cost_ns: f64,
    /// The comparison in words.
    pub text: String,
}

impl Yardstick {
    /// Holds a duration against an operation. None where its cost is not known, or where the
    /// duration is shorter: then it says nothing.
    pub fn compare(&self, ns: u64, operation: Operation) -> Option<Compared> {
        let cost_ns = *self.costs_ns.get(operation.id())?;
        let times = ns as f64 / cost_ns;
        // From outside: a cost may be anything that JSON can write.
        if cost_ns <= 0.0 || !times.is_finite() || times < 1.0 {
            return None;
        }
        let text = format!(
            "{} times {} on this machine",
            two_digits(times),
            operation.text()
        );
        Some(Compared {
            times,
            operation: operation.id(),
            cost_ns,
            text,
        })
    }
}

/// Two significant digits, because baseline costs have no more, and thousands apart.
fn two_digits(times: f64) -> String {
    if times < 9.95 {
        let text = format!("{times:.1}");
        return text.strip_suffix(".0").map_or(text.clone(), str::to_owned);
    }
    let step = 10f64.powf(times.log10().floor() - 1.0);
    let digits = format!("{:.0}", (times / step).round() * step);
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yardstick(cost: f64) -> Yardstick {
        let costs_ns = [(Operation::HandOver.id().to_owned(), cost)].into();
        Yardstick {
            taken_unix_s: 0,
            costs_ns,
        }
    }

    /// The example of the documents: 98 µs, and a context switch of 3.3 µs.
    #[test]
    fn a_wait_is_held_against_a_hand_over() {
        let compared = yardstick(3300.0)
            .compare(98_000, Operation::HandOver)
            .unwrap();
        assert_eq!(compared.text, "30 times a context switch on this machine");
        assert_eq!(compared.cost_ns, 3300.0);
    }

    /// What is not known, shorter than the operation, or nonsense in the file gives no comparison.
    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        assert_eq!(yardstick(3300.0).compare(98_000, Operation::Sync), None);
        assert_eq!(yardstick(3300.0).compare(3_000, Operation::HandOver), None);
        for cost in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                yardstick(cost).compare(98_000, Operation::HandOver),
                None,
                "{cost}"
            );
        }
    }

    /// Two digits, thousands apart.
    #[test]
    fn numbers_have_two_digits() {
        for (times, text) in [
            (1.0, "1"),
            (1.26, "1.3"),
            (9.96, "10"),
            (29.7, "30"),
            (127.0, "130"),
            (15_949.0, "16,000"),
            (1_234_567.0, "1,200,000"),
        ] {
            assert_eq!(two_digits(times), text);
        }
    }
}
