//! `hangdog step`: one call of a function, instruction by instruction, into a file for `diverge`.

use crate::args::StepArgs;
use crate::flag_place::process;
use anyhow::{Context, Result, anyhow, bail};
use hangdog_flags::call::{self, Call, End, Wanted};
use hangdog_flags::call_file::Recorded;
use hangdog_report::format;
use hangdog_symbols::functions::{self, Function};
use hangdog_symbols::maps;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// Steps, and gives what became of it.
pub fn run(args: &StepArgs) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        bail!("calls are stepped on x86-64 only");
    }
    let mut command = match &args.process {
        Some(_) => None,
        None => Some(stopped(&args.command)?),
    };
    let recorded = recorded(args, command.as_mut());
    // It goes on in any case, and its output is its own.
    if let Some(child) = &mut command {
        if recorded.is_err() {
            resume(child);
        }
        let _ = child.wait();
    }
    let recorded = recorded?;
    let path = &args.output;
    recorded
        .save(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let Recorded {
        function,
        process,
        call,
        ..
    } = &recorded;
    say!(
        "hangdog: {}: {} of {} in {process} ({}), {}; next: hangdog diverge GOOD BAD",
        path.display(),
        format::things(call.steps.len() as u64, "instruction", "instructions"),
        format::printable(function),
        call.tid,
        ended(call.end)
    );
    Ok(())
}

/// Why a call has no more steps.
pub fn ended(end: End) -> &'static str {
    match end {
        End::Returned => "until it returned",
        End::Steps => "and then cut short (--steps)",
        End::Time => "and then cut short after 2 minutes",
        End::Gone => "until the thread ended",
    }
}

fn recorded(args: &StepArgs, command: Option<&mut Child>) -> Result<Recorded> {
    let pid = match (&args.process, &command) {
        (Some(selector), _) => process(selector)?,
        (None, Some(child)) => child.id(),
        (None, None) => bail!("give --process or a command"),
    };
    let file = match &args.file {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("cannot find {}", path.display()))?,
        None => fs::read_link(format!("/proc/{pid}/exe"))
            .with_context(|| format!("cannot see the program of process {pid}"))?,
    };
    let function = function(&file, &args.function)?;
    let wanted = Wanted {
        pid,
        address: address(pid, &file, &function)?,
        nth: args.call,
        steps: args.steps,
        patience: Duration::from_nanos(args.patience.ns()),
        is_stopped: command.is_some(),
    };
    let call = call::record(&wanted).map_err(|why| refused(&why, &wanted, args))?;
    Ok(Recorded {
        function: function.name,
        process: name(pid, &call),
        pid,
        call,
    })
}

/// A process's name, while it is there; otherwise its program's.
fn name(pid: u32, call: &Call) -> String {
    let now = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = now.trim_end_matches('\n').to_owned();
    let program = call.maps.first().map(|map| PathBuf::from(&map.path));
    match name.is_empty() {
        true => program
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default(),
        false => name,
    }
}

/// The one function of a file that has this name.
fn function(file: &Path, name: &str) -> Result<Function> {
    let mut found = functions::named(file, name);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!(
            "{} has no function {name} in its symbol table (nm -C, or nm -CD where it is stripped, lists its \
             functions); of a library, give --file",
            file.display()
        ),
        _ => {
            let names: Vec<String> = found.into_iter().map(|it| it.name).collect();
            bail!("{name} may be any of: {}", names.join("; "))
        }
    }
}

/// Where a function is in the memory of a process.
fn address(pid: u32, file: &Path, function: &Function) -> Result<u64> {
    let file_name = file.to_string_lossy();
    let mappings = maps::executable(pid).into_iter();
    let mut of_file = mappings.filter(|mapping| mapping.path == file_name);
    let place = of_file.find_map(|mapping| {
        let within = function.offset.checked_sub(mapping.file_offset)?;
        (within < mapping.end - mapping.start).then_some(mapping.start + within)
    });
    place.with_context(|| {
        format!(
            "process {pid} has not mapped {file_name}: of a library that is loaded later, step a process that \
             runs (--process)"
        )
    })
}

fn refused(why: &io::Error, wanted: &Wanted, args: &StepArgs) -> anyhow::Error {
    let Wanted { pid, .. } = wanted;
    match why.raw_os_error() {
        Some(libc::ETIMEDOUT) => anyhow!(
            "process {pid} did not call {} {} within {} (--for)",
            args.function,
            match args.call {
                1 => "once".to_owned(),
                nth => format!("{nth} times"),
            },
            format::duration(args.patience.ns())
        ),
        Some(libc::ESRCH) => anyhow!("process {pid} ended before the call"),
        Some(libc::EPERM) => anyhow!(
            "process {pid} cannot be stepped: it is another user's, a debugger or tracer has it, or \
             kernel.yama.ptrace_scope forbids it"
        ),
        Some(libc::ENOSPC) => anyhow!("a thread of process {pid} has no hardware breakpoint left"),
        _ => anyhow!("cannot step process {pid}: {why}"),
    }
}

/// Starts a command, which is stopped before its first instruction.
fn stopped(words: &[std::ffi::OsString]) -> Result<Child> {
    let [program, arguments @ ..] = words else {
        bail!("give --process or a command");
    };
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: the child makes one system call between fork and exec, which is safe there: it asks to be
    // stopped for us at exec.
    unsafe {
        command.pre_exec(
            || match libc::ptrace(libc::PTRACE_TRACEME, 0, 0usize, 0usize) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            },
        );
    }
    let shown = program.to_string_lossy().into_owned();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {shown}"))?;
    let pid = child.id() as i32;
    let mut status = 0;
    // SAFETY: waitpid writes the status into an integer that lives.
    let found = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    if found != pid || !libc::WIFSTOPPED(status) {
        bail!("{shown} ended before its first instruction");
    }
    // SAFETY: it is our child, stopped; it is let go with a signal that stops it for the next tracer.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0usize, libc::SIGSTOP as usize) };
    Ok(child)
}

fn resume(child: &Child) {
    // SAFETY: a signal to our child, which has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGCONT) };
}
