//! Sample modules, one a lint that generated code could set off: they compile
//! under `cargo clippy` with everything denied, and they run.
//!
//! That warnings about the user's own code still fire is proved by the cases in
//! `tests/ui/fail/lint`.

#![deny(
    warnings,
    let_underscore,
    nonstandard_style,
    refining_impl_trait,
    rust_2018_idioms,
    unused,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unused_results,
    unused_lifetimes,
    unused_qualifications,
    unused_import_braces,
    variant_size_differences,
    meta_variable_misuse,
    unit_bindings,
    explicit_outlives_requirements,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::cargo
)]

use crate::{Runs, once};

mod used_underscore_binding {
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = _id, payload = _amount, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, _id: u32, _amount: u32) -> Result<u32, Error> {
        runs.add();
        tokio::task::yield_now().await;
        Ok(1)
    }
}

mod no_effect_underscore_binding {
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, id: u32, _: u32, _held: u32) -> Result<u32, Error> {
        runs.add();
        tokio::task::yield_now().await;
        Ok(id)
    }
}

mod let_unit_value {
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, id: u32) -> Result<(), Error> {
        runs.add();
        tokio::task::yield_now().await;
        let _ = id;
        Ok(())
    }
}

mod diverging_sub_expression {
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(id: u32) -> Result<u32, Error> {
        tokio::task::yield_now().await;
        panic!("always {id}")
    }
}

mod needless_return {
    #![deny(clippy::implicit_return)]
    #![allow(clippy::needless_return, reason = "the other lint asks for it")]
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, id: u32) -> Result<u32, Error> {
        runs.add();
        tokio::task::yield_now().await;
        return Ok(id);
    }
}

mod unreachable {
    #![deny(clippy::unreachable, clippy::panic, clippy::unwrap_used)]
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, id: u32) -> Result<u32, Error> {
        runs.add();
        loop {
            tokio::task::yield_now().await;
            if id > 0 {
                return Ok(id);
            }
        }
    }
}

mod let_with_type_underscore {
    use crate::Runs;
    use idem::{Disposition, Error, idempotent};

    const fn sort(_: &Error) -> Disposition {
        Disposition::Store
    }

    const fn wrap(error: Error) -> Error {
        error
    }

    #[idempotent(key = id, ttl = "1h", on_error = classify(sort), map_err = wrap)]
    pub(super) async fn sample(runs: Runs, id: u32) -> Result<u32, Error> {
        runs.add();
        tokio::task::yield_now().await;
        Ok(id)
    }
}

mod async_yields_async {
    #![allow(clippy::manual_async_fn, reason = "the shape is the point")]
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) fn sample(runs: Runs, id: u32) -> impl Future<Output = Result<u32, Error>> + Send {
        async move {
            runs.add();
            tokio::task::yield_now().await;
            Ok(id)
        }
    }
}

mod type_complexity {
    use std::collections::BTreeMap;

    use crate::Runs;
    use idem::{Error, idempotent};

    type Nested = BTreeMap<String, Vec<Option<(u32, Option<Vec<String>>)>>>;

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, id: u32) -> Result<Nested, Error> {
        runs.add();
        tokio::task::yield_now().await;
        Ok(BTreeMap::from([(id.to_string(), vec![None])]))
    }
}

mod clone_on_copy {
    use crate::Runs;
    use idem::{Error, idempotent};

    #[derive(Clone, Copy)]
    pub(super) struct Shop(pub(super) u32);

    impl Shop {
        #[idempotent(key = self.0, ttl = "1h", name = "lints.copy", clone = (self, fee))]
        pub(super) async fn sample(&self, runs: Runs, fee: &u32) -> Result<u32, Error> {
            runs.add();
            tokio::task::yield_now().await;
            Ok(self.0 + *fee)
        }
    }
}

mod multiple_bound_locations {
    use std::fmt::Display;

    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h", name = "lints.bounds")]
    pub(super) async fn sample<T>(runs: Runs, id: u32, shown: T) -> Result<String, Error>
    where
        T: Display + Send + 'static,
    {
        runs.add();
        tokio::task::yield_now().await;
        Ok(format!("{id}{shown}"))
    }
}

mod large_futures {
    #![allow(clippy::large_types_passed_by_value, reason = "the size is the point")]
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(runs: Runs, id: u32, bytes: [u8; 6000]) -> Result<usize, Error> {
        runs.add();
        tokio::task::yield_now().await;
        let _ = id;
        Ok(bytes.len())
    }
}

mod shadowing {
    #![deny(
        clippy::shadow_same,
        clippy::shadow_reuse,
        clippy::shadow_unrelated,
        clippy::similar_names
    )]
    use crate::Runs;
    use idem::{Error, idempotent};

    #[idempotent(key = id, ttl = "1h", clone = note)]
    pub(super) async fn sample(
        runs: Runs,
        mut id: u32,
        note: &str,
        (mut left, right): (u32, u32),
    ) -> Result<String, Error> {
        runs.add();
        id += 1;
        left += right;
        tokio::task::yield_now().await;
        Ok(format!("{id}{note}{left}"))
    }
}

mod restriction {
    #![deny(
        clippy::absolute_paths,
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::default_numeric_fallback,
        clippy::default_union_representation,
        clippy::else_if_without_else,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::items_after_statements,
        clippy::let_underscore_must_use,
        clippy::let_underscore_untyped,
        clippy::min_ident_chars,
        clippy::pattern_type_mismatch,
        clippy::pub_use,
        clippy::question_mark_used,
        clippy::redundant_type_annotations,
        clippy::ref_patterns,
        clippy::semicolon_inside_block,
        clippy::semicolon_outside_block,
        clippy::std_instead_of_core,
        clippy::alloc_instead_of_core,
        clippy::unseparated_literal_suffix,
        clippy::unreadable_literal,
        clippy::wildcard_imports,
        reason = "what generated statements could set off"
    )]
    #![allow(clippy::blanket_clippy_restriction_lints, reason = "a sample")]
    use crate::Runs;
    use idem::{Error, Recovered, idempotent};
    use tokio::task::yield_now;

    async fn find(id: u32) -> Result<Recovered<u32>, Error> {
        yield_now().await;
        Ok(if id == 0 {
            Recovered::Unknown
        } else {
            Recovered::NotDone
        })
    }

    #[idempotent(
        key = (id, note),
        payload = (id, note),
        ttl = "1h",
        lease = "30s",
        name = "lints.restriction",
        on_unknown = recover(find(id)),
    )]
    pub(super) async fn sample(
        runs: Runs,
        id: u32,
        note: String,
        _permit: String,
        _: String,
    ) -> Result<u32, Error> {
        runs.add();
        yield_now().await;
        Ok(id.saturating_add(u32::from(note.is_empty())))
    }
}

mod in_place {
    #![deny(
        clippy::absolute_paths,
        clippy::let_underscore_untyped,
        clippy::future_not_send
    )]
    use crate::Runs;
    use idem::{Error, Recovered, idempotent};
    use tokio::task::yield_now;

    async fn find(id: &str) -> Result<Recovered<usize>, Error> {
        yield_now().await;
        drop(id.to_owned());
        Ok(Recovered::NotDone)
    }

    #[idempotent(key = id, ttl = "1h", on_cancel = abandon, on_unknown = recover(find(id)))]
    pub(super) async fn sample(runs: &Runs, mut id: &str) -> Result<usize, Error> {
        runs.add();
        yield_now().await;
        if id.is_empty() {
            id = "empty";
        }
        Ok(id.len())
    }
}

mod unused_async {
    use std::sync::Arc;

    use crate::Runs;
    use idem::{Error, idempotent};

    pub(super) struct Shop(pub(super) Runs);

    #[async_trait::async_trait]
    pub(super) trait Charge {
        async fn sample(self: Arc<Self>, id: u32) -> Result<u32, Error>;
    }

    #[async_trait::async_trait]
    impl Charge for Shop {
        #[idempotent(key = id, ttl = "1h", name = "lints.boxed")]
        async fn sample(self: Arc<Self>, id: u32) -> Result<u32, Error> {
            self.0.add();
            tokio::task::yield_now().await;
            Ok(id)
        }
    }
}

mod unused_braces {
    use idem::{Error, idempotent};

    async fn other(id: u32) -> Result<u32, Error> {
        tokio::task::yield_now().await;
        Ok(id)
    }

    #[rustfmt::skip]
    #[idempotent(key = id, ttl = "1h")]
    pub(super) async fn sample(id: u32) -> Result<u32, Error> { other(id).await }
}

mod expectations {
    #![deny(unfulfilled_lint_expectations)]
    use crate::Runs;
    use idem::{Error, idempotent};

    #[expect(clippy::too_many_arguments, reason = "of the function")]
    #[idempotent(key = id, ttl = "1h", name = "lints.expectations")]
    pub(super) async fn sample(
        runs: Runs,
        id: u32,
        net: u32,
        tax: u32,
        #[expect(unused_variables, reason = "of a parameter")] unused: u32,
        #[expect(unused_mut, reason = "of a binding")] mut fee: u32,
        tip: u32,
        rest: u32,
    ) -> Result<u32, Error> {
        runs.add();
        tokio::task::yield_now().await;
        #[expect(unused_variables, reason = "of the body")]
        let inside = 1;
        Ok(id + net + tax + fee + tip + rest)
    }
}

#[tokio::test]
async fn samples_run_as_well() {
    let runs = Runs::default();
    let one = || runs.clone();
    assert_eq!(
        once(&runs, || used_underscore_binding::sample(one(), 1, 2)).await,
        1
    );
    assert_eq!(
        once(&runs, || no_effect_underscore_binding::sample(
            one(),
            1,
            2,
            3
        ))
        .await,
        1
    );
    once(&runs, || let_unit_value::sample(one(), 1)).await;
    assert_eq!(once(&runs, || needless_return::sample(one(), 1)).await, 1);
    assert_eq!(once(&runs, || unreachable::sample(one(), 1)).await, 1);
    assert_eq!(
        once(&runs, || let_with_type_underscore::sample(one(), 1)).await,
        1
    );
    assert_eq!(
        once(&runs, || async_yields_async::sample(one(), 1)).await,
        1
    );
    assert_eq!(
        once(&runs, || type_complexity::sample(one(), 1))
            .await
            .len(),
        1
    );
    let shop = clone_on_copy::Shop(1);
    assert_eq!(once(&runs, || shop.sample(one(), &2)).await, 3);
    assert_eq!(
        once(&runs, || multiple_bound_locations::sample(one(), 1, 'x')).await,
        "1x"
    );
    let large = || Box::pin(large_futures::sample(one(), 1, [0; 6000]));
    assert_eq!(once(&runs, large).await, 6000);
}

#[tokio::test]
async fn more_samples_run_as_well() {
    let runs = Runs::default();
    let one = || runs.clone();
    let text = String::new;
    assert_eq!(
        once(&runs, || shadowing::sample(one(), 1, "n", (1, 2))).await,
        "2n3"
    );
    assert_eq!(
        once(&runs, || restriction::sample(
            one(),
            1,
            "n".to_owned(),
            text(),
            text()
        ))
        .await,
        1
    );
    assert_eq!(once(&runs, || in_place::sample(&runs, "abc")).await, 3);
    let shop = std::sync::Arc::new(unused_async::Shop(one()));
    let boxed = || unused_async::Charge::sample(std::sync::Arc::clone(&shop), 1);
    assert_eq!(once(&runs, boxed).await, 1);
    assert_eq!(
        once(&runs, || expectations::sample(one(), 1, 2, 3, 4, 5, 6, 7)).await,
        24
    );
    let engine = crate::engine().await;
    assert_eq!(engine.scope(unused_braces::sample(1)).await, Ok(1));
}

#[tokio::test]
#[should_panic(expected = "always 1")]
async fn a_body_that_only_panics() {
    let engine = crate::engine().await;
    drop(engine.scope(diverging_sub_expression::sample(1)).await);
}
