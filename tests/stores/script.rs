//! Random calls, which get the same replies from every store.

use std::sync::Arc;
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Element, Note, Recorded, Standing, VersionBytes};
use idem::store::{
    Audited, Capability, Complete, Count, Counts, Ending, GiveBack, Holder, Lease, MarkUnknown,
    Page, Release, Reserve, Reserved, Scan, Seen, Settle, Store, StoreAdmin, Sweep, Takeover,
    Written,
};
use idem::testing::ManualClock;
use idem::transition::Settlement;
use idem::{StoreError, TombstoneReason, UnknownReason};
use proptest::prelude::*;
use proptest::sample::select;

const SECOND: i64 = 1_000_000;

/// One call. Holders are known by the number of the reservation they won, or
/// are off by one in their fence.
#[derive(Debug, Clone)]
enum Call {
    Reserve {
        key: u8,
        payload: u8,
        takeover: Takeover,
        version: Option<u8>,
    },
    Again(usize),
    Complete(usize, i64, Option<i64>, bool),
    Bury(usize),
    Release(usize, i64, bool),
    MarkUnknown(usize, i64, Option<i64>, bool),
    GiveBack(usize),
    Renew(Vec<(usize, i64)>),
    Sweep(u32, i64),
    /// Of a key, as it is seen or with another fence, and whether by force.
    Settle(u8, i64, u8, bool),
    Get(u8),
    /// The first page behind a key, if any.
    Scan(Standing, Option<u8>, u32),
    Count,
    Advance(i64),
}

impl Call {
    /// Whether a store that lacks this can be asked.
    fn can_do_without(&self, lacked: Capability) -> bool {
        match self {
            Self::Settle(..) | Self::Get(_) => lacked != Capability::Admin,
            Self::Scan(standing, ..) if standing.is_open() => lacked != Capability::Admin,
            Self::Scan(..) | Self::Count => {
                !matches!(lacked, Capability::Admin | Capability::ListFinished)
            }
            Self::Sweep(..) => lacked != Capability::Sweep,
            Self::Advance(us) if *us < 0 => lacked != Capability::SteadyClock,
            _ => true,
        }
    }
}

fn call() -> impl Strategy<Value = Call> {
    let takeover = || select(vec![Takeover::Refuse, Takeover::Rerun, Takeover::Recover]);
    let off = || prop_oneof![9 => Just(0_i64), 1 => -1_i64..=1];
    let at = || 0_usize..6;
    let ttl = || select(vec![Some(SECOND), Some(60 * SECOND), Some(i64::MAX), None]);
    prop_oneof![
        6 => (0_u8..2, 0_u8..2, takeover(), prop::option::weighted(0.3, 0_u8..5)).prop_map(
            |(key, payload, takeover, version)| Call::Reserve { key, payload, takeover, version }
        ),
        1 => at().prop_map(Call::Again),
        3 => (at(), off(), ttl(), any::<bool>())
            .prop_map(|(at, off, ttl, failed)| Call::Complete(at, off, ttl, failed)),
        1 => at().prop_map(Call::Bury),
        2 => (at(), off(), any::<bool>()).prop_map(|(at, off, p)| Call::Release(at, off, p)),
        2 => (at(), off(), prop::option::of(Just(20 * SECOND)), any::<bool>())
            .prop_map(|(at, off, retry, renewer)| Call::MarkUnknown(at, off, retry, renewer)),
        2 => at().prop_map(Call::GiveBack),
        1 => prop::collection::vec((at(), off()), 0..4).prop_map(Call::Renew),
        1 => (0_u32..3, select(vec![0, SECOND])).prop_map(|(n, grace)| Call::Sweep(n, grace)),
        2 => (0_u8..2, off(), 1_u8..=3, any::<bool>())
            .prop_map(|(key, off, what, force)| Call::Settle(key, off, what, force)),
        2 => (0_u8..2).prop_map(Call::Get),
        2 => (select(Standing::ALL.to_vec()), prop::option::of(0_u8..2), 1_u32..3)
            .prop_map(|(standing, after, limit)| Call::Scan(standing, after, limit)),
        1 => Just(Call::Count),
        4 => select(vec![1, SECOND, 10 * SECOND, 40 * SECOND, 400 * SECOND, -30 * SECOND])
            .prop_map(Call::Advance),
    ]
}

#[derive(Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few of them, compared and dropped"
)]
enum Reply {
    Reserved(Result<Reserved, StoreError>),
    Written(Result<Written, StoreError>),
    Renewed(Result<Vec<bool>, StoreError>),
    Swept(Result<u64, StoreError>),
    Settled(Result<(Written, Vec<Audited>), StoreError>),
    Seen(Result<Option<Seen>, StoreError>),
    Page(Result<Page, StoreError>),
    Counts(Result<Counts, StoreError>),
    None,
}

/// What the calls so far were told: who holds what.
struct Script {
    /// Keeps the keys of scripts apart.
    number: u8,
    reserves: Vec<Reserve>,
    holders: Vec<Holder>,
}

impl Script {
    fn id(&self, key: u8) -> RecordId {
        let mut id = [key; 32];
        id[0] = self.number;
        RecordId::from_bytes(id)
    }

    fn holder(&self, back: usize, off: i64) -> Option<Holder> {
        let at = self.holders.len().checked_sub(1 + back)?;
        let holder = self.holders[at];
        Some(Holder {
            fence: holder.fence + off,
            ..holder
        })
    }

    fn reserve(&mut self, call: &Call) -> Option<Reserve> {
        match call {
            Call::Reserve {
                key,
                payload,
                takeover,
                version,
            } => {
                let mut claim = [self.number; 16];
                claim[0] = u8::try_from(self.reserves.len()).unwrap();
                let request = Reserve {
                    id: self.id(*key),
                    operation: self.operation(),
                    label: None,
                    scope: None,
                    fingerprint: Fingerprint::from_bytes([*payload; 32]),
                    elements: vec![Element {
                        label: "payload".to_owned(),
                        digest: [*payload; 8],
                    }],
                    claim: Claim::from_bytes(claim),
                    lease_us: 10 * SECOND,
                    grace_us: SECOND,
                    takeover: *takeover,
                    max_takeovers: 2,
                    version: version.and_then(|number| VersionBytes::new(vec![number])),
                };
                self.reserves.push(request.clone());
                Some(request)
            }
            Call::Again(back) => {
                let at = self.reserves.len().checked_sub(1 + back)?;
                Some(self.reserves[at].clone())
            }
            _ => None,
        }
    }

    async fn ask(&self, store: &dyn Store, call: &Call, request: Option<&Reserve>) -> Reply {
        if let Some(request) = request {
            return Reply::Reserved(store.reserve(request).await);
        }
        match call {
            Call::Renew(which) => {
                let lease = |&(back, off): &(usize, i64)| {
                    self.holder(back, off).map(|holder| Lease {
                        holder,
                        lease_us: 10 * SECOND,
                    })
                };
                let leases: Vec<_> = which.iter().filter_map(lease).collect();
                if leases.is_empty() {
                    // A store need not look at its clock for nothing.
                    return Reply::None;
                }
                Reply::Renewed(store.renewer().await.unwrap().renew(&leases).await)
            }
            Call::Sweep(limit, grace_us) => {
                let sweep = Sweep {
                    limit: *limit,
                    grace_us: *grace_us,
                };
                Reply::Swept(store.sweep(&sweep).await)
            }
            Call::Complete(back, off, ..)
            | Call::Release(back, off, _)
            | Call::MarkUnknown(back, off, ..) => match self.holder(*back, *off) {
                Some(holder) => Reply::Written(end(store, call, holder).await),
                None => Reply::None,
            },
            Call::Bury(back) | Call::GiveBack(back) => match self.holder(*back, 0) {
                Some(holder) => Reply::Written(end(store, call, holder).await),
                None => Reply::None,
            },
            Call::Settle(..) | Call::Get(_) | Call::Scan(..) | Call::Count => {
                self.operate(store.admin().unwrap(), call).await
            }
            Call::Reserve { .. } | Call::Again(_) | Call::Advance(_) => Reply::None,
        }
    }

    async fn operate(&self, admin: &dyn StoreAdmin, call: &Call) -> Reply {
        match call {
            Call::Settle(key, off, what, force) => {
                Reply::Settled(self.settle(admin, *key, *off, *what, *force).await)
            }
            Call::Get(key) => Reply::Seen(admin.get(&self.id(*key)).await),
            Call::Scan(standing, after, limit) => {
                let request = Scan {
                    standing: *standing,
                    // What other scripts left behind is another operation's.
                    operation: Some(self.operation()),
                    grace_us: SECOND,
                    after: after.map(|key| self.id(key)),
                    limit: *limit,
                };
                Reply::Page(admin.scan(&request).await)
            }
            _ => {
                let request = Count {
                    grace_us: SECOND,
                    finished: true,
                };
                Reply::Counts(admin.count(&request).await)
            }
        }
    }

    fn operation(&self) -> String {
        format!("agreement.{}", self.number)
    }

    async fn settle(
        &self,
        admin: &dyn StoreAdmin,
        key: u8,
        off: i64,
        what: u8,
        force: bool,
    ) -> Result<(Written, Vec<Audited>), StoreError> {
        let id = self.id(key);
        let seen = admin.get(&id).await?;
        let request = Settle {
            state: None,
            id,
            fence: seen.map_or(0, |seen| seen.record.fence + off),
            settlement: match what {
                1 => Settlement::Done(Recorded::new(&id, "json", off == 0, b"1".to_vec())),
                2 => Settlement::NotDone,
                _ => Settlement::Forgotten,
            },
            force,
            ttl_us: Some(60 * SECOND),
            grace_us: SECOND,
            note: Note::new("ops", "agreed").unwrap(),
        };
        let written = admin.settle(&request).await?;
        Ok((written, admin.audit(&id).await?))
    }

    fn learn(&mut self, request: Option<&Reserve>, reply: &Reply) {
        if let (Some(request), Reply::Reserved(Ok(Reserved::Won(won)))) = (request, reply)
            && !won.resent
        {
            self.holders.push(Holder {
                id: request.id,
                claim: request.claim,
                fence: won.fence,
            });
        }
    }
}

async fn end(store: &dyn Store, call: &Call, holder: Holder) -> Result<Written, StoreError> {
    let complete = |ending, ttl_us| Complete {
        holder,
        ending,
        ttl_us,
    };
    match call {
        Call::Complete(back, _, ttl_us, failed) => {
            let bytes = format!("{back} {ttl_us:?}").into_bytes();
            let answer = Recorded::new(&holder.id, "json", *failed, bytes);
            let request = complete(Ending::Answer(answer), *ttl_us);
            store.complete(&request).await
        }
        Call::Bury(_) => {
            let ending = Ending::Tombstone(TombstoneReason::TooLarge);
            let request = complete(ending, Some(60 * SECOND));
            store.complete(&request).await
        }
        Call::Release(_, _, probed) => {
            let request = Release {
                holder,
                ttl_us: Some(60 * SECOND),
                probed: *probed,
            };
            store.release(&request).await
        }
        Call::MarkUnknown(_, _, undecided_retry_us, renewer) => {
            let request = MarkUnknown {
                holder,
                reason: UnknownReason::Undecided,
                undecided_retry_us: *undecided_retry_us,
            };
            if *renewer {
                store.renewer().await?.mark_unknown(&request).await
            } else {
                store.mark_unknown(&request).await
            }
        }
        _ => {
            let request = GiveBack {
                id: holder.id,
                claim: holder.claim,
                ttl_us: Some(60 * SECOND),
            };
            store.renewer().await?.give_back(&request).await
        }
    }
}

/// Lets a store look at its clock: one that has does not go back behind it.
async fn look_at_the_clock(store: &dyn Store) {
    if let Some(admin) = store.admin() {
        admin.get(&RecordId::from_bytes([0xff; 32])).await.unwrap();
    }
}

/// Runs random scripts on all stores, which have that clock, and fails where one
/// of them replies otherwise than the first.
pub(crate) fn agree(
    runtime: &tokio::runtime::Runtime,
    stores: &[Arc<dyn Store>],
    clock: &ManualClock,
    cases: u32,
) {
    let lacks = |call: &Call| {
        let lacked = stores.iter().flat_map(|store| store.lacks());
        lacked
            .into_iter()
            .any(|lacked| !call.can_do_without(*lacked))
    };
    // The first script may begin with a step back, and a store that looked when it
    // was opened does not go along.
    for store in stores {
        runtime.block_on(look_at_the_clock(&**store));
    }
    // One set of stores for all scripts, each with keys of its own.
    let number = std::cell::Cell::new(0_u8);
    let mut config = ProptestConfig::with_cases(cases);
    config.failure_persistence = None;
    config.max_shrink_iters = 100;
    proptest!(config, |(calls in prop::collection::vec(call(), 10..40))| {
        number.set(number.get().wrapping_add(1));
        let mut script = Script {
            number: number.get(),
            reserves: Vec::new(),
            holders: Vec::new(),
        };
        for (step, call) in calls.iter().enumerate() {
            if lacks(call) {
                continue;
            }
            if let Call::Advance(us) = call {
                clock.step(*us);
            }
            if step == 0 {
                for store in stores {
                    runtime.block_on(look_at_the_clock(&**store));
                }
            }
            let request = script.reserve(call);
            let mut replies = Vec::new();
            for store in stores {
                replies.push(runtime.block_on(script.ask(&**store, call, request.as_ref())));
            }
            for (store, reply) in stores.iter().zip(&replies) {
                prop_assert_eq!(&replies[0], reply, "{} at {}: {:?}", store.kind(), step, call);
            }
            script.learn(request.as_ref(), &replies[0]);
        }
        // Nothing of this script is in the next one's way.
        clock.advance(Duration::from_secs(3_600));
    });
}

/// A runtime for `agree`.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}
