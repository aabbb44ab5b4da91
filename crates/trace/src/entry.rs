//! What is known of one file of a trace: its rows, its bytes and a checksum.

use std::path::Path;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::error::{Error, Result};

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Rows in it.
    pub(crate) rows: u64,
    /// Size of its file.
    pub(crate) bytes: u64,
    /// XXH3 of its file's bytes, 64 bits.
    #[serde(with = "hex")]
    pub(crate) xxh3: u64,
}

/// The checksum that traces use.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// 64 bits as text: JSON's numbers hold 53 of them.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{value:016x}"))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

impl Entry {
    /// The entry of a part that was encoded.
    pub(crate) fn of(bytes: &[u8], rows: usize) -> Entry {
        Entry {
            rows: rows as u64,
            bytes: bytes.len() as u64,
            xxh3: checksum(bytes),
        }
    }

    /// Whether this is the part that was written.
    pub(crate) fn check(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let as_recorded = self.bytes == bytes.len() as u64 && self.xxh3 == checksum(bytes);
        match as_recorded {
            true => Ok(()),
            false => Err(changed(path)),
        }
    }
}

fn changed(path: &Path) -> Error {
    Error::damaged(path, "it is not as it was recorded")
}
