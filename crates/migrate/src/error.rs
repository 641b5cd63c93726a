//! The errors that can end a migration, with advice for the operator.

use std::fmt;

use model::{AccountName, EntityKey, ServiceKind};
use store::TableRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the {side}'s account {account}{}: {source}", table_text(.table.as_ref()))]
    Store { side: Side, account: AccountName, table: Option<ServiceTable>, source: store::Error },
    #[error(
        "the target's account {account} has service properties, and the source's has none to put in their place; \
         choose a target that has no such account"
    )]
    PropertiesStay { account: AccountName },
    #[error(transparent)]
    Differs(#[from] Difference),
}

fn table_text(table: Option<&ServiceTable>) -> String {
    table.map(|table| format!(", {table}")).unwrap_or_default()
}

/// What a service calls a table of its own: `table Books`, `queue orders`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTable {
    pub service: ServiceKind,
    pub name: String,
}

impl From<&TableRef> for ServiceTable {
    fn from(table: &TableRef) -> Self {
        Self { service: table.service, name: table.name.to_string() }
    }
}

impl fmt::Display for ServiceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service, self.name)
    }
}

impl Error {
    pub(crate) fn of_account(side: Side, account: &AccountName) -> impl Fn(store::Error) -> Self + use<> {
        let account = account.clone();
        move |source| Self::Store { side, account: account.clone(), table: None, source }
    }

    pub(crate) fn of_table(side: Side, table: &TableRef) -> impl Fn(store::Error) -> Self + use<> {
        let table = table.clone();
        move |source| Self::Store {
            side,
            account: table.account.clone(),
            table: Some((&table).into()),
            source,
        }
    }
}

/// The first difference between the two stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub account: AccountName,
    /// The name on the side that has the table.
    pub table: Option<ServiceTable>,
    pub key: Option<EntityKey>,
    pub found: DifferenceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Only one side has it.
    OnlyIn(Side),
    /// Both have it, and not the same.
    Other,
    /// Both have the table, and its stored access policies, or an account's service properties, are not the same.
    OtherMetadata,
    /// Both have the same row, and not the same content.
    OtherContent,
}

impl Difference {
    pub(crate) fn of_table(table: &TableRef, key: Option<EntityKey>, found: DifferenceKind) -> Self {
        Self { account: table.account.clone(), table: Some(table.into()), key, found }
    }
}

impl std::error::Error for Difference {}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source and target differ in account {}", self.account)?;
        if let Some(table) = &self.table {
            write!(f, ", {table}")?;
        }
        if let Some(EntityKey { partition, row }) = &self.key {
            write!(f, ", PartitionKey {:?}, RowKey {:?}", partition.as_str(), row.as_str())?;
        }
        match self.found {
            DifferenceKind::OnlyIn(side) => write!(f, ": only the {side} has it"),
            DifferenceKind::Other if self.key.is_some() => f.write_str(": the entities are not the same"),
            DifferenceKind::Other => f.write_str(": the names are not written the same"),
            DifferenceKind::OtherContent => f.write_str(": its content is not the same"),
            DifferenceKind::OtherMetadata => {
                f.write_str(match self.table.as_ref().map(|table| table.service) {
                    None => ": other service properties",
                    Some(ServiceKind::Table) => ": other stored access policies",
                    Some(_) => ": other metadata or stored access policies",
                })
            }
        }
    }
}

/// A task that ended without a result.
pub(crate) fn cut_short(error: tokio::task::JoinError) -> store::Error {
    store::Fault::bug("a task of the move was cut short").because(error).into()
}
