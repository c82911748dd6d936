//! The page beside an application's own routes.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use idem::UnknownReason;

use super::world::{Browser, World};

/// Where a page is, what its links begin with, and how it is put there.
type Mount = (&'static str, &'static str, fn(Router) -> Router);

/// Where every link and form of a page leads.
fn addresses(body: &str) -> Vec<String> {
    ["href=\"", "action=\"", "url="]
        .iter()
        .flat_map(|before| {
            body.match_indices(before)
                .map(|(at, _)| &body[at + before.len()..])
        })
        .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
        .filter(|address| address != "data:," && address != "#main")
        .collect()
}

#[tokio::test]
async fn links_forms_and_cookies_stay_below_where_it_is_mounted() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let id = holder.id.to_hex();
    let mounts: [Mount; 4] = [
        ("", "", |page| page),
        ("/ops", "/ops", |page| Router::new().nest("/ops", page)),
        ("/t-3/internal/ops", "/t-3/internal/ops", |page| {
            Router::new().nest("/{tenant}", Router::new().nest("/internal/ops", page))
        }),
        ("/ops", "/ops", |page| {
            Router::new().nest_service("/ops", page)
        }),
    ];
    for (base, prefix, mount) in mounts {
        let app = mount(world.router()).route("/health", get(async || "ok"));
        let mut browser = Browser::new(app);
        browser.base = base;
        let first = if base.is_empty() { "/" } else { "" };
        let refused = browser.get(first).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{base}");
        let entered = browser.sign_in().await;
        let path = format!("; Path={}; ", if prefix.is_empty() { "/" } else { prefix });
        assert!(
            entered.headers["set-cookie"]
                .to_str()
                .unwrap()
                .contains(&path)
        );
        assert_eq!(
            entered.location(),
            if prefix.is_empty() { "/" } else { prefix }
        );

        let record = format!("/records/{id}");
        let settle = format!("{record}/settle");
        for path in [
            first, "/records", "/hour", "/find", &record, &settle, "/nowhere",
        ] {
            let answer = browser.get(path).await;
            let wanted = if path == "/nowhere" {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::OK
            };
            assert_eq!(answer.status, wanted, "{base}{path}");
            for address in addresses(&answer.body) {
                let below = address.strip_prefix(prefix).unwrap_or("elsewhere");
                let local = below.starts_with(['/', '?']) && !below.starts_with("//");
                assert!(local || below.is_empty(), "{base}{path}: {address}");
                if !address.ends_with("/sign-out") {
                    let there = browser.get(below).await.status;
                    assert_eq!(there, StatusCode::OK, "{base}{path}: {address}");
                }
            }
        }
        let settled = browser
            .settle(
                &holder.id,
                &[("as", "done"), ("answer", "1"), ("by", ""), ("why", "x")],
            )
            .await;
        assert_eq!(settled.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(
            browser
                .get(&format!("/find?id={}", &id[..12]))
                .await
                .location(),
            format!("{prefix}{record}")
        );
    }
}
