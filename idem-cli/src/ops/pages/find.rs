//! From the digits that a log shows to the record.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use idem::admin::Found;
use serde::Deserialize;

use super::sign_in::see;
use super::{Frame, page};
use crate::ops::Ops;
use crate::ops::guard::Base;

#[derive(Debug, Deserialize)]
pub(in crate::ops) struct Wanted {
    id: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "find.html")]
struct Find {
    frame: Frame,
    digits: String,
    problem: &'static str,
    many: Vec<String>,
}

/// `GET /find`
pub(in crate::ops) async fn show(
    State(ops): State<Ops>,
    frame: Frame,
    Query(wanted): Query<Wanted>,
) -> Response {
    let digits = wanted.id.unwrap_or_default().trim().to_ascii_lowercase();
    let form = |frame, status, problem, many| {
        let digits = digits.clone();
        page(
            status,
            &Find {
                frame,
                digits,
                problem,
                many,
            },
        )
    };
    if digits.is_empty() {
        return form(frame, StatusCode::OK, "", Vec::new());
    }
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !(4..=64).contains(&digits.len()) {
        let problem = "An id begins with 4 to 64 hexadecimal digits, as logs and errors show it.";
        return form(frame, StatusCode::UNPROCESSABLE_ENTITY, problem, Vec::new());
    }
    let found = match ops.admin() {
        Ok(admin) => admin.find(&digits).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(Found::One(seen)) => {
            let base = Base(frame.base);
            see(
                &base,
                &format!("/records/{}", seen.record.id.to_hex()),
                None,
            )
        }
        Ok(Found::Many(ids)) => {
            let many = ids.iter().map(idem::RecordId::to_hex).collect();
            form(frame, StatusCode::OK, "", many)
        }
        Ok(_) => {
            let problem = "No record begins with these digits. It may have expired and been swept, or be in another store.";
            form(frame, StatusCode::NOT_FOUND, problem, Vec::new())
        }
        Err(error) => frame.failed(&error),
    }
}
