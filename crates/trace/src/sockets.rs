//! Which two sockets are the ends of one connection, and who has pipes, sockets and locked files open.
//!
//! Of a unix socket the kernel knows the other end. Of an internet connection each end has both
//! addresses: where one's local is the other's remote and the reverse, they belong together, also
//! across network namespaces of one machine, unless addresses are translated on the way.
//!
//! A connection has a server's end: the one whose address somebody listens at. The other end's
//! process is the client, which asks. Where it was not seen who listens, because the server started during
//! the recording, the server's address is the one that several connections share, and of a single
//! connection the end that was there first is the client's.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use crate::ids::Upid;
use crate::object::{Object, ObjectKind};
use crate::tables::{Descriptors, Sockets};
use crate::words::{DescriptorKind, LastTransfer};

/// Whether an address was given to a socket, and not made up by the kernel for one end of a pair: five
/// hexadecimal digits.
fn is_name(address: &str) -> bool {
    let digits = address.strip_prefix('@').unwrap_or("");
    let is_made_up = digits.len() == 5 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    !address.is_empty() && !is_made_up
}

/// Whether an address has a port that Linux gives to who connects.
fn is_ephemeral(address: &str) -> Option<bool> {
    let port: u16 = address.rsplit_once(':')?.1.parse().ok()?;
    Some(port >= 32768)
}

/// Which end of a connection a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Its process was connected to, and is asked.
    Server,
    /// Its process connected, and asks.
    Client,
}

/// A process that had a pipe or socket open when somebody looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// When, ns since the trace's start.
    pub ts: u64,
    /// The process.
    pub process: Upid,
    /// Whether it may read.
    pub reads: bool,
    /// Whether it may write.
    pub writes: bool,
    /// What lay there unread, as `descriptors` counts it.
    pub unread: u32,
    /// Which way the last bytes went, of a TCP connection.
    pub last: LastTransfer,
    /// When they went, ns since the trace's start: before it, where negative.
    pub last_at: i64,
}

/// The sockets and pipes of a trace, by object.
#[derive(Clone, Debug, Default)]
pub struct SocketTable {
    /// Who has what open, in the order of time.
    holders: HashMap<u64, Vec<Holder>>,
    /// Addresses at which somebody listens, and by which sockets.
    listeners: HashMap<String, Vec<u64>>,
    /// Sockets that accept connections.
    accepting: HashSet<u64>,
    /// What each process was seen with, in order of the objects.
    had: HashMap<Upid, Vec<u64>>,
    /// The sockets of each process that were last seen to connect, with when, in order of time.
    attempts: HashMap<Upid, Vec<(u64, u64)>>,
    /// Processes that serve a file system.
    file_systems: Vec<Upid>,
    /// Processes that the kernel asks before others open files.
    keepers: Vec<Upid>,
    /// Processes that mount what others ask for.
    mounters: Vec<Upid>,
    /// Terminals whose output was halted when somebody looked.
    halted: HashSet<u64>,
    /// Files with locks, who has them open, and whether with an exclusive lock.
    locked: Vec<(Object, Upid, bool)>,
    sockets: Sockets,
    /// The last row of those that tell the other end's address, or of all.
    rows: HashMap<u64, usize>,
    /// The other end.
    peers: HashMap<u64, u64>,
    /// How many ends of internet connections have a local address.
    shared: HashMap<String, usize>,
}

fn add_once(processes: &mut Vec<Upid>, process: Upid) {
    if !processes.contains(&process) {
        processes.push(process);
    }
}

impl SocketTable {
    /// Finds the ends that belong together, and who has them.
    pub fn new(sockets: Sockets, descriptors: &Descriptors) -> SocketTable {
        let says_less =
            |a: usize, b: usize| sockets.remote[a].is_empty() && !sockets.remote[b].is_empty();
        let mut rows: HashMap<u64, usize> = HashMap::new();
        for row in 0..sockets.len() {
            let known = rows.entry(sockets.object[row]).or_insert(row);
            if !says_less(row, *known) {
                *known = row;
            }
        }
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
        let mut attempts: HashMap<Upid, Vec<(u64, u64)>> = HashMap::new();
        for row in (0..sockets.len()).filter(|&row| sockets.connecting[row]) {
            let object = sockets.object[row];
            if rows.get(&object) == Some(&row) {
                let of_process = attempts.entry(sockets.process[row]).or_default();
                of_process.push((sockets.ts[row], object));
            }
        }
        let mut shared: HashMap<String, usize> = HashMap::new();
        for (&(local, _), objects) in &ends {
            *shared.entry(local.to_owned()).or_default() += objects.len();
        }
        let mut table = SocketTable {
            sockets,
            rows,
            peers,
            shared,
            attempts,
            ..SocketTable::default()
        };
        table.open(descriptors);
        table
    }

    fn open(&mut self, descriptors: &Descriptors) {
        let at = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        for row in 0..descriptors.len() {
            let (object, process) = (descriptors.object[row], descriptors.process[row]);
            match DescriptorKind::from(descriptors.kind[row]) {
                DescriptorKind::FileSystem => {
                    add_once(&mut self.file_systems, process);
                    continue;
                }
                DescriptorKind::Keeper => {
                    add_once(&mut self.keepers, process);
                    continue;
                }
                DescriptorKind::Mounter => {
                    add_once(&mut self.mounters, process);
                    continue;
                }
                DescriptorKind::Halted => {
                    self.halted.insert(object);
                    continue;
                }
                kind @ (DescriptorKind::LockedFile | DescriptorKind::FileLock) => {
                    let has_it = kind == DescriptorKind::FileLock;
                    self.locked.push((Object(object), process, has_it));
                    continue;
                }
                DescriptorKind::Listener => {
                    self.accepting.insert(object);
                }
                DescriptorKind::Stream | DescriptorKind::Unknown => {}
            }
            self.holders.entry(object).or_default().push(Holder {
                ts: descriptors.ts[row],
                process,
                reads: descriptors.access[row] & 1 != 0,
                writes: descriptors.access[row] & 2 != 0,
                unread: descriptors.unread[row],
                last: descriptors.last[row].into(),
                last_at: at(descriptors.ts[row]).saturating_sub(at(descriptors.ago[row])),
            });
        }
        for row in 0..self.sockets.len() {
            let object = self.sockets.object[row];
            let (local, remote) = (&self.sockets.local[row], &self.sockets.remote[row]);
            let is_bound = remote.is_empty() && !local.is_empty();
            // A datagram socket that is connected to nobody takes what anybody sends.
            if is_bound && (self.accepting.contains(&object) || self.sockets.peer[row] == 0) {
                let all = self.listeners.entry(local.clone()).or_default();
                if !all.contains(&object) {
                    all.push(object);
                }
            }
        }
        let held = (self.holders.iter())
            .flat_map(|(&object, holders)| holders.iter().map(move |it| (it.process, object)));
        let held: Vec<(Upid, u64)> = held.collect();
        let used = (0..self.sockets.len())
            .map(|row| (self.sockets.process[row], self.sockets.object[row]));
        for (process, object) in held.into_iter().chain(used) {
            self.had.entry(process).or_default().push(object);
        }
        for objects in self.had.values_mut() {
            objects.sort_unstable();
            objects.dedup();
        }
    }

    /// Who had a pipe or socket open, in the order in which it was looked.
    pub fn holders(&self, object: Object) -> &[Holder] {
        self.holders.get(&object.0).map_or(&[], Vec::as_slice)
    }

    /// The sockets that listen where this one's other end is.
    pub fn listeners(&self, object: Object) -> impl Iterator<Item = Object> + '_ {
        let remote = self.addresses(object).map_or("", |(_, remote)| remote);
        self.at(remote).map(Object)
    }

    /// The sockets that listen at an address, or at its port of every address.
    fn at<'a>(&'a self, address: &'a str) -> impl Iterator<Item = u64> + 'a {
        let port = address.rsplit_once(':').map(|(_, port)| port);
        let any = port.into_iter().flat_map(|port| {
            ["0.0.0.0", "[::]"].map(|any| self.listeners.get(&format!("{any}:{port}")))
        });
        let here = (!address.is_empty()).then(|| self.listeners.get(address));
        let found = here.into_iter().chain(any).flatten();
        found.flatten().copied()
    }

    /// Which end of its connection a socket is, where that is known.
    pub fn role(&self, object: Object) -> Option<Role> {
        let (local, remote) = self.addresses(object)?;
        if remote.is_empty() && self.peer(object).is_none() {
            return None;
        }
        let is_unix = object.kind() == ObjectKind::Unix;
        match (is_name(local), is_name(remote)) {
            // Of a unix connection the end that was connected to has the name.
            (true, false) if is_unix => Some(Role::Server),
            (false, true) if is_unix => Some(Role::Client),
            _ if self.at(local).next().is_some() => Some(Role::Server),
            _ if self.at(remote).next().is_some() => Some(Role::Client),
            // Of a connection with another machine: who was connected to has a port of its own choice.
            _ if self.is_elsewhere(object) => match (is_ephemeral(local)?, is_ephemeral(remote)?) {
                (true, false) => Some(Role::Client),
                (false, true) => Some(Role::Server),
                _ => None,
            },
            _ if is_unix => None,
            _ => self.role_by_use(object, local, remote),
        }
    }

    /// The role of an end of a connection within the machine at which nobody was seen to listen.
    fn role_by_use(&self, object: Object, local: &str, remote: &str) -> Option<Role> {
        let is_shared = |address: &str| self.shared.get(address).is_some_and(|&ends| ends > 1);
        match (is_shared(local), is_shared(remote)) {
            (true, false) => return Some(Role::Server),
            (false, true) => return Some(Role::Client),
            _ => {}
        }
        // Of those that were there when the recording began it is not known which was first.
        let since =
            |object: u64| Some(self.sockets.ts[*self.rows.get(&object)?]).filter(|&ts| ts > 0);
        let (own, other) = (since(object.0)?, since(self.peer(object)?.0)?);
        match own.cmp(&other) {
            Ordering::Less => Some(Role::Client),
            Ordering::Greater => Some(Role::Server),
            Ordering::Equal => None,
        }
    }

    /// Whether the other end of an internet connection is not on this machine, as far as is seen, or
    /// not there: nobody listens at the address, though it is seen who listens.
    pub fn is_elsewhere(&self, object: Object) -> bool {
        let (_, remote) = self.addresses(object).unwrap_or_default();
        let is_here = remote.starts_with("127.") || remote.starts_with("[::1]");
        object.kind() == ObjectKind::Inet
            && !remote.is_empty()
            && !(is_here && self.listeners.is_empty())
            && self.peer(object).is_none()
            && self.at(remote).next().is_none()
            && !self.shared.contains_key(remote)
    }

    /// The connections of a process of which it is the client; some of them may be closed.
    pub fn asks(&self, process: Upid) -> impl Iterator<Item = Object> + '_ {
        self.of(process, Role::Client)
    }

    /// The connections of a process of which it is the server; some of them may be closed.
    pub fn served_by(&self, process: Upid) -> impl Iterator<Item = Object> + '_ {
        self.of(process, Role::Server)
    }

    /// The pipes and sockets that a process was seen with.
    pub fn had(&self, process: Upid) -> impl Iterator<Item = Object> + '_ {
        let had = self.had.get(&process).map_or(&[][..], Vec::as_slice);
        had.iter().map(|&object| Object(object))
    }

    /// Whether a socket accepts connections, of which it may have some that nobody has taken yet.
    pub fn accepts(&self, object: Object) -> bool {
        self.accepting.contains(&object.0)
    }

    /// Whether somebody is to connect to a socket, or to send to it: it is no end of a connection.
    pub fn listens(&self, object: Object) -> bool {
        let (local, _) = self.addresses(object).unwrap_or_default();
        self.listeners
            .get(local)
            .is_some_and(|all| all.contains(&object.0))
    }

    fn of(&self, process: Upid, role: Role) -> impl Iterator<Item = Object> + '_ {
        let is_of_role = move |&object: &Object| self.role(object) == Some(role);
        self.had(process).filter(is_of_role)
    }

    /// Processes that serve a file system.
    pub fn file_systems(&self) -> &[Upid] {
        &self.file_systems
    }

    /// Processes that the kernel asks before others open files: by a lease, or by fanotify.
    pub fn keepers(&self) -> &[Upid] {
        &self.keepers
    }

    /// Whether a terminal's output was halted, by Ctrl-S or by a program, when somebody looked.
    pub fn is_halted(&self, terminal: Object) -> bool {
        self.halted.contains(&terminal.0)
    }

    /// Processes that mount file systems as others ask for them (autofs).
    pub fn mounters(&self) -> &[Upid] {
        &self.mounters
    }

    /// Who was seen with an exclusive lock on a file.
    pub fn lock_holders(&self, file: Object) -> impl Iterator<Item = Upid> + '_ {
        let has_it = move |&&(of, _, has_it): &&(Object, Upid, bool)| of == file && has_it;
        self.locked.iter().filter(has_it).map(|&(_, by, _)| by)
    }

    /// Whether a process has an exclusive lock on a file.
    pub fn has_lock(&self, process: Upid) -> bool {
        self.locked
            .iter()
            .any(|&(_, by, has_it)| by == process && has_it)
    }

    /// The files that a process has open and on which it has no exclusive lock, while somebody has a
    /// lock on them.
    pub fn locked_files(&self, process: Upid) -> impl Iterator<Item = Object> + '_ {
        let wants = move |&&(_, by, has_it): &&(Object, Upid, bool)| by == process && !has_it;
        self.locked.iter().filter(wants).map(|&(file, ..)| file)
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

    /// When a socket was seen to connect, as a TCP client, before anything had answered; none if not, or if
    /// it was seen connected later.
    pub fn connecting(&self, object: Object) -> Option<u64> {
        let row = *self.rows.get(&object.0)?;
        self.sockets.connecting[row].then(|| self.sockets.ts[row])
    }

    /// The sockets of a process that were first seen in that time, to connect, and not seen connected; the last first.
    pub fn attempts(
        &self,
        process: Upid,
        window: RangeInclusive<u64>,
    ) -> impl Iterator<Item = Object> + '_ {
        let all = self.attempts.get(&process).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|(ts, _)| ts < window.start());
        let end = all.partition_point(|(ts, _)| ts <= window.end());
        let within = all.get(first..end).unwrap_or_default();
        within.iter().rev().map(|&(_, object)| Object(object))
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
        let tables = parse(&format!("{cast}{lines}")).unwrap().tables;
        SocketTable::new(tables.sockets, &tables.descriptors)
    }

    /// The end whose address somebody listens at is the server's, also where it listens at every
    /// address; who holds what is told with what lies there.
    #[test]
    fn the_server_is_who_was_connected_to() {
        let table = table(
            "1ms socket a object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
             1ms socket b object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
             1ms socket b object=inet:3 local=0.0.0.0:80
             1ms socket a object=unix:5 peer=unix:6 remote=/run/x
             1ms socket b object=unix:6 peer=unix:5 local=/run/x
             1ms socket a object=unix:7 peer=unix:8
             1ms socket a object=unix:10 peer=unix:11 remote=@ed8ee
             1ms open a object=inet:1 last=sent
             1ms open b object=inet:2 unread=12
             1ms open b object=inet:3 kind=listener unread=1
             2ms open b object=pipe:9 access=write",
        );
        assert_eq!(table.role(inet(1)), Some(Role::Client));
        assert_eq!(table.role(inet(2)), Some(Role::Server));
        assert_eq!(table.role(unix(5)), Some(Role::Client));
        assert_eq!(table.role(unix(6)), Some(Role::Server));
        assert_eq!(table.role(unix(7)), None);
        assert_eq!(
            table.role(unix(10)),
            None,
            "a pair, one of which the kernel named"
        );
        assert_eq!(table.listeners(inet(1)).collect::<Vec<_>>(), [inet(3)]);
        assert_eq!(
            table.asks(1).collect::<Vec<_>>(),
            [unix(5), inet(1)],
            "open, or only seen used"
        );
        assert!(table.listens(inet(3)) && !table.listens(inet(2)));
        assert_eq!(table.asks(2).next(), None);
        let [server] = table.holders(inet(2)) else {
            panic!()
        };
        assert_eq!((server.process, server.unread), (2, 12));
        let pipe = table.holders(Object::new(ObjectKind::Pipe, 9));
        assert!(pipe[0].writes && !pipe[0].reads);
    }

    /// A server that was started during the recording is nobody who was seen to listen: its address is the
    /// one that connections share; of a single one, the end that was there first connected.
    #[test]
    fn a_server_that_was_not_seen_to_listen_is_known_by_its_connections() {
        let single = "2ms socket a object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:40000
             3ms socket b object=inet:2 local=127.0.0.1:40000 remote=127.0.0.1:5000";
        let alone = table(single);
        assert_eq!(alone.role(inet(1)), Some(Role::Client));
        assert_eq!(alone.role(inet(2)), Some(Role::Server));
        let shared = table(
            "0 socket a object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:40000
             0 socket b object=inet:2 local=127.0.0.1:40000 remote=127.0.0.1:5000
             0 socket b object=inet:3 local=127.0.0.1:40000 remote=127.0.0.1:5001
             9ms socket a object=inet:4 local=127.0.0.1:5002 remote=127.0.0.1:40000",
        );
        assert_eq!(shared.role(inet(1)), Some(Role::Client));
        assert_eq!(shared.role(inet(2)), Some(Role::Server));
        assert_eq!(
            shared.role(inet(4)),
            Some(Role::Client),
            "not accepted so far"
        );
        assert!(!shared.is_elsewhere(inet(4)));
        let before = single.replace("2ms", "0").replace("3ms", "0");
        assert_eq!(table(&before).role(inet(1)), None);
    }

    /// Of a connection with another machine the ports tell who asks; one within this machine whose
    /// other end was not seen is not taken for one.
    #[test]
    fn ports_tell_who_asks_another_machine() {
        let table = table(
            "1ms socket a object=inet:1 local=10.0.0.1:40000 remote=93.184.216.34:443
             1ms socket a object=inet:2 local=10.0.0.1:22 remote=10.0.0.9:51000
             1ms socket a object=inet:3 local=10.0.0.1:40001 remote=10.0.0.9:51000
             1ms socket a object=inet:4 local=127.0.0.1:40000 remote=127.0.0.1:80",
        );
        let roles = [1, 2, 3, 4].map(|number| table.role(inet(number)));
        assert_eq!(roles, [Some(Role::Client), Some(Role::Server), None, None]);
        assert!(table.is_elsewhere(inet(1)) && !table.is_elsewhere(inet(4)));
    }

    /// Who has a lock on a file and who only has it open are distinguished; a file is no
    /// connection.
    #[test]
    fn a_locked_file_has_a_holder() {
        let table = table(
            "1ms open a object=file:7 kind=file-lock
             1ms open b object=file:7 kind=locked-file
             1ms open b object=file:8 kind=locked-file
             1ms open a kind=keeper
             2ms open a kind=keeper",
        );
        assert_eq!(table.keepers(), [1], "seen twice");
        let file = |inode| Object::new(ObjectKind::File, inode);
        assert_eq!(table.lock_holders(file(7)).collect::<Vec<_>>(), [1]);
        assert_eq!(
            table.locked_files(2).collect::<Vec<_>>(),
            [file(7), file(8)]
        );
        assert_eq!(table.locked_files(1).next(), None);
        assert_eq!(table.had(2).next(), None);
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
