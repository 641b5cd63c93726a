//! Heterogeneous types: a department, its employees and their reviews in one partition, distinguished by key and by
//! kind.

use futures_util::TryStreamExt as _;
use partita_client::{Entity, Match, StoredEntity, Transaction, partition_key, property, row_key};
use serde::Deserialize;

use crate::cost::Class;
use crate::stage::{Outcome, Stage, fill};

const EMPLOYEES: u32 = 30;
const YEARS: std::ops::Range<u32> = 2020..2024;

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "PascalCase")]
struct Department {
    building: String,
    headcount: u32,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    name: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "PascalCase")]
struct Review {
    year: u32,
    rating: i32,
}

/// The types of rows in the table. The service does not know them.
#[derive(Clone, Debug, PartialEq)]
enum Row {
    Department(Department),
    Employee(Employee),
    Review(Review),
}

impl Row {
    fn read(entity: &StoredEntity<Entity>) -> partita_client::Result<Self> {
        match entity.text("Kind") {
            Some("department") => entity.to().map(Self::Department),
            Some("employee") => entity.to().map(Self::Employee),
            Some("review") => entity.to().map(Self::Review),
            // A guess could read one type as another.
            kind => {
                Err(partita_client::Error::Unreadable(format!("row {} is of kind {kind:?}", entity.row_key)))
            }
        }
    }
}

fn employee(number: u32) -> Entity {
    Entity::new("Sales", format!("employee_{number:06}"))
        .with("Kind", "employee")
        .with("Name", format!("Employee {number}"))
}

fn review(number: u32, year: u32) -> Entity {
    Entity::new("Sales", format!("review_{number:06}_{year}"))
        .with("Kind", "review")
        .with("Year", i64::from(year))
        .with("Rating", 4)
}

pub async fn run(stage: &Stage) -> Outcome {
    let table = stage.table("Mixed").await?;
    let department = Entity::new("Sales", "department")
        .with("Kind", "department")
        .with("Building", "North")
        .with("Headcount", i64::from(EMPLOYEES));
    fill(&table, [department]).await?;
    fill(&table, (1..=EMPLOYEES).map(employee)).await?;
    fill(&table, (1..=EMPLOYEES).flat_map(|number| YEARS.map(move |year| review(number, year)))).await?;
    let reviews = EMPLOYEES * YEARS.count() as u32;
    let all = u64::from(1 + EMPLOYEES + reviews);

    let sales = || table.query().filter(partition_key().eq("Sales"));
    let rows = stage.look::<Entity>(Class::Range, "all kinds, in one answer", &sales()).await?;
    stage.scanned("all kinds", rows.cost, all)?;
    let mut counts = [0; 3];
    for row in &rows.entities {
        counts[match Row::read(row)? {
            Row::Department(_) => 0,
            Row::Employee(_) => 1,
            Row::Review(_) => 2,
        }] += 1;
    }
    stage.same("departments, employees and reviews", counts, [1, EMPLOYEES, reviews])?;

    let by_key = sales().filter(row_key().starts_with("employee_"));
    let by_key = stage.look::<Employee>(Class::Range, "one kind, by the key's prefix", &by_key).await?;
    stage.same("employees by key", by_key.cost.returned, u64::from(EMPLOYEES))?;
    stage.scanned("one kind by key", by_key.cost, u64::from(EMPLOYEES))?;
    let by_kind = sales().filter(property("Kind").eq("employee"));
    let by_kind = stage.look::<Employee>(Class::PartitionScan, "one kind, by a property", &by_kind).await?;
    stage.same("the same employees", by_kind.entities, by_key.entities)?;
    stage.scanned("one kind by property", by_kind.cost, all)?;

    // One change of two kinds: the department is changed only if nobody else was hired meanwhile.
    let department = table.get::<Entity>("Sales", "department").await?;
    let mut hire = Transaction::new();
    hire.insert(&employee(EMPLOYEES + 1))?;
    let headcount = Entity::new("Sales", "department").with("Headcount", i64::from(EMPLOYEES + 1));
    hire.merge(&headcount, &department.etag)?;
    stage.timed("an employee and the headcount, in one transaction", table.submit(hire)).await?;
    let mut stale = Transaction::new();
    stale.insert(&employee(EMPLOYEES + 2))?;
    stale.merge(&headcount, &department.etag)?;
    let refused = table.submit(stale).await.err();
    stage.same(
        "the second hire, with the old version",
        refused.and_then(|error| error.status()),
        Some(412),
    )?;
    let hired: Vec<Row> =
        sales().filter(row_key().lt("review_")).resolve(|entity| Row::read(&entity)).try_collect().await?;
    let (building, headcount) = ("North".to_owned(), EMPLOYEES + 1);
    stage.same("rows after one hire", hired.len() as u32, headcount + 1)?;
    stage.same(
        "the department",
        hired.first(),
        Some(&Row::Department(Department { building, headcount })),
    )?;

    table.merge(&Entity::new("Sales", "department").with("Kind", "divison"), Match::Any).await?;
    let unreadable = sales().resolve(|entity| Row::read(&entity)).try_collect::<Vec<Row>>().await.err();
    stage.holds("a kind that is not known is not guessed", unreadable.is_some())
}
