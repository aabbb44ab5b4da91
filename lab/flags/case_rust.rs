//! The same as cases.c of an AtomicBool of Rust: case_rust DELAY_MS.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static DONE: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn poll_done() {
    while !DONE.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn main() {
    let delay: u64 = std::env::args().nth(1).and_then(|it| it.parse().ok()).expect("DELAY_MS");
    let pid = std::process::id();
    println!(
        "{{\"pid\": {pid}, \"tid\": {pid}, \"waiter\": \"case_rust\", \"symbol\": \"DONE\", \
         \"address\": \"{:p}\", \"size\": 1, \"writer\": \"setter\", \"writer_pid\": {pid}}}",
        &raw const DONE
    );
    std::io::stdout().flush().expect("stdout");
    let setter = std::thread::Builder::new().name("setter".into());
    let _thread = setter.spawn(move || {
        std::thread::sleep(Duration::from_millis(delay));
        DONE.store(true, Ordering::Release);
        // Instant is CLOCK_MONOTONIC, and does not tell it; /proc/uptime does to 10 ms.
        let up = std::fs::read_to_string("/proc/uptime").expect("/proc");
        let seconds: f64 = up.split(' ').next().and_then(|it| it.parse().ok()).expect("seconds");
        println!("{{\"set_ns\": {}}}", (seconds * 1e9) as u64);
        loop {
            std::thread::park();
        }
    });
    poll_done();
    loop {
        std::thread::park();
    }
}
