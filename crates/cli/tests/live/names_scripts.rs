//! Functions of interpreted languages in stacks, against programs that are known: of a process that is
//! recorded from its start, of one that waited already when the recording began, and by `why --live`.

use crate::support::{Background, Live, Machine, hangdog, machine};
use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Samples, Switches};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A name, and how its definition is written; nothing for what is told without a line.
type Function = (&'static str, &'static str);

/// A program and the functions that it is in, innermost first.
struct Program {
    interpreter: &'static str,
    /// What the interpreter says of itself when the language's functions can be told.
    version: &'static str,
    file: &'static str,
    text: &'static str,
    waits: &'static [Function],
    /// The innermost may have the name of a block instead of its own.
    computes: &'static [Function],
}

const RUBY: Program = Program {
    interpreter: "ruby",
    version: "ruby 3.1",
    file: "orchard.rb",
    text: include_str!("programs/orchard.rb"),
    waits: &[
        ("Orchard#pick", "def pick"),
        ("block in Orchard#climb", "turns.times"),
        ("Orchard#climb", "def climb"),
        ("Orchard.harvest", "def self.harvest"),
        ("<main>", ""),
    ],
    computes: &[
        ("Orchard#crush", "def crush"),
        ("Orchard#press", "def press"),
        ("block in Orchard.mill", "[seconds].each"),
        ("Orchard.mill", "def self.mill"),
        ("<main>", ""),
    ],
};

const PHP: Program = Program {
    interpreter: "php",
    version: "PHP 8.2",
    file: "orchard.php",
    text: include_str!("programs/orchard.php"),
    waits: &[
        ("pick", "function pick"),
        ("Orchard->{closure}", "array_map"),
        ("Orchard->climb", "function climb"),
        ("Orchard::harvest", "function harvest"),
        ("{main}", "<?php"),
    ],
    computes: &[
        ("crush", "function crush"),
        ("Orchard::loads", "function loads"),
        ("Orchard::mill", "function mill"),
        ("{main}", "<?php"),
    ],
};

/// A subroutine has the line of its first statement. An overloaded operator, an eval within it, a sort's
/// block and a block that a C function calls again and again are calls of the interpreter's loop.
const PERL: Program = Program {
    interpreter: "perl",
    version: "v5.36",
    file: "orchard.pl",
    text: include_str!("programs/orchard.pl"),
    waits: &[
        ("pick", "my $seconds = shift;"),
        ("Tree::label", "my $self = shift;"),
        ("Orchard::climb", "my ($class, $seconds) = @_;"),
        ("Orchard::harvest", "my ($class, $seconds, $turns)"),
    ],
    computes: &[
        ("crush", "my $till = shift; # crush"),
        ("__ANON__", "{ crush($till) }"),
        ("press", "my $till = shift; # press"),
        ("mill", "my $till = shift; # mill"),
    ],
};

/// For the recorder to learn where the interpreter is, seconds.
const START: &str = "3";

impl Program {
    /// Whether there is such an interpreter; says otherwise, past the harness, that a test is not run.
    fn can_run(&self) -> bool {
        let answer = Command::new(self.interpreter).arg("--version").output();
        let can = answer
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(self.version));
        if !can {
            let line = format!("NOT RUN: names_scripts: needs {}\n", self.version);
            io::stderr()
                .write_all(line.as_bytes())
                .expect("standard error");
        }
        can
    }

    fn write(&self, machine: &Machine) -> String {
        let path = machine.path(self.file);
        std::fs::write(&path, self.text).expect("a program");
        path.to_str().expect("plain text").to_owned()
    }

    /// Functions as they are to be told: `NAME LINE`.
    fn expected(&self, functions: &[Function]) -> Vec<String> {
        let expected = |&(name, definition): &Function| {
            if definition.is_empty() {
                return name.to_owned();
            }
            let mut lines = self.text.lines();
            let line = lines.position(|line| line.contains(definition));
            format!("{name} {}", line.expect("a definition") + 1)
        };
        functions.iter().map(expected).collect()
    }

    /// The program's functions in a stack, innermost first, as `NAME LINE`.
    fn functions(&self, stacks: &StackTable, stack: u32) -> Vec<String> {
        let frames = stacks.stack(stack);
        let own = frames.filter(|frame| frame.module == Some(self.file));
        own.map(|frame| {
            let name = frame.function.expect("a name").to_owned();
            let (path, name) = match frame.source.rsplit_once(':') {
                Some((path, line)) => (path, format!("{name} {line}")),
                None => (frame.source, name),
            };
            assert!(path.starts_with('/') && path.ends_with(self.file), "{path}");
            name
        })
        .collect()
    }

    /// The functions of a thread's waits.
    fn waits_of(&self, live: &Live, stacks: &StackTable, thread: Utid) -> Vec<Vec<String>> {
        let switches: Switches = live.table();
        (0..switches.len())
            .filter(|&row| switches.prev[row] == thread && switches.user_stack[row] != 0)
            .map(|row| self.functions(stacks, switches.user_stack[row]))
            .collect()
    }

    /// The program waits in its functions for good.
    fn hang(&self, path: &str) -> Background {
        let mut command = Command::new(self.interpreter);
        let command = command.args([path, "hang"]).stdout(Stdio::null());
        let child = Background(command.spawn().expect(self.interpreter));
        std::thread::sleep(Duration::from_secs(2));
        child
    }

    /// Where the program waits and where it computes all its functions are in the stack, in their order.
    fn is_named_from_the_start(&self) {
        let Some(machine) = machine() else {
            return;
        };
        if !self.can_run() {
            return;
        }
        let path = self.write(&machine);
        let live = machine.recorded(&["--sample", "1000"], &[self.interpreter, &path, START]);
        let stacks = StackTable::load(&live.trace).expect("stacks");
        let thread = live.command_thread();
        let expected = self.expected(self.waits);
        let waits = self.waits_of(&live, &stacks, thread);
        let named = waits.iter().filter(|found| found.contains(&expected[0]));
        let right = waits.iter().filter(|found| **found == expected).count();
        // On a busy machine the recorder may not know the interpreter in time for all 20.
        assert!(right >= 5 && right == named.count(), "{right}: {waits:?}");

        let samples: Samples = live.table();
        let expected = self.expected(self.computes);
        let own: Vec<Vec<String>> = (0..samples.len())
            .filter(|&row| samples.thread[row] == thread)
            .map(|row| self.functions(&stacks, samples.user_stack[row]))
            .filter(|found| found.iter().any(|function| *function == expected[0]))
            .collect();
        let right = own
            .iter()
            .filter(|found| found.ends_with(&expected))
            .count();
        // 500 ms at 1 kHz, as far as the machine lets it run.
        assert!(own.len() >= 20, "{}", own.len());
        // A sample may hit while a function is called.
        assert!(
            right * 20 >= own.len() * 19,
            "{right} of {}: {own:?}",
            own.len()
        );
    }

    /// A thread that waited when the recording began, and one that is looked at without a recording,
    /// is in the functions that it waits in.
    fn is_named_where_it_waits_already(&self) {
        let Some(machine) = machine() else {
            return;
        };
        if !self.can_run() {
            return;
        }
        let program = self.hang(&self.write(&machine));
        let live = machine.recorded(&[], &["sleep", "1"]);
        let stacks = StackTable::load(&live.trace).expect("stacks");
        let expected = self.expected(self.waits);
        let thread = live.utid(&program.0.id().into());
        let found = self.waits_of(&live, &stacks, thread);
        assert!(found.contains(&expected), "{found:?}");

        let pid = program.0.id().to_string();
        let output = hangdog().args(["why", "--live", &pid]).output();
        let answer = String::from_utf8(output.expect("a run").stdout).expect("UTF-8");
        let (innermost, _) = self.waits[0];
        let sentence = answer.lines().next().unwrap_or_default();
        assert!(sentence.contains(&format!("in {innermost}")), "{answer}");
    }
}

/// Ruby's methods, singleton methods and blocks.
#[test]
fn ruby_functions_are_named() {
    RUBY.is_named_from_the_start();
}

/// GMP's assembly does not say where its callers are. Ruby's methods around it are known all the same.
#[test]
fn ruby_functions_are_named_around_code_without_rules() {
    const DIGITS: Program = Program {
        interpreter: "ruby",
        version: "ruby 3.1",
        file: "digits.rb",
        text: "def digits\n  (7**5_000_000).to_s.size\nend\ndef report\n  digits\nend\nreport\n",
        waits: &[],
        computes: &[
            ("digits", "def digits"),
            ("report", "def report"),
            ("<main>", ""),
        ],
    };
    let Some(machine) = machine() else {
        return;
    };
    if !DIGITS.can_run() {
        return;
    }
    let path = DIGITS.write(&machine);
    let live = machine.recorded(&["--sample", "1000"], &[DIGITS.interpreter, &path]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let thread = live.command_thread();
    let samples: Samples = live.table();
    let in_gmp = |stack: u32| {
        let innermost = stacks.stack(stack).next();
        let module = innermost.and_then(|frame| frame.module);
        module.is_some_and(|module| module.contains("gmp"))
    };
    let found: Vec<Vec<String>> = (0..samples.len())
        .filter(|&row| samples.thread[row] == thread && in_gmp(samples.user_stack[row]))
        .map(|row| DIGITS.functions(&stacks, samples.user_stack[row]))
        .collect();
    let expected = DIGITS.expected(DIGITS.computes);
    // Ruby's outermost frame, in which nothing runs, is named after the program too.
    let right = (found.iter())
        .filter(|found| found.starts_with(&expected))
        .count();
    assert!(found.len() >= 20, "{}", found.len());
    // A busy machine's recorder learns late of the interpreter. Without the rule it is a quarter of them.
    assert!(
        right * 2 >= found.len(),
        "{right} of {}: {expected:?} {:?}",
        found.len(),
        found.first()
    );
}

/// The same, of a thread that waits already.
#[test]
fn ruby_functions_are_named_where_threads_wait_already() {
    RUBY.is_named_where_it_waits_already();
}

/// PHP's functions, methods, closures and generators.
#[test]
fn php_functions_are_named() {
    PHP.is_named_from_the_start();
}

/// The same, of a process that waits already.
#[test]
fn php_functions_are_named_where_they_wait_already() {
    PHP.is_named_where_it_waits_already();
}

/// Perl's subroutines.
#[test]
fn perl_functions_are_named() {
    PERL.is_named_from_the_start();
}

/// The same, of a thread that waits already.
#[test]
fn perl_functions_are_named_where_threads_wait_already() {
    PERL.is_named_where_it_waits_already();
}
