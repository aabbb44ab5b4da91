//! How much memory a table may take: a few bytes of a hostile file can claim any amount.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Memory that any table may take, bytes,
const BASE: u64 = 64 << 20;
/// and for each byte of its files. Switches to and fro between two threads take 26, marks in a tight
/// loop up to some 70.
const PER_BYTE: u64 = 128;

/// What is left of a table's memory.
pub struct Budget(AtomicU64);

impl Budget {
    /// For a table whose files have so many bytes.
    pub(crate) fn new(bytes: u64) -> Budget {
        Budget(AtomicU64::new(
            BASE.saturating_add(bytes.saturating_mul(PER_BYTE)),
        ))
    }

    /// Takes some of it.
    ///
    /// # Errors
    /// If there is not that much left.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), String> {
        let take = |left: u64| left.checked_sub(bytes as u64);
        match self.0.fetch_update(Relaxed, Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("it unpacks to more than {PER_BYTE} times its size")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was taken is not there again; more than is left is refused and takes nothing.
    #[test]
    fn is_used_up() {
        let budget = Budget::new(1);
        let all = (BASE + PER_BYTE) as usize;
        budget.take(all - 1).unwrap();
        budget.take(2).unwrap_err();
        budget.take(1).unwrap();
        budget.take(1).unwrap_err();
    }
}
