//! Names, frames and stacks that are written once and referred to by number.

use std::collections::HashMap;

use hangdog_trace::ids::NO_STACK;
use hangdog_trace::stacks::ResolvedFrame;

use super::proto::{Callstack, Frame, InternedData, InternedName, InternedString, Mapping};
use crate::Source;
use crate::fold::Place;
use crate::stack::Entry;

/// Numbers that were given so far; 0 is none.
#[derive(Default)]
pub(crate) struct Interned {
    places: HashMap<Place, u64>,
    frames: HashMap<FrameKey, u64>,
    functions: HashMap<String, u64>,
    modules: HashMap<String, u64>,
    files: HashMap<String, u64>,
    events: HashMap<String, u64>,
    annotations: HashMap<&'static str, u64>,
    values: HashMap<String, u64>,
    categories: HashMap<&'static str, u64>,
}

/// What makes frames the same: function, module, offset, file and line.
type FrameKey = (u64, u64, u64, u64, u32);

/// The number of a key, and whether it is new.
fn number<K: Eq + std::hash::Hash>(map: &mut HashMap<K, u64>, key: K) -> (u64, bool) {
    let next = map.len() as u64 + 1;
    match map.entry(key) {
        std::collections::hash_map::Entry::Occupied(entry) => (*entry.get(), false),
        std::collections::hash_map::Entry::Vacant(entry) => (*entry.insert(next), true),
    }
}

fn text(iid: u64, text: &str) -> InternedString {
    InternedString {
        iid: Some(iid),
        str: Some(text.as_bytes().to_vec()),
    }
}

impl Interned {
    /// The number of an event's name.
    pub(crate) fn event(&mut self, name: &str, data: &mut InternedData) -> u64 {
        if let Some(&iid) = self.events.get(name) {
            return iid;
        }
        let (iid, _) = number(&mut self.events, name.to_owned());
        data.event_names.push(InternedName {
            iid: Some(iid),
            name: Some(name.into()),
        });
        iid
    }

    /// The number of a category of events.
    pub(crate) fn category(&mut self, name: &'static str, data: &mut InternedData) -> u64 {
        let (iid, is_new) = number(&mut self.categories, name);
        if is_new {
            data.event_categories.push(InternedName {
                iid: Some(iid),
                name: Some(name.into()),
            });
        }
        iid
    }

    /// The number of an annotation's value.
    pub(crate) fn value(&mut self, value: &str, data: &mut InternedData) -> u64 {
        if let Some(&iid) = self.values.get(value) {
            return iid;
        }
        let (iid, _) = number(&mut self.values, value.to_owned());
        data.debug_annotation_string_values.push(text(iid, value));
        iid
    }

    /// The number of an annotation's name.
    pub(crate) fn annotation(&mut self, name: &'static str, data: &mut InternedData) -> u64 {
        let (iid, is_new) = number(&mut self.annotations, name);
        if is_new {
            data.debug_annotation_names.push(InternedName {
                iid: Some(iid),
                name: Some(name.into()),
            });
        }
        iid
    }

    /// The number of the stack at a place; none where there is none.
    pub(crate) fn stack(
        &mut self,
        source: &Source<'_>,
        place: Place,
        data: &mut InternedData,
    ) -> Option<u64> {
        if place.is_none() {
            return None;
        }
        if let Some(&iid) = self.places.get(&place) {
            return Some(iid);
        }
        let mut frames: Vec<u64> = [place.kernel, place.user]
            .into_iter()
            .filter(|&stack| stack != NO_STACK)
            .flat_map(|stack| source.stacks.stack(stack))
            .map(|frame| self.frame(frame, data))
            .collect();
        frames.reverse();
        let (iid, _) = number(&mut self.places, place);
        data.callstacks.push(Callstack {
            iid: Some(iid),
            frame_ids: frames,
        });
        Some(iid)
    }

    fn frame(&mut self, frame: ResolvedFrame<'_>, data: &mut InternedData) -> u64 {
        let name = Entry::function(frame).name;
        let (function, is_new) = number(&mut self.functions, name.clone().into_owned());
        if is_new {
            data.function_names.push(text(function, &name));
        }
        let module = self.module(frame.module.unwrap_or("[unknown]"), data);
        let (file, line) = match frame.source.rsplit_once(':') {
            None => (0, 0),
            Some((file, line)) => {
                let (iid, is_new) = number(&mut self.files, file.to_owned());
                if is_new {
                    data.source_paths.push(text(iid, file));
                }
                (iid, line.parse().unwrap_or(0))
            }
        };
        let key = (function, module, frame.offset, file, line);
        let (iid, is_new) = number(&mut self.frames, key);
        if is_new {
            data.frames.push(Frame {
                iid: Some(iid),
                function_name_id: Some(function),
                mapping_id: Some(module),
                rel_pc: Some(frame.offset),
                source_path_iid: (file != 0).then_some(file),
                line_number: (line != 0).then_some(line),
            });
        }
        iid
    }

    fn module(&mut self, name: &str, data: &mut InternedData) -> u64 {
        let (iid, is_new) = number(&mut self.modules, name.to_owned());
        if is_new {
            data.mapping_paths.push(text(iid, name));
            data.mappings.push(Mapping {
                iid: Some(iid),
                path_string_ids: vec![iid],
            });
        }
        iid
    }
}
