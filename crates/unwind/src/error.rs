//! Why a file gives no table.

/// An error of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file gives no table. None carries the file's name: whoever asked knows it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or read.
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// No ELF file, or its headers cannot be true.
    #[error("is not an ELF file, or is damaged: {0}")]
    NotElf(&'static str),
    /// An ELF file for another machine.
    #[error(
        "is for another machine (ELF class {class}, byte order {order}, machine {machine}); tables \
         are made for x86-64 alone, elsewhere walk by frame pointers"
    )]
    Machine {
        /// 1 for 32 bits, 2 for 64.
        class: u8,
        /// 1 for little-endian, 2 for big-endian.
        order: u8,
        /// `e_machine`; x86-64 is 62.
        machine: u16,
    },
    /// Neither `.eh_frame` nor `.debug_frame` describes any of its code.
    #[error("has no unwind information; walk it by frame pointers")]
    NoInformation,
    /// Larger than what a table can hold, or than what is plausible.
    #[error("{what} is {size}, at most {most} can be handled; walk it by frame pointers")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is, in bytes or pieces.
        size: u64,
        /// The most, in the same unit.
        most: u64,
    },
}
