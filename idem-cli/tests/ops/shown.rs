//! What is on the page, and what is not.

use std::time::Duration;

use axum::http::StatusCode;
use idem::store::{Complete, Ending, Release, Store as _};
use idem::{Error, TombstoneReason, UnknownReason, on_error};

use super::world::World;

#[tokio::test]
async fn the_first_page_says_what_is_stuck_how_long_and_why() {
    let world = World::new().await;
    world
        .unknown("shop.charge", "order o-7", UnknownReason::Undecided)
        .await;
    world.clock.advance(Duration::from_secs(3_600));
    world.running("shop.refund", "order o-8").await;
    world.clock.advance(Duration::from_secs(600));
    world.running("shop.invoice", "order o-9").await;
    world.clock.advance(Duration::from_secs(20));

    let page = world.browser().await.get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    page.says(&[
        "1 outcome is unknown, for 1 h 10 min; 1 attempt has lapsed, begun 10 min ago.",
        "order o-7",
        "recovery asked, and got no decision",
        "order o-8",
        "process died, paused or cut off",
        "order o-9",
        "in 10 s",
    ]);
    let at = |text: &str| page.body.find(text).unwrap();
    assert!(at("order o-7") < at("order o-8"), "the longest first");
    assert!(
        at("order o-8") < at("order o-9"),
        "what runs comes after what is stuck"
    );
}

#[tokio::test]
async fn the_first_page_is_calm_when_nothing_is_stuck() {
    let world = World::new().await;
    world.completed("shop.charge", "", "{\"Ok\":1}").await;
    let page = world.browser().await.get("/").await;
    page.says(&["Nothing is stuck.", "No attempt is running."])
        .never_says(&[">oldest"]);
}

#[tokio::test]
async fn the_last_hour_is_counted_minute_by_minute() {
    let world = World::new().await;
    world.completed("shop.charge", "", "{\"Ok\":1}").await;
    world.clock.advance(Duration::from_secs(2 * 3_600));
    for _ in 0..3 {
        world.completed("shop.charge", "", "{\"Ok\":1}").await;
    }
    world.clock.advance(Duration::from_secs(120));
    let refused = world.running("shop.charge", "").await;
    let release = Release {
        holder: refused,
        ttl_us: None,
        probed: false,
    };
    world.store.release(&release).await.unwrap();
    let lost = world.running("shop.charge", "").await;
    let lost = Complete {
        holder: lost,
        ending: Ending::Tombstone(TombstoneReason::TooLarge),
        ttl_us: None,
    };
    world.store.complete(&lost).await.unwrap();
    world
        .unknown("shop.charge", "", UnknownReason::Panicked)
        .await;
    world.browser().await.get("/hour").await.says(&[
        "First calls: 6 in the last hour, at most 3 in a minute",
        "Answers recorded: 3 in the last hour",
        "Released errors: 1 in the last hour",
        "Tombstones: 1 in the last hour",
        "Became unknown: 1 in the last hour",
        "<td class=\"number\" data-name=\"First calls\">3</td>",
    ]);
}

#[tokio::test]
async fn each_list_has_its_records_and_may_be_of_one_operation() {
    let world = World::new().await;
    world
        .unknown("shop.charge", "o-unknown", UnknownReason::Panicked)
        .await;
    world
        .unknown("shop.refund & more", "o-other", UnknownReason::ShutDown)
        .await;
    world
        .completed("shop.charge", "o-completed", "{\"Ok\":1}")
        .await;
    let lapsed = world.running("shop.charge", "o-lapsed").await;
    world.clock.advance(Duration::from_secs(60));
    let running = world.running("shop.charge", "o-running").await;
    assert_ne!(lapsed.claim, running.claim);
    let browser = world.browser().await;
    let every = [
        "o-unknown",
        "o-other",
        "o-completed",
        "o-lapsed",
        "o-running",
    ];
    for (standing, labels) in [
        ("unknown", &["o-unknown", "o-other"][..]),
        ("lapsed", &["o-lapsed"]),
        ("in-progress", &["o-running"]),
        ("completed", &["o-completed"]),
        ("released", &[]),
        ("tombstone", &[]),
    ] {
        let list = browser.get(&format!("/records?standing={standing}")).await;
        list.says(labels);
        let others: Vec<_> = every
            .into_iter()
            .filter(|label| !labels.contains(label))
            .collect();
        list.never_says(&others);
    }
    let list = browser.get("/records?standing=unknown").await;
    list.says(&["operation=shop.refund%20%26%20more"]);
    let one = browser
        .get("/records?standing=unknown&operation=shop.refund%20%26%20more")
        .await;
    one.says(&["o-other"]).never_says(&["o-unknown"]);
}

#[tokio::test]
async fn long_lists_are_read_page_by_page_the_oldest_first() {
    let world = World::new().await;
    for number in 0..120 {
        world
            .unknown(
                "shop.charge",
                &format!("order-{number:03}"),
                UnknownReason::Panicked,
            )
            .await;
        world.clock.advance(Duration::from_secs(1));
    }
    let browser = world.browser().await;
    let first = browser.get("/records?standing=unknown").await;
    first
        .says(&["order-000", "order-049", "120 records, page 1 of 3"])
        .never_says(&["order-050"]);
    let last = browser.get("/records?standing=unknown&page=3").await;
    last.says(&["order-100", "order-119"])
        .never_says(&["order-099"]);
    let beyond = browser.get("/records?standing=unknown&page=99").await;
    beyond.says(&["order-119"]);
    browser
        .get("/")
        .await
        .says(&["order-019", "And 100 more"])
        .never_says(&["order-020"]);
}

#[tokio::test]
async fn a_record_has_its_life_and_its_row() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "order o-7", UnknownReason::Panicked)
        .await;
    world.clock.advance(Duration::from_secs(90));
    let page = world
        .browser()
        .await
        .get(&format!("/records/{}", holder.id.to_hex()))
        .await;
    page.says(&[
        "shop.charge",
        "order o-7",
        "its body panicked",
        "attempt 1 reserved the key",
        "its outcome became unknown",
        "1 min 30 s ago",
        "2026-01-01 00:00:00 UTC",
        "<code>order.amount</code>",
        &holder.fence.to_string(),
        "Settle it by hand",
    ]);
    // Who has the claim may end the attempt.
    let claim: String = holder
        .claim
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    page.never_says(&[&claim, &claim[..8]]);
}

#[tokio::test]
async fn within_the_grace_a_late_attempt_has_not_lapsed() {
    let world = World::new().await;
    let holder = world.running("shop.charge", "order o-7").await;
    let browser = world.browser().await;
    let path = format!("/records/{}", holder.id.to_hex());
    world.clock.advance(Duration::from_secs(33));
    browser
        .get(&path)
        .await
        .says(&["In progress"])
        .never_says(&["Settle it by hand"]);
    world.clock.advance(Duration::from_secs(3));
    browser
        .get(&path)
        .await
        .says(&["Lapsed", "Settle it by hand"]);
}

#[tokio::test]
async fn a_record_is_found_by_its_first_digits() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "", UnknownReason::Panicked)
        .await;
    let browser = world.browser().await;
    let found = browser.get(&format!("/find?id=+{}+", holder.id)).await;
    assert_eq!(found.status, StatusCode::SEE_OTHER);
    assert_eq!(found.location(), format!("/records/{}", holder.id.to_hex()));
    assert_eq!(
        browser.get("/find?id=ffff").await.status,
        StatusCode::NOT_FOUND
    );
    for wrong in ["abc", "xyzxyz", "%3Cscript%3E"] {
        let answer = browser.get(&format!("/find?id={wrong}")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        answer.never_says(&["<script"]);
    }
    for gone in [
        format!("/records/{}", "0".repeat(64)),
        "/records/nonsense".to_owned(),
    ] {
        assert_eq!(browser.get(&gone).await.status, StatusCode::NOT_FOUND);
        assert_eq!(
            browser.get(&format!("{gone}/settle")).await.status,
            StatusCode::NOT_FOUND
        );
    }
}

#[tokio::test]
async fn what_people_have_written_is_shown_as_text() {
    let world = World::new().await;
    let evil = "<script>alert(1)</script>\"'&";
    let holder = world.unknown(evil, evil, UnknownReason::Panicked).await;
    let browser = world.browser().await;
    let asked = [
        ("as", "done"),
        ("answer", evil),
        ("by", evil),
        ("why", evil),
    ];
    let again = browser.settle(&holder.id, &asked).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    again.never_says(&["<script>", "\"'&"]);
    let settled = browser
        .settle(
            &holder.id,
            &[("as", "not-done"), ("by", evil), ("why", evil)],
        )
        .await;
    assert_eq!(settled.status, StatusCode::SEE_OTHER);
    let record = format!("/records/{}", holder.id.to_hex());
    let settle = format!("{record}/settle");
    for path in [
        "/",
        "/records?standing=released",
        "/records?standing=%3Cscript%3E&operation=%3Cscript%3E",
        &record,
        &settle,
    ] {
        browser.get(path).await.never_says(&["<script>", "\"'&"]);
    }
    browser
        .get(&record)
        .await
        .says(&["&#60;script&#62;alert(1)"]);
}

#[tokio::test]
async fn no_key_argument_or_answer_is_on_any_page() {
    let world = World::new().await;
    let hour = Duration::from_secs(3_600);
    let call = |key: &'static str| {
        let call = world.engine.call("shop.charge", &(key, "canary-key"), hour);
        call.scope(&"canary-scope")
            .payload(&("canary-payload", 4_242_424))
            .label("a label")
    };
    let done: Result<String, Error> = call("a")
        .run(async { Ok("canary-answer".to_owned()) })
        .await;
    assert_eq!(done.unwrap(), "canary-answer");
    let failed = Error::Failed {
        message: "canary-error".to_owned(),
    };
    let unknown = failed.clone();
    let told: Result<String, Error> = call("b")
        .on_error(on_error::Unknown)
        .run(async { Err(unknown) })
        .await;
    assert_eq!(told.unwrap_err(), failed);
    let recorded = failed.clone();
    let told: Result<String, Error> = call("c").run(async { Err(recorded) }).await;
    assert_eq!(told.unwrap_err(), failed);

    let admin = world.engine.admin().unwrap();
    let filter = idem::admin::Filter::new(idem::record::Standing::Unknown);
    let stuck = admin.list(&filter).await.unwrap().records[0].id;
    let browser = world.browser().await;
    let settled = browser
        .settle(
            &stuck,
            &[
                ("as", "done"),
                ("answer", "\"canary-answer by hand\""),
                ("by", "ada"),
                ("why", "asked"),
            ],
        )
        .await;
    assert!(settled.location().ends_with("?settled=done"));

    let mut paths: Vec<String> = vec![
        "/".into(),
        "/hour".into(),
        "/find".into(),
        settled.location().into(),
    ];
    for standing in idem::record::Standing::ALL {
        let filter = idem::admin::Filter::new(standing);
        for record in admin.list(&filter).await.unwrap().records {
            paths.push(format!("/records/{}", record.id.to_hex()));
            paths.push(format!("/records/{}/settle", record.id.to_hex()));
        }
    }
    for standing in [
        "unknown",
        "lapsed",
        "in-progress",
        "completed",
        "tombstone",
        "released",
    ] {
        paths.push(format!("/records?standing={standing}"));
    }
    assert_eq!(paths.len(), 16);
    for path in paths {
        let page = browser.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        page.never_says(&["canary", "4242424"]);
    }
}

#[tokio::test]
async fn only_the_first_page_loads_itself_again_until_it_is_told_not_to() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "", UnknownReason::Panicked)
        .await;
    let browser = world.browser().await;
    browser
        .get("/")
        .await
        .says(&["http-equiv=\"refresh\" content=\"15\"", "?refresh=off"]);
    let record = format!("/records/{}", holder.id.to_hex());
    let settle = format!("{record}/settle");
    for path in [
        "/?refresh=off",
        "/hour",
        "/records",
        "/find",
        &record,
        &settle,
    ] {
        browser
            .get(path)
            .await
            .never_says(&["http-equiv=\"refresh\""]);
    }
}
