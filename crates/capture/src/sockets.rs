//! Sockets as the kernel side describes them (`bpf/socket.h`): their addresses as people write them.

use hangdog_symbols::text::text;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A socket, as far as it was known when it was described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub object: u64,
    /// The other end; 0 for none.
    pub peer: u64,
    /// Who used it.
    pub pid: u32,
    /// Who made the other end; 0 where that is not known.
    pub peer_pid: u32,
    pub namespace: u32,
    /// It connects, and nothing has answered yet.
    pub connecting: bool,
    pub local: String,
    pub remote: String,
}

const PATH: usize = 108;
const LOCAL: usize = 56;
const REMOTE: usize = LOCAL + PATH;

impl Description {
    /// Reads the record; `None` if it was cut.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Description> {
        let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let is_unix = i32::from(u16_at(40)?) == libc::AF_UNIX;
        let address = |at: usize, length: u32, port: u16| -> Option<String> {
            let length = (length as usize).min(PATH);
            let address = bytes.get(at..at + PATH)?.get(..length)?;
            Some(match is_unix {
                true => path(address),
                false => internet(address, port),
            })
        };
        Some(Description {
            pid: u32_at(12)?,
            object: u64_at(16)?,
            peer: u64_at(24)?,
            peer_pid: u32_at(32)?,
            namespace: u32_at(36)?,
            connecting: u16_at(46)? != 0,
            local: address(LOCAL, u32_at(48)?, u16_at(42)?)?,
            remote: address(REMOTE, u32_at(52)?, u16_at(44)?)?,
        })
    }
}

/// The path in a `sockaddr_un`.
pub(crate) fn unix_path(address: &[u8]) -> Option<String> {
    let (family, path) = address.split_at_checked(2)?;
    let is_unix = i32::from(u16::from_ne_bytes(family.try_into().ok()?)) == libc::AF_UNIX;
    is_unix.then(|| self::path(path))
}

/// A unix socket's path; an abstract one begins with a zero byte, which is written as @.
fn path(address: &[u8]) -> String {
    match address {
        [] => String::new(),
        [0, name @ ..] => format!("@{}", String::from_utf8_lossy(name)).replace('\0', "@"),
        name => text(name),
    }
}

fn internet(address: &[u8], port: u16) -> String {
    let address: IpAddr = if let Ok(four) = <[u8; 4]>::try_from(address) {
        four.into()
    } else if let Ok(sixteen) = <[u8; 16]>::try_from(address) {
        // So that both ends are written alike where only one of them speaks IPv6.
        Ipv6Addr::from(sixteen).to_canonical()
    } else {
        return String::new();
    };
    match port {
        0 => String::new(),
        port => SocketAddr::new(address, port).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(family: i32, lengths: [u32; 2], ports: [u16; 2], local: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; REMOTE + PATH];
        bytes[12..16].copy_from_slice(&7u32.to_ne_bytes());
        bytes[16..24].copy_from_slice(&(4u64 << 56 | 5).to_ne_bytes());
        bytes[32..36].copy_from_slice(&9u32.to_ne_bytes());
        bytes[40..42].copy_from_slice(&(family as u16).to_ne_bytes());
        bytes[42..44].copy_from_slice(&ports[0].to_ne_bytes());
        bytes[44..46].copy_from_slice(&ports[1].to_ne_bytes());
        bytes[48..52].copy_from_slice(&lengths[0].to_ne_bytes());
        bytes[52..56].copy_from_slice(&lengths[1].to_ne_bytes());
        bytes[56..56 + local.len()].copy_from_slice(local);
        bytes
    }

    /// The record is read field by field from where records.h puts them, and refused if a byte is
    /// missing.
    #[test]
    fn a_cut_record_is_refused() {
        let bytes = record(libc::AF_INET, [4, 4], [80, 81], &[127, 0, 0, 1]);
        let whole = Description::parse(&bytes).unwrap();
        assert_eq!((whole.pid, whole.peer_pid), (7, 9));
        assert_eq!(whole.object, 4 << 56 | 5);
        assert_eq!(whole.local, "127.0.0.1:80");
        assert_eq!(whole.remote, "0.0.0.0:81");
        assert_eq!(Description::parse(&bytes[..bytes.len() - 1]), None);
    }

    /// IPv6 is in brackets, and an IPv4 address in an IPv6 socket is written as IPv4; without a port
    /// there is no address.
    #[test]
    fn internet_addresses() {
        let mut mapped = [0; 16];
        mapped[10..].copy_from_slice(&[255, 255, 10, 0, 0, 2]);
        let local = |address: &[u8], port| {
            let length = address.len() as u32;
            let bytes = record(libc::AF_INET6, [length, 0], [port, 0], address);
            Description::parse(&bytes).unwrap()
        };
        assert_eq!(local(&mapped, 80).local, "10.0.0.2:80");
        let mut one = [0; 16];
        one[15] = 1;
        assert_eq!(local(&one, 443).local, "[::1]:443");
        assert_eq!(
            (local(&one, 0).local, local(&one, 1).remote),
            ("".into(), "".into())
        );
    }

    /// Paths end where they end; abstract names begin with @.
    #[test]
    fn unix_paths() {
        let local = |name: &[u8], length| {
            Description::parse(&record(libc::AF_UNIX, [length, 0], [0, 0], name))
                .unwrap()
                .local
        };
        assert_eq!(local(b"/run/a\0rubbish", 7), "/run/a");
        assert_eq!(
            local(b"\0/tmp/.X11-unix/X0rubbish", 18),
            "@/tmp/.X11-unix/X0"
        );
        assert_eq!(local(b"rubbish", 0), "");
        // A length that no address has is no reason to read beyond the record.
        assert_eq!(local(b"/run/a", u32::MAX), "/run/a");
    }
}
