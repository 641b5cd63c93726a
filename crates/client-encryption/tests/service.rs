//! Tables whose entities are encrypted, on Partita and on Azurite.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{services, table};
use partita_client::{
    Entity, Error, Match, Operation, OperationKind, StoredEntity, TableService, Transaction, Value,
};
use partita_client_encryption::{Encrypted, EncryptionPolicy, LocalKey};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Order {
    partition_key: String,
    row_key: String,
    item: String,
    card: Encrypted<String>,
}

#[tokio::test]
async fn only_the_key_shows_encrypted_properties() {
    for service in services() {
        let plain = table(&service, "Secret").await;
        let policy = || EncryptionPolicy::new(LocalKey::new("local:1", &[7; 32]).unwrap());
        let orders = plain.with_encryption(policy());
        let order = Order {
            partition_key: "ann".to_owned(),
            row_key: "1".to_owned(),
            item: "tea".to_owned(),
            card: "4000 1234".to_owned().into(),
        };
        let refused = plain.insert(&order).await.unwrap_err();
        assert!(refused.to_string().contains("with_encryption"), "{refused}");
        orders.insert(&order).await.unwrap();
        let mut more = Transaction::new();
        more.insert(&Order { row_key: "2".to_owned(), ..order.clone() }).unwrap();
        orders.submit(more).await.unwrap();

        for row in ["1", "2"] {
            let stored: StoredEntity<Entity> = plain.get("ann", row).await.unwrap();
            assert!(matches!(stored.get("Card"), Some(Value::Binary(_))), "{stored:?}");
            assert_eq!(stored.text("Item"), Some("tea"));
        }
        let found: StoredEntity<Order> = orders.get("ann", "1").await.unwrap();
        assert_eq!(found.entity, order);
        let all: Vec<StoredEntity<Order>> = orders.query().all().await.unwrap();
        assert!(all.len() == 2 && all.iter().all(|found| found.card == order.card));
        let cards: Vec<StoredEntity<Entity>> = orders.query().select(["Card"]).all().await.unwrap();
        assert!(
            cards.iter().all(|found| found.text("Card") == Some("4000 1234") && found.get("Item").is_none())
        );
        let merged = orders.merge(&order, Match::Any).await.unwrap_err();
        assert!(merged.to_string().contains("can't be merged"), "{merged}");
        let stranger =
            plain.with_encryption(EncryptionPolicy::new(LocalKey::new("local:1", &[8; 32]).unwrap()));
        assert!(matches!(stranger.get::<Order>("ann", "1").await, Err(Error::Encryption(_))));
        plain.drop().await.unwrap();
    }
}

#[tokio::test]
async fn an_entity_in_json_is_not_sent_to_an_encrypted_table() {
    let service = TableService::from_connection_string("UseDevelopmentStorage=true").unwrap();
    let key = LocalKey::new("local:1", &[7; 32]).unwrap();
    let orders = service.table("Orders").unwrap().with_encryption(EncryptionPolicy::new(key));
    let operation = || Operation::json(OperationKind::UpsertReplace, "ann", "1", "{}");
    let alone = orders.apply(operation()).await.unwrap_err();
    let together = orders.submit([operation()].into_iter().collect()).await.unwrap_err();
    for error in [alone, together] {
        assert!(matches!(&error, Error::Invalid(why) if why.contains("without_encryption")), "{error}");
    }
}
