//! Surroundings that redefine what an expansion might rely on.

use crate::{Runs, once};

/// No prelude, and other things under its names.
#[no_implicit_prelude]
mod hostile {
    #![allow(dead_code, reason = "only in the way")]

    use ::idem::{Error, idempotent};

    use crate::Runs;

    mod core {}
    mod std {}
    mod alloc {}
    mod idem {}
    struct Result;
    struct Option;
    struct Box;
    struct Vec;
    struct String;
    struct Arc;
    struct Future;
    struct Send;
    #[allow(non_camel_case_types, reason = "only in the way")]
    struct u64;
    #[allow(non_snake_case, reason = "only in the way")]
    fn Ok() {}
    #[allow(non_snake_case, reason = "only in the way")]
    fn Err() {}
    #[allow(non_snake_case, reason = "only in the way")]
    fn Some() {}
    #[allow(non_upper_case_globals, reason = "only in the way")]
    const None: () = ();

    #[idempotent(key = id, payload = (id, id + 1), ttl = "1h", label = id)]
    pub(crate) async fn detached(
        runs: Runs,
        mut id: u32,
        _: u32,
    ) -> ::core::result::Result<u32, Error> {
        runs.add();
        id += 1;
        ::core::result::Result::Ok(id)
    }

    #[idempotent(
        key = id,
        ttl = "1h",
        lease = "30s",
        on_cancel = abandon,
        on_unknown = recover(probe()),
    )]
    pub(crate) async fn in_place(runs: &Runs, id: &u32) -> ::core::result::Result<u32, Error> {
        runs.add();
        ::core::result::Result::Ok(*id)
    }

    #[allow(clippy::unused_async, reason = "a probe")]
    async fn probe() -> ::core::result::Result<::idem::Recovered<u32>, Error> {
        ::core::result::Result::Ok(::idem::Recovered::NotDone)
    }

    #[derive(::core::clone::Clone)]
    pub(crate) struct Shop(pub(crate) Runs);

    impl Shop {
        #[idempotent(key = (note, id), ttl = "1h", name = "hostile.shop", clone = (self, note))]
        pub(crate) async fn cloned(
            &self,
            id: u32,
            note: &str,
        ) -> ::core::result::Result<usize, Error> {
            self.0.add();
            let _ = id;
            ::core::result::Result::Ok(note.len())
        }
    }
}

mod shadowed_in_the_body {
    use idem::{Error, idempotent};

    use crate::Runs;

    /// Names that the body brings in do not reach the return type.
    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn shadowed(runs: Runs, id: u32) -> Result<u32, Error> {
        #[allow(dead_code, reason = "only in the way")]
        enum Shadow {
            Result,
            Error,
            Some,
        }
        use Shadow::*;
        for shadow in [Result, Error, Some] {
            let _ = shadow;
        }
        runs.add();
        Ok(id)
    }
}

#[tokio::test]
async fn no_prelude_and_shadowed_names() {
    let runs = Runs::default();
    assert_eq!(
        once(&runs, || hostile::detached(runs.clone(), 1, 2)).await,
        2
    );
    assert_eq!(once(&runs, || hostile::in_place(&runs, &3)).await, 3);
    let shop = hostile::Shop(runs.clone());
    assert_eq!(once(&runs, || shop.cloned(1, "ab")).await, 2);
}

#[tokio::test]
async fn names_shadowed_in_the_body() {
    let runs = Runs::default();
    let call = || shadowed_in_the_body::shadowed(runs.clone(), 1);
    assert_eq!(once(&runs, call).await, 1);
}
