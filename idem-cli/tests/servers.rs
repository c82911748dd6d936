//! Proves that every command prints on database servers what it prints on
//! `SQLite`, but for what Redis cannot list. `scripts/stores` starts the servers;
//! without their URLs these tests fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod transcript;

use idem::store::{MySqlStore, PostgresStore, RedisStore};
use idem::testing::ManualClock;

use self::transcript::filled::{self, Held};
use self::transcript::{Apart, Place, idem, play, printed, serves};

#[expect(clippy::disallowed_methods, reason = "where the servers are")]
fn url(server: &str) -> String {
    std::env::var(format!("IDEM_TEST_{server}_URL"))
        .expect("run `eval \"$(scripts/stores up)\"` first")
}

/// A name that no other test has.
fn name() -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).unwrap();
    format!("cli_{:x}", u64::from_be_bytes(random))
}

/// A place without a schema yet.
fn postgres() -> Place {
    Place {
        url: url("POSTGRES"),
        apart: Some(Apart::Schema(name())),
    }
}

async fn filled_postgres() -> (Place, Held) {
    let place = postgres();
    let options = || match &place.apart {
        Some(Apart::Schema(schema)) => PostgresStore::options().schema(schema),
        _ => PostgresStore::options(),
    };
    let clock = filled::long_ago();
    let past = options()
        .clock(clock.clone())
        .connect(&place.url)
        .await
        .unwrap();
    past.migrate().await.unwrap();
    let today = options().connect(&place.url).await.unwrap();
    let held = filled::fill(past, today, clock).await;
    (place, held)
}

async fn filled_mariadb() -> (Place, Held) {
    let (url, prefix) = (url("MYSQL"), name());
    let options = || MySqlStore::options().prefix(&prefix);
    let clock = filled::long_ago();
    let past = options().clock(clock.clone()).connect(&url).await.unwrap();
    past.migrate().await.unwrap();
    let today = options().connect(&url).await.unwrap();
    let held = filled::fill(past, today, clock).await;
    let apart = Some(Apart::Prefix(prefix));
    (Place { url, apart }, held)
}

async fn filled_redis(server: &str) -> (Place, Held) {
    let (url, prefix) = (url(server), name());
    let open = async |clock: Option<ManualClock>| {
        let mut options = RedisStore::options().prefix(&prefix);
        if let Some(clock) = clock {
            options = options.clock(clock);
        }
        options.connect(&url).await.unwrap()
    };
    let clock = filled::long_ago();
    let past = open(Some(clock.clone())).await;
    let held = filled::fill(past, open(None).await, clock).await;
    let apart = Some(Apart::Prefix(prefix));
    (Place { url, apart }, held)
}

macro_rules! transcripts {
    ($filled:ident: $($name:ident)*) => {
        mod $filled {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (place, _held) = super::$filled().await;
                super::play(stringify!($name), &place);
            })*

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn serve() {
                let (place, _held) = super::$filled().await;
                super::serves(&place);
            }
        }
    };
}

transcripts!(filled_postgres: check list show explain resolve release forget sweep stats watch);
transcripts!(filled_mariadb: check list show explain resolve release forget sweep stats watch);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis() {
    let (place, _held) = filled_redis("REDIS").await;
    serves(&place);
    play("redis", &place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_cluster() {
    let (place, _held) = filled_redis("REDIS_CLUSTER").await;
    play("redis", &place);
}

#[test]
fn only_migrate_creates_the_schema() {
    let mysql = Place {
        url: url("MYSQL"),
        apart: Some(Apart::Prefix(name())),
    };
    for place in [postgres(), mysql] {
        let run = |command: &str| {
            let output = idem(&place).arg(command).output().unwrap();
            (output.status.code(), printed(&output))
        };
        for command in ["list", "stats", "sweep", "check"] {
            let (code, said) = run(command);
            assert_eq!(code, Some(1), "{said}");
            let is_one_line = said.contains("idem migrate") && said.lines().count() == 1;
            assert!(is_one_line, "{said}");
        }
        for _ in 0..2 {
            let done = "the schema is up to date\n".to_owned();
            assert_eq!(run("migrate"), (Some(0), done));
        }
        assert_eq!(run("list"), (Some(0), "no such records\n".to_owned()));
    }
}

/// A session of the server that acknowledges what it has not flushed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_void_the_promise_fail_the_check_and_warn_elsewhere() {
    let (mut place, _held) = filled_postgres().await;
    place.url.push_str("?options[synchronous_commit]=off");
    let run = |arguments: &[&str]| {
        let output = idem(&place).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), printed, said)
    };
    let (code, printed, said) = run(&["check"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        printed.contains("not-durable  voids at-most-once"),
        "{printed}"
    );
    let is_one_line = said.contains("--accept-loss") && said.lines().count() == 1;
    assert!(is_one_line, "{said}");
    let (code, printed, _) = run(&["check", "--json"]);
    let checked: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &checked["starts"]), (Some(5), &false.into()));

    let (code, printed, said) = run(&["check", "--accept-loss", "not-durable"]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{printed}");
    assert!(printed.contains("accepted"), "{printed}");

    let (code, printed, said) = run(&["list"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(printed.contains("4636ed10c457"), "{printed}");
    assert!(said.starts_with("warning: not-durable: "), "{said}");
}
