//! The meaning of comparisons, for every pair of types.

use model::{DateTime, EdmType, Guid};

use super::*;
use crate::{Operator, parse};

struct Properties(Vec<(&'static str, Value)>);

impl PropertyLookup for Properties {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }
}

fn answer(stored: Value, condition: &str) -> bool {
    let expr = parse(condition).unwrap().unwrap();
    eval(&expr, &Properties(vec![("A", stored)]))
}

/// Which of the six operators are true for the stored value and the literal.
fn check(stored: &Value, literal: &str, expected: &str) {
    let holding: Vec<_> = Operator::ALL
        .into_iter()
        .map(Operator::word)
        .filter(|operator| answer(stored.clone(), &format!("A {operator} {literal}")))
        .collect();
    assert_eq!(holding.join(" "), expected, "{stored:?} against {literal}");
}

const LESS: &str = "ne lt le";
const EQUAL: &str = "eq ge le";
const GREATER: &str = "ne gt ge";
const UNORDERED: &str = "ne";

/// A low, a middle and a high value of each type, as stored and as written.
fn samples(kind: EdmType) -> [(Value, &'static str); 3] {
    let time = |text| Value::DateTime(DateTime::parse(text).unwrap());
    let guid = |text| Value::Guid(Guid::parse(text).unwrap());
    match kind {
        EdmType::String => [
            (Value::String("A".into()), "'A'"),
            (Value::String("a".into()), "'a'"),
            (Value::String("a ".into()), "'a '"),
        ],
        EdmType::Boolean => {
            [(Value::Boolean(false), "false"), (Value::Boolean(true), "true"), (Value::Boolean(true), "true")]
        }
        EdmType::Int32 => [(Value::Int32(-1), "-1"), (Value::Int32(3), "3"), (Value::Int32(20), "20")],
        EdmType::Int64 => [(Value::Int64(-1), "-1L"), (Value::Int64(3), "3L"), (Value::Int64(20), "20L")],
        EdmType::Double => {
            [(Value::Double(-1.0), "-1.0"), (Value::Double(3.0), "3.0"), (Value::Double(20.0), "20.0")]
        }
        EdmType::DateTime => [
            (time("2021-05-06T07:08:09.1234566Z"), "datetime'2021-05-06T07:08:09.1234566Z'"),
            (time("2021-05-06T07:08:09.1234567Z"), "datetime'2021-05-06T07:08:09.1234567Z'"),
            (time("2021-05-06T07:08:10Z"), "datetime'2021-05-06T07:08:10'"),
        ],
        EdmType::Guid => [
            (guid("00000000-0000-0000-0000-0000000000ff"), "guid'00000000-0000-0000-0000-0000000000FF'"),
            (guid("00000001-0000-0000-0000-000000000000"), "guid'00000001-0000-0000-0000-000000000000'"),
            (guid("f0000000-0000-0000-0000-000000000000"), "guid'f0000000-0000-0000-0000-000000000000'"),
        ],
        EdmType::Binary => [
            (Value::Binary(vec![1]), "X'01'"),
            (Value::Binary(vec![1, 0]), "X'0100'"),
            (Value::Binary(vec![0xff]), "binary'ff'"),
        ],
    }
}

/// The table of 5.3: rows are stored types, columns literals; `n` compares, `<` is a mismatch.
const MATRIX: [(EdmType, &str); 8] = [
    // Int32 Int64 Double Boolean String DateTime Guid Binary
    (EdmType::Int32, "n<<<<<<<"),
    (EdmType::Int64, "nn<<<<<<"),
    (EdmType::Double, "nnn<<<<<"),
    (EdmType::Boolean, "<<<n<<<<"),
    (EdmType::String, "<<<<n<<<"),
    (EdmType::DateTime, "<<<<<n<<"),
    (EdmType::Guid, "<<<<<<n<"),
    (EdmType::Binary, "<<<<<<<n"),
];

#[test]
fn every_type_against_every_type() {
    for (stored_type, cells) in MATRIX {
        for ((literal_type, _), cell) in MATRIX.into_iter().zip(cells.chars()) {
            for (i, (stored, _)) in samples(stored_type).into_iter().enumerate() {
                for (j, (_, literal)) in samples(literal_type).into_iter().enumerate() {
                    let same = i == j || (stored_type == EdmType::Boolean && i.min(1) == j.min(1));
                    let expected = match cell {
                        '<' => LESS,
                        _ if same => EQUAL,
                        _ if i < j => LESS,
                        _ => GREATER,
                    };
                    check(&stored, literal, expected);
                }
            }
        }
    }
}

#[test]
fn text_is_ordered_by_utf16_unit() {
    let stored = |text: &str| Value::String(text.to_owned());
    check(&stored("𝄞"), "'\u{ffff}'", LESS);
    check(&stored("\u{e000}"), "'\u{10ffff}'", GREATER);
    check(&stored("a"), "'A'", GREATER);
    check(&stored(""), "''", EQUAL);
    check(&stored("True"), "true", LESS);
}

#[test]
fn integers_and_doubles_compare_without_rounding() {
    let limit = 9_007_199_254_740_992.0; // 2^53
    check(&Value::Double(limit), "9007199254740992L", EQUAL);
    check(&Value::Double(limit), "9007199254740993L", LESS);
    check(&Value::Double(limit), "9007199254740991L", GREATER);
    check(&Value::Double(9_223_372_036_854_775_808.0), "9223372036854775807L", GREATER);
    check(&Value::Double(-9_223_372_036_854_775_808.0), "-9223372036854775808L", EQUAL);
    check(&Value::Double(-1e300), "-9223372036854775808L", LESS);
    check(&Value::Double(f64::INFINITY), "9223372036854775807L", GREATER);
    check(&Value::Double(3.5), "3L", GREATER);
    check(&Value::Double(3.5), "4L", LESS);
    check(&Value::Double(-3.5), "-3L", LESS);
    check(&Value::Double(-3.5), "-4L", GREATER);
    check(&Value::Double(-0.5), "0L", LESS);
    check(&Value::Double(-0.0), "0L", EQUAL);
    check(&Value::Double(-0.0), "0", EQUAL);
    check(&Value::Double(-0.0), "0.0", EQUAL);
    check(&Value::Int64(i64::MAX), "2147483647", GREATER);
}

#[test]
fn nan_differs_from_every_number_and_is_ordered_with_none() {
    check(&Value::Double(f64::NAN), "NaN", UNORDERED);
    check(&Value::Double(f64::NAN), "1.0", UNORDERED);
    check(&Value::Double(f64::NAN), "1", UNORDERED);
    check(&Value::Double(f64::NAN), "1L", UNORDERED);
    check(&Value::Double(1.0), "NaN", UNORDERED);
    check(&Value::Double(f64::NAN), "'x'", LESS); // no comparison of numbers, so a mismatch like any other
    check(&Value::Int32(1), "NaN", LESS);
    check(&Value::Double(f64::INFINITY), "INF", EQUAL);
    check(&Value::Double(f64::NEG_INFINITY), "-1e300", LESS);
}

#[test]
fn a_missing_property_compares_with_nothing() {
    for operator in Operator::ALL {
        let condition = format!("B {} 1", operator.word());
        assert!(!answer(Value::Int32(1), &condition), "{condition}");
        assert!(answer(Value::Int32(1), &format!("not ({condition})")), "{condition}");
    }
    assert!(!answer(Value::Int32(1), "B"));
    assert!(answer(Value::Int32(1), "not B"));
}

#[test]
fn a_property_alone_asks_for_boolean_true() {
    assert!(answer(Value::Boolean(true), "A"));
    assert!(!answer(Value::Boolean(false), "A"));
    assert!(answer(Value::Boolean(false), "not A"));
    for other in [Value::String("true".into()), Value::Int32(1)] {
        assert!(!answer(other.clone(), "A"));
        assert!(answer(other, "not A"));
    }
}

#[test]
fn logic() {
    for (condition, expected) in [
        ("true", true),
        ("false", false),
        ("A eq 1 and true", true),
        ("A eq 1 and false", false),
        ("A eq 2 or true", true),
        ("A eq 2 or B eq 1 and true", false),
        ("(A eq 1 or A eq 2) and not (A eq 2)", true),
        ("1 lt A", false),
        ("0 lt A", true),
    ] {
        assert_eq!(answer(Value::Int32(1), condition), expected, "{condition}");
    }
}
