//! The small numbers by which tables refer to each other.
//!
//! They are plain `u32` columns on disk. A value of [`NONE`] stands for "there is none"; stack 0
//! stands for "no stack was taken".

/// Thread id that is unique within a trace, unlike a tid, which the kernel reuses.
pub type Utid = u32;
/// Process id that is unique within a trace, unlike a pid.
pub type Upid = u32;
/// Row key of the `stacks` table; [`NO_STACK`] where no stack was taken.
pub type StackId = u32;
/// Row key of the `frames` table.
pub type FrameId = u32;
/// Row key of the `modules` table.
pub type ModuleId = u32;

/// No such thread, process or module.
pub const NONE: u32 = u32::MAX;
/// The first code of a mark that stands for a name; those below are codes that programs give.
pub const FIRST_MARK_NAME: u32 = 16384;
/// The CPU of a thread that was found off its CPU, and was not seen to leave it.
pub const NO_CPU: u16 = u16::MAX;
/// No stack was taken.
pub const NO_STACK: StackId = 0;
/// The idle thread of every CPU (the kernel's tid 0, "swapper") is one thread in a trace.
pub const IDLE: Utid = 0;
/// The process that all kernel threads belong to.
pub const KERNEL_PROCESS: Upid = 0;
