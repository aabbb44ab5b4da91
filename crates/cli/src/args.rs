//! The command line as definitions alone: help, completions and man pages are made from them.

use crate::stall::Stall;
use crate::units::{Moment, Size, Span};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Says why a program hung.
///
/// hangdog records what every thread of the system does, and names the cause of a hang in one
/// sentence, with the evidence.
#[derive(Parser, Debug)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Exit status: 0 found and fine, 1 nothing found, 2 bad use or bad input; \
                  record passes on its command's own.\n\
                  Times need a unit: 1.234s, 52ms, 98us. \
                  NO_COLOR turns colours off; output to a file or a pipe has none.\n\
                  HANGDOG_SOCKET names the socket of flight and snap."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Record the whole system, while a command runs, for some time or until Ctrl-C
    Record(RecordArgs),
    /// Record always, into memory that is overwritten, until Ctrl-C
    Flight(FlightArgs),
    /// Save what the running flight recorder holds as a trace; it flies on
    Snap(SnapArgs),
    /// Record always, and save and explain hangs by itself, until Ctrl-C
    Watch(WatchArgs),
    /// List the hangs that watch caught
    Hangs(HangsArgs),
    /// Say what this machine allows and lacks, and how to fix it
    Doctor(DoctorArgs),
    /// Say what a trace holds: when, where, threads, events, loss, size
    Info(InfoArgs),
    /// Show where each thread's time went
    Threads(ThreadsArgs),
    /// Tell what one thread did, interval by interval
    Story(StoryArgs),
    /// Find the problems in a trace and explain the worst
    Why(WhyArgs),
    /// List the problems in a trace, worst first
    Problems(ProblemsArgs),
    /// Say why an edge of a verdict is believed
    Explain(ExplainArgs),
    /// Build the graph of causes: count it, or draw a part
    Graph(GraphArgs),
    /// List the functions that time went to
    Top(TopArgs),
    /// Draw a flame graph
    Flame(FlameArgs),
    /// Write a trace in another tool's format
    Export(ExportArgs),
    /// Measure what basic operations cost on this machine, in a minute and without root
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
        /// Where to; it must exist.
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// Arguments of `record`.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// Name of the trace [default: hangdog-DATE-TIME.hang]
    #[arg(short, long, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<Span>,
    /// If the command is not done after this time, tell what it waits for, save the trace, and end
    /// the command with its process group; the exit code is then 124, as of timeout(1)
    #[arg(
        long,
        value_name = "DURATION",
        requires = "command",
        conflicts_with = "duration"
    )]
    pub limit: Option<Span>,
    /// Record no stacks: cheaper, and less can be explained
    #[arg(long)]
    pub no_stacks: bool,
    /// Samples a second of what each CPU runs; 0 turns that and hardware counters off
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(..=20_000))]
    pub sample: u32,
    /// Memory for the rings of all CPUs together
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub memory: Size,
    /// Memory for unwind tables, which all processes share
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub unwind_memory: Size,
    /// Record all transfers of bytes, through pipes and eventfds too; costs a hook on every system
    /// call (otherwise: of sockets, up to 50,000 a second on a CPU)
    #[arg(long)]
    pub transfers: bool,
    /// Command to start and to record until it ends
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Arguments of `flight`.
#[derive(Args, Debug)]
pub struct FlightArgs {
    /// Memory for the rings of all CPUs together
    #[arg(long, value_name = "SIZE", default_value = "128M")]
    pub memory: Size,
    /// Memory for unwind tables, which all processes share
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub unwind_memory: Size,
    /// Record no stacks: cheaper, and less can be explained
    #[arg(long)]
    pub no_stacks: bool,
    /// Samples a second of what each CPU runs; 0 turns that and hardware counters off
    #[arg(long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=20_000))]
    pub sample: u32,
}

/// Arguments of `snap`.
#[derive(Args, Debug)]
pub struct SnapArgs {
    /// Name of the trace [default: hangdog-DATE-TIME.hang]
    #[arg(short, long, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
}

/// Where hangs are kept unless told otherwise.
const HANGS: &str = "/var/lib/hangdog/hangs";

/// Arguments of `watch`.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// A window that leaves unread for so long what its display sent does not answer
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub window_limit: Span,
    /// A thread that should come round at least this often: THREAD:DURATION or
    /// PROCESS/THREAD:DURATION; can be given again
    #[arg(long, value_name = "THREAD:DURATION")]
    pub stall: Vec<Stall>,
    /// Wait no longer than this, from its begin, for a hang to end before it is saved
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub most: Span,
    /// Leave so much time between two that are saved
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub pause: Span,
    /// Where hangs are kept
    #[arg(long, value_name = "DIRECTORY", default_value = HANGS, value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Disk space for traces; the oldest go first
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    pub keep: Size,
    /// How to record
    #[command(flatten)]
    pub flight: FlightArgs,
}

/// Arguments of `hangs`.
#[derive(Args, Debug)]
pub struct HangsArgs {
    /// Tell all of the hang with this signature, or the only one that begins so
    pub signature: Option<String>,
    /// Where hangs are kept
    #[arg(long, value_name = "DIRECTORY", default_value = HANGS, value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `info`.
#[derive(Args, Debug)]
pub struct InfoArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// A part of a trace's time.
#[derive(Args, Debug, Clone, Copy)]
pub struct WindowArgs {
    /// Look at the trace from this time on: 1.234s after its start
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// Look at it up to this time: 1.234s after its start, +5ms after --from, or end
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
}

/// Arguments of `threads`.
#[derive(Args, Debug)]
pub struct ThreadsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// When
    #[command(flatten)]
    pub window: WindowArgs,
    /// Only threads of this process: pid or name
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Only this thread: tid, name, or process/thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Sort by this column: names and ids ascending, times and counts descending
    #[arg(long, value_name = "COLUMN", default_value = "running")]
    pub sort: Column,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
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
    /// Life within the window
    Time,
    /// Time on a CPU
    Running,
    /// Time woken and without a CPU
    Runnable,
    /// Time after being taken off a CPU
    Preempted,
    /// Time waiting for something other than a CPU
    Blocked,
    /// Time lost to interrupts
    Interrupted,
    /// How often it came on a CPU
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
    /// The thread: tid, name, or process/thread
    #[arg(long, value_name = "THREAD")]
    pub thread: String,
    /// When
    #[command(flatten)]
    pub window: WindowArgs,
    /// Tell no more than this many intervals
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Which problem of a trace.
#[derive(Args, Debug)]
pub struct Which {
    /// Explain this problem of those found, 1 being the worst
    #[arg(long, value_name = "N", conflicts_with = "thread", value_parser = clap::value_parser!(u32).range(1..))]
    pub problem: Option<u32>,
    /// Explain what held up this thread: tid, name, or process/thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Explain what held up this process most: pid, name, or how the name begins
    #[arg(long, value_name = "PROCESS", conflicts_with_all = ["problem", "thread"])]
    pub process: Option<String>,
    /// When
    #[command(flatten)]
    pub window: WindowArgs,
    /// Compare with another recording, in which it went well
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub baseline: Option<PathBuf>,
}

/// Arguments of `why`.
#[derive(Args, Debug)]
pub struct WhyArgs {
    /// The trace
    #[arg(required_unless_present = "live", value_hint = ValueHint::DirPath)]
    pub trace: Option<PathBuf>,
    /// Who waits for whom now, without a recording: what holds up this process (pid or name), or
    /// the one that is held up worst
    #[arg(long, value_name = "PROCESS", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = ["trace", "problem", "thread", "from", "to", "baseline", "whole", "forget"])]
    pub live: Option<String>,
    /// Keep what was seen as this trace
    #[arg(short, long, value_name = "TRACE", requires = "live", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Which problem
    #[command(flatten)]
    pub which: Which,
    /// Explain the recorded command's whole run: where its time went [default: where no problem
    /// takes a fifth of it]
    #[arg(long, conflicts_with_all = ["problem", "thread", "process", "from", "to"])]
    pub whole: bool,
    /// Ask nothing: take what the evidence favours
    #[arg(long)]
    pub yes: bool,
    /// Take back an answer of earlier, by its number in the trace's answers.toml
    #[arg(long, value_name = "N")]
    pub forget: Vec<u32>,
    /// Answer in JSON (docs/JSON.md); asks nothing
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `problems`.
#[derive(Args, Debug)]
pub struct ProblemsArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// List those of this process alone: pid, name, or how the name begins
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Leave out those that took less time
    #[arg(long, value_name = "DURATION")]
    pub min: Option<Span>,
    /// Answer in JSON (docs/JSON.md)
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
    /// The edge: the number of the step under 'How it came about' that it leads on from
    #[arg(value_name = "EDGE", value_parser = clap::value_parser!(u32).range(1..))]
    pub step: u32,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `graph`.
#[derive(Args, Debug)]
pub struct GraphArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Draw a part, in Graphviz's language: dot -Tsvg makes a picture of it
    #[arg(long, conflicts_with = "json")]
    pub dot: bool,
    /// Where the drawing goes; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", requires = "dot", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Draw what led to this problem of those that why finds, 1 being the worst
    #[arg(long, value_name = "N", requires = "dot", conflicts_with_all = ["thread", "from", "to"], value_parser = clap::value_parser!(u32).range(1..))]
    pub around: Option<u32>,
    /// Draw what led to this thread's doings: tid, name, or process/thread
    #[arg(long, value_name = "THREAD", requires = "dot")]
    pub thread: Option<String>,
    /// When
    #[command(flatten)]
    pub window: WindowArgs,
    /// Go back along so many edges between threads
    #[arg(long, value_name = "D", default_value_t = 6, requires = "dot")]
    pub depth: usize,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// Some threads, within a part of a trace's time.
#[derive(Args, Debug, Clone)]
pub struct SelectionArgs {
    /// Only these threads: tid, name, process/thread, or process/ for all of a process
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// When
    #[command(flatten)]
    pub window: WindowArgs,
}

/// Arguments of `top`.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Of what
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Sort by a function's own time, or by that with what it called
    #[arg(long, value_name = "TIME", default_value = "self")]
    pub by: TopBy,
    /// Time on a CPU (samples), or time blocked
    #[arg(long, default_value = "on-cpu")]
    pub view: TopView,
    /// List so many functions; 0 for all
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Answer in JSON (docs/JSON.md)
    #[arg(long)]
    pub json: bool,
}

/// What `top` sorts by.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopBy {
    /// Where the function was innermost
    #[value(name = "self")]
    Own,
    /// Where it was on the stack at all
    Total,
}

/// What `top` counts.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopView {
    /// Samples of what ran
    OnCpu,
    /// Time blocked, by where
    OffCpu,
}

/// Arguments of `flame`.
#[derive(Args, Debug)]
pub struct FlameArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// Where the picture goes, an SVG file; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// What is drawn
    #[arg(long, default_value = "on-cpu")]
    pub view: FoldView,
    /// Of what
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// The weighted stacks that there are.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldView {
    /// Samples of what ran
    OnCpu,
    /// Time blocked, by where; and time waiting for a CPU
    OffCpu,
    /// Time blocked, by where and by who ended it
    Wakes,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The trace
    #[arg(value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
    /// For whom
    #[arg(long)]
    pub format: ExportFormat,
    /// Where it goes; - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Which stacks, for folded [default: on-cpu]
    #[arg(long)]
    pub view: Option<FoldView>,
    /// Of what
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// The formats that `export` writes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Perfetto's protobuf: open it at ui.perfetto.dev, or with trace_processor
    Perfetto,
    /// The Firefox Profiler's JSON: open it at profiler.firefox.com
    Firefox,
    /// Folded stacks: for flamegraph.pl, speedscope and others
    Folded,
}

/// Arguments of `numbers`.
#[derive(Args, Debug)]
pub struct NumbersArgs {
    /// Where files are made and removed: the file system that is measured
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Measure for 12 seconds instead of 80: wider spreads
    #[arg(long)]
    pub quick: bool,
    /// Measure only what begins with this, as memory. or thread.create; may be repeated
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Show what was measured last on this machine, and measure nothing
    #[arg(long, conflicts_with_all = ["quick", "only", "dir"])]
    pub stored: bool,
    /// Show what differs between two answers of --json by more than their spread
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_hint = ValueHint::FilePath,
          conflicts_with_all = ["quick", "only", "dir", "stored", "plot"])]
    pub compare: Vec<PathBuf>,
    /// Say how each figure is measured, and measure nothing
    #[arg(long, conflicts_with_all = ["quick", "only", "dir", "stored", "compare", "plot", "json"])]
    pub list: bool,
    /// Draw the curves too, as an SVG picture
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Answer in JSON
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
