//! `hangdog flame`: a picture of where the time went.

use crate::args::FlameArgs;
use crate::load;
use crate::whole_file::WholeFile;
use anyhow::{Context, Result};
use hangdog_export::{View, flame};

/// Draws it.
pub fn run(args: &FlameArgs) -> Result<()> {
    let case = load::case(&args.trace)?;
    let selected = case.select(args.selection.thread.as_deref(), args.selection.window)?;
    let fold = case.fold(&selected, args.view.into())?;
    let title = match fold.view {
        View::OnCpu => "On-CPU: what ran",
        View::OffCpu => "Off-CPU: where threads blocked, and waited for a CPU",
        View::Wakes => "Wakes: where threads blocked, and who ended it",
    };
    let mut subtitle = selected.text(&case);
    if let (View::OnCpu, Some(period)) = (fold.view, case.source().sampling_period()) {
        let each = hangdog_report::format::duration(period);
        subtitle = format!("{subtitle}; a sample stands for {each}");
    }
    let mut file = WholeFile::create(&args.output)?;
    flame::write(&case.source(), &fold, title, &subtitle, &mut file)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    file.finish(&args.output)
}
