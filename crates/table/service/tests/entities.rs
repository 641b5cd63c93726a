//! Point reads, and the result of each kind of write, with and without an existing entity.

use model::{DateTime, Entity, IfMatch, Property, Refusal, Value};
use service::EntityWrite;
use store::Error;

use crate::kit::{Ground, entity, key, named, number, refused, table};

const BOOKS: &str = "Books";

fn show(properties: &[Property]) -> String {
    let show = |property: &Property| match &property.value {
        Value::Int32(number) => format!("{}={number}", property.name),
        other => format!("{}={other:?}", property.name),
    };
    properties.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// The entity's properties in the order they are shown, or the refusal.
async fn read(ground: &Ground) -> String {
    match ground.service.get_entity(&table(BOOKS), &key("p", "r")).await {
        Ok(row) => show(&row.raw().open().unwrap().to_properties()),
        Err(error) => named(&refused(Err::<(), _>(error))),
    }
}

#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    Stored,
}

/// The stored entity after a write of `B=2 A=2` to an entity `C=1 A=1`, or to none.
async fn check(make: impl Fn(Entity<'static>, DateTime) -> EntityWrite, before: Before, expected: &str) {
    let ground = Ground::with(BOOKS).await;
    let mut version = DateTime::MIN_STORED;
    if let Before::Stored = before {
        let stored = EntityWrite::insert(entity("p", "r", &[("C", number(1)), ("A", number(1))]));
        version = ground.service.write_entity(&table(BOOKS), stored).await.unwrap();
    }
    let sent = entity("p", "r", &[("B", number(2)), ("A", number(2))]);
    let stamp = ground.service.write_entity(&table(BOOKS), make(sent, version)).await;
    let found = match stamp {
        Err(error) => {
            let untouched = if let Before::Stored = before { "C=1 A=1" } else { "ResourceNotFound" };
            assert_eq!(read(&ground).await, untouched, "a refused write changes nothing");
            named(&refused(Err::<(), _>(error)))
        }
        Ok(stamp) => {
            assert!(stamp > version);
            read(&ground).await
        }
    };
    assert_eq!(found, expected, "{before:?}");
}

#[tokio::test]
async fn each_kind_of_write_asks_for_its_own_condition() {
    use Before::{Nothing, Stored};
    let insert = |entity, _| EntityWrite::insert(entity);
    check(insert, Nothing, "B=2 A=2").await;
    check(insert, Stored, "EntityAlreadyExists").await;
    let replace = |entity, _| EntityWrite::insert_or_replace(entity);
    check(replace, Nothing, "A=2 B=2").await;
    check(replace, Stored, "A=2 B=2").await;
    let merge = |entity, _| EntityWrite::insert_or_merge(entity);
    check(merge, Nothing, "A=2 B=2").await;
    check(merge, Stored, "A=2 B=2 C=1").await;
    for (version, nothing, stored) in [
        (None, "ResourceNotFound", None),
        (Some(IfMatch::Any), "ResourceNotFound", None),
        (Some(IfMatch::Foreign), "ResourceNotFound", Some("UpdateConditionNotSatisfied")),
        (
            Some(IfMatch::Version(DateTime::MIN_STORED)),
            "ResourceNotFound",
            Some("UpdateConditionNotSatisfied"),
        ),
    ] {
        // `None` stands for the version that is stored.
        let if_match = |present| version.clone().unwrap_or(IfMatch::Version(present));
        let update = |entity, present| EntityWrite::update(entity, &if_match(present));
        check(update, Nothing, nothing).await;
        check(update, Stored, stored.unwrap_or("A=2 B=2")).await;
        let merge = |entity, present| EntityWrite::merge(entity, &if_match(present));
        check(merge, Nothing, nothing).await;
        check(merge, Stored, stored.unwrap_or("A=2 B=2 C=1")).await;
        let delete = |entity: Entity<'_>, present| EntityWrite::delete(entity.key, &if_match(present));
        check(delete, Nothing, nothing).await;
        check(delete, Stored, stored.unwrap_or("ResourceNotFound")).await;
    }
}

#[tokio::test]
async fn an_insert_shows_what_it_stores() {
    let write = EntityWrite::insert(entity("p", "r", &[("B", number(2)), ("A", number(1))]));
    assert_eq!(show(&write.draft().unwrap().view().to_properties()), "B=2 A=1");
    assert!(EntityWrite::delete(key("p", "r"), &IfMatch::Any).draft().is_none());
}

#[tokio::test]
async fn one_read_or_write_is_one_call_of_the_engine() {
    let ground = Ground::with(BOOKS).await;
    ground.insert(BOOKS, "p", "r", &[]).await;
    assert_eq!(ground.asked(), ["apply p: put Absent r"]);
    ground.service.get_entity(&table(BOOKS), &key("p", "r")).await.unwrap();
    assert_eq!(ground.asked(), ["get p/r"]);
}

#[tokio::test]
async fn a_table_that_is_missing_is_told_from_an_entity_that_is() {
    let ground = Ground::with(BOOKS).await;
    let get = async |name| refused(ground.service.get_entity(&table(name), &key("p", "r")).await.map(drop));
    assert_eq!(get(BOOKS).await, common::Refusal::ResourceNotFound);
    assert_eq!(get("Films").await, Refusal::TableNotFound);
    let write =
        ground.service.write_entity(&table("Films"), EntityWrite::insert(entity("p", "r", &[]))).await;
    assert_eq!(refused(write), Refusal::TableNotFound);
}

#[tokio::test]
async fn the_services_own_tables_are_emptied_and_never_filled() {
    const METRICS: &str = "$MetricsHourPrimaryTransactionsTable";
    let ground = Ground::with(METRICS).await;
    let fills = [
        EntityWrite::insert(entity("p", "r", &[])),
        EntityWrite::update(entity("p", "r", &[]), &IfMatch::Any),
        EntityWrite::merge(entity("p", "r", &[]), &IfMatch::Any),
        EntityWrite::insert_or_replace(entity("p", "r", &[])),
        EntityWrite::insert_or_merge(entity("p", "r", &[])),
    ];
    for write in fills {
        let outcome = ground.service.write_entity(&table(METRICS), write).await;
        assert_eq!(refused(outcome), common::Refusal::WritesNotAllowed);
        // Only whether the table exists.
        assert_eq!(ground.asked(), [format!("find {METRICS}")]);
    }
    let delete = EntityWrite::delete(key("p", "r"), &IfMatch::Any);
    let outcome = ground.service.write_entity(&table(METRICS), delete).await;
    assert_eq!(refused(outcome), common::Refusal::ResourceNotFound, "it was looked for");
}

#[tokio::test]
async fn a_group_with_one_change_does_not_fill_the_services_own_tables_either() {
    const METRICS: &str = "$MetricsHourPrimaryTransactionsTable";
    let ground = Ground::with(METRICS).await;
    let mut group = service::WriteGroup::new();
    group.push(&table(METRICS), EntityWrite::delete(key("p", "a"), &IfMatch::Any)).unwrap();
    group.push(&table(METRICS), EntityWrite::insert_or_merge(entity("p", "b", &[]))).unwrap();
    assert_eq!(refused(ground.service.write_group(group).await), common::Refusal::WritesNotAllowed);
}

#[tokio::test]
async fn a_write_alone_is_refused_without_a_number() {
    let ground = Ground::with(BOOKS).await;
    ground.fail_next(Error::Rejected { index: 0, reason: store::Reason::VersionDiffers });
    let outcome =
        ground.service.write_entity(&table(BOOKS), EntityWrite::insert(entity("p", "r", &[]))).await;
    assert_eq!(refused(outcome), Refusal::UpdateConditionNotSatisfied);
}

#[tokio::test]
async fn a_write_that_may_have_happened_is_not_tried_again() {
    let ground = Ground::with(BOOKS).await;
    ground.fail_next(Error::OutcomeUnknown);
    let outcome =
        ground.service.write_entity(&table(BOOKS), EntityWrite::insert(entity("p", "r", &[]))).await;
    assert_eq!(refused(outcome), common::Refusal::TimedOut);
    assert_eq!(ground.asked().len(), 1);
}
