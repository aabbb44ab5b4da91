//! What leaves the kernel, byte for byte: the mirror of `bpf/records.h`.
//!
//! The layouts are held against the compiled programs by the tests below and by the value sizes
//! that the session checks when it loads them.

use hangdog_trace::words::StackEnd;

use crate::function::Function;
use crate::language;
use crate::limits::Limit;
use crate::memory::{Area, File};
use crate::sockets::Description;

/// What the programs keep for a CPU, as far as user space reads it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct CpuState {
    /// Words ever taken of the ring.
    pub head: u64,
    pub lost_definitions: u64,
    pub transfers_refused: u64,
    pub handoffs_refused: u64,
    pub lost_records: u64,
    rest: [u64; 27],
}

/// What a process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub pid: u32,
    pub object: u64,
    pub unread: u32,
    pub access: u8,
    pub kind: u8,
    pub last: u8,
    /// Since its last bytes went, ns; of a TCP connection.
    pub ago: u64,
}

/// Something that events refer to, or a step in a thread's life, at a time of CLOCK_MONOTONIC.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub ts: u64,
    pub what: What,
}

/// What a [`Definition`] says.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A stack by the id that events use; `pid` 0 for a kernel stack.
    Stack {
        id: u32,
        pid: u32,
        frames: Vec<u64>,
        end: StackEnd,
    },
    /// The beginning of a stack, and what is needed to walk on.
    StackCopy(StackCopy),
    /// What the stack of that id was walked from.
    #[cfg(test)]
    StackProof(StackCopy),
    /// A function of an interpreter by the number that stacks have.
    Function {
        number: u32,
        pid: u32,
        function: Function,
    },
    /// A socket, as far as it is known now.
    Socket(Description),
    /// A pipe or socket that a process has open.
    Open(Open),
    /// A limit of a process's control group.
    Limit(Limit),
    /// A file whose pages came or went.
    File(File),
    /// Memory in which a fault was.
    Area(Area),
    /// `parent` (a tid of `parent_pid`) created a thread.
    Fork {
        tid: u32,
        pid: u32,
        parent: u32,
        parent_pid: u32,
        name: String,
        is_kernel: bool,
        /// Of a process: its code's epoch, which is its parent's; 0 where that is not known.
        epoch: u32,
    },
    /// A thread executes a program; its tid was `old_tid` until then.
    Exec {
        old_tid: u32,
        pid: u32,
        name: String,
        command: String,
        /// Where the vdso was mapped; 0 for nowhere.
        vdso: u64,
        /// Its code's epoch from now on.
        epoch: u32,
    },
    /// A thread has a new name.
    Rename { tid: u32, name: String },
    /// A thread exits, with the status that wait would give.
    Exit { tid: u32, pid: u32, status: i32 },
    /// The kernel chose the process to be killed, as memory had run out.
    OutOfMemory { pid: u32 },
    /// A process's memory is about to be replaced by another program's.
    ClearMappings { pid: u32 },
    /// Code was mapped.
    Map { pid: u32, mapping: RawMapping },
}

impl What {
    /// Whether it says which code a process has.
    pub(crate) fn changes_code(&self) -> bool {
        match self {
            What::Fork { .. }
            | What::Exec { .. }
            | What::Exit { .. }
            | What::ClearMappings { .. }
            | What::Map { .. } => true,
            What::Stack { .. }
            | What::StackCopy(_)
            | What::Function { .. }
            | What::Socket(_)
            | What::Open(_)
            | What::Limit(_)
            | What::File(_)
            | What::Area(_)
            | What::OutOfMemory { .. }
            | What::Rename { .. } => false,
            #[cfg(test)]
            What::StackProof(_) => false,
        }
    }
}

/// A stack whose rules were not loaded: the frames so far, innermost first, the last of them with
/// its registers, and what lay on the stack from `sp` on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackCopy {
    pub id: u32,
    pub pid: u32,
    pub frames: Vec<u64>,
    pub sp: u64,
    pub fp: u64,
    /// The last frame's address is no return address.
    pub exact: bool,
    /// Where that address is returned to while its rule cannot say so; 0 for none.
    pub link: u64,
    /// Whose stack it is, where that keeps what is its own, and where the whole stack begins.
    pub tid: u32,
    pub thread_pointer: u64,
    pub top: u64,
    pub bytes: Vec<u8>,
    /// Functions to be put in, as [`language::read`](crate::language::read) has them.
    pub chain: Vec<u64>,
}

/// Executable memory of a process, as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawMapping {
    pub start: u64,
    pub end: u64,
    pub file_offset: u64,
    pub path: String,
    /// In hexadecimal; empty where it is not known yet.
    pub build_id: String,
}

impl RawMapping {
    /// Whether a file of the file system was mapped.
    pub(crate) fn is_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("//anon")
    }
}

impl From<hangdog_symbols::maps::Mapping> for RawMapping {
    fn from(mapping: hangdog_symbols::maps::Mapping) -> RawMapping {
        RawMapping {
            start: mapping.start,
            end: mapping.end,
            file_offset: mapping.file_offset,
            path: mapping.path,
            build_id: String::new(),
        }
    }
}

const STACK: u32 = 1;
const FORK: u32 = 2;
const EXEC: u32 = 3;
const RENAME: u32 = 4;
const EXIT: u32 = 5;
const OUT_OF_MEMORY: u32 = 15;
const STACK_COPY: u32 = 6;
const SOCKET: u32 = 9;
const FILE: u32 = 13;
const AREA: u32 = 14;
#[cfg(test)]
const STACK_PROOF: u32 = 7;

const NAME: std::ops::Range<usize> = 32..48;
const DETAIL: std::ops::Range<usize> = 48..176;
const VDSO: usize = 176;
const STACK_HEADER: usize = 24;
const COPY_HEADER: usize = 80;
const COPY_BYTES: usize = 4096;

impl Definition {
    /// Reads what the definitions ring handed over; `None` if it is none that this version knows.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Definition> {
        let u32_at = |at: usize| -> Option<u32> {
            Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
        };
        let ts = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
        let kind = u32_at(8)?;
        let u16_at = |at: usize| -> Option<u16> {
            Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
        };
        let u64_at = |at: usize| -> Option<u64> {
            Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        };
        let frames_at = |at: usize, count: u16| -> Option<Vec<u64>> {
            let frames = bytes.get(at..at + usize::from(count) * 8)?;
            let word = |word: &[u8]| u64::from_ne_bytes(word.try_into().expect("chunks of 8"));
            Some(frames.chunks_exact(8).map(word).collect())
        };
        let copy = || {
            let length = usize::from(u16_at(22)?).min(COPY_BYTES);
            Some(StackCopy {
                id: u32_at(12)?,
                pid: u32_at(16)?,
                frames: frames_at(COPY_HEADER + COPY_BYTES, u16_at(20)?)?,
                sp: u64_at(24)?,
                fp: u64_at(32)?,
                exact: u64_at(40)? != 0,
                link: u64_at(48)?,
                thread_pointer: u64_at(56)?,
                top: u64_at(64)?,
                tid: u32_at(72)?,
                bytes: bytes.get(COPY_HEADER..COPY_HEADER + length)?.to_vec(),
                chain: Vec::new(),
            })
        };
        let what = if kind == STACK {
            What::Stack {
                id: u32_at(12)?,
                pid: u32_at(16)?,
                frames: frames_at(STACK_HEADER, u16_at(20)?)?,
                end: (u16_at(22)? as u8).into(),
            }
        } else if kind == STACK_COPY {
            What::StackCopy(copy()?)
        } else if let Some(function) = language::parse(kind, bytes) {
            What::Function {
                number: u32_at(12)?,
                pid: u32_at(16)?,
                function,
            }
        } else if kind == SOCKET {
            What::Socket(Description::parse(bytes)?)
        } else if kind == FILE {
            What::File(File::parse(bytes)?)
        } else if kind == AREA {
            What::Area(Area::parse(bytes)?)
        } else {
            #[cfg(test)]
            if kind == STACK_PROOF {
                return Some(Definition {
                    ts,
                    what: What::StackProof(copy()?),
                });
            }
            let (tid, pid, parent) = (u32_at(12)?, u32_at(16)?, u32_at(20)?);
            let status = u32_at(24)? as i32;
            let is_kernel = u32_at(28)? != 0;
            let name = text(bytes.get(NAME)?);
            let (vdso, epoch) = (u64_at(VDSO)?, u32_at(VDSO + 8)?);
            match kind {
                FORK => What::Fork {
                    tid,
                    pid,
                    parent,
                    parent_pid: u32_at(VDSO + 12)?,
                    name,
                    is_kernel,
                    epoch,
                },
                EXEC => {
                    let command = text(bytes.get(DETAIL)?);
                    What::Exec {
                        old_tid: parent,
                        pid,
                        name,
                        command,
                        vdso,
                        epoch,
                    }
                }
                RENAME => What::Rename { tid, name },
                EXIT => What::Exit { tid, pid, status },
                OUT_OF_MEMORY => What::OutOfMemory { pid },
                _ => return None,
            }
        };
        Some(Definition { ts, what })
    }
}

pub(crate) use hangdog_symbols::text::text;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::skeleton::types;

    /// The mirror has the size and the fields that the C compiler chose.
    #[test]
    fn the_mirror_is_like_the_original() {
        use std::mem::offset_of;
        assert_eq!(size_of::<CpuState>(), size_of::<types::cpu_state>());
        for (ours, theirs) in [
            (
                offset_of!(CpuState, head),
                offset_of!(types::cpu_state, head),
            ),
            (
                offset_of!(CpuState, lost_records),
                offset_of!(types::cpu_state, lost_records),
            ),
        ] {
            assert_eq!(ours, theirs);
        }
    }

    /// A fork record is read field by field from where records.h puts them.
    #[test]
    fn a_life_record_is_read() {
        let mut bytes = vec![0u8; 192];
        bytes[..8].copy_from_slice(&7u64.to_ne_bytes());
        for (at, value) in [
            (8, FORK),
            (12, 31),
            (16, 30),
            (20, 29),
            (28, 1),
            (184, 5),
            (188, 28),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[32..36].copy_from_slice(b"name");
        let Some(Definition { ts: 7, what }) = Definition::parse(&bytes) else {
            panic!()
        };
        let What::Fork {
            tid: 31,
            pid: 30,
            parent: 29,
            parent_pid: 28,
            name,
            is_kernel: true,
            epoch: 5,
        } = what
        else {
            panic!("{what:?}")
        };
        assert_eq!(name, "name");
    }

    /// A record cut anywhere, or of an unknown kind, is refused and does not panic.
    #[test]
    fn a_cut_record_is_refused() {
        let mut stack = vec![0u8; STACK_HEADER + 16];
        stack[8..12].copy_from_slice(&STACK.to_ne_bytes());
        stack[20..22].copy_from_slice(&2u16.to_ne_bytes());
        assert!(Definition::parse(&stack).is_some());
        for length in 0..stack.len() {
            assert!(
                Definition::parse(&stack[..length]).is_none(),
                "{length} bytes"
            );
        }
        stack[8] = 99;
        assert!(Definition::parse(&stack).is_none());
    }
}
