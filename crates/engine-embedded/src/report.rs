//! What a check found, in the words of whoever keeps data here: accounts, tables, keys, files.

use std::fmt;

use model::ServiceKind;
use store::place_of;

/// Damage is listed up to this; the rest is only counted, so that a store that is damaged all over fits in memory.
pub const DAMAGE_LISTED_MAX: usize = 1000;

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By account, service and name. A queue is a table of the Queue service.
    pub tables: Vec<TableCount>,
    pub damage: Vec<Damage>,
    /// Damage beyond what is listed.
    pub damage_unlisted: u64,
    /// Rows of dropped tables, whose space is not given back yet.
    pub dropped_rows: u64,
    /// Rows that lie where another file can't be read, and so may be older than what was there.
    pub doubtful_rows: u64,
    /// Table files and logs.
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
    /// Keys and rows as they are stored, before compression.
    pub bytes: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's name in the database's directory, or in the data directory.
    pub file: Option<String>,
    pub detail: String,
    /// Whether rows can be lost by it.
    pub loses_rows: bool,
    /// Between which rows it lies, if that is known.
    pub after: Option<Place>,
    pub before: Option<Place>,
}

/// Where an unreadable place begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This row is there: the last one before the place, or the first one behind it.
    Found(RowPlace),
    /// This one is lost too, and no other before it, or behind it, by this damage.
    Lost(RowPlace),
}

impl Place {
    pub fn row(&self) -> &RowPlace {
        match self {
            Self::Found(row) | Self::Lost(row) => row,
        }
    }
}

/// A row by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// Not known for a table that no record names.
    pub account: Option<String>,
    /// Its name, after the service if that is not Table; or the id its rows lie under.
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
        if let (Some(Place::Lost(only)), Some(Place::Lost(last))) = (&self.after, &self.before)
            && only == last
        {
            return write!(f, "; {only}");
        }
        match &self.after {
            Some(Place::Found(row)) => write!(f, "; after {row}")?,
            Some(Place::Lost(row)) => write!(f, "; from {row}")?,
            None => {}
        }
        match &self.before {
            Some(Place::Found(row)) => write!(f, "; before {row}"),
            Some(Place::Lost(row)) => write!(f, "; up to {row}"),
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
