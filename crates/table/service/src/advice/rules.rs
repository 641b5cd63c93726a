//! What a user can do today about a query that examines many entities in vain: a rule for each kind of filter.

use super::outline::{Outline, Use};

/// A change of keys or of the query. The numbers that it would save are the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub kind: ProposalKind,
    /// What to do, in one or two sentences.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalKind {
    /// A second table whose keys are the properties that the query knows.
    IndexTable,
    /// A second row in the same partition, written in the same transaction.
    IndexRow,
    /// The property becomes the beginning of the row key.
    RowKeyRange,
    /// The time becomes a part of the keys.
    TimeInKeys,
    /// Name each partition instead of a range of them.
    NamePartitions,
    /// A table with both keys exchanged.
    ExchangeKeys,
    /// One query for each alternative.
    SplitQuery,
    /// The entities that the query wants get a partition or a table of their own.
    KeepApart,
}

impl ProposalKind {
    pub const ALL: [Self; 8] = [
        Self::IndexTable,
        Self::IndexRow,
        Self::RowKeyRange,
        Self::TimeInKeys,
        Self::NamePartitions,
        Self::ExchangeKeys,
        Self::SplitQuery,
        Self::KeepApart,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::IndexTable => "index-table",
            Self::IndexRow => "index-row",
            Self::RowKeyRange => "row-key-range",
            Self::TimeInKeys => "time-in-keys",
            Self::NamePartitions => "name-partitions",
            Self::ExchangeKeys => "exchange-keys",
            Self::SplitQuery => "split-query",
            Self::KeepApart => "keep-apart",
        }
    }

    /// The section of docs/patterns.md that shows it.
    pub fn pattern(self) -> &'static str {
        match self {
            Self::IndexTable | Self::ExchangeKeys | Self::SplitQuery => "inter-partition-index",
            Self::IndexRow => "intra-partition-index",
            Self::RowKeyRange => "compound-key",
            Self::TimeInKeys => "log-tail",
            Self::NamePartitions => "what-a-query-costs",
            Self::KeepApart => "denormalization",
        }
    }
}

/// The first rule that fits. `None` if the keys already say all that can be said.
pub fn propose(outline: &Outline) -> Option<Proposal> {
    let Outline { partition, row, timestamp, equal, ranged, excluded, alternatives } = outline;
    let is_pinned = *partition == Use::Point;
    let (kind, text) = match (equal.as_slice(), ranged.as_slice()) {
        ([], []) if !alternatives.is_empty() => (ProposalKind::SplitQuery, split(alternatives)),
        ([], []) if is_pinned && *timestamp != Use::Unused => (
            ProposalKind::TimeInKeys,
            "Timestamp is not a key. Begin the RowKey with the time at which the entity is made, counted down if the \
             newest are read first, and filter on a range of RowKey."
                .to_owned(),
        ),
        ([], []) if !excluded.is_empty() && (is_pinned || *row != Use::Point) => {
            (ProposalKind::KeepApart, apart(excluded))
        }
        ([], []) if !is_pinned && *row == Use::Point && *partition == Use::Range => (
            ProposalKind::NamePartitions,
            "A range of PartitionKey with one RowKey reads every entity of these partitions. Name each partition, \
             (PartitionKey eq … or PartitionKey eq …) and RowKey eq …: then each is a look-up by both keys."
                .to_owned(),
        ),
        ([], []) if !is_pinned && *row != Use::Unused => (
            ProposalKind::ExchangeKeys,
            "RowKey without PartitionKey reads every partition. Pin the PartitionKey if you know it; else keep a second \
             table whose PartitionKey is this table's RowKey."
                .to_owned(),
        ),
        ([], []) if *timestamp != Use::Unused => (
            ProposalKind::TimeInKeys,
            "Timestamp is not a key. Make the day or the hour at which the entity is made the PartitionKey, and its time \
             the beginning of the RowKey; then ask for a range of PartitionKey."
                .to_owned(),
        ),
        ([], []) => return None,
        ([], [name, ..]) if is_pinned => (
            ProposalKind::RowKeyRange,
            format!(
                "Begin the RowKey with {name}, written so that its texts sort as its values do, and filter on a range of \
                 RowKey instead of {name}."
            ),
        ),
        ([], [name, ..]) => (
            ProposalKind::IndexTable,
            format!(
                "Keep a second table ordered by {name}: a coarse part of it, such as the month, is the PartitionKey, and \
                 {name} with the entity's own keys is the RowKey. Then ask for a range of both."
            ),
        ),
        (equal, ranged) => index(equal, ranged, is_pinned),
    };
    Some(Proposal { kind, text })
}

/// Some properties are equal to values, and perhaps one has bounds.
fn index(equal: &[String], ranged: &[String], is_pinned: bool) -> (ProposalKind, String) {
    let values = joined(equal, " and ");
    let order = ranged.first().map(|name| format!("{name} and ")).unwrap_or_default();
    if is_pinned {
        let text = format!(
            "Write a second row for each entity into the same partition, in the same transaction: its RowKey begins with \
             the name and the value of {values}, then {order}the entity's RowKey. Ask for a range of RowKey instead."
        );
        return (ProposalKind::IndexRow, text);
    }
    let text = format!(
        "Keep a second table whose PartitionKey is the value of {values}, and whose RowKey is {order}the entity's own keys. \
         Ask that table, then get the entities by both keys."
    );
    (ProposalKind::IndexTable, text)
}

fn split(names: &[String]) -> String {
    format!(
        "No order of keys serves {} at once. Send one query for each of them and join the answers; give each its own second \
         table, whose PartitionKey is the value that the query knows.",
        joined(names, " or ")
    )
}

fn apart(names: &[String]) -> String {
    format!(
        "Nothing can look up what {} is not. Keep the entities that this query wants in a partition or a table of their own, \
         and move them when {} changes.",
        joined(names, " and "),
        joined(names, " or ")
    )
}

fn joined(names: &[String], word: &str) -> String {
    names.join(word)
}
