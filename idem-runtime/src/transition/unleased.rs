//! A reservation inside of its caller's transaction.

use super::{Decision, reserve};
use crate::record::Record;
use crate::store::{Reserve, Reserved, Takeover};

/// Decides a reservation that lives and dies with its caller's transaction: as
/// [`reserve`], but it takes nothing over, has no lease, and what is not won is
/// left as it is.
#[must_use]
pub fn reserve_in_transaction(
    current: Option<&Record>,
    request: &Reserve,
    now_us: i64,
) -> Decision<Reserved> {
    let request = Reserve {
        takeover: Takeover::Refuse,
        ..request.clone()
    };
    let Decision { reply, write } = reserve(current, &request, now_us);
    let write = write.filter(|_| matches!(reply, Reserved::Won(_)));
    Decision {
        reply,
        write: write.map(|next| Record {
            lease_until_us: None,
            ..next
        }),
    }
}
