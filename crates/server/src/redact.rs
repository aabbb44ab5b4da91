//! What is left out of a report that strangers may read: command lines, scripts, the host's name, and
//! the directories of paths.
//!
//! A script's name comes from a command line, and so does what a process calls itself. Both stand in sentences
//! behind the process's name, as [`Evidence::name`](hangdog_graph::Evidence::name) prints it, and are removed
//! from there.

use hangdog_trace::threads::Threads;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What a trace has that a report leaves out.
pub struct Redaction {
    /// Processes' names, and what sentences have in their place; the longest first, so that
    /// one whose name begins another's leaves nothing of that.
    scripts: Vec<(String, String)>,
}

impl Redaction {
    /// For a trace with these threads.
    pub fn of(threads: &Threads) -> Redaction {
        let scripts = threads.processes().filter_map(|process| {
            let label = process.label();
            (label != process.name).then(|| (process.name.clone(), label))
        });
        let mut scripts: Vec<_> = scripts.collect::<BTreeSet<_>>().into_iter().collect();
        scripts.sort_by_key(|(_, named)| Reverse(named.len()));
        Redaction { scripts }
    }

    /// Leaves it out of all texts of a value.
    pub fn apply(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("script");
                for (key, field) in fields {
                    match key.as_str() {
                        "command" => *field = json!([]),
                        "host" => *field = json!("redacted"),
                        "tracks" => {}
                        _ => self.apply(field),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            Value::String(text) => *text = self.redacted(text),
            _ => {}
        }
    }

    fn redacted(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (interpreter, named) in &self.scripts {
            if out.contains(named) {
                out = out.replace(named, interpreter);
            }
            // Its file stands where its functions are, too. A name without a dot may be any word.
            let script = &named[interpreter.len() + 1..];
            if script.contains('.') && out.contains(script) {
                out = without_word(&out, script);
            }
        }
        without_directories(&out)
    }
}

/// A text in which a name, where it is no part of a longer one, is "script".
fn without_word(text: &str, name: &str) -> String {
    let is_inner = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (head, tail) = rest.split_at(at);
        let after = &tail[name.len()..];
        let is_word =
            !head.chars().next_back().is_some_and(is_inner) && !after.starts_with(is_inner);
        out.push_str(head);
        out.push_str(if is_word { "script" } else { name });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A text in which every absolute path is its last part alone. A text that begins with a path is nothing
/// else, and its directories may have blanks in their names; within a sentence, a blank ends a path.
fn without_directories(text: &str) -> String {
    if let Some((directories, last)) = text.rsplit_once('/')
        && directories.starts_with('/')
    {
        return format!("…/{last}");
    }
    let is_path = |c: char| c.is_alphanumeric() || "/._-+@~%#=".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let before = rest[..at].chars().next_back();
        let starts = before.is_none_or(|c| !is_path(c));
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        let length = tail.find(|c| !is_path(c)).unwrap_or(tail.len());
        let (path, after) = tail.split_at(length);
        match path.rsplit_once('/') {
            Some((directories, last)) if starts && !directories.is_empty() => {
                out.push('…');
                out.push('/');
                out.push_str(last);
            }
            _ => out.push_str(path),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories go, wherever a path stands; what is no absolute path stays.
    #[test]
    fn paths_lose_their_directories() {
        for (text, expected) in [
            ("/home/ann/src/a.c:12", "…/a.c:12"),
            ("/home/ann lee/src/a.c", "…/a.c"),
            ("read of /home/ann/x, by app", "read of …/x, by app"),
            ("kworker/0:1", "kworker/0:1"),
            ("src/store.c:42", "src/store.c:42"),
            ("100 % / all", "100 % / all"),
        ] {
            assert_eq!(without_directories(text), expected);
        }
    }

    /// Scripts go from sentences and fields, also where one's name begins another's.
    #[test]
    fn scripts_are_left_out() {
        let named = |script: &str| ("python3".to_owned(), format!("python3 {script}"));
        let redaction = Redaction {
            scripts: vec![named("pay.pyw"), named("pay.py")],
        };
        let mut value = json!({
            "command": ["a", "b"],
            "host": "h",
            "who": {"process": "python3", "script": "pay.pyw"},
            "deep": ["python3 pay.pyw (7) waited for python3 pay.py/worker, in /srv/pay/x"],
            "at": ["/srv/pay/pay.py:7", "prepay.py:3"],
        });
        redaction.apply(&mut value);
        assert_eq!(
            value,
            json!({
                "command": [],
                "host": "redacted",
                "who": {"process": "python3"},
                "deep": ["python3 (7) waited for python3/worker, in …/x"],
                "at": ["…/script:7", "prepay.py:3"],
            })
        );
    }

    /// What a process calls itself goes as well: it may have a name or an address in it.
    #[test]
    fn titles_are_left_out() {
        let title = |title: &str| ("sshd".to_owned(), title.to_owned());
        let redaction = Redaction {
            scripts: vec![title("sshd: ann@pts/0"), title("sshd: ann")],
        };
        let mut value = json!("cat waited for sshd: ann@pts/0 (7) and sshd: ann.");
        redaction.apply(&mut value);
        assert_eq!(value, json!("cat waited for sshd (7) and sshd."));
    }
}
