//! Settling a record: the form, and what becomes of it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Form};
use idem::admin::Settled;
use idem::record::{self, Record, Standing};
use idem::{Error, RecordId};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::record::{Named, Stand, Stood, gone, look};
use super::sign_in::see;
use super::{Frame, page, refuse_form, row};
use crate::ops::Ops;
use crate::ops::guard::{Base, Visitor};

/// What an operator sends.
#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::ops) struct Asked {
    #[serde(default)]
    form_token: String,
    /// The record's fence and state when the form was opened.
    #[serde(default)]
    fence: String,
    /// `done`, `not-done` or `forget`.
    #[serde(default, rename = "as")]
    becomes: String,
    /// What the function would have returned inside of `Ok`, in JSON.
    #[serde(default)]
    answer: String,
    #[serde(default)]
    by: String,
    #[serde(default)]
    why: String,
    /// Whether forgetting is meant.
    #[serde(default)]
    sure: String,
}

#[derive(Debug, Template)]
#[template(path = "settle.html")]
struct SettlePage {
    frame: Frame,
    id: String,
    short: String,
    stand: Stand,
    operation: String,
    label: String,
    attempt: i32,
    elements: Vec<String>,
    /// Whether it can be resolved, not only forgotten.
    open: bool,
    /// Whether it can be released.
    doubtful: bool,
    asked: Asked,
    problems: Vec<String>,
}

/// `GET /records/{record}/settle`
pub(in crate::ops) async fn ask(
    State(ops): State<Ops>,
    frame: Frame,
    Path(named): Path<Named>,
) -> Response {
    match look(&ops, &named).await {
        Ok(Some(stood)) => {
            let asked = Asked {
                fence: as_seen(&stood.seen.record),
                ..Asked::default()
            };
            form(frame, &stood, asked, Vec::new())
        }
        Ok(None) => gone(frame).into_response(),
        Err(error) => frame.failed(&error),
    }
}

/// `POST /records/{record}/settle`
pub(in crate::ops) async fn settle(
    State(ops): State<Ops>,
    frame: Frame,
    Extension(visitor): Extension<Visitor>,
    Path(named): Path<Named>,
    Form(asked): Form<Asked>,
) -> Response {
    if let Some(refused) = refuse_form(&ops, &frame, &visitor, &asked.form_token) {
        return refused;
    }
    let stood = match look(&ops, &named).await {
        Ok(Some(stood)) => stood,
        Ok(None) => return gone(frame).into_response(),
        Err(error) => return frame.failed(&error),
    };
    let mut problems = problems(&asked);
    if asked.becomes == "not-done" && stood.standing == Some(Standing::Tombstone) {
        problems.push(
            "Its work is done, only its answer is lost: record one, or forget it.".to_owned(),
        );
    }
    if !problems.is_empty() {
        return form(frame, &stood, asked, problems);
    }
    let id = stood.seen.record.id;
    let base = Base(frame.base.clone());
    let to = |word: &str| {
        see(
            &base,
            &format!("/records/{}?settled={word}", id.to_hex()),
            None,
        )
    };
    match carry_out(&ops, id, &asked).await {
        Ok(Settled::Done) => to("done"),
        Ok(Settled::Running) => to("running"),
        Ok(Settled::Ended) => to("ended"),
        Ok(Settled::Gone) => gone(frame).into_response(),
        Ok(_) => to("changed"),
        Err(Error::Misuse { reason }) => form(frame, &stood, asked, vec![reason]),
        Err(error) => frame.failed(&error),
    }
}

async fn carry_out(ops: &Ops, id: RecordId, asked: &Asked) -> Result<Settled, Error> {
    let Some((fence, state)) = seen(&asked.fence) else {
        return Ok(Settled::Changed);
    };
    let record = ops.admin()?.record(id).seen(fence, state);
    match asked.becomes.as_str() {
        "done" => {
            record
                .resolve_json(&asked.answer, &asked.by, &asked.why)
                .await
        }
        "not-done" => record.release(&asked.by, &asked.why).await,
        _ => record.forget(&asked.by, &asked.why).await,
    }
}

/// What the form carries of the record that it was opened for.
fn as_seen(record: &Record) -> String {
    format!("{}.{}", record.fence, record.state.code())
}

fn seen(carried: &str) -> Option<(i64, record::State)> {
    let (fence, state) = carried.split_once('.')?;
    let state = record::State::from_code(state.parse().ok()?)?;
    Some((fence.parse().ok()?, state))
}

/// What is missing or wrong in a form, before the store is asked.
fn problems(asked: &Asked) -> Vec<String> {
    let mut problems = Vec::new();
    match asked.becomes.as_str() {
        "done" => {
            if let Err(error) = serde_json::from_str::<IgnoredAny>(&asked.answer) {
                // The message of the parser would be enough, but it may quote the answer.
                let (line, column) = (error.line(), error.column());
                problems.push(format!(
                    "The answer is not JSON: it cannot be read from line {line}, column {column} on. A text needs its quotes; where the function returns nothing, write null."
                ));
            }
        }
        "not-done" => {}
        "forget" if asked.sure == "yes" => {}
        "forget" => problems
            .push("Forgetting was not confirmed: say that the key may run again.".to_owned()),
        _ => problems.push("Choose what became of it.".to_owned()),
    }
    if asked.by.trim().is_empty() {
        problems.push("Say who you are.".to_owned());
    }
    if asked.why.trim().is_empty() {
        problems.push("Say why, for those who look at this later.".to_owned());
    }
    problems
}

fn form(frame: Frame, stood: &Stood, asked: Asked, problems: Vec<String>) -> Response {
    let record = &stood.seen.record;
    let status = if problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let doubtful = matches!(stood.standing, Some(Standing::Unknown | Standing::Lapsed));
    let open = doubtful || stood.standing == Some(Standing::Tombstone);
    let form = SettlePage {
        frame,
        id: record.id.to_hex(),
        short: record.id.to_string(),
        stand: Stand::new(stood),
        operation: record.operation.clone(),
        label: row::label(record),
        attempt: record.attempt,
        elements: record
            .elements
            .iter()
            .map(|element| element.label.clone())
            .collect(),
        open,
        doubtful,
        asked,
        problems,
    };
    page(status, &form)
}
