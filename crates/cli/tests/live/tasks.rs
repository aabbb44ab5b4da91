//! What is read from the memory of a Python program: tasks of asyncio that wait, of which the diagnosis names the one that keeps
//! the program, and who has the locks that threads wait for.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::Goroutines;

use crate::support::{Background, hangdog, json, machine, text};

/// One task beats, one waits for orders, one has the lock and waits for an event that nobody sets, and one waits for the
/// lock; the first waits for that one.
const PROGRAM: &str = "
import asyncio
async def beat():
    while True:
        await asyncio.sleep(0.05)
async def work(orders):
    await orders.get()
async def keep(lock, never):
    async with lock:
        await never.wait()
class Book:
    def __init__(self, lock):
        self.lock = lock
    async def enter(self):
        await self.lock.acquire()
async def serve(book):
    await book.enter()
async def main():
    lock = asyncio.Lock()
    orders, never = asyncio.Queue(), asyncio.Event()
    others = [asyncio.create_task(it) for it in (beat(), work(orders), keep(lock, never))]
    await asyncio.sleep(0)
    served = asyncio.create_task(serve(Book(lock)))
    await asyncio.sleep(0.2)
    print('waits', flush=True)
    await served
asyncio.run(main())
";

/// Threads that sleep, one that sleeps with the lock, one that waits for it, and the first one, which joins that.
const LOCKS: &str = "
import threading, time
lock, again = threading.Lock(), threading.RLock()
def rest():
    time.sleep(60)
def ship():
    with again:
        time.sleep(60)
def keep():
    with lock:
        again.acquire()
def serve():
    with lock:
        pass
for job in (rest, ship, rest, keep, serve):
    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    time.sleep(0.05)
threading.Thread(target=rest, daemon=True).start()
time.sleep(0.2)
print('waits', flush=True)
thread.join()
";

/// Whether there is a Python of which this is read.
fn has_python() -> bool {
    let version = Command::new("python3").arg("--version").output();
    let version = version.map_or_else(|_| Vec::new(), |output| output.stdout);
    let is_known = version.starts_with(b"Python 3.11.");
    if !is_known {
        eprintln!("NOT RUN: tasks: needs python3 of version 3.11");
    }
    is_known
}

/// Runs a program until it says that it waits.
fn hung(program: &str) -> Background {
    let child = Command::new("python3")
        .args(["-c", program])
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("python3");
    let stdout = child.stdout.take().expect("a pipe");
    let hung = Background(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "waits\n");
    hung
}

/// The way goes from the join by both locks to the one that sleeps, past those that do so without a lock.
#[test]
fn who_has_a_lock_of_python_is_read() {
    let Some(machine) = machine() else { return };
    if !has_python() {
        return;
    }
    let hung = hung(LOCKS);
    let live = machine.recorded(&[], &["sleep", "0.5"]);
    let pid = hung.0.id().to_string();
    let of_process = json(&["why", "--process", &pid], live.trace.path());
    let output = hangdog().args(["why", "--live", &pid, "--json"]).output();
    let of_moment = serde_json::from_slice(&output.expect("a run").stdout).expect("JSON");
    for verdict in [of_process, of_moment] {
        assert_eq!(verdict["root"]["function"], "ship", "{verdict}");
        let path = verdict["path"].as_array().expect("a path");
        let edges: Vec<_> = path
            .iter()
            .map(|step| text(&step["edge"]["kind"]))
            .collect();
        assert_eq!(edges, ["awaited", "holder", "holder", "timer"], "{verdict}");
    }
}

#[test]
fn tasks_that_wait_are_read() {
    let Some(machine) = machine() else { return };
    if !has_python() {
        return;
    }
    let hung = hung(PROGRAM);
    let live = machine.recorded(&[], &["sleep", "1"]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let table: Goroutines = live.table();
    let mut looks: Vec<(u64, Vec<String>)> = Vec::new();
    for row in 0..table.len() {
        let frames = stacks.stack(table.user_stack[row]);
        let names: Vec<_> = frames.filter_map(|frame| frame.function).collect();
        let names = names.join(" < ");
        match looks.last_mut().filter(|(ts, _)| *ts == table.ts[row]) {
            Some((_, look)) => look.push(names),
            None => looks.push((table.ts[row], vec![names])),
        }
    }
    let expected = [
        "Event.wait < keep",
        "Lock.acquire < Book.enter < serve",
        "Queue.get < work",
        "main",
        "sleep < beat",
    ];
    assert_eq!(looks.len(), 2, "{looks:?}");
    for (_, mut look) in looks {
        look.sort();
        // The one that beats may have run just then.
        let missing = |name: &&&str| !look.iter().any(|it| it == **name);
        let missing: Vec<_> = expected.iter().filter(missing).collect();
        assert!(matches!(missing[..], [] | [&"sleep < beat"]), "{look:?}");
    }
    let pid = hung.0.id().to_string();
    let of_process = json(&["why", "--process", &pid], live.trace.path());
    let output = hangdog().args(["why", "--live", &pid, "--json"]).output();
    let of_moment = serde_json::from_slice(&output.expect("a run").stdout).expect("JSON");
    for verdict in [of_process, of_moment] {
        let sentence = text(&verdict["sentence"]);
        // It has the lock.
        let waits = "for another task to set an event in keep";
        assert!(sentence.contains(waits), "{verdict}");
    }
}
