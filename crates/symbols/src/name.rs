//! What a place in code is called.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A function at a place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name {
    /// The function, demangled.
    pub function: String,
    /// Offset of the place from the function's start, bytes.
    pub offset: u64,
    /// Source as file:line; empty if not known.
    pub source: String,
    /// The kernel module that it is in, in brackets; empty for none.
    pub kernel_module: String,
}

/// The functions at a place: first the one whose code it is, then those inlined, inwards. None:
/// the place has no name.
pub(crate) type Names = Vec<Name>;

impl Name {
    /// From what a just-in-time compiler calls a piece of its code. V8 writes the kind of code,
    /// how well it is optimised, the function, and where it is defined:
    /// `JS:*render /app/page.js:10:5`.
    pub(crate) fn of_jit(text: &str, offset: u64) -> Name {
        let script = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
        let of_script = script.iter().find_map(|kind| text.strip_prefix(kind));
        let defined = of_script.and_then(|rest| rest.rsplit_once(' '));
        match defined {
            Some((function, place)) if place.contains(':') => {
                // Code that replaced a running loop has an `o` in front of its mark.
                let replaced = function.strip_prefix('o');
                let replaced = replaced.filter(|rest| rest.starts_with(['*', '+']));
                let function = replaced.unwrap_or(function);
                let function = function.trim_start_matches(['~', '^', '*', '+']);
                let function = match function {
                    "" => "(anonymous)",
                    known => known,
                };
                // The last number is the column.
                let source = place.rsplit_once(':').map_or(place, |(source, _)| source);
                Name {
                    function: function.to_owned(),
                    offset,
                    source: source.to_owned(),
                    kernel_module: String::new(),
                }
            }
            _ => Name {
                function: text.to_owned(),
                offset,
                ..Name::default()
            },
        }
    }
}

/// A symbol's name as its source has it. Only what is mangled is taken apart: `w`, a C function, is also
/// how C++ abbreviates `wchar_t`.
pub(crate) fn demangled(raw: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return format!("{name:#}");
    }
    if let Some(name) = of_emacs(raw) {
        return name;
    }
    let is_mangled = raw.starts_with("_Z") || raw.starts_with("__Z");
    let name = is_mangled
        .then(|| cpp_demangle::Symbol::new(raw).ok())
        .flatten();
    let name = name.and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| raw.to_owned())
}

/// A function of Emacs Lisp that was compiled to machine code: `F`, its name in hexadecimal, the name again with
/// what C allows of it, and a number.
fn of_emacs(raw: &str) -> Option<String> {
    let (hex, rest) = raw.strip_prefix('F')?.split_once('_')?;
    let (readable, number) = rest.rsplit_once('_')?;
    let is_one = hex.len() >= 2 && hex.len() % 2 == 0 && number.parse::<u32>().is_ok();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks_exact(2).map(byte).collect();
    let name = String::from_utf8(bytes.filter(|_| is_one)?).ok()?;
    let allowed = |c: char| matches!(c, '0'..='9' | 'a'..='z' | '_');
    let is_same = readable
        .chars()
        .eq(name.replace('-', "_").chars().filter(|&c| allowed(c)));
    (is_same && !name.chars().any(char::is_control)).then_some(name)
}

/// A source line as reports print it.
pub(crate) fn source_line(path: &Path, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of C stay, however short; those of C++ and Rust are as in the source.
    #[test]
    fn only_mangled_names_are_demangled() {
        for (raw, name) in [
            ("w", "w"),
            ("i", "i"),
            ("St", "St"),
            ("_Z3fooi", "foo(int)"),
            ("_ZN4shop4openEv", "shop::open()"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_Z", "_Z"),
            ("F666f726d-6c6f_form_0", "F666f726d-6c6f_form_0"),
            ("F616c69676e2d726567657870_align_regexp_0", "align-regexp"),
            ("Fcar_0", "Fcar_0"),
            ("F41_b_0", "F41_b_0"),
            ("Fcaf_e_0", "Fcaf_e_0"),
            ("Fffff_x_0", "Fffff_x_0"),
        ] {
            assert_eq!(demangled(raw), name);
        }
    }

    /// A JavaScript function is separated from its kind, its optimisation and its place; what has
    /// another form stays as it is.
    #[test]
    fn jit_names_are_taken_apart() {
        let parts = |text| {
            let name = Name::of_jit(text, 3);
            assert_eq!(name.offset, 3);
            (name.function, name.source)
        };
        for (text, function, source) in [
            ("JS:*render /app/page.js:10:5", "render", "/app/page.js:10"),
            ("JS:o*busy page.html:4:5", "busy", "page.html:4"),
            ("JS:^open /a.js:1:2", "open", "/a.js:1"),
            ("LazyCompile:~get a /b c.js:1:2", "get a /b", "c.js:1"),
            ("JS:^ file:///x.mjs:7:1", "(anonymous)", "file:///x.mjs:7"),
            ("Builtin:ArrayMap", "Builtin:ArrayMap", ""),
            ("JS:odd", "JS:odd", ""),
            ("LMain;::work", "LMain;::work", ""),
        ] {
            assert_eq!(
                parts(text),
                (function.to_owned(), source.to_owned()),
                "{text}"
            );
        }
    }
}
