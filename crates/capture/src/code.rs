//! Code addresses become frames that outlive their process.
//!
//! An address means something only with the mappings of its process at that moment. Here it is
//! turned at once into a module and an offset in it; equal frames and equal stacks get one id,
//! whichever process and run they come from, so that each is stored and named once.

use std::collections::{BTreeMap, HashMap};

use hangdog_symbols::place::Place;
use hangdog_trace::Tables;
use hangdog_trace::ids::{FrameId, KERNEL_PROCESS, ModuleId, NO_STACK, NONE, StackId, Upid};
use hangdog_trace::tables::{Frame, Frames, Mapping, Module, Modules, Stack, Symbol};
use hangdog_trace::words::{ModuleKind, StackEnd};

use crate::function::{Function, number_of};
use crate::procfs;
use crate::records::RawMapping;

/// The executable memory of one process: start → what is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressSpace(BTreeMap<u64, Mapped>);

#[derive(Clone, Copy, Debug)]
struct Mapped {
    end: u64,
    file_offset: u64,
    module: ModuleId,
}

impl AddressSpace {
    fn find(&self, address: u64) -> Option<(u64, Mapped)> {
        let (&start, &mapped) = self.0.range(..=address).next_back()?;
        (address < mapped.end).then_some((start, mapped))
    }

    /// An exec makes it empty.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn insert(&mut self, start: u64, mapped: Mapped) {
        let covered: Vec<u64> = self
            .0
            .range(..mapped.end)
            .rev()
            .take_while(|(_, old)| old.end > start)
            .map(|(&start, _)| start)
            .collect();
        covered.iter().for_each(|start| {
            self.0.remove(start);
        });
        self.0.insert(start, mapped);
    }
}

/// All modules, frames and stacks met so far.
#[derive(Default)]
pub(crate) struct Code {
    module_ids: HashMap<(ModuleKind, String, String, Upid), ModuleId>,
    build_ids: HashMap<String, String>,
    frame_ids: HashMap<(ModuleId, u64), FrameId>,
    stack_ids: HashMap<(Upid, StackEnd, Box<[FrameId]>), StackId>,
    /// By the numbers that stacks have.
    functions: HashMap<u32, FrameId>,
    /// As they were written, for naming the frames in the end.
    pub modules: Modules,
    pub frames: Frames,
    /// Lowest offset in its file from which a module was mapped.
    pub mapped_from: HashMap<ModuleId, u64>,
}

impl Code {
    fn module(
        &mut self,
        kind: ModuleKind,
        path: &str,
        build_id: &str,
        process: Upid,
        tables: &mut Tables,
    ) -> ModuleId {
        let key = (kind, path.to_owned(), build_id.to_owned(), process);
        if let Some(&id) = self.module_ids.get(&key) {
            return id;
        }
        let id = self.module_ids.len() as ModuleId;
        let row = Module {
            module: id,
            kind: kind.into(),
            path: path.into(),
            build_id: build_id.into(),
            process,
        };
        self.modules.push(row.clone());
        tables.modules.push(row);
        self.module_ids.insert(key, id);
        id
    }

    /// The build-id of a file, read once.
    fn build_id(&mut self, path: &str) -> String {
        self.build_ids
            .entry(path.to_owned())
            .or_insert_with(|| {
                let file = (path.to_owned(), Place::Path(path.into()));
                procfs::build_ids(&[file]).pop().unwrap_or_default()
            })
            .clone()
    }

    /// Adds a mapping to a process's memory.
    pub(crate) fn map(
        &mut self,
        ts: u64,
        process: Upid,
        space: &mut AddressSpace,
        mapping: &RawMapping,
        tables: &mut Tables,
    ) {
        let path = mapping.path.as_str();
        let module = if path == "[vdso]" {
            self.module(ModuleKind::Vdso, path, "", NONE, tables)
        } else if mapping.is_file() {
            let build_id = match mapping.build_id.as_str() {
                "" => self.build_id(path),
                known => known.to_owned(),
            };
            self.module(ModuleKind::File, path, &build_id, NONE, tables)
        } else {
            let name = if path.is_empty() { "[anonymous]" } else { path };
            self.module(ModuleKind::Anonymous, name, "", process, tables)
        };
        tables.mappings.push(Mapping {
            ts,
            process,
            start: mapping.start,
            end: mapping.end,
            file_offset: mapping.file_offset,
            module,
        });
        let (end, file_offset) = (mapping.end, mapping.file_offset);
        let lowest = self.mapped_from.entry(module).or_insert(file_offset);
        *lowest = file_offset.min(*lowest);
        space.insert(
            mapping.start,
            Mapped {
                end,
                file_offset,
                module,
            },
        );
    }

    fn frame(&mut self, module: ModuleId, offset: u64, tables: &mut Tables) -> FrameId {
        let next = self.frame_ids.len() as FrameId;
        let id = *self.frame_ids.entry((module, offset)).or_insert(next);
        if id == next {
            let row = Frame {
                frame: id,
                module,
                offset,
            };
            self.frames.push(row.clone());
            tables.frames.push(row);
        }
        id
    }

    /// The frame at which the kernel's function at `address` begins.
    pub(crate) fn kernel_function(&mut self, address: u64, tables: &mut Tables) -> FrameId {
        let module = self.module(ModuleKind::Kernel, "[kernel]", "", NONE, tables);
        self.frame(module, address, tables)
    }

    /// A function that stacks have as `number`.
    pub(crate) fn function(&mut self, number: u32, function: &Function, tables: &mut Tables) {
        let module = self.module(ModuleKind::Script, &function.file, "", NONE, tables);
        let known = self.frame_ids.len();
        let frame = self.frame(module, function.offset(), tables);
        if self.frame_ids.len() > known {
            tables.symbols.push(Symbol {
                frame,
                inline_depth: 0,
                function: function.name.clone(),
                function_offset: 0,
                source: function.source(),
                kernel_module: String::new(),
            });
        }
        self.functions.insert(number, frame);
    }

    /// The id of a stack given by addresses, innermost first; `space` is `None` for a kernel stack.
    pub(crate) fn stack(
        &mut self,
        process: Upid,
        space: Option<&AddressSpace>,
        addresses: &[u64],
        end: StackEnd,
        tables: &mut Tables,
    ) -> StackId {
        let mut frames = Vec::with_capacity(addresses.len());
        for (depth, &address) in addresses.iter().enumerate() {
            if let Some(number) = number_of(address).filter(|_| space.is_some()) {
                // One that could not be told was counted as lost.
                frames.extend(self.functions.get(&number));
                continue;
            }
            // All but the innermost are return addresses: the call is in front of them, and may
            // be the last instruction of its function.
            let address = if depth == 0 {
                address
            } else {
                address.saturating_sub(1)
            };
            let (module, offset) = match space {
                None => (
                    self.module(ModuleKind::Kernel, "[kernel]", "", NONE, tables),
                    address,
                ),
                Some(space) => match space.find(address) {
                    None => (NONE, address),
                    Some((start, mapped)) => match self.modules.kind[mapped.module as usize].into()
                    {
                        ModuleKind::File => (mapped.module, address - start + mapped.file_offset),
                        ModuleKind::Vdso => (mapped.module, address - start),
                        _ => (mapped.module, address),
                    },
                },
            };
            frames.push(self.frame(module, offset, tables));
        }
        if frames.is_empty() {
            return NO_STACK;
        }
        let process = if space.is_none() {
            KERNEL_PROCESS
        } else {
            process
        };
        let next = self.stack_ids.len() as StackId + 1;
        let id = *self
            .stack_ids
            .entry((process, end, frames.as_slice().into()))
            .or_insert(next);
        if id == next {
            tables.stacks.push(Stack {
                stack: id,
                process,
                frames,
                end: end.into(),
            });
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, file_offset: u64, path: &str) -> RawMapping {
        RawMapping {
            start,
            end,
            file_offset,
            path: path.into(),
            build_id: "ab".into(),
        }
    }

    /// The same library at two places in two processes gives the same frames; a return address is
    /// counted to the instruction before it; what nothing maps keeps its address.
    #[test]
    fn frames_do_not_depend_on_where_a_library_lies() {
        let (mut code, mut tables) = (Code::default(), Tables::default());
        let (mut one, mut two) = (AddressSpace::default(), AddressSpace::default());
        code.map(
            0,
            1,
            &mut one,
            &mapping(0x1000, 0x2000, 0x500, "/lib"),
            &mut tables,
        );
        code.map(
            0,
            2,
            &mut two,
            &mapping(0x9000, 0xa000, 0x500, "/lib"),
            &mut tables,
        );
        let first = code.stack(
            1,
            Some(&one),
            &[0x1010, 0x1021, 0x5],
            StackEnd::Root,
            &mut tables,
        );
        let second = code.stack(
            2,
            Some(&two),
            &[0x9010, 0x9021, 0x5],
            StackEnd::Root,
            &mut tables,
        );
        assert_ne!(first, second, "they are stacks of two processes");
        assert_eq!(tables.stacks.frames[0], tables.stacks.frames[1]);
        assert_eq!(tables.frames.offset, [0x510, 0x520, 0x4]);
        assert_eq!(tables.frames.module, [0, 0, NONE]);
        assert_eq!(
            code.stack(
                1,
                Some(&one),
                &[0x1010, 0x1021, 0x5],
                StackEnd::Root,
                &mut tables
            ),
            first
        );
        assert_eq!(tables.stacks.len(), 2);
    }

    /// A Python function in a stack is a frame of its file, named at once, and the same wherever it
    /// is met; one that could not be told is left out. In the kernel no word stands for one.
    #[test]
    fn python_functions_are_frames_of_their_file() {
        let (mut code, mut tables) = (Code::default(), Tables::default());
        let space = AddressSpace::default();
        let function = Function {
            name: "Worker.serve".into(),
            file: "/shop.py".into(),
            line: 12,
        };
        code.function(1, &function, &mut tables);
        code.function(2, &function, &mut tables);
        assert_eq!(tables.modules.path, ["/shop.py"]);
        assert_eq!(tables.modules.kind, [u8::from(ModuleKind::Script)]);
        assert_eq!(tables.frames.offset[0] as u32, 12);
        assert_eq!(tables.symbols.function, ["Worker.serve"]);
        assert_eq!(tables.symbols.source, ["/shop.py:12"]);

        let word = |code: u64| 1 << 62 | code;
        let addresses = [0x50, word(2), word(0), word(1), 0x61];
        code.stack(1, Some(&space), &addresses, StackEnd::Root, &mut tables);
        assert_eq!(tables.stacks.frames[0], [1, 0, 0, 2]);
        assert_eq!(tables.frames.offset[1..], [0x50, 0x60]);
        code.stack(0, None, &[word(1)], StackEnd::Root, &mut tables);
        assert_eq!(tables.stacks.frames[1], [3]);
        assert_eq!(tables.frames.offset[3], word(1));
    }

    /// A mapping hides those that it overlaps.
    #[test]
    fn a_later_mapping_wins() {
        let (mut code, mut tables) = (Code::default(), Tables::default());
        let mut space = AddressSpace::default();
        for (start, end, path) in [(10, 20, "/a"), (20, 30, "/b"), (15, 25, "/c")] {
            code.map(0, 1, &mut space, &mapping(start, end, 0, path), &mut tables);
        }
        let module = |address| space.find(address).map(|(_, mapped)| mapped.module);
        assert_eq!(
            (module(14), module(15), module(24), module(25)),
            (None, Some(2), Some(2), None)
        );
    }
}
