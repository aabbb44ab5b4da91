//! What the call frame information of one section says, as rows.
//!
//! A section is a list of entries. A CIE holds what many functions have in common; an FDE belongs
//! to one function and names its CIE, which comes before it. The first pass finds where each FDE's
//! code lies; the second, in the order of the code, runs what each says. So the rows come out
//! sorted, and little else is kept meanwhile.
//!
//! Linkers and unwinders look an address up among the starts of the FDEs. Where FDEs overlap, it
//! is the same here: an FDE ends where the next begins, and of two with one start the first in the
//! section holds.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CfaRule, CommonInformationEntry, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Reader, Register, RegisterRule, UnwindContext, UnwindContextStorage,
    UnwindExpression, UnwindOffset, UnwindSection, UnwindTableRow, X86_64,
};

use crate::rule::{Kind, Row, Rule};
use crate::walk::{CONTEXT_FP, CONTEXT_IP, CONTEXT_SP};

type Bytes<'data> = EndianSlice<'data, LittleEndian>;
type Cie<'data> = CommonInformationEntry<Bytes<'data>>;
type Fde<'data> = FrameDescriptionEntry<Bytes<'data>>;

/// Each FDE runs its CIE's program, so a long one would cost its length times their number. Real
/// ones have some 24 bytes.
const LONGEST_CIE: usize = 256;
/// A linker leaves a handful; each is kept while the section is read.
const MOST_CIES: usize = 1 << 16;

/// What a row is made in, and those that are remembered meanwhile. Sized for x86-64, and small, for
/// a hostile program can have it copied at every byte; an FDE that needs more counts as damaged.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = Box<[UnwindTableRow<usize, Self>; 8]>;
}

/// The rows of a section, sorted, and how many FDEs had to be left out. There is at most one row for
/// two bytes of the section: one advances, one changes the rule.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    pub(crate) skipped: u64,
}

/// Where an FDE is, and where its code.
pub(crate) struct Place {
    pub(crate) start: u32,
    pub(crate) end: u32,
    entry: usize,
}

/// A section that can be read.
pub(crate) struct Cfi<'a, 'data, S> {
    pub(crate) section: S,
    pub(crate) bytes: &'data [u8],
    pub(crate) bases: &'a BaseAddresses,
    /// Whether an entry without a length ends the section, as in `.eh_frame`.
    pub(crate) terminated: bool,
}

impl<'data, S: UnwindSection<Bytes<'data>>> Cfi<'_, 'data, S> {
    /// Reads all of it; `code` maps an address to the offset of the code there, and to how many
    /// bytes of code follow.
    pub(crate) fn rows(&self, code: impl Fn(u64) -> Option<(u32, u32)>) -> Rows {
        let mut rows = Rows::default();
        let mut cies = HashMap::new();
        let places = self.places(&mut cies, &mut rows.skipped, code);

        let mut context = UnwindContext::new_in();
        for (i, place) in places.iter().enumerate() {
            let next = places.get(i + 1).map_or(u32::MAX, |next| next.start);
            let before = rows.rows.len();
            if self.fde(&cies, place, &mut context, &mut rows).is_err() {
                rows.rows.truncate(before);
                rows.push(place.start, Rule::NONE);
                rows.skipped += 1;
            }
            if place.end < next {
                rows.push(place.end, Rule::NONE);
            }
        }
        rows
    }

    /// Where the code of each FDE is, sorted; no two overlap. `code` is as for `rows`.
    pub(crate) fn functions(&self, code: impl Fn(u64) -> Option<(u32, u32)>) -> Vec<Place> {
        self.places(&mut HashMap::new(), &mut 0, code)
    }

    fn places(
        &self,
        cies: &mut HashMap<usize, Cie<'data>>,
        skipped: &mut u64,
        code: impl Fn(u64) -> Option<(u32, u32)>,
    ) -> Vec<Place> {
        let mut places = self.unsorted_places(cies, skipped, code);
        places.sort_unstable_by_key(|place| (place.start, place.entry));
        let all = places.len();
        places.dedup_by_key(|place| place.start);
        *skipped += (all - places.len()) as u64;
        let mut next = u32::MAX;
        for place in places.iter_mut().rev() {
            place.end = place.end.min(next);
            next = place.start;
        }
        places
    }

    fn unsorted_places(
        &self,
        cies: &mut HashMap<usize, Cie<'data>>,
        skipped: &mut u64,
        code: impl Fn(u64) -> Option<(u32, u32)>,
    ) -> Vec<Place> {
        let mut places = Vec::new();
        let mut rest = Bytes::new(self.bytes, LittleEndian);
        while !rest.is_empty() {
            let entry = self.bytes.len() - rest.len();
            let next = rest
                .read_initial_length()
                .and_then(|(length, _)| rest.skip(length).map(|()| length));
            match next {
                Ok(0) if self.terminated => break,
                Ok(0) => continue,
                Ok(_) => {}
                Err(_) => {
                    *skipped += 1;
                    break;
                }
            }
            match self
                .section
                .partial_fde_from_offset(self.bases, entry.into())
            {
                Ok(fde) => {
                    let place = fde
                        .parse(|_, _, offset| known(cies, UnwindOffset::into(offset)))
                        .ok()
                        .and_then(|fde| place(&fde, &code));
                    match place {
                        Some(place) => places.push(place),
                        None => *skipped += 1,
                    }
                }
                Err(gimli::Error::NotCiePointer(_)) => {
                    if let Ok(cie) = self.section.cie_from_offset(self.bases, entry.into())
                        && cie.entry_len() <= LONGEST_CIE
                        && cies.len() < MOST_CIES
                        && cie.return_address_register() == X86_64::RA
                        && cie.address_size() == 8
                    {
                        cies.insert(entry, cie);
                    }
                }
                Err(_) => *skipped += 1,
            }
        }
        places
    }

    /// Adds what the FDE at `place` says.
    fn fde(
        &self,
        cies: &HashMap<usize, Cie<'data>>,
        place: &Place,
        context: &mut UnwindContext<usize, Storage>,
        rows: &mut Rows,
    ) -> gimli::Result<()> {
        let fde =
            self.section
                .fde_from_offset(self.bases, place.entry.into(), |_, _, offset| {
                    known(cies, UnwindOffset::into(offset))
                })?;
        let signal = fde.is_signal_trampoline();
        let first = fde.initial_address();
        let mut last = 0;
        let mut table = fde.rows(&self.section, self.bases, context)?;
        while let Some(row) = table.next_row()? {
            let distance = row.start_address().wrapping_sub(first);
            if distance < last {
                return Err(gimli::Error::InvalidCfiSetLoc(row.start_address()));
            }
            last = distance;
            if distance >= u64::from(place.end - place.start) {
                break;
            }
            let pc = place.start + distance as u32;
            rows.push(pc, self.rule(row, signal));
        }
        Ok(())
    }

    /// The rule of a row, or [`Rule::UNSUPPORTED`].
    fn rule(&self, row: &UnwindTableRow<usize, Storage>, signal: bool) -> Rule {
        let mut fp = &RegisterRule::SameValue;
        let mut ip = None;
        for (register, rule) in row.registers() {
            match *register {
                X86_64::RBP => fp = rule,
                X86_64::RA => ip = Some(rule),
                _ => {}
            }
        }
        let rule = match ip {
            Some(RegisterRule::Undefined) => Some(Rule::END),
            Some(RegisterRule::Offset(-8)) if !signal => self.frame(row.cfa(), fp),
            Some(RegisterRule::Expression(ip)) if signal => self.signal_frame(row.cfa(), fp, ip),
            _ => None,
        };
        rule.unwrap_or(Rule::UNSUPPORTED)
    }

    fn frame(&self, cfa: &CfaRule<usize>, fp: &RegisterRule<usize>) -> Option<Rule> {
        match cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                let kind = match *register {
                    X86_64::RSP => Kind::Sp,
                    X86_64::RBP => Kind::Fp,
                    _ => return None,
                };
                Rule::new(kind, words(*offset)?, saved(fp)?)
            }
            CfaRule::Expression(cfa) => {
                let expression = self.expression(cfa)?;
                if let Some(threshold) = plt(expression) {
                    return Rule::new(Kind::Plt, threshold, saved(fp)?);
                }
                if let Some((at, above)) = stored(expression) {
                    return Rule::stored(at, above, saved(fp)?);
                }
                let RegisterRule::Expression(fp) = fp else {
                    return None;
                };
                let cfa = dereferenced(expression, X86_64::RBP)?;
                let fp = offset(self.expression(fp)?, X86_64::RBP)?;
                (fp == 0).then_some(())?;
                Rule::new(Kind::Realigned, words(cfa.checked_neg()?)?, 0)
            }
        }
    }

    /// The rule where a signal handler returns to, if all is where the kernel's `ucontext` has it.
    fn signal_frame(
        &self,
        cfa: &CfaRule<usize>,
        fp: &RegisterRule<usize>,
        ip: &UnwindExpression<usize>,
    ) -> Option<Rule> {
        let (CfaRule::Expression(sp), RegisterRule::Expression(fp)) = (cfa, fp) else {
            return None;
        };
        let context = |offset: i64, at: u64| offset.checked_sub(at as i64);
        let sp = context(dereferenced(self.expression(sp)?, X86_64::RSP)?, CONTEXT_SP)?;
        let fp = context(offset(self.expression(fp)?, X86_64::RSP)?, CONTEXT_FP)?;
        let ip = context(offset(self.expression(ip)?, X86_64::RSP)?, CONTEXT_IP)?;
        (sp == fp && sp == ip).then_some(())?;
        Rule::new(Kind::Signal, words(sp)?, 0)
    }

    fn expression(&self, expression: &UnwindExpression<usize>) -> Option<Bytes<'data>> {
        Some(expression.get(&self.section).ok()?.0)
    }
}

fn known<'data>(cies: &HashMap<usize, Cie<'data>>, offset: usize) -> gimli::Result<Cie<'data>> {
    cies.get(&offset)
        .cloned()
        .ok_or(gimli::Error::NotCieId(offset as u64))
}

/// Where the code of an FDE is, if it has any in the file.
fn place(fde: &Fde<'_>, code: impl Fn(u64) -> Option<(u32, u32)>) -> Option<Place> {
    let (start, most) = code(fde.initial_address())?;
    let length = u32::try_from(fde.len()).unwrap_or(u32::MAX).min(most);
    (length > 0).then_some(Place {
        start,
        end: start + length,
        entry: fde.offset(),
    })
}

/// An offset in words, if it is such and not below 0.
fn words(offset: i64) -> Option<u16> {
    (offset % 8 == 0)
        .then(|| u16::try_from(offset / 8).ok())
        .flatten()
}

/// How many words below the CFA the frame pointer is saved; 0 if it still is the caller's.
fn saved(fp: &RegisterRule<usize>) -> Option<u16> {
    match *fp {
        // A frame pointer that is lost is of no use to callers either: they do not use it.
        RegisterRule::SameValue | RegisterRule::Undefined => Some(0),
        RegisterRule::Offset(offset) => words(offset.checked_neg()?).filter(|words| *words > 0),
        _ => None,
    }
}

/// The offset of an expression that says `register + offset`.
fn offset(expression: Bytes<'_>, register: Register) -> Option<i64> {
    let (offset, rest) = based(expression, register)?;
    rest.is_empty().then_some(offset)
}

/// The offset of an expression that says `*(register + offset)`.
fn dereferenced(expression: Bytes<'_>, register: Register) -> Option<i64> {
    let (offset, rest) = based(expression, register)?;
    (rest.slice() == [gimli::DW_OP_deref.0]).then_some(offset)
}

/// Of an expression that says `*(rsp + offset) + addend` the two, in words.
fn stored(expression: Bytes<'_>) -> Option<(i64, u16)> {
    let (offset, mut rest) = based(expression, X86_64::RSP)?;
    let operations = [gimli::DW_OP_deref.0, gimli::DW_OP_plus_uconst.0];
    for operation in operations {
        (rest.read_u8().ok()? == operation).then_some(())?;
    }
    let addend = rest.read_uleb128().ok()?;
    let is_whole = rest.is_empty() && offset % 8 == 0;
    is_whole.then(|| Some((offset / 8, words(i64::try_from(addend).ok()?)?)))?
}

/// The offset of an expression that begins with `register + offset`, and what follows.
fn based(mut expression: Bytes<'_>, register: Register) -> Option<(i64, Bytes<'_>)> {
    let operation = u16::from(expression.read_u8().ok()?);
    if operation != u16::from(gimli::DW_OP_breg0.0) + register.0 {
        return None;
    }
    Some((expression.read_sleb128().ok()?, expression))
}

/// The threshold in the expression that linkers write for procedure linkage tables:
/// `rsp + 8 + ((rip & 15) >= threshold) << 3`.
fn plt(expression: Bytes<'_>) -> Option<u16> {
    use gimli::*;
    let [before @ .., threshold, ge, shift, shl, plus] = expression.slice() else {
        return None;
    };
    let expected = *before
        == [
            DW_OP_breg7.0,
            8,
            DW_OP_breg16.0,
            0,
            DW_OP_lit15.0,
            DW_OP_and.0,
        ]
        && [*ge, *shift, *shl, *plus] == [DW_OP_ge.0, DW_OP_lit3.0, DW_OP_shl.0, DW_OP_plus.0]
        && (DW_OP_lit0.0..=DW_OP_lit15.0).contains(threshold);
    expected.then(|| u16::from(threshold - DW_OP_lit0.0))
}

impl Rows {
    /// From `pc` on, `rule`; `pc` is at least that of the last row.
    fn push(&mut self, pc: u32, rule: Rule) {
        self.rows.pop_if(|last| last.pc == pc);
        let before = self.rows.last().map_or(Rule::NONE, |last| last.rule);
        if rule != before {
            self.rows.push(Row { pc, rule });
        }
    }
}
