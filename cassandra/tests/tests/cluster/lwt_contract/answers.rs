//! What the answer to a refused batch contains: which rows, and which of their columns.

use scylla::value::CqlValue;

use crate::lwt_contract::ground::{APPLIED, REFUSED_BY_NOTHING, Step::*, partition};

#[tokio::test]
async fn an_applied_batch_answers_with_one_column() {
    let Some(p) = partition().await else { return };
    for (steps, what) in [
        (vec![Put("a", 1, None), Register(1, 100, None)], "into nothing"),
        (vec![Put("a", 2, Some(1)), Put("b", 2, None), Mark(2, Some(100))], "existing and missing rows"),
        (vec![Delete("a", Some(2)), Mark(3, Some(100))], "a delete"),
        (vec![Epoch(200, Some(100))], "the partition alone"),
    ] {
        assert_eq!(p.batch(&steps).await, APPLIED, "{what}");
    }
    assert_eq!(p.single(&Put("c", 3, None)).await, APPLIED);
}

#[tokio::test]
async fn a_refusal_where_nothing_exists_has_no_columns() {
    let Some(p) = partition().await else { return };
    for steps in [
        vec![Put("a", 1, None), Mark(1, Some(100))],
        vec![Put("a", 1, Some(7)), Mark(1, None)],
        vec![Epoch(200, Some(100))],
    ] {
        assert_eq!(p.batch(&steps).await, REFUSED_BY_NOTHING, "{steps:?}");
    }
    assert_eq!(p.single(&Put("a", 1, Some(7))).await, REFUSED_BY_NOTHING);
}

#[tokio::test]
async fn a_refusal_has_the_rows_that_exist_in_key_order_with_the_epoch_in_each() {
    let Some(p) = partition().await else { return };
    p.given(&[Put("a", 1, None), Put("b", 2, None), Put("c", 3, None), Register(3, 100, None)]).await;
    const COLUMNS: &str = "[applied] tid pk rk stamp epoch";
    for (steps, expected) in [
        // A row's condition fails.
        (vec![Put("a", 9, None), Mark(9, Some(100))], vec!["false T P a 1 100"]),
        // Only the epoch fails; the row is in the answer all the same.
        (vec![Put("a", 9, Some(1)), Mark(9, Some(77))], vec!["false T P a 1 100"]),
        // Rows are in key order, not in the order of the statements. Rows without conditions are not in the answer.
        (
            vec![Put("c", 9, None), Put("a", 9, Some(1)), Mark(9, Some(100))],
            vec!["false T P a 1 100", "false T P c 3 100"],
        ),
        // Missing rows are left out.
        (
            vec![Put("a0", 9, Some(5)), Put("b", 9, Some(2)), Put("z", 9, Some(5)), Mark(9, Some(100))],
            vec!["false T P b 2 100"],
        ),
        (vec![Delete("b", Some(1)), Mark(9, Some(100))], vec!["false T P b 2 100"]),
    ] {
        let answer = p.batch(&steps).await;
        assert_eq!(answer[0], COLUMNS, "{steps:?}");
        assert_eq!(answer[1..], expected, "{steps:?}");
    }
}

#[tokio::test]
async fn a_refusal_without_existing_rows_still_has_the_epoch() {
    let Some(p) = partition().await else { return };
    p.given(&[Epoch(100, None)]).await;
    for steps in [
        vec![Put("a", 9, Some(1)), Mark(9, Some(100))],
        vec![Put("a", 9, None), Put("b", 9, None), Mark(9, Some(77))],
    ] {
        let answer = p.batch(&steps).await;
        assert_eq!(answer, ["[applied] tid pk rk stamp epoch", "false T P - - 100"], "{steps:?}");
    }
    // There are rows, but none that a condition names.
    p.given(&[Put("z", 1, None), Mark(1, Some(100))]).await;
    let answer = p.batch(&[Put("a", 9, Some(1)), Mark(9, Some(100))]).await;
    assert_eq!(answer, ["[applied] tid pk rk stamp epoch", "false T P - - 100"]);
}

#[tokio::test]
async fn the_partitions_statement_adds_no_row_to_a_refusal() {
    let Some(p) = partition().await else { return };
    p.given(&[Put("a", 1, None), Put("b", 2, None), Register(2, 100, None)]).await;
    let answer = p.batch(&[Put("b", 9, Some(2)), Mark(9, Some(77))]).await;
    assert_eq!(answer, ["[applied] tid pk rk stamp epoch", "false T P b 2 100"]);
    let alone = p.batch(&[Mark(9, Some(77))]).await;
    assert_eq!(alone, ["[applied] tid pk rk epoch", "false T P - 100"]);
}

#[tokio::test]
async fn a_single_statement_is_refused_without_its_keys() {
    let Some(p) = partition().await else { return };
    p.given(&[Put("a", 1, None), Register(1, 100, None)]).await;
    assert_eq!(p.single(&Put("a", 9, None)).await, ["[applied] stamp", "false 1"]);
    assert_eq!(p.single(&Mark(9, None)).await, ["[applied] epoch", "false 100"]);
    // If the condition names only a missing row, the answer has nothing of the partition either.
    assert_eq!(p.single(&Put("b", 9, Some(5))).await, REFUSED_BY_NOTHING);
    assert_eq!(p.batch(&[Put("a", 9, None)]).await, ["[applied] tid pk rk stamp", "false T P a 1"]);
}

#[tokio::test]
async fn columns_are_in_the_order_of_the_statements() {
    let Some(p) = partition().await else { return };
    p.given(&[Put("a", 1, None), Register(1, 100, None)]).await;
    // This is why answers are read by column name.
    let answer = p.batch(&[Mark(9, Some(77)), Put("a", 9, Some(1))]).await;
    assert_eq!(answer, ["[applied] tid pk rk epoch stamp", "false T P a 100 1"]);
}

#[tokio::test]
async fn a_refusal_has_the_whole_state_of_the_partition() {
    const REFUSED: &str = "UPDATE entities SET body = 0x WHERE tid = ? AND pk = ? AND rk = 0x00 \
         IF epoch = -1 AND registered = -1 AND written = -1 AND deleted = -1 AND stamp = null";
    const COLUMNS: &str = "[applied] tid pk rk stamp epoch registered written deleted";
    let Some(p) = partition().await else { return };
    let refusal = async || {
        let values = vec![Some(CqlValue::Uuid(p.tid)), Some(CqlValue::Blob(p.pk.clone()))];
        p.show(p.try_bound(vec![(REFUSED, values)]).await.unwrap())
    };
    assert_eq!(refusal().await, REFUSED_BY_NOTHING);
    p.given(&[Put("a", 1, None), Register(1, 100, None)]).await;
    assert_eq!(refusal().await, [COLUMNS, "false T P - - 100 1 1 -"]);
    // With the row that is not an entity (`0x00`), and without any other.
    p.given(&[Delete("a", Some(1)), MarkDeleted(2, Some(100))]).await;
    p.given(&[Epoch(200, Some(100))]).await;
    assert_eq!(refusal().await, [COLUMNS, "false T P 0x00 - 200 1 2 2"]);
}

#[tokio::test]
async fn an_insert_is_refused_after_a_delete_with_a_larger_stamp() {
    const COLUMNS: &str = "[applied] tid pk rk stamp epoch deleted";
    let Some(p) = partition().await else { return };
    p.given(&[Put("a", 1, None), Put("b", 2, None), Register(2, 100, None)]).await;
    // A null is not smaller than a number.
    let insert = |stamp| [Put("b", stamp, None), MarkInserted(stamp, Some(100), stamp)];
    assert_eq!(p.batch(&insert(9)[1..]).await, ["[applied] tid pk rk epoch deleted", "false T P - 100 -"]);
    p.given(&[Delete("b", Some(2)), MarkDeleted(5, Some(100))]).await;
    // The row is absent, as expected, and the epoch is the same; the answer names the last delete.
    for stamp in [4, 5] {
        assert_eq!(p.batch(&insert(stamp)).await, [COLUMNS, "false T P - - 100 5"]);
    }
    p.given(&insert(6)).await;
    // A write that replaces rows does not ask.
    p.given(&[Put("a", 7, Some(1)), Mark(7, Some(100))]).await;
}
