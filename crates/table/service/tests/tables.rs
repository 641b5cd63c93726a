//! Create, delete, get and list tables.

use model::{Refusal, TableName, limits};
use service::TableQuery;

use crate::kit::{Ground, account, named, refused, table};

async fn with(names: &[&str]) -> Ground {
    let ground = Ground::empty();
    for name in names {
        ground.service.create_table(&table(name)).await.unwrap();
    }
    ground.forget();
    ground
}

#[tokio::test]
async fn names_have_no_case_and_are_shown_as_they_were_created() {
    let ground = with(&["Books"]).await;
    let name = ground.service.get_table(&table("bOOKS")).await.unwrap();
    assert_eq!(name.as_str(), "Books");
    assert_eq!(refused(ground.service.create_table(&table("BOOKS")).await), Refusal::TableAlreadyExists);
    ground.service.delete_table(&table("books")).await.unwrap();
    ground.service.create_table(&table("BOOKS")).await.unwrap();
    assert_eq!(ground.service.get_table(&table("Books")).await.unwrap().as_str(), "BOOKS");
}

#[tokio::test]
async fn a_missing_table_is_a_resource_to_operations_on_tables_alone() {
    let ground = with(&[]).await;
    let books = table("Books");
    assert_eq!(refused(ground.service.get_table(&books).await), common::Refusal::ResourceNotFound);
    assert_eq!(refused(ground.service.delete_table(&books).await), common::Refusal::ResourceNotFound);
    assert_eq!(refused(ground.service.require_table(&books).await), Refusal::TableNotFound);
}

#[tokio::test]
async fn the_name_of_the_set_of_tables_is_no_tables_name() {
    let ground = with(&[]).await;
    for name in ["Tables", "tables", "TABLES"] {
        assert_eq!(refused(ground.service.create_table(&table(name)).await), common::Refusal::InputNotValid);
    }
    assert_eq!(ground.asked(), Vec::<String>::new());
    ground.service.create_table(&table("Tables2")).await.unwrap();
}

#[tokio::test]
async fn the_services_own_tables_are_neither_dropped_nor_listed() {
    const METRICS: &str = "$MetricsCapacityBlob";
    let ground = with(&["Books", METRICS]).await;
    assert_eq!(
        refused(ground.service.delete_table(&table(METRICS)).await),
        common::Refusal::WritesNotAllowed
    );
    assert_eq!(ground.asked(), Vec::<String>::new());
    assert_eq!(list(&ground, None, None, None).await, "Books");
    assert_eq!(ground.service.get_table(&table(METRICS)).await.unwrap().as_str(), METRICS);
}

/// The names and the continuation, or the refusal.
async fn list(ground: &Ground, filter: Option<&str>, top: Option<usize>, from: Option<&str>) -> String {
    let query = TableQuery { filter, top, from: from.map(str::to_owned) };
    match ground.service.query_tables(&account(), query).await {
        Ok(page) => {
            let names: Vec<&str> = page.names.iter().map(TableName::as_str).collect();
            let next = page.next.map(|next| format!(" then {next}")).unwrap_or_default();
            format!("{}{next}", names.join(" "))
        }
        Err(error) => named(&refused(Err::<(), _>(error))),
    }
}

#[tokio::test]
async fn a_filter_compares_names_without_case() {
    let ground = with(&["Ant", "Bee", "CAT"]).await;
    for (filter, expected) in [
        ("TableName eq 'BEE'", "Bee"),
        ("TableName ne 'bee'", "Ant CAT"),
        ("TableName lt 'BEE'", "Ant"),
        ("TableName le 'bee'", "Ant Bee"),
        ("TableName gt 'bee'", "CAT"),
        ("TableName ge 'BEE'", "Bee CAT"),
        ("not (TableName eq 'bee')", "Ant CAT"),
        ("TableName ge 'b' and TableName lt 'C'", "Bee"),
        ("TableName eq 'ant' or TableName eq 'cat'", "Ant CAT"),
        ("TableName eq 'ant' and TableName eq 'cat'", ""),
        ("'bee' eq TableName", "Bee"),
        ("true", "Ant Bee CAT"),
        ("false", ""),
        // No table has such a property, so nothing is known to differ from it.
        ("Other eq 'x'", ""),
        ("Other eq true", "InputNotValid"),
        ("TableName", "InputNotValid"),
        ("not Other", "InputNotValid"),
        ("TableName eq 'ant' or Other", "InputNotValid"),
    ] {
        assert_eq!(list(&ground, Some(filter), None, None).await, expected, "{filter}");
    }
}

#[tokio::test]
async fn a_filter_that_is_none_is_refused_before_any_table_is_looked_at() {
    let ground = with(&["Ant"]).await;
    let query = TableQuery { filter: Some("TableName eq"), ..TableQuery::default() };
    let refusal = refused(ground.service.query_tables(&account(), query).await);
    assert!(matches!(refusal, Refusal::Syntax { .. }), "{refusal:?}");
    assert_eq!(ground.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_page_says_where_to_go_on() {
    let ground = with(&["Ant", "Bee", "CAT"]).await;
    for (filter, top, from, expected) in [
        (None, Some(0), None, ""),
        (None, Some(1), None, "Ant then bee"),
        (None, Some(2), None, "Ant Bee then cat"),
        (None, Some(3), None, "Ant Bee CAT"),
        (None, None, Some("b"), "Bee CAT"),
        (None, Some(1), Some("bee"), "Bee then cat"),
        (None, None, Some("d"), ""),
        // If no later name can match, there is no continuation.
        (Some("TableName eq 'ant'"), Some(1), None, "Ant"),
        (Some("TableName lt 'bee'"), Some(1), None, "Ant"),
        (Some("TableName le 'bee'"), Some(1), None, "Ant then bee"),
        (Some("TableName ne 'x'"), Some(1), None, "Ant then bee"),
    ] {
        assert_eq!(list(&ground, filter, top, from).await, expected, "{filter:?} {top:?} {from:?}");
    }
}

#[tokio::test]
async fn pages_of_any_size_give_every_table_once() {
    let names: Vec<String> = (0..23).map(|number| format!("T{number:03}x")).collect();
    let ground = with(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for top in [1, 2, 3, 22, 23, 24, limits::PAGE_ENTITIES_MAX + 1] {
        let (mut found, mut from) = (Vec::new(), None);
        loop {
            let query = TableQuery { filter: None, top: Some(top), from };
            let page = ground.service.query_tables(&account(), query).await.unwrap();
            assert!(page.names.len() <= top);
            found.extend(page.names.iter().map(|name| name.as_str().to_owned()));
            assert!(found.len() <= names.len(), "{top} at a time: {found:?}");
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(found, names, "{top} at a time");
    }
}

/// More tables than one call of the engine returns.
async fn many() -> (Ground, Vec<String>) {
    let names: Vec<String> =
        (0..limits::PAGE_ENTITIES_MAX + 5).map(|number| format!("T{number:04}x")).collect();
    let ground = with(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    (ground, names)
}

#[tokio::test]
async fn a_listing_ends_behind_the_last_name_that_it_can_find() {
    let (ground, _) = many().await;
    for (filter, calls) in [
        ("TableName eq 't0003x'", 1),
        ("TableName lt 't0003x'", 1),
        ("TableName eq 't0003x' or TableName lt 't0900x'", 1),
        ("TableName ge 't0003x' and TableName lt 't0005x'", 1),
        ("TableName gt 't0003x'", 2),
        ("TableName ne 't0003x' and Other ne 1", 2),
        ("not (TableName gt 't0003x')", 2),
    ] {
        list(&ground, Some(filter), None, None).await;
        assert_eq!(ground.asked().len(), calls, "{filter}");
    }
}

#[tokio::test]
async fn a_filter_that_few_tables_match_is_asked_of_all_of_them() {
    let (ground, names) = many().await;
    let last = names.last().unwrap();
    let filter = format!("TableName ge '{last}'");
    assert_eq!(list(&ground, Some(&filter), Some(1), None).await, *last);
}
