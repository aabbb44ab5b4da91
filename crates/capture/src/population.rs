//! Who is alive: the threads, their processes and their code, at one moment.
//!
//! A recording starts from one, taken from /proc. A flight recorder keeps one for the moment at
//! which its rings begin, by folding into it the definitions that have fallen out of the rings.

use std::collections::HashMap;

use crate::records::{RawMapping, What};

/// A thread that is alive.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub pid: u32,
    pub name: String,
    /// Tid of the thread (or pid of the process) that made it.
    pub parent: u32,
    pub is_kernel: bool,
}

/// A process that is alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Company {
    pub command: String,
    /// It has its parent's command line, or has written another one over that since it was forked.
    pub is_forked: bool,
    pub mappings: Vec<RawMapping>,
}

/// Who is alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Population {
    pub threads: HashMap<u32, Member>,
    pub processes: HashMap<u32, Company>,
    /// How many threads of a process live.
    living: HashMap<u32, usize>,
}

impl Population {
    /// A thread lives.
    pub(crate) fn add(&mut self, tid: u32, member: Member) {
        *self.living.entry(member.pid).or_default() += 1;
        if let Some(before) = self.threads.insert(tid, member) {
            self.leave(before.pid);
        }
    }

    /// One thread less. Returns whether it was the process's last.
    fn leave(&mut self, pid: u32) -> bool {
        let Some(living) = self.living.get_mut(&pid) else {
            return true;
        };
        *living -= 1;
        let was_last = *living == 0;
        if was_last {
            self.living.remove(&pid);
        }
        was_last
    }

    /// The process, made if it is new.
    pub(crate) fn process(&mut self, pid: u32) -> &mut Company {
        self.processes.entry(pid).or_default()
    }

    /// Lets the definition happen. Returns the process that ended with it, if one did.
    pub(crate) fn apply(&mut self, what: &What) -> Option<u32> {
        match what {
            What::Fork {
                tid,
                pid,
                parent,
                name,
                is_kernel,
                ..
            } => {
                let member = Member {
                    pid: *pid,
                    name: name.clone(),
                    parent: *parent,
                    is_kernel: *is_kernel,
                };
                if tid == pid {
                    let company = self
                        .threads
                        .get(parent)
                        .and_then(|parent| self.processes.get(&parent.pid))
                        .cloned();
                    let company = company.unwrap_or_default();
                    self.processes.insert(
                        *pid,
                        Company {
                            is_forked: true,
                            ..company
                        },
                    );
                }
                self.add(*tid, member);
            }
            What::Exec {
                old_tid,
                pid,
                name,
                command,
                ..
            } => {
                if let Some(mut member) = self.threads.remove(old_tid) {
                    self.leave(member.pid);
                    member.name = name.clone();
                    self.add(*pid, member);
                }
                let company = self.process(*pid);
                company.command = command.clone();
                company.is_forked = false;
            }
            What::Rename { tid, name } => {
                if let Some(member) = self.threads.get_mut(tid) {
                    member.name = name.clone();
                }
            }
            What::Exit { tid, .. } => {
                let member = self.threads.remove(tid)?;
                // A process lives as long as any of its threads; the first may exit before others.
                if self.leave(member.pid) {
                    self.processes.remove(&member.pid);
                    return Some(member.pid);
                }
            }
            What::ClearMappings { pid } => self.process(*pid).mappings.clear(),
            What::Map { pid, mapping } => self.process(*pid).map(mapping.clone()),
            _ => {}
        }
        None
    }
}

impl Company {
    /// Adds a mapping and takes away what it covers.
    fn map(&mut self, mapping: RawMapping) {
        self.mappings
            .retain(|old| old.end <= mapping.start || old.start >= mapping.end);
        self.mappings.push(mapping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(parent: u32, tid: u32, pid: u32) -> What {
        What::Fork {
            tid,
            pid,
            parent,
            parent_pid: parent,
            name: "x".into(),
            is_kernel: false,
            epoch: 0,
        }
    }

    fn code(start: u64, end: u64) -> RawMapping {
        RawMapping {
            start,
            end,
            file_offset: 0,
            path: "p".into(),
            build_id: String::new(),
        }
    }

    /// A forked process has its parent's code until it executes; a thread has none of its own.
    #[test]
    fn code_is_inherited() {
        let mut population = Population::default();
        population.apply(&fork(0, 1, 1));
        population.apply(&What::Map {
            pid: 1,
            mapping: code(10, 20),
        });
        population.apply(&fork(1, 2, 2));
        population.apply(&fork(1, 3, 1));
        assert_eq!(population.processes[&2].mappings, [code(10, 20)]);
        assert!(!population.processes.contains_key(&3));
        population.apply(&What::ClearMappings { pid: 2 });
        assert!(population.processes[&2].mappings.is_empty());
        assert_eq!(population.processes[&1].mappings.len(), 1);
    }

    /// A process that was forked may write over its command line until it executes a program.
    #[test]
    fn who_was_forked_is_known() {
        let mut population = Population::default();
        population.apply(&fork(0, 1, 1));
        assert!(population.processes[&1].is_forked);
        population.apply(&What::Exec {
            old_tid: 1,
            pid: 1,
            name: "app".into(),
            command: "app -x".into(),
            vdso: 0,
            epoch: 0,
        });
        assert!(!population.processes[&1].is_forked);
    }

    /// A mapping takes the place of those that it overlaps.
    #[test]
    fn a_mapping_replaces_what_it_covers() {
        let mut population = Population::default();
        population.apply(&fork(0, 1, 1));
        for (start, end) in [(10, 20), (30, 40), (15, 35)] {
            population.apply(&What::Map {
                pid: 1,
                mapping: code(start, end),
            });
        }
        assert_eq!(population.processes[&1].mappings, [code(15, 35)]);
        assert_eq!(
            population.apply(&What::Exit {
                tid: 1,
                pid: 1,
                status: 0
            }),
            Some(1)
        );
        assert!(population.processes.is_empty());
    }

    /// A thread that takes its process's number at exec is still one thread, and so is one whose
    /// number is used anew without an exit that was seen.
    #[test]
    fn threads_are_counted_once() {
        let mut population = Population::default();
        for what in [fork(0, 1, 1), fork(1, 2, 1), fork(0, 2, 1)] {
            population.apply(&what);
        }
        population.apply(&What::Exec {
            old_tid: 2,
            pid: 1,
            name: "x".into(),
            command: String::new(),
            vdso: 0,
            epoch: 0,
        });
        assert_eq!(population.living, [(1, 1)].into());
        let exit = What::Exit {
            tid: 1,
            pid: 1,
            status: 0,
        };
        assert_eq!(population.apply(&exit), Some(1));
        assert!(population.living.is_empty());
    }

    /// A process ends with the last of its threads, also where its first one exited before.
    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut population = Population::default();
        population.apply(&fork(0, 1, 1));
        population.apply(&fork(1, 2, 1));
        assert_eq!(
            population.apply(&What::Exit {
                tid: 1,
                pid: 1,
                status: 0
            }),
            None
        );
        assert!(population.processes.contains_key(&1));
        assert_eq!(
            population.apply(&What::Exit {
                tid: 2,
                pid: 1,
                status: 0
            }),
            Some(1)
        );
        assert!(population.processes.is_empty());
    }
}
