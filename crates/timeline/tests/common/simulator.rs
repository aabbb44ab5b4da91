//! A small machine that schedules threads at random and writes down two things as it goes: the
//! events that a recorder would see, and what each thread truly did. The second is the oracle;
//! it knows nothing of how the timeline finds states.

use super::{BLOCKING, Events, interval};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::words::{Left, LifecycleKind};
use std::collections::BTreeMap;

/// One random decision: what to do, to whom, how, and how much later.
pub type Choice = (u8, u8, u8, u16);

struct Thread {
    state: State,
    cause: Cause,
    since: u64,
    truth: Vec<Interval>,
    /// A wake that was stamped while the thread runs, and that its next switch-out meets.
    raced: Option<u32>,
    /// In a state that only its coming on a CPU will prove.
    unproven: bool,
    dead: bool,
}

struct Cpu {
    running: u32,
    /// End of the interrupt that it runs.
    busy_until: u64,
}

/// What was recorded, and the truth by thread.
pub struct Simulation {
    pub events: Events,
    pub truth: BTreeMap<u32, Vec<Interval>>,
}

struct Machine {
    now: u64,
    cpus: Vec<Cpu>,
    /// Thread `i + 1`.
    threads: Vec<Thread>,
    events: Events,
}

/// Runs the machine through `choices`.
pub fn simulate(cpus: usize, threads: usize, choices: &[Choice]) -> Simulation {
    let mut machine = Machine::new(cpus, threads);
    for &choice in choices {
        machine.step(choice);
    }
    machine.finish()
}

impl Machine {
    /// Each CPU runs a thread as far as there are any; of the others every second is runnable,
    /// the rest blocked.
    fn new(cpus: usize, threads: usize) -> Machine {
        let mut events = Events::default();
        let threads: Vec<Thread> = (0..threads)
            .map(|i| {
                events.step(0, LifecycleKind::Seen, i as u32 + 1);
                let (state, unproven) = match i {
                    i if i < cpus => (State::Running, false),
                    i if i % 2 == 0 => (State::Runnable, true),
                    _ => (State::Blocked, false),
                };
                Thread::new(state, 0, unproven)
            })
            .collect();
        let cpus = (0..cpus)
            .map(|i| Cpu {
                running: if i < threads.len() { i as u32 + 1 } else { 0 },
                busy_until: 0,
            })
            .collect();
        Machine {
            now: 0,
            cpus,
            threads,
            events,
        }
    }

    fn thread(&mut self, utid: u32) -> &mut Thread {
        &mut self.threads[utid as usize - 1]
    }

    fn step(&mut self, (what, whom, how, later): Choice) {
        self.now += 1 + u64::from(later);
        let cpu = whom as usize % self.cpus.len();
        let utid = 1 + u32::from(whom) % self.threads.len() as u32;
        match what % 16 {
            0..=6 => self.switch(cpu, how),
            7..=11 => self.wake(utid),
            12 => self.wake_racing(utid),
            13 | 14 => self.interrupt(cpu, how),
            _ => self.fork(),
        }
    }

    /// The CPU's thread leaves, in one of the ways there are; one that wants the CPU comes.
    fn switch(&mut self, cpu: usize, how: u8) {
        if self.cpus[cpu].busy_until > self.now {
            return;
        }
        let wanting: Vec<u32> = (1..=self.threads.len() as u32)
            .filter(|&utid| self.threads[utid as usize - 1].wants_cpu())
            .collect();
        let next = match wanting.len() {
            0 => 0,
            n if how & 1 == 0 => wanting[how as usize / 16 % n],
            _ => 0,
        };
        let left = match how / 2 % 8 {
            0 => Left::Preempted,
            1 => Left::Yielded,
            2 => Left::Throttled,
            3 if how >= 0xf0 => Left::Dead,
            n => BLOCKING[n as usize % BLOCKING.len()],
        };
        self.change(cpu, next, left);
    }

    fn change(&mut self, cpu: usize, next: u32, left: Left) {
        let now = self.now;
        let prev = self.cpus[cpu].running;
        if prev == next {
            return;
        }
        let row = self.events.switch(now, cpu as u16, prev, next, left);
        if prev != 0 {
            let thread = self.thread(prev);
            let raced = thread.raced.take();
            let (state, cause) = match (left, raced) {
                (Left::Preempted | Left::Throttled, _) => (State::Preempted, Cause::Switch(row)),
                (Left::Yielded, _) => (State::Runnable, Cause::Switch(row)),
                (Left::Dead, _) => (State::Blocked, Cause::Switch(row)),
                (_, Some(wake)) => (State::Runnable, Cause::Wake(wake)),
                (_, None) => (State::Blocked, Cause::Switch(row)),
            };
            thread.enter(now, state, cause);
            thread.dead = left == Left::Dead;
            thread.unproven = raced.is_some() && state == State::Runnable;
        }
        if next != 0 {
            let thread = self.thread(next);
            thread.enter(now, State::Running, Cause::Switch(row));
            thread.unproven = false;
        }
        self.cpus[cpu].running = next;
    }

    /// A wake: it ends a block; otherwise it is moot.
    fn wake(&mut self, utid: u32) {
        let now = self.now;
        let thread = self.thread(utid);
        if thread.dead || thread.unproven || thread.raced.is_some() {
            return;
        }
        let blocked = thread.state == State::Blocked;
        let row = self.events.wake(now, 0, utid);
        if blocked {
            self.thread(utid)
                .enter(now, State::Runnable, Cause::Wake(row));
        }
    }

    /// A wake that reaches the thread while it is on its way off the CPU.
    fn wake_racing(&mut self, utid: u32) {
        let thread = self.thread(utid);
        if thread.dead || thread.state != State::Running {
            return;
        }
        let row = self.events.wake(self.now, 0, utid);
        self.thread(utid).raced = Some(row);
    }

    fn interrupt(&mut self, cpu: usize, how: u8) {
        let (now, utid) = (self.now, self.cpus[cpu].running);
        if self.cpus[cpu].busy_until > now {
            return;
        }
        let duration = 2 + u64::from(how);
        let row = self.events.interrupt(now, duration, utid);
        if how & 1 == 0 {
            self.events.interrupt(now, duration / 2, utid);
        }
        self.cpus[cpu].busy_until = now + duration;
        if utid != 0 {
            let thread = self.thread(utid);
            let running = thread.cause;
            thread.write(now);
            thread.truth.push(interval(
                now,
                now + duration,
                State::Interrupted,
                Cause::Interrupt(row),
            ));
            thread.since = now + duration;
            thread.cause = running;
        }
    }

    fn fork(&mut self) {
        if self.threads.len() >= 12 {
            return;
        }
        let utid = self.threads.len() as u32 + 1;
        self.events.step(self.now, LifecycleKind::Forked, utid);
        self.threads
            .push(Thread::new(State::Blocked, self.now, false));
    }

    /// Lets every state that needs it be proven, then ends the trace.
    fn finish(mut self) -> Simulation {
        let idle = self.cpus.iter().map(|cpu| cpu.busy_until).max();
        self.now = self.now.max(idle.unwrap_or(0));
        for cpu in 0..self.cpus.len() {
            self.now += 1;
            self.change(cpu, 0, Left::Preempted);
        }
        for utid in 1..=self.threads.len() as u32 {
            if self.thread(utid).unproven {
                self.now += 1;
                self.change(0, utid, Left::Preempted);
            }
        }
        self.now += 1;
        self.events.end = self.now;
        let (now, mut truth) = (self.now, BTreeMap::new());
        for (i, mut thread) in self.threads.into_iter().enumerate() {
            if !thread.dead {
                thread.write(now);
            }
            truth.insert(i as u32 + 1, thread.truth);
        }
        Simulation {
            events: self.events,
            truth,
        }
    }
}

impl Thread {
    fn new(state: State, since: u64, unproven: bool) -> Thread {
        Thread {
            state,
            cause: Cause::Unknown,
            since,
            truth: Vec::new(),
            raced: None,
            unproven,
            dead: false,
        }
    }

    fn wants_cpu(&self) -> bool {
        !self.dead && matches!(self.state, State::Runnable | State::Preempted)
    }

    fn enter(&mut self, now: u64, state: State, cause: Cause) {
        self.write(now);
        (self.state, self.cause, self.since) = (state, cause, now);
    }

    fn write(&mut self, now: u64) {
        if self.since < now {
            self.truth
                .push(interval(self.since, now, self.state, self.cause));
            self.since = now;
        }
    }
}
