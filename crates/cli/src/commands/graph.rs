//! `hangdog graph`: the graph of causes, counted or drawn.

use crate::args::GraphArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use crate::whole_file::WholeFile;
use anyhow::{Result, bail};
use hangdog_diagnose::Problem;
use hangdog_graph::part::{Part, View};
use hangdog_graph::{Begin, Evidence, Graph, Sources, Strength, dot};
use hangdog_report::format;
use hangdog_report::loss::Loss;
use hangdog_report::rank;
use hangdog_report::select::{self, NothingFound, Window};
use hangdog_report::{Case, Recording};
use hangdog_trace::SocketTable;
use hangdog_trace::tables::{Handoffs, Losses};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// More vertices make no picture that anybody reads.
const MOST_DRAWN: usize = 60;

/// Builds the graph, and counts or draws it.
pub fn run(args: &GraphArgs) -> Result<()> {
    if args.dot && args.around.is_none() && args.thread.is_none() {
        bail!(
            "choose what to draw: --around N, numbered as in why --problem N, or --thread THREAD"
        );
    }
    let began = Instant::now();
    let case = load::case(&args.trace)?;
    let recording = &*case.recording;
    let losses: Losses = recording.trace.read()?;
    let handoffs: Handoffs = recording.trace.read()?;
    let sockets = SocketTable::new(recording.trace.read()?, &recording.trace.read()?);
    let evidence = case.evidence();
    let loaded = began.elapsed() - recording.timeline_took;
    let began = Instant::now();
    let graph = Graph::new(
        &evidence,
        Sources {
            losses: &losses,
            sockets: &sockets,
            handoffs: &handoffs,
        },
    );
    let built = began.elapsed();
    if args.dot {
        return draw(args, &case, &evidence, &graph);
    }
    let took = Took {
        load_s: loaded.as_secs_f64(),
        timeline_s: recording.timeline_took.as_secs_f64(),
        graph_s: built.as_secs_f64(),
    };
    let answer = Answer::new(&args.trace, recording, &evidence, &graph, took);
    if args.json {
        return output::json(&answer);
    }
    print(&answer)
}

fn draw(args: &GraphArgs, case: &Case, evidence: &Evidence<'_>, graph: &Graph) -> Result<()> {
    let Problem { thread, window, .. } = chosen(args, case, evidence)?;
    let view = View {
        thread,
        window,
        depth: args.depth,
        most: MOST_DRAWN,
    };
    let part = Part::new(graph, &view);
    let mut file = WholeFile::create(&args.output)?;
    file.write_all(dot::draw(evidence, graph, &part).as_bytes())?;
    file.finish(&args.output)
}

/// What is drawn: a problem, or what the user named.
fn chosen(args: &GraphArgs, case: &Case, evidence: &Evidence<'_>) -> Result<Problem> {
    let recording = &case.recording;
    let window = Window::new(args.window, recording.timeline.end())?;
    if let Some(selector) = &args.thread {
        let thread = select::thread(&recording.threads, &recording.timeline, window, selector)?;
        return Ok(Problem::picked(thread, window.from..window.to));
    }
    let number = args.around.unwrap_or(1);
    let (problems, _) = rank::problems(case, evidence);
    problems.get(number as usize - 1).cloned().ok_or_else(|| {
        let count = format::things(problems.len() as u64, "problem was", "problems were");
        NothingFound::new(format!("{count} found; there is no number {number}")).into()
    })
}

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    events: usize,
    threads: usize,
    vertices: usize,
    vertices_by_begin: Vec<Begun>,
    edges: usize,
    edges_by_kind: Vec<OfKind>,
    wakes: Wakes,
    transfers: Matched,
    took: Took,
}

/// Vertices that began in one way.
#[derive(Serialize)]
struct Begun {
    begin: &'static str,
    count: usize,
}

/// Edges of one kind.
#[derive(Serialize)]
struct OfKind {
    kind: &'static str,
    strong: usize,
    weak: usize,
}

/// What became of the wakes.
#[derive(Serialize)]
struct Wakes {
    edges: usize,
    upkeep: usize,
    moot: usize,
}

/// What became of the transfers.
#[derive(Serialize)]
struct Matched {
    sends: usize,
    sends_matched: usize,
    receives: usize,
    receives_matched: usize,
    doubtful_from_ns: Option<u64>,
}

/// How long each step took, s.
#[derive(Serialize)]
struct Took {
    load_s: f64,
    timeline_s: f64,
    graph_s: f64,
}

impl<'a> Answer<'a> {
    fn new(
        path: &'a Path,
        recording: &'a Recording,
        evidence: &Evidence<'_>,
        graph: &Graph,
        took: Took,
    ) -> Answer<'a> {
        let begins = graph.vertices.count_by_begin();
        // By kind, the strong ones and the weak ones.
        let mut edges_by_kind: BTreeMap<&'static str, [usize; 2]> = BTreeMap::new();
        for (kind, strength) in graph.edges.kinds() {
            let is_weak = usize::from(strength == Strength::Weak);
            edges_by_kind.entry(kind.text()).or_default()[is_weak] += 1;
        }
        let lives = |&thread: &u32| !graph.vertices.of_thread(thread).is_empty();
        let matched = graph.messages.matched();
        let events = [
            evidence.switches.len(),
            evidence.wakes.len(),
            recording.interrupts.len(),
            evidence.transfers.len(),
            evidence.samples.len(),
        ];
        Answer {
            trace: path,
            loss: &recording.loss,
            events: events.iter().sum(),
            threads: graph.vertices.threads().filter(lives).count(),
            vertices: graph.vertices.len(),
            vertices_by_begin: Begin::ALL
                .iter()
                .zip(begins)
                .filter(|&(_, count)| count > 0)
                .map(|(begin, count)| Begun {
                    begin: begin.text(),
                    count,
                })
                .collect(),
            edges: graph.edges.len(),
            edges_by_kind: edges_by_kind
                .into_iter()
                .map(|(kind, [strong, weak])| OfKind { kind, strong, weak })
                .collect(),
            wakes: Wakes {
                edges: graph.wakes.edges,
                upkeep: graph.wakes.upkeep,
                moot: graph.wakes.moot,
            },
            transfers: Matched {
                sends: matched.sends,
                sends_matched: matched.sends_matched,
                receives: matched.receives,
                receives_matched: matched.receives_matched,
                doubtful_from_ns: Some(graph.messages.doubtful_from()).filter(|&ts| ts < u64::MAX),
            },
            took,
        }
    }
}

fn print(answer: &Answer<'_>) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = |text: &str| paint.text(Colour::Heading, text);
    let count = |n: usize| format::count(n as u64);
    writeln!(
        out,
        "{}  {} of {}",
        heading("vertices"),
        count(answer.vertices),
        format::things(answer.threads as u64, "thread", "threads"),
    )?;
    for begun in &answer.vertices_by_begin {
        writeln!(
            out,
            "  begun by {:<9} {:>11}",
            begun.begin,
            count(begun.count)
        )?;
    }
    writeln!(out, "{}     {}", heading("edges"), count(answer.edges))?;
    for of_kind in &answer.edges_by_kind {
        writeln!(
            out,
            "  {:<17} {:>12} strong {:>12} weak",
            of_kind.kind,
            count(of_kind.strong),
            count(of_kind.weak)
        )?;
    }
    let wakes = &answer.wakes;
    writeln!(
        out,
        "{}     {} are edges, {} of threads that did not wait, {} kernel housekeeping",
        heading("wakes"),
        count(wakes.edges),
        count(wakes.moot),
        count(wakes.upkeep)
    )?;
    let transfers = &answer.transfers;
    writeln!(
        out,
        "{}  {} of {} sends and {} of {} receives matched",
        heading("messages"),
        count(transfers.sends_matched),
        count(transfers.sends),
        count(transfers.receives_matched),
        count(transfers.receives)
    )?;
    if let Some(from) = transfers.doubtful_from_ns {
        writeln!(
            out,
            "          uncertain from {} on, because socket or pipe I/O was lost or not recorded",
            format::moment(from)
        )?;
    }
    let took = &answer.took;
    writeln!(
        out,
        "{}      {:.2} s to load {} events, {:.2} s for the timeline, {:.2} s for the graph",
        heading("took"),
        took.load_s,
        count(answer.events),
        took.timeline_s,
        took.graph_s
    )?;
    writeln!(out, "Lost: {}", answer.loss.text())?;
    Ok(out.flush()?)
}
