//! What a method may know of the place it measures in.

use std::path::PathBuf;

/// What a method may know of the place it measures in.
#[derive(Debug)]
pub struct Place {
    /// An empty directory on the file system to measure; removed at the end.
    pub(crate) dir: PathBuf,
    /// The CPUs that may be used, ascending; at least one.
    pub(crate) cpus: Vec<usize>,
    /// The CPU to measure on.
    pub(crate) here: usize,
    /// Another core's, if there is one.
    pub(crate) there: Option<usize>,
    /// The largest memory to measure in, bytes.
    pub(crate) largest: usize,
    /// Whether a rough result will do.
    pub(crate) quick: bool,
}
