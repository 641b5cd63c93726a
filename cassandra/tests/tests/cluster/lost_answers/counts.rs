//! What monitors are told about writes that were lost, and about writes that other servers made first.

use std::collections::BTreeMap;

use engine_cassandra::CassandraEngine;
use store::{Engine as _, Error, Reason};
use store_suite::insert;

use crate::lost_answers::Ground;
use crate::lost_answers::between::Mishap::{self, AnswerLost, LateAtGate, RequestLost};
use crate::lost_answers::between::{Aim, MARK};

/// Those that only writes of rows change. The engine also renews its slot at any time.
const OF_ROWS: [&str; 7] = [
    "transactions",
    "commits",
    "cluster_errors_unknown",
    "unanswered_writes_applied",
    "unanswered_writes_not_applied",
    "unanswered_writes_unknown",
    "contended_writes",
];

fn numbers(engine: &CassandraEngine) -> BTreeMap<String, f64> {
    engine.counters().numbers().into_iter().collect()
}

/// The numbers of `OF_ROWS` that have grown, and by how much.
fn grown(before: &BTreeMap<String, f64>, engine: &CassandraEngine) -> Vec<(&'static str, f64)> {
    let after = numbers(engine);
    let grown = OF_ROWS.map(|name| (name, after[name] - before[name]));
    grown.into_iter().filter(|(_, more)| *more != 0.0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_a_write_is_counted() {
    let Some(mut ground) = Ground::new().await else { return };
    type Numbers = &'static [(&'static str, f64)];
    let cases: [(&[Mishap], Numbers); 3] = [
        (&[], &[]),
        (&[RequestLost], &[("cluster_errors_unknown", 1.0), ("unanswered_writes_not_applied", 1.0)]),
        (&[AnswerLost], &[("cluster_errors_unknown", 1.0), ("unanswered_writes_applied", 1.0)]),
    ];
    for (mishaps, expected) in cases {
        let before = numbers(&ground.engine);
        let _open = ground.between.expect(Aim::Rows, mishaps);
        let partition = format!("{MARK}{mishaps:?}");
        ground.engine.apply(&ground.table, insert(&partition, "a", 1)).await.unwrap();
        ground.between.expect_nothing();
        let done = [("transactions", 1.0), ("commits", 1.0)];
        assert_eq!(grown(&before, &ground.engine), [&done, expected].concat(), "{mishaps:?}");
        let after = numbers(&ground.engine);
        for name in ["cluster_requests_read", "cluster_requests_write", "cluster_requests_conditional_write"]
        {
            assert!(after[name] > before[name], "{mishaps:?}: {name}");
        }
    }

    // Another server writes the row before the request arrives.
    let before = numbers(&ground.engine);
    let partition = format!("{MARK}rivals");
    let mut gate = ground.between.expect(Aim::Rows, &[LateAtGate]);
    let (engine, table) = (ground.engine.clone(), ground.table.clone());
    let late = insert(&partition, "a", 1);
    let applying = tokio::spawn(async move { engine.apply(&table, late).await });
    gate.arrived().await;
    ground.witness.apply(&ground.table, insert(&partition, "a", 2)).await.unwrap();
    gate.open();
    let outcome = applying.await.unwrap();
    assert!(matches!(outcome, Err(Error::Rejected { reason: Reason::Exists, .. })), "{outcome:?}");
    ground.between.expect_nothing();
    let expected = [("transactions", 1.0), ("commits", 1.0), ("contended_writes", 1.0)];
    assert_eq!(grown(&before, &ground.engine), expected);

    let after = numbers(&ground.engine);
    assert_eq!((after["slot_leased"], after["slots_lost"]), (1.0, 0.0));
    // Servers of other tests in this keyspace have slots, too.
    assert!(after["slots_taken"] >= 2.0 && after["slots_taken"] <= after["slots_max"], "{after:?}");
    ground.finish().await;
}
