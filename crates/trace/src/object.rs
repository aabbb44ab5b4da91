//! The identity of what a thread waits on or writes to, in one `u64`.
//!
//! The top byte says what kind of object it is, the low 56 bits which one: an inode number for
//! what a file descriptor leads to, a user address for a futex. The kernel side builds the same
//! value (`bpf/`), so both sides of a pipe or of a lock carry the same number.

use std::fmt;

/// An object's identity; 0 is "none known".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Object(pub u64);

/// What kind of thing an [`Object`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ObjectKind {
    /// Nothing known.
    None = 0,
    /// A futex; the value is its user address.
    Futex = 1,
    /// A pipe or FIFO; the value is its inode number, the same at both ends.
    Pipe = 2,
    /// A unix-domain socket; the value is the inode number of this end.
    Unix = 3,
    /// An internet socket; the value is the inode number of this end.
    Inet = 4,
    /// Another kind of socket (netlink, packet, ...).
    Socket = 5,
    /// An eventfd. Anonymous inodes are shared: the value is the low bits of the file's address.
    Eventfd = 6,
    /// A timerfd; value as for eventfd.
    Timerfd = 7,
    /// An epoll descriptor; value as for eventfd.
    Epoll = 8,
    /// Another anonymous inode (inotify, signalfd, io_uring, ...).
    Anonymous = 9,
    /// A regular file or directory; the value is the inode number.
    File = 10,
    /// A character device, a terminal among them; the value is the inode number.
    CharDevice = 11,
    /// A block device; the value is the inode number.
    BlockDevice = 12,
    /// A lock inside the kernel; the value is its address.
    KernelLock = 13,
    /// An io_uring; the value is the address of the kernel's state of the ring, which the requests
    /// in it name too.
    IoUring = 14,
    /// A file or directory that a program serves (FUSE); the value is the inode number.
    ServedFile = 15,
    /// A POSIX message queue; the value is its inode number, the same for all who have it open.
    MessageQueue = 16,
    /// A process, by a descriptor that stands for it (pidfd); the value is its pid.
    Process = 17,
}

const VALUE_BITS: u32 = 56;

impl Object {
    /// Nothing known.
    pub const NONE: Object = Object(0);

    /// Puts kind and value together; bits of `value` above 56 are dropped.
    pub const fn new(kind: ObjectKind, value: u64) -> Object {
        Object((kind as u64) << VALUE_BITS | value & ((1 << VALUE_BITS) - 1))
    }

    /// The kind; a number that this version does not know reads as [`ObjectKind::None`].
    pub fn kind(self) -> ObjectKind {
        use ObjectKind::*;
        match (self.0 >> VALUE_BITS) as u8 {
            1 => Futex,
            2 => Pipe,
            3 => Unix,
            4 => Inet,
            5 => Socket,
            6 => Eventfd,
            7 => Timerfd,
            8 => Epoll,
            9 => Anonymous,
            10 => File,
            11 => CharDevice,
            12 => BlockDevice,
            13 => KernelLock,
            14 => IoUring,
            15 => ServedFile,
            16 => MessageQueue,
            17 => Process,
            _ => None,
        }
    }

    /// The inode number or address.
    pub const fn value(self) -> u64 {
        self.0 & ((1 << VALUE_BITS) - 1)
    }

    /// Whether it has one end that is written and one that is read, both under the same number: a pipe or
    /// a message queue.
    pub fn is_pipe(self) -> bool {
        matches!(self.kind(), ObjectKind::Pipe | ObjectKind::MessageQueue)
    }

    /// Whether nothing is known of it.
    pub fn is_none(self) -> bool {
        self.kind() == ObjectKind::None
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind() {
            ObjectKind::None => return f.write_str("nothing known"),
            ObjectKind::Futex => return write!(f, "futex {:#x}", self.value()),
            ObjectKind::Pipe => "pipe",
            ObjectKind::Unix => "unix socket",
            ObjectKind::Inet => "internet socket",
            ObjectKind::Socket => "socket",
            ObjectKind::Eventfd => return f.write_str("eventfd"),
            ObjectKind::Timerfd => return f.write_str("timerfd"),
            ObjectKind::Epoll => return f.write_str("epoll"),
            ObjectKind::Anonymous => return f.write_str("anonymous file"),
            ObjectKind::File => "file",
            ObjectKind::CharDevice => "character device",
            ObjectKind::BlockDevice => "block device",
            ObjectKind::KernelLock => return write!(f, "kernel lock {:#x}", self.value()),
            ObjectKind::IoUring => return f.write_str("io_uring"),
            ObjectKind::ServedFile => "served file",
            ObjectKind::MessageQueue => "message queue",
            ObjectKind::Process => "process",
        };
        write!(f, "{name} {}", self.value())
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
