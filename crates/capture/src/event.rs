//! What the kernel side records of the moment something happens, and how it is read from the words
//! of a ring; `bpf/records.h` has the layout.

use std::ops::Range;

use crate::marker;

/// What a switch tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switch {
    /// Who comes, by tid.
    pub next: u32,
    /// How the one before left, by number.
    pub left: u8,
    pub next_priority: u8,
    pub call: i16,
    pub object: u64,
    pub arg: u64,
    pub user_stack: u32,
    pub kernel_stack: u32,
}

/// What a wake tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wake {
    pub wakee: u32,
    pub is_new: bool,
    pub context: u8,
    pub vector: u8,
    pub call: i16,
    pub object: u64,
    pub arg: u32,
    pub user_stack: u32,
    pub kernel_stack: u32,
}

/// What a handoff tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handoff {
    pub kind: u8,
    pub step: u8,
    pub context: u8,
    pub other: u32,
    pub detail: u64,
    pub object: u64,
    pub key: u64,
}

/// What a system call tells that has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returned {
    pub number: i16,
    pub duration: u64,
    pub result: i64,
    pub stack: u32,
    pub arguments: [u64; 6],
}

/// What the use of a watched flag tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlagUse {
    /// Which flag, by the order in which they were given.
    pub flag: u8,
    /// `words::Access`, by number.
    pub access: u8,
    pub value: u64,
    /// The instruction behind the one that did it.
    pub instruction: u64,
    pub user_stack: u32,
}

/// What a probe of a program tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Which probe, by the order in which they were given.
    pub probe: u16,
    /// Whether a function returned; otherwise it was entered, or a static probe was passed.
    pub returned: bool,
    /// Arguments; of a return the first is what is returned.
    pub arguments: [i64; 4],
}

/// What a page fault tells when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `enum fault_flag`.
    pub flags: u8,
    pub address: u64,
    /// 0 where its beginning was not seen.
    pub duration: u64,
    pub user_stack: u32,
}

/// What became of pages of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheRow {
    /// `words::CacheAction`, by number.
    pub action: u8,
    pub device: u32,
    pub inode: u64,
    pub first: u64,
    pub pages: u32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A CPU went from the event's thread to another.
    Switch(Switch),
    /// The event's thread was found off its CPU (`waiting.rs`), and had been so `since` then; both
    /// times are of CLOCK_MONOTONIC. `is_chosen` says that it waits for several things, of which the
    /// object is the one that matters.
    Waiting {
        switch: Switch,
        born: u64,
        since: u64,
        is_chosen: bool,
    },
    /// A goroutine, or a task of asyncio, of the event's process was found waiting (`tasks.rs`).
    Goroutine {
        number: u64,
        /// The task that it waits for; 0 if that is not known.
        awaited: u64,
        user_stack: u32,
    },
    Wake(Wake),
    Interrupt {
        kind: u8,
        vector: u32,
        duration: u64,
    },
    Io {
        issuer: u32,
        device: u32,
        sector: u64,
        bytes: u32,
        operation: u8,
        duration: u64,
    },
    Transfer {
        object: u64,
        peer: u64,
        sent: bool,
        bytes: u32,
    },
    Sample {
        user_stack: u32,
        kernel_stack: u32,
    },
    Counters {
        cycles: u64,
        instructions: u64,
        cache_misses: u32,
        tlb_misses: u32,
    },
    Handoff(Handoff),
    /// In a box: it is larger than all others, of which there are many more.
    Call(Box<Returned>),
    /// A flag that is watched was used.
    Flag(FlagUse),
    /// A probe of a program was reached.
    Probed(Probed),
    /// A text was written into the kernel's trace_marker; zeros are behind it. In a box, as above.
    Written(Box<[u8; marker::LONGEST]>),
    /// A page fault is over.
    Fault(Fault),
    /// Pages of a file came, were used or went.
    Cache(CacheRow),
    /// A thread has made memory free (`words::StallKind`, by number).
    Stall {
        kind: u8,
        duration: u64,
        pages: u64,
    },
}

/// Something that happened on a CPU while a thread ran there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// When it was over, ns of CLOCK_MONOTONIC.
    pub ts: u64,
    /// By its tid then.
    pub tid: u32,
    pub cpu: u16,
    pub what: Happening,
}

/// Words of a block (`BLOCK_WORDS`).
pub(crate) const BLOCK_WORDS: usize = 512;
/// Of them at its beginning, those that are no record (`HEADER_WORDS`).
pub(crate) const HEADER_WORDS: usize = 4;

const SWITCH: u64 = 1;
const WAKE: u64 = 2;
const INTERRUPT: u64 = 3;
const IO: u64 = 4;
const TRANSFER: u64 = 5;
const SAMPLE: u64 = 6;
const COUNTERS: u64 = 7;
const HANDOFF: u64 = 8;
const RUNS: u64 = 9;
const CALL: u64 = 10;
const FLAG: u64 = 11;
const PAGING: u64 = 12;
const PROBE: u64 = 13;
const MARKER: u64 = 14;
/// `enum probe_step`.
const PROBE_RETURNED: u64 = 1;
/// Of these, which.
const PAGING_FAULT: u64 = 0;
const PAGING_CACHE: u64 = 1;
const PAGING_STALL: u64 = 2;
const END: u64 = 15;

/// Where in a ring a reader is, and what it has to know there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Any time within two seconds of the records'.
    pub near: u64,
    /// Who runs.
    pub tid: u32,
}

/// A record as it stands at the beginning of some words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Event(Event),
    /// None of its own: it told who runs.
    Runs,
    /// The block has no more.
    End,
    /// It is not written yet.
    Unwritten,
    /// No record of this version's.
    Unknown,
}

/// Reads the record at the beginning of `words` and how many words it has. `place` goes on behind it.
pub(crate) fn read(words: &[u64], cpu: u16, place: &mut Place) -> (Record, usize) {
    let Some(&first) = words.first() else {
        return (Record::Unwritten, 0);
    };
    if first == 0 {
        return (Record::Unwritten, 0);
    }
    let bits = |range: Range<u32>| first << (64 - range.end) >> (64 - range.end + range.start);
    let has = |bit: u32| bits(36 + bit..37 + bit) != 0;
    let kind = bits(32..36);
    if kind == END {
        return (Record::End, 1);
    }
    let optional = |count: u32| (0..count).filter(|&bit| has(bit)).count();
    let length = match kind {
        SWITCH => 2 + optional(3),
        WAKE | TRANSFER => 2 + optional(2),
        INTERRUPT => 1 + optional(1),
        IO | HANDOFF | PROBE => 5,
        SAMPLE | RUNS => 2,
        COUNTERS | FLAG | PAGING => 4,
        MARKER => 1 + marker::LONGEST / 8,
        CALL if has(0) => 10,
        CALL => 7,
        _ => return (Record::Unknown, 0),
    };
    let Some(words) = words.get(..length) else {
        return (Record::Unknown, 0);
    };
    // The nearest time that has the lower half.
    let since = (first as u32).wrapping_sub(place.near as u32) as i32;
    let ts = place.near.wrapping_add_signed(since.into());
    place.near = ts;
    let mut rest = words[1..].iter().copied();
    let mut word = || rest.next().unwrap_or(0);
    let call = || bits(44..56) as i16 - 2;
    let runs = place.tid;
    let what = match kind {
        SWITCH => {
            let (next, user_stack) = halves(word());
            place.tid = next;
            Happening::Switch(Switch {
                next,
                left: bits(40..44) as u8,
                next_priority: bits(56..64) as u8,
                call: call(),
                user_stack,
                object: if has(0) { word() } else { 0 },
                arg: if has(1) { word() } else { 0 },
                kernel_stack: if has(2) { word() as u32 } else { 0 },
            })
        }
        WAKE => {
            let (wakee, user_stack) = halves(word());
            let object = if has(0) { word() } else { 0 };
            let (kernel_stack, arg) = if has(1) { halves(word()) } else { (0, 0) };
            Happening::Wake(Wake {
                wakee,
                is_new: bits(43..44) != 0,
                context: bits(40..43) as u8,
                vector: bits(56..64) as u8,
                call: call(),
                object,
                arg,
                user_stack,
                kernel_stack,
            })
        }
        INTERRUPT => Happening::Interrupt {
            kind: bits(40..42) as u8,
            vector: if has(0) { bits(42..64) } else { bits(42..48) } as u32,
            duration: if has(0) { word() } else { bits(48..64) },
        },
        IO => {
            let (issuer, device) = halves(word());
            Happening::Io {
                issuer,
                device,
                sector: word(),
                bytes: word() as u32,
                operation: bits(40..48) as u8,
                duration: word(),
            }
        }
        TRANSFER => Happening::Transfer {
            object: word(),
            peer: if has(0) { word() } else { 0 },
            sent: bits(40..41) != 0,
            bytes: if has(1) { word() } else { bits(41..64) } as u32,
        },
        SAMPLE => {
            let (user_stack, kernel_stack) = halves(word());
            Happening::Sample {
                user_stack,
                kernel_stack,
            }
        }
        COUNTERS => {
            let (cycles, instructions) = (word(), word());
            let (cache_misses, tlb_misses) = halves(word());
            Happening::Counters {
                cycles,
                instructions,
                cache_misses,
                tlb_misses,
            }
        }
        HANDOFF => Happening::Handoff(Handoff {
            step: bits(40..44) as u8,
            kind: bits(44..48) as u8,
            context: bits(48..52) as u8,
            other: word() as u32,
            detail: word(),
            object: word(),
            key: word(),
        }),
        CALL => {
            let mut returned = Returned {
                number: bits(40..52) as i16 - 2,
                duration: word(),
                result: word() as i64,
                stack: word() as u32,
                ..Returned::default()
            };
            returned.arguments.fill_with(word);
            Happening::Call(Box::new(returned))
        }
        FLAG => Happening::Flag(FlagUse {
            access: bits(40..44) as u8,
            flag: bits(44..48) as u8,
            user_stack: halves(word()).0,
            value: word(),
            instruction: word(),
        }),
        PROBE => Happening::Probed(Probed {
            returned: bits(40..44) == PROBE_RETURNED,
            probe: bits(44..60) as u16,
            arguments: std::array::from_fn(|_| word() as i64),
        }),
        MARKER => {
            let mut text = Box::new([0; marker::LONGEST]);
            for bytes in text.chunks_exact_mut(8) {
                bytes.copy_from_slice(&word().to_ne_bytes());
            }
            Happening::Written(text)
        }
        PAGING => match bits(40..44) {
            PAGING_FAULT => Happening::Fault(Fault {
                flags: bits(44..52) as u8,
                address: word(),
                duration: word(),
                user_stack: word() as u32,
            }),
            PAGING_CACHE => {
                let (device, pages) = halves(word());
                Happening::Cache(CacheRow {
                    action: bits(44..48) as u8,
                    device,
                    pages,
                    inode: word(),
                    first: word(),
                })
            }
            PAGING_STALL => Happening::Stall {
                kind: bits(44..48) as u8,
                duration: word(),
                pages: word(),
            },
            _ => return (Record::Unknown, 0),
        },
        _ => {
            place.tid = word() as u32;
            return (Record::Runs, length);
        }
    };
    let event = Event {
        ts,
        tid: runs,
        cpu,
        what,
    };
    (Record::Event(event), length)
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x7_ffff_fff0;

    fn first(kind: u64, has: u64, rest: u64) -> u64 {
        u64::from(AT as u32) | kind << 32 | has << 36 | rest << 40
    }

    fn event(words: &[u64]) -> (Event, usize, Place) {
        let mut place = Place {
            near: AT - 1_000_000,
            tid: 7,
        };
        match read(words, 3, &mut place) {
            (Record::Event(event), length) => (event, length, place),
            other => panic!("{other:?}"),
        }
    }

    /// A switch is read field by field, and who comes is who runs from then on.
    #[test]
    fn a_switch_is_read() {
        let rest = 2 | (202 + 2) << 4 | 120 << 16;
        let words = [first(SWITCH, 0b111, rest), 9 | 11 << 32, 77, 88, 12];
        let (event, length, place) = event(&words);
        assert_eq!(length, 5);
        assert_eq!(place, Place { near: AT, tid: 9 });
        assert_eq!((event.ts, event.tid, event.cpu), (AT, 7, 3));
        let expected = Switch {
            next: 9,
            left: 2,
            next_priority: 120,
            call: 202,
            object: 77,
            arg: 88,
            user_stack: 11,
            kernel_stack: 12,
        };
        assert_eq!(event.what, Happening::Switch(expected));
    }

    /// What a record leaves out is 0, and calls below 0 are none.
    #[test]
    fn what_is_left_out_is_nothing() {
        let (event, length, _) = event(&[first(SWITCH, 0b010, 2 << 4 >> 1), 9, 88]);
        assert_eq!(length, 3);
        let Happening::Switch(switch) = event.what else {
            panic!("{event:?}")
        };
        assert_eq!((switch.object, switch.arg, switch.kernel_stack), (0, 88, 0));
        assert_eq!(switch.call, -1);
    }

    /// Times go on where the lower half of the clock begins anew, and a little back.
    #[test]
    fn times_go_over_the_edge() {
        for (near, low, ts) in [
            (0x1_ffff_fff0, 0x10, 0x2_0000_0010),
            (0x2_0000_0010, 0xffff_fff0, 0x1_ffff_fff0),
        ] {
            let mut place = Place { near, tid: 1 };
            let words = [low | SAMPLE << 32, 5 | 6 << 32];
            let (Record::Event(event), 2) = read(&words, 0, &mut place) else {
                panic!()
            };
            assert_eq!(event.ts, ts);
        }
    }

    /// Short interrupts are one word, long ones two.
    #[test]
    fn interrupts_are_short_or_long() {
        let (short, 1, _) = event(&[first(INTERRUPT, 0, 1 | 3 << 2 | 900 << 8)]) else {
            panic!()
        };
        let (long, 2, _) = event(&[first(INTERRUPT, 1, 2 | 300 << 2), 9_000_000]) else {
            panic!()
        };
        let interrupt = |kind, vector, duration| Happening::Interrupt {
            kind,
            vector,
            duration,
        };
        assert_eq!(short.what, interrupt(1, 3, 900));
        assert_eq!(long.what, interrupt(2, 300, 9_000_000));
    }

    /// A call has three arguments or six; what it returned may be negative.
    #[test]
    fn calls_have_three_arguments_or_six() {
        let failed = (-2i64).cast_unsigned();
        let words = [first(CALL, 0, 257 + 2), 900, failed, 11, 1, 2, 3];
        let (short, 7, _) = event(&words) else {
            panic!()
        };
        let words = [first(CALL, 1, 2), 900, 5, 0, 1, 2, 3, 4, 5, 6];
        let (long, 10, _) = event(&words) else {
            panic!()
        };
        let returned = |number, result, stack, arguments| {
            Happening::Call(Box::new(Returned {
                number,
                duration: 900,
                result,
                stack,
                arguments,
            }))
        };
        assert_eq!(short.what, returned(257, -2, 11, [1, 2, 3, 0, 0, 0]));
        assert_eq!(long.what, returned(0, 5, 0, [1, 2, 3, 4, 5, 6]));
    }

    /// What a probe tells is read field by field.
    #[test]
    fn a_probe_is_read() {
        let first = 7 | PROBE << 32 | 1 << 40 | 0x1234 << 44;
        let mut place = Place { near: 7, tid: 9 };
        let (record, words) = read(&[first, u64::MAX, 2, 3, 4], 1, &mut place);
        let Record::Event(event) = record else {
            panic!("{record:?}");
        };
        let probed = Probed {
            probe: 0x1234,
            returned: true,
            arguments: [-1, 2, 3, 4],
        };
        assert_eq!(
            (event.what, event.tid, words),
            (Happening::Probed(probed), 9, 5)
        );
    }

    /// A text of trace_marker is read whole.
    #[test]
    fn a_text_is_read() {
        let mut words = vec![first(MARKER, 0, 0)];
        words.extend((0..8).map(|at| u64::from_ne_bytes([b'a' + at; 8])));
        let (event, length, _) = event(&words);
        let mut expected = [0; marker::LONGEST];
        for (at, byte) in expected.iter_mut().enumerate() {
            *byte = b'a' + at as u8 / 8;
        }
        assert_eq!(event.what, Happening::Written(Box::new(expected)));
        assert_eq!(length, 9);
    }

    /// The use of a flag is read field by field.
    #[test]
    fn a_use_of_a_flag_is_read() {
        let words = [first(FLAG, 0, 1 | 2 << 4), 5, 0xffff, 0x4010];
        let (event, length, _) = event(&words);
        let expected = FlagUse {
            flag: 2,
            access: 1,
            value: 0xffff,
            instruction: 0x4010,
            user_stack: 5,
        };
        assert_eq!(
            (event.what, event.tid, length),
            (Happening::Flag(expected), 7, 4)
        );
    }

    /// Paging has three kinds of records, all of one length.
    #[test]
    fn paging_is_read() {
        let (fault, 4, _) = event(&[first(PAGING, 0, 5 << 4), 0x7000, 900, 11]) else {
            panic!()
        };
        let expected = Fault {
            flags: 5,
            address: 0x7000,
            duration: 900,
            user_stack: 11,
        };
        assert_eq!(fault.what, Happening::Fault(expected));
        let words = [first(PAGING, 0, 1 | 2 << 4), 9 | 16 << 32, 77, 5];
        let (cache, 4, _) = event(&words) else {
            panic!()
        };
        let expected = CacheRow {
            action: 2,
            device: 9,
            inode: 77,
            first: 5,
            pages: 16,
        };
        assert_eq!(cache.what, Happening::Cache(expected));
        let (stall, 4, _) = event(&[first(PAGING, 0, 2 | 1 << 4), 800, 32, 0]) else {
            panic!()
        };
        let expected = Happening::Stall {
            kind: 1,
            duration: 800,
            pages: 32,
        };
        assert_eq!(stall.what, expected);
        let mut place = Place::default();
        let words = [first(PAGING, 0, 9), 1, 1, 1];
        assert_eq!(read(&words, 0, &mut place).0, Record::Unknown);
    }

    /// What is not whole, not written or unknown is no event, whatever the words.
    #[test]
    fn nothing_is_made_up() {
        let mut place = Place::default();
        assert_eq!(read(&[], 0, &mut place).0, Record::Unwritten);
        assert_eq!(read(&[0, 1], 0, &mut place).0, Record::Unwritten);
        assert_eq!(read(&[END << 32], 0, &mut place).0, Record::End);
        assert_eq!(read(&[13 << 32, 1, 1], 0, &mut place).0, Record::Unknown);
        assert_eq!(
            read(&[first(IO, 0, 0), 1], 0, &mut place).0,
            Record::Unknown
        );
        assert_eq!(
            read(&[first(RUNS, 0, 0), 42], 0, &mut place).0,
            Record::Runs
        );
        assert_eq!(place.tid, 42);
    }
}
