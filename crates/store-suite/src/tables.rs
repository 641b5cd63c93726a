//! Tables are created, found, listed and dropped.

use bytes::Bytes;
use model::KeyRange;
use store::{Error, TableRef};

use crate::Shared;
use crate::fixtures::{account, created, filled, insert, key, scan, table, value_of};

pub async fn a_table_is_found_in_any_case_under_its_first_name(engine: Shared) {
    created(&engine, "Books").await;
    assert_eq!(engine.find_table(&table("bOOKS")).await.unwrap().as_str(), "Books");
    assert!(matches!(engine.create_table(&table("BOOKS")).await, Err(Error::TableAlreadyExists)));
    engine.apply(&table("books"), insert("p", "r", 7)).await.unwrap();
    assert_eq!(value_of(&engine, &table("Books"), "p", "r").await, Some(7));
}

pub async fn accounts_do_not_share_tables(engine: Shared) {
    let mine = created(&engine, "Books").await;
    let theirs = TableRef { account: account("another"), name: mine.name.clone() };
    assert!(matches!(engine.find_table(&theirs).await, Err(Error::TableNotFound)));
    engine.create_table(&theirs).await.unwrap();
    engine.apply(&mine, insert("p", "r", 1)).await.unwrap();
    assert_eq!(value_of(&engine, &theirs, "p", "r").await, None);
    engine.drop_table(&theirs).await.unwrap();
    assert_eq!(value_of(&engine, &mine, "p", "r").await, Some(1));
}

pub async fn tables_are_listed_in_order_and_resumed(engine: Shared) {
    for name in ["delta", "Beta", "alpha", "Gamma", "betaMax"] {
        created(&engine, name).await;
    }
    engine.create_table(&TableRef { account: account("another"), ..table("zeta") }).await.unwrap();
    let (mut seen, mut from) = (Vec::new(), Some(String::new()));
    while let Some(start) = from {
        let page = engine.list_tables(&account("devstoreaccount1"), &start, 2).await.unwrap();
        assert!(page.names.len() <= 2);
        seen.extend(page.names.iter().map(|name| name.as_str().to_owned()));
        from = page.next;
    }
    assert_eq!(seen, ["alpha", "Beta", "betaMax", "delta", "Gamma"]);
    let page = engine.list_tables(&account("devstoreaccount1"), "betb", 10).await.unwrap();
    assert_eq!(page.names.len(), 2, "if no table has the start's name, the list begins with the next one");
    assert_eq!(page.next, None);
}

pub async fn nothing_is_found_in_a_missing_table(engine: Shared) {
    let missing = table("Missing");
    assert!(matches!(engine.find_table(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.get(&missing, &key("p", "r")).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.apply(&missing, insert("p", "r", 1)).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.scan(&missing, scan(vec![KeyRange::all()], 1)).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.table_metadata(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.set_table_metadata(&missing, Bytes::new()).await, Err(Error::TableNotFound)));
}

pub async fn a_dropped_table_leaves_nothing(engine: Shared) {
    let table = filled(&engine).await;
    engine.set_table_metadata(&table, Bytes::from_static(b"policies")).await.unwrap();
    engine.drop_table(&table).await.unwrap();
    assert!(matches!(engine.get(&table, &key("p0", "r00")).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table(&table).await, Err(Error::TableNotFound)));
    engine.create_table(&table).await.unwrap();
    let page = engine.scan(&table, scan(vec![KeyRange::all()], 10)).await.unwrap();
    assert!(page.entities.is_empty());
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    engine.apply(&table, insert("p0", "r00", 9)).await.unwrap();
    assert_eq!(value_of(&engine, &table, "p0", "r00").await, Some(9));
}
