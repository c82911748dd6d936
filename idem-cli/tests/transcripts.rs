//! Proves what every command prints and how it exits, on a `SQLite` file that real
//! engines have filled.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod transcript;

use std::path::Path;

use idem::store::SqliteStore;

use self::transcript::filled::{self, Held};
use self::transcript::{Place, idem, normal, play, printed, serves};

struct Filled {
    place: Place,
    _folder: tempfile::TempDir,
    _held: Held,
}

async fn filled() -> Filled {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let clock = filled::long_ago();
    let past = SqliteStore::options(&path)
        .clock(clock.clone())
        .open()
        .await
        .unwrap();
    let today = SqliteStore::open(&path).await.unwrap();
    Filled {
        place: Place {
            url: format!("sqlite://{}", path.display()),
            apart: None,
        },
        _held: filled::fill(past, today, clock).await,
        _folder: folder,
    }
}

macro_rules! transcripts {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            play(stringify!($name), &filled().await.place);
        }
    )*};
}

transcripts!(check list show explain resolve release forget sweep stats watch);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve() {
    serves(&filled().await.place);
}

#[test]
fn only_migrate_creates_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let place = Place {
        url: format!("sqlite://{}", path.display()),
        apart: None,
    };
    let run = |command: &str| {
        let output = idem(&place).args(command.split(' ')).output().unwrap();
        (output.status.code(), printed(&output))
    };
    for command in ["list", "stats", "sweep", "check", "serve --no-auth"] {
        let (code, said) = run(command);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("idem migrate") && said.lines().count() == 1,
            "{said}"
        );
        assert!(!path.exists(), "{command}");
    }
    for _ in 0..2 {
        assert_eq!(
            run("migrate"),
            (Some(0), "the schema is up to date\n".to_owned())
        );
    }
    assert_eq!(run("list"), (Some(0), "no such records\n".to_owned()));
}

/// Whoever looks first must not decide that the store has no secret.
#[tokio::test]
async fn looking_at_a_new_store_leaves_the_secret_to_the_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let place = Place {
        url: format!("sqlite://{}", path.display()),
        apart: None,
    };
    for command in ["migrate", "list", "stats", "check", "sweep", "watch"] {
        let output = idem(&place).arg(command).output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
    }
    let store = SqliteStore::open(&path).await.unwrap();
    let secret = idem::Secret::new(*b"sixteen bytes ok").unwrap();
    idem::Engine::builder(store)
        .secret(secret)
        .build()
        .await
        .unwrap();
}

/// Older versions are stale because of it, also while a newer one is in doubt.
#[tokio::test]
async fn a_version_that_was_applied_is_forgotten_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let engine = idem::Engine::builder(store).namespace("shop");
    let engine = engine.build().await.unwrap();
    let apply = |version: u64| {
        let call = engine.call("customers.sync", &"c-1", std::time::Duration::from_secs(60));
        call.version(&version).on_error(idem::on_error::Unknown)
    };
    assert_eq!(
        apply(7).run(async { Ok::<_, idem::Error>(7_u64) }).await,
        Ok(7)
    );
    let broken = idem::Error::Failed {
        message: "no answer".to_owned(),
    };
    let doubtful = apply(8).run(async { Err::<u64, _>(broken) }).await;
    assert!(matches!(doubtful, Err(idem::Error::Failed { .. })));
    let place = Place {
        url: format!("sqlite://{}", path.display()),
        apart: None,
    };
    let admin = engine.admin().unwrap();
    let unknown = idem::admin::Filter::new(idem::record::Standing::Unknown);
    let id = admin.list(&unknown).await.unwrap().records[0].id.to_hex();
    let forget = ["forget", &id, "--by", "ada", "--why", "a test"];
    let refused = idem(&place).args(forget).output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "{}", printed(&refused));
    assert!(printed(&refused).contains("add --force"));
    let forced = idem(&place).args(forget).arg("--force").output().unwrap();
    assert!(forced.status.success(), "{}", printed(&forced));
    assert_eq!(
        apply(3).run(async { Ok::<_, idem::Error>(3_u64) }).await,
        Ok(3)
    );
}

#[tokio::test]
async fn the_printed_schema_is_one_to_work_on() {
    use idem::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
    use idem::sqlx::{AssertSqlSafe, Connection as _, raw_sql};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let place = Place {
        url: format!("sqlite://{}", path.display()),
        apart: None,
    };
    let sql = idem(&place)
        .args(["schema", "--dialect", "sqlite"])
        .output()
        .unwrap();
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
    let sql = AssertSqlSafe(String::from_utf8(sql.stdout).unwrap());
    raw_sql(sql).execute(&mut conn).await.unwrap();
    let output = idem(&place).arg("list").output().unwrap();
    assert_eq!(printed(&output), "no such records\n");

    for (dialect, part) in [
        ("postgres", "\"ops\".\"app_records\""),
        ("mysql", "`ops`.`app_records`"),
        ("mariadb", "`ops`.`app_records`"),
    ] {
        let output = idem(&place)
            .args([
                "schema",
                "--schema",
                "ops",
                "--prefix",
                "app_",
                "--dialect",
                dialect,
            ])
            .output()
            .unwrap();
        let sql = printed(&output);
        assert!(sql.contains(part), "{sql}");
    }
}

#[test]
fn completions_know_every_command() {
    let place = Place {
        url: "sqlite://none.db".to_owned(),
        apart: None,
    };
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = idem(&place).args(["completions", shell]).output().unwrap();
        assert!(output.status.success());
        let script = printed(&output);
        for command in ["resolve", "not-done", "watch"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[tokio::test]
async fn digits_of_several_records_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let engine = idem::Engine::builder(store)
        .namespace("shop")
        .build()
        .await
        .unwrap();
    for key in [51, 216] {
        let call = engine.call("carts.price", &key, idem::Ttl::Forever);
        call.run(async { Ok::<_, idem::Error>(()) }).await.unwrap();
    }
    let place = Place {
        url: format!("sqlite://{}", path.display()),
        apart: None,
    };
    let note = ["--by", "ada", "--why", "a test", "--force"];
    for (command, note) in [("show", &note[..0]), ("release", &note), ("forget", &note)] {
        let run = |digits: &str| {
            let mut idem = idem(&place);
            let output = idem.args([command, digits]).args(note).output().unwrap();
            (output.status.code(), printed(&output))
        };
        let (code, said) = run("d9c8");
        assert_eq!(code, Some(2), "{said}");
        for part in ["d9c853c4b859", "d9c8243f2c01", "give more"] {
            assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        }
        assert!(!run("D9C85").1.contains("give more"), "one is enough");
    }
}

/// What the filled store was called with, and what it answered.
const SECRETS: [&str; 8] = ["ch_7Q2", "m-1", "o-1", "o-2", "u-3", "u-4", "r-5", "EUR"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_argument_or_answer_is_printed() {
    let filled = filled().await;
    let run = |arguments: &[&str]| {
        let output = idem(&filled.place).args(arguments).output().unwrap();
        printed(&output)
    };
    let all = "unknown,lapsed,in-progress,done,released";
    let mut texts = vec![
        run(&["stats", "--finished"]),
        run(&["watch"]),
        run(&["watch", "--json"]),
    ];
    texts.push(run(&["list", "--state", all]));
    let listed = run(&["list", "--state", all, "--json"]);
    let ids: Vec<String> = listed
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 5, "{listed}");
    texts.push(listed);
    for id in &ids {
        texts.push(run(&["show", id]));
        texts.push(run(&["show", "--json", id]));
        texts.push(run(&["release", id, "--by", "ada", "--why", "a test"]));
        texts.push(run(&["forget", id, "--by", "ada", "--why", "a test"]));
    }
    for text in &texts {
        let text = text.replace("label", "");
        // The label is there to be read.
        let text = text.replace("order 1", "").replace("order 2", "");
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    let filled = self::filled().await;
    let run = |arguments: &[&str]| printed(&idem(&filled.place).args(arguments).output().unwrap());
    let completed = ids
        .iter()
        .find(|id| run(&["show", id, "--reveal"]).contains("ch_7Q2"));
    assert!(completed.is_some(), "`--reveal` shows the answer");
}

/// Every `$ idem …` of `docs/operations.md`, with what it prints, is in one of
/// the transcripts.
#[test]
fn the_guide_shows_what_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(folder.join("../docs/operations.md")).unwrap();
    let files = std::fs::read_dir(folder.join("tests/cmd")).unwrap();
    let played: Vec<String> = files
        .map(|file| normal(&std::fs::read_to_string(file.unwrap().path()).unwrap()))
        .collect();
    let shown = guide.split("```text\n$ idem ").skip(1);
    let mut count = 0;
    for block in shown.map(|rest| rest.split("```").next().unwrap()) {
        let block = normal(&format!("$ idem {block}"));
        let is_played = played.iter().any(|text| text.contains(&block));
        assert!(is_played, "not in a transcript:\n{block}");
        count += 1;
    }
    assert!(count >= 10, "{count} blocks");
}
