//! Proves what an annotation costs in the size of a future: a service that
//! boxes or nests them pays for every byte.

#![allow(clippy::large_futures, reason = "their size is what is measured")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use idem::sqlx::{Connection as _, SqliteConnection};
use idem::{Error, idempotent};

/// An argument of four KiB.
type Large = [u8; 4096];

async fn wait() {
    tokio::task::yield_now().await;
}

async fn plain(order: u32, large: Large) -> Result<u32, Error> {
    wait().await;
    Ok(order + u32::from(large[0]))
}

#[idempotent(key = order, ttl = "1h", name = "size.abandon", on_cancel = abandon)]
async fn abandon(order: u32, large: Large) -> Result<u32, Error> {
    wait().await;
    Ok(order + u32::from(large[0]))
}

async fn write(_: &mut SqliteConnection) {
    wait().await;
}

async fn plain_on(conn: &mut SqliteConnection, order: u32, large: Large) -> Result<u32, Error> {
    write(conn).await;
    Ok(order + u32::from(large[0]))
}

#[idempotent(key = order, ttl = "1h", name = "size.within", tx = conn)]
async fn within(conn: &mut SqliteConnection, order: u32, large: Large) -> Result<u32, Error> {
    write(conn).await;
    Ok(order + u32::from(large[0]))
}

#[idempotent(key = order, ttl = "1h", name = "size.finish")]
async fn finish(order: u32, large: Large) -> Result<u32, Error> {
    wait().await;
    Ok(order + u32::from(large[0]))
}

#[idempotent(key = order, ttl = "1h", name = "size.outer", on_cancel = abandon)]
async fn outer(order: u32, large: Large) -> Result<u32, Error> {
    let inner = abandon(order, large).await?;
    Ok(inner + u32::from(large[1]))
}

#[test]
fn abandon_adds_at_most_128_bytes_to_the_plain_function() {
    let plain = size_of_val(&plain(1, [0; 4096]));
    let abandon = size_of_val(&abandon(1, [0; 4096]));
    println!("plain {plain}, abandon {abandon}");
    assert!(abandon <= plain + 128, "plain {plain}, abandon {abandon}");
}

/// The arguments wait for the reservation, and move into the body after it.
#[tokio::test]
async fn tx_adds_its_arguments_and_at_most_256_bytes_to_the_plain_function() {
    let opened = SqliteConnection::connect("sqlite::memory:").await;
    let mut conn = opened.expect("a database in memory");
    let plain = size_of_val(&plain_on(&mut conn, 1, [0; 4096]));
    let within = size_of_val(&within(&mut conn, 1, [0; 4096]));
    println!("plain {plain}, tx {within}");
    let most = plain + size_of::<Large>() + 256;
    assert!(within <= most, "plain {plain}, tx {within}");
}

#[test]
fn finish_is_smaller_than_the_plain_function() {
    let plain = size_of_val(&plain(1, [0; 4096]));
    let finish = size_of_val(&finish(1, [0; 4096]));
    println!("plain {plain}, finish {finish}");
    assert!(finish <= plain, "plain {plain}, finish {finish}");
}

#[test]
fn two_nested_annotated_functions_stay_under_18_kib() {
    let nested = size_of_val(&outer(1, [0; 4096]));
    println!("nested {nested}");
    assert!(nested <= 18 * 1024, "nested {nested}");
}
