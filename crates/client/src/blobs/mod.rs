//! The Blob service: containers, and blobs of all three types.

mod append;
mod blob;
mod blob_list;
mod blob_service;
mod blocks;
mod container;
mod container_list;
mod download;
mod lease;
mod pages;
mod properties;
mod upload;
mod writes;

pub use blob::{Blob, BlockEntry};
pub use blob_list::{BlobEntry, BlobItem, BlobList, BlobPage};
pub use blob_service::{BlobService, BlobServiceBuilder};
pub use container::{Container, ContainerProperties, PublicAccess};
pub use container_list::ContainerEntry;
pub use download::Download;
pub use lease::{Lease, LeaseTime};
pub use properties::{BlobProperties, BlobType, ContentHeaders, CopyState, LeaseState};
pub use upload::UploadOptions;
pub use writes::{DeleteSnapshots, Written};
