//! The subcommands, one file each.

mod calls;
mod compare;
mod completions;
mod debug;
mod diverge;
mod doctor;
mod explain;
mod export;
mod find_flag;
mod flag;
mod flame;
mod flight;
mod graph;
mod hangs;
mod info;
mod interrupts;
mod load;
mod man;
mod memory;
mod numbers;
mod open;
mod paging;
mod problems;
mod record;
mod regions;
mod snap;
mod spans;
mod step;
mod story;
mod template;
mod threads;
mod top;
mod watch;
mod why;

use crate::args::Command;
use anyhow::Result;
use std::process::ExitCode;

/// There was nothing of what was asked for.
pub const NOTHING_FOUND: u8 = 1;
/// The arguments make no sense, or a trace could not be read.
pub const BAD_INPUT: u8 = 2;

/// Runs a subcommand and gives the exit status.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Record(args) => return record::run(&args),
        Command::Flight(args) => flight::run(&args)?,
        Command::Snap(args) => snap::run(&args)?,
        Command::Watch(args) => watch::run(&args)?,
        Command::Hangs(args) => hangs::run(&args)?,
        Command::Doctor(args) => return doctor::run(&args),
        Command::Flag(args) => flag::run(&args)?,
        Command::FindFlag(args) => return find_flag::run(&args),
        Command::Step(args) => step::run(&args)?,
        Command::Diverge(args) => return diverge::run(&args),
        Command::Debug(args) => debug::run(&args)?,
        Command::Info(args) => info::run(&args)?,
        Command::Threads(args) => threads::run(&args)?,
        Command::Story(args) => story::run(&args)?,
        Command::Interrupts(args) => interrupts::run(&args)?,
        Command::Compare(args) => compare::run(&args)?,
        Command::Calls(args) => calls::run(&args)?,
        Command::Paging(args) => paging::run(&args)?,
        Command::Memory(args) => memory::run(&args)?,
        Command::Load(args) => load::run(&args)?,
        Command::Regions(args) => regions::run(&args)?,
        Command::Template(command) => template::run(&command)?,
        Command::Spans(args) => spans::run(&args)?,
        Command::Completions { shell } => completions::run(shell)?,
        Command::Man { directory } => man::run(&directory)?,
        Command::Why(args) => why::run(&args)?,
        Command::Problems(args) => problems::run(&args)?,
        Command::Explain(args) => explain::run(&args)?,
        Command::Graph(args) => graph::run(&args)?,
        Command::Numbers(args) => return numbers::run(&args),
        Command::Open(args) => open::run(&args)?,
        Command::Top(args) => top::run(&args)?,
        Command::Flame(args) => flame::run(&args)?,
        Command::Export(args) => export::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
