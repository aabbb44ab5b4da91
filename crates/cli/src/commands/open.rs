//! `hangdog open`: a trace in the browser.

use crate::args::OpenArgs;
use crate::load;
use crate::template;
use anyhow::{Context, Result};
use hangdog_report::Loading;
use hangdog_report::views::Views;
use hangdog_server::{MakeLoading, Options, Shelf, serve};
use hangdog_trace::Trace;
use hangdog_trace::tables::{Frames, Modules, Symbols};
use std::env;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Serves until Ctrl-C.
pub fn run(args: &OpenArgs) -> Result<()> {
    let views = views(args.template.as_deref())?;
    let loading = silent();
    let shelf = match &args.trace {
        Some(trace) => {
            // What is no trace is refused here and not in the browser.
            Trace::open(trace)?;
            Shelf::of(trace.clone(), loading)
        }
        None => {
            let folder = env::current_dir().context("cannot determine the current directory")?;
            Shelf::in_folder(folder, args.dir.clone(), loading)
        }
    };
    if !hangdog_server::page::is_there() {
        say!("hangdog: this binary was built without its page: `make build` builds both");
    }
    let options = Options {
        listen: Options::loopback(args.port),
        shelf: shelf.with_views(views),
    };
    serve(options, |url| {
        println!("{url}");
        say!("hangdog: showing it until Ctrl-C");
        if !args.no_browser {
            open(url);
        }
    })
}

/// The views of all templates; the page begins with that of the template that was named.
fn views(chosen: Option<&str>) -> Result<Views> {
    let (mut templates, wrong) = template::all();
    for why in &wrong {
        say!("hangdog: {why:#}; skipped");
    }
    let mut name = None;
    if let Some(chosen) = chosen {
        let template = template::find(chosen)?;
        name = Some(template.name.clone());
        templates.retain(|other| other.name != template.name);
        templates.insert(0, template);
    }
    let views = templates.iter().map(template::Template::view);
    Ok(Views {
        views: views.collect::<Result<_>>()?,
        chosen: name,
    })
}

/// Opens the browser, never as root: under sudo as the user who called it.
fn open(url: &str) {
    let mut command = match caller() {
        Caller::User => Command::new("xdg-open"),
        Caller::Sudo(uid) => as_user(uid),
        Caller::Root => {
            say!("hangdog: not starting a browser as root: open the address yourself");
            return;
        }
    };
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        say!("hangdog: cannot start a browser by xdg-open: {error}; open the address yourself");
    }
}

enum Caller {
    /// A user.
    User,
    /// A user, by sudo.
    Sudo(u32),
    /// Root itself.
    Root,
}

fn caller() -> Caller {
    // SAFETY: geteuid takes nothing, changes nothing, and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Caller::User;
    }
    let uid = env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    match uid {
        Some(0) | None => Caller::Root,
        Some(uid) => Caller::Sudo(uid),
    }
}

/// xdg-open as a user, with what tells it where the user's desktop is.
fn as_user(uid: u32) -> Command {
    let mut command = Command::new("sudo");
    command.args(["-H", "-u", &format!("#{uid}"), "--", "env"]);
    command.arg(format!("XDG_RUNTIME_DIR=/run/user/{uid}"));
    for name in [
        "DISPLAY",
        "XAUTHORITY",
        "WAYLAND_DISPLAY",
        "XDG_CURRENT_DESKTOP",
    ] {
        if let Some(value) = env::var_os(name) {
            let mut pair = std::ffi::OsString::from(format!("{name}="));
            pair.push(value);
            command.arg(pair);
        }
    }
    command.arg("xdg-open");
    command
}

/// Reads a trace without a word at the terminal.
pub fn silent() -> MakeLoading {
    Arc::new(|| Box::new(Silent))
}

/// The page tells how far the reading is, and not the terminal.
struct Silent;

impl Loading for Silent {
    fn step(&mut self, _: &'static str) {}

    fn name_functions(
        &mut self,
        trace: &Trace,
        modules: &Modules,
        frames: &Frames,
        symbols: &mut Symbols,
    ) -> Result<()> {
        load::name_functions(trace, modules, frames, symbols, |_, _| {})
    }
}
