//! The operations of these tests: each writes one row of the caller's.

use std::fmt;

use idem::transaction::{Session, TxConnection};
use idem::{Engine, Error, idempotent, sqlx};

/// Not serializable: in a transaction an `Err` is not recorded by default.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    Idem(Error),
    /// The body's own.
    Declined,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idem(error) => error.fmt(f),
            Self::Declined => f.write_str("declined"),
        }
    }
}

/// What the body does after its row is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Act {
    Answer,
    Decline,
    Panic,
    /// Never ends.
    Hang,
    /// Calls itself with the same key.
    Again,
    /// Fails on a call of another operation that gives no answer.
    Nested,
    /// Begins a step, which is for attempts that outlive a transaction.
    Step,
}

/// What is the same for each call.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) engine: Engine,
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) amount: u32,
    pub(crate) act: Act,
}

#[idempotent(
    name = "tx.place",
    key = order.key,
    payload = order.amount,
    ttl = "1h",
    engine = order.engine,
    on_in_progress = reject,
    tx = conn
)]
pub(crate) async fn place<C: TxConnection>(conn: &mut C, order: &Order) -> Result<u32, Failure> {
    body(conn, order).await
}

#[idempotent(
    name = "tx.place",
    key = order.key,
    payload = order.amount,
    ttl = "1h",
    engine = order.engine,
    tx = conn
)]
pub(crate) async fn patient<C: TxConnection>(conn: &mut C, order: &Order) -> Result<u32, Failure> {
    body(conn, order).await
}

#[idempotent(
    name = "tx.tentative",
    key = order.key,
    payload = order.amount,
    ttl = "1h",
    engine = order.engine,
    tx = savepoint(conn)
)]
pub(crate) async fn tentative<C: TxConnection>(
    conn: &mut C,
    order: &Order,
) -> Result<u32, Failure> {
    body(conn, order).await
}

#[idempotent(
    name = "tx.recorded",
    key = order.key,
    payload = order.amount,
    ttl = "1h",
    engine = order.engine,
    on_error = store_text,
    tx = conn
)]
pub(crate) async fn recorded<C: TxConnection>(conn: &mut C, order: &Order) -> Result<u32, Failure> {
    body(conn, order).await
}

async fn body<C: TxConnection>(conn: &mut C, order: &Order) -> Result<u32, Failure> {
    let context = idem::context()?;
    assert_eq!(context.downstream_key("x").len(), 64);
    assert!(context.fence() > 0 && !context.is_reattempt());
    context.ensure_held().await?;
    execute(
        &mut conn.session(),
        &format!("insert into {} values ('{}')", order.table, order.key),
    )
    .await;
    match order.act {
        Act::Answer => Ok(order.amount),
        Act::Decline => Err(Failure::Declined),
        Act::Panic => panic!("the body panics"),
        Act::Hang => std::future::pending().await,
        Act::Again => {
            let order = Order {
                act: Act::Answer,
                ..order.clone()
            };
            Box::pin(place(conn, &order)).await
        }
        Act::Nested => {
            let call = order
                .engine
                .call("tx.nested", &None::<u8>, std::time::Duration::ZERO);
            let nested: Result<u32, Error> = call.run(async { Ok(1) }).await;
            nested.map_err(Failure::Idem)
        }
        Act::Step => idem::step("a", async { Ok(1) }).await,
    }
}

/// Runs a statement without parameters.
pub(crate) async fn execute(session: &mut Session<'_>, sql: &str) {
    try_execute(session, sql).await.unwrap();
}

pub(crate) async fn try_execute(session: &mut Session<'_>, sql: &str) -> Result<(), sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(sql);
    match session {
        Session::Sqlite(conn) => sqlx::Executor::execute(&mut **conn, sql).await.map(|_| ()),
        #[cfg(feature = "servers")]
        Session::Postgres(conn) => sqlx::Executor::execute(&mut **conn, sql).await.map(|_| ()),
        #[cfg(feature = "servers")]
        Session::MySql(conn) => sqlx::Executor::execute(&mut **conn, sql).await.map(|_| ()),
        _ => panic!("no such database"),
    }
}
