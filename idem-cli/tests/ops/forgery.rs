//! What another site can make a browser send changes nothing.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use idem::UnknownReason;
use idem::record::State;

use super::world::{Answer, TOKEN, World, form, send};

const FIELDS: [(&str, &str); 3] = [("as", "not-done"), ("by", "eve"), ("why", "for fun")];

#[tokio::test]
async fn a_form_needs_its_own_sessions_token_and_its_own_origin() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let browser = world.browser().await;
    let path = format!("/records/{}/settle", holder.id.to_hex());
    let opened = browser.get(&path).await;
    let (token, fence) = (opened.hidden("form_token"), opened.hidden("fence"));
    let other = world.browser().await.get(&path).await.hidden("form_token");
    let fields =
        |token: &'static str| [&[("form_token", token), ("fence", "0")], &FIELDS[..]].concat();

    let mut refused: Vec<Answer> = Vec::new();
    refused.push(browser.post(&path, &FIELDS).await);
    for wrong in ["", "00", "zz"] {
        refused.push(browser.post(&path, &fields(wrong)).await);
    }
    let mut of_another = vec![("form_token", other.as_str()), ("fence", &fence)];
    of_another.extend(FIELDS);
    refused.push(browser.post(&path, &of_another).await);

    let mut own = vec![("form_token", token.as_str()), ("fence", &fence)];
    own.extend(FIELDS);
    for origin in [
        "http://evil.example",
        "http://ops.shop.evil.example",
        "http://ops.shop:81",
        "null",
        "",
    ] {
        refused.push(browser.post_from(origin, &path, &own).await);
    }
    for (site, origin) in [
        ("cross-site", "http://ops.shop"),
        ("same-site", "http://ops.shop"),
        ("none", "http://ops.shop"),
    ] {
        let request = Request::post(&path)
            .header("host", "ops.shop")
            .header("origin", origin)
            .header("sec-fetch-site", site)
            .header("cookie", browser.cookie.as_deref().unwrap())
            .header("content-type", "application/x-www-form-urlencoded");
        refused.push(
            send(
                &browser.router,
                request.body(Body::from(form(&own))).unwrap(),
            )
            .await,
        );
    }
    // A browser that says nothing of where it comes from.
    let silent = Request::post(&path)
        .header("host", "ops.shop")
        .header("cookie", browser.cookie.as_deref().unwrap())
        .header("content-type", "application/x-www-form-urlencoded");
    refused.push(
        send(
            &browser.router,
            silent.body(Body::from(form(&own))).unwrap(),
        )
        .await,
    );

    for (at, answer) in refused.iter().enumerate() {
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{at}");
    }
    assert_eq!(
        world.store.record(&holder.id).unwrap().state,
        State::Unknown
    );

    let settled = browser.post(&path, &own).await;
    assert_eq!(settled.status, StatusCode::SEE_OTHER);
    assert_eq!(
        world.store.record(&holder.id).unwrap().state,
        State::Released
    );
}

#[tokio::test]
async fn a_browser_that_names_the_site_is_believed_behind_a_proxy_that_renames_the_host() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let browser = world.browser().await;
    let path = format!("/records/{}/settle", holder.id.to_hex());
    let opened = browser.get(&path).await;
    let (token, fence) = (opened.hidden("form_token"), opened.hidden("fence"));
    let mut own = vec![("form_token", token.as_str()), ("fence", &fence)];
    own.extend(FIELDS);
    let request = Request::post(&path)
        .header("host", "10.0.0.7:8080")
        .header("origin", "https://ops.shop")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", browser.cookie.as_deref().unwrap())
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = send(
        &browser.router,
        request.body(Body::from(form(&own))).unwrap(),
    )
    .await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_program_needs_no_form_of_ours() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let fence = format!("{}.{}", holder.fence, State::Unknown.code());
    let mut fields = vec![("fence", fence.as_str())];
    fields.extend(FIELDS);
    let request = Request::post(format!("/records/{}/settle", holder.id.to_hex()))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = send(
        &world.router(),
        request.body(Body::from(form(&fields))).unwrap(),
    )
    .await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(
        world.store.record(&holder.id).unwrap().state,
        State::Released
    );
}

#[tokio::test]
async fn nobody_is_signed_in_from_another_site() {
    let world = World::new().await;
    let browser = super::world::Browser::new(world.router());
    let answer = browser
        .post_from("http://evil.example", "/sign-in", &[("token", TOKEN)])
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(!answer.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn a_look_changes_nothing() {
    let world = World::new().await;
    let holder = world
        .unknown("shop.charge", "o-7", UnknownReason::Panicked)
        .await;
    let before = world.store.record(&holder.id).unwrap();
    let browser = world.browser().await;
    let id = holder.id.to_hex();
    let fence = before.fence;
    for path in [
        format!("/records/{id}/settle?as=forget&sure=yes&by=eve&why=fun&fence={fence}"),
        format!("/records/{id}?settled=done"),
        "/sign-out".to_owned(),
    ] {
        browser.get(&path).await;
    }
    assert_eq!(world.store.record(&holder.id).unwrap(), before);
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
}
