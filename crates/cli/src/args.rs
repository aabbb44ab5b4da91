//! The command line as definitions alone: help, completions and man pages are made from them.

use crate::flag_place::FlagPlace;
use crate::limited::Limited;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use hangdog_export::View;
use hangdog_report::regions::Argument;
use hangdog_report::select::Bounds;
use hangdog_report::units::{Moment, Size, Span};
use hangdog_report::which::Wanted;
use hangdog_trace::words::Pairing;
use hangdog_watch::budgets::RegionName;
use hangdog_watch::stalls::Selector;
use std::ffi::OsString;
use std::path::PathBuf;

/// Explain why a program hung.
///
/// hangdog records what every thread of the system does, and names the cause of a hang in one
/// sentence, with the evidence.
#[derive(Parser, Debug)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Exit status: 0 success, 1 nothing found, 2 usage or input error; \
                  record exits with the status of its command.\n\
                  Times need a unit: 1.234s, 52ms, 98us. \
                  NO_COLOR turns colours off; output to a file or a pipe is never coloured.\n\
                  HANGDOG_SOCKET sets the socket that flight and snap use."
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Record the whole system while a command runs, for a time, or until Ctrl-C
    Record(RecordArgs),
    /// Record continuously into a memory ring, until Ctrl-C
    Flight(FlightArgs),
    /// Save the ring of the running flight recorder as a trace; it keeps recording
    Snap(SnapArgs),
    /// Record continuously and save and explain each hang, until Ctrl-C
    Watch(WatchArgs),
    /// List the hangs that watch caught
    Hangs(HangsArgs),
    /// Check what this machine supports, and how to fix what is missing
    Doctor(DoctorArgs),
    /// Show what a trace contains: when, where, threads, events, loss, size
    Info(InfoArgs),
    /// Show the time of each thread by state
    Threads(ThreadsArgs),
    /// Show what one thread did, interval by interval
    Story(StoryArgs),
    /// Show the time that interrupts took, by source
    Interrupts(InterruptsArgs),
    /// Explain why the same work is fast at one time and slow at another
    Compare(CompareArgs),
    /// Show the system calls that record --calls recorded: counts, times, errors
    Calls(CallsArgs),
    /// Show how long an operation waited for page-ins, by process, segment (executable, library, heap,
    /// stack, mapped file) and function
    Paging(PagingArgs),
    /// Show the memory of processes now, by segment: resident, swapped, proportional; and how much of
    /// their files is in the page cache
    Memory(MemoryArgs),
    /// Show how many threads were running or runnable, step by step, or which at a moment
    Load(LoadArgs),
    /// Show the durations of the regions that programs marked (docs/MARKS.md), by name or one by one
    Regions(RegionsArgs),
    /// Add the spans of an OpenTelemetry file to a trace, as regions of its threads
    Spans(SpansArgs),
    /// Find the problems in a trace and explain the worst one
    Why(WhyArgs),
    /// List the problems in a trace, worst first
    Problems(ProblemsArgs),
    /// Show the evidence for an edge of a verdict, and the other candidates
    Explain(ExplainArgs),
    /// Watch a flag in the memory of a running process: who reads and writes it
    Flag(FlagArgs),
    /// Find the flag in memory that a thread polls, and who writes it
    FindFlag(FindFlagArgs),
    /// Step one call of a function, instruction by instruction, into a file for diverge
    Step(StepArgs),
    /// Compare a good and a bad call of a function: show where they diverge, and which value decided it
    Diverge(DivergeArgs),
    /// Write a debugger script that stops where the verdict says
    Debug(DebugArgs),
    /// Build the graph of causes: count it, or draw a part
    Graph(GraphArgs),
    /// Show a trace in the browser: the verdict and a timeline of all threads
    Open(OpenArgs),
    /// List the functions that took the most time
    Top(TopArgs),
    /// Draw a flame graph
    Flame(FlameArgs),
    /// Convert a trace to another tool's format
    Export(ExportArgs),
    /// List, show or save templates: what to record and how to look, under one name
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Measure what basic operations cost on this machine; takes 80 s, needs no root
    Numbers(NumbersArgs),
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory, which must exist.
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// The template of `record`, `flight` and `watch`.
#[derive(Args, Clone, Debug, Default)]
pub struct TemplateChoice {
    /// Take the options of this template, or of a template file (a path with a slash); options given here
    /// replace its own. `hangdog template list` lists templates
    #[arg(long, value_name = "NAME")]
    pub template: Option<String>,
}

/// What `template` does.
#[derive(Subcommand, Debug)]
pub enum TemplateCommand {
    /// List the templates there are: shipped, and your own
    List {
        /// Print JSON (docs/JSON.md)
        #[arg(long)]
        json: bool,
    },
    /// Print a template
    Show {
        /// Its name, or the path of a file
        name: String,
    },
    /// Save the options of a command as a template: hangdog template save NAME record --sample 1000
    Save(SaveArgs),
}

/// Arguments of `template save`.
#[derive(Args, Debug)]
pub struct SaveArgs {
    /// Its name: letters, digits, - and _
    pub name: String,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// A command that is proposed when the trace is there, as 'why' or 'threads --sort waiting';
    /// repeatable
    #[arg(long, value_name = "COMMAND")]
    pub next: Vec<String>,
    /// Replace the options that it has for that command
    #[arg(long)]
    pub replace: bool,
    /// record, flight or watch, and the options to save
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub line: Vec<String>,
}

/// Arguments of `record`.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// The template
    #[command(flatten)]
    pub template: TemplateChoice,
    /// Name of the trace [default: hangdog-DATE-TIME.hang]
    #[arg(short, long, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Stop recording after this time
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<Span>,
    /// If the command still runs after this time, print what it waits for, save the trace and end
    /// the command's process group; the exit status is then 124, as with timeout(1)
    #[arg(
        long,
        value_name = "DURATION",
        requires = "command",
        conflicts_with = "duration"
    )]
    pub limit: Option<Span>,
    /// Record no stacks: lower overhead, but less can be explained
    #[arg(long)]
    pub no_stacks: bool,
    /// CPU samples per second on each CPU; 0 disables sampling and hardware counters
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(..=20_000))]
    pub sample: u32,
    /// Memory for the rings of all CPUs together, in bytes; takes K, M or G
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub memory: Size,
    /// Memory for unwind tables, shared by all processes, in bytes; takes K, M or G
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub unwind_memory: Size,
    /// Record every socket, pipe and eventfd read and write; adds a hook to every system call
    /// [default: socket I/O only, at most 50,000 records per second and CPU]
    #[arg(long)]
    pub transfers: bool,
    /// Record every system call of the command and its children; hangdog calls lists them
    #[arg(long, requires = "command")]
    pub calls: bool,
    /// Record every system call of a running process (pid or name) and its children; repeatable
    #[arg(long, value_name = "PROCESS")]
    pub calls_of: Vec<String>,
    /// Record minor page faults too, and which pages of files come into memory, are used and go;
    /// hangdog paging shows them [default: major faults and reclaim only]
    #[arg(long)]
    pub faults: bool,
    /// Record what memory each process has by segment, and how much of its files is in the page cache: at
    /// the beginning, at the end, every DURATION, and when the recorder gets SIGUSR1; hangdog memory --trace
    /// shows it. It takes at most 5 % of a CPU
    #[arg(long, value_name = "DURATION")]
    pub memory_every: Option<Span>,
    /// Watch a flag in the memory of a running process: PROCESS:SYMBOL, or PROCESS:0xADDRESS:SIZE,
    /// where the process is a pid or a name; repeatable, at most 4 flags per process, or 2 if
    /// their reads are to be shown too. Each use of the flag costs its thread about 4 us
    #[arg(long, value_name = "PROCESS:FLAG")]
    pub watch: Vec<FlagPlace>,
    /// Probes
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// Command to run; recording stops when it exits
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Probes of programs that are recorded as marks, of `record`, `flight` and `watch`.
#[derive(Args, Clone, Debug, Default)]
pub struct ProbeArgs {
    /// Record each call of a function in any process as a region: PATH:FUNCTION, where PATH is a program
    /// or library (a name without a slash is looked for on the PATH and among the libraries); repeatable.
    /// Each call costs its thread about 1 us, or 20 us if the function does not begin with a push
    #[arg(long, value_name = "PATH:FUNCTION")]
    pub uprobe: Vec<String>,
    /// Record a static probe (USDT) in any process as a point: PATH:PROVIDER:NAME; repeatable
    #[arg(long, value_name = "PATH:PROVIDER:NAME")]
    pub usdt: Vec<String>,
    /// Record what programs write to the kernel's trace_marker file in the format of atrace and Perfetto, as
    /// regions and points; every system call of the machine takes about 25 ns longer
    #[arg(long)]
    pub trace_marker: bool,
    /// Record when event loops receive and handle events: Qt's events as regions, and the sources, tasks
    /// and dispatches of GLib and libuv
    #[arg(long)]
    pub event_loops: bool,
}

/// Arguments of `flag`.
#[derive(Args, Debug)]
pub struct FlagArgs {
    /// The process: pid or name
    #[arg(long, value_name = "PROCESS")]
    pub process: String,
    /// A variable, by its name in the symbol table; repeatable
    #[arg(long, value_name = "NAME", required_unless_present = "address")]
    pub symbol: Vec<String>,
    /// An address, as 0x7f12; repeatable
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub address: Vec<u64>,
    /// Size of the flag in bytes: 1, 2, 4 or 8 [default: the symbol's, 4 for an address]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u8>,
    /// Stop watching after this time
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<Span>,
    /// Show the whole stack of each use
    #[arg(long)]
    pub stacks: bool,
    /// Print JSON (docs/JSON.md), when the watch ends
    #[arg(long)]
    pub json: bool,
}

/// Reads an address in hexadecimal.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("'{text}' is no address, as 0x7f12"))
}

/// Arguments of `find-flag`.
#[derive(Args, Debug)]
pub struct FindFlagArgs {
    /// The trace, of a thread that polls, in a process that still runs
    #[arg(required_unless_present = "pid", conflicts_with = "pid", value_hint = ValueHint::DirPath)]
    pub trace: Option<PathBuf>,
    /// The process: pid or name
    #[arg(long, value_name = "PROCESS")]
    pub pid: Option<String>,
    /// The thread that polls [default: the one that spins, yields or naps most]
    #[arg(long, value_name = "TID", requires = "pid")]
    pub tid: Option<u32>,
    /// Wait this long for somebody to write the flag
    #[arg(long = "for", value_name = "DURATION", default_value = "10s")]
    pub duration: Span,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `step`.
#[derive(Args, Debug)]
pub struct StepArgs {
    /// The function: its name in the file's symbol table, or the end of it behind `::`
    pub function: String,
    /// Name of the file for the call
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// The process: pid or name
    #[arg(
        long,
        value_name = "PROCESS",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub process: Option<String>,
    /// The program or library that the function is in [default: the program of the process]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Step the Nth call from now on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub call: u64,
    /// Step at most this many instructions
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub steps: usize,
    /// Wait this long for the call
    #[arg(long = "for", value_name = "DURATION", default_value = "60s")]
    pub patience: Span,
    /// Command to run, whose call is stepped
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Arguments of `diverge`.
#[derive(Args, Debug)]
pub struct DivergeArgs {
    /// File of hangdog step: a call that goes well
    #[arg(value_hint = ValueHint::FilePath)]
    pub good: PathBuf,
    /// File of hangdog step: a call that does not
    #[arg(value_hint = ValueHint::FilePath)]
    pub bad: PathBuf,
    /// Show all places where they diverge
    #[arg(long)]
    pub all: bool,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// The debuggers that scripts are written for.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debugger {
    /// GDB
    Gdb,
    /// LLDB
    Lldb,
}

/// Arguments of `debug`.
#[derive(Args, Debug)]
pub struct DebugArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Which problem
    #[command(flatten)]
    pub which: Which,
    /// Which debugger
    #[arg(long, value_name = "DEBUGGER", default_value = "gdb")]
    pub debugger: Debugger,
    /// Write the script to this file [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Arguments of `flight`.
#[derive(Args, Debug)]
pub struct FlightArgs {
    /// The template
    #[command(flatten)]
    pub template: TemplateChoice,
    /// Memory for the rings of all CPUs together, in bytes; takes K, M or G
    #[arg(long, value_name = "SIZE", default_value = "128M")]
    pub memory: Size,
    /// Memory for unwind tables, shared by all processes, in bytes; takes K, M or G
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub unwind_memory: Size,
    /// Record no stacks: lower overhead, but less can be explained
    #[arg(long)]
    pub no_stacks: bool,
    /// CPU samples per second on each CPU; 0 disables sampling and hardware counters
    #[arg(long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=20_000))]
    pub sample: u32,
    /// Probes
    #[command(flatten)]
    pub probes: ProbeArgs,
}

/// Arguments of `snap`.
#[derive(Args, Debug)]
pub struct SnapArgs {
    /// Name of the trace [default: hangdog-DATE-TIME.hang]
    #[arg(short, long, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
}

/// The default directory of saved hangs.
const HANGS: &str = "/var/lib/hangdog/hangs";

/// Arguments of `watch`.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// Treat a window as unresponsive after it leaves display events unread this long
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub window_limit: Span,
    /// Treat a thread as stalled if it makes no voluntary context switch for this long:
    /// THREAD:DURATION or PROCESS/THREAD:DURATION; repeatable
    #[arg(long, value_name = "THREAD:DURATION")]
    pub stall: Vec<Limited<Selector>>,
    /// Treat a region that programs mark (docs/MARKS.md) as a hang if it takes longer than this; the name
    /// is the region's whole name, or its code in digits; repeatable
    #[arg(long, value_name = "REGION:DURATION")]
    pub region: Vec<Limited<RegionName>>,
    /// Save a hang this long after it begins, even if it still lasts; otherwise when it ends
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub most: Span,
    /// Minimum time between two saved hangs
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub pause: Span,
    /// Directory of saved hangs
    #[arg(long, value_name = "DIRECTORY", default_value = HANGS, value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Disk space for traces, in bytes (K, M or G); the oldest are deleted first
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    pub keep: Size,
    /// Recording options
    #[command(flatten)]
    pub flight: FlightArgs,
}

/// Arguments of `hangs`.
#[derive(Args, Debug)]
pub struct HangsArgs {
    /// Show the hang with this signature, or the only one with this prefix
    pub signature: Option<String>,
    /// Directory of saved hangs
    #[arg(long, value_name = "DIRECTORY", default_value = HANGS, value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `open`.
#[derive(Args, Debug)]
pub struct OpenArgs {
    /// The trace [default: list those in the current directory, and the hangs that watch caught]
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: Option<PathBuf>,
    /// Begin with the view of this template; the page's menu has them all
    #[arg(long, value_name = "NAME")]
    pub template: Option<String>,
    /// Print the address without starting a browser
    #[arg(long)]
    pub no_browser: bool,
    /// Loopback port to listen on; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Directory of the hangs that watch saved
    #[arg(long, value_name = "DIRECTORY", default_value = HANGS, value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `info`.
#[derive(Args, Debug)]
pub struct InfoArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Check every byte of the trace against its checksums
    #[arg(long)]
    pub verify: bool,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// A time range of a trace.
#[derive(Args, Debug, Clone, Copy)]
pub struct WindowArgs {
    /// Start of the time range: 1.234s after the start of the trace [default: its start]
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// End of the time range: 1.234s after the start of the trace, +5ms after --from, or end
    /// [default: end]
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
}

impl From<WindowArgs> for Bounds {
    fn from(args: WindowArgs) -> Bounds {
        Bounds {
            from: args.from,
            to: args.to,
        }
    }
}

/// Arguments of `threads`.
#[derive(Args, Debug)]
pub struct ThreadsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Only threads of this process: pid, name, script, or the tid of one of its threads
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Only this thread: tid, name, or process/thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// The time range of a region
    #[command(flatten)]
    pub region: RegionChoice,
    /// Sort by this column: names and ids ascending, times and counts descending
    #[arg(long, value_name = "COLUMN", default_value = "running")]
    pub sort: Column,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `spans`.
#[derive(Args, Debug)]
pub struct SpansArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// The spans: OTLP in JSON, as the OpenTelemetry collector's file exporter writes it; - is standard
    /// input. They replace those that the trace has
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Process that all spans belong to: pid or name [default: by the attribute process.pid of each]
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `interrupts`.
#[derive(Args, Debug)]
pub struct InterruptsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Compare with this trace [default: compare the fast and the slow occurrences in one trace]
    #[arg(value_hint = ValueHint::DirPath)]
    pub other: Option<PathBuf>,
    /// Whose work: tid, name, process/thread, or process/ for all threads of a process
    #[arg(long, value_name = "THREAD", required_unless_present = "region")]
    pub thread: Option<String>,
    /// Compare the regions of this name or code that programs marked (docs/MARKS.md), of any thread
    /// unless one is named
    #[arg(long, value_name = "NAME", conflicts_with_all = ["turn_call", "requests", "calls"])]
    pub region: Option<String>,
    /// Compare the turns of the thread's loop from one wait in this system call to the next
    /// [default: the call in which it waits the longest for new work]
    #[arg(long, value_name = "CALL", conflicts_with_all = ["requests", "calls"])]
    pub turn_call: Option<String>,
    /// Compare the requests that the thread made, from what it sent until what it then received
    #[arg(long, conflicts_with = "calls")]
    pub requests: bool,
    /// Compare the thread's calls of this name, where record --calls recorded them
    #[arg(long, value_name = "CALL")]
    pub calls: Option<String>,
    /// The time range of the trace
    #[command(flatten)]
    pub window: WindowArgs,
    /// Compare the slowest PERCENT with those no slower than the median [default: the two groups that
    /// the durations form, if they form two]
    #[arg(long, value_name = "PERCENT", conflicts_with = "other")]
    pub slowest: Option<f64>,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `calls`.
#[derive(Args, Debug)]
pub struct CallsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Only calls of this process: pid or name
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Only calls of these threads: tid, name, process/thread, or process/ for all threads of a process
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Show each call of each thread, or of each calling function, on a row of its own
    #[arg(long, value_name = "WHAT", default_value = "call")]
    pub by: CallsBy,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `paging`.
#[derive(Args, Debug)]
pub struct PagingArgs {
    /// The trace
    #[arg(required_unless_present = "trial", value_hint = ValueHint::DirPath)]
    pub trace: Option<PathBuf>,
    /// Measure whether this makes the start of a command faster while none of its files are in memory: the
    /// command is run once to learn what it uses, and then several times with and without it, in turns
    #[arg(long = "try", id = "trial", value_name = "WHAT", requires = "command",
          conflicts_with_all = ["trace", "process", "all", "from", "to", "problem", "region"])]
    pub trial: Option<Trial>,
    /// Run the command this many times with the change, and as often without it
    #[arg(long, value_name = "N", default_value_t = 5, requires = "trial", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Only this process (pid or name) and its children [default: the recorded command and its
    /// children; if there was none, all processes]
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// All processes
    #[arg(long, conflicts_with = "process")]
    pub all: bool,
    /// The time range [default: the life of the processes]
    #[command(flatten)]
    pub window: WindowArgs,
    /// Take the time range and the process of the Nth worst problem
    #[arg(long, value_name = "N", conflicts_with = "region", value_parser = clap::value_parser!(u32).range(1..))]
    pub problem: Option<u32>,
    /// The time range of a region
    #[command(flatten)]
    pub region: RegionChoice,
    /// Instead list the functions of this file (a path, or a name such as libapp.so) that the operation
    /// executed, as far as the stacks show, in the order of their first use and with their linker symbols:
    /// for lld's --symbol-ordering-file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trial", "json"])]
    pub order: Option<String>,
    /// With --order, list sections for gold's --section-ordering-file; the program must be compiled with
    /// -ffunction-sections
    #[arg(long, requires = "order")]
    pub gold: bool,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
    /// Command to measure with --try; its output is discarded
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "trace", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// What `paging --try` tries out.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Before the command starts, read the parts of files that it uses, file by file
    Prefetch,
}

/// Arguments of `memory`.
#[derive(Args, Debug)]
pub struct MemoryArgs {
    /// Only this process: pid or name [default: all]
    pub process: Option<String>,
    /// Also show how much memory the process uses during this time (column "touched"). This clears the
    /// accessed bits of its pages, by which the kernel chooses what to reclaim when memory is short
    #[arg(
        long,
        value_name = "DURATION",
        requires = "process",
        conflicts_with = "trace"
    )]
    pub hot: Option<Span>,
    /// Show the memory of processes in this trace, recorded with --memory-every, instead of now
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: Option<PathBuf>,
    /// Show the trace's last snapshot before this time: 1.234s after the start of the trace [default: its
    /// last one]
    #[arg(long, value_name = "TIME", requires = "trace")]
    pub at: Option<Moment>,
    /// Show at most this many processes, segments and files
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub most: u32,
    /// Print JSON (docs/JSON.md), all of it
    #[arg(long)]
    pub json: bool,
}

/// What a row of `calls` stands for.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsBy {
    /// The call
    Call,
    /// The call and the thread
    Thread,
    /// The call and the function of the program that called it
    Function,
}

/// Arguments of `load`.
#[derive(Args, Debug)]
pub struct LoadArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Length of a step
    #[arg(long, value_name = "DURATION", default_value = "10ms")]
    pub step: Span,
    /// Only threads of this process: pid, name, script, or the tid of one of its threads
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Only at this kernel priority or a higher one (a lower number): 0-98 realtime, 100-139 nice
    /// -20 to 19
    #[arg(long, value_name = "N")]
    pub priority: Option<u8>,
    /// List the threads that were running or runnable at this time instead
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to", "step"])]
    pub at: Option<Moment>,
    /// List instead who had the CPUs while this thread was runnable, and what would have helped: tid, name,
    /// process/thread, or process/ for all threads of a process
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["at", "step", "process", "priority"])]
    pub rivals: Option<String>,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `regions`.
#[derive(Args, Debug)]
pub struct RegionsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Only regions with this code or name, or a prefix of the name
    pub name: Option<String>,
    /// Only regions that begin in the time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Only regions begun by threads of this process: pid, name, or a prefix of the name
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Only regions begun by this thread: tid, name, or process/thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Only regions that begin with this argument, as 1=42 for the first; repeatable
    #[arg(long = "arg", value_name = "N=VALUE")]
    pub arguments: Vec<Argument>,
    /// Which begin and end form a region [default: what the program chose]
    #[arg(long, value_name = "RULE")]
    pub pair: Option<PairBy>,
    /// List every occurrence instead
    #[arg(long)]
    pub list: bool,
    /// List the points instead
    #[arg(long, conflicts_with_all = ["list", "sort", "pair"])]
    pub points: bool,
    /// Sort --list by time, or by duration with the longest first
    #[arg(long, value_name = "ORDER", default_value = "time", requires = "list")]
    pub sort: RegionOrder,
    /// List at most this many occurrences or points [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Which begin and end are one region.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairBy {
    /// Those of the same code and thread
    Thread,
    /// Those of the same code and first argument
    Argument,
    /// Those of the same code
    Code,
}

impl From<PairBy> for Pairing {
    fn from(rule: PairBy) -> Pairing {
        match rule {
            PairBy::Thread => Pairing::Thread,
            PairBy::Argument => Pairing::Argument,
            PairBy::Code => Pairing::Code,
        }
    }
}

/// What `regions --list` sorts by.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionOrder {
    /// By the time of the begin
    Time,
    /// By duration, the longest first
    Duration,
}

/// One occurrence of a region.
#[derive(Args, Debug, Clone)]
pub struct RegionChoice {
    /// Take the time range of a region that a program marked (code, name, or a prefix of the name):
    /// its longest occurrence. Process, thread and time range limit which occurrences count
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Take the Nth longest occurrence of the region
    #[arg(long, value_name = "N", default_value_t = 1, requires = "region", value_parser = clap::value_parser!(u32).range(1..))]
    pub nth: u32,
}

/// The columns that `threads` sorts by.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Name of the process, then of the thread
    Process,
    /// Process id
    Pid,
    /// Name of the thread
    Thread,
    /// Thread id
    Tid,
    /// Lifetime within the time range
    Time,
    /// Time on a CPU
    Running,
    /// Time runnable after a wakeup, without a CPU
    Runnable,
    /// Time runnable after a preemption
    Preempted,
    /// Time waiting for something other than a CPU
    Blocked,
    /// Time lost to interrupts
    Interrupted,
    /// Number of switches to a CPU
    Switches,
    /// Longest wait
    Longest,
}

/// Arguments of `story`.
#[derive(Args, Debug)]
pub struct StoryArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// The thread: tid, name, or process/thread [default: with --region, the one that began it]
    #[arg(long, value_name = "THREAD", required_unless_present = "region")]
    pub thread: Option<String>,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// The time range of a region
    #[command(flatten)]
    pub region: RegionChoice,
    /// Show at most this many intervals [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Which problem of a trace.
#[derive(Args, Debug)]
pub struct Which {
    /// Explain problem N, where 1 is the worst [default: the worst, or one nearly as bad whose cause is
    /// clearer]
    #[arg(long, value_name = "N", conflicts_with = "thread", value_parser = clap::value_parser!(u32).range(1..))]
    pub problem: Option<u32>,
    /// Explain what held up a thread: tid, name, or process/thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Explain what held up a process the longest: pid, name, a prefix of the name, or the script
    /// that it runs; if its own threads are idle, what held up its child processes
    #[arg(long, value_name = "PROCESS", conflicts_with_all = ["problem", "thread"])]
    pub process: Option<String>,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Explain a region that a program marked (code, name, or a prefix of the name): its longest
    /// occurrence. Process, thread and time range limit which occurrences count
    #[arg(long, value_name = "NAME", conflicts_with = "problem")]
    pub region: Option<String>,
    /// Explain the Nth longest occurrence of the region
    #[arg(long, value_name = "N", default_value_t = 1, requires = "region", value_parser = clap::value_parser!(u32).range(1..))]
    pub nth: u32,
    /// Compare with a recording of a run that went well
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub baseline: Option<PathBuf>,
}

impl Which {
    /// The selection.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted {
            problem: self.problem,
            thread: self.thread.as_deref(),
            process: self.process.as_deref(),
            window: self.window.into(),
            region: self.region.as_deref(),
            nth: self.nth,
        }
    }
}

/// Arguments of `why`.
#[derive(Args, Debug)]
pub struct WhyArgs {
    /// The trace
    #[arg(required_unless_present = "live", value_hint = ValueHint::DirPath)]
    pub trace: Option<PathBuf>,
    /// Show what holds up a process (pid, name or script) now, without recording; if the process is
    /// at rest, look again for up to 5 s [default: the process that is held up the longest]
    #[arg(long, value_name = "PROCESS", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = ["trace", "problem", "thread", "from", "to", "region", "baseline", "whole", "forget"])]
    pub live: Option<String>,
    /// Save the snapshot as a trace
    #[arg(short, long, value_name = "TRACE", requires = "live", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Which problem
    #[command(flatten)]
    pub which: Which,
    /// Explain where the time of the recorded command went over its whole run [default: only if no
    /// problem takes a fifth of it]
    #[arg(long, conflicts_with_all = ["problem", "thread", "process", "from", "to", "region"])]
    pub whole: bool,
    /// Ask nothing; choose the likeliest answers
    #[arg(long)]
    pub yes: bool,
    /// Delete an earlier answer, by its number in answers.toml of the trace; repeatable
    #[arg(long, value_name = "N")]
    pub forget: Vec<u32>,
    /// Print JSON (docs/JSON.md); asks nothing
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `problems`.
#[derive(Args, Debug)]
pub struct ProblemsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// List only problems of this process (pid, name, a prefix of the name, or the script that it
    /// runs) and of what it started
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// List only problems of at least this duration [default: all]
    #[arg(long, value_name = "DURATION")]
    pub min: Option<Span>,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Which problem
    #[command(flatten)]
    pub which: Which,
    /// The edge, by the number of the step under 'How it came about' where it begins
    #[arg(value_name = "EDGE", value_parser = clap::value_parser!(u32).range(1..))]
    pub step: u32,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `graph`.
#[derive(Args, Debug)]
pub struct GraphArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Draw a part of the graph as Graphviz DOT; render it with dot -Tsvg
    #[arg(long, conflicts_with = "json")]
    pub dot: bool,
    /// File for the drawing; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", requires = "dot", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Draw what led to problem N of why, where 1 is the worst
    #[arg(long, value_name = "N", requires = "dot", conflicts_with_all = ["thread", "from", "to"], value_parser = clap::value_parser!(u32).range(1..))]
    pub around: Option<u32>,
    /// Draw what led to this thread's activity: tid, name, or process/thread
    #[arg(long, value_name = "THREAD", requires = "dot")]
    pub thread: Option<String>,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
    /// Follow at most this many edges between threads
    #[arg(long, value_name = "D", default_value_t = 6, requires = "dot")]
    pub depth: usize,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Threads and a time range.
#[derive(Args, Debug, Clone)]
pub struct SelectionArgs {
    /// Only these threads: tid, name, process/thread, or process/ for all threads of a process
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// The time range
    #[command(flatten)]
    pub window: WindowArgs,
}

/// Arguments of `top`.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Which threads and time range
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Sort by self time, or by total time with callees
    #[arg(long, value_name = "TIME", default_value = "self")]
    pub by: TopBy,
    /// Count on-CPU samples, or time blocked
    #[arg(long, default_value = "on-cpu")]
    pub view: TopView,
    /// List at most N functions; 0 lists all
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// What `top` sorts by.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopBy {
    /// Time with the function innermost on the stack
    #[value(name = "self")]
    Own,
    /// Time with the function anywhere on the stack
    Total,
}

/// What `top` counts.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopView {
    /// CPU samples
    OnCpu,
    /// Time blocked, by location
    OffCpu,
}

/// Arguments of `flame`.
#[derive(Args, Debug)]
pub struct FlameArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// SVG file to write; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// What to draw
    #[arg(long, default_value = "on-cpu")]
    pub view: FoldView,
    /// Which threads and time range
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// The weighted stacks that there are.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldView {
    /// CPU samples
    OnCpu,
    /// Time blocked, by location; and time waiting for a CPU
    OffCpu,
    /// Time blocked, by location and by the thread that ended it
    Wakes,
}

impl From<FoldView> for View {
    fn from(view: FoldView) -> View {
        match view {
            FoldView::OnCpu => View::OnCpu,
            FoldView::OffCpu => View::OffCpu,
            FoldView::Wakes => View::Wakes,
        }
    }
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Output format
    #[arg(long, required_unless_present = "html", requires = "output")]
    pub format: Option<ExportFormat>,
    /// File to write; - for standard output
    #[arg(short, long, value_name = "FILE", requires = "format", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write a problem as one HTML page of at most 10 MB that opens offline: the verdict and the
    /// tracks around it. It contains names of threads, functions and files, and command lines
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "output", "view", "thread", "from", "to"], value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// The problem for --html, where 1 is the worst [default: 1]
    #[arg(long, value_name = "N", requires = "html", value_parser = clap::value_parser!(u32).range(1..))]
    pub problem: Option<u32>,
    /// Omit command lines, script names, the host name and the directories of paths from the HTML page
    #[arg(long, requires = "html")]
    pub redact: bool,
    /// Which stacks to fold, for --format folded [default: on-cpu]
    #[arg(long)]
    pub view: Option<FoldView>,
    /// Which threads and time range
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// The formats that `export` writes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Perfetto protobuf, for ui.perfetto.dev and trace_processor
    Perfetto,
    /// Firefox Profiler JSON, for profiler.firefox.com
    Firefox,
    /// Folded stacks, for flamegraph.pl, speedscope and others
    Folded,
}

/// Arguments of `numbers`.
#[derive(Args, Debug)]
pub struct NumbersArgs {
    /// Directory for temporary files, on the file system to measure
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Measure for 12 s instead of 80 s, with wider spreads
    #[arg(long)]
    pub quick: bool,
    /// Measure only figures whose name begins with this, as memory. or thread.create; repeatable
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Show the last measurements on this machine without measuring
    #[arg(long, conflicts_with_all = ["quick", "only", "dir"])]
    pub stored: bool,
    /// Show where two --json outputs differ by more than their spread
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_hint = ValueHint::FilePath,
          conflicts_with_all = ["quick", "only", "dir", "stored", "plot"])]
    pub compare: Vec<PathBuf>,
    /// Print how each figure is measured, without measuring
    #[arg(long, conflicts_with_all = ["quick", "only", "dir", "stored", "compare", "plot", "json"])]
    pub list: bool,
    /// Also draw the curves to an SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The definitions do not contradict each other.
    #[test]
    fn definitions_are_sound() {
        Cli::command().debug_assert();
    }

    /// What follows `--` is the command, its own options included.
    #[test]
    fn record_takes_a_command() {
        let cli = Cli::parse_from(["hangdog", "record", "-o", "a.hang", "--", "ls", "-l"]);
        let Command::Record(args) = cli.command else {
            panic!("not record: {cli:?}");
        };
        assert_eq!(args.command, ["ls", "-l"]);
        assert_eq!(args.output, Some("a.hang".into()));
        assert_eq!((args.sample, args.memory.bytes()), (250, 64 << 20));
    }

    /// A duration without a unit is refused.
    #[test]
    fn durations_need_a_unit() {
        assert!(Cli::try_parse_from(["hangdog", "record", "--for", "10"]).is_err());
        assert!(Cli::try_parse_from(["hangdog", "record", "--for", "10s"]).is_ok());
    }
}
