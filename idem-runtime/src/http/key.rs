//! The grammar of the key.
//!
//! 1. A structured-field string (RFC 9651): `"8e03978e-40d5-43dd-bc93-6894a57f9324"`,
//!    as the draft asks for, with `\"` and `\\` inside.
//! 2. Or the same text bare, as most clients send it, without `"`, `,` and `;`,
//!    which could mean more than one thing. Both forms are the same key.
//! 3. 1 to 255 visible ASCII characters: no white space, no control characters.
//! 4. No parameters, and one header only: a list is no key.

use http::{HeaderMap, HeaderName};

/// The most characters of a key.
pub(super) const MAX_LEN: usize = 255;

/// The text of a key. It is shown and logged nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct KeyText(String);

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(..)")
    }
}

impl KeyText {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is wrong with a key, in words that may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyMistake {
    Many,
    Empty,
    TooLong,
    TooShort,
    NotQuoted,
    NotClosed,
    Escape,
    After,
    Invisible,
    Ambiguous,
}

impl KeyMistake {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Many => "it was sent more than once",
            Self::Empty => "it is empty",
            Self::TooLong => "it is longer than 255 characters",
            Self::TooShort => "it is shorter than this service asks for",
            Self::NotQuoted => "it is not a string in double quotes",
            Self::NotClosed => "its closing quote is missing",
            Self::Escape => "a backslash in quotes stands only before `\"` or `\\`",
            Self::After => "something stands behind its closing quote",
            Self::Invisible => "it has a character that is not visible ASCII",
            Self::Ambiguous => "without double quotes it must not have `\"`, `,` or `;`",
        }
    }
}

/// Which keys are taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Grammar {
    pub(super) only_quoted: bool,
    pub(super) min_len: usize,
}

impl Grammar {
    /// Finds the key among the headers; none if the header is not there.
    pub(super) fn find(
        self,
        headers: &HeaderMap,
        name: &HeaderName,
    ) -> Result<Option<KeyText>, KeyMistake> {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => self.parse(value.as_bytes()).map(Some),
            (Some(_), Some(_)) => Err(KeyMistake::Many),
        }
    }

    /// Parses the value of the header.
    pub(super) fn parse(self, value: &[u8]) -> Result<KeyText, KeyMistake> {
        let value = value.trim_ascii();
        let text = match value.strip_prefix(b"\"") {
            Some(rest) => unquote(rest)?,
            None if value.is_empty() => return Err(KeyMistake::Empty),
            None if self.only_quoted => return Err(KeyMistake::NotQuoted),
            None if value.iter().any(|byte| b"\",;".contains(byte)) => {
                return Err(KeyMistake::Ambiguous);
            }
            None => value.to_vec(),
        };
        if text.is_empty() {
            return Err(KeyMistake::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(KeyMistake::TooLong);
        }
        if !text.iter().all(u8::is_ascii_graphic) {
            return Err(KeyMistake::Invisible);
        }
        if text.len() < self.min_len {
            return Err(KeyMistake::TooShort);
        }
        String::from_utf8(text)
            .map(KeyText)
            .map_err(|_| KeyMistake::Invisible)
    }
}

/// Reads a structured-field string, behind its opening quote.
fn unquote(rest: &[u8]) -> Result<Vec<u8>, KeyMistake> {
    let mut text = Vec::with_capacity(rest.len());
    let mut bytes = rest.iter();
    loop {
        match bytes.next() {
            None => return Err(KeyMistake::NotClosed),
            Some(b'"') if bytes.as_slice().is_empty() => return Ok(text),
            Some(b'"') => return Err(KeyMistake::After),
            Some(b'\\') => match bytes.next() {
                Some(&escaped @ (b'"' | b'\\')) => text.push(escaped),
                _ => return Err(KeyMistake::Escape),
            },
            Some(&byte) => text.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANY: Grammar = Grammar {
        only_quoted: false,
        min_len: 0,
    };

    fn parse(value: &[u8]) -> Result<String, KeyMistake> {
        ANY.parse(value).map(|key| key.as_str().to_owned())
    }

    #[test]
    fn quoted_and_bare_are_the_same_key() {
        for (value, key) in [
            ("8e03978e-40d5-43dd-bc93-6894a57f9324", None),
            (
                "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"",
                Some("8e03978e-40d5-43dd-bc93-6894a57f9324"),
            ),
            (" \t01J0ZK3V8N ", Some("01J0ZK3V8N")),
            (r#""a\"b\\c""#, Some(r#"a"b\c"#)),
            (r#""a,b;c""#, Some("a,b;c")),
            (r"a\b", None),
            ("?1", None),
            (":YWJj:", None),
            ("k=v", None),
        ] {
            assert_eq!(parse(value.as_bytes()).as_deref(), Ok(key.unwrap_or(value)));
        }
        assert_eq!(parse(&[b'k'; 255]).map(|key| key.len()), Ok(255));
    }

    #[test]
    fn what_is_no_key_is_told_by_its_mistake() {
        let long = [b'k'; 256];
        for (value, mistake) in [
            (&b""[..], KeyMistake::Empty),
            (b" \t ", KeyMistake::Empty),
            (b"\"\"", KeyMistake::Empty),
            (&long, KeyMistake::TooLong),
            (b"\"", KeyMistake::NotClosed),
            (b"\"abc", KeyMistake::NotClosed),
            (b"\"abc\\", KeyMistake::Escape),
            (b"\"a\\bc\"", KeyMistake::Escape),
            (b"\"abc\" x", KeyMistake::After),
            (b"\"abc\";p=1", KeyMistake::After),
            (b"\"a\", \"b\"", KeyMistake::After),
            (b"a,b", KeyMistake::Ambiguous),
            (b"a;p=1", KeyMistake::Ambiguous),
            (b"a\"b", KeyMistake::Ambiguous),
            (b"a b", KeyMistake::Invisible),
            (b"\"a b\"", KeyMistake::Invisible),
            (b"a\x00b", KeyMistake::Invisible),
            (b"\"a\x7f\"", KeyMistake::Invisible),
            ("schlüssel".as_bytes(), KeyMistake::Invisible),
            (b"\xff\xfe", KeyMistake::Invisible),
        ] {
            assert_eq!(parse(value), Err(mistake), "{:?}", value.escape_ascii());
        }
    }

    #[test]
    fn a_service_can_ask_for_quotes_and_for_length() {
        let strict = Grammar {
            only_quoted: true,
            min_len: 20,
        };
        assert_eq!(strict.parse(b"abc"), Err(KeyMistake::NotQuoted));
        assert_eq!(strict.parse(b"\"abc\""), Err(KeyMistake::TooShort));
        assert!(strict.parse(b"\"8e03978e-40d5-43dd-bc93\"").is_ok());
    }

    #[test]
    fn two_headers_are_no_key() {
        let name = HeaderName::from_static("idempotency-key");
        let mut headers = HeaderMap::new();
        assert_eq!(ANY.find(&headers, &name), Ok(None));
        headers.append(&name, http::HeaderValue::from_static("same"));
        assert!(matches!(ANY.find(&headers, &name), Ok(Some(_))));
        headers.append(&name, http::HeaderValue::from_static("same"));
        assert_eq!(ANY.find(&headers, &name), Err(KeyMistake::Many));
    }

    /// What a structured-field parser reads as a string without parameters.
    fn oracle(value: &[u8]) -> Option<String> {
        let item: sfv::Item = sfv::Parser::new(value).parse().ok()?;
        match item.bare_item {
            sfv::BareItem::String(text) if item.params.is_empty() => Some(text.as_str().to_owned()),
            _ => None,
        }
    }

    fn inputs() -> impl Strategy<Value = Vec<u8>> {
        let near = proptest::collection::vec(
            prop_oneof![
                3 => proptest::sample::select(&b"\"\\,; \tab09-_:/*=?\x00\x7f\x80"[..]),
                1 => any::<u8>(),
            ],
            0..24,
        );
        let quoted = near
            .clone()
            .prop_map(|inside| [b"\"", &*inside, b"\""].concat());
        let bytes = proptest::collection::vec(any::<u8>(), 0..300);
        prop_oneof![2 => near, 2 => quoted, 1 => bytes]
    }

    proptest! {
        // A million once: `PROPTEST_CASES=1000000 cargo test --release -p idem-runtime --features http key::`.
        #[test]
        fn any_bytes_are_a_key_or_a_mistake_and_strings_are_those_of_the_standard(
            value in inputs()
        ) {
            let ours = parse(&value);
            if let Ok(key) = &ours {
                prop_assert!((1..=MAX_LEN).contains(&key.len()));
                prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()));
                // A key written as the standard writes it is the same key.
                let written = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
                prop_assert_eq!(parse(written.as_bytes()), Ok(key.clone()));
                prop_assert_eq!(oracle(written.as_bytes()), Some(key.clone()));
            }
            if value.trim_ascii().starts_with(b"\"") {
                let standard = oracle(&value).filter(|text| {
                    (1..=MAX_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
                });
                // Tabs around a value are white space of the header, which is
                // taken off before the standard's parser sees it.
                if value.trim_ascii() == value.as_slice() {
                    prop_assert_eq!(ours.ok(), standard);
                }
            }
        }
    }
}
