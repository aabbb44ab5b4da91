//! `hangdog flame`: a picture of where the time went.

use crate::args::FlameArgs;
use crate::exported::Material;
use crate::whole_file::WholeFile;
use anyhow::{Context, Result};
use hangdog_export::{View, flame};

/// Draws it.
pub fn run(args: &FlameArgs) -> Result<()> {
    let material = Material::load(&args.trace)?;
    let selected = material.select(&args.selection)?;
    let fold = material.fold(&selected, args.view)?;
    let title = match fold.view {
        View::OnCpu => "On-CPU: what ran",
        View::OffCpu => "Off-CPU: where threads blocked, and waited for a CPU",
        View::Wakes => "Wakes: where threads blocked, and who ended it",
    };
    let mut subtitle = selected.text(&material);
    if let (View::OnCpu, Some(period)) = (fold.view, material.source().sampling_period()) {
        let each = crate::format::duration(period);
        subtitle = format!("{subtitle}; a sample stands for {each}");
    }
    let mut file = WholeFile::create(&args.output)?;
    flame::write(&material.source(), &fold, title, &subtitle, &mut file)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    file.finish(&args.output)
}
