//! Plans as text: the ranges, then the residual.

use std::time::{Duration, Instant};

use super::*;
use crate::parse;

fn show(cut: &Cut) -> String {
    match cut {
        Cut::Before(partition, row) if row.is_empty() => format!("<{partition}"),
        Cut::Before(partition, row) => format!("<{partition}/{row}"),
        Cut::After(partition, row) => format!("{partition}/{row}>"),
        Cut::AfterPartition(partition) => format!("{partition}>"),
        Cut::End => "end".to_owned(),
    }
}

fn planned(text: &str) -> Plan {
    plan(parse(text).unwrap())
}

/// `<a` is below partition a, `a>` above it; `<a/1` below row 1 of it, `a/1>` above.
fn check(text: &str, ranges: &str, residual: &str) {
    let plan = planned(text);
    let shown: Vec<_> =
        plan.ranges.iter().map(|range| format!("{} {}", show(&range.start), show(&range.end))).collect();
    assert_eq!(shown.join(", "), ranges, "{text}");
    assert_eq!(plan.residual.map_or(String::new(), |expr| expr.to_string()), residual, "{text}");
}

#[test]
fn constants() {
    check("", "< end", "");
    check("true", "< end", "");
    check("false", "", "");
    check("A eq 1 and false", "", "");
    check("A eq 1 and true", "< end", "A eq 1");
    check("not (A eq 1 or true)", "", "");
}

#[test]
fn partitions() {
    check("PartitionKey eq 'a'", "<a a>", "");
    check("PartitionKey gt 'a'", "a> end", "");
    check("PartitionKey ge 'a'", "<a end", "");
    check("PartitionKey lt 'a'", "< <a", "");
    check("PartitionKey le 'a'", "< a>", "");
    check("'a' lt PartitionKey", "a> end", "");
    check("PartitionKey ne 'a'", "< end", "PartitionKey ne 'a'");
    check("PartitionKey ge 'a' and PartitionKey lt 'b'", "<a <b", "");
    check("PartitionKey ge 'a' and PartitionKey le 'a'", "<a a>", "");
    check("PartitionKey gt 'b' and PartitionKey lt 'a'", "", "");
    check("PartitionKey eq 'a' and PartitionKey eq 'b'", "", "");
    check("PartitionKey lt ''", "", "");
    check("PartitionKey ge ''", "< end", "");
}

#[test]
fn rows_of_a_pinned_partition() {
    check("PartitionKey eq 'a' and RowKey eq '1'", "<a/1 a/1>", "");
    check("RowKey eq '1' and PartitionKey eq 'a'", "<a/1 a/1>", "");
    check("PartitionKey eq 'a' and RowKey gt '1'", "a/1> a>", "");
    check("PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '5'", "<a/1 <a/5", "");
    check("PartitionKey eq 'a' and RowKey le '5'", "<a a/5>", "");
    check("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '5')", "<a/1 a/1>, <a/5 a/5>", "");
    check("PartitionKey eq 'a' and (RowKey lt '2' or RowKey ge '2')", "<a a>", "");
    check("PartitionKey eq 'a' and RowKey eq '1' and Age gt 3", "<a/1 a/1>", "Age gt 3");
    check("PartitionKey eq 'a' and RowKey ne '1'", "<a a>", "RowKey ne '1'");
    check("PartitionKey eq '' and RowKey eq ''", "< />", "");
}

#[test]
fn rows_without_a_partition_are_asked() {
    check("RowKey eq '1'", "< end", "RowKey eq '1'");
    check("PartitionKey ge 'a' and RowKey eq '1'", "<a end", "RowKey eq '1'");
    check("PartitionKey ge 'a' and RowKey eq '1' and Age gt 3", "<a end", "RowKey eq '1' and Age gt 3");
    check("RowKey eq '1' and RowKey eq '2'", "", "");
}

#[test]
fn unions() {
    check("PartitionKey eq 'b' or PartitionKey eq 'a'", "<a a>, <b b>", "");
    check("PartitionKey lt 'b' or PartitionKey eq 'b'", "< b>", "");
    check("PartitionKey lt 'c' or PartitionKey gt 'a'", "< end", "");
    check("PartitionKey eq 'a' or Age gt 3", "< end", "PartitionKey eq 'a' or Age gt 3");
    check("PartitionKey eq 'a' or RowKey eq '1'", "< end", "PartitionKey eq 'a' or RowKey eq '1'");
    check(
        "(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'b' and RowKey ge '5')",
        "<a/1 a/1>, <b/5 b>",
        "",
    );
    check(
        "(PartitionKey eq 'a' or PartitionKey eq 'b') and (RowKey eq '1' or RowKey eq '2')",
        "<a/1 a/1>, <a/2 a/2>, <b/1 b/1>, <b/2 b/2>",
        "",
    );
    // How clients ask for what follows a row they have seen.
    check("PartitionKey gt 'a' or (PartitionKey eq 'a' and RowKey gt '5')", "a/5> end", "");
    check("PartitionKey ge 'a' or (PartitionKey eq 'b' and RowKey gt '5')", "<a end", "");
    check("PartitionKey eq 'a' or (PartitionKey eq 'a' and RowKey gt '5')", "<a a>", "");
    check(
        "(PartitionKey eq 'a' and Age gt 3) or PartitionKey eq 'b'",
        "<a a>, <b b>",
        "(PartitionKey eq 'a' and Age gt 3) or PartitionKey eq 'b'",
    );
    check(
        "PartitionKey eq 'a' and (RowKey eq '1' or (PartitionKey eq 'a' and RowKey eq '5'))",
        "<a/1 a/1>, <a/5 a/5>",
        "RowKey eq '1' or (PartitionKey eq 'a' and RowKey eq '5')",
    );
    check(
        "PartitionKey ge 'b' and ((PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'c' and RowKey eq '2'))",
        "<c/2 c/2>",
        "",
    );
}

#[test]
fn negations() {
    check("not (PartitionKey lt 'a')", "<a end", "");
    check("not (PartitionKey ne 'a')", "<a a>", "");
    check("not (PartitionKey eq 'a')", "< end", "not (PartitionKey eq 'a')");
    check("not (PartitionKey lt 'a' or PartitionKey gt 'b')", "<a b>", "");
    check("not (PartitionKey ne 'a' or RowKey ne '1')", "<a/1 a/1>", "");
    check("not (Age gt 3) and PartitionKey eq 'a'", "<a a>", "not (Age gt 3)");
}

#[test]
fn a_key_against_another_type_is_decided_beforehand() {
    check("PartitionKey eq 1", "", "");
    check("PartitionKey lt 1", "< end", "");
    check("not (PartitionKey lt 1)", "", "");
    check("RowKey ne true and PartitionKey eq 'a'", "<a a>", "");
    check("PartitionKey gt datetime'2021-01-01T00:00:00Z' or PartitionKey eq 'a'", "<a a>", "");
    check("Timestamp lt 1", "< end", "Timestamp lt 1");
}

#[test]
fn texts_no_key_can_hold() {
    check("PartitionKey eq 'a\u{1}'", "", "");
    check("PartitionKey eq 'a' and RowKey eq '1\u{1}'", "", "");
    check("PartitionKey eq 'a\u{1}' and RowKey ge '1'", "", "");
    check("PartitionKey gt 'a\u{1}b'", "a> end", "");
    check("PartitionKey le 'a' or PartitionKey ge 'a\u{1}'", "< end", "");
}

#[test]
fn supplementary_characters_sort_below_private_use() {
    check("PartitionKey eq '\u{e000}' or PartitionKey eq '𝄞'", "<𝄞 𝄞>, <\u{e000} \u{e000}>", "");
    check("PartitionKey gt '\u{e000}' and PartitionKey lt '𝄞'", "", "");
}

fn any_of(count: usize, term: impl Fn(usize) -> String) -> String {
    (0..count).map(term).collect::<Vec<_>>().join(" or ")
}

/// Plans the filter, and fails if that takes too long.
fn planned_soon(text: &str) -> Plan {
    let expr = parse(text).unwrap();
    let start = Instant::now();
    let plan = plan(expr);
    // Generous: a busy machine with no optimisation. What must not happen is a product of the terms.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    plan
}

#[test]
fn thousands_of_points() {
    let point = |i: usize| format!("PartitionKey eq 'p{:05}' and RowKey eq 'r{i}'", (i * 7919) % 20_000);
    let plan = planned_soon(&any_of(4_000, |i| format!("({})", point(i))));
    assert_eq!((plan.ranges.len(), plan.residual), (4_000, None));

    let plan = planned_soon(&any_of(20_000, point));
    assert_eq!(plan.ranges.len(), 4_000); // groups of five
    assert!(plan.residual.is_some());

    let rows = any_of(4_000, |i| format!("RowKey eq '{:05}'", (i * 7919) % 20_000));
    let plan = planned_soon(&format!("PartitionKey eq 'a' and ({rows})"));
    assert_eq!((plan.ranges.len(), plan.residual), (4_000, None));
}

#[test]
fn products_are_bounded() {
    let partitions = any_of(10_000, |i| format!("PartitionKey eq '{i:05}'"));
    let rows = any_of(10_000, |i| format!("RowKey eq '{i:05}'"));
    let plan = planned_soon(&format!("({partitions}) and ({rows})"));
    assert!(plan.ranges.len() <= RANGES_MAX && plan.residual.is_some());

    let own_rows = any_of(5_000, |i| format!("PartitionKey eq '{i:05}' and RowKey ge '{i:05}'"));
    let plan = planned_soon(&format!("({own_rows}) and ({rows})"));
    assert!(plan.ranges.len() <= RANGES_MAX && plan.residual.is_some());

    let gaps = (0..5_000)
        .map(|i| format!("(PartitionKey lt '{i:05}' or PartitionKey gt '{i:05}')"))
        .collect::<Vec<_>>()
        .join(" and ");
    let plan = planned_soon(&gaps);
    assert!(plan.ranges.len() <= RANGES_MAX && plan.residual.is_some());
    planned_soon(&format!("not ({gaps})"));
}
