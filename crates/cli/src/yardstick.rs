//! Where the last measurement of this machine is kept: a file in the user's cache, named after
//! machine and kernel, so that a home directory which several machines share holds one for each.
//!
//! Measuring needs no root and recording does, so under sudo the caller's cache is looked in too.
//! What lies there was written by somebody else than root: it is read as any file from outside, and
//! if it is no good, it is as if there were none.

use std::env;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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
    let Some(cache) = own_cache() else {
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
    let caches = [own_cache(), callers_cache()];
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
    // A pipe would keep us waiting for ever.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .with_context(cannot)?;
    let mut text = String::new();
    file.take(LONGEST)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    Report::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}

/// Kernel releases are words with dots and dashes; one with a slash would be no file name.
fn name(machine: &Machine) -> String {
    let kernel = machine.kernel.replace('/', "_");
    format!("numbers-{}-{kernel}.json", machine.key)
}

/// As the XDG base directory specification has it.
fn own_cache() -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("hangdog"))
}

/// Of the user who called sudo.
fn callers_cache() -> Option<PathBuf> {
    let uid: libc::uid_t = env::var("SUDO_UID").ok()?.parse().ok()?;
    Some(home_of(uid)?.join(".cache/hangdog"))
}

fn home_of(uid: libc::uid_t) -> Option<PathBuf> {
    let mut text = vec![0; 16 << 10];
    // SAFETY: a zeroed passwd is one of null pointers and numbers; the call fills it with pointers
    // into `text`, which outlives their use here.
    unsafe {
        let mut entry: libc::passwd = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        let failed = libc::getpwuid_r(uid, &mut entry, text.as_mut_ptr(), text.len(), &mut found);
        if failed != 0 || found.is_null() || entry.pw_dir.is_null() {
            return None;
        }
        let home = CStr::from_ptr(entry.pw_dir);
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(home.to_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The home of the user who runs the test is found by his number.
    #[test]
    fn a_home_is_found_by_number() {
        assert_eq!(home_of(0), Some("/root".into()));
        assert_eq!(home_of(4_000_000_000), None);
    }
}
