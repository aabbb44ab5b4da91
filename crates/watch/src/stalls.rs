//! Threads that stall.
//!
//! A thread that waits for work, or does it in turns, leaves the CPU voluntarily again and
//! again, and the kernel counts that. While the count stands the thread blocks in one place, or
//! runs without a pause. Which of the two is idle, only the user knows; so threads are watched that
//! the user names.

use std::collections::HashMap;
use std::str::FromStr;

use crate::processes::{self, Process, Thread};
use crate::standing::{Limits, Standing, Stretch};

/// Threads by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    process: Option<String>,
    thread: String,
}

/// The kernel keeps this much of a name.
const NAME_BYTES: usize = 15;

impl FromStr for Selector {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Selector, Self::Err> {
        let kept = |name: &str| {
            let end = (0..=NAME_BYTES.min(name.len())).rfind(|&end| name.is_char_boundary(end));
            name[..end.unwrap_or_default()].to_owned()
        };
        let (process, thread) = match text.split_once('/') {
            Some((process, thread)) => (Some(process), thread),
            None => (None, text),
        };
        if thread.is_empty() || process == Some("") {
            return Err("a name is missing: give THREAD or PROCESS/THREAD");
        }
        Ok(Selector {
            process: process.map(kept),
            thread: kept(thread),
        })
    }
}

impl Selector {
    /// The threads that it means now.
    pub(crate) fn find(&self) -> Vec<Thread> {
        let mut found = Vec::new();
        for pid in processes::pids() {
            let Some(process) = processes::name(pid) else {
                continue;
            };
            if self.process.as_ref().is_some_and(|name| *name != process) {
                continue;
            }
            let of_name =
                |tid: &u32| processes::thread_name(pid, *tid).as_ref() == Some(&self.thread);
            found.extend(processes::tids(pid).filter(of_name).map(|tid| Thread {
                process: Process {
                    pid,
                    name: process.clone(),
                },
                tid,
                name: self.thread.clone(),
            }));
        }
        found
    }
}

struct Watched {
    thread: Thread,
    standing: Standing,
    switches: u64,
}

/// The threads that one selector means.
pub struct Stalls {
    selector: Selector,
    limits: Limits,
    threads: HashMap<u32, Watched>,
    /// When they were last searched for; none before the first time.
    searched: Option<u64>,
}

/// How often new threads are searched for, ns.
const SEARCH_NS: u64 = 2_000_000_000;

impl Stalls {
    /// Watches the threads that `selector` means, also those that start later.
    pub fn new(selector: Selector, limits: Limits) -> Stalls {
        Stalls {
            selector,
            limits,
            threads: HashMap::new(),
            searched: None,
        }
    }

    /// From now on a stall's end is waited for no longer than this, ns.
    pub fn wait_at_most(&mut self, most_ns: u64) {
        self.limits.most_ns = most_ns;
    }

    /// How many threads are watched.
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Looks at them by a `clock`, ns, and gives the stalls that are to be told.
    pub fn look(&mut self, clock: impl Fn() -> u64) -> Vec<(Thread, Stretch)> {
        let now = clock();
        if self.searched.is_none_or(|then| now >= then + SEARCH_NS) {
            self.searched = Some(now);
            for thread in self.selector.find() {
                let Some(switches) = processes::voluntary_switches(thread.process.pid, thread.tid)
                else {
                    continue;
                };
                self.threads.entry(thread.tid).or_insert_with(|| Watched {
                    thread,
                    standing: Standing::new(clock()),
                    switches,
                });
            }
        }
        let limits = self.limits;
        let mut told = Vec::new();
        self.threads.retain(|&tid, watched| {
            let before = clock();
            let switches = processes::voluntary_switches(watched.thread.process.pid, tid);
            let stretch = if switches == Some(watched.switches) {
                watched.standing.stands(before);
                watched.standing.overdue(limits)
            } else {
                watched.standing.moved(clock(), limits)
            };
            told.extend(stretch.map(|stretch| (watched.thread.clone(), stretch)));
            watched.switches = switches.unwrap_or_default();
            switches.is_some()
        });
        told
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A thread is named alone or with its process, as far as the kernel keeps names.
    #[test]
    fn selectors() {
        let selector = |process: Option<&str>, thread: &str| {
            Ok(Selector {
                process: process.map(str::to_owned),
                thread: thread.to_owned(),
            })
        };
        assert_eq!("render".parse(), selector(None, "render"));
        assert_eq!("app/render".parse(), selector(Some("app"), "render"));
        assert_eq!(
            "0123456789abcdef".parse(),
            selector(None, "0123456789abcde")
        );
        for text in ["", "app/", "/render"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }

    /// A thread that waits in one place stalls, whatever it waits for, and is reported when it
    /// moves again; one that moves in time is not. Times are those of the looks.
    #[test]
    fn a_stall() {
        let (wake, woken) = channel::<()>();
        let (answer, answered) = channel();
        let thread = std::thread::Builder::new().name("watched-stall".into());
        let thread = thread.spawn(move || {
            for () in woken {
                answer.send(()).unwrap();
            }
        });
        let limits = Limits {
            limit_ns: 1_000,
            most_ns: 50_000,
        };
        let mut stalls = Stalls::new("watched-stall".parse().unwrap(), limits);
        let turn = || {
            wake.send(()).unwrap();
            answered.recv().unwrap();
            // Until it waits again.
            std::thread::sleep(std::time::Duration::from_millis(50));
        };
        turn();
        assert!(stalls.look(|| 0).is_empty());
        assert_eq!(stalls.count(), 1);
        for now in [100, 200, 300] {
            turn();
            assert!(stalls.look(|| now).is_empty());
        }
        assert!(stalls.look(|| 900).is_empty());
        assert!(stalls.look(|| 1_400).is_empty());
        turn();
        let told = stalls.look(|| 1_500);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0.name, "watched-stall");
        assert_eq!(told[0].1.window, 300..1_400);
        drop(wake);
        thread.unwrap().join().unwrap();
        assert!(stalls.look(|| 1_600).is_empty());
        assert_eq!(stalls.count(), 0);
    }
}
