//! How many transfers through sockets are recorded: so many a CPU that no hang needs more, unless
//! the user wants all.
//!
//! Where very many more come, even to refuse them costs too much (a hook that does nothing takes some
//! 30 ns of an operation of 400), and the hooks are taken away for a while.

use std::time::{Duration, Instant};

use libbpf_rs::Link;

/// So many a CPU records between two looks, which are 20 ms apart: 50,000 a second.
const ALLOWED: u64 = 1000;
/// So many refused between two looks are too many.
const TOO_MANY: u64 = 4000;
/// How long the hooks are away then.
const REST: Duration = Duration::from_secs(1);
const HOOKS: [&str; 2] = ["sock_send_length", "sock_recv_length"];

/// Whether the tracepoint tells of transfers through sockets.
pub(crate) fn is_hook(name: &str) -> bool {
    HOOKS.contains(&name)
}

/// The hooks of transfers, attached or at rest.
pub(crate) struct TransferHooks {
    all: bool,
    links: Vec<Link>,
    rest_until: Option<Instant>,
    /// As the programs have counted them.
    refused: u64,
}

impl TransferHooks {
    /// None attached yet; `all` says that every transfer is recorded.
    pub(crate) fn new(all: bool) -> TransferHooks {
        TransferHooks {
            all,
            links: Vec::new(),
            rest_until: None,
            refused: 0,
        }
    }

    /// How many each CPU may record until the next look.
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
        match self.rest_until {
            None if new > TOO_MANY => {
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

    /// Few refusals change nothing; many in one look send the hooks away, and not back at once.
    #[test]
    fn hooks_rest_where_they_are_called_too_often() {
        let mut hooks = TransferHooks::new(false);
        assert!(!hooks.should_return(TOO_MANY) && hooks.rest_until.is_none());
        assert!(!hooks.should_return(2 * TOO_MANY + 1) && hooks.rest_until.is_some());
        assert!(!hooks.should_return(2 * TOO_MANY + 1));
        hooks.rest_until = Some(Instant::now());
        assert!(hooks.should_return(2 * TOO_MANY + 1) && hooks.rest_until.is_none());
    }
}
