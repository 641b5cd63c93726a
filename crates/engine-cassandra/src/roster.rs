//! Lists the accounts and their tables, however many tombstones dropped tables have left.
//!
//! The row of a dropped table is deleted, and its tombstone has to stay as long as a node may be down. So the tables of
//! an account are read in parts if necessary (`narrow`). The list of accounts reads only the first row of each; that
//! row is not a table, and it is never deleted.

use scylla::statement::prepared::PreparedStatement;
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::narrow::Narrow;
use crate::trouble::{Trouble, undecodable};

/// States of a table's row.
pub const LIVE: i8 = 1;
pub const DOOMED: i8 = 2;

/// Between the row that is not a table (`Statements::seat_account`) and every stored name (`store::encoding::table_name`).
const BELOW_ALL: &str = "\"";
const ABOVE_ALL: &str = "\u{7f}";

/// A table in the list of an account.
#[derive(Debug)]
pub struct RosterEntry {
    pub stored_name: String,
    pub shown: String,
    pub id: Uuid,
    pub state: i8,
}

impl Cluster {
    /// Up to `limit` tables of the account, of all services, from a stored name on, in order, including those being dropped.
    /// Returns fewer only at the end.
    pub async fn tables_of(
        &self,
        account: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<RosterEntry>, Trouble> {
        self.tables_between(account, from.max(BELOW_ALL), ABOVE_ALL, limit).await
    }

    /// The same, below another stored name.
    pub async fn tables_between(
        &self,
        account: &str,
        from: &str,
        to: &str,
        limit: usize,
    ) -> Result<Vec<RosterEntry>, Trouble> {
        let about = |trouble| about_account(trouble, account);
        let mut tables = Vec::new();
        if from >= to {
            return Ok(tables);
        }
        let mut narrow = Narrow::of_text(from, to);
        while let Some((from, to)) = narrow.next().filter(|_| tables.len() < limit) {
            let text =
                |bytes| str::from_utf8(bytes).map_err(undecodable("the name of a table")).map_err(about);
            let wanted = i32::try_from(limit - tables.len()).unwrap_or(i32::MAX);
            let values = (account, text(from)?, text(to)?, wanted);
            match self.read(&self.statements.list_tables, values).await {
                Ok(rows) => {
                    type Columns = (String, Option<String>, Option<Uuid>, Option<i8>);
                    let rows =
                        rows.rows::<Columns>().map_err(undecodable("the list of tables")).map_err(about)?;
                    for row in rows {
                        let row = row.map_err(undecodable("a row of the list of tables")).map_err(about)?;
                        let (stored_name, Some(shown), Some(id), Some(state)) = row else {
                            return Err(about(Trouble::damaged(format!(
                                "the stored table {row:?} lacks a column"
                            ))));
                        };
                        tables.push(RosterEntry { stored_name, shown, id, state });
                    }
                    narrow.passed();
                }
                Err(trouble) => narrow.failed(trouble)?,
            }
        }
        Ok(tables)
    }

    /// The accounts that have or had tables.
    pub async fn accounts_of_tables(&self) -> Result<Vec<String>, Trouble> {
        self.accounts_of(&self.statements.table_accounts).await
    }

    /// The accounts that have service metadata.
    pub async fn accounts_of_services(&self) -> Result<Vec<String>, Trouble> {
        self.accounts_of(&self.statements.service_accounts).await
    }

    async fn accounts_of(&self, statement: &PreparedStatement) -> Result<Vec<String>, Trouble> {
        let rows = self.read(statement, ()).await?;
        let rows = rows.rows::<(String,)>().map_err(undecodable("the list of accounts"))?;
        rows.map(|row| row.map(|(name,)| name).map_err(undecodable("the list of accounts"))).collect()
    }
}

fn about_account(trouble: Trouble, account: &str) -> Trouble {
    match trouble {
        Trouble::Fault(fault) => Trouble::Fault(fault.about(format!("account {account}"))),
        other => other,
    }
}
