//! Everything that this process traces, at every level: each field of each span
//! and event, with its name.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Record};
use tracing::{Event, Id, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

#[derive(Debug, Clone, Default)]
pub(crate) struct Listener(Arc<Mutex<Vec<String>>>);

/// One line of fields.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // As it is: quotes and escapes would hide a canary.
        write!(self.0, " {}={value}", field.name()).unwrap();
    }
}

impl Listener {
    /// Starts to listen, with the first test that asks.
    pub(crate) fn start() -> &'static Self {
        static LISTENER: LazyLock<Listener> = LazyLock::new(|| {
            let listener = Listener::default();
            let all = tracing_subscriber::registry().with(listener.clone());
            tracing::subscriber::set_global_default(all).unwrap();
            listener
        });
        // Another test may have noted, for all, that nobody listens.
        let listener: &'static Self = &LISTENER;
        tracing::callsite::rebuild_interest_cache();
        listener
    }

    /// Takes what was said since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn add(&self, line: Line) {
        self.0.lock().unwrap().push(line.0);
    }
}

fn begun(what: &str, metadata: &Metadata<'_>) -> Line {
    let (level, target, name) = (metadata.level(), metadata.target(), metadata.name());
    Line(format!("{what} {level} {target} {name}:"))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut line = begun("span", span.metadata());
        span.record(&mut line);
        self.add(line);
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut line = Line("recorded:".to_owned());
        values.record(&mut line);
        self.add(line);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = begun("event", event.metadata());
        event.record(&mut line);
        if let Some(span) = context.event_span(event) {
            write!(line.0, " within {}", span.name()).unwrap();
        }
        self.add(line);
    }
}
