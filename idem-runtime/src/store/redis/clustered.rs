//! The connection to a cluster.

use redis::cluster::{ClusterClient, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::RoutingInfo;
use redis::{Cmd, RedisError, Value};

use super::connection::{CONNECT, RESPONSE};
use crate::sync::{Arc, Mutex, lock};

/// One socket a master for all callers. While a master does not answer, the
/// driver can stop for good, for all masters: its futures wait for each other.
/// So when a command got no reply in time or its caller did not wait, the next
/// one goes over a new connection.
#[derive(Clone)]
pub(super) struct Clustered(Arc<Shared>);

struct Shared {
    client: ClusterClient,
    current: Mutex<Current>,
    /// Held while a connection is made: one is enough.
    opening: tokio::sync::Mutex<()>,
}

struct Current {
    connection: ClusterConnection,
    number: u64,
    is_silent: bool,
}

impl Clustered {
    pub(super) async fn connect(client: ClusterClient) -> Result<Self, RedisError> {
        let connection = open(&client).await?;
        Ok(Self(Arc::new(Shared {
            client,
            current: Mutex::new(Current {
                connection,
                number: 0,
                is_silent: false,
            }),
            opening: tokio::sync::Mutex::default(),
        })))
    }

    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let (mut connection, waiting) = self.current().await?;
        waiting.end(command.query_async(&mut connection).await)
    }

    /// Sends a command to where it is told.
    pub(super) async fn route(&self, command: Cmd, to: RoutingInfo) -> Result<Value, RedisError> {
        let (mut connection, waiting) = self.current().await?;
        waiting.end(connection.route_command(command, to).await)
    }

    /// Returns the connection, made anew if the last one is silent.
    async fn current(&self) -> Result<(ClusterConnection, Waiting), RedisError> {
        if let Some(current) = self.heard() {
            return Ok(current);
        }
        let opening = self.0.opening.lock().await;
        if let Some(current) = self.heard() {
            return Ok(current);
        }
        let connection = open(&self.0.client).await?;
        {
            let mut current = lock(&self.0.current);
            current.connection = connection;
            current.number += 1;
            current.is_silent = false;
        }
        drop(opening);
        Ok(self.as_it_is())
    }

    /// The connection, unless it is silent.
    fn heard(&self) -> Option<(ClusterConnection, Waiting)> {
        let is_silent = lock(&self.0.current).is_silent;
        (!is_silent).then(|| self.as_it_is())
    }

    fn as_it_is(&self) -> (ClusterConnection, Waiting) {
        let current = lock(&self.0.current);
        let waiting = Waiting {
            shared: Arc::clone(&self.0),
            number: current.number,
            is_answered: false,
        };
        (current.connection.clone(), waiting)
    }
}

async fn open(client: &ClusterClient) -> Result<ClusterConnection, RedisError> {
    let config = ClusterConfig::new()
        .set_response_timeout(RESPONSE)
        .set_connection_timeout(CONNECT);
    client.get_async_connection_with_config(config).await
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
        self.is_answered = !reply.as_ref().is_err_and(RedisError::is_timeout);
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
