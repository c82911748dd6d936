//! One change by hand.

use super::{look, operators};
use crate::clock::micros;
use crate::engine::Inner;
use crate::error::Error;
use crate::identity::RecordId;
use crate::record::{Note, Standing, State};
use crate::store::{Seen, Settle, Written};
use crate::telemetry::StoreStep;
use crate::transition::Settlement;

/// How a change by hand ended. Only [`Done`](Self::Done) has changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "only `Done` has changed anything"]
pub enum Settled {
    /// It is done, and in the audit.
    Done,
    /// There is no such record, or it has expired.
    Gone,
    /// Its attempt holds its lease, and [`force`](super::RecordRef::force) was
    /// not given.
    Running,
    /// It has its answer or was released, and this does not settle it again;
    /// [`forget`](super::RecordRef::forget) does.
    Ended,
    /// It is not as it was [seen](super::RecordRef::seen), or somebody changed it
    /// meanwhile: look again.
    Changed,
}

impl Settled {
    /// Returns whether it was done.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Done)
    }
}

/// What is to be changed.
pub(super) struct Order {
    pub(super) id: RecordId,
    pub(super) settlement: Settlement,
    /// The fence and state that it must have.
    pub(super) seen: Option<(i64, State)>,
    pub(super) force: bool,
    pub(super) ttl_us: Option<i64>,
    pub(super) note: Note,
}

impl Order {
    /// Whether a record as it stands is not to be changed, and why not. The store
    /// decides again, in one step with the change.
    fn refused(&self, seen: &Seen, grace_us: i64) -> Option<Settled> {
        let Seen { now_us, record } = seen;
        if self
            .seen
            .is_some_and(|seen| seen != (record.fence, record.state))
        {
            return Some(Settled::Changed);
        }
        let forgets = matches!(self.settlement, Settlement::Forgotten);
        match record.standing(*now_us, grace_us) {
            // The highest version is known for longer than its answer.
            None if forgets && record.version_recorded.is_some() => None,
            None => Some(Settled::Gone),
            Some(Standing::InProgress) if !self.force => Some(Settled::Running),
            Some(Standing::Completed | Standing::Released) if !forgets => Some(Settled::Ended),
            Some(_) => None,
        }
    }
}

pub(super) async fn settle(engine: &Inner, order: Order) -> Result<Settled, Error> {
    let Some(seen) = look(engine, &order.id).await? else {
        return Ok(Settled::Gone);
    };
    let grace_us = micros(engine.limits.grace);
    if let Some(refused) = order.refused(&seen, grace_us) {
        return Ok(refused);
    }
    let request = Settle {
        state: Some(seen.record.state),
        id: order.id,
        fence: seen.record.fence,
        settlement: order.settlement,
        force: order.force,
        ttl_us: order.ttl_us,
        grace_us,
        note: order.note,
    };
    let limit = engine.limits.store_timeout;
    let _changing = engine.changing(&order.id);
    let settled = operators(engine)?.settle(&request);
    let written = engine.store_call(StoreStep::Settle, limit, settled).await?;
    Ok(match written {
        Written::Done | Written::AlreadyDone => Settled::Done,
        Written::Gone => Settled::Gone,
        Written::Superseded => Settled::Changed,
    })
}
