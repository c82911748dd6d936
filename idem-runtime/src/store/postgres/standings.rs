//! Where many records stand, by one statement.

use std::collections::HashMap;

use super::error::store_error;
use super::{PostgresStore, rows};
use crate::error::StoreError;
use crate::record::Standing;
use crate::store::Standings;

pub(super) async fn standings(
    store: &PostgresStore,
    request: &Standings,
) -> Result<Vec<Option<Standing>>, StoreError> {
    let texts = &store.link.texts;
    let ids: Vec<&[u8]> = request.ids.iter().map(|id| &id.as_bytes()[..]).collect();
    let query = texts
        .query(&texts.statements.standings)
        .bind(ids)
        .bind(texts.clock_us());
    let found = store.link.connections.fetch_all(query).await;
    let found = found.map_err(|error| store_error(&error))?;
    let mut stand = HashMap::with_capacity(found.len());
    for found in &found {
        let (id, row, now_us) = rows::standing(found)?;
        if let Some(standing) = Standing::of(&row, now_us, request.grace_us) {
            stand.insert(id, standing);
        }
    }
    Ok(request.in_order(&stand))
}
