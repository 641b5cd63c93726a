//! The metadata that the service keeps with a table and with an account.

use bytes::Bytes;
use model::ServiceKind;
use store::{Error, TableRef};

use crate::Shared;
use crate::fixtures::{account, created, of_service, table};

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
