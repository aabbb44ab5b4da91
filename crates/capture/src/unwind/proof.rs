//! Holds the walks of `bpf/unwind.h` against framehop, which shares nothing with them: the programs
//! send, beside the id of each stack, the registers and the memory that it was walked from; framehop
//! walks these, and must come to the same frames.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use hangdog_trace::words::StackEnd;
use hangdog_unwind::{Rule, Table};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment};

use crate::call_log::CallsOf;
use crate::function::number_of;
use crate::procfs;
use crate::records::{RawMapping, StackCopy, What};
use crate::session::{Options, Programs, Session, Trial};
use crate::system::monotonic_ns;

/// framehop with the code that one process has.
struct Reference {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

impl Reference {
    fn new(mappings: &[RawMapping]) -> Reference {
        let mut reference = Reference {
            unwinder: UnwinderX86_64::default(),
            cache: CacheX86_64::default(),
        };
        let mut seen = Vec::new();
        for mapping in mappings {
            let bytes = match mapping.path.as_str() {
                procfs::VDSO => procfs::vdso(),
                path if path.starts_with('/') => std::fs::read(path).ok(),
                _ => None,
            };
            let Some(bytes) = bytes.filter(|_| !seen.contains(&&mapping.path)) else {
                continue;
            };
            seen.push(&mapping.path);
            let end = mappings
                .iter()
                .filter(|m| m.path == mapping.path)
                .map(|m| m.end);
            reference.add(&bytes, mapping, end.max().unwrap_or(mapping.end));
        }
        reference
    }

    fn add(&mut self, bytes: &[u8], mapping: &RawMapping, end: u64) {
        let Ok(elf) = ElfFile64::<object::Endianness>::parse(bytes) else {
            return;
        };
        // Where address 0 of the file lies.
        let length = mapping.end - mapping.start;
        let Some(segment) = elf.segments().find(|segment| {
            let (offset, size) = segment.file_range();
            let executable = segment.permissions().executable();
            executable
                && offset < mapping.file_offset + length
                && mapping.file_offset < offset + size
        }) else {
            return;
        };
        let base = mapping
            .start
            .wrapping_sub(mapping.file_offset)
            .wrapping_sub(segment.address().wrapping_sub(segment.file_range().0));
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
        let range = mapping.start..end;
        let module = Module::new(mapping.path.clone(), range, base, sections);
        self.unwinder.add_module(module);
    }

    /// The frames, and whether the outermost was reached; `None` where it asked for memory that was
    /// not copied.
    fn walk(&mut self, proof: &StackCopy, memory: &BTreeMap<u64, u64>) -> (Vec<u64>, Theirs) {
        let mut beyond = false;
        let top = memory.keys().next_back().copied().unwrap_or(0);
        let mut read = |at: u64| {
            beyond |= at > top;
            memory.get(&at).copied().ok_or(())
        };
        let registers = UnwindRegsX86_64::new(proof.frames[0], proof.sp, proof.fp);
        let mut frames = Vec::new();
        let mut walk =
            self.unwinder
                .iter_frames(proof.frames[0], registers, &mut self.cache, &mut read);
        let end = loop {
            match walk.next() {
                Ok(Some(frame)) if frames.len() < super::MOST_FRAMES => {
                    frames.push(frame.address());
                }
                Ok(Some(_)) => break Theirs::Depth,
                Ok(None) => break Theirs::Root,
                Err(_) => break Theirs::Failed,
            }
        };
        match end {
            Theirs::Failed if beyond => (frames, Theirs::Beyond),
            end => (frames, end),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Theirs {
    Root,
    Depth,
    Failed,
    /// The memory that it needed was not copied.
    Beyond,
}

/// What the comparison of one program came to.
#[derive(Default)]
struct Score {
    walks: usize,
    frames: usize,
    equal: usize,
    unexplained: usize,
    /// First differing frames, by what is the matter.
    differences: BTreeMap<String, (usize, String)>,
}

impl Score {
    fn compare(&mut self, ours: &Walk<'_, StackEnd>, theirs: &Walk<'_, Theirs>, code: &Code) {
        self.walks += 1;
        let (ours, end) = (ours.frames, ours.end);
        let (theirs, their_end) = (theirs.frames, theirs.end);
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        let (our_rest, their_rest) = (&ours[same..], &theirs[same..]);
        let again = our_rest
            .iter()
            .rev()
            .zip(their_rest.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        self.equal += same + again;
        self.frames += same + again;
        if our_rest.is_empty() && their_rest.is_empty() {
            return;
        }
        if their_rest.is_empty() && their_end == Theirs::Beyond {
            // They could not see what we saw.
            return;
        }
        self.frames += our_rest.len().max(their_rest.len()) - again;
        let matter = if our_rest.is_empty() {
            format!("we stop ({})", end.text())
        } else if their_rest.is_empty() {
            format!("framehop stops ({their_end:?})")
        } else if same == 1 && !code.has_rules(ours[0]) {
            // V8's builtins: framehop takes the innermost for a leaf, we for one with a frame.
            "no rules for the innermost frame: both guess".to_owned()
        } else {
            self.unexplained += 1;
            "different callers".to_owned()
        };
        let (count, places) = self.differences.entry(matter).or_default();
        *count += 1;
        let place = code.place(ours[same - 1]);
        if !places.contains(&place) && places.len() < 300 {
            places.push_str(&place);
            places.push(' ');
        }
    }
}

struct Walk<'a, End> {
    frames: &'a [u64],
    end: End,
}

/// What is mapped in a process.
struct Code<'a>(&'a [RawMapping]);

impl Code<'_> {
    fn find(&self, address: u64) -> Option<(&RawMapping, u64)> {
        let mapping = self
            .0
            .iter()
            .find(|m| (m.start..m.end).contains(&address))?;
        Some((mapping, address - mapping.start + mapping.file_offset))
    }

    fn has_rules(&self, address: u64) -> bool {
        self.find(address).is_some_and(|(mapping, offset)| {
            let table = Table::from_file(Path::new(&mapping.path));
            table.is_ok_and(|table| table.rule(offset) != Rule::NONE)
        })
    }

    fn place(&self, address: u64) -> String {
        match self.find(address) {
            Some((mapping, offset)) => {
                let file = mapping.path.rsplit('/').next().unwrap_or("");
                format!("{file}+{offset:#x}")
            }
            None => format!("{address:#x}"),
        }
    }
}

/// A program that was started to be walked.
struct Subject {
    name: &'static str,
    child: Child,
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(name: &'static str, words: &[&str]) -> Option<Subject> {
    let child = Command::new(words[0])
        .args(&words[1..])
        // Some end with their input.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => Some(Subject { name, child }),
        Err(why) if why.kind() == ErrorKind::NotFound => {
            eprintln!(
                "NOT RUN: unwinding of {name}: {} is not installed",
                words[0]
            );
            None
        }
        Err(why) => panic!("{name}: {why}"),
    }
}

fn compile(folder: &Path, compiler: &str, source: &str, options: &[&str]) -> Option<String> {
    let program = folder.join(source.replace('.', "-"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/subjects")
        .join(source);
    let status = Command::new(compiler)
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .status();
    match status {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            eprintln!("NOT RUN: unwinding of {}: no {compiler}", program.display());
            return None;
        }
    }
    Some(program.to_str()?.to_owned())
}

const BASH: &str = "f() { local i; for ((i = 0; i < 200; i++)); do read -r x <<<\"a b $i\"; \
                    [[ $x =~ b.*1 ]]; done; sleep 0.01; }; while :; do f; done";
const PYTHON: &str = "
import json, re, threading, time
def work(n):
    return json.dumps(sorted((re.sub('1', str(i), str(n)) for i in range(300)), key=lambda x: x[-1]))
def sleeper():
    while True:
        time.sleep(0.002)
threading.Thread(target=sleeper, daemon=True).start()
while True:
    work(3); time.sleep(0.001)
";
const NODE: &str = "
function work(n) { return JSON.stringify([...Array(n).keys()].map(x => String(x)).sort()); }
setInterval(() => { for (let i = 0; i < 20; i++) work(300); }, 5);
";

/// The program whose callers only the stack's memory tells apart: until the first look that finds another, walks
/// from there have the callers before. What is remembered begins anew in each span of 2^30 ns, of which the trial touches
/// five, and on each CPU, and is trusted so many times until it is looked at (TRUSTED_MOST of bpf/user_stack.h).
const CALLERS: &str = "callers";
const SPANS: usize = 5;
const TRUSTED_MOST: usize = 15;
/// And at most one in so many of its walks: half of them would differ if nobody looked.
const DIFFER: usize = 50;

/// Walks of programs of many kinds, made in the kernel where they block, wake others and are
/// sampled, are those that framehop makes: at least 99 % of all frames in each.
#[test]
fn walks_are_those_of_framehop() {
    let options = Options {
        memory: 1 << 20,
        stacks: true,
        unwind_memory: 128 << 20,
        sample_hz: 500,
        transfers: false,
        calls: CallsOf::default(),
        faults: false,
        yardstick: None,
        flags: Vec::new(),
        probes: Vec::new(),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let trial = Trial {
        prove: true,
        ..Trial::default()
    };
    let mut session = match Session::load(&options, Programs::All, &trial) {
        Ok(session) => session,
        Err(why) => {
            eprintln!("NOT RUN: unwinding against framehop: {why}");
            return;
        }
    };
    // One display for the program with windows.
    let display = start("Xvfb", &["Xvfb", ":94", "-screen", "0", "800x600x24"]);
    std::thread::sleep(Duration::from_millis(500));
    let cpp = compile(
        folder.path(),
        "g++",
        "threads.cpp",
        &["-O2", "-fomit-frame-pointer", "-pthread"],
    );
    let callers = compile(
        folder.path(),
        "g++",
        "callers.cpp",
        &["-O2", "-fomit-frame-pointer"],
    );
    let rust = compile(
        folder.path(),
        "rustc",
        "work.rs",
        &["-O", "-Cforce-frame-pointers=no", "--edition=2021"],
    );
    let mut subjects: Vec<Subject> = [
        display,
        start("bash", &["bash", "-c", BASH]),
        start("python3", &["python3", "-c", PYTHON]),
        start("node", &["node", "-e", NODE]),
        cpp.and_then(|program| start("C++", &[&program])),
        callers.and_then(|program| start(CALLERS, &[&program])),
        rust.and_then(|program| start("Rust", &[&program])),
        start(
            "GTK",
            &[
                "env",
                "DISPLAY=:94",
                "zenity",
                "--progress",
                "--pulsate",
                "--text=x",
            ],
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    std::thread::sleep(Duration::from_millis(1500));

    session.adopt(&procfs::population(), Duration::from_secs(5));
    // What was walked before has copies of 4 KB alone.
    let adopted = monotonic_ns();
    let mut proofs: HashMap<u32, Vec<(u64, StackCopy)>> = HashMap::new();
    let mut stacks: HashMap<u32, (Vec<u64>, StackEnd)> = HashMap::new();
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        let mut definitions = Vec::new();
        session
            .drain_definitions(&mut definitions, false)
            .expect("definitions");
        for definition in definitions {
            match definition.what {
                // Functions of virtual machines, which copies have, are none of framehop's.
                What::Stack {
                    id, frames, end, ..
                } if frames.iter().all(|&word| number_of(word).is_none()) => {
                    stacks.insert(id, (frames, end));
                }
                What::StackProof(proof) if definition.ts >= adopted => {
                    proofs
                        .entry(proof.pid)
                        .or_default()
                        .push((definition.ts, proof));
                }
                _ => {}
            }
        }
    }
    session.detach();
    let mappings: HashMap<u32, Vec<RawMapping>> = subjects
        .iter()
        .map(|subject| (subject.child.id(), procfs::mappings(subject.child.id())))
        .collect();

    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failed = Vec::new();
    for subject in &mut subjects {
        let mut score = Score::default();
        {
            let pid = subject.child.id();
            let mappings = &mappings[&pid];
            let mut reference = Reference::new(mappings);
            let code = Code(mappings);
            // The pieces of one walk have its time.
            let mut walks: BTreeMap<(u64, u32), Vec<StackCopy>> = BTreeMap::new();
            for (ts, proof) in proofs.remove(&pid).unwrap_or_default() {
                walks.entry((ts, proof.id)).or_default().push(proof);
            }
            for ((_, id), pieces) in walks {
                let Some((frames, end)) = stacks.get(&id) else {
                    continue;
                };
                let mut memory = BTreeMap::new();
                for piece in &pieces {
                    for (at, word) in piece.bytes.chunks_exact(8).enumerate() {
                        let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
                        memory.insert(piece.sp + 8 * at as u64, word);
                    }
                }
                let first = pieces.iter().min_by_key(|piece| piece.sp).expect("one");
                let (theirs, their_end) = reference.walk(first, &memory);
                let ours = Walk { frames, end: *end };
                let theirs = Walk {
                    frames: &theirs,
                    end: their_end,
                };
                score.compare(&ours, &theirs, &code);
            }
        }
        let share = 100.0 * score.equal as f64 / score.frames.max(1) as f64;
        println!(
            "{:8} {:6} walks {:7} frames {share:7.3} % equal",
            subject.name, score.walks, score.frames
        );
        for (matter, (count, places)) in &score.differences {
            println!("    {count:6} {matter}: {places}");
        }
        let may_differ = match subject.name {
            CALLERS => (SPANS * cpus * TRUSTED_MOST).min(score.walks / DIFFER),
            _ => 0,
        };
        if score.walks < 20 || share < 99.0 || score.unexplained > may_differ {
            failed.push(subject.name);
        }
    }
    assert!(
        failed.is_empty(),
        "below 99 %, unexplained, or not walked: {failed:?}"
    );
}
