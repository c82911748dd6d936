//! Coming in with the token, and leaving.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Form};
use serde::Deserialize;

use super::{Frame, page, refuse_form};
use crate::ops::Ops;
use crate::ops::guard::{Base, Visitor, cookie};

#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub(in crate::ops) struct SignIn {
    frame: Frame,
    /// Where to go then: path and query within the page.
    next: String,
    wrong: &'static str,
    /// Ask once more, as this page, before asking for the token.
    again: bool,
}

/// Asks for the token.
pub(in crate::ops) fn ask(base: &Base, next: &str) -> SignIn {
    SignIn {
        frame: Frame::outside(base),
        next: within(next).to_owned(),
        wrong: "",
        again: false,
    }
}

/// Asks again, and says what was wrong.
pub(in crate::ops) fn refuse(base: &Base, next: &str, wrong: &'static str) -> SignIn {
    SignIn {
        wrong,
        ..ask(base, next)
    }
}

/// Follows a link from another site once more, from here: then the browser
/// sends the cookie, if there is one.
pub(in crate::ops) fn again(base: &Base, next: &str) -> SignIn {
    SignIn {
        again: true,
        ..ask(base, next)
    }
}

impl IntoResponse for SignIn {
    fn into_response(self) -> Response {
        let status = if self.again {
            StatusCode::OK
        } else {
            StatusCode::UNAUTHORIZED
        };
        page(status, &self)
    }
}

#[derive(Deserialize)]
pub(in crate::ops) struct Entry {
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
}

/// `GET /sign-in`, where a browser may be left by a wrong token.
pub(in crate::ops) async fn elsewhere(Extension(base): Extension<Base>) -> Response {
    see(&base, "/", None)
}

/// `POST /sign-in`
pub(in crate::ops) async fn enter(
    State(ops): State<Ops>,
    Extension(base): Extension<Base>,
    headers: HeaderMap,
    Form(entry): Form<Entry>,
) -> Response {
    if !ops.access().is_token(&entry.token) {
        return refuse(&base, &entry.next, "This is not the token.").into_response();
    }
    match ops.access().open() {
        Ok(session) => {
            let cookie = cookie(&ops, Some(&session), &base, &headers);
            see(&base, within(&entry.next), Some(cookie))
        }
        Err(error) => super::message::failed(&base, &error.into()).into_response(),
    }
}

#[derive(Deserialize)]
pub(in crate::ops) struct Exit {
    #[serde(default)]
    form_token: String,
}

/// `POST /sign-out`
pub(in crate::ops) async fn leave(
    State(ops): State<Ops>,
    frame: Frame,
    Extension(visitor): Extension<Visitor>,
    Extension(base): Extension<Base>,
    headers: HeaderMap,
    Form(exit): Form<Exit>,
) -> Response {
    if let Some(refused) = refuse_form(&ops, &frame, &visitor, &exit.form_token) {
        return refused;
    }
    see(&base, "/", Some(cookie(&ops, None, &base, &headers)))
}

/// Sends the browser to another page, by GET.
pub(super) fn see(base: &Base, local: &str, cookie: Option<String>) -> Response {
    let address = match (base.0.as_str(), local) {
        ("", local) => local.to_owned(),
        (base, "/") => base.to_owned(),
        (base, local) => format!("{base}{local}"),
    };
    let location = [(header::LOCATION, address)];
    match cookie {
        Some(cookie) => (
            StatusCode::SEE_OTHER,
            location,
            [(header::SET_COOKIE, cookie)],
        )
            .into_response(),
        None => (StatusCode::SEE_OTHER, location).into_response(),
    }
}

/// A path within the page; the first page instead of one that leads elsewhere.
fn within(next: &str) -> &str {
    let elsewhere = next
        .get(1..2)
        .is_some_and(|second| second == "/" || second == "\\");
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic());
    if next.starts_with('/') && !elsewhere && plain {
        next
    } else {
        "/"
    }
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn nobody_is_sent_elsewhere() {
        assert_eq!(
            within("/records?standing=unknown"),
            "/records?standing=unknown"
        );
        for elsewhere in [
            "",
            "records",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/\r\nx: y",
            "/é",
        ] {
            assert_eq!(within(elsewhere), "/", "{elsewhere}");
        }
    }
}
