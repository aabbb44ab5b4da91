//! The connections of unix sockets, as the kernel tells them (netlink sock_diag, unix_diag).
//!
//! One request, answered by datagrams of messages, each a fixed part and attributes:
//! `linux/sock_diag.h`, `linux/unix_diag.h`. Every user may ask. Only sockets of the caller's
//! network namespace are told, but of each the peer's inode, whatever namespace that is in.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One end of a connection between unix stream sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection<'a> {
    /// The name that this end's socket is bound to, as in `sun_path`: it begins with a zero byte
    /// if it is abstract. An accepted connection has the name of the socket it came to.
    pub name: &'a [u8],
    /// Inode of this end's socket.
    pub inode: u32,
    /// Inode of the other end's.
    pub peer: u32,
    /// Memory of what this end has sent and the other has not read, bytes: 0 if it has read all.
    pub unread_by_peer: u32,
}

/// A way to ask the kernel.
pub struct SockDiag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const TCP_ESTABLISHED: u32 = 1;
const SHOW_NAME: u32 = 1;
const SHOW_PEER: u32 = 4;
const SHOW_QUEUES: u32 = 16;
const NAME: u16 = 0;
const PEER: u16 = 2;
const QUEUES: u16 = 4;
const HEADER: usize = 16;
const FIXED: usize = 16;
/// The kernel fills datagrams of a dump up to this size if there is room.
const DATAGRAM: usize = 32 << 10;

impl SockDiag {
    /// Opens a way.
    ///
    /// # Errors
    /// If the system has no netlink for this.
    pub fn open() -> io::Result<SockDiag> {
        // SAFETY: socket takes plain numbers.
        let fd = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_SOCK_DIAG,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(SockDiag {
            // SAFETY: it was just made, and nobody else has it.
            socket: unsafe { OwnedFd::from_raw_fd(fd) },
            buffer: vec![0; DATAGRAM],
            sequence: 0,
        })
    }

    /// Gives each connected unix stream socket that has a name and a peer to `each`.
    ///
    /// # Errors
    /// If the kernel does not answer: without CONFIG_UNIX_DIAG it says "no such file".
    pub fn connections(&mut self, mut each: impl FnMut(Connection<'_>)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.sequence);
        // SAFETY: the pointer and length are those of `request`.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                request.as_ptr().cast(),
                request.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        loop {
            // SAFETY: the pointer and length are those of `buffer`, which is not used otherwise
            // meanwhile.
            let length = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    self.buffer.as_mut_ptr().cast(),
                    self.buffer.len(),
                    0,
                )
            };
            let Ok(length) = usize::try_from(length) else {
                match io::Error::last_os_error() {
                    why if why.kind() == io::ErrorKind::Interrupted => continue,
                    why => return Err(why),
                }
            };
            if read_datagram(&self.buffer[..length], self.sequence, &mut each)? == Rest::None {
                return Ok(());
            }
        }
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`: all connected unix sockets.
fn request(sequence: u32) -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let any_cookie = [u32::MAX; 2];
    let mut bytes = Vec::with_capacity(40);
    bytes.extend(40u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend((1u32 << TCP_ESTABLISHED).to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend((SHOW_NAME | SHOW_PEER | SHOW_QUEUES).to_ne_bytes());
    bytes.extend(any_cookie.iter().flat_map(|part| part.to_ne_bytes()));
    bytes
}

/// Whether the answer goes on in another datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Follows,
    None,
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's list of unix sockets does not match unix_diag.h",
    )
}

pub(crate) fn read_datagram(
    mut bytes: &[u8],
    sequence: u32,
    each: &mut impl FnMut(Connection<'_>),
) -> io::Result<Rest> {
    while bytes.len() >= HEADER {
        let length = u32_at(bytes, 0)? as usize;
        let message = bytes.get(HEADER..length).ok_or_else(malformed)?;
        let is_answer = u32_at(bytes, 8)? == sequence;
        match i32::from(u16_at(bytes, 4)?) {
            // What is left of a request that was given up.
            _ if !is_answer => (),
            libc::NLMSG_DONE => return Ok(Rest::None),
            libc::NLMSG_ERROR => {
                let number = u32_at(message, 0)? as i32;
                return Err(io::Error::from_raw_os_error(number.saturating_neg()));
            }
            _ => {
                if let Some(connection) = read_message(message)? {
                    each(connection);
                }
            }
        }
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
    }
    Ok(Rest::Follows)
}

/// `struct unix_diag_msg` and attributes. None for a socket that is no named end of a stream.
fn read_message(message: &[u8]) -> io::Result<Option<Connection<'_>>> {
    let kind = *message.get(1).ok_or_else(malformed)?;
    let inode = u32_at(message, 4)?;
    let mut attributes = message.get(FIXED..).ok_or_else(malformed)?;
    let (mut name, mut peer, mut queues) = (None, None, None);
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(4..length).ok_or_else(malformed)?;
        match u16_at(attributes, 2)? {
            NAME => name = Some(value),
            PEER => peer = Some(u32_at(value, 0)?),
            // Received and not read, then sent and not read.
            QUEUES => queues = Some(u32_at(value, 4)?),
            _ => (),
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    if i32::from(kind) != libc::SOCK_STREAM {
        return Ok(None);
    }
    let (Some(name), Some(peer), Some(unread_by_peer)) = (name, peer, queues) else {
        return Ok(None);
    };
    Ok(Some(Connection {
        name,
        inode,
        peer,
        unread_by_peer,
    }))
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> io::Result<u16> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field
        .map(|&field| u16::from_ne_bytes(field))
        .ok_or_else(malformed)
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field
        .map(|&field| u32::from_ne_bytes(field))
        .ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((HEADER as u32 + body.len() as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn socket(inode: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![libc::AF_UNIX as u8, libc::SOCK_STREAM as u8, 1, 0];
        bytes.extend(inode.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(attributes.concat());
        bytes
    }

    fn queues(received: u32, sent: u32) -> Vec<u8> {
        attribute(
            QUEUES,
            &[received.to_ne_bytes(), sent.to_ne_bytes()].concat(),
        )
    }

    type Told = (Vec<u8>, u32, u32, u32);

    fn read(datagram: &[u8]) -> io::Result<(Vec<Told>, Rest)> {
        let mut found = Vec::new();
        let rest = read_datagram(datagram, 7, &mut |c| {
            found.push((c.name.to_vec(), c.inode, c.peer, c.unread_by_peer));
        })?;
        Ok((found, rest))
    }

    /// Names, peers and queues are read; sockets without them, and answers to another request, are
    /// passed over; the end is seen.
    #[test]
    fn answers() {
        let named = |inode, name: &[u8]| {
            let peer = attribute(PEER, &9u32.to_ne_bytes());
            socket(inode, &[attribute(NAME, name), peer, queues(5, 4608)])
        };
        let datagram = [
            message(SOCK_DIAG_BY_FAMILY, 7, &named(8, b"\0/tmp/.X11-unix/X7")),
            message(SOCK_DIAG_BY_FAMILY, 7, &socket(9, &[queues(720, 0)])),
            message(SOCK_DIAG_BY_FAMILY, 6, &named(10, b"/old")),
            message(SOCK_DIAG_BY_FAMILY, 7, &named(11, b"/run/a")),
        ]
        .concat();
        let told = |inode, name: &[u8]| (name.to_vec(), inode, 9, 4608);
        let expected = vec![told(8, b"\0/tmp/.X11-unix/X7"), told(11, b"/run/a")];
        assert_eq!(read(&datagram).unwrap(), (expected, Rest::Follows));
        let done = message(libc::NLMSG_DONE as u16, 7, &0u32.to_ne_bytes());
        assert_eq!(read(&done).unwrap(), (Vec::new(), Rest::None));
    }

    /// What the kernel refuses is its error; what is cut short anywhere is refused, never a panic.
    #[test]
    fn refusals() {
        let refused = message(libc::NLMSG_ERROR as u16, 7, &(-2i32).to_ne_bytes());
        let why = read(&refused).unwrap_err();
        assert_eq!(why.raw_os_error(), Some(libc::ENOENT));
        let peer = attribute(PEER, &9u32.to_ne_bytes());
        let whole = socket(8, &[attribute(NAME, b"/a"), peer, queues(0, 1)]);
        for length in 0..whole.len() {
            let _ = read(&message(SOCK_DIAG_BY_FAMILY, 7, &whole[..length]));
        }
        let datagram = message(SOCK_DIAG_BY_FAMILY, 7, &whole);
        for at in 0..datagram.len() {
            for value in [0, 1, 3, 255] {
                let mut damaged = datagram.clone();
                damaged[at] = value;
                let _ = read(&damaged);
            }
        }
        let mut endless = datagram;
        endless[..4].fill(0);
        assert!(read(&endless).is_err());
    }

    /// On the running kernel: a connection is reported with both inodes, and its queue is empty again
    /// when the other end has read.
    #[test]
    fn a_real_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let inode = |end: &UnixStream| {
            let link = format!("/proc/self/fd/{}", end.as_raw_fd());
            std::fs::metadata(link).unwrap().ino() as u32
        };
        let mut diag = SockDiag::open().unwrap();
        let mut unread = || {
            let mut found = None;
            let looked = diag.connections(|connection| {
                if connection.inode == inode(&server) {
                    assert_eq!(connection.peer, inode(&client));
                    let name = connection.name.strip_suffix(&[0]);
                    assert_eq!(name, Some(path.to_str().unwrap().as_bytes()));
                    found = Some(connection.unread_by_peer);
                }
            });
            looked.map(|()| found)
        };
        match unread() {
            Err(why) => return eprintln!("NOT RUN: a_real_connection: {why}"),
            Ok(found) => assert_eq!(found, Some(0)),
        }
        (&server).write_all(b"event").unwrap();
        assert!(unread().unwrap() >= Some(5));
        (&client).read_exact(&mut [0; 5]).unwrap();
        assert_eq!(unread().unwrap(), Some(0));
    }
}
