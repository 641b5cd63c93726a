//! Intra-partition secondary index: one transaction writes each entity twice, under its number and under its address.

use partita_client::{partition_key, property, row_key};
use partita_client_patterns::intra_index::IntraIndex;
use serde::{Deserialize, Serialize};

use crate::cost::Class;
use crate::stage::{Outcome, Stage, at_once};

const EMPLOYEES: u64 = 100;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    #[serde(rename = "PartitionKey")]
    department: String,
    #[serde(rename = "RowKey")]
    number: String,
    email: String,
    age: i32,
}

fn employee(number: u64) -> Employee {
    let (department, email) = ("Sales".to_owned(), format!("e{number}@example.org"));
    Employee { department, number: format!("{number:06}"), email, age: 40 }
}

pub async fn run(stage: &Stage) -> Outcome {
    let table = stage.table("Employees").await?;
    let employees = IntraIndex::new(&table, "empid").unique("email", "Email");
    at_once((1..=EMPLOYEES).map(|number| {
        let employees = &employees;
        async move { employees.insert(&employee(number)).await }
    }))
    .await?;
    stage.say(&format!("{EMPLOYEES} employees, each as empid_000017 and as email_e17@example.org"));
    stage.same("rows of the table", table.query().count().await?, 2 * EMPLOYEES)?;

    stage.get::<Employee>("by number", &table, "Sales", "empid_000017").await?;
    let by_email = stage.get::<Employee>("by address", &table, "Sales", "email_e17@example.org").await?;
    stage.scanned("an address", by_email.cost, 1)?;
    let found: Vec<Employee> = employees.find("Sales", "email", "e17@example.org").await?;
    stage.same("whom the address finds", found, vec![employee(17)])?;
    let without = partition_key().eq("Sales").and(row_key().starts_with("empid_"));
    let without = table.query().filter(without.and(property("Email").eq("e17@example.org")));
    let scan =
        stage.look::<Employee>(Class::PartitionScan, "by address, without the index", &without).await?;
    stage.same("found without the index", scan.cost.returned, 1)?;
    stage.scanned("an address without the index", scan.cost, EMPLOYEES)?;

    let stored = employees.get::<Employee>("Sales", "000017").await?;
    let moved = Employee { email: "new@example.org".to_owned(), ..stored.entity.clone() };
    stage.timed("a new address: one transaction", employees.replace(&moved, &stored.etag)).await?;
    let by = async |email: &str| employees.find::<Employee>("Sales", "email", email).await;
    stage.same("whom the new address finds", by("new@example.org").await?, vec![moved.clone()])?;
    stage.same("whom the old address finds", by("e17@example.org").await?, vec![])?;
    let by_number = employees.get::<Employee>("Sales", "000017").await?;
    stage.same("what the number finds", &by_number.entity, &moved)?;

    let taken = Employee { email: "e18@example.org".to_owned(), ..moved.clone() };
    let refused = employees.replace(&taken, &by_number.etag).await.err();
    stage.same("an address that another has", refused.and_then(|error| error.status()), Some(409))?;
    let refused = employees.replace(&moved, &stored.etag).await.err();
    stage.same("a change of an old version", refused.and_then(|error| error.status()), Some(412))?;
    stage.same("whose the address stays", by("e18@example.org").await?, vec![employee(18)])?;

    employees.delete("Sales", "000017", &by_number.etag).await?;
    stage.same("rows after one has left", table.query().count().await?, 2 * (EMPLOYEES - 1))
}
