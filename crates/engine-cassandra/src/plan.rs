//! The write plan of a group of transactions on one partition: which rows must be read, what is written, and which
//! transactions are rejected. It sends no request; `round` does.
//!
//! Transactions are applied on top of each other in order, so that many changes of one row become one write. The
//! conditions of that write prove that a transaction may be accepted. A rejection needs a proof of its own: all rows
//! that decided it must come from one reading, and none of them may be changed by another transaction of the group.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use model::{DateTime, Key, limits};
use store::{Change, Condition, Error, Fault, RawRow, Row, RowOperation, Transaction, resolve};

use crate::keys::KeyBytes;

/// Limits of the rows that are remembered from one group to the next.
const KEPT_ROWS: usize = 400;
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of one write: as many as the largest request may have. Other transactions are written next.
pub const GROUP_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX;
/// Bytes of one transaction, with the rows that it merges into. A Cassandra node accepts no mutation and no frame
/// above 16 MiB; the difference is for everything but the rows.
pub const TRANSACTION_BYTES_MAX: usize = 14 * 1024 * 1024;
/// Bytes of the statement and the cells of each row.
const ROW_OVERHEAD: usize = 256;

/// What is known of a row.
#[derive(Clone, Debug)]
struct KnownRow {
    stamp: Option<i64>,
    /// `None` if only the stamp is known, or if there is no row.
    body: Option<Bytes>,
    /// The reading that it comes from; `None` if a transaction expects it and the condition of the write will prove it.
    reading: Option<u32>,
}

/// What is known of a partition's rows, from readings and from refused writes. Each shows one moment.
#[derive(Debug, Default)]
pub struct Knowledge {
    rows: HashMap<KeyBytes, KnownRow>,
    readings: u32,
}

/// A row from one reading.
#[derive(Clone, Debug)]
pub struct ReadRow {
    pub key: KeyBytes,
    pub stamp: Option<i64>,
    pub body: Option<Bytes>,
}

impl Knowledge {
    /// Adds one reading: all of `asked` were read at one moment, and `found` are those that exist.
    pub fn learn<'a>(&mut self, asked: impl IntoIterator<Item = &'a KeyBytes>, found: Vec<ReadRow>) {
        self.readings += 1;
        let reading = Some(self.readings);
        let mut found: HashMap<KeyBytes, ReadRow> =
            found.into_iter().map(|row| (row.key.clone(), row)).collect();
        for key in asked {
            let row = found.remove(key).filter(|row| row.stamp.is_some());
            let (stamp, mut body) = row.map_or((None, None), |row| (row.stamp, row.body));
            // A refused write shows only stamps. If the stamp is the same, the body we know is still right.
            if body.is_none() {
                body =
                    self.rows.remove(key).filter(|known| known.stamp == stamp).and_then(|known| known.body);
            }
            self.rows.insert(key.clone(), KnownRow { stamp, body, reading });
        }
    }

    /// Prepares for the next group: rows read before its transactions arrived can't reject any of them.
    pub fn age(&mut self) {
        if self.rows.len() > KEPT_ROWS || self.bytes() > KEPT_BYTES {
            self.rows.clear();
        }
        self.rows.values_mut().for_each(|known| known.reading = None);
    }

    /// Forgets the rows if they take too much memory.
    pub fn shed(&mut self) {
        if self.bytes() > KEPT_BYTES {
            self.rows.clear();
        }
    }

    /// The bytes of the rows whose bodies are known.
    fn bytes(&self) -> usize {
        self.rows.values().filter_map(|known| known.body.as_ref()).map(Bytes::len).sum()
    }

    /// Remembers the rows that a write has left. A condition may expect them; they can't reject a transaction.
    pub fn wrote(&mut self, writes: &BTreeMap<KeyBytes, RowWrite>) {
        for (key, write) in writes {
            let stamp = write.row.as_ref().map(|(stamp, _)| stamp.ticks());
            let body = write.row.as_ref().map(|(_, row)| Bytes::copy_from_slice(row.as_bytes()));
            self.rows.insert(key.clone(), KnownRow { stamp, body, reading: None });
        }
    }
}

/// The write of one row, if it still has the expected stamp.
#[derive(Clone, Debug)]
pub struct RowWrite {
    pub expected: Option<i64>,
    pub row: Option<(DateTime, Row)>,
}

/// The decision on one transaction of the group.
#[derive(Debug)]
pub enum Verdict {
    /// It is part of the write, with these stamps.
    Accepted(Vec<DateTime>),
    Rejected(Error),
    /// It is decided again after the write.
    Later,
}

#[derive(Debug)]
pub enum WritePlan {
    /// These rows must be read first; those in `bodies` with their bodies, the others only their stamps.
    Read {
        rows: BTreeSet<KeyBytes>,
        bodies: BTreeSet<KeyBytes>,
    },
    Write {
        writes: BTreeMap<KeyBytes, RowWrite>,
        verdicts: Vec<Verdict>,
    },
}

/// A row as the group has left it so far.
struct GroupRow {
    known: KnownRow,
    /// Its write, if the group has changed it.
    changed: Option<RowWrite>,
}

/// Plans the write of a group. `stamps` has one stamp for each operation, in order.
pub fn plan(
    partition: &Key,
    group: &[Transaction],
    knowledge: &Knowledge,
    stamps: &[DateTime],
) -> Result<WritePlan, Fault> {
    let operations: usize = group.iter().map(|transaction| transaction.operations().len()).sum();
    let first = stamps.first().copied().filter(|_| stamps.len() == operations);
    let first = first.ok_or_else(|| stray("the numbers of operations and stamps differ"))?;
    let mut standings: HashMap<KeyBytes, GroupRow> = HashMap::new();
    let (mut wanted, mut bodies) = (BTreeSet::new(), BTreeSet::new());
    let mut bytes = 0;
    let mut verdicts = Vec::with_capacity(group.len());
    let mut stamps = stamps.iter().copied();
    // The first transaction that does not fit closes the group. Deciding those after it would merge rows that have to
    // be merged again for the next write.
    let mut is_full = false;
    for transaction in group {
        if is_full {
            verdicts.push(Verdict::Later);
            continue;
        }
        let mine: Vec<DateTime> = stamps.by_ref().take(transaction.operations().len()).collect();
        let keys: Vec<KeyBytes> =
            transaction.operations().iter().map(|operation| KeyBytes::of(operation.row.as_str())).collect();
        let mut is_unread = false;
        for (key, operation) in keys.iter().zip(transaction.operations()) {
            let standing =
                standings.get(key).map(|standing| &standing.known).or_else(|| knowledge.rows.get(key));
            match standing {
                None => match expectation(operation, first) {
                    Some(known) => drop(standings.insert(key.clone(), GroupRow { known, changed: None })),
                    None => {
                        is_unread = true;
                        wanted.insert(key.clone());
                        if needs_body(operation) {
                            bodies.insert(key.clone());
                        }
                    }
                },
                Some(known) => {
                    if needs_body(operation) && known.stamp.is_some() && known.body.is_none() {
                        is_unread = true;
                        wanted.insert(key.clone());
                        bodies.insert(key.clone());
                    } else if !standings.contains_key(key) {
                        let known = known.clone();
                        standings.insert(key.clone(), GroupRow { known, changed: None });
                    }
                }
            }
        }
        if is_unread {
            // All its rows are read together, so that one reading can reject it.
            wanted.extend(keys);
            verdicts.push(Verdict::Later);
            continue;
        }
        verdicts.push(match judge(partition, transaction, &keys, &mine, &standings)? {
            Ok(changes) if bytes > 0 && bytes + weigh(&keys, &changes).sum::<usize>() > GROUP_BYTES_MAX => {
                is_full = true;
                Verdict::Later
            }
            Ok(changes) => match over(&keys, &changes) {
                Some(index) => Verdict::Rejected(too_large(index)),
                None => {
                    bytes += weigh(&keys, &changes).sum::<usize>();
                    for (key, row) in keys.into_iter().zip(changes) {
                        let standing = standings
                            .get_mut(&key)
                            .ok_or_else(|| stray("a row was judged that is not known"))?;
                        let expected =
                            standing.changed.as_ref().map_or(standing.known.stamp, |write| write.expected);
                        let body = row.as_ref().map(|(_, row)| Bytes::copy_from_slice(row.as_bytes()));
                        let stamp = row.as_ref().map(|(stamp, _)| stamp.ticks());
                        standing.known = KnownRow { stamp, body, reading: None };
                        standing.changed = Some(RowWrite { expected, row });
                    }
                    Verdict::Accepted(mine)
                }
            },
            Err(refusal) => {
                let judged_by = &keys[..=refusal.index];
                let readings: BTreeSet<Option<u32>> =
                    judged_by.iter().filter_map(|key| standings.get(key)).map(|s| s.known.reading).collect();
                let changed =
                    judged_by.iter().filter_map(|key| standings.get(key)).any(|s| s.changed.is_some());
                if changed {
                    Verdict::Later
                } else if readings.len() == 1 && !readings.contains(&None) {
                    Verdict::Rejected(refusal.into())
                } else {
                    wanted.extend(keys);
                    Verdict::Later
                }
            }
        });
    }
    if !wanted.is_empty() {
        return Ok(WritePlan::Read { rows: wanted, bodies });
    }
    let changed = |(key, standing): (KeyBytes, GroupRow)| Some((key, standing.changed?));
    Ok(WritePlan::Write { writes: standings.into_iter().filter_map(changed).collect(), verdicts })
}

/// The rejection of a transaction that is too large for any write.
pub fn too_large(index: usize) -> Error {
    Error::Rejected { index, reason: store::Reason::OverLimit(common::Refusal::RequestBodyTooLarge.into()) }
}

/// The first operation that, together with those before it, is too large for one write.
fn over(keys: &[KeyBytes], changes: &Changes) -> Option<usize> {
    let mut sum = 0;
    weigh(keys, changes).position(|row| {
        sum += row;
        sum > TRANSACTION_BYTES_MAX
    })
}

/// The bytes of each row of a transaction in the write.
fn weigh(keys: &[KeyBytes], changes: &Changes) -> impl Iterator<Item = usize> {
    let row = |row: &Option<(DateTime, Row)>| row.as_ref().map_or(0, |(_, row)| row.as_bytes().len());
    keys.iter().zip(changes).map(move |(key, change)| ROW_OVERHEAD + key.as_bytes().len() + row(change))
}

/// A bug in this program. Nothing is written.
fn stray(what: &str) -> Fault {
    Fault::bug(format!("while planning a write, {what}"))
}

struct Rejection {
    index: usize,
    reason: store::Reason,
}

impl From<Rejection> for Error {
    fn from(refusal: Rejection) -> Self {
        Self::Rejected { index: refusal.index, reason: refusal.reason }
    }
}

type Changes = Vec<Option<(DateTime, Row)>>;

fn judge(
    partition: &Key,
    transaction: &Transaction,
    keys: &[KeyBytes],
    stamps: &[DateTime],
    standings: &HashMap<KeyBytes, GroupRow>,
) -> Result<Result<Changes, Rejection>, Fault> {
    let mut changes = Vec::with_capacity(keys.len());
    #[cfg(test)]
    tests::JUDGED.with(|count| count.set(count.get() + 1));
    for (index, (operation, key)) in transaction.operations().iter().zip(keys).enumerate() {
        let known = standings.get(key).map(|standing| &standing.known);
        let stamp = stamps.get(index).copied().ok_or_else(|| stray("an operation has no stamp"))?;
        let stand_in;
        let current = match known {
            Some(KnownRow { body: Some(body), stamp: Some(_), .. }) => Some(RawRow::new(body)),
            // All operations but a merge need only the timestamp of the row.
            Some(KnownRow { body: None, stamp: Some(ticks), .. }) => {
                let at = DateTime::from_ticks(*ticks)
                    .ok_or_else(|| Fault::damaged(format!("the stored timestamp {ticks} is not a time")))?;
                stand_in = store::RowDraft::new(std::iter::empty()).stamp(at);
                Some(RawRow::new(stand_in.as_bytes()))
            }
            _ => None,
        };
        match resolve(partition, operation.clone(), current, stamp)? {
            Ok(row) => changes.push(row.map(|row| (stamp, row))),
            Err(reason) => return Ok(Err(Rejection { index, reason })),
        }
    }
    Ok(Ok(changes))
}

/// The state that the operation's condition expects. It becomes the condition of the write, so the row need not be
/// read. A version above the stamp of the new row is read first: it may come from a server whose clock is ahead.
fn expectation(operation: &RowOperation, first: DateTime) -> Option<KnownRow> {
    match operation.condition {
        Condition::Absent => Some(KnownRow { stamp: None, body: None, reading: None }),
        Condition::Version(version) if !needs_body(operation) && version < first => {
            Some(KnownRow { stamp: Some(version.ticks()), body: None, reading: None })
        }
        _ => None,
    }
}

fn needs_body(operation: &RowOperation) -> bool {
    matches!(operation.change, Change::Merge(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use store_suite::{key, number};

    thread_local! {
        /// Transactions judged by this thread.
        pub static JUDGED: Cell<usize> = const { Cell::new(0) };
    }

    fn stamps(count: i64) -> Vec<DateTime> {
        (0..count).map(|i| DateTime::from_ticks(DateTime::MIN_STORED.ticks() + 1000 + i).unwrap()).collect()
    }

    fn put(row: &str, condition: Condition) -> Transaction {
        Transaction::of_one(key("p", row), condition, Change::Put(number(1)))
    }

    fn merge(row: &str, condition: Condition) -> Transaction {
        Transaction::of_one(key("p", row), condition, Change::Merge(number(2)))
    }

    fn delete(row: &str, condition: Condition) -> Transaction {
        Transaction::of_one(key("p", row), condition, Change::Delete)
    }

    fn version(ticks: i64) -> Condition {
        Condition::Version(DateTime::from_ticks(DateTime::MIN_STORED.ticks() + ticks).unwrap())
    }

    fn ticks(offset: i64) -> i64 {
        DateTime::MIN_STORED.ticks() + offset
    }

    fn read(row: &str, stamp: i64) -> ReadRow {
        let body = number(7).stamp(DateTime::from_ticks(ticks(stamp)).unwrap());
        let body = Some(Bytes::copy_from_slice(body.as_bytes()));
        ReadRow { key: KeyBytes::of(row), stamp: Some(ticks(stamp)), body }
    }

    /// The plan in short: rows to read, or expected stamps of the rows written, and the verdicts.
    fn shown(group: &[Transaction], knowledge: &Knowledge) -> String {
        let count = group.iter().map(|transaction| transaction.operations().len()).sum::<usize>();
        let planned = plan(&Key::parse("p").unwrap(), group, knowledge, &stamps(count as i64)).unwrap();
        let name = |key: &KeyBytes| String::from_utf8(key.encoded().to_vec()).unwrap();
        match planned {
            WritePlan::Read { rows, bodies } => {
                let whole = |key| if bodies.contains(key) { "+" } else { "" };
                let rows = rows.iter().map(|key| format!("{}{}", name(key), whole(key)));
                format!("read {}", rows.collect::<Vec<_>>().join(" "))
            }
            WritePlan::Write { writes, verdicts } => {
                let write = |(key, write): (&KeyBytes, &RowWrite)| {
                    let expected = write.expected.map_or("none".to_owned(), |at| (at - ticks(0)).to_string());
                    let change = if write.row.is_some() { "put" } else { "delete" };
                    format!("{change} {} if {expected}", name(key))
                };
                let verdict = |verdict: &Verdict| match verdict {
                    Verdict::Accepted(_) => "yes".to_owned(),
                    Verdict::Rejected(Error::Rejected { index, reason }) => format!("{index} {reason:?}"),
                    Verdict::Rejected(other) => other.to_string(),
                    Verdict::Later => "later".to_owned(),
                };
                let writes: Vec<_> = writes.iter().map(write).collect();
                let verdicts: Vec<_> = verdicts.iter().map(verdict).collect();
                format!("{}: {}", writes.join(", "), verdicts.join(", "))
            }
        }
    }

    #[test]
    fn an_operation_that_says_what_it_expects_needs_no_reading() {
        let nothing = Knowledge::default();
        for (transaction, expected) in [
            (put("a", Condition::Absent), "put a if none: yes"),
            (put("a", version(5)), "put a if 5: yes"),
            (delete("a", version(5)), "delete a if 5: yes"),
            (merge("a", Condition::Absent), "put a if none: yes"),
            (merge("a", version(5)), "read a+"),
            (put("a", Condition::Anything), "read a"),
            (put("a", Condition::Exists), "read a"),
            (delete("a", Condition::Exists), "read a"),
        ] {
            assert_eq!(shown(&[transaction], &nothing), expected);
        }
    }

    #[test]
    fn no_transaction_is_judged_by_a_row_that_is_not_read_yet() {
        let nothing = Knowledge::default();
        let group = [put("a", Condition::Anything), put("a", Condition::Exists), put("b", Condition::Absent)];
        assert_eq!(shown(&group, &nothing), "read a");
        let group = [merge("a", Condition::Exists), merge("a", Condition::Exists)];
        assert_eq!(shown(&group, &nothing), "read a+");
    }

    #[test]
    fn a_version_above_the_new_stamp_is_read_first() {
        let nothing = Knowledge::default();
        assert_eq!(shown(&[put("a", version(999))], &nothing), "put a if 999: yes");
        assert_eq!(shown(&[put("a", version(1000))], &nothing), "read a");
    }

    #[test]
    fn changes_of_one_row_become_one_write() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a")], vec![read("a", 5)]);
        let group =
            [merge("a", Condition::Exists), merge("a", Condition::Anything), put("a", Condition::Anything)];
        assert_eq!(shown(&group, &knowledge), "put a if 5: yes, yes, yes");
        let group = [put("b", Condition::Absent), delete("b", Condition::Exists)];
        assert_eq!(shown(&group, &knowledge), "delete b if none: yes, yes");
    }

    #[test]
    fn a_rejection_rests_on_one_reading() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("b")], vec![read("a", 5)]);
        assert_eq!(shown(&[put("a", Condition::Absent)], &knowledge), ": 0 Exists");
        assert_eq!(shown(&[put("b", Condition::Exists)], &knowledge), ": 0 Missing");
        assert_eq!(shown(&[put("a", version(4))], &knowledge), ": 0 VersionDiffers");
        let operation = |row: &str, condition| RowOperation {
            row: Key::parse(row).unwrap(),
            condition,
            change: Change::Delete,
        };
        // Nothing is known of `c` but what the transaction expects. One reading of both rows has to show whether `c` or
        // `a` rejects it.
        let both = vec![operation("c", version(9)), operation("a", Condition::Absent)];
        let both = [Transaction::new(Key::parse("p").unwrap(), both).unwrap()];
        assert_eq!(shown(&both, &knowledge), "read a c");
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("c")], vec![read("a", 5), read("c", 8)]);
        assert_eq!(shown(&both, &knowledge), ": 0 VersionDiffers");
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("c")], vec![read("a", 5), read("c", 9)]);
        assert_eq!(shown(&both, &knowledge), ": 1 Exists");
    }

    #[test]
    fn rows_read_for_an_earlier_group_reject_no_transaction() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a")], vec![read("a", 5)]);
        knowledge.age();
        assert_eq!(shown(&[put("a", Condition::Absent)], &knowledge), "read a");
        assert_eq!(shown(&[put("a", Condition::Exists)], &knowledge), "put a if 5: yes");
    }

    #[test]
    fn a_transaction_that_conflicts_with_another_is_judged_again_after_it() {
        let nothing = Knowledge::default();
        let group = [put("a", version(5)), put("a", version(5)), put("b", Condition::Absent)];
        assert_eq!(shown(&group, &nothing), "put a if 5, put b if none: yes, later, yes");
    }

    #[test]
    fn a_rejected_transaction_changes_nothing_for_the_next() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("b")], vec![read("a", 5)]);
        let operation = |row: &str, condition| RowOperation {
            row: Key::parse(row).unwrap(),
            condition,
            change: Change::Put(number(1)),
        };
        let half = vec![operation("b", Condition::Absent), operation("a", Condition::Absent)];
        let half = Transaction::new(Key::parse("p").unwrap(), half).unwrap();
        assert_eq!(shown(&[half, put("b", Condition::Absent)], &knowledge), "put b if none: 1 Exists, yes");
    }

    #[test]
    fn a_known_body_is_kept_while_its_stamp_is_the_same() {
        let mut knowledge = Knowledge::default();
        let stamp_only = |stamp| ReadRow { body: None, ..read("a", stamp) };
        knowledge.learn([&KeyBytes::of("a")], vec![read("a", 5)]);
        knowledge.learn([&KeyBytes::of("a")], vec![stamp_only(5)]);
        assert_eq!(shown(&[merge("a", Condition::Exists)], &knowledge), "put a if 5: yes");
        knowledge.learn([&KeyBytes::of("a")], vec![stamp_only(6)]);
        assert_eq!(shown(&[merge("a", Condition::Exists)], &knowledge), "read a+");
        knowledge.learn([&KeyBytes::of("a")], vec![]);
        assert_eq!(shown(&[merge("a", Condition::Exists)], &knowledge), ": 0 Missing");
    }

    fn large_row(row: &str) -> ReadRow {
        let properties: Vec<(String, model::Value)> =
            (0..15).map(|n| (format!("P{n}"), model::Value::Binary(vec![n; 60 * 1024]))).collect();
        let properties: Vec<(&str, model::Value)> =
            properties.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let body = store_suite::draft(&properties).stamp(DateTime::from_ticks(ticks(5)).unwrap());
        let body = Some(Bytes::copy_from_slice(body.as_bytes()));
        ReadRow { key: KeyBytes::of(row), stamp: Some(ticks(5)), body }
    }

    fn merges(rows: &[String]) -> Transaction {
        let operations = rows.iter().map(|row| RowOperation {
            row: Key::parse(row.as_str()).unwrap(),
            condition: Condition::Exists,
            change: Change::Merge(number(2)),
        });
        Transaction::new(Key::parse("p").unwrap(), operations.collect()).unwrap()
    }

    #[test]
    fn the_size_of_a_write_includes_the_merged_rows() {
        let rows: Vec<String> = (0..20).map(|n| format!("r{n:02}")).collect();
        let mut knowledge = Knowledge::default();
        let keys: Vec<KeyBytes> = rows.iter().map(|row| KeyBytes::of(row)).collect();
        knowledge.learn(&keys, rows.iter().map(|row| large_row(row)).collect());
        // Four of these rows fit into one write. The fifth closes the group, and those after it are not merged in vain.
        JUDGED.set(0);
        let singles: Vec<Transaction> = rows.iter().map(|row| merge(row, Condition::Exists)).collect();
        let shown_singles = shown(&singles, &knowledge);
        assert_eq!(shown_singles.matches("put").count(), 4, "{shown_singles}");
        assert_eq!(shown_singles.matches("later").count(), 16, "{shown_singles}");
        assert_eq!(JUDGED.get(), 5);
        // One transaction is not divided, up to the limit of a node; a larger one is rejected.
        let shown_twelve = shown(&[merges(&rows[..12])], &knowledge);
        assert!(
            shown_twelve.ends_with(": yes") && shown_twelve.matches("put").count() == 12,
            "{shown_twelve}"
        );
        assert_eq!(shown(&[merges(&rows)], &knowledge), ": 15 OverLimit(Shared(RequestBodyTooLarge))");
    }

    #[test]
    fn only_rows_to_merge_are_read_with_their_bodies() {
        let operation = |row: &str, change| RowOperation {
            row: Key::parse(row).unwrap(),
            condition: Condition::Exists,
            change,
        };
        let mixed = vec![
            operation("a", Change::Delete),
            operation("b", Change::Merge(number(1))),
            operation("c", Change::Put(number(1))),
        ];
        let mixed = Transaction::new(Key::parse("p").unwrap(), mixed).unwrap();
        assert_eq!(shown(&[mixed], &Knowledge::default()), "read a b+ c");
    }
}
