//! A store with records in it, and a browser in front of the page.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use idem::identity::Fingerprint;
use idem::record::{Claim, Element, Label, Recorded, UnknownReason};
use idem::store::{
    Complete, Ending, Holder, MarkUnknown, MemoryStore, Reserve, Reserved, Store as _, Takeover,
};
use idem::testing::ManualClock;
use idem::{Engine, RecordId};
use idem_cli::ops::{self, Access};
use tower::ServiceExt as _;

pub(crate) const TOKEN: &str = "the token of these tests";
pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A store, its clock, and an engine on it.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) clock: ManualClock,
    pub(crate) engine: Engine,
    next: AtomicU8,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        let engine = Engine::builder(store.clone())
            .namespace("shop")
            .lease(LEASE)
            .grace(GRACE)
            .build()
            .await
            .unwrap();
        Self {
            store,
            clock,
            engine,
            next: AtomicU8::new(1),
        }
    }

    pub(crate) fn router(&self) -> Router {
        ops::router(&self.engine, Access::token(TOKEN).unwrap())
    }

    /// A browser that has signed in.
    pub(crate) async fn browser(&self) -> Browser {
        let mut browser = Browser::new(self.router());
        browser.sign_in().await;
        browser
    }

    /// An attempt that holds its key until its lease lapses.
    pub(crate) async fn running(&self, operation: &str, label: &str) -> Holder {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        // As with digests, the order of ids says nothing about that of times.
        let id = RecordId::from_bytes([number.wrapping_mul(167); 32]);
        let claim = Claim::random().unwrap();
        let request = Reserve {
            id,
            operation: operation.to_owned(),
            label: (!label.is_empty()).then(|| Label::new(label)),
            scope: None,
            fingerprint: Fingerprint::from_bytes([1; 32]),
            elements: vec![Element {
                label: "order.amount".to_owned(),
                digest: [0; 8],
            }],
            claim,
            lease_us: i64::try_from(LEASE.as_micros()).unwrap(),
            grace_us: i64::try_from(GRACE.as_micros()).unwrap(),
            takeover: Takeover::Refuse,
            max_takeovers: 5,
            version: None,
        };
        let Reserved::Won(won) = self.store.reserve(&request).await.unwrap() else {
            panic!("not won");
        };
        Holder {
            id,
            claim,
            fence: won.fence,
        }
    }

    pub(crate) async fn unknown(
        &self,
        operation: &str,
        label: &str,
        reason: UnknownReason,
    ) -> Holder {
        let holder = self.running(operation, label).await;
        self.store
            .mark_unknown(&MarkUnknown {
                holder,
                reason,
                undecided_retry_us: None,
            })
            .await
            .unwrap();
        holder
    }

    pub(crate) async fn completed(&self, operation: &str, label: &str, json: &str) -> Holder {
        let holder = self.running(operation, label).await;
        self.complete(&holder, json).await;
        holder
    }

    pub(crate) async fn complete(&self, holder: &Holder, json: &str) {
        let answer = Recorded::new(&holder.id, "json", false, json.as_bytes().to_vec());
        self.store
            .complete(&Complete {
                holder: *holder,
                ending: Ending::Answer(answer),
                ttl_us: Some(86_400_000_000),
            })
            .await
            .unwrap();
    }
}

/// What a request gave.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn location(&self) -> &str {
        self.headers[header::LOCATION].to_str().unwrap()
    }

    /// Says which of these texts is missing.
    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.body.contains(text), "{text:?} is not in {}", self.body);
        }
        self
    }

    #[track_caller]
    pub(crate) fn never_says(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(!self.body.contains(text), "{text:?} is in {}", self.body);
        }
        self
    }

    /// The value of a hidden field.
    #[track_caller]
    pub(crate) fn hidden(&self, name: &str) -> String {
        let field = format!("name=\"{name}\" value=\"");
        let from = self.body.find(&field).expect("no such field") + field.len();
        let length = self.body[from..].find('"').unwrap();
        self.body[from..from + length].to_owned()
    }
}

/// Sends a request to a router.
pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Answer {
        status: parts.status,
        headers: parts.headers,
        // Numbers and their units are not separated by a plain space.
        body: String::from_utf8(body.to_vec())
            .unwrap()
            .replace('\u{a0}', " "),
    }
}

/// A form as browsers write it.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let write =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{}={}", write(name), write(value)))
        .collect();
    fields.join("&")
}

/// A browser that keeps one cookie, and says where its forms come from.
pub(crate) struct Browser {
    pub(crate) router: Router,
    pub(crate) cookie: Option<String>,
    /// Where the page is mounted.
    pub(crate) base: &'static str,
}

impl Browser {
    pub(crate) fn new(router: Router) -> Self {
        Self {
            router,
            cookie: None,
            base: "",
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let mut request = Request::get(format!("{}{path}", self.base)).header("host", "ops.shop");
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        send(&self.router, request.body(Body::empty()).unwrap()).await
    }

    /// A form of the page's own, as it is sent from it.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from("http://ops.shop", path, fields).await
    }

    /// A form that is sent from a page of this origin.
    pub(crate) async fn post_from(
        &self,
        origin: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::post(format!("{}{path}", self.base))
            .header("host", "ops.shop")
            .header("origin", origin)
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        send(
            &self.router,
            request.body(Body::from(form(fields))).unwrap(),
        )
        .await
    }

    pub(crate) async fn sign_in(&mut self) -> Answer {
        let answer = self
            .post("/sign-in", &[("token", TOKEN), ("next", "/")])
            .await;
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
        self.cookie = cookie.split(';').next().map(str::to_owned);
        answer
    }

    /// Opens the form of a record and sends it.
    pub(crate) async fn settle(&self, id: &RecordId, fields: &[(&str, &str)]) -> Answer {
        let path = format!("/records/{}/settle", id.to_hex());
        let opened = self.get(&path).await;
        assert_eq!(opened.status, StatusCode::OK);
        self.send_settle(&opened, &path, fields).await
    }

    /// Sends a form that was opened before.
    pub(crate) async fn send_settle(
        &self,
        opened: &Answer,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let (token, fence) = (opened.hidden("form_token"), opened.hidden("fence"));
        let mut all = vec![("form_token", token.as_str()), ("fence", fence.as_str())];
        all.extend(fields);
        self.post(path, &all).await
    }
}
