//! The tasks of asyncio that wait in a Python program, read from its memory without stopping it.
//!
//! While an event loop has nothing to do its thread waits in one place, whatever its tasks wait for. asyncio keeps all
//! tasks in a set of its module `asyncio.tasks`, which is found from a function of asyncio that a thread is in:
//!
//!   frame of the loop ─ globals ─ "tasks" → module ─ "_all_tasks" → WeakSet ─ data → set ─→ weak references ─→ tasks
//!   task ─ coroutine: its frame ─ what it awaits → coroutine: its frame ─ … → future
//!
//! The future may be another task. A task that waits for a lock has that as the first argument of its innermost function;
//! who has entered it by `async with` keeps the lock's method for leaving on its stack.
//!
//! Objects are as the headers of CPython 3.11 have them (cpython/{object,dictobject,setobject,genobject}.h,
//! internal/pycore_{dict,frame}.h), and are distinguished by the names of their types. Other versions keep tasks
//! elsewhere, and are left out, as is a task that was written in Python itself.
//!
//! Any program can look as if it had any number of tasks that await each other in a circle: all is bounded.

use std::collections::{HashMap, HashSet};

use hangdog_symbols::memory::Memory;

use super::frames::{Runtime, function, read_text, threads_of};
use super::objects;
use crate::chain::{MOST, Numbers};
use crate::function::{Function, NUMBERED};

/// A task that waits.
pub(crate) struct Task {
    /// Where it lies, which no other task of the process has meanwhile.
    pub address: u64,
    /// The task that it awaits, or that has the lock or the semaphore that it waits for, which it may be itself; 0 if that is not
    /// known.
    pub awaited: u64,
    /// The words that stand for its functions, the innermost first.
    pub words: Vec<u64>,
}

/// The most tasks of a process that are looked at.
const MOST_TASKS: usize = 1000;
/// The most functions of all of them together.
const MOST_WORDS: usize = 20_000;
/// The most places of a set.
const MOST_PLACES: u64 = 1 << 16;
/// Words of a task in front of which its coroutine lies.
const TASK_WORDS: usize = 24;
/// The longest name that is looked for.
const NAME: usize = 32;
/// In a function its name.
const FUNCTION_NAME: u64 = 32;
/// A word of a frame: the names of its module.
const FRAME_GLOBALS: u64 = 8;
/// In a suspended generator: how it is, its frame, and in that its code, the height of its stack, and that itself.
const STATE: usize = 75;
const CODE: usize = 112;
const HEIGHT: usize = 144;
const STACK: u64 = 152;
const GENERATOR: usize = 152;
const SUSPENDED: u8 = -1_i8 as u8;
/// The highest stack of a function.
const HIGHEST: u32 = 10_000;

/// Files of asyncio whose functions are around a loop that waits, and whose names have the module of tasks.
const AROUND: [&str; 2] = ["/asyncio/base_events.py", "/asyncio/runners.py"];

/// Functions that wait for what a task has entered, as they are called; they are methods of it.
const ENTERS: [&str; 2] = ["Lock.acquire", "Semaphore.acquire"];
/// The function by which `async with` calls them.
const BY_WITH: &str = "_ContextManagerMixin.__aenter__";
/// The function by which a task leaves it.
const LEAVES: &str = "__aexit__";
/// So many words of a function are looked through for that, and so many of all functions.
const FRAME_WORDS: u32 = 64;
const MOST_OBJECTS: usize = 100_000;

/// The tasks that wait in a process with this `memory`. `define` gives a number to each function that has none yet.
pub(crate) fn parked(
    memory: &impl Memory,
    runtime: Runtime,
    numbers: &mut Numbers,
    mut define: impl FnMut(Function) -> u32,
) -> Vec<Task> {
    let mut reader = Reader {
        memory,
        runtime,
        types: HashMap::new(),
        roles: HashMap::new(),
        coroutine_at: 2,
        room: MOST_OBJECTS,
    };
    let Some(set) = reader.all_tasks() else {
        return Vec::new();
    };
    let mut words = 0;
    let has_room = |waiting: &Waiting| {
        words += waiting.task.words.len();
        words <= MOST_WORDS
    };
    let all = reader.referred(set).unwrap_or_default().into_iter();
    let waiting = all.filter_map(|task| reader.task(task, numbers, &mut define));
    let mut found: Vec<_> = waiting.take_while(has_room).take(MOST_TASKS).collect();
    reader.find_who_entered(&mut found);
    found.into_iter().map(|waiting| waiting.task).collect()
}

/// A task that waits, and what shows who has what it waits for.
struct Waiting {
    task: Task,
    /// Its generators that wait, the outermost first.
    generators: Vec<u64>,
    /// The lock or the semaphore that it waits for.
    lock: Option<u64>,
    /// It waits for that by `async with`, which has put the method for leaving it on the stack before.
    has_method: bool,
}

struct Reader<'a, M> {
    memory: &'a M,
    runtime: Runtime,
    /// The names of types by their addresses, as far as one needs them.
    types: HashMap<u64, Type>,
    /// What functions do, by the addresses of their code.
    roles: HashMap<u64, Role>,
    /// Which word of a task has its coroutine, as far as the last one shows.
    coroutine_at: usize,
    /// So many objects on stacks are looked at yet.
    room: usize,
}

/// What a function has to do with locks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It waits for what a task has entered; it is a method of it.
    Enters,
    /// By it `async with` calls such a one.
    ByWith,
    Other,
}

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Set,
    Task,
    /// A coroutine, a generator or an asynchronous one: each has a frame of its own.
    Generator,
    /// What stands for one that is awaited.
    Wrapper,
    /// What stands for a future that is awaited.
    Future,
    /// A function with the object that it is of.
    Method,
    Other,
}

impl<M: Memory> Reader<'_, M> {
    fn word(&self, address: u64, offset: u64) -> Option<u64> {
        self.memory.word(address.wrapping_add(offset))
    }

    fn type_of(&mut self, object: u64) -> Option<Type> {
        // Objects lie at even places.
        if object == 0 || !object.is_multiple_of(8) {
            return None;
        }
        let at = self.word(object, 8)?;
        if let Some(&known) = self.types.get(&at) {
            return Some(known);
        }
        let mut name = [0; NAME];
        let text = self.word(at, 24)?;
        self.memory.read(text, &mut name)?;
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        let found = match &name[..length] {
            b"set" => Type::Set,
            b"_asyncio.Task" => Type::Task,
            b"coroutine" | b"generator" | b"async_generator" => Type::Generator,
            b"coroutine_wrapper" | b"async_generator_asend" => Type::Wrapper,
            b"_asyncio.FutureIter" => Type::Future,
            b"method" => Type::Method,
            _ => Type::Other,
        };
        self.types.insert(at, found);
        Some(found)
    }

    /// The set with a weak reference to each task.
    fn all_tasks(&mut self) -> Option<u64> {
        let module = self.globals_around_loop()?;
        let tasks = self.named(module, "tasks")?;
        let names = self.word(tasks, 16)?;
        let weak_set = self.named(names, "_all_tasks")?;
        let data = objects::attribute(self.memory, &self.runtime.layout, weak_set, "data")?;
        (self.type_of(data)? == Type::Set).then_some(data)
    }

    /// The names of a module of asyncio whose function a thread is in.
    fn globals_around_loop(&self) -> Option<u64> {
        let mut files = HashMap::new();
        let threads = threads_of(self.memory, self.runtime);
        for frame in threads.iter().flat_map(|thread| &thread.frames) {
            let is_around = *files.entry(frame.code).or_insert_with(|| {
                let function = function(self.memory, &self.runtime.layout, frame.code).flatten();
                let file = function.map(|function| function.file).unwrap_or_default();
                AROUND.iter().any(|end| file.ends_with(end))
            });
            if is_around {
                return self.word(frame.address, FRAME_GLOBALS);
            }
        }
        None
    }

    fn named(&self, dictionary: u64, name: &str) -> Option<u64> {
        objects::named(self.memory, &self.runtime.layout, dictionary, name)
    }

    /// What the weak references in a set refer to, without those that refer to nothing any more.
    fn referred(&mut self, set: u64) -> Option<Vec<u64>> {
        let [highest, table] = self.memory.words_at(set.wrapping_add(32))?;
        let places = highest.checked_add(1).filter(|&it| it <= MOST_PLACES)?;
        let mut bytes = vec![0; usize::try_from(16 * places).ok()?];
        self.memory.read(table, &mut bytes)?;
        let keys = bytes.chunks_exact(16).filter_map(|entry| {
            let key = u64::from_ne_bytes(*entry.first_chunk()?);
            (key != 0).then_some(key)
        });
        let mut tasks = Vec::new();
        for key in keys {
            let object = self.word(key, 16);
            tasks.extend(object.filter(|&object| self.type_of(object) == Some(Type::Task)));
        }
        Some(tasks)
    }

    /// A task and its functions, if it waits.
    fn task(
        &mut self,
        address: u64,
        numbers: &mut Numbers,
        define: &mut impl FnMut(Function) -> u32,
    ) -> Option<Waiting> {
        let words: [u64; TASK_WORDS] = self.memory.words_at(address)?;
        let places = std::iter::once(self.coroutine_at).chain(2..TASK_WORDS);
        let mut places = places.filter(|&at| self.type_of(words[at]) == Some(Type::Generator));
        let coroutine_at = places.next()?;
        drop(places);
        self.coroutine_at = coroutine_at;
        let mut object = words[coroutine_at];
        let (mut found, mut generators, mut codes) = (Vec::new(), Vec::new(), Vec::new());
        let mut innermost = None;
        while found.len() < MOST {
            if self.type_of(object) == Some(Type::Wrapper) {
                object = self.word(object, 16)?;
            }
            if self.type_of(object) != Some(Type::Generator) {
                break;
            }
            let Some((code, awaited)) = self.suspended(object) else {
                break;
            };
            innermost = Some((object, awaited));
            found.push(self.number(code, numbers, define)?);
            generators.push(object);
            codes.push(code);
            object = awaited;
        }
        let (innermost, awaited) = innermost?;
        let mut roles = codes.iter().rev().map(|&code| self.role(code));
        let enters = roles.next() == Some(Role::Enters);
        let has_method = roles.next() == Some(Role::ByWith);
        drop(roles);
        let lock = self.word(innermost, STACK).filter(|_| enters);
        let task = self.awaited_task(awaited);
        // It went on meanwhile.
        if self.suspended(innermost)?.1 != awaited {
            return None;
        }
        found.retain(|&number| number != 0);
        found.reverse();
        let words: Vec<_> = found.iter().map(|&it| NUMBERED | u64::from(it)).collect();
        (!words.is_empty()).then_some(Waiting {
            task: Task {
                address,
                awaited: task.unwrap_or_default(),
                words,
            },
            generators,
            lock,
            has_method,
        })
    }

    /// The task that a future which is awaited is.
    fn awaited_task(&mut self, awaited: u64) -> Option<u64> {
        let is_future = self.type_of(awaited) == Some(Type::Future);
        let future = self.word(awaited, 16).filter(|_| is_future)?;
        (self.type_of(future)? == Type::Task).then_some(future)
    }

    /// What the function with that code has to do with locks.
    fn role(&mut self, code: u64) -> Role {
        *self.roles.entry(code).or_insert_with(|| {
            let function = function(self.memory, &self.runtime.layout, code).flatten();
            match function.map(|function| function.name).as_deref() {
                Some(name) if ENTERS.contains(&name) => Role::Enters,
                Some(BY_WITH) => Role::ByWith,
                _ => Role::Other,
            }
        })
    }

    /// Notes, of those that wait for a lock, which of them has entered it.
    fn find_who_entered(&mut self, found: &mut [Waiting]) {
        let locks: HashSet<u64> = found.iter().filter_map(|waiting| waiting.lock).collect();
        if locks.is_empty() {
            return;
        }
        let mut entered = HashMap::new();
        for waiting in &*found {
            let mut left: Vec<u64> = (waiting.generators.iter())
                .flat_map(|&generator| self.entered_in(generator, &locks).unwrap_or_default())
                .collect();
            // The last is of the lock that it has not entered yet.
            if waiting.has_method && left.last().copied() == waiting.lock {
                left.pop();
            }
            entered.extend(left.into_iter().map(|lock| (lock, waiting.task.address)));
        }
        for waiting in found {
            let by = waiting.lock.and_then(|lock| entered.get(&lock));
            waiting.task.awaited = by.copied().unwrap_or(waiting.task.awaited);
        }
    }

    /// Which of these locks a generator has on its stack, to leave them later.
    fn entered_in(&mut self, generator: u64, locks: &HashSet<u64>) -> Option<Vec<u64>> {
        let height = self.word(generator, HEIGHT as u64)? as u32;
        let mut bytes = vec![0; 8 * height.min(FRAME_WORDS) as usize];
        (self.memory).read(generator.wrapping_add(STACK), &mut bytes)?;
        let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk());
        let mut left = Vec::new();
        for object in words.map(|word| u64::from_ne_bytes(*word)) {
            self.room = self.room.checked_sub(1)?;
            if self.type_of(object) != Some(Type::Method) {
                continue;
            }
            let [function, of] = self.memory.words_at(object.wrapping_add(16))?;
            let name = self.word(function, FUNCTION_NAME)?;
            let is_exit = || read_text(self.memory, &self.runtime.layout, name, NAME) == LEAVES;
            if locks.contains(&of) && is_exit() {
                left.push(of);
            }
        }
        Some(left)
    }

    /// The code of a generator that waits, and what it awaits.
    fn suspended(&self, generator: u64) -> Option<(u64, u64)> {
        let mut bytes = [0; GENERATOR];
        self.memory.read(generator, &mut bytes)?;
        if bytes[STATE] != SUSPENDED {
            return None;
        }
        let code = u64::from_ne_bytes(*bytes[CODE..].first_chunk()?);
        let height = u32::from_ne_bytes(*bytes[HEIGHT..].first_chunk()?);
        let top = height.checked_sub(1).filter(|&top| top < HIGHEST)?;
        let awaited = self.word(generator, STACK + 8 * u64::from(top))?;
        Some((code, awaited))
    }

    /// The number of a function; 0 of one that the interpreter made up for itself.
    fn number(
        &self,
        code: u64,
        numbers: &mut Numbers,
        define: &mut impl FnMut(Function) -> u32,
    ) -> Option<u32> {
        if let Some(&number) = numbers.get(&code) {
            return Some(number);
        }
        let function = function(self.memory, &self.runtime.layout, code)?;
        let is_stale = function.as_ref().is_some_and(|it| it.name.is_empty());
        if is_stale {
            return None;
        }
        let number = function.map_or(0, define);
        numbers.insert(code, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::tests::{Bytes, STATE_OF_ALL, layout};

    /// A coroutine that awaits an object.
    fn coroutine(memory: &mut Bytes, address: u64, code: u64, awaited: u64) {
        memory.object(address, "coroutine");
        memory.put(address + STATE as u64, &[SUSPENDED]);
        memory.put_word(address + CODE as u64, code);
        memory.put_word(address + HEIGHT as u64, 2);
        memory.words(address + STACK, &[7, awaited]);
    }

    const OUTER: u64 = 0x30_0000;
    const INNER: u64 = 0x31_0000;

    /// A process whose loop has one task: `serve` awaits `take`, which awaits the object at `awaited`.
    fn process(awaited: u64) -> Bytes {
        let mut memory = Bytes::default();
        let (interpreter, thread, cframe, frame) = (0x2_0000, 0x3_0000, 0x4_0000, 0x5_0000);
        memory.put_word(STATE_OF_ALL + 40, interpreter);
        memory.words(interpreter, &[0, 1, thread]);
        memory.words(thread, &[0; 24]);
        memory.put_word(thread + 8 * 7, cframe);
        memory.words(cframe, &[0, frame, 0]);
        memory.words(frame, &[0, 0x6_0000, 0, 0, 0x20_0000, 0, 0, 0, 0]);
        memory.code(
            0x20_0000,
            "BaseEventLoop.run_forever",
            "/lib/asyncio/base_events.py",
        );
        memory.dictionary(0x6_0000, "tasks", 0x7_0000);
        memory.object(0x7_0000, "module");
        memory.put_word(0x7_0000 + 16, 0x8_0000);
        memory.dictionary(0x8_0000, "_all_tasks", 0x9_0100);
        memory.object(0x9_0100, "WeakSet");
        memory.words(0x9_0100 - 32, &[0x9_0800, 0]);
        // The names of its attributes are those of a dictionary that has the same.
        memory.dictionary(0x9_8000, "data", 0);
        memory.put_word(0x9_4100 + 872, 0x9_8800);
        memory.put_word(0x9_0800, 0xa_0000);
        memory.object(0xa_0000, "set");
        memory.words(0xa_0000 + 32, &[1, 0xa_0800]);
        memory.words(0xa_0800, &[0, 0, 0xb_0000, 5]);
        memory.object(0xb_0000, "weakref");
        memory.put_word(0xb_0000 + 16, 0xc_0000);
        memory.object(0xc_0000, "_asyncio.Task");
        memory.words(0xc_0000 + 16, &[0xd_0000, 0, OUTER]);
        memory.object(0xd_0000, "Loop");
        memory.code(0x21_0000, "serve", "/app/shop.py");
        memory.code(0x22_0000, "take", "/app/shop.py");
        coroutine(&mut memory, OUTER, 0x21_0000, INNER);
        coroutine(&mut memory, INNER, 0x22_0000, awaited);
        memory.object(0xe_0000, "_asyncio.FutureIter");
        memory
    }

    fn names(memory: &Bytes) -> Vec<Vec<String>> {
        let mut names = Vec::new();
        let define = |function: Function| {
            names.push(function.name);
            names.len() as u32
        };
        let runtime = Runtime {
            state: STATE_OF_ALL,
            layout: layout(),
        };
        let tasks = parked(memory, runtime, &mut Numbers::new(), define);
        let of = |task: Task| {
            let numbers = task.words.iter().map(|word| (word & 0xffff) as usize);
            numbers.map(|number| names[number - 1].clone()).collect()
        };
        tasks.into_iter().map(of).collect()
    }

    fn awaited(memory: &Bytes) -> Vec<(u64, u64)> {
        let runtime = Runtime {
            state: STATE_OF_ALL,
            layout: layout(),
        };
        let tasks = parked(memory, runtime, &mut Numbers::new(), |_| 1);
        let of = |task: Task| (task.address, task.awaited);
        tasks.into_iter().map(of).collect()
    }

    const OTHER: u64 = 0xf_0000;
    const LOCK: u64 = 0x40_0000;
    const FUTURE: u64 = 0xe_0000;

    /// The same with a second task, which runs a function with that name and awaits a future.
    fn with_another(inner: &str, outer: &str) -> Bytes {
        let mut memory = process(FUTURE);
        memory.code(0x21_0000, outer, "/app/shop.py");
        memory.code(0x22_0000, inner, "/app/shop.py");
        memory.words(0xa_0800, &[0xf_8000, 9]);
        memory.object(0xf_8000, "weakref");
        memory.put_word(0xf_8000 + 16, OTHER);
        memory.object(OTHER, "_asyncio.Task");
        memory.put_word(OTHER + 16, 0x32_0000);
        memory.code(0x23_0000, "keep", "/app/shop.py");
        coroutine(&mut memory, 0x32_0000, 0x23_0000, FUTURE);
        memory
    }

    /// Puts the method by which a lock is left on the stack of a generator.
    fn enter(memory: &mut Bytes, generator: u64) {
        let (method, function) = (generator + 0x8000, generator + 0x9000);
        memory.object(method, "method");
        memory.words(method + 16, &[function, LOCK]);
        memory.object(function, "function");
        memory.put_word(function + FUNCTION_NAME, function + 0x800);
        memory.text(function + 0x800, LEAVES);
        memory.put_word(generator + HEIGHT as u64, 3);
        let awaited = memory.word(generator + STACK + 8);
        let awaited = awaited.expect("what it awaits");
        memory.words(generator + STACK, &[7, method, awaited]);
    }

    /// A task that awaits another's future waits for that.
    #[test]
    fn an_awaited_task_is_known() {
        let mut memory = with_another("take", "serve");
        memory.put_word(FUTURE + 16, OTHER);
        let found = awaited(&memory);
        assert!(found.contains(&(0xc_0000, OTHER)), "{found:x?}");
    }

    /// A task that waits for a lock waits for the one that has entered it by `async with`, which may be itself; who only
    /// waits to enter has not.
    #[test]
    fn who_has_entered_a_lock_is_known() {
        let mut memory = with_another("Lock.acquire", "serve");
        memory.put_word(INNER + STACK, LOCK);
        assert!(awaited(&memory).contains(&(0xc_0000, 0)));
        enter(&mut memory, 0x32_0000);
        assert!(awaited(&memory).contains(&(0xc_0000, OTHER)));

        let mut own = with_another("Lock.acquire", "serve");
        own.put_word(INNER + STACK, LOCK);
        enter(&mut own, OUTER);
        assert!(awaited(&own).contains(&(0xc_0000, 0xc_0000)));

        let mut waits = with_another("Lock.acquire", BY_WITH);
        waits.put_word(INNER + STACK, LOCK);
        enter(&mut waits, OUTER);
        assert!(awaited(&waits).contains(&(0xc_0000, 0)));
    }

    /// A task's functions are those of its coroutine and of what that awaits, the innermost first.
    #[test]
    fn a_task_that_waits_is_found() {
        assert_eq!(names(&process(0xe_0000)), [["take", "serve"]]);
    }

    /// One that runs is none; nor is there one where a name, a set or memory is missing.
    #[test]
    fn what_does_not_wait_is_left_out() {
        let mut runs = process(0xe_0000);
        runs.put(OUTER + STATE as u64, &[0]);
        assert!(names(&runs).is_empty());
        let mut huge = process(0xe_0000);
        huge.put_word(0xa_0000 + 32, u64::MAX);
        assert!(names(&huge).is_empty());
        let mut other = process(0xe_0000);
        other.object(0xa_0000, "list");
        assert!(names(&other).is_empty());
        assert!(names(&Bytes::default()).is_empty());
    }

    /// Coroutines that await each other in a circle come to an end.
    #[test]
    fn circles_come_to_an_end() {
        let found = names(&process(OUTER));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].len(), MOST);
    }
}
