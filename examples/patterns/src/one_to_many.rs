//! One to many, in three ways: departments with their employees in one partition, in two tables, and denormalized.
//!
//! Each way reads a department with its employees, moves the department to another building, and hires an employee. The
//! costs differ.

use partita_client::{Entity, Match, Table, Transaction, partition_key};

use crate::cost::{Class, Cost};
use crate::stage::{Outcome, Stage, fill, read};

const DEPARTMENTS: u32 = 10;
const EMPLOYEES: u32 = 60;
const BUILDING: &str = "Building";
const DEPARTMENT: &str = "department";

/// The costs of one way, to be compared.
struct Costs {
    read: Cost,
    moved: Written,
    hired: Written,
}

/// The cost of a change, counted while it is made.
#[derive(Default)]
struct Written {
    requests: u32,
    entities: u32,
}

impl Written {
    async fn submit(&mut self, table: &Table, transaction: Transaction) -> Outcome {
        self.requests += 1;
        self.entities += transaction.len() as u32;
        table.submit(transaction).await?;
        Ok(())
    }

    async fn merge(&mut self, table: &Table, entity: &Entity) -> Outcome {
        let mut one = Transaction::new();
        one.merge(entity, Match::Any)?;
        self.submit(table, one).await
    }

    async fn insert(&mut self, table: &Table, entity: &Entity) -> Outcome {
        let mut one = Transaction::new();
        one.insert(entity)?;
        self.submit(table, one).await
    }
}

fn ids() -> impl Iterator<Item = String> {
    (1..=DEPARTMENTS).map(|number| format!("d{number:02}"))
}

fn department(id: &str, row: &str) -> Entity {
    Entity::new(id, row).with(BUILDING, "North").with("Headcount", i64::from(EMPLOYEES))
}

fn employee(id: &str, number: u32) -> Entity {
    Entity::new(id, format!("employee_{number:06}")).with("Name", format!("Employee {number}"))
}

fn employees(id: &str) -> impl Iterator<Item = Entity> {
    (1..=EMPLOYEES).map(move |number| employee(id, number))
}

pub async fn run(stage: &Stage) -> Outcome {
    stage.say(&format!("{DEPARTMENTS} departments of {EMPLOYEES} employees each"));
    let ways = [
        ("one partition", one_partition(stage).await?),
        ("two tables", two_tables(stage).await?),
        ("denormalized", denormalized(stage).await?),
    ];
    stage.say("");
    stage.say("requests to (entities written)    read        move        hire");
    for (way, Costs { read, moved, hired }) in &ways {
        let [moved, hired] =
            [moved, hired].map(|written| format!("{} ({})", written.requests, written.entities));
        stage.say(&format!("{way:<24} {:>13} {moved:>11} {hired:>11}", read.requests));
    }
    let counts = ways.map(|(_, costs)| [costs.read.requests, costs.moved.entities, costs.hired.requests]);
    stage.same("what each way takes", counts, [[1, 1, 1], [2, 1, 2], [1, EMPLOYEES, 1]])
}

async fn one_partition(stage: &Stage) -> Outcome<Costs> {
    let table = stage.table("OnePartition").await?;
    for id in ids() {
        fill(&table, [department(&id, DEPARTMENT)].into_iter().chain(employees(&id))).await?;
    }
    let all = table.query().filter(partition_key().eq("d03"));
    let found = stage.look::<Entity>(Class::Range, "one partition: department and employees", &all).await?;
    stage.same(
        "the department comes first",
        found.entities.first().map(|row| row.row_key.as_str()),
        Some(DEPARTMENT),
    )?;
    stage.same("it and its employees", found.entities.len() as u32, 1 + EMPLOYEES)?;
    stage.scanned("one partition", found.cost, u64::from(1 + EMPLOYEES))?;

    let (mut moved, mut hired) = (Written::default(), Written::default());
    moved.merge(&table, &Entity::new("d03", DEPARTMENT).with(BUILDING, "South")).await?;
    let mut hire = Transaction::new();
    hire.insert(&employee("d03", EMPLOYEES + 1))?;
    let headcount = Entity::new("d03", DEPARTMENT).with("Headcount", i64::from(EMPLOYEES + 1));
    hire.merge(&headcount, Match::Any)?;
    hired.submit(&table, hire).await?;
    let changed = table.get::<Entity>("d03", DEPARTMENT).await?;
    stage.same("moved", changed.text(BUILDING), Some("South"))?;
    stage.same("employees", read::<Entity>(&all).await?.entities.len() as u32, 2 + EMPLOYEES)?;
    Ok(Costs { read: found.cost, moved, hired })
}

async fn two_tables(stage: &Stage) -> Outcome<Costs> {
    let (departments, staff) = (stage.table("Departments").await?, stage.table("Staff").await?);
    // Each in its own partition, so that no partition gets all writes.
    fill(&departments, ids().map(|id| department(&id, ""))).await?;
    for id in ids() {
        fill(&staff, employees(&id)).await?;
    }
    let one = stage.get::<Entity>("two tables: the department", &departments, "d03", "").await?;
    let of_one = staff.query().filter(partition_key().eq("d03"));
    let many = stage.look::<Entity>(Class::Range, "two tables: its employees", &of_one).await?;
    stage.same("employees", many.entities.len() as u32, EMPLOYEES)?;
    stage.scanned("two tables", one.cost.and(many.cost), u64::from(1 + EMPLOYEES))?;

    let (mut moved, mut hired) = (Written::default(), Written::default());
    moved.merge(&departments, &Entity::new("d03", "").with(BUILDING, "South")).await?;
    // A reader between these two finds one employee more than the headcount; see eventual-transaction.
    hired.insert(&staff, &employee("d03", EMPLOYEES + 1)).await?;
    let headcount = Entity::new("d03", "").with("Headcount", i64::from(EMPLOYEES + 1));
    hired.merge(&departments, &headcount).await?;
    let changed = departments.get::<Entity>("d03", "").await?;
    stage.same("moved", changed.text(BUILDING), Some("South"))?;
    stage.same("hired", changed.get("Headcount"), Some(&i64::from(EMPLOYEES + 1).into()))?;
    Ok(Costs { read: one.cost.and(many.cost), moved, hired })
}

async fn denormalized(stage: &Stage) -> Outcome<Costs> {
    let table = stage.table("Denormalized").await?;
    for id in ids() {
        fill(&table, employees(&id).map(|employee| employee.with(BUILDING, "North"))).await?;
    }
    let of_one = table.query().filter(partition_key().eq("d03"));
    let found = stage
        .look::<Entity>(Class::Range, "denormalized: employees, each with the building", &of_one)
        .await?;
    stage.same("employees", found.entities.len() as u32, EMPLOYEES)?;
    stage.scanned("denormalized", found.cost, EMPLOYEES.into())?;

    let (mut moved, mut hired) = (Written::default(), Written::default());
    // A hundred at a time: a larger department is in two buildings for a moment.
    for group in found.entities.chunks(100) {
        let mut transaction = Transaction::new();
        for row in group {
            transaction.merge(&Entity::new("d03", &row.row_key).with(BUILDING, "South"), Match::Any)?;
        }
        moved.submit(&table, transaction).await?;
    }
    // The headcount is not stored; it is counted.
    hired.insert(&table, &employee("d03", EMPLOYEES + 1).with(BUILDING, "South")).await?;
    let rows = read::<Entity>(&of_one).await?.entities;
    let south = rows.iter().filter(|row| row.text(BUILDING) == Some("South")).count() as u32;
    stage.same("employees in the new building", south, EMPLOYEES + 1)?;
    Ok(Costs { read: found.cost, moved, hired })
}
