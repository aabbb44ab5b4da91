//! Words and figures of sentences: names of functions, durations, shares, tenses.

use std::borrow::Cow;

/// A phrase that begins with a verb in the past tense, in the present tense.
pub(crate) fn present(phrase: &str) -> String {
    const VERBS: [(&str, &str); 10] = [
        ("did", "does"),
        ("waited", "waits"),
        ("slept", "sleeps"),
        ("slept,", "sleeps,"),
        ("was", "is"),
        ("had", "has"),
        ("ran", "runs"),
        ("kept", "keeps"),
        ("polled", "polls"),
        ("exited", "has exited"),
    ];
    let (verb, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
    match VERBS.iter().find(|(past, _)| *past == verb) {
        Some((_, now)) if rest.is_empty() => (*now).to_owned(),
        Some((_, now)) => format!("{now} {rest}"),
        None => phrase.to_owned(),
    }
}

/// A function's name without its parameters, where these make it long, and a function of Go without the folders
/// of its package; of what is long even so, the beginning.
pub(crate) fn brief(name: &str) -> Cow<'_, str> {
    const LONG: usize = 60;
    const LONGEST: usize = 90;
    let mut depth = 0_i32;
    let mut last = ' ';
    let parameters = name.char_indices().skip(1).find(|&(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        // Behind a point stands what a method of Go is of.
        let begins = c == '(' && depth == 0 && last != '.';
        last = c;
        begins
    });
    let folders = name
        .split(['(', '[', '<', ' '])
        .next()
        .and_then(|path| path.rfind('/'));
    let name = match (parameters, folders) {
        _ if name.len() <= LONG => name,
        (_, Some(folders)) => &name[folders + 1..],
        (Some((at, _)), None) => &name[..at],
        (None, None) => name,
    };
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &name[..at]).into(),
        None => name.into(),
    }
}

/// A source line or module without its folders.
pub(crate) fn file_of(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}

/// A duration with three digits.
pub(crate) fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1_000_000_000 => (ns as f64 / 1e9, "s"),
        ns if ns >= 1_000_000 => (ns as f64 / 1e6, "ms"),
        ns => (ns as f64 / 1e3, "µs"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// How much of a problem's time something took, as the end of a clause; nothing where that is all of it.
pub(crate) fn of_that_time(share: f64) -> String {
    match share {
        share if share < 0.995 => format!(" for {:.0} % of that time", share * 100.0),
        _ => String::new(),
    }
}

/// The end of a clause that says in which function something was. Of code without symbols it names the library
/// alone, and nothing of a program: an offset says nothing to who reads it.
pub(crate) fn in_function(name: &str) -> String {
    let is_offset = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    match name.rsplit_once("+0x") {
        Some((library, offset)) if is_offset(offset) && library.contains(".so") => {
            format!(" in {library}")
        }
        Some((_, offset)) if is_offset(offset) => String::new(),
        _ => format!(" in {}", brief(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        for (name, expected) in [
            (
                "github.com/grpc-ecosystem/go-grpc-prometheus.(*ServerMetrics).UnaryServerInterceptor.func1",
                "go-grpc-prometheus.(*ServerMetrics).UnaryServerInterceptor.func1",
            ),
            (
                "go.etcd.io/bbolt.(*Cursor).search",
                "go.etcd.io/bbolt.(*Cursor).search",
            ),
            (
                "vcl::DeleteOnDeinitBase::addDeinitContainer(vcl::DeleteOnDeinitBase*, int)",
                "vcl::DeleteOnDeinitBase::addDeinitContainer",
            ),
            ("short(int)", "short(int)"),
        ] {
            assert_eq!(brief(name), expected);
        }
    }

    #[test]
    fn offsets_are_no_functions() {
        assert_eq!(in_function("unzip+0x8ed0"), "");
        assert_eq!(in_function("libssl.so.3+0x8ed0"), " in libssl.so.3");
        assert_eq!(in_function("operator+0x"), " in operator+0x");
        assert_eq!(in_function("read_all"), " in read_all");
    }
}
