//! `hangdog numbers`: what basic operations cost on this machine.

mod compared;
mod table;

use crate::args::NumbersArgs;
use crate::output::{self, Colour, Paint};
use crate::whole_file::WholeFile;
use crate::yardstick;
use anyhow::{Context, Result};
use hangdog_capture::system::{stop_asked, stop_on_signals};
use hangdog_numbers::{Progress, Report, Setting, compare, measure, methods, plot};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Measures, or shows what was measured.
pub fn run(args: &NumbersArgs) -> Result<ExitCode> {
    if args.list {
        return list().map(|()| ExitCode::SUCCESS);
    }
    if let [a, b] = &args.compare[..] {
        let (a, b) = (yardstick::read(a)?, yardstick::read(b)?);
        let comparison = compare::compare(&a, &b);
        if args.json {
            output::json(&comparison)?;
        } else {
            compared::print(&comparison, [&a, &b])?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = match args.stored {
        true => match yardstick::stored() {
            Some((report, _)) => report,
            None => {
                say!(
                    "hangdog: no measurements on this machine with this kernel yet; run `hangdog \
                     numbers`"
                );
                return Ok(ExitCode::from(super::NOTHING_FOUND));
            }
        },
        false => measured(args)?,
    };
    if args.json {
        output::json(&report)?;
    } else {
        table::print(&report)?;
    }
    if let Some(path) = &args.plot {
        draw(&report, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measured(args: &NumbersArgs) -> Result<Report> {
    stop_on_signals().context("cannot handle signals")?;
    let setting = Setting {
        dir: args.dir.clone(),
        quick: args.quick,
        only: args.only.clone(),
    };
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template("{bar:30} {msg}")?);
    let report = measure(&setting, stop_asked, |progress| show(&bar, progress));
    bar.finish_and_clear();
    let report = report?;
    // A partial measurement does not replace the baseline costs.
    if args.only.is_empty() {
        yardstick::store(&report)?;
    }
    Ok(report)
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let (made, all) = progress.visits;
    bar.set_length(all.into());
    bar.set_position(made.into());
    let left = Duration::from_secs(progress.left.as_secs() + 1);
    bar.set_message(format!("{} s left: {}", left.as_secs(), progress.method));
}

fn draw(report: &Report, path: &Path) -> Result<()> {
    let picture = plot::svg(report)?;
    let mut file = WholeFile::create(path)?;
    file.write_all(picture.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.finish(path)
}

/// How each figure is measured.
fn list() -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    for method in methods() {
        for kind in method.figures {
            let id = paint.text(Colour::Heading, kind.id);
            writeln!(out, "{id}  {}", kind.title)?;
        }
        writeln!(out, "    {}\n    After {}.\n", method.how, method.source)?;
    }
    Ok(out.flush()?)
}
