//! A plan gives exactly the rows of a full scan, whatever the filter and the rows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use filter::{CompiledFilter, Expr, FilterError, Plan, PropertyLookup, eval, parse, plan};
use model::{DateTime, Guid, Value, ValueRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use testing::{Reading, check_near, text_near};

#[derive(Clone, Debug)]
struct Stored {
    partition: String,
    row: String,
    timestamp: DateTime,
    properties: Vec<(String, Value)>,
}

impl PropertyLookup for Stored {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            "PartitionKey" => Some(ValueRef::String(&self.partition)),
            "RowKey" => Some(ValueRef::String(&self.row)),
            "Timestamp" => Some(ValueRef::DateTime(self.timestamp)),
            _ => self.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref()),
        }
    }
}

/// Few characters, so that keys and literals are often equal. Some of them sort differently in UTF-8 and UTF-16.
const CHARACTERS: [char; 7] = ['a', 'b', ' ', '\'', '\u{e000}', '\u{ffff}', '𝄞'];

fn key() -> impl Strategy<Value = String> {
    let of_length = |length| vec(select(&CHARACTERS[..]), length).prop_map(String::from_iter);
    prop_oneof![4 => of_length(0..=1), 1 => of_length(2..=2)]
}

/// Literals may have characters that keys can't have.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => key(),
        1 => vec(prop_oneof![select(&CHARACTERS[..]), Just('\u{1}'), Just('\u{7f}')], 0..4)
            .prop_map(String::from_iter),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::String),
        any::<bool>().prop_map(Value::Boolean),
        (-2..3).prop_map(Value::Int32),
        (-2..3i64).prop_map(Value::Int64),
        select(vec![-1.5, 0.0, 1.0, f64::NAN, f64::INFINITY]).prop_map(Value::Double),
        (0..3i64)
            .prop_map(|n| Value::DateTime(DateTime::from_ticks(DateTime::MIN_STORED.ticks() + n).unwrap())),
        (0..3u8).prop_map(|n| Value::Guid(Guid([n; 16]))),
        vec(0..2u8, 0..2).prop_map(Value::Binary),
    ]
}

/// Written by hand, independently of the parser.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Boolean(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => format!("{value}L"),
        Value::Double(value) if value.is_nan() => "NaN".to_owned(),
        Value::Double(value) if value.is_infinite() => "INF".to_owned(),
        Value::Double(value) => format!("{value:?}"),
        Value::DateTime(time) => format!("datetime'{time}'"),
        Value::Guid(guid) => format!("guid'{guid}'"),
        Value::Binary(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("X'{digits}'")
        }
    }
}

fn operator() -> impl Strategy<Value = &'static str> {
    select(vec!["eq", "ne", "gt", "ge", "lt", "le"])
}

fn key_name() -> impl Strategy<Value = &'static str> {
    select(vec!["PartitionKey", "PartitionKey", "RowKey"])
}

/// Conditions that become ranges.
fn key_condition() -> impl Strategy<Value = String> {
    let equal = |name: &str, text: String| format!("{name} eq {}", written(&Value::String(text)));
    let listed = (key_name(), vec(key(), 2..5)).prop_map(move |(name, keys)| {
        format!("({})", keys.into_iter().map(|text| equal(name, text)).collect::<Vec<_>>().join(" or "))
    });
    let row = (key(), operator(), key()).prop_map(move |(partition, op, row)| {
        let row = written(&Value::String(row));
        format!("({} and RowKey {op} {row})", equal("PartitionKey", partition))
    });
    prop_oneof![
        3 => (key_name(), operator(), text())
            .prop_map(|(name, op, text)| format!("{name} {op} {}", written(&Value::String(text)))),
        1 => listed,
        1 => row,
    ]
}

/// Any condition.
fn condition() -> impl Strategy<Value = String> {
    let any_name = select(vec!["PartitionKey", "RowKey", "Timestamp", "A", "B", "Missing"]);
    prop_oneof![
        6 => key_condition(),
        1 => (key_name(), operator(), value())
            .prop_map(|(name, op, value)| format!("{} {op} {name}", written(&value))),
        2 => (any_name, operator(), value())
            .prop_map(|(name, op, value)| format!("{name} {op} {}", written(&value))),
        // A system property has a fixed type, which is not Boolean, so it can't be a condition alone.
        1 => select(vec!["A", "B", "Missing"]).prop_map(str::to_owned),
        1 => any::<bool>().prop_map(|value| value.to_string()),
    ]
}

fn nested(leaf: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            6 => (vec(inner.clone(), 2..5), select(vec![" and ", " or ", ")and(", ")or("]))
                .prop_map(|(terms, word)| format!("(({}))", terms.join(word))),
            1 => inner.clone().prop_map(|term| format!("not ({term})")),
            1 => inner.prop_map(|term| format!("not {term}")),
        ]
    })
}

fn stored() -> impl Strategy<Value = Stored> {
    let timestamp = (0..3i64).prop_map(|n| DateTime::from_ticks(DateTime::MIN_STORED.ticks() + n).unwrap());
    let properties = vec((select(vec!["A".to_owned(), "B".to_owned()]), value()), 0..3);
    (key(), key(), timestamp, properties).prop_map(|(partition, row, timestamp, properties)| Stored {
        partition,
        row,
        timestamp,
        properties,
    })
}

fn answers(plan: &Plan, row: &Stored) -> bool {
    plan.ranges.iter().any(|range| range.contains(&row.partition, &row.row))
        && plan.residual.as_ref().is_none_or(|residual| eval(residual, row))
}

fn parsed(text: &str) -> Expr {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).expect("not blank")
}

fn check(text: &str, rows: &[Stored]) -> Result<(), TestCaseError> {
    let expr = parsed(text);
    let plan = plan(Some(expr.clone()));
    for row in rows {
        prop_assert_eq!(answers(&plan, row), eval(&expr, row), "{}\n{:?}\n{:?}", text, row, plan);
    }
    for range in &plan.ranges {
        prop_assert!(!range.is_empty(), "{:?}", plan);
    }
    for pair in plan.ranges.windows(2) {
        prop_assert!(pair[0].end < pair[1].start, "{:?}", plan);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_plan_gives_what_a_scan_gives(text in nested(condition()), rows in vec(stored(), 1..40)) {
        check(&text, &rows)?;
    }

    #[test]
    fn a_plan_over_keys_gives_what_a_scan_gives(text in nested(key_condition()), rows in vec(stored(), 1..40)) {
        check(&text, &rows)?;
    }

    #[test]
    fn a_compiled_filter_answers_as_its_tree_does(text in nested(condition()), rows in vec(stored(), 1..40)) {
        let expr = parsed(&text);
        let compiled = CompiledFilter::new(&expr);
        for row in &rows {
            let answer = compiled.holds(|number| row.property(&compiled.names()[number]));
            prop_assert_eq!(answer, eval(&expr, row), "{}\n{:?}", text, row);
        }
    }

    #[test]
    fn a_tree_reads_back_from_its_text(text in nested(condition())) {
        let expr = parsed(&text);
        prop_assert_eq!(parse(&expr.to_string()), Ok(Some(expr)));
    }
}

/// The tokens of filters, and other tokens of OData.
const PIECES: [&str; 24] = [
    "(",
    ")",
    "'",
    "-",
    " not ",
    "null",
    "f(",
    ",",
    "1e",
    "X'",
    "𝄞",
    " and ",
    " or ",
    " eq ",
    " ne ",
    "A",
    "true",
    "datetime'",
    "guid'",
    "5L",
    "/",
    " add ",
    "  ",
    "RowKey",
];

/// The position of the error in the service's message, in UTF-16 units.
fn position(message: &str) -> Option<usize> {
    let (_, rest) = message.split_once(" at position ").or_else(|| message.split_once(" at '"))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Compared as text, because the service does not show negative zero.
fn meaning(expr: Option<&Expr>) -> String {
    format!("{expr:?}").replace("Double(-0.0)", "Double(0.0)")
}

#[test]
fn a_text_that_is_nearly_a_filter_means_one_thing_or_the_place_of_its_mistake_is_named() {
    let inputs = (text_near(nested(condition()), &PIECES), vec(stored(), 1..8));
    check_near(inputs, 8..=85, |(text, rows)| match parse(&text) {
        Ok(Some(expr)) => {
            let again = parse(&expr.to_string());
            let again = again.map_err(|error| TestCaseError::fail(format!("{expr}: {error}")))?;
            prop_assert_eq!(meaning(again.as_ref()), meaning(Some(&expr)), "{}", text);
            let (plan, compiled) = (plan(Some(expr.clone())), CompiledFilter::new(&expr));
            for row in &rows {
                let expected = eval(&expr, row);
                prop_assert_eq!(answers(&plan, row), expected, "{}\n{:?}\n{:?}", text, row, plan);
                let held = compiled.holds(|number| row.property(&compiled.names()[number]));
                prop_assert_eq!(held, expected, "{}\n{:?}", text, row);
            }
            Ok(Reading::Accepted)
        }
        Ok(None) => {
            prop_assert!(text.trim().is_empty(), "{:?} is not blank", text);
            Ok(Reading::Refused)
        }
        Err(FilterError::Syntax(message)) => {
            if let Some(position) = position(&message) {
                prop_assert!(position <= text.encode_utf16().count(), "{}", message);
                prop_assert!(message.contains(&text), "{:?} of {:?}", message, text);
            }
            Ok(Reading::Refused)
        }
        Err(FilterError::NotImplemented | FilterError::NotValid) => Ok(Reading::Refused),
    });
}
