//! The same step by framehop, which reads `.eh_frame` anew for each, and shares none of our code.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use hangdog_unwind::Registers;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

/// What framehop says of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    Caller(Registers),
    Root,
    Failed,
}

/// framehop, and what it keeps.
#[derive(Default)]
pub struct Reference {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

impl Reference {
    /// Adds an ELF file whose address 0 is at `base`, and that takes `size` bytes.
    pub fn add(&mut self, bytes: &[u8], base: u64, size: u64) {
        let elf: ElfFile64 = ElfFile64::parse(bytes).expect("an ELF file");
        let section = |name| {
            elf.section_by_name(name).map(|section| {
                let start = section.address();
                let data = section.data().expect("it is in the file");
                (start..start + section.size(), data.to_vec())
            })
        };
        let (text, frame, header) = (
            section(".text"),
            section(".eh_frame"),
            section(".eh_frame_hdr"),
        );
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text.map(|text| text.0),
            got_svma: section(".got").map(|got| got.0),
            eh_frame_svma: frame.clone().map(|frame| frame.0),
            eh_frame: frame.map(|frame| frame.1),
            eh_frame_hdr_svma: header.clone().map(|header| header.0),
            eh_frame_hdr: header.map(|header| header.1),
            ..Default::default()
        };
        let module = Module::new("module".into(), base..base + size, base, sections);
        self.unwinder.add_module(module);
    }

    /// One step; `exact` if `registers.ip` is no return address.
    pub fn caller(
        &mut self,
        registers: Registers,
        exact: bool,
        memory: impl Fn(u64) -> Option<u64>,
    ) -> Said {
        let Registers { ip, sp, fp } = registers;
        let address = match exact {
            true => FrameAddress::from_instruction_pointer(ip),
            false => FrameAddress::from_return_address(ip).expect("not 0"),
        };
        let mut registers = UnwindRegsX86_64::new(ip, sp, fp);
        let mut memory = |at| memory(at).ok_or(());
        match self
            .unwinder
            .unwind_frame(address, &mut registers, &mut self.cache, &mut memory)
        {
            Ok(Some(ip)) => Said::Caller(Registers {
                ip,
                sp: registers.sp(),
                fp: registers.bp(),
            }),
            Ok(None) => Said::Root,
            Err(_) => Said::Failed,
        }
    }
}
