//! Names of places in programs built here, from each of the files that may have them.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use hangdog_symbols::{Namer, Origin};
use hangdog_trace::ids::NONE;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Frame, Frames, Module, Modules, Stack, Symbols};
use hangdog_trace::words::ModuleKind;
use tempfile::TempDir;

const SERVE: &str = "shop::serve(unsigned long)";
const RING: &str = "shop::Till<unsigned long>::ring(unsigned long)";

/// The program `shop`, with what a test makes of it.
struct Shop {
    dir: TempDir,
    build_id: String,
    /// First offset and size (0: not stated) of each function, by the linker's own name.
    functions: HashMap<String, (u64, u64)>,
}

fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    let output = output.unwrap_or_else(|why| panic!("{program}: {why}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain text")
}

impl Shop {
    /// Builds it with debug information. Its code lies in memory as it lies in the file, so that
    /// what nm says is an offset in the file too.
    fn build() -> Shop {
        let dir = TempDir::new().expect("a directory");
        // Nobody else's cache of debug information may know this program.
        let build_id = format!("{:016x}{:08x}", nanoseconds(), std::process::id());
        let mut shop = Shop {
            dir,
            build_id,
            functions: HashMap::new(),
        };
        shop.compile("shop", &shop.build_id);
        let symbols = run("nm", &["-S", text(&shop.path("shop"))]);
        for line in symbols.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word| u64::from_str_radix(word, 16).expect("a number");
            let (name, place) = match words[..] {
                [start, size, _, name] => (name, (number(start), number(size))),
                [start, _, name] => (name, (number(start), 0)),
                _ => continue,
            };
            shop.functions.insert(name.to_owned(), place);
        }
        shop
    }

    fn compile(&self, name: &str, build_id: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shop.cpp");
        let id = format!("-Wl,--build-id=0x{build_id}");
        let (source, binary) = (text(&source), self.path(name));
        run(
            "c++",
            &["-O2", "-g", "-rdynamic", &id, source, "-o", text(&binary)],
        );
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn serve(&self) -> (u64, u64) {
        self.functions["_ZN4shop5serveEm"]
    }

    /// Names places in a file of this build-id.
    fn name(&self, file: &str, offsets: &[u64]) -> Vec<Vec<String>> {
        self.name_by(&mut Namer::default(), file, offsets)
    }

    fn name_by(&self, namer: &mut Namer, file: &str, offsets: &[u64]) -> Vec<Vec<String>> {
        let module = Module {
            module: 0,
            kind: ModuleKind::File.into(),
            path: text(&self.path(file)).to_owned(),
            build_id: self.build_id.clone(),
            process: NONE,
        };
        let modules: Modules = [module].into_iter().collect();
        let frames: Frames = (0..)
            .zip(offsets)
            .map(|(frame, &offset)| Frame {
                frame,
                module: 0,
                offset,
            })
            .collect();
        let origin = Origin {
            same_boot: true,
            process: &|_| None,
            // The one piece of code is mapped from the page that it begins in.
            mapped_from: &|_| Some(self.serve().0 / 4096 * 4096),
        };
        let mut symbols = Symbols::default();
        namer.name(&modules, &frames, &origin, &mut symbols, |_, _| ());
        let stacks = frames.frame.iter().map(|&frame| Stack {
            stack: frame + 1,
            process: 0,
            frames: vec![frame],
            end: 0,
        });
        let table = StackTable::new(stacks.collect(), frames.clone(), modules, symbols);
        let names = |stack| {
            let functions = table.stack(stack);
            functions
                .map(|frame| match (frame.function, frame.source) {
                    (None, _) => "?".to_owned(),
                    (Some(function), "") => function.to_owned(),
                    (Some(function), source) => {
                        let file = source.rsplit('/').next().expect("a part");
                        format!("{function} {file}")
                    }
                })
                .collect()
        };
        (1..=frames.len() as u32).map(names).collect()
    }
}

fn nanoseconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a clock").as_nanos() as u64
}

/// Anywhere in a function its demangled name is found with a source line; where another was
/// inlined, that one comes first, with a line of its own.
#[test]
fn inlined_functions_are_named() {
    let shop = Shop::build();
    let (start, size) = shop.serve();
    let offsets: Vec<u64> = (start..start + size).collect();
    let mut inlined = 0;
    for names in shop.name("shop", &offsets) {
        let outermost = names.last().expect("a function");
        assert!(
            outermost.starts_with(&format!("{SERVE} shop.cpp:")),
            "{names:?}"
        );
        if let [inner, _] = &names[..] {
            assert!(inner.starts_with(&format!("{RING} shop.cpp:")), "{names:?}");
            // ring is lines 23 to 28, the call to it is in line 33.
            let line: u32 = inner
                .rsplit(':')
                .next()
                .expect("a line")
                .parse()
                .expect("a number");
            assert!((23..=28).contains(&line), "{names:?}");
            assert!(outermost.ends_with(":33"), "{names:?}");
            inlined += 1;
        }
    }
    assert!(inlined > 0, "ring is always inlined");
}

/// In a stripped program an exported function is named from its first byte to its last, and no
/// other by it, however near: all places of one go by where it begins.
#[test]
fn stripped_code_gets_no_name_of_its_neighbour() {
    let shop = Shop::build();
    run(
        "strip",
        &[text(&shop.path("shop")), "-o", text(&shop.path("bare"))],
    );
    let (open, open_size) = shop.functions["shop_open"];
    let (hidden, hidden_size) = shop.functions["_ZL10hidden_summ"];
    let exported: Vec<u64> = (open..open + open_size).collect();
    for names in shop.name("bare", &exported) {
        assert_eq!(names, ["shop_open"]);
    }
    let others: Vec<u64> = (hidden..hidden + hidden_size).collect();
    for names in shop.name("bare", &others) {
        assert_eq!(names, [format!("bare+{hidden:#x}")]);
    }
    let (label, _) = shop.functions["shop_label"];
    let outside = [label + 1, label + 63, open + open_size];
    assert_eq!(shop.name("bare", &outside), [["?"]; 3], "no function's");
}

/// A symbol whose length nobody states names the place that it is at, and nothing behind it.
#[test]
fn a_label_names_one_place() {
    let shop = Shop::build();
    let (label, size) = shop.functions["shop_label"];
    assert_eq!(size, 0);
    let names = shop.name("shop", &[label, label + 1, label + 63]);
    assert_eq!(names, [["shop_label"], ["?"], ["?"]]);
}

/// Debug information that was split off is used if it has the program's build-id, and not if it
/// is another's, where its link leads to it.
#[test]
fn split_debug_information_is_found() {
    let shop = Shop::build();
    let (whole, bare) = (shop.path("shop"), shop.path("bare"));
    let place = [shop.serve().0];
    let named = shop.name("shop", &place);
    let link = |debug: &str| {
        let debug = shop.path(debug);
        let link = format!("--add-gnu-debuglink={}", text(&debug));
        run(
            "objcopy",
            &["--strip-all", &link, text(&whole), text(&bare)],
        );
    };
    let split = |from: &str, to: &str| {
        let (from, to) = (shop.path(from), shop.path(to));
        run("objcopy", &["--only-keep-debug", text(&from), text(&to)]);
    };
    split("shop", "own.debug");
    link("own.debug");
    assert_eq!(shop.name("bare", &place), named);
    shop.compile("other", "0123456789abcdef");
    split("other", "other.debug");
    // The link holds a checksum of the file as it is now; both are replaced by another's.
    fs::copy(shop.path("other.debug"), shop.path("own.debug")).expect("a copy");
    let exported = [shop.functions["shop_open"].0];
    assert_eq!(shop.name("bare", &exported), [["shop_open"]]);
    let hidden = shop.functions["_ZL10hidden_summ"].0;
    let by_place = [[format!("bare+{hidden:#x}")]];
    assert_eq!(shop.name("bare", &[hidden]), by_place);
}

/// A file that was replaced names nothing, not even where the new one has the same functions.
#[test]
fn a_replaced_file_names_nothing() {
    let shop = Shop::build();
    let place = [shop.serve().0];
    assert_ne!(shop.name("shop", &place), [["?"]]);
    shop.compile("shop", "0123456789abcdef");
    assert_eq!(shop.name("shop", &place), [["?"]]);
}

/// A file that is gone is read where a process still has it mapped.
#[test]
fn a_deleted_file_is_read_from_its_process() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("NOT RUN: a_deleted_file_is_read_from_its_process: needs root");
    }
    let shop = Shop::build();
    let place = [shop.serve().0];
    let named = shop.name("shop", &place);
    let child = Command::new(shop.path("shop"))
        .arg("60")
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("a run");
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut said).expect("a line");
    fs::remove_file(shop.path("shop")).expect("removed");
    let still = ["shop", "shop (deleted)"].map(|file| shop.name(file, &place));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(still, [named.clone(), named]);
    assert_eq!(shop.name("shop", &place), [["?"]]);
}

/// Names places in what the kernel has, on this machine and on another.
fn name_in_kernel(kind: ModuleKind, offsets: &[u64], same_boot: bool) -> Symbols {
    let module = Module {
        module: 0,
        kind: kind.into(),
        path: "[kernel]".into(),
        build_id: String::new(),
        process: NONE,
    };
    let frames = (0..).zip(offsets).map(|(frame, &offset)| Frame {
        frame,
        module: 0,
        offset,
    });
    let origin = Origin {
        same_boot,
        process: &|_| None,
        mapped_from: &|_| None,
    };
    let mut symbols = Symbols::default();
    let (modules, frames) = ([module].into_iter().collect(), frames.collect());
    Namer::default().name(&modules, &frames, &origin, &mut symbols, |_, _| ());
    symbols
}

/// The kernel's functions have their names, and none where another kernel was recorded.
#[test]
fn kernel_functions_are_named() {
    let kallsyms = fs::read_to_string("/proc/kallsyms").expect("kallsyms");
    let line = kallsyms.lines().find(|line| line.ends_with(" T schedule"));
    let address = line.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let Some(address) = address.filter(|&address| address != 0) else {
        return eprintln!("NOT RUN: kernel_functions_are_named: kernel addresses are hidden");
    };
    let symbols = name_in_kernel(ModuleKind::Kernel, &[address + 1], true);
    assert_eq!(symbols.function, ["schedule"]);
    assert_eq!(
        (
            symbols.function_offset[0],
            symbols.kernel_module[0].as_str()
        ),
        (1, "")
    );
    assert!(name_in_kernel(ModuleKind::Kernel, &[address + 1], false).is_empty());
}

/// A function of the vdso is named where that is this kernel's.
#[test]
fn vdso_functions_are_named() {
    let offsets: Vec<u64> = (0..64 * 1024).step_by(16).collect();
    let names = name_in_kernel(ModuleKind::Vdso, &offsets, true).function;
    assert!(
        names.iter().any(|name| name.contains("clock_gettime")),
        "{names:?}"
    );
}

/// What was found once is not sought again, while it is the same program.
#[test]
fn names_are_kept() {
    let shop = Shop::build();
    let place = [shop.serve().0];
    let mut namer = Namer::default();
    let named = shop.name_by(&mut namer, "shop", &place);
    fs::remove_file(shop.path("shop")).expect("removed");
    assert_eq!(shop.name_by(&mut namer, "shop", &place), named);
    assert_eq!(shop.name("shop", &place), [["?"]]);
}

/// A server that has one file, at the path by which debuginfod names it.
fn serve_once(build_id: &str, file: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let wanted = format!("GET /buildid/{build_id}/debuginfo ");
    let bytes = fs::read(file).expect("a file");
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let mut request = [0; 4096];
            let length = client.read(&mut request).expect("a request");
            let found = request[..length].starts_with(wanted.as_bytes());
            let (status, body) = match found {
                true => ("200 OK", &bytes[..]),
                false => ("404 Not Found", &[][..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            client
                .write_all(&[head.as_bytes(), body].concat())
                .expect("an answer");
        }
    });
    url
}

/// Where DEBUGINFOD_URLS names a server, it is asked for what this machine lacks: debug
/// information of a stripped program, also when that is gone. The variable is this process's, so
/// one test has all.
#[test]
fn a_server_is_asked() {
    if Command::new("debuginfod-find")
        .arg("--version")
        .output()
        .is_err()
    {
        return eprintln!("NOT RUN: a_server_is_asked: needs debuginfod-find");
    }
    const ALONE: &str = "HANGDOG_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // In a process of its own: the environment is everybody's.
        let cache = TempDir::new().expect("a directory");
        let alone = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "a_server_is_asked", "--nocapture"])
            .env(ALONE, "1")
            .env("DEBUGINFOD_CACHE_PATH", cache.path())
            .output()
            .expect("a run");
        let said = String::from_utf8_lossy(&alone.stderr);
        assert!(alone.status.success(), "{said}");
        return;
    }
    let shop = Shop::build();
    let place = [shop.serve().0, shop.functions["_ZL10hidden_summ"].0];
    let named = shop.name("shop", &place);
    let (whole, debug) = (shop.path("shop"), shop.path("shop.debug"));
    run(
        "objcopy",
        &["--only-keep-debug", text(&whole), text(&debug)],
    );
    run("strip", &[text(&whole), "-o", text(&shop.path("bare"))]);
    let url = serve_once(&shop.build_id, &debug);
    fs::remove_file(debug).expect("removed");
    assert_eq!(
        shop.name("bare", &place),
        [[SERVE.to_owned()], [format!("bare+{:#x}", place[1])]],
        "no server was named"
    );
    // SAFETY: no other thread of this process reads or writes the environment now.
    unsafe { std::env::set_var("DEBUGINFOD_URLS", url) };
    assert_eq!(shop.name("bare", &place), named);
    assert_eq!(shop.name("gone", &place), named);
}
