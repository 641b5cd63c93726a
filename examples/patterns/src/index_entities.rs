//! Index entities: lists of keys by another value, kept in three ways.

use partita_client::{Entity, Match, StoredEntity, Table, partition_key, property};
use partita_client_patterns::index_entities::{ListIndex, PartitionLists};
use partita_client_patterns::indexed::IndexedTable;
use partita_client_patterns::large::Large;
use partita_client_patterns::outbox::Outbox;

use crate::cost::{Class, Cost};
use crate::stage::{Failure, Outcome, Stage, at_once, fill};

const EMPLOYEES: usize = 120;
/// Each name has the same share of the employees.
const NAMES: [&str; 12] = [
    "Adams", "Baker", "Clark", "Davis", "Evans", "Green", "Hill", "Jones", "King", "Lewis", "Moore", "Young",
];
const JONESES: usize = EMPLOYEES / NAMES.len();

fn employee(partition: &str, number: usize) -> Entity {
    Entity::new(partition, format!("{number:06}")).with("LastName", NAMES[number % NAMES.len()])
}

/// An employee who is hired later.
fn new_jones(partition: &str) -> Entity {
    Entity::new(partition, "900000").with("LastName", "Jones")
}

fn rows(found: &[StoredEntity<Entity>]) -> Vec<String> {
    found.iter().map(|row| row.row_key.clone()).collect()
}

pub async fn run(stage: &Stage) -> Outcome {
    stage.say(&format!("{EMPLOYEES} employees, {JONESES} of them called Jones; who are they?"));
    one_partition(stage).await?;
    another_table(stage).await?;
    one_value(stage).await
}

/// Lists beside the entities, changed by the same transaction.
async fn one_partition(stage: &Stage) -> Outcome {
    stage.say("");
    stage.say("lists in the entities' own partition, kept by transaction");
    let table = stage.table("SamePartition").await?;
    let employees = PartitionLists::new(&table).index("last", "LastName");
    for number in 0..EMPLOYEES {
        employees.insert(&employee("Sales", number)).await?;
    }
    let scan = table.query().filter(partition_key().eq("Sales").and(property("LastName").eq("Jones")));
    let scan = stage.look::<Entity>(Class::PartitionScan, "without the list", &scan).await?;
    stage.scanned("a name without a list", scan.cost, table.query().count().await?)?;
    let list = stage.get::<Entity>("the list", &table, "Sales", "index~last~Jones").await?;
    let keys = employees.row_keys("Sales", "last", "Jones").await?;
    let keys: Vec<_> = keys.into_iter().map(|row| ("Sales".to_owned(), row)).collect();
    let found = stage.get_each::<Entity>("those it names", &table, &keys).await?;
    stage.scanned_nothing_else("a name by its list", list.cost.and(found.cost))?;
    stage.same("all called Jones", rows(&found.entities), rows(&scan.entities))?;

    let jones = new_jones("Sales");
    let hire = employees.insert(&jones);
    stage.timed("one more: the employee and the list, in one transaction", hire).await?;
    let found = employees.find::<Entity>("Sales", "last", "Jones").await?;
    stage.same("all called Jones now", found.len(), JONESES + 1)
}

/// Lists for all partitions, which are updated a little later.
async fn another_table(stage: &Stage) -> Outcome {
    stage.say("");
    stage.say("lists in another table, kept by an outbox; employees in four partitions");
    let partition = |number: usize| format!("d{}", number / NAMES.len() % 4);
    let outbox = Outbox::new(stage.service(), &stage.name("OtherTable"))?;
    let index = ListIndex::new("last", stage.name("Lists"), "LastName");
    let employees = IndexedTable::new(outbox).with(index);
    employees.create_tables_if_missing().await?;
    at_once((0..EMPLOYEES).map(|number| {
        let (employees, entity) = (&employees, employee(&partition(number), number));
        async move { employees.insert(&entity).await }
    }))
    .await?;
    let (table, lists) = (stage.table("OtherTable").await?, stage.table("Lists").await?);
    let scan = table.query().filter(property("LastName").eq("Jones"));
    let scan = stage.look::<Entity>(Class::TableScan, "without the list", &scan).await?;
    stage.scanned("a name without a list", scan.cost, table.query().count().await?)?;
    let list = lists.query().filter(partition_key().eq("last~Jones"));
    let list = stage.look::<Entity>(Class::Range, "the list", &list).await?;
    let named = employees.find::<Entity>("last", "Jones").await?;
    stage.same("all called Jones", rows(&named), rows(&scan.entities))?;
    // `find` reads the list and the employees in it, and leaves out those who no longer have the name.
    let keys: Vec<_> = named.iter().map(|row| (row.partition_key.clone(), row.row_key.clone())).collect();
    let found = stage.get_each::<Entity>("those it names", &table, &keys).await?;
    stage.scanned_nothing_else("a name by its list", list.cost.and(found.cost))?;

    let jones = new_jones("d9");
    stage.timed("one more: a transaction, and the list", employees.insert(&jones)).await?;
    employees.delete("d0", "000007", Match::Any).await?;
    let found = rows(&employees.find::<Entity>("last", "Jones").await?);
    stage.same("all called Jones now", found.len(), JONESES)?;
    stage.holds("the new one is among them", found.contains(&"900000".to_owned()))
}

/// A list of any length as one value, rebuilt from time to time; in the cloud it would be a blob.
async fn one_value(stage: &Stage) -> Outcome {
    stage.say("");
    stage.say("a list of any length as a large value, rebuilt by a scan from time to time");
    let (table, lists) = (stage.table("Scanned").await?, stage.table("Values").await?);
    fill(&table, (0..EMPLOYEES).map(|number| employee(&format!("d{}", number % 4), number))).await?;
    let lists = Large::new(&lists);
    let scanned = make_list(stage, &table, &lists).await?;
    stage.scanned("the list to be made", scanned, EMPLOYEES as u64)?;
    let keys = read_list(&lists).await?;
    let found = stage.get_each::<Entity>("those the list names", &table, &keys).await?;
    stage.same("all called Jones", found.entities.len(), JONESES)?;

    table.insert(&new_jones("d9")).await?;
    stage.same("the list does not have the new one", read_list(&lists).await?.len(), JONESES)?;
    make_list(stage, &table, &lists).await?;
    stage.same("after it is rebuilt", read_list(&lists).await?.len(), JONESES + 1)
}

async fn make_list(stage: &Stage, table: &Table, lists: &Large) -> Outcome<Cost> {
    let jones = table.query().filter(property("LastName").eq("Jones")).select(["PartitionKey", "RowKey"]);
    let found = stage.look::<Entity>(Class::TableScan, "to make the list", &jones).await?;
    // Keys have no control characters, so line breaks and tabs can separate them.
    let line = |row: &StoredEntity<Entity>| format!("{}\t{}\n", row.partition_key, row.row_key);
    let list: String = found.entities.iter().map(line).collect();
    lists.put(&Entity::new("last", "Jones"), list.as_bytes()).await?;
    Ok(found.cost)
}

async fn read_list(lists: &Large) -> Outcome<Vec<(String, String)>> {
    let unreadable = || Failure::Unexpected("the list of those called Jones can't be read".to_owned());
    let bytes = lists.read("last", "Jones").await?.ok_or_else(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable())?;
    let keys = text.lines().map(|line| line.split_once('\t').ok_or_else(unreadable));
    keys.map(|keys| keys.map(|(partition, row)| (partition.to_owned(), row.to_owned()))).collect()
}
