//! Hooks whose events are bounded: transfers through sockets, and handoffs. Recorded are so many a
//! CPU that no hang needs more, unless the user wants all.
//!
//! Where very many more come, even to refuse them costs too much (a hook that does nothing takes some
//! 30 ns of an operation of 400), and the hooks are taken away for a while.

use std::time::{Duration, Instant};

use libbpf_rs::Link;

/// So many a CPU records in 20 ms: 50,000 a second.
const ALLOWED: u64 = 1000;
/// So many refused in a millisecond are too many.
const TOO_MANY: u64 = 200;
/// Two looks are at least so far apart. On a busy machine it may be a second.
const LOOK: Duration = Duration::from_millis(20);
/// How long the hooks are away then.
const REST: Duration = Duration::from_secs(1);

/// Tracepoints that tell of transfers through sockets.
const TRANSFERS: &[&str] = &["sock_send_length", "sock_recv_length"];
/// Tracepoints that tell of handoffs; not those of timers, which also say what a CPU runs.
const HANDOFFS: &[&str] = &[
    "workqueue_queue_work",
    "workqueue_execute_start",
    "workqueue_execute_end",
    "io_uring_submit_req",
    "io_uring_complete",
    "signal_generate",
    "signal_deliver",
    "posix_lock_inode",
    "flock_lock_inode",
];

/// Some hooks, attached or at rest together.
pub(crate) struct BoundedHooks {
    names: &'static [&'static str],
    all: bool,
    links: Vec<Link>,
    rest_until: Option<Instant>,
    /// As the programs have counted them.
    refused: u64,
    looked: Instant,
}

impl BoundedHooks {
    /// Those of transfers, none attached yet; `all` says that every transfer is recorded.
    pub(crate) fn transfers(all: bool) -> BoundedHooks {
        BoundedHooks::new(TRANSFERS, all)
    }

    /// Those of handoffs, none attached yet.
    pub(crate) fn handoffs() -> BoundedHooks {
        BoundedHooks::new(HANDOFFS, false)
    }

    fn new(names: &'static [&'static str], all: bool) -> BoundedHooks {
        BoundedHooks {
            names,
            all,
            links: Vec::new(),
            rest_until: None,
            refused: 0,
            looked: Instant::now(),
        }
    }

    /// Whether the tracepoint is one of them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// How many each CPU may record in 20 ms.
    pub(crate) fn allowed(&self) -> u64 {
        if self.all { u64::MAX } else { ALLOWED }
    }

    pub(crate) fn add(&mut self, link: Link) {
        self.links.push(link);
    }

    /// Looks at how many were refused so far; takes the hooks away if that is too many. Returns
    /// whether hooks that were away should be attached again.
    pub(crate) fn should_return(&mut self, refused: u64) -> bool {
        let new = refused - std::mem::replace(&mut self.refused, refused);
        let since = std::mem::replace(&mut self.looked, Instant::now()).elapsed();
        let too_many = TOO_MANY * since.max(LOOK).as_millis() as u64;
        match self.rest_until {
            None if new > too_many => {
                self.links.clear();
                self.rest_until = Some(Instant::now() + REST);
                false
            }
            Some(end) if Instant::now() >= end => {
                self.rest_until = None;
                true
            }
            _ => false,
        }
    }

    /// Takes them away for good.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
        self.rest_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few refusals change nothing; many in a short time send the hooks away, and not back at once.
    #[test]
    fn hooks_rest_where_they_are_called_too_often() {
        const FEW: u64 = 20 * TOO_MANY;
        const MANY: u64 = 1 << 40;
        let mut hooks = BoundedHooks::transfers(false);
        assert!(!hooks.should_return(FEW) && hooks.rest_until.is_none());
        assert!(!hooks.should_return(MANY) && hooks.rest_until.is_some());
        assert!(!hooks.should_return(MANY));
        hooks.rest_until = Some(Instant::now());
        assert!(hooks.should_return(MANY) && hooks.rest_until.is_none());
    }

    /// Where the last look is long ago, more were refused since without being too many.
    #[test]
    fn a_late_look_is_allowed_for() {
        let mut hooks = BoundedHooks::transfers(false);
        hooks.looked = Instant::now() - Duration::from_secs(1);
        assert!(!hooks.should_return(900 * TOO_MANY) && hooks.rest_until.is_none());
    }
}
