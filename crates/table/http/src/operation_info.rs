//! The table of operations of the Table service: what is known of each, whatever its arguments. A new operation is one
//! row here.

use front::{Class, OperationInfo};

use crate::operation::condition::Condition;
use crate::route::Operation;

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
    /// Whether it writes, its parts tell.
    pub static BATCH:                    OperationInfo = info("EntityGroupTransaction",     Write,  false,  true,  false);
    pub static GET_PROPERTIES:           OperationInfo = info("GetTableServiceProperties",  Read,   false,  false, false);
    pub static SET_PROPERTIES:           OperationInfo = info("SetTableServiceProperties",  Write,  true,   true,  false);
    pub static GET_STATISTICS:           OperationInfo = info("GetTableServiceStats",       Read,   false,  false, false);
    pub static GET_POLICIES:             OperationInfo = info("GetTableAcl",                Read,   false,  false, false);
    pub static SET_POLICIES:             OperationInfo = info("SetTableAcl",                Write,  true,   true,  false);
    pub static PREFLIGHT:                OperationInfo = info("TablePreflightRequest",      Read,   false,  false, false);
    /// Nothing that the service has an operation for.
    pub static UNKNOWN:                  OperationInfo = info("Unknown",                    Read,   false,  false, false);
}

pub use rows::*;

/// An update without a condition goes by another name.
pub fn of(operation: &Operation, condition: &Condition) -> &'static OperationInfo {
    let conditional = !condition.is_none();
    match operation {
        Operation::QueryTables => &QUERY_TABLES,
        Operation::GetTable(_) => &GET_TABLE,
        Operation::CreateTable => &CREATE_TABLE,
        Operation::DeleteTable(_) => &DELETE_TABLE,
        Operation::QueryEntities(_) => &QUERY_ENTITIES,
        Operation::GetEntity(..) => &GET_ENTITY,
        Operation::InsertEntity(_) => &INSERT_ENTITY,
        Operation::PutEntity(..) if conditional => &UPDATE_ENTITY,
        Operation::PutEntity(..) => &INSERT_OR_REPLACE_ENTITY,
        Operation::MergeEntity(..) if conditional => &MERGE_ENTITY,
        Operation::MergeEntity(..) => &INSERT_OR_MERGE_ENTITY,
        Operation::DeleteEntity(..) => &DELETE_ENTITY,
        Operation::Batch => &BATCH,
        Operation::GetProperties => &GET_PROPERTIES,
        Operation::SetProperties => &SET_PROPERTIES,
        Operation::GetStatistics => &GET_STATISTICS,
        Operation::GetPolicies(_) => &GET_POLICIES,
        Operation::SetPolicies(_) => &SET_POLICIES,
        Operation::RefuseIn(..) => &UNKNOWN,
    }
}
