//! A call on its way in: from arguments to a record id.

use std::any::TypeId;
use std::borrow::{Borrow, Cow};
use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use super::site::{Name, Site};
use super::{Engine, Inner};
use crate::canonical::{self, CanonicalError, Encoded, Missing, MissingKind};
use crate::clock::micros;
use crate::error::Error;
use crate::identity::{Fingerprint, Identity, RecordId};
use crate::policy::{OnInProgress, OnMissingKey, OnStale, OnUnknown, Ttl};
use crate::record::{Claim, Element, Label, VersionBytes};
use crate::singleflight::FlightKey;
use crate::store::{Reserve, Takeover};
use crate::version::Version;

/// How long a lease may be.
pub(crate) const LEASES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);
/// The most bytes of an operation's name.
const MAX_NAME: usize = 128;
/// The room that a key begins with: more than most need.
const KEY: usize = 64;

/// Whether an operation can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

fn check_text(name: &str) -> Result<(), Error> {
    if is_name(name) {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "an operation's name has 1 to {MAX_NAME} bytes and no control characters"
    )))
}

fn unfit(error: &CanonicalError) -> Error {
    Error::Fingerprint {
        path: error.path.clone(),
        reason: error.reason.to_owned(),
    }
}

/// What a call consists of, gathered before anything is awaited.
///
/// Mistakes are kept until the call is made, so that the expansion needs no
/// control flow.
///
/// In a box, since it is moved at each step of being gathered, and on.
pub struct Call(Box<Parts>);

struct Parts {
    engine: Option<Engine>,
    name: Cow<'static, str>,
    site: Option<&'static Site>,
    derived: bool,
    on_in_progress: OnInProgress,
    on_unknown: OnUnknown,
    on_missing_key: OnMissingKey,
    lease: Option<Duration>,
    max_run: Option<Duration>,
    ttl: Option<Ttl>,
    scope: Option<Vec<u8>>,
    key: Key,
    payload: Vec<(Cow<'static, str>, Encoded)>,
    version: Option<VersionBytes>,
    on_stale: Option<OnStale>,
    label: Option<Label>,
    mistake: Option<Error>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never key, scope, payload or label: they are the user's.
        f.debug_struct("Call")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

enum Key {
    None,
    /// Elements of a literal tuple, being joined.
    Parts(Vec<u8>, usize),
    Whole(Vec<u8>),
    /// `None`, where that means to run without protection.
    Missing,
}

impl Call {
    /// Starts a call of an annotated function.
    #[must_use]
    pub fn new(site: &'static Site) -> Self {
        let (name, derived) = match site.name {
            Name::Given(name) => (Cow::Borrowed(name), false),
            Name::Derived => (Cow::Owned(site.derived_name()), true),
        };
        let mut call = Self::plain(name);
        let parts = &mut *call.0;
        parts.site = Some(site);
        parts.derived = derived;
        parts.on_in_progress = site.on_in_progress;
        parts.on_unknown = site.on_unknown;
        parts.on_missing_key = site.on_missing_key;
        parts.lease = site.lease;
        parts.max_run = site.max_run;
        call
    }

    /// Starts a call without an annotated function, with its defaults.
    pub(crate) fn plain(name: Cow<'static, str>) -> Self {
        Self(Box::new(Parts {
            engine: None,
            name,
            site: None,
            derived: false,
            on_in_progress: OnInProgress::DEFAULT,
            on_unknown: OnUnknown::Refuse,
            on_missing_key: OnMissingKey::Error,
            lease: None,
            max_run: None,
            ttl: None,
            scope: None,
            key: Key::None,
            payload: Vec::new(),
            version: None,
            on_stale: None,
            label: None,
            mistake: None,
        }))
    }

    /// Sets the engine.
    #[must_use]
    pub fn engine<E: Borrow<Engine> + ?Sized>(mut self, engine: &E) -> Self {
        self.0.engine = Some(engine.borrow().clone());
        self
    }

    /// Checks that the function at `path` may use a derived name.
    #[must_use]
    pub fn derived_from(mut self, path: &'static str) -> Self {
        if self.0.site.is_some_and(|site| !site.is_free_function(path)) {
            self.fail(Error::misuse(format!(
                "`{}` is nested, associated or generic, so other functions could share a name derived from its path: write `name = \"…\"`",
                self.0.name
            )));
        }
        self
    }

    /// Sets how long the answer is kept.
    #[must_use]
    pub fn ttl<T: Into<Ttl>>(mut self, ttl: T) -> Self {
        let ttl = ttl.into();
        if ttl == Ttl::For(Duration::ZERO) {
            self.fail(Error::misuse(
                "`ttl` is zero, which would keep no answer to replay: pass a longer one",
            ));
        }
        self.0.ttl = Some(ttl);
        self
    }

    /// Sets the tenant or caller.
    #[must_use]
    pub fn scope<S: Serialize + ?Sized>(mut self, scope: &S) -> Self {
        match canonical::to_vec(scope) {
            Ok(bytes) => self.0.scope = Some(bytes),
            Err(error) => self.refuse(&error),
        }
        self
    }

    /// Writes a scope for many calls.
    pub(crate) fn encode_scope<S: Serialize + ?Sized>(scope: &S) -> Result<Vec<u8>, Error> {
        canonical::to_vec(scope).map_err(|error| unfit(&error))
    }

    /// Sets the tenant or caller of [`encode_scope`](Self::encode_scope).
    pub(crate) fn encoded_scope(mut self, scope: Result<Vec<u8>, Error>) -> Self {
        match scope {
            Ok(bytes) => self.0.scope = Some(bytes),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Sets a key that is no literal tuple.
    #[must_use]
    pub fn key<K: Serialize + ?Sized>(mut self, key: &K) -> Self {
        let mut bytes = Vec::with_capacity(KEY);
        match canonical::append(&mut bytes, key) {
            Ok(Some(Missing::Whole(MissingKind::Null)))
                if self.0.on_missing_key == OnMissingKey::Run =>
            {
                self.0.key = Key::Missing;
            }
            Ok(missing) => self.set_key(bytes, missing),
            Err(error) => self.refuse(&error),
        }
        self
    }

    fn set_key(&mut self, bytes: Vec<u8>, missing: Option<Missing>) {
        if let Some(missing) = missing {
            self.missing(missing);
        }
        self.0.key = Key::Whole(bytes);
    }

    /// Adds an element of a literal tuple: the bytes are those of the tuple.
    #[must_use]
    pub fn key_part<K: Serialize + ?Sized>(mut self, part: &K) -> Self {
        let (mut bytes, at) = match std::mem::replace(&mut self.0.key, Key::None) {
            Key::Parts(bytes, count) => (bytes, count),
            _ => (Vec::with_capacity(KEY), 0),
        };
        bytes.push(if at == 0 { b'[' } else { b',' });
        match canonical::append(&mut bytes, part) {
            Ok(Some(Missing::Whole(kind))) => self.missing(Missing::Element(at, kind)),
            Ok(_) => {}
            Err(error) => self.refuse(&CanonicalError {
                path: error.path.replacen('$', &format!("$[{at}]"), 1),
                ..error
            }),
        }
        self.0.key = Key::Parts(bytes, at + 1);
        self
    }

    /// Ends a literal tuple.
    #[must_use]
    pub fn end_key(mut self) -> Self {
        if let Key::Parts(mut bytes, _) = std::mem::replace(&mut self.0.key, Key::None) {
            bytes.push(b']');
            self.0.key = Key::Whole(bytes);
        }
        self
    }

    /// Adds an element of the payload.
    #[must_use]
    pub fn payload<P: Serialize + ?Sized>(self, label: &'static str, value: &P) -> Self {
        self.payload_element(Cow::Borrowed(label), value)
    }

    pub(crate) fn payload_element<P: Serialize + ?Sized>(
        mut self,
        label: Cow<'static, str>,
        value: &P,
    ) -> Self {
        match canonical::encode(value) {
            Ok(encoded) => self.0.payload.push((label, encoded)),
            Err(error) => self.refuse(&error),
        }
        self
    }

    /// Sets what orders the calls of one key.
    #[must_use]
    pub fn version<V: Version + ?Sized>(mut self, version: &V) -> Self {
        self.0.version = Some(VersionBytes::of(version));
        self
    }

    /// Sets what happens when a newer version is recorded.
    #[must_use]
    pub fn on_stale(mut self, choice: OnStale) -> Self {
        self.0.on_stale = Some(choice);
        self
    }

    /// Sets the text for operators.
    #[must_use]
    pub fn label<L: Display + ?Sized>(mut self, label: &L) -> Self {
        self.0.label = Some(Label::new(label.to_string()));
        self
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.0.mistake.get_or_insert(error);
    }

    fn refuse(&mut self, error: &CanonicalError) {
        self.fail(unfit(error));
    }

    fn missing(&mut self, missing: Missing) {
        let what = |kind| match kind {
            MissingKind::Null => "missing (null, `None` or a unit)",
            MissingKind::Blank => "a blank string",
        };
        self.fail(Error::InvalidKey {
            reason: match missing {
                Missing::Whole(kind) => format!("the key is {}", what(kind)),
                Missing::Element(at, kind) => format!("element {at} of the key is {}", what(kind)),
            },
        });
    }

    /// Returns the operation's name.
    pub(crate) fn name(&self) -> Cow<'static, str> {
        self.0.name.clone()
    }

    /// Whether the body runs without protection, since there is no key.
    pub(crate) fn is_unprotected(&self) -> bool {
        self.0.mistake.is_none() && matches!(self.0.key, Key::Missing)
    }

    /// Returns the engine that was given, if one was.
    pub(crate) fn given_engine(&self) -> Option<&Engine> {
        self.0.engine.as_ref()
    }

    /// Sets what happens while another attempt runs.
    pub(crate) fn on_in_progress(&mut self, choice: OnInProgress) {
        self.0.on_in_progress = choice;
    }

    /// Sets what happens when the outcome of an attempt is not known.
    pub(crate) fn on_unknown(&mut self, choice: OnUnknown) {
        self.0.on_unknown = choice;
    }

    /// Computes the identity and nothing else, for a look at the record.
    pub(crate) fn record_id(self, engine: &Inner) -> Result<RecordId, Error> {
        if let Some(mistake) = self.0.mistake {
            return Err(mistake);
        }
        let Key::Whole(key) = &self.0.key else {
            return Err(Error::misuse("the call has no key"));
        };
        check_text(&self.0.name)?;
        let identity = &engine.identity;
        Ok(identity.record_id(&self.0.name, self.0.scope.as_deref(), key))
    }

    /// Computes the identity, which is all that a finished answer is found by,
    /// and refuses what is wrong with the call.
    pub(crate) fn identify(
        mut self,
        engine: &Inner,
        codec: &'static str,
        output: TypeId,
    ) -> Result<Identified, Error> {
        if let Some(mistake) = self.0.mistake.take() {
            return Err(mistake);
        }
        let Key::Whole(key) = std::mem::replace(&mut self.0.key, Key::None) else {
            return Err(Error::misuse("the call has no key"));
        };
        let ttl = self
            .0
            .ttl
            .ok_or_else(|| Error::misuse("the call has no TTL"))?;
        if self.0.on_stale.is_some() && self.0.version.is_none() {
            return Err(Error::misuse(
                "`on_stale` without a version: there is nothing that could be newer; set the version as well",
            ));
        }
        self.check_name(engine, output)?;
        let identity = &engine.identity;
        let id = identity.record_id(&self.0.name, self.0.scope.as_deref(), &key);
        let fingerprint = fingerprint(identity, &id, &self.0.payload);
        let lease = self.0.lease.unwrap_or(engine.limits.lease);
        if !LEASES.contains(&lease) {
            return Err(Error::misuse("the lease is 100 ms to 1 day"));
        }
        Ok(Identified {
            ttl,
            lease,
            flight: FlightKey {
                id,
                fingerprint,
                version: self.0.version.take(),
                codec,
                output,
            },
            call: self,
        })
    }

    fn check_name(&self, engine: &Inner, output: TypeId) -> Result<(), Error> {
        check_text(&self.0.name)?;
        if self.0.derived && engine.limits.strict {
            return Err(Error::misuse(format!(
                "a strict engine refuses the derived name `{0}`, which changes when the code moves: write `name = \"{0}\"` to keep this identity",
                self.0.name
            )));
        }
        engine.operations.check(&self.0.name, self.0.site, output)
    }
}

/// A call whose identity is known.
#[derive(Debug)]
pub(crate) struct Identified {
    call: Call,
    ttl: Ttl,
    lease: Duration,
    pub(crate) flight: FlightKey,
}

impl Identified {
    /// Computes everything else that a reservation needs.
    pub(crate) fn prepare(self, engine: &Inner) -> Prepared {
        let Self {
            call,
            ttl,
            lease,
            flight,
        } = self;
        let call = *call.0;
        let scope = call.scope.as_deref();
        Prepared {
            operation: call.name.clone(),
            reserve: Reserve {
                id: flight.id,
                scope: scope.map(|scope| engine.identity.scope_digest(scope)),
                fingerprint: flight.fingerprint,
                elements: elements(engine, &flight.id, &call.payload),
                operation: call.name.into_owned(),
                label: call.label,
                // Each question to the store draws its own.
                claim: Claim::from_bytes([0; 16]),
                lease_us: micros(lease),
                grace_us: micros(engine.limits.grace),
                takeover: match call.on_unknown {
                    OnUnknown::Refuse => Takeover::Refuse,
                    OnUnknown::Rerun => Takeover::Rerun,
                    OnUnknown::Recover => Takeover::Recover,
                },
                max_takeovers: engine.limits.max_takeovers,
                version: flight.version.clone(),
            },
            on_in_progress: call.on_in_progress,
            on_unknown: call.on_unknown,
            on_stale: call.on_stale.unwrap_or_default(),
            ttl_us: ttl.micros(),
            max_run: call.max_run.unwrap_or(engine.limits.max_run),
            flight,
        }
    }
}

type Payload = [(Cow<'static, str>, Encoded)];

/// Its label, its bytes, and where each element is in them.
type Tuple<'a> = (&'a str, &'a [u8], &'a [std::ops::Range<usize>]);

/// The parts of a payload that is one tuple of several elements, which consists
/// of those. A tuple of one is one element, or it would equal its content.
fn tuple(payload: &Payload) -> Option<Tuple<'_>> {
    match payload {
        [
            (
                label,
                Encoded {
                    bytes,
                    parts: Some(parts),
                    ..
                },
            ),
        ] if parts.len() > 1 => Some((label, bytes, parts)),
        _ => None,
    }
}

/// The digest of a payload's values, without a list of them.
fn fingerprint(identity: &Identity, id: &RecordId, payload: &Payload) -> Fingerprint {
    match tuple(payload) {
        Some((_, bytes, parts)) => {
            identity.fingerprint_of(id, parts.iter().map(|part| &bytes[part.clone()]))
        }
        None => identity.fingerprint_of(id, payload.iter().map(|(_, value)| &*value.bytes)),
    }
}

/// The values of a payload, of each of which a digest is stored.
fn values(payload: &Payload) -> Vec<&[u8]> {
    match tuple(payload) {
        Some((_, bytes, parts)) => parts.iter().map(|part| &bytes[part.clone()]).collect(),
        None => payload.iter().map(|(_, value)| &*value.bytes).collect(),
    }
}

/// What is stored of each value.
fn elements(engine: &Inner, id: &RecordId, payload: &Payload) -> Vec<Element> {
    let label = |at: usize| match tuple(payload) {
        Some(("", ..)) => at.to_string(),
        Some((label, ..)) => format!("{label}.{at}"),
        None => payload[at].0.clone().into_owned(),
    };
    let values = values(payload).into_iter().enumerate();
    values
        .map(|(at, value)| Element {
            label: label(at),
            digest: engine.identity.element_digest(id, at, value),
        })
        .collect()
}

/// A call that is ready to ask the store.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// For labels, of which a name in the source needs no copy.
    pub(crate) operation: Cow<'static, str>,
    pub(crate) reserve: Reserve,
    pub(crate) on_in_progress: OnInProgress,
    pub(crate) on_unknown: OnUnknown,
    pub(crate) on_stale: OnStale,
    pub(crate) ttl_us: Option<i64>,
    pub(crate) max_run: Duration,
    pub(crate) flight: FlightKey,
}

impl Prepared {
    pub(crate) fn id(&self) -> RecordId {
        self.reserve.id
    }

    pub(crate) fn lease_us(&self) -> i64 {
        self.reserve.lease_us
    }
}
