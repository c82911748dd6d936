//! Sessions and forms: signed, and kept nowhere.
//!
//! A session is `END.NONCE.MAC` in a cookie: when it ends in seconds, a random
//! number, and a keyed digest of both. What a form carries is another digest
//! of the number, which no other site can know.

use hmac::{Hmac, Mac as _};
use idem::record::Claim;
use idem::{Clock as _, SystemClock};
use sha2::Sha256;

use super::access::{Access, mac};

/// The cookie's name.
pub(super) const COOKIE: &str = "idem_ops";
/// How long a session lasts, in seconds.
pub(super) const LASTS: i64 = 12 * 3600;

/// A session that was opened by this page.
#[derive(Debug, Clone)]
pub(super) struct Session {
    end: i64,
    nonce: String,
}

impl Access {
    /// Opens a session.
    pub(super) fn open(&self) -> Result<Session, idem::StoreError> {
        Ok(Session {
            end: now().saturating_add(LASTS),
            nonce: hex(Claim::random()?.as_bytes()),
        })
    }

    /// Writes a session's cookie.
    pub(super) fn cookie(&self, session: &Session) -> String {
        let Session { end, nonce } = session;
        format!("{end}.{nonce}.{}", hex(&self.sign("session", session)))
    }

    /// Reads a session from a `Cookie` header, unless it has ended or is not
    /// ours. Of several cookies of this name any may be it: one may belong to
    /// a page at a shorter path.
    pub(super) fn session(&self, cookies: &str) -> Option<Session> {
        cookies
            .split(';')
            .filter_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='))
            .find_map(|value| self.read(value))
    }

    fn read(&self, value: &str) -> Option<Session> {
        let mut parts = value.splitn(3, '.');
        let (end, nonce, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let session = Session {
            end: end.parse().ok()?,
            nonce: nonce.to_owned(),
        };
        let ours = self.is_signed("session", &session, signature);
        (ours && session.end > now()).then_some(session)
    }

    /// Returns what this session's forms carry.
    pub(super) fn form_token(&self, session: &Session) -> String {
        hex(&self.sign("form", session))
    }

    /// Whether a form was made in this session.
    pub(super) fn is_form_token(&self, session: &Session, token: &str) -> bool {
        self.is_signed("form", session, token)
    }

    fn sign(&self, purpose: &str, session: &Session) -> [u8; 32] {
        self.signing(purpose, session)
            .finalize()
            .into_bytes()
            .into()
    }

    fn is_signed(&self, purpose: &str, session: &Session, signature: &str) -> bool {
        let Some(signature) = unhex(signature) else {
            return false;
        };
        self.signing(purpose, session)
            .verify_slice(&signature)
            .is_ok()
    }

    fn signing(&self, purpose: &str, session: &Session) -> Hmac<Sha256> {
        let mut mac = mac(&self.key);
        mac.update(format!("{purpose}.{}.{}", session.end, session.nonce).as_bytes());
        mac
    }
}

fn now() -> i64 {
    SystemClock.unix_us() / 1_000_000
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::token("a token of the tests").unwrap()
    }

    #[test]
    fn a_session_is_read_back_among_other_cookies() {
        let session = access().open().unwrap();
        let cookie = access().cookie(&session);
        let header = format!("a=b; {COOKIE}=nonsense; {COOKIE}={cookie}; {COOKIE}x=1");
        let read = access().session(&header).unwrap();
        assert_eq!(access().form_token(&read), access().form_token(&session));
        assert!(access().is_form_token(&read, &access().form_token(&session)));
    }

    #[test]
    fn a_session_that_was_changed_or_ended_or_is_of_another_token_is_none() {
        let session = access().open().unwrap();
        let cookie = access().cookie(&session);
        let read = |access: &Access, value: &str| access.session(&format!("{COOKIE}={value}"));
        assert!(read(&access(), &cookie).is_some());
        assert!(read(&access(), &format!("9{cookie}")).is_none());
        assert!(read(&access(), &cookie[..cookie.len() - 2]).is_none());
        let other = Access::token("another token of the tests").unwrap();
        assert!(read(&other, &cookie).is_none());
        let ended = Session {
            end: now(),
            ..session
        };
        assert!(read(&access(), &access().cookie(&ended)).is_none());
    }

    #[test]
    fn a_forms_token_is_of_its_session_and_is_not_the_cookie() {
        let (one, two) = (access().open().unwrap(), access().open().unwrap());
        assert!(!access().is_form_token(&two, &access().form_token(&one)));
        assert!(!access().is_form_token(&one, ""));
        assert!(!access().is_form_token(&one, "é0"));
        assert!(!access().cookie(&one).contains(&access().form_token(&one)));
    }
}
