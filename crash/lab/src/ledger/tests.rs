//! What a ledger accepts and rejects, with handmade answers of a store.

use serde_json::{Value, json};

use super::*;
use crate::operation::{Change, Condition, Trace, Verb};
use crate::world;

const OWN: &str = "LabOwn3x0";
const SHARED: &str = "LabShared";

fn place(row: &str) -> Place {
    ("p".to_owned(), format!("w3-{row}"))
}

fn change(verb: Verb, row: &str, sequence: u32) -> Change {
    let condition = if verb == Verb::Delete { Condition::Exists } else { Condition::None };
    let (partition, row) = place(row);
    Change { verb, partition, row, condition, trace: Trace { slot: 0, sequence, length: 4 } }
}

fn write(changes: Vec<Change>) -> Operation {
    Operation::Write { table: OWN.to_owned(), changes }
}

fn stamp(second: u32) -> Option<Stamp> {
    Some(Stamp(format!("2026-01-01T00:00:{second:02}Z")))
}

/// The entity after such a change.
fn entity(operation: usize, change: &Change, second: u32) -> (Place, Value) {
    let mut entity = json!({
        "PartitionKey": change.partition, "RowKey": change.row, "Writer": 3, "Operation": operation,
        "Sequence": change.trace.sequence, "Timestamp": stamp(second).unwrap().0,
    });
    entity[world::name(0)] = Value::String(change.trace.text(3));
    (change.place(), entity)
}

fn unknown() -> Outcome {
    Outcome::Unknown(String::new())
}

/// A table with the rows a and b, each written at its second.
fn ledger() -> (Ledger, Vec<(Place, Value)>) {
    let mut ledger = Ledger::new(3);
    ledger.answered(Operation::Create { table: OWN.to_owned() }, &Outcome::Done(Vec::new())).unwrap();
    let mut rows = Vec::new();
    for (number, row) in [(1, "a"), (2, "b")] {
        let change = change(Verb::Insert, row, number);
        rows.push(entity(number as usize, &change, number));
        ledger.answered(write(vec![change]), &Outcome::Done(vec![stamp(number)])).unwrap();
    }
    (ledger, rows)
}

fn judge(ledger: &Ledger, rows: &[(Place, Value)]) -> Result<usize, String> {
    let found = Found::from([(OWN.to_owned(), rows.to_vec())]);
    ledger.judge(&["LabOwn3x".to_owned()], SHARED, &found)
}

#[test]
fn exactly_the_acknowledged_rows_are_there() {
    let (ledger, rows) = ledger();
    assert_eq!(judge(&ledger, &rows), Ok(0));
    assert!(judge(&ledger, &rows[1..]).unwrap_err().contains("expected Some"));
    let more = [&rows[..], &[entity(1, &change(Verb::Insert, "c", 1), 1)]].concat();
    assert!(judge(&ledger, &more).unwrap_err().contains("expected None"));
    let mut other = rows;
    other[0].1["Timestamp"] = json!("2026-01-01T00:00:09Z");
    assert!(judge(&ledger, &other).is_err());
    assert!(ledger.judge(&[], SHARED, &Found::new()).unwrap_err().contains("is missing"));
}

#[test]
fn rows_are_in_order_and_each_once() {
    let (ledger, rows) = ledger();
    let turned = [rows[1].clone(), rows[0].clone()];
    assert!(judge(&ledger, &turned).unwrap_err().contains("before"));
    let twice = [rows[0].clone(), rows[0].clone(), rows[1].clone()];
    assert!(judge(&ledger, &twice).unwrap_err().contains("before"));
}

#[test]
fn a_refusal_must_be_right() {
    let (mut ledger, rows) = ledger();
    let again = write(vec![change(Verb::Insert, "a", 3)]);
    ledger.answered(again.clone(), &Outcome::Refused(409)).unwrap();
    assert!(ledger.answered(again.clone(), &Outcome::Refused(412)).is_err());
    assert!(ledger.answered(write(vec![change(Verb::Insert, "c", 3)]), &Outcome::Refused(409)).is_err());
    assert!(
        ledger.answered(again, &Outcome::Done(vec![stamp(3)])).unwrap_err().contains("had to be refused")
    );
    assert_eq!(judge(&ledger, &rows), Ok(0));
}

#[test]
fn the_timestamps_of_a_row_grow_even_after_a_delete() {
    let (mut ledger, _) = ledger();
    ledger.answered(write(vec![change(Verb::Delete, "b", 3)]), &Outcome::Done(vec![None])).unwrap();
    let again = write(vec![change(Verb::Insert, "b", 4)]);
    assert!(ledger.answered(again, &Outcome::Done(vec![stamp(2)])).unwrap_err().contains("timestamp"));
    // Each row has its own timestamps.
    ledger.answered(write(vec![change(Verb::Insert, "c", 5)]), &Outcome::Done(vec![stamp(1)])).unwrap();
}

#[test]
fn an_unknown_batch_was_done_completely_or_not_at_all() {
    let (mut ledger, rows) = ledger();
    let batch =
        vec![change(Verb::Replace, "a", 3), change(Verb::Delete, "b", 4), change(Verb::Insert, "c", 5)];
    let done = [entity(3, &batch[0], 7), entity(3, &batch[2], 7)];
    ledger.answered(write(batch), &unknown()).unwrap();
    assert_eq!(judge(&ledger, &rows), Ok(0));
    assert_eq!(judge(&ledger, &done), Ok(1));
    for half in [
        vec![done[0].clone(), rows[1].clone(), done[1].clone()],
        vec![rows[0].clone(), rows[1].clone(), done[1].clone()],
        vec![done[0].clone()],
        vec![rows[0].clone()],
    ] {
        assert!(judge(&ledger, &half).unwrap_err().contains("in part"), "{half:?}");
        // During the load, a read may see a moment between the two.
        assert_eq!(ledger.check(OWN, None, &half, false), Ok(()));
    }
    let stranger = [entity(9, &change(Verb::Insert, "a", 9), 7), rows[1].clone()];
    assert!(ledger.check(OWN, None, &stranger, false).is_err());
    assert!(judge(&ledger, &stranger).is_err());
}

#[test]
fn an_unknown_operation_that_must_be_refused_can_not_be_done() {
    let (mut ledger, rows) = ledger();
    let batch = vec![change(Verb::Insert, "c", 3), change(Verb::Insert, "a", 4)];
    let done = [entity(3, &batch[1], 7), rows[1].clone(), entity(3, &batch[0], 7)];
    ledger.answered(write(batch), &unknown()).unwrap();
    assert_eq!(judge(&ledger, &rows), Ok(0));
    assert!(judge(&ledger, &done).is_err());
}

#[test]
fn an_operation_that_was_turned_away_is_not_done() {
    let (mut ledger, rows) = ledger();
    let insert = change(Verb::Insert, "c", 3);
    let done = [&rows[..], &[entity(3, &insert, 7)]].concat();
    ledger.answered(write(vec![insert]), &Outcome::TurnedAway(String::new())).unwrap();
    assert_eq!(judge(&ledger, &rows), Ok(0));
    assert!(judge(&ledger, &done).is_err());
}

#[test]
fn a_table_in_doubt_is_complete_or_missing() {
    let (mut ledger, rows) = ledger();
    ledger.answered(Operation::Drop { table: OWN.to_owned() }, &unknown()).unwrap();
    assert_eq!(judge(&ledger, &rows), Ok(0));
    assert_eq!(ledger.judge(&["LabOwn3x".to_owned()], SHARED, &Found::new()), Ok(1));
    assert!(judge(&ledger, &rows[1..]).unwrap_err().contains("in part"));
    let other = "LabOwn3x1".to_owned();
    ledger.answered(Operation::Create { table: other.clone() }, &unknown()).unwrap();
    let found = |name: &str| Found::from([(name.to_owned(), Vec::new())]);
    let mine = ["LabOwn3x".to_owned()];
    assert_eq!(ledger.judge(&mine, SHARED, &found(&other)), Ok(2));
    assert!(ledger.judge(&mine, SHARED, &found("LabOwn3x7")).unwrap_err().contains("should not be there"));
}

#[test]
fn a_doubt_ends_with_its_table() {
    let (mut ledger, rows) = ledger();
    let insert = change(Verb::Insert, "c", 3);
    let late = [&rows[..], &[entity(3, &insert, 7)]].concat();
    ledger.answered(write(vec![insert]), &unknown()).unwrap();
    let drop = Operation::Drop { table: OWN.to_owned() };
    let mut in_doubt = ledger;
    in_doubt.answered(drop.clone(), &unknown()).unwrap();
    let mine = ["LabOwn3x".to_owned()];
    assert_eq!(in_doubt.judge(&mine, SHARED, &Found::new()), Ok(1));
    assert_eq!(judge(&in_doubt, &rows), Ok(0));
    assert_eq!(judge(&in_doubt, &late), Ok(1));
    let (mut dropped, _) = self::ledger();
    dropped.answered(write(vec![change(Verb::Insert, "c", 3)]), &unknown()).unwrap();
    dropped.answered(drop, &Outcome::Done(Vec::new())).unwrap();
    assert_eq!(dropped.judge(&mine, SHARED, &Found::new()), Ok(0));
    dropped.answered(Operation::Create { table: OWN.to_owned() }, &Outcome::Done(Vec::new())).unwrap();
    assert_eq!(judge(&dropped, &[]), Ok(0));
    // A write to the old table must not appear in the new one.
    assert!(judge(&dropped, &late[2..]).is_err());
}

#[test]
fn rows_of_other_clients_in_a_shared_table_are_ignored() {
    let mut ledger = Ledger::new(3);
    ledger.share_table(SHARED);
    let others =
        [(("p".to_owned(), "w33-a".to_owned()), json!({})), (("p".to_owned(), "w4-a".to_owned()), json!({}))];
    assert_eq!(ledger.check(SHARED, None, &others, true), Ok(()));
    let mine = [(("p".to_owned(), "w3-a".to_owned()), json!({}))];
    assert!(ledger.check(SHARED, None, &mine, true).is_err());
    assert!(ledger.check(SHARED, Some("q"), &others, true).unwrap_err().contains("asked for"));
}
