//! The operations of the Table service, with all that is known of each: its row, what it asks of the caller, and the function
//! that does it. `route.rs` says which requests ask for it; a file beside this one decodes, calls the service and encodes.

mod batch;
pub mod context;
pub mod entity_query;
mod entity_write;
pub mod precondition;
mod service_document;
mod show;
mod slow_query;
mod table;

use front::{Class, OperationInfo};
use model::{EntityKey, Refusal, TableName};
use service::{Access, Need};

use crate::answer::{TableAnswer, TableFailure};
use crate::extension;
pub use context::{Call, Context};
use precondition::Precondition;

/// Every operation of the Table service this server knows.
#[derive(Clone, Debug)]
pub enum Operation {
    QueryTables,
    GetTable(TableName),
    CreateTable,
    DeleteTable(TableName),
    QueryEntities(TableName),
    GetEntity(TableName, EntityKey),
    InsertEntity(TableName),
    /// Update, or insert-or-replace without `If-Match`.
    PutEntity(TableName, EntityKey),
    /// Merge, or insert-or-merge without `If-Match`.
    MergeEntity(TableName, EntityKey),
    DeleteEntity(TableName, EntityKey),
    Batch,
    GetProperties,
    SetProperties,
    GetStatistics,
    GetPolicies(TableName),
    SetPolicies(TableName),
    /// What this server can do beyond Azure.
    Discover,
    /// What a query of this table reads.
    Explain(TableName),
    /// Queries that examine much in vain, and what to do about them.
    Advice,
    /// The partitions that are asked for most.
    HotPartitions,
    /// An address that the service refuses only after it has found the table.
    RefuseIn(TableName, Refusal),
}

impl Operation {
    /// The right that it needs. An update without a condition may insert.
    pub fn need(&self, condition: &Precondition) -> Need {
        let update = if condition.is_none() { Access::Upsert } else { Access::Update };
        let entities = |table: &TableName, access| Need::Entities(table.clone(), access);
        match self {
            Self::QueryTables | Self::GetTable(_) => Need::ListTables,
            Self::CreateTable => Need::CreateTable,
            Self::DeleteTable(_) => Need::DeleteTable,
            Self::QueryEntities(table)
            | Self::GetEntity(table, _)
            | Self::Explain(table)
            | Self::RefuseIn(table, _) => entities(table, Access::Read),
            Self::Discover => Need::Discover,
            Self::Advice | Self::HotPartitions => Need::Observe,
            Self::InsertEntity(table) => entities(table, Access::Insert),
            Self::PutEntity(table, _) | Self::MergeEntity(table, _) => entities(table, update),
            Self::DeleteEntity(table, _) => entities(table, Access::Delete),
            Self::Batch => Need::Batch,
            Self::GetProperties | Self::GetStatistics => Need::ReadService,
            Self::SetProperties => Need::WriteService,
            Self::GetPolicies(_) | Self::SetPolicies(_) => Need::Policies,
        }
    }

    /// An update without a condition has another name.
    pub fn info(&self, condition: &Precondition) -> &'static OperationInfo {
        let conditional = !condition.is_none();
        match self {
            Self::QueryTables => &QUERY_TABLES,
            Self::GetTable(_) => &GET_TABLE,
            Self::CreateTable => &CREATE_TABLE,
            Self::DeleteTable(_) => &DELETE_TABLE,
            Self::QueryEntities(_) => &QUERY_ENTITIES,
            Self::GetEntity(..) => &GET_ENTITY,
            Self::InsertEntity(_) => &INSERT_ENTITY,
            Self::PutEntity(..) if conditional => &UPDATE_ENTITY,
            Self::PutEntity(..) => &INSERT_OR_REPLACE_ENTITY,
            Self::MergeEntity(..) if conditional => &MERGE_ENTITY,
            Self::MergeEntity(..) => &INSERT_OR_MERGE_ENTITY,
            Self::DeleteEntity(..) => &DELETE_ENTITY,
            Self::Batch => &BATCH,
            Self::GetProperties => &GET_PROPERTIES,
            Self::SetProperties => &SET_PROPERTIES,
            Self::GetStatistics => &GET_STATISTICS,
            Self::GetPolicies(_) => &GET_POLICIES,
            Self::SetPolicies(_) => &SET_POLICIES,
            Self::Discover => &DISCOVER,
            Self::Explain(_) => &EXPLAIN,
            Self::Advice => &ADVICE,
            Self::HotPartitions => &HOT_PARTITIONS,
            Self::RefuseIn(..) => &UNKNOWN,
        }
    }

    /// Gets are the most frequent, and their state is small. The state of the others is boxed, so that a get does not carry
    /// the room for it.
    pub async fn run(&self, context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
        match self {
            Self::GetEntity(table, key) => entity_query::get(context, call, table.clone(), key).await,
            Self::InsertEntity(_) | Self::PutEntity(..) | Self::MergeEntity(..) | Self::DeleteEntity(..) => {
                Box::pin(entity_write::run(context, call, self.clone())).await
            }
            _ => Box::pin(self.clone().run_large(context, call)).await,
        }
    }

    async fn run_large(self, context: &Context<'_>, call: &Call<'_>) -> Result<TableAnswer, TableFailure> {
        match self {
            Self::QueryTables => table::query(context, call).await,
            Self::GetTable(name) => table::get(context, call, name).await,
            Self::CreateTable => table::create(context, call).await,
            Self::DeleteTable(name) => table::delete(context, name).await,
            Self::QueryEntities(table) => entity_query::query(context, call, table).await,
            Self::GetEntity(table, key) => entity_query::get(context, call, table, &key).await,
            Self::InsertEntity(_) | Self::PutEntity(..) | Self::MergeEntity(..) | Self::DeleteEntity(..) => {
                entity_write::run(context, call, self).await
            }
            Self::Batch => batch::run(context, call).await,
            Self::GetProperties => service_document::get_properties(context).await,
            Self::SetProperties => service_document::set_properties(context, call).await,
            Self::GetStatistics => Ok(service_document::get_statistics()),
            Self::GetPolicies(table) => service_document::get_policies(context, table).await,
            Self::SetPolicies(table) => service_document::set_policies(context, call, table).await,
            Self::Discover => extension::discover(context),
            Self::Explain(table) => extension::explain(context, call, table).await,
            Self::Advice => extension::advice(context, call),
            Self::HotPartitions => extension::hot(context, call),
            Self::RefuseIn(table, refusal) => {
                context.service.require_table(&context.table(table)).await?;
                // The service asks the store about a path below a table, but not about a wrong number of keys.
                let reached_the_store = refusal == common::Refusal::NotImplemented;
                Err(TableFailure { reached_the_store, ..refusal.into() })
            }
        }
    }
}

const fn info(
    name: &'static str,
    class: Class,
    writes: bool,
    takes_body: bool,
    shows_document: bool,
) -> OperationInfo {
    OperationInfo { name, class, writes, takes_body, shows_document }
}

use Class::{Delete, Read, Write};

#[rustfmt::skip]
mod rows {
    use super::{Delete, OperationInfo, Read, Write, info};
    //                                                          name                         class   writes  body   document
    pub static QUERY_TABLES:             OperationInfo = info("QueryTables",                Read,   false,  false, true);
    pub static GET_TABLE:                OperationInfo = info("QueryTable",                 Read,   false,  false, true);
    pub static CREATE_TABLE:             OperationInfo = info("CreateTable",                Write,  true,   true,  true);
    pub static DELETE_TABLE:             OperationInfo = info("DeleteTable",                Delete, true,   false, false);
    pub static QUERY_ENTITIES:           OperationInfo = info("QueryEntities",              Read,   false,  false, true);
    pub static GET_ENTITY:               OperationInfo = info("QueryEntity",                Read,   false,  false, true);
    pub static INSERT_ENTITY:            OperationInfo = info("InsertEntity",               Write,  true,   true,  true);
    pub static UPDATE_ENTITY:            OperationInfo = info("UpdateEntity",               Write,  true,   true,  false);
    pub static INSERT_OR_REPLACE_ENTITY: OperationInfo = info("InsertOrReplaceEntity",      Write,  true,   true,  false);
    pub static MERGE_ENTITY:             OperationInfo = info("MergeEntity",                Write,  true,   true,  false);
    pub static INSERT_OR_MERGE_ENTITY:   OperationInfo = info("InsertOrMergeEntity",        Write,  true,   true,  false);
    pub static DELETE_ENTITY:            OperationInfo = info("DeleteEntity",               Delete, true,   false, false);
    /// Its parts say whether it writes.
    pub static BATCH:                    OperationInfo = info("EntityGroupTransaction",     Write,  false,  true,  false);
    pub static GET_PROPERTIES:           OperationInfo = info("GetTableServiceProperties",  Read,   false,  false, false);
    pub static SET_PROPERTIES:           OperationInfo = info("SetTableServiceProperties",  Write,  true,   true,  false);
    pub static GET_STATISTICS:           OperationInfo = info("GetTableServiceStats",       Read,   false,  false, false);
    pub static GET_POLICIES:             OperationInfo = info("GetTableAcl",                Read,   false,  false, false);
    pub static SET_POLICIES:             OperationInfo = info("SetTableAcl",                Write,  true,   true,  false);
    pub static PREFLIGHT:                OperationInfo = info("TablePreflightRequest",      Read,   false,  false, false);
    /// Partita's own.
    pub static DISCOVER:                 OperationInfo = info("PartitaDiscover",            Read,   false,  false, false);
    pub static EXPLAIN:                  OperationInfo = info("PartitaExplain",             Read,   false,  false, false);
    pub static ADVICE:                   OperationInfo = info("PartitaAdvice",              Read,   false,  false, false);
    pub static HOT_PARTITIONS:           OperationInfo = info("PartitaHotPartitions",       Read,   false,  false, false);
    /// The service has no such operation.
    pub static UNKNOWN:                  OperationInfo = info("Unknown",                    Read,   false,  false, false);
}

pub use rows::*;

/// All rows, for metrics.
pub static OPERATIONS: [&OperationInfo; 24] = [
    &QUERY_TABLES,
    &GET_TABLE,
    &CREATE_TABLE,
    &DELETE_TABLE,
    &QUERY_ENTITIES,
    &GET_ENTITY,
    &INSERT_ENTITY,
    &UPDATE_ENTITY,
    &INSERT_OR_REPLACE_ENTITY,
    &MERGE_ENTITY,
    &INSERT_OR_MERGE_ENTITY,
    &DELETE_ENTITY,
    &BATCH,
    &GET_PROPERTIES,
    &SET_PROPERTIES,
    &GET_STATISTICS,
    &GET_POLICIES,
    &SET_POLICIES,
    &PREFLIGHT,
    &DISCOVER,
    &EXPLAIN,
    &ADVICE,
    &HOT_PARTITIONS,
    &UNKNOWN,
];

#[cfg(test)]
mod tests {
    use super::OPERATIONS;

    #[test]
    fn every_row_is_listed_for_metrics() {
        let rows = include_str!("mod.rs")
            .lines()
            .filter(|line| line.trim_start().starts_with("pub static") && line.contains("= info("));
        assert_eq!(rows.count(), OPERATIONS.len());
        let names: std::collections::BTreeSet<_> = OPERATIONS.iter().map(|info| info.name).collect();
        assert_eq!(names.len(), OPERATIONS.len());
    }
}
