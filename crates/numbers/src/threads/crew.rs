//! Threads that leave nothing behind. A C library keeps a thread's stack and the heap that it made
//! for it, and a fork later in the same process takes several times as long for them: so stacks are
//! mapped here, and what the threads do should not allocate.

use std::ptr;
use std::sync::OnceLock;

use super::common::checked;
use crate::meter::Untried;

/// For a thread, with what the C library and the program keep per thread: bytes.
const STACK: usize = 256 << 10;
/// Never touched, below the stack: what overflows ends there. A multiple of every page size.
const GUARD: usize = 64 << 10;

/// What the threads do, by number.
pub(super) type Body<'a> = &'a (dyn Fn(usize) -> Result<(), Untried> + Sync);

/// Does `user` while so many threads each do `body`, which must not panic. `stop` is called when
/// `user` is done, or not all threads could be started; it has to make each of them end, as all are
/// waited for. A thread's failure goes before the user's, who may have failed because of it.
pub(super) fn beside<T>(
    threads: usize,
    body: Body,
    user: impl FnOnce() -> Result<T, Untried>,
    stop: impl FnOnce(),
) -> Result<T, Untried> {
    let members: Vec<Member> = (0..threads)
        .map(|number| Member::new(number, body))
        .collect::<Result<_, _>>()?;
    let mut started = Vec::with_capacity(threads);
    let all_started = members.iter().try_for_each(|member| {
        started.push(member.start()?);
        Ok(())
    });
    let used = all_started.and_then(|()| user());
    stop();
    // All are joined before the first failure is looked at: they use `members`.
    let joined: Vec<Result<(), Untried>> = started.into_iter().map(join).collect();
    joined.into_iter().collect::<Result<(), Untried>>()?;
    for member in members {
        if let Some(result) = member.result.into_inner() {
            result?;
        }
    }
    used
}

/// One thread: what it is to do, and what came of it.
struct Member<'a> {
    number: usize,
    body: Body<'a>,
    stack: Stack,
    result: OnceLock<Result<(), Untried>>,
}

extern "C" fn run(member: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `start` passes a Member, which `beside` keeps until this thread is joined.
    let member = unsafe { &*member.cast::<Member>() };
    let _ = member.result.set((member.body)(member.number));
    ptr::null_mut()
}

impl Member<'_> {
    fn new<'a>(number: usize, body: Body<'a>) -> Result<Member<'a>, Untried> {
        Ok(Member {
            number,
            body,
            stack: Stack::new()?,
            result: OnceLock::new(),
        })
    }

    fn start(&self) -> Result<libc::pthread_t, Untried> {
        let mut thread = 0;
        let argument = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the attributes are initialized before they are used; stack and argument are kept
        // by `beside` until the thread is joined.
        let error = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            checked(
                "a thread's attributes",
                libc::pthread_attr_init(&mut attributes),
            )?;
            let mut error =
                libc::pthread_attr_setstack(&mut attributes, self.stack.usable(), STACK);
            if error == 0 {
                error = libc::pthread_create(&mut thread, &attributes, run, argument);
            }
            libc::pthread_attr_destroy(&mut attributes);
            error
        };
        checked("starting a thread", error)?;
        Ok(thread)
    }
}

fn join(thread: libc::pthread_t) -> Result<(), Untried> {
    // SAFETY: started by `start`, and joined once.
    checked("joining a thread", unsafe {
        libc::pthread_join(thread, ptr::null_mut())
    })
}

/// Mapped memory, unmapped when this is dropped.
struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> Result<Stack, Untried> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: new memory, where the kernel likes.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                GUARD + STACK,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(Untried::last("memory for a thread's stack"));
        }
        let stack = Stack(memory);
        // SAFETY: within what was mapped.
        if unsafe { libc::mprotect(stack.usable(), STACK, libc::PROT_READ | libc::PROT_WRITE) } != 0
        {
            return Err(Untried::last("memory for a thread's stack"));
        }
        Ok(stack)
    }

    /// Above the guard.
    fn usable(&self) -> *mut libc::c_void {
        // SAFETY: within what was mapped.
        unsafe { self.0.byte_add(GUARD) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the thread that used it was joined.
        unsafe { libc::munmap(self.0, GUARD + STACK) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// The mapping that an address is in.
    fn is_mapped(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| {
            let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(from)..number(to)).contains(&address)
        })
    }

    /// Every number is done once, in a thread of its own.
    #[test]
    fn each_number_is_done_in_a_thread_of_its_own() {
        let done = Mutex::new(Vec::new());
        let body = |number| {
            // SAFETY: takes nothing and only reads.
            let tid = unsafe { libc::gettid() };
            done.lock().unwrap().push((number, tid));
            Ok(())
        };
        // SAFETY: as above.
        let own = beside(3, &body, || Ok(unsafe { libc::gettid() }), || ()).unwrap();
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!(done.iter().map(|(number, _)| *number).eq(0..3));
        let mut tids: Vec<i32> = done.iter().map(|(_, tid)| *tid).collect();
        tids.push(own);
        tids.sort_unstable();
        tids.dedup();
        assert_eq!(tids.len(), 4);
    }

    /// A stack is mapped while its thread runs, has a guard that cannot be touched, and is gone
    /// with it.
    #[test]
    fn a_stack_is_gone_with_its_owner() {
        let stack = Stack::new().unwrap();
        let guard = stack.0.addr();
        assert!(is_mapped(guard) && is_mapped(guard + GUARD + STACK - 1));
        drop(stack);
        let (used, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let body = |_| {
            let local = 0u8;
            used.store(ptr::from_ref(&local).addr(), Ordering::Release);
            while !over.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok(())
        };
        let address = beside(
            1,
            &body,
            || loop {
                match used.load(Ordering::Acquire) {
                    0 => std::thread::yield_now(),
                    address => {
                        assert!(is_mapped(address));
                        return Ok(address);
                    }
                }
            },
            || over.store(true, Ordering::Release),
        );
        let maps_it = is_mapped(address.unwrap());
        // Another test's mapping may have taken the place at once: unlikely, and told.
        assert!(
            !maps_it,
            "the stack is still mapped, or its place was reused"
        );
    }

    /// A thread's failure is told, and before the user's.
    #[test]
    fn a_threads_failure_is_told() {
        let body = |number| match number {
            1 => Err(Untried("one".into())),
            _ => Ok(()),
        };
        let failed = beside(2, &body, || Ok(()), || ());
        assert_eq!(failed.unwrap_err().0, "one");
        let failed: Result<(), _> = beside(2, &body, || Err(Untried("user".into())), || ());
        assert_eq!(failed.unwrap_err().0, "one");
        let failed: Result<(), _> = beside(1, &|_| Ok(()), || Err(Untried("user".into())), || ());
        assert_eq!(failed.unwrap_err().0, "user");
    }
}
