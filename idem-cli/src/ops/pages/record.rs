//! One record: where it stands and why, its life, and what was done by hand.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use idem::Error;
use idem::record::{Record, Standing, State as RecordState};
use idem::store::{Audited, Seen};
use serde::Deserialize;

use super::message::Message;
use super::{Frame, page, row};
use crate::ops::Ops;
use crate::ops::gather::since;
use crate::ops::time::Moment;
use crate::ops::words;

/// The record in an address.
#[derive(Debug, Deserialize)]
pub(in crate::ops) struct Named {
    pub(super) record: String,
}

#[derive(Debug, Deserialize)]
pub(in crate::ops) struct Wanted {
    settled: Option<String>,
}

/// Something that happened to a record, or will.
#[derive(Debug)]
struct Event {
    at_us: i64,
    at: Moment,
    what: String,
    /// What an operator wrote.
    why: String,
    class: &'static str,
}

/// Where a record stands, as every page about it shows it.
#[derive(Debug)]
pub(super) struct Stand {
    pub(super) slug: &'static str,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) why: &'static str,
    pub(super) since: Moment,
}

#[derive(Debug, Template)]
#[template(path = "record.html")]
struct RecordPage {
    frame: Frame,
    id: String,
    short: String,
    stand: Stand,
    operation: String,
    label: String,
    elements: Vec<String>,
    attempt: i32,
    takeovers: i32,
    fence: i64,
    scope: &'static str,
    /// Empty for an operation without versions.
    version: &'static str,
    /// The whole id, and its first digits.
    parent: Option<(String, String)>,
    answer: Option<String>,
    events: Vec<Event>,
    /// Whether it waits for somebody to find out.
    in_doubt: bool,
    /// Whether there is anything that could be changed by hand.
    can_settle: bool,
    told: &'static str,
    done: bool,
}

/// `GET /records/{record}`
pub(in crate::ops) async fn show(
    State(ops): State<Ops>,
    frame: Frame,
    Path(named): Path<Named>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let told = wanted.settled.unwrap_or_default();
    let looked = async {
        let Some(stood) = look(&ops, &named).await? else {
            return Ok(None);
        };
        let audit = ops.admin()?.record(stood.seen.record.id).audit().await?;
        Ok(Some((stood, audit)))
    };
    match looked.await {
        Ok(Some((stood, audit))) => page(StatusCode::OK, &shown(frame, &stood, &audit, &told)),
        Ok(None) => gone(frame).into_response(),
        Err(error) => frame.failed(&error),
    }
}

/// A record, and where it stood when it was looked at.
pub(super) struct Stood {
    pub(super) seen: Seen,
    /// None if it had expired.
    pub(super) standing: Option<Standing>,
}

pub(super) async fn look(ops: &Ops, named: &Named) -> Result<Option<Stood>, Error> {
    let Ok(id) = named.record.parse() else {
        return Ok(None);
    };
    let admin = ops.admin()?;
    let seen = admin.record(id).get().await?;
    Ok(seen.map(|seen| Stood {
        standing: admin.standing(&seen),
        seen,
    }))
}

pub(super) fn gone(frame: Frame) -> Message {
    Message {
        frame,
        status: StatusCode::NOT_FOUND,
        title: "There is no such record".to_owned(),
        text: "It may have expired and been swept since, or be in another store. The next call of its key runs as if it had never been used.".to_owned(),
        detail: String::new(),
    }
}

impl Stand {
    pub(super) fn new(Stood { seen, standing }: &Stood) -> Self {
        let Some(standing) = *standing else {
            return Self {
                slug: "expired",
                name: "Expired",
                meaning: "It counts as absent: the next call of its key runs as if it had never been used. The next sweep deletes it.",
                why: "",
                since: Moment::new(seen.record.expires_us.unwrap_or(seen.now_us), seen.now_us),
            };
        };
        Self {
            slug: words::slug(standing),
            name: if standing == Standing::Tombstone {
                "Tombstone"
            } else {
                words::name(standing)
            },
            meaning: words::meaning(standing),
            why: words::why(&seen.record, standing),
            since: Moment::new(since(&seen.record, standing), seen.now_us),
        }
    }
}

fn shown(frame: Frame, stood: &Stood, audit: &[Audited], told: &str) -> RecordPage {
    let Stood { seen, standing } = stood;
    let record = &seen.record;
    RecordPage {
        frame,
        id: record.id.to_hex(),
        short: record.id.to_string(),
        stand: Stand::new(stood),
        operation: record.operation.clone(),
        label: row::label(record),
        elements: record
            .elements
            .iter()
            .map(|element| element.label.clone())
            .collect(),
        attempt: record.attempt,
        takeovers: record.takeovers,
        fence: record.fence,
        scope: if record.scope.is_some() {
            "of a tenant or caller"
        } else {
            "none"
        },
        version: if record.version_running.is_some() || record.version_recorded.is_some() {
            "applied in order"
        } else {
            ""
        },
        parent: record
            .parent
            .map(|parent| (parent.to_hex(), parent.to_string())),
        answer: answer(record),
        events: events(seen, audit),
        in_doubt: standing
            .is_some_and(|standing| matches!(standing, Standing::Unknown | Standing::Lapsed)),
        can_settle: standing.is_some_and(|standing| standing != Standing::InProgress),
        told: tell(told, audit),
        done: told == "done" && !audit.is_empty(),
    }
}

/// What is said of an answer: everything but the answer.
fn answer(record: &Record) -> Option<String> {
    let answer = record.answer.as_ref()?;
    let kind = if answer.failed {
        "an error"
    } else {
        "a success"
    };
    let intact = if answer.is_intact(&record.id) {
        ""
    } else {
        ", damaged"
    };
    let length = answer.bytes.len();
    Some(format!(
        "{kind}, {length} bytes, written by the codec {}{intact}",
        answer.codec
    ))
}

fn events(seen: &Seen, audit: &[Audited]) -> Vec<Event> {
    let record = &seen.record;
    let event = |at_us, what: String, class| Event {
        at_us,
        at: Moment::new(at_us, seen.now_us),
        what,
        why: String::new(),
        class,
    };
    let attempt = record.attempt;
    let mut events = vec![event(
        record.started_us,
        format!("attempt {attempt} reserved the key"),
        "in-progress",
    )];
    let mut add = |at_us: Option<i64>, what: &str, class| {
        events.extend(at_us.map(|at_us| event(at_us, what.to_owned(), class)));
    };
    let ended = match record.state {
        RecordState::Completed => ("its answer was recorded", "completed"),
        RecordState::Released => ("it was released: nothing happened", "released"),
        RecordState::Tombstone => ("it ended, and its answer cannot be given back", "tombstone"),
        RecordState::Unknown | RecordState::InProgress => {
            ("the attempt ended without an answer", "unknown")
        }
    };
    let by_hand_then = audit
        .iter()
        .any(|entry| Some(entry.at_us) == record.finished_us);
    if record.since_us != record.finished_us && !by_hand_then {
        add(record.finished_us, ended.0, ended.1);
    }
    add(record.since_us, "its outcome became unknown", "unknown");
    let lease = if record
        .lease_until_us
        .is_some_and(|until| until < seen.now_us)
    {
        ("its lease ended, and was not renewed", "lapsed")
    } else {
        ("its lease ends, unless it is renewed", "in-progress")
    };
    add(record.lease_until_us, lease.0, lease.1);
    add(
        record.not_before_us,
        "a recovery may ask again",
        "in-progress",
    );
    let expires = if record.is_expired(seen.now_us) {
        "it expired: the key counts as unused"
    } else {
        "it expires: the key counts as unused then"
    };
    add(record.expires_us, expires, "expired");
    events.extend(audit.iter().map(|entry| by_hand(entry, seen.now_us)));
    events.sort_by_key(|event| event.at_us);
    events
}

fn by_hand(entry: &Audited, now_us: i64) -> Event {
    let forced = if entry.forced { " and by force" } else { "" };
    Event {
        at_us: entry.at_us,
        at: Moment::new(entry.at_us, now_us),
        what: format!(
            "{} settled it by hand{forced}: {}. It was {} before.",
            entry.note.by(),
            words::became(entry.became),
            words::state(entry.was),
        ),
        why: entry.note.why().to_owned(),
        class: "by-hand",
    }
}

/// What became of the form that was sent just now.
fn tell(settled: &str, audit: &[Audited]) -> &'static str {
    match settled {
        // The address alone is no proof.
        "done" if !audit.is_empty() => "Settled. It stands as follows now.",
        "changed" => {
            "Nothing was changed: the record has changed since the form was opened. Look at it again before you settle it."
        }
        "running" => {
            "Nothing was changed: its attempt still holds its lease, or lost it only now. Wait until it ends or lapses. If it never will, `idem` on the command line can settle it by force."
        }
        "ended" => {
            "Nothing was changed: the record has its answer, or is released, and needs no settling. It can only be forgotten."
        }
        _ => "",
    }
}
