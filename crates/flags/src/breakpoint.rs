//! A breakpoint on an instruction, by the CPU and not by the program's code.
//!
//! It is a perf event that has the kernel send SIGTRAP to the thread which comes there, before the
//! instruction is executed; who traces the thread takes the signal. Debug registers that ptrace sets
//! stay when the tracer is killed, and the signal would end the program then; a perf event is gone
//! with its descriptor.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// `perf_event_attr` up to what breakpoints need (PERF_ATTR_SIZE_VER8 has 136 bytes).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
    bp_len: u64,
    rest: [u64; 8],
}
const _: () = assert!(size_of::<Attributes>() == 136);

/// `PERF_TYPE_BREAKPOINT`.
const BREAKPOINT: u32 = 5;
/// `HW_BREAKPOINT_X`.
const EXECUTED: u32 = 4;
/// inherit, exclude_kernel, exclude_hv, inherit_thread, remove_on_exec, sigtrap.
const FLAGS: u64 = 1 << 1 | 1 << 5 | 1 << 6 | 1 << 35 | 1 << 36 | 1 << 37;

/// Sets it for a thread and the threads that this will make.
///
/// # Errors
/// What the kernel says: no right, no such thread, or no breakpoint left.
pub(crate) fn set(tid: i32, address: u64) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        sample_period: 1,
        flags: FLAGS,
        bp_type: EXECUTED,
        bp_addr: address,
        bp_len: size_of::<u64>() as u64,
        ..Attributes::default()
    };
    const ANY_CPU: i32 = -1;
    const NO_GROUP: i32 = -1;
    const CLOSE_ON_EXEC: u64 = 8;
    // SAFETY: `attributes` is a live perf_event_attr whose `size` field is its true size, and the call
    // keeps no pointer to it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            tid,
            ANY_CPU,
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
