//! What a trace says, against what the programs in it and the kernel's own counters say.

use crate::support::{Live, json, machine, number};
use hangdog_timeline::summary::Summary;
use hangdog_timeline::{Cause, State, Timeline};
use hangdog_trace::Calls;
use hangdog_trace::calls::{Call, FutexOp};
use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::{Lifecycle, Sockets, Switches, Transfers, Wakes};
use hangdog_trace::words::{Context, Left, LifecycleKind};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn timeline(live: &Live) -> Timeline {
    let end = live.trace.meta().duration_ns;
    let (switches, wakes) = (live.table(), live.table());
    Timeline::build(&switches, &wakes, &live.table(), &live.threads, end)
}

/// A sleep of 300 ms is 300 ms blocked in clock_nanosleep, ended by a timer.
#[test]
fn a_sleep_is_as_long_as_it_was() {
    let Some(machine) = machine() else { return };
    let recorded = machine.record(&[], &["sleep", "0.3"]);
    assert_eq!(recorded.code(), Some(0));
    let live = Live::open(&recorded.path, Vec::new());
    let story = json(&["story", "--thread", &live.command()], &recorded.path);
    let intervals = story["intervals"].as_array().expect("intervals");
    let slept: Vec<usize> = (0..intervals.len())
        .filter(|&i| intervals[i]["call"]["name"] == "clock_nanosleep")
        .filter(|&i| intervals[i]["state"] == "blocked")
        .collect();
    let [at] = slept[..] else {
        panic!("one sleep: {slept:?}");
    };
    let blocked = number(&intervals[at]["duration_ns"]);
    assert!((290_000_000..400_000_000).contains(&blocked), "{blocked}");
    assert_eq!(intervals[at]["call"]["argument"], 300_000_000);
    let woken = &intervals[at + 1];
    assert_eq!(
        (&woken["what"], &woken["context"]),
        (&"woken".into(), &"timer".into())
    );
}

/// A sleep until a time by the monotonic clock, as Python's, tells how long that was when it began.
#[test]
fn a_sleep_until_a_time_tells_how_long() {
    let Some(machine) = machine() else { return };
    let program = "import time; time.sleep(0.3)";
    let recorded = machine.record(&[], &["python3", "-c", program]);
    assert_eq!(recorded.code(), Some(0));
    let live = Live::open(&recorded.path, Vec::new());
    let story = json(&["story", "--thread", &live.command()], &recorded.path);
    let intervals = story["intervals"].as_array().expect("intervals");
    let slept: Vec<u64> = (intervals.iter())
        .filter(|interval| interval["call"]["name"] == "clock_nanosleep")
        .filter(|interval| interval["state"] == "blocked")
        .map(|interval| number(&interval["call"]["argument"]))
        .collect();
    let [asked] = slept[..] else {
        panic!("one sleep: {slept:?}");
    };
    // However late it came to it, it had asked for no more.
    assert!((1..=300_000_000).contains(&asked), "{asked}");
}

/// Of two descriptors that are polled the one that is an internet socket is what is waited for: the other is there for
/// the program to be woken by.
#[test]
fn a_connection_is_polled_beside_another_descriptor() {
    const PROGRAM: &str = "import select, socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
waker, _ = socket.socketpair()
poll = select.poll()
poll.register(waker, select.POLLIN)
poll.register(client, select.POLLIN)
poll.poll(200)
";
    let Some(machine) = machine() else { return };
    let recorded = machine.record(&[], &["python3", "-c", PROGRAM]);
    assert_eq!(recorded.code(), Some(0));
    let live = Live::open(&recorded.path, Vec::new());
    let (switches, calls) = (
        live.table::<Switches>(),
        Calls::new(&live.trace.meta().arch),
    );
    let polls = (0..switches.len()).filter(|&row| {
        switches.prev[row] == live.command_thread() && calls.name(switches.call[row]) == "poll"
    });
    let kinds: Vec<_> = polls
        .map(|row| Object(switches.object[row]).kind())
        .collect();
    assert!(kinds.contains(&ObjectKind::Inet), "{kinds:?}");
}

/// A thread that a debugger stops during the recording has the debugger in `holder`.
#[test]
fn the_debugger_of_a_stopped_thread_is_its_holder() {
    const PROGRAM: &str = "import ctypes, os, time
ATTACH, DETACH = 16, 17
child = os.fork()
while child == 0:
    time.sleep(0.01)
time.sleep(0.05)
ptrace = ctypes.CDLL(None).ptrace
ptrace(ATTACH, child, None, None)
os.waitpid(child, 0)
time.sleep(0.1)
ptrace(DETACH, child, None, None)
os.kill(child, 9)
os.waitpid(child, 0)
";
    let Some(machine) = machine() else { return };
    let recorded = machine.record(&[], &["python3", "-c", PROGRAM]);
    assert_eq!(recorded.code(), Some(0));
    let live = Live::open(&recorded.path, Vec::new());
    let switches: Switches = live.table();
    let stopped: Vec<Utid> = (0..switches.len())
        .filter(|&row| Left::from(switches.left[row]) == Left::Stopped)
        .map(|row| switches.holder[row])
        .collect();
    let is_command = |&holder: &Utid| {
        let holder = live.threads.known(holder);
        holder.is_some_and(|holder| holder.tid.to_string() == live.command())
    };
    assert!(stopped.iter().any(is_command), "{stopped:?}");
}

/// Each thread's states add up to its life, to the nanosecond: from its first step to the switch
/// that is its last, or to the recording's end. One may exit right before that end, and leave its CPU once more
/// without being dead yet.
#[test]
fn states_add_up_to_lifetimes() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let pingpong = pingpong.to_str().expect("plain text");
    let live = machine.recorded(&[], &[pingpong, "2000"]);
    let (switches, wakes) = (live.table::<Switches>(), live.table::<Wakes>());
    let timeline = timeline(&live);
    let mut ended = 0;
    for thread in live.threads.iter().filter(|thread| thread.utid != IDLE) {
        let death = (0..switches.len())
            .filter(|&i| switches.prev[i] == thread.utid)
            .filter(|&i| Left::from(switches.left[i]) == Left::Dead)
            .map(|i| switches.ts[i])
            .next_back();
        let switched = (0..switches.len())
            .filter(|&i| [switches.prev[i], switches.next[i]].contains(&thread.utid))
            .map(|i| switches.ts[i]);
        let woken = (0..wakes.len())
            .filter(|&i| wakes.wakee[i] == thread.utid)
            .map(|i| wakes.ts[i]);
        let last = switched.chain(woken).max();
        let exit = thread.end.map(|exit| exit.max(last.unwrap_or(exit)));
        let end = death.or(exit).unwrap_or(timeline.end());
        let summary = Summary::of(timeline.intervals(thread.utid), 0, u64::MAX);
        assert_eq!(summary.total(), end - thread.start, "{thread:?}");
        ended += usize::from(death.is_some());
    }
    assert!(
        ended >= 2,
        "ping and pong have ended, {ended} deaths were seen"
    );
}

/// The time that the hypervisor has taken from all CPUs, ms: who was on a CPU stays there, and is not
/// charged for it.
fn stolen_ms() -> u64 {
    const FIELD: usize = 8;
    const A_TICK_MS: u64 = 10;
    let text = fs::read_to_string("/proc/stat").expect("/proc/stat");
    let ticks = text
        .split_whitespace()
        .nth(FIELD)
        .and_then(|ticks| ticks.parse::<u64>().ok());
    ticks.unwrap_or(0) * A_TICK_MS
}

/// The time on a CPU is the CPU time that the kernel charged, and what the hypervisor took.
#[test]
fn running_is_the_cpu_time() {
    let Some(machine) = machine() else { return };
    let spin = machine.program("spin");
    let stolen_before = stolen_ms();
    let live = machine.recorded(&[], &[spin.to_str().expect("plain text"), "300"]);
    let fact = &live.facts[0];
    let timeline = timeline(&live);
    let intervals = timeline.intervals(live.utid(&fact["tid"]));
    let summary = Summary::of(intervals, 0, u64::MAX);
    let on_cpu = summary.time_in(State::Running) + summary.time_in(State::Interrupted);
    // Some kernels hide when a thread of process 1 leaves its CPU: who came after it may be taken to
    // run too early. Of its first interval the cause is not known either.
    let unsure = intervals
        .iter()
        .skip(1)
        .filter(|interval| interval.state == State::Running && interval.cause == Cause::Unknown);
    let unsure: u64 = unsure.map(|interval| interval.duration()).sum();
    let (sure, on_cpu) = ((on_cpu - unsure) / 1_000_000, on_cpu / 1_000_000);
    let charged = number(&fact["cpu_ms"]);
    let stolen = stolen_ms() - stolen_before;
    // The trace has more: before main, after the report.
    assert!(
        on_cpu >= charged && sure < charged + stolen + 20,
        "{sure} to {on_cpu} of {charged} ms, {stolen} ms stolen"
    );
}

/// Counts a thread's switches by whether it gave the CPU up.
fn switches_of(switches: &Switches, utid: Utid) -> (u64, u64) {
    let mut counts = (0, 0);
    for i in (0..switches.len()).filter(|&i| switches.prev[i] == utid) {
        match Left::from(switches.left[i]) {
            Left::Preempted | Left::Yielded | Left::Throttled => counts.1 += 1,
            Left::Dead => {}
            _ => counts.0 += 1,
        }
    }
    counts
}

/// Every switch that the kernel counted for a thread is in the trace, and no other: 20,000
/// context switches between two processes.
#[test]
fn no_switch_is_missed() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let pingpong = pingpong.to_str().expect("plain text");
    let live = machine.recorded(&[], &[pingpong, "20000"]);
    let info = json(&["info"], live.trace.path());
    assert_eq!(info["loss"]["total"], 0);
    let switches: Switches = live.table();
    let [ping, pong] = sorted(&live.facts);
    // Before the hooks are there it waits to be let go; after the report it exits, and may wait or,
    // on a busy machine, be preempted a few times.
    const EDGES: u64 = 12;
    for fact in [ping, pong] {
        let (gave, lost) = switches_of(&switches, live.utid(&fact["tid"]));
        let (voluntary, involuntary) = (number(&fact["voluntary"]), number(&fact["involuntary"]));
        // One that is woken and preempts the other makes of a wait of that one a switch against
        // its will.
        assert!(
            voluntary + involuntary >= 15_000,
            "a test of little: {fact}"
        );
        assert!(gave.abs_diff(voluntary) <= EDGES, "{gave} seen: {fact}");
        assert!(lost.abs_diff(involuntary) <= EDGES, "{lost} seen: {fact}");
    }
}

/// What ping and pong said, in this order.
fn sorted(facts: &[Value]) -> [&Value; 2] {
    ["ping", "pong"].map(|name| {
        let mut found = facts.iter().filter(|fact| fact["name"] == name);
        found.next().expect("both report")
    })
}

/// A write into a pipe is what wakes its reader, and both sides name the pipe by its inode.
#[test]
fn a_pipe_wakes_its_reader() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let pingpong = pingpong.to_str().expect("plain text");
    let live = machine.recorded(&[], &[pingpong, "5000"]);
    let (wakes, switches): (Wakes, Switches) = (live.table(), live.table());
    let calls = Calls::new(&live.trace.meta().arch);
    let is = |call: i16, name| calls.name(call) == name;
    let [ping, pong] = sorted(&live.facts);
    for (from, to, pipe) in [(ping, pong, &ping["forth"]), (pong, ping, &pong["back"])] {
        let pipe = Object::new(ObjectKind::Pipe, number(pipe)).0;
        let (waker, wakee) = (live.utid(&from["tid"]), live.utid(&to["tid"]));
        let waits: Vec<usize> = (0..switches.len())
            .filter(|&i| switches.prev[i] == wakee && is(switches.call[i], "read"))
            .filter(|&i| Left::from(switches.left[i]) == Left::Sleeping)
            .collect();
        assert!(waits.len() > 1_000, "a test of little: {}", waits.len());
        assert!(waits.iter().all(|&i| switches.object[i] == pipe));
        let by_write = (0..wakes.len())
            .filter(|&i| wakes.wakee[i] == wakee && wakes.waker[i] == waker)
            .filter(|&i| Context::from(wakes.context[i]) == Context::Task)
            .filter(|&i| is(wakes.call[i], "write") && wakes.object[i] == pipe)
            .count();
        // The last read is ended by the other's close or exit.
        assert!(
            waits.len().abs_diff(by_write) <= 2,
            "{by_write} of {}",
            waits.len()
        );
    }
}

/// A lock: the waiter waits on its address and names the holder; the holder's futex call wakes it.
#[test]
fn an_unlock_wakes_the_waiter() {
    let Some(machine) = machine() else { return };
    let handshakes = machine.program("handshakes");
    let live = machine.recorded(&[], &[handshakes.to_str().expect("plain text")]);
    let fact = &live.facts[0];
    let (main, locker) = (live.utid(&fact["main"]), live.utid(&fact["locker"]));
    let lock = Object::new(ObjectKind::Futex, number(&fact["lock"])).0;
    let calls = Calls::new(&live.trace.meta().arch);
    let switches: Switches = live.table();
    let waits: Vec<_> = (0..switches.len())
        .map(|i| switches.row(i))
        .filter(|switch| switch.prev == locker && calls.kind(switch.call) == Call::Futex)
        .collect();
    let [wait] = &waits[..] else {
        panic!("one wait: {waits:?}");
    };
    assert_eq!((wait.object, wait.holder), (lock, main));
    assert_eq!(FutexOp::of(wait.arg), FutexOp::Wait);
    let wakes: Wakes = live.table();
    let woken = (0..wakes.len())
        .map(|i| wakes.row(i))
        .find(|wake| wake.wakee == locker && wake.ts > wait.ts)
        .expect("a wake");
    assert_eq!((woken.waker, woken.object), (main, lock));
    assert_eq!(Context::from(woken.context), Context::Task);
    assert_eq!(calls.kind(woken.call), Call::Futex);
    assert_eq!(FutexOp::of(woken.arg), FutexOp::Wake);
    // The holder slept 50 ms with the lock; making the thread takes some of that.
    let waited = woken.ts - wait.ts;
    assert!((30_000_000..80_000_000).contains(&waited), "{waited}");
}

/// A select for one descriptor names what that is, however high it is in the first word of its set; one for
/// several names none.
#[test]
fn a_select_names_the_one_that_it_waits_for() {
    let Some(machine) = machine() else { return };
    let selects = machine.program("selects");
    let live = machine.recorded(&[], &[selects.to_str().expect("plain text")]);
    let fact = &live.facts[0];
    let main = live.utid(&fact["tid"]);
    let pipe = Object::new(ObjectKind::Pipe, number(&fact["pipe"])).0;
    let calls = Calls::new(&live.trace.meta().arch);
    let switches: Switches = live.table();
    let waits: Vec<u64> = (0..switches.len())
        .filter(|&i| switches.prev[i] == main && calls.name(switches.call[i]) == "pselect6")
        .filter(|&i| Left::from(switches.left[i]) == Left::Sleeping)
        .map(|i| switches.object[i])
        .collect();
    assert_eq!(waits, [pipe, 0]);
}

/// Bytes through a unix socket: both ends are named by their inodes, each the other's peer, and
/// the sender's call on its end wakes the receiver, who waits on the other.
#[test]
fn a_send_is_tied_to_its_receive() {
    let Some(machine) = machine() else { return };
    let handshakes = machine.program("handshakes");
    let live = machine.recorded(&[], &[handshakes.to_str().expect("plain text")]);
    let fact = &live.facts[0];
    let (main, receiver) = (live.utid(&fact["main"]), live.utid(&fact["receiver"]));
    let unix = |inode: &Value| Object::new(ObjectKind::Unix, number(inode)).0;
    let (near, far) = (unix(&fact["sender_socket"]), unix(&fact["receiver_socket"]));
    let transfers: Transfers = live.table();
    let total = |thread, object, peer, sent| {
        let rows = (0..transfers.len()).map(|i| transfers.row(i));
        rows.filter(|t| (t.thread, t.object, t.peer, t.sent) == (thread, object, peer, sent))
            .map(|t| u64::from(t.bytes))
            .sum::<u64>()
    };
    assert_eq!(total(main, near, far, true), number(&fact["bytes"]));
    assert_eq!(total(receiver, far, near, false), number(&fact["bytes"]));

    let calls = Calls::new(&live.trace.meta().arch);
    let (switches, wakes): (Switches, Wakes) = (live.table(), live.table());
    let wait = (0..switches.len())
        .map(|i| switches.row(i))
        .find(|switch| switch.prev == receiver && calls.name(switch.call) == "recvfrom")
        .expect("a wait for the bytes");
    assert_eq!(wait.object, far);
    let woken = (0..wakes.len())
        .map(|i| wakes.row(i))
        .find(|wake| wake.wakee == receiver && wake.ts > wait.ts)
        .expect("a wake");
    assert_eq!((woken.waker, woken.object), (main, near));
    assert_eq!(calls.name(woken.call), "sendto");
}

/// Programs that live for a millisecond are all there, with their names and how they ended.
#[test]
fn short_lives_are_all_seen() {
    let Some(machine) = machine() else { return };
    let script = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done";
    let live = machine.recorded(&[], &["sh", "-c", script]);
    let lifecycle: Lifecycle = live.table();
    let shell = live.threads.thread(live.command_thread()).upid;
    let with = |kind: LifecycleKind| -> HashSet<u32> {
        (0..lifecycle.len())
            .map(|i| lifecycle.row(i))
            .filter(|step| LifecycleKind::from(step.kind) == kind && step.name == "true")
            // Another test may record such a command.
            .filter(|step| live.threads.process(step.process).parent == shell)
            .map(|step| step.process)
            .collect()
    };
    let (executed, exited) = (with(LifecycleKind::Executed), with(LifecycleKind::Exited));
    assert_eq!(executed.len(), 200);
    assert_eq!(exited, executed);
    for &process in &executed {
        let process = live.threads.process(process);
        assert_eq!(process.command, "/bin/true");
        let main = live.threads.thread(process.threads[0]);
        assert_eq!(main.exit_status.as_deref(), Some("0"));
        assert_ne!(main.parent, hangdog_trace::ids::NONE);
    }
}

/// A control group of the test's own with a limit of 32 MiB of memory.
struct SmallGroup(PathBuf);

impl SmallGroup {
    /// None where this machine has no control groups of memory, or does not let one be made.
    fn new() -> Option<SmallGroup> {
        const FORMS: [(&str, &str); 2] = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        let name = format!("hangdog-test-{}", std::process::id());
        FORMS.iter().find_map(|(folder, limit)| {
            let group = SmallGroup(Path::new(folder).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(limit), "33554432").ok()?;
            Some(group)
        })
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Of whom the kernel killed for lack of memory the trace says so.
#[test]
fn who_was_killed_for_lack_of_memory() {
    let Some(machine) = machine() else { return };
    let Some(group) = SmallGroup::new() else {
        return eprintln!("NOT RUN: who_was_killed_for_lack_of_memory: no control group of memory");
    };
    let processes = group.0.join("cgroup.procs");
    let script = format!(
        "python3 -c 'b\"x\" * (256 << 20)' & echo $! >{}; wait $!; test $? = 137",
        processes.display()
    );
    // It has its memory only once it is in the group.
    let script = script.replace("b\"x\"", "import time; time.sleep(0.5); b\"x\"");
    let recorded = machine.record(&[], &["sh", "-c", &script]);
    if recorded.code() == Some(1)
        && fs::read_to_string("/proc/swaps").is_ok_and(|it| it.lines().count() > 1)
    {
        return eprintln!("NOT RUN: who_was_killed_for_lack_of_memory: it was swapped out instead");
    }
    assert_eq!(recorded.code(), Some(0), "{}", recorded.stderr());
    let live = Live::open(&recorded.path, Vec::new());
    let lifecycle: Lifecycle = live.table();
    let rows = (0..lifecycle.len()).map(|row| lifecycle.row(row));
    let killed: Vec<Utid> = rows
        .filter(|step| LifecycleKind::from(step.kind) == LifecycleKind::OutOfMemory)
        .map(|step| step.thread)
        .collect();
    let is_python = |&thread: &Utid| live.threads.process_of(thread).name.starts_with("python3");
    assert!(killed.iter().any(is_python), "{killed:?}");
}

/// A socket that connects, where nothing answers, is described as one: nobody accepts, and the queue is full.
#[test]
fn a_connection_that_nothing_answers_is_seen() {
    let Some(machine) = machine() else { return };
    let program = "import json, select, socket
server = socket.create_server((\"127.0.0.1\", 0), backlog=0)
clients = []
for _ in range(8):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(server.getsockname())
    clients.append(client)
    if not select.select([], [client], [], 0.2)[1]:
        break
inode = __import__(\"os\").fstat(client.fileno()).st_ino
print(json.dumps({\"inode\": inode, \"answered\": bool(select.select([], [client], [], 0.3)[1])}))
";
    let live = machine.recorded(&[], &["python3", "-c", program]);
    assert_eq!(live.facts[0]["answered"], false);
    let object = Object::new(ObjectKind::Inet, number(&live.facts[0]["inode"])).0;
    let sockets: Sockets = live.table();
    let mut rows = (0..sockets.len()).filter(|&row| sockets.object[row] == object);
    assert!(
        rows.any(|row| sockets.connecting[row]),
        "it was not connecting"
    );
}
