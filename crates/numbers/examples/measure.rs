//! Prints figures as they are measured: `measure [--quick] ID...`, files in the working directory.

use hangdog_numbers::{Setting, measure};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut only: Vec<String> = std::env::args().skip(1).collect();
    let quick = only.iter().any(|word| word == "--quick");
    only.retain(|word| word != "--quick");
    let setting = Setting {
        dir: ".".into(),
        quick,
        only,
    };
    let report = measure(&setting, || false, |_| {})?;
    println!(
        "{:28} {:>10} {:>12} {:>12} {:>12} {:>12} {:>6}",
        "id", "at", "best", "p10", "median", "p90", "n"
    );
    for figure in &report.figures {
        let spread = &figure.spread;
        println!(
            "{:28} {:>10} {:>12.2} {:>12.2} {:>12.2} {:>12.2} {:>6} {}",
            figure.id,
            figure.at.map(|at| at.to_string()).unwrap_or_default(),
            spread.best,
            spread.low,
            spread.median,
            spread.high,
            spread.samples,
            figure.disturbed.as_deref().unwrap_or_default()
        );
    }
    for step in &report.steps {
        println!(
            "{} {:?} (said {:?}): {:.2} ns",
            step.name, step.bytes, step.said_bytes, step.latency.median
        );
    }
    for method in &report.methods {
        if let Some(reason) = &method.not_tried {
            println!("not tried: {}: {reason}", method.id);
        }
    }
    println!("took {:.1} s; {:?}", report.took_s, report.noise);
    Ok(())
}
