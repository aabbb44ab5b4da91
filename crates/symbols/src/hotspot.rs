//! HotSpot, the virtual machine of Java, read from outside: which method an address in its code
//! belongs to, and what a method is called. It needs no option and no agent.
//!
//! The machine describes its own structures for tools that look at it from outside (`gHotSpotVMStructs`,
//! `vmStructs.cpp` of OpenJDK): where a field lies, and how large a type is. With that the way from an
//! address to a name is `CodeHeap` (its map of segments tells where the block of an address begins),
//! `CodeBlob`, and, if that is a compiled method, `Method`, `ConstMethod`, the pool's `Symbol`. Code
//! that the machine has thrown away since has no name, or that of what came in its place.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::memory::Memory;

/// More entries than this no machine has, ten times over.
const MOST_ENTRIES: u64 = 50_000;
/// Longer names are cut.
const LONGEST: usize = 512;
/// A block's start is found in so many steps back, or the map is damaged.
const MOST_STEPS: usize = 4096;

/// Names of the variables with which the machine describes itself, which its library exports.
const VARIABLES: [&str; 11] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
];

/// Where the variables lie with which a machine describes itself: how far from where offset 0 of its
/// library would be mapped with the code; wraps around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables([u64; VARIABLES.len()]);

impl Variables {
    /// `None` if a variable is missing. `place` tells where one lies.
    pub(crate) fn find(place: impl Fn(&str) -> Option<u64>) -> Option<Variables> {
        let mut places = [0; VARIABLES.len()];
        for (at, name) in places.iter_mut().zip(VARIABLES) {
            *at = place(name)?;
        }
        Some(Variables(places))
    }

    /// Those that lie behind each other from the base on, for the fuzzer.
    #[cfg(fuzzing)]
    pub(crate) fn fuzzed() -> Variables {
        Variables(std::array::from_fn(|at| at as u64 * 8))
    }
}

/// What the virtual machine of a process says of its code.
pub struct HotSpot<M> {
    memory: M,
    heaps: Vec<Heap>,
    layout: Layout,
    interpreter: (u64, u64),
}

/// What a piece of the machine's code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Compiled from the method that is described at this address.
    Method(u64),
    /// Its own, with the name that it has for it: `StubRoutines (1)`.
    Own(String),
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its class and its name as Java's own stack traces write them: `java.util.ArrayList.sort`.
    pub name: String,
    /// The file that it was compiled from, in the directory of its package:
    /// `java/util/ArrayList.java`; without the file's name where that is not known.
    pub source: String,
}

/// A piece of the memory for code, cut into segments.
struct Heap {
    low: u64,
    high: u64,
    /// For each segment, 0 where a block begins, else how far back to look.
    map: u64,
    segment_shift: u32,
}

/// Offsets of fields, bytes.
struct Layout {
    /// From a block to what lies in it.
    block_header: u64,
    is_used: u64,
    blob_name: u64,
    /// Of a compiled method.
    method: u64,
    const_method: u64,
    constants: u64,
    name_index: u64,
    pool_header: u64,
    pool_holder: u64,
    class_name: u64,
    symbol_length: u64,
    symbol_body: u64,
    /// Of a class until JDK 16, of a class's pool since.
    source_of_class: Option<u64>,
    source_of_pool: Option<u64>,
}

impl<M: Memory> HotSpot<M> {
    /// The machine whose library is mapped at `base`, by the count of [`Variables`]. `None` if it
    /// describes itself in another way, or is not ready to interpret yet.
    pub fn read(memory: M, variables: &Variables, base: u64) -> Option<HotSpot<M>> {
        let table = Table::read(&memory, variables, base)?;
        let layout = Layout {
            block_header: table.size("HeapBlock")?,
            is_used: plus(
                table.field("HeapBlock", "_header")?,
                table.field("HeapBlock::Header", "_used")?,
            ),
            blob_name: table.field("CodeBlob", "_name")?,
            method: (table.field("nmethod", "_method"))
                .or_else(|| table.field("CompiledMethod", "_method"))?,
            const_method: table.field("Method", "_constMethod")?,
            constants: table.field("ConstMethod", "_constants")?,
            name_index: table.field("ConstMethod", "_name_index")?,
            pool_header: table.size("ConstantPool")?,
            pool_holder: table.field("ConstantPool", "_pool_holder")?,
            class_name: table.field("Klass", "_name")?,
            symbol_length: table.field("Symbol", "_length")?,
            symbol_body: table.field("Symbol", "_body")?,
            source_of_class: table.field("InstanceKlass", "_source_file_name_index"),
            source_of_pool: table.field("ConstantPool", "_source_file_name_index"),
        };
        let heaps = heaps(&memory, &table)?;
        let interpreter = interpreter(&memory, &table)?;
        Some(HotSpot {
            memory,
            heaps,
            layout,
            interpreter,
        })
    }

    /// A machine with one heap whose fields lie anywhere, for the fuzzer.
    #[cfg(fuzzing)]
    pub(crate) fn fuzzed(memory: M, numbers: &[u64; 18]) -> HotSpot<M> {
        let [low, high, map, shift, fields @ ..] = *numbers;
        let [
            block_header,
            is_used,
            blob_name,
            method,
            const_method,
            constants,
            name_index,
            ..,
        ] = fields;
        let [
            ..,
            pool_header,
            pool_holder,
            class_name,
            length,
            body,
            of_class,
            of_pool,
        ] = fields;
        HotSpot {
            memory,
            heaps: vec![Heap {
                low,
                high,
                map,
                segment_shift: (shift as u32).min(63),
            }],
            layout: Layout {
                block_header,
                is_used,
                blob_name,
                method,
                const_method,
                constants,
                name_index,
                pool_header,
                pool_holder,
                class_name,
                symbol_length: length,
                symbol_body: body,
                source_of_class: Some(of_class),
                source_of_pool: (of_pool & 1 == 0).then_some(of_pool),
            },
            interpreter: (low, high),
        }
    }

    /// From where to where the code lies that interprets methods.
    pub fn interpreter(&self) -> (u64, u64) {
        self.interpreter
    }

    /// What the code at an address is; `None` if it is not the machine's.
    pub fn code(&self, address: u64) -> Option<Code> {
        let heap = self
            .heaps
            .iter()
            .find(|heap| (heap.low..heap.high).contains(&address))?;
        let block = self.block(heap, address)?;
        let mut is_used = [0];
        self.memory
            .read(plus(block, self.layout.is_used), &mut is_used)?;
        let blob = (is_used != [0]).then_some(plus(block, self.layout.block_header))?;
        let kind = self.text(self.memory.word(plus(blob, self.layout.blob_name))?)?;
        Some(match kind.as_str() {
            "nmethod" | "native nmethod" => {
                Code::Method(self.memory.word(plus(blob, self.layout.method))?)
            }
            _ => Code::Own(kind),
        })
    }

    /// The block that an address lies in.
    fn block(&self, heap: &Heap, address: u64) -> Option<u64> {
        const FREE: u8 = 0xff;
        let mut segment = (address - heap.low) >> heap.segment_shift;
        for _ in 0..MOST_STEPS {
            let mut back = [0];
            self.memory.read(plus(heap.map, segment), &mut back)?;
            match back[0] {
                0 => return Some(plus(heap.low, segment << heap.segment_shift)),
                FREE => return None,
                back => segment = segment.checked_sub(back.into())?,
            }
        }
        None
    }

    /// The method that is described at an address; `None` if nothing is that makes sense.
    pub fn method(&self, method: u64) -> Option<Method> {
        let (memory, layout) = (&self.memory, &self.layout);
        let of_code = memory.word(plus(method, layout.const_method))?;
        let pool = memory.word(plus(of_code, layout.constants))?;
        let entry =
            |index: u16| memory.word(plus(plus(pool, layout.pool_header), u64::from(index) * 8));
        let name = self.symbol(entry(half_word(memory, plus(of_code, layout.name_index))?)?)?;
        let class = memory.word(plus(pool, layout.pool_holder))?;
        let class_name = self.symbol(memory.word(plus(class, layout.class_name))?)?;
        let of_class = layout.source_of_class.map(|offset| plus(class, offset));
        let of_pool = layout.source_of_pool.map(|offset| plus(pool, offset));
        let source = of_pool.or(of_class).and_then(|index| {
            let index = half_word(memory, index)?;
            // 0: it was compiled without.
            (index != 0).then(|| self.symbol(entry(index)?))?
        });
        let directory = class_name.rsplit_once('/').map(|(package, _)| package);
        let parts = directory.into_iter().chain(source.as_deref());
        Some(Method {
            name: format!("{}.{name}", class_name.replace('/', ".")),
            source: parts.collect::<Vec<_>>().join("/"),
        })
    }

    fn symbol(&self, symbol: u64) -> Option<String> {
        let length = half_word(&self.memory, plus(symbol, self.layout.symbol_length))?;
        let mut bytes = vec![0; usize::from(length).min(LONGEST)];
        self.memory
            .read(plus(symbol, self.layout.symbol_body), &mut bytes)?;
        Some(crate::text::text(&bytes))
    }

    fn text(&self, address: u64) -> Option<String> {
        text_at(&self.memory, address)
    }
}

/// Where the machine's fields lie, and how large its types are.
struct Table {
    fields: HashMap<(String, String), u64>,
    sizes: HashMap<String, u64>,
}

impl Table {
    fn read<M: Memory>(memory: &M, variables: &Variables, base: u64) -> Option<Table> {
        let value = |name: &str| {
            let at = VARIABLES.iter().position(|known| *known == name)?;
            memory.word(plus(base, variables.0[at]))
        };
        let mut table = Table {
            fields: HashMap::new(),
            sizes: HashMap::new(),
        };
        let (first, stride) = (
            value("gHotSpotVMStructs")?,
            value("gHotSpotVMStructEntryArrayStride")?,
        );
        let of_type = value("gHotSpotVMStructEntryTypeNameOffset")?;
        let of_field = value("gHotSpotVMStructEntryFieldNameOffset")?;
        let is_static = value("gHotSpotVMStructEntryIsStaticOffset")?;
        let of_offset = value("gHotSpotVMStructEntryOffsetOffset")?;
        let of_address = value("gHotSpotVMStructEntryAddressOffset")?;
        for at in 0..MOST_ENTRIES {
            let entry = plus(first, at.wrapping_mul(stride));
            // The last entry has no name.
            let Some(of) = text_at(memory, memory.word(plus(entry, of_type))?) else {
                break;
            };
            let field = text_at(memory, memory.word(plus(entry, of_field))?)?;
            let mut flag = [0; 4];
            memory.read(plus(entry, is_static), &mut flag)?;
            let place = match i32::from_ne_bytes(flag) {
                0 => of_offset,
                _ => of_address,
            };
            let value = memory.word(plus(entry, place))?;
            table.fields.insert((of, field), value);
        }
        let (first, stride) = (
            value("gHotSpotVMTypes")?,
            value("gHotSpotVMTypeEntryArrayStride")?,
        );
        let of_name = value("gHotSpotVMTypeEntryTypeNameOffset")?;
        let of_size = value("gHotSpotVMTypeEntrySizeOffset")?;
        for at in 0..MOST_ENTRIES {
            let entry = plus(first, at.wrapping_mul(stride));
            let Some(name) = text_at(memory, memory.word(plus(entry, of_name))?) else {
                break;
            };
            let size = memory.word(plus(entry, of_size))?;
            table.sizes.insert(name, size);
        }
        Some(table)
    }

    /// Offset of a field, or the address of one that all of its type share.
    fn field(&self, of: &str, field: &str) -> Option<u64> {
        self.fields.get(&(of.to_owned(), field.to_owned())).copied()
    }

    fn size(&self, of: &str) -> Option<u64> {
        self.sizes.get(of).copied()
    }
}

/// From where to where the code lies that interprets methods; `None` until it has been made.
fn interpreter<M: Memory>(memory: &M, table: &Table) -> Option<(u64, u64)> {
    let queue = memory.word(table.field("AbstractInterpreter", "_code")?)?;
    let start = memory.word(plus(queue, table.field("StubQueue", "_stub_buffer")?))?;
    let size = number(
        memory,
        plus(queue, table.field("StubQueue", "_buffer_limit")?),
    )?;
    (start != 0 && size != 0).then_some((start, plus(start, size.into())))
}

/// The pieces of memory for code.
fn heaps<M: Memory>(memory: &M, table: &Table) -> Option<Vec<Heap>> {
    const MOST: u32 = 16;
    let list = memory.word(table.field("CodeCache", "_heaps")?)?;
    // Named anew in JDK 17.
    let length = table
        .field("GrowableArrayBase", "_len")
        .or_else(|| table.field("GenericGrowableArray", "_len"))?;
    let count = number(memory, plus(list, length))?.min(MOST);
    let items = memory.word(plus(list, table.field("GrowableArray<int>", "_data")?))?;
    let low = table.field("VirtualSpace", "_low")?;
    let high = table.field("VirtualSpace", "_high")?;
    let space = table.field("CodeHeap", "_memory")?;
    let map = table.field("CodeHeap", "_segmap")?;
    let shift = table.field("CodeHeap", "_log2_segment_size")?;
    (0..u64::from(count))
        .map(|at| {
            let heap = memory.word(plus(items, at * 8))?;
            Some(Heap {
                low: memory.word(plus(plus(heap, space), low))?,
                high: memory.word(plus(plus(heap, space), high))?,
                map: memory.word(plus(plus(heap, map), low))?,
                segment_shift: number(memory, plus(heap, shift))?.min(63),
            })
        })
        .collect()
}

/// An address that somebody else's memory gave, and an offset: whatever they are, no more than reading
/// there fails.
fn plus(address: u64, offset: u64) -> u64 {
    address.wrapping_add(offset)
}

fn half_word<M: Memory>(memory: &M, address: u64) -> Option<u16> {
    let mut bytes = [0; 2];
    memory.read(address, &mut bytes)?;
    Some(u16::from_ne_bytes(bytes))
}

fn number<M: Memory>(memory: &M, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(address, &mut bytes)?;
    Some(u32::from_ne_bytes(bytes))
}

/// The text at an address, up to its zero byte; `None` at address 0.
fn text_at<M: Memory>(memory: &M, address: u64) -> Option<String> {
    const PIECE: usize = 64;
    let mut bytes = Vec::new();
    while address != 0 && bytes.len() < LONGEST {
        let at = address.checked_add(bytes.len() as u64)?;
        // Not beyond the end of what can be read.
        let room = PIECE - at as usize % PIECE;
        let mut piece = vec![0; room];
        memory.read(at, &mut piece)?;
        let end = piece.iter().position(|&byte| byte == 0);
        bytes.extend_from_slice(&piece[..end.unwrap_or(room)]);
        if end.is_some() {
            return Some(crate::text::text(&bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that holds what was put there.
    #[derive(Clone, Default)]
    struct Fake {
        bytes: HashMap<u64, u8>,
        /// Where the next text goes.
        texts: u64,
    }

    impl Memory for Fake {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            for (at, byte) in (address..).zip(into) {
                *byte = *self.bytes.get(&at)?;
            }
            Some(())
        }
    }

    impl Fake {
        fn put(&mut self, address: u64, bytes: &[u8]) {
            self.bytes.extend((address..).zip(bytes.iter().copied()));
        }

        fn put_word(&mut self, address: u64, word: u64) {
            self.put(address, &word.to_ne_bytes());
        }

        /// Puts a text somewhere; a piece behind it can be read too.
        fn text(&mut self, text: &str) -> u64 {
            let at = 0x10_0000 + self.texts;
            self.put(at, &[0; 128]);
            self.put(at, text.as_bytes());
            self.texts += 128;
            at
        }

        /// An entry of the table of fields: where it lies in its type, or, if all share it, in memory.
        fn field(&mut self, at: u64, of: &str, field: &str, offset: u64, address: u64) {
            let (of, field) = (self.text(of), self.text(field));
            self.put_word(at, of);
            self.put_word(at + 8, field);
            self.put_word(at + 16, u64::from(address != 0));
            self.put_word(at + 24, offset);
            self.put_word(at + 32, address);
        }

        fn symbol(&mut self, at: u64, text: &str) {
            self.put(at, &(text.len() as u16).to_ne_bytes());
            self.put(at + 6, text.as_bytes());
        }
    }

    const VALUES: [u64; 11] = [0x2000, 40, 0, 8, 16, 24, 32, 0x6000, 16, 0, 8];

    /// Where the fake's variables lie, one behind the other.
    fn variables() -> Variables {
        let place =
            |name: &str| Some(VARIABLES.iter().position(|known| *known == name)? as u64 * 8);
        Variables::find(place).expect("all are there")
    }

    fn read(fake: Fake) -> Option<HotSpot<Fake>> {
        HotSpot::read(fake, &variables(), 0x1000)
    }

    /// A machine with one heap at 0x100000000 of segments of 128 bytes: a stub in the first, a compiled
    /// method in the next three, the fifth free.
    fn machine() -> Fake {
        const HEAP: u64 = 1 << 32;
        let mut fake = Fake::default();
        for (at, value) in (0..).zip(VALUES) {
            fake.put_word(0x1000 + at * 8, value);
        }
        let fields = [
            ("HeapBlock", "_header", 0, 0),
            ("HeapBlock::Header", "_used", 8, 0),
            ("CodeBlob", "_name", 8, 0),
            ("CompiledMethod", "_method", 24, 0),
            ("Method", "_constMethod", 8, 0),
            ("ConstMethod", "_constants", 8, 0),
            ("ConstMethod", "_name_index", 34, 0),
            ("ConstantPool", "_pool_holder", 24, 0),
            ("Klass", "_name", 16, 0),
            ("Symbol", "_length", 0, 0),
            ("Symbol", "_body", 6, 0),
            ("CodeCache", "_heaps", 0, 0x7000),
            ("GrowableArrayBase", "_len", 0, 0),
            ("GrowableArray<int>", "_data", 8, 0),
            ("VirtualSpace", "_low", 0, 0),
            ("VirtualSpace", "_high", 8, 0),
            ("CodeHeap", "_memory", 0, 0),
            ("CodeHeap", "_segmap", 16, 0),
            ("CodeHeap", "_log2_segment_size", 32, 0),
            ("AbstractInterpreter", "_code", 0, 0x7008),
            ("StubQueue", "_stub_buffer", 8, 0),
            ("StubQueue", "_buffer_limit", 20, 0),
            ("InstanceKlass", "_source_file_name_index", 48, 0),
        ];
        for (at, (of, field, offset, address)) in (0..).zip(fields) {
            fake.field(0x2000 + at * 40, of, field, offset, address);
        }
        fake.put(0x2000 + fields.len() as u64 * 40, &[0; 40]);
        for (at, (name, size)) in (0..).zip([("HeapBlock", 16), ("ConstantPool", 64)]) {
            let name = fake.text(name);
            fake.put_word(0x6000 + at * 16, name);
            fake.put_word(0x6008 + at * 16, size);
        }
        fake.put(0x6020, &[0; 16]);
        // The list of heaps, the heap, its map.
        fake.put_word(0x7000, 0x7100);
        fake.put_word(0x7008, 0x7500);
        fake.put_word(0x7508, HEAP + 16);
        fake.put(0x7514, &96u32.to_ne_bytes());
        fake.put_word(0x7100, 1);
        fake.put_word(0x7108, 0x7200);
        fake.put_word(0x7200, 0x7300);
        fake.put_word(0x7300, HEAP);
        fake.put_word(0x7308, HEAP + 5 * 128);
        fake.put_word(0x7310, 0x7400);
        fake.put_word(0x7320, 7);
        fake.put(0x7400, &[0, 0, 1, 1, 0xff]);
        for (block, kind) in [(HEAP, "StubRoutines (1)"), (HEAP + 128, "nmethod")] {
            let kind = fake.text(kind);
            fake.put_word(block + 8, 1);
            fake.put_word(block + 16 + 8, kind);
        }
        // Method, its constant part, the pool, the class.
        fake.put_word(HEAP + 128 + 16 + 24, 0x8000);
        fake.put_word(0x8008, 0x8100);
        fake.put_word(0x8108, 0x8200);
        fake.put(0x8100 + 34, &3u16.to_ne_bytes());
        fake.put_word(0x8200 + 64 + 3 * 8, 0x8400);
        fake.put_word(0x8200 + 24, 0x8300);
        fake.put_word(0x8310, 0x8500);
        fake.put_word(0x8200 + 64 + 5 * 8, 0x8600);
        fake.put(0x8330, &5u16.to_ne_bytes());
        fake.symbol(0x8400, "weigh");
        fake.symbol(0x8500, "shop/Parcels");
        fake.symbol(0x8600, "Parcels.java");
        fake
    }

    /// Code of a method leads to the method, wherever in it the address lies; a stub has the machine's
    /// name for it; free memory and what is no code are none.
    #[test]
    fn code_is_that_of_its_method() {
        let machine = read(machine()).unwrap();
        let code = |offset: u64| machine.code((1 << 32) + offset);
        assert_eq!(code(4), Some(Code::Own("StubRoutines (1)".into())));
        for offset in [128 + 20, 256, 511] {
            assert_eq!(code(offset), Some(Code::Method(0x8000)));
        }
        assert_eq!(code(512), None, "free");
        assert_eq!(code(640), None, "beyond the heap");
        assert_eq!(machine.code(0x8000), None);
        assert_eq!(machine.interpreter(), ((1 << 32) + 16, (1 << 32) + 112));
    }

    /// A method has its class's name and its own, and its file in its package; one whose class was
    /// compiled without has the package.
    #[test]
    fn a_method_has_its_class_and_file() {
        let mut fake = machine();
        let method = read(fake.clone()).unwrap().method(0x8000).unwrap();
        assert_eq!(method.name, "shop.Parcels.weigh");
        assert_eq!(method.source, "shop/Parcels.java");
        fake.put(0x8330, &0u16.to_ne_bytes());
        let method = read(fake).unwrap().method(0x8000).unwrap();
        assert_eq!(method.source, "shop");
    }

    /// A machine that lacks a field, one that has no interpreter yet, and one whose map leads nowhere,
    /// name nothing; nor does a library that lacks a variable.
    #[test]
    fn a_machine_that_is_not_understood_names_nothing() {
        let lacks_one = |name: &str| (name != VARIABLES[10]).then_some(8);
        assert_eq!(Variables::find(lacks_one), None);
        assert!(HotSpot::read(machine(), &variables(), 1 << 50).is_none());
        let mut without = machine();
        let other = without.text("another name");
        without.put_word(0x2000 + 2 * 40 + 8, other);
        assert!(read(without).is_none());
        let mut early = machine();
        early.put_word(0x7508, 0);
        assert!(read(early).is_none());
        let mut damaged = machine();
        damaged.put(0x7400, &[7; 5]);
        assert_eq!(read(damaged).unwrap().code(1 << 32), None);
        let mut nowhere = machine();
        nowhere.put_word((1 << 32) + 128 + 16 + 24, u64::MAX - 4);
        let nowhere = read(nowhere).unwrap();
        assert_eq!(
            nowhere.code((1 << 32) + 300),
            Some(Code::Method(u64::MAX - 4))
        );
        assert_eq!(nowhere.method(u64::MAX - 4), None);
    }
}
