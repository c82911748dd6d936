//! Connections: to one server, or to the masters of a cluster.
//!
//! Each is one socket a server, which many callers share and which reconnects
//! by itself. A cluster's driver sends a script again when it got no answer or
//! was redirected; every script may be sent twice. Nothing is read from a
//! replica: looks are scripts too, and those go to masters.

use std::time::Duration;

use redis::cluster::ClusterClient;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::io::tcp::TcpSettings;
use redis::{Client, Cmd, IntoConnectionInfo as _, RedisError, Value};

use super::clustered::Clustered;
use super::error::{is_unknown_script, store_error};
use super::scripts::Script;
use super::single::Single;
use crate::error::StoreError;

/// The driver's own is too short for a server that flushes each write.
pub(super) const RESPONSE: Duration = Duration::from_secs(5);
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// Tries of one request. They end long before the engine's patience does.
pub(super) const RETRIES: u32 = 5;
pub(super) const RETRY_MIN_MS: u64 = 20;
pub(super) const RETRY_MAX_MS: u64 = 500;

/// How to connect, also again for the renewal thread.
#[derive(Clone)]
pub(super) enum Source {
    Single(Box<Client>),
    Cluster(Box<ClusterClient>),
}

#[derive(Clone)]
pub(super) enum Connection {
    Single(Single),
    Cluster(Clustered),
}

impl Source {
    /// Reads a URL: several hosts, behind commas, are of a cluster.
    pub(super) fn of_url(url: &str) -> Result<Self, RedisError> {
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        let Some(scheme) = scheme.strip_suffix("-cluster") else {
            let info = url.into_connection_info()?.set_tcp_settings(tcp());
            return Ok(Self::Single(Box::new(Client::open(info)?)));
        };
        let client = ClusterClient::builder(node_urls(scheme, rest))
            .tcp_settings(tcp())
            .retries(RETRIES)
            .min_retry_wait(RETRY_MIN_MS)
            .max_retry_wait(RETRY_MAX_MS)
            .build()?;
        Ok(Self::Cluster(Box::new(client)))
    }

    /// Connects on the current runtime, which carries the connection from then
    /// on.
    pub(super) async fn connect(&self) -> Result<Connection, StoreError> {
        let connected = match self {
            Self::Single(client) => {
                let client = (**client).clone();
                Single::connect(client).await.map(Connection::Single)
            }
            Self::Cluster(client) => {
                let client = (**client).clone();
                Clustered::connect(client).await.map(Connection::Cluster)
            }
        };
        connected.map_err(|error| store_error(&error, false))
    }
}

/// Sends at once, and takes a host that acknowledges nothing for gone.
fn tcp() -> TcpSettings {
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(RESPONSE);
    settings
}

/// The URL of each host, with the user and the options of all.
fn node_urls(scheme: &str, rest: &str) -> Vec<String> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, options) = rest.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    hosts
        .split(',')
        .map(|host| format!("{scheme}://{user}{host}{options}"))
        .collect()
}

impl Connection {
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Runs a script by its digest, or with its text on a server that does not
    /// know it yet, or no more.
    pub(super) async fn run(
        &self,
        script: &Script,
        keys: &[Vec<u8>],
        args: &[impl AsRef<[u8]>],
    ) -> Result<Value, StoreError> {
        let known = command("EVALSHA", &script.digest, keys, args);
        let mut reply = self.send(&known).await;
        if reply.as_ref().is_err_and(is_unknown_script) {
            reply = self.send(&command("EVAL", script.text, keys, args)).await;
        }
        reply.map_err(|error| store_error(&error, self.is_cluster()))
    }

    async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        match self {
            Self::Single(connection) => connection.send(command).await,
            Self::Cluster(connection) => connection.send(command).await,
        }
    }

    /// Asks the server, or each master of a cluster.
    pub(super) async fn ask_each(&self, command: Cmd) -> Result<Vec<Value>, RedisError> {
        match self {
            Self::Single(_) => Ok(vec![self.send(&command).await?]),
            Self::Cluster(connection) => {
                let masters = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                let Value::Map(replies) = connection.route(command, masters).await? else {
                    return Ok(Vec::new());
                };
                let replies = replies.into_iter().map(|(_, reply)| reply.extract_error());
                replies.collect()
            }
        }
    }
}

pub(super) fn command(
    verb: &str,
    script: &str,
    keys: &[Vec<u8>],
    args: &[impl AsRef<[u8]>],
) -> Cmd {
    let args = args.iter().map(AsRef::as_ref);
    let parts = keys.iter().map(Vec::as_slice).chain(args);
    let bytes = parts.clone().map(<[u8]>::len).sum::<usize>();
    let mut command = Cmd::with_capacity(parts.clone().count() + 3, bytes + 64);
    command.arg(verb).arg(script).arg(keys.len());
    parts.fold(&mut command, |command, part| command.arg(part));
    command
}

#[cfg(test)]
mod tests {
    use super::node_urls;

    #[test]
    fn each_host_of_a_cluster_gets_a_url_with_the_user_and_the_options_of_all() {
        assert_eq!(
            node_urls("redis", "a:1,b:2"),
            ["redis://a:1", "redis://b:2"]
        );
        assert_eq!(
            node_urls("rediss", "me:p@ss@[::1]:1,b/?protocol=resp3"),
            [
                "rediss://me:p@ss@[::1]:1/?protocol=resp3",
                "rediss://me:p@ss@b/?protocol=resp3"
            ]
        );
        assert_eq!(node_urls("redis", ""), ["redis://"]);
    }
}
