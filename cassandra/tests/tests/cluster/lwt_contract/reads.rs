//! Reads that take part in the partition's consensus.

use std::ops::ControlFlow;

use scylla::errors::DbError;
use scylla::response::PagingState;
use scylla::value::Row;

use crate::lwt_contract::ground::{Partition, Step::*, answered, key, partition};

const ROWS_OF: &str =
    "SELECT rk, stamp, body, epoch, registered, written FROM entities WHERE tid = ? AND pk = ? AND rk IN ?";
const FROM: &str = "SELECT rk, body, written FROM entities WHERE tid = ? AND pk = ? AND rk >= ? LIMIT ?";
const BETWEEN: &str =
    "SELECT rk, body, written FROM entities WHERE tid = ? AND pk = ? AND rk >= ? AND rk < ? LIMIT ?";
const ANY_ROW: &str = "SELECT rk FROM entities WHERE tid = ? AND pk = ? AND rk >= ? AND rk < ? LIMIT 1";
const GET_ROW: &str = "SELECT body FROM entities WHERE tid = ? AND pk = ? AND rk = ?";

async fn rows(count: usize) -> Option<Partition> {
    let p = partition().await?;
    let names: Vec<String> = (0..count).map(|n| format!("{n:03}")).collect();
    let mut steps: Vec<_> = names.iter().map(|name| Put(name, 5, None)).collect();
    steps.push(Register(5, 100, None));
    p.given(&steps).await;
    Some(p)
}

#[tokio::test]
async fn a_partition_without_rows_still_has_its_state() {
    let Some(p) = partition().await else { return };
    assert_eq!(p.state().await, None);
    p.given(&[Epoch(100, None)]).await;
    assert_eq!(p.state().await.unwrap(), "100 1 -");
    p.given(&[Put("a", 1, None), Mark(1, Some(100))]).await;
    p.given(&[Put("b", 2, None), Mark(2, Some(100))]).await;
    assert_eq!(p.state().await.unwrap(), "100 1 2");
    p.given(&[Delete("a", Some(1)), Delete("b", Some(2)), Mark(3, Some(100))]).await;
    assert_eq!(p.state().await.unwrap(), "100 1 3");
}

#[tokio::test]
async fn rows_by_key_are_in_key_order_without_missing_ones() {
    let Some(p) = rows(3).await else { return };
    let wanted = vec![key("002"), key("nine"), key("000")];
    let answer = p.read(ROWS_OF, (p.tid, &p.pk, wanted)).await;
    assert_eq!(
        answer,
        ["rk stamp body epoch registered written", "000 5 0x35 100 1 5", "002 5 0x35 100 1 5",]
    );
    let none: Vec<Vec<u8>> = Vec::new();
    assert_eq!(p.read(ROWS_OF, (p.tid, &p.pk, none)).await.len(), 1);
    let many: Vec<Vec<u8>> = (0..100).map(|n| key(&format!("{n:03}"))).collect();
    assert_eq!(p.read(ROWS_OF, (p.tid, &p.pk, many)).await.len(), 1 + 3);
}

#[tokio::test]
async fn a_query_with_row_keys_returns_nothing_of_a_partition_without_rows() {
    let Some(p) = partition().await else { return };
    p.given(&[Mark(1, None)]).await;
    assert_eq!(p.read(ROWS_OF, (p.tid, &p.pk, vec![key("a")])).await.len(), 1);
    assert_eq!(p.read(ANY_ROW, (p.tid, &p.pk, vec![1_u8], vec![2_u8])).await.len(), 1);
    assert_eq!(p.read(FROM, (p.tid, &p.pk, key(""), 10)).await.len(), 1);
    assert_eq!(p.read(GET_ROW, (p.tid, &p.pk, key("a"))).await.len(), 1);
    // A query without a row key returns a row with the partition's own columns. This is why `any_row` names a row key.
    let bare = p.read("SELECT rk FROM entities WHERE tid = ? AND pk = ? LIMIT 1", (p.tid, &p.pk)).await;
    assert_eq!(bare, ["rk", "-"]);
    // The row that is not an entity (`0x00`) does not show either.
    p.given(&[Epoch(100, None)]).await;
    assert_eq!(p.read(ANY_ROW, (p.tid, &p.pk, vec![1_u8], vec![2_u8])).await.len(), 1);
    assert_eq!(p.read(FROM, (p.tid, &p.pk, key(""), 10)).await.len(), 1);
}

#[tokio::test]
async fn ranges_end_at_their_limit_or_bound() {
    let Some(p) = rows(10).await else { return };
    let range = async |from: &str, limit: i32| {
        let lines = p.read(FROM, (p.tid, &p.pk, key(from), limit)).await;
        lines[1..].iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(range("", 3).await, ["000", "001", "002"]);
    assert_eq!(range("008", 5).await, ["008", "009"]);
    assert_eq!(range("x", 5).await, Vec::<String>::new());
    let between = p.read(BETWEEN, (p.tid, &p.pk, key("003"), key("005"), 9)).await;
    assert_eq!(between, ["rk body written", "003 0x35 5", "004 0x35 5"]);
}

#[tokio::test]
async fn a_serial_read_comes_in_pages() {
    let Some(p) = rows(10).await else { return };
    let mut statement = p.serial(FROM).await;
    statement.set_page_size(4);
    let (mut pages, mut state) = (Vec::new(), PagingState::start());
    loop {
        let (result, next) =
            p.session.execute_single_page(&statement, (p.tid, &p.pk, key(""), 9), state).await.unwrap();
        pages.push(result.into_rows_result().unwrap().rows::<Row>().unwrap().count());
        match next.into_paging_control_flow() {
            ControlFlow::Break(()) => break,
            ControlFlow::Continue(more) => state = more,
        }
    }
    assert_eq!(pages, [4, 4, 1]);
}

#[tokio::test]
async fn each_page_of_a_read_shows_its_own_moment() {
    let Some(p) = rows(10).await else { return };
    let mut statement = p.serial(FROM).await;
    statement.set_page_size(4);
    let values = (p.tid, &p.pk, key(""), 100);
    let (first, next) =
        p.session.execute_single_page(&statement, values.clone(), PagingState::start()).await.unwrap();
    assert!(p.show(first)[1].ends_with(" 5"));
    p.given(&[Put("000", 6, Some(5)), Put("009", 7, Some(5)), Mark(7, Some(100))]).await;
    let ControlFlow::Continue(next) = next.into_paging_control_flow() else { panic!("one page") };
    let (second, _) = p.session.execute_single_page(&statement, values, next).await.unwrap();
    // Only `written` shows it.
    assert!(p.show(second)[1].ends_with(" 7"));
}

#[tokio::test]
async fn a_serial_read_of_two_partitions_is_refused() {
    let Some(p) = rows(1).await else { return };
    let statement = p.serial("SELECT rk FROM entities WHERE tid = ? AND pk IN ?").await;
    let values = (p.tid, vec![key("p"), key("q")]);
    let error = p.session.execute_unpaged(&statement, values).await.unwrap_err();
    assert!(matches!(answered(&error).0, DbError::Invalid), "{error:?}");
}
