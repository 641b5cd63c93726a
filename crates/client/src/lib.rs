#![doc = include_str!("../README.md")]

mod answers;
mod blobs;
mod deliveries;
mod encrypted;
mod encryption;
mod entity;
mod error;
mod etag;
mod filter;
mod query;
mod queue;
mod queue_service;
mod retry;
mod sas;
mod service;
mod service_settings;
mod table;
mod tls;
mod transaction;
mod transport;
mod typed;

pub use blobs::{
    Blob, BlobEntry, BlobItem, BlobList, BlobPage, BlobProperties, BlobService, BlobServiceBuilder, BlobType,
    BlockEntry, Container, ContainerEntry, ContainerProperties, ContentHeaders, CopyState, DeleteSnapshots,
    Download, Lease, LeaseState, LeaseTime, PublicAccess, UploadOptions, Written,
};
pub use deliveries::{Deliveries, Delivery};
pub use encrypted::Encrypted;
pub use encryption::EntityEncryption;
pub use entity::{Entity, StoredEntity};
pub use error::{Error, Result, ServiceRefusal};
pub use etag::{ETag, Match};
pub use filter::{Filter, Operand, after_prefix, partition_key, property, row_key, timestamp};
pub use model::{DateTime, EdmType, Guid, ParseValueError, ServiceKind, Value, ValueMismatch};
pub use query::{Continuation, JsonPage, Page, Query};
pub use queue::{
    MessageHandle, PeekedMessage, PutMessage, PutOptions, Queue, QueueProperties, TakenMessage, TimeToLive,
};
pub use queue_service::{QueueEntry, QueueService, QueueServiceBuilder};
pub use retry::RetryPolicy;
pub use sas::{
    AccessPolicy, AccountSas, BlobPermissions, BlobSas, Permissions, QueuePermissions, QueueSas,
    TablePermissions, TableSas,
};
pub use service::{
    CorsRule, Logging, Metrics, ServiceProperties, ServiceStats, TableService, TableServiceBuilder,
};
pub use table::Table;
pub use transaction::{Operation, OperationKind, Transaction};
pub use typed::edm;
