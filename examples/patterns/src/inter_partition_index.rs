//! Inter-partition secondary index: copies with another partition key in another table, which are updated a little
//! later.

use partita_client::{Entity, Match, partition_key, property};
use partita_client_patterns::indexed::IndexedTable;
use partita_client_patterns::inter_index::InterIndex;
use partita_client_patterns::outbox::Outbox;

use crate::cost::Class;
use crate::stage::{Outcome, Stage, at_once};

const EMPLOYEES: u64 = 100;
const DEPARTMENTS: u64 = 20;

fn department(number: u64) -> String {
    format!("d{:02}", number % DEPARTMENTS)
}

fn employee(number: u64, email: &str) -> Entity {
    Entity::new(department(number), format!("{number:06}")).with("Email", email)
}

pub async fn run(stage: &Stage) -> Outcome {
    let (name, by) = (stage.name("Employees"), stage.name("EmployeesBy"));
    let outbox = Outbox::new(stage.service(), &name)?;
    let employees = IndexedTable::new(outbox).with(InterIndex::new("email", &by, "Email"));
    employees.create_tables_if_missing().await?;
    at_once((1..=EMPLOYEES).map(|number| {
        let (employees, entity) = (&employees, employee(number, &format!("e{number}@example.org")));
        async move { employees.insert(&entity).await }
    }))
    .await?;
    stage.say(&format!("{EMPLOYEES} employees in {DEPARTMENTS} partitions; whose is an address?"));
    let (table, index) = (stage.table("Employees").await?, stage.table("EmployeesBy").await?);

    let entry = index.query().filter(partition_key().eq("email~e17@example.org"));
    let entry = stage.look::<Entity>(Class::Range, "the index: all with this address", &entry).await?;
    stage.same("entries of the address", entry.cost.returned, 1)?;
    stage.scanned_nothing_else("an address by the index", entry.cost)?;
    stage
        .get::<Entity>("the employee, to be sure it still has it", &table, &department(17), "000017")
        .await?;
    let scan = table.query().filter(property("Email").eq("e17@example.org"));
    let scan = stage.look::<Entity>(Class::TableScan, "without the index", &scan).await?;
    stage.scanned("an address without the index", scan.cost, table.query().count().await?)?;

    // `find` does the first two of these.
    let by = async |email: &str| -> Outcome<Vec<String>> {
        let found = employees.find::<Entity>("email", email).await?;
        Ok(found.into_iter().map(|stored| stored.into_inner().row_key).collect())
    };
    stage.same("whom the address finds", by("e17@example.org").await?, vec!["000017".to_owned()])?;
    let moved = employee(17, "new@example.org");
    let change = employees.replace(&moved, Match::Any);
    stage.timed("a new address: a transaction, and two entries of the index", change).await?;
    stage.same("whom the new address finds", by("new@example.org").await?, vec!["000017".to_owned()])?;
    stage.same("whom the old address finds", by("e17@example.org").await?, vec![])?;
    stage.same("changes that wait for a worker", employees.outbox().waiting().await?, 0)?;

    // A write that bypasses the index makes it outdated. It then finds too few, but never a wrong employee.
    table.merge(&employee(17, "past@example.org"), Match::Any).await?;
    stage.same("whom the index finds for the old value", by("new@example.org").await?, vec![])?;
    stage.same("whom it finds for the new value", by("past@example.org").await?, vec![])?;
    employees.reindex(&department(17), "000017").await?;
    stage.same("whom it finds once told", by("past@example.org").await?, vec!["000017".to_owned()])
}
