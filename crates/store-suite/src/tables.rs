//! Tables are created, found, listed and dropped.

use bytes::Bytes;
use model::{KeyRange, ServiceKind};
use store::{Error, TableRef};

use crate::Shared;
use crate::fixtures::{account, created, filled, insert, key, of_service, scan, table, value_of};

pub async fn a_table_is_found_in_any_case_under_its_first_name(engine: Shared) {
    created(&engine, "Books").await;
    assert_eq!(engine.find_table(&table("bOOKS")).await.unwrap().as_str(), "Books");
    assert!(matches!(engine.create_table(&table("BOOKS"), None).await, Err(Error::TableAlreadyExists)));
    engine.apply(&table("books"), insert("p", "r", 7)).await.unwrap();
    assert_eq!(value_of(&engine, &table("Books"), "p", "r").await, Some(7));
}

pub async fn accounts_do_not_share_tables(engine: Shared) {
    let mine = created(&engine, "Books").await;
    let theirs = TableRef { account: account("another"), ..mine.clone() };
    assert!(matches!(engine.find_table(&theirs).await, Err(Error::TableNotFound)));
    engine.create_table(&theirs, None).await.unwrap();
    engine.apply(&mine, insert("p", "r", 1)).await.unwrap();
    assert_eq!(value_of(&engine, &theirs, "p", "r").await, None);
    engine.drop_table(&theirs).await.unwrap();
    assert_eq!(value_of(&engine, &mine, "p", "r").await, Some(1));
}

pub async fn tables_are_listed_in_order_and_resumed(engine: Shared) {
    for name in ["delta", "Beta", "alpha", "Gamma", "betaMax"] {
        created(&engine, name).await;
    }
    engine.create_table(&TableRef { account: account("another"), ..table("zeta") }, None).await.unwrap();
    let (mut seen, mut from) = (Vec::new(), Some(String::new()));
    while let Some(start) = from {
        let page =
            engine.list_tables(&account("devstoreaccount1"), ServiceKind::Table, &start, 2).await.unwrap();
        assert!(page.names.len() <= 2);
        seen.extend(page.names.iter().map(|name| name.as_str().to_owned()));
        from = page.next;
    }
    assert_eq!(seen, ["alpha", "Beta", "betaMax", "delta", "Gamma"]);
    let page =
        engine.list_tables(&account("devstoreaccount1"), ServiceKind::Table, "betb", 10).await.unwrap();
    assert_eq!(page.names.len(), 2, "if no table has the start's name, the list begins with the next one");
    assert_eq!(page.next, None);
}

pub async fn tables_of_services_are_apart(engine: Shared) {
    let mine = account("devstoreaccount1");
    let listed = async |service, from: &str, limit| {
        let page = engine.list_tables(&mine, service, from, limit).await.unwrap();
        (page.names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>(), page.next)
    };
    let table = created(&engine, "Books").await;
    created(&engine, "zzz").await;
    for (service, name) in [
        (ServiceKind::Queue, "books"),
        (ServiceKind::Queue, "0-first"),
        (ServiceKind::Queue, "zzz"),
        (ServiceKind::Blob, "$root"),
        (ServiceKind::Blob, "books"),
    ] {
        let of = of_service(service, name);
        assert!(matches!(engine.find_table(&of).await, Err(Error::TableNotFound)), "{of}");
        engine.create_table(&of, Some(Bytes::from(of.to_string()))).await.unwrap();
        assert!(matches!(engine.create_table(&of, None).await, Err(Error::TableAlreadyExists)), "{of}");
        assert_eq!(engine.find_table(&of).await.unwrap().as_str(), name);
        assert_eq!(engine.table_metadata(&of).await.unwrap(), Some(Bytes::from(of.to_string())));
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(listed(ServiceKind::Table, "", 10).await, (names(&["Books", "zzz"]), None));
    assert_eq!(listed(ServiceKind::Queue, "", 10).await, (names(&["0-first", "books", "zzz"]), None));
    assert_eq!(listed(ServiceKind::Blob, "", 10).await, (names(&["$root", "books"]), None));
    assert_eq!(listed(ServiceKind::Queue, "", 1).await, (names(&["0-first"]), Some("books".to_owned())));
    assert_eq!(listed(ServiceKind::Queue, "bo", 1).await, (names(&["books"]), Some("zzz".to_owned())));
    assert_eq!(listed(ServiceKind::Table, "bo", 1).await, (names(&["Books"]), Some("zzz".to_owned())));
    assert_eq!(listed(ServiceKind::Blob, "bookt", 10).await, (Vec::new(), None));

    let queue = of_service(ServiceKind::Queue, "books");
    engine.apply(&queue, insert("p", "r", 1)).await.unwrap();
    assert_eq!(value_of(&engine, &table, "p", "r").await, None);
    engine.apply(&table, insert("p", "r", 2)).await.unwrap();
    engine.drop_table(&queue).await.unwrap();
    assert_eq!(value_of(&engine, &table, "p", "r").await, Some(2));
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    assert_eq!(listed(ServiceKind::Queue, "", 10).await, (names(&["0-first", "zzz"]), None));
    assert_eq!(engine.find_table(&of_service(ServiceKind::Blob, "books")).await.unwrap().as_str(), "books");
}

pub async fn nothing_is_found_in_a_missing_table(engine: Shared) {
    let missing = table("Missing");
    assert!(matches!(engine.find_table(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table(&missing).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.get(&missing, &key("p", "r")).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.apply(&missing, insert("p", "r", 1)).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.scan(&missing, scan(vec![KeyRange::all()], 1)).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.table_metadata(&missing).await, Err(Error::TableNotFound)));
    let replaced = engine.replace_table_metadata(&missing, None, Bytes::new()).await;
    assert!(matches!(replaced, Err(Error::TableNotFound)));
}

pub async fn a_dropped_table_leaves_nothing(engine: Shared) {
    let table = filled(&engine).await;
    assert!(engine.replace_table_metadata(&table, None, Bytes::from_static(b"policies")).await.unwrap());
    engine.drop_table(&table).await.unwrap();
    assert!(matches!(engine.get(&table, &key("p0", "r00")).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table(&table).await, Err(Error::TableNotFound)));
    engine.create_table(&table, None).await.unwrap();
    let page = engine.scan(&table, scan(vec![KeyRange::all()], 10)).await.unwrap();
    assert!(page.entities.is_empty());
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    engine.apply(&table, insert("p0", "r00", 9)).await.unwrap();
    assert_eq!(value_of(&engine, &table, "p0", "r00").await, Some(9));
}
