//! What the HTTP layer costs, beside the bare handler and beside another crate.
//!
//! **Shows** the time of one request through an axum router, without a network: the handler alone;
//! with `idem`'s layer, as a first call and as a replay; with a plain call in the handler, which is
//! what the engine alone takes; and with `axum-idempotent`, which keeps
//! answers in a session and runs concurrent repetitions twice. It does less, and says so; it is here
//! because it is the peer that people find. All stores are in memory.
//!
//! **Run** it:
//!
//! ```text
//! cargo bench --manifest-path benches/Cargo.toml --bench http_overhead
//! ```
//!
//! Rounds of all variants are interleaved, so that what else the machine does hits all of them. It
//! prints medians over rounds, the ratio to the bare handler, and the median of the ratios, round by
//! round, of a replay of ours to one of `axum-idempotent`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use harness::figures::Spread;
use harness::{BoxError, Options};
use idem::http::IdempotencyLayer;
use idem::store::MemoryStore;
use idem::{Clock as _, Engine, SystemClock};
use ruts::store::Ttl;
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, Session, SessionLayer};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use tower_cookies::CookieManagerLayer;

const ROUNDS: usize = 61;
const CALLS: u32 = 500;

/// The handler of all variants: reads an order, answers with a charge.
async fn pay(Json(order): Json<Value>) -> Response {
    let body = json!({ "id": "ch_1", "order": order, "status": "succeeded" });
    ([(header::LOCATION, "/charges/ch_1")], Json(body)).into_response()
}

/// One way to send a request.
struct Variant {
    name: &'static str,
    app: Router,
    /// Whether each call has a key of its own.
    fresh: bool,
    cookie: Option<HeaderValue>,
    nanoseconds: Vec<f64>,
}

impl Variant {
    fn new(name: &'static str, app: &Router, fresh: bool) -> Self {
        Self {
            name,
            app: app.clone(),
            fresh,
            cookie: None,
            nanoseconds: Vec::new(),
        }
    }

    fn request(&self, key: &str) -> Result<Request, BoxError> {
        let order = json!({ "order": "o-4711", "amount": 4200, "currency": "EUR", "note": "x".repeat(120) });
        let mut request = Request::post("/pay")
            .header("content-type", "application/json")
            .header("idempotency-key", key);
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        Ok(request.body(Body::from(order.to_string()))?)
    }

    /// Sends one round, and notes the time of a call.
    async fn round(&mut self, round: usize) -> Result<(), BoxError> {
        if self.cookie.is_some() && self.fresh {
            // A session with few answers, as a customer's is.
            self.cookie = Some(session(&self.app).await?);
        }
        let requests: Vec<_> = (0..CALLS)
            .map(|call| {
                let key = if self.fresh {
                    format!("{round}-{call}")
                } else {
                    "same".to_owned()
                };
                self.request(&key)
            })
            .collect::<Result<_, _>>()?;
        let started = SystemClock.monotonic();
        for request in requests {
            let response = self.app.clone().oneshot(request).await?;
            if response.status() != 200 {
                return Err(format!("{}: {}", self.name, response.status()).into());
            }
            axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        }
        let took = SystemClock.monotonic() - started;
        self.nanoseconds
            .push(took.as_secs_f64() * 1e9 / f64::from(CALLS));
        Ok(())
    }

    fn median(&self) -> f64 {
        Spread::of(self.nanoseconds.iter().copied()).median
    }

    /// The ratio of a call to one of another variant, within each round.
    fn beside(&self, other: &Self) -> Spread {
        let pairs = self.nanoseconds.iter().zip(&other.nanoseconds);
        Spread::of(pairs.map(|(own, other)| own / other))
    }
}

/// Begins a session, which `axum-idempotent` keeps its answers in.
async fn session(app: &Router) -> Result<HeaderValue, BoxError> {
    let request = Request::post("/begin").header("idempotency-key", "begin");
    let response = app.clone().oneshot(request.body(Body::empty())?).await?;
    let cookie = response.headers().get("set-cookie").ok_or("no session")?;
    Ok(cookie.clone())
}

fn peer(layer: bool) -> Router {
    let begin = |session: Session<MokaStore>| async move {
        let ttl = Ttl::new(3_600).map_err(|error| error.to_string())?;
        let kept = session.set("user", &"alice", ttl, None).await;
        kept.map(drop).map_err(|error| error.to_string())
    };
    let mut app = Router::new().route("/pay", post(pay));
    if layer {
        let options = IdempotentOptions::default()
            .use_idempotency_key_header(Some("idempotency-key"), true)
            .expire_after(3_600);
        app = app.layer(IdempotentLayer::<MokaStore>::new(options));
    }
    let store = Arc::new(MokaStore::builder().build());
    let cookie = CookieOptions::build()
        .name("session")
        .max_age(3_600)
        .path("/");
    app.route("/begin", post(begin))
        .layer(SessionLayer::new(store).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    harness::on_two_threads(measure(options))
}

async fn measure(options: Options) -> Result<(), BoxError> {
    let rounds = if options.quick { 5 } else { ROUNDS };
    let bare = Router::new().route("/pay", post(pay));
    let engine = Engine::builder(MemoryStore::new()).build().await?;
    let layer = IdempotencyLayer::builder(&engine)
        .scope(|_| Some("alice"))
        .ttl(Duration::from_secs(3_600))
        .build()?;
    let ours = bare.clone().layer(layer);
    // What of it is the engine's: the same work in a plain call, without the layer.
    let call = move |headers: HeaderMap, Json(order): Json<Value>| async move {
        let key = headers["idempotency-key"].as_bytes().to_vec();
        let call = engine.call("plain", &("alice", key), Duration::from_secs(3_600));
        let call = call.payload(&order.to_string());
        let body = json!({ "id": "ch_1", "order": order, "status": "succeeded" });
        call.run(async { Ok::<_, idem::Error>(body) })
            .await
            .map(Json)
    };
    let plain = Router::new().route("/pay", post(call));
    let (sessions, theirs) = (peer(false), peer(true));

    let mut variants = [
        Variant::new("bare handler", &bare, true),
        Variant::new("idem, first call", &ours, true),
        Variant::new("idem, replay", &ours, false),
        Variant::new("plain call, first", &plain, true),
        Variant::new("plain call, replay", &plain, false),
        Variant::new("sessions without a layer", &sessions, true),
        Variant::new("axum-idempotent, first call", &theirs, true),
        Variant::new("axum-idempotent, replay", &theirs, false),
    ];
    for variant in &mut variants[5..] {
        variant.cookie = Some(session(&variant.app).await?);
    }
    for round in 0..rounds {
        // The first of each round is another one.
        for turn in 0..variants.len() {
            let variant = (round + turn) % variants.len();
            variants[variant].round(round).await?;
        }
    }
    println!("{rounds} rounds of {CALLS} calls, medians\n");
    let bare = variants[0].median();
    for variant in &variants {
        let median = variant.median();
        options.note(&json!({
            "bench": "http", "variant": variant.name, "us": median / 1_000.0, "rounds": rounds,
        }))?;
        println!(
            "{:<28} {:>7.1} us {:>6.1} x",
            variant.name,
            median / 1_000.0,
            median / bare
        );
    }
    println!();
    for (ours, theirs) in [(2, 7), (1, 6)] {
        let (ours, theirs) = (&variants[ours], &variants[theirs]);
        let ratio = ours.beside(theirs);
        println!("{:<28} {ratio} x {}", ours.name, theirs.name);
        options.note(&json!({
            "bench": "http ratio", "variant": ours.name, "beside": theirs.name, "rounds": rounds,
            "ratio": ratio.median, "ratio_min": ratio.min, "ratio_max": ratio.max,
        }))?;
    }
    Ok(())
}
