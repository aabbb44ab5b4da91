//! What is asked about files that others control, and what is answered: by [`answer`](crate::answer),
//! in a process without privileges, or here.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::image::{Image, Segment};
use crate::interpreter::Interpreter;
use crate::name::Names;
use crate::symbol_table::{Sought, Symbol};

/// A question about the files that come with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Which ELF file each is. The first with this build-id counts; empty: the first.
    Describe { build_id: String },
    /// The names of places in the first file; the second is the module itself, if it is there.
    Name(Places),
    /// The unwind rules of the first file with this build-id (empty: the first), and which
    /// interpreter it is.
    Table { build_id: String },
    /// Symbols of the first file.
    Symbols(Sought),
    /// What compilers say of their code in files: a perf map, then jitdumps.
    Compiled {
        /// As the process calls itself.
        pid: u32,
        addresses: Vec<u64>,
    },
}

/// Places to be named.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Places {
    /// The file's, or empty.
    pub build_id: String,
    /// By the count of the file with the names; `None` where it has none.
    pub addresses: Vec<Option<u64>>,
    /// What the module is called, and the places by its own offsets: for those without a name.
    pub module: Option<(String, Vec<u64>)>,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    /// None of the files can answer.
    Nothing,
    /// Which of the files it is, and what it says of itself.
    Image(usize, Image),
    /// For each place.
    Names {
        names: Vec<Names>,
        /// More was said than there is memory for: some names are missing.
        cut: bool,
    },
    Table(TableOf),
    Symbols {
        found: Vec<Symbol>,
        code: Vec<Segment>,
    },
}

/// The unwind rules of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TableOf {
    /// Place and rule, 4 bytes each; `None` if the file has no unwind information that we know.
    pub rows: Option<Bytes>,
    pub interpreter: Option<Interpreter>,
}

/// Many bytes, which go in one piece: an unwind table is sent with every file that is executed, and a
/// stack may wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct InOnePiece;
        impl Visitor<'_> for InOnePiece {
            type Value = Bytes;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(InOnePiece)
    }
}
