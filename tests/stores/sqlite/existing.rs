//! A file that must be there, and a schema that somebody else makes.

use super::*;

async fn existing(file: &File) -> Result<SqliteStore, StoreError> {
    SqliteStore::options(&file.path).existing().open().await
}

#[tokio::test]
async fn what_is_not_there_is_not_created() {
    let file = File::new();
    let error = existing(&file).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(!file.path.exists());

    // Somebody else's database stays as it is, also in how it is written.
    let options = SqliteConnectOptions::new()
        .filename(&file.path)
        .create_if_missing(true);
    let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
    conn.execute("CREATE TABLE theirs (one INTEGER)")
        .await
        .unwrap();
    conn.close().await.unwrap();
    let before = std::fs::read(&file.path).unwrap();
    let error = existing(&file).await.unwrap_err();
    assert!(error.to_string().contains("idem migrate"), "{error}");
    assert_eq!(std::fs::read(&file.path).unwrap(), before);

    file.open().await;
    existing(&file).await.unwrap();
}

#[tokio::test]
async fn an_old_schema_is_not_upgraded() {
    let file = File::new();
    drop(file.open().await);
    file.execute("DELETE FROM idem_schema WHERE version = 3")
        .await;
    let error = existing(&file).await.unwrap_err();
    assert!(error.to_string().contains("idem migrate"), "{error}");
    file.execute("INSERT INTO idem_schema VALUES (1000, 0)")
        .await;
    let error = existing(&file).await.unwrap_err();
    assert!(error.to_string().contains("upgrade"), "{error}");
}

#[tokio::test]
async fn the_printed_schema_is_the_one_that_is_created() {
    const TABLES: &str = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let [printed, created] = [File::new(), File::new()];
    drop(created.open().await);
    let options = SqliteConnectOptions::new()
        .filename(&printed.path)
        .create_if_missing(true);
    let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(SqliteStore::schema_sql()))
        .execute(&mut conn)
        .await
        .unwrap();
    let ours: Vec<String> = sqlx::query_scalar(TABLES)
        .fetch_all(&mut conn)
        .await
        .unwrap();
    let mut conn = created.raw().await;
    let theirs: Vec<String> = sqlx::query_scalar(TABLES)
        .fetch_all(&mut conn)
        .await
        .unwrap();
    assert!(!ours.is_empty());
    assert_eq!(ours, theirs);
    existing(&printed).await.unwrap();
}
