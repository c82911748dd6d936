//! Functions that come out of `macro_rules!`.

use idem::{Error, idempotent};

use crate::{Runs, once};

macro_rules! operation {
    ($(#[$attr:meta])* $name:ident($key:ident: $ty:ty) -> $answer:ty: $body:expr) => {
        $(#[$attr])*
        #[idempotent(key = $key, ttl = "1h")]
        async fn $name(runs: Runs, $key: $ty) -> Result<$answer, Error> {
            runs.add();
            $body
        }
    };
}

operation!(
    /// Parts from outside.
    double(id: u32) -> u32: Ok(id * 2)
);

macro_rules! entirely_inside {
    ($name:ident, $name_text:literal, $text:literal, $wait:literal, $($choice:tt)*) => {
        #[idempotent(
            key = id,
            ttl = $text,
            name = $name_text,
            on_in_progress = wait($wait),
            $($choice)*
        )]
        async fn $name(runs: Runs, id: u32) -> Result<u32, Error> {
            runs.add();
            Ok(id)
        }
    };
}

entirely_inside!(inside, "macros.inside", "1h", "5s", on_unknown = rerun,);

macro_rules! method {
    ($shop:ident, $self:ident, $field:ident) => {
        impl $shop {
            #[idempotent(key = $self.$field, ttl = "1h", name = "macros.method", clone = self)]
            async fn method(&$self) -> Result<u32, Error> {
                $self.runs.add();
                Ok($self.$field)
            }
        }
    };
}

#[derive(Clone)]
struct Shop {
    fee: u32,
    runs: Runs,
}

method!(Shop, self, fee);

#[tokio::test]
async fn parts_from_outside() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || double(runs.clone(), 2)).await, 4);
}

#[tokio::test]
async fn everything_from_inside_with_literals_from_outside() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || inside(runs.clone(), 2)).await, 2);
}

#[tokio::test]
async fn a_method_whose_self_comes_from_outside() {
    let shop = Shop {
        fee: 3,
        runs: Runs::default(),
    };
    assert_eq!(once(&shop.runs, || shop.method()).await, 3);
}
