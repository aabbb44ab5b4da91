//! What the kernel costs: calls, faults, signals, mappings, timers, and what the hypervisor takes.

pub(crate) mod cache;
mod call;
mod fault;
mod lost;
mod major;
pub(crate) mod mapping;
mod signal;
mod timer;

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[
    &call::SYSCALL,
    &call::CLOCK,
    &fault::ANONYMOUS,
    &fault::ZERO,
    &fault::COPY,
    &fault::FILE,
    &major::MAJOR,
    &signal::CAUGHT,
    &signal::INSTALL,
    &mapping::MAP,
    &timer::LATE,
    &lost::LOST,
];

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cpu;
    use crate::meter::{Meter, Untried};
    use crate::place::Place;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// A place whose files are made in `dir`.
    pub(crate) fn place(dir: &Path) -> Place {
        let cpus = cpu::allowed().unwrap();
        let (here, there) = cpu::pair(&cpus);
        Place {
            dir: dir.to_owned(),
            here,
            there,
            cpus,
            largest: 1 << 20,
            quick: true,
        }
    }

    /// Says that a test could not do its work here, and why.
    pub(crate) fn not_run(reason: &Untried) {
        println!("NOT RUN: {reason}");
    }

    /// One visit to each: figures that were promised and no others, all of them plausible numbers;
    /// nothing left in the directory, and the thread as free as before.
    pub(crate) fn visits_keep_their_word(methods: &[&'static Method]) {
        let own = tempfile::tempdir().unwrap();
        let place = place(own.path());
        for &method in methods {
            let budget = Duration::from_millis(50) * method.weight;
            let mut meter = Meter::new(method.id, method.figures, 0, budget);
            let before = Instant::now();
            let result = (method.run)(&place, &mut meter);
            let took = before.elapsed();
            assert_eq!(cpu::allowed().unwrap(), place.cpus, "{}", method.id);
            assert_eq!(own.path().read_dir().unwrap().count(), 0, "{}", method.id);
            for (&(figure, _), samples) in &meter.samples {
                let is_listed = method.figures.iter().any(|kind| kind.id == figure);
                let are_sound = samples
                    .iter()
                    .all(|value| value.is_finite() && *value >= 0.0);
                assert!(is_listed && are_sound, "{}: {figure}", method.id);
            }
            // Tests run beside others on a busy machine: this is to find a visit without end.
            assert!(took < budget * 20, "{} took {took:?}", method.id);
            match result {
                Err(untried) => not_run(&untried),
                Ok(()) => {
                    for kind in method.figures {
                        let mut found = meter.samples.keys();
                        assert!(found.any(|&(figure, _)| figure == kind.id), "{}", kind.id);
                    }
                }
            }
        }
    }

    /// See [`visits_keep_their_word`].
    #[test]
    fn visits_to_the_kernel_keep_their_word() {
        visits_keep_their_word(METHODS);
    }
}
