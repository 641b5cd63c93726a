//! For stored bytes, a residual gives the answer that `eval` gives for the entity.

use std::sync::Arc;
use std::time::Duration;

use filter::{Comparison, Operator};
use model::{DateTime, Guid, Value};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use store::{Budget, PageBuilder, RowDraft, Scan};

use super::*;

/// More names than are looked up without a list, so that both ways are tested.
const NAMES: [&str; 14] =
    ["PartitionKey", "RowKey", "Timestamp", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "é"];

struct Stored<'a> {
    key: &'a EntityKey,
    row: &'a store::Row,
}

impl filter::PropertyLookup for Stored<'_> {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            "PartitionKey" => Some(ValueRef::String(self.key.partition.as_str())),
            "RowKey" => Some(ValueRef::String(self.key.row.as_str())),
            "Timestamp" => Some(ValueRef::DateTime(self.row.timestamp())),
            _ => self.row.view().property(name),
        }
    }
}

fn time(n: i64) -> DateTime {
    DateTime::from_ticks(DateTime::MIN_STORED.ticks() + n).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    vec(select(&['a', 'b', 'é', '\u{ffff}', '𝄞'][..]), 0..3).prop_map(String::from_iter)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::String),
        any::<bool>().prop_map(Value::Boolean),
        (-2..3).prop_map(Value::Int32),
        (-2..3_i64).prop_map(Value::Int64),
        select(vec![-1.5, 0.0, 1.0, f64::NAN]).prop_map(Value::Double),
        (0..3_i64).prop_map(|n| Value::DateTime(time(n))),
        (0..3_u8).prop_map(|n| Value::Guid(Guid([n; 16]))),
        vec(0..2_u8, 0..2).prop_map(Value::Binary),
    ]
}

fn expr() -> impl Strategy<Value = Expr> {
    let compare = (select(&NAMES[..]), select(&Operator::ALL[..]), value()).prop_map(
        |(property, operator, literal)| {
            Expr::Compare(Comparison { property: property.to_owned(), operator, literal })
        },
    );
    compare.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..5).prop_map(Expr::all),
            3 => vec(inner.clone(), 0..5).prop_map(Expr::any),
            1 => inner.prop_map(Expr::negate),
        ]
    })
}

fn kept_by_a_scan(filter: Residual, key: &EntityKey, row: &store::Row) -> bool {
    let budget = Budget { rows: 10, bytes: usize::MAX, time: Duration::from_secs(60), examined: u64::MAX };
    let scan = Scan { ranges: vec![], budget, filter: Some(Arc::new(filter)), lasts: false };
    let mut page = PageBuilder::new(&scan);
    assert!(page.offer(&store::encoding::key::encode(key), row.as_bytes()).unwrap());
    !page.finish().entities.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bytes_are_judged_as_eval_judges_the_entity(
        expr in expr(),
        keys in (text(), text()),
        stamp in 0..3_i64,
        properties in btree_map(select(&NAMES[3..]), value(), 0..12),
    ) {
        let key = EntityKey::parse(&keys.0, &keys.1).unwrap();
        let row = RowDraft::new(properties.iter().map(|(name, value)| (*name, value.as_ref()))).stamp(time(stamp));
        let expected = filter::eval(&expr, &Stored { key: &key, row: &row });
        prop_assert_eq!(Residual::new(&expr).keeps(&key, store::RawRow::new(row.as_bytes())).unwrap(), expected, "{}", expr);
        prop_assert_eq!(kept_by_a_scan(Residual::new(&expr), &key, &row), expected, "{}", expr);
    }
}
