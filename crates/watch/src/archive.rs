//! The directory of the hangs that were caught.
//!
//! ```text
//! 20261122-140322-gedit.hang/          a trace
//! 20261122-140322-gedit.json           the verdict on it
//! report-0f3a5c7712d9e801.json         all hangs of one cause: how often, when, in a sentence
//! ```
//!
//! Traces are large: the oldest go when they take more than the limit, each with its verdict.
//! Reports are small and stay. A file that cannot be read is told of and passed over; only what is
//! named like this is ever removed.
//!
//! Root may keep it in a folder that a user owns, who can put something else in its place at any
//! time. So the watch opens the folder once, takes it only if it is root's, and reaches what is in
//! it through that descriptor (`/proc/self/fd/N/NAME`), never by the folder's path again.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A step that failed, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {why}")]
pub struct Error {
    doing: String,
    why: io::Error,
}

fn failed(doing: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> Error {
    |why| Error {
        doing: doing(),
        why,
    }
}

/// One time that a hang was caught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occasion {
    /// When it began, ns since 1970.
    pub unix_ns: u64,
    /// How long it stood for sure, ns; longer if it was not over then.
    pub duration_ns: u64,
    /// Whether it was not over when it was saved.
    pub goes_on: bool,
    /// The process.
    pub pid: u32,
    /// The thread that stalled.
    pub tid: u32,
    /// Name of the trace's folder.
    pub trace: String,
    /// When it began within the trace, ns since the trace's start.
    pub from_ns: u64,
    /// When it was last seen to stand, ns since the trace's start.
    pub to_ns: u64,
}

/// All hangs of one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What the cause is known by.
    pub signature: String,
    /// The program that was held up.
    pub program: String,
    /// By what it was noticed: `window`, `stall`.
    pub sign: String,
    /// The last verdict in a sentence.
    pub sentence: String,
    /// How often it was caught.
    pub count: u64,
    /// When it was caught for the first time, ns since 1970.
    pub first_unix_ns: u64,
    /// The last times, the newest last; never empty.
    pub occasions: Vec<Occasion>,
}

impl Report {
    /// The last time.
    pub fn last(&self) -> Option<&Occasion> {
        self.occasions.last()
    }
}

/// What was found out about a hang that was caught.
#[derive(Clone, Debug)]
pub struct Catch {
    /// What the cause is known by.
    pub signature: String,
    /// The program that was held up.
    pub program: String,
    /// By what it was noticed.
    pub sign: String,
    /// The verdict in a sentence.
    pub sentence: String,
    /// This time.
    pub occasion: Occasion,
}

/// A file that should be a report and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The folder.
#[derive(Clone, Debug)]
pub struct Archive {
    folder: PathBuf,
    /// Of whoever writes into it.
    open: Option<Arc<OwnedFd>>,
}

const TRACE: &str = ".hang";
const REPORT: &str = "report-";
const JSON: &str = ".json";
/// No report is larger.
const MOST_BYTES: u64 = 1 << 20;
/// A report remembers so many occasions,
const MOST_OCCASIONS: usize = 50;
/// and there are so many reports; the one that was not met for longest goes.
const MOST_REPORTS: usize = 1000;

impl Archive {
    /// The archive in `folder`, which need not exist.
    pub fn at(folder: &Path) -> Archive {
        Archive {
            folder: folder.to_owned(),
            open: None,
        }
    }

    /// Makes the folder, for its owner alone, if there is none, and opens it for writing.
    ///
    /// # Errors
    /// If it cannot be made, or something else is there, or somebody else's folder.
    pub fn create(&mut self) -> Result<(), Error> {
        let make = || {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&self.folder)?;
            let flags = libc::O_DIRECTORY | libc::O_CLOEXEC;
            let open = OpenOptions::new()
                .read(true)
                .custom_flags(flags)
                .open(&self.folder)?;
            // SAFETY: geteuid has no preconditions.
            let own = unsafe { libc::geteuid() };
            match open.metadata()?.uid() {
                owner if owner == own => Ok(open),
                owner => Err(io::Error::other(format!("it belongs to user {owner}"))),
            }
        };
        let doing = || format!("make the folder {}", self.folder.display());
        let open = make().map_err(failed(doing))?;
        self.open = Some(Arc::new(open.into()));
        Ok(())
    }

    /// Where something is in it, whatever was done to the folder's name meanwhile.
    fn place(&self, name: &str) -> PathBuf {
        match &self.open {
            Some(open) => format!("/proc/self/fd/{}/{name}", open.as_raw_fd()).into(),
            None => self.folder.join(name),
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a trace of `program` from the time `stamp` (`20261122-140322`) is to go: nothing is
    /// there yet.
    pub fn new_trace(&self, stamp: &str, program: &str) -> PathBuf {
        let keep = |c: char| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') => c,
            _ => '_',
        };
        let program: String = program.chars().map(keep).collect();
        let numbered = (1..).map(|number| match number {
            1 => String::new(),
            number => format!("-{number}"),
        });
        let mut paths = numbered.map(|number| {
            let name = format!("{stamp}-{program}{number}{TRACE}");
            self.folder.join(name)
        });
        let free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        paths.find(free).unwrap_or_default()
    }

    /// Adds a hang to its cause's report, and keeps the whole verdict beside its trace.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn add(&self, catch: &Catch, verdict: &impl Serialize) -> Result<Report, Error> {
        let stem = catch.occasion.trace.trim_end_matches(TRACE);
        self.write(&format!("{stem}{JSON}"), verdict)?;
        let name = format!("{REPORT}{}{JSON}", catch.signature);
        let path = self.place(&name);
        let before = match path.exists() {
            true => read_report(&path).ok(),
            false => None,
        };
        let mut report = Report {
            signature: catch.signature.clone(),
            program: catch.program.clone(),
            sign: catch.sign.clone(),
            sentence: catch.sentence.clone(),
            count: 1,
            first_unix_ns: catch.occasion.unix_ns,
            occasions: Vec::new(),
        };
        match before {
            Some(before) => {
                report.count = before.count.saturating_add(1);
                report.first_unix_ns = before.first_unix_ns;
                report.occasions = before.occasions;
            }
            // Nothing is there; or what is there cannot be read, and is kept for whoever can.
            None => drop(fs::rename(&path, path.with_extension("json.damaged"))),
        }
        report.occasions.push(catch.occasion.clone());
        let surplus = report.occasions.len().saturating_sub(MOST_OCCASIONS);
        report.occasions.drain(..surplus);
        self.write(&name, &report)?;
        Ok(report)
    }

    /// Removes what there is of a trace whose hang was not added, with its verdict.
    pub fn discard(&self, trace: &Path) {
        if let Some(name) = trace.file_name().and_then(|name| name.to_str()) {
            let trace = self.place(name);
            // It may never have been made.
            let _ = fs::remove_dir_all(&trace);
            let _ = fs::remove_file(trace.with_extension("json"));
        }
    }

    /// All reports, the one that was met last first, and what should be one and is none.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn reports(&self) -> Result<(Vec<Report>, Vec<Damaged>), Error> {
        let (mut reports, mut damaged) = (Vec::new(), Vec::new());
        for name in self.names()? {
            if !name.starts_with(REPORT) || !name.ends_with(JSON) {
                continue;
            }
            match read_report(&self.place(&name)) {
                Ok(report) => reports.push(report),
                Err(why) => damaged.push(Damaged {
                    path: self.folder.join(&name),
                    why,
                }),
            }
        }
        let time = |report: &Report| report.last().map(|last| last.unix_ns);
        reports.sort_by(|a, b| time(b).cmp(&time(a)).then(a.signature.cmp(&b.signature)));
        Ok((reports, damaged))
    }

    /// An occasion's trace, if it has not been removed.
    pub fn trace_of(&self, occasion: &Occasion) -> Option<PathBuf> {
        // A name from a file: nothing but a trace of this folder is meant.
        let path = self.folder.join(&occasion.trace);
        (is_trace(&occasion.trace) && path.is_dir()).then_some(path)
    }

    /// Removes the oldest traces until the rest takes no more than `bytes`, and gives their names.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn limit(&self, bytes: u64) -> Result<Vec<String>, Error> {
        let mut traces = Vec::new();
        for name in self.names()?.into_iter().filter(|name| is_trace(name)) {
            let path = self.place(&name);
            // One that vanishes meanwhile needs no removal.
            if let Ok(found) = fs::symlink_metadata(&path)
                && found.is_dir()
            {
                traces.push((found.modified().ok(), name, size(&path)));
            }
        }
        traces.sort();
        let mut total: u64 = traces.iter().map(|(_, _, size)| size).sum();
        let mut removed = Vec::new();
        for (_, name, size) in traces {
            if total <= bytes {
                break;
            }
            let path = self.place(&name);
            let doing = || format!("remove {}", self.folder.join(&name).display());
            fs::remove_dir_all(&path).map_err(failed(doing))?;
            // A trace that was cut short has none.
            let _ = fs::remove_file(path.with_extension("json"));
            total -= size;
            removed.push(name);
        }
        let (reports, _) = self.reports()?;
        for report in reports.iter().skip(MOST_REPORTS) {
            let name = format!("{REPORT}{}{JSON}", report.signature);
            let _ = fs::remove_file(self.place(&name));
        }
        Ok(removed)
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let doing = || format!("read the folder {}", self.folder.display());
        let entries = fs::read_dir(self.place("")).map_err(failed(doing))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names.filter_map(|name| name.into_string().ok()).collect())
    }

    /// Puts a file there as a whole: who reads it meanwhile reads what was there before.
    fn write(&self, name: &str, content: &impl Serialize) -> Result<(), Error> {
        let path = self.place(name);
        let unfinished = self.place(&format!(".{name}.new"));
        let write = || {
            // What is left of one that was killed.
            let _ = fs::remove_file(&unfinished);
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&serde_json::to_vec_pretty(content)?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        let written = write();
        if written.is_err() {
            // Where the disk is full, a part of it would only take space.
            let _ = fs::remove_file(&unfinished);
        }
        written.map_err(failed(|| {
            format!("write {}", self.folder.join(name).display())
        }))
    }
}

/// Whether a name is one that [`Archive::new_trace`] gives.
fn is_trace(name: &str) -> bool {
    let digits = |range| {
        let part: Option<&str> = name.get(range);
        part.is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let hyphen = |at: usize| name.as_bytes().get(at) == Some(&b'-');
    digits(0..8)
        && hyphen(8)
        && digits(9..15)
        && hyphen(15)
        && name.ends_with(TRACE)
        && !name.contains('/')
}

fn read_report(path: &Path) -> Result<Report, String> {
    let read = || {
        // A pipe in its place would keep the reader waiting, a link lead it elsewhere.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let strange = || io::Error::other("it is not a regular file");
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = opened.map_err(|why| match why.raw_os_error() {
            Some(libc::ELOOP | libc::ENXIO) => strange(),
            _ => why,
        })?;
        if !file.metadata()?.is_file() {
            return Err(strange());
        }
        let mut text = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut text)?;
        io::Result::Ok(text)
    };
    let text = read().map_err(|why| why.to_string())?;
    let report: Report = serde_json::from_slice(&text).map_err(|why| why.to_string())?;
    let named = path.file_name().and_then(|name| name.to_str());
    let expected = format!("{REPORT}{}{JSON}", report.signature);
    if named != Some(&expected) {
        return Err(format!("it is the report of {}", report.signature));
    }
    if report.occasions.is_empty() {
        return Err("it has no occurrence".to_owned());
    }
    Ok(report)
}

/// What a folder's files hold, bytes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .map(|(found, path)| match found.is_dir() {
            true => size(&path),
            false => found.len(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    fn archive() -> (tempfile::TempDir, Archive) {
        let root = tempfile::tempdir().unwrap();
        let mut archive = Archive::at(&root.path().join("a/hangs"));
        archive.create().unwrap();
        (root, archive)
    }

    /// A trace of so many bytes, `age` seconds old, and its hang.
    fn add(archive: &Archive, signature: &str, age: u64, bytes: usize) -> Report {
        let path = archive.new_trace("20261122-140322", "gedit");
        fs::create_dir_all(path.join("switches")).unwrap();
        fs::write(path.join("switches/000001.parquet"), vec![0; bytes]).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        File::open(&path).unwrap().set_modified(time).unwrap();
        let catch = Catch {
            signature: signature.to_owned(),
            program: "gedit".to_owned(),
            sign: "window".to_owned(),
            sentence: format!("gedit was held up, {age} s ago."),
            occasion: Occasion {
                unix_ns: 1_000_000 - age,
                duration_ns: 2_500_000_000,
                goes_on: false,
                pid: 7,
                tid: 7,
                trace: path.file_name().unwrap().to_str().unwrap().to_owned(),
                from_ns: 1,
                to_ns: 2,
            },
        };
        archive.add(&catch, &"the verdict").unwrap()
    }

    /// Hangs of one cause make one report with a count, the newest first among reports; the folder
    /// and its files are their owner's alone.
    #[test]
    fn one_report_a_cause() {
        let (_root, archive) = archive();
        add(&archive, "aa", 30, 10);
        add(&archive, "bb", 20, 10);
        let report = add(&archive, "aa", 10, 10);
        assert_eq!((report.count, report.first_unix_ns), (2, 999_970));
        let (reports, damaged) = archive.reports().unwrap();
        assert!(damaged.is_empty());
        let told: Vec<_> = reports.iter().map(|r| (&*r.signature, r.count)).collect();
        assert_eq!(told, [("aa", 2), ("bb", 1)]);
        assert_eq!(reports[0].sentence, "gedit was held up, 10 s ago.");
        let traces: Vec<_> = reports[0].occasions.iter().map(|o| &*o.trace).collect();
        let names = ["20261122-140322-gedit.hang", "20261122-140322-gedit-3.hang"];
        assert_eq!(traces, names);
        assert!(
            archive
                .folder()
                .join("20261122-140322-gedit-3.json")
                .exists()
        );
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(archive.folder()), 0o700);
        assert_eq!(mode(&archive.folder().join("report-aa.json")), 0o600);
    }

    /// Of a file that could not be written nothing is left.
    #[test]
    fn whole_or_absent() {
        let (_root, archive) = archive();
        // It cannot take the place of a folder.
        fs::create_dir(archive.folder().join("verdict.json")).unwrap();
        assert!(archive.write("verdict.json", &"the verdict").is_err());
        assert_eq!(archive.names().unwrap(), ["verdict.json"]);
    }

    /// The oldest traces go first, with their verdicts, until the rest is within the limit; the
    /// reports stay, and what is named otherwise.
    #[test]
    fn limit() {
        let (_root, archive) = archive();
        for (age, signature) in [(30, "aa"), (10, "bb"), (20, "cc")] {
            add(&archive, signature, age, 1_000);
        }
        let mine = archive.folder().join("mine.hang");
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("x"), vec![0; 5_000]).unwrap();
        assert!(archive.limit(3_000).unwrap().is_empty());
        let removed = archive.limit(1_500).unwrap();
        let oldest = ["20261122-140322-gedit.hang", "20261122-140322-gedit-3.hang"];
        assert_eq!(removed, oldest);
        assert!(!archive.folder().join("20261122-140322-gedit.json").exists());
        let (reports, _) = archive.reports().unwrap();
        let kept: Vec<bool> = reports
            .iter()
            .map(|report| archive.trace_of(report.last().unwrap()).is_some())
            .collect();
        assert_eq!(kept, [true, false, false]);
        assert!(mine.exists());
    }

    /// A damaged report is named and does not keep the others from being read; the next hang of
    /// its cause begins a new one, and what could not be read is left beside it.
    #[test]
    fn damage() {
        let (_root, archive) = archive();
        add(&archive, "aa", 30, 10);
        add(&archive, "bb", 20, 10);
        let path = archive.folder().join("report-aa.json");
        let whole = fs::read(&path).unwrap();
        let other = fs::read(archive.folder().join("report-bb.json")).unwrap();
        for bytes in [&whole[..whole.len() / 2], b"", b"[]", &other, &[0xff; 40]] {
            fs::write(&path, bytes).unwrap();
            let (reports, damaged) = archive.reports().unwrap();
            assert_eq!(reports.len(), 1);
            assert_eq!(damaged.len(), 1);
            assert_eq!(damaged[0].path, path);
            assert!(!damaged[0].why.is_empty());
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(
            archive.reports().unwrap().1[0].why,
            "it is not a regular file"
        );
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "{").unwrap();
        assert_eq!(add(&archive, "aa", 10, 10).count, 1);
        let (reports, damaged) = archive.reports().unwrap();
        assert_eq!((reports.len(), damaged.len()), (2, 0));
        assert!(archive.folder().join("report-aa.json.damaged").exists());
    }

    /// Whatever takes the folder's place meanwhile, nothing is written there and nothing removed;
    /// a folder of somebody else's is not taken.
    #[test]
    fn another_in_its_place() {
        let (root, archive) = archive();
        add(&archive, "aa", 30, 5_000);
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir_all(elsewhere.join("20261122-140322-gedit.hang")).unwrap();
        fs::rename(archive.folder(), root.path().join("a/away")).unwrap();
        symlink(&elsewhere, archive.folder()).unwrap();
        assert_eq!(archive.reports().unwrap().0.len(), 1);
        assert_eq!(archive.limit(0).unwrap(), ["20261122-140322-gedit.hang"]);
        archive.discard(&archive.folder().join("20261122-140322-gedit.hang"));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
        let theirs = root.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        if std::os::unix::fs::chown(&theirs, Some(54_321), None).is_err() {
            return eprintln!("NOT RUN: another_in_its_place: its last part needs root");
        }
        let refused = Archive::at(&theirs).create().unwrap_err().to_string();
        assert!(refused.ends_with("it belongs to user 54321"), "{refused}");
    }

    /// A report cannot lead out of the folder, and programs' names make plain file names.
    #[test]
    fn hostile_names() {
        let (_root, archive) = archive();
        let report = add(&archive, "aa", 30, 10);
        let mut occasion = report.occasions[0].clone();
        for name in ["../hangs", "/etc", "20261122-140322-/../..hang", ""] {
            occasion.trace = name.to_owned();
            assert_eq!(archive.trace_of(&occasion), None, "{name}");
        }
        let path = archive.new_trace("20261122-140322", "../a b\n");
        let expected = archive.folder().join("20261122-140322-.._a_b_.hang");
        assert_eq!(path, expected);
    }
}
