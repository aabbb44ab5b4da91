//! Names of the kernel's functions, from /proc/kallsyms, which says too which module they are in.
//!
//! Lengths are not told there, so that a function reaches to the next one. What lies in front of
//! the first or in user space has no name.

use std::fs;

use crate::name::{Name, Names};

/// The kernel's functions as of one moment.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Start, and where in `text` the name and the module are; ascending.
    functions: Vec<(u64, Place)>,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    name: u32,
    name_len: u16,
    module_len: u16,
}

impl Kernel {
    /// Reads the names; there are none if the kernel hides its addresses from this user.
    pub(crate) fn read() -> Kernel {
        Kernel::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    pub(crate) fn parse(kallsyms: &str) -> Kernel {
        let mut kernel = Kernel {
            functions: Vec::with_capacity(kallsyms.len() / 40),
            text: String::with_capacity(kallsyms.len() / 2),
        };
        for line in kallsyms.lines() {
            let mut words = line.split_ascii_whitespace();
            let address = words
                .next()
                .and_then(|word| u64::from_str_radix(word, 16).ok());
            let kind = words.next().unwrap_or_default();
            let (Some(address), Some(name)) = (address, words.next()) else {
                continue;
            };
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            if address != 0 && is_code {
                kernel.add(address, name, words.next().unwrap_or_default());
            }
        }
        // Of several names for one address the first counts: it is the file's own order.
        kernel.functions.sort_by_key(|&(address, _)| address);
        kernel.functions.dedup_by_key(|&mut (address, _)| address);
        kernel
    }

    fn add(&mut self, address: u64, name: &str, module: &str) {
        let lengths = (u16::try_from(name.len()), u16::try_from(module.len()));
        let (Ok(name_len), Ok(module_len)) = lengths else {
            return;
        };
        let place = Place {
            name: self.text.len() as u32,
            name_len,
            module_len,
        };
        self.text.push_str(name);
        self.text.push_str(module);
        self.functions.push((address, place));
    }

    /// The function at an address.
    pub(crate) fn name(&self, address: u64) -> Names {
        let behind = self
            .functions
            .partition_point(|&(start, _)| start <= address);
        let Some(&(start, place)) = behind.checked_sub(1).map(|at| &self.functions[at]) else {
            return Names::new();
        };
        let name = place.name as usize;
        let module = name + usize::from(place.name_len);
        let end = module + usize::from(place.module_len);
        vec![Name {
            function: self.text[name..module].to_owned(),
            offset: address - start,
            source: String::new(),
            kernel_module: self.text[module..end].to_owned(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T start_here
0000000000000000 A hidden
ffffffff81000100 d some_data
ffffffff81000200 t schedule
nonsense
ffffffffc0000000 t draw\t[gpu]
";

    /// An address belongs to the function that begins last in front of it, of several at one place
    /// to the first, with its module; data is none, and nothing is in front of the first.
    #[test]
    fn functions_reach_to_the_next() {
        let kernel = Kernel::parse(KALLSYMS);
        let at = |address| {
            let names = kernel.name(address);
            names.first().map(|name| {
                (
                    name.function.clone(),
                    name.offset,
                    name.kernel_module.clone(),
                )
            })
        };
        let plain = |name: &str, offset| Some((name.to_owned(), offset, String::new()));
        assert_eq!(at(0xffff_ffff_80ff_ffff), None);
        assert_eq!(at(0xffff_ffff_8100_0150), plain("_text", 0x150));
        assert_eq!(at(0xffff_ffff_8100_0200), plain("schedule", 0));
        assert_eq!(
            at(0xffff_ffff_c000_0010),
            Some(("draw".to_owned(), 0x10, "[gpu]".to_owned()))
        );
    }
}
