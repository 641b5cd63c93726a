//! Other servers write meanwhile, and may overwrite what would have proved the outcome. Then the engine has to answer
//! that the outcome is unknown, and must not change what the others wrote.

use store::{Change, Condition, Engine as _, Error, Reason, Transaction};
use store_suite::{key, number};

use crate::lost_answers::Ground;
use crate::lost_answers::between::Mishap::{self, AnswerLostAtGate, RequestLostAtGate};
use crate::lost_answers::between::{Aim, MARK};
use crate::lost_answers::cases::{Case, DELETE, INSERT, REPLACE};

/// The answer that the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Done,
    Unknown,
    Exists,
}

use Heard::{Done, Exists, Unknown};

/// A write, its mishap, what another server does to which row before the engine settles the outcome, and the allowed
/// answers and the rows after it.
type Meanwhile = (Case, Mishap, (String, Change), &'static [Heard], &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_others_stay() {
    let Some(mut ground) = Ground::new().await else { return };
    let put = |row: &str, value| (row.to_owned(), Change::Put(number(value)));
    let delete = |row: &str| (row.to_owned(), Change::Delete);
    let cases: Vec<Meanwhile> = vec![
        // Done, but the proof is overwritten before the engine looks.
        (INSERT, AnswerLostAtGate, delete("a"), &[Done, Unknown], "b=5"),
        (INSERT, AnswerLostAtGate, put("a", 50), &[Done, Unknown], "a=50 b=5"),
        (REPLACE, AnswerLostAtGate, put("a", 50), &[Done, Unknown], "a=50 b=2"),
        (REPLACE, AnswerLostAtGate, delete("a"), &[Done, Unknown], "b=2"),
        (DELETE, AnswerLostAtGate, put("a", 50), &[Done, Unknown], "a=50 b=2"),
        (DELETE, AnswerLostAtGate, put("b", 20), &[Done, Unknown], "b=20"),
        // Done, and the proof is still there.
        (INSERT, AnswerLostAtGate, put("b", 20), &[Done], "a=1 b=20"),
        (REPLACE, AnswerLostAtGate, put("b", 20), &[Done], "a=10 b=20"),
        // Not done, and another server has written the row meanwhile.
        (INSERT, RequestLostAtGate, put("a", 50), &[Unknown, Exists], "a=50 b=5"),
        (REPLACE, RequestLostAtGate, delete("a"), &[Unknown], "b=2"),
        // Not done, and the row shows it: the write is tried again.
        (REPLACE, RequestLostAtGate, put("b", 20), &[Done], "a=10 b=20"),
        (DELETE, RequestLostAtGate, put("b", 20), &[Done], "b=20"),
    ];
    for (n, (case, mishap, (row, change), expected, after)) in cases.into_iter().enumerate() {
        let (partition, what) =
            (format!("{MARK}{n}"), format!("{}: {mishap:?}, then {row} {change:?}", case.name));
        let write = case.prepare(&ground, &partition).await;
        let mut gate = ground.between.expect(Aim::Rows, &[mishap]);
        let (engine, table) = (ground.engine.clone(), ground.table.clone());
        let applying = tokio::spawn(async move { engine.apply(&table, write).await });
        gate.arrived().await;
        let other = Transaction::of_one(key(&partition, &row), Condition::Anything, change);
        ground.witness.apply(&ground.table, other).await.unwrap();
        gate.open();
        let heard = match applying.await.unwrap() {
            Ok(_) => Done,
            Err(Error::OutcomeUnknown) => Unknown,
            Err(Error::Rejected { reason: Reason::Exists, .. }) => Exists,
            Err(other) => panic!("{what}: {other}"),
        };
        ground.between.expect_nothing();
        assert!(expected.contains(&heard), "{what}: {heard:?}");
        assert_eq!(ground.values(&partition).await, after, "{what}");
        ground.deliver_lost(&what).await;
        assert_eq!(ground.values(&partition).await, after, "{what}");
    }
    ground.finish().await;
}
