//! Messages between the processes that read foreign files: a length, what was said (postcard), and
//! with it open files.
//!
//! What comes from a process that reads what others control is believed in nothing: a message has a
//! greatest length, and one that does not read as what was expected is an error.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message, bytes: the rows of the largest unwind table are shorter.
const LONGEST: u32 = 256 << 20;
/// The most files with one message.
pub(crate) const MOST_FILES: usize = 32;

/// Says something.
pub(crate) fn send<T: Serialize>(to: &UnixStream, what: &T) -> io::Result<()> {
    let bytes = postcard::to_stdvec(what).map_err(io::Error::other)?;
    send_bytes(to, &bytes, &[])
}

/// Sends bytes as one message, and files with it, at most [`MOST_FILES`].
pub(crate) fn send_bytes(
    mut to: &UnixStream,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok();
    let length = length.filter(|&length| length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many files in a message"));
    }
    let header = length.to_ne_bytes();
    let flags = SendFlags::NOSIGNAL;
    let sent = sendmsg(to, &[IoSlice::new(&header)], &mut control, flags)?;
    to.write_all(&header[sent..])?;
    to.write_all(bytes)
}

/// Waits for a message and its files; `None` where the other side has ended.
pub(crate) fn receive_bytes(from: &UnixStream) -> io::Result<Option<(Vec<u8>, Vec<File>)>> {
    let mut header = [0; 4];
    let mut files: Vec<OwnedFd> = Vec::new();
    let mut got = 0;
    while got < header.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut header[got..])];
        let received = match recvmsg(from, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            received => received?,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(handed) = message {
                files.extend(handed);
            }
        }
        if received.bytes == 0 {
            return match got {
                0 => Ok(None),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        got += received.bytes;
    }
    let length = u32::from_ne_bytes(header);
    if length > LONGEST {
        return Err(io::Error::other("a message is too long"));
    }
    let mut bytes = Vec::new();
    let read = from.take(length.into()).read_to_end(&mut bytes)?;
    if read != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((bytes, files.into_iter().map(File::from).collect())))
}

/// What a message says.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::os::fd::AsFd;

    use super::*;

    /// What is sent arrives, with its files; an end is not taken for a message that is cut.
    #[test]
    fn messages_arrive_with_their_files() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"inside").unwrap();
        file.rewind().unwrap();
        send_bytes(&one, b"outside", &[file.as_fd(), file.as_fd()]).unwrap();
        send(&one, &(7u32, "text")).unwrap();
        let (bytes, mut files) = receive_bytes(&other).unwrap().unwrap();
        assert_eq!((bytes.as_slice(), files.len()), (&b"outside"[..], 2));
        let mut text = String::new();
        files[1].read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");
        let (bytes, files) = receive_bytes(&other).unwrap().unwrap();
        assert!(files.is_empty());
        assert_eq!(parse::<(u32, String)>(&bytes).unwrap(), (7, "text".into()));
        assert!(parse::<(u32, String)>(&bytes[..3]).is_err());

        (&one).write_all(&9u32.to_ne_bytes()).unwrap();
        (&one).write_all(b"cut").unwrap();
        drop(one);
        assert!(receive_bytes(&other).is_err());
        assert!(receive_bytes(&other).unwrap().is_none());
    }

    /// A length that nobody means is refused before room is made for it.
    #[test]
    fn absurd_lengths_are_refused() {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(&u32::MAX.to_ne_bytes()).unwrap();
        assert!(receive_bytes(&other).is_err());
    }
}
