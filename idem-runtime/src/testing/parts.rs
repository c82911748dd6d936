//! Parts of the engine on their own, so that a benchmark can time each beside
//! what does the same job.

use std::any::TypeId;

use crate::identity::{Fingerprint, RecordId};
use crate::record::Recorded;
use crate::singleflight::{self, FlightKey, Landed, Part};
use crate::sync::Arc;

/// The flights of one engine, without the engine: callers of one key share the
/// run of one body.
#[derive(Debug)]
pub struct Flights(Arc<singleflight::Flights>);

/// What one body gave, shared by all callers of its key.
#[derive(Debug, Clone)]
pub struct Flown(Arc<Landed>);

impl Flown {
    /// The bytes that the body gave.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0.answer.bytes
    }
}

impl Default for Flights {
    fn default() -> Self {
        Self::new()
    }
}

impl Flights {
    /// Makes it, without a flight.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(singleflight::Flights::new()))
    }

    /// Runs `body` for all callers of this key that come before it ends.
    ///
    /// # Cancel safety
    /// Dropping the future of the caller whose body runs drops that body;
    /// another caller then runs its own.
    pub async fn fly(&self, key: [u8; 32], body: impl Future<Output = Vec<u8>>) -> Flown {
        let key = FlightKey {
            id: RecordId::from_bytes(key),
            fingerprint: Fingerprint::from_bytes([0; 32]),
            version: None,
            codec: "bytes",
            output: TypeId::of::<Vec<u8>>(),
        };
        loop {
            match self.0.join(&key) {
                Part::Lead(lead) => {
                    let landed = Arc::new(Landed {
                        answer: Recorded {
                            codec: String::new(),
                            failed: false,
                            bytes: body.await,
                            digest: [0; 32],
                        },
                        finished_us: 0,
                        attempt: 1,
                    });
                    lead.land(&landed);
                    return Flown(landed);
                }
                Part::Follow(mut follow) => {
                    if let Some(landed) = follow.landed().await {
                        return Flown(landed);
                    }
                }
            }
        }
    }
}
