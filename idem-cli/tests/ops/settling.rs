//! Settling by hand: what each choice does, and when nothing is changed.

use std::time::Duration;

use axum::http::StatusCode;
use idem::admin::{Filter, Settled};
use idem::record::{Standing, State};
use idem::store::{Complete, Ending, Store as _};
use idem::{Error, RecordId, TombstoneReason, UnknownReason, on_error};

use super::world::{Browser, World};

const NOTE: [(&str, &str); 2] = [("by", "ada@shop"), ("why", "in the provider's log")];

fn with(fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [fields, &NOTE[..]].concat()
}

/// A call that leaves an unknown outcome, and then takes what is recorded.
async fn charge(world: &World, answer: Result<u64, Error>) -> Result<u64, Error> {
    let call = world
        .engine
        .call("shop.charge", &"o-7", Duration::from_secs(3_600));
    call.label("order o-7")
        .on_error(on_error::Unknown)
        .run(async { answer })
        .await
}

async fn stuck(world: &World) -> (RecordId, Browser) {
    let broken = Error::Failed {
        message: "no answer".to_owned(),
    };
    assert!(charge(world, Err(broken)).await.is_err());
    assert!(charge(world, Ok(1)).await.unwrap_err().is_unknown_outcome());
    let admin = world.engine.admin().unwrap();
    let listing = admin.list(&Filter::new(Standing::Unknown)).await.unwrap();
    (listing.records[0].id, world.browser().await)
}

#[tokio::test]
async fn what_happened_is_replayed_from_then_on() {
    let world = World::new().await;
    let (id, browser) = stuck(&world).await;
    let settled = browser
        .settle(&id, &with(&[("as", "done"), ("answer", " 4200 ")]))
        .await;
    assert_eq!(settled.status, StatusCode::SEE_OTHER);
    assert_eq!(
        settled.location(),
        format!("/records/{}?settled=done", id.to_hex())
    );
    browser.get(settled.location()).await.says(&[
        "Settled.",
        "Completed",
        "ada@shop",
        "in the provider&#39;s log",
        "it happened, and this is its answer. It was unknown before.",
    ]);
    assert_eq!(charge(&world, Ok(1)).await, Ok(4_200));
    browser.get("/").await.says(&["Nothing is stuck."]);
}

#[tokio::test]
async fn what_did_not_happen_runs_again() {
    let world = World::new().await;
    let (id, browser) = stuck(&world).await;
    let settled = browser.settle(&id, &with(&[("as", "not-done")])).await;
    assert!(settled.location().ends_with("?settled=done"));
    assert_eq!(world.store.record(&id).unwrap().state, State::Released);
    assert_eq!(charge(&world, Ok(7)).await, Ok(7));
}

#[tokio::test]
async fn what_is_forgotten_was_confirmed_and_keeps_its_audit() {
    let world = World::new().await;
    let (id, browser) = stuck(&world).await;
    let unsure = browser.settle(&id, &with(&[("as", "forget")])).await;
    assert_eq!(unsure.status, StatusCode::UNPROCESSABLE_ENTITY);
    unsure.says(&["Forgetting was not confirmed", "value=\"ada@shop\""]);
    assert_eq!(world.store.record(&id).unwrap().state, State::Unknown);
    let sure = browser
        .settle(&id, &with(&[("as", "forget"), ("sure", "yes")]))
        .await;
    assert!(sure.location().ends_with("?settled=done"));
    world.clock.advance(Duration::from_secs(1));
    browser
        .get(sure.location())
        .await
        .says(&["Expired", "forgotten", "ada@shop"]);
    assert_eq!(charge(&world, Ok(7)).await, Ok(7));
}

#[tokio::test]
async fn a_form_that_lacks_something_is_shown_again_with_what_was_written() {
    let world = World::new().await;
    let (id, browser) = stuck(&world).await;
    for (fields, problem) in [
        (with(&[]), "Choose what became of it."),
        (with(&[("as", "explode")]), "Choose what became of it."),
        (
            with(&[("as", "done"), ("answer", "")]),
            "The answer is not JSON",
        ),
        (
            with(&[("as", "done"), ("answer", "{\"id\": ch_1}")]),
            "line 1, column 8",
        ),
        (
            with(&[("as", "done"), ("answer", "1 2")]),
            "The answer is not JSON",
        ),
        (
            vec![("as", "not-done"), ("by", " "), ("why", "x")],
            "Say who you are.",
        ),
        (vec![("as", "not-done"), ("by", "ada")], "Say why"),
    ] {
        let again = browser.settle(&id, &fields).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}");
        again.says(&[problem, "Nothing was changed"]);
    }
    assert_eq!(world.store.record(&id).unwrap().state, State::Unknown);
    assert!(
        world
            .engine
            .admin()
            .unwrap()
            .record(id)
            .audit()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_record_that_changed_since_the_form_was_opened_is_left_alone() {
    let world = World::new().await;
    let (id, browser) = stuck(&world).await;
    let path = format!("/records/{}/settle", id.to_hex());
    let opened = browser.get(&path).await;
    let record = world.engine.admin().unwrap().record(id);
    assert_eq!(
        record.release("bob", "he was first").await,
        Ok(Settled::Done)
    );
    let broken = Error::Failed {
        message: "no answer".to_owned(),
    };
    assert!(charge(&world, Err(broken)).await.is_err());
    assert_eq!(world.store.record(&id).unwrap().state, State::Unknown);

    let late = browser
        .send_settle(&opened, &path, &with(&[("as", "done"), ("answer", "1")]))
        .await;
    assert_eq!(late.status, StatusCode::SEE_OTHER);
    assert!(late.location().ends_with("?settled=changed"));
    browser
        .get(late.location())
        .await
        .says(&["the record has changed since the form was opened"]);
    assert_eq!(world.store.record(&id).unwrap().state, State::Unknown);
}

#[tokio::test]
async fn an_attempt_that_holds_its_lease_is_left_alone() {
    let world = World::new().await;
    let holder = world.running("shop.charge", "order o-7").await;
    let browser = world.browser().await;
    let answer = browser
        .settle(&holder.id, &with(&[("as", "not-done")]))
        .await;
    assert!(answer.location().ends_with("?settled=running"));
    browser
        .get(answer.location())
        .await
        .says(&["its attempt still holds its lease"]);
    assert_eq!(
        world.store.record(&holder.id).unwrap().state,
        State::InProgress
    );
    // Once it has lapsed, the same form settles it.
    world.clock.advance(Duration::from_secs(60));
    let answer = browser
        .settle(&holder.id, &with(&[("as", "not-done")]))
        .await;
    assert!(answer.location().ends_with("?settled=done"));
}

#[tokio::test]
async fn an_answer_is_not_replaced_by_another_one() {
    let world = World::new().await;
    let holder = world
        .completed("shop.charge", "order o-7", "{\"Ok\":1}")
        .await;
    let browser = world.browser().await;
    let path = format!("/records/{}/settle", holder.id.to_hex());
    browser
        .get(&path)
        .await
        .says(&["can only be forgotten"])
        .never_says(&["value=\"done\""]);
    let answer = browser
        .settle(&holder.id, &with(&[("as", "done"), ("answer", "2")]))
        .await;
    assert!(answer.location().ends_with("?settled=ended"));
    browser
        .get(answer.location())
        .await
        .says(&["needs no settling"]);
}

#[tokio::test]
async fn a_record_that_is_gone_is_said_to_be() {
    let world = World::new().await;
    let holder = world
        .completed("shop.charge", "order o-7", "{\"Ok\":1}")
        .await;
    let browser = world.browser().await;
    let path = format!("/records/{}/settle", holder.id.to_hex());
    let opened = browser.get(&path).await;
    world.clock.advance(Duration::from_secs(90_000));
    let expired = browser
        .send_settle(&opened, &path, &with(&[("as", "not-done")]))
        .await;
    assert_eq!(expired.status, StatusCode::NOT_FOUND);
    assert_eq!(world.engine.sweep().await, Ok(1));
    let swept = browser
        .send_settle(&opened, &path, &with(&[("as", "not-done")]))
        .await;
    assert_eq!(swept.status, StatusCode::NOT_FOUND);
    swept.says(&["There is no such record"]);
}

#[tokio::test]
async fn an_address_alone_does_not_say_that_it_was_settled() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "", UnknownReason::Panicked)
        .await;
    let browser = world.browser().await;
    let path = format!("/records/{}?settled=done", holder.id.to_hex());
    browser.get(&path).await.never_says(&["Settled."]);
}

/// Its work is done: only its answer is lost.
#[tokio::test]
async fn a_tombstone_is_not_released() {
    let world = World::new().await;
    let holder = world.running("shop.charge", "o-8").await;
    let tombstone = Complete {
        holder,
        ending: Ending::Tombstone(TombstoneReason::TooLarge),
        ttl_us: None,
    };
    let ended = world.store.complete(&tombstone).await;
    assert!(ended.unwrap().is_done());
    let browser = world.browser().await;
    let path = format!("/records/{}/settle", holder.id.to_hex());
    let opened = browser.get(&path).await;
    opened.never_says(&["value=\"not-done\""]);
    let not_done = with(&[("as", "not-done")]);
    let refused = browser.settle(&holder.id, &not_done).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says(&["Its work is done"]);
    let state = world.store.record(&holder.id).unwrap().state;
    assert_eq!(state, State::Tombstone);
}
