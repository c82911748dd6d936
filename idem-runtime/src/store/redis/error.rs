//! What a Redis error means, by its kind and code.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::{StoreError, StoreErrorKind};

/// The server refuses what needs memory.
const OUT_OF_MEMORY: &str = "OOM";
/// Cannot persist, too few replicas, busy with a script: nothing was done.
const AGAIN: [&str; 3] = ["MISCONF", "NOREPLICAS", "BUSY"];
const REFUSED: [&str; 3] = ["NOAUTH", "WRONGPASS", "DENIED"];

/// Whether the server did not know a script by its digest.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether the server is a replica, perhaps of the one that took its place.
pub(super) fn is_replica(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

/// Whether a server understood a command and refused it.
pub(super) fn is_refused_command(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ResponseError | ServerErrorKind::NoPerm)
    )
}

pub(super) fn is_out_of_memory(error: &StoreError) -> bool {
    error.code() == Some(OUT_OF_MEMORY)
}

/// A reply that is not what its script returns.
pub(super) fn unreadable() -> StoreError {
    StoreError::new(
        StoreErrorKind::Permanent,
        "the Redis server's reply cannot be read",
    )
}

/// Classifies an error of a single script. With `resent`, the driver may have
/// sent it before, so that a refusal says nothing of the first time.
pub(super) fn store_error(error: &RedisError, resent: bool) -> StoreError {
    // The driver's text may quote values: it goes to the log, at debug level.
    tracing::debug!(target: "idem::store", error = %error, "Redis error");
    let (kind, what) = classify(error);
    let mut store_error = StoreError::new(kind, what);
    if let Some(code) = error.code() {
        store_error = store_error.with_code(code);
    }
    let lost = matches!(
        error.kind(),
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound
    );
    if lost || (resent && kind != StoreErrorKind::Misconfigured) {
        return store_error.ambiguous();
    }
    store_error
}

fn classify(error: &RedisError) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Misconfigured, Permanent, Transient};
    match error.kind() {
        // Cut off on the way: the server may have done it.
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
            (Transient, "the connection to the Redis server failed")
        }
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            (Transient, "the Redis server is a replica")
        }
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown,
        ) => (Transient, "the Redis server is not available"),
        ErrorKind::Server(ServerErrorKind::NoPerm) | ErrorKind::AuthenticationFailed => (
            Misconfigured,
            "the Redis server refused the user or a command",
        ),
        ErrorKind::Server(ServerErrorKind::CrossSlot) => (
            Misconfigured,
            "the Redis server is a node of a cluster; use `redis-cluster://`",
        ),
        ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported => (
            Misconfigured,
            "the URL of the Redis server is not valid, or needs a feature of the driver such as TLS",
        ),
        _ => match error.code() {
            Some(OUT_OF_MEMORY) => (Transient, "the Redis server is out of memory"),
            Some(code) if AGAIN.contains(&code) => (Transient, "the Redis server is not available"),
            Some(code) if REFUSED.contains(&code) => {
                (Misconfigured, "the Redis server refused the user")
            }
            _ => (Permanent, "the Redis server refused a script"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: &str, resent: bool) -> StoreError {
        let reply = format!("-{code} secret text\r\n");
        let error = redis::parse_redis_value(reply.as_bytes())
            .unwrap()
            .extract_error()
            .unwrap_err();
        store_error(&error, resent)
    }

    #[test]
    fn errors_are_classified_by_code_and_carry_no_text_of_the_server() {
        use StoreErrorKind::{Misconfigured, Permanent, Transient};
        for (code, kind) in [
            ("READONLY", Transient),
            ("OOM", Transient),
            ("MOVED", Transient),
            ("ASK", Transient),
            ("CLUSTERDOWN", Transient),
            ("LOADING", Transient),
            ("TRYAGAIN", Transient),
            ("MASTERDOWN", Transient),
            ("MISCONF", Transient),
            ("NOREPLICAS", Transient),
            ("BUSY", Transient),
            ("NOAUTH", Misconfigured),
            ("WRONGPASS", Misconfigured),
            ("NOPERM", Misconfigured),
            ("CROSSSLOT", Misconfigured),
            ("WRONGTYPE", Permanent),
            ("ERR", Permanent),
        ] {
            let error = told(code, false);
            assert_eq!(error.kind(), kind, "{code}");
            assert_eq!(error.code(), Some(code));
            assert!(!error.is_ambiguous(), "{code}: it was refused");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_lost_connection_is_ambiguous_and_so_is_what_the_driver_may_have_sent_before() {
        for kind in [
            std::io::ErrorKind::TimedOut,
            std::io::ErrorKind::ConnectionReset,
            std::io::ErrorKind::ConnectionRefused,
        ] {
            let error = RedisError::from(std::io::Error::from(kind));
            assert!(store_error(&error, false).is_ambiguous(), "{kind}");
        }
        assert!(told("CLUSTERDOWN", true).is_ambiguous());
        assert!(!told("NOPERM", true).is_ambiguous());
    }
}
