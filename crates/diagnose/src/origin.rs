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
    /// A library of Java that others wrote; it may be the program itself, where that is a server.
    ThirdParty,
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

/// Which of a stack's functions, innermost first, speaks for it: of those that are most of all the
/// program's own the innermost. Where that is a library's, which called a function of the program without a
/// name, the innermost of these.
pub fn nearest<'f>(frames: impl Iterator<Item = &'f ResolvedFrame<'f>>) -> Option<usize> {
    let origins: Vec<_> = frames
        .map(|frame| (Origin::of(frame), frame.module.is_some_and(is_program)))
        .collect();
    let best = origins.iter().filter_map(|&(origin, _)| origin).max()?;
    let at = origins
        .iter()
        .position(|&(origin, _)| origin == Some(best))?;
    let is_own = |&(origin, is_program): &(Option<Origin>, bool)| {
        best == Origin::Library && origin == Some(Origin::Nameless) && is_program
    };
    origins[..at].iter().position(is_own).or(Some(at))
}

/// Python, Ruby, PHP, Perl, Java and JavaScript.
fn of_script(function: &str, source: &str) -> Origin {
    match function {
        // Modules within the interpreter, most of all those that import others.
        _ if source.starts_with("<frozen ") || source.starts_with("<internal:") => Origin::Machine,
        "<module>" | "<main>" | "{main}" | "<top (required)>" => Origin::Script,
        _ if ["[HotSpot]", "[V8]"].contains(&source) => Origin::Machine,
        _ if is_of_library(source) || is_of_java(source) || source.starts_with("node:") => {
            Origin::Package
        }
        _ if is_of_java_library(source) => Origin::ThirdParty,
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
        _ if is_of_java_library(method.strip_prefix('L').unwrap_or(method)) => Origin::ThirdParty,
        _ => Origin::Program,
    }
}

/// Code of an executable or a library.
fn of_file(function: &str, module: &str, source: &str) -> Origin {
    const RUNTIME: [&str; 14] = [
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
        // OpenMP, which calls the parts of a function that it runs in parallel.
        "libgomp",
        "libomp.",
        "libiomp5",
    ];
    match function {
        _ if RUNTIME.iter().any(|start| module.starts_with(start)) => Origin::Runtime,
        _ if is_place(function) => Origin::Nameless,
        "main" | "_start" => Origin::Entry,
        _ if is_of_c(function) => Origin::Runtime,
        // The library by which node waits, within its executable: any function of node's says more.
        _ if Machine::of(module) == Some(Machine::Node) && function.starts_with("uv_") => {
            Origin::Entry
        }
        _ if Machine::of(module).is_some() || waits_for_script(module) => Origin::Machine,
        _ if module.contains(".so") => Origin::Library,
        _ if is_of_library(source) => Origin::Library,
        // By which PostgreSQL waits, for whatever it is.
        "WaitEventSetWait" | "WaitLatch" | "WaitLatchOrSocket" => Origin::Library,
        _ => of_go(function)
            .or_else(|| of_namespace(function))
            .unwrap_or(Origin::Program),
    }
}

/// Whether a module is one of Python's own that only do a script's system calls for it.
fn waits_for_script(module: &str) -> bool {
    const MODULES: [&str; 7] = [
        "_socket",
        "_ssl",
        "select",
        "fcntl",
        "termios",
        "_posixsubprocess",
        "_multiprocessing",
    ];
    let (name, rest) = module.split_once('.').unwrap_or_default();
    MODULES.contains(&name) && rest.starts_with("cpython-")
}

/// Whether a function is the C library's where that is linked into the executable: it is called as no
/// program may call its own (C11, 7.1.3), or as POSIX has it.
fn is_of_c(function: &str) -> bool {
    const WAITS: [&str; 10] = [
        "read",
        "write",
        "poll",
        "ppoll",
        "select",
        "epoll_wait",
        "recv",
        "nanosleep",
        "clock_nanosleep",
        "usleep",
    ];
    // A name in a C++ namespace is no reserved name of C; `of_namespace` knows the libraries' ones.
    let is_c = !function.contains("::");
    is_c && ["__", "pthread_", "sem_"]
        .iter()
        .any(|start| function.starts_with(start))
        || WAITS.contains(&function)
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

/// The machine whose compiled code is on a stack without names, if only its compiler knows them. What stands
/// between functions that have a name is the machine's own.
pub(crate) fn unnamed(frames: &[ResolvedFrame<'_>]) -> Option<Machine> {
    let is_compiled = |frame: &ResolvedFrame<'_>| frame.kind == ModuleKind::Anonymous;
    let is_script =
        |frame: &ResolvedFrame<'_>| is_compiled(frame) || frame.kind == ModuleKind::Script;
    let is_named = |frame: &ResolvedFrame<'_>| is_script(frame) && frame.function.is_some();
    match frames.iter().any(is_compiled) && !frames.iter().any(is_named) {
        true => frames.iter().find_map(|frame| Machine::of(frame.module?)),
        false => None,
    }
}

/// A function of Go's standard library. All of Go names its functions by their packages' paths, of
/// which those of others begin with a domain.
fn of_go(function: &str) -> Option<Origin> {
    /// Below what the others do.
    const RUNTIME: [&str; 4] = ["runtime", "internal", "syscall", "sync"];
    const STANDARD: [&str; 45] = [
        "archive",
        "bufio",
        "bytes",
        "cmp",
        "compress",
        "container",
        "context",
        "crypto",
        "database",
        "debug",
        "embed",
        "encoding",
        "errors",
        "expvar",
        "flag",
        "fmt",
        "go",
        "hash",
        "html",
        "image",
        "index",
        "io",
        "iter",
        "log",
        "maps",
        "math",
        "mime",
        "net",
        "os",
        "path",
        "plugin",
        "reflect",
        "regexp",
        "slices",
        "sort",
        "strconv",
        "strings",
        "structs",
        "testing",
        "text",
        "time",
        "unicode",
        "unique",
        "vendor",
        "weak",
    ];
    /// What C compilers append to the name of a part or a copy of a function.
    const COPIES: [&str; 4] = ["part.", "isra.", "constprop.", "cold"];
    // Receivers and type arguments have paths of their own.
    let head = function.split(['(', '[']).next().unwrap_or_default();
    let name = head.rfind('/').map_or(0, |slash| slash + 1);
    let (_, symbol) = head[name..].split_once('.')?;
    // What has a path begins with a domain, perhaps one that begins like the standard library: go.uber.org.
    let first = match head.split_once('/') {
        Some((first, _)) => first,
        None => head.split('.').next().unwrap_or_default(),
    };
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
    const FOLDERS: [&str; 18] = [
        "/share/perl",
        "/perl5/",
        "/perl/5.",
        "/share/php/",
        "/vendor/",
        "/lib/python3",
        "/lib/ruby/",
        "/gems/",
        "/rubygems-integration/",
        "/site-packages/",
        "/dist-packages/",
        "/node_modules/",
        "/rustc/",
        "/rustlib/",
        "/registry/src/",
        "/git/checkouts/",
        "/go/pkg/mod/",
        "/usr/include/",
    ];
    FOLDERS.iter().any(|folder| source.contains(folder))
}

/// Whether a source file is of Java's own packages, by its directory.
fn is_of_java(source: &str) -> bool {
    const PACKAGES: [&str; 5] = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];
    PACKAGES.iter().any(|package| source.starts_with(package))
}

/// Libraries of Java, Kotlin and Scala that programs are made of, by the start of their packages.
const JAVA_LIBRARIES: &[&str] = &[
    "akka.",
    "ch.qos.logback.",
    "com.fasterxml.",
    "com.github.benmanes.",
    "com.google.",
    "com.mongodb.",
    "com.mysql.",
    "com.rabbitmq.",
    "com.zaxxer.",
    "groovy.",
    "io.grpc.",
    "io.lettuce.",
    "io.ktor.",
    "io.micrometer.",
    "io.netty.",
    "io.reactivex.",
    "io.undertow.",
    "io.vertx.",
    "jakarta.",
    "kotlin.",
    "kotlinx.",
    "okhttp3.",
    "okio.",
    "org.apache.",
    "org.eclipse.jetty.",
    "org.glassfish.",
    "org.h2.",
    "org.hibernate.",
    "org.jboss.",
    "org.junit.",
    "org.mariadb.",
    "org.postgresql.",
    "org.quartz.",
    "org.slf4j.",
    "org.springframework.",
    "org.testng.",
    "pekko.",
    "reactor.",
    "redis.clients.",
    "scala.",
];

/// Whether a method, or the path of its source, is one of these libraries': both begin with the package.
fn is_of_java_library(place: &str) -> bool {
    let is_start = |start: &&&str| {
        let mut letters = place.bytes();
        start.bytes().all(|wanted| match (wanted, letters.next()) {
            (b'.', Some(b'.' | b'/')) => true,
            (wanted, found) => found == Some(wanted),
        })
    };
    JAVA_LIBRARIES.iter().any(|start| is_start(&start))
}

/// Whether a module is a compiled program, neither a library nor what runs programs.
pub(crate) fn is_program(module: &str) -> bool {
    let is_library = module.contains(".so") || module.starts_with('[') || module.starts_with("ld-");
    !is_library && Machine::of(module).is_none()
}

/// Whether a function goes by where it is, as `libfoo.so.1+0x1234`.
pub(crate) fn is_place(function: &str) -> bool {
    function
        .rsplit_once("+0x")
        .is_some_and(|(_, offset)| offset.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(
        kind: ModuleKind,
        function: &'a str,
        module: &'a str,
        source: &'a str,
    ) -> ResolvedFrame<'a> {
        ResolvedFrame {
            function: (!function.is_empty()).then_some(function),
            function_offset: 0,
            inlined: false,
            module: Some(module),
            kind,
            offset: 0x1000,
            source,
        }
    }

    /// A function of a script.
    fn script<'a>(function: &'a str, source: &'a str) -> ResolvedFrame<'a> {
        frame(ModuleKind::Script, function, "script.py", source)
    }

    /// A function that was compiled at run time.
    fn jit<'a>(function: &'a str, source: &'a str) -> ResolvedFrame<'a> {
        frame(ModuleKind::Anonymous, function, "anon", source)
    }

    /// A function of a file without sources.
    fn of<'a>(module: &'a str, function: &'a str) -> ResolvedFrame<'a> {
        frame(ModuleKind::File, function, module, "")
    }

    /// A function of a program that is compiled from one language.
    fn at<'a>(function: &'a str, source: &'a str) -> ResolvedFrame<'a> {
        frame(ModuleKind::File, function, "app", source)
    }

    /// The name of the function that speaks for a stack, the innermost first.
    fn speaker<'a>(stack: &[ResolvedFrame<'a>]) -> Option<&'a str> {
        nearest(stack.iter()).and_then(|at| stack[at].function)
    }

    const WAIT: ResolvedFrame<'_> = ResolvedFrame {
        function: Some("__futex_abstimed_wait_common"),
        function_offset: 0,
        inlined: false,
        module: Some("libc.so.6"),
        kind: ModuleKind::File,
        offset: 0x1000,
        source: "",
    };

    /// The same in Ruby, whose own library has functions in files that are none.
    #[test]
    fn ruby() {
        let c_method = of("libruby-3.1.so.3.1.2", "libruby-3.1.so.3.1.2+0x24b9a0");
        let tap = script("Kernel#tap", "<internal:kernel>:89");
        let get = script("Net::HTTP.get", "/usr/lib/ruby/3.1.0/net/http.rb:482");
        let query = script(
            "Mysql2::Client#query",
            "/var/lib/gems/3.1.0/gems/mysql2-0.5/lib/mysql2/client.rb:147",
        );
        let sell = script("Shop#sell", "/srv/shop.rb:12");
        let body = script("<main>", "/srv/shop.rb");
        for (stack, expected) in [
            (vec![WAIT, c_method, tap, get, sell, body], "Shop#sell"),
            (vec![WAIT, query, body], "Mysql2::Client#query"),
            (vec![WAIT, c_method, tap, body], "<main>"),
            (vec![c_method, tap], "Kernel#tap"),
        ] {
            assert_eq!(speaker(&stack), Some(expected));
        }
    }

    /// The script's own function, not the interpreter's that runs it, nor one of a module that the
    /// script imported, nor the statements around; without it what is nearest.
    #[test]
    fn python() {
        let call = of("python3.11", "PyObject_Vectorcall");
        let sleep = script("sleep_all", "/usr/lib/python3.11/asyncio/tasks.py:7");
        let get = script(
            "get",
            "/venv/lib/python3.11/site-packages/requests/api.py:62",
        );
        let report = script("Shop.slow_report", "/srv/shop.py:12");
        let handle = script("handle", "/srv/shop.py:40");
        let body = script("<module>", "/srv/shop.py:1");
        let import = script("_find_and_load", "<frozen importlib._bootstrap>:1165");
        let c_library = of("libcrypto.so.3", "EVP_Digest");
        let main = of("python3.11", "main");
        for (stack, expected) in [
            (
                vec![WAIT, call, report, call, handle, body, main],
                "Shop.slow_report",
            ),
            (vec![WAIT, sleep, get, handle, body], "handle"),
            (vec![c_library, call, report], "Shop.slow_report"),
            (vec![c_library, call, body], "EVP_Digest"),
            (vec![WAIT, call, sleep, get, body], "sleep_all"),
            (vec![WAIT, c_library, call, get], "get"),
            (vec![WAIT, call, body, import, call, main], "<module>"),
            (vec![WAIT, call, main], "PyObject_Vectorcall"),
            (
                vec![WAIT, of("libpython3.11.so.1.0", "PyEval_SaveThread"), body],
                "<module>",
            ),
            (
                vec![
                    WAIT,
                    of("ruby3.1", "rb_vm_exec"),
                    of("mysql2.so", "do_query"),
                ],
                "do_query",
            ),
        ] {
            assert_eq!(speaker(&stack), Some(expected), "{stack:?}");
        }
    }

    /// A function of the user's file, not V8's code for it or for regular expressions, nor node's
    /// own JavaScript.
    #[test]
    fn node() {
        let engine = of(
            "node",
            "v8::internal::Runtime_RegExpExec(int, unsigned long*)",
        );
        let builtin = of("node", "Builtins_ArrayTimSort");
        let compiled_builtin = jit("Builtin:ArrayMap", "");
        let regexp = jit(r"RegExp:\s+$", "");
        let emit = jit("emit", "node:events:471");
        let express = jit("next", "/srv/node_modules/express/lib/router/index.js:177");
        let own = jit("bestSellers", "/srv/shop.js:43");
        let uv = of("node", "uv_run");
        for (stack, expected) in [
            (vec![regexp, engine, builtin, own, emit, uv], "bestSellers"),
            (vec![compiled_builtin, own, express, emit], "bestSellers"),
            (vec![engine, express, emit, uv], "next"),
            (vec![WAIT, uv], "uv_run"),
            (vec![regexp, engine, uv], r"RegExp:\s+$"),
        ] {
            assert_eq!(speaker(&stack), Some(expected), "{stack:?}");
        }
    }

    /// The program's own method, by either way of writing it.
    #[test]
    fn java() {
        let park = jit("void jdk.internal.misc.Unsafe.park(boolean, long)", "");
        let get = jit("java.lang.Object java.util.concurrent.FutureTask.get()", "");
        let by_agent = jit("Ljava/util/HashMap;::get", "");
        let own = jit("double Pricing.priceBasket(java.util.List, int)", "");
        let own_by_agent = jit("Lshop/Pricing;::priceBasket", "");
        let interpreter = jit("Interpreter", "");
        let borrow = jit(
            "java.lang.Object com.zaxxer.hikari.util.ConcurrentBag.borrow(long)",
            "",
        );
        let netty = jit("Lio/netty/channel/nio/NioEventLoop;::run", "");
        let jvm = of("libjvm.so", "JavaThread::run()");
        for (stack, expected) in [
            (vec![WAIT, park, get, own, interpreter, jvm], own),
            (vec![by_agent, own_by_agent, interpreter, jvm], own_by_agent),
            (vec![WAIT, park, borrow, own, interpreter, jvm], own),
            (vec![WAIT, park, borrow, interpreter, jvm], borrow),
            (vec![by_agent, netty, own_by_agent], own_by_agent),
            (vec![by_agent, netty, jvm], netty),
            (vec![WAIT, park, get, interpreter, jvm], park),
            (vec![WAIT, interpreter, jvm], interpreter),
            (vec![WAIT, jvm], jvm),
        ] {
            assert_eq!(speaker(&stack), expected.function, "{stack:?}");
        }
    }

    /// Packages of the standard library are told by their names, whatever lies on their paths; a
    /// part of a C function may look like one.
    #[test]
    fn go() {
        let futex = at(
            "runtime.futex",
            "/usr/local/go/src/runtime/sys_linux_amd64.s:570",
        );
        let sum = at("crypto/internal/fips140/sha256.(*Digest).checkSum", "");
        let serve = at("net/http.(*conn).serve", "");
        let lock = at("internal/sync.(*Mutex).lockSlow", "");
        let own = at("main.makeReport", "");
        let other = at("github.com/lib/pq.(*conn).query[go.shape.int]", "");
        let exit = at("runtime.goexit", "");
        for (stack, expected) in [
            (vec![sum, own, serve, exit], own),
            (vec![futex, lock, other, own, serve, exit], other),
            (vec![futex, lock, serve, exit], serve),
            (
                vec![at("shop/orders.List", ""), serve],
                at("shop/orders.List", ""),
            ),
            (
                vec![futex, at("runtime.stopm", ""), at("runtime.mcall", "")],
                futex,
            ),
            (
                vec![
                    at("sort.Search", ""),
                    at("go.etcd.io/bbolt.(*Cursor).search", ""),
                    serve,
                ],
                at("go.etcd.io/bbolt.(*Cursor).search", ""),
            ),
            (vec![at("go/ast.Walk", ""), own], own),
            (
                vec![
                    at(
                        "go.uber.org/zap.(*Logger).Info",
                        "/root/go/pkg/mod/go.uber.org/zap@v1.27.0/logger.go:9",
                    ),
                    own,
                ],
                own,
            ),
            (
                vec![at("sort.part.0", ""), at("main", "")],
                at("sort.part.0", ""),
            ),
        ] {
            assert_eq!(speaker(&stack), expected.function, "{stack:?}");
        }
    }

    /// A program without names, which a library called, has what is within its code; where it called the library,
    /// the library's function says more.
    #[test]
    fn a_program_without_names() {
        let own = of("xfconfd", "xfconfd+0x8ed0");
        let dispatch = of("libglib-2.0.so.0", "g_main_context_dispatch");
        let asks = of("libpq.so.5", "PQexec");
        for (stack, expected) in [
            (
                vec![WAIT, own, dispatch, of("xfconfd", "xfconfd+0x10")],
                own,
            ),
            (vec![WAIT, asks, own], asks),
            (
                vec![WAIT, of("python3.11", "python3.11+0x10"), dispatch],
                dispatch,
            ),
        ] {
            assert_eq!(speaker(&stack), expected.function, "{stack:?}");
        }
    }

    /// Of an executable that has the C library within it, what the program wrote.
    #[test]
    fn linked_statically() {
        let own = at("take_lock", "");
        for waits in ["__lll_lock_wait", "pthread_mutex_lock", "sem_wait", "poll"] {
            let stack = [at(waits, ""), own, at("main", "")];
            assert_eq!(speaker(&stack), own.function, "{waits}");
        }
    }

    /// What a compiler took from the standard library into the program is not the program's own: by
    /// its crate or namespace, or by its source where the names have none. What the program does for
    /// a type or a template of the library's is.
    #[test]
    fn rust_and_cpp() {
        const STD: &str = "/rustc/5980/library/std/src/thread.rs:100";
        let main = at("main", "");
        for library in [
            at("core::ops::function::FnOnce::call_once{{vtable.shim}}", ""),
            at(
                "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once",
                "",
            ),
            at("<&mut T as core::fmt::Display>::fmt", ""),
            at("std::sys::backtrace::__rust_begin_short_backtrace", ""),
            at("tokio::runtime::park::CachedParkThread::block_on", ""),
            at("rust_begin_unwind", ""),
            at("sleep", STD),
            at(
                "next<u8>",
                "/home/me/.cargo/registry/src/index.crates.io-1949/bytes-1.5.0/src/lib.rs:9",
            ),
            at(
                "void std::__introsort_loop<int*, long>(int*, int*, long)",
                "",
            ),
            at(
                "std::vector<Row, std::allocator<Row> >::push_back(Row const&)",
                "",
            ),
            at("__gnu_cxx::__verify_grouping(char const*)", ""),
            at(
                "QString::size() const",
                "/usr/include/qt6/QtCore/qstring.h:200",
            ),
        ] {
            let own = at("shop::orders::total", "src/orders.rs:3");
            assert_eq!(
                speaker(&[WAIT, library, own, main]),
                own.function,
                "{library}"
            );
            assert_eq!(
                speaker(&[WAIT, library, main]),
                library.function,
                "{library}"
            );
        }
        for own in [
            "<shop::Order as core::fmt::Display>::fmt",
            "shop::main::{{closure}}",
            "std::vector<int> orders::sorted<std::less<int> >(std::vector<int>)",
            "(anonymous namespace)::draw(std::string const&)",
            "stdx::draw()",
            "draw",
        ] {
            let wrapper = at("std::function<void ()>::operator()() const", "");
            assert_eq!(speaker(&[WAIT, at(own, ""), wrapper, main]), Some(own));
        }
    }

    /// Below a program's own functions come its libraries', then places without names, then its
    /// entry, then the C library's and last the kernel's; a function without a name counts nothing.
    #[test]
    fn compiled_programs() {
        let kernel = frame(ModuleKind::Kernel, "schedule", "[kernel]", "");
        let clock = frame(ModuleKind::Vdso, "__vdso_clock_gettime", "[vdso]", "");
        let main = at("main", "");
        let place = of("libgtk-3.so.0", "libgtk-3.so.0+0x1f40");
        let library = of("libgtk-3.so.0", "gtk_main");
        let own = at("fill_panel", "panel.c:8");
        let nameless = at("", "");
        let mut stack = vec![nameless, kernel, WAIT, clock, main, place, library, own];
        for expected in [own, library, place, main, WAIT] {
            assert_eq!(speaker(&stack), expected.function, "{stack:?}");
            stack.retain(|frame| *frame != expected);
        }
        assert_eq!(speaker(&[nameless, kernel]), kernel.function);
        assert_eq!(speaker(&[nameless]), None);
    }

    /// Names are missing where the compiler at run time has told none; one without such code, or
    /// of a program that is no known machine, misses nothing.
    #[test]
    fn machines_without_names() {
        let compiled = jit("", "");
        let jvm = of("libjvm.so", "JavaThread::run()");
        let node = of("node", "uv_run");
        for (stack, expected) in [
            (vec![WAIT, compiled, jvm], Some(Machine::Java)),
            (vec![compiled, compiled, node], Some(Machine::Node)),
            (vec![compiled, jit("handle", "/srv/shop.js:3"), node], None),
            (
                vec![compiled, script("rebuild", "/srv/shop.js:4"), node],
                None,
            ),
            (vec![WAIT, node], None),
            (vec![compiled, of("firefox", "main")], None),
            (vec![], None),
        ] {
            assert_eq!(unnamed(&stack), expected, "{stack:?}");
        }
    }
}
