//! `hangdog top`: the functions that time went to.

use crate::args::{TopArgs, TopBy, TopView};
use crate::load;
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use comfy_table::{Attribute, Cell, CellAlignment, Table, presets};
use hangdog_export::View;
use hangdog_export::fold::{Doing, Fold, Weight};
use hangdog_export::top::{By, Completeness, Function, Top};
use hangdog_report::format;
use hangdog_report::loss::Loss;
use serde::{Serialize, Serializer};
use std::io::Write;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    view: &'static str,
    /// Time between two samples of a CPU; none off the CPU, and where the trace does not tell.
    period_ns: Option<u64>,
    /// The whole that shares are of.
    whole: Amount,
    /// How far the stacks tell.
    stacks: Stacks,
    /// Time waiting for a CPU, which belongs to no function.
    waiting_ns: u64,
    #[serde(serialize_with = "rows")]
    functions: (&'a Top<'a>, Scale, usize),
    /// Functions that -n left out.
    left_out: usize,
}

/// How much of something.
#[derive(Serialize)]
struct Amount {
    count: u64,
    ns: u64,
}

impl From<Weight> for Amount {
    fn from(weight: Weight) -> Amount {
        Amount {
            count: weight.count,
            ns: weight.ns,
        }
    }
}

/// How far the user stacks of programs tell.
#[derive(Serialize)]
struct Stacks {
    of_programs: Amount,
    without: Amount,
    incomplete: Amount,
    unknown: Amount,
}

impl From<Completeness> for Stacks {
    fn from(stacks: Completeness) -> Stacks {
        Stacks {
            of_programs: stacks.of_programs.into(),
            without: stacks.without.into(),
            incomplete: stacks.incomplete.into(),
            unknown: stacks.unknown.into(),
        }
    }
}

/// What shares are counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Samples { timed: bool },
    Time,
}

impl Scale {
    /// The amount that a share is made of.
    fn amount(self, weight: Weight) -> u64 {
        match self {
            Scale::Samples { .. } => weight.count,
            Scale::Time => weight.ns,
        }
    }

    fn text(self, weight: Weight) -> String {
        match self {
            Scale::Samples { timed: false } => format::count(weight.count),
            _ => format::duration(weight.ns),
        }
    }
}

fn rows<S: Serializer>(
    (top, scale, limit): &(&Top<'_>, Scale, usize),
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Row<'a> {
        function: &'a str,
        module: Option<&'a str>,
        kernel: bool,
        #[serde(rename = "self")]
        own: Amount,
        self_share: f64,
        total: Amount,
        total_share: f64,
    }
    let whole = scale.amount(top.whole).max(1) as f64;
    let share = |weight| scale.amount(weight) as f64 / whole;
    to.collect_seq(top.functions.iter().take(*limit).map(|function| Row {
        function: &function.name,
        module: function.module,
        kernel: function.kernel,
        own: function.own.into(),
        self_share: share(function.own),
        total: function.total.into(),
        total_share: share(function.total),
    }))
}

/// Lists them.
pub fn run(args: &TopArgs) -> Result<()> {
    let case = load::case(&args.trace)?;
    let selected = case.select(args.selection.thread.as_deref(), args.selection.window)?;
    let source = case.source();
    let (view, scale, period_ns) = match args.view {
        TopView::OnCpu => {
            let period = source.sampling_period();
            let timed = period.is_some();
            (View::OnCpu, Scale::Samples { timed }, period)
        }
        TopView::OffCpu => (View::OffCpu, Scale::Time, None),
    };
    let fold = case.fold(&selected, view)?;
    let by = match args.by {
        TopBy::Own => By::Own,
        TopBy::Total => By::Total,
    };
    let top = Top::new(&source, &fold, by);
    let limit = match args.limit {
        0 => usize::MAX,
        limit => limit,
    };
    let left_out = top.functions.len().saturating_sub(limit);
    let waiting_ns = waiting(&fold);
    let loss = &case.recording.loss;
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss,
            from_ns: selected.selection.from,
            to_ns: selected.selection.to,
            view: fold.view.text(),
            period_ns,
            whole: top.whole.into(),
            stacks: top.stacks.into(),
            waiting_ns,
            functions: (&top, scale, limit),
            left_out,
        });
    }
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = selected.text(&case);
    writeln!(out, "{}", paint.text(Colour::Heading, &heading))?;
    writeln!(out, "{}", summary(&top, scale, period_ns, waiting_ns))?;
    writeln!(out, "{}", stacks(&top.stacks, scale))?;
    writeln!(out, "Lost: {}", loss.text())?;
    writeln!(out)?;
    table(&top, scale, limit, paint, &mut out)?;
    if left_out > 0 {
        let more = format::things(left_out as u64, "more function", "more functions");
        writeln!(out, "\n{more}: raise -n")?;
    }
    Ok(out.flush()?)
}

/// Time waiting for a CPU.
fn waiting(fold: &Fold) -> u64 {
    fold.total(|key| key.doing == Doing::WaitingForCpu).ns
}

/// The whole, in a line.
fn summary(top: &Top<'_>, scale: Scale, period_ns: Option<u64>, waiting_ns: u64) -> String {
    let Weight { ns, count } = top.whole;
    match (scale, period_ns) {
        (Scale::Samples { .. }, Some(period)) => format!(
            "On the CPU: {}, one every {} of each CPU's time, so about {}",
            format::things(count, "sample", "samples"),
            format::duration(period),
            format::duration(ns)
        ),
        (Scale::Samples { .. }, None) => {
            let samples = format::things(count, "sample", "samples");
            format!("On the CPU: {samples}; the trace does not say how often they were taken")
        }
        (Scale::Time, _) => format!(
            "Off the CPU: blocked {} in {}; plus {} waiting for a CPU",
            format::duration(ns),
            format::things(count, "wait", "waits"),
            format::duration(waiting_ns)
        ),
    }
}

/// How far the stacks tell, in a line.
fn stacks(stacks: &Completeness, scale: Scale) -> String {
    let whole = scale.amount(stacks.of_programs);
    if whole == 0 {
        return "User stacks: none, these are threads of the kernel".into();
    }
    let share = |weight| format::percent(scale.amount(weight), whole);
    let mut parts = Vec::new();
    for (weight, what) in [
        (stacks.without, "without"),
        (stacks.incomplete, "truncated before the outermost function"),
        (stacks.unknown, "possibly incomplete"),
    ] {
        if scale.amount(weight) > 0 {
            parts.push(format!("{} {what}", share(weight)));
        }
    }
    match parts.is_empty() {
        true => "User stacks: all complete".into(),
        false => format!("User stacks: {}", parts.join(", ")),
    }
}

fn table(
    top: &Top<'_>,
    scale: Scale,
    limit: usize,
    paint: Paint,
    out: &mut impl Write,
) -> Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !paint.is_on() {
        table.force_no_tty();
    }
    // C++ has functions whose names are longer than any line: the last column.
    let headings = ["self", "", "total", "", "module", "function"];
    table.set_header(headings.map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    let whole = scale.amount(top.whole);
    let share = |weight| format::percent(scale.amount(weight), whole);
    for function in top.functions.iter().take(limit) {
        let Function { own, total, .. } = *function;
        table.add_row([
            scale.text(own),
            share(own),
            scale.text(total),
            share(total),
            format::printable(function.module.unwrap_or_default()).into_owned(),
            format::printable(&function.name).into_owned(),
        ]);
    }
    for column in table.column_iter_mut().take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
