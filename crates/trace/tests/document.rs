//! docs/TRACE.md says what the code does.

use hangdog_trace::Tables;
use hangdog_trace::calls::FutexOp;
use hangdog_trace::meta::FORMAT;
use hangdog_trace::object::ObjectKind;
use hangdog_trace::words::*;

const DOCUMENT: &str = include_str!("../../../docs/TRACE.md");

fn type_name(kind: &str) -> String {
    match kind {
        "String" => "text".into(),
        "Vec<u32>" => "list of uint32".into(),
        "bool" => "bool".into(),
        kind => kind
            .replace('u', "uint")
            .replace('i', "int")
            .replace("uintnt", "uint"),
    }
}

/// Turns the code's names of value sets into links.
fn links(doc: &str) -> String {
    let mut text = doc.trim().replace("object::Object", "[Object](#object)");
    for (name, _) in words() {
        let link = format!("[{name}](#{})", name.to_lowercase());
        text = text.replace(&format!("words::{name}"), &link);
    }
    text
}

/// The sets of values with their numbers and words.
fn words() -> Vec<(&'static str, Vec<(u8, &'static str)>)> {
    fn set<T: Copy + Into<u8>>(all: &[(T, &'static str)]) -> Vec<(u8, &'static str)> {
        all.iter()
            .map(|(value, text)| ((*value).into(), *text))
            .collect()
    }
    vec![
        ("Left", set(Left::ALL)),
        ("Context", set(Context::ALL)),
        ("InterruptKind", set(InterruptKind::ALL)),
        ("IoOperation", set(IoOperation::ALL)),
        ("StallKind", set(StallKind::ALL)),
        ("CacheAction", set(CacheAction::ALL)),
        ("AreaKind", set(AreaKind::ALL)),
        ("HandoffKind", set(HandoffKind::ALL)),
        ("HandoffStep", set(HandoffStep::ALL)),
        ("Access", set(Access::ALL)),
        ("KernelLock", set(KernelLock::ALL)),
        ("DescriptorKind", set(DescriptorKind::ALL)),
        ("LimitKind", set(LimitKind::ALL)),
        ("LastTransfer", set(LastTransfer::ALL)),
        ("LifecycleKind", set(LifecycleKind::ALL)),
        ("ModuleKind", set(ModuleKind::ALL)),
        ("StackEnd", set(StackEnd::ALL)),
        ("LossKind", set(LossKind::ALL)),
        ("MarkKind", set(MarkKind::ALL)),
        ("Pairing", set(Pairing::ALL)),
        ("Colour", set(Colour::ALL)),
        ("FutexOp", set(FutexOp::ALL)),
    ]
}

/// Everything between one heading of the third level and the next.
fn sections() -> Vec<(&'static str, &'static str)> {
    DOCUMENT
        .split("\n### ")
        .skip(1)
        .map(|section| {
            let section = section.split("\n## ").next().unwrap();
            section.split_once('\n').expect("a heading and a text")
        })
        .map(|(heading, text)| (heading, text.trim()))
        .collect()
}

/// The document has a section for every table, with every column, its type and its meaning, in
/// order, and nothing that the code does not have.
#[test]
fn tables_are_documented() {
    let mut expected = Vec::new();
    for (name, doc, columns) in Tables::ALL {
        let mut text = format!(
            "{}\n\n| column | type | meaning |\n|---|---|---|",
            links(doc)
        );
        for column in *columns {
            let (kind, doc) = (type_name(column.kind), links(column.doc));
            text += &format!("\n| `{}` | {kind} | {doc} |", column.name);
        }
        expected.push((format!("`{name}`"), text));
    }
    compare(&expected, |heading| heading.starts_with('`'));
}

/// The document has every set of values with every number and word, and no other.
#[test]
fn words_are_documented() {
    let mut expected = Vec::new();
    for (name, values) in words() {
        let values: Vec<String> = values
            .iter()
            .map(|(number, text)| format!("{number} {text}"))
            .collect();
        expected.push((name.to_string(), format!("{}.", values.join(", "))));
    }
    compare(&expected, |heading| {
        !heading.starts_with('`') && heading != "Object"
    });
}

fn compare(expected: &[(String, String)], ours: impl Fn(&str) -> bool) {
    let found: Vec<_> = sections()
        .into_iter()
        .filter(|(heading, _)| ours(heading))
        .collect();
    for (heading, text) in expected {
        let section = found.iter().find(|(h, _)| h == heading);
        assert_eq!(
            section.map(|(_, text)| *text),
            Some(text.as_str()),
            "docs/TRACE.md should have this section:\n### {heading}\n{text}\n"
        );
    }
    let expected: Vec<_> = expected
        .iter()
        .map(|(heading, _)| heading.as_str())
        .collect();
    let found: Vec<_> = found.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(found, expected, "sections in order");
}

/// The document names every kind of object by its number, and the format's version.
#[test]
fn objects_and_version_are_documented() {
    let (_, text) = sections()
        .into_iter()
        .find(|(h, _)| *h == "Object")
        .expect("a section Object");
    for (kind, word) in [
        (ObjectKind::None, "nothing known"),
        (ObjectKind::Futex, "futex"),
        (ObjectKind::Pipe, "pipe"),
        (ObjectKind::Unix, "unix socket"),
        (ObjectKind::Inet, "internet socket"),
        (ObjectKind::Socket, "socket"),
        (ObjectKind::Eventfd, "eventfd"),
        (ObjectKind::Timerfd, "timerfd"),
        (ObjectKind::Epoll, "epoll"),
        (ObjectKind::Anonymous, "anonymous file"),
        (ObjectKind::File, "file"),
        (ObjectKind::CharDevice, "character device"),
        (ObjectKind::BlockDevice, "block device"),
        (ObjectKind::KernelLock, "kernel lock"),
        (ObjectKind::IoUring, "io_uring"),
        (ObjectKind::ServedFile, "served file"),
        (ObjectKind::MessageQueue, "message queue"),
        (ObjectKind::Process, "process"),
    ] {
        let row = format!("| {} | {word} |", kind as u8);
        assert!(text.contains(&row), "docs/TRACE.md lacks {row}");
    }
    assert!(DOCUMENT.contains(&format!("This is format version {FORMAT}.")));
}
