use super::*;
use crate::query::ADVISED_FILTER_BYTES_MAX;
use crate::{EntityQuery, EntityWrite, Insight, Service, WriteGroup};
use model::{Entity, EntityKey, Properties, TableName, Value, ValueCow};
use std::sync::Arc;
use store::{MemoryEngine, RequestMemory, TableRef};

const PARTITIONS: usize = 40;
const ROWS: usize = 50;

fn table(name: &str) -> TableRef {
    TableRef::table(AccountName::parse("mine").unwrap(), TableName::parse(name).unwrap())
}

/// Forty partitions of fifty entities, each with its own Email.
async fn shop() -> (Service, Insight, TableRef) {
    let insight = Insight::default();
    let service = Service::new(Arc::new(MemoryEngine::new())).observed(insight.clone());
    let users = table("Users");
    service.create_table(&users).await.unwrap();
    for partition in 0..PARTITIONS {
        let mut group = WriteGroup::new();
        for row in 0..ROWS {
            let number = (partition * ROWS + row) as i32;
            let key = EntityKey::parse(&format!("p{partition:02}"), &format!("r{row:02}")).unwrap();
            let properties = [
                ("Email", Value::String(format!("user{number}@example.com"))),
                ("Phone", Value::String(format!("555-{number}"))),
                ("Age", Value::Int32(number % 100)),
                ("State", Value::String(if row == 7 { "open" } else { "done" }.to_owned())),
                ("Due", Value::Int32(number)),
            ];
            let properties = properties.map(|(name, value)| (name.into(), ValueCow::Owned(value)));
            let entity = Entity::new(key, Properties::new(properties.into()).unwrap()).unwrap();
            group.push(&users, EntityWrite::insert(entity)).unwrap();
        }
        service.write_group(group).await.unwrap();
    }
    (service, insight, users)
}

async fn ask(service: &Service, table: &TableRef, filter: &str) -> usize {
    let memory = RequestMemory::new(64 << 20);
    let query = EntityQuery { filter: Some(filter), ..EntityQuery::default() };
    service.query_entities(table, query, &mut memory.nothing()).await.unwrap().entities.len()
}

#[tokio::test]
async fn ten_known_workloads_get_the_right_proposals() {
    use ProposalKind::{
        ExchangeKeys, IndexRow, IndexTable, KeepApart, NamePartitions, RowKeyRange, SplitQuery, TimeInKeys,
    };
    let all = (PARTITIONS * ROWS) as u64;
    let one = ROWS as u64;
    let mut wrong = Vec::new();
    for (filter, kind, words, rows) in [
        // A user by a property that is no key.
        ("Email eq 'user7@example.com'", IndexTable, "PartitionKey is the value of Email", (1, all)),
        // By RowKey alone.
        ("RowKey eq 'r03'", ExchangeKeys, "PartitionKey is this table's RowKey", (40, all)),
        // By a property inside a partition.
        ("PartitionKey eq 'p01' and Email eq 'user51@example.com'", IndexRow, "value of Email", (1, one)),
        // A range inside a partition.
        (
            "PartitionKey eq 'p01' and Due ge 60 and Due lt 70",
            RowKeyRange,
            "Begin the RowKey with Due",
            (10, one),
        ),
        // What changed lately.
        ("Timestamp ge datetime'2099-01-01T00:00:00Z'", TimeInKeys, "the PartitionKey", (0, all)),
        // The same inside a partition.
        (
            "PartitionKey eq 'p01' and Timestamp ge datetime'2099-01-01T00:00:00Z'",
            TimeInKeys,
            "Begin the RowKey with the time",
            (0, one),
        ),
        // Open work by its due date.
        (
            "State eq 'open' and Due lt 500",
            IndexTable,
            "value of State, and whose RowKey is Due and",
            (10, all),
        ),
        // One row of several partitions.
        (
            "PartitionKey ge 'p01' and PartitionKey lt 'p05' and RowKey eq 'r03'",
            NamePartitions,
            "Name each",
            (4, 200),
        ),
        // Either of two properties.
        ("Email eq 'user7@example.com' or Phone eq '555-9'", SplitQuery, "Email or Phone", (2, all)),
        // All that are not done.
        ("PartitionKey eq 'p01' and State ne 'done'", KeepApart, "State", (1, one)),
        // And an eleventh: a range over the whole table.
        ("Due gt 1995", IndexTable, "ordered by Due", (4, all)),
    ] {
        let (service, insight, users) = shop().await;
        let returned = ask(&service, &users, filter).await as u64;
        let advice = insight.advisor.advice(&users.account, 10, Instant::now());
        let found = advice.iter().map(|one| {
            let proposal = one.proposal.as_ref();
            let (found, text) = proposal.map_or((None, ""), |made| (Some(made.kind), made.text.as_str()));
            let counted = (one.rows_instead_of(), one.queries, one.in_vain, one.error);
            (found, text.contains(words), counted)
        });
        let found: Vec<_> = found.collect();
        let expected = [(Some(kind), true, (rows, 1, rows.1 - rows.0, 0))];
        if found != expected || returned != rows.0 {
            wrong.push(format!("{filter}: {returned} returned, {found:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn queries_that_examine_nothing_in_vain_get_no_advice() {
    let (service, insight, users) = shop().await;
    for filter in [
        "PartitionKey eq 'p01' and RowKey eq 'r03'",
        "PartitionKey eq 'p01' and RowKey eq 'missing'",
        "PartitionKey eq 'p01'",
        "PartitionKey eq 'p01' and RowKey ge 'r03' and RowKey lt 'r09'",
        "PartitionKey ge 'p01'",
        "",
    ] {
        ask(&service, &users, filter).await;
    }
    assert!(insight.advisor.advice(&users.account, 10, Instant::now()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_filter_is_not_parsed_again_for_advice() {
    let (service, insight, users) = shop().await;
    let filter = |letters| format!("Email eq '{}'", "x".repeat(letters));
    let longest = ADVISED_FILTER_BYTES_MAX - filter(0).len();
    ask(&service, &users, &filter(longest + 1)).await;
    assert!(insight.advisor.advice(&users.account, 10, Instant::now()).is_empty());
    ask(&service, &users, &filter(longest)).await;
    assert_eq!(insight.advisor.advice(&users.account, 10, Instant::now()).len(), 1);
}

#[tokio::test]
async fn no_literal_is_kept() {
    let (service, insight, users) = shop().await;
    for filter in [
        "Email eq 'secret1'",
        "Email eq 'secret2' or Phone eq 'secret3'",
        "not (Email eq 'secret4') and Age gt 99",
        "Email ge 'secret5' and Age gt 987654",
        "PartitionKey ge 'p' and RowKey eq 'secret6' and PartitionKey lt 'secret7'",
        "Email eq X'5ec4e7' and Email ne '5ec4e7'",
    ] {
        ask(&service, &users, filter).await;
    }
    let kept = format!("{:?}", insight.advisor);
    assert!(kept.contains("Email eq String"), "{kept}");
    for word in ["secret", "987654", "5ec4e7"] {
        assert!(!kept.contains(word), "{word} in {kept}");
    }
}

#[tokio::test]
async fn the_heaviest_shape_comes_first_and_its_queries_are_added_up() {
    let (service, insight, users) = shop().await;
    for n in 0..5 {
        ask(&service, &users, &format!("PartitionKey eq 'p0{n}' and Age eq {n}")).await;
    }
    for n in 0..2 {
        ask(&service, &users, &format!("Email eq 'user{n}@example.com'")).await;
    }
    let advice = insight.advisor.advice(&users.account, 10, Instant::now());
    let shown: Vec<_> =
        advice.iter().map(|advice| (advice.shape.as_str(), advice.queries, advice.examined)).collect();
    assert_eq!(shown, [("Email eq String", 2, 4000), ("PartitionKey eq String and Age eq Int32", 5, 250)]);
    assert_eq!(insight.advisor.advice(&users.account, 1, Instant::now()).len(), 1);
    let other = AccountName::parse("other").unwrap();
    assert!(insight.advisor.advice(&other, 10, Instant::now()).is_empty(), "another account sees nothing");
}

fn waste(advisor: &Advisor, account: &AccountName, filter: &str, in_vain: u64, now: Instant) {
    let filter = filter::parse(filter).unwrap().unwrap();
    let books = table("Books");
    let query = WastedQuery {
        table: &books.name,
        filter: &filter,
        class: QueryClass::TableScan,
        examined: in_vain,
        returned: 0,
        time: Duration::ZERO,
    };
    advisor.record(account, query, now);
}

#[test]
fn ten_thousand_shapes_by_one_account_stay_within_its_slots() {
    let (advisor, mine, now) = (Advisor::default(), AccountName::parse("mine").unwrap(), Instant::now());
    for _ in 0..100 {
        waste(&advisor, &mine, "Heavy eq 1", 1000, now);
    }
    for n in 0..10_000 {
        waste(&advisor, &mine, &format!("Property{n} eq 1"), 1, now);
    }
    let advice = advisor.advice(&mine, 10_000, now);
    assert_eq!(advice.len(), SHAPES_MAX);
    assert_eq!((advice[0].shape.as_str(), advice[0].in_vain), ("Heavy eq Int32", 100_000));
}

#[test]
fn ten_thousand_accounts_stay_within_the_slots_and_each_has_some() {
    let (advisor, now) = (Advisor::default(), Instant::now());
    let name = |n: usize| AccountName::parse(&format!("account{n}")).unwrap();
    for n in 0..10_000 {
        let shapes = if n < 20 { SHAPES_MAX } else { OWN_SLOTS };
        for shape in 0..shapes {
            waste(
                &advisor,
                &name(n),
                &format!("Property{shape} eq 1"),
                1,
                now + Duration::from_millis(n as u64),
            );
        }
    }
    let accounts = advisor.accounts();
    let held: usize = accounts.sketches.values().map(|account| account.shapes.len()).sum();
    assert!(held <= SLOTS_MAX + 10_000 * OWN_SLOTS, "{held}");
    let shared: usize =
        accounts.sketches.values().map(|account| account.shapes.len().saturating_sub(OWN_SLOTS)).sum();
    assert_eq!(shared, accounts.slots_used);
    drop(accounts);
    assert_eq!(advisor.advice(&name(9_999), 10, now).len(), OWN_SLOTS);
    assert!(advisor.advice(&name(0), 10, now).is_empty(), "the most idle account was forgotten");
    assert!(!advisor.advice(&name(19), 10, now).is_empty());
}
