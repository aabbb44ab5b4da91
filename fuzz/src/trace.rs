//! Traces whose files are sound and whose values are hostile: written, read, and given to all that the
//! commands make of a trace.

use std::collections::HashSet;
use std::fs;
use std::io::sink;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Result;
use hangdog_diagnose::compare::Split;
use hangdog_diagnose::explain::explain;
use hangdog_diagnose::{Problem, diagnose, diagnose_run, signature};
use hangdog_export::top::{By, Top};
use hangdog_export::{View, firefox, flame, folded, perfetto};
use hangdog_graph::part::{self, Part};
use hangdog_graph::{Graph, Sources, dot};
use hangdog_report::aligned::Aligned;
use hangdog_report::answers::{Found, problem_rows};
use hangdog_report::calls::{self, ThreadCalls};
use hangdog_report::compare;
use hangdog_report::instant::awake;
use hangdog_report::interrupts::sources;
use hangdog_report::load::{Chosen, load};
use hangdog_report::paging::{self, Operation};
use hangdog_report::range::range;
use hangdog_report::regions::{self, Marked};
use hangdog_report::rivals::rivals;
use hangdog_report::samples::ThreadSamples;
use hangdog_report::select::{Bounds, Who, Window};
use hangdog_report::story::Story;
use hangdog_report::threads::thread_rows;
use hangdog_report::units::Moment;
use hangdog_report::which::{Wanted, choose, laid_to_process, whole_run};
use hangdog_report::{Case, Loading, Loss, answers_file, rank, wait};
use hangdog_trace::meta::Mode;
use hangdog_trace::residence::Snapshot;
use hangdog_trace::tables::{Column, Frames, Losses, Modules, Symbols, SystemCalls};
use hangdog_trace::{Meta, SocketTable, Tables, Trace, TraceWriter, fuzz, text};

use crate::texts::folder;

/// What the traces begin with: nothing, or one of the tests' own.
fn sound() -> &'static [Tables] {
    macro_rules! golden {
        ($($name:literal),+) => {
            [$(include_str!(concat!("../../crates/cli/tests/golden/", $name, ".trace"))),+]
        };
    }
    static SOUND: OnceLock<Vec<Tables>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let texts = golden!(
            "asked",
            "build",
            "calls",
            "counted",
            "exchange",
            "handover",
            "interrupts",
            "knot",
            "load",
            "memory",
            "page",
            "paging",
            "regions",
            "starts"
        );
        let tables = texts.map(|text| text::parse(text).expect("a trace in text form").tables);
        std::iter::once(Tables::default()).chain(tables).collect()
    })
}

/// Choices out of bytes; 0 behind their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A value of a column: mostly one that others may refer to.
    fn value(&mut self, column: &Column) -> u64 {
        const STRANGE: [u64; 16] = [
            u64::MAX,
            u64::MAX - 1,
            1 << 63,
            (1 << 63) - 1,
            u32::MAX as u64,
            u32::MAX as u64 - 1,
            1 << 31,
            1 << 32,
            4_000_000_000,
            65535,
            32767,
            1_000,
            59_999_999_999,
            60_000_000_000,
            1 << 62,
            0xffff_ffff_8100_0000,
        ];
        let is_time = matches!(column.name, "ts" | "duration");
        match self.byte() {
            0xff => self.number(),
            0xfe => STRANGE[usize::from(self.byte() & 15)],
            // What lies far beyond the end is refused at once.
            byte @ 0x80.. if is_time => (u64::from(byte) << (byte & 31)) % 60_000_000_000,
            byte @ 0x80..0x90 => STRANGE[usize::from(byte & 15)],
            byte @ 0x90.. => u64::from(byte) << (byte & 31),
            byte if is_time => u64::from(byte) * 100_000,
            // There are few threads, processes, stacks and modules.
            byte @ ..0x60 if column.kind == "u32" => u64::from(byte & 15),
            byte => u64::from(byte),
        }
    }
}

/// Nobody waits, and no function is named: that is the parser's business.
struct Quietly;

impl Loading for Quietly {
    fn step(&mut self, _: &'static str) {}

    fn name_functions(
        &mut self,
        _: &Trace,
        _: &Modules,
        _: &Frames,
        _: &mut Symbols,
    ) -> Result<()> {
        Ok(())
    }
}

/// Makes a trace of the bytes, and asks all there is to ask.
pub fn any_tables(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    let base = usize::from(choices.byte());
    let mut tables = sound()[base % sound().len()].clone();
    let shape = choices.byte();
    let meta = Meta {
        arch: "x86_64".to_owned(),
        command_tid: (shape & 1 == 0).then_some(100),
        recorder_pid: (shape & 2 != 0).then_some(101),
        mode: match shape >> 2 & 3 {
            0 => Mode::Instant,
            1 => Mode::Flight,
            _ => Mode::Record,
        },
        started_unix_ns: if shape & 16 == 0 { 0 } else { u64::MAX },
        duration_ns: match shape >> 5 {
            0 => 0,
            1 => u64::MAX,
            2 => choices.number(),
            _ => 60_000_000,
        },
        ..Meta::default()
    };
    let number = u64::from(choices.byte());
    while !choices.0.is_empty() && tables.rows() < 2_000 {
        let (table, how, which) = (choices.byte(), choices.byte(), choices.byte());
        let row = |rows: usize| match how & 1 {
            0 => usize::from(which) % rows.max(1),
            _ => rows,
        };
        let mut left = 0;
        fuzz::alter(&mut tables, table.into(), row, &mut |column| {
            // All of a new row, one of an old one.
            let is_meant = how & 1 != 0 || left == how >> 1;
            left += 1;
            is_meant.then(|| choices.value(column))
        });
    }
    let path = folder().join("tables.hang");
    let _ = fs::remove_dir_all(&path);
    let mut writer = TraceWriter::create(&path, Meta::default()).expect("a trace");
    writer.tables = tables;
    writer.finish(meta).expect("a trace");
    // What is refused is refused in a sentence.
    if let Err(why) = ask(&path, number) {
        assert!(!why.to_string().is_empty());
    }
}

/// What the commands and the page ask of a trace.
fn ask(path: &Path, number: u64) -> Result<()> {
    let case = Case::load(path, &mut Quietly)?;
    let recording = &*case.recording;
    let trace = &recording.trace;
    let end = recording.timeline.end();
    let whole = Window { from: 0, to: end };
    let part = Window::new(
        Bounds {
            from: Some(Moment::At(number * 100_000)),
            to: Some(Moment::After(number.wrapping_mul(77) << 16)),
        },
        end,
    )
    .unwrap_or(whole);
    recording.loss.text();
    Loss::of(trace)?;
    trace.tables_info()?;
    if recording.timeline.threads().is_empty() {
        return Ok(());
    }
    let thread = (number % u64::from(recording.timeline.threads().end)) as u32;

    let asked = Asked {
        case: &case,
        thread,
        whole,
        part,
    };
    // One of them each time: reading takes its time too.
    match number % 3 {
        0 => asked.for_reports(),
        1 => asked.for_verdicts(path),
        _ => asked.for_operations(),
    }
}

/// What is asked about.
struct Asked<'a> {
    case: &'a Case,
    thread: u32,
    whole: Window,
    part: Window,
}

impl Asked<'_> {
    /// threads, story, load, at, interrupts, calls, regions, memory, top, flame, export.
    fn for_reports(&self) -> Result<()> {
        let Asked {
            case,
            thread,
            whole,
            part,
        } = *self;
        let recording = &*case.recording;
        let (trace, threads) = (&recording.trace, &recording.threads);
        json(&thread_rows(recording, part)?);
        json(&sources(&recording.interrupts, threads, whole));
        json(&rivals(recording, &[thread], part));
        json(&awake(recording, part.from));
        json(&range(case, thread, whole));
        json(&load(
            recording,
            part,
            (part.to - part.from) / 16,
            Chosen::default(),
        ));
        let samples = ThreadSamples::load(trace, thread)?;
        let called = ThreadCalls::load(trace, thread, &case.calls, &case.stacks)?;
        let story = Story {
            recording,
            stacks: &case.stacks,
            calls: &case.calls,
            samples: &samples,
            called: Some(&called),
            thread,
            window: part,
        };
        for entry in story.entries() {
            entry.text();
            entry.places().count();
            json(&entry);
        }
        let log: SystemCalls = trace.read()?;
        let selection = calls::Selection {
            window: whole,
            of: &|_| true,
            by: calls::By::Function,
        };
        json(&calls::kinds(
            &log,
            threads,
            &case.stacks,
            &case.calls,
            &selection,
        ));
        let marked = Marked::load(recording, None)?;
        let all = marked.chosen(recording, &regions::Chosen::default())?;
        json(&marked.rows(&all));
        json(&marked.occurrences(recording, &all));
        json(&marked.points(recording, &regions::Chosen::default())?);
        if let Some(region) = all.first() {
            json(&marked.picked(recording, region, &all, 1));
            let _ = marked.place(recording, region);
        }
        Snapshot::read(&trace.read()?, &trace.read()?, threads);

        let source = case.source();
        let selected = case.select(None, Bounds::default())?;
        for view in [View::OnCpu, View::OffCpu, View::Wakes] {
            if let Ok(fold) = case.fold(&selected, view) {
                Top::new(&source, &fold, By::Total);
                folded::write(&source, &fold, &mut sink())?;
                let _ = flame::write(&source, &fold, "a", "b", sink());
            }
        }
        let _ = firefox::write(&source, &selected.selection, sink());
        let _ = perfetto::write(&source, &selected.selection, &[], sink());
        Ok(())
    }

    /// graph, problems, why, explain.
    fn for_verdicts(&self, path: &Path) -> Result<()> {
        let Asked {
            case, thread, part, ..
        } = *self;
        let recording = &*case.recording;
        let (trace, threads) = (&recording.trace, &recording.threads);
        let samples = ThreadSamples::load(trace, thread)?;
        let called = ThreadCalls::load(trace, thread, &case.calls, &case.stacks)?;
        let evidence = case.evidence();
        let losses: Losses = trace.read()?;
        let sockets = SocketTable::new(trace.read()?, &trace.read()?);
        let graph = Graph::new(
            &evidence,
            Sources {
                losses: &losses,
                sockets: &sockets,
                handoffs: &trace.read()?,
            },
        );
        let view = part::View {
            thread,
            window: part.from..part.to,
            depth: 3,
            most: 60,
        };
        dot::draw(&evidence, &graph, &Part::new(&graph, &view));

        let answers = answers_file::read(path)?;
        let (problems, known) = rank::problems(case, &evidence);
        json(&problem_rows(case, &evidence, &problems, &known, &answers));
        for problem in problems.iter().take(3) {
            Found::new(&evidence, problem);
        }
        let wanted = Wanted::default();
        let run = whole_run(&wanted, false, &evidence, trace.meta(), &problems)?;
        if let Some(run) = &run {
            json(&diagnose_run(&evidence, run, case.setting(&answers, None)));
        }
        let of_thread = Problem::picked(thread, part.from..part.to);
        let chosen = choose(&wanted, &evidence, recording, &problems).map(|(problem, _)| problem);
        let judged = |problem: &Problem| known.verdict(case, &evidence, problem, &answers);
        if let Ok(chosen) = &chosen {
            laid_to_process(&wanted, chosen, recording, &problems, judged)?;
        }
        for problem in chosen.iter().chain([&of_thread]) {
            let verdict = judged(problem);
            signature(&verdict);
            known.repeats(&verdict);
            paging::of_verdict(case, &verdict);
            json(&verdict);
            let setting = case.setting(&answers, Some(&evidence));
            json(&diagnose(&evidence, problem, setting));
            explain(&evidence, problem, setting, 1);
            json(&wait::at(
                case,
                &evidence,
                &samples,
                &called,
                thread,
                problem.window.start,
            ));
            Who::new(threads, problem.thread).text();
        }
        Ok(())
    }

    /// paging, compare.
    fn for_operations(&self) -> Result<()> {
        let Asked {
            case,
            thread,
            whole,
            part,
        } = *self;
        let recording = &*case.recording;
        let threads = &recording.threads;
        let evidence = case.evidence();
        let (name, processes) = paging::own_processes(threads, None, None);
        paging::used_files(recording, &processes)?;
        paging::order(case, "libc", whole, &|_| true)?;
        let others = paging::other_starts(case, &name, &processes, whole);
        for processes in [processes, HashSet::from([threads.thread(thread).upid])] {
            let operation = Operation {
                window: part,
                name: name.clone(),
                processes,
                others: others.clone(),
            };
            json(&paging::paging(case, &operation)?);
        }
        if let Ok(found) = compare::Found::new(
            case,
            &evidence,
            None,
            whole,
            compare::Wanted::Turns { call: None },
        ) && let Ok(comparison) = found.compare(&evidence, Split::Apart)
        {
            json(&comparison);
            if let Some(difference) = &comparison.difference {
                json(&Aligned::of(&evidence, &found, difference));
            }
        }
        Ok(())
    }
}

fn json(answer: &impl serde::Serialize) {
    serde_json::to_writer(sink(), answer).expect("it is written");
}
