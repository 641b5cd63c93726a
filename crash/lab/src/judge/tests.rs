use super::*;
use crate::operation::{Change, Condition, Operation, Trace, Verb};
use serde_json::json;

fn change(row: &str, sequence: u32) -> Change {
    let trace = Trace { slot: 0, sequence, length: 5 };
    Change {
        verb: Verb::Replace,
        partition: "p".to_owned(),
        row: row.to_owned(),
        condition: Condition::None,
        trace,
    }
}

fn stamp(time: u32) -> Stamp {
    Stamp(format!("2026-01-01T00:00:{time:02}Z"))
}

fn write(table: &str, rows: &[(&str, u32)]) -> Operation {
    let changes = rows.iter().map(|(row, sequence)| change(row, *sequence)).collect();
    Operation::Write { table: table.to_owned(), changes }
}

fn done(times: &[u32]) -> Outcome {
    Outcome::Done(times.iter().map(|time| Some(stamp(*time))).collect())
}

fn unknown() -> Outcome {
    Outcome::Unknown("it broke".to_owned())
}

/// Two writers, each with its own table. The first has also created the shared table.
fn writers() -> Vec<Writer> {
    let mut writers = vec![Writer::new(1, 0), Writer::new(1, 1)];
    writers[0].remember(Operation::Create { table: SHARED.to_owned() }, done(&[]));
    for writer in &mut writers {
        let table = writer.table("Own");
        writer.remember(Operation::Create { table }, done(&[]));
    }
    writers
}

/// Rows as table, row, writer, operation, sequence and time.
fn found(rows: &[(&str, &str, usize, usize, u32, u32)]) -> Found {
    let mut found = Found::default();
    for table in ["Own0", "Own1", SHARED] {
        found.tables.insert(table.to_owned(), Rows::new());
    }
    for (table, row, writer, operation, sequence, time) in rows {
        let entity = json!({
            "PartitionKey": "p", "RowKey": row, "Timestamp": stamp(*time).0, "Writer": writer,
            "Operation": operation, "Sequence": sequence, "Trace0": change(row, *sequence).trace.text(*writer),
        });
        let rows = found.tables.get_mut(*table).unwrap();
        rows.insert(("p".to_owned(), (*row).to_owned()), entity);
    }
    found
}

fn check(
    writers: &[Writer],
    rows: &[(&str, &str, usize, usize, u32, u32)],
    expected: Result<(u64, u64), &str>,
) {
    let mut writers = writers.to_vec();
    match (judge(&mut writers, &found(rows)), expected) {
        (Ok(settled), Ok(expected)) => assert_eq!((settled.unknown, settled.taken), expected),
        (Err(what), Err(part)) => assert!(what.contains(part), "{what}"),
        (judged, expected) => panic!("{judged:?}, but {expected:?} for {rows:?}"),
    }
}

#[test]
fn acknowledged_rows_are_there_unchanged() {
    let mut writers = writers();
    writers[1].remember(write("Own1", &[("a", 1)]), done(&[1]));
    writers[1].remember(write("Own1", &[("a", 2)]), done(&[2]));
    check(&writers, &[("Own1", "a", 1, 2, 2, 2)], Ok((0, 0)));
    check(&writers, &[], Err("found None"));
    check(&writers, &[("Own1", "a", 1, 1, 1, 1)], Err("expected Row"));
    check(&writers, &[("Own1", "a", 1, 2, 2, 3)], Err("expected Row"));
    check(&writers, &[("Own1", "a", 1, 2, 2, 2), ("Own1", "b", 1, 2, 2, 2)], Err("expected nothing"));
}

#[test]
fn an_unknown_batch_is_there_completely_or_not_at_all() {
    let mut writers = writers();
    writers[1].remember(write("Own1", &[("a", 1)]), done(&[1]));
    writers[1].remember(write("Own1", &[("a", 2), ("b", 3)]), unknown());
    check(&writers, &[("Own1", "a", 1, 1, 1, 1)], Ok((1, 0)));
    check(&writers, &[("Own1", "a", 1, 2, 2, 2), ("Own1", "b", 1, 2, 3, 3)], Ok((1, 1)));
    check(&writers, &[("Own1", "a", 1, 2, 2, 2)], Err("no possible outcome"));
    check(&writers, &[("Own1", "a", 1, 1, 1, 1), ("Own1", "b", 1, 2, 3, 3)], Err("no possible outcome"));
}

#[test]
fn a_refused_write_is_not_there() {
    let mut writers = writers();
    let refused = Operation::Write {
        table: "Own1".to_owned(),
        changes: vec![Change { condition: Condition::Exists, ..change("a", 1) }],
    };
    writers[1].remember(refused, Outcome::Refused(404));
    assert_eq!(writers[1].violation, None);
    check(&writers, &[], Ok((0, 0)));
    check(&writers, &[("Own1", "a", 1, 1, 1, 1)], Err("expected nothing"));
}

#[test]
fn in_the_shared_table_the_latest_acknowledged_write_wins() {
    let mut writers = writers();
    writers[0].remember(write(SHARED, &[("a", 1)]), done(&[5]));
    writers[1].remember(write(SHARED, &[("a", 1)]), done(&[4]));
    check(&writers, &[(SHARED, "a", 0, 2, 1, 5)], Ok((0, 0)));
    check(&writers, &[(SHARED, "a", 1, 1, 1, 4)], Err("a later write was acknowledged"));
    check(&writers, &[(SHARED, "a", 0, 2, 1, 6)], Err("not the one that was acknowledged"));
    check(&writers, &[], Err("it is missing"));
    check(&writers, &[(SHARED, "a", 0, 2, 9, 5)], Err("not what was written"));
    check(&writers, &[(SHARED, "a", 7, 2, 1, 5)], Err("nobody wrote this"));
}

#[test]
fn an_unknown_batch_on_the_shared_table_is_complete_except_under_later_writes() {
    let mut writers = writers();
    writers[0].remember(write(SHARED, &[("a", 1), ("b", 2)]), unknown());
    writers[1].remember(write(SHARED, &[("b", 1)]), done(&[5]));
    let (covering, taken) = ((SHARED, "b", 1, 1, 1, 5), (SHARED, "a", 0, 2, 1, 3));
    check(&writers, &[covering], Ok((1, 0)));
    check(&writers, &[taken, covering], Ok((1, 1)));
    check(&writers, &[(SHARED, "a", 0, 2, 1, 6), covering], Err("was done in part"));
    check(&writers, &[taken, (SHARED, "b", 0, 2, 2, 4)], Err("a later one was acknowledged"));
}

#[test]
fn exactly_the_created_tables_are_there() {
    let mut dropped = writers();
    dropped[1].remember(Operation::Drop { table: "Own1".to_owned() }, done(&[]));
    check(&dropped, &[], Err("Own1 should not be there"));
    let mut dropping = writers();
    dropping[1].remember(Operation::Drop { table: "Own1".to_owned() }, unknown());
    check(&dropping, &[], Ok((1, 0)));
    let mut creating = writers();
    creating[1].remember(Operation::Create { table: "Brief1".to_owned() }, done(&[]));
    check(&creating, &[], Err("Brief1 is missing"));
    // Only the first writer creates the shared table.
    let mut sharing = vec![Writer::new(1, 0)];
    sharing[0].remember(Operation::Create { table: SHARED.to_owned() }, unknown());
    let mut found = Found::default();
    found.tables.insert(SHARED.to_owned(), Rows::new());
    let settled = judge(&mut sharing, &found).unwrap();
    assert_eq!((settled.unknown, settled.taken), (1, 1));
}
