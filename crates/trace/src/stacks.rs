//! Stacks as people read them: ids become functions, modules and source lines.
//!
//! Four tables are joined by id when they are asked for. A frame whose code was inlined into
//! another function's reads as one frame for each of these functions. A frame or module that is
//! missing (its definition was lost) reads as unknown.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use crate::error::Result;
use crate::ids::{FrameId, StackId};
use crate::reader::Trace;
use crate::rows::Rows;
use crate::tables::{Frames, Modules, Stacks, Symbols};
use crate::words::{ModuleKind, StackEnd};

/// A frame with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedFrame<'a> {
    /// Demangled name of the function, if it has one.
    pub function: Option<&'a str>,
    /// Offset from the function's start, bytes; 0 if it is inlined.
    pub function_offset: u64,
    /// Whether the function is inlined into that of the next frame outwards.
    pub inlined: bool,
    /// File name of the module, without its folders, or the kernel module's name in brackets; none
    /// if no mapping is known.
    pub module: Option<&'a str>,
    /// What its code was mapped from; unknown if no mapping is known.
    pub kind: ModuleKind,
    /// Offset in the module, or the bare address where there is none.
    pub offset: u64,
    /// Source as file:line; empty if not known.
    pub source: &'a str,
}

impl ResolvedFrame<'_> {
    /// Whether it is the kernel's code.
    pub fn is_kernel(&self) -> bool {
        self.kind == ModuleKind::Kernel
    }
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
    stack_rows: Rows,
    frame_rows: Rows,
    module_rows: Rows,
    /// Rows of `symbols`, those of a frame together, the innermost function first.
    symbol_rows: Vec<u32>,
    /// Which of `symbol_rows` are a frame's.
    symbol_ranges: HashMap<FrameId, Range<u32>>,
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
        let (symbol_rows, symbol_ranges) = by_frame(&symbols);
        StackTable {
            stack_rows: Rows::new(&stacks.stack),
            frame_rows: Rows::new(&frames.frame),
            module_rows: Rows::new(&modules.module),
            symbol_rows,
            symbol_ranges,
            frames,
            modules,
            symbols,
            stacks,
        }
    }

    /// The ids of all stacks, in the order of their rows.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = StackId> + '_ {
        self.stacks.stack.iter().copied()
    }

    /// The row of a stack; none for no stack or one that is not known. Of several rows with one
    /// id, which only a damaged trace has, the last.
    pub fn row(&self, stack: StackId) -> Option<usize> {
        self.stack_rows.get(stack)
    }

    /// The frame ids of a stack, innermost first; empty for no stack or one that is not known.
    pub fn frame_ids(&self, stack: StackId) -> &[FrameId] {
        self.row(stack)
            .map_or(&[], |row| self.stacks.frames[row].as_slice())
    }

    /// A stack's frames, innermost first, inlined functions before those that they are inlined
    /// into; none for no stack or one that is not known.
    pub fn stack(&self, stack: StackId) -> impl Iterator<Item = ResolvedFrame<'_>> {
        self.frame_ids(stack)
            .iter()
            .flat_map(|&frame| self.frame(frame))
    }

    /// Why a stack goes no further out.
    pub fn end(&self, stack: StackId) -> StackEnd {
        self.row(stack)
            .map_or(StackEnd::Unknown, |row| self.stacks.end[row].into())
    }

    /// The functions at one frame, at least one: those inlined there, innermost first, then the
    /// one whose code it is.
    pub fn frame(&self, frame: FrameId) -> impl Iterator<Item = ResolvedFrame<'_>> {
        let row = self.frame_rows.get(frame);
        let module = row.and_then(|row| self.module_rows.get(self.frames.module[row]));
        let bare = ResolvedFrame {
            function: None,
            function_offset: 0,
            inlined: false,
            module: module
                .map(|row| self.modules.path[row].as_str())
                .map(|path| path.rsplit('/').next().unwrap_or(path)),
            kind: module.map_or(ModuleKind::Unknown, |row| self.modules.kind[row].into()),
            offset: row.map_or(0, |row| self.frames.offset[row]),
            source: "",
        };
        let range = self.symbol_ranges.get(&frame);
        let rows = range.map(|range| &self.symbol_rows[range.start as usize..range.end as usize]);
        let named = rows
            .into_iter()
            .flatten()
            .map(move |&row| self.named(bare, row as usize));
        named.chain(rows.is_none().then_some(bare))
    }

    /// The frame with the names that a row of symbols has.
    fn named<'a>(&'a self, bare: ResolvedFrame<'a>, row: usize) -> ResolvedFrame<'a> {
        let function = self.symbols.function[row].as_str();
        let kernel_module = self.symbols.kernel_module[row].as_str();
        ResolvedFrame {
            function: (!function.is_empty()).then_some(function),
            function_offset: self.symbols.function_offset[row],
            inlined: self.symbols.inline_depth[row] > 0,
            module: match kernel_module {
                "" => bare.module,
                module => Some(module),
            },
            source: &self.symbols.source[row],
            ..bare
        }
    }
}

/// The rows of symbols sorted by frame, each frame's from the innermost function outwards, and
/// which of them each frame has.
fn by_frame(symbols: &Symbols) -> (Vec<u32>, HashMap<FrameId, Range<u32>>) {
    let key = |&row: &u32| {
        let row = row as usize;
        (symbols.frame[row], Reverse(symbols.inline_depth[row]))
    };
    let mut sorted: Vec<u32> = (0..symbols.len() as u32).collect();
    sorted.sort_by_key(key);
    // A function stands at a depth once, whatever a damaged trace says.
    sorted.dedup_by_key(|row| key(row));
    let mut start = 0;
    let ranges = sorted
        .chunk_by(|&a, &b| symbols.frame[a as usize] == symbols.frame[b as usize])
        .map(|rows| {
            let range = start..start + rows.len() as u32;
            start = range.end;
            (symbols.frame[rows[0] as usize], range)
        })
        .collect();
    (sorted, ranges)
}
