//! Indexes, lists, the outbox and the archive on a service: what they find, what they refuse, and late steps.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use crate::support;
use std::time::Duration;

use partita_client::{DateTime, Entity, Match, StoredEntity, Table, TableService, Transaction, property};
use partita_client_patterns::archive::{Archive, EntityLocation};
use partita_client_patterns::index_entities::{ListIndex, PartitionLists};
use partita_client_patterns::index_key::IndexKey;
use partita_client_patterns::indexed::IndexedTable;
use partita_client_patterns::inter_index::InterIndex;
use partita_client_patterns::intra_index::IntraIndex;
use partita_client_patterns::outbox::Outbox;
use partita_client_patterns::steps::OutboxStep;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    partition_key: String,
    row_key: String,
    email: String,
    team: String,
}

fn employee(number: &str, email: &str, team: &str) -> Employee {
    Employee {
        partition_key: "Sales".to_owned(),
        row_key: number.to_owned(),
        email: email.to_owned(),
        team: team.to_owned(),
    }
}

fn numbers(found: Vec<Employee>) -> Vec<String> {
    found.into_iter().map(|employee| employee.row_key).collect()
}

fn stored_numbers(found: Vec<StoredEntity<Employee>>) -> Vec<String> {
    numbers(found.into_iter().map(StoredEntity::into_inner).collect())
}

#[tokio::test]
async fn an_entity_is_found_by_every_index_of_its_partition() {
    let Some(service) = support::service() else { return };
    let table = support::table(&service, "Intra").await;
    let employees = IntraIndex::new(&table, "empid").unique("email", "Email").index("team", "Team");
    let find = async |index: &str, value: &str| numbers(employees.find("Sales", index, value).await.unwrap());

    let jones = employee("1/1", "j@x", "red");
    employees.insert(&jones).await.unwrap();
    employees.insert(&employee("2", "k@x", "red")).await.unwrap();
    assert_eq!(find("email", "j@x").await, ["1/1"]);
    assert_eq!(find("team", "red").await, ["1/1", "2"]);
    assert_eq!(find("team", "re").await, [""; 0]);

    let found = employees.get::<Employee>("Sales", "1/1").await.unwrap();
    assert_eq!(found.entity, jones);
    employees.replace(&employee("1/1", "i@x", "red"), &found.etag).await.unwrap();
    assert_eq!(find("email", "j@x").await, [""; 0]);
    assert_eq!(find("email", "i@x").await, ["1/1"]);
    let stale = employees.replace(&jones, &found.etag).await.unwrap_err();
    assert!(stale.is_changed(), "{stale}");

    employees.delete("Sales", "1/1", Match::Any).await.unwrap();
    assert_eq!(find("team", "red").await, ["2"]);
    assert_eq!(table.query().count().await.unwrap(), 3);
    let fault = employees.find::<Employee>("Sales", "mail", "x").await.unwrap_err().to_string();
    assert_eq!(fault, "there is no index \"mail\"; there are email, team");
}

#[tokio::test]
async fn a_unique_value_belongs_to_one_entity() {
    let Some(service) = support::service() else { return };
    let table = support::table(&service, "Unique").await;
    let employees = IntraIndex::new(&table, "empid").unique("email", "Email");
    employees.insert(&employee("1", "j@x", "red")).await.unwrap();
    assert!(employees.insert(&employee("2", "j@x", "red")).await.unwrap_err().is_conflict());
    employees.insert(&employee("2", "k@x", "red")).await.unwrap();
    assert!(employees.replace(&employee("2", "j@x", "red"), Match::Any).await.unwrap_err().is_conflict());
    assert_eq!(table.query().count().await.unwrap(), 4);
}

/// The entities, the table of their indexes, and the table with them.
async fn indexed(service: &TableService) -> (Table, Table, IndexedTable) {
    let table = support::table(service, "Indexed").await;
    let other = service.table(&support::unique("IndexesOf")).unwrap();
    let outbox = Outbox::new(service, table.name()).unwrap();
    let employees =
        IndexedTable::new(outbox).with(InterIndex::new("email", other.name(), "Email")).with(ListIndex::new(
            "team",
            other.name(),
            IndexKey::of(|entity| entity.text("Team").map(str::to_lowercase)),
        ));
    employees.create_tables_if_missing().await.unwrap();
    (table, other, employees)
}

#[tokio::test]
async fn an_entity_is_found_by_indexes_in_another_table() {
    let Some(service) = support::service() else { return };
    let (table, other, employees) = indexed(&service).await;
    let find = async |index: &str, value: &str| stored_numbers(employees.find(index, value).await.unwrap());

    employees.insert(&employee("1", "j/x", "Red")).await.unwrap();
    let etag = employees.insert(&employee("2", "k/x", "red")).await.unwrap();
    assert_eq!(find("email", "j/x").await, ["1"]);
    assert_eq!(find("team", "red").await, ["1", "2"]);
    assert!(employees.insert(&employee("2", "l/x", "red")).await.unwrap_err().is_conflict());

    employees.replace(&employee("2", "j/x", "blue"), &etag).await.unwrap();
    assert!(employees.replace(&employee("2", "m/x", "blue"), &etag).await.unwrap_err().is_changed());
    assert_eq!(find("email", "j/x").await, ["1", "2"]);
    assert_eq!(find("email", "k/x").await, [""; 0]);
    assert_eq!(find("email", "m/x").await, [""; 0]);
    assert_eq!(find("team", "red").await, ["1"]);

    employees.delete("Sales", "1", Match::Any).await.unwrap();
    assert_eq!(find("email", "j/x").await, ["2"]);
    assert_eq!(employees.outbox().waiting().await.unwrap(), 0);
    assert_eq!(table.query().count().await.unwrap(), 1);

    let copies = InterIndex::new("email", other.name(), "Email");
    let copies: Vec<Employee> = copies.copies(employees.outbox(), "j/x").await.unwrap();
    assert_eq!(copies, [employee("2", "j/x", "blue")]);

    // Two removed copies are marked, until no step can be late any more.
    let marks = || other.query().filter(property("IndexLive").eq(false)).count();
    assert_eq!(marks().await.unwrap(), 2);
    assert_eq!(employees.collect(Duration::from_secs(3600)).await.unwrap(), 0);
    assert_eq!(employees.collect(Duration::ZERO).await.unwrap(), 2);
    assert_eq!(find("email", "j/x").await, ["2"]);
}

#[tokio::test]
async fn an_entity_changed_without_the_indexes_is_not_found_wrongly_and_can_be_mended() {
    let Some(service) = support::service() else { return };
    let (table, _, employees) = indexed(&service).await;
    let find = async |index: &str, value: &str| stored_numbers(employees.find(index, value).await.unwrap());
    employees.insert(&employee("1", "j", "red")).await.unwrap();
    table.upsert_replace(&employee("1", "k", "blue")).await.unwrap();
    for (index, old, new) in [("email", "j", "k"), ("team", "red", "blue")] {
        assert_eq!(find(index, old).await, [""; 0]);
        assert_eq!(find(index, new).await, [""; 0]);
        assert_eq!(employees.mend(index, old).await.unwrap(), 1);
        assert_eq!(employees.mend(index, old).await.unwrap(), 0);
    }
    employees.reindex("Sales", "1").await.unwrap();
    assert_eq!(find("email", "k").await, ["1"]);
    assert_eq!(find("team", "blue").await, ["1"]);
    assert_eq!(employees.mend("email", "k").await.unwrap(), 0);
}

#[tokio::test]
async fn a_value_that_cannot_be_a_key_is_refused_before_anything_is_written() {
    let Some(service) = support::service() else { return };
    let (table, _, employees) = indexed(&service).await;
    let fault = employees.insert(&employee("1", &"x".repeat(600), "red")).await.unwrap_err().to_string();
    assert!(
        fault.ends_with("is longer than 512 UTF-16 units; index a shorter value, or a hash of it"),
        "{fault}"
    );
    let many =
        (0..248).fold(Entity::new("Sales", "1"), |entity, number| entity.with(format!("P{number}"), 1));
    let fault = employees.insert(&many).await.unwrap_err().to_string();
    assert_eq!(fault, "an entity of 248 properties; indexed ones can have 246");
    assert_eq!(table.query().count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_list_in_a_partition_has_the_row_keys_of_a_value() {
    let Some(service) = support::service() else { return };
    let table = support::table(&service, "Lists").await;
    let employees = PartitionLists::new(&table).index("team", "Team");
    let rows = async |team: &str| employees.row_keys("Sales", "team", team).await.unwrap();
    employees.insert(&employee("2", "", "red")).await.unwrap();
    let etag = employees.insert(&employee("1", "", "red")).await.unwrap();
    assert!(employees.insert(&employee("1", "", "blue")).await.unwrap_err().is_conflict());
    assert_eq!(rows("red").await, ["1", "2"]);
    assert_eq!(rows("blue").await, [""; 0]);
    employees.replace(&employee("1", "", "blue"), &etag).await.unwrap();
    assert!(employees.replace(&employee("1", "", "green"), &etag).await.unwrap_err().is_changed());
    assert_eq!((rows("red").await, rows("blue").await), (vec!["2".to_owned()], vec!["1".to_owned()]));
    let found: Vec<StoredEntity<Employee>> = employees.find("Sales", "team", "blue").await.unwrap();
    assert_eq!(found[0].entity, employee("1", "", "blue"));
    employees.delete("Sales", "1", Match::Any).await.unwrap();
    assert_eq!(rows("blue").await, [""; 0]);
    // The one entity and its list.
    assert_eq!(table.query().count().await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_many_change_at_the_same_time_loses_no_member() {
    let Some(service) = support::service() else { return };
    let table = support::table(&service, "Crowd").await;
    let (_, _, indexed) = indexed(&service).await;
    let listed = PartitionLists::new(&table).index("team", "Team");
    let joining = (0..12).map(|number| {
        let (listed, indexed) = (listed.clone(), indexed.clone());
        tokio::spawn(async move {
            let employee = employee(&format!("{number:02}"), "", "red");
            listed.insert(&employee).await.unwrap();
            indexed.insert(&employee).await.unwrap();
        })
    });
    for join in joining.collect::<Vec<_>>() {
        join.await.unwrap();
    }
    assert_eq!(listed.row_keys("Sales", "team", "red").await.unwrap().len(), 12);
    indexed.outbox().run_until_empty().await.unwrap();
    assert_eq!(indexed.find::<Entity>("team", "red").await.unwrap().len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_that_many_change_at_the_same_time_has_one_entry_in_each_index() {
    let Some(service) = support::service() else { return };
    let (_, other, employees) = indexed(&service).await;
    employees.insert(&employee("1", "0", "0")).await.unwrap();
    let changing = (1..9).map(|number: u32| {
        let employees = employees.clone();
        tokio::spawn(async move {
            let changed = employee("1", &number.to_string(), &(number % 3).to_string());
            employees.replace(&changed, Match::Any).await.unwrap();
        })
    });
    for change in changing.collect::<Vec<_>>() {
        change.await.unwrap();
    }
    employees.outbox().run_until_empty().await.unwrap();
    let now = employees.get::<Employee>("Sales", "1").await.unwrap();
    assert_eq!(other.query().filter(property("IndexLive").eq(true)).count().await.unwrap(), 1);
    assert_eq!(stored_numbers(employees.find("email", &now.email).await.unwrap()), ["1"]);
    for team in ["0", "1", "2"] {
        let found = stored_numbers(employees.find("team", team).await.unwrap());
        assert_eq!(found.len(), usize::from(now.team == team), "{team}");
        assert_eq!(employees.mend("team", team).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn steps_that_are_repeated_or_late_change_nothing() {
    let Some(service) = support::service() else { return };
    let (table, other) = (support::table(&service, "Steps").await, support::table(&service, "Targets").await);
    let outbox = Outbox::new(&service, table.name()).unwrap();
    let row = |number: i32| Entity::new("p", "r").with("Number", number);
    let commit = async |steps: &[OutboxStep]| {
        let mut transaction = Transaction::new();
        transaction.upsert_replace(&Entity::new("p", "primary")).unwrap();
        outbox.commit(transaction, steps).await.unwrap().settled
    };
    let found = async || other.find::<Entity>("p", "r").await.unwrap().map(StoredEntity::into_inner);

    let newer = |number| OutboxStep::upsert_newer(other.name(), &row(number), "Number").unwrap();
    assert!(commit(&[newer(2), newer(1), newer(2)]).await);
    assert_eq!(found().await, Some(row(2)));
    assert!(commit(&[OutboxStep::insert_if_absent(other.name(), &row(3)).unwrap()]).await);
    assert_eq!(found().await, Some(row(2)));
    assert!(commit(&[OutboxStep::delete_if(other.name(), &row(1)).unwrap()]).await);
    assert_eq!(found().await, Some(row(2)));
    assert!(commit(&[OutboxStep::delete_if(other.name(), &row(2)).unwrap()]).await);
    assert_eq!(found().await, None);

    let insert = [OutboxStep::insert(other.name(), &row(4)).unwrap()];
    assert!(commit(&insert).await && commit(&insert).await);
    assert_eq!(found().await, Some(row(4)));
    let delete = [OutboxStep::delete(other.name(), "p", "r").unwrap()];
    assert!(commit(&delete).await && commit(&delete).await && commit(&insert).await);
    assert_eq!(found().await, None);
    assert_eq!(outbox.collect_marks(other.name(), Duration::from_secs(3600)).await.unwrap(), 0);
    assert_eq!(outbox.collect_marks(other.name(), Duration::ZERO).await.unwrap(), 1);
    assert!(commit(&[OutboxStep::upsert(other.name(), &row(5)).unwrap()]).await);
    assert_eq!(found().await, Some(row(5)));
}

#[tokio::test]
async fn steps_that_keep_failing_are_poisoned_and_can_be_requeued() {
    let Some(service) = support::service() else { return };
    let table = support::table(&service, "Poison").await;
    let missing = service.table(&support::unique("Missing")).unwrap();
    let pause = Duration::from_millis(1);
    let outbox = Outbox::new(&service, table.name()).unwrap().attempts_max(3).pauses(pause, pause);
    let mut transaction = Transaction::new();
    transaction.insert(&Entity::new("p", "r")).unwrap();
    let step = OutboxStep::insert(missing.name(), &Entity::new("p", "copy")).unwrap();
    let committed = outbox.commit(transaction, &[step]).await.unwrap();
    assert!(!committed.settled && committed.etags.len() == 1);
    let tally = outbox.run_until_empty().await.unwrap();
    assert_eq!((tally.handled, tally.failed, tally.poisoned), (0, 1, 1));
    let poisoned = outbox.poisoned().await.unwrap();
    assert_eq!((poisoned.len(), poisoned[0].0.as_str()), (1, "p"));
    assert!(poisoned[0].1.reason.contains("TableNotFound"), "{}", poisoned[0].1.reason);

    missing.create().await.unwrap();
    assert!(outbox.queue("p").requeue(&poisoned[0].1.message.id).await.unwrap());
    assert_eq!(outbox.run_until_empty().await.unwrap().handled, 1);
    assert!(missing.find::<Entity>("p", "copy").await.unwrap().is_some());
    assert_eq!(outbox.poisoned().await.unwrap(), []);
}

#[tokio::test]
async fn a_refused_change_leaves_no_steps() {
    let Some(service) = support::service() else { return };
    let table = support::table(&service, "Refused").await;
    let outbox = Outbox::new(&service, table.name()).unwrap();
    let mut transaction = Transaction::new();
    transaction.delete("p", "r", Match::Any);
    let step = OutboxStep::upsert(table.name(), &Entity::new("q", "r")).unwrap();
    assert!(outbox.commit(transaction, &[step]).await.unwrap_err().is_not_found());
    assert_eq!(table.query().count().await.unwrap(), 0);
    let fault = outbox.commit(Transaction::new(), &[]).await.unwrap_err().to_string();
    assert_eq!(fault, "a commit without changes; its partition holds the message, so name one");
    let mut transaction = Transaction::new();
    transaction.insert(&Entity::new("p", "r")).unwrap();
    let large =
        OutboxStep::upsert(table.name(), &Entity::new("q", "r").with("Text", "x".repeat(30_000))).unwrap();
    let fault = outbox.commit(transaction, &vec![large; 16]).await.unwrap_err().to_string();
    assert!(fault.starts_with("16 steps of 481"), "{fault}");
    assert_eq!(table.query().count().await.unwrap(), 0);
}

#[tokio::test]
async fn an_entity_moves_with_all_its_properties_and_back() {
    let Some(service) = support::service() else { return };
    let (current, former) =
        (support::table(&service, "Current").await, support::table(&service, "Former").await);
    let archive = Archive::new(&service, current.name(), former.name()).unwrap();
    let back = Archive::new(&service, former.name(), current.name()).unwrap();
    let jones = employee("1", "j@x", "red");
    let etag = current.insert(&jones).await.unwrap();
    current
        .merge(&Entity::new("Sales", "1").with("Left", DateTime::parse("2024-01-31").unwrap()), Match::Any)
        .await
        .unwrap();
    assert!(archive.store("Sales", "1", &etag).await.unwrap_err().is_changed());
    assert!(archive.store("Sales", "2", Match::Any).await.unwrap_err().is_not_found());
    assert!(archive.store("Sales", "1", Match::Any).await.unwrap().settled);
    assert_eq!(current.query().count().await.unwrap(), 0);
    let Some(EntityLocation::Destination(found)) = archive.find::<Employee>("Sales", "1").await.unwrap()
    else {
        panic!()
    };
    assert_eq!(found.entity, jones);
    assert!(former.get::<Entity>("Sales", "1").await.unwrap().get("Left").is_some());

    current.insert(&jones).await.unwrap();
    let fault = archive.store("Sales", "1", Match::Any).await.unwrap_err().to_string();
    assert!(fault.ends_with("in partition \"Sales\" already; delete or rename one of the two"), "{fault}");
    current.delete("Sales", "1", Match::Any).await.unwrap();
    assert!(back.store("Sales", "1", Match::Any).await.unwrap().settled);
    assert!(matches!(archive.find::<Employee>("Sales", "1").await.unwrap(), Some(EntityLocation::Source(_))));
    assert_eq!(archive.find::<Employee>("Sales", "3").await.unwrap(), None);
    assert_eq!(archive.collect(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(former.query().count().await.unwrap(), 0);
    let fault = Archive::new(&service, "Current", "current").unwrap_err().to_string();
    assert_eq!(fault, "entities can't be moved from current to current; name two tables");
}

#[tokio::test]
async fn an_entity_is_found_during_its_move() {
    let Some(service) = support::service() else { return };
    let (current, former) =
        (support::table(&service, "Leaving").await, support::table(&service, "Left").await);
    let archive = Archive::new(&service, current.name(), former.name()).unwrap();
    let jones = Entity::new("Sales", "1").with("Email", "j@x");
    // As a process leaves it that dies during the move.
    let entity = r#"{"PartitionKey":"Sales","RowKey":"1","Email":"j@x"}"#;
    let steps = format!(r#"[{{"table":"{}","step":"insert","mark":"m","entity":{entity}}}]"#, former.name());
    archive.outbox().queue("Sales").enqueue("1", &steps).await.unwrap();
    assert_eq!(archive.find("Sales", "1").await.unwrap(), Some(EntityLocation::Moving(jones.clone())));
    assert_eq!(archive.outbox().heal().await.unwrap().handled, 1);
    let Some(EntityLocation::Destination(found)) = archive.find::<Entity>("Sales", "1").await.unwrap() else {
        panic!()
    };
    assert_eq!(found.entity, jones);
}

#[tokio::test]
async fn a_move_does_not_overwrite_an_existing_entity() {
    let Some(service) = support::service() else { return };
    let (current, former) =
        (support::table(&service, "Leaving").await, support::table(&service, "Left").await);
    let outbox = Outbox::new(&service, current.name()).unwrap();
    former.insert(&employee("1", "other", "")).await.unwrap();
    current.insert(&employee("1", "j@x", "red")).await.unwrap();
    let mut leave = Transaction::new();
    leave.delete("Sales", "1", Match::Any);
    let step = OutboxStep::insert(former.name(), &employee("1", "j@x", "red")).unwrap();
    assert!(!outbox.commit(leave, &[step]).await.unwrap().settled);
    assert_eq!(former.get::<Employee>("Sales", "1").await.unwrap().email, "other");
    assert_eq!(outbox.waiting().await.unwrap(), 1);
}

#[tokio::test]
async fn a_running_outbox_makes_the_steps_of_dead_processes() {
    let Some(service) = support::service() else { return };
    let (table, other) = (support::table(&service, "Left").await, support::table(&service, "Found").await);
    let outbox = Outbox::new(&service, table.name()).unwrap().sweep_pause(Duration::from_millis(5));
    let (told, shutdown) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.run(async { drop(shutdown.await) }).await }
    });
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let steps = format!(r#"[{{"table":"{}","step":"upsert","entity":{entity}}}]"#, other.name());
    for partition in ["a", "b"] {
        outbox.queue(partition).enqueue("left", &steps).await.unwrap();
    }
    while outbox.waiting().await.unwrap() > 0 {
        tokio::task::yield_now().await;
    }
    drop(told);
    assert_eq!(running.await.unwrap().handled, 2);
    assert!(other.find::<Entity>("p", "r").await.unwrap().is_some());
}
