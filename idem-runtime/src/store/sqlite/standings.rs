//! Where many records stand, by one statement on a reading connection.

use std::collections::HashMap;

use super::error::store_error;
use super::{SqliteStore, rows, statements};
use crate::error::StoreError;
use crate::record::Standing;
use crate::store::Standings;

pub(super) async fn standings(
    store: &SqliteStore,
    request: &Standings,
) -> Result<Vec<Option<Standing>>, StoreError> {
    let (mut conn, now_us) = store.reader().await?;
    let ids: Vec<u8> = request.ids.iter().flat_map(|id| *id.as_bytes()).collect();
    let found = sqlx::query(statements::STANDINGS)
        .bind(ids)
        .bind(i64::try_from(request.ids.len()).unwrap_or(i64::MAX))
        .fetch_all(&mut *conn)
        .await
        .map_err(|error| store_error(&error))?;
    let mut stand = HashMap::with_capacity(found.len());
    for found in &found {
        let (id, row) = rows::standing(found)?;
        if let Some(standing) = Standing::of(&row, now_us, request.grace_us) {
            stand.insert(id, standing);
        }
    }
    Ok(request.in_order(&stand))
}
