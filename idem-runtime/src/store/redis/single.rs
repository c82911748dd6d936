//! The connection to one server.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, Pipeline, RedisError, Value};

use super::connection::{CONNECT, RESPONSE, RETRIES, RETRY_MAX_MS, RETRY_MIN_MS, command};
use super::error::{is_replica, is_unknown_script, store_error};
use super::scripts::Script;
use crate::error::StoreError;
use crate::sync::{Arc, Mutex, lock};

/// One socket for all callers, which the driver replaces when it breaks. When
/// it is silent instead, so that a command got no reply in time or its caller
/// did not wait, or leads to a server that has become a replica, the next
/// command goes over a new one: what is behind a dead path would be waited for
/// again and again, and the name may lead to another server by now.
#[derive(Clone)]
pub(super) struct Single(Arc<Shared>);

struct Shared {
    client: Client,
    current: Mutex<Current>,
}

struct Current {
    connection: ConnectionManager,
    number: u64,
    is_silent: bool,
}

impl Single {
    pub(super) async fn connect(client: Client) -> Result<Self, RedisError> {
        let connection = client.get_connection_manager_with_config(config()).await?;
        Ok(Self(Arc::new(Shared {
            client,
            current: Mutex::new(Current {
                connection,
                number: 0,
                is_silent: false,
            }),
        })))
    }

    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let (mut connection, waiting) = self.current()?;
        waiting.end(command.query_async(&mut connection).await)
    }

    /// Runs a script behind commands that only look, in one trip: their replies,
    /// of which each may be an error, and the script's. Other clients may come
    /// between any two of them.
    ///
    /// There is no such thing on a cluster: while a slot moves, only the first
    /// command of a trip is let in where it goes.
    pub(super) async fn run_behind(
        &self,
        looks: impl Fn(&mut Pipeline),
        script: &Script,
        keys: &[Vec<u8>],
        args: &[impl AsRef<[u8]>],
    ) -> Result<(Vec<Value>, Value), StoreError> {
        let all = |verb, text| {
            let mut all = redis::pipe();
            looks(&mut all);
            all.add_command(command(verb, text, keys, args));
            all
        };
        let mut replies = self.send_all(&all("EVALSHA", &script.digest)).await;
        if replies.as_ref().is_err_and(is_unknown_script) {
            replies = self.send_all(&all("EVAL", script.text)).await;
        }
        replies.map_err(|error| store_error(&error, false))
    }

    /// Sends several commands. What the last one came to is what all came to.
    async fn send_all(&self, commands: &Pipeline) -> Result<(Vec<Value>, Value), RedisError> {
        let (mut connection, waiting) = self.current()?;
        let sent = connection.send_packed_commands(commands, 0, commands.len());
        waiting.end(sent.await.and_then(|mut replies| {
            let last = replies.pop().unwrap_or_default().extract_error()?;
            Ok((replies, last))
        }))
    }

    fn current(&self) -> Result<(ConnectionManager, Waiting), RedisError> {
        let mut current = lock(&self.0.current);
        if current.is_silent {
            current.connection = self.0.client.get_connection_manager_lazy(config())?;
            current.number += 1;
            current.is_silent = false;
        }
        let waiting = Waiting {
            shared: Arc::clone(&self.0),
            number: current.number,
            is_answered: false,
        };
        Ok((current.connection.clone(), waiting))
    }
}

fn config() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_response_timeout(Some(RESPONSE))
        .set_connection_timeout(Some(CONNECT))
        .set_number_of_retries(RETRIES as usize)
        .set_min_delay(Duration::from_millis(RETRY_MIN_MS))
        .set_max_delay(Duration::from_millis(RETRY_MAX_MS))
}

/// A command under way. Dropped without an answer, it tells of a silent
/// connection, once.
struct Waiting {
    shared: Arc<Shared>,
    number: u64,
    is_answered: bool,
}

impl Waiting {
    fn end<T>(mut self, reply: Result<T, RedisError>) -> Result<T, RedisError> {
        self.is_answered = !reply
            .as_ref()
            .is_err_and(|error| error.is_timeout() || is_replica(error));
        reply
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_answered {
            let mut current = lock(&self.shared.current);
            current.is_silent |= current.number == self.number;
        }
    }
}
