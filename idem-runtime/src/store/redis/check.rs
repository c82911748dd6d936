//! What the settings of a server mean for the promise.

use std::collections::HashMap;

use redis::{FromRedisValue as _, Value};

use super::connection::Connection;
use super::error::{is_refused_command, store_error};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::Finding;

/// Scripts say since this version what may run without memory.
const OLDEST: u32 = 7;

type Settings = HashMap<String, String>;

/// Looks at the server, or at each master of a cluster.
pub(super) async fn findings(connection: &Connection) -> Result<Vec<Finding>, StoreError> {
    let infos = ask(connection, redis::cmd("INFO")).await?;
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg("append*");
    let configs = ask(connection, config).await?;

    let mut findings = Vec::new();
    let mut add = |finding| {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    };
    for info in &infos {
        let info = String::from_redis_value_ref(info).unwrap_or_default();
        let info = read_info(&info);
        if !connection.is_cluster() && is(&info, "cluster_enabled", "1") {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "the Redis server is a node of a cluster; use `redis-cluster://`",
            ));
        }
        of_info(&info).into_iter().for_each(&mut add);
    }
    for config in &configs {
        let config = Settings::from_redis_value_ref(config).unwrap_or_default();
        of_config(&config).into_iter().for_each(&mut add);
    }
    if infos.is_empty() || configs.is_empty() {
        add(Finding::SettingsHidden);
    }
    if connection.is_cluster() {
        add(Finding::MayFailOver);
    }
    Ok(findings)
}

/// The replies of all; none if a server does not tell, as some that are run by
/// others.
async fn ask(connection: &Connection, command: redis::Cmd) -> Result<Vec<Value>, StoreError> {
    match connection.ask_each(command).await {
        Ok(replies) => Ok(replies),
        Err(error) if is_refused_command(&error) => Ok(Vec::new()),
        Err(error) => Err(store_error(&error, false)),
    }
}

fn read_info(info: &str) -> Settings {
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn is(settings: &Settings, name: &str, value: &str) -> bool {
    settings.get(name).is_some_and(|found| found == value)
}

fn of_info(info: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unless = |name: &str, finding, is_good: &dyn Fn(&str) -> bool| match info.get(name) {
        Some(value) if is_good(value) => {}
        Some(_) => findings.push(finding),
        None => findings.push(Finding::SettingsHidden),
    };
    unless("redis_version", Finding::OldRedis, &|version| {
        let major = version.split('.').next().unwrap_or_default();
        major.parse::<u32>().is_ok_and(|major| major >= OLDEST)
    });
    unless("role", Finding::Replica, &|role| role == "master");
    unless("maxmemory_policy", Finding::Evicting, &|policy| {
        policy == "noeviction"
    });
    unless("connected_slaves", Finding::MayFailOver, &|count| {
        count == "0"
    });
    if is(info, "aof_enabled", "0") {
        findings.push(Finding::NotDurable);
    }
    findings
}

fn of_config(config: &Settings) -> Vec<Finding> {
    match (config.get("appendonly"), config.get("appendfsync")) {
        (Some(on), Some(flush)) if on == "yes" && flush == "always" => Vec::new(),
        (Some(_), Some(_)) => vec![Finding::NotDurable],
        _ => vec![Finding::SettingsHidden],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nconnected_slaves:0\r\n\
        maxmemory_policy:noeviction\r\naof_enabled:1\r\n";

    fn told(from: &str, to: &str) -> Vec<Finding> {
        assert!(GOOD.contains(from), "{from}");
        of_info(&read_info(&GOOD.replace(from, to)))
    }

    #[test]
    fn settings_are_read_from_what_the_server_tells() {
        assert_eq!(told("master", "master"), []);
        assert_eq!(told("7.0.15", "8.2.0"), []);
        assert_eq!(told("7.0.15", "6.2.14"), [Finding::OldRedis]);
        assert_eq!(told("7.0.15", "unstable"), [Finding::OldRedis]);
        assert_eq!(told("role:master", "role:slave"), [Finding::Replica]);
        for policy in ["allkeys-lru", "volatile-ttl"] {
            assert_eq!(told("noeviction", policy), [Finding::Evicting]);
        }
        assert_eq!(told("slaves:0", "slaves:2"), [Finding::MayFailOver]);
        assert_eq!(
            told("aof_enabled:1", "aof_enabled:0"),
            [Finding::NotDurable]
        );
        for hidden in [
            "redis_version",
            "role",
            "maxmemory_policy",
            "connected_slaves",
        ] {
            assert_eq!(told(hidden, "x"), [Finding::SettingsHidden], "{hidden}");
        }
    }

    #[test]
    fn only_a_flush_of_each_write_is_durable() {
        let told = |on: &str, flush: &str| {
            let settings = [("appendonly", on), ("appendfsync", flush)];
            of_config(
                &settings
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            )
        };
        assert_eq!(told("yes", "always"), []);
        assert_eq!(told("yes", "everysec"), [Finding::NotDurable]);
        assert_eq!(told("no", "always"), [Finding::NotDurable]);
        assert_eq!(of_config(&Settings::new()), [Finding::SettingsHidden]);
    }
}
