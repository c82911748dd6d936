#![deny(warnings)]

use idem::{Error, idempotent};

type Answer<T, E = Error> = std::result::Result<T, E>;

mod app {
    pub type Result<T> = std::result::Result<T, Failure>;

    #[derive(serde::Serialize, serde::Deserialize)]
    pub enum Failure {
        Engine(idem::Error),
    }

    impl From<idem::Error> for Failure {
        fn from(error: idem::Error) -> Self {
            Self::Engine(error)
        }
    }
}

#[idempotent(key = id, ttl = "1h")]
async fn alias(id: u32) -> Answer<u32> {
    Ok(id)
}

#[idempotent(key = id, ttl = "1h")]
async fn of_a_module(id: u32) -> app::Result<Option<Vec<u32>>> {
    Ok(Some(vec![id]))
}

#[idempotent(key = id, ttl = "1h")]
async fn qualified(id: u32) -> ::core::result::Result<(u32, String), idem::Error> {
    Ok((id, String::new()))
}

pub fn main() {
    drop((alias(1), of_a_module(1), qualified(1)));
}
