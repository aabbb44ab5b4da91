//! What a recorder gives up once its programs are attached, and what it needs to begin.
//!
//! Capabilities belong to threads, so that this happens before any other thread starts. What the
//! recorder starts later has no more than it has itself (no_new_privs). The command that is recorded
//! has been made before, and keeps all that its user has. docs/SECURITY.md says what each is for.

use std::fs;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

use crate::error::{Error, Result};

/// To look into processes: what they have mapped, and Python's functions in stacks; and to open the
/// memory in which they mark (/proc/PID/map_files).
const LOOK: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::CHECKPOINT_RESTORE);
/// To read the addresses of the kernel's functions (/proc/kallsyms) at the end.
const KERNEL_NAMES: CapabilitySet = CapabilitySet::SYSLOG;
/// To write a trace into a user's folder, and to give it to that user.
const WRITE: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER);
/// To hurry where the machine is busy.
const HURRY: CapabilitySet = CapabilitySet::SYS_NICE;
/// To end a command that has changed its user.
const END_COMMAND: CapabilitySet = CapabilitySet::KILL;

/// Who gives privileges up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorder {
    /// One with an end.
    Record {
        /// Whether it has started a command.
        command: bool,
    },
    /// One that is always on.
    Flight,
}

/// Gives all capabilities up but those that this recorder needs after its programs are attached.
///
/// # Errors
/// If the kernel does not let go of them, which it always does.
pub(crate) fn give_up(recorder: Recorder) -> Result<()> {
    let kept = LOOK | KERNEL_NAMES | WRITE;
    let kept = match recorder {
        Recorder::Record { command: true } => kept | HURRY | END_COMMAND,
        Recorder::Record { command: false } => kept | HURRY,
        Recorder::Flight => kept,
    };
    let failed = |why: rustix::io::Errno| Error::system("give capabilities up", why.into());
    let kept = capabilities(None).map_err(failed)?.permitted & kept;
    set_no_new_privs(true).map_err(failed)?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(failed)
}

/// The number of the first pid namespace, which the kernel gives it for good (PROC_PID_INIT_INO).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Whether this process and /proc count processes as the kernel does: in the first pid namespace.
/// What BPF programs tell has the kernel's numbers.
pub(crate) fn counts_as_the_kernel() -> bool {
    let link = |path: &str| fs::read_link(path).ok();
    let namespace = link("/proc/self/ns/pid");
    // Of another namespace's /proc the numbers are not ours.
    let own = link("/proc/self").and_then(|own| own.to_str()?.parse().ok());
    namespace.is_some_and(|namespace| namespace.as_os_str() == FIRST_NAMESPACE)
        && own == Some(std::process::id())
}

/// An error unless numbers of processes can be relied on.
pub(crate) fn check_namespace() -> Result<()> {
    match counts_as_the_kernel() {
        true => Ok(()),
        false => Err(Error::PidNamespace),
    }
}
