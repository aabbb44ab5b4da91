//! What helpers give up: all that they do not need, before they read the first byte.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Signal, Uid, chroot, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_name, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::copy::root_is_descriptors;

/// Who nobody is: the kernel's own number for whom it does not know.
const NOBODY: u32 = 65534;
/// Memory of a parser: what names are made of is copied, at most 1 GiB, mapped, and taken apart.
const MEMORY: u64 = 4 << 30;
/// Files that one question may have open, with room for what it makes itself.
const FILES: u64 = 128;
/// By which an opener opens whatever a process has mapped, and its memory.
const OPENERS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE);
/// By which a parser gives up what it has; it has none of them itself.
const MAKERS: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SYS_CHROOT);

/// Keeps of the capabilities these, and none for what is executed.
fn keep(kept: CapabilitySet) -> io::Result<()> {
    let held = capabilities(None)?.permitted;
    let kept = held.intersection(kept);
    set_no_new_privs(true)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// The process that forks the others.
pub(super) fn nursery() -> io::Result<()> {
    // Nobody waits for those that end.
    // SAFETY: a plain number; no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limit(Resource::Core, 0)?;
    // It was executed by a link. By this name diagnosis knows it, and what it forks, for the recorder.
    set_name(c"hangdog")?;
    keep(OPENERS.union(MAKERS))
}

/// The process that opens files. It reads names of files and four bytes of each.
pub(super) fn opener() -> io::Result<()> {
    keep(OPENERS)?;
    allow_only(&[COMMON, OPENING].concat())
}

/// The process that takes files apart.
pub(super) fn parser() -> io::Result<()> {
    limit(Resource::As, MEMORY)?;
    limit(Resource::Nofile, FILES)?;
    let held = capabilities(None)?.permitted;
    if held.contains(MAKERS) {
        // Its file system is its own descriptors: it can open nothing but what it was given.
        chroot("/proc/self/fd")?;
        std::env::set_current_dir("/")?;
        root_is_descriptors();
        set_thread_groups(&[])?;
        let (nobody, no_group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        set_thread_res_gid(no_group, no_group, no_group)?;
        set_thread_res_uid(nobody, nobody, nobody)?;
        // Another user's process is tied to its parent anew.
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    keep(CapabilitySet::empty())?;
    allow_only(&[COMMON, PARSING].concat())
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    Ok(setrlimit(resource, limit)?)
}

/// What every program needs: memory, its messages, its end.
const COMMON: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_write,
    libc::SYS_writev,
];
const OPENING: &[c_long] = &[libc::SYS_openat2];
/// Copies of files are made in memory; a path to one is looked at.
const PARSING: &[c_long] = &[
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_memfd_create,
    libc::SYS_pwrite64,
    libc::SYS_readlinkat,
    libc::SYS_sched_getaffinity,
];

/// Of all system calls these; each other fails as one that is not permitted.
fn allow_only(calls: &[c_long]) -> io::Result<()> {
    let rules: BTreeMap<i64, _> = calls.iter().map(|&call| (call, Vec::new())).collect();
    let filter = std::env::consts::ARCH.try_into().and_then(|machine| {
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        SeccompFilter::new(rules, refused, SeccompAction::Allow, machine)
    });
    let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    apply_filter(&program.map_err(io::Error::other)?).map_err(io::Error::other)
}
