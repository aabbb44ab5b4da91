//! Which process code ran in.

/// A process that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The kernel's process id.
    pub pid: u32,
    /// When it began, ns since 1970; `None` if it was there before the recording.
    pub started_unix_ns: Option<u64>,
}
