//! `$filter` texts: parsed or refused, shown with the same meaning, and planned without gaining or losing a row.
#![no_main]

use std::sync::LazyLock;

use filter::{CompiledFilter, Expr, FilterError, PropertyLookup, eval, parse, plan};
use libfuzzer_sys::fuzz_target;
use model::{DateTime, Guid, Refusal, Value, ValueRef};

struct Entity {
    partition: &'static str,
    row: &'static str,
    properties: Vec<(&'static str, Value)>,
}

impl PropertyLookup for Entity {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            "PartitionKey" => Some(ValueRef::String(self.partition)),
            "RowKey" => Some(ValueRef::String(self.row)),
            "Timestamp" => Some(ValueRef::DateTime(DateTime::MIN_STORED)),
            _ => self.properties.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_ref()),
        }
    }
}

/// Every type under one name, and keys that sort differently in UTF-8 and UTF-16.
static ENTITIES: LazyLock<Vec<Entity>> = LazyLock::new(|| {
    let values = [
        Value::String("a".to_owned()),
        Value::Boolean(true),
        Value::Int32(1),
        Value::Int64(1),
        Value::Double(1.0),
        Value::Double(f64::NAN),
        Value::DateTime(DateTime::MIN_STORED),
        Value::Guid(Guid([1; 16])),
        Value::Binary(vec![1]),
    ];
    let keys = ["", "a", "a'", "b", "\u{e000}", "\u{ffff}", "𝄞", "a b", "z"];
    let mut entities = Vec::new();
    for (at, value) in values.into_iter().enumerate() {
        let (partition, row) = (keys[at], keys[(at * 2) % keys.len()]);
        let properties = vec![("A", value.clone()), ("B", Value::Int32(at as i32))];
        entities.push(Entity { partition, row, properties });
        entities.push(Entity { partition: "a", row: keys[at], properties: vec![("B", value)] });
    }
    entities
});

fuzz_target!(|text: &str| {
    let expr = match parse(text) {
        Ok(Some(expr)) => expr,
        Err(FilterError::Syntax(message)) => return fuzz::check_refusal(&Refusal::Syntax { message }),
        Ok(None) | Err(FilterError::NotImplemented | FilterError::NotValid) => return,
    };
    let shown = expr.to_string();
    // The shown text has more parentheses, which may be more than the parser allows.
    if let Ok(again) = parse(&shown) {
        // Compared as text: a NaN is not equal to itself, and the service does not show negative zero.
        let text = |expr: Option<&Expr>| format!("{expr:?}").replace("Double(-0.0)", "Double(0.0)");
        assert_eq!(text(again.as_ref()), text(Some(&expr)), "{shown}");
    }
    let planned = plan(Some(expr.clone()));
    assert!(planned.ranges.iter().all(|range| !range.is_empty()), "{shown}");
    assert!(planned.ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{shown}");
    let compiled = CompiledFilter::new(&expr);
    let names: Vec<&str> = compiled.names().iter().map(String::as_str).collect();
    for entity in ENTITIES.iter() {
        let expected = eval(&expr, entity);
        let holds = compiled.holds(|number| entity.property(names[number]));
        assert_eq!(holds, expected, "{shown}: compiled, {} {}", entity.partition, entity.row);
        let found = planned.ranges.iter().any(|range| range.contains(entity.partition, entity.row));
        let kept = found && planned.residual.as_ref().is_none_or(|residual| eval(residual, entity));
        assert_eq!(kept, expected, "{shown}: planned, {} {}", entity.partition, entity.row);
    }
});
