//! Where the last measurement of this machine is kept: a file in the user's cache, named after
//! machine and kernel, so that a home directory which several machines share holds one for each.
//!
//! Measuring needs no root and recording does, so under sudo the caller's cache is looked in too.
//! What lies there was written by somebody else than root: it is read as any file from outside, and
//! if it is no good, it is as if there were none.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::home::{self, Kind};
use anyhow::{Context, Result};
use hangdog_numbers::{Machine, Report, Unit};
use hangdog_trace::Yardstick;
use hangdog_trace::yardstick::Operation;

/// More than any report is long, bytes.
const LONGEST: u64 = 4 << 20;
/// The size for which [`Operation::DiskRead`] is looked up.
const DISK_READ: (&str, u64) = ("file.read_uncached", 4096);

/// Keeps a report as this machine's, unless it is a rough one and a good one is there. Says where.
pub fn store(report: &Report) -> Result<Option<PathBuf>> {
    let Some(cache) = home::own(Kind::Cache) else {
        return Ok(None);
    };
    let path = cache.join(name(&report.machine));
    if report.quick && read(&path).is_ok_and(|stored| !stored.quick) {
        return Ok(None);
    }
    let keep = || -> Result<()> {
        fs::create_dir_all(&cache)?;
        let mut file = tempfile::NamedTempFile::new_in(&cache)?;
        serde_json::to_writer_pretty(&mut file, report)?;
        file.write_all(b"\n")?;
        file.persist(&path)?;
        Ok(())
    };
    keep().with_context(|| format!("cannot keep the figures in {}", path.display()))?;
    Ok(Some(path))
}

/// What was measured last on this machine with this kernel, and where it is kept.
pub fn stored() -> Option<(Report, PathBuf)> {
    let name = name(&Machine::look(Path::new("/")));
    let caches = [home::own(Kind::Cache), home::of_caller(Kind::Cache)];
    caches.into_iter().flatten().find_map(|cache| {
        let path = cache.join(&name);
        Some((read(&path).ok()?, path))
    })
}

/// The same as traces keep it.
pub fn of_this_machine() -> Option<Yardstick> {
    stored().map(|(report, _)| yardstick(&report))
}

fn yardstick(report: &Report) -> Yardstick {
    let times = report
        .figures
        .iter()
        .filter(|figure| figure.unit == Unit::Ns);
    let costs = times.filter_map(|figure| match figure.at {
        None => Some((figure.id.clone(), figure.spread.median)),
        at if (figure.id.as_str(), at) == (DISK_READ.0, Some(DISK_READ.1)) => {
            Some((Operation::DiskRead.id().to_owned(), figure.spread.median))
        }
        Some(_) => None,
    });
    Yardstick {
        taken_unix_s: report.taken_unix_s,
        costs_ns: costs.collect(),
    }
}

/// Reads a report; the error says what is wrong with the file.
pub fn read(path: &Path) -> Result<Report> {
    let cannot = || format!("cannot read {}", path.display());
    let text = home::text(path, LONGEST).with_context(cannot)?;
    Report::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}

/// Kernel releases are words with dots and dashes; one with a slash would be no file name.
fn name(machine: &Machine) -> String {
    let kernel = machine.kernel.replace('/', "_");
    format!("numbers-{}-{kernel}.json", machine.key)
}
