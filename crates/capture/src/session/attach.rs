//! Attaching the programs, and taking away for a while those that are called too often.

use std::os::fd::{AsRawFd, IntoRawFd};

use hangdog_trace::meta::Hook;
use libbpf_rs::skel::Skel;
use libbpf_rs::{ProgramMut, UprobeOpts, UsdtOpts};

use super::programs::{
    FLAG_PROGRAMS, MAJOR_PROGRAM, PASS, PROBE_PROGRAMS, REQUIRED, SAMPLE_PROGRAM, SECTION,
    perf_hook,
};
use super::room::is_online;
use super::{Options, Session};
use crate::error::{Error, Result};
use crate::perf::{page_faults, sampling_clock};
use crate::probe::{Place, Probe};

impl Session {
    /// Attaches what is loaded.
    pub(super) fn attach(&mut self, options: &Options) -> Result<()> {
        let mut links = Vec::new();
        let mut absent = Vec::new();
        for program in self.skeleton.object_mut().progs_mut() {
            let doing = "attach the BPF programs";
            let section = program.section().to_string_lossy().into_owned();
            let name = program.name().to_string_lossy().into_owned();
            let others = [FLAG_PROGRAMS, PROBE_PROGRAMS];
            let is_others =
                section.starts_with(PASS) || others.iter().any(|it| name.starts_with(it));
            if !program.autoload() || is_others {
                continue;
            }
            if let Some(hook) = section.strip_prefix(SECTION) {
                match program.attach_trace() {
                    Ok(link) if self.transfers.has(hook) => self.transfers.add(link),
                    Ok(link) if self.handoffs.has(hook) => self.handoffs.add(link),
                    Ok(link) => links.push(link),
                    Err(cause) if REQUIRED.contains(&hook) => {
                        return Err(Error::Bpf { doing, cause });
                    }
                    Err(cause) => absent.push((hook.to_owned(), cause.to_string())),
                }
                continue;
            }
            for cpu in (0..self.cpus).filter(|&cpu| is_online(cpu)) {
                let event = match name.as_str() {
                    SAMPLE_PROGRAM => sampling_clock(cpu, options.sample_hz),
                    name => page_faults(cpu, name == MAJOR_PROGRAM),
                };
                let event = match event {
                    Ok(event) => event,
                    Err(why) => {
                        absent.push((perf_hook(&name).to_owned(), why.to_string()));
                        break;
                    }
                };
                let link = program
                    .attach_perf_event(event.as_raw_fd())
                    .map_err(|cause| Error::Bpf { doing, cause })?;
                // The link owns the descriptor from here on, and closes it.
                let _ = event.into_raw_fd();
                links.push(link);
            }
        }
        for (name, reason) in absent {
            self.hooks.retain(|hook| hook.name != name);
            self.hooks.push(Hook {
                name,
                attached: false,
                reason,
            });
        }
        self.links = links;
        Ok(())
    }

    /// Attaches the probes of programs, in every process; their numbers are their cookies.
    pub(super) fn attach_probes(&mut self, probes: &[Probe]) -> Result<()> {
        const EVERY_PROCESS: i32 = -1;
        let programs = &self.skeleton.progs;
        for (number, probe) in probes.iter().enumerate() {
            let cookie = number as u64;
            let of_function = |program: &ProgramMut<'_>, offset: u64, retprobe| {
                let options = UprobeOpts {
                    cookie,
                    retprobe,
                    ..UprobeOpts::default()
                };
                program.attach_uprobe_with_opts(
                    EVERY_PROCESS,
                    &probe.path,
                    offset as usize,
                    options,
                )
            };
            let links = match &probe.place {
                // The return first: so no begin is without its end.
                Place::Function(offset) => {
                    let back = probe
                        .has_return()
                        .then(|| of_function(&programs.on_probe_return, *offset, true));
                    let entry = of_function(&programs.on_probe_entry, *offset, false);
                    back.into_iter()
                        .chain([entry])
                        .collect::<libbpf_rs::Result<Vec<_>>>()
                }
                Place::Static { provider, name } => {
                    let options = UsdtOpts {
                        cookie,
                        ..UsdtOpts::default()
                    };
                    let program = &programs.on_probe_point;
                    let link = program.attach_usdt_with_opts(
                        EVERY_PROCESS,
                        &probe.path,
                        provider,
                        name,
                        options,
                    );
                    link.map(|link| vec![link])
                }
                Place::Marker { .. } => programs.on_probe_marker.attach_trace().map(|it| vec![it]),
            };
            let links = links.map_err(|cause| Error::Probe {
                probe: probe.described(),
                cause,
            })?;
            self.links.extend(links);
            self.hooks.push(Hook {
                name: probe.described(),
                attached: true,
                reason: String::new(),
            });
        }
        Ok(())
    }

    /// Takes the bounded hooks away where they are called too often, and back after a while.
    pub(super) fn rest(&mut self) {
        let transfers = self.rings.refused_transfers().sum();
        let handoffs = self.rings.refused_handoffs().sum();
        for (hooks, refused) in [
            (&mut self.transfers, transfers),
            (&mut self.handoffs, handoffs),
        ] {
            if !hooks.should_return(refused) {
                continue;
            }
            for program in self.skeleton.object_mut().progs_mut() {
                let section = program.section().to_string_lossy().into_owned();
                let is_one = section
                    .strip_prefix(SECTION)
                    .is_some_and(|name| program.autoload() && hooks.has(name));
                if is_one && let Ok(link) = program.attach_trace() {
                    hooks.add(link);
                }
            }
        }
    }
}
