//! `hangdog export`: a trace in another tool's format.

use crate::answers_file;
use crate::args::{ExportArgs, ExportFormat, FoldView};
use crate::case::{self, Links};
use crate::exported::Material;
use crate::format;
use crate::whole_file::WholeFile;
use anyhow::{Context, Result, bail};
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Setting, diagnose, problem};
use hangdog_export::{Selection, Span, firefox, folded, perfetto};

/// Problems that are explained: beyond that, a track of them tells nothing more.
const MOST_PROBLEMS: usize = 50;

/// Writes it.
pub fn run(args: &ExportArgs) -> Result<()> {
    if args.view.is_some() && args.format != ExportFormat::Folded {
        bail!("--view chooses the stacks of --format folded; the other formats hold all of them");
    }
    if args.selection.thread.is_some() && args.format == ExportFormat::Perfetto {
        bail!(
            "--thread does not go with --format perfetto: who had a CPU is told of all threads; \
             --from and --to do"
        );
    }
    let material = Material::load(&args.trace)?;
    let selected = material.select(&args.selection)?;
    let source = material.source();
    let cannot = || format!("cannot write {}", args.output.display());
    let mut file = WholeFile::create(&args.output)?;
    match args.format {
        ExportFormat::Folded => {
            let view = args.view.unwrap_or(FoldView::OnCpu);
            let fold = material.fold(&selected, view)?;
            folded::write(&source, &fold, &mut file).with_context(cannot)?;
        }
        ExportFormat::Perfetto => {
            let problems = problems(&material, &selected.selection)?;
            perfetto::write(&source, &selected.selection, &problems, &mut file)
                .with_context(cannot)?;
        }
        ExportFormat::Firefox => {
            let markers =
                firefox::write(&source, &selected.selection, &mut file).with_context(cannot)?;
            if markers.are_limited() {
                say!(
                    "hangdog: of {}, those of {} and longer have a marker; --from, --to and \
                     --thread show more of fewer",
                    format::things(markers.waits as u64, "wait", "waits"),
                    format::duration(markers.at_least)
                );
            }
        }
    }
    file.finish(&args.output)
}

/// The worst problems that lie within the selection, each with its verdict.
fn problems(material: &Material, selection: &Selection) -> Result<Vec<Span>> {
    let recording = &material.recording;
    let links = Links::read(&recording.trace)?;
    let evidence = case::evidence(recording, &material.stacks, &material.samples, &links);
    let setting = Setting {
        lost: recording.loss.total > 0,
        answers: &answers_file::read(recording.trace.path())?,
        baseline: None,
        yardstick: recording.trace.meta().yardstick.as_ref(),
        instant: recording.trace.meta().is_instant(),
    };
    let found = problem::find(&evidence, Scope::of(recording.trace.meta()));
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
