//! Several writes at once on one partition.

use futures_util::future::join_all;
use scylla::errors::{DbError, WriteType};

use crate::lwt_contract::ground::{APPLIED, Step::*, answered, key, partition};

#[tokio::test]
async fn of_rivals_for_one_row_at_most_one_wins_and_its_value_stays() {
    let Some(p) = partition().await else { return };
    p.given(&[Epoch(100, None)]).await;
    let mut old = None;
    for round in 1..=10 {
        let stamps: Vec<i64> = (0..8).map(|rival| 10 * round + rival).collect();
        let batches: Vec<_> = stamps.iter().map(|n| [Put("a", *n, old), Mark(*n, Some(100))]).collect();
        let answers = join_all(batches.iter().map(|steps| p.try_batch(steps))).await;
        let (mut won, mut open) = (Vec::new(), Vec::new());
        for (stamp, answer) in stamps.iter().zip(answers) {
            match answer {
                Ok(result) => {
                    if p.show(result) == APPLIED {
                        won.push(*stamp);
                    }
                }
                // Coordinators can invalidate each other's ballots until a timeout; the outcome is then unknown.
                Err(error) => match answered(&error).0 {
                    DbError::WriteTimeout { write_type: WriteType::Cas, .. } => open.push(*stamp),
                    other => panic!("{other:?}"),
                },
            }
        }
        let now: Option<i64> = p.rows().await.first().map(|row| row["a ".len()..].parse().unwrap());
        match won.as_slice() {
            [winner] => assert_eq!(now, Some(*winner), "round {round}"),
            [] => assert!(
                now == old || now.is_some_and(|stamp| open.contains(&stamp)),
                "round {round}: {now:?}"
            ),
            several => panic!("round {round}: {several:?} all won"),
        }
        assert!(!won.is_empty() || !open.is_empty(), "round {round}: all were refused");
        old = now;
    }
}

#[tokio::test]
async fn rivals_for_different_rows_of_one_epoch_all_win() {
    let Some(p) = partition().await else { return };
    p.given(&[Epoch(100, None)]).await;
    let names: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let batches: Vec<_> = names.iter().map(|name| [Put(name, 1, None), Mark(1, Some(100))]).collect();
    let answers = join_all(batches.iter().map(|steps| p.batch(steps))).await;
    assert!(answers.iter().all(|answer| *answer == APPLIED), "{answers:?}");
    assert_eq!(p.rows().await.len(), 8);
}

#[tokio::test]
async fn timestamps_of_conditional_writes_grow() {
    let Some(p) = partition().await else { return };
    let text = "SELECT writetime(stamp) FROM entities WHERE tid = ? AND pk = ? AND rk = ?";
    let mut last = 0;
    for stamp in 1..=20 {
        p.given(&[Put("a", stamp, (stamp > 1).then_some(stamp - 1)), Mark(stamp, None)]).await;
        let time: i64 = p.read(text, (p.tid, &p.pk, key("a"))).await[1].parse().unwrap();
        assert!(time > last, "{time} after {last}");
        last = time;
    }
}

#[tokio::test]
async fn a_row_deleted_and_put_again_at_once_is_there() {
    let Some(p) = partition().await else { return };
    // Within one microsecond a delete and a put would have one timestamp, and the delete would win.
    for n in 0..50 {
        p.given(&[Put("a", 2 * n, None), Mark(2 * n, None)]).await;
        assert_eq!(p.rows().await, [format!("a {}", 2 * n)]);
        p.given(&[Delete("a", Some(2 * n)), Mark(2 * n + 1, None)]).await;
    }
}
