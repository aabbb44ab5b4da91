//! Who used a System V semaphore or message queue last: what is waited for there is most likely owed
//! by that process.

use std::mem::MaybeUninit;

use crate::procfs;

/// Whether a system call waits for one.
pub(crate) fn is_wait(call: i64) -> bool {
    matches!(
        call,
        libc::SYS_msgrcv | libc::SYS_msgsnd | libc::SYS_semop | libc::SYS_semtimedop
    )
}

/// The process that used last what a thread waits for in `call`; 0 where that is not known, as of
/// another IPC namespace.
pub(crate) fn last_user(tid: u32, call: i64) -> u32 {
    if !is_wait(call) {
        return 0;
    }
    let Some(id) = first_argument(tid) else {
        return 0;
    };
    let pid = match call {
        // Of several semaphores: the first.
        // SAFETY: GETPID takes no fourth argument and touches no memory of ours.
        libc::SYS_semop | libc::SYS_semtimedop => unsafe { libc::semctl(id, 0, libc::GETPID) },
        _ => {
            let mut queue = MaybeUninit::<libc::msqid_ds>::zeroed();
            // SAFETY: the kernel fills the struct that is there for it; zeroed it is valid too.
            let queue = unsafe {
                if libc::msgctl(id, libc::IPC_STAT, queue.as_mut_ptr()) != 0 {
                    return 0;
                }
                queue.assume_init()
            };
            match call {
                libc::SYS_msgrcv => queue.msg_lspid,
                _ => queue.msg_lrpid,
            }
        }
    };
    u32::try_from(pid).unwrap_or(0)
}

/// The first argument of the system call that a thread is in.
fn first_argument(tid: u32) -> Option<i32> {
    i32::try_from(*procfs::system_call(tid)?.get(1)?).ok()
}
