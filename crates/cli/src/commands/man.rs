//! `hangdog man DIR`: a man page for the command and for each subcommand, made from the arguments.

use crate::args::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::path::Path;

/// Writes the pages into `directory`.
pub fn run(directory: &Path) -> Result<()> {
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| format!("man pages cannot be written to {}", directory.display()))
}
