//! The part of a graph that a person looks at: some thread's vertices in some time, and back along
//! what led to them, the longest first, as many as can be read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use hangdog_trace::ids::Utid;

use crate::graph::{Arrow, Graph, Origin};
use crate::vertex::VertexId;

/// What to look at.
#[derive(Clone, Debug)]
pub struct View {
    /// Whose vertices to begin with.
    pub thread: Utid,
    /// In which time, ns since the trace's start.
    pub window: Range<u64>,
    /// How many edges between threads to go back at most.
    pub depth: usize,
    /// How many vertices to show at most.
    pub most: usize,
}

/// What is shown of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The vertex that most of the window lies in; none if the thread does not live then.
    pub focus: Option<VertexId>,
    /// Each thread's row, by utid.
    pub rows: BTreeMap<Utid, Vec<Shown>>,
    /// The edges between what is shown, without those that only go on in a thread.
    pub arrows: Vec<Arrow>,
}

/// A place in a thread's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A vertex.
    Vertex(VertexId),
    /// Some that follow each other and are not shown.
    Folded(Range<VertexId>),
}

impl Part {
    /// Chooses what is shown.
    pub fn new(graph: &Graph, view: &View) -> Part {
        let chosen = choose(graph, view);
        let length = |vertex: &VertexId| within(graph, *vertex, &view.window);
        let own = graph.vertices.of_thread(view.thread);
        let focus = chosen.range(own).copied().max_by_key(length);
        let mut rows: BTreeMap<Utid, Vec<VertexId>> = BTreeMap::new();
        for &vertex in &chosen {
            let row = rows.entry(graph.vertices.thread(vertex)).or_default();
            row.push(vertex);
        }
        let is_shown = |arrow: &Arrow| match arrow.from {
            Origin::Vertex(from) => chosen.contains(&from),
            _ => true,
        };
        let arrows = chosen
            .iter()
            .flat_map(|&vertex| graph.edges.leading_to(vertex))
            .filter(is_shown)
            .collect();
        let rows = rows
            .into_iter()
            .map(|(thread, row)| (thread, fold(graph, thread, &row, &view.window)))
            .collect();
        Part {
            focus,
            rows,
            arrows,
        }
    }
}

/// How much of a vertex lies in the window, ns.
fn within(graph: &Graph, vertex: VertexId, window: &Range<u64>) -> u64 {
    let (start, end) = (graph.vertices.start(vertex), graph.vertices.end(vertex));
    end.min(window.end).saturating_sub(start.max(window.start))
}

/// A vertex that takes less of the window than this part is shown only for what it began or ended.
const LEAST_PART: u64 = 200;

/// The vertices shown: from the thread's own in the window (and the next, which what ended the last
/// wait leads to), the longest first, back to what led to each.
fn choose(graph: &Graph, view: &View) -> BTreeSet<VertexId> {
    let (vertices, window) = (&graph.vertices, &view.window);
    let length = |vertex| within(graph, vertex, window);
    let least = (window.end - window.start) / LEAST_PART;
    let own = vertices.of_thread(view.thread);
    let mut chosen = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut next = BinaryHeap::new();
    let last = own.clone().rfind(|&v| vertices.start(v) <= window.end);
    for vertex in last.into_iter().flat_map(|last| (own.start..=last).rev()) {
        if vertices.end(vertex) < window.start {
            break;
        }
        if length(vertex) >= least || Some(vertex) == last {
            seen.insert(vertex);
            next.push((length(vertex), Reverse(0), vertex));
        }
    }
    // What ended the last wait leads to this one, whatever its length.
    chosen.extend(last.filter(|last| seen.contains(last)));
    while chosen.len() < view.most
        && let Some((long, Reverse(depth), vertex)) = next.pop()
    {
        chosen.insert(vertex);
        // What began it, and what ended its wait.
        let led = [Some(vertex), next_of(graph, vertex)].into_iter().flatten();
        for arrow in led.flat_map(|vertex| graph.edges.leading_to(vertex)) {
            if let Origin::Vertex(from) = arrow.from
                && depth < view.depth
                && (depth == 0 || window.start <= arrow.ts)
                && arrow.ts <= window.end
                && long.max(length(from)) >= least
                && seen.insert(from)
            {
                next.push((length(from), Reverse(depth + 1), from));
            }
        }
        // What it did before, as far as that was in the window.
        if vertex > vertices.of_thread(vertices.thread(vertex)).start
            && vertices.start(vertex) > window.start
            && length(vertex - 1) >= least
            && seen.insert(vertex - 1)
        {
            next.push((length(vertex - 1), Reverse(depth), vertex - 1));
        }
    }
    chosen
}

/// The vertex that follows in the thread.
fn next_of(graph: &Graph, vertex: VertexId) -> Option<VertexId> {
    let own = graph.vertices.of_thread(graph.vertices.thread(vertex));
    (vertex + 1 < own.end).then_some(vertex + 1)
}

/// A thread's row: the vertices shown, and between them, and out to the window's ends, the others.
fn fold(graph: &Graph, thread: Utid, row: &[VertexId], window: &Range<u64>) -> Vec<Shown> {
    let own = graph.vertices.of_thread(thread);
    let at = |ts: u64, otherwise: VertexId| graph.vertices.at(thread, ts).unwrap_or(otherwise);
    let (Some(&first), Some(&last)) = (row.first(), row.last()) else {
        return Vec::new();
    };
    let mut from = at(window.start, own.start).min(first);
    let until = at(window.end.saturating_sub(1), own.end.saturating_sub(1)).max(last) + 1;
    let mut shown = Vec::new();
    for &vertex in row {
        if from < vertex {
            shown.push(Shown::Folded(from..vertex));
        }
        shown.push(Shown::Vertex(vertex));
        from = vertex + 1;
    }
    if from < until {
        shown.push(Shown::Folded(from..until));
    }
    shown
}
