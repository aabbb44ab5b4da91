//! What can go wrong while recording.

use std::path::PathBuf;

/// An error of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not let us load or attach the programs.
    #[error("cannot {doing}: {cause}; `hangdog doctor` says what this machine lacks")]
    Bpf {
        /// What was tried.
        doing: &'static str,
        /// What libbpf said.
        cause: libbpf_rs::Error,
    },
    /// A probe of a program cannot be attached.
    #[error("cannot attach to {probe}: {cause:#} (readelf -n lists the static probes of a file)")]
    Probe {
        /// The probe.
        probe: String,
        /// What libbpf said.
        cause: libbpf_rs::Error,
    },
    /// A hook without which there is nothing to record is missing.
    #[error(
        "this kernel has no {hook} tracepoint with type information (BTF); hangdog needs Linux 6.1 \
         or later with CONFIG_DEBUG_INFO_BTF=y"
    )]
    MissingHook {
        /// The tracepoint.
        hook: &'static str,
    },
    /// The machine has more CPUs than the programs have room for.
    #[error("this machine has {cpus} CPUs, hangdog records at most {most}")]
    TooManyCpus {
        /// CPUs here.
        cpus: usize,
        /// The most.
        most: usize,
    },
    /// The kernel counts processes otherwise than we do.
    #[error(
        "hangdog runs in a pid namespace of its own (a container): the kernel reports host pids, \
         which name other processes here; run it on the host, or share the host's namespace: \
         docker run --pid=host, or in Kubernetes hostPID: true"
    )]
    PidNamespace,
    /// A system call failed.
    #[error("cannot {doing}: {cause}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The command to record could not be started.
    #[error("cannot run {command:?}: {cause}")]
    Command {
        /// The command.
        command: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// There is no process whose calls are to be recorded.
    #[error("--calls-of: no process is named or numbered '{0}'; ps -e lists them")]
    NoProcess(String),
    /// There is no flight recorder to take a snapshot of.
    #[error("no flight recorder is running at {}; start one with: sudo hangdog flight", path.display())]
    NoFlight {
        /// Its socket.
        path: PathBuf,
    },
    /// The flight recorder answers somebody else.
    #[error("only the user who started the flight recorder, usually root, can use {}: try sudo", path.display())]
    NotAllowed {
        /// Its socket.
        path: PathBuf,
    },
    /// A flight recorder runs already.
    #[error("a flight recorder is already running at {}", path.display())]
    FlightRuns {
        /// Its socket.
        path: PathBuf,
    },
    /// The flight recorder said no.
    #[error("the flight recorder could not save the trace: {0}")]
    Snapshot(String),
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] hangdog_trace::Error),
}

impl Error {
    /// The last failed system call of this thread.
    pub(crate) fn last_os(doing: impl Into<String>) -> Error {
        Error::System {
            doing: doing.into(),
            cause: std::io::Error::last_os_error(),
        }
    }

    /// A failed system call.
    pub(crate) fn system(doing: impl Into<String>, cause: std::io::Error) -> Error {
        Error::System {
            doing: doing.into(),
            cause,
        }
    }
}
