//! What is shown, page by page.

pub(super) mod find;
pub(super) mod hour;
pub(super) mod list;
pub(super) mod message;
pub(super) mod overview;
pub(super) mod record;
mod row;
pub(super) mod settle;
pub(super) mod sign_in;

use std::convert::Infallible;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use idem::Error;

use self::message::Message;
use super::Ops;
use super::access::Rule;
use super::guard::{Base, Visitor, is_own_form};

/// Where the style sheet is. Its address changes with the version, so it is
/// kept for long.
pub(super) const STYLE: &str = concat!("/style-", env!("CARGO_PKG_VERSION"), ".css");

/// What every page has around it.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    /// Where the page is mounted: links begin with it.
    pub(super) base: String,
    /// What forms carry. Empty for programs, which need none.
    pub(super) form_token: String,
    /// Whether to show where to go: not to those who may not.
    pub(super) inside: bool,
    /// Whether there is a session to end.
    pub(super) can_leave: bool,
}

impl Frame {
    /// Of a page that is shown to anybody.
    pub(super) fn outside(base: &Base) -> Self {
        Self {
            base: base.0.clone(),
            ..Self::default()
        }
    }

    /// The first page. In a router that is nested, only its prefix leads there.
    fn home(&self) -> &str {
        if self.base.is_empty() {
            "/"
        } else {
            &self.base
        }
    }

    fn style(&self) -> String {
        format!("{}{STYLE}", self.base)
    }

    /// Says that the store failed.
    fn failed(&self, error: &Error) -> Response {
        message::failure(self.clone(), error).into_response()
    }
}

impl FromRequestParts<Ops> for Frame {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, ops: &Ops) -> Result<Self, Infallible> {
        let base = parts.extensions.get::<Base>();
        let visitor = parts.extensions.get::<Visitor>();
        let form_token = match visitor {
            Some(Visitor::Person(session)) => ops.access().form_token(session),
            _ => String::new(),
        };
        Ok(Self {
            base: base.map(|base| base.0.clone()).unwrap_or_default(),
            inside: !matches!(visitor, None | Some(Visitor::Nobody)),
            can_leave: !form_token.is_empty() && ops.access().rule == Rule::Token,
            form_token,
        })
    }
}

/// Renders a page.
fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => (status, Html(html)).into_response(),
        // Only a formatter fails, and none of ours does.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(super) async fn style() -> Response {
    (
        [
            (header::CONTENT_TYPE, "text/css; charset=utf-8"),
            (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        ],
        include_str!("../../../templates/style.css"),
    )
        .into_response()
}

pub(super) async fn not_found(frame: Frame) -> Response {
    Message {
        frame,
        status: StatusCode::NOT_FOUND,
        title: "There is no such page".to_owned(),
        text: "The address may be of another version.".to_owned(),
        detail: String::new(),
    }
    .into_response()
}

/// Refuses a form that was not sent from a page of the visitor's own.
fn refuse_form(ops: &Ops, frame: &Frame, visitor: &Visitor, form_token: &str) -> Option<Response> {
    if is_own_form(ops, visitor, form_token) {
        return None;
    }
    let refusal = Message {
        frame: frame.clone(),
        status: StatusCode::FORBIDDEN,
        title: "This form is not of your session".to_owned(),
        text: "Nothing was changed. The session may have ended since the form was opened: go back, load it again, and send it once more.".to_owned(),
        detail: String::new(),
    };
    Some(refusal.into_response())
}
