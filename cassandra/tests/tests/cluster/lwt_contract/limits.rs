//! Sizes: a transaction at the service's limits, and one above the cluster's limits.

use scylla::errors::{DbError, ExecutionError};
use scylla::value::CqlValue;

use crate::lwt_contract::ground::{APPLIED, Partition, Step::*, answered, partition};

/// Writes a batch of rows of one size, into an empty partition or over rows with a stamp.
async fn write(
    p: &Partition,
    rows: usize,
    bytes: usize,
    old: Option<i64>,
    stamp: i64,
) -> Result<Vec<String>, ExecutionError> {
    let body = vec![7; bytes];
    let mut steps: Vec<(&str, Vec<Option<CqlValue>>)> = (0..rows)
        .map(|n| {
            let name = format!("{n:03}");
            let (text, mut values) = p.bind(&Put(&name, stamp, old));
            values[1] = Some(CqlValue::Blob(body.clone()));
            (text, values)
        })
        .collect();
    steps.push(p.bind(&Mark(stamp, None)));
    let result = p.try_bound(steps).await?;
    assert_eq!(result.warnings().count(), 0);
    Ok(p.show(result))
}

#[tokio::test]
async fn the_largest_transactions_fit_into_one_batch() {
    // Above `batch_size_fail_threshold`, whose default is 50 KiB: it does not apply to conditional batches.
    for (rows, bytes) in [(100, 40 * 1024), (1, 1024 * 1024), (4, 1024 * 1024)] {
        let Some(p) = partition().await else { return };
        assert_eq!(write(&p, rows, bytes, None, 1).await.unwrap(), APPLIED, "{rows} x {bytes}");
        assert_eq!(write(&p, rows, bytes, Some(1), 2).await.unwrap(), APPLIED, "{rows} x {bytes}");
        let refused = write(&p, rows, bytes, Some(1), 3).await.unwrap();
        assert_eq!(refused.len(), 1 + rows);
        let text = "SELECT rk, body FROM entities WHERE tid = ? AND pk = ? AND rk >= 0x01";
        let statement = p.serial(text).await;
        let read = p.session.execute_unpaged(&statement, (p.tid, &p.pk)).await.unwrap();
        assert_eq!(read.into_rows_result().unwrap().rows_num(), rows);
    }
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_refused_and_leaves_nothing() {
    let Some(p) = partition().await else { return };
    let error = write(&p, 17, 1024 * 1024, None, 1).await.unwrap_err();
    assert!(matches!(answered(&error).0, DbError::Invalid), "{error:?}");
    assert_eq!(p.rows().await, Vec::<String>::new());
    // The connection outlives it.
    assert_eq!(write(&p, 1, 10, None, 1).await.unwrap(), APPLIED);
}
