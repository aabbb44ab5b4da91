//! Foreign decoders run on files that may be hostile.
//!
//! The Parquet library is large, and a corrupt file can run it into one of its internal
//! assertions (the property tests do, in its footer and in its dictionaries). Its panics are
//! caught here, where they say which file is damaged, and kept from printing their own message.
//! Nothing survives such a panic but values decoded so far, which are dropped; so it is safe to go
//! on as after an error. This needs the default `panic = "unwind"`.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use crate::error::{Error, Result};

thread_local! {
    /// Whether this thread is inside a foreign decoder.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder on a file's bytes and turns whatever goes wrong into an error that names it.
pub(crate) fn guarded<T, E: ToString>(
    path: &Path,
    decode: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODING.get() {
                report(info);
            }
        }));
    });
    let outer = DECODING.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(outer);
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(Error::damaged(path, e)),
        Err(_) => Err(Error::damaged(path, "it cannot be decoded")),
    }
}
