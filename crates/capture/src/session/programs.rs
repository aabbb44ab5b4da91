//! The BPF programs: which there are, which are loaded, and what hooks they are called by.

use std::mem::MaybeUninit;

use hangdog_trace::meta::Hook;
use libbpf_rs::OpenObject;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Typedef};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::skeleton::{HangdogSkelBuilder, OpenHangdogSkel};
use super::{Options, Programs};
use crate::error::{Error, Result};
use crate::probe::{Place, Probe};

/// The tracepoints without which there is nothing to record.
pub(super) const REQUIRED: [&str; 2] = ["sched_switch", "sched_waking"];
/// Those that cost something on every system call.
const CALL_ENTRY_HOOK: &str = "sys_enter";
const CALL_EXIT_HOOK: &str = "sys_exit";
pub(super) const SECTION: &str = "tp_btf/";
/// The pass over all threads, which is run when it is asked for.
pub(super) const WAITING_PASS: &str = "iter.s/task";
/// What it reads other threads' memory by, since Linux 5.18.
const WAITING_PASS_NEEDS: &str = "bpf_copy_from_user_task";
/// The same over all open files.
pub(super) const DESCRIPTORS_PASS: &str = "iter/task_file";
/// By which the kernel has it, since Linux 5.8.
const DESCRIPTORS_PASS_NEEDS: &str = "bpf_iter_task_file";
/// What all passes have.
pub(super) const PASS: &str = "iter";
/// The programs of flags that are watched begin like this.
pub(super) const FLAG_PROGRAMS: &str = "on_flag_";
/// And so those of probes in programs.
pub(super) const PROBE_PROGRAMS: &str = "on_probe_";
/// The maps of static probes, in libbpf's part for them.
const STATIC_MAPS: &str = "__bpf_usdt_";
/// What perf events report to: the sampling clock, and the kernel's counts of faults.
pub(super) const SAMPLE_PROGRAM: &str = "on_sample";
pub(super) const MAJOR_PROGRAM: &str = "on_major_fault";
const MINOR_PROGRAM: &str = "on_minor_fault";
/// The tracepoints of the page cache that only `--faults` asks for.
const CACHE_HOOKS: [&str; 4] = [
    "mm_filemap_add_to_page_cache",
    "mm_filemap_delete_from_page_cache",
    "mm_filemap_map_pages",
    "mm_filemap_get_pages",
];
const FAULTS_NOT_REQUESTED: &str = "not requested (--faults)";

/// What a program's perf events are called among the hooks.
pub(super) fn perf_hook(program: &str) -> &'static str {
    match program {
        MAJOR_PROGRAM => "major-faults",
        MINOR_PROGRAM => "minor-faults",
        _ => "cpu-clock",
    }
}

/// Whether the running kernel has the tracepoint with type information.
fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))
        .is_some()
}

/// Every tracepoint that the programs want, and whether this kernel has it; without loading them.
pub(crate) fn tracepoints() -> Result<Vec<(String, bool)>> {
    let btf = kernel_types()?;
    let mut storage = MaybeUninit::uninit();
    let open = open(&mut storage)?;
    Ok(open
        .open_object()
        .progs()
        .filter_map(|program| {
            if program.name().to_string_lossy().starts_with(PROBE_PROGRAMS) {
                return None;
            }
            let name = program
                .section()
                .to_str()?
                .strip_prefix(SECTION)?
                .to_owned();
            let there = has_tracepoint(&btf, &name);
            Some((name, there))
        })
        .collect())
}

fn has_function(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Func<'_>>(name).is_some()
}

fn kernel_types() -> Result<Btf<'static>> {
    Btf::from_vmlinux().map_err(|cause| Error::Bpf {
        doing: "read the kernel's types",
        cause,
    })
}

/// The programs, not loaded yet.
pub(super) fn open(storage: &mut MaybeUninit<OpenObject>) -> Result<OpenHangdogSkel<'_>> {
    // Its hint at the memory limit misleads: what is missing is a privilege, and our errors say so.
    libbpf_rs::set_print(None);
    HangdogSkelBuilder::default()
        .open(storage)
        .map_err(|cause| Error::Bpf {
            doing: "open the BPF programs",
            cause,
        })
}

/// Sets which programs are to be loaded. Returns the hooks, each with the reason if it is left out.
///
/// # Errors
/// If the kernel lacks a hook without which there is nothing to record.
pub(super) fn choose(
    open: &mut OpenHangdogSkel<'_>,
    options: &Options,
    programs: Programs,
) -> Result<Vec<Hook>> {
    let btf = kernel_types()?;
    let mut hooks = Vec::new();
    for mut program in open.open_object_mut().progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let name = program.name().to_string_lossy().into_owned();
        if name.starts_with(PROBE_PROGRAMS) {
            let is_wanted = programs == Programs::All && is_asked_for(options, &section);
            program.set_autoload(is_wanted);
            continue;
        }
        let is_of_flags = name.starts_with(FLAG_PROGRAMS);
        if is_of_flags || programs == Programs::Flags {
            program.set_autoload(is_of_flags && !options.flags.is_empty());
            continue;
        }
        let all = programs == Programs::All;
        let hook = match section.strip_prefix(SECTION) {
            Some(tracepoint) if all => {
                let reason = why_not(&btf, options, tracepoint);
                let required = REQUIRED.into_iter().find(|&hook| hook == tracepoint);
                if let Some(hook) = required.filter(|_| reason.is_some()) {
                    return Err(Error::MissingHook { hook });
                }
                program.set_autoload(reason.is_none());
                Some((tracepoint, reason))
            }
            Some(_) => {
                program.set_autoload(false);
                None
            }
            None => {
                let loaded = match section.as_str() {
                    WAITING_PASS => has_function(&btf, WAITING_PASS_NEEDS),
                    DESCRIPTORS_PASS => has_function(&btf, DESCRIPTORS_PASS_NEEDS),
                    _ => match name.as_str() {
                        MAJOR_PROGRAM => all,
                        MINOR_PROGRAM => all && options.faults,
                        _ => options.sample_hz > 0,
                    },
                };
                program.set_autoload(loaded);
                let is_of_faults = name == MAJOR_PROGRAM || name == MINOR_PROGRAM;
                let reason = (!loaded).then_some(FAULTS_NOT_REQUESTED);
                (all && is_of_faults).then(|| (perf_hook(&name), reason))
            }
        };
        hooks.extend(hook.map(|(name, reason)| Hook {
            name: name.into(),
            attached: reason.is_none(),
            reason: reason.unwrap_or_default().into(),
        }));
    }
    let has_static = programs == Programs::All && is_asked_for(options, "usdt");
    for mut map in open.open_object_mut().maps_mut() {
        if map.name().to_string_lossy().starts_with(STATIC_MAPS) {
            let set = map.set_autocreate(has_static);
            set.map_err(|cause| Error::Bpf {
                doing: "choose the maps",
                cause,
            })?;
        }
    }
    Ok(hooks)
}

/// Whether a program of probes, by its section, is needed.
fn is_asked_for(options: &Options, section: &str) -> bool {
    let mut probes = options.probes.iter();
    match section {
        _ if section.starts_with(SECTION) => {
            probes.any(|probe| matches!(probe.place, Place::Marker { .. }))
        }
        "usdt" => probes.any(|probe| matches!(probe.place, Place::Static { .. })),
        "uretprobe" => probes.any(Probe::has_return),
        _ => probes.any(|probe| matches!(probe.place, Place::Function(_))),
    }
}

/// Why a tracepoint is not recorded; none if it is.
fn why_not(btf: &Btf<'_>, options: &Options, tracepoint: &str) -> Option<&'static str> {
    if tracepoint == CALL_EXIT_HOOK && !options.transfers && !options.calls.any() {
        Some("not requested (--transfers, --calls, --calls-of)")
    } else if tracepoint == CALL_ENTRY_HOOK && !options.calls.any() {
        Some("not requested (--calls, --calls-of)")
    } else if CACHE_HOOKS.contains(&tracepoint) && !options.faults {
        Some(FAULTS_NOT_REQUESTED)
    } else {
        (!has_tracepoint(btf, tracepoint)).then_some("this kernel does not have it")
    }
}
