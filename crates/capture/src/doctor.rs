//! What this machine allows, what it lacks, and what to do about it.

use std::fs;
use std::path::Path;

use hangdog_trace::meta::Hook;

use crate::counters::{Counters, HARDWARE};
use crate::privileges::counts_as_the_kernel;
use crate::session;
use crate::system::{effective_capabilities, kernel_version, machine};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// As it should be.
    Good,
    /// Recording works; something cannot be seen.
    Limited,
    /// Recording does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it came out.
    pub finding: Finding,
    /// What there is.
    pub detail: String,
    /// What to do; empty if nothing need or can be done.
    pub fix: String,
}

/// Looks at everything that recording depends on. Changes nothing.
pub fn examine() -> Vec<Check> {
    let mut checks = vec![
        kernel(),
        types(),
        privileges(),
        namespace(),
        lockdown(),
        kernel_names(),
    ];
    checks.extend(tracepoints());
    checks.push(sampling());
    checks.push(counters());
    checks
}

fn check(name: &str, finding: Finding, detail: impl Into<String>, fix: &str) -> Check {
    Check {
        name: name.into(),
        finding,
        detail: detail.into(),
        fix: fix.into(),
    }
}

const OLDEST: (u32, u32) = (6, 1);

fn kernel() -> Check {
    let (_, release, arch) = machine();
    let detail = format!("Linux {release} on {arch}");
    if kernel_version() < OLDEST {
        return check("kernel", Finding::Bad, detail, "boot Linux 6.1 or later");
    }
    check("kernel", Finding::Good, detail, "")
}

fn types() -> Check {
    let path = "/sys/kernel/btf/vmlinux";
    if Path::new(path).exists() {
        return check("type information", Finding::Good, path, "");
    }
    let fix = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y";
    check("type information", Finding::Bad, format!("no {path}"), fix)
}

/// Capabilities by number, and what each is for.
const NEEDED: [(u32, &str, &str); 2] = [
    (39, "CAP_BPF", "to load programs"),
    (38, "CAP_PERFMON", "to attach them and to sample"),
];
/// The same of those without which something cannot be seen.
const WANTED: [(u32, &str, &str); 4] = [
    (
        19,
        "CAP_SYS_PTRACE",
        "to read the memory maps of other users' programs",
    ),
    (
        40,
        "CAP_CHECKPOINT_RESTORE",
        "to read programs whose file was replaced, and the marks of programs",
    ),
    (
        2,
        "CAP_DAC_READ_SEARCH",
        "to read programs that only other users may read",
    ),
    (34, "CAP_SYSLOG", "to read the kernel's function names"),
];
const CAP_SYS_ADMIN: u32 = 21;

fn privileges() -> Check {
    let held = effective_capabilities();
    let has = |bit: u32| held >> bit & 1 == 1;
    let is_admin = has(CAP_SYS_ADMIN);
    let missing = |capabilities: &[(u32, &str, &str)], stands_for_them: bool| {
        let missing = capabilities.iter().filter(|(bit, ..)| !has(*bit));
        let missing = missing.filter(|_| !stands_for_them);
        let missing = missing.map(|(_, name, why)| format!("{name} ({why})"));
        missing.collect::<Vec<_>>()
    };
    let (needed, wanted) = (missing(&NEEDED, is_admin), missing(&WANTED, false));
    if needed.is_empty() && !wanted.is_empty() {
        let detail = format!("may load and attach programs; lacks {}", wanted.join(", "));
        return check(
            "privileges",
            Finding::Limited,
            detail,
            "run hangdog with sudo",
        );
    }
    if needed.is_empty() {
        return check(
            "privileges",
            Finding::Good,
            "may load and attach programs",
            "",
        );
    }
    let detail = format!("lacks {}", [needed, wanted].concat().join(", "));
    check("privileges", Finding::Bad, detail, "run hangdog with sudo")
}

fn namespace() -> Check {
    let name = "pid namespace";
    if counts_as_the_kernel() {
        return check(name, Finding::Good, "the machine's own", "");
    }
    let detail = "a container's own: host pids name other processes here";
    let fix = "run it on the host, or with docker run --pid=host (Kubernetes: hostPID: true)";
    check(name, Finding::Bad, detail, fix)
}

fn lockdown() -> Check {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = text.split(['[', ']']).nth(1).unwrap_or("none");
    if mode == "confidentiality" {
        let fix = "boot without lockdown=confidentiality: it forbids BPF to read kernel memory";
        return check("lockdown", Finding::Bad, mode, fix);
    }
    check("lockdown", Finding::Good, mode, "")
}

fn kernel_names() -> Check {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let known = symbols
        .lines()
        .take(100)
        .any(|line| !line.starts_with("0000000000000000"));
    if known {
        return check("kernel function names", Finding::Good, "/proc/kallsyms", "");
    }
    let fix = "run as root, or: sysctl kernel.kptr_restrict=1";
    check(
        "kernel function names",
        Finding::Limited,
        "/proc/kallsyms hides addresses",
        fix,
    )
}

/// What is not seen without a tracepoint.
const LOST_WITHOUT: [(&str, &str); 8] = [
    ("sched_", "threads cannot be tracked"),
    ("task_", "new threads and names are not seen"),
    (
        "irq_",
        "wakeups by devices are attributed to the interrupted thread",
    ),
    (
        "softirq_",
        "wakeups by softirqs are attributed to the interrupted thread",
    ),
    ("hrtimer_", "timeouts look like other interrupts"),
    ("block_", "disk requests are not seen"),
    ("sock_", "sends are not matched to receives"),
    ("", "some detail is not seen"),
];

fn tracepoints() -> Vec<Check> {
    let found = match session::tracepoints() {
        Ok(found) => found,
        Err(why) => return vec![check("tracepoints", Finding::Bad, why.to_string(), "")],
    };
    let missing: Vec<_> = found
        .iter()
        .filter(|(_, there)| !there)
        .map(|(name, _)| name)
        .collect();
    if missing.is_empty() {
        let detail = format!("all {} that hangdog uses", found.len());
        return vec![check("tracepoints", Finding::Good, detail, "")];
    }
    missing
        .into_iter()
        .map(|name| {
            let required = ["sched_switch", "sched_waking"].contains(&name.as_str());
            let finding = if required {
                Finding::Bad
            } else {
                Finding::Limited
            };
            let lost = LOST_WITHOUT
                .iter()
                .find(|(start, _)| name.starts_with(start));
            let lost = lost.map_or("", |(_, lost)| lost);
            let name = format!("tracepoint {name}");
            check(
                &name,
                finding,
                format!("this kernel does not have it: {lost}"),
                "",
            )
        })
        .collect()
}

fn sampling() -> Check {
    match crate::perf::sampling_clock(0, 1) {
        Ok(_) => check("sampling clock", Finding::Good, "cpu-clock", ""),
        Err(why) => {
            let fix = "run as root, or: sysctl kernel.perf_event_paranoid=-1";
            check("sampling clock", Finding::Limited, why.to_string(), fix)
        }
    }
}

fn counters() -> Check {
    let name = "hardware counters";
    let (attached, absent): (Vec<_>, Vec<_>) = Counters::probe(HARDWARE, session::first_cpu())
        .hooks()
        .partition(|hook| hook.attached);
    let names = |hooks: Vec<Hook>| {
        let names: Vec<_> = hooks.into_iter().map(|hook| hook.name).collect();
        names.join(", ")
    };
    let Some(first) = absent.first() else {
        return check(name, Finding::Good, names(attached), "");
    };
    let why = first.reason.clone();
    let more = format!("more with them: {}, for each thread", names(absent));
    check(name, Finding::Limited, why, &more)
}
