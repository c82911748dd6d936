//! Who may enter.

use std::net::IpAddr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The fewest bytes of a token.
const SHORTEST: usize = 16;

/// Who may enter the page.
///
/// The key to its sessions is made from the token, so several processes with
/// one token share their sessions, behind a load balancer too, and a new token
/// ends all of them. A session lasts 12 hours.
#[derive(Clone)]
pub struct Access {
    pub(super) rule: Rule,
    /// What signs sessions and forms.
    pub(super) key: [u8; 32],
}

/// Which proof is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The token, or a session that was opened with it.
    Token,
    /// That the call comes from this machine.
    Loopback,
}

/// A token that could be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeakToken(());

impl std::fmt::Display for WeakToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a token for the page has at least 16 bytes; draw one, for example with `openssl rand -hex 32`")
    }
}

impl std::error::Error for WeakToken {}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is as good as the token.
        f.debug_struct("Access")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl Access {
    /// Lets those in who know a token: people by a form, programs by
    /// `Authorization: Bearer TOKEN`. Space around it is not part of it.
    ///
    /// # Errors
    /// If the token has fewer than 16 bytes. Draw it at random: whoever
    /// records a session could otherwise find it by trying.
    pub fn token(token: &str) -> Result<Self, WeakToken> {
        if token.trim().len() < SHORTEST {
            return Err(WeakToken(()));
        }
        Ok(Self {
            rule: Rule::Token,
            key: key(token),
        })
    }

    /// Lets everybody in who calls from this machine, without a token.
    ///
    /// It needs the address of the caller, as [`serve`](super::serve) or
    /// `into_make_service_with_connect_info::<SocketAddr>()` give it, and
    /// refuses every call without it, from elsewhere, for a host that is not
    /// this machine, or through a proxy that says so. Any program and any
    /// user of this machine may then settle records.
    ///
    /// # Errors
    /// If the operating system has no randomness to give.
    pub fn loopback() -> Result<Self, idem::StoreError> {
        let mut random = [0; 32];
        for half in random.chunks_mut(16) {
            half.copy_from_slice(idem::record::Claim::random()?.as_bytes());
        }
        Ok(Self {
            rule: Rule::Loopback,
            key: random,
        })
    }

    /// Whether this is the token, found out in constant time. Without a token the
    /// key was drawn, and nothing is.
    pub(super) fn is_token(&self, presented: &str) -> bool {
        keyed(presented).verify_slice(&self.key).is_ok()
    }
}

fn key(token: &str) -> [u8; 32] {
    keyed(token).finalize().into_bytes().into()
}

fn keyed(token: &str) -> Hmac<Sha256> {
    let mut mac = mac(b"idem ops page 1");
    mac.update(token.trim().as_bytes());
    mac
}

/// Starts a digest under a key of at most 64 bytes.
pub(super) fn mac(key: &[u8]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    for (at, byte) in block.iter_mut().zip(key) {
        *at = *byte;
    }
    Hmac::new(&block.into())
}

/// Whether a `Host` header names this machine. Another name that leads here is
/// somebody else's page (DNS rebinding).
pub(super) fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || port.starts_with(':') => name,
            _ => return false,
        },
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_no_other() {
        let access = Access::token(" correct-horse-battery \n").unwrap();
        assert!(access.is_token("correct-horse-battery"));
        assert!(!access.is_token("correct-horse-batterx"));
        assert!(!access.is_token(""));
        assert!(Access::token("too short      ").is_err());
        assert!(!format!("{access:?}").contains("key"));
        assert!(!Access::loopback().unwrap().is_token(""));
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]",
            "[::1]:1",
        ] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::1",
            "[::1]x",
            "[::2]",
            "0.0.0.0",
        ] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
