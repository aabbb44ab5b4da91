//! Texts as CPython keeps them: all characters of one size, the smallest that holds them.

/// `bpf/records.h` has these.
const KIND_SHIFT: u32 = 2;
/// Stands in front of a text of which only the end was sent.
const CUT: char = '…';

/// The text of `length` characters whose last ones are in `bytes`; empty if it could not be read.
pub(super) fn decode(length: u32, state: u32, bytes: &[u8]) -> String {
    // Bytes of a character: 1, 2 or 4, and 0 for no text.
    let size = (state >> KIND_SHIFT & 7) as usize;
    if !matches!(size, 1 | 2 | 4) {
        return String::new();
    }
    let whole = (length as usize).saturating_mul(size);
    let there = &bytes[..whole.min(bytes.len())];
    let characters = there.chunks_exact(size).map(|character| {
        let code = character
            .iter()
            .rev()
            .fold(0u32, |code, &byte| code << 8 | u32::from(byte));
        // Half a surrogate pair stands for a byte of a path that is no UTF-8.
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let cut = (whole > there.len()).then_some(CUT);
    cut.into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn kind(size: u32) -> u32 {
        size << KIND_SHIFT
    }

    /// Characters of one, two and four bytes; a byte above 127 is that character of Latin 1.
    #[test]
    fn every_size_is_read() {
        assert_eq!(decode(2, kind(1), b"a\xe9zz"), "aé");
        assert_eq!(decode(2, kind(2), &[0x61, 0, 0xac, 0x20, 9, 9]), "a€");
        assert_eq!(decode(1, kind(4), &[0x40, 0xf6, 0x01, 0, 9]), "🙀");
    }

    /// What was cut at the front says so; no size, or a wrong one, is no text; half a surrogate pair
    /// is no character.
    #[test]
    fn what_is_not_whole_is_said() {
        assert_eq!(decode(9, kind(1), b"end"), "…end");
        assert_eq!(decode(u32::MAX, kind(4), &[0x61, 0, 0, 0]), "…a");
        assert_eq!(decode(3, 0, b"abc"), "");
        assert_eq!(decode(3, kind(3), b"abc"), "");
        assert_eq!(decode(1, kind(2), &[0x80, 0xdc]), "\u{fffd}");
        assert_eq!(decode(0, kind(1), b"abc"), "");
    }
}
