//! A Rust program that hangs for good: the main thread wants a mutex that a thread holds while it
//! waits for a message, and the thread that should send it sleeps.
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::thread;

fn start(name: &str, work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.into()).spawn(work).unwrap();
}

fn main() {
    let total = Arc::new(Mutex::new(0));
    let held = Arc::new(Barrier::new(2));
    let (sender, receiver) = mpsc::channel();
    start("sender", move || loop {
        thread::park();
        if sender.send(1).is_err() {
            break;
        }
    });
    let (shared, holds) = (total.clone(), held.clone());
    start("receiver", move || {
        let mut total = shared.lock().unwrap();
        holds.wait();
        *total += receiver.recv().unwrap();
    });
    held.wait();
    println!("{}", total.lock().unwrap());
}
