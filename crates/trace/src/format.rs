//! The format of traces: its version, and the file by which a trace is known.

/// The format version that this crate writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// The file's name inside a trace.
pub const META_FILE: &str = "meta.json";
