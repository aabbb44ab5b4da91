//! Which two sockets are the ends of one connection.
//!
//! Of a unix socket the kernel knows the other end. Of an internet connection each end has both
//! addresses: where one's local is the other's remote and the reverse, they belong together, also
//! across network namespaces of one machine, unless addresses are translated on the way.

use std::collections::HashMap;

use crate::ids::Upid;
use crate::object::{Object, ObjectKind};
use crate::tables::Sockets;

/// The sockets of a trace, by object.
#[derive(Clone, Debug, Default)]
pub struct SocketTable {
    sockets: Sockets,
    /// The row that says most; the last of several.
    rows: HashMap<u64, usize>,
    /// The other end.
    peers: HashMap<u64, u64>,
}

impl SocketTable {
    /// Finds the ends that belong together.
    pub fn new(sockets: Sockets) -> SocketTable {
        let rows: HashMap<u64, usize> =
            (0..sockets.len()).map(|i| (sockets.object[i], i)).collect();
        let mut peers = HashMap::new();
        let mut ends: HashMap<(&str, &str), Vec<u64>> = HashMap::new();
        for (&object, &row) in &rows {
            if sockets.peer[row] != 0 {
                peers.insert(object, sockets.peer[row]);
                peers.entry(sockets.peer[row]).or_insert(object);
            }
            let (local, remote) = (&sockets.local[row], &sockets.remote[row]);
            let is_inet = Object(object).kind() == ObjectKind::Inet;
            if is_inet && !local.is_empty() && !remote.is_empty() {
                ends.entry((local, remote)).or_default().push(object);
            }
        }
        for (&(local, remote), objects) in &ends {
            // Two namespaces may have the same addresses: then nothing is certain.
            if let ([object], Some([peer])) =
                (&objects[..], ends.get(&(remote, local)).map(|v| &v[..]))
            {
                peers.insert(*object, *peer);
            }
        }
        SocketTable {
            sockets,
            rows,
            peers,
        }
    }

    /// The other end of a socket, if it was seen.
    pub fn peer(&self, object: Object) -> Option<Object> {
        self.peers.get(&object.0).copied().map(Object)
    }

    /// The process at the other end: that made it, of a unix socket, or that was seen using it.
    /// A process that listened and handed the connection to another is named all the same.
    pub fn peer_process(&self, object: Object) -> Option<Upid> {
        let known = self
            .rows
            .get(&object.0)
            .map(|&row| self.sockets.peer_process[row]);
        known
            .filter(|&process| process != crate::ids::NONE)
            .or_else(|| {
                let row = self.rows.get(&self.peer(object)?.0)?;
                Some(self.sockets.process[*row])
            })
    }

    /// The addresses of this and of the other end; empty texts where there are none.
    pub fn addresses(&self, object: Object) -> Option<(&str, &str)> {
        let row = *self.rows.get(&object.0)?;
        Some((&self.sockets.local[row], &self.sockets.remote[row]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn inet(inode: u64) -> Object {
        Object::new(ObjectKind::Inet, inode)
    }

    fn unix(inode: u64) -> Object {
        Object::new(ObjectKind::Unix, inode)
    }

    fn table(lines: &str) -> SocketTable {
        let cast = "process a 100\nthread a a 100\nprocess b 200\nthread b b 200\n";
        SocketTable::new(parse(&format!("{cast}{lines}")).unwrap().tables.sockets)
    }

    /// Two sockets with each other's addresses are ends of one connection; a listener, which has no
    /// remote address, is no end of any.
    #[test]
    fn ends_with_each_others_addresses_are_joined() {
        let table = table(
            "1ms socket a object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
             1ms socket b object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
             1ms socket b object=inet:3 local=127.0.0.1:80",
        );
        assert_eq!(table.peer(inet(1)), Some(inet(2)));
        assert_eq!(table.peer(inet(2)), Some(inet(1)));
        assert_eq!(table.peer(inet(3)), None);
        assert_eq!(table.peer_process(inet(1)), Some(2));
        assert_eq!(table.peer_process(inet(2)), Some(1));
    }

    /// Where two namespaces use the same addresses, no end is guessed.
    #[test]
    fn ambiguous_addresses_are_not_joined() {
        let table = table(
            "1ms socket a object=inet:1 local=10.0.0.1:5000 remote=10.0.0.2:80
             1ms socket b object=inet:2 local=10.0.0.2:80 remote=10.0.0.1:5000
             1ms socket b object=inet:3 local=10.0.0.2:80 remote=10.0.0.1:5000 namespace=7",
        );
        assert_eq!(table.peer(inet(1)), None);
    }

    /// Of a unix socket the kernel's word counts, from either end, and the later row over the first.
    #[test]
    fn the_kernel_knows_unix_peers() {
        let table = table(
            "1ms socket a object=unix:5 peer-process=b remote=@/x
             2ms socket a object=unix:5 peer=unix:6 peer-process=b remote=@/x",
        );
        assert_eq!(table.peer(unix(5)), Some(unix(6)));
        assert_eq!(table.peer(unix(6)), Some(unix(5)));
        assert_eq!(table.peer_process(unix(5)), Some(2));
        assert_eq!(table.addresses(unix(5)), Some(("", "@/x")));
        assert_eq!(table.peer(unix(7)), None);
    }
}
