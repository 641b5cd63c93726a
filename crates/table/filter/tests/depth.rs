//! The deepest and the widest filters that parse, on half the stack a server's threads have.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::thread;

use filter::{PropertyLookup, eval, parse, plan};
use model::ValueRef;

struct Keys;

impl PropertyLookup for Keys {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        matches!(name, "PartitionKey" | "RowKey").then_some(ValueRef::String("a"))
    }
}

/// Reads, shows, copies, plans, evaluates and drops.
fn check(text: String, expected: bool) {
    const STACK_BYTES: usize = 1024 * 1024;
    let whole_life = move || {
        let expr = parse(&text).unwrap().unwrap();
        assert!(!format!("{expr} {expr:?}").is_empty());
        assert!(expr.clone() == expr && expr.properties().count() > 0);
        let plan = plan(Some(expr.clone()));
        let planned = plan.ranges.iter().any(|range| range.contains("a", "a"))
            && plan.residual.as_ref().is_none_or(|residual| eval(residual, &Keys));
        assert_eq!((planned, eval(&expr, &Keys)), (expected, expected));
    };
    thread::Builder::new().stack_size(STACK_BYTES).spawn(whole_life).unwrap().join().unwrap();
}

#[test]
fn deepest() {
    let nested = |opening: &str, levels: usize| {
        format!(
            "{}PartitionKey eq 'a'{}",
            opening.repeat(levels),
            ")".repeat(opening.matches('(').count() * levels)
        )
    };
    check(nested("(", 256), true);
    check(nested("PartitionKey eq 'b' or RowKey eq 'a' and (", 256), true);
    check(nested("PartitionKey eq 'a' and not (RowKey eq 'b' or ", 128), true);
    check(nested("(A eq 1 or PartitionKey ge 'a' and ", 256), true);
    check(format!("{}PartitionKey eq 'a'", "not ".repeat(255)), false);
}

#[test]
fn widest() {
    for (word, expected) in [("and", false), ("or", true)] {
        let chain =
            |term: fn(usize) -> String| (0..50_000).map(term).collect::<Vec<_>>().join(&format!(" {word} "));
        check(
            chain(|i| format!("PartitionKey eq '{}'", if i == 0 { "a".to_owned() } else { i.to_string() })),
            expected,
        );
        check(chain(|i| format!("A eq {i} or RowKey eq 'a'")), true);
        check(chain(|i| format!("not (A eq {i})")), true);
    }
}
