//! `hangdog template`: saved, listed, shown, and refused where something is wrong.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(TempDir::new().expect("a directory"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("hangdog/templates").join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_hangdog"))
            .args(args)
            .current_dir(&self.0)
            .env("XDG_CONFIG_HOME", self.0.path())
            .env_remove("SUDO_UID")
            .stdin(Stdio::null())
            .output()
            .expect("a run")
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn refusal(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    fn list(&self) -> Vec<Value> {
        let text = self.text(&["template", "list", "--json"]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["templates"].as_array().expect("templates").clone()
    }
}

fn named<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter()
        .find(|row| row["name"] == name)
        .expect("a template of that name")
}

/// Four come with hangdog. One that is saved is listed and shown, keeps what a person wrote into it, and is
/// replaced only where that is asked for; it goes before a shipped one of the same name.
#[test]
fn saved_listed_and_shown() {
    let home = Home::new();
    let names: Vec<Value> = home.list().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, ["desktop", "hang", "latency", "paging"]);
    assert!(home.list().iter().all(|row| row["file"].is_null()));

    let save = [
        "template",
        "save",
        "mine",
        "--description",
        "what I need",
        "--next",
        "paging",
    ];
    home.text(&[&save[..], &["record", "--faults", "--sample", "1000"]].concat());
    let row = home.list();
    let row = named(&row, "mine");
    assert_eq!(row["description"], "what I need");
    assert_eq!(row["commands"], serde_json::json!(["record"]));
    assert_eq!(row["next"], serde_json::json!(["paging"]));
    let shown = home.text(&["template", "show", "mine"]);
    assert!(
        shown.contains("faults = true") && shown.contains("sample = 1000"),
        "{shown}"
    );

    let file = home.file("mine.toml");
    fs::write(&file, format!("# my own words\n{shown}")).expect("a file");
    let again = ["template", "save", "mine", "record", "--no-stacks"];
    assert!(home.refusal(&again).contains("--replace"));
    home.text(&[
        "template",
        "save",
        "mine",
        "watch",
        "--region",
        "frame:50ms",
    ]);
    home.text(&[
        "template",
        "save",
        "mine",
        "--replace",
        "record",
        "--no-stacks",
    ]);
    let shown = fs::read_to_string(&file).expect("a file");
    assert!(shown.starts_with("# my own words"), "{shown}");
    assert!(
        shown.contains("no-stacks = true") && !shown.contains("faults"),
        "{shown}"
    );
    assert!(shown.contains("region = [\"frame:50ms\"]"), "{shown}");

    fs::write(home.file("hang.toml"), "description = 'my hang'\n").expect("a file");
    assert_eq!(named(&home.list(), "hang")["description"], "my hang");
}

/// An error names the template and what is wrong with it, and nothing is recorded; the list has the others.
#[test]
fn wrong_templates() {
    let home = Home::new();
    fs::create_dir_all(home.file("")).expect("a folder");
    for (text, word) in [
        ("[record]\nsampel = 1\n", "sampel"),
        ("[record]\nsample = 'many'\n", "many"),
        ("[record]\noutput = '/etc/passwd'\n", "output"),
        ("[record\n", "TOML"),
        ("[flight]\nsample = 1\n", "flight"),
    ] {
        fs::write(home.file("bad.toml"), text).expect("a file");
        let why = home.refusal(&["record", "--template", "bad", "--", "true"]);
        assert!(why.contains("bad") && why.contains(word), "{text}: {why}");
        assert!(home.list().len() >= 4);
    }
    let fifo = home.file("pipe.toml");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("a run");
    assert!(made.success());
    home.refusal(&["record", "--template", "pipe", "--", "true"]);
    assert_eq!(named(&home.list(), "latency")["commands"][0], "record");

    assert!(
        home.refusal(&["record", "--template", "none"])
            .contains("template list")
    );
    assert!(
        home.refusal(&["watch", "--template", "paging"])
            .contains("it is for record")
    );
    for name in ["a/b", "", "ä", ".."] {
        let why = home.refusal(&["template", "save", name, "record", "--faults"]);
        assert!(why.contains("letters"), "{name}: {why}");
    }
    for line in [
        &["why"][..],
        &["record", "-o", "x"],
        &["record", "--", "true"],
    ] {
        let why = home.refusal(&[&["template", "save", "new"], line].concat());
        assert!(
            !why.is_empty() && !Path::new(&home.file("new.toml")).exists(),
            "{why}"
        );
    }
}
