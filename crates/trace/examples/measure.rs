//! What a trace costs: bytes an event on disk, and rows written and read a second.
//!
//! The events are made up after `perf bench sched pipe`, the densest stream there is: two threads
//! on two CPUs hand a token to each other through two pipes, and now and then a timer or a kernel
//! worker comes between.
//!
//! `cargo run --release -p hangdog-trace --example measure -- [MILLIONS OF SWITCHES]`

use std::time::Instant;

use hangdog_trace::tables::*;
use hangdog_trace::words::{Context, Left};
use hangdog_trace::{Meta, Result, Trace, TraceWriter};

/// Rows between two parts, as the recorder has it.
const PART: usize = 1 << 20;

/// Pseudo-random numbers (SplitMix64), so that every run measures the same stream.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// About `mean` ns: half of it for sure, the rest exponential.
    fn around(&mut self, mean: f64) -> u64 {
        let uniform = ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        (mean * 0.5 * (1.0 - uniform.ln())) as u64
    }
}

/// One message: the sender wakes the receiver and goes to sleep, the receiver comes.
struct Pipes {
    random: Random,
    now: u64,
    turn: u32,
}

impl Pipes {
    fn message(&mut self, tables: &mut hangdog_trace::Tables) {
        let (from, to) = (1 + self.turn, 2 - self.turn);
        let (from_cpu, to_cpu) = (self.turn as u16, 1 - self.turn as u16);
        let object = |pipe: u32| 2 << 56 | u64::from(4711 + pipe);
        self.now += self.random.around(1500.0);
        tables.wakes.push(Wake {
            ts: self.now,
            cpu: from_cpu,
            waker: from,
            wakee: to,
            context: Context::Task.into(),
            vector: 0,
            new: false,
            call: 1,
            object: object(self.turn),
            arg: 0x7ffd_1234_5678,
            user_stack: 0,
            kernel_stack: 0,
        });
        let switch = |ts, cpu, prev, next, left: Left, call, object, arg| Switch {
            ts,
            cpu,
            prev,
            next,
            left: left.into(),
            next_priority: 120,
            call,
            object,
            arg,
            holder: u32::MAX,
            user_stack: 0,
            kernel_stack: 0,
        };
        let arrives = self.now + self.random.around(1200.0);
        let leaves = self.now + self.random.around(1400.0);
        let arrival = switch(arrives, to_cpu, 0, to, Left::Preempted, -2, 0, 0);
        let departure = switch(
            leaves,
            from_cpu,
            from,
            0,
            Left::Sleeping,
            0,
            object(1 - self.turn),
            0x7ffd_1234_5678,
        );
        let mut both = [arrival, departure];
        both.sort_by_key(|s| s.ts);
        self.now = both[1].ts;
        both.into_iter().for_each(|s| tables.switches.push(s));
        if self.random.next().is_multiple_of(500) {
            self.visitor(tables, to_cpu, to);
        }
        self.turn = 1 - self.turn;
    }

    /// A kernel worker takes the CPU for a moment.
    fn visitor(&mut self, tables: &mut hangdog_trace::Tables, cpu: u16, running: u32) {
        let worker = 3 + (self.random.next() % 20) as u32;
        self.now += self.random.around(500.0);
        tables.wakes.push(Wake {
            ts: self.now,
            cpu,
            waker: running,
            wakee: worker,
            context: Context::Hrtimer.into(),
            vector: 0,
            new: false,
            call: -1,
            object: 0,
            arg: 0,
            user_stack: 0,
            kernel_stack: 1 + worker,
        });
        for (prev, next, left) in [(running, worker, 0), (worker, running, 7)] {
            self.now += self.random.around(3000.0);
            tables.switches.push(Switch {
                ts: self.now,
                cpu,
                prev,
                next,
                left,
                next_priority: 120,
                call: if prev == worker { -2 } else { -1 },
                object: 0,
                arg: 0,
                holder: u32::MAX,
                user_stack: 0,
                kernel_stack: 0,
            });
        }
    }
}

fn main() -> Result<()> {
    let millions: usize = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(4);
    let dir = std::env::temp_dir().join(format!("hangdog-measure-{}.hang", std::process::id()));
    let mut writer = TraceWriter::create(&dir, Meta::default())?;
    let mut pipes = Pipes {
        random: Random(7),
        now: 0,
        turn: 0,
    };
    let (mut rows, mut writing) = (0, std::time::Duration::ZERO);
    while rows < millions * 1_500_000 {
        while writer.tables.switches.len() < PART {
            pipes.message(&mut writer.tables);
        }
        rows += writer.tables.rows();
        let start = Instant::now();
        writer.write_part()?;
        writing += start.elapsed();
    }
    writer.finish(Meta::default())?;
    println!(
        "wrote {rows} rows, {:.2} M rows/s",
        rows as f64 / 1e6 / writing.as_secs_f64()
    );

    let trace = Trace::open(&dir)?;
    let mut bytes = 0;
    for info in trace.tables_info()?.iter().filter(|info| info.rows > 0) {
        bytes += info.bytes;
        let each = info.bytes as f64 / info.rows as f64;
        println!(
            "{:10} {:9} rows, {} parts, {each:.2} bytes a row",
            info.name, info.rows, info.parts
        );
    }
    println!(
        "together   {:.2} bytes an event",
        bytes as f64 / rows as f64
    );
    let start = Instant::now();
    let switches: Switches = trace.read()?;
    println!(
        "read {} switches in {:.3} s",
        switches.len(),
        start.elapsed().as_secs_f64()
    );
    std::fs::remove_dir_all(&dir).map_err(|cause| hangdog_trace::Error::Io { path: dir, cause })
}
