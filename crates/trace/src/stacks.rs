//! Stacks as people read them: ids become functions, modules and source lines.
//!
//! Four tables are joined by id when they are asked for. A frame or module that is missing (its
//! definition was lost) reads as unknown.

use std::collections::HashMap;
use std::fmt;

use crate::error::Result;
use crate::ids::{FrameId, ModuleId, StackId};
use crate::reader::Trace;
use crate::tables::{Frames, Modules, Stacks, Symbols};
use crate::words::ModuleKind;

/// A frame with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedFrame<'a> {
    /// Demangled name of the function, if it has one.
    pub function: Option<&'a str>,
    /// Offset from the function's start, bytes.
    pub function_offset: u64,
    /// File name of the module, without its folders; none if no mapping is known.
    pub module: Option<&'a str>,
    /// Whether it is the kernel's code.
    pub kernel: bool,
    /// Offset in the module, or the bare address where there is none.
    pub offset: u64,
    /// Source as file:line; empty if not known.
    pub source: &'a str,
}

/// The function's name, or `module+0xoffset`, or the bare address.
impl fmt::Display for ResolvedFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.function, self.module) {
            (Some(function), _) => f.write_str(function),
            (None, Some(module)) => write!(f, "{module}+{:#x}", self.offset),
            (None, None) => write!(f, "{:#x}", self.offset),
        }
    }
}

/// All stacks of a trace.
#[derive(Clone, Debug, Default)]
pub struct StackTable {
    frames: Frames,
    modules: Modules,
    symbols: Symbols,
    stacks: Stacks,
    stack_rows: HashMap<StackId, u32>,
    frame_rows: HashMap<FrameId, u32>,
    module_rows: HashMap<ModuleId, u32>,
    symbol_rows: HashMap<FrameId, u32>,
}

impl StackTable {
    /// Reads the stacks of a trace.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn load(trace: &Trace) -> Result<StackTable> {
        Ok(StackTable::new(
            trace.read()?,
            trace.read()?,
            trace.read()?,
            trace.read()?,
        ))
    }

    /// Joins the tables.
    pub fn new(stacks: Stacks, frames: Frames, modules: Modules, symbols: Symbols) -> StackTable {
        StackTable {
            stack_rows: rows(&stacks.stack),
            frame_rows: rows(&frames.frame),
            module_rows: rows(&modules.module),
            symbol_rows: rows(&symbols.frame),
            frames,
            modules,
            symbols,
            stacks,
        }
    }

    /// The frame ids of a stack, innermost first; empty for no stack or one that is not known.
    pub fn frame_ids(&self, stack: StackId) -> &[FrameId] {
        match self.stack_rows.get(&stack) {
            Some(&row) => &self.stacks.frames[row as usize],
            None => &[],
        }
    }

    /// A stack's frames, innermost first; none for no stack or one that is not known.
    pub fn stack(&self, stack: StackId) -> impl ExactSizeIterator<Item = ResolvedFrame<'_>> {
        self.frame_ids(stack).iter().map(|&frame| self.frame(frame))
    }

    /// One frame.
    pub fn frame(&self, frame: FrameId) -> ResolvedFrame<'_> {
        let row = self.frame_rows.get(&frame).map(|&row| row as usize);
        let module = row
            .and_then(|row| self.module_rows.get(&self.frames.module[row]))
            .map(|&module| module as usize);
        let symbol = self.symbol_rows.get(&frame).map(|&row| row as usize);
        ResolvedFrame {
            function: symbol
                .map(|row| self.symbols.function[row].as_str())
                .filter(|name| !name.is_empty()),
            function_offset: symbol.map_or(0, |row| self.symbols.function_offset[row]),
            module: module
                .map(|row| self.modules.path[row].as_str())
                .map(|path| path.rsplit('/').next().unwrap_or(path)),
            kernel: module
                .is_some_and(|row| ModuleKind::from(self.modules.kind[row]) == ModuleKind::Kernel),
            offset: row.map_or(0, |row| self.frames.offset[row]),
            source: symbol.map_or("", |row| &self.symbols.source[row]),
        }
    }
}

/// Row numbers by id.
fn rows(ids: &[u32]) -> HashMap<u32, u32> {
    ids.iter().zip(0..).map(|(&id, row)| (id, row)).collect()
}
