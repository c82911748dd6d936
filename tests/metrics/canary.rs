//! Keys, scopes, payloads, labels, answers, texts of errors and panics, and the
//! secret are in nothing that the library traces, measures or shows.

use idem::store::{MemoryStore, SqliteStore, Store};
use idem::{Engine, telemetry};

use crate::alone;
use crate::documents::is_listed;
use crate::drive::{
    ANSWER, KEY, LABEL, PANIC, PAYLOAD, SCOPE, SECRET, Shown, TEXT, everything, secret,
};
use crate::listener::Listener;
use crate::recorder::Recorded;

/// Every form in which a canary may be in a text: as it is, as numbers, and in
/// hexadecimal of either case.
fn forms(canary: &str) -> [String; 4] {
    let numbers = format!("{:?}", canary.as_bytes());
    let hex: String = canary.bytes().map(|byte| format!("{byte:02x}")).collect();
    [
        canary.to_owned(),
        numbers.trim_matches(['[', ']']).to_owned(),
        hex.to_uppercase(),
        hex,
    ]
}

fn canary_in(text: &str) -> Option<&'static str> {
    [KEY, SCOPE, PAYLOAD, LABEL, ANSWER, TEXT, SECRET, PANIC]
        .into_iter()
        .find(|canary| forms(canary).iter().any(|form| text.contains(form)))
}

/// Everything that was traced, measured and shown.
fn all(listener: &Listener, recorded: &Recorded, shown: Shown) -> Vec<String> {
    let mut all = shown.0;
    all.extend(listener.take());
    all.extend(recorded.series().iter().map(|series| format!("{series:?}")));
    all
}

fn leaks(all: &[String]) -> Vec<&String> {
    all.iter()
        .filter(|line| canary_in(line).is_some())
        .collect()
}

async fn build(store: impl Store) -> Engine {
    let builder = Engine::builder(store).answer_limit(1_500).secret(secret());
    assert_eq!(canary_in(&format!("{builder:?}")), None);
    builder.build().await.unwrap()
}

#[tokio::test]
async fn no_canary_is_traced_measured_or_shown() {
    let _turn = alone().await;
    let (listener, recorded) = (Listener::start(), Recorded::start());
    listener.take();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut shown = everything(&build(MemoryStore::new()).await, None).await;
    let sqlite = build(SqliteStore::open(&path).await.unwrap()).await;
    shown.0.extend(everything(&sqlite, Some(&path)).await.0);

    let all = all(listener, recorded, shown);
    if let Some(leak) = leaks(&all).first() {
        // Its beginning tells where it is.
        panic!("{:?} is in: {leak:.300}", canary_in(leak));
    }
    recorded.series().iter().for_each(is_listed);
    // It was heard, from each way in, and in every form.
    for operation in [
        "annotated",
        "plain",
        "inbox",
        "http",
        "handler",
        "transaction",
    ] {
        let span = format!("span DEBUG {} {}:", telemetry::TARGET, telemetry::SPAN);
        let field = format!("operation=canary.{operation}");
        assert!(
            all.iter()
                .any(|line| line.starts_with(&span) && line.contains(&field)),
            "no span of {operation}"
        );
        let series = format!(r#"("operation", "canary.{operation}")"#);
        assert!(all.iter().any(|line| line.contains(&series)), "{series}");
    }
    for part in [
        "event WARN",
        "event DEBUG",
        "outcome=mismatch",
        "outcome=tombstone",
        "record=",
    ] {
        assert!(all.iter().any(|line| line.contains(part)), "no {part}");
    }
}

#[tokio::test]
async fn a_canary_that_is_leaked_on_purpose_is_found() {
    let _turn = alone().await;
    let (listener, recorded) = (Listener::start(), Recorded::start());
    let hex: String = ANSWER.bytes().map(|byte| format!("{byte:02x}")).collect();
    let found = |what: &str| {
        let all = all(listener, recorded, Shown::default());
        assert!(!leaks(&all).is_empty(), "{what} is not found");
    };
    listener.take();
    tracing::trace!(key = KEY, "a field");
    found("a field of an event");
    tracing::trace!("the key {KEY}");
    found("a message");
    let span = tracing::trace_span!("span", scope = SCOPE, later = tracing::field::Empty);
    found("a field of a span");
    span.record("later", TEXT);
    found("a field that is recorded later");
    tracing::trace!(bytes = ?PAYLOAD.as_bytes(), "numbers");
    found("a value as numbers");
    tracing::trace!(answer = hex, "hexadecimal");
    found("a value in hexadecimal");
    assert_eq!(listener.take(), Vec::<String>::new());

    let mut shown = Shown::default();
    shown.debug(&LABEL);
    assert_eq!(leaks(&shown.0).len(), 1);
    assert_eq!(
        leaks(&[format!("{:?}", ("name", vec![("label", KEY)]))]).len(),
        1
    );
}
