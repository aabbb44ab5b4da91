//! The Python functions that a thread of another process is in, read from outside while it waits.
//!
//! `bpf/python.h` says how CPython keeps them, and reads them the same way for a thread that is on
//! the CPU. Here the thread is at rest; if it goes on meanwhile, what is read may lead nowhere, and
//! then its stack shows the interpreter's own functions.

use super::text;
use crate::chain::{FILE_BYTES, MOST, MOST_FRAMES, NAME_BYTES, Numbers, thread_value};
use crate::function::{Function, NUMBERED};
use crate::session::skeleton::types::python_layout;
use hangdog_symbols::memory::Memory;

/// The interpreter of a process: where its state lies, and how it keeps its frames.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    pub state: u64,
    pub layout: python_layout,
}

const THREAD_WORDS: u64 = 20;
const FRAME_WORDS: usize = 9;
const INTERPRETER_NEXT: u64 = 0;
const INTERPRETER_STATES: u64 = 2;
const STATE_NEXT: u64 = 1;
/// The kernel's number of the thread (3.11).
const STATE_TID: u64 = 20;
/// So many are looked at.
const MOST_INTERPRETERS: usize = 8;
const MOST_STATES: usize = 8;
const CODE_SIZE: u64 = 16;
const CODE_BYTES: usize = 128;
const CODE_OWN: u32 = 0x0200_0000;
const TEXT_LENGTH: u64 = 16;
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;

/// For each call of the interpreter's loop, the innermost first: its mark on the C stack, and behind
/// it the words that stand for its functions. `define` is told of each function that has no number
/// yet and gives it one. Empty where the thread has nothing to do with Python.
pub(crate) fn read(
    memory: &impl Memory,
    runtime: Runtime,
    thread_pointer: u64,
    numbers: &mut Numbers,
    mut define: impl FnMut(Function) -> u32,
) -> Vec<u64> {
    let mut words = Vec::new();
    let Some(first) = thread_state(memory, runtime, thread_pointer) else {
        return words;
    };
    let entered = entered(memory, runtime, thread_pointer, first);
    for state in entered.into_iter().chain([first]) {
        // The mark that ends what one state leads to is no place on the stack.
        let ends_with_mark = words.last().is_some_and(|word| word & NUMBERED == 0);
        if ends_with_mark && words.len() > 1 {
            words.pop();
        }
        // What was read before it led nowhere is as it was.
        let _ = collect(
            memory,
            &runtime.layout,
            (state, thread_pointer),
            numbers,
            &mut define,
            &mut words,
        );
    }
    words
}

/// Adds what one state of a thread leads to.
fn collect(
    memory: &impl Memory,
    layout: &python_layout,
    (state, thread_pointer): (u64, u64),
    numbers: &mut Numbers,
    define: &mut impl FnMut(Function) -> u32,
    words: &mut Vec<u64>,
) -> Option<()> {
    let field = |object: u64, word: u16| memory.word(object.wrapping_add(8 * u64::from(word)));
    if u64::from(layout.thread_id) >= THREAD_WORDS
        || field(state, layout.thread_id)? != thread_pointer
    {
        return None;
    }
    let head = field(state, layout.thread_head)?;
    let has_cframes = layout.has_cframes != 0;
    let (mut cframe, mut frame) = match has_cframes {
        true => (head, field(head, layout.cframe_frame)?),
        false => (0, head),
    };
    let mut call = words.len();
    words.push(cframe);
    for _ in 0..MOST_FRAMES {
        if frame == 0 || words.len() >= MOST {
            break;
        }
        let mut bytes = [0; FRAME_WORDS * 8];
        memory.read(frame, &mut bytes)?;
        let is_entry =
            u16::from(*bytes.get(usize::from(layout.frame_entry))?) == layout.entry_value;
        let at = |word: u16| {
            let from = 8 * usize::from(word);
            let word = bytes.get(from..from + 8)?;
            Some(u64::from_ne_bytes(word.try_into().ok()?))
        };
        if !is_entry || layout.entry_is_own == 0 {
            let code = at(layout.frame_code)?;
            let number = match numbers.get(&code) {
                Some(&number) => number,
                None => {
                    let function = function(memory, layout, code)?;
                    // What is left of the frame of a thread that went on.
                    let is_stale = function.as_ref().is_some_and(|it| it.name.is_empty());
                    let number = function.filter(|_| !is_stale).map_or(0, &mut *define);
                    if !is_stale {
                        numbers.insert(code, number);
                    }
                    number
                }
            };
            if number != 0 {
                words.push(NUMBERED | u64::from(number));
            }
        }
        if is_entry {
            if has_cframes {
                cframe = field(cframe, layout.cframe_previous)?;
            } else {
                words[call] = frame;
            }
            call = words.len();
            words.push(cframe);
        }
        frame = at(layout.frame_previous)?;
    }
    Some(())
}

/// The state of a thread in another interpreter than that of its `first` state, where it runs functions; of
/// several the innermost on the stack (`python_entered` of `bpf/python.h`).
fn entered(memory: &impl Memory, runtime: Runtime, thread_pointer: u64, first: u64) -> Option<u64> {
    let layout = &runtime.layout;
    let field = |object: u64, word: u64| memory.word(object.wrapping_add(8 * word));
    if layout.interpreters == 0 {
        return None;
    }
    let head = runtime.state.wrapping_add(layout.interpreters.into());
    let mut interpreter = memory.word(head)?;
    // There is only one.
    if field(interpreter, INTERPRETER_NEXT)? == 0 {
        return None;
    }
    let mut innermost: Option<(u64, u64)> = None;
    for _ in 0..MOST_INTERPRETERS {
        if interpreter == 0 {
            break;
        }
        let mut state = field(interpreter, INTERPRETER_STATES)?;
        for _ in 0..MOST_STATES {
            if state == 0 {
                break;
            }
            let is_its = field(state, layout.thread_id.into())? == thread_pointer;
            let cframe = field(state, layout.thread_head.into())?;
            let frame = memory.word(cframe.wrapping_add(8 * u64::from(layout.cframe_frame)));
            let is_at_work = state != first && is_its && frame.is_some_and(|frame| frame != 0);
            if is_at_work && innermost.is_none_or(|(other, _)| cframe < other) {
                innermost = Some((cframe, state));
            }
            state = field(state, STATE_NEXT)?;
        }
        interpreter = field(interpreter, INTERPRETER_NEXT)?;
    }
    innermost.map(|(_, state)| state)
}

/// A function that is being run, by its frame.
pub(super) struct Frame {
    pub address: u64,
    pub code: u64,
}

/// A thread with what it runs.
pub(super) struct Thread {
    /// Where it keeps what is its own.
    pub pointer: u64,
    pub tid: u32,
    /// The functions that it is in, the innermost first.
    pub frames: Vec<Frame>,
}

/// All threads of a program, of very many or very deep ones some. Only of versions whose threads are found from their
/// interpreter.
pub(super) fn threads_of(memory: &impl Memory, runtime: Runtime) -> Vec<Thread> {
    /// The most frames of all of them.
    const MOST: usize = 16_384;
    let layout = &runtime.layout;
    let field = |object: u64, word: u64| memory.word(object.wrapping_add(8 * word));
    let mut room = MOST;
    // One that goes on meanwhile may lead nowhere.
    let mut frames = |state: u64| -> Option<Vec<Frame>> {
        let cframe = field(state, layout.thread_head.into())?;
        let mut frame = field(cframe, layout.cframe_frame.into())?;
        let mut frames = Vec::new();
        while frame != 0 && frames.len() < MOST_FRAMES && room > 0 {
            room -= 1;
            let words: [u64; FRAME_WORDS] = memory.words_at(frame)?;
            frames.push(Frame {
                address: frame,
                code: *words.get(usize::from(layout.frame_code))?,
            });
            frame = *words.get(usize::from(layout.frame_previous))?;
        }
        Some(frames)
    };
    let mut threads = Vec::new();
    let mut of_all = || -> Option<()> {
        if layout.interpreters == 0 {
            return None;
        }
        let mut interpreter =
            memory.word(runtime.state.wrapping_add(layout.interpreters.into()))?;
        for _ in 0..MOST_INTERPRETERS {
            if interpreter == 0 {
                break;
            }
            let mut state = field(interpreter, INTERPRETER_STATES)?;
            while state != 0 && threads.len() < MOST {
                threads.push(Thread {
                    pointer: field(state, layout.thread_id.into())?,
                    tid: field(state, STATE_TID)? as u32,
                    frames: frames(state).unwrap_or_default(),
                });
                state = field(state, STATE_NEXT)?;
            }
            interpreter = field(interpreter, INTERPRETER_NEXT)?;
        }
        Some(())
    };
    let _ = of_all();
    threads
}

/// The interpreter's state of a thread.
fn thread_state(memory: &impl Memory, runtime: Runtime, thread_pointer: u64) -> Option<u64> {
    let key = memory.word(runtime.state.wrapping_add(runtime.layout.key.into()))?;
    let (is_set, key) = (key as u32, (key >> 32) as u32);
    if is_set == 0 {
        return None;
    }
    thread_value(memory, thread_pointer, key)
}

/// The function of a code object; none inside if the interpreter made it up for itself.
pub(super) fn function(
    memory: &impl Memory,
    layout: &python_layout,
    code: u64,
) -> Option<Option<Function>> {
    let mut bytes = [0; CODE_BYTES];
    memory.read(code.wrapping_add(CODE_SIZE), &mut bytes)?;
    let u32_at = |at: usize| {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        u32::from_ne_bytes(word)
    };
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    if u32_at(32) & CODE_OWN != 0 {
        return Some(None);
    }
    let counts = if layout.late_line != 0 { 5 } else { 4 };
    Some(Some(Function {
        line: u32_at(36 + 4 * counts),
        name: read_text(memory, layout, u64_at(112), NAME_BYTES),
        file: read_text(memory, layout, u64_at(96), FILE_BYTES),
    }))
}

/// A text, or the end of a long one; empty if it cannot be read.
pub(super) fn read_text(
    memory: &impl Memory,
    layout: &python_layout,
    object: u64,
    most: usize,
) -> String {
    let read = || -> Option<String> {
        let length = memory.word(object.wrapping_add(TEXT_LENGTH))?;
        let state = memory.word(object.wrapping_add(TEXT_LENGTH + 16))? as u32;
        if state & COMPACT == 0 || length > 1 << 20 {
            return None;
        }
        let data = match state & ASCII {
            0 => layout.compact_data,
            _ => layout.ascii_data,
        };
        let size = length as usize * (state >> 2 & 7) as usize;
        let kept = size.min(most);
        let mut bytes = vec![0; kept];
        let from = object.wrapping_add(u64::from(data) + (size - kept) as u64);
        memory.read(from, &mut bytes)?;
        Some(text::decode(length as u32, state, &bytes))
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> Option<()> {
            None
        }
    }

    /// Memory in which every word is the same.
    struct Same(u64);

    impl Memory for Same {
        fn read(&self, _: u64, into: &mut [u8]) -> Option<()> {
            for (byte, same) in into.iter_mut().zip(self.0.to_ne_bytes().iter().cycle()) {
                *byte = *same;
            }
            Some(())
        }
    }

    /// A frame that is its own caller, and whose function has no name, comes to an end.
    #[test]
    fn circles_come_to_an_end() {
        const WORD: u64 = 0x1000;
        // SAFETY: a struct of plain numbers, of which all zeroes is a value.
        let mut layout: python_layout = unsafe { std::mem::zeroed() };
        layout.entry_value = 1;
        let runtime = Runtime { state: 8, layout };
        let mut define = |_| panic!("there is no function");
        let words = read(&Same(WORD), runtime, WORD, &mut Numbers::new(), &mut define);
        assert_eq!(words, [0]);
    }

    /// Memory that cannot be read gives no functions.
    #[test]
    fn unreadable_memory_tells_nothing() {
        // SAFETY: a struct of plain numbers, of which all zeroes is a value.
        let layout: python_layout = unsafe { std::mem::zeroed() };
        let runtime = Runtime {
            state: 1 << 40,
            layout,
        };
        let mut define = |_| panic!("there is no function");
        let words = read(&Nothing, runtime, 1 << 41, &mut Numbers::new(), &mut define);
        assert!(words.is_empty());
    }
}
