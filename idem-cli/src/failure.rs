//! Why a command did not do what it was asked: one line, and an exit code.

use idem::{Error, StoreError};

/// A command's end that is not success.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// The store failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(1, message)
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(2, message)
    }

    /// There is nothing of that kind.
    pub(crate) fn nothing(message: impl Into<String>) -> Self {
        Self::new(3, message)
    }

    /// It is dangerous, or not what it was any more.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(4, message)
    }

    /// The store's settings void what is promised.
    pub(crate) fn voided(message: impl Into<String>) -> Self {
        Self::new(5, message)
    }

    fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // Without what that means for a call: this is none.
            Error::Store(error) => error.into(),
            Error::Misuse { reason } => Self::usage(reason),
            error => Self::failed(error.to_string()),
        }
    }
}

/// Takes the password out of every URL in a text that was typed.
pub(crate) fn scrubbed(text: &str) -> String {
    let mut scrubbed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        scrubbed.push_str(before);
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        // A password may have an `@` or a `/` that nobody escaped.
        let host = after[..end].rfind('@').unwrap_or(0);
        if host > 0 {
            scrubbed.push_str("***");
        }
        scrubbed.push_str(&after[host..end]);
        rest = &after[end..];
    }
    scrubbed.push_str(rest);
    scrubbed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left() {
        for (text, expected) in [
            ("no URL", "no URL"),
            (
                "'postgres://u:p@h/d' is wrong",
                "'postgres://***@h/d' is wrong",
            ),
            (
                "redis://:a@b@h:1 mysql://u@h",
                "redis://***@h:1 mysql://***@h",
            ),
            ("postgres://u:it's`a\"@h/d no", "postgres://***@h/d no"),
            ("sqlite://a.db: no", "sqlite://a.db: no"),
        ] {
            assert_eq!(scrubbed(text), expected);
        }
    }
}
