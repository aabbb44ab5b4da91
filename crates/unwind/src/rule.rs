//! One row of a table, laid out as the kernel side reads it.

use std::fmt;

/// From the offset `pc` on, until the next row, `rule` holds. Eight bytes, as in the BPF maps.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Offset from the start of the file (of the image, for the vdso), in bytes.
    pub pc: u32,
    /// How to get to the caller from here on.
    pub rule: Rule,
}

/// How to get from a frame to its caller.
///
/// Bits 0-3 hold the [`Kind`], to which 8 is added where the code is an interpreter's loop, 4-19 hold
/// `cfa`, 20-31 `saved`. The CFA is the address above the return address: the caller's stack pointer.
/// `saved` is 0 if the frame pointer is the caller's still, otherwise the caller's lies at
/// CFA - 8 * `saved`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule(pub u32);

/// What a [`Rule`] does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// No unwind information covers the place.
    None = 0,
    /// CFA = sp + 8 * `cfa`.
    Sp = 1,
    /// CFA = fp + 8 * `cfa`.
    Fp = 2,
    /// The word at fp - 8 * `cfa` is the CFA, the word at fp the caller's fp: how gcc realigns a
    /// stack.
    Realigned = 3,
    /// CFA = sp + 8, and 8 more from the byte `cfa` of each 16-byte entry of the procedure linkage
    /// table on.
    Plt = 4,
    /// All registers are in the `ucontext` at sp + 8 * `cfa`: where a signal handler returns to.
    Signal = 5,
    /// The outermost frame.
    End = 6,
    /// There is information, of a form that a rule cannot hold.
    Unsupported = 7,
    /// CFA = (the word at sp + 8 * ((`cfa` & 0xfff) - 1)) + 8 * (`cfa` >> 12): the code has aligned
    /// its stack and stored the previous stack pointer on it, as OpenSSL's assembly does.
    Stored = 11,
    /// The word at sp + 8 * `cfa` is the address of what describes the task (a goroutine) that the thread has just
    /// parked: the walk goes on in that, on its own stack.
    Task = 12,
}

/// Where Go's runtime keeps the registers of a parked goroutine: bytes from the begin of its description (`g.sched`
/// in Go's `src/runtime/runtime2.go`).
pub(crate) struct Task {
    /// Its stack pointer.
    pub sp: u64,
    /// Where it goes on.
    pub ip: u64,
    /// The address of the description itself.
    pub own: u64,
    /// Its frame pointer in older versions, as 1.19, which have one word more before it. In newer ones, as 1.26,
    /// this word is 0 while the goroutine is parked.
    pub fp: u64,
    /// Its frame pointer in newer versions; in older ones this word is always 0 on x86-64.
    pub newer_fp: u64,
}

pub(crate) const GO_TASK: Task = Task {
    sp: 56,
    ip: 64,
    own: 72,
    fp: 104,
    newer_fp: 96,
};

/// Only with [`Kind::Sp`] and [`Kind::Fp`]: the numbers that this makes of others mean something else
/// on the kernel side.
const LOOP: u32 = 8;
const CFA_SHIFT: u32 = 4;
const SAVED_SHIFT: u32 = 20;
const SAVED_MOST: u16 = (1 << 12) - 1;
const STORED_SHIFT: u32 = 12;
const STORED_MOST: u16 = (1 << STORED_SHIFT) - 1;

impl Rule {
    /// No unwind information covers the place.
    pub const NONE: Rule = Rule(Kind::None as u32);
    /// The outermost frame.
    pub const END: Rule = Rule(Kind::End as u32);
    /// There is information, of a form that a rule cannot hold.
    pub const UNSUPPORTED: Rule = Rule(Kind::Unsupported as u32);
    /// A frame that `push %rbp; mov %rsp, %rbp` began.
    pub const FRAME_POINTER: Rule = match Rule::new(Kind::Fp, 2, 2) {
        Some(rule) => rule,
        None => Rule::UNSUPPORTED,
    };

    /// Where Go's runtime has parked a goroutine, whose address it has just pushed.
    pub const TASK: Rule = Rule(Kind::Task as u32);

    /// A rule; `None` if `saved` is above 4095.
    pub const fn new(kind: Kind, cfa: u16, saved: u16) -> Option<Rule> {
        if saved > SAVED_MOST {
            return None;
        }
        Some(Rule(
            kind as u32 | (cfa as u32) << CFA_SHIFT | (saved as u32) << SAVED_SHIFT,
        ))
    }

    /// A rule of [`Kind::Stored`]: the word is at sp + 8 * `at`, and the CFA 8 * `above` above what it
    /// says; `None` if a rule cannot hold that.
    pub fn stored(at: i64, above: u16, saved: u16) -> Option<Rule> {
        let at = u16::try_from(at.checked_add(1)?).ok()?;
        (at <= STORED_MOST && above < 16).then_some(())?;
        Rule::new(Kind::Stored, above << STORED_SHIFT | at, saved)
    }

    /// Of a rule of [`Kind::Stored`]: how many words above the stack pointer the word is, and how many
    /// above what it says the CFA.
    pub const fn stored_at(self) -> (i64, u16) {
        let cfa = self.cfa();
        ((cfa & STORED_MOST) as i64 - 1, cfa >> STORED_SHIFT)
    }

    /// What it does; a number that this version does not know reads as [`Kind::Unsupported`].
    pub const fn kind(self) -> Kind {
        match self.0 & 0xf {
            0 => Kind::None,
            1 | 9 => Kind::Sp,
            2 | 10 => Kind::Fp,
            3 => Kind::Realigned,
            4 => Kind::Plt,
            5 => Kind::Signal,
            6 => Kind::End,
            11 => Kind::Stored,
            12 => Kind::Task,
            _ => Kind::Unsupported,
        }
    }

    /// The same rule for code of an interpreter's loop; unchanged if frames there have another form
    /// than such a loop's.
    #[must_use]
    pub const fn in_loop(self) -> Rule {
        match self.kind() {
            Kind::Sp | Kind::Fp => Rule(self.0 | LOOP),
            _ => self,
        }
    }

    /// Whether the code is an interpreter's loop.
    pub const fn is_loop(self) -> bool {
        matches!(self.0 & 0xf, 9 | 10)
    }

    /// Where the CFA is: words, except for [`Kind::Plt`], where it is bytes.
    pub const fn cfa(self) -> u16 {
        (self.0 >> CFA_SHIFT) as u16
    }

    /// How far below the CFA the caller's frame pointer is saved, in words; 0 if it is not.
    pub const fn saved(self) -> u16 {
        (self.0 >> SAVED_SHIFT) as u16
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({}, {})", self.kind(), self.cfa(), self.saved())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mark of a loop leaves what a rule does as it is, and only those have it that a loop's code
    /// can have.
    #[test]
    fn a_loop_is_marked() {
        let rule = Rule::new(Kind::Sp, 0xffff, 4095).expect("a rule");
        let marked = rule.in_loop();
        assert!(marked.is_loop() && !rule.is_loop());
        assert_eq!(
            (marked.kind(), marked.cfa(), marked.saved()),
            (rule.kind(), rule.cfa(), rule.saved())
        );
        assert!(Rule::FRAME_POINTER.in_loop().is_loop());
        for rule in [Rule::NONE, Rule::END, Rule::UNSUPPORTED] {
            assert_eq!(rule.in_loop(), rule);
            assert!(!rule.is_loop());
        }
    }
}
