//! Expansions as a reviewer reads them: `src/snapshots/*.rs.txt`.

use std::path::Path;

use super::tokens;
use crate::pipeline::expand;

/// Compares with `src/snapshots/NAME.rs.txt`; `IDEM_BLESS=1` writes it.
fn snapshot(name: &str, attr: &str, item: &str) {
    let expansion = syn::parse2(expand(tokens(attr), tokens(item))).expect("a file");
    let found = format!(
        "// #[idempotent({attr})]\n{}",
        prettyplease::unparse(&expansion)
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/snapshots")
        .join(format!("{name}.rs.txt"));
    if std::env::var_os("IDEM_BLESS").is_some() {
        std::fs::write(&file, &found).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(&file).expect("a snapshot; write it with IDEM_BLESS=1");
    assert_eq!(found, expected, "{name} changed; bless with IDEM_BLESS=1");
    assert!(
        found.lines().count() <= 74,
        "{name} does not fit on one screen"
    );
}

#[test]
fn free_function() {
    snapshot(
        "free_function",
        r#"key = (merchant, order.id), payload = (amount, currency), ttl = "24h""#,
        "/// Charges an order.
        pub async fn charge(merchant: MerchantId, order: Order, mut amount: u64, currency: Currency)
            -> Result<Charge, ChargeError>
        { gateway().charge(order, amount, currency).await }",
    );
}

#[test]
fn method_on_a_clone() {
    snapshot(
        "method_on_a_clone",
        r#"key = note.id, ttl = "1h30m", name = "notes.send", clone = (self, note), engine = self.idem"#,
        "async fn send(&self, note: &Note, _permit: Permit) -> Result<Sent, SendError>
        { self.mailer.send(note).await }",
    );
}

#[test]
fn abandon_with_borrows() {
    snapshot(
        "abandon_with_borrows",
        r#"key = id, ttl = forever, name = "x.y", on_cancel = abandon, on_error = classify(sort), map_err = wrap, on_in_progress = reject, lease = "10s""#,
        "async fn y(&self, id: &str, _: Guard) -> Result<u32, Failure> { self.work(id).await }",
    );
}

#[test]
fn same_transaction() {
    snapshot(
        "same_transaction",
        r#"key = id, ttl = "1h", name = "orders.place", tx = savepoint(conn)"#,
        "async fn place(conn: &mut PgConnection, id: u32, note: &str) -> Result<u32, Failure>
        { insert(conn, id, note).await }",
    );
}

#[test]
fn recovery() {
    snapshot(
        "recovery",
        r#"key = order_id, ttl = Duration::from_secs(60), on_unknown = recover(find(&order_id)), on_error = store_text"#,
        "async fn pay(order_id: OrderId) -> Result<Paid, PayError> { submit(order_id).await }",
    );
}

#[test]
fn ordered_apply() {
    snapshot(
        "ordered_apply",
        r#"key = row.id, payload = row.name, version = (row.at, row.seq), on_stale = replay, ttl = "7d""#,
        "async fn apply(row: Row) -> Result<Applied, SyncError> { table().upsert(row).await }",
    );
}

#[test]
fn async_trait_method() {
    snapshot(
        "async_trait_method",
        r#"key = id, ttl = "1d", name = "pay.pay", clone = self"#,
        "fn pay<'life0, 'async_trait>(&'life0 self, id: u32)
            -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<u32, E>> + ::core::marker::Send + 'async_trait>>
        where 'life0: 'async_trait, Self: 'async_trait
        { Box::pin(async move { let __self = self; let id = id; let __ret: Result<u32, E> = { __self.go(id) }; __ret }) }",
    );
}

#[test]
fn several_mistakes() {
    snapshot(
        "several_mistakes",
        r#"kye = id, ttl = "24", tenant = shop, on_error = stor"#,
        "async fn charge(id: u32, note: &str) -> Result<Charge, ChargeError> { go(id, note).await }",
    );
}
