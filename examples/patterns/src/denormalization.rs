//! Denormalization: a department has its manager's name and address, so that one read is enough.

use partita_client::{Entity, Match, Transaction, partition_key, row_key};
use serde::{Deserialize, Serialize};

use crate::cost::{Class, Cost};
use crate::stage::{Outcome, Stage, fill, read};

const DEPARTMENTS: u32 = 40;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Manager {
    #[serde(rename = "PartitionKey")]
    department: String,
    #[serde(rename = "RowKey")]
    key: String,
    name: String,
    email: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Department {
    #[serde(rename = "PartitionKey")]
    id: String,
    #[serde(rename = "RowKey")]
    key: String,
    /// The key of the manager. A normalized design has only this here.
    manager_key: String,
    manager_name: String,
    manager_email: String,
}

fn id(number: u32) -> String {
    format!("d{number:03}")
}

fn manager(number: u32) -> Manager {
    let name = format!("Manager {number}");
    let key = format!("employee_{:06}", number * 7);
    Manager { department: id(number), key, name, email: format!("m{number}@example.org") }
}

fn department(number: u32) -> Department {
    let Manager { department, key, name, email } = manager(number);
    let own = "department".to_owned();
    Department { id: department, key: own, manager_key: key, manager_name: name, manager_email: email }
}

pub async fn run(stage: &Stage) -> Outcome {
    let table = stage.table("Company").await?;
    fill(&table, (1..=DEPARTMENTS).map(department)).await?;
    fill(&table, (1..=DEPARTMENTS).map(manager)).await?;
    stage.say(&format!("who leads each of {DEPARTMENTS} departments?"));

    let (mut normalized, mut denormalized) = (Cost::sum([]), Cost::sum([]));
    for number in 1..=DEPARTMENTS {
        let at = |row: &str| table.query().filter(partition_key().eq(id(number)).and(row_key().eq(row)));
        let found = read::<Department>(&at("department")).await?;
        let Some(department) = found.entities.first() else {
            return stage.holds("the department is found", false);
        };
        let second = read::<Manager>(&at(&department.manager_key)).await?;
        let told = second.entities.first().map(|manager| (manager.name.as_str(), manager.email.as_str()));
        let copied = (department.manager_name.as_str(), department.manager_email.as_str());
        stage.same("the copy is the manager's", told, Some(copied))?;
        denormalized = denormalized.and(found.cost);
        normalized = normalized.and(found.cost).and(second.cost);
    }
    for (what, cost, requests) in [
        ("by the manager's own entity", normalized, 2 * DEPARTMENTS),
        ("by the copy in the department", denormalized, DEPARTMENTS),
    ] {
        stage.tell(Class::Point, what, cost);
        stage.same(what, cost.requests, requests)?;
        stage.scanned(what, cost, requests.into())?;
    }

    // Manager and department are in one partition, so no reader ever sees the two disagree.
    let (partition, new) = (id(7), "new@example.org");
    let mut change = Transaction::new();
    let key = manager(7).key;
    change.merge(&Entity::new(&partition, &key).with("Email", new), Match::Any)?;
    change.merge(&Entity::new(&partition, "department").with("ManagerEmail", new), Match::Any)?;
    stage.timed("a new address: one transaction, two entities", table.submit(change)).await?;
    let department = table.get::<Department>(&partition, "department").await?;
    let manager = table.get::<Manager>(&partition, &key).await?;
    stage.same("both have the new address", (&*department.manager_email, &*manager.email), (new, new))?;
    stage.same("the rest of the department stays", &department.manager_name, &manager.name)
}
