//! What every Table service offers, through this client. Each test runs on Partita and on Azurite.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{services, table, unique};
use futures_util::TryStreamExt as _;
use partita_client::{
    AccessPolicy, AccountSas, Continuation, DateTime, ETag, Entity, Filter, Guid, Match, Operation,
    OperationKind, StoredEntity, TablePermissions, TableSas, TableService, Transaction, Value, partition_key,
    property, row_key,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    #[serde(rename = "PartitionKey")]
    department: String,
    #[serde(rename = "RowKey")]
    id: String,
    name: String,
    age: i32,
    salary: Option<f64>,
    hired: DateTime,
    badge: Guid,
    holidays: i64,
}

fn employee(id: &str, age: i32) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id: id.to_owned(),
        name: "Jun Cao".to_owned(),
        age,
        salary: Some(1.5),
        hired: DateTime::parse("2014-05-06T07:08:09.1234567Z").unwrap(),
        badge: Guid([7; 16]),
        holidays: 1 << 40,
    }
}

#[tokio::test]
async fn tables_are_created_listed_and_dropped() {
    for service in services() {
        let prefix = unique("Come");
        let names: Vec<_> = ["C", "A", "B"].iter().map(|letter| format!("{prefix}{letter}")).collect();
        for name in &names {
            let table = service.table(name).unwrap();
            assert!(!table.exists().await.unwrap());
            assert!(table.create_if_missing().await.unwrap());
            assert!(!table.create_if_missing().await.unwrap());
            assert!(table.create().await.unwrap_err().is_conflict());
            assert!(table.exists().await.unwrap());
        }
        let filter = property("TableName").starts_with(&prefix);
        let mut found: Vec<String> = service.tables(Some(filter)).try_collect().await.unwrap();
        found.sort();
        let mut expected = names.clone();
        expected.sort();
        assert_eq!(found, expected);
        for name in &names {
            service.table(name).unwrap().drop().await.unwrap();
            assert!(!service.table(name).unwrap().exists().await.unwrap());
        }
        let gone = service.table(&names[0]).unwrap();
        assert!(gone.drop().await.unwrap_err().is_not_found());
        assert_eq!(gone.insert(&Entity::new("p", "r")).await.unwrap_err().code(), Some("TableNotFound"));
    }
}

#[tokio::test]
async fn every_type_is_read_as_it_was_written() {
    for service in services() {
        let table = table(&service, "Types").await;
        let entity = Entity::new("p", "r")
            .with("String", "a \"quoted\" línea\n\u{1f600}")
            .with("Empty", "")
            .with("Boolean", true)
            .with("Int32", i32::MIN)
            .with("Int64", i64::MAX)
            .with("Double", 0.1)
            .with("Whole", 5.0)
            .with("Infinite", f64::INFINITY)
            .with("DateTime", DateTime::parse("1999-12-31T23:59:59.9999999Z").unwrap())
            .with("Guid", Guid([0xab; 16]))
            .with("Binary", vec![0_u8, 255, 10]);
        let etag = table.insert(&entity).await.unwrap();
        let found: StoredEntity<Entity> = table.get("p", "r").await.unwrap();
        assert_eq!((&found.entity, &found.etag), (&entity, &etag), "{}", service.url());
        assert!(found.timestamp.is_some());
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn keys_may_contain_nearly_every_character() {
    let keys = [
        "",
        " ",
        "o'clock",
        "''",
        "100%",
        "%41",
        "a+b",
        "a b",
        "a&b=c",
        "ä\u{1f600}",
        "(x)",
        "a,b;c:d@e",
        "$!*~",
    ];
    for service in services() {
        let table = table(&service, "Keys").await;
        for key in keys {
            table.upsert_replace(&Entity::new(key, "r").with("Key", key)).await.unwrap();
            table.upsert_merge(&Entity::new("row", key).with("Key", key)).await.unwrap();
        }
        for key in keys {
            let found: StoredEntity<Entity> = table.get(key, "r").await.unwrap();
            assert_eq!((found.partition_key.as_str(), found.text("Key")), (key, Some(key)));
            let found: Vec<StoredEntity<Entity>> =
                table.query().filter(partition_key().eq("row").and(row_key().eq(key))).all().await.unwrap();
            assert_eq!(found.len(), 1, "{key:?} at {}", service.url());
            table.delete(key, "r", &found_etag(&table, key).await).await.unwrap();
        }
        assert_eq!(table.query().filter(row_key().eq("r")).count().await.unwrap(), 0);
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn entities_are_written_and_read_as_json() {
    for service in services() {
        let table = table(&service, "Json").await;
        let json = |row: &str| {
            format!(r#"{{"PartitionKey":"p","RowKey":"{row}","L@odata.type":"Edm.Int64","L":"7","D":1.5}}"#)
        };
        table.apply(Operation::json(OperationKind::Insert, "p", "0", json("0"))).await.unwrap();
        let rest = ["1", "2"].map(|row| Operation::json(OperationKind::UpsertReplace, "p", row, json(row)));
        table.submit(rest.into_iter().collect()).await.unwrap();
        let again = table.apply(Operation::json(OperationKind::Insert, "p", "0", json("0"))).await;
        assert!(again.unwrap_err().is_conflict());

        let (mut rows, mut from) = (Vec::new(), None);
        loop {
            let page = table.query().page_size(2).json_page(from.as_ref()).await.unwrap();
            let read: serde_json::Value = serde_json::from_slice(&page.json).unwrap();
            for entity in read["value"].as_array().unwrap() {
                let read = Entity::from_json(entity.to_string().as_bytes()).unwrap();
                assert_eq!(read.properties, Entity::new("", "").with("L", 7_i64).with("D", 1.5).properties);
                rows.push(read.row_key);
            }
            // A continuation token can be saved and parsed again.
            from = page
                .next
                .map(|next| Continuation::new(next.partition_key(), next.row_key().map(str::to_owned)));
            if from.is_none() {
                break;
            }
        }
        assert_eq!(rows, ["0", "1", "2"]);
        table.drop().await.unwrap();
    }
}

async fn found_etag(table: &partita_client::Table, key: &str) -> ETag {
    table.get::<Entity>(key, "r").await.unwrap().etag
}

#[tokio::test]
async fn a_struct_is_an_entity() {
    for service in services() {
        let table = table(&service, "Struct").await;
        let ann = Employee { salary: None, ..employee("1", 30) };
        table.insert(&ann).await.unwrap();
        let found: StoredEntity<Employee> = table.get("Sales", "1").await.unwrap();
        assert_eq!(*found, ann);
        let dynamic: StoredEntity<Entity> = table.get("Sales", "1").await.unwrap();
        assert_eq!(dynamic.get("Holidays"), Some(&Value::Int64(1 << 40)));
        assert_eq!(dynamic.get("Salary"), None);
        assert!(table.find::<Employee>("Sales", "2").await.unwrap().is_none());
        assert!(table.get::<Employee>("Sales", "2").await.unwrap_err().is_not_found());
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_write_with_an_old_etag_is_refused() {
    for service in services() {
        let table = table(&service, "Versions").await;
        let first = table.insert(&Entity::new("p", "r").with("A", 1).with("B", 1)).await.unwrap();
        assert!(table.insert(&Entity::new("p", "r")).await.unwrap_err().is_conflict());
        let second = table.merge(&Entity::new("p", "r").with("A", 2), &first).await.unwrap();
        assert_ne!(first, second);
        let stale = table.replace(&Entity::new("p", "r"), &first).await.unwrap_err();
        assert!(stale.is_changed() && stale.code() == Some("UpdateConditionNotSatisfied"), "{stale}");
        assert!(table.delete("p", "r", &first).await.unwrap_err().is_changed());
        let found: StoredEntity<Entity> = table.get("p", "r").await.unwrap();
        assert_eq!((found.get("A"), found.get("B")), (Some(&2.into()), Some(&1.into())));
        table.replace(&Entity::new("p", "r").with("C", 3), &second).await.unwrap();
        let found: StoredEntity<Entity> = table.get("p", "r").await.unwrap();
        assert_eq!(found.entity, Entity::new("p", "r").with("C", 3));
        assert!(table.replace(&Entity::new("p", "x"), Match::Any).await.unwrap_err().is_not_found());
        table.delete("p", "r", Match::Any).await.unwrap();
        assert!(!table.delete_if_there("p", "r").await.unwrap());
        table.drop().await.unwrap();
    }
}

/// Twenty-five employees, of 20 to 44 years.
async fn filled(service: &TableService) -> partita_client::Table {
    let table = table(service, "Query").await;
    let mut transaction = Transaction::new();
    for age in 20..45 {
        transaction.insert(&employee(&format!("{age:03}"), age)).unwrap();
    }
    table.submit(transaction).await.unwrap();
    table
}

#[tokio::test]
async fn queries_return_the_matching_entities() {
    for service in services() {
        let table = filled(&service).await;
        let check = async |filter: Filter, expected: usize| {
            let found: Vec<StoredEntity<Employee>> =
                table.query().filter(filter.clone()).all().await.unwrap();
            assert_eq!(found.len(), expected, "{filter} at {}", service.url());
            assert!(found.is_sorted_by_key(|employee| employee.id.clone()));
        };
        check(partition_key().eq("Sales"), 25).await;
        check(partition_key().eq("Sales").and(row_key().between("030", "040")), 10).await;
        check(row_key().starts_with("03"), 10).await;
        check(property("Age").ge(40).or(property("Age").lt(22)), 7).await;
        check(property("Age").eq(30).not(), 24).await;
        check(property("Hired").le(employee("", 0).hired).and(property("Holidays").gt(5_i64)), 25).await;
        check(property("Badge").eq(Guid([7; 16])), 25).await;
        check(property("Name").eq("x' or Name ne '"), 0).await;
        check(Filter::text("Age ge 20 and Age le 21"), 2).await;
        let first = table.query().filter(property("Age").gt(40)).first::<Employee>().await.unwrap().unwrap();
        assert_eq!(first.age, 41);
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_projection_leaves_the_rest_out() {
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "PascalCase")]
    struct Name {
        name: String,
        age: Option<i32>,
    }
    for service in services() {
        let table = filled(&service).await;
        let found: Vec<StoredEntity<Name>> = table.query().select(["Name"]).take(3).all().await.unwrap();
        assert_eq!(found.len(), 3);
        assert!(
            found.iter().all(|row| row.entity == Name { name: "Jun Cao".to_owned(), age: None }),
            "{found:?}"
        );
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn each_page_continues_after_the_previous_one() {
    for service in services() {
        let table = filled(&service).await;
        let query = table.query().page_size(10);
        let (mut kept, mut sizes) = (None::<String>, Vec::new());
        loop {
            // Only from its text, as another process would.
            let from = kept.as_deref().map(|text| text.parse::<Continuation>().unwrap());
            let page = query.page::<Entity>(from.as_ref()).await.unwrap();
            sizes.push(page.entities.len());
            match page.next {
                Some(next) => kept = Some(next.to_string()),
                None => break,
            }
        }
        assert_eq!(sizes.iter().sum::<usize>(), 25, "{sizes:?}");
        assert!(sizes.len() >= 3, "{sizes:?}");
        let streamed: Vec<StoredEntity<Entity>> = query.clone().stream().try_collect().await.unwrap();
        assert_eq!(streamed.len(), 25);
        assert_eq!(query.take(15).all::<Entity>().await.unwrap().len(), 15);
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn several_types_share_a_table() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Department {
        #[serde(rename = "PartitionKey")]
        name: String,
        #[serde(rename = "RowKey")]
        row: String,
        kind: String,
        heads: i32,
    }
    #[derive(Debug)]
    enum Row {
        Employee(Employee),
        Department(Department),
    }
    for service in services() {
        let table = table(&service, "Mixed").await;
        table.insert(&employee("1", 30)).await.unwrap();
        let department = Department {
            name: "Sales".to_owned(),
            row: "department".to_owned(),
            kind: "department".to_owned(),
            heads: 1,
        };
        table.insert(&department).await.unwrap();
        let rows: Vec<Row> = table
            .query()
            .resolve(|entity| match entity.text("Kind") {
                Some("department") => Ok(Row::Department(entity.to()?)),
                _ => Ok(Row::Employee(entity.to()?)),
            })
            .try_collect()
            .await
            .unwrap();
        let [Row::Employee(one), Row::Department(other)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((one.age, other.heads), (30, 1));
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_is_all_or_nothing() {
    for service in services() {
        let table = table(&service, "Batch").await;
        let etag = table.insert(&Entity::new("p", "old").with("A", 1)).await.unwrap();
        let mut transaction = Transaction::new();
        transaction.insert(&Entity::new("p", "new")).unwrap();
        transaction.merge(&Entity::new("p", "old").with("B", 2), &etag).unwrap();
        transaction.upsert_replace(&Entity::new("p", "other")).unwrap();
        let etags = table.submit(transaction).await.unwrap();
        assert_eq!(etags.iter().filter(|etag| etag.is_some()).count(), 3, "{etags:?}");
        let found: StoredEntity<Entity> = table.get("p", "old").await.unwrap();
        assert_eq!(Some(&found.etag), etags[1].as_ref());

        let mut doomed = Transaction::new();
        doomed.insert(&Entity::new("p", "a")).unwrap();
        doomed.delete("p", "other", Match::Any);
        doomed.insert(&Entity::new("p", "new")).unwrap();
        let error = table.submit(doomed).await.unwrap_err();
        assert_eq!((error.index(), error.code()), (Some(2), Some("EntityAlreadyExists")), "{error}");
        assert!(table.find::<Entity>("p", "a").await.unwrap().is_none());
        assert!(table.find::<Entity>("p", "other").await.unwrap().is_some());
        assert!(table.submit(Transaction::new()).await.unwrap().is_empty());
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_token_grants_what_it_says() {
    for service in services() {
        let table = table(&service, "Token").await;
        table.insert(&Entity::new("p", "r")).await.unwrap();
        let soon = DateTime::now().plus(std::time::Duration::from_secs(600));
        let reading = table.sign(&TableSas::new(TablePermissions::READ, soon)).unwrap();
        let account = service.sign(&AccountSas::read_only(soon)).unwrap();
        for token in [reading, account] {
            let guest = TableService::with_sas(&service.url(), &token).unwrap().build().unwrap();
            let guest = guest.table(table.name()).unwrap();
            assert!(guest.find::<Entity>("p", "r").await.unwrap().is_some());
            let refused = guest.insert(&Entity::new("p", "x")).await.unwrap_err();
            assert_eq!(refused.status(), Some(403), "{refused}");
            assert!(guest.sign(&TableSas::of_policy("x")).is_err());
        }
        let all = service.sign(&AccountSas::all(soon)).unwrap();
        let friend = TableService::with_sas(&service.url(), &all).unwrap().build().unwrap();
        friend.table(table.name()).unwrap().insert(&Entity::new("p", "x")).await.unwrap();
        table.drop().await.unwrap();
    }
}

#[tokio::test]
async fn policies_are_stored_and_read() {
    for service in services() {
        let table = table(&service, "Policy").await;
        let soon = DateTime::parse("2040-01-02T03:04:05Z").unwrap();
        let policy = |id: &str, permissions| AccessPolicy {
            id: id.to_owned(),
            start: DateTime::parse("2020-01-02T03:04:05Z"),
            expiry: Some(soon),
            permissions: Some(permissions),
        };
        let policies = [policy("readers", TablePermissions::READ), policy("all", TablePermissions::ALL)];
        table.set_policies(&policies).await.unwrap();
        assert_eq!(table.policies().await.unwrap(), policies, "{}", service.url());
        table.set_policies(&[]).await.unwrap();
        assert!(table.policies().await.unwrap().is_empty());
        table.drop().await.unwrap();
    }
}
