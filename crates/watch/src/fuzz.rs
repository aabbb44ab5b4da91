//! What the fuzzer (fuzz/) calls: the parsers of this crate that have no other entry.

use crate::netlink::{Connection, read_datagram};
use crate::processes::{read_started, read_voluntary_switches};
use crate::relays::read_poll;

/// A datagram of the kernel's answer about unix sockets, to request 7; gives how many it tells of.
pub fn datagram(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut each = |connection: Connection<'_>| {
        crate::windows::is_display(connection.name);
        count += 1;
    };
    // What is wrong with it is an error, and never more.
    let _ = read_datagram(bytes, 7, &mut each);
    count
}

/// A text of /proc that others have a say in.
pub fn proc_text(text: &str) {
    read_voluntary_switches(text);
    read_started(text.as_bytes());
    read_poll(text);
}
