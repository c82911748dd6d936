//! How a response is stored.
//!
//! Bytes, since a body may be binary or compressed: the format's number, the
//! status, the headers, the body, the trailers. Names and values are stored
//! with their length in front; numbers are big endian.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::body::Body;
use crate::codec::{CodecError, Kept};
use crate::record::TombstoneReason;

const FORMAT: u8 = 1;

/// What is recorded of a response.
#[derive(Clone)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) trailers: HeaderMap,
    /// Why it cannot be given back, if it cannot.
    pub(super) unkept: Option<TombstoneReason>,
}

// Never headers or body: they are the user's.
impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Reply {
    /// A reply of which only the status is known.
    pub(super) fn bare(status: StatusCode, unkept: Option<TombstoneReason>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            trailers: HeaderMap::new(),
            unkept,
        }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let trailers = Some(self.trailers).filter(|trailers| !trailers.is_empty());
        let mut response = Response::new(Body::whole(self.body, trailers));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    pub(super) fn keep(&self, limit: usize) -> Kept {
        if let Some(reason) = self.unkept {
            return Kept::Nothing(reason);
        }
        let mut bytes = Vec::with_capacity(64 + self.body.len());
        bytes.push(FORMAT);
        bytes.extend(self.status.as_u16().to_be_bytes());
        let written = write_headers(&mut bytes, &self.headers)
            .and_then(|()| write_text(&mut bytes, &self.body))
            .and_then(|()| write_headers(&mut bytes, &self.trailers));
        match written {
            Some(()) if bytes.len() <= limit => Kept::Bytes(bytes),
            _ => Kept::Nothing(TombstoneReason::TooLarge),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut unread = Unread(bytes);
        unread.reply().ok_or(CodecError)
    }
}

fn write_length(bytes: &mut Vec<u8>, length: usize) -> Option<()> {
    bytes.extend(u32::try_from(length).ok()?.to_be_bytes());
    Some(())
}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    write_length(bytes, text.len())?;
    bytes.extend(text);
    Some(())
}

fn write_headers(bytes: &mut Vec<u8>, headers: &HeaderMap) -> Option<()> {
    write_length(bytes, headers.len())?;
    for (name, value) in headers {
        write_text(bytes, name.as_str().as_bytes())?;
        write_text(bytes, value.as_bytes())?;
    }
    Some(())
}

/// Stored bytes that are still to be read. They are input like any other: no
/// length is believed, and nothing may be left over.
struct Unread<'a>(&'a [u8]);

impl<'a> Unread<'a> {
    fn reply(&mut self) -> Option<Reply> {
        if self.take(1)? != [FORMAT] {
            return None;
        }
        let status = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
        let reply = Reply {
            status: StatusCode::from_u16(status).ok()?,
            headers: self.headers()?,
            body: Bytes::copy_from_slice(self.text()?),
            trailers: self.headers()?,
            unkept: None,
        };
        self.0.is_empty().then_some(reply)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let length = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        usize::try_from(length).ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn headers(&mut self) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        for _ in 0..self.length()? {
            let name = HeaderName::from_bytes(self.text()?).ok()?;
            let value = HeaderValue::from_bytes(self.text()?).ok()?;
            headers.try_append(name, value).ok()?;
        }
        Some(headers)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply() -> Reply {
        let mut reply = Reply::bare(StatusCode::CREATED, None);
        reply
            .headers
            .append("link", HeaderValue::from_static("<a>"));
        reply
            .headers
            .append("link", HeaderValue::from_static("<b>"));
        let location = HeaderValue::from_bytes(b"/caf\xe9").unwrap();
        reply.headers.append("location", location);
        reply.body = Bytes::from_static(&[0x1f, 0x8b, 0, 255]);
        reply
            .trailers
            .append("grpc-status", HeaderValue::from_static("0"));
        reply
    }

    fn stored(reply: &Reply) -> Vec<u8> {
        match reply.keep(1024) {
            Kept::Bytes(bytes) => bytes,
            Kept::Nothing(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        for reply in [reply(), Reply::bare(StatusCode::NO_CONTENT, None)] {
            let read = Reply::read(&stored(&reply)).unwrap();
            assert_eq!(read.status, reply.status);
            assert_eq!(read.headers, reply.headers);
            assert_eq!(read.body, reply.body);
            assert_eq!(read.trailers, reply.trailers);
        }
    }

    #[test]
    fn the_format_does_not_change() {
        let mut reply = Reply::bare(StatusCode::OK, None);
        reply
            .headers
            .append("etag", HeaderValue::from_static("\"1\""));
        reply.body = Bytes::from_static(b"hi");
        assert_eq!(
            stored(&reply),
            b"\x01\x00\xc8\0\0\0\x01\0\0\0\x04etag\0\0\0\x03\"1\"\0\0\0\x02hi\0\0\0\0"
        );
    }

    #[test]
    fn the_limit_counts_everything() {
        let size = stored(&reply()).len();
        assert!(matches!(reply().keep(size), Kept::Bytes(_)));
        assert_eq!(
            reply().keep(size - 1),
            Kept::Nothing(TombstoneReason::TooLarge)
        );
    }

    #[test]
    fn no_part_and_nothing_more_than_the_whole_is_read() {
        let bytes = stored(&reply());
        for end in 0..bytes.len() {
            assert!(Reply::read(&bytes[..end]).is_err(), "{end}");
        }
        assert!(Reply::read(&[&*bytes, b"x"].concat()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_reply_or_an_error(
            at in 0_usize..60, to in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..60)
        ) {
            drop(Reply::read(&bytes));
            let mut near = stored(&reply());
            let at = at % near.len();
            near[at] = to;
            if let Ok(read) = Reply::read(&near) {
                let again = Reply::read(&stored(&read)).unwrap();
                prop_assert_eq!(again.headers, read.headers);
                prop_assert_eq!(again.body, read.body);
            }
        }
    }
}
