//! Names a program's points and regions, for hangdog to record.
//!
//! ```
//! use hangdog_mark::{Code, Colour, begin, end, name, point, region};
//!
//! point(5, &[]); // by code, 0 to 16383, with up to four integers
//! {
//!     let _decoding = region(name!("decode"), &[7, 1500]);
//!     // until here
//! }
//! // Where regions overlap, or end on other threads, they pair by the first argument too.
//! let download = name!("download").by_argument();
//! begin(download, &[1]);
//! std::thread::spawn(move || end(download.coloured(Colour::Green), &[1])).join().unwrap();
//! ```
//!
//! While nobody records, a mark costs a test of one word. While somebody does, it goes to a ring of
//! 4 MiB in memory that the thread shares with the recorder. docs/MARKS.md describes the memory.
//! Linux only; elsewhere this crate does not compile.

#[cfg(feature = "tracing")]
mod layer;
mod memory;

#[cfg(feature = "tracing")]
pub use layer::MarkLayer;

/// What a mark is called, with its colour and how its region pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    pub(crate) number: u32,
    pub(crate) pairing: u8,
    pub(crate) colour: u8,
}

/// The colour of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Colour {
    /// Blue.
    Blue = 1,
    /// Green.
    Green = 2,
    /// Purple.
    Purple = 3,
    /// Orange.
    Orange = 4,
    /// Red.
    Red = 5,
}

impl Code {
    /// A region pairs by its code and its first argument, on whatever threads it begins and ends.
    pub const fn by_argument(self) -> Code {
        Code { pairing: 1, ..self }
    }

    /// A region pairs by its code alone, on whatever threads it begins and ends.
    pub const fn by_code(self) -> Code {
        Code { pairing: 2, ..self }
    }

    /// The same with a colour.
    pub const fn coloured(self, colour: Colour) -> Code {
        Code {
            colour: colour as u8,
            ..self
        }
    }

    /// The code of a name, which is looked up: [`name!`] does so once. Names of more than 60 bytes are
    /// cut; those that there is no room for, after 1023, share one.
    pub fn named(name: &str) -> Code {
        Code::of(memory::name(name))
    }

    #[doc(hidden)]
    pub const fn of(number: u32) -> Code {
        Code {
            number,
            pairing: 0,
            colour: 0,
        }
    }

    #[doc(hidden)]
    pub const fn number(self) -> u32 {
        self.number
    }
}

/// A code from 0 to 16383; what is beyond is cut off.
impl From<u16> for Code {
    fn from(code: u16) -> Code {
        Code::of(u32::from(code) % memory::FIRST_NAME)
    }
}

/// A code as a literal; what is not 0 to 16383 is cut off.
impl From<i32> for Code {
    fn from(code: i32) -> Code {
        Code::of(code as u32 % memory::FIRST_NAME)
    }
}

/// The code of a name, worked out once at each place; the name is to be the same every time.
#[macro_export]
macro_rules! name {
    ($name:expr) => {{
        static NUMBER: ::std::sync::atomic::AtomicU32 = ::std::sync::atomic::AtomicU32::new(0);
        match NUMBER.load(::std::sync::atomic::Ordering::Relaxed) {
            0 => {
                let code = $crate::Code::named($name);
                NUMBER.store(code.number(), ::std::sync::atomic::Ordering::Relaxed);
                code
            }
            number => $crate::Code::of(number),
        }
    }};
}

/// Marks a moment. Of the arguments at most four count.
#[inline]
pub fn point(code: impl Into<Code>, arguments: &[i64]) {
    memory::mark(0, code.into(), arguments);
}

/// Begins a region.
#[inline]
pub fn begin(code: impl Into<Code>, arguments: &[i64]) {
    memory::mark(1, code.into(), arguments);
}

/// Ends a region.
#[inline]
pub fn end(code: impl Into<Code>, arguments: &[i64]) {
    memory::mark(2, code.into(), arguments);
}

/// Begins a region that ends when the value is dropped.
#[inline]
#[must_use = "the region ends when this is dropped"]
pub fn region(code: impl Into<Code>, arguments: &[i64]) -> Region {
    let code = code.into();
    begin(code, arguments);
    Region {
        code,
        first: arguments.first().copied().unwrap_or(0),
    }
}

/// A region that ends when this is dropped.
#[derive(Debug)]
pub struct Region {
    code: Code,
    first: i64,
}

impl Drop for Region {
    fn drop(&mut self) {
        end(self.code, &[self.first]);
    }
}

/// Whether somebody records, so that arguments which cost something need to be worked out.
#[inline]
pub fn is_recorded() -> bool {
    memory::is_recorded()
}

/// The examples of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/MARKS.md")]
struct Document;
