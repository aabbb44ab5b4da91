//! A part of a graph as a drawing for Graphviz: a row for each thread, time going to the right.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::ops::Range;

use hangdog_timeline::{Interval, State};
use hangdog_trace::ids::Utid;

use crate::edge::{EdgeKind, Strength};
use crate::evidence::Evidence;
use crate::graph::{Arrow, Graph, Origin};
use crate::part::{Part, Shown};
use crate::vertex::VertexId;
use crate::wait::Wait;

const HEAD: &str = "digraph causes {
  rankdir=LR; newrank=true; nodesep=0.15; ranksep=0.3; fontname=\"sans-serif\";
  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f4f4f4\", color=\"#888888\", \
fontname=\"sans-serif\", fontsize=10];
  edge [fontname=\"sans-serif\", fontsize=9];
";

/// Draws a part of a graph in the DOT language.
pub fn draw(evidence: &Evidence<'_>, graph: &Graph, part: &Part) -> String {
    let mut dot = Drawing {
        evidence,
        graph,
        text: HEAD.to_owned(),
    };
    for (&thread, row) in &part.rows {
        dot.row(thread, row, part.focus);
    }
    let origins: BTreeSet<String> = part.arrows.iter().filter_map(|a| outside(a.from)).collect();
    for origin in origins {
        let origin = quoted(&origin);
        dot.line(format_args!(
            "  {origin} [shape=ellipse, fillcolor=\"#e8e0f0\"];"
        ));
    }
    for arrow in &part.arrows {
        dot.arrow(arrow);
    }
    dot.text.push_str("}\n");
    dot.text
}

struct Drawing<'a> {
    evidence: &'a Evidence<'a>,
    graph: &'a Graph,
    text: String,
}

impl Drawing<'_> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// The vertices of one thread, tied to each other so that they stay in order.
    fn row(&mut self, thread: Utid, row: &[Shown], focus: Option<VertexId>) {
        let tid = self.evidence.threads.thread(thread).tid;
        let name = quoted(&format!("{} ({tid})", self.evidence.name(thread)));
        self.line(format_args!(
            "  subgraph cluster_{thread} {{\n    label={name}; labeljust=l; color=\"#cccccc\";"
        ));
        for shown in row {
            match shown {
                Shown::Vertex(vertex) => {
                    let label = quoted(&self.label(thread, *vertex));
                    let look = match focus == Some(*vertex) {
                        true => ", fillcolor=\"#ffd9d0\", color=\"#c03020\", penwidth=2",
                        false => "",
                    };
                    self.line(format_args!("    v{vertex} [label={label}{look}];"));
                }
                Shown::Folded(range) => {
                    let label = quoted(&self.folded(range));
                    self.line(format_args!(
                        "    f{} [label={label}, shape=plain, style=\"\", fontcolor=\"#666666\"];",
                        range.start
                    ));
                }
            }
        }
        for pair in row.windows(2) {
            let [from, to] = [&pair[0], &pair[1]].map(node);
            self.line(format_args!(
                "    {from} -> {to} [color=\"#bbbbbb\", arrowhead=none, weight=20];"
            ));
        }
        self.line(format_args!("  }}"));
    }

    fn folded(&self, range: &Range<VertexId>) -> String {
        let vertices = &self.graph.vertices;
        let ns = vertices.end(range.end - 1) - vertices.start(range.start);
        match range.len() {
            1 => format!("1 more,\n{}", time(ns)),
            count => format!("{count} more,\n{}", time(ns)),
        }
    }

    /// When it began, how long it ran, where it was seen, and what it came to.
    fn label(&self, thread: Utid, vertex: VertexId) -> String {
        let vertices = &self.graph.vertices;
        let (start, end) = (vertices.start(vertex), vertices.end(vertex));
        let intervals = || self.evidence.timeline.between(thread, start, end);
        let ran: u64 = intervals()
            .filter(|interval| interval.state.is_on_cpu())
            .map(|interval| interval.duration())
            .sum();
        let mut label = format!("at {}: ran {}", seconds(start), time(ran));
        let wanted: u64 = intervals()
            .filter(|interval| interval.state.wants_cpu())
            .map(|interval| interval.duration())
            .sum();
        if wanted > ran {
            let _ = write!(label, ",\nrunnable for {}", time(wanted));
        }
        if let Some(function) = self.top_function(thread, start..end) {
            let _ = write!(label, "\nin {function}");
        }
        if let Some(last) = intervals().last().filter(|i| i.state == State::Blocked) {
            let phrase = Wait::new(self.evidence, thread, &last).phrase(self.evidence);
            let _ = write!(label, "\n{phrase}\nfor {}", time(duration(&last)));
        }
        label
    }

    /// The function in which the sampling clock found it most often.
    fn top_function(&self, thread: Utid, within: Range<u64>) -> Option<String> {
        let samples = self.evidence.samples;
        let first = samples.ts.partition_point(|&ts| ts < within.start);
        let last = samples.ts.partition_point(|&ts| ts < within.end);
        let mut times: HashMap<String, usize> = HashMap::new();
        for row in (first..last.max(first)).filter(|&row| samples.thread[row] == thread) {
            let stack = match samples.kernel_stack[row] {
                0 => samples.user_stack[row],
                kernel => kernel,
            };
            if let Some(frame) = self.evidence.stacks.stack(stack).next() {
                *times.entry(frame.to_string()).or_default() += 1;
            }
        }
        let most = times
            .into_iter()
            .max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
        most.map(|(function, _)| function)
    }

    fn arrow(&mut self, arrow: &Arrow) {
        let from = match arrow.from {
            Origin::Vertex(from) => format!("v{from}"),
            other => outside(other).map_or_else(String::new, |origin| quoted(&origin)),
        };
        let label = match arrow.kind {
            EdgeKind::Next => "possibly other work".to_owned(),
            kind => format!("{}\n{}", kind.text(), seconds(arrow.ts)),
        };
        let style = match arrow.strength {
            Strength::Strong => "solid",
            Strength::Weak => "dashed",
        };
        let (to, label, colour) = (arrow.to, quoted(&label), colour(arrow.kind));
        self.line(format_args!(
            "  {from} -> v{to} [label={label}, style={style}, color=\"{colour}\", \
             fontcolor=\"{colour}\"];"
        ));
    }
}

fn node(shown: &Shown) -> String {
    match shown {
        Shown::Vertex(vertex) => format!("v{vertex}"),
        Shown::Folded(range) => format!("f{}", range.start),
    }
}

/// What the origin is called if it is no thread.
fn outside(origin: Origin) -> Option<String> {
    Some(match origin {
        Origin::Vertex(_) => return None,
        Origin::Timer => "timer".to_owned(),
        Origin::Disk => "disk".to_owned(),
        Origin::Network => "network".to_owned(),
        Origin::Device(number) => format!("interrupt {number}"),
        Origin::Nobody => "not known".to_owned(),
    })
}

fn colour(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Unlock | EdgeKind::Holder => "#c05000",
        EdgeKind::Signal | EdgeKind::Message | EdgeKind::Work => "#1060b0",
        EdgeKind::Timer => "#7040a0",
        EdgeKind::Disk | EdgeKind::Network | EdgeKind::Interrupt => "#007050",
        EdgeKind::Fork | EdgeKind::Exit | EdgeKind::Kill => "#a02060",
        _ => "#777777",
    }
}

fn duration(interval: &Interval) -> u64 {
    interval.end - interval.start
}

/// A duration, in milliseconds to the microsecond.
fn time(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// A moment, in seconds to the microsecond.
fn seconds(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// A text as DOT has it. A trace may name threads and functions anything; long ones are cut.
fn quoted(text: &str) -> String {
    const LONGEST_LINE: usize = 60;
    let mut quoted = String::from("\"");
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            quoted.push_str("\\n");
        }
        for (at, letter) in line.chars().enumerate() {
            match letter {
                _ if at == LONGEST_LINE => {
                    quoted.push('…');
                    break;
                }
                '"' | '\\' => quoted.extend(['\\', letter]),
                letter if letter.is_control() => quoted.push(char::REPLACEMENT_CHARACTER),
                letter => quoted.push(letter),
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name cannot end its quotes, nor break its line; a line that is too long is cut.
    #[test]
    fn names_stay_quoted() {
        assert_eq!(quoted("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(quoted("a\nb\tc"), "\"a\\nb\u{fffd}c\"");
        assert_eq!(quoted(&"x".repeat(61)).chars().count(), 63);
    }
}
