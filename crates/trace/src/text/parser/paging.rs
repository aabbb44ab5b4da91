//! The lines of page faults, of the memory that they are in, and of pages of files.

use super::super::Parsed;
use super::super::line::Words;
use super::super::values::{integer, time, word_of};
use super::Parser;
use crate::ids::NONE;
use crate::tables::{Area, CacheStep, CachedFile, Fault, File, MemoryShare, Stall};
use crate::words::{AreaKind, CacheAction, StallKind};

impl Parser {
    /// The file of that path, which is new where no line named it before.
    fn file(&mut self, path: &str) -> u32 {
        let files = &mut self.trace.tables.files;
        let known = files.path.iter().position(|known| known == path);
        let id = known.unwrap_or(files.path.len()) as u32;
        if known.is_none() {
            files.push(File {
                file: id,
                device: 8 << 20,
                inode: u64::from(id) + 1,
                magic: 0xef53,
                path: path.into(),
            });
        }
        id
    }

    pub(super) fn area(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        let (process, _) = self.process(words.next("the process")?)?;
        let range = words.next("the addresses")?;
        let (start, end) = (range.split_once("..")).ok_or("addresses are as 0x1000..0x2000")?;
        let (start, end) = (integer(start)?, integer(end)?);
        let kind = word_of(AreaKind::ALL, words.next("the kind of memory")?)?;
        let known = ["file", "offset", "writable", "executable", "shared"];
        let options = words.options(&known)?;
        let file = options.get("file").map_or(NONE, |path| self.file(path));
        let areas = &mut self.trace.tables.areas;
        areas.push(Area {
            area: areas.area.len() as u32,
            ts: 0,
            process,
            start,
            end,
            file,
            file_offset: options.get("offset").map_or(Ok(0), |n| integer(n))?,
            kind: kind.into(),
            writable: options.contains_key("writable"),
            executable: options.contains_key("executable"),
            shared: options.contains_key("shared"),
        });
        Ok(())
    }

    pub(super) fn memory(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let (process, _) = self.process(words.next("the process")?)?;
        let kind = word_of(AreaKind::ALL, words.next("the kind of memory")?)?;
        let resident = integer(words.next("the bytes in memory")?)?;
        let known = ["proportional", "swapped", "private", "locked", "file"];
        let options = words.options(&known)?;
        let bytes = |name, otherwise| options.get(name).map_or(Ok(otherwise), |n| integer(n));
        let path = options.get("file").map_or("", |path| path);
        self.trace.tables.memory.push(MemoryShare {
            ts,
            process,
            kind: kind.into(),
            path: path.to_owned(),
            resident,
            proportional: bytes("proportional", resident)?,
            swapped: bytes("swapped", 0)?,
            private: bytes("private", 0)?,
            locked: bytes("locked", 0)?,
        });
        Ok(())
    }

    pub(super) fn cached(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let path = words.next("the file")?.to_owned();
        let size = integer(words.next("its size")?)?;
        let cached = integer(words.next("the bytes in the page cache")?)?;
        self.trace.tables.cached_files.push(CachedFile {
            ts,
            path,
            size,
            cached,
            dirty: u64::MAX,
            recently_evicted: u64::MAX,
        });
        Ok(())
    }

    pub(super) fn fault(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let duration = time(words.next("the duration")?)?;
        let thread = self.thread(words)?;
        let major = match words.next("major or minor")? {
            "major" => true,
            "minor" => false,
            other => return Err(format!("'{other}' should be major or minor")),
        };
        let address = integer(words.next("the address")?)?;
        let options = words.options(&["of-file", "in-kernel", "stack"])?;
        let (user_stack, _) = self.both_stacks(&options, thread)?;
        let process = self.lives[thread as usize].process;
        let areas = &self.trace.tables.areas;
        let area = (0..areas.area.len()).rev().find(|&row| {
            areas.process[row] == process && (areas.start[row]..areas.end[row]).contains(&address)
        });
        self.trace.tables.faults.push(Fault {
            ts,
            duration,
            thread,
            major,
            in_kernel: options.contains_key("in-kernel"),
            of_file: options.contains_key("of-file"),
            address,
            area: area.map_or(NONE, |row| row as u32),
            user_stack,
        });
        Ok(())
    }

    pub(super) fn cache(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let thread = self.thread(words)?;
        let action = word_of(CacheAction::ALL, words.next("what became of the pages")?)?;
        let path = words.next("the file")?;
        let file = self.file(path);
        let first = words.number("the first page")?;
        let pages = words.number("how many pages")?;
        self.trace.tables.page_cache.push(CacheStep {
            ts,
            thread,
            action: action.into(),
            file,
            first,
            pages,
        });
        Ok(())
    }

    pub(super) fn stall(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let duration = time(words.next("the duration")?)?;
        let thread = self.thread(words)?;
        let kind = word_of(StallKind::ALL, words.next("the kind of stall")?)?;
        let pages = words.number("the pages")?;
        self.trace.tables.stalls.push(Stall {
            ts,
            duration,
            thread,
            kind: kind.into(),
            pages,
        });
        Ok(())
    }
}
