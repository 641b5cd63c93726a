//! Create, delete, look at and list tables.

use std::time::Instant;

use model::{AccountName, Refusal, TableName, ValueRef, limits};
use store::TableRef;

use crate::{Error, Result, Service};

/// Comparisons of a listing's filter between two looks at the clock.
const WORK_PER_LOOK: usize = 16 * 1024;

/// A name no table may have: it is the set of tables in every URL.
const RESERVED: &str = "tables";

#[derive(Clone, Debug, Default)]
pub struct TableQuery<'a> {
    pub filter: Option<&'a str>,
    pub top: Option<usize>,
    /// Where the last page said to go on.
    pub from: Option<String>,
}

#[derive(Debug)]
pub struct TablePage {
    pub names: Vec<TableName>,
    /// The first table not looked at, if the page was full before the end.
    pub next: Option<String>,
}

impl Service {
    pub async fn create_table(&self, table: &TableRef) -> Result<()> {
        if table.name.folded() == RESERVED {
            return Err(Refusal::InputNotValid.into());
        }
        let _pass = self.gate.pass().await?;
        Ok(self.engine.create_table(table).await?)
    }

    pub async fn delete_table(&self, table: &TableRef) -> Result<()> {
        if table.name.is_metrics() {
            return Err(Refusal::WritesNotAllowed.into());
        }
        let _pass = self.gate.pass().await?;
        self.engine.drop_table(table).await.map_err(missing_table_is_a_resource)
    }

    /// The name in the case it was created with.
    pub async fn get_table(&self, table: &TableRef) -> Result<TableName> {
        self.engine.find_table(table).await.map_err(missing_table_is_a_resource)
    }

    /// The service looks for the table before it looks at filters and bodies.
    pub async fn require_table(&self, table: &TableRef) -> Result<()> {
        self.engine.find_table(table).await?;
        Ok(())
    }

    pub async fn query_tables(&self, account: &AccountName, query: TableQuery<'_>) -> Result<TablePage> {
        let filter = query.filter.map_or(Ok(None), filter::parse)?;
        let limit = query.top.unwrap_or(limits::PAGE_ENTITIES_MAX).min(limits::PAGE_ENTITIES_MAX);
        let mut page = TablePage { names: Vec::new(), next: None };
        if limit == 0 {
            return Ok(page);
        }
        let deadline = Instant::now() + limits::QUERY_TIME_MAX;
        let work_per_table = 1 + filter.as_ref().map_or(0, filter::Expr::comparisons);
        let mut work = 0;
        let mut from = query.from.or(Some(String::new()));
        while let Some(start) = from {
            let found = self.engine.list_tables(account, &start, limits::PAGE_ENTITIES_MAX).await?;
            for name in found.names.into_iter().filter(|name| !name.is_metrics()) {
                work += work_per_table;
                let is_late = work >= WORK_PER_LOOK && {
                    work = 0;
                    // Others on this thread have their turn.
                    tokio::task::yield_now().await;
                    Instant::now() >= deadline
                };
                if page.names.len() == limit || is_late {
                    page.next = Some(name.folded().to_owned());
                    return Ok(page);
                }
                if filter.as_ref().is_none_or(|filter| filter::eval(filter, &TableRow(&name))) {
                    page.names.push(name);
                }
            }
            from = found.next;
        }
        Ok(page)
    }
}

/// Operations on a table itself, unlike those on its entities, speak of a missing resource.
pub(crate) fn missing_table_is_a_resource(error: store::Error) -> Error {
    match error {
        store::Error::TableNotFound => Refusal::ResourceNotFound.into(),
        other => other.into(),
    }
}

/// A table as filters see it.
struct TableRow<'a>(&'a TableName);

impl filter::Row for TableRow<'_> {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        (name == "TableName").then(|| ValueRef::String(self.0.as_str()))
    }
}
