//! Whose key it is, and for what.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use axum::routing::post;
use idem::http::IdempotencyLayer;
use idem::{Error, OnUnknown};

use crate::world::{Ask, Effects, Tenant, World};

fn counting(effects: &Effects) -> axum::routing::MethodRouter {
    let effects = effects.clone();
    post(
        move |tenant: Option<axum::Extension<Tenant>>, uri: Uri| async move {
            let tenant = tenant.map_or_else(|| "nobody".to_owned(), |tenant| tenant.0.0);
            format!("run {} of {tenant} on {}", effects.add(), uri.path())
        },
    )
}

pub(crate) async fn two_tenants_share_nothing(world: World) {
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(world.layer());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "shared");
    let a = client.send(&ask).await;
    let b = client.send(&ask.clone().tenant("b")).await;
    assert_eq!(a.text(), "run 1 of a on /pay");
    assert_eq!(b.text(), "run 2 of b on /pay");
    // Each gets its own again, and is not told of the other's body.
    assert_eq!(client.send(&ask.clone().tenant("b")).await, b);
    assert_eq!(client.send(&ask).await, a);
    let c = client.send(&ask.tenant("c").body("another body")).await;
    assert_eq!(c.text(), "run 3 of c on /pay");
    assert_eq!(world.effects.count(), 3);
}

pub(crate) async fn one_key_on_two_paths(world: World) {
    let app = Router::new()
        .route("/accounts/{id}/pay", counting(&world.effects))
        .layer(world.layer());
    let client = world.serve(app).await;
    for (run, path) in ["/accounts/1/pay", "/accounts/2/pay"].iter().enumerate() {
        let ask = Ask::new(path, "paths");
        let first = client.send(&ask).await;
        assert_eq!(first.text(), format!("run {} of a on {path}", run + 1));
        assert_eq!(client.send(&ask).await, first);
    }
    assert_eq!(world.effects.count(), 2);
}

pub(crate) async fn one_key_on_two_nested_routers(world: World) {
    // Inside, both paths are `/pay`.
    let inner = || {
        Router::new()
            .route("/pay", counting(&world.effects))
            .layer(world.layer())
    };
    let app = Router::new().nest("/a", inner()).nest("/b", inner());
    let client = world.serve(app).await;
    let a = client.send(&Ask::new("/a/pay", "nested")).await;
    let b = client.send(&Ask::new("/b/pay", "nested")).await;
    assert_eq!(a.text(), "run 1 of a on /pay");
    assert_eq!(b.text(), "run 2 of a on /pay");
    assert_eq!(client.send(&Ask::new("/a/pay", "nested")).await, a);
}

pub(crate) async fn a_replay_is_only_for_who_may_have_it(world: World) {
    let revoked = Arc::new(AtomicBool::new(false));
    let inside = Arc::clone(&revoked);
    let authorize = from_fn(move |request: Request, next: Next| {
        let revoked = Arc::clone(&inside);
        async move {
            if revoked.load(Ordering::SeqCst) {
                return StatusCode::FORBIDDEN.into_response();
            }
            next.run(request).await
        }
    });
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(world.layer())
        .layer(authorize);
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "revoked");
    let first = client.send(&ask).await;
    revoked.store(true, Ordering::SeqCst);
    let refused = client.send(&ask).await;
    assert_eq!((refused.status, refused.body.len()), (403, 0));
    // The refusal is nobody's recorded answer.
    revoked.store(false, Ordering::SeqCst);
    assert_eq!(client.send(&ask).await, first);
}

pub(crate) async fn a_request_without_a_scope_is_refused(world: World) {
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(world.layer());
    let client = world.serve(app).await;
    for ask in [
        Ask::new("/pay", "nobody").tenant(""),
        Ask::new("/pay", "nobody").tenant(" "),
        Ask::bare("/pay").header("idempotency-key", "canary-4111"),
    ] {
        client.send(&ask).await.problem(403, "scope-missing");
    }
    assert_eq!(world.effects.count(), 0);

    // Said in the code, all share their keys.
    let layer = IdempotencyLayer::builder(&world.engine)
        .name("shared")
        .unscoped();
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(layer.build().unwrap());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "all");
    let first = client.send(&ask).await;
    assert_eq!(client.send(&ask.tenant("b")).await, first);
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn wrong_layers_are_not_built(world: World) {
    // Without a scope there is no `build`: a `compile_fail` example of
    // `IdempotencyLayer::builder` proves it.
    let build = || world.builder();
    for wrong in [
        build().keep_header(HeaderName::from_static("set-cookie")),
        build().keep_header(HeaderName::from_static("x-ratelimit-limit")),
        build().methods([]),
        build().ttl(std::time::Duration::ZERO),
        build().min_key_len(256),
        build().name(""),
        build().name("two\nlines"),
        build().on_unknown(OnUnknown::Recover),
    ] {
        assert!(matches!(wrong.build(), Err(Error::Misuse { .. })));
    }
}
