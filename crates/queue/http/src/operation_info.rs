//! The table of operations of the Queue service: what is known of each, whatever its arguments. A new operation is one
//! row here.

use front::{Class, OperationInfo};

use crate::route::Operation;

const fn info(name: &'static str, class: Class, writes: bool, takes_body: bool) -> OperationInfo {
    OperationInfo { name, class, writes, takes_body, shows_document: false }
}

use Class::{Delete, Read, Write};

#[rustfmt::skip]
mod rows {
    use super::{Delete, OperationInfo, Read, Write, info};
    //                                                name                         class   writes  body
    pub static LIST_QUEUES:        OperationInfo = info("ListQueues",                Read,   false,  false);
    pub static GET_PROPERTIES:     OperationInfo = info("GetQueueServiceProperties", Read,   false,  false);
    pub static SET_PROPERTIES:     OperationInfo = info("SetQueueServiceProperties", Write,  true,   true);
    pub static GET_STATISTICS:     OperationInfo = info("GetQueueServiceStats",      Read,   false,  false);
    pub static GET_DELEGATION_KEY: OperationInfo = info("GetUserDelegationKey",      Read,   false,  false);
    pub static CREATE_QUEUE:       OperationInfo = info("CreateQueue",               Write,  true,   false);
    pub static DELETE_QUEUE:       OperationInfo = info("DeleteQueue",               Delete, true,   false);
    pub static GET_METADATA:       OperationInfo = info("GetQueueMetadata",          Read,   false,  false);
    pub static SET_METADATA:       OperationInfo = info("SetQueueMetadata",          Write,  true,   false);
    pub static GET_POLICIES:       OperationInfo = info("GetQueueAcl",               Read,   false,  false);
    pub static SET_POLICIES:       OperationInfo = info("SetQueueAcl",               Write,  true,   true);
    pub static PUT_MESSAGE:        OperationInfo = info("PutMessage",                Write,  true,   true);
    /// Hides what it reads, so that the secondary refuses it.
    pub static GET_MESSAGE:        OperationInfo = info("GetMessage",                Read,   true,   false);
    pub static GET_MESSAGES:       OperationInfo = info("GetMessages",               Read,   true,   false);
    pub static PEEK_MESSAGE:       OperationInfo = info("PeekMessage",               Read,   false,  false);
    pub static PEEK_MESSAGES:      OperationInfo = info("PeekMessages",              Read,   false,  false);
    pub static CLEAR_MESSAGES:     OperationInfo = info("ClearMessages",             Delete, true,   false);
    pub static UPDATE_MESSAGE:     OperationInfo = info("UpdateMessage",             Write,  true,   false);
    pub static DELETE_MESSAGE:     OperationInfo = info("DeleteMessage",             Delete, true,   false);
    pub static PREFLIGHT:          OperationInfo = info("QueuePreflightRequest",     Read,   false,  false);
    /// Nothing that the service has an operation for.
    pub static UNKNOWN:            OperationInfo = info("Unknown",                   Read,   false,  false);
}

pub use rows::*;

/// All rows, for metrics.
pub static OPERATIONS: [&OperationInfo; 21] = [
    &LIST_QUEUES,
    &GET_PROPERTIES,
    &SET_PROPERTIES,
    &GET_STATISTICS,
    &GET_DELEGATION_KEY,
    &CREATE_QUEUE,
    &DELETE_QUEUE,
    &GET_METADATA,
    &SET_METADATA,
    &GET_POLICIES,
    &SET_POLICIES,
    &PUT_MESSAGE,
    &GET_MESSAGE,
    &GET_MESSAGES,
    &PEEK_MESSAGE,
    &PEEK_MESSAGES,
    &CLEAR_MESSAGES,
    &UPDATE_MESSAGE,
    &DELETE_MESSAGE,
    &PREFLIGHT,
    &UNKNOWN,
];

/// Reading several messages goes by another name than reading one.
pub fn of(operation: Operation, several: bool) -> &'static OperationInfo {
    match operation {
        Operation::ListQueues => &LIST_QUEUES,
        Operation::GetProperties => &GET_PROPERTIES,
        Operation::SetProperties => &SET_PROPERTIES,
        Operation::GetStatistics => &GET_STATISTICS,
        Operation::GetDelegationKey => &GET_DELEGATION_KEY,
        Operation::CreateQueue => &CREATE_QUEUE,
        Operation::DeleteQueue => &DELETE_QUEUE,
        Operation::GetMetadata => &GET_METADATA,
        Operation::SetMetadata => &SET_METADATA,
        Operation::GetPolicies => &GET_POLICIES,
        Operation::SetPolicies => &SET_POLICIES,
        Operation::PutMessage => &PUT_MESSAGE,
        Operation::GetMessages if several => &GET_MESSAGES,
        Operation::GetMessages => &GET_MESSAGE,
        Operation::PeekMessages if several => &PEEK_MESSAGES,
        Operation::PeekMessages => &PEEK_MESSAGE,
        Operation::ClearMessages => &CLEAR_MESSAGES,
        Operation::UpdateMessage => &UPDATE_MESSAGE,
        Operation::DeleteMessage => &DELETE_MESSAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::OPERATIONS;

    #[test]
    fn every_row_is_listed_for_metrics() {
        let rows = include_str!("operation_info.rs")
            .lines()
            .filter(|line| line.trim_start().starts_with("pub static") && line.contains("= info("));
        assert_eq!(rows.count(), OPERATIONS.len());
        let names: std::collections::BTreeSet<_> = OPERATIONS.iter().map(|info| info.name).collect();
        assert_eq!(names.len(), OPERATIONS.len());
    }
}
