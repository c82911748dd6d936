//! What may stand behind `tx`.

use super::Session;

/// A connection or transaction of sqlx that may stand behind `tx`:
/// `SqliteConnection`, `PgConnection`, `MySqlConnection`, and
/// `Transaction<'_, DB>` and `PoolConnection<DB>` of their databases, each under
/// the feature of its database and the feature `tx`. Sealed.
///
/// It must be in a transaction when the call is made.
///
/// # Examples
/// A function that works on each of them:
/// ```
/// use idem::transaction::TxConnection;
///
/// fn is_begun(conn: &mut impl TxConnection) -> bool {
///     conn.session().is_in_transaction()
/// }
/// ```
/// Nothing else is one:
/// ```compile_fail,E0277
/// fn stands_behind_tx<C: idem::transaction::TxConnection>() {}
///
/// stands_behind_tx::<std::net::TcpStream>();
/// ```
#[cfg_attr(
    feature = "tx",
    diagnostic::on_unimplemented(
        message = "`{Self}` cannot stand behind `tx`",
        label = "must be a connection or a transaction of sqlx",
        note = "take `conn: &mut sqlx::Transaction<'_, DB>` or a `&mut` connection of SQLite, Postgres or MySQL, of the sqlx that is `idem::sqlx`",
        note = "each database needs its feature of `idem-runtime`: `sqlite`, `postgres` or `mysql`"
    )
)]
#[cfg_attr(
    not(feature = "tx"),
    diagnostic::on_unimplemented(
        message = "a call in its caller's transaction needs the feature `tx` of `idem-runtime`",
        label = "stands behind `tx`, which that feature brings",
        note = "enable it: `cargo add idem-runtime --features tx`"
    )
)]
pub trait TxConnection: Sealed + Send {
    /// The connection itself, without the transaction around it.
    type Connection: TxConnection;

    /// Returns the connection itself: what a closure is given that runs in the
    /// transaction. A future that holds a closure over `&mut Transaction<'_, _>`
    /// could not be spawned.
    fn connection(&mut self) -> &mut Self::Connection;

    /// Returns the connection, of whichever database.
    fn session(&mut self) -> Session<'_>;
}

/// Named by nobody outside.
pub trait Sealed {}
