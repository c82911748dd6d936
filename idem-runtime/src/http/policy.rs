//! What is recorded: by status, and which headers.

use std::ops::RangeInclusive;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::policy::Disposition;

/// What each status says about the effect of the request.
///
/// | status | default |
/// |---|---|
/// | 1xx | unknown |
/// | 2xx, 3xx, 4xx but 408 | stored and replayed |
/// | 408 | unknown: timeout layers answer it after they have cut the handler off |
/// | 5xx | unknown |
///
/// 401, 403, 425 and 429 are stored like every 4xx: put authentication and rate
/// limits *outside* the layer, where their answers never reach it, or release
/// them here if the handler itself answers them before it does anything.
///
/// ```
/// use http::StatusCode;
/// use idem::Disposition;
/// use idem::http::StatusTable;
///
/// let table = StatusTable::default()
///     .with(StatusCode::TOO_MANY_REQUESTS, Disposition::Release)
///     .with_range(500..=599, Disposition::Store);
/// assert_eq!(table.of(StatusCode::TOO_MANY_REQUESTS), Disposition::Release);
/// assert_eq!(table.of(StatusCode::BAD_GATEWAY), Disposition::Store);
/// assert_eq!(table.of(StatusCode::REQUEST_TIMEOUT), Disposition::Unknown);
/// ```
#[derive(Debug, Clone)]
pub struct StatusTable(Vec<(RangeInclusive<u16>, Disposition)>);

impl Default for StatusTable {
    fn default() -> Self {
        Self(vec![
            (200..=499, Disposition::Store),
            (408..=408, Disposition::Unknown),
        ])
    }
}

impl StatusTable {
    /// Changes what one status means.
    #[must_use]
    pub fn with(self, status: StatusCode, disposition: Disposition) -> Self {
        self.with_range(status.as_u16()..=status.as_u16(), disposition)
    }

    /// Changes what all statuses of a range mean. The last change counts.
    #[must_use]
    pub fn with_range(mut self, statuses: RangeInclusive<u16>, disposition: Disposition) -> Self {
        self.0.push((statuses, disposition));
        self
    }

    /// Returns what a status means; unknown if no row has it.
    #[must_use]
    pub fn of(&self, status: StatusCode) -> Disposition {
        self.0
            .iter()
            .rev()
            .find(|(statuses, _)| statuses.contains(&status.as_u16()))
            .map_or(Disposition::Unknown, |(_, disposition)| *disposition)
    }
}

/// Headers that say something about the answer itself.
const KEPT: [&str; 26] = [
    "accept-patch",
    "accept-post",
    "accept-ranges",
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-security-policy",
    "content-type",
    "deprecation",
    "digest",
    "content-digest",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "preference-applied",
    "repr-digest",
    "retry-after",
    "sunset",
    "vary",
    "warning",
    "x-content-type-options",
];

/// Headers that belong to one exchange, one connection or one person, and that
/// no list can add.
const NEVER: [&str; 31] = [
    "age",
    "alt-svc",
    "authentication-info",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "date",
    "idempotency-key",
    "idempotent-replayed",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "request-id",
    "server-timing",
    "set-cookie",
    "set-cookie2",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "www-authenticate",
    "x-amzn-requestid",
    "x-amzn-trace-id",
    "x-correlation-id",
    "x-request-id",
];

/// The same, by how they begin.
const NEVER_STARTS: [&str; 5] = [
    "ratelimit",
    "x-ratelimit",
    "x-rate-limit",
    "x-request-id-",
    "x-b3-",
];

/// Returns whether a header is never recorded.
pub(super) fn is_never_kept(name: &HeaderName) -> bool {
    let name = name.as_str();
    NEVER.contains(&name) || NEVER_STARTS.iter().any(|start| name.starts_with(start))
}

/// Which headers of an answer are recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct HeaderList {
    pub(super) more: Vec<HeaderName>,
}

impl HeaderList {
    fn keeps(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        !value.is_sensitive()
            && !is_never_kept(name)
            && (KEPT.contains(&name.as_str()) || self.more.contains(name))
    }

    /// Returns what is recorded of these headers: all values of a name, in
    /// their order.
    pub(super) fn select(&self, headers: &HeaderMap) -> HeaderMap {
        let mut kept = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            if self.keeps(name, value) {
                kept.append(name, value.clone());
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_design() {
        let table = StatusTable::default();
        for status in 100..1000 {
            let expected = match status {
                408 => Disposition::Unknown,
                200..=499 => Disposition::Store,
                _ => Disposition::Unknown,
            };
            assert_eq!(table.of(StatusCode::from_u16(status).unwrap()), expected);
        }
    }

    #[test]
    fn no_list_adds_what_belongs_to_one_exchange() {
        let names = NEVER.iter().copied().chain([
            "ratelimit-limit",
            "ratelimit",
            "x-ratelimit-remaining",
            "x-rate-limit-reset",
        ]);
        for name in names {
            let name = HeaderName::from_static(name);
            let list = HeaderList {
                more: vec![name.clone()],
            };
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static("x"))]);
            assert!(list.select(&headers).is_empty(), "{headers:?}");
        }
        assert!(KEPT.iter().all(|name| !NEVER.contains(name)));
    }

    #[test]
    fn values_keep_their_order_and_sensitive_ones_are_left_out() {
        let mut headers = HeaderMap::new();
        headers.append("link", HeaderValue::from_static("<a>"));
        headers.append("x-own", HeaderValue::from_static("own"));
        headers.append("link", HeaderValue::from_static("<b>"));
        let mut secret = HeaderValue::from_static("/token/1");
        secret.set_sensitive(true);
        headers.append("location", secret);
        let kept = HeaderList::default().select(&headers);
        let links: Vec<_> = kept.get_all("link").iter().collect();
        assert_eq!(links, ["<a>", "<b>"]);
        assert_eq!(kept.len(), 2);
        let more = HeaderList {
            more: vec![HeaderName::from_static("x-own")],
        };
        assert_eq!(more.select(&headers).len(), 3);
    }
}
