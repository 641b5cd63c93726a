//! The metadata that the service keeps with a table and with an account.

use bytes::Bytes;
use model::ServiceKind;
use store::{Error, TableRef};

use crate::Shared;
use crate::fixtures::{account, created, insert, of_service, table, value_of};

pub async fn metadata_belongs_to_its_table_or_account(engine: Shared) {
    let table = created(&engine, "Books").await;
    let (mine, theirs) = (account("devstoreaccount1"), account("another"));
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), None);
    for text in [&b"one"[..], b"two", b""] {
        let before = engine.table_metadata(&table).await.unwrap();
        let text_bytes = Bytes::copy_from_slice(text);
        assert!(engine.replace_table_metadata(&table, before, text_bytes).await.unwrap());
        assert_eq!(engine.table_metadata(&table).await.unwrap().as_deref(), Some(text));
        let before = engine.service_metadata(&mine, ServiceKind::Table).await.unwrap();
        assert!(
            engine
                .replace_service_metadata(&mine, ServiceKind::Table, before, Bytes::copy_from_slice(text))
                .await
                .unwrap()
        );
        assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap().as_deref(), Some(text));
    }
    assert_eq!(engine.service_metadata(&theirs, ServiceKind::Table).await.unwrap(), None);
}

pub async fn a_table_can_be_created_with_its_metadata(engine: Shared) {
    let document = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    let table = table("Books");
    engine.create_table(&table, document("first")).await.unwrap();
    assert_eq!(engine.table_metadata(&table).await.unwrap(), document("first"));
    let again = engine.create_table(&table, document("second")).await;
    assert!(matches!(again, Err(Error::TableAlreadyExists)));
    assert_eq!(
        engine.table_metadata(&table).await.unwrap(),
        document("first"),
        "it was not this one's to set"
    );
    engine.drop_table(&table).await.unwrap();
    engine.create_table(&table, document("")).await.unwrap();
    assert_eq!(engine.table_metadata(&table).await.unwrap(), document(""));
    engine.drop_table(&table).await.unwrap();
    engine.create_table(&table, None).await.unwrap();
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
}

pub async fn table_metadata_is_replaced_only_if_it_is_as_expected(engine: Shared) {
    let document = |text: &'static str| Bytes::from_static(text.as_bytes());
    let (table, other) = (created(&engine, "Books").await, created(&engine, "Authors").await);
    let replace = async |expected: Option<&'static str>, by| {
        engine.replace_table_metadata(&table, expected.map(document), document(by)).await.unwrap()
    };
    assert!(!replace(Some(""), "two").await, "nothing is there");
    assert_eq!(engine.table_metadata(&table).await.unwrap(), None);
    assert!(replace(None, "one").await);
    assert!(!replace(None, "two").await, "something is there");
    assert!(!replace(Some("other"), "two").await);
    assert_eq!(engine.table_metadata(&table).await.unwrap(), Some(document("one")));
    assert!(replace(Some("one"), "two").await);
    assert_eq!(engine.table_metadata(&table).await.unwrap(), Some(document("two")));
    assert_eq!(engine.table_metadata(&other).await.unwrap(), None);
    // Of many who start from the same, one gets through.
    let attempts = (0..8).map(|n| {
        let (engine, table) = (engine.clone(), table.clone());
        let by = Bytes::from(format!("by {n}"));
        tokio::spawn(async move {
            engine.replace_table_metadata(&table, Some(Bytes::from_static(b"two")), by).await
        })
    });
    let mut replaced = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        replaced += usize::from(attempt.await.unwrap().unwrap());
    }
    assert_eq!(replaced, 1);
}

pub async fn a_table_is_dropped_only_if_its_metadata_is_as_expected(engine: Shared) {
    let document = |text: &'static str| Bytes::from_static(text.as_bytes());
    let missing = engine.drop_table_if(&table("Missing"), None).await;
    assert!(matches!(missing, Err(Error::TableNotFound)));
    let (bare, books) = (created(&engine, "Bare").await, table("Books"));
    engine.create_table(&books, Some(document("one"))).await.unwrap();
    engine.apply(&books, insert("p", "r", 1)).await.unwrap();
    let drop = async |table: &TableRef, expected: Option<&'static str>| {
        engine.drop_table_if(table, expected.map(document)).await.unwrap()
    };
    assert!(!drop(&bare, Some("")).await, "nothing is there");
    assert!(!drop(&books, None).await, "something is there");
    assert!(!drop(&books, Some("two")).await);
    assert_eq!(engine.table_metadata(&books).await.unwrap(), Some(document("one")));
    assert_eq!(value_of(&engine, &books, "p", "r").await, Some(1));
    assert!(drop(&books, Some("one")).await);
    assert!(matches!(engine.find_table(&books).await, Err(Error::TableNotFound)));
    assert!(matches!(engine.drop_table_if(&books, Some(document("one"))).await, Err(Error::TableNotFound)));
    assert!(drop(&bare, None).await);
    assert!(matches!(engine.find_table(&bare).await, Err(Error::TableNotFound)));
}

/// Both start from the same document. If the drop succeeds, no change was answered as made; if a change was, the table stays.
pub async fn of_a_change_and_a_drop_at_once_one_is_refused(engine: Shared) {
    let document = Bytes::from_static(b"one");
    for n in 0..4 {
        let books = table(&format!("Books{n}"));
        engine.create_table(&books, Some(document.clone())).await.unwrap();
        let (changing, dropping) = (engine.clone(), engine.clone());
        let (changed, dropped) = (books.clone(), books.clone());
        let (expected, seen) = (Some(document.clone()), Some(document.clone()));
        let change = tokio::spawn(async move {
            changing.replace_table_metadata(&changed, expected, Bytes::from_static(b"two")).await
        });
        let drop = tokio::spawn(async move { dropping.drop_table_if(&dropped, seen).await });
        let (change, drop) = (change.await.unwrap(), drop.await.unwrap().unwrap());
        match change {
            Ok(changed) => assert_ne!(changed, drop, "one of the two"),
            Err(Error::TableNotFound) => assert!(drop),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(engine.find_table(&books).await.is_err(), drop);
    }
}

pub async fn service_metadata_is_replaced_only_if_it_is_as_expected(engine: Shared) {
    let mine = account("devstoreaccount1");
    let document = |text: &'static str| Bytes::from_static(text.as_bytes());
    let replace = async |expected: Option<&'static str>, by| {
        engine
            .replace_service_metadata(&mine, ServiceKind::Table, expected.map(document), document(by))
            .await
            .unwrap()
    };
    assert!(!replace(Some("one"), "two").await, "nothing is there");
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), None);
    assert!(replace(None, "one").await);
    assert!(!replace(None, "two").await, "something is there");
    assert!(!replace(Some("other"), "two").await);
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), Some(document("one")));
    assert!(replace(Some("one"), "two").await);
    // If many replace the same document, only one succeeds.
    let attempts = (0..8).map(|n| {
        let (engine, mine) = (engine.clone(), mine.clone());
        let by = Bytes::from(format!("by {n}"));
        tokio::spawn(async move {
            engine
                .replace_service_metadata(&mine, ServiceKind::Table, Some(Bytes::from_static(b"two")), by)
                .await
        })
    });
    let mut replaced = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        replaced += usize::from(attempt.await.unwrap().unwrap());
    }
    assert_eq!(replaced, 1);
}

pub async fn accounts_with_tables_or_metadata_are_listed(engine: Shared) {
    assert_eq!(engine.list_accounts().await.unwrap(), []);
    let of = |owner: &str, name| TableRef { account: account(owner), ..table(name) };
    for table in [of("zeta", "Books"), of("beta", "Books"), of("beta", "Authors")] {
        engine.create_table(&table, None).await.unwrap();
    }
    for (owner, service) in [("gamma", ServiceKind::Queue), ("beta", ServiceKind::Table)] {
        let cors = Bytes::from_static(b"cors");
        assert!(engine.replace_service_metadata(&account(owner), service, None, cors).await.unwrap());
    }
    assert_eq!(engine.list_accounts().await.unwrap(), ["beta", "gamma", "zeta"].map(account));
    engine.drop_table(&of("zeta", "Books")).await.unwrap();
    assert_eq!(engine.list_accounts().await.unwrap(), ["beta", "gamma"].map(account));
    let queue = TableRef { account: account("alpha"), ..of_service(ServiceKind::Queue, "my-queue") };
    engine.create_table(&queue, None).await.unwrap();
    assert_eq!(engine.list_accounts().await.unwrap(), ["alpha", "beta", "gamma"].map(account));
    engine.drop_table(&queue).await.unwrap();
    assert_eq!(engine.list_accounts().await.unwrap(), ["beta", "gamma"].map(account));
}

pub async fn documents_of_two_services_do_not_disturb_each_other(engine: Shared) {
    let mine = account("devstoreaccount1");
    let document = |service: ServiceKind, version: u8| Bytes::from(format!("{service:?} {version}"));
    for service in ServiceKind::ALL {
        // A document of another service does not fulfil the condition.
        assert_eq!(engine.service_metadata(&mine, service).await.unwrap(), None);
        for other in ServiceKind::ALL {
            let by = Bytes::from_static(b"never");
            let replaced =
                engine.replace_service_metadata(&mine, service, Some(document(other, 1)), by).await;
            assert!(!replaced.unwrap());
        }
        assert!(engine.replace_service_metadata(&mine, service, None, document(service, 1)).await.unwrap());
    }
    for changed in ServiceKind::ALL {
        let (before, after) = (document(changed, 1), document(changed, 2));
        assert!(engine.replace_service_metadata(&mine, changed, Some(before), after).await.unwrap());
        for service in ServiceKind::ALL {
            let expected = document(service, if service <= changed { 2 } else { 1 });
            assert_eq!(engine.service_metadata(&mine, service).await.unwrap(), Some(expected));
        }
    }
    assert_eq!(engine.list_accounts().await.unwrap(), [mine], "an account is listed once");
}
