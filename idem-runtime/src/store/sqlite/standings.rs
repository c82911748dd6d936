//! Where many records stand, by one statement on a reading connection.

use std::collections::HashMap;

use super::{SqliteStore, rows, statements};
use crate::error::StoreError;
use crate::record::Standing;
use crate::store::Standings;

pub(super) async fn standings(
    store: &SqliteStore,
    request: &Standings,
) -> Result<Vec<Option<Standing>>, StoreError> {
    let ids: Vec<u8> = request.ids.iter().flat_map(|id| *id.as_bytes()).collect();
    let asked = i64::try_from(request.ids.len()).unwrap_or(i64::MAX);
    let (now_us, found) = store
        .read(move |conn, now_us| {
            let found = rows::all(conn, statements::STANDINGS, (ids, asked), rows::standing)?;
            Ok((now_us, found))
        })
        .await?;
    let mut stand = HashMap::with_capacity(found.len());
    for (id, row) in found {
        if let Some(standing) = Standing::of(&row, now_us, request.grace_us) {
            stand.insert(id, standing);
        }
    }
    Ok(request.in_order(&stand))
}
