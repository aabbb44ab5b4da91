//! Names of functions, against programs that say where they are.

use crate::support::{machine, number};
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Samples, Switches};

/// Samples of a program that computes name the function, one a millisecond of its CPU time.
#[test]
fn samples_name_the_function() {
    let Some(machine) = machine() else { return };
    let spin = machine.program("spin");
    let options = ["--sample", "1000"];
    let live = machine.recorded(&options, &[spin.to_str().expect("plain text"), "300"]);
    let fact = &live.facts[0];
    let thread = live.utid(&fact["tid"]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let samples: Samples = live.table();
    let own: Vec<usize> = (0..samples.len())
        .filter(|&i| samples.thread[i] == thread)
        .collect();
    let expected = number(&fact["cpu_ms"]) as usize;
    assert!(
        own.len().abs_diff(expected) <= expected / 10,
        "{} samples",
        own.len()
    );
    let here = own.iter().filter(|&&i| {
        let innermost = stacks.stack(samples.user_stack[i]).next();
        innermost.is_some_and(|frame| frame.function == Some("spin_here"))
    });
    let here = here.count();
    assert!(here * 10 > own.len() * 9, "{here} of {}", own.len());
}

/// The stack of a thread that sleeps names its callers, innermost first. (The caller of a libc
/// function that keeps no frame pointer is missing: the frame pointer is then still its own.)
#[test]
fn a_wait_names_its_callers() {
    let Some(machine) = machine() else { return };
    let spin = machine.program("spin");
    let live = machine.recorded(&[], &[spin.to_str().expect("plain text"), "1"]);
    let thread = live.utid(&live.facts[0]["tid"]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let calls = hangdog_trace::Calls::new(&live.trace.meta().arch);
    let switches: Switches = live.table();
    let slept = (0..switches.len())
        .find(|&i| switches.prev[i] == thread && calls.name(switches.call[i]) == "clock_nanosleep")
        .expect("a sleep");
    let names: Vec<&str> = stacks
        .stack(switches.user_stack[slept])
        .filter_map(|frame| frame.function)
        .collect();
    let from = names.iter().position(|name| *name == "wait_outer");
    let callers = from.map(|from| &names[from..from + 3]);
    let expected = ["wait_outer", "wait_outermost", "main"];
    let end = stacks.end(switches.user_stack[slept]);
    assert_eq!(callers, Some(&expected[..]), "{names:?}, ended: {end:?}");
}
