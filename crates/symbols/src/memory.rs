//! Reading other processes' memory, without stopping them.

/// Reads memory of a process: as many bytes as are asked for, or none.
pub trait Memory {
    /// The bytes at an address; `None` if not all of them can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;

    /// The word at an address.
    fn word(&self, address: u64) -> Option<u64> {
        let [word] = self.words_at(address)?;
        Some(word)
    }

    /// The words from an address on.
    fn words_at<const COUNT: usize>(&self, address: u64) -> Option<[u64; COUNT]> {
        let mut bytes = [[0; 8]; COUNT];
        self.read(address, bytes.as_flattened_mut())?;
        Some(bytes.map(u64::from_ne_bytes))
    }
}

/// The memory of a process.
pub struct ProcessMemory(
    /// Its pid.
    pub u32,
);

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let remote = [libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: into.len(),
        }];
        (copy_from(self.0, &remote, into) == into.len()).then_some(())
    }
}

/// Copies memory of process `pid`, piece after piece; gives how many bytes could be read.
pub fn copy_from(pid: u32, remote: &[libc::iovec], into: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: `local` is a buffer of that size that lives on; `remote` names memory of another
    // process, which the kernel checks.
    let read = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            &local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    usize::try_from(read).unwrap_or(0)
}
