//! What must hold for every value.

use std::collections::BTreeSet;

use idem::canonical::{encode, to_vec};
use proptest::prelude::*;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Number, Value};

const SAFE: i64 = (1 << 53) - 1;

/// A map that is serialized in the order it is written in.
#[derive(Debug, Clone)]
struct Ordered(Vec<(String, Value)>);

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Entries, and one that is such a map.
struct Around<'a>(&'a [(String, Value)], &'a str, &'a Ordered);

impl Serialize for Around<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry(self.1, self.2)?;
        map.end()
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-SAFE..=SAFE).prop_map(Value::from),
        (-9_i64..9).prop_map(Value::from),
        any::<u64>().prop_map(|bits| {
            Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }),
        (-1e22..1e22).prop_map(Value::from),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "(prefix--|more than sixteen)?[a\"\\\\\u{0}\u{7f}é\u{e000}\u{ffff}\u{10000}😀]{0,3}",
        Just("Some".to_owned()),
    ]
}

/// Keys in any order, sometimes one of them twice.
fn keys(most: usize) -> impl Strategy<Value = Vec<String>> {
    let twice = prop::option::weighted(0.2, any::<prop::sample::Index>());
    (prop::collection::btree_set(key(), 0..most), twice).prop_flat_map(|(keys, twice)| {
        let mut keys: Vec<_> = keys.into_iter().collect();
        if let (Some(twice), false) = (twice, keys.is_empty()) {
            keys.push(twice.get(&keys).clone());
        }
        Just(keys).prop_shuffle()
    })
}

/// Few and similar, so that two of them often share parts.
type Arguments = (
    String,
    String,
    Option<Option<Option<Value>>>,
    Vec<u128>,
    i128,
);

fn arguments() -> impl Strategy<Value = Arguments> {
    let text = || "[a\",\\[\\]\\\\ ]{0,2}";
    let some = Value::Object(Map::from_iter([("Some".to_owned(), Value::Null)]));
    let nested = Value::Object(Map::from_iter([("Some".to_owned(), some.clone())]));
    let odd = prop::sample::select(vec![Value::Null, some, nested, Value::from(1)]);
    let maybe = prop::option::of(prop::option::of(prop::option::of(odd)));
    let big = (1_u128 << 53)..(1 << 53) + 3;
    let edge = (1_i128 << 100)..(1 << 100) + 2;
    (
        text(),
        text(),
        maybe,
        prop::collection::vec(big, 0..3),
        edge,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn different_arguments_have_different_bytes(a in arguments(), b in arguments()) {
        let bytes = |arguments: &Arguments| to_vec(arguments).unwrap();
        prop_assert_eq!(a == b, bytes(&a) == bytes(&b));
        // The third alone is where they are most alike.
        prop_assert_eq!(a.2 == b.2, to_vec(&a.2).unwrap() == to_vec(&b.2).unwrap());
    }

    #[test]
    fn the_order_of_a_map_does_not_matter(
        (one, other) in prop::collection::btree_map(key(), value(), 0..12)
            .prop_map(|map| map.into_iter().collect::<Vec<_>>())
            .prop_flat_map(|map| (Just(map.clone()).prop_shuffle(), Just(map).prop_shuffle()))
    ) {
        let bytes = to_vec(&Ordered(one.clone())).unwrap();
        prop_assert_eq!(&bytes, &to_vec(&Ordered(other)).unwrap());

        let mut sorted = one;
        sorted.sort_by_key(|(key, _)| key.encode_utf16().collect::<Vec<_>>());
        prop_assert_eq!(bytes, to_vec(&Ordered(sorted)).unwrap());
    }

    #[test]
    fn an_object_is_sorted_or_refused_whatever_comes(
        outer in keys(10),
        inner in keys(20),
        length in 0..70_usize,
    ) {
        // The inner one is begun while the outer one has entries already.
        let text = |at: usize| Value::String("x".repeat((at * 7 + length) % 70));
        let entry = |(at, key)| (key, text(at));
        let inner: Vec<_> = inner.into_iter().enumerate().map(entry).collect();
        let outer: Vec<_> = outer.into_iter().enumerate().map(entry).collect();
        let is_set = |keys: &[(String, Value)]| {
            keys.iter().map(|(key, _)| key).collect::<BTreeSet<_>>().len() == keys.len()
        };
        let expected = (is_set(&inner) && is_set(&outer)).then(|| {
            let object = |entries: &[_]| Value::Object(entries.iter().cloned().collect());
            let mut all = outer.clone();
            all.push(("\u{10fffe}".to_owned(), object(&inner)));
            serde_json_canonicalizer::to_vec(&object(&all)).unwrap()
        });
        let written = to_vec(&Around(&outer, "\u{10fffe}", &Ordered(inner)));
        prop_assert_eq!(written.ok(), expected);
    }

    #[test]
    fn small_integers_make_it_rfc_8785(value in value()) {
        let expected = serde_json_canonicalizer::to_vec(&value).unwrap();
        prop_assert_eq!(to_vec(&value).unwrap(), expected);
    }

    #[test]
    fn the_parts_of_a_tuple_are_its_elements(a in value(), b in key(), c in any::<i128>()) {
        let whole = encode(&(&a, &b, c)).unwrap();
        let parts = whole.parts.unwrap();
        let parts: Vec<_> = parts.into_iter().map(|part| &whole.bytes[part]).collect();
        prop_assert_eq!(parts, [to_vec(&a).unwrap(), to_vec(&b).unwrap(), to_vec(&c).unwrap()]);
    }
}
