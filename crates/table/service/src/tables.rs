//! Create, delete, get and list tables.

use std::time::Instant;

use common::Refusal;
use filter::{Comparison, Expr, FilterError, Operator};
use model::{AccountName, ServiceKind, TableName, Value, ValueRef, limits};
use store::{Fault, StoredName, TableRef};

use crate::long_work::LONG_WORK;
use crate::{Error, Result, Service};

/// Comparisons of a listing's filter between two checks of the time.
const WORK_PER_LOOK: usize = 16 * 1024;

/// A name that no table may have: in a URL it is the set of tables.
const RESERVED: &str = "tables";

#[derive(Clone, Debug, Default)]
pub struct TableQuery<'a> {
    pub filter: Option<&'a str>,
    pub top: Option<usize>,
    /// The continuation of the last page.
    pub from: Option<String>,
}

#[derive(Debug)]
pub struct TablePage {
    pub names: Vec<TableName>,
    /// The first table that was not examined, if the page ended before the last table.
    pub next: Option<String>,
}

impl Service {
    pub async fn create_table(&self, table: &TableRef) -> Result<()> {
        if table.name.folded() == RESERVED {
            return Err(Refusal::InputNotValid.into());
        }
        let _pass = self.gate.pass().await?;
        Ok(self.engine.create_table(table, None).await?)
    }

    pub async fn delete_table(&self, table: &TableRef) -> Result<()> {
        if is_metrics(&table.name) {
            return Err(Refusal::WritesNotAllowed.into());
        }
        let _pass = self.gate.pass().await?;
        self.engine.drop_table(table).await.map_err(missing_table_is_a_resource)
    }

    /// The name in the case it was created with.
    pub async fn get_table(&self, table: &TableRef) -> Result<TableName> {
        let found = self.engine.find_table(table).await.map_err(missing_table_is_a_resource)?;
        table_name(&found)
    }

    /// The service looks for the table before it looks at filters and bodies.
    pub async fn require_table(&self, table: &TableRef) -> Result<()> {
        self.engine.find_table(table).await?;
        Ok(())
    }

    pub async fn query_tables(&self, account: &AccountName, query: TableQuery<'_>) -> Result<TablePage> {
        let permit = LONG_WORK.permit_for_filter(query.filter.map_or(0, str::len)).await;
        let filter = permit
            .run(|| Ok::<_, FilterError>(query.filter.map_or(Ok(None), filter::parse)?.map(ignoring_case)))?;
        drop(permit);
        if filter.as_ref().is_some_and(asks_for_truth) {
            return Err(Refusal::InputNotValid.into());
        }
        let end = filter.as_ref().map_or(End::Never, End::of);
        let limit = query.top.unwrap_or(limits::PAGE_ENTITIES_MAX).min(limits::PAGE_ENTITIES_MAX);
        let mut page = TablePage { names: Vec::new(), next: None };
        if limit == 0 {
            return Ok(page);
        }
        let deadline = Instant::now() + limits::QUERY_TIME_MAX;
        let work_per_table = 1 + filter.as_ref().map_or(0, Expr::comparisons);
        let mut work = 0;
        let mut from = query.from.or(Some(String::new()));
        while let Some(start) = from {
            let found = self
                .engine
                .list_tables(account, ServiceKind::Table, &start, limits::PAGE_ENTITIES_MAX)
                .await?;
            for name in found.names.into_iter().filter(|name| !is_metrics(name)) {
                // No later name can match, so the listing ends here, without another page.
                if end.is_before(name.folded()) {
                    return Ok(page);
                }
                work += work_per_table;
                let is_late = work >= WORK_PER_LOOK && {
                    work = 0;
                    // Lets other requests of this thread run.
                    tokio::task::yield_now().await;
                    Instant::now() >= deadline
                };
                if page.names.len() == limit || is_late {
                    page.next = Some(name.folded().to_owned());
                    return Ok(page);
                }
                if filter.as_ref().is_none_or(|filter| filter::eval(filter, &TableRow(&name))) {
                    page.names.push(table_name(&name)?);
                }
            }
            from = found.next;
        }
        Ok(page)
    }
}

/// One of the tables that the service itself writes.
pub(crate) fn is_metrics(name: &StoredName) -> bool {
    name.as_str().starts_with('$')
}

fn table_name(stored: &StoredName) -> Result<TableName> {
    let parsed = TableName::parse(stored.as_str());
    Ok(parsed.map_err(|refusal| {
        store::Error::from(Fault::bug("an engine gave a name that no table has").because(refusal))
    })?)
}

/// For operations on a table itself, unlike those on its entities, a missing table is a missing resource.
fn missing_table_is_a_resource(error: store::Error) -> Error {
    match error {
        store::Error::TableNotFound => Refusal::ResourceNotFound.into(),
        other => other.into(),
    }
}

const TABLE_NAME: &str = "TableName";

/// Table names are compared without case, so literals are compared in lower case.
fn ignoring_case(expr: Expr) -> Expr {
    match expr {
        Expr::Compare(Comparison { property, operator, literal: Value::String(text) })
            if property == TABLE_NAME =>
        {
            Expr::Compare(Comparison {
                property,
                operator,
                literal: Value::String(text.to_ascii_lowercase()),
            })
        }
        Expr::Not(inner) => Expr::Not(Box::new(ignoring_case(*inner))),
        Expr::And(terms) => Expr::And(terms.into_iter().map(ignoring_case).collect()),
        Expr::Or(terms) => Expr::Or(terms.into_iter().map(ignoring_case).collect()),
        other @ (Expr::Constant(_) | Expr::Compare(_)) => other,
    }
}

/// Whether the filter has a property as a condition (`A`, or `A eq true`). Tables have no Boolean property, and the service
/// refuses such a filter.
fn asks_for_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Compare(Comparison { literal, operator, .. }) => {
            (*operator, literal) == (Operator::Eq, &Value::Boolean(true))
        }
        Expr::Not(inner) => asks_for_truth(inner),
        Expr::And(terms) | Expr::Or(terms) => terms.iter().any(asks_for_truth),
        Expr::Constant(_) => false,
    }
}

/// The last name that a filter can match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// This name, which may match itself or not.
    At(String, Inclusive),
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Inclusive {
    No,
    Yes,
}

impl End {
    fn of(expr: &Expr) -> Self {
        match expr {
            Expr::Compare(Comparison { property, operator, literal: Value::String(text) })
                if property == TABLE_NAME =>
            {
                match operator {
                    Operator::Lt => Self::At(text.clone(), Inclusive::No),
                    Operator::Le | Operator::Eq => Self::At(text.clone(), Inclusive::Yes),
                    Operator::Ne | Operator::Gt | Operator::Ge => Self::Never,
                }
            }
            Expr::And(terms) => terms.iter().map(Self::of).min().unwrap_or(Self::Never),
            Expr::Or(terms) => terms.iter().map(Self::of).max().unwrap_or(Self::Never),
            Expr::Constant(_) | Expr::Compare(_) | Expr::Not(_) => Self::Never,
        }
    }

    /// Whether a name comes after it.
    fn is_before(&self, name: &str) -> bool {
        match self {
            Self::At(end, Inclusive::Yes) => name > end.as_str(),
            Self::At(end, Inclusive::No) => name >= end.as_str(),
            Self::Never => false,
        }
    }
}

/// A table, for filters.
struct TableRow<'a>(&'a StoredName);

impl filter::PropertyLookup for TableRow<'_> {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        (name == TABLE_NAME).then(|| ValueRef::String(self.0.folded()))
    }
}
