//! The page on which operators see what is stuck, and settle it.
//!
//! [`router`] is an axum router. An application mounts it beside its own
//! routes; `idem serve` serves it by itself. It has a store's side for
//! operators ([`Admin`]) and nothing else to go by, so it
//! shows what every process of every application has left in that store.
//!
//! 1. The first page answers "is anything stuck, for how long, and why":
//!    unknown and lapsed records, oldest first; then what is in progress. It
//!    reads what is open and nothing else, so it is as fast in a store of
//!    millions. The last hour, minute by minute, is a page of its own: it reads
//!    finished records too.
//! 2. A record's page has its life, its label and why it stands where it
//!    stands, and what was settled in it by hand.
//! 3. Settling needs a name and a reason, which are kept in the audit, and is
//!    refused if the record has changed since the form was opened.
//! 4. A GET changes nothing. A POST needs the page's own form, sent from the
//!    page's own origin.
//! 5. Keys, arguments and answers are on no page: the first two are not
//!    stored, and of an answer its kind and size are shown. Labels, names of
//!    operations and of payload elements are shown as they are stored.
//!
//! Who may enter is [`Access`]. It needs no script, no build step and nothing
//! from other hosts.
//!
//! What it does not show: replays, since they leave no row, and what an
//! answer says.
//!
//! # Examples
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::Router;
//! use idem::Engine;
//! use idem::store::MemoryStore;
//! use idem_cli::ops::{self, Access};
//!
//! let engine = Engine::builder(MemoryStore::new()).namespace("shop").build().await?;
//! # let from_the_vault = "0123456789abcdef0123456789abcdef";
//! let app: Router = Router::new()
//!     // .route("/checkout", …)
//!     .nest("/ops", ops::router(&engine, Access::token(from_the_vault)?));
//! # drop(app); Ok(()) }
//! ```

mod access;
mod gather;
mod guard;
mod pages;
mod plot;
mod session;
mod time;
mod words;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use idem::admin::Admin;
use idem::{Engine, Error};
use tokio::net::TcpListener;

pub use self::access::{Access, WeakToken};

/// The largest form that is read. An answer is at most 1 MiB by default, and a
/// form writes many characters as three.
const LARGEST_FORM: usize = 4 * 1024 * 1024;

/// What every handler has.
#[derive(Debug, Clone)]
struct Ops(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    admin: Result<Admin, Error>,
    access: Access,
}

impl Ops {
    fn admin(&self) -> Result<&Admin, Error> {
        self.0.admin.as_ref().map_err(Clone::clone)
    }

    fn access(&self) -> &Access {
        &self.0.access
    }
}

/// Returns the page for the store of an engine, to be mounted with
/// [`Router::nest`] or served by itself. Links begin with the path at which it
/// is mounted.
///
/// The engine gives its store and its timeouts, its grace (how much later than
/// its lease an attempt counts as lapsed) and nothing else, so it may be of
/// another namespace than those whose records are looked at. A store without a
/// side for operators makes a page that says so, with status 503.
pub fn router(engine: &Engine, access: Access) -> Router {
    let ops = Ops(Arc::new(Inner {
        admin: engine.admin(),
        access,
    }));
    Router::new()
        .route("/", get(pages::overview::show))
        .route("/records", get(pages::list::show))
        .route("/records/{record}", get(pages::record::show))
        .route(
            "/records/{record}/settle",
            get(pages::settle::ask).post(pages::settle::settle),
        )
        .route("/hour", get(pages::hour::show))
        .route("/find", get(pages::find::show))
        .route(
            "/sign-in",
            get(pages::sign_in::elsewhere).post(pages::sign_in::enter),
        )
        .route("/sign-out", post(pages::sign_in::leave))
        .route(pages::STYLE, get(pages::style))
        .fallback(pages::not_found)
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
        .layer(from_fn_with_state(ops.clone(), guard::guard))
        .with_state(ops)
}

/// Serves a router on a listener until `until` ends, and then what is already
/// being answered. It tells the router who is calling, which
/// [`Access::loopback`] needs.
///
/// # Cancel safety
/// Dropping the future stops at once; what a request has begun in the store
/// is done all the same.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    until: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service)
        .with_graceful_shutdown(until)
        .await
}
