//! The traces that there are to look at, and those that are open.

use crate::opened::{MakeLoading, Opened};
use anyhow::Result;
use hangdog_report::views::Views;
use hangdog_trace::Meta;
use hangdog_watch::archive::Archive;
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where traces are looked for.
pub struct Shelf {
    /// The trace that the user named; then there is no list.
    named: Option<PathBuf>,
    folder: PathBuf,
    hangs: PathBuf,
    loading: MakeLoading,
    views: Views,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number, from 0; a number stays its path's.
    paths: Vec<PathBuf>,
    open: HashMap<usize, Arc<Opened>>,
}

/// What there is to look at.
#[derive(Serialize)]
pub struct Listed {
    /// Whether the user named one trace, so that there is nothing to choose.
    pub is_named: bool,
    /// The folder that was looked in.
    pub folder: String,
    /// Its traces, the newest first.
    pub traces: Vec<TraceRow>,
    /// What `hangdog watch` caught, one row a cause, the newest first.
    pub caught: Vec<CaughtRow>,
    /// Why what a watch caught cannot be listed; none if it can.
    pub caught_error: Option<String>,
}

/// A trace.
#[derive(Serialize)]
pub struct TraceRow {
    /// Its number in addresses.
    pub id: usize,
    /// Its name, without folders.
    pub name: String,
    /// When it was recorded, RFC 3339.
    pub started: String,
    /// How long it is, ns; 0 if it was cut short.
    pub duration_ns: u64,
    /// The command that was recorded; empty if none.
    pub command: Vec<String>,
    /// Why it cannot be opened; none if it can.
    pub error: Option<String>,
}

/// All hangs of one cause.
#[derive(Serialize)]
pub struct CaughtRow {
    /// What the cause is known by.
    pub signature: String,
    /// The program that was held up.
    pub program: String,
    /// How often it was caught.
    pub count: u64,
    /// The last verdict in a sentence.
    pub sentence: String,
    /// When the last was, ns since 1970.
    pub last_unix_ns: u64,
    /// The number of the last one's trace; none if it was removed to make room.
    pub id: Option<usize>,
}

impl Shelf {
    /// One trace.
    pub fn of(trace: PathBuf, loading: MakeLoading) -> Shelf {
        Shelf {
            named: Some(trace),
            folder: PathBuf::new(),
            hangs: PathBuf::new(),
            loading,
            views: Views::default(),
            state: Mutex::default(),
        }
    }

    /// The traces of a folder, and what a watch keeps in `hangs`.
    pub fn in_folder(folder: PathBuf, hangs: PathBuf, loading: MakeLoading) -> Shelf {
        Shelf {
            named: None,
            folder,
            hangs,
            loading,
            views: Views::default(),
            state: Mutex::default(),
        }
    }

    /// With these ways to look at its traces.
    pub fn with_views(self, views: Views) -> Shelf {
        Shelf { views, ..self }
    }

    /// The ways to look at a trace.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// What there is now.
    pub fn list(&self) -> Listed {
        if let Some(named) = &self.named {
            return Listed {
                is_named: true,
                folder: String::new(),
                traces: vec![self.row(named)],
                caught: Vec::new(),
                caught_error: None,
            };
        }
        let mut traces: Vec<TraceRow> = traces_in(&self.folder)
            .iter()
            .map(|path| self.row(path))
            .collect();
        traces.sort_by(|a, b| (&b.started, &a.name).cmp(&(&a.started, &b.name)));
        let (caught, caught_error) = match self.caught() {
            Ok(caught) => (caught, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        Listed {
            is_named: false,
            folder: self.folder.display().to_string(),
            traces,
            caught,
            caught_error,
        }
    }

    fn caught(&self) -> Result<Vec<CaughtRow>> {
        if matches!(self.hangs.try_exists(), Ok(false)) {
            return Ok(Vec::new());
        }
        let archive = Archive::at(&self.hangs);
        let (reports, _) = archive.reports()?;
        let mut rows: Vec<CaughtRow> = reports
            .iter()
            .map(|report| {
                let trace = report.last().and_then(|last| archive.trace_of(last));
                CaughtRow {
                    signature: report.signature.clone(),
                    program: report.program.clone(),
                    count: report.count,
                    sentence: report.sentence.clone(),
                    last_unix_ns: report.last().map_or(0, |last| last.unix_ns),
                    id: trace.map(|path| self.id_of(&path)),
                }
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.last_unix_ns));
        Ok(rows)
    }

    fn id_of(&self, path: &Path) -> usize {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.paths.iter().position(|known| known == path) {
            Some(id) => id,
            None => {
                state.paths.push(path.to_owned());
                state.paths.len() - 1
            }
        }
    }

    fn row(&self, path: &Path) -> TraceRow {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let (meta, error) = match hangdog_trace::Trace::open(path) {
            Ok(trace) => (trace.meta().clone(), None),
            Err(error) => (Meta::default(), Some(error.to_string())),
        };
        TraceRow {
            id: self.id_of(path),
            name: name.to_string_lossy().into_owned(),
            started: meta.started,
            duration_ns: meta.duration_ns,
            command: meta.command,
            error,
        }
    }

    /// The trace of a number, opened if it is not open yet; none if there is no such number.
    pub fn open(&self, id: usize) -> Option<Arc<Opened>> {
        if let Some(named) = &self.named {
            self.id_of(named);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = state.open.get(&id) {
            return Some(open.clone());
        }
        let path = state.paths.get(id)?.clone();
        let opened = Opened::begin(path, self.loading.clone());
        state.open.insert(id, opened.clone());
        Some(opened)
    }
}

/// The folders in `folder` that look like traces; none where it cannot be read.
fn traces_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(hangdog_trace::meta::META_FILE).is_file())
        .collect()
}
