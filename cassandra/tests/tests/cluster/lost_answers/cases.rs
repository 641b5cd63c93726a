//! Writes to try, each with the rows before it and after it.

use model::{DateTime, Key};
use store::{Change, Condition, Engine as _, RowOperation, Transaction};
use store_suite::{key, number};

use crate::lost_answers::Ground;

#[derive(Clone, Copy, Debug)]
pub enum If {
    Absent,
    Exists,
    Anything,
    /// The version that the row has before the write.
    Current,
}

#[derive(Clone, Copy, Debug)]
pub enum Do {
    Put(i32),
    Merge(i32),
    Delete,
}

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub before: &'static [(&'static str, i32)],
    pub operations: &'static [(&'static str, If, Do)],
    pub after: &'static str,
}

use Do::{Delete, Merge, Put};
use If::{Absent, Anything, Current, Exists};

pub const OPENING: Case =
    Case { name: "insert into nothing", before: &[], operations: &[("a", Absent, Put(1))], after: "a=1" };
pub const INSERT: Case = Case {
    name: "insert beside another",
    before: &[("b", 5)],
    operations: &[("a", Absent, Put(1))],
    after: "a=1 b=5",
};
pub const REPLACE: Case = Case {
    name: "replace by version",
    before: &[("a", 1), ("b", 2)],
    operations: &[("a", Current, Put(10))],
    after: "a=10 b=2",
};
pub const UPSERT: Case = Case {
    name: "replace whatever is there",
    before: &[("a", 1)],
    operations: &[("a", Anything, Put(10))],
    after: "a=10",
};
pub const MERGE: Case = Case {
    name: "merge by version",
    before: &[("a", 1)],
    operations: &[("a", Current, Merge(10))],
    after: "a=10",
};
pub const DELETE: Case = Case {
    name: "delete by version",
    before: &[("a", 1), ("b", 2)],
    operations: &[("a", Current, Delete)],
    after: "b=2",
};
pub const EMPTYING: Case = Case {
    name: "delete the only row",
    before: &[("a", 1)],
    operations: &[("a", Exists, Delete)],
    after: "",
};
pub const GROUP: Case = Case {
    name: "a transaction of everything",
    before: &[("a", 1), ("b", 2), ("c", 3)],
    operations: &[
        ("a", Current, Put(10)),
        ("b", Current, Delete),
        ("c", Exists, Merge(30)),
        ("d", Absent, Put(4)),
    ],
    after: "a=10 c=30 d=4",
};

pub const ALL: [Case; 8] = [OPENING, INSERT, REPLACE, UPSERT, MERGE, DELETE, EMPTYING, GROUP];

impl Case {
    /// Writes the rows that the case begins with, and returns its write.
    pub async fn prepare(&self, ground: &Ground, partition: &str) -> Transaction {
        let found =
            |(row, value): &(&str, i32)| operation(row, Condition::Absent, Change::Put(number(*value)));
        let before: Vec<RowOperation> = self.before.iter().map(found).collect();
        let stamps = match Transaction::new(key(partition, "").partition, before) {
            Some(before) => ground.witness.apply(&ground.table, before).await.unwrap(),
            None => Vec::new(),
        };
        let version = |row: &str| -> DateTime {
            let at = self.before.iter().position(|(name, _)| *name == row).unwrap();
            stamps[at]
        };
        let write = |(row, condition, change): &(&str, If, Do)| {
            let condition = match condition {
                Absent => Condition::Absent,
                Exists => Condition::Exists,
                Anything => Condition::Anything,
                Current => Condition::Version(version(row)),
            };
            let change = match change {
                Put(value) => Change::Put(number(*value)),
                Merge(value) => Change::Merge(number(*value)),
                Delete => Change::Delete,
            };
            operation(row, condition, change)
        };
        let operations = self.operations.iter().map(write).collect();
        Transaction::new(key(partition, "").partition, operations).unwrap()
    }

    pub fn found(&self) -> String {
        self.before.iter().map(|(row, value)| format!("{row}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// Checks that the write was done, with the stamps of its answer.
    pub async fn assert_done(&self, ground: &Ground, partition: &str, stamps: &[DateTime], what: &str) {
        assert_eq!(ground.values(partition).await, self.after, "{what}");
        let rows = ground.rows(partition).await;
        for ((row, _, change), stamp) in self.operations.iter().zip(stamps) {
            if !matches!(change, Delete) {
                let (.., stored) = rows.iter().find(|(name, ..)| name == row).unwrap();
                assert_eq!(stored, stamp, "{what}: {row} has another version than the answer");
            }
        }
    }
}

fn operation(row: &str, condition: Condition, change: Change) -> RowOperation {
    RowOperation { row: Key::parse(row).unwrap(), condition, change }
}
