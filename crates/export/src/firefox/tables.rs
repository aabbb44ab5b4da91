//! The tables of a thread, as columns, under the names that the format has for them.

use std::collections::HashMap;
use std::hash::Hash;

use hangdog_trace::stacks::ResolvedFrame;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Category;
use crate::stack::Entry;

/// Milliseconds, as the format has times.
pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Modules by name, for all threads.
#[derive(Default)]
pub(crate) struct Libraries {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Libraries {
    fn number(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.names.push(name.into());
        self.numbers.insert(name.into(), self.names.len() - 1);
        self.names.len() - 1
    }
}

impl Serialize for Libraries {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.names.len()))?;
        for name in &self.names {
            list.serialize_element(&json!({
                "name": name, "path": name, "debugName": name, "debugPath": name,
                "breakpadId": "", "codeId": null, "arch": null,
            }))?;
        }
        list.end()
    }
}

/// The place of a key among the rows; a new one is added by `add`.
fn place<K: Eq + Hash>(map: &mut HashMap<K, usize>, key: K, add: impl FnOnce()) -> usize {
    let next = map.len();
    *map.entry(key).or_insert_with(|| {
        add();
        next
    })
}

/// Strings, each once.
#[derive(Default)]
pub(crate) struct Strings {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Strings {
    pub(crate) fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.list.push(text.into());
        self.numbers.insert(text.into(), self.list.len() - 1);
        self.list.len() - 1
    }
}

impl Serialize for Strings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(to)
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameTable {
    length: usize,
    /// In the module; -1 for none.
    address: Vec<i64>,
    inline_depth: Vec<u32>,
    category: Vec<u8>,
    subcategory: Vec<u8>,
    func: Vec<usize>,
    native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<u8>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FuncTable {
    length: usize,
    name: Vec<usize>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    /// -1 for none.
    resource: Vec<i64>,
    file_name: Vec<Option<usize>>,
    line_number: Vec<Option<u32>>,
    column_number: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
pub(crate) struct ResourceTable {
    length: usize,
    lib: Vec<usize>,
    name: Vec<usize>,
    host: Vec<Option<usize>>,
    #[serde(rename = "type")]
    kind: Vec<u8>,
}

#[derive(Default, Serialize)]
pub(crate) struct StackColumns {
    length: usize,
    prefix: Vec<Option<usize>>,
    frame: Vec<usize>,
}

/// Symbols by address: none, functions have their names already.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NativeSymbols {
    length: usize,
    address: Vec<u64>,
    function_size: Vec<Option<u64>>,
    lib_index: Vec<usize>,
    name: Vec<usize>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleTable {
    length: usize,
    weight_type: &'static str,
    stack: Vec<Option<usize>>,
    time: Vec<f64>,
    weight: Vec<u64>,
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: Vec<u64>,
}

impl SampleTable {
    pub(crate) fn new() -> SampleTable {
        SampleTable {
            weight_type: "samples",
            ..SampleTable::default()
        }
    }

    /// Adds a sample at a time; `cpu` is what the thread ran since the one before. Both in ns.
    pub(crate) fn push(&mut self, ts: u64, stack: Option<usize>, cpu: u64, weight: u64) {
        self.length += 1;
        self.stack.push(stack);
        self.time.push(ms(ts));
        self.weight.push(weight);
        self.thread_cpu_delta.push(cpu / 1_000);
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MarkerTable {
    length: usize,
    category: Vec<u8>,
    data: Vec<MarkerData>,
    start_time: Vec<f64>,
    end_time: Vec<Option<f64>>,
    name: Vec<usize>,
    phase: Vec<u8>,
}

impl MarkerTable {
    /// Adds a marker: of an interval, or of a moment if there is no end.
    pub(crate) fn push(
        &mut self,
        start: u64,
        end: Option<u64>,
        name: usize,
        category: Category,
        data: MarkerData,
    ) {
        self.length += 1;
        self.category.push(category as u8);
        self.data.push(data);
        self.start_time.push(ms(start));
        self.end_time.push(end.map(ms));
        self.name.push(name);
        self.phase.push(end.is_some().into());
    }
}

/// What a marker says: strings by number.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(crate) enum MarkerData {
    Wait {
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<MarkerCause>,
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        waker: Option<usize>,
        /// How long it then waited for a CPU, ms.
        runnable: f64,
    },
    Wake {
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<MarkerCause>,
        wakee: usize,
    },
}

#[derive(Serialize)]
pub(crate) struct MarkerCause {
    pub(crate) stack: usize,
}

pub(crate) fn wait_schema() -> Value {
    json!({
        "name": "Wait",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "tooltipLabel": "{marker.name}",
        "tableLabel": "{marker.name}, woken by {marker.data.waker}",
        "chartLabel": "{marker.data.waker}",
        "description": "The thread was blocked.",
        "fields": [
            {"key": "object", "label": "On", "format": "unique-string", "searchable": true},
            {"key": "waker", "label": "Woken by", "format": "unique-string", "searchable": true},
            {"key": "runnable", "label": "Then waited for a CPU", "format": "duration"},
        ],
    })
}

pub(crate) fn wake_schema() -> Value {
    json!({
        "name": "Wake",
        "display": ["marker-chart", "marker-table"],
        "tooltipLabel": "Woke {marker.data.wakee}",
        "tableLabel": "Woke {marker.data.wakee}",
        "chartLabel": "{marker.data.wakee}",
        "description": "The thread made another one runnable.",
        "fields": [
            {"key": "wakee", "label": "Woke", "format": "unique-string", "searchable": true},
        ],
    })
}

/// What the stacks of a thread consist of.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) strings: Strings,
    pub(crate) frames: FrameTable,
    pub(crate) funcs: FuncTable,
    pub(crate) resources: ResourceTable,
    pub(crate) stacks: StackColumns,
    frame_numbers: HashMap<(usize, i64, u32, Category, Option<u32>), usize>,
    func_numbers: HashMap<(usize, i64, Option<usize>), usize>,
    resource_numbers: HashMap<usize, usize>,
    stack_numbers: HashMap<(Option<usize>, usize), usize>,
}

impl Code {
    /// The stack that has `frame` on top of `prefix`.
    pub(crate) fn stack(&mut self, prefix: Option<usize>, frame: usize) -> usize {
        let stacks = &mut self.stacks;
        place(&mut self.stack_numbers, (prefix, frame), || {
            stacks.length += 1;
            stacks.prefix.push(prefix);
            stacks.frame.push(frame);
        })
    }

    /// A frame that is no code.
    pub(crate) fn label(&mut self, name: &str, category: Category) -> usize {
        let func = self.func(name, -1, None);
        self.frame_of(func, -1, 0, category, None)
    }

    /// A frame of code; `depth` counts inlined functions.
    pub(crate) fn frame(
        &mut self,
        frame: ResolvedFrame<'_>,
        depth: u32,
        category: Category,
        libraries: &mut Libraries,
    ) -> usize {
        let resource = match frame.module {
            None => -1,
            Some(module) => self.resource(module, libraries) as i64,
        };
        let (file, line) = match frame.source.rsplit_once(':') {
            None => (None, None),
            Some((file, line)) => (Some(self.strings.number(file)), line.parse().ok()),
        };
        let func = self.func(&Entry::function(frame).name, resource, file);
        // A kernel address has its top bit set, which the format has no room for.
        let address = i64::try_from(frame.offset).unwrap_or(-1);
        self.frame_of(func, address, depth, category, line)
    }

    fn frame_of(
        &mut self,
        func: usize,
        address: i64,
        depth: u32,
        category: Category,
        line: Option<u32>,
    ) -> usize {
        let frames = &mut self.frames;
        let key = (func, address, depth, category, line);
        place(&mut self.frame_numbers, key, || {
            frames.length += 1;
            frames.address.push(address);
            frames.inline_depth.push(depth);
            frames.category.push(category as u8);
            frames.subcategory.push(0);
            frames.func.push(func);
            frames.native_symbol.push(None);
            frames.inner_window_id.push(0);
            frames.line.push(line);
            frames.column.push(None);
        })
    }

    fn func(&mut self, name: &str, resource: i64, file: Option<usize>) -> usize {
        let name = self.strings.number(name);
        let funcs = &mut self.funcs;
        place(&mut self.func_numbers, (name, resource, file), || {
            funcs.length += 1;
            funcs.name.push(name);
            funcs.is_js.push(false);
            funcs.relevant_for_js.push(false);
            funcs.resource.push(resource);
            funcs.file_name.push(file);
            funcs.line_number.push(None);
            funcs.column_number.push(None);
        })
    }

    fn resource(&mut self, module: &str, libraries: &mut Libraries) -> usize {
        const LIBRARY: u8 = 1;
        let library = libraries.number(module);
        let name = self.strings.number(module);
        let resources = &mut self.resources;
        place(&mut self.resource_numbers, library, || {
            resources.length += 1;
            resources.lib.push(library);
            resources.name.push(name);
            resources.host.push(None);
            resources.kind.push(LIBRARY);
        })
    }
}
