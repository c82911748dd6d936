//! What is written about metrics names what there is, and all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use idem::Engine;
use idem::store::MemoryStore;
use idem::telemetry::names::{ENDS, Kind, LABELS, METRICS, Metric, OUTCOMES, STEPS, Unit};

use crate::recorder::{Recorded, Series};
use crate::{DAY, alone};

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

fn names() -> BTreeSet<&'static str> {
    METRICS.iter().map(|metric| metric.name).collect()
}

/// The metric of a name in an expression, where a histogram has three.
fn metric(name: &str) -> &'static Metric {
    let is = |metric: &&Metric| {
        let rest = name.strip_prefix(metric.name);
        match metric.kind {
            Kind::Histogram => matches!(rest, Some("_bucket" | "_sum" | "_count")),
            Kind::Counter | Kind::Gauge => rest == Some(""),
        }
    };
    let found = METRICS.iter().find(is);
    found.unwrap_or_else(|| panic!("there is no metric {name}"))
}

fn values(label: &str) -> Option<&'static [&'static str]> {
    let known = LABELS.iter().find(|known| known.name == label);
    known
        .unwrap_or_else(|| panic!("there is no label {label}"))
        .values
}

/// Every series selector of an expression: a name, and what is in its braces.
fn selectors(expression: &str) -> Vec<(&str, &str)> {
    let starts = expression.match_indices("idem_").map(|(at, _)| at);
    let selector = |at: usize| {
        let rest = &expression[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        (name, inside.map_or("", |(inside, _)| inside))
    };
    starts.map(selector).collect()
}

/// The labels of every `by (…)`.
fn grouped(expression: &str) -> Vec<&str> {
    let groups = expression.split("by (").skip(1);
    let inside = groups.filter_map(|rest| rest.split_once(')'));
    inside.flat_map(|(labels, _)| labels.split(", ")).collect()
}

/// Those that Prometheus adds.
const ADDED: [&str; 2] = ["job", "le"];

/// Checks an expression, and returns the metrics in it.
fn check(expression: &str) -> BTreeSet<&'static str> {
    let mut named = BTreeSet::new();
    let mut labels = BTreeSet::<&str>::new();
    for (name, matchers) in selectors(expression) {
        let metric = metric(name);
        named.insert(metric.name);
        labels.extend(metric.labels);
        for matcher in matchers.split(',').filter(|matcher| !matcher.is_empty()) {
            let (label, value) = matcher.split_once(['=', '!']).unwrap();
            if ADDED.contains(&label) {
                continue;
            }
            assert!(
                metric.labels.contains(&label),
                "{name} has no label {label}"
            );
            let value = value
                .trim_start_matches(['=', '~', '"'])
                .trim_end_matches('"');
            for value in value.split('|').filter(|value| !value.starts_with('$')) {
                if let Some(known) = values(label) {
                    assert!(
                        known.contains(&value),
                        "{label} is never {value}: {expression}"
                    );
                }
            }
        }
    }
    assert!(!named.is_empty(), "no metric in: {expression}");
    for label in grouped(expression) {
        let there = ADDED.contains(&label) || labels.contains(label);
        assert!(there, "no metric has {label} in: {expression}");
    }
    named
}

/// Every text under this name, however deep.
fn texts(value: &serde_json::Value, name: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                if let (true, Some(text)) = (field == name, value.as_str()) {
                    found.push(text.to_owned());
                }
                texts(value, name, found);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|it| texts(it, name, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let dashboard = serde_json::from_str(&document("grafana-dashboard.json")).unwrap();
    let (mut expressions, mut queries, mut legends) = (Vec::new(), Vec::new(), Vec::new());
    texts(&dashboard, "expr", &mut expressions);
    texts(&dashboard, "definition", &mut queries);
    texts(&dashboard, "legendFormat", &mut legends);
    let shown: BTreeSet<_> = expressions.iter().flat_map(|it| check(it)).collect();
    assert_eq!(shown, names());
    assert!(!queries.is_empty());
    for query in queries {
        let inside = query.strip_prefix("label_values(").unwrap();
        check(inside.split([',', ')']).next().unwrap());
    }
    for legend in legends {
        for (_, rest) in legend
            .match_indices("{{")
            .map(|(at, _)| legend.split_at(at + 2))
        {
            values(rest.split_once("}}").unwrap().0);
        }
    }
}

#[test]
fn alerts_are_about_metrics_that_exist() {
    let alerts = document("alerts.yaml");
    let expressions = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let named: BTreeSet<_> = expressions.flat_map(check).collect();
    assert_eq!(
        alerts.matches("- alert: ").count(),
        alerts.matches("expr: ").count()
    );
    for needed in [
        "idem_unknown",
        "idem_in_progress_oldest_seconds",
        "idem_renewal_failures_total",
        "idem_store_errors_total",
        "idem_leases_lost_total",
    ] {
        assert!(named.contains(needed), "no alert is about {needed}");
    }
}

#[tokio::test]
async fn what_alerts_wait_for_begins_at_zero() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let engine = Engine::builder(MemoryStore::new()).build().await.unwrap();
    let call = engine.call("documents.zero", &1, DAY);
    call.run(async { Ok::<_, idem::Error>(1) }).await.unwrap();
    let series = recorded.series();
    let alerts = document("alerts.yaml");
    let expressions = alerts.lines().filter_map(|line| line.split_once("expr: "));
    let mut begun = 0;
    for (name, matchers) in expressions.flat_map(|(_, expression)| selectors(expression)) {
        // The first event of such a series must be seen.
        if !alerts.contains(&format!("increase({name}")) {
            continue;
        }
        let value = matchers.split_once(['=']).map(|(_, value)| value);
        let values = value.unwrap_or("").trim_matches(['~', '"']).split('|');
        for value in values {
            begun += 1;
            let fits = |(of, labels): &Series| {
                let ours =
                    |(label, of): &(String, String)| label != "operation" || of == "documents.zero";
                of == name
                    && labels.iter().all(ours)
                    && (value.is_empty() || labels.iter().any(|(_, found)| found == value))
            };
            assert!(series.iter().any(fits), "{name} {value} has no zero");
        }
    }
    assert!(begun >= 9, "{begun}");
}

/// The cells of every table row whose first one is code.
fn rows(document: &str) -> Vec<Vec<String>> {
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let inside = rows.filter_map(|row| row.strip_prefix('|')?.strip_suffix('|'));
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect();
    inside.map(cells).collect()
}

#[test]
fn the_page_describes_every_metric_and_no_other() {
    let page = document("metrics.md");
    let unquoted = |text: &str| text.replace('`', "");
    let described: BTreeMap<_, _> = rows(&page)
        .into_iter()
        .filter(|cells| cells[0].starts_with("`idem_"))
        .map(|cells| (unquoted(&cells[0]), cells))
        .collect();
    let found: BTreeSet<_> = described.keys().map(String::as_str).collect();
    assert_eq!(found, names());
    for metric in METRICS {
        let cells = &described[metric.name];
        let kind = format!("{:?}", metric.kind).to_lowercase();
        assert_eq!(cells[1], kind, "{}", metric.name);
        assert_eq!(
            unquoted(&cells[2]),
            metric.labels.join(", "),
            "{}",
            metric.name
        );
        let seconds = cells[3] == "seconds";
        assert_eq!(seconds, metric.unit == Unit::Seconds, "{}", metric.name);
        assert_eq!(cells.len(), 6, "{}", metric.name);
        for cell in [3, 4, 5] {
            assert!(!cells[cell].is_empty(), "{}: a cell is empty", metric.name);
        }
    }
}

#[test]
fn the_page_describes_every_value_of_a_label_and_no_other() {
    let page = document("metrics.md");
    for (label, known) in [("outcome", OUTCOMES), ("end", ENDS), ("step", STEPS)]
        .into_iter()
        .chain([("kind", values("kind").unwrap())])
    {
        let (_, table) = page.split_once(&format!("\n| `{label}` |")).unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        let described: Vec<_> = rows(table)
            .into_iter()
            .map(|cells| cells[0].replace('`', ""))
            .collect();
        assert_eq!(described, known, "{label}");
    }
}

#[test]
fn other_pages_name_metrics_that_exist() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("`idem_") {
            let name = text[at + 1..].split(['`', '{']).next().unwrap();
            let known = METRICS.iter().any(|metric| metric.name == name);
            // Crates, and what the names of tables begin with.
            let of_code = ["idem_", "idem_cli", "idem_macros", "idem_runtime"].contains(&name);
            assert!(known || of_code, "{} names {name}", path.display());
        }
    }
}

/// Fails if a series has a name, label or value that is not in the list.
pub(crate) fn is_listed((name, labels): &Series) {
    let metric = METRICS.iter().find(|metric| metric.name == name);
    let metric = metric.unwrap_or_else(|| panic!("{name} is not in the list"));
    let found: BTreeSet<_> = labels.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(found, metric.labels.iter().copied().collect(), "{name}");
    for (label, value) in labels {
        if let Some(known) = values(label) {
            assert!(known.contains(&value.as_str()), "{name}: {label}={value}");
        }
    }
}

#[tokio::test]
async fn every_metric_is_described_to_the_recorder() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    Engine::builder(MemoryStore::new()).build().await.unwrap();
    let described = recorded.described();
    let found: BTreeSet<_> = described.keys().map(String::as_str).collect();
    assert_eq!(found, names());
    for metric in METRICS {
        let (unit, text) = &described[metric.name];
        let expected = match metric.unit {
            Unit::Count => metrics::Unit::Count,
            Unit::Seconds => metrics::Unit::Seconds,
        };
        assert_eq!((*unit, text.as_str()), (Some(expected), metric.meaning));
    }
}
