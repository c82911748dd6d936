//! Who comes in.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use idem::UnknownReason;
use idem_cli::ops::{self, Access};

use super::world::{Answer, Browser, TOKEN, World, form, send};

const PATHS: [&str; 6] = [
    "/",
    "/hour",
    "/records",
    "/records?standing=lapsed",
    "/find",
    "/nowhere",
];

#[tokio::test]
async fn without_the_token_nobody_sees_anything() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let browser = Browser::new(world.router());
    let record = format!("/records/{}", holder.id.to_hex());
    let settle = format!("{record}/settle");
    for path in PATHS.into_iter().chain([record.as_str(), settle.as_str()]) {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        answer
            .says(&["name=\"token\""])
            .never_says(&["shop.charge", "o-7", "form_token"]);
        assert!(!answer.headers.contains_key(header::SET_COOKIE), "{path}");
    }
    // The sheet says nothing, and the form to sign in needs it.
    let style = format!("/style-{}.css", env!("CARGO_PKG_VERSION"));
    assert_eq!(browser.get(&style).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_token_opens_a_session_that_leads_to_the_page_that_was_asked_for() {
    let world = World::new().await;
    let mut browser = Browser::new(world.router());
    let asked = browser
        .get("/records?standing=lapsed&operation=a%26b")
        .await;
    let next = asked
        .hidden("next")
        .replace("&#38;", "&")
        .replace("&amp;", "&");
    assert_eq!(next, "/records?standing=lapsed&operation=a%26b");
    let entered = browser
        .post("/sign-in", &[("token", TOKEN), ("next", &next)])
        .await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
    assert_eq!(entered.location(), next);
    let cookie = entered.headers[header::SET_COOKIE].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.split("; ").any(|found| found == part), "{cookie}");
    }
    assert!(!cookie.contains("token of these"), "{cookie}");
    browser.cookie = cookie.split(';').next().map(str::to_owned);
    for path in ["/", "/records", "/find"] {
        assert_eq!(browser.get(path).await.status, StatusCode::OK, "{path}");
    }
    // Another process with the same token takes the session.
    browser.router = world.router();
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    // One with another token does not.
    let other = Access::token("another token of these tests").unwrap();
    browser.router = ops::router(&world.engine, other);
    assert_eq!(browser.get("/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_token_opens_nothing() {
    let world = World::new().await;
    let browser = Browser::new(world.router());
    for wrong in ["", "the token of these test", "the token of these tests!"] {
        let answer = browser
            .post("/sign-in", &[("token", wrong), ("next", "//evil.example")])
            .await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(!answer.headers.contains_key(header::SET_COOKIE));
        answer
            .says(&["This is not the token."])
            .never_says(&["evil.example"]);
    }
    let answer = browser
        .post("/sign-in", &[("token", TOKEN), ("next", "//evil.example")])
        .await;
    assert_eq!(answer.location(), "/");
}

async fn with_bearer(world: &World, token: &str) -> Answer {
    let request = Request::get("/records").header("authorization", format!("Bearer {token}"));
    send(&world.router(), request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_program_sends_the_token_with_each_request() {
    let world = World::new().await;
    assert_eq!(with_bearer(&world, TOKEN).await.status, StatusCode::OK);
    for wrong in ["", "x", "the token of these test"] {
        assert_eq!(
            with_bearer(&world, wrong).await.status,
            StatusCode::UNAUTHORIZED
        );
    }
}

#[tokio::test]
async fn a_session_is_left_by_its_own_form() {
    let world = World::new().await;
    let browser = world.browser().await;
    let refused = browser.post("/sign-out", &[("form_token", "00")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let token = browser.get("/").await.hidden("form_token");
    let left = browser.post("/sign-out", &[("form_token", &token)]).await;
    assert_eq!(left.status, StatusCode::SEE_OTHER);
    let cookie = left.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(
        cookie.starts_with("idem_ops=; ") && cookie.contains("Max-Age=0"),
        "{cookie}"
    );
}

#[tokio::test]
async fn a_link_on_another_site_is_followed_once_more_from_here() {
    let world = World::new().await;
    world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let from = async |site: &str| {
        let request = Request::get("/records?standing=unknown").header("sec-fetch-site", site);
        send(&world.router(), request.body(Body::empty()).unwrap()).await
    };
    let again = from("cross-site").await;
    assert_eq!(again.status, StatusCode::OK);
    again
        .says(&["content=\"0;url=/records?standing=unknown\""])
        .never_says(&["o-7", "name=\"token\""]);
    for site in ["same-origin", "none"] {
        assert_eq!(from(site).await.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn every_answer_forbids_scripts_frames_and_copies() {
    let world = World::new().await;
    let signed_in = world.browser().await;
    let nobody = Browser::new(world.router());
    let mut answers = vec![
        nobody.get("/").await,
        nobody.post_from("http://x", "/", &[]).await,
    ];
    for path in PATHS {
        answers.push(signed_in.get(path).await);
    }
    for answer in answers {
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["cache-control"], "no-store");
        // `no-referrer` would hide the origin of our own forms.
        assert_eq!(answer.headers["referrer-policy"], "same-origin");
        answer.never_says(&["<script", "style=\"", "http://", "https://"]);
    }
}

/// A request as this peer sends it.
fn request_of(peer: Option<&str>, mut request: Request<Body>) -> Request<Body> {
    if let Some(peer) = peer {
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
    }
    request
}

async fn from_here(
    world: &World,
    peer: Option<&str>,
    host: &str,
    extra: &[(&str, &str)],
) -> Answer {
    let router = ops::router(&world.engine, Access::loopback().unwrap());
    let mut request = Request::get("/records").header("host", host);
    for (name, value) in extra {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    send(&router, request_of(peer, request)).await
}

#[tokio::test]
async fn without_a_token_only_this_machine_comes_in() {
    let world = World::new().await;
    world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let here = Some("127.0.0.1:50000");
    for (peer, host) in [
        (here, "localhost:8080"),
        (here, "127.0.0.1"),
        (Some("[::1]:1"), "[::1]:8080"),
        (Some("[::ffff:127.0.0.1]:1"), "localhost"),
    ] {
        let answer = from_here(&world, peer, host, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{peer:?} {host}");
        answer.says(&["o-7"]).never_says(&["Sign out"]);
    }
    let refused = [
        from_here(&world, None, "localhost", &[]).await,
        from_here(&world, Some("10.0.0.7:50000"), "localhost", &[]).await,
        from_here(&world, here, "ops.shop", &[]).await,
        from_here(&world, here, "localhost.evil.example", &[]).await,
        from_here(
            &world,
            here,
            "localhost",
            &[("x-forwarded-for", "10.0.0.7")],
        )
        .await,
    ];
    for answer in refused {
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        answer.never_says(&["o-7"]);
        assert!(!answer.headers.contains_key(header::SET_COOKIE));
    }
}

#[tokio::test]
async fn without_a_token_a_form_needs_its_session_all_the_same() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let router = ops::router(&world.engine, Access::loopback().unwrap());
    let here = Some("127.0.0.1:50000");
    let path = format!("/records/{}/settle", holder.id.to_hex());
    let look = Request::get(&path).header("host", "localhost:8080");
    let opened = send(&router, request_of(here, look.body(Body::empty()).unwrap())).await;
    let cookie = opened.headers[header::SET_COOKIE].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let (token, fence) = (opened.hidden("form_token"), opened.hidden("fence"));
    let fields = form(&[
        ("form_token", &token),
        ("fence", &fence),
        ("as", "not-done"),
        ("by", "ada"),
        ("why", "asked"),
    ]);
    let post = |cookie: Option<&str>| {
        let mut request = Request::post(&path)
            .header("host", "localhost:8080")
            .header("origin", "http://localhost:8080")
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        request_of(here, request.body(Body::from(fields.clone())).unwrap())
    };
    let refused = send(&router, post(None)).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let settled = send(&router, post(Some(&cookie))).await;
    assert_eq!(settled.status, StatusCode::SEE_OTHER);
}

/// What settles records must not travel in clear where the visitor came encrypted.
#[tokio::test]
async fn behind_tls_the_cookie_is_for_encrypted_requests_only() {
    let world = World::new().await;
    for (proto, expected) in [
        (None, false),
        (Some("http"), false),
        (Some("https"), true),
        (Some("HTTPS"), true),
        // Of a chain the first proxy met the visitor.
        (Some("https, http"), true),
        (Some("http, https"), false),
    ] {
        let mut request = Request::post("/sign-in")
            .header("host", "ops.shop")
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(proto) = proto {
            request = request.header("x-forwarded-proto", proto);
        }
        let fields = form(&[("token", TOKEN), ("next", "/")]);
        let entered = send(&world.router(), request.body(Body::from(fields)).unwrap()).await;
        assert_eq!(entered.status, StatusCode::SEE_OTHER, "{proto:?}");
        let cookie = entered.headers[header::SET_COOKIE].to_str().unwrap();
        let secure = cookie.split("; ").any(|part| part == "Secure");
        assert_eq!(secure, expected, "{proto:?}: {cookie}");
    }
}
