//! What a group of transactions on one partition comes to: which rows must be read, what would be written, and
//! who is refused. Asks nobody; `round` does the asking.
//!
//! Transactions are laid over each other in their order, so that many changes of one row become one write. That
//! a transaction goes through is proved by the conditions of that write. That one is refused must be proved by
//! itself: all rows it was judged by have to come from one reading of them, and none may be a row that another
//! transaction of the group has just changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use model::{DateTime, Key, limits};
use store::{Change, Condition, Error, Fault, Operation, RawRow, Row, Transaction, resolve};

use crate::keys::KeyBytes;

/// Rows of a busy partition that are remembered from one group to the next.
const KEPT_ROWS: usize = 400;
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// Bytes that one write may bring, which is what the largest request may: what more waits is written next.
pub const GROUP_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX;
/// Bytes that one transaction may come to, with the rows that it merges into. A Cassandra node takes no mutation and no
/// frame above 16 MiB; the rest is for what is around the rows.
pub const TRANSACTION_BYTES_MAX: usize = 14 * 1024 * 1024;
/// Around each row: its statement, its cells.
const ROW_OVERHEAD: usize = 256;

/// What is known of a row.
#[derive(Clone, Debug)]
struct Known {
    stamp: Option<i64>,
    /// Missing if only the stamp was told, or if the row is.
    body: Option<Bytes>,
    /// Which reading it comes from; none if it is what a transaction expects and the write will prove.
    reading: Option<u32>,
}

/// What is known of a partition's rows, from readings and refusals, each of one moment.
#[derive(Debug, Default)]
pub struct Knowledge {
    rows: HashMap<KeyBytes, Known>,
    readings: u32,
}

/// A row as a reading found it.
#[derive(Clone, Debug)]
pub struct ReadRow {
    pub key: KeyBytes,
    pub stamp: Option<i64>,
    pub body: Option<Bytes>,
}

impl Knowledge {
    /// All of `asked` were looked for at one moment, and these were found.
    pub fn learn<'a>(&mut self, asked: impl IntoIterator<Item = &'a KeyBytes>, found: Vec<ReadRow>) {
        self.readings += 1;
        let reading = Some(self.readings);
        let mut found: HashMap<KeyBytes, ReadRow> =
            found.into_iter().map(|row| (row.key.clone(), row)).collect();
        for key in asked {
            let row = found.remove(key).filter(|row| row.stamp.is_some());
            let (stamp, mut body) = row.map_or((None, None), |row| (row.stamp, row.body));
            // A refusal tells stamps only, but under the same stamp is the same row.
            if body.is_none() {
                body =
                    self.rows.remove(key).filter(|known| known.stamp == stamp).and_then(|known| known.body);
            }
            self.rows.insert(key.clone(), Known { stamp, body, reading });
        }
    }

    /// For the next group: what was read before its transactions came can refuse none of them.
    pub fn age(&mut self) {
        if self.rows.len() > KEPT_ROWS || self.bytes() > KEPT_BYTES {
            self.rows.clear();
        }
        self.rows.values_mut().for_each(|known| known.reading = None);
    }

    /// Lets go of rows that were read, if they take too much.
    pub fn shed(&mut self) {
        if self.bytes() > KEPT_BYTES {
            self.rows.clear();
        }
    }

    /// Of the rows that are known whole.
    fn bytes(&self) -> usize {
        self.rows.values().filter_map(|known| known.body.as_ref()).map(Bytes::len).sum()
    }

    /// What a write has made of the rows: good enough to expect, not to refuse anyone by.
    pub fn wrote(&mut self, writes: &BTreeMap<KeyBytes, Write>) {
        for (key, write) in writes {
            let stamp = write.row.as_ref().map(|(stamp, _)| stamp.ticks());
            let body = write.row.as_ref().map(|(_, row)| Bytes::copy_from_slice(row.as_bytes()));
            self.rows.insert(key.clone(), Known { stamp, body, reading: None });
        }
    }
}

/// One row of the write, against the stamp it must still have.
#[derive(Clone, Debug)]
pub struct Write {
    pub expected: Option<i64>,
    pub row: Option<(DateTime, Row)>,
}

/// What became of one transaction of the group.
#[derive(Debug)]
pub enum Verdict {
    /// Part of the write, with these stamps.
    Accepted(Vec<DateTime>),
    Rejected(Error),
    /// To be judged again once the write is done.
    Later,
}

#[derive(Debug)]
pub enum Plan {
    /// These rows have to be read first, and `bodies` of them whole.
    Read {
        rows: BTreeSet<KeyBytes>,
        bodies: BTreeSet<KeyBytes>,
    },
    Write {
        writes: BTreeMap<KeyBytes, Write>,
        verdicts: Vec<Verdict>,
    },
}

/// Where a row stands within the group.
struct Standing {
    known: Known,
    /// Its stamp before the group, if the group has changed it.
    changed: Option<Write>,
}

/// `stamps` are the operations' own, in their order.
pub fn plan(
    partition: &Key,
    group: &[Transaction],
    knowledge: &Knowledge,
    stamps: &[DateTime],
) -> Result<Plan, Fault> {
    let operations: usize = group.iter().map(|transaction| transaction.operations().len()).sum();
    let first = stamps.first().copied().filter(|_| stamps.len() == operations);
    let first = first.ok_or_else(|| stray("operations and stamps are not as many"))?;
    let mut standings: HashMap<KeyBytes, Standing> = HashMap::new();
    let (mut wanted, mut bodies) = (BTreeSet::new(), BTreeSet::new());
    let mut bytes = 0;
    let mut verdicts = Vec::with_capacity(group.len());
    let mut stamps = stamps.iter().copied();
    for transaction in group {
        let mine: Vec<DateTime> = stamps.by_ref().take(transaction.operations().len()).collect();
        let keys: Vec<KeyBytes> =
            transaction.operations().iter().map(|operation| KeyBytes::of(operation.row.as_str())).collect();
        let mut is_unread = false;
        for (key, operation) in keys.iter().zip(transaction.operations()) {
            let standing =
                standings.get(key).map(|standing| &standing.known).or_else(|| knowledge.rows.get(key));
            match standing {
                None => match expectation(operation, first) {
                    Some(known) => drop(standings.insert(key.clone(), Standing { known, changed: None })),
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
                        standings.insert(key.clone(), Standing { known, changed: None });
                    }
                }
            }
        }
        if is_unread {
            // Judged by one reading if it has to be read for anyway.
            wanted.extend(keys);
            verdicts.push(Verdict::Later);
            continue;
        }
        verdicts.push(match judge(partition, transaction, &keys, &mine, &standings)? {
            Ok(changes) if bytes > 0 && bytes + weigh(&keys, &changes).sum::<usize>() > GROUP_BYTES_MAX => {
                Verdict::Later
            }
            Ok(changes) => match over(&keys, &changes) {
                Some(index) => Verdict::Rejected(too_large(index)),
                None => {
                    bytes += weigh(&keys, &changes).sum::<usize>();
                    for (key, row) in keys.into_iter().zip(changes) {
                        let standing =
                            standings.get_mut(&key).ok_or_else(|| stray("a row was judged unseen"))?;
                        let expected =
                            standing.changed.as_ref().map_or(standing.known.stamp, |write| write.expected);
                        let body = row.as_ref().map(|(_, row)| Bytes::copy_from_slice(row.as_bytes()));
                        let stamp = row.as_ref().map(|(stamp, _)| stamp.ticks());
                        standing.known = Known { stamp, body, reading: None };
                        standing.changed = Some(Write { expected, row });
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
        return Ok(Plan::Read { rows: wanted, bodies });
    }
    let changed = |(key, standing): (KeyBytes, Standing)| Some((key, standing.changed?));
    Ok(Plan::Write { writes: standings.into_iter().filter_map(changed).collect(), verdicts })
}

/// Of a transaction that no write can hold, whatever else there is to write.
pub fn too_large(index: usize) -> Error {
    Error::Rejected { index, reason: store::Reason::OverLimit(common::Refusal::RequestBodyTooLarge.into()) }
}

/// The first operation that no write can hold together with those before it.
fn over(keys: &[KeyBytes], changes: &Changes) -> Option<usize> {
    let mut sum = 0;
    weigh(keys, changes).position(|row| {
        sum += row;
        sum > TRANSACTION_BYTES_MAX
    })
}

/// Bytes that each row of a transaction takes in its write.
fn weigh(keys: &[KeyBytes], changes: &Changes) -> impl Iterator<Item = usize> {
    let row = |row: &Option<(DateTime, Row)>| row.as_ref().map_or(0, |(_, row)| row.as_bytes().len());
    keys.iter().zip(changes).map(move |(key, change)| ROW_OVERHEAD + key.as_bytes().len() + row(change))
}

/// What can't be unless this program is wrong. Nothing is written then.
fn stray(what: &str) -> Fault {
    Fault::bug(format!("while planning a write, {what}"))
}

struct Refusal {
    index: usize,
    reason: store::Reason,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Rejected { index: refusal.index, reason: refusal.reason }
    }
}

type Changes = Vec<Option<(DateTime, Row)>>;

fn judge(
    partition: &Key,
    transaction: &Transaction,
    keys: &[KeyBytes],
    stamps: &[DateTime],
    standings: &HashMap<KeyBytes, Standing>,
) -> Result<Result<Changes, Refusal>, Fault> {
    let mut changes = Vec::with_capacity(keys.len());
    for (index, (operation, key)) in transaction.operations().iter().zip(keys).enumerate() {
        let known = standings.get(key).map(|standing| &standing.known);
        let stamp = stamps.get(index).copied().ok_or_else(|| stray("an operation has no stamp"))?;
        let stand_in;
        let current = match known {
            Some(Known { body: Some(body), stamp: Some(_), .. }) => Some(RawRow::new(body)),
            // Whatever does not look into the row needs no more of it than its timestamp.
            Some(Known { body: None, stamp: Some(ticks), .. }) => {
                let at = DateTime::from_ticks(*ticks)
                    .ok_or_else(|| Fault::damaged(format!("the stored timestamp {ticks} is not a time")))?;
                stand_in = store::RowDraft::new(std::iter::empty()).stamp(at);
                Some(RawRow::new(stand_in.as_bytes()))
            }
            _ => None,
        };
        match resolve(partition, operation.clone(), current, stamp)? {
            Ok(row) => changes.push(row.map(|row| (stamp, row))),
            Err(reason) => return Ok(Err(Refusal { index, reason })),
        }
    }
    Ok(Ok(changes))
}

/// What an operation expects of its row says what the write's condition is, without a look at the row. A version
/// above the stamps it would be replaced by is looked up first: the row may be of a server whose clock is ahead.
fn expectation(operation: &Operation, first: DateTime) -> Option<Known> {
    match operation.condition {
        Condition::Absent => Some(Known { stamp: None, body: None, reading: None }),
        Condition::Version(version) if !needs_body(operation) && version < first => {
            Some(Known { stamp: Some(version.ticks()), body: None, reading: None })
        }
        _ => None,
    }
}

fn needs_body(operation: &Operation) -> bool {
    matches!(operation.change, Change::Merge(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use store_suite::{key, number};

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
            Plan::Read { rows, bodies } => {
                let whole = |key| if bodies.contains(key) { "+" } else { "" };
                let rows = rows.iter().map(|key| format!("{}{}", name(key), whole(key)));
                format!("read {}", rows.collect::<Vec<_>>().join(" "))
            }
            Plan::Write { writes, verdicts } => {
                let write = |(key, write): (&KeyBytes, &Write)| {
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
    fn nobody_is_judged_by_a_row_that_is_still_to_be_read_for_another() {
        let nothing = Knowledge::default();
        let group = [put("a", Condition::Anything), put("a", Condition::Exists), put("b", Condition::Absent)];
        assert_eq!(shown(&group, &nothing), "read a");
        let group = [merge("a", Condition::Exists), merge("a", Condition::Exists)];
        assert_eq!(shown(&group, &nothing), "read a+");
    }

    #[test]
    fn a_stamp_from_the_future_is_looked_up_before_it_is_believed() {
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
    fn a_refusal_rests_on_one_reading() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("b")], vec![read("a", 5)]);
        assert_eq!(shown(&[put("a", Condition::Absent)], &knowledge), ": 0 Exists");
        assert_eq!(shown(&[put("b", Condition::Exists)], &knowledge), ": 0 Missing");
        assert_eq!(shown(&[put("a", version(4))], &knowledge), ": 0 VersionDiffers");
        let operation = |row: &str, condition| Operation {
            row: Key::parse(row).unwrap(),
            condition,
            change: Change::Delete,
        };
        // c is what the transaction expects it to be, and nothing is known of it: whether it or a is the first
        // to refuse takes a reading of both.
        let both = vec![operation("c", version(9)), operation("a", Condition::Absent)];
        let both = [Transaction::new(Key::parse("p").unwrap(), both).unwrap()];
        assert_eq!(shown(&both, &knowledge), "read a c");
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("c")], vec![read("a", 5), read("c", 8)]);
        assert_eq!(shown(&both, &knowledge), ": 0 VersionDiffers");
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("c")], vec![read("a", 5), read("c", 9)]);
        assert_eq!(shown(&both, &knowledge), ": 1 Exists");
    }

    #[test]
    fn what_an_earlier_group_read_refuses_no_one() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a")], vec![read("a", 5)]);
        knowledge.age();
        assert_eq!(shown(&[put("a", Condition::Absent)], &knowledge), "read a");
        assert_eq!(shown(&[put("a", Condition::Exists)], &knowledge), "put a if 5: yes");
    }

    #[test]
    fn who_is_refused_because_of_another_is_judged_again_after_it() {
        let nothing = Knowledge::default();
        let group = [put("a", version(5)), put("a", version(5)), put("b", Condition::Absent)];
        assert_eq!(shown(&group, &nothing), "put a if 5, put b if none: yes, later, yes");
    }

    #[test]
    fn a_refused_transaction_leaves_no_trace() {
        let mut knowledge = Knowledge::default();
        knowledge.learn([&KeyBytes::of("a"), &KeyBytes::of("b")], vec![read("a", 5)]);
        let operation = |row: &str, condition| Operation {
            row: Key::parse(row).unwrap(),
            condition,
            change: Change::Put(number(1)),
        };
        let half = vec![operation("b", Condition::Absent), operation("a", Condition::Absent)];
        let half = Transaction::new(Key::parse("p").unwrap(), half).unwrap();
        assert_eq!(shown(&[half, put("b", Condition::Absent)], &knowledge), "put b if none: 1 Exists, yes");
    }

    #[test]
    fn a_refusals_stamps_leave_a_body_that_still_holds() {
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
        let operations = rows.iter().map(|row| Operation {
            row: Key::parse(row.as_str()).unwrap(),
            condition: Condition::Exists,
            change: Change::Merge(number(2)),
        });
        Transaction::new(Key::parse("p").unwrap(), operations.collect()).unwrap()
    }

    #[test]
    fn a_write_is_weighed_with_the_rows_that_are_merged_into() {
        let rows: Vec<String> = (0..20).map(|n| format!("r{n:02}")).collect();
        let mut knowledge = Knowledge::default();
        let keys: Vec<KeyBytes> = rows.iter().map(|row| KeyBytes::of(row)).collect();
        knowledge.learn(&keys, rows.iter().map(|row| large_row(row)).collect());
        // Four of these rows are as much as goes together; the others are judged after them.
        let singles: Vec<Transaction> = rows.iter().map(|row| merge(row, Condition::Exists)).collect();
        let shown_singles = shown(&singles, &knowledge);
        assert_eq!(shown_singles.matches("put").count(), 4, "{shown_singles}");
        assert_eq!(shown_singles.matches("later").count(), 16, "{shown_singles}");
        // A transaction is whole, up to what a node takes; one that no write can hold is refused.
        let shown_twelve = shown(&[merges(&rows[..12])], &knowledge);
        assert!(
            shown_twelve.ends_with(": yes") && shown_twelve.matches("put").count() == 12,
            "{shown_twelve}"
        );
        assert_eq!(shown(&[merges(&rows)], &knowledge), ": 15 OverLimit(Shared(RequestBodyTooLarge))");
    }

    #[test]
    fn rows_are_read_whole_only_to_be_merged_into() {
        let operation = |row: &str, change| Operation {
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
