//! Conditional statements for tables, service properties, slots and the map of segments.

use scylla::value::CqlValue;
use uuid::Uuid;

use crate::lwt_contract::ground::{APPLIED, Partition, REFUSED_BY_NOTHING, key, partition};

const CREATE: &str =
    "INSERT INTO tables (account, name, id, shown, state) VALUES (?, ?, ?, ?, 1) IF NOT EXISTS";
const FIND: &str = "SELECT id, shown, state, metadata FROM tables WHERE account = ? AND name = ?";
const SEAT: &str = "UPDATE tables SET state = 0 WHERE account = ? AND name = '!'";
const LIST: &str =
    "SELECT name, shown, id, state FROM tables WHERE account = ? AND name >= ? AND name < ? LIMIT ?";
const ACCOUNTS: &str = "SELECT DISTINCT account FROM tables";
const DOOM: &str = "UPDATE tables SET state = 2 WHERE account = ? AND name = ? IF id = ? AND state = 1";
const FORGET: &str = "DELETE FROM tables WHERE account = ? AND name = ? IF id = ?";
const SET_SERVICE: &str = "UPDATE services SET metadata = ? WHERE account = ? IF metadata = ?";
const SERVICE: &str = "SELECT metadata FROM services WHERE account = ?";
const TAKE_SLOT: &str = "UPDATE slots SET owner = ?, high = ? WHERE id = ? IF owner = ? AND high = ?";

/// A new account. The partition's table id is used for its table.
async fn account() -> Option<(Partition, String)> {
    let p = partition().await?;
    let name = format!("a{}", p.tid.simple());
    Some((p, name))
}

#[tokio::test]
async fn a_table_is_created_once_and_the_refusal_shows_the_first() {
    let Some((p, account)) = account().await else { return };
    assert_eq!(p.ask(CREATE, (&account, "people", p.tid, "People")).await, APPLIED);
    let refused = p.ask(CREATE, (&account, "people", Uuid::new_v4(), "PEOPLE")).await;
    assert_eq!(
        refused,
        [
            "[applied] account name id metadata shown state".to_owned(),
            format!("false {account} people T - People 1"),
        ]
    );
    assert_eq!(p.read(FIND, (&account, "people")).await, ["id shown state metadata", "T People 1 -"]);
}

#[tokio::test]
async fn a_table_is_doomed_and_forgotten_only_by_its_own_id() {
    let Some((p, account)) = account().await else { return };
    assert_eq!(p.ask(DOOM, (&account, "people", p.tid)).await, REFUSED_BY_NOTHING);
    assert_eq!(p.ask(FORGET, (&account, "people", p.tid)).await, REFUSED_BY_NOTHING);
    assert_eq!(p.read(FIND, (&account, "people")).await.len(), 1);
    p.ask(CREATE, (&account, "people", p.tid, "People")).await;
    let stranger = Uuid::new_v4();
    assert_eq!(p.ask(DOOM, (&account, "people", stranger)).await, ["[applied] id state", "false T 1"]);
    assert_eq!(p.ask(DOOM, (&account, "people", p.tid)).await, APPLIED);
    assert_eq!(p.ask(DOOM, (&account, "people", p.tid)).await, ["[applied] id state", "false T 2"]);
    assert_eq!(p.ask(FORGET, (&account, "people", stranger)).await, ["[applied] id", "false T"]);
    assert_eq!(p.ask(FORGET, (&account, "people", p.tid)).await, APPLIED);
    assert_eq!(p.read(FIND, (&account, "people")).await.len(), 1);
    assert_eq!(p.ask(CREATE, (&account, "people", stranger, "people")).await, APPLIED);
}

#[tokio::test]
async fn an_accounts_tables_are_listed_in_order_at_one_moment() {
    let Some((p, account)) = account().await else { return };
    for name in ["b", "c", "a"] {
        p.ask(CREATE, (&account, name, p.tid, name.to_uppercase())).await;
    }
    let list = async |from: &str, to: &str, limit: i32| p.read(LIST, (&account, from, to, limit)).await;
    assert_eq!(list("#", "\u{7f}", 2).await, ["name shown id state", "a A T 1", "b B T 1"]);
    assert_eq!(list("b", "\u{7f}", 9).await, ["name shown id state", "b B T 1", "c C T 1"]);
    assert_eq!(list("b", "c", 9).await, ["name shown id state", "b B T 1"]);
}

#[tokio::test]
async fn an_account_has_a_row_that_outlives_its_tables() {
    let Some((p, account)) = account().await else { return };
    let text = |text: &str| Some(CqlValue::Text(text.to_owned()));
    let create = || vec![text(&account), text("people"), Some(CqlValue::Uuid(p.tid)), text("People")];
    let made = p.try_bound(vec![(CREATE, create()), (SEAT, vec![text(&account)])]).await.unwrap();
    assert_eq!(p.show(made), APPLIED);
    let again = p.try_bound(vec![(CREATE, create()), (SEAT, vec![text(&account)])]).await.unwrap();
    assert!(p.show(again)[1].starts_with("false"));
    assert_eq!(p.ask(FORGET, (&account, "people", p.tid)).await, APPLIED);
    assert_eq!(p.read(LIST, (&account, "#", "\u{7f}", 9)).await.len(), 1);
    assert!(p.ask(ACCOUNTS, ()).await.contains(&account));
}

#[tokio::test]
async fn service_properties_are_replaced_only_if_they_are_as_expected() {
    let Some((p, account)) = account().await else { return };
    let none = None::<Vec<u8>>;
    assert_eq!(p.ask(SET_SERVICE, (Some(b"x".to_vec()), &account, none.clone())).await, APPLIED);
    let refused = p.ask(SET_SERVICE, (Some(b"y".to_vec()), &account, none)).await;
    assert_eq!(refused, ["[applied] metadata", "false 0x78"]);
    assert_eq!(p.ask(SET_SERVICE, (Some(b"y".to_vec()), &account, Some(b"x".to_vec()))).await, APPLIED);
    assert_eq!(p.read(SERVICE, (&account,)).await, ["metadata", "0x79"]);
}

#[tokio::test]
async fn documents_of_two_services_are_compared_separately() {
    let Some((p, account)) = account().await else { return };
    let set_queue = "UPDATE services SET queue_metadata = ? WHERE account = ? IF queue_metadata = ?";
    let (none, x, y) = (None::<Vec<u8>>, Some(b"x".to_vec()), Some(b"y".to_vec()));
    assert_eq!(p.ask(SET_SERVICE, (&x, &account, &none)).await, APPLIED);
    // The row is there, but not this column.
    assert_eq!(p.ask(set_queue, (&y, &account, &x)).await, ["[applied] queue_metadata", "false -"]);
    assert_eq!(p.ask(set_queue, (&y, &account, &none)).await, APPLIED);
    assert_eq!(p.ask(SET_SERVICE, (&y, &account, &y)).await, ["[applied] metadata", "false 0x78"]);
    let all = "SELECT metadata, queue_metadata, blob_metadata FROM services WHERE account = ?";
    assert_eq!(p.read(all, (&account,)).await, ["metadata queue_metadata blob_metadata", "0x78 0x79 -"]);
}

#[tokio::test]
async fn a_slot_is_taken_by_one_and_renewed_in_order() {
    let Some(p) = partition().await else { return };
    let id = i32::from_be_bytes(p.tid.as_bytes()[..4].try_into().unwrap());
    let (mine, theirs) = (p.tid, Uuid::new_v4());
    let take = async |owner: Uuid, high: i64, old: Option<Uuid>, old_high: Option<i64>| {
        p.ask(TAKE_SLOT, (owner, high, id, old, old_high)).await
    };
    assert_eq!(take(mine, 5, None, None).await, APPLIED);
    assert_eq!(take(theirs, 6, None, None).await, ["[applied] owner high", "false T 5"]);
    assert_eq!(take(mine, 7, Some(mine), Some(5)).await, APPLIED);
    // A late renewal changes nothing, and a server that has seen an older state does not get the slot.
    assert_eq!(take(mine, 6, Some(mine), Some(5)).await, ["[applied] owner high", "false T 7"]);
    assert_eq!(take(theirs, 8, Some(mine), Some(5)).await, ["[applied] owner high", "false T 7"]);
    assert_eq!(take(theirs, 8, Some(mine), Some(7)).await, APPLIED);
}

#[tokio::test]
async fn a_map_of_segments_changes_with_its_version_or_not_at_all() {
    let Some(p) = partition().await else { return };
    let (version, set, remove) = (
        "UPDATE segments SET version = ? WHERE tid = ? IF version = ?",
        "UPDATE segments SET segment = ?, state = ?, low = ?, high = ?, cut = ?, retired = ? \
         WHERE tid = ? AND start = ?",
        "DELETE FROM segments WHERE tid = ? AND start = ?",
    );
    let (number, tid) = (|n: i64| Some(CqlValue::BigInt(n)), Some(CqlValue::Uuid(p.tid)));
    let start = |text: &str| Some(CqlValue::Blob(key(text)));
    let segment = |text: &str| {
        let mut values = vec![tid.clone(), Some(CqlValue::TinyInt(1)), None, None, None, None];
        values.extend([tid.clone(), start(text)]);
        (set, values)
    };
    let gone = |text: &str| (remove, vec![tid.clone(), start(text)]);
    let from = |old: Option<i64>, new: i64| (version, vec![number(new), tid.clone(), old.and_then(number)]);
    let change = async |steps| p.show(p.try_bound(steps).await.unwrap());
    assert_eq!(change(vec![from(None, 1), segment("")]).await, APPLIED);
    // The condition on the version also holds for the statements without a condition.
    let late = change(vec![from(None, 1), segment("m"), gone("")]).await;
    assert!(late[0].starts_with("[applied]") && late[1].starts_with("false"), "{late:?}");
    let map = "SELECT version, start FROM segments WHERE tid = ?";
    assert_eq!(p.read(map, (p.tid,)).await, ["version start", "1 0x01"]);
    assert_eq!(change(vec![from(Some(1), 2), segment("a"), segment("m"), gone("")]).await, APPLIED);
    assert_eq!(p.read(map, (p.tid,)).await, ["version start", "2 a", "2 m"]);
}
