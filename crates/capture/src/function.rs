//! Functions that an interpreter or a virtual machine runs, in the place of its own ones in stacks:
//! Python's, Ruby's, PHP's, Perl's, Java's and JavaScript's.
//!
//! In a stack as the kernel side sends it, such a function is a word that is no address. A function of
//! an interpreted language is a number, which the kernel side tells once, by a definition of its own
//! (`bpf/chain.h`). One of a virtual machine is the address of its description, which
//! [`machine`](crate::machine) turns into such a number. A function becomes a frame of its source file,
//! and is named at once.

/// What begins the words that stand for functions with a number: no address does.
pub(crate) const NUMBERED: u64 = 1 << 62;

/// The number of the function that a word of a stack stands for; 0 for one that could not be told,
/// `None` if it is an address.
pub(crate) fn number_of(word: u64) -> Option<u32> {
    (word >> 62 == NUMBERED >> 62).then_some(word as u32)
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// As its language writes it: `Worker.serve`, `main.<locals>.<genexpr>`, `shop.Parcels.weigh`.
    pub name: String,
    /// The source file as the interpreter was told it.
    pub file: String,
    /// Where its definition begins; 0 where that is not known.
    pub line: u32,
}

impl Function {
    /// What tells it apart in its file: the line, and a hash of the name (FNV-1a) above.
    pub(crate) fn offset(&self) -> u64 {
        let hash = self.name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        u64::from(hash) << 32 | u64::from(self.line)
    }

    /// Where it is defined, as traces have it: `file:line`.
    pub(crate) fn source(&self) -> String {
        match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }
}

/// What a name's state says in other languages than Python (`bpf/records.h`).
pub(crate) const SCOPE_IS_OBJECT: u32 = 1;

/// A function as the kernel side tells it: the end of each text, as far as it had room.
pub(crate) struct Told<'a> {
    pub line: u32,
    pub name: &'a [u8],
    pub name_length: u32,
    pub name_state: u32,
    pub file: &'a [u8],
    pub file_length: u32,
    pub file_state: u32,
    pub scope: &'a [u8],
    pub scope_length: u32,
}

/// The text of `length` bytes in `bytes`.
pub(crate) fn text(bytes: &[u8], length: u32) -> String {
    let length = (length as usize).min(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions on one line of a file are two; the line is in the lower half, FNV-1a of the
    /// name in the upper ("a": 0xe40c292c, by its authors' table).
    #[test]
    fn an_offset_tells_functions_apart() {
        let function = |name: &str| Function {
            name: name.into(),
            file: String::new(),
            line: 7,
        };
        assert_eq!(function("a").offset(), 0xe40c_292c_0000_0007);
        assert_ne!(function("a").offset(), function("b").offset());
    }

    /// Addresses of either half are no functions, the numbers behind the mark are.
    #[test]
    fn words_are_told_from_addresses() {
        for address in [0, 0x7fff_ffff_ffff, 0xffff_ffff_ff60_0000] {
            assert_eq!(number_of(address), None);
        }
        assert_eq!(number_of(NUMBERED | 5), Some(5));
        assert_eq!(number_of(NUMBERED), Some(0));
    }
}
