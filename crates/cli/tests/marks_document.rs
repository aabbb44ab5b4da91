//! The examples of docs/MARKS.md for C and Python compile and run; that for Rust is a test of the crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The document's example in a language.
fn example(language: &str) -> String {
    let document = fs::read_to_string(root().join("docs/MARKS.md")).expect("docs/MARKS.md");
    let (_, rest) = document
        .split_once(&format!("```{language}\n"))
        .expect("an example");
    rest.split("```").next().unwrap_or_default().to_owned()
}

/// As C11 with warnings as errors, as C++17, and both run.
#[test]
fn c() {
    let dir = TempDir::new().expect("a directory");
    let source = dir.path().join("example.c");
    fs::write(&source, example("c")).expect("a file");
    for (compiler, options) in [
        ("cc", &["-std=c11"][..]),
        ("c++", &["-x", "c++", "-std=c++17"]),
    ] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("NOT RUN: the example of docs/MARKS.md by {compiler}: it is not installed");
            continue;
        }
        let program = dir.path().join("example");
        let built = Command::new(compiler)
            .args([
                "-D_GNU_SOURCE",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-O2",
                "-pthread",
                "-I",
            ])
            .arg(root().join("mark"))
            .args(options)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status();
        assert!(built.expect("a run").success(), "{compiler}");
        assert!(Command::new(&program).status().expect("a run").success());
    }
}

/// It runs, and so does the package's own test.
#[test]
fn python() {
    let tests = root().join("mark/python/tests/test_marks.py");
    for arguments in [
        vec!["-c".to_owned(), example("python")],
        vec![tests.display().to_string()],
    ] {
        let run = Command::new("python3")
            .args(arguments)
            .env("PYTHONPATH", root().join("mark/python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output();
        let Ok(output) = run else {
            eprintln!("NOT RUN: the example of docs/MARKS.md by python3: it is not installed");
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
}
