//! Proves that every command prints on Postgres what it prints on SQLite.
//! `scripts/stores` starts the server; without its URL these tests fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod transcript;

use idem::store::PostgresStore;
use idem::testing::ManualClock;

use self::transcript::filled::{self, Held};
use self::transcript::{Place, idem, play, printed, serves};

fn place() -> Place {
    let mut random = [0; 8];
    getrandom::fill(&mut random).unwrap();
    #[expect(clippy::disallowed_methods, reason = "where the server is")]
    let url = std::env::var("IDEM_TEST_POSTGRES_URL");
    Place {
        url: url.expect("run `eval \"$(scripts/stores up postgres)\"` first"),
        schema: Some(format!("cli_{:x}", u64::from_be_bytes(random))),
    }
}

async fn open(place: &Place, clock: Option<ManualClock>) -> PostgresStore {
    let mut options = PostgresStore::options().schema(place.schema.clone().unwrap());
    if let Some(clock) = clock {
        options = options.clock(clock);
    }
    options.connect(&place.url).await.unwrap()
}

async fn filled(place: &Place) -> Held {
    let clock = filled::long_ago();
    let past = open(place, Some(clock.clone())).await;
    past.migrate().await.unwrap();
    filled::fill(past, open(place, None).await, clock).await
}

macro_rules! transcripts {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let place = place();
            let _held = filled(&place).await;
            play(stringify!($name), &place);
        }
    )*};
}

transcripts!(check list show explain resolve release forget sweep stats watch);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve() {
    let place = place();
    let _held = filled(&place).await;
    serves(&place);
}

#[test]
fn only_migrate_creates_the_schema() {
    let place = place();
    let run = |command: &str| {
        let output = idem(&place).arg(command).output().unwrap();
        (output.status.code(), printed(&output))
    };
    for command in ["list", "stats", "sweep", "check"] {
        let (code, said) = run(command);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("idem migrate") && said.lines().count() == 1,
            "{said}"
        );
    }
    for _ in 0..2 {
        assert_eq!(
            run("migrate"),
            (Some(0), "the schema is up to date\n".to_owned())
        );
    }
    assert_eq!(run("list"), (Some(0), "no such records\n".to_owned()));
}

/// A session of the server that acknowledges what it has not flushed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_void_the_promise_fail_the_check_and_warn_elsewhere() {
    let mut place = place();
    let _held = filled(&place).await;
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
    assert!(
        said.contains("--accept-loss") && said.lines().count() == 1,
        "{said}"
    );
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
