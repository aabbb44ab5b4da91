//! Channels, trait objects, recursion and formatting.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

trait Step {
    fn take(&self, depth: u32) -> u64;
}

struct Down;

impl Step for Down {
    fn take(&self, depth: u32) -> u64 {
        let room = [u64::from(depth); 20];
        if depth == 0 {
            return 1;
        }
        let next: &dyn Step = std::hint::black_box(&Down);
        next.take(depth - 1) + std::hint::black_box(room)[3]
    }
}

fn main() {
    let (ask, asked) = channel::<u32>();
    let (answer, answers) = channel::<String>();
    std::thread::spawn(move || {
        for depth in asked {
            let _ = answer.send(format!("{depth} {}", Down.take(depth)));
        }
    });
    let mut known = BTreeMap::new();
    loop {
        for depth in 0..40 {
            let _ = ask.send(depth);
            known.insert(answers.recv().unwrap_or_default(), depth);
        }
    }
}
