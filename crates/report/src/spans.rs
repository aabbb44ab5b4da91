//! Spans of OpenTelemetry, laid over a trace: they become regions.
//!
//! They come from a file as the OTLP file exporter and the collector write it: JSON, one export request
//! after another. A span names a process (resource attribute `process.pid`) and, where the instrumentation
//! says so, a thread (`thread.id` or `thread.name`); its times are of the wall clock, which the trace's
//! start gives too. What was found is kept in the trace's folder as [`FILE`], so that every command that
//! reads marks reads spans.
//!
//! Source: opentelemetry-proto, trace/v1/trace.proto in its JSON form; semantic conventions, "Thread" and
//! "Process" attributes.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hangdog_trace::Threads;
use hangdog_trace::ids::{FIRST_MARK_NAME, Utid};
use hangdog_trace::tables::{Mark, MarkName, MarkNames, Marks};
use hangdog_trace::words::{Colour, MarkKind, Pairing};
use serde::{Deserialize, Serialize};

/// The file in the trace's folder.
const FILE: &str = "spans.json";
/// The version of its form.
const VERSION: u32 = 1;
/// The longest that is read, bytes.
const LONGEST: u64 = 256 << 20;
/// So many spans a trace can have.
const MOST: usize = 1_000_000;
/// Spans' names have codes from here on; marks have fewer names.
const FIRST_SPAN_NAME: u32 = FIRST_MARK_NAME + (2 << 24);
/// The kernel keeps this much of a thread's name.
const NAME_BYTES: usize = 15;

/// A span over a thread of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The thread (utid).
    pub thread: Utid,
    /// What was done.
    pub name: String,
    /// When it began, ns since the trace's start.
    pub start: u64,
    /// When it ended; none if the trace ended before.
    pub end: Option<u64>,
    /// The span's id, as a number.
    pub id: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    spans: Vec<Span>,
}

/// What became of the spans of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// On the thread whose id they have.
    pub by_thread_id: usize,
    /// On the only thread of the process with that name.
    pub by_thread_name: usize,
    /// On the first thread of the process: they name none, or none that is in the trace.
    pub by_process: usize,
    /// Left out: of no process of the trace.
    pub of_no_process: usize,
    /// Left out: they did not begin while the trace was recorded.
    pub of_another_time: usize,
}

impl Tally {
    /// How many are in the trace.
    pub fn kept(&self) -> usize {
        self.by_thread_id + self.by_thread_name + self.by_process
    }
}

// OTLP, as far as it is needed. A number of 64 bits is a text in its JSON form; some write a number.

#[derive(Deserialize)]
struct Request {
    #[serde(default, rename = "resourceSpans", alias = "resource_spans")]
    resources: Vec<ResourceSpans>,
}

#[derive(Deserialize)]
struct ResourceSpans {
    #[serde(default)]
    resource: Resource,
    #[serde(
        default,
        rename = "scopeSpans",
        alias = "scope_spans",
        alias = "instrumentationLibrarySpans"
    )]
    scopes: Vec<ScopeSpans>,
}

#[derive(Default, Deserialize)]
struct Resource {
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct ScopeSpans {
    #[serde(default)]
    spans: Vec<OtlpSpan>,
}

#[derive(Deserialize)]
struct OtlpSpan {
    #[serde(default, rename = "spanId", alias = "span_id")]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(rename = "startTimeUnixNano", alias = "start_time_unix_nano")]
    start: Number,
    #[serde(rename = "endTimeUnixNano", alias = "end_time_unix_nano")]
    end: Number,
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    key: String,
    #[serde(default)]
    value: Value,
}

#[derive(Default, Deserialize)]
struct Value {
    #[serde(default, rename = "stringValue", alias = "string_value")]
    text: Option<String>,
    #[serde(default, rename = "intValue", alias = "int_value")]
    number: Option<Number>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(u64),
}

impl Number {
    fn get(&self) -> Option<u64> {
        match self {
            Number::Text(text) => text.parse().ok(),
            Number::Plain(number) => Some(*number),
        }
    }
}

fn attribute<'a>(attributes: &'a [Attribute], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    found.map(|attribute| &attribute.value)
}

impl Value {
    fn number(&self) -> Option<u64> {
        let text = || self.text.as_ref()?.parse().ok();
        self.number.as_ref().and_then(Number::get).or_else(text)
    }
}

/// The trace over which spans are laid.
pub struct Ground<'a> {
    /// Its threads.
    pub threads: &'a Threads,
    /// Its start by the wall clock, ns since 1970.
    pub started_unix_ns: u64,
    /// Its end, ns since its start.
    pub end: u64,
    /// The processes (upid) that spans are of whatever they say; empty: those that they name.
    pub processes: &'a [u32],
}

/// Reads a file of spans and lays them over a trace, in the order of their begin.
///
/// # Errors
/// What is wrong with the file, and where.
pub fn lay(source: impl Read, ground: &Ground<'_>) -> Result<(Vec<Span>, Tally)> {
    let (mut spans, mut tally) = (Vec::new(), Tally::default());
    let requests = serde_json::Deserializer::from_reader(source).into_iter::<Request>();
    for request in requests {
        let request = request.context("it is no OTLP JSON of traces")?;
        for resource in request.resources {
            let attributes = &resource.resource.attributes;
            let pid = attribute(attributes, "process.pid").and_then(Value::number);
            for span in resource.scopes.iter().flat_map(|scope| &scope.spans) {
                let laid = ground.lay(span, pid, &mut tally)?;
                spans.extend(laid);
                if spans.len() > MOST {
                    bail!("it has more than {MOST} spans in the trace's time");
                }
            }
        }
    }
    spans.sort_by_key(|span| span.start);
    Ok((spans, tally))
}

impl Ground<'_> {
    fn lay(&self, span: &OtlpSpan, pid: Option<u64>, tally: &mut Tally) -> Result<Option<Span>> {
        let times = span.start.get().zip(span.end.get());
        let (start, end) = times.with_context(|| format!("span '{}' has no times", span.name))?;
        let in_trace = |time: u64| time.checked_sub(self.started_unix_ns);
        let Some(start) = in_trace(start).filter(|&start| start <= self.end) else {
            tally.of_another_time += 1;
            return Ok(None);
        };
        let end = in_trace(end).unwrap_or(start).max(start);
        let mut processes = self.threads.processes().rev();
        let process = processes.find(|process| {
            let is_meant = match self.processes {
                [] => pid == Some(process.pid.into()),
                chosen => chosen.contains(&process.upid),
            };
            is_meant && process.threads.iter().any(|&it| self.lives(it, start))
        });
        let Some(process) = process else {
            tally.of_no_process += 1;
            return Ok(None);
        };
        let threads = process.threads.iter().copied();
        let living: Vec<Utid> = threads.filter(|&it| self.lives(it, start)).collect();
        let tid = attribute(&span.attributes, "thread.id").and_then(Value::number);
        let name = attribute(&span.attributes, "thread.name").and_then(|it| it.text.as_deref());
        let by_id = living
            .iter()
            .find(|&&it| tid == Some(self.threads.thread(it).tid.into()));
        let kept = |name: &str| name.bytes().take(NAME_BYTES).collect::<Vec<u8>>();
        let mut named = living.iter().filter(|&&it| {
            name.is_some_and(|name| kept(name) == self.threads.thread(it).name_at(start).as_bytes())
        });
        let by_name = named.next().filter(|_| named.next().is_none());
        let (thread, count) = match (by_id, by_name) {
            (Some(&thread), _) => (thread, &mut tally.by_thread_id),
            (None, Some(&thread)) => (thread, &mut tally.by_thread_name),
            (None, None) => {
                let first = living.iter().find(|&&it| self.threads.thread(it).is_main());
                let Some(&first) = first.or(living.first()) else {
                    return Ok(None);
                };
                (first, &mut tally.by_process)
            }
        };
        *count += 1;
        let id = span
            .id
            .get(..16)
            .and_then(|id| u64::from_str_radix(id, 16).ok());
        Ok(Some(Span {
            thread,
            name: span.name.clone(),
            start,
            end: (end <= self.end).then_some(end),
            id: id.map_or(0, u64::cast_signed),
        }))
    }

    fn lives(&self, thread: Utid, at: u64) -> bool {
        let thread = self.threads.thread(thread);
        thread.start <= at && thread.end.is_none_or(|end| at <= end)
    }
}

/// Keeps spans in a trace's folder, in place of those that it had.
///
/// # Errors
/// If the file cannot be written; nothing has changed then.
pub fn store(trace: &Path, spans: Vec<Span>) -> Result<()> {
    let stored = Stored {
        version: VERSION,
        spans,
    };
    let bytes = serde_json::to_vec(&stored)?;
    if bytes.len() as u64 > LONGEST {
        bail!("the spans take more than {} MB", LONGEST >> 20);
    }
    Ok(hangdog_trace::put(trace, FILE, &bytes)?)
}

/// Adds the spans that a trace's folder has to its marks.
///
/// # Errors
/// What is wrong with the file.
pub fn add(trace: &Path, threads: &Threads, marks: Marks, names: &mut MarkNames) -> Result<Marks> {
    let path = trace.join(FILE);
    let bytes = match hangdog_trace::regular::read(&path, LONGEST) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(marks),
        Err(why) => return Err(why).with_context(|| format!("cannot read {}", path.display())),
    };
    let wrong = || format!("{}: delete it, or run hangdog spans again", path.display());
    let stored: Stored = serde_json::from_slice(&bytes).with_context(wrong)?;
    if stored.version != VERSION {
        let version = stored.version;
        return Err(anyhow::anyhow!(
            "it is of version {version}, this reads {VERSION}"
        ))
        .with_context(wrong);
    }
    let known = |span: &Span| threads.known(span.thread).is_some();
    if !stored.spans.iter().all(known) {
        return Err(anyhow::anyhow!("it is of another trace")).with_context(wrong);
    }
    let mut rows: Vec<Mark> = (0..marks.len()).map(|row| marks.row(row)).collect();
    let mut codes: HashMap<String, u32> = HashMap::new();
    for span in stored.spans {
        let next = FIRST_SPAN_NAME + codes.len() as u32;
        let code = *codes.entry(span.name).or_insert_with_key(|name| {
            names.push(MarkName {
                code: next,
                name: name.clone(),
            });
            next
        });
        let mark = |ts, kind: MarkKind| Mark {
            ts,
            thread: span.thread,
            code,
            kind: kind.into(),
            pairing: Pairing::Argument.into(),
            colour: Colour::None.into(),
            arg0: span.id,
            arg1: 0,
            arg2: 0,
            arg3: 0,
        };
        rows.push(mark(span.start, MarkKind::Begin));
        rows.extend(span.end.map(|end| mark(end.max(span.start), MarkKind::End)));
    }
    rows.sort_by_key(|mark| mark.ts);
    Ok(rows.into_iter().collect())
}
