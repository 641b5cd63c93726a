//! Other servers write meanwhile, and may overwrite what would have proved the outcome. Then the engine has to answer
//! that the outcome is unknown, and must not change what the others wrote.

use store::{Change, Condition, Engine as _, Error, Reason, Transaction};
use store_suite::{key, number};

use crate::lost_answers::Ground;
use crate::lost_answers::between::Mishap::{self, AnswerLostAtGate, RequestLostAtGate};
use crate::lost_answers::between::{Aim, MARK};
use crate::lost_answers::cases::{Case, DELETE, INSERT, REPLACE};

/// What the caller may hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Done,
    Unknown,
    Exists,
}

use Heard::{Done, Exists, Unknown};

/// A write, what becomes of it, what another does to which row before the engine knows, and what is then heard
/// and found.
type Meanwhile = (Case, Mishap, (String, Change), &'static [Heard], &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn what_others_did_meanwhile_stays() {
    let Some(mut ground) = Ground::new().await else { return };
    let put = |row: &str, value| (row.to_owned(), Change::Put(number(value)));
    let delete = |row: &str| (row.to_owned(), Change::Delete);
    let cases: Vec<Meanwhile> = vec![
        // Done, and its traces wiped out before the engine looks.
        (INSERT, AnswerLostAtGate, delete("a"), &[Done, Unknown], "b=5"),
        (INSERT, AnswerLostAtGate, put("a", 50), &[Done, Unknown], "a=50 b=5"),
        (REPLACE, AnswerLostAtGate, put("a", 50), &[Done, Unknown], "a=50 b=2"),
        (REPLACE, AnswerLostAtGate, delete("a"), &[Done, Unknown], "b=2"),
        (DELETE, AnswerLostAtGate, put("a", 50), &[Done, Unknown], "a=50 b=2"),
        (DELETE, AnswerLostAtGate, put("b", 20), &[Done, Unknown], "b=20"),
        // Done, and still to be seen.
        (INSERT, AnswerLostAtGate, put("b", 20), &[Done], "a=1 b=20"),
        (REPLACE, AnswerLostAtGate, put("b", 20), &[Done], "a=10 b=20"),
        // Not done, and someone else has the place by now.
        (INSERT, RequestLostAtGate, put("a", 50), &[Unknown, Exists], "a=50 b=5"),
        (REPLACE, RequestLostAtGate, delete("a"), &[Unknown], "b=2"),
        // Not done, which the row itself shows: it is tried again.
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
