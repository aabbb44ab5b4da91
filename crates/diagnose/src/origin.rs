//! Whose code a function is, by the language that it is written in.
//!
//! A stack goes through the program's own functions and through those of its language: a Python
//! function is run by functions of the interpreter, a goroutine's stack is full of the standard
//! library. What a program did is told by its own ones. Whose a function is, its module tells (a
//! library, an interpreter), or the place of its source, or its name: each language has a table.

use hangdog_trace::stacks::ResolvedFrame;
use hangdog_trace::words::ModuleKind;

/// Whose code a function is: the more it is the program's own, the more it says of what the
/// program did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Origin {
    Kernel,
    /// What every program has: the C library, the loader, the compiler's own libraries, the
    /// scheduler of goroutines.
    Runtime,
    /// The program's outermost function, which says nothing that its name does not.
    Entry,
    /// A place in a file without names of functions.
    Nameless,
    /// The interpreter or virtual machine that runs the program.
    Machine,
    /// What a script does in no function: its entry, but it says which script.
    Script,
    /// A library, or the standard library within a compiled program.
    Library,
    /// A library in the language of a script. It is called before the native ones, so it says more
    /// of what the script wanted.
    Package,
    /// The program itself, compiled code of its scripts among it.
    Program,
}

impl Origin {
    /// None for a function that has no name.
    pub(crate) fn of(frame: &ResolvedFrame<'_>) -> Option<Origin> {
        let function = frame.function?;
        Some(match frame.kind {
            ModuleKind::Kernel => Origin::Kernel,
            ModuleKind::Vdso => Origin::Runtime,
            ModuleKind::Script => of_script(function, frame.source),
            ModuleKind::Anonymous => of_jit(function, frame.source),
            ModuleKind::File | ModuleKind::Unknown => {
                of_file(function, frame.module.unwrap_or_default(), frame.source)
            }
        })
    }
}

/// Python.
fn of_script(function: &str, source: &str) -> Origin {
    match function {
        // Modules within the interpreter, most of all those that import others.
        _ if source.starts_with("<frozen ") => Origin::Machine,
        "<module>" => Origin::Script,
        _ if is_of_library(source) => Origin::Package,
        _ => Origin::Program,
    }
}

/// JavaScript and Java, compiled at run time.
fn of_jit(function: &str, source: &str) -> Origin {
    const OF_MACHINE: [&str; 9] = [
        "Builtin:",
        "BytecodeHandler:",
        "Handler:",
        "Stub:",
        "RegExp:",
        "StubRoutines",
        "RuntimeStub",
        "vtable stub",
        "itable stub",
    ];
    const PACKAGES: [&str; 5] = ["java", "javax", "jdk", "sun", "Ljava"];
    // `void java.lang.Thread.run()` of the JVM itself, `Ljava/lang/Thread;::run` of an agent.
    let head = function.split('(').next().unwrap_or_default();
    let method = head.rsplit(' ').next().unwrap_or_default();
    let package = method.split_once(['.', '/']).map(|(package, _)| package);
    match package {
        _ if function == "Interpreter" => Origin::Machine,
        _ if OF_MACHINE.iter().any(|kind| function.starts_with(kind)) => Origin::Machine,
        _ if source.starts_with("node:") || is_of_library(source) => Origin::Package,
        Some(package) if PACKAGES.contains(&package) => Origin::Package,
        _ => Origin::Program,
    }
}

/// Code of an executable or a library.
fn of_file(function: &str, module: &str, source: &str) -> Origin {
    const RUNTIME: [&str; 11] = [
        "libc.so",
        "libc-2.",
        "ld-",
        "ld.so",
        "libm.so",
        "libpthread",
        "libdl.so",
        "librt.so",
        "libgcc_s",
        "libstdc++",
        "libc++",
    ];
    match function {
        _ if RUNTIME.iter().any(|start| module.starts_with(start)) => Origin::Runtime,
        _ if is_place(function) => Origin::Nameless,
        "main" | "_start" => Origin::Entry,
        _ if Machine::of(module).is_some() => Origin::Machine,
        _ if module.contains(".so") => Origin::Library,
        _ if is_of_library(source) => Origin::Library,
        _ => of_go(function)
            .or_else(|| of_namespace(function))
            .unwrap_or(Origin::Program),
    }
}

/// What runs programs that are not compiled ahead of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    Java,
    Lua,
    Node,
    Perl,
    Php,
    Python,
    Ruby,
}

impl Machine {
    /// Whose executable or library a module is, whatever its version: `python3.11`,
    /// `libruby-3.1.so.3.1`.
    pub(crate) fn of(module: &str) -> Option<Machine> {
        let name = module.split(".so").next().unwrap_or_default();
        let name = name.trim_end_matches(|last: char| last.is_ascii_digit() || ".-".contains(last));
        Some(match name.strip_prefix("lib").unwrap_or(name) {
            "java" | "jvm" => Machine::Java,
            "lua" | "luajit" => Machine::Lua,
            "node" | "nodejs" => Machine::Node,
            "perl" => Machine::Perl,
            "php" | "php-fpm" => Machine::Php,
            "python" => Machine::Python,
            "ruby" => Machine::Ruby,
            _ => return None,
        })
    }
}

/// A function of Go's standard library. All of Go names its functions by their packages' paths, of
/// which those of others begin with a domain.
fn of_go(function: &str) -> Option<Origin> {
    /// Below what the others do.
    const RUNTIME: [&str; 4] = ["runtime", "internal", "syscall", "sync"];
    const STANDARD: [&str; 45] = [
        "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto",
        "database", "debug", "embed", "encoding", "errors", "expvar", "flag", "fmt", "go", "hash",
        "html", "image", "index", "io", "iter", "log", "maps", "math", "mime", "net", "os", "path",
        "plugin", "reflect", "regexp", "slices", "sort", "strconv", "strings", "structs",
        "testing", "text", "time", "unicode", "unique", "vendor", "weak",
    ];
    /// What C compilers append to the name of a part or a copy of a function.
    const COPIES: [&str; 4] = ["part.", "isra.", "constprop.", "cold"];
    // Receivers and type arguments have paths of their own.
    let head = function.split(['(', '[']).next().unwrap_or_default();
    let name = head.rfind('/').map_or(0, |slash| slash + 1);
    let (_, symbol) = head[name..].split_once('.')?;
    let first = head.split(['/', '.']).next().unwrap_or_default();
    match first {
        _ if COPIES.iter().any(|copy| symbol.starts_with(copy)) => None,
        _ if RUNTIME.contains(&first) => Some(Origin::Runtime),
        _ if STANDARD.contains(&first) => Some(Origin::Library),
        _ => None,
    }
}

/// A function of the standard library of Rust or C++, or of what runs Rust's asynchronous ones.
fn of_namespace(function: &str) -> Option<Origin> {
    const LIBRARIES: [&str; 6] = ["alloc", "core", "std", "tokio", "__cxxabiv1", "__gnu_cxx"];
    const FUNCTIONS: [&str; 3] = ["__rust_", "rust_", "_Unwind_"];
    let is_library = namespace(function).is_some_and(|name| LIBRARIES.contains(&name))
        || FUNCTIONS.iter().any(|start| function.starts_with(start));
    is_library.then_some(Origin::Library)
}

/// The outermost namespace or crate of a function: of Rust's `<Type as Trait>::function` that of
/// the type or, where the type has none, of the trait.
fn namespace(function: &str) -> Option<&str> {
    if let Some(implementation) = function.strip_prefix('<') {
        return implementation.split(" as ").find_map(outermost);
    }
    // C++ has the type of the result in front of a template's name.
    let mut depth = 0_usize;
    let mut begin = 0;
    for (at, letter) in function.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    outermost(&function[begin..])
}

/// What stands in front of a path's first `::`, without references and the like.
fn outermost(path: &str) -> Option<&str> {
    let (first, _) = path.split_once("::")?;
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    first.rsplit(|letter| !is_of_name(letter)).next()
}

/// Whether a source lies where a language or its package manager keeps what programs use.
fn is_of_library(source: &str) -> bool {
    const FOLDERS: [&str; 9] = [
        "/lib/python3",
        "/site-packages/",
        "/dist-packages/",
        "/node_modules/",
        "/rustc/",
        "/rustlib/",
        "/registry/src/",
        "/git/checkouts/",
        "/usr/include/",
    ];
    FOLDERS.iter().any(|folder| source.contains(folder))
}

/// Whether a function goes by where it is, as `libfoo.so.1+0x1234`.
fn is_place(function: &str) -> bool {
    function
        .rsplit_once("+0x")
        .is_some_and(|(_, offset)| offset.bytes().all(|digit| digit.is_ascii_hexdigit()))
}
