//! Stacks that are written as their functions become frames, symbols and modules.

use std::collections::HashMap;

use super::Parsed;
use super::values::word_of;
use crate::all::Tables;
use crate::ids::{FrameId, KERNEL_PROCESS, ModuleId, NONE, StackId, Upid};
use crate::tables::{Frame, Module, Stack, Symbol};
use crate::words::{ModuleKind, StackEnd};

/// Modules that stacks' functions are in.
const USER_MODULE: ModuleId = 0;
const KERNEL_MODULE: ModuleId = 1;

/// The frames and stacks so far: what is written twice is one.
#[derive(Default)]
pub(super) struct Stacks {
    frames: HashMap<(ModuleId, String), FrameId>,
    stacks: HashMap<(Upid, Vec<FrameId>, u8), StackId>,
}

impl Stacks {
    pub(super) fn user(
        &mut self,
        text: &str,
        process: Upid,
        tables: &mut Tables,
    ) -> Parsed<StackId> {
        self.stack(text, USER_MODULE, process, tables)
    }

    pub(super) fn kernel(&mut self, text: &str, tables: &mut Tables) -> Parsed<StackId> {
        self.stack(text, KERNEL_MODULE, KERNEL_PROCESS, tables)
    }

    /// The frame of a kernel function.
    pub(super) fn kernel_frame(&mut self, function: &str, tables: &mut Tables) -> FrameId {
        self.frame(function, KERNEL_MODULE, tables)
    }

    fn stack(
        &mut self,
        text: &str,
        module: ModuleId,
        process: Upid,
        tables: &mut Tables,
    ) -> Parsed<StackId> {
        let (frames, end) = match text.split_once(";!") {
            Some((frames, end)) => (frames, word_of(StackEnd::ALL, end)?.into()),
            None => (text, 0),
        };
        let frames: Vec<FrameId> = frames
            .split(';')
            .map(|functions| self.frame(functions, module, tables))
            .collect();
        let new = self.stacks.len() as StackId + 1;
        let key = (process, frames, end);
        Ok(*self
            .stacks
            .entry(key)
            .or_insert_with_key(|(process, frames, end)| {
                tables.stacks.push(Stack {
                    stack: new,
                    process: *process,
                    frames: frames.clone(),
                    end: *end,
                });
                new
            }))
    }

    fn frame(&mut self, functions: &str, module: ModuleId, tables: &mut Tables) -> FrameId {
        let frame = self.frames.len() as FrameId;
        let key = (module, functions.to_owned());
        *self.frames.entry(key).or_insert_with(|| {
            tables.frames.push(Frame {
                frame,
                module,
                offset: 0x1000 + u64::from(frame) * 16,
            });
            // The last is the function whose code it is, the others are inlined into it.
            for (inline_depth, function) in (0..).zip(functions.rsplit('^')) {
                let (function, source) = function.split_once('@').unwrap_or((function, ""));
                tables.symbols.push(Symbol {
                    frame,
                    inline_depth,
                    function: function.to_owned(),
                    function_offset: 0,
                    source: source.to_owned(),
                    kernel_module: String::new(),
                });
            }
            frame
        })
    }
}

/// Adds the modules that the frames, if there are any, are in.
pub(super) fn declare_modules(tables: &mut Tables) {
    if tables.frames.is_empty() {
        return;
    }
    for (module, kind, path) in [
        (USER_MODULE, ModuleKind::File, "/usr/bin/app"),
        (KERNEL_MODULE, ModuleKind::Kernel, "[kernel]"),
    ] {
        tables.modules.push(Module {
            module,
            kind: kind.into(),
            path: path.to_owned(),
            build_id: String::new(),
            process: NONE,
        });
    }
}
