//! Compound key: a review's row key consists of the employee and the year, so that an employee's reviews are adjacent.

use partita_client::{partition_key, property, row_key};
use partita_client_patterns::keys;
use serde::{Deserialize, Serialize};

use crate::cost::Class;
use crate::stage::{Outcome, Stage, fill};

const EMPLOYEES: u64 = 50;
const YEARS: std::ops::Range<u64> = 2015..2023;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Review {
    #[serde(rename = "PartitionKey")]
    department: String,
    #[serde(rename = "RowKey")]
    key: String,
    /// Also as a property, only for the comparison below.
    employee: String,
    year: String,
    rating: i32,
}

impl Review {
    fn new(employee: u64, year: u64) -> Self {
        let (employee, year) = (format!("{employee:06}"), year.to_string());
        let rating = if employee.ends_with('3') { 5 } else { 3 };
        Self { department: "Sales".to_owned(), key: keys::join([&employee, &year]), employee, year, rating }
    }
}

pub async fn run(stage: &Stage) -> Outcome {
    let table = stage.table("Reviews").await?;
    fill(&table, (1..=EMPLOYEES).flat_map(|employee| YEARS.map(move |year| Review::new(employee, year))))
        .await?;
    let (years, all) = (YEARS.count() as u64, EMPLOYEES * YEARS.count() as u64);
    stage
        .say(&format!("{all} reviews in one partition, row keys such as {}", keys::join(["000023", "2020"])));

    let row = keys::join(["000023", "2020"]);
    let one = stage.get::<Review>("one employee's review of one year", &table, "Sales", &row).await?;
    stage.same("the review", one.entities.first().map(|review| review.rating), Some(5))?;

    let sales = || partition_key().eq("Sales");
    let of_one = table.query().filter(sales().and(keys::within(row_key(), ["000023"])));
    let range = stage.look::<Review>(Class::Range, "one employee's reviews, by the key", &of_one).await?;
    stage.same("reviews of one employee", range.cost.returned, years)?;
    stage.scanned("one employee's reviews", range.cost, years)?;

    let by_property = table.query().filter(sales().and(property("Employee").eq("000023")));
    let scan = stage.look::<Review>(Class::PartitionScan, "the same, by a property", &by_property).await?;
    stage.same("the same reviews either way", scan.entities, range.entities)?;
    stage.scanned("a property", scan.cost, all)?;

    let of_year = table.query().filter(sales().and(property("Year").eq("2020")));
    let year = stage
        .look::<Review>(Class::PartitionScan, "one year of all: not what the key is for", &of_year)
        .await?;
    stage.same("reviews of one year", year.cost.returned, EMPLOYEES)?;
    stage.scanned("one year", year.cost, all)?;

    // A part must be complete: without the separator, `00002` is the prefix of ten numbers.
    let prefix = table.query().filter(sales().and(row_key().starts_with("00002")));
    let prefix = stage.look::<Review>(Class::Range, "a prefix that is no whole part", &prefix).await?;
    stage.same("reviews of numbers that begin so", prefix.cost.returned, 10 * years)?;
    let whole = table.query().filter(sales().and(keys::within(row_key(), ["00002"])));
    stage.same("reviews of the number that is just so", whole.count().await?, 0)
}
