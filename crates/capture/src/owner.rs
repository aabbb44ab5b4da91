//! A trace belongs to whoever asked for it, also where sudo made the recording.
//!
//! It is written by root and given by its descriptors when it is complete. `folder.rs` of
//! `hangdog-trace` explains how, and why a folder that the user owns is a safe place for it.

use hangdog_trace::Owner;

/// The user who called sudo; none if nobody did.
pub(crate) fn asked_by() -> Option<Owner> {
    // SAFETY: geteuid has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let id = |name| std::env::var(name).ok()?.parse().ok();
    // Whoever is not root has no files to give, and inherited the variables from somebody else.
    let (true, Some(user), Some(group)) = (is_root, id("SUDO_UID"), id("SUDO_GID")) else {
        return None;
    };
    Some(Owner { user, group })
}
