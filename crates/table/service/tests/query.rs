//! Queries: which ranges they read, and that their pages together are the answer.

use model::{Cut, EntityKey, KeyRange, Refusal, limits};
use service::{EntityPage, EntityQuery};
use store::{FREE_BYTES, MemoryShare, RequestMemory};

use crate::kit::{Ground, number, refused, table};

const BOOKS: &str = "Books";

fn plenty() -> MemoryShare {
    RequestMemory::new(1 << 30).nothing()
}

async fn ask(ground: &Ground, query: EntityQuery<'_>) -> EntityPage {
    ground.service.query_entities(&table(BOOKS), query, &mut plenty()).await.unwrap()
}

fn keys(page: &EntityPage) -> Vec<String> {
    page.entities.iter().map(|entity| format!("{}/{}", entity.partition, entity.row_key)).collect()
}

/// Partitions a, b and c of the entities 0 to 3, each with its row key as the number N.
async fn twelve() -> Ground {
    let ground = Ground::with(BOOKS).await;
    for partition in ["a", "b", "c"] {
        for row in 0..4 {
            ground.insert(BOOKS, partition, &row.to_string(), &[("N", number(row))]).await;
        }
    }
    ground.forget();
    ground
}

fn filtered(filter: &str) -> EntityQuery<'_> {
    EntityQuery { filter: Some(filter), ..EntityQuery::default() }
}

#[tokio::test]
async fn a_filter_over_keys_becomes_ranges_and_what_is_left_a_filter_of_rows() {
    let ground = twelve().await;
    for (filter, asked) in [
        ("", "scan /..end for 1000"),
        ("true", "scan /..end for 1000"),
        ("N eq 1", "scan /..end for 1000 filtered"),
        ("PartitionKey eq 'a'", "scan a/..a+ for 1000"),
        ("PartitionKey eq 'a' and N eq 1", "scan a/..a+ for 1000 filtered"),
        ("PartitionKey gt 'a'", "scan a+..end for 1000"),
        ("PartitionKey eq 'a' and RowKey gt '1'", "scan a/1+..a+ for 1000"),
        ("PartitionKey eq 'a' and RowKey le '1'", "scan a/..a/1+ for 1000"),
        ("PartitionKey eq 'a' and (RowKey eq '0' or RowKey eq '2')", "scan a/0..a/0+ a/2..a/2+ for 1000"),
        ("PartitionKey eq 'a' or PartitionKey eq 'c'", "scan a/..a+ c/..c+ for 1000"),
    ] {
        ask(&ground, filtered(filter)).await;
        assert_eq!(ground.asked(), [asked], "{filter}");
    }
}

#[tokio::test]
async fn an_entity_asked_for_by_both_keys_is_never_scanned_for() {
    let ground = twelve().await;
    let both = "PartitionKey eq 'b' and RowKey eq '2'";
    for (filter, expected) in [
        (both.to_owned(), vec!["b/2"]),
        ("RowKey eq '2' and 'b' eq PartitionKey".to_owned(), vec!["b/2"]),
        (format!("({both}) and N eq 2"), vec!["b/2"]),
        (format!("({both}) and N eq 3"), vec![]),
        (format!("{both} and PartitionKey ge 'a' and RowKey lt '9'"), vec!["b/2"]),
        (format!("({both}) or ({both})"), vec!["b/2"]),
    ] {
        let page = ask(&ground, filtered(&filter)).await;
        assert_eq!(ground.asked(), ["get b/2"], "{filter}");
        assert_eq!(keys(&page), expected, "{filter}");
        assert_eq!(page.examined, 1, "{filter}");
        assert_eq!(page.next, None, "{filter}");
    }
    let page = ask(&ground, filtered("PartitionKey eq 'b' and RowKey eq 'none'")).await;
    assert_eq!((keys(&page), page.examined), (vec![], 0));
}

#[tokio::test]
async fn what_a_filter_contradicts_is_not_read() {
    let ground = twelve().await;
    for filter in [
        "false",
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
        "PartitionKey lt 'a' and PartitionKey gt 'b'",
    ] {
        let page = ask(&ground, filtered(filter)).await;
        assert_eq!((keys(&page), page.examined), (vec![], 0), "{filter}");
    }
}

#[tokio::test]
async fn nothing_outside_of_the_callers_range_is_read() {
    let ground = twelve().await;
    let within = |start, end| Some(KeyRange { start, end });
    for (filter, within, asked) in [
        (None, within(Cut::before("a", "2"), Cut::after("b", "1")), "scan a/2..b/1+ for 1000"),
        (
            Some("PartitionKey eq 'a'"),
            within(Cut::before("a", "2"), Cut::after("b", "1")),
            "scan a/2..a+ for 1000",
        ),
        (Some("PartitionKey eq 'c'"), within(Cut::start(), Cut::after("b", "1")), "scan  for 1000"),
        // The rest may be one entity.
        (Some("PartitionKey eq 'a'"), Some(KeyRange::entity("a", "1")), "get a/1"),
        (Some("PartitionKey eq 'a' and RowKey eq '1'"), Some(KeyRange::partition("b")), "scan  for 1000"),
    ] {
        ask(&ground, EntityQuery { filter, within, ..EntityQuery::default() }).await;
        assert_eq!(ground.asked(), [asked], "{filter:?}");
    }
}

#[tokio::test]
async fn a_continuation_goes_on_at_its_place() {
    let ground = twelve().await;
    let from = |partition: &str, row: Option<&str>| Some((partition.to_owned(), row.map(str::to_owned)));
    for (filter, from, asked) in [
        (None, from("b", None), "scan b/..end for 1000"),
        (None, from("b", Some("2")), "scan b/2..end for 1000"),
        (Some("PartitionKey eq 'b'"), from("b", Some("2")), "scan b/2..b+ for 1000"),
        (Some("PartitionKey eq 'b'"), from("a", Some("2")), "scan b/..b+ for 1000"),
        (Some("PartitionKey eq 'b'"), from("c", None), "scan  for 1000"),
        (Some("PartitionKey eq 'a' and (RowKey eq '0' or RowKey eq '2')"), from("a", Some("1")), "get a/2"),
    ] {
        ask(&ground, EntityQuery { filter, from: from.clone(), ..EntityQuery::default() }).await;
        assert_eq!(ground.asked(), [asked], "{filter:?} {from:?}");
    }
}

#[tokio::test]
async fn pages_of_any_size_put_together_are_the_answer() {
    let ground = twelve().await;
    for (filter, expected) in [
        ("", 12),
        ("N eq 1 or N eq 3", 6),
        ("PartitionKey ne 'b'", 8),
        ("PartitionKey eq 'a' and (RowKey eq '0' or RowKey eq '2')", 2),
        ("PartitionKey eq 'a' and RowKey eq '2'", 1),
        ("N gt 100", 0),
    ] {
        let all = keys(&ask(&ground, filtered(filter)).await);
        assert_eq!(all.len(), expected, "{filter}");
        for top in 1..=13 {
            let (mut found, mut from) = (Vec::new(), None);
            loop {
                let query = EntityQuery { top: Some(top), from, ..filtered(filter) };
                let page = ask(&ground, query).await;
                assert!(page.entities.len() <= top);
                found.extend(keys(&page));
                assert!(found.len() <= all.len(), "{filter}, {top} at a time: {found:?}");
                from = page.next.map(|EntityKey { partition, row }| {
                    (partition.as_str().to_owned(), Some(row.as_str().to_owned()))
                });
                if from.is_none() {
                    break;
                }
            }
            assert_eq!(found, all, "{filter}, {top} at a time");
        }
    }
}

#[tokio::test]
async fn no_more_rows_are_asked_for_than_a_page_may_hold() {
    let ground = twelve().await;
    for (top, asked) in [
        (None, "scan /..end for 1000"),
        (Some(7), "scan /..end for 7"),
        (Some(limits::PAGE_ENTITIES_MAX + 1), "scan /..end for 1000"),
        (Some(0), "find Books"),
    ] {
        ask(&ground, EntityQuery { top, ..EntityQuery::default() }).await;
        assert_eq!(ground.asked(), [asked], "{top:?}");
    }
}

#[test]
fn a_top_is_a_number_up_to_the_limit() {
    for (text, expected) in [
        ("0", Ok(0)),
        ("1", Ok(1)),
        (" 7 ", Ok(7)),
        ("1000", Ok(1000)),
        ("1001", Err(common::Refusal::InputNotValid)),
        ("-1", Err(common::Refusal::InputNotValid)),
        ("", Err(common::Refusal::InputNotValid)),
        ("ten", Err(common::Refusal::InputNotValid)),
        ("99999999999999999999999", Err(common::Refusal::InputNotValid)),
    ] {
        assert_eq!(EntityQuery::top(text), expected, "{text:?}");
    }
}

#[tokio::test]
async fn the_table_is_looked_for_before_the_filter_is_read() {
    let ground = twelve().await;
    let wrong = || filtered("N eq");
    let missing = ground.service.query_entities(&table("Films"), wrong(), &mut plenty()).await;
    assert_eq!(refused(missing), Refusal::TableNotFound);
    ground.forget();
    let found = ground.service.query_entities(&table(BOOKS), wrong(), &mut plenty()).await;
    assert!(matches!(refused(found), Refusal::Syntax { .. }));
    assert_eq!(ground.asked(), ["find Books"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_without_the_memory_for_it_is_refused_before_it_reads() {
    let ground = twelve().await;
    let long = format!("N eq 1{}", " or N eq 1".repeat(5_000));
    let mut little = RequestMemory::new(64 * 1024).nothing();
    let outcome = ground.service.query_entities(&table(BOOKS), filtered(&long), &mut little).await;
    assert_eq!(refused(outcome), common::Refusal::Busy);
    assert_eq!(ground.asked(), Vec::<String>::new());
    let mut much = plenty();
    ground.service.query_entities(&table(BOOKS), filtered(&long), &mut much).await.unwrap();
}

#[tokio::test]
async fn what_a_page_takes_is_held_until_its_answer_is_written() {
    let ground = Ground::with(BOOKS).await;
    let text = model::Value::Binary(vec![7; 50_000]);
    for row in ["1", "2", "3"] {
        ground.insert(BOOKS, "p", row, &[("A", text.clone())]).await;
    }
    for filter in [None, Some("PartitionKey eq 'p' and RowKey eq '1'")] {
        let mut held = plenty();
        let query = EntityQuery { filter, ..EntityQuery::default() };
        let page = ground.service.query_entities(&table(BOOKS), query, &mut held).await.unwrap();
        let needed = page.entities.bytes();
        assert!(needed > 50_000, "{filter:?}");
        assert_eq!(held.bytes(), needed - FREE_BYTES, "{filter:?}");
    }
}

#[tokio::test]
async fn a_damaged_row_is_a_fault_to_a_filter_that_reads_it() {
    let ground = twelve().await;
    let both = "PartitionKey eq 'b' and RowKey eq '2'";
    for (row, filter) in [(&b"no row"[..], format!("{both} and N eq 2")), (b"", format!("{both} and N ne 2"))]
    {
        ground.find_next(row);
        let outcome = ground.service.query_entities(&table(BOOKS), filtered(&filter), &mut plenty()).await;
        assert!(matches!(outcome, Err(service::Error::Fault(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_key_that_no_entity_can_have_finds_none() {
    let ground = twelve().await;
    for filter in ["PartitionKey eq 'b' and RowKey eq 'a/b'", "PartitionKey eq 'b' and RowKey eq '\u{1}'"] {
        let page = ask(&ground, filtered(filter)).await;
        assert_eq!((keys(&page), page.examined), (vec![], 0), "{filter}");
    }
}
