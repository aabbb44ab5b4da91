//! Spans of `tracing` become regions, and its events points.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tracing_core::span::{Attributes, Id};
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::{Code, begin, end, is_recorded, point};

/// A layer that marks each span as a region, from where it is made until it is closed, on whatever
/// threads; its name is the span's, its first argument the span's id. Events are points, named by their
/// level and target.
///
/// ```no_run
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(hangdog_mark::MarkLayer::default());
/// tracing::subscriber::set_global_default(subscriber).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct MarkLayer {
    /// By where the metadata lie, which is for good.
    codes: RwLock<HashMap<usize, Code>>,
}

impl MarkLayer {
    fn code(&self, metadata: &'static Metadata<'static>) -> Code {
        let key = std::ptr::from_ref(metadata) as usize;
        let known = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&code) = known.get(&key) {
            return code;
        }
        drop(known);
        let code = match metadata.is_span() {
            true => Code::named(metadata.name()).by_argument(),
            false => Code::named(&format!("{} {}", metadata.level(), metadata.target())),
        };
        let mut known = self.codes.write().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_insert(code)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for MarkLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        if is_recorded() {
            begin(self.code(attributes.metadata()), &[id.into_u64() as i64]);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if is_recorded()
            && let Some(span) = context.span(&id)
        {
            end(self.code(span.metadata()), &[id.into_u64() as i64]);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if is_recorded() {
            point(self.code(event.metadata()), &[]);
        }
    }
}
