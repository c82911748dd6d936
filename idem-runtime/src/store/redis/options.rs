//! How a store is opened.

use std::fmt;

use redis::Client;
use redis::cluster::ClusterClient;

use super::connection::Source;
use super::error::store_error;
use super::keys::Keys;
use super::{RedisStore, Shared};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::sync::Arc;

/// How to open a [`RedisStore`].
#[derive(Clone)]
#[must_use = "call `connect`, `from_client` or `from_cluster_client`"]
pub struct RedisOptions {
    prefix: String,
    clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("clock", &self.clock)
            .finish()
    }
}

impl RedisOptions {
    pub(super) fn new() -> Self {
        Self {
            prefix: "idem".to_owned(),
            clock: None,
        }
    }

    /// Sets what the keys begin with: 1 to 64 letters, digits, and `_`, `-`,
    /// `:`. By default `idem`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the store's clock, for tests; the server's otherwise.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Connects to a URL: `redis://[user:password@]host[:port][/database]`, or
    /// `redis-cluster://host:port[,host:port]…` with some nodes of a cluster,
    /// which name the others. `rediss://` and `rediss-cluster://` use TLS, if a
    /// feature of the driver for it is enabled in the same build.
    ///
    /// A reply is waited for up to 5 s, and a lost connection is made again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the URL or the prefix is not valid, or the server does not answer.
    pub async fn connect(self, url: &str) -> Result<RedisStore, StoreError> {
        let source = Source::of_url(url).map_err(|error| store_error(&error, false))?;
        self.open(source).await
    }

    /// Connects with a client of the user's, of one server.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the prefix is not valid, or the server does not answer.
    pub async fn from_client(self, client: Client) -> Result<RedisStore, StoreError> {
        self.open(Source::Single(Box::new(client))).await
    }

    /// Connects with a client of the user's, of a cluster. Nothing is read from
    /// a replica, whatever the client says.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the prefix is not valid, or the cluster does not answer.
    pub async fn from_cluster_client(
        self,
        client: ClusterClient,
    ) -> Result<RedisStore, StoreError> {
        self.open(Source::Cluster(Box::new(client))).await
    }

    async fn open(self, source: Source) -> Result<RedisStore, StoreError> {
        let keys = Keys::new(self.prefix)?;
        let connection = source.connect().await?;
        Ok(RedisStore {
            connection,
            shared: Arc::new(Shared {
                source,
                keys,
                clock: self.clock,
            }),
        })
    }
}
