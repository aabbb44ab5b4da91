//! The watch: what it catches, keeps and tells, with windows on a display of its own.

use crate::support::{Background, Machine, hangdog, machine_alone, number, send, text, wait_until};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// An X server without a screen.
struct Display {
    socket: PathBuf,
    _server: Background,
}

impl Display {
    /// None where there is no Xvfb: says so.
    fn start() -> Option<Display> {
        let server = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "320x240x24",
                "-nolisten",
                "tcp",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut server) = server else {
            let test = thread::current().name().unwrap_or("live test").to_owned();
            let line = format!("NOT RUN: {test}: there is no Xvfb; make setup installs it\n");
            std::io::stderr()
                .write_all(line.as_bytes())
                .expect("standard error");
            return None;
        };
        let mut number = String::new();
        let stdout = server.stdout.take().expect("a pipe");
        let server = Background(server);
        BufReader::new(stdout)
            .read_line(&mut number)
            .expect("its number");
        Some(Display {
            socket: format!("/tmp/.X11-unix/X{}", number.trim()).into(),
            _server: server,
        })
    }
}

/// The program `window`, which stops answering for a while when told to.
struct Window {
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    process: Background,
}

impl Window {
    fn open(machine: &Machine, display: &Display) -> Window {
        Window::open_as(machine, display, &[])
    }

    fn open_as(machine: &Machine, display: &Display, options: &[&str]) -> Window {
        let program = machine.path("window");
        let program = match program.exists() {
            true => program,
            false => machine.program("window"),
        };
        let mut process = Command::new(program)
            .arg(&display.socket)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a run");
        let mut window = Window {
            orders: process.stdin.take().expect("a pipe"),
            answers: BufReader::new(process.stdout.take().expect("a pipe")),
            process: Background(process),
        };
        window.wait();
        window
    }

    /// Waits for its next line.
    fn wait(&mut self) {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "it ended");
    }

    /// It sleeps for so long, ms, and does not answer. Gives how long that took in all, ms.
    fn hang(&mut self, ms: u64) -> u64 {
        let begun = Instant::now();
        // In one piece: what comes in two is two orders to it.
        let order = format!("{ms}\n");
        self.orders.write_all(order.as_bytes()).expect("a pipe");
        self.wait();
        begun.elapsed().as_millis() as u64
    }

    fn pid(&self) -> u64 {
        self.process.0.id().into()
    }
}

/// A watch with a folder and a socket of its own.
struct Watch<'a> {
    machine: &'a Machine,
    process: Background,
}

impl Watch<'_> {
    fn start<'a>(machine: &'a Machine, options: &[&str]) -> Watch<'a> {
        let said = File::create(machine.path("said")).expect("a file");
        let process = hangdog()
            .current_dir(machine.dir())
            .env("HANGDOG_SOCKET", machine.path("watch.sock"))
            .args(["watch", "--dir", "caught", "--memory", "64M"])
            .args(options)
            .stderr(said)
            .spawn();
        let watch = Watch {
            machine,
            process: Background(process.expect("a run")),
        };
        wait_until("it watches", || watch.said().contains("watching"));
        watch
    }

    fn said(&self) -> String {
        fs::read_to_string(self.machine.path("said")).unwrap_or_default()
    }

    /// Waits until it has told of so many hangs.
    fn wait_for(&self, hangs: usize) {
        let lines = hangs + 1;
        wait_until("a hang is told", || self.told() >= lines);
    }

    /// How many lines it said, that it is watching among them. On a busy machine it also says how little
    /// time the ring holds.
    fn told(&self) -> usize {
        let said = self.said();
        let lines = said.lines().filter(|line| !line.contains("the ring holds"));
        lines.count()
    }

    /// What `hangdog hangs` lists.
    fn hangs(&self) -> Vec<Value> {
        let output = hangdog()
            .current_dir(self.machine.dir())
            .args(["hangs", "--dir", "caught", "--json"])
            .output()
            .expect("a run");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}\n{}", self.said());
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        answer["hangs"].as_array().expect("hangs").clone()
    }

    /// Ends it as systemd does, and expects a clean end.
    fn end(&mut self) {
        send(&self.process.0, libc::SIGTERM);
        let code = self.process.0.wait().expect("its end").code();
        assert_eq!(code, Some(0), "{}", self.said());
        assert!(!self.machine.path("watch.sock").exists());
    }
}

/// A window that sleeps instead of answering is caught without being asked for: the program, the
/// time, and the function that it was in. A window that is idle beside it is not. The same hang again
/// makes no second report: the first counts two. SIGTERM ends the watch cleanly.
#[test]
fn a_window_that_does_not_answer() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let Some(display) = Display::start() else {
        return;
    };
    let mut watch = Watch::start(&machine, &["--pause", "1s", "--window-limit", "1s"]);
    let _idle = Window::open(&machine, &display);
    let mut window = Window::open(&machine, &display);
    window.hang(300);
    // What it reads between two looks, and is sent as much again, cannot be told from not reading.
    thread::sleep(Duration::from_millis(600));
    let took = window.hang(2_500);
    watch.wait_for(1);
    let hangs = watch.hangs();
    assert_eq!(hangs.len(), 1, "{hangs:?}");
    assert_eq!(text(&hangs[0]["program"]), "window");
    assert_eq!(text(&hangs[0]["sign"]), "window");
    assert!(
        text(&hangs[0]["sentence"]).contains("steep_tea"),
        "{hangs:?}"
    );
    let caught = &hangs[0]["occasions"][0];
    assert_eq!(number(&caught["pid"]), window.pid());
    assert_eq!(caught["goes_on"], false);
    // What is looked at every 250 ms, or more rarely on a busy machine, is seen to stand for less than
    // it did, and never for more; and at least for the limit.
    let lasted = number(&caught["duration_ns"]) / 1_000_000;
    assert!((1_000..=took).contains(&lasted), "{lasted} of {took} ms");
    let path = caught["trace"].as_str().expect("a trace").to_owned();
    let verdict = machine
        .path(path.trim_end_matches(".hang"))
        .with_extension("json");
    let verdict: Value =
        serde_json::from_slice(&fs::read(verdict).expect("a verdict")).expect("JSON");
    assert_eq!(verdict["root"]["class"], "LongWait");
    assert_eq!(verdict["root"]["function"], "steep_tea");
    assert_eq!(number(&verdict["root"]["pid"]), window.pid());
    assert_eq!(verdict["signature"], hangs[0]["signature"]);

    thread::sleep(Duration::from_secs(1));
    window.hang(2_000);
    watch.wait_for(2);
    let hangs = watch.hangs();
    assert_eq!(hangs.len(), 1, "{hangs:?}");
    assert_eq!(hangs[0]["count"], 2);
    let shown = hangdog()
        .current_dir(machine.dir())
        .args(["hangs", "--dir", "caught", text(&hangs[0]["signature"])])
        .output()
        .expect("a run");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("2 times"), "{shown}");
    assert!(shown.contains("LongWait in steep_tea"), "{shown}");

    let folder = fs::metadata(machine.path("caught")).expect("a folder");
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    watch.end();
    assert_eq!(watch.told(), 3, "{}", watch.said());
}

/// A window that hangs on is saved while it does, once. Within the limit on disk there is no room
/// for its trace: that goes, its report stays and is listed.
#[test]
fn a_limit_on_disk() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let Some(display) = Display::start() else {
        return;
    };
    let options = [
        "--pause",
        "0s",
        "--window-limit",
        "1s",
        "--most",
        "1500ms",
        "--keep",
        "1K",
    ];
    let mut watch = Watch::start(&machine, &options);
    let mut window = Window::open(&machine, &display);
    window.hang(5_000);
    watch.wait_for(1);
    let hangs = watch.hangs();
    assert_eq!((hangs.len(), &hangs[0]["count"]), (1, &Value::from(1)));
    let caught = &hangs[0]["occasions"][0];
    assert_eq!(
        (&caught["trace"], &caught["goes_on"]),
        (&Value::Null, &true.into())
    );
    assert!(
        text(&hangs[0]["sentence"]).contains("steep_tea"),
        "{hangs:?}"
    );
    assert!(
        watch.said().contains("removed 1 old trace"),
        "{}",
        watch.said()
    );
    let left: Vec<String> = fs::read_dir(machine.path("caught"))
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let report = format!("report-{}.json", text(&hangs[0]["signature"]));
    assert_eq!(left, [report]);
    watch.end();
}

/// A small disk of its own for what is caught.
struct Disk(PathBuf);

impl Disk {
    fn mount(machine: &Machine, options: &str) -> Disk {
        let folder = machine.path("caught");
        fs::create_dir(&folder).expect("a folder");
        let disk = Disk(folder);
        disk.run(&["mount", "-t", "tmpfs", "-o", options, "none"]);
        disk
    }

    fn run(&self, command: &[&str]) {
        let mut program = Command::new(command[0]);
        let ended = program.args(&command[1..]).arg(&self.0).status();
        assert!(ended.expect("a run").success(), "{command:?}");
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Where the disk is full, whether the trace has no room or only what is told of it, the watch says
/// so, leaves nothing of that hang, and goes on: the next one is saved if there is room again.
#[test]
fn a_full_disk() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let Some(display) = Display::start() else {
        return;
    };
    let disk = Disk::mount(&machine, "size=32k");
    let options = ["--pause", "0s", "--window-limit", "1s"];
    let mut watch = Watch::start(&machine, &options);
    let mut window = Window::open(&machine, &display);
    let mut hang = |watch: &Watch<'_>, number| {
        window.hang(2_500);
        watch.wait_for(number);
        let said = watch.said();
        said.lines().last().unwrap_or_default().to_owned()
    };
    let said = hang(&watch, 1);
    assert!(said.contains("not saved"), "{said}");
    assert!(said.contains("the disk is full"), "{said}");
    assert_eq!(disk.names(), [""; 0]);

    disk.run(&["mount", "-o", "remount,size=64m"]);
    let said = hang(&watch, 2);
    assert!(said.contains("for the first time"), "{said}");
    let names = disk.names();
    // The trace, the verdict, and the report.
    assert_eq!(names.len(), 3, "{names:?}");

    // Room for another trace and its verdict, but for no report. How many tables a trace has depends on what
    // happened meanwhile: the room grows until the trace fits.
    let used = entries(&disk.0);
    let likely = entries(&disk.0.join(&names[0])) + 1;
    let mut number = 2;
    let said = (likely.saturating_sub(2)..likely + 16).find_map(|more| {
        disk.run(&["mount", "-o", &format!("remount,nr_inodes={}", used + more)]);
        number += 1;
        let said = hang(&watch, number);
        assert_eq!(disk.names(), names, "{said}");
        assert!(said.contains("not saved"), "{said}");
        (!said.contains("could not save the trace")).then_some(said)
    });
    let said = said.expect("room for a trace");
    assert!(said.contains("not saved: cannot write"), "{said}");
    assert_eq!(watch.hangs()[0]["count"], 1);
    watch.end();
}

/// How many files and folders a folder is, with itself.
fn entries(folder: &Path) -> usize {
    let inside = fs::read_dir(folder).expect("a folder");
    let paths = inside.map(|entry| entry.expect("an entry").path());
    1 + paths
        .map(|path| if path.is_dir() { entries(&path) } else { 1 })
        .sum::<usize>()
}

/// A named thread that stalls is caught, by its limit, also without a window.
#[test]
fn a_thread_that_stalls() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let Some(display) = Display::start() else {
        return;
    };
    let options = ["--window-limit", "1h", "--stall", "window:1s"];
    let mut watch = Watch::start(&machine, &options);
    let mut window = Window::open(&machine, &display);
    // It does not stall: each of these is followed by a wait.
    for _ in 0..8 {
        window.hang(300);
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(watch.told(), 1, "{}", watch.said());
    window.hang(2_500);
    watch.wait_for(1);
    let hangs = watch.hangs();
    assert_eq!(text(&hangs[0]["sign"]), "stall");
    assert_eq!(number(&hangs[0]["occasions"][0]["tid"]), window.pid());
    assert!(
        text(&hangs[0]["sentence"]).contains("steep_tea"),
        "{hangs:?}"
    );
    watch.end();
}

/// A program that reads its display's socket on a thread of its own, as those with Qt do, is caught
/// when its main thread does not take what that thread brings; while it is idle it is not.
#[test]
fn a_window_with_a_reader() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let Some(display) = Display::start() else {
        return;
    };
    let mut watch = Watch::start(&machine, &["--window-limit", "1s"]);
    let mut window = Window::open_as(&machine, &display, &["relay"]);
    // The watch learns what its main thread polls.
    thread::sleep(Duration::from_secs(4));
    assert_eq!(watch.told(), 1, "{}", watch.said());
    let took = window.hang(3_000);
    watch.wait_for(1);
    let hangs = watch.hangs();
    assert_eq!(text(&hangs[0]["sign"]), "window");
    assert!(
        text(&hangs[0]["sentence"]).contains("steep_tea"),
        "{hangs:?}"
    );
    let caught = &hangs[0]["occasions"][0];
    assert_eq!(number(&caught["pid"]), window.pid());
    let lasted = number(&caught["duration_ns"]) / 1_000_000;
    assert!(
        (took - 800..=took).contains(&lasted),
        "{lasted} of {took} ms"
    );
    watch.end();
}

/// A region that takes longer than it may is caught, with the function that it was in; one of the same name
/// within its budget, and those of other names, are not.
#[test]
fn a_region_that_takes_too_long() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let program = machine.program("regions");
    let options = [
        "--region",
        "frame:300ms",
        "--region",
        "never:1ms",
        "--pause",
        "1s",
    ];
    let mut watch = Watch::start(&machine, &options);
    let run = Background(Command::new(program).spawn().expect("a run"));
    watch.wait_for(1);
    let hangs = watch.hangs();
    assert_eq!(hangs.len(), 1, "{hangs:?}");
    assert_eq!(text(&hangs[0]["sign"]), "region");
    assert_eq!(text(&hangs[0]["program"]), "regions");
    let sentence = text(&hangs[0]["sentence"]);
    assert!(sentence.contains("dawdle"), "{sentence}");
    let occasion = &hangs[0]["occasions"][0];
    assert_eq!(number(&occasion["pid"]), u64::from(run.0.id()));
    assert!(
        number(&occasion["duration_ns"]) >= 700_000_000,
        "{occasion}"
    );
    watch.end();
    assert_eq!(watch.told(), 2, "{}", watch.said());
}

/// What to watch for can come from a template; an option that is typed replaces the template's.
#[test]
fn a_template() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let template = machine.path("frames.toml");
    let text_of = "[watch]\nmemory = '64M'\nregion = ['frame:300ms']\npause = '1s'\nmost = '5h'\n";
    fs::write(&template, text_of).expect("a template");
    let program = machine.program("regions");
    let template = template.to_str().expect("a path");
    let mut watch = Watch::start(&machine, &["--template", template, "--most", "5s"]);
    let _run = Background(Command::new(program).spawn().expect("a run"));
    watch.wait_for(1);
    assert_eq!(text(&watch.hangs()[0]["sign"]), "region");
    watch.end();
}
