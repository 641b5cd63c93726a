//! Names of headers that only the Blob service has.

pub const ACCESS_TIER: &str = "x-ms-access-tier";
pub const ACCESS_TIER_CHANGE_TIME: &str = "x-ms-access-tier-change-time";
pub const ACCESS_TIER_INFERRED: &str = "x-ms-access-tier-inferred";
pub const ARCHIVE_STATUS: &str = "x-ms-archive-status";
pub const BLOB_COMMITTED_BLOCK_COUNT: &str = "x-ms-blob-committed-block-count";
pub const BLOB_CONTENT_MD5: &str = "x-ms-blob-content-md5";
pub const BLOB_PUBLIC_ACCESS: &str = "x-ms-blob-public-access";
pub const BLOB_SEALED: &str = "x-ms-blob-sealed";
pub const BLOB_SEQUENCE_NUMBER: &str = "x-ms-blob-sequence-number";
pub const BLOB_TYPE: &str = "x-ms-blob-type";
pub const COPY_COMPLETION_TIME: &str = "x-ms-copy-completion-time";
pub const COPY_ID: &str = "x-ms-copy-id";
pub const COPY_PROGRESS: &str = "x-ms-copy-progress";
pub const COPY_SOURCE: &str = "x-ms-copy-source";
pub const COPY_STATUS: &str = "x-ms-copy-status";
pub const COPY_STATUS_DESCRIPTION: &str = "x-ms-copy-status-description";
pub const CREATION_TIME: &str = "x-ms-creation-time";
pub const DEFAULT_ENCRYPTION_SCOPE: &str = "x-ms-default-encryption-scope";
pub const DENY_ENCRYPTION_SCOPE_OVERRIDE: &str = "x-ms-deny-encryption-scope-override";
pub const HAS_IMMUTABILITY_POLICY: &str = "x-ms-has-immutability-policy";
pub const HAS_LEGAL_HOLD: &str = "x-ms-has-legal-hold";
pub const IMMUTABLE_STORAGE_WITH_VERSIONING: &str = "x-ms-immutable-storage-with-versioning-enabled";
pub const LEASE_DURATION: &str = "x-ms-lease-duration";
pub const LEASE_STATE: &str = "x-ms-lease-state";
pub const LEASE_STATUS: &str = "x-ms-lease-status";
pub const META_PREFIX: &str = "x-ms-meta-";
pub const REHYDRATE_PRIORITY: &str = "x-ms-rehydrate-priority";
pub const SERVER_ENCRYPTED: &str = "x-ms-server-encrypted";
pub const TAG_COUNT: &str = "x-ms-tag-count";

/// The encryption scope of every container that names none.
pub const ACCOUNT_ENCRYPTION_SCOPE: &str = "$account-encryption-key";
