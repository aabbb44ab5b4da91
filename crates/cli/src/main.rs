//! The `hangdog` command: arguments in, text or JSON out. Other crates do the analysis.

/// Says a line on standard error. Where nobody hears it any more, as when the terminal is gone from
/// which a recorder was started, the work goes on.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod args;
mod commands;
mod flag_place;
mod load;
mod new_trace;
mod output;
mod probes;
mod stall;
mod status;
mod table;
mod whole_file;
mod yardstick;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    hangdog_symbols::helper::run_if_asked();
    hangdog_flags::run_if_asked();
    let cli = args::Cli::parse();
    match commands::run(cli.command) {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("hangdog: {error:#}");
            ExitCode::from(
                match error.downcast_ref::<hangdog_report::select::NothingFound>() {
                    Some(_) => commands::NOTHING_FOUND,
                    None => commands::BAD_INPUT,
                },
            )
        }
    }
}
