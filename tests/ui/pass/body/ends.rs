#![deny(warnings)]

use idem::{Error, idempotent};

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Shown {
    Result,
    Error,
}

#[idempotent(key = id, ttl = "1h")]
async fn question_mark(id: u32) -> Result<u32, Error> {
    let half = early_return(id).await?;
    Ok(half + 1)
}

#[idempotent(key = id, ttl = "1h")]
async fn early_return(id: u32) -> Result<u32, Error> {
    if id > 3 {
        return Ok(3);
    }
    for step in 0.. {
        if step == id {
            return Ok(step);
        }
    }
    Ok(id)
}

#[idempotent(key = id, ttl = "1h")]
async fn only_panics(id: u32) -> Result<u32, Error> {
    panic!("not written yet: {id}")
}

#[idempotent(key = id, ttl = "1h")]
async fn never_ends(id: u32) -> Result<u32, Error> {
    loop {
        std::hint::black_box(id);
        tokio::task::yield_now().await;
    }
}

/// The body's own imports do not change what the return type means.
#[idempotent(key = id, ttl = "1h")]
async fn shadowed(id: u32) -> Result<u32, Error> {
    use Shown::*;
    drop(if id == 0 { Result } else { Error });
    Ok(id)
}

#[rustfmt::skip]
#[idempotent(key = id, ttl = "1h")]
async fn one_line(id: u32) -> Result<u32, Error> { question_mark(id).await }

#[idempotent(key = id, ttl = "1h")]
async fn unit(id: u32) -> Result<(), Error> {
    std::hint::black_box(id);
    Ok(())
}

pub fn main() {
    drop((
        question_mark(1),
        only_panics(1),
        never_ends(1),
        shadowed(1),
        one_line(1),
        unit(1),
    ));
}
