//! A recorder of this process's metrics, that keeps every one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// A name, and labels in order.
pub(crate) type Series = (String, Vec<(String, String)>);

/// What was recorded of each series: a count, or a gauge's bits.
type Kept<T> = Arc<Mutex<BTreeMap<Series, Arc<T>>>>;

/// What each metric is said to be.
type Descriptions = BTreeMap<String, (Option<Unit>, String)>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Recorded {
    counters: Kept<AtomicU64>,
    gauges: Kept<AtomicU64>,
    histograms: Kept<Samples>,
    described: Arc<Mutex<Descriptions>>,
}

#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<Vec<f64>>);

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn series(key: &Key) -> Series {
    let label = |label: &metrics::Label| (label.key().to_owned(), label.value().to_owned());
    let mut labels: Vec<_> = key.labels().map(label).collect();
    labels.sort();
    (key.name().to_owned(), labels)
}

fn of<T: Default>(kept: &Kept<T>, key: &Key) -> Arc<T> {
    let mut kept = kept.lock().unwrap();
    Arc::clone(kept.entry(series(key)).or_default())
}

impl Recorded {
    /// Starts to keep what this process measures, with the first test that asks.
    pub(crate) fn start() -> &'static Self {
        static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
            let recorded = Recorded::default();
            metrics::set_global_recorder(recorded.clone()).unwrap();
            recorded
        });
        &RECORDED
    }

    /// A copy of the counters as they are now.
    pub(crate) fn frozen(&self) -> Self {
        let copied = |(series, count)| (series, Arc::new(AtomicU64::new(count)));
        Self {
            counters: Arc::new(Mutex::new(
                self.counters().into_iter().map(copied).collect(),
            )),
            ..Self::default()
        }
    }

    /// Every counter, by its series.
    pub(crate) fn counters(&self) -> BTreeMap<Series, u64> {
        let counters = self.counters.lock().unwrap();
        let read = |(series, count): (&Series, &Arc<AtomicU64>)| {
            (series.clone(), count.load(Ordering::SeqCst))
        };
        counters.iter().map(read).collect()
    }

    /// A counter's value, summed over the series that have these labels.
    pub(crate) fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let fits = |series: &Series| {
            let has = |&(label, value): &(&str, &str)| {
                series.1.contains(&(label.to_owned(), value.to_owned()))
            };
            series.0 == name && labels.iter().all(has)
        };
        let counters = self.counters();
        let fitting = counters.iter().filter(|(series, _)| fits(series));
        fitting.map(|(_, count)| count).sum()
    }

    /// A gauge without labels.
    pub(crate) fn gauge(&self, name: &str) -> f64 {
        let series = (name.to_owned(), Vec::new());
        let gauges = self.gauges.lock().unwrap();
        let bits = gauges
            .get(&series)
            .map_or(0, |it| it.load(Ordering::SeqCst));
        f64::from_bits(bits)
    }

    /// What a histogram was given, over all of its series.
    pub(crate) fn samples(&self, name: &str) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        let fitting = histograms.iter().filter(|((of, _), _)| of == name);
        fitting
            .flat_map(|(_, samples)| samples.0.lock().unwrap().clone())
            .collect()
    }

    /// Every series of every kind.
    pub(crate) fn series(&self) -> Vec<Series> {
        let counters = self.counters.lock().unwrap();
        let gauges = self.gauges.lock().unwrap();
        let histograms = self.histograms.lock().unwrap();
        let keys = counters.keys().chain(gauges.keys());
        keys.chain(histograms.keys()).cloned().collect()
    }

    pub(crate) fn described(&self) -> Descriptions {
        self.described.lock().unwrap().clone()
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>, text: &SharedString) {
        let mut described = self.described.lock().unwrap();
        described.insert(name.as_str().to_owned(), (unit, text.to_string()));
    }
}

impl Recorder for Recorded {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, unit, &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, unit, &text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, unit, &text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(of(&self.counters, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(of(&self.gauges, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(of(&self.histograms, key))
    }
}
