//! Pages that only say something.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use idem::{Error, StoreErrorKind};

use super::{Frame, page};
use crate::ops::guard::Base;

#[derive(Debug, Template)]
#[template(path = "message.html")]
pub(in crate::ops) struct Message {
    pub(in crate::ops) frame: Frame,
    pub(in crate::ops) status: StatusCode,
    pub(in crate::ops) title: String,
    pub(in crate::ops) text: String,
    /// What the store says.
    pub(in crate::ops) detail: String,
}

impl IntoResponse for Message {
    fn into_response(self) -> Response {
        page(self.status, &self)
    }
}

/// Says why somebody may not enter.
pub(in crate::ops) fn refused(base: &Base, why: &str) -> Message {
    Message {
        frame: Frame::outside(base),
        status: StatusCode::FORBIDDEN,
        title: "Refused".to_owned(),
        text: why.to_owned(),
        detail: String::new(),
    }
}

/// Says that something failed before there was a page.
pub(in crate::ops) fn failed(base: &Base, error: &Error) -> Message {
    failure(Frame::outside(base), error)
}

pub(in crate::ops) fn failure(frame: Frame, error: &Error) -> Message {
    let (title, text) = match error {
        Error::Misuse { .. } => (
            "This store cannot be looked into",
            "Its calls are not affected.",
        ),
        Error::Store(error) if error.kind() == StoreErrorKind::Misconfigured => {
            ("This store cannot show this", "Its calls are not affected.")
        }
        _ => (
            "The store does not answer",
            "Nothing is known about what is stuck, and calls of the application may fail for the same reason. Load the page again in a moment.",
        ),
    };
    Message {
        frame,
        status: StatusCode::SERVICE_UNAVAILABLE,
        title: title.to_owned(),
        text: text.to_owned(),
        detail: error.to_string(),
    }
}
