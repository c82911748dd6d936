//! Where many records stand: one script for all of one server, one for each
//! bucket of a cluster, together.

use std::collections::{BTreeMap, HashMap};

use super::fields::{Hash, STANDING};
use super::together::together;
use super::{RedisStore, scripts, time_us};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::Standing;
use crate::store::Standings;

impl RedisStore {
    pub(super) async fn stand(
        &self,
        request: &Standings,
    ) -> Result<Vec<Option<Standing>>, StoreError> {
        let mut groups: BTreeMap<u8, Vec<RecordId>> = BTreeMap::new();
        for id in &request.ids {
            // The keys of one script are of one slot where there are slots.
            let group = match self.connection.is_cluster() {
                true => id.as_bytes()[0],
                false => 0,
            };
            groups.entry(group).or_default().push(*id);
        }
        let looks = groups.into_values().map(|ids| {
            let (store, grace_us) = (self.clone(), request.grace_us);
            async move { store.stand_in(&ids, grace_us).await }
        });
        let found: HashMap<_, _> = together(looks).await?.into_iter().flatten().collect();
        Ok(request.in_order(&found))
    }

    async fn stand_in(
        &self,
        ids: &[RecordId],
        grace_us: i64,
    ) -> Result<Vec<(RecordId, Standing)>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| self.shared.keys.record(id)).collect();
        let mut args = self.time_args();
        args.extend(STANDING.iter().map(|name| name.as_bytes().to_vec()));
        let (time, found): (String, Vec<Vec<Option<Vec<u8>>>>) =
            self.run(&scripts::LOOK, &keys, &args).await?;
        let now_us = time_us(&time)?;
        let mut stand = Vec::with_capacity(ids.len());
        for (id, values) in ids.iter().zip(found) {
            let row = Hash::named(STANDING, values).row()?;
            let standing = row.and_then(|row| Standing::of(&row, now_us, grace_us));
            stand.extend(standing.map(|standing| (*id, standing)));
        }
        Ok(stand)
    }
}
