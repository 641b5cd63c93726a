//! Which conditions a batch may have, and what they see.

use scylla::errors::DbError;
use scylla::statement::batch::{Batch, BatchType};
use scylla::value::{CqlValue, MaybeUnset};

use crate::lwt_contract::ground::{APPLIED, MARK_WRITTEN, Partition, Step::*, answered, key, partition};

async fn three_rows() -> Option<Partition> {
    let p = partition().await?;
    p.given(&[Put("a", 1, None), Put("b", 2, None), Put("c", 3, None), Register(3, 100, None)]).await;
    Some(p)
}

#[tokio::test]
async fn all_conditions_must_hold_or_nothing_is_changed() {
    let Some(p) = three_rows().await else { return };
    for steps in [
        vec![Put("a", 9, Some(1)), Put("b", 9, Some(2)), Put("d", 9, None), Mark(9, Some(77))],
        vec![Put("a", 9, Some(1)), Put("b", 9, Some(7)), Put("d", 9, None), Mark(9, Some(100))],
        vec![Put("a", 9, Some(1)), Put("b", 9, Some(2)), Put("c", 9, None), Mark(9, Some(100))],
        vec![Put("a", 9, Some(1)), Delete("b", Some(7)), Mark(9, Some(100))],
        vec![Delete("a", Some(1)), Delete("d", Some(1)), Mark(9, Some(100))],
    ] {
        assert!(p.batch(&steps).await[1].starts_with("false"), "{steps:?}");
        assert_eq!(p.rows().await, ["a 1", "b 2", "c 3"], "{steps:?}");
        assert_eq!(p.state().await.unwrap(), "100 1 3", "{steps:?}");
    }
    p.given(&[Put("a", 4, Some(1)), Delete("b", Some(2)), Put("d", 5, None), Mark(5, Some(100))]).await;
    assert_eq!(p.rows().await, ["a 4", "c 3", "d 5"]);
    assert_eq!(p.state().await.unwrap(), "100 1 5");
}

#[tokio::test]
async fn null_in_a_condition_means_absent() {
    let Some(p) = partition().await else { return };
    assert_eq!(p.state().await, None);
    p.given(&[Put("a", 1, None), Mark(1, None)]).await;
    // The partition has been written, but its epoch was never set.
    p.given(&[Delete("b", None), Mark(2, None)]).await;
    p.given(&[Delete("a", Some(1)), Register(3, 100, None)]).await;
    p.given(&[Put("a", 4, None), Mark(4, Some(100))]).await;
    assert_eq!(p.rows().await, ["a 4"]);
}

#[tokio::test]
async fn an_unset_value_in_a_condition_is_refused() {
    let Some(p) = partition().await else { return };
    let mut batch = Batch::new(BatchType::Unlogged);
    batch.append_statement(p.prepare(MARK_WRITTEN).await);
    let unset: MaybeUnset<i64> = MaybeUnset::Unset;
    let error = p.session.batch(&batch, ((1_i64, p.tid, &p.pk, unset),)).await.unwrap_err();
    assert!(matches!(answered(&error).0, DbError::Invalid), "{error:?}");
}

#[tokio::test]
async fn conditions_see_the_state_before_the_batch() {
    let Some(p) = partition().await else { return };
    // In both orders: one statement changes the epoch, and another has a condition on it.
    p.given(&[Register(1, 100, None), Put("a", 1, None), Mark(1, None)]).await;
    p.given(&[Mark(2, Some(100)), Put("a", 2, Some(1)), Register(2, 200, Some(100))]).await;
    assert_eq!(p.rows().await, ["a 2"]);
    assert_eq!(p.state().await.unwrap(), "200 1 2");
}

#[tokio::test]
async fn one_condition_may_name_columns_of_the_row_and_of_the_partition() {
    let Some(p) = three_rows().await else { return };
    let both = "UPDATE entities SET stamp = ? WHERE tid = ? AND pk = ? AND rk = ? IF stamp = ? AND epoch = ?";
    for (stamp, epoch, applied) in [(1, 77, false), (7, 100, false), (1, 100, true)] {
        let answer = p.ask(both, (9_i64, p.tid, &p.pk, key("a"), stamp as i64, epoch as i64)).await;
        match applied {
            true => assert_eq!(answer, APPLIED),
            false => assert_eq!(answer, ["[applied] stamp epoch", "false 1 100"]),
        }
    }
}

#[tokio::test]
async fn a_batch_over_two_partitions_is_refused() {
    let Some(p) = partition().await else { return };
    let first = p.bind(&Put("a", 1, None));
    let p = p.keyed("q");
    let second = p.bind(&Put("a", 1, None));
    let error = p.try_bound(vec![first, second]).await.unwrap_err();
    assert!(matches!(answered(&error).0, DbError::Invalid), "{error:?}");
    assert_eq!(p.rows().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_conditional_statement_can_not_have_its_own_timestamp() {
    let Some(p) = partition().await else { return };
    let text = "UPDATE entities USING TIMESTAMP 5 SET written = 1 WHERE tid = ? AND pk = ? IF epoch = 1";
    assert!(p.session.prepare(text).await.is_err());
    let mut batch = Batch::new(BatchType::Unlogged);
    batch.append_statement(p.prepare(MARK_WRITTEN).await);
    batch.set_timestamp(Some(5));
    // A timestamp in the request's frame is accepted but not used.
    let result = p.session.batch(&batch, ((1_i64, p.tid, &p.pk, None::<i64>),)).await.unwrap();
    assert_eq!(p.show(result), APPLIED);
    let text = "SELECT DISTINCT writetime(written) FROM entities WHERE tid = ? AND pk = ?";
    let time: i64 = p.read(text, (p.tid, &p.pk)).await[1].parse().unwrap();
    assert!(time > 1_000_000_000_000_000, "{time}");
}

#[tokio::test]
async fn a_row_whose_cells_are_gone_is_gone() {
    let Some(p) = three_rows().await else { return };
    // An UPDATE leaves no marker of the row itself, so the row is gone with its cells.
    let (text, mut values) = p.bind(&Put("a", 1, Some(1)));
    (values[0], values[1]) = (None, None);
    assert_eq!(p.ask(text, values).await, APPLIED);
    assert_eq!(p.rows().await, ["b 2", "c 3"]);
    // So a condition can't tell a deleted row from one that never existed.
    p.given(&[Delete("b", Some(2)), Mark(4, Some(100))]).await;
    p.given(&[Put("a", 5, None), Put("b", 5, None), Mark(5, Some(100))]).await;
    assert_eq!(p.rows().await, ["a 5", "b 5", "c 3"]);
}

#[tokio::test]
async fn the_partitions_columns_outlive_its_rows() {
    let Some(p) = three_rows().await else { return };
    p.given(&[Delete("a", Some(1)), Delete("b", Some(2)), Delete("c", Some(3)), Mark(9, Some(100))]).await;
    assert_eq!(p.rows().await, Vec::<String>::new());
    assert_eq!(p.state().await.unwrap(), "100 1 9");
}

#[tokio::test]
async fn a_delete_without_its_row_changes_the_partition_alone() {
    let Some(p) = three_rows().await else { return };
    p.given(&[Delete("x", None), Mark(9, Some(100))]).await;
    assert_eq!(p.rows().await, ["a 1", "b 2", "c 3"]);
    assert_eq!(p.state().await.unwrap(), "100 1 9");
}

#[tokio::test]
async fn an_empty_batch_has_an_empty_answer() {
    let Some(p) = partition().await else { return };
    let result = p.try_batch(&[]).await.unwrap();
    assert!(!result.is_rows());
}

#[tokio::test]
async fn the_answer_to_a_refused_batch_of_a_hundred_rows_has_all_of_them() {
    let Some(p) = partition().await else { return };
    let names: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let mut steps: Vec<_> = names.iter().map(|name| Put(name, 1, None)).collect();
    steps.push(Register(1, 100, None));
    p.given(&steps).await;
    steps.pop();
    steps.push(Mark(2, Some(100)));
    let answer = p.batch(&steps).await;
    assert_eq!(answer.len(), 101);
    for (line, name) in answer[1..].iter().zip(&names) {
        assert_eq!(*line, format!("false T P {name} 1 100"));
    }
}

#[tokio::test]
async fn a_statement_without_a_condition_joins_those_that_have_one() {
    let Some(p) = three_rows().await else { return };
    let free = "UPDATE entities SET written = 50 WHERE tid = ? AND pk = ?";
    let bound = || (free, vec![Some(CqlValue::Uuid(p.tid)), Some(CqlValue::Blob(p.pk.clone()))]);
    let refused = p.try_bound(vec![bound(), p.bind(&Put("a", 9, None))]).await.unwrap();
    assert!(p.show(refused)[1].starts_with("false"));
    assert_eq!(p.state().await.unwrap(), "100 1 3");
    let applied = p.try_bound(vec![bound(), p.bind(&Put("a", 9, Some(1)))]).await.unwrap();
    assert_eq!(p.show(applied), APPLIED);
    assert_eq!(p.state().await.unwrap(), "100 1 50");
}

#[tokio::test]
async fn an_empty_key_is_a_blob_of_one_byte() {
    let Some(p) = partition().await else { return };
    let p = p.keyed("");
    p.given(&[Put("", 1, None), Register(1, 100, None)]).await;
    let answer = p.batch(&[Put("", 2, None), Mark(2, Some(100))]).await;
    assert_eq!(answer[1], "false T P P 1 100");
}

#[tokio::test]
async fn rows_are_cleared_with_a_change_of_epoch_or_not_at_all() {
    let Some(p) = three_rows().await else { return };
    let refused = p.batch(&[Epoch(200, Some(77)), Clear]).await;
    assert!(refused[1].starts_with("false"), "{refused:?}");
    assert_eq!(p.rows().await, ["a 1", "b 2", "c 3"]);
    p.given(&[Epoch(200, Some(100)), Clear]).await;
    assert_eq!(p.rows().await, Vec::<String>::new());
    assert_eq!(p.state().await.unwrap(), "200 1 3");
    // Rows written after it are there.
    p.given(&[Put("b", 9, None), Mark(9, Some(200))]).await;
    assert_eq!(p.rows().await, ["b 9"]);
}
