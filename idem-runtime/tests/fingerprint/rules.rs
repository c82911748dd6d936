//! What is refused, and where the error says it is; what is no key.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use idem::canonical::{CanonicalError, Encoded, Missing, MissingKind, encode, optional, to_vec};
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::json;

fn error<T: Serialize + ?Sized>(value: &T) -> (String, &'static str) {
    let CanonicalError { path, reason } = to_vec(value).unwrap_err();
    (path, reason)
}

fn path<T: Serialize + ?Sized>(value: &T) -> String {
    error(value).0
}

fn text<T: Serialize + ?Sized>(value: &T) -> String {
    String::from_utf8(to_vec(value).unwrap()).unwrap()
}

fn missing<T: Serialize + ?Sized>(value: &T) -> Option<Missing> {
    encode(value).unwrap().missing
}

/// Entries as they come, repeated or not.
struct Entries<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Newtype<T>(T);

#[derive(serde::Serialize)]
struct Unit;

#[derive(serde::Serialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Method {
    Card,
    Bank(u8),
}

#[test]
fn an_error_names_the_place_and_never_the_value() {
    #[derive(serde::Serialize)]
    struct Customer<T> {
        name: &'static str,
        rate: Vec<T>,
        notes: BTreeMap<&'static str, Option<T>>,
    }
    #[derive(serde::Serialize)]
    enum Wire<T> {
        One(T),
        Two(u8, T),
        Named { amount: T },
    }
    let customer = |rate, note| {
        let customer = Customer {
            name: "x",
            rate: vec![1.0, rate],
            notes: BTreeMap::from([("secret", note)]),
        };
        BTreeMap::from([("secret", customer)])
    };
    assert_eq!(path(&customer(f64::NAN, None)), "$.*.rate[1]");
    assert_eq!(path(&customer(2.0, Some(f64::INFINITY))), "$.*.notes.*");
    assert_eq!(path(&f32::NAN), "$");
    assert_eq!(path(&(1, Newtype(Some(f32::NEG_INFINITY)))), "$[1]");
    assert_eq!(path(&Wire::One([f64::NAN])), "$.One[0]");
    assert_eq!(path(&Wire::Two(1, f64::NAN)), "$.Two[1]");
    let amount = f64::NAN;
    assert_eq!(path(&[Wire::Named { amount }]), "$[0].Named.amount");
    assert_eq!(
        to_vec(&[amount]).unwrap_err().to_string(),
        "no canonical form at $[0]: NaN and infinities have no canonical form"
    );
}

#[test]
fn a_repeated_key_is_refused() {
    #[derive(serde::Serialize)]
    struct Flat {
        id: u8,
        #[serde(flatten)]
        rest: HashMap<&'static str, u8>,
    }
    let repeated = "two entries of one object have the same key";
    let flat = |key| Flat {
        id: 1,
        rest: HashMap::from([("a", 1), ("z", 2), (key, 3)]),
    };
    assert_eq!(text(&flat("b")), r#"{"a":1,"b":3,"id":1,"z":2}"#);
    assert_eq!(error(&[flat("id")]), ("$[0]".into(), repeated));
    let keys = |keys: &[&'static str]| Entries(keys.iter().map(|key| (*key, 0)).collect());
    assert_eq!(error(&keys(&["a", "a"])).1, repeated);
    assert_eq!(error(&keys(&["a", "b", "a"])).1, repeated);
    assert_eq!(error(&keys(&["b", "a", "c", "b"])).1, repeated);
    assert_eq!(
        error(&Entries(vec![("é".repeat(9), 1), ("é".repeat(9), 2)])).1,
        repeated
    );
    // A number and its text are one key.
    let mixed = Entries(vec![(json!(1), 0), (json!("1"), 0)]);
    assert_eq!(error(&mixed).1, repeated);
}

#[test]
fn keys_of_maps_are_scalars_and_no_floats() {
    fn key<K: Serialize>(key: K) -> String {
        text(&Entries(vec![(key, ())]))
    }
    fn refused<K: Serialize>(key: K) {
        let (path, reason) = error(&[Entries(vec![(key, ())])]);
        assert_eq!(path, "$[0]");
        assert!(reason.starts_with("a map key that is"), "{reason}");
    }
    assert_eq!(key("a\n"), r#"{"a\n":null}"#);
    assert_eq!(key('"'), r#"{"\"":null}"#);
    assert_eq!(key(true), r#"{"true":null}"#);
    assert_eq!(key(i128::MIN), format!(r#"{{"{}":null}}"#, i128::MIN));
    assert_eq!(key(Newtype(Some(7_u8))), r#"{"7":null}"#);
    assert_eq!(key(Method::Card), r#"{"Card":null}"#);
    assert_eq!(key(format_args!("{}-{}", 1, 2)), r#"{"1-2":null}"#);
    refused(1.0);
    refused(1.0_f32);
    refused(());
    refused(Unit);
    refused(None::<u8>);
    refused((1, 2));
    refused([1]);
    refused(vec![1]);
    refused(Method::Bank(1));
    refused(BTreeMap::from([(1, 1)]));
}

#[test]
fn nesting_ends_at_128_levels_instead_of_the_stack() {
    struct Nested(usize, fn(usize) -> bool);
    impl Serialize for Nested {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Self(depth, wraps_array) = *self;
            if depth == 0 {
                return serializer.serialize_unit();
            }
            if !wraps_array(depth) {
                return serializer.serialize_some(&Self(depth - 1, wraps_array));
            }
            let mut array = serializer.serialize_seq(None)?;
            array.serialize_element(&Self(depth - 1, wraps_array))?;
            array.end()
        }
    }
    for wraps_array in [|_| true, |_| false, |depth| depth % 3 == 0] {
        to_vec(&Nested(128, wraps_array)).unwrap();
        let (_, reason) = error(&Nested(129, wraps_array));
        assert_eq!(reason, "nested deeper than 128 levels");
        assert_eq!(error(&Nested(usize::MAX, wraps_array)).1, reason);
    }
}

#[test]
fn a_serialize_implementation_that_misbehaves_is_an_error() {
    struct Swallows;
    impl Serialize for Swallows {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut array = serializer.serialize_seq(None)?;
            assert!(array.serialize_element(&f64::NAN).is_err());
            array.serialize_element(&1)?;
            array.end()
        }
    }
    assert!(to_vec(&Swallows).is_err());

    struct Unpaired(u8);
    impl Serialize for Unpaired {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            match self.0 {
                0 => map.serialize_value("no key")?,
                1 => map.serialize_key("no value")?,
                _ => {
                    map.serialize_key("a")?;
                    map.serialize_key("b")?;
                }
            }
            map.end()
        }
    }
    for mistake in 0..3 {
        assert!(to_vec(&Unpaired(mistake)).is_err());
    }

    struct Shy;
    impl fmt::Display for Shy {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    impl Serialize for Shy {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
    assert_eq!(error(&(1, Shy)).0, "$[1]");

    #[derive(serde::Serialize)]
    struct Fails {
        #[serde(serialize_with = "fails")]
        card: u8,
    }
    fn fails<S: Serializer>(_: &u8, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("4111 1111"))
    }
    let error = to_vec(&Fails { card: 1 }).unwrap_err();
    assert_eq!(error.path, "$.card");
    assert!(!error.to_string().contains("4111"));
}

#[test]
fn a_swallowed_error_is_one_whatever_follows_it_in_an_object() {
    struct Swallows<'a>(&'a [&'a str], usize);
    impl Serialize for Swallows<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            for (at, key) in self.0.iter().enumerate() {
                if at == self.1 {
                    let fails = Entries(vec![("b", 1.0), ("a", f64::NAN)]);
                    assert!(map.serialize_entry(key, &fails).is_err());
                } else {
                    map.serialize_entry(key, &at)?;
                }
            }
            map.end()
        }
    }
    let keys = ["k", "", "j", "i", "h", "g", "f", "e", "d", "c", "b", "a"];
    for count in 1..=keys.len() {
        for first in 0..=keys.len() - count {
            for fails in 0..count {
                let value = Swallows(&keys[first..first + count], fails);
                assert!(to_vec(&value).is_err());
                assert!(to_vec(&[value]).is_err());
            }
        }
    }
}

#[test]
fn what_is_null_or_blank_is_no_key() {
    let null = Some(Missing::Whole(MissingKind::Null));
    assert_eq!(missing(&()), null);
    assert_eq!(missing(&None::<u8>), null);
    assert_eq!(missing(&Unit), null);
    assert_eq!(missing(&Newtype(Newtype(json!(null)))), null);

    let blank = Some(Missing::Whole(MissingKind::Blank));
    assert_eq!(missing(""), blank);
    assert_eq!(missing(&Some(Newtype(" \t\u{3000}"))), blank);
    assert_eq!(missing(&' '), blank);
    assert_eq!(missing(&format_args!("{}{}", ' ', "")), blank);

    assert_eq!(missing(&0), None);
    assert_eq!(missing(&false), None);
    assert_eq!(missing("-"), None);
    assert_eq!(missing(&Some(None::<u8>)), None);
    assert_eq!(missing(&json!(["", null])), None);
    assert_eq!(missing(&BTreeMap::from([("a", "")])), None);
}

#[test]
fn the_first_missing_element_of_a_tuple_is_named() {
    #[derive(serde::Serialize)]
    struct Pair(u8, Option<u8>);
    let element = |at, kind| Some(Missing::Element(at, kind));

    assert_eq!(
        missing(&("a", None::<u8>, "")),
        element(1, MissingKind::Null)
    );
    assert_eq!(missing(&["a", " "]), element(1, MissingKind::Blank));
    assert_eq!(missing(&Pair(1, None)), element(1, MissingKind::Null));
    assert_eq!(
        missing(&Newtype(Pair(1, None))),
        element(1, MissingKind::Null)
    );
    // Only the top level: what lies deeper is a part of a part.
    assert_eq!(missing(&(1, ("", None::<u8>))), None);
}

#[test]
fn optional_exempts_what_it_wraps() {
    assert_eq!(missing(&optional(None::<u8>)), None);
    assert_eq!(missing(&("a", optional(""), optional(()))), None);
    assert_eq!(missing(&optional(("a", ""))), None);
    assert_eq!(missing(&Newtype(optional(" "))), None);
    let kept = missing(&(optional(""), ""));
    assert_eq!(kept, Some(Missing::Element(1, MissingKind::Blank)));
    assert_eq!(text(&Some(optional(None::<u8>))), r#"{"Some":null}"#);
}

#[test]
fn only_tuples_have_parts() {
    let of = |encoded: Encoded| {
        let Encoded { bytes, parts, .. } = encoded;
        let text = |part: Range<usize>| str::from_utf8(&bytes[part]).unwrap().to_owned();
        parts.map(|parts| parts.into_iter().map(text).collect::<Vec<_>>())
    };
    let tuple = encode(&(("a", 1), [2.5], json!({"b": 1, "a": 2}))).unwrap();
    assert!(!format!("{tuple:?}").contains("2.5"));
    let expected = [r#"["a",1]"#, "[2.5]", r#"{"a":2,"b":1}"#].map(String::from);
    assert_eq!(of(tuple), Some(expected.to_vec()));
    assert_eq!(of(encode(&[7]).unwrap()), Some(vec!["7".to_owned()]));
    assert_eq!(of(encode(&vec![7]).unwrap()), None);
    assert_eq!(of(encode(&BTreeMap::from([(1, (1, 2))])).unwrap()), None);
    assert_eq!(of(encode("text").unwrap()), None);
}
