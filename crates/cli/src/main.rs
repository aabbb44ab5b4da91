//! The `hangdog` command: arguments in, text or JSON out. What it says is found out elsewhere.

/// Says a line on standard error. Where nobody hears it any more, as when the terminal is gone from
/// which a recorder was started, the work goes on.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod answers_file;
mod args;
mod case;
mod commands;
mod describe;
mod exported;
mod format;
mod load;
mod loss;
mod new_trace;
mod output;
mod samples;
mod select;
mod stall;
mod status;
mod story;
mod units;
mod which;
mod whole_file;
mod yardstick;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    match commands::run(cli.command) {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("hangdog: {error:#}");
            ExitCode::from(match error.downcast_ref::<select::NothingFound>() {
                Some(_) => commands::NOTHING_FOUND,
                None => commands::BAD_INPUT,
            })
        }
    }
}
