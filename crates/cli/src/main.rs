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
mod home;
mod limited;
mod load;
mod new_trace;
mod output;
mod probes;
mod status;
mod table;
mod template;
mod whole_file;
mod yardstick;

use std::process::ExitCode;

fn main() -> ExitCode {
    hangdog_symbols::helper::run_if_asked();
    hangdog_flags::run_if_asked();
    match template::command_line().and_then(|cli| commands::run(cli.command)) {
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
