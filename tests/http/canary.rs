//! Everything that a process logs and measures, to look for keys in.
//!
//! Every key of this suite begins with [`KEY`], so that one search finds all.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How every key begins.
pub(crate) const KEY: &str = "canary-4111";

#[derive(Clone, Default)]
pub(crate) struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    metrics: Arc<Mutex<BTreeSet<String>>>,
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Starts to keep what this process logs and measures.
    pub(crate) fn start() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            // Libraries that print what goes over the wire at this level do so
            // by themselves; nothing here hands them a key to print.
            tracing_subscriber::fmt()
                .with_env_filter(EnvFilter::new("trace,h2=debug,hyper=debug"))
                .with_span_events(FmtSpan::FULL)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .init();
            metrics::set_global_recorder(log.clone()).ok();
            log
        })
    }

    /// Fails if a key is in anything that was kept.
    pub(crate) fn has_no_canary(&self) {
        let text = String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned();
        assert!(text.contains("idem"), "the log is kept");
        if let Some(line) = text.lines().find(|line| has_canary(line)) {
            panic!("a key is in the log: {line}");
        }
        let metrics = self.metrics.lock().unwrap();
        if let Some(metric) = metrics.iter().find(|metric| has_canary(metric)) {
            panic!("a key is in a metric: {metric}");
        }
    }

    fn note(&self, key: &Key) {
        self.metrics.lock().unwrap().insert(format!("{key:?}"));
    }
}

/// Whether a text has a key in it: as it is, as numbers, or in hexadecimal.
pub(crate) fn has_canary(text: &str) -> bool {
    let numbers = format!("{:?}", KEY.as_bytes());
    let numbers = numbers.trim_matches(['[', ']']);
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    [KEY, numbers, &hex].iter().any(|form| text.contains(form))
}

impl Recorder for Log {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.note(key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.note(key);
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.note(key);
        Histogram::noop()
    }
}
