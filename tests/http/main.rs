//! Proves what a client of an HTTP service sees, over TCP, with HTTP/1.1 and
//! HTTP/2, on `SQLite` and on Postgres: every line of the draft, every line of
//! the status table, exact replays, clients that hang up, servers that die.
//!
//! Each trial has a server, a namespace and a log of its own; it ends with a
//! look for its keys in everything that was logged, measured and shown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod canary;
mod crash;
mod disconnect;
mod draft;
mod handler;
mod scope;
mod statuses;
mod streams;
mod superseded;
mod tower_only;
mod world;

use libtest_mimic::{Arguments, Trial};

use self::world::{Protocol, StoreKind, World};

type Ending = std::pin::Pin<Box<dyn Future<Output = ()>>>;
type Scenario = (&'static str, fn(World) -> Ending);

macro_rules! scenarios {
    ($($module:ident: $($name:ident),* $(,)?;)*) => {
        const SCENARIOS: &[Scenario] = &[$($(
            (
                concat!(stringify!($module), "::", stringify!($name)),
                |world| Box::pin($module::$name(world)),
            ),
        )*)*];
    };
}

scenarios! {
    draft: a_repeated_request_gets_the_first_answer, every_line_of_the_draft_about_one_request,
        another_request_with_the_key_is_refused_and_told_what_differs,
        a_request_that_comes_meanwhile_waits, a_request_that_comes_meanwhile_is_refused,
        by_default_it_waits_two_seconds,
        the_key_is_forgotten_after_its_ttl, other_methods_pass_through,
        without_a_key_where_it_is_optional, a_large_request_reserves_nothing,
        a_client_that_asks_first_is_not_asked_for_the_body_of_a_bad_request,
        chosen_query_and_headers, a_shut_down_server_says_so, problems_can_be_replaced;
    statuses: every_line_of_the_default_table, every_line_of_a_changed_table;
    answers: a_full_answer_is_replayed_to_the_byte, what_belongs_to_one_exchange_is_not_replayed,
        bodies_of_every_kind, marks_by_choice, a_withheld_answer_is_not_kept;
    streams: a_long_body_is_streamed_and_not_kept, an_endless_body_is_streamed_and_not_kept,
        a_body_that_breaks_leaves_the_outcome_unknown, a_slow_body_is_streamed_and_not_kept;
    disconnect: after_the_headers, after_half_the_body, after_the_body, while_waiting,
        a_timeout_inside_leaves_the_outcome_unknown, a_panic_leaves_the_outcome_unknown;
    scope: two_tenants_share_nothing, one_key_on_two_paths, one_key_on_two_nested_routers,
        a_replay_is_only_for_who_may_have_it,
        a_request_without_a_scope_is_refused, wrong_layers_are_not_built;
    handler: an_annotated_handler_replays_its_response, a_recorded_error_comes_back_as_its_response,
        a_failed_inner_call_is_not_recorded_as_the_answer, bad_requests_are_problems,
        the_engine_of_a_layer_is_found;
    tower_only: a_hyper_service_without_axum, the_service_that_was_ready_is_called,
        trailers_are_kept_by_the_list,
        an_error_of_the_service_goes_to_its_client;
    superseded: a_client_never_gets_an_answer_that_is_not_recorded;
    crash: a_killed_server_is_told_of, a_store_that_is_away_runs_nothing;
}

fn trial(store: StoreKind, protocol: Protocol, (name, scenario): Scenario) -> Trial {
    let name = format!("{store:?}/{protocol:?}/{name}").to_lowercase();
    Trial::test(name, move || {
        let log = canary::Log::start();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            scenario(World::start(store, protocol).await).await;
        });
        drop(local);
        drop(runtime);
        log.has_no_canary();
        Ok(())
    })
}

fn main() {
    if crash::is_victim() {
        crash::victim();
        return;
    }
    let mut trials = Vec::new();
    for store in [StoreKind::Sqlite, StoreKind::Postgres] {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            trials.extend(
                SCENARIOS
                    .iter()
                    .map(|scenario| trial(store, protocol, *scenario)),
            );
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
