#![deny(deprecated)]
#![allow(dead_code)]

use idem::{Error, idempotent};

#[deprecated = "use `charge`"]
#[idempotent(key = id, ttl = "24h")]
async fn old(id: u32) -> Result<u32, Error> {
    Ok(id)
}

async fn caller() {
    let _ = old(1).await;
}

fn main() {}
