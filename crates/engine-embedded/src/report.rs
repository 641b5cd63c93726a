//! The result of a check, in the operator's words: accounts, tables, keys, files.

use std::fmt;

use model::ServiceKind;
use store::place_of;

use crate::survey_objects::ObjectCounts;

/// The number of damages that are listed. The rest is only counted, so that the report of a badly damaged store fits
/// in memory.
pub const DAMAGE_LISTED_MAX: usize = 1000;

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By account, service and name. A queue is a table of the Queue service.
    pub tables: Vec<TableCount>,
    pub damage: Vec<Damage>,
    /// The number of damages that are not listed.
    pub damage_unlisted: u64,
    /// Rows of dropped tables whose space is not reclaimed yet.
    pub dropped_rows: u64,
    /// Rows that lie within a gap of another file, and so may be old versions.
    pub doubtful_rows: u64,
    /// Content that is too large for rows.
    pub objects: ObjectCounts,
    /// Table files, blob files and logs.
    pub files: u64,
    pub file_bytes: u64,
    /// The number of the last commit found.
    pub commits: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCount {
    pub account: String,
    pub service: ServiceKind,
    pub table: String,
    pub entities: u64,
    /// The bytes of keys and rows before compression.
    pub bytes: u64,
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's name in the database's directory, or in the data directory.
    pub file: Option<String>,
    pub detail: String,
    /// Whether rows may be lost.
    pub loses_rows: bool,
    /// The rows around it, if they are known.
    pub after: Option<DamageEdge>,
    pub before: Option<DamageEdge>,
}

/// Where a damaged place begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageEdge {
    /// The last row before the place, or the first row behind it. It is readable.
    Found(RowPlace),
    /// The first or last row of the place. It is lost.
    Lost(RowPlace),
}

impl DamageEdge {
    pub fn row(&self) -> &RowPlace {
        match self {
            Self::Found(row) | Self::Lost(row) => row,
        }
    }
}

/// The name of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// `None` if no record names the table.
    pub account: Option<String>,
    /// The name of the table, after its service if that is not Table; or its id if no record names it.
    pub table: String,
    pub partition_key: String,
    pub row_key: String,
}

impl TableCount {
    /// Its place for people: `account/Books`, or `account/queue/orders`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.account, place_of(self.service, &self.table))
    }
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    pub fn entities(&self) -> u64 {
        self.tables.iter().map(|table| table.entities).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    pub(crate) fn add(&mut self, damage: Damage) {
        if self.damage.len() < DAMAGE_LISTED_MAX {
            self.damage.push(damage);
        } else {
            self.damage_unlisted += 1;
        }
    }
}

impl Damage {
    pub(crate) fn new(file: Option<String>, detail: impl Into<String>) -> Self {
        Self { file, detail: detail.into(), loses_rows: true, after: None, before: None }
    }

    pub(crate) fn of(file: &str, detail: impl Into<String>) -> Self {
        Self::new(Some(file.to_owned()), detail)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        f.write_str(&self.detail)?;
        if let (Some(DamageEdge::Lost(only)), Some(DamageEdge::Lost(last))) = (&self.after, &self.before)
            && only == last
        {
            return write!(f, "; {only}");
        }
        match &self.after {
            Some(DamageEdge::Found(row)) => write!(f, "; after {row}")?,
            Some(DamageEdge::Lost(row)) => write!(f, "; from {row}")?,
            None => {}
        }
        match &self.before {
            Some(DamageEdge::Found(row)) => write!(f, "; before {row}"),
            Some(DamageEdge::Lost(row)) => write!(f, "; up to {row}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.account {
            Some(account) => write!(f, "{account}/{}", self.table)?,
            None => write!(f, "the unknown table {}", self.table)?,
        }
        // As a client would write it.
        let quoted = |key: &str| key.replace('\'', "''");
        write!(f, "(PartitionKey='{}',RowKey='{}')", quoted(&self.partition_key), quoted(&self.row_key))
    }
}
