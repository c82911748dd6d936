//! What stands before every page: who is there, where the request comes from,
//! and the headers of the answer.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, OriginalUri, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::Ops;
use super::access::{Rule, is_loopback_host};
use super::pages::{STYLE, message, sign_in};
use super::session::{COOKIE, LASTS, Session};

/// Nothing is loaded from elsewhere, no script runs, nobody frames it.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// How a browser says which site a request comes from.
const SITE: &str = "sec-fetch-site";

/// Headers by which a proxy says that it is one.
const OF_PROXIES: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// Where the page is mounted, without a slash at the end.
#[derive(Debug, Clone)]
pub(super) struct Base(pub(super) String);

/// Who is there.
#[derive(Debug, Clone)]
pub(super) enum Visitor {
    /// Nobody yet. There is nothing to see, and no form of theirs.
    Nobody,
    /// A person with a browser.
    Person(Session),
    /// A program, which sends the token with each request. No other site can
    /// make a browser do that, so its forms need no proof.
    Program,
}

/// Answers a request, with the headers of every answer.
pub(super) async fn guard(State(ops): State<Ops>, request: Request, next: Next) -> Response {
    let mut response = enter(&ops, request, next).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`, with which browsers hide the origin of a form.
        (header::REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets a request in, or says why not.
async fn enter(ops: &Ops, mut request: Request, next: Next) -> Response {
    let base = base(&request);
    let mut visitor = match admit(ops, &request) {
        Ok(visitor) => visitor,
        Err(refusal) => return refusal.answer(&base),
    };
    let mut opened = None;
    // Without a token there is no form to sign in by: the first look opens a session.
    if matches!(visitor, Visitor::Nobody) && ops.access().rule == Rule::Loopback {
        let is_page = reads(&request) && request.uri().path() != STYLE;
        match ops.access().open() {
            Ok(session) if is_page => {
                opened = Some(cookie(ops, Some(&session), &base, request.headers()));
                visitor = Visitor::Person(session);
            }
            Ok(_) => {}
            Err(error) => return message::failed(&base, &error.into()).into_response(),
        }
    }
    request.extensions_mut().insert(visitor);
    request.extensions_mut().insert(base);
    let mut response = next.run(request).await;
    if let Some(cookie) = opened.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn reads(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// Why a request is not let in.
enum Refusal {
    /// It comes from another machine, or may do so.
    NotFromHere(&'static str),
    /// Another site may have sent this form.
    OtherSite,
    WrongToken,
    /// Nobody has signed in; this is where they wanted to go.
    NotSignedIn(String),
    /// A link on another site, such as an alert's: it comes without the cookie
    /// of the session that there may be.
    FollowedFromElsewhere(String),
}

impl Refusal {
    fn answer(self, base: &Base) -> Response {
        match self {
            Self::NotFromHere(why) => message::refused(base, why).into_response(),
            Self::OtherSite => {
                let why = "This form was not sent by this page, or the browser does not say that it was. Nothing was changed.";
                message::refused(base, why).into_response()
            }
            Self::WrongToken => {
                sign_in::refuse(base, "/", "This is not the token.").into_response()
            }
            Self::NotSignedIn(next) => sign_in::ask(base, &next).into_response(),
            Self::FollowedFromElsewhere(next) => sign_in::again(base, &next).into_response(),
        }
    }
}

fn admit(ops: &Ops, request: &Request) -> Result<Visitor, Refusal> {
    let headers = request.headers();
    if ops.access().rule == Rule::Loopback {
        is_from_here(request).map_err(Refusal::NotFromHere)?;
    }
    let bearer = text(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    if let Some(token) = bearer {
        let known = ops.access().is_token(token);
        return known.then_some(Visitor::Program).ok_or(Refusal::WrongToken);
    }
    let reads = reads(request);
    if !reads && !is_same_origin(request) {
        return Err(Refusal::OtherSite);
    }
    let session = headers
        .get_all(header::COOKIE)
        .into_iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .find_map(|cookies| ops.access().session(cookies));
    if let Some(session) = session {
        return Ok(Visitor::Person(session));
    }
    let path = request.uri().path();
    if path == STYLE || path == "/sign-in" || ops.access().rule == Rule::Loopback {
        return Ok(Visitor::Nobody);
    }
    let next = if reads { local(request.uri()) } else { "/" };
    if reads && text(headers, SITE) == Some("cross-site") {
        return Err(Refusal::FollowedFromElsewhere(next.to_owned()));
    }
    Err(Refusal::NotSignedIn(next.to_owned()))
}

/// Whether a browser says that the page itself sends this form, and no other
/// site.
fn is_same_origin(request: &Request) -> bool {
    let headers = request.headers();
    // Browsers send it to hosts that they trust, whatever a proxy makes of the host's name.
    if let Some(site) = text(headers, SITE) {
        return site == "same-origin";
    }
    let origin = text(headers, "origin").and_then(|origin| origin.split_once("://"));
    match (origin, host(request)) {
        (Some((_, origin)), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

fn text<'r>(headers: &'r HeaderMap, name: &str) -> Option<&'r str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The host that the browser asks for. HTTP/2 has it in the address.
fn host(request: &Request) -> Option<&str> {
    let authority = || request.uri().authority().map(|host| host.as_str());
    text(request.headers(), "host").or_else(authority)
}

/// Whether the caller is on this machine, and means it.
fn is_from_here(request: &Request) -> Result<(), &'static str> {
    let headers = request.headers();
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
        return Err(
            "Without a token this page needs the caller's address: serve the application with `into_make_service_with_connect_info::<SocketAddr>()`.",
        );
    };
    if !peer.ip().to_canonical().is_loopback()
        || OF_PROXIES.iter().any(|name| headers.contains_key(*name))
        || !host(request).is_some_and(is_loopback_host)
    {
        return Err(
            "Without a token this page is for callers on its own machine, under a name like `localhost`. Give it a token to open it to others.",
        );
    }
    Ok(())
}

/// The path at which the page is mounted: what the request's path has before
/// the part that the page's own routes see.
fn base(request: &Request) -> Base {
    let inner = request.uri().path();
    let full = request
        .extensions()
        .get::<OriginalUri>()
        .map_or(inner, |original| original.0.path());
    let base = full.strip_suffix(inner).unwrap_or(full);
    Base(base.trim_end_matches('/').to_owned())
}

/// Path and query within the page.
fn local(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |local| local.as_str())
}

fn is_behind_tls(headers: &HeaderMap) -> bool {
    headers
        .get("x-forwarded-proto")
        .and_then(|proto| proto.to_str().ok())
        // Of a chain of proxies the first one is the visitor's.
        .and_then(|chain| chain.split(',').next())
        .is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
}

/// Writes a `Set-Cookie` header. Browsers keep it to this path, to themselves
/// (no script reads it), and send it with nothing that another site begins.
fn set_cookie(value: &str, base: &Base, secure: bool) -> String {
    // A path may have a semicolon in it, which would end it here.
    let path = match base.0.as_str() {
        "" => "/",
        base if base.contains(';') => "/",
        base => base,
    };
    let lasts = if value.is_empty() { 0 } else { LASTS };
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path={path}; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}")
}

/// The `Set-Cookie` header of a new session, or of none.
pub(super) fn cookie(
    ops: &Ops,
    session: Option<&Session>,
    base: &Base,
    headers: &HeaderMap,
) -> String {
    let value = session.map(|session| ops.access().cookie(session));
    set_cookie(&value.unwrap_or_default(), base, is_behind_tls(headers))
}

/// Whether a form comes from this visitor's own page.
pub(super) fn is_own_form(ops: &Ops, visitor: &Visitor, form_token: &str) -> bool {
    match visitor {
        Visitor::Program => true,
        Visitor::Person(session) => ops.access().is_form_token(session, form_token),
        Visitor::Nobody => false,
    }
}
