//! The errors that can end a migration, with advice for the operator.

use std::fmt;

use model::{AccountName, EntityKey};
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
    #[error("the {side}'s account {account}{}: {source}", table_text(.table.as_deref()))]
    Store { side: Side, account: AccountName, table: Option<String>, source: store::Error },
    #[error(
        "the target's account {account} has service properties, and the source's has none to put in their place; \
         choose a target that has no such account"
    )]
    PropertiesStay { account: AccountName },
    #[error(transparent)]
    Differs(#[from] Difference),
}

fn table_text(table: Option<&str>) -> String {
    table.map(|table| format!(", table {table}")).unwrap_or_default()
}

impl Error {
    pub(crate) fn of_account(side: Side, account: &AccountName) -> impl Fn(store::Error) -> Self + use<> {
        let account = account.clone();
        move |source| Self::Store { side, account: account.clone(), table: None, source }
    }

    pub(crate) fn of_table(side: Side, table: &TableRef) -> impl Fn(store::Error) -> Self + use<> {
        let table = table.clone();
        move |source| {
            let (account, name) = (table.account.clone(), table.name.to_string());
            Self::Store { side, account, table: Some(name), source }
        }
    }
}

/// The first difference between the two stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub account: AccountName,
    /// The name on the side that has the table.
    pub table: Option<String>,
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
}

impl std::error::Error for Difference {}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source and target differ in account {}", self.account)?;
        if let Some(table) = &self.table {
            write!(f, ", table {table}")?;
        }
        if let Some(EntityKey { partition, row }) = &self.key {
            write!(f, ", PartitionKey {:?}, RowKey {:?}", partition.as_str(), row.as_str())?;
        }
        match self.found {
            DifferenceKind::OnlyIn(side) => write!(f, ": only the {side} has it"),
            DifferenceKind::Other if self.key.is_some() => f.write_str(": the entities are not the same"),
            DifferenceKind::Other => f.write_str(": the names are not written the same"),
            DifferenceKind::OtherMetadata if self.table.is_some() => {
                f.write_str(": other stored access policies")
            }
            DifferenceKind::OtherMetadata => f.write_str(": other service properties"),
        }
    }
}

/// A task that ended without a result.
pub(crate) fn cut_short(error: tokio::task::JoinError) -> store::Error {
    store::Fault::bug("a task of the move was cut short").because(error).into()
}
