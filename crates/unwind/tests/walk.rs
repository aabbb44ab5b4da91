//! Walks over stacks of a few words, made by hand.

use std::collections::BTreeMap;

use hangdog_unwind::{End, Kind, Registers, Rule, walk};

const SP: u64 = 0x1000_0000;

fn rule(kind: Kind, cfa: u16, saved: u16) -> Rule {
    Rule::new(kind, cfa, saved).expect("small enough")
}

/// Walks at most `most` frames; says what was asked for, where it went, and how it ended.
fn walked(
    registers: Registers,
    rules: &[(u64, Rule)],
    words: &[(u64, u64)],
    most: usize,
) -> (Vec<u64>, End) {
    let rules: BTreeMap<u64, Rule> = rules.iter().copied().collect();
    let words: BTreeMap<u64, u64> = words.iter().copied().collect();
    let mut addresses = Vec::new();
    let end = walk(
        registers,
        |address| *rules.get(&address).unwrap_or(&Rule::NONE),
        |address| words.get(&address).copied(),
        most,
        &mut addresses,
    );
    (addresses, end)
}

fn at(ip: u64, sp: u64, fp: u64) -> Registers {
    Registers { ip, sp, fp }
}

/// The innermost rule is that at the instruction pointer itself, the others are those one byte
/// before the return address; the frame pointer comes back from where it was saved; 0 ends it.
#[test]
fn through_three_frames() {
    let rules = [
        (0x5000, rule(Kind::Sp, 3, 3)),
        (0x6000 - 1, rule(Kind::Fp, 2, 2)),
        (0x7000 - 1, rule(Kind::Sp, 1, 0)),
    ];
    let fp = SP + 0x100;
    let words = [
        (SP, fp), // CFA is SP + 24: saved three words below
        (SP + 16, 0x6000),
        (fp, 0),
        (fp + 8, 0x7000),
        (fp + 16, 0),
    ];
    let walk = walked(at(0x5000, SP, 7), &rules, &words, 9);
    assert_eq!(walk, (vec![0x5000, 0x6000, 0x7000], End::Root));
}

/// An entry of the linkage table has pushed one word more from its threshold on.
#[test]
fn from_a_linkage_table() {
    let words = [(SP, 0x6000), (SP + 8, 0x7000)];
    let plt = rule(Kind::Plt, 11, 0);
    let caller = |ip| at(ip, SP, 1).caller(plt, |at| words.iter().find(|w| w.0 == at).map(|w| w.1));
    assert_eq!(caller(0x502a), Some(at(0x6000, SP + 8, 1)));
    assert_eq!(caller(0x502b), Some(at(0x7000, SP + 16, 1)));
}

/// A realigned frame keeps the CFA in a slot of its own.
#[test]
fn from_a_realigned_frame() {
    let (fp, cfa) = (SP + 0x40, SP + 0x80);
    let words = [(fp - 24, cfa), (fp, 0x1234), (cfa - 8, 0x6000)];
    let caller = at(0x5000, SP, fp).caller(rule(Kind::Realigned, 3, 0), |at| {
        words.iter().find(|w| w.0 == at).map(|w| w.1)
    });
    assert_eq!(caller, Some(at(0x6000, cfa, 0x1234)));
}

/// A frame whose code aligned the stack has the previous stack pointer on it.
#[test]
fn from_a_frame_that_stores_the_pointer() {
    let before = SP + 0x90;
    let words = [(SP + 16, before), (before, 0x1234), (before + 8, 0x6000)];
    for (rule, fp) in [(Rule::stored(2, 2, 0), 7), (Rule::stored(2, 2, 2), 0x1234)] {
        let rule = rule.expect("small enough");
        let caller =
            at(0x5000, SP, 7).caller(rule, |at| words.iter().find(|w| w.0 == at).map(|w| w.1));
        assert_eq!(caller, Some(at(0x6000, before + 16, fp)));
    }
}

/// A signal's frame gives all three registers back, wherever the interrupted stack is; and the
/// interrupted address is looked up as it is, for it is no return address.
#[test]
fn through_a_signal() {
    let below = SP - 0x8000;
    let rules = [
        (0x5000, rule(Kind::Sp, 1, 0)),
        (0x6000 - 1, rule(Kind::Signal, 2, 0)),
        (0x7000, rule(Kind::Fp, 2, 2)),
    ];
    let context = SP + 8 + 16;
    let words = [
        (SP, 0x6000),
        (context + 120, below + 16),
        (context + 160, below),
        (context + 168, 0x7000),
        (below + 16, 0),
        (below + 24, 0x8000),
    ];
    let walk = walked(at(0x5000, SP, 0), &rules, &words, 9);
    assert_eq!(walk, (vec![0x5000, 0x6000, 0x7000, 0x8000], End::NoRule));
}

/// Each reason to end is reported: an undefined return address, a place that nothing covers, one whose
/// rule says nothing, a word that is not there; a frame pointer of 0, by
/// which the ABI marks the outermost frame.
#[test]
fn ends() {
    let end = |rule| walked(at(0x5000, SP, 0), &[(0x5000, rule)], &[], 9);
    assert_eq!(end(Rule::END), (vec![0x5000], End::Root));
    assert_eq!(end(Rule::NONE), (vec![0x5000], End::NoRule));
    assert_eq!(end(Rule::UNSUPPORTED), (vec![0x5000], End::Unsupported));
    assert_eq!(end(rule(Kind::Sp, 1, 0)), (vec![0x5000], End::Unreadable));
    assert_eq!(
        end(rule(Kind::Fp, 2, 2)),
        (vec![0x5000], End::Root),
        "fp is 0"
    );
}

/// Return addresses in the first page are none; the first after it is one.
#[test]
fn no_code_in_the_first_page() {
    let rules = [(0x5000, rule(Kind::Sp, 1, 0))];
    let to = |ip| walked(at(0x5000, SP, 0), &rules, &[(SP, ip)], 9);
    assert_eq!(to(4095), (vec![0x5000], End::Root));
    assert_eq!(to(4096), (vec![0x5000, 4096], End::NoRule));
}

/// Callers lie above: a CFA at the stack pointer or below it, and one that wraps, end a walk.
#[test]
fn callers_lie_above() {
    let end = |fp, cfa| {
        let rules = [(0x5000, rule(Kind::Fp, cfa, 0))];
        walked(
            at(0x5000, SP, fp),
            &rules,
            &[(SP - 8, 0x5000), (SP, 0x5000)],
            9,
        )
        .1
    };
    assert_eq!(end(SP - 16, 2), End::Unreadable);
    assert_eq!(end(SP - 24, 2), End::Unreadable);
    assert_eq!(end(u64::MAX - 7, 1), End::Unreadable);
    assert_eq!(end(SP - 8, 2), End::NoRule);
}

/// A walk takes what was asked for and says that there was more; if there was not, it says so too.
#[test]
fn depth() {
    let rules = [
        (0x5000, rule(Kind::Sp, 1, 0)),
        (0x4fff, rule(Kind::Sp, 1, 0)),
    ];
    let words: Vec<(u64, u64)> = (0..4)
        .map(|i| (SP + 8 * i, 0x5000))
        .chain([(SP + 32, 0)])
        .collect();
    let walk = |most| {
        let (addresses, end) = walked(at(0x5000, SP, 0), &rules, &words, most);
        (addresses.len(), end)
    };
    assert_eq!(walk(0), (0, End::Depth));
    assert_eq!(walk(4), (4, End::Depth));
    assert_eq!(walk(5), (5, End::Root));
    assert_eq!(walk(9), (5, End::Root));
}

/// The layout that the kernel side reads: kind in bits 0 to 3, CFA in 4 to 19, saved in 20 to 31;
/// eight bytes a row. What this version does not know is unsupported.
#[test]
fn layout() {
    assert_eq!(rule(Kind::Fp, 2, 2).0, 2 | 2 << 4 | 2 << 20);
    assert_eq!(rule(Kind::Sp, 0xffff, 0xfff).0, 0xffff_fff1);
    assert_eq!(Rule::new(Kind::Sp, 1, 0x1000), None);
    assert_eq!(Rule::FRAME_POINTER, rule(Kind::Fp, 2, 2));
    assert_eq!(Rule(8).kind(), Kind::Unsupported);
    assert_eq!(size_of::<hangdog_unwind::Row>(), 8);
}
