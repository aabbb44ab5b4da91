//! A program that uses `tracing` runs with the layer as without it.
#![cfg(feature = "tracing")]

use hangdog_mark::MarkLayer;
use tracing_subscriber::layer::SubscriberExt;

/// Spans that nest, end on another thread, and events: nothing that the program sees changes. (What is
/// marked, the tests of the crate and of the recorder look at.)
#[test]
fn spans_and_events() {
    let subscriber = tracing_subscriber::registry().with(MarkLayer::default());
    let sum = tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("request");
        let inner = span.in_scope(|| {
            tracing::info!("inside");
            tracing::info_span!("step").in_scope(|| 40)
        });
        inner
            + std::thread::spawn(move || span.in_scope(|| 2))
                .join()
                .unwrap()
    });
    assert_eq!(sum, 42);
}
