#![deny(warnings)]

use idem::{Error, Recovered, idempotent};

#[derive(Clone)]
struct Gateway;

impl Gateway {
    async fn find(&self, _id: &str) -> Result<Recovered<u32>, Error> {
        Ok(Recovered::NotDone)
    }

    async fn pay(&self, id: String) -> Result<u32, Error> {
        Ok(u32::from(id.is_empty()))
    }

    #[idempotent(key = id, ttl = "1h", name = "gateway.own", clone = self, on_unknown = recover(self.find(&id)))]
    async fn own(&self, id: String) -> Result<u32, Error> {
        self.pay(id).await
    }
}

/// The probe borrows what the body consumes.
#[idempotent(key = id, ttl = "1h", on_unknown = recover(gateway.find(&id)))]
async fn pay(gateway: Gateway, id: String) -> Result<u32, Error> {
    gateway.pay(id).await
}

/// The type of the probe's answer is inferred.
#[idempotent(key = id, ttl = "1h", on_unknown = recover(async { Ok(Recovered::NotDone) }))]
async fn never_done(id: u32) -> Result<u32, Error> {
    Ok(id)
}

pub fn main() {
    drop(pay(Gateway, String::new()));
    drop(Gateway.own(String::new()));
    drop(never_done(1));
}
