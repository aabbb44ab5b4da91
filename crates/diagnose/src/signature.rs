//! An identifier of a hang's cause, the same on every run and every machine.
//!
//! A verdict tells of one occasion: pids, times, addresses, which of eight workers it was. The
//! signature keeps what another occasion of the same cause would share: the class, whose program
//! was held up, whom each step of the path leads to and by what kind of edge, and the function at
//! the root. Of that it is a hash. Left out are stacks, because samples of the same work differ
//! further in; source lines, because not every machine has them; and versions.

use crate::verdict::{Class, Verdict};

/// The rule by which a signature is made: it is hashed too, so that another rule gives others.
const RULE: &str = "hangdog signature 1";

/// The signature of a verdict's root cause: 16 hexadecimal digits.
pub fn signature(verdict: &Verdict) -> String {
    let mut hash = Fnv::new();
    for line in lines(verdict) {
        hash.line(&line);
    }
    format!("{:016x}", hash.0)
}

/// What is hashed, a line each.
fn lines(verdict: &Verdict) -> Vec<String> {
    let problem = &verdict.problem.who;
    let root = &verdict.root;
    let mut lines = vec![
        RULE.to_owned(),
        format!("class {:?}", root.class),
        format!("held up {}", party(&problem.process, &problem.thread)),
    ];
    if let (Class::Circular, Some(knot)) = (root.class, &verdict.knot) {
        // A circle has no first thread: where it is entered is chance.
        let mut members: Vec<String> = knot
            .iter()
            .map(|who| party(&who.process, &who.thread))
            .collect();
        members.sort();
        lines.extend(members.into_iter().map(|member| format!("knot {member}")));
        return lines;
    }
    for step in &verdict.path {
        let by = step.edge.as_ref().map_or("", |edge| edge.kind);
        let line = format!("step {} {by}", party(&step.who.process, &step.who.thread));
        // A chain through several workers of a pool is as long as chance has it.
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.push(format!(
        "root {}",
        party(&root.who.process, &root.who.thread)
    ));
    // What is inlined is known with debug information only; what holds it has a symbol.
    if let Some(function) = root.inlined_into.as_ref().or(root.function.as_ref()) {
        lines.push(format!("in {}", plain_function(function)));
    }
    let common = verdict.ran.as_ref().and_then(|ran| ran.common.as_ref());
    if let Some(module) = common.and_then(|common| common.function.module.as_ref()) {
        lines.push(format!("of {}", plain_module(module)));
    }
    lines
}

fn party(process: &str, thread: &str) -> String {
    format!("{}/{}", plain_name(process), plain_name(thread))
}

/// A thread's or program's name without its numbers and what joined them to it: one of a pool is
/// as good as another, and `python3.11` is `python`.
fn plain_name(name: &str) -> String {
    let letters: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
    let ends = |c: char| c.is_ascii_punctuation() || c.is_whitespace();
    letters.trim_matches(ends).to_owned()
}

/// A function's name without what a compiler adds of its own accord, and without a place in a
/// file: of a function that only has such, the module's name.
fn plain_function(name: &str) -> String {
    const SPLIT_OFF: [&str; 6] = [
        ".constprop",
        ".isra",
        ".part",
        ".cold",
        ".llvm",
        ".lto_priv",
    ];
    if name.starts_with("0x") {
        return String::new();
    }
    if let Some((module, offset)) = name.rsplit_once("+0x")
        && offset.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return plain_module(module);
    }
    let cut = SPLIT_OFF
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min();
    let name = &name[..cut.unwrap_or(name.len())];
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            path.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// A file's name without folders and versions: `/lib/libpng16.so.16.39` is `libpng.so`.
fn plain_module(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let file = file.strip_suffix(" (deleted)").unwrap_or(file);
    match file.split_once(".so") {
        Some((library, _)) => format!("{}.so", plain_name(library)),
        None => plain_name(file),
    }
}

/// FNV-1a with 64 bits, by its authors' constants: unlike the standard library's hash it is the
/// same for every build of hangdog.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn line(&mut self, line: &str) {
        for &byte in line.as_bytes().iter().chain(b"\n") {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash is FNV-1a: "foobar" and a line's end, by hand from the published 85944171f73967e8
    /// of "foobar".
    #[test]
    fn hash() {
        let mut hash = Fnv::new();
        hash.line("foobar");
        let expected = (0x8594_4171_f739_67e8_u64 ^ 0x0a).wrapping_mul(0x0000_0100_0000_01b3);
        assert_eq!(hash.0, expected);
    }

    /// Numbers of workers and versions of programs do not matter; names do.
    #[test]
    fn names() {
        for (name, plain) in [
            ("worker1", "worker"),
            ("worker-12", "worker"),
            ("pool[3]", "pool"),
            ("python3.11", "python"),
            ("QXcbEventQueue", "QXcbEventQueue"),
            ("gdbus", "gdbus"),
            ("7", ""),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
    }

    /// Functions are named as their authors did; a place in a file stands for the file.
    #[test]
    fn functions() {
        for (name, plain) in [
            ("render", "render"),
            ("render.constprop.0", "render"),
            ("render.part.3.isra.1", "render"),
            ("operator+(int)", "operator+(int)"),
            ("app::run::h0123456789abcdef", "app::run"),
            ("app::run::hello", "app::run::hello"),
            ("chromium+0x2f3a10", "chromium"),
            ("libgtk-3.so.0.2406.32+0x1a", "libgtk.so"),
            ("0x7f0011223344", ""),
        ] {
            assert_eq!(plain_function(name), plain, "{name}");
        }
    }

    /// Modules lose folders, versions and that they were deleted.
    #[test]
    fn modules() {
        for (path, plain) in [
            ("/usr/lib/libpng16.so.16.39.0", "libpng.so"),
            ("libc.so.6", "libc.so"),
            ("/tmp/build/queue (deleted)", "queue"),
            ("[kernel]", "kernel"),
        ] {
            assert_eq!(plain_module(path), plain, "{path}");
        }
    }
}
