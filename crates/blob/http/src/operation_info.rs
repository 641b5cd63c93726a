//! The table of operations of the Blob service: what is known of each, whatever its arguments. A new operation is one row
//! here. Names are those of Storage Analytics.

use front::{Class, OperationInfo};

use crate::route::{LeaseVerb, Operation};

const fn info(name: &'static str, class: Class, writes: bool, takes_body: bool) -> OperationInfo {
    OperationInfo { name, class, writes, takes_body, shows_document: false }
}

use Class::{Delete, Read, Write};

#[rustfmt::skip]
mod rows {
    use super::{Delete, OperationInfo, Read, Write, info};
    //                                                          name                           class   writes  body
    pub static LIST_CONTAINERS:            OperationInfo = info("ListContainers",            Read,   false,  false);
    pub static GET_SERVICE_PROPERTIES:     OperationInfo = info("GetBlobServiceProperties",  Read,   false,  false);
    pub static SET_SERVICE_PROPERTIES:     OperationInfo = info("SetBlobServiceProperties",  Write,  true,   true);
    pub static GET_STATISTICS:             OperationInfo = info("GetBlobServiceStats",       Read,   false,  false);
    pub static GET_ACCOUNT_INFORMATION:    OperationInfo = info("GetAccountInformation",     Read,   false,  false);
    pub static GET_DELEGATION_KEY:         OperationInfo = info("GetUserDelegationKey",      Read,   false,  true);
    pub static BATCH:                      OperationInfo = info("SubmitBlobBatch",           Write,  true,   true);
    pub static FIND_BLOBS:                 OperationInfo = info("FindBlobsByTags",           Read,   false,  false);
    pub static CREATE_CONTAINER:           OperationInfo = info("CreateContainer",           Write,  true,   false);
    pub static DELETE_CONTAINER:           OperationInfo = info("DeleteContainer",           Delete, true,   false);
    pub static GET_CONTAINER_PROPERTIES:   OperationInfo = info("GetContainerProperties",    Read,   false,  false);
    pub static GET_CONTAINER_METADATA:     OperationInfo = info("GetContainerMetadata",      Read,   false,  false);
    pub static SET_CONTAINER_METADATA:     OperationInfo = info("SetContainerMetadata",      Write,  true,   false);
    pub static GET_CONTAINER_POLICIES:     OperationInfo = info("GetContainerACL",           Read,   false,  false);
    pub static SET_CONTAINER_POLICIES:     OperationInfo = info("SetContainerACL",           Write,  true,   false);
    pub static RESTORE_CONTAINER:          OperationInfo = info("RestoreContainer",          Write,  true,   false);
    pub static LIST_BLOBS:                 OperationInfo = info("ListBlobs",                 Read,   false,  false);
    pub static PUT_BLOB:                   OperationInfo = info("PutBlob",                   Write,  true,   true);
    pub static PUT_BLOB_FROM_URL:          OperationInfo = info("PutBlobFromURL",            Write,  true,   false);
    pub static COPY_BLOB:                  OperationInfo = info("CopyBlob",                  Write,  true,   false);
    pub static COPY_BLOB_FROM_URL:         OperationInfo = info("CopyBlobFromURL",           Write,  true,   false);
    pub static ABORT_COPY:                 OperationInfo = info("AbortCopyBlob",             Write,  true,   false);
    pub static GET_BLOB:                   OperationInfo = info("GetBlob",                   Read,   false,  false);
    pub static GET_BLOB_PROPERTIES:        OperationInfo = info("GetBlobProperties",         Read,   false,  false);
    pub static GET_BLOB_METADATA:          OperationInfo = info("GetBlobMetadata",           Read,   false,  false);
    pub static SET_BLOB_METADATA:          OperationInfo = info("SetBlobMetadata",           Write,  true,   false);
    pub static SET_BLOB_PROPERTIES:        OperationInfo = info("SetBlobProperties",         Write,  true,   false);
    pub static SET_BLOB_TIER:              OperationInfo = info("SetBlobTier",               Write,  true,   false);
    pub static DELETE_BLOB:                OperationInfo = info("DeleteBlob",                Delete, true,   false);
    pub static UNDELETE_BLOB:              OperationInfo = info("UndeleteBlob",              Write,  true,   false);
    pub static SNAPSHOT_BLOB:              OperationInfo = info("SnapshotBlob",              Write,  true,   false);
    pub static GET_BLOB_TAGS:              OperationInfo = info("GetBlobTags",               Read,   false,  false);
    pub static SET_BLOB_TAGS:              OperationInfo = info("SetBlobTags",               Write,  true,   true);
    pub static PUT_BLOCK:                  OperationInfo = info("PutBlock",                  Write,  true,   true);
    pub static PUT_BLOCK_FROM_URL:         OperationInfo = info("PutBlockFromURL",           Write,  true,   false);
    pub static PUT_BLOCK_LIST:             OperationInfo = info("PutBlockList",              Write,  true,   true);
    pub static GET_BLOCK_LIST:             OperationInfo = info("GetBlockList",              Read,   false,  false);
    pub static APPEND_BLOCK:               OperationInfo = info("AppendBlock",               Write,  true,   true);
    pub static APPEND_BLOCK_FROM_URL:      OperationInfo = info("AppendBlockFromURL",        Write,  true,   false);
    pub static SEAL_BLOB:                  OperationInfo = info("AppendBlobSeal",            Write,  true,   false);
    pub static PUT_PAGE:                   OperationInfo = info("PutPage",                   Write,  true,   true);
    pub static PUT_PAGE_FROM_URL:          OperationInfo = info("PutPageFromURL",            Write,  true,   false);
    pub static CLEAR_PAGES:                OperationInfo = info("ClearPage",                 Write,  true,   false);
    pub static GET_PAGE_RANGES:            OperationInfo = info("GetPageRegions",            Read,   false,  false);
    pub static ACQUIRE_CONTAINER_LEASE:    OperationInfo = info("AcquireContainerLease",     Write,  true,   false);
    pub static RENEW_CONTAINER_LEASE:      OperationInfo = info("RenewContainerLease",       Write,  true,   false);
    pub static CHANGE_CONTAINER_LEASE:     OperationInfo = info("ChangeContainerLease",      Write,  true,   false);
    pub static RELEASE_CONTAINER_LEASE:    OperationInfo = info("ReleaseContainerLease",     Write,  true,   false);
    pub static BREAK_CONTAINER_LEASE:      OperationInfo = info("BreakContainerLease",       Write,  true,   false);
    pub static ACQUIRE_BLOB_LEASE:         OperationInfo = info("AcquireBlobLease",          Write,  true,   false);
    pub static RENEW_BLOB_LEASE:           OperationInfo = info("RenewBlobLease",            Write,  true,   false);
    pub static CHANGE_BLOB_LEASE:          OperationInfo = info("ChangeBlobLease",           Write,  true,   false);
    pub static RELEASE_BLOB_LEASE:         OperationInfo = info("ReleaseBlobLease",          Write,  true,   false);
    pub static BREAK_BLOB_LEASE:           OperationInfo = info("BreakBlobLease",            Write,  true,   false);
    pub static PREFLIGHT:                  OperationInfo = info("BlobPreflightRequest",      Read,   false,  false);
    /// Nothing that the service has an operation for.
    pub static UNKNOWN:                    OperationInfo = info("Unknown",                   Read,   false,  false);
}

pub use rows::*;

/// All rows, for metrics.
pub static OPERATIONS: [&OperationInfo; 56] = [
    &LIST_CONTAINERS,
    &GET_SERVICE_PROPERTIES,
    &SET_SERVICE_PROPERTIES,
    &GET_STATISTICS,
    &GET_ACCOUNT_INFORMATION,
    &GET_DELEGATION_KEY,
    &BATCH,
    &FIND_BLOBS,
    &CREATE_CONTAINER,
    &DELETE_CONTAINER,
    &GET_CONTAINER_PROPERTIES,
    &GET_CONTAINER_METADATA,
    &SET_CONTAINER_METADATA,
    &GET_CONTAINER_POLICIES,
    &SET_CONTAINER_POLICIES,
    &RESTORE_CONTAINER,
    &LIST_BLOBS,
    &PUT_BLOB,
    &PUT_BLOB_FROM_URL,
    &COPY_BLOB,
    &COPY_BLOB_FROM_URL,
    &ABORT_COPY,
    &GET_BLOB,
    &GET_BLOB_PROPERTIES,
    &GET_BLOB_METADATA,
    &SET_BLOB_METADATA,
    &SET_BLOB_PROPERTIES,
    &SET_BLOB_TIER,
    &DELETE_BLOB,
    &UNDELETE_BLOB,
    &SNAPSHOT_BLOB,
    &GET_BLOB_TAGS,
    &SET_BLOB_TAGS,
    &PUT_BLOCK,
    &PUT_BLOCK_FROM_URL,
    &PUT_BLOCK_LIST,
    &GET_BLOCK_LIST,
    &APPEND_BLOCK,
    &APPEND_BLOCK_FROM_URL,
    &SEAL_BLOB,
    &PUT_PAGE,
    &PUT_PAGE_FROM_URL,
    &CLEAR_PAGES,
    &GET_PAGE_RANGES,
    &ACQUIRE_CONTAINER_LEASE,
    &RENEW_CONTAINER_LEASE,
    &CHANGE_CONTAINER_LEASE,
    &RELEASE_CONTAINER_LEASE,
    &BREAK_CONTAINER_LEASE,
    &ACQUIRE_BLOB_LEASE,
    &RENEW_BLOB_LEASE,
    &CHANGE_BLOB_LEASE,
    &RELEASE_BLOB_LEASE,
    &BREAK_BLOB_LEASE,
    &PREFLIGHT,
    &UNKNOWN,
];

pub fn of(operation: Operation) -> &'static OperationInfo {
    match operation {
        Operation::ListContainers => &LIST_CONTAINERS,
        Operation::GetServiceProperties => &GET_SERVICE_PROPERTIES,
        Operation::SetServiceProperties => &SET_SERVICE_PROPERTIES,
        Operation::GetStatistics => &GET_STATISTICS,
        Operation::GetAccountInformation => &GET_ACCOUNT_INFORMATION,
        Operation::GetDelegationKey => &GET_DELEGATION_KEY,
        Operation::Batch => &BATCH,
        Operation::FindBlobs => &FIND_BLOBS,
        Operation::CreateContainer => &CREATE_CONTAINER,
        Operation::DeleteContainer => &DELETE_CONTAINER,
        Operation::GetContainerProperties => &GET_CONTAINER_PROPERTIES,
        Operation::GetContainerMetadata => &GET_CONTAINER_METADATA,
        Operation::SetContainerMetadata => &SET_CONTAINER_METADATA,
        Operation::GetContainerPolicies => &GET_CONTAINER_POLICIES,
        Operation::SetContainerPolicies => &SET_CONTAINER_POLICIES,
        Operation::RestoreContainer => &RESTORE_CONTAINER,
        Operation::ListBlobs => &LIST_BLOBS,
        Operation::PutBlob => &PUT_BLOB,
        Operation::PutBlobFromUrl => &PUT_BLOB_FROM_URL,
        Operation::CopyBlob => &COPY_BLOB,
        Operation::CopyBlobFromUrl => &COPY_BLOB_FROM_URL,
        Operation::AbortCopy => &ABORT_COPY,
        Operation::GetBlob => &GET_BLOB,
        Operation::GetBlobProperties => &GET_BLOB_PROPERTIES,
        Operation::GetBlobMetadata => &GET_BLOB_METADATA,
        Operation::SetBlobMetadata => &SET_BLOB_METADATA,
        Operation::SetBlobProperties => &SET_BLOB_PROPERTIES,
        Operation::SetBlobTier => &SET_BLOB_TIER,
        Operation::DeleteBlob => &DELETE_BLOB,
        Operation::UndeleteBlob => &UNDELETE_BLOB,
        Operation::SnapshotBlob => &SNAPSHOT_BLOB,
        Operation::GetBlobTags => &GET_BLOB_TAGS,
        Operation::SetBlobTags => &SET_BLOB_TAGS,
        Operation::PutBlock => &PUT_BLOCK,
        Operation::PutBlockFromUrl => &PUT_BLOCK_FROM_URL,
        Operation::PutBlockList => &PUT_BLOCK_LIST,
        Operation::GetBlockList => &GET_BLOCK_LIST,
        Operation::AppendBlock => &APPEND_BLOCK,
        Operation::AppendBlockFromUrl => &APPEND_BLOCK_FROM_URL,
        Operation::SealBlob => &SEAL_BLOB,
        Operation::PutPage => &PUT_PAGE,
        Operation::PutPageFromUrl => &PUT_PAGE_FROM_URL,
        Operation::ClearPages => &CLEAR_PAGES,
        Operation::GetPageRanges => &GET_PAGE_RANGES,
        Operation::LeaseContainer(verb) => match verb {
            LeaseVerb::Acquire => &ACQUIRE_CONTAINER_LEASE,
            LeaseVerb::Renew => &RENEW_CONTAINER_LEASE,
            LeaseVerb::Change => &CHANGE_CONTAINER_LEASE,
            LeaseVerb::Release => &RELEASE_CONTAINER_LEASE,
            LeaseVerb::Break => &BREAK_CONTAINER_LEASE,
            LeaseVerb::Unknown => &UNKNOWN,
        },
        Operation::LeaseBlob(verb) => match verb {
            LeaseVerb::Acquire => &ACQUIRE_BLOB_LEASE,
            LeaseVerb::Renew => &RENEW_BLOB_LEASE,
            LeaseVerb::Change => &CHANGE_BLOB_LEASE,
            LeaseVerb::Release => &RELEASE_BLOB_LEASE,
            LeaseVerb::Break => &BREAK_BLOB_LEASE,
            LeaseVerb::Unknown => &UNKNOWN,
        },
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
