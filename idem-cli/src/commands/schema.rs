//! `idem schema`: the migrations as SQL, without a server.

use idem::sqlx::mysql::MySqlPoolOptions;
use idem::sqlx::postgres::PgPoolOptions;
use idem::store::mysql::Dialect as MySqlDialect;
use idem::store::{MySqlStore, PostgresStore, SqliteStore};

use crate::args::{Dialect, Global, Schema};
use crate::failure::Failure;
use crate::output::print;

pub(crate) async fn run(global: &Global, args: &Schema) -> Result<(), Failure> {
    let sql = match args.dialect {
        Dialect::Sqlite => SqliteStore::schema_sql(),
        Dialect::Postgres => postgres(global)?.schema_sql(),
        Dialect::Mysql => mysql(global).await?.schema_sql(),
    };
    print(&sql)
}

/// A store that is never asked.
fn postgres(global: &Global) -> Result<PostgresStore, Failure> {
    let mut options = PostgresStore::options();
    if let Some(schema) = &global.schema {
        options = options.schema(schema);
    }
    if let Some(prefix) = &global.prefix {
        options = options.prefix(prefix);
    }
    let pool = PgPoolOptions::new()
        .connect_lazy("postgres://localhost/none")
        .map_err(|_| Failure::failed("the driver refused its own URL"))?;
    Ok(options.from_pool(pool)?)
}

/// A store that is never asked.
async fn mysql(global: &Global) -> Result<MySqlStore, Failure> {
    let mut options = MySqlStore::options().dialect(MySqlDialect::MySql);
    if let Some(schema) = &global.schema {
        options = options.database(schema);
    }
    if let Some(prefix) = &global.prefix {
        options = options.prefix(prefix);
    }
    let pool = MySqlPoolOptions::new()
        .connect_lazy("mysql://localhost/none")
        .map_err(|_| Failure::failed("the driver refused its own URL"))?;
    Ok(options.from_pool(pool).await?)
}
