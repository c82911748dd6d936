//! Rows that somebody changed, or a disk.

use std::time::Duration;

use idem::store::{
    GiveBack, Holder, Lease, MarkUnknown, Release, Reserve, Reserved, SqliteStore, Store as _,
    Sweep, Takeover, Written,
};
use idem::{Engine, Error, StoreErrorKind, TombstoneReason, Ttl, UnknownReason};

use super::{File, LEASE, completion, request, rerun, win};

/// Every operation, on a record of which nothing may be believed.
async fn all_fail(store: &SqliteStore, holder: Holder, damage: &str) {
    let failed = |what: &str, kind: Option<StoreErrorKind>| {
        assert_eq!(
            kind,
            Some(StoreErrorKind::Permanent),
            "{what} with {damage} must be an error, and never \"absent\""
        );
    };
    for takeover in [Takeover::Refuse, Takeover::Rerun, Takeover::Recover] {
        let request = Reserve {
            takeover,
            ..request(1, 9)
        };
        let reply = store.reserve(&request).await;
        failed("reserve", reply.err().map(|error| error.kind()));
    }
    let written = store.complete(&completion(holder)).await;
    failed("complete", written.err().map(|error| error.kind()));
    let release = Release {
        holder,
        ttl_us: None,
        probed: false,
    };
    let written = store.release(&release).await;
    failed("release", written.err().map(|error| error.kind()));
    let mark = MarkUnknown {
        holder,
        reason: UnknownReason::Failed,
        undecided_retry_us: None,
    };
    let written = store.mark_unknown(&mark).await;
    failed("mark_unknown", written.err().map(|error| error.kind()));
    let mut renewer = store.renewer().await.unwrap();
    let written = renewer.mark_unknown(&mark).await;
    failed("the renewer's", written.err().map(|error| error.kind()));
    let give = GiveBack {
        id: holder.id,
        claim: holder.claim,
        ttl_us: None,
    };
    let written = renewer.give_back(&give).await;
    failed("give_back", written.err().map(|error| error.kind()));
    let lease = Lease {
        holder,
        lease_us: LEASE,
    };
    let held = renewer.renew(&[lease]).await;
    assert_ne!(held, Ok(vec![true]), "renew with {damage}");
}

#[tokio::test]
async fn a_damaged_row_is_an_error_and_never_absent() {
    for damage in [
        "UPDATE idem_records SET state = 9",
        "UPDATE idem_records SET state = 'running'",
        "UPDATE idem_records SET state = 65536",
        "UPDATE idem_records SET claim = x'00'",
        "UPDATE idem_records SET fence = 'seven'",
        "UPDATE idem_records SET attempt = 4294967297",
        "UPDATE idem_records SET takeovers = 1.5",
        "UPDATE idem_records SET doubt = 'maybe'",
        "UPDATE idem_records SET payload_digest = x''",
        "UPDATE idem_records SET payload_elements = x'ffff00'",
        "UPDATE idem_records SET scope_digest = x'00'",
        "UPDATE idem_records SET lease_until_us = 'soon'",
        "UPDATE idem_records SET expires_us = x'00'",
        "UPDATE idem_records SET version_recorded = zeroblob(33)",
        "UPDATE idem_records SET recorded_payload_digest = x'00'",
        "UPDATE idem_records SET parent = x'00'",
    ] {
        let file = File::new();
        let store = file.open().await;
        let (holder, _) = win(&store, &request(1, 1)).await;
        assert_eq!(file.execute(damage).await, 1);
        all_fail(&store, holder, damage).await;
        let sweep = Sweep {
            limit: 10,
            grace_us: 0,
        };
        assert_eq!(store.sweep(&sweep).await, Ok(0), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_row_stops_nobody_elses_renewal() {
    let file = File::new();
    let store = file.open().await;
    let mut leases = Vec::new();
    for key in 1..=5 {
        let (holder, _) = win(&store, &request(key, key)).await;
        leases.push(Lease {
            holder,
            lease_us: LEASE,
        });
    }
    file.execute("UPDATE idem_records SET state = 9 WHERE operation = 'shop.charge' AND claim = x'03030303030303030303030303030303'")
        .await;
    let mut renewer = store.renewer().await.unwrap();
    let held = renewer.renew(&leases).await;
    assert_eq!(held, Ok(vec![true, true, false, true, true]));
}

#[tokio::test]
async fn a_missing_lease_is_not_a_lapsed_one() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    file.execute("UPDATE idem_records SET lease_until_us = NULL")
        .await;
    file.clock.advance(Duration::from_secs(10 * 365 * 86_400));
    for request in [request(1, 2), rerun(1, 3)] {
        let reply = store.reserve(&request).await.unwrap();
        let reason = UnknownReason::Unfinished;
        assert!(
            matches!(&reply, Reserved::Unknown { reason: told, .. } if *told == reason),
            "{reply:?}"
        );
    }
    let written = store.complete(&completion(holder)).await.unwrap();
    assert_eq!(written, Written::Done);
}

#[tokio::test]
async fn an_expiry_on_a_running_or_unknown_row_is_not_believed() {
    let file = File::new();
    let store = file.open().await;
    win(&store, &request(1, 1)).await;
    let (marked, _) = win(&store, &request(2, 2)).await;
    let mark = MarkUnknown {
        holder: marked,
        reason: UnknownReason::Failed,
        undecided_retry_us: None,
    };
    assert_eq!(store.mark_unknown(&mark).await, Ok(Written::Done));
    file.execute("UPDATE idem_records SET expires_us = 1").await;
    let sweep = Sweep {
        limit: 10,
        grace_us: 0,
    };
    assert_eq!(store.sweep(&sweep).await, Ok(0));
    let reply = store.reserve(&rerun(1, 3)).await.unwrap();
    assert!(matches!(reply, Reserved::InProgress { .. }), "{reply:?}");
    let reply = store.reserve(&request(2, 4)).await.unwrap();
    assert!(matches!(reply, Reserved::Unknown { .. }), "{reply:?}");
}

const DAY: Ttl = Ttl::For(Duration::from_secs(86_400));

async fn charge(engine: &Engine) -> Result<u64, Error> {
    engine
        .call("shop.charge", "order-7", DAY)
        .run(async { Ok(4_200) })
        .await
}

#[tokio::test]
async fn a_flipped_bit_of_an_answer_is_never_replayed() {
    for damage in [
        "UPDATE idem_records SET answer = CAST(replace(CAST(answer AS TEXT), '4', '5') AS BLOB)",
        "UPDATE idem_records SET answer = x''",
        "UPDATE idem_records SET answer_digest = zeroblob(32)",
        "UPDATE idem_records SET answer_digest = x'00'",
        "UPDATE idem_records SET answer_digest = NULL",
        "UPDATE idem_records SET answer = NULL",
        "UPDATE idem_records SET codec = 'jsoN'",
        "UPDATE idem_records SET codec = NULL",
    ] {
        let file = File::new();
        let builder = Engine::builder(file.open().await).namespace("shop");
        let engine = builder.build().await.unwrap();
        assert_eq!(charge(&engine).await, Ok(4_200));
        assert_eq!(charge(&engine).await, Ok(4_200));
        assert_eq!(file.execute(damage).await, 1);
        let error = charge(&engine).await.unwrap_err();
        let refused = matches!(error, Error::NotReplayable { .. });
        assert!(refused, "{damage}: {error}");
    }
}

#[tokio::test]
async fn an_answer_swapped_with_another_records_is_never_replayed() {
    let file = File::new();
    let builder = Engine::builder(file.open().await).namespace("shop");
    let engine = builder.build().await.unwrap();
    for order in ["order-1", "order-2"] {
        let call = engine.call("shop.charge", order, DAY);
        let amount = order.len() + usize::from(order.ends_with('2'));
        let charged: Result<usize, Error> = call.run(async move { Ok(amount) }).await;
        assert_eq!(charged, Ok(amount));
    }
    file.execute(
        "UPDATE idem_records SET (answer, answer_digest) =
         (SELECT answer, answer_digest FROM idem_records ORDER BY answer DESC LIMIT 1)",
    )
    .await;
    let call = engine.call("shop.charge", "order-1", DAY);
    let replayed: Result<usize, Error> = call.run(async { Ok(0) }).await;
    let expected = Error::NotReplayable {
        reason: TombstoneReason::Damaged,
    };
    assert_eq!(replayed, Err(expected));
}
