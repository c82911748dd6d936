//! Where many records stand, by one statement.

use std::collections::HashMap;

use super::error::store_error;
use super::{MySqlStore, rows};
use crate::error::StoreError;
use crate::record::Standing;
use crate::store::Standings;

pub(super) async fn standings(
    store: &MySqlStore,
    request: &Standings,
) -> Result<Vec<Option<Standing>>, StoreError> {
    // A list of nothing is no SQL.
    if request.ids.is_empty() {
        return Ok(Vec::new());
    }
    let texts = &store.link.texts;
    let statement = texts.statements.standings(request.ids.len());
    // A full question comes again and is prepared once; others have a text of
    // their own for each length.
    let is_full = request.ids.len() == Standings::MOST;
    let mut query = texts.query(&statement).persistent(is_full);
    query = query.bind(texts.clock_us());
    for id in &request.ids {
        query = query.bind(id.as_bytes().as_slice());
    }
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
