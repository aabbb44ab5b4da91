//! `hangdog export`: a trace in another tool's format.

use super::open::silent;
use crate::args::{ExportArgs, ExportFormat, FoldView};
use crate::load;
use crate::whole_file::WholeFile;
use anyhow::{Context, Result, bail};
use hangdog_diagnose::diagnose;
use hangdog_export::{Selection, Span, firefox, folded, perfetto};
use hangdog_report::Case;
use hangdog_report::answers_file;
use hangdog_report::format;
use hangdog_report::rank;
use hangdog_server::report;
use std::io::Write;
use std::path::Path;

/// Problems that are explained: beyond that, a track of them tells nothing more.
const MOST_PROBLEMS: usize = 50;

/// Writes it.
pub fn run(args: &ExportArgs) -> Result<()> {
    if let Some(file) = &args.html {
        return html(args, file);
    }
    // The arguments' definition asks for both where there is no --html.
    let (Some(format), Some(output)) = (args.format, &args.output) else {
        bail!("give --format and --output, or --html");
    };
    if args.view.is_some() && format != ExportFormat::Folded {
        bail!("--view applies to --format folded only; the other formats contain all stacks");
    }
    if args.selection.thread.is_some() && format == ExportFormat::Perfetto {
        bail!(
            "--format perfetto always shows all threads and takes no --thread; use --from and --to"
        );
    }
    let case = load::case(&args.trace)?;
    let selected = case.select(args.selection.thread.as_deref(), args.selection.window)?;
    let source = case.source();
    let cannot = || format!("cannot write {}", output.display());
    let mut file = WholeFile::create(output)?;
    match format {
        ExportFormat::Folded => {
            let view = args.view.unwrap_or(FoldView::OnCpu);
            let fold = case.fold(&selected, view.into())?;
            folded::write(&source, &fold, &mut file).with_context(cannot)?;
        }
        ExportFormat::Perfetto => {
            let problems = problems(&case, &selected.selection)?;
            perfetto::write(&source, &selected.selection, &problems, &mut file)
                .with_context(cannot)?;
        }
        ExportFormat::Firefox => {
            let markers =
                firefox::write(&source, &selected.selection, &mut file).with_context(cannot)?;
            if markers.are_limited() {
                say!(
                    "hangdog: of {}, only those of {} and longer have a marker; narrow the \
                     selection with --from, --to or --thread for more",
                    format::things(markers.waits as u64, "wait", "waits"),
                    format::duration(markers.at_least)
                );
            }
        }
    }
    file.finish(output)
}

/// A problem as a page.
fn html(args: &ExportArgs, path: &Path) -> Result<()> {
    let page = report(args.trace.clone(), silent(), args.problem, args.redact)?;
    let mut file = WholeFile::create(path)?;
    file.write_all(page.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.finish(path)
}

/// The worst problems that lie within the selection, each with its verdict.
fn problems(case: &Case, selection: &Selection) -> Result<Vec<Span>> {
    let recording = &case.recording;
    let evidence = case.evidence();
    let answers = answers_file::read(recording.trace.path())?;
    let setting = case.setting(&answers, None);
    let (found, _) = rank::problems(case, &evidence);
    Ok(found
        .iter()
        .filter(|problem| {
            let window = &problem.window;
            selection.has_thread(problem.thread)
                && selection.from <= window.start
                && window.end <= selection.to
        })
        .take(MOST_PROBLEMS)
        .map(|problem| Span {
            name: diagnose(&evidence, problem, setting).sentence,
            thread: problem.thread,
            start: problem.window.start,
            end: problem.window.end,
        })
        .collect())
}
