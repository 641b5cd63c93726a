//! Every "no" a client of blobs can hear: status, code, words and details. What all services say is `common`'s.
//!
//! The words are the service's own, with its spelling, because clients match on them (spec: blob-operations 2.3). One variant
//! is one answer; several answers share a code.

use std::borrow::Cow;
use std::fmt;

use common::ServiceKind;
use thiserror::Error;

use crate::{Crc64, Md5};

/// What a lease is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    Blob,
    Container,
}

impl fmt::Display for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blob => "blob",
            Self::Container => "container",
        })
    }
}

/// Why the source of a copy can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySourceFault {
    NotFound,
    NotAuthenticated,
    /// `x-ms-copy-source-authorization` is malformed.
    AuthenticationMalformed,
    ConditionNotMet,
    /// The same of operations on pages and append blocks, and sources that answer nothing.
    NotVerified,
    NotModified,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// What the other services say too.
    #[error("{}", .0.message(ServiceKind::Blob))]
    Shared(common::Refusal),

    // Is it a request this resource understands.
    #[error("The resource doesn't support specified Http Verb.")]
    VerbNotSupported,
    #[error("The value for one of the HTTP headers is not in the correct format.")]
    HeaderInvalid { name: &'static str, value: String },
    #[error("The value of deleted-container-name header must match the destination container name.")]
    RestoredNameDiffers { value: String },
    #[error("An HTTP header that's mandatory for this request is not specified.")]
    HeaderMissing { name: &'static str },
    #[error("One of the headers specified in the request is not supported.")]
    HeaderUnsupported { name: &'static str, value: String },
    /// Without a reason none is told; an empty one is told as an empty element.
    #[error("Value for one of the query parameters specified in the request URI is invalid.")]
    ParameterInvalid { name: &'static str, value: String, reason: Option<&'static str> },
    /// The expression of Find Blobs by Tags; the position is counted from one, in characters.
    #[error("Error parsing query at or near character position {at}: {problem}")]
    WhereInvalid { at: usize, problem: &'static str, value: String },
    #[error("One of the query parameters specified in the request URI is outside the permissible range.")]
    ParameterOutOfRange { name: &'static str, value: String, min: u64, max: u64 },
    #[error("A query parameter that's mandatory for this request is not specified.")]
    ParameterMissing { name: &'static str },
    #[error("Mutually exclusive query parameters are specified in the request.")]
    ParametersExclusive,
    #[error("This operation is only supported on a hierarchical namespace account.")]
    HierarchyNotEnabled,
    #[error("The batch operation exceeds maximum number of allowed subrequests.")]
    TooManyBatchParts,

    // Is it metadata, a document or content that could be stored.
    #[error("The metadata specified is invalid. It has characters that are not permitted.")]
    MetadataInvalid,
    #[error("The key for one of the metadata key-value pairs is empty.")]
    MetadataKeyEmpty { value: String },
    #[error("The size of the specified metadata exceeds the maximum size permitted.")]
    MetadataTooLarge,
    /// The place of the fault in the document, both counted from one; zeros if the document as a whole is at fault.
    #[error("XML specified is not syntactically valid.")]
    XmlNotValid { line: usize, position: usize, reason: Cow<'static, str> },
    #[error("The value for one of the XML nodes is not in the correct format.")]
    XmlNodeInvalid { name: &'static str, value: String },
    #[error("The request body is too large and exceeds the maximum permissible limit.")]
    BodyTooLarge { max: u64 },
    #[error(
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    )]
    Md5Invalid,
    /// From URL of pages and append blocks, the service does not tell what it computed.
    #[error(
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    )]
    Md5Mismatch { given: Md5, computed: Option<Md5> },
    #[error(
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    )]
    Crc64Mismatch { given: Crc64, computed: Crc64 },
    #[error("Both x-ms-content-crc64 header and content-md5 header are present.")]
    BothChecksums,
    #[error("Both x-ms-range-get-content-crc64 header and x-ms-range-get-content-md5 header are present.")]
    BothRangeChecksums,
    /// In a block list. An id in the query is an invalid value there.
    #[error("The specified block ID is invalid. The block ID must be Base64-encoded.")]
    BlockIdInvalid,
    #[error("The specified block list is invalid.")]
    BlockListInvalid,
    #[error("The block list may not contain more than 50,000 blocks.")]
    BlockListTooLong,
    /// Ids of one blob's blocks differ in length.
    #[error("The specified blob or block content is invalid.")]
    BlobOrBlockInvalid,
    #[error("The access tier is not supported for this blob type.")]
    TierNotSupported,
    #[error("The specified blob tier is invalid.")]
    TierInvalid,

    // May the caller do it.
    #[error("The specified operation is not allowed on root blob.")]
    CurrentVersionNotDeleted,
    #[error("This request is not authorized to perform blob overwrites.")]
    OverwriteNotAuthorized,
    #[error("Public access is not permitted on this storage account.")]
    PublicAccessNotPermitted,

    // Does what is stored allow it.
    #[error("The specified container does not exist.")]
    ContainerNotFound,
    #[error("The specified container already exists.")]
    ContainerAlreadyExists,
    #[error("The specified container is being deleted. Try operation later.")]
    ContainerBeingDeleted,
    #[error("The specified blob does not exist.")]
    BlobNotFound,
    #[error("The specified blob already exists.")]
    BlobAlreadyExists,
    #[error("The blob type is invalid for this operation.")]
    BlobTypeInvalid,
    #[error("This operation is not permitted because the blob has snapshots.")]
    SnapshotsPresent,
    #[error("The blob is sealed and its contents cannot be modified.")]
    BlobSealed,
    #[error("This operation is not permitted on an archived blob.")]
    BlobArchived,
    #[error("This operation is not permitted because the blob is being rehydrated.")]
    BlobBeingRehydrated,
    #[error("This blob is currently not in the archived state.")]
    BlobNotArchived,
    #[error("Permanent delete is off on the storage account.")]
    PermanentDeleteOff,
    #[error("Blob operation is not supported.")]
    OperationNotSupported,
    #[error("The committed block count cannot exceed the maximum limit of 50,000 blocks.")]
    TooManyCommittedBlocks,
    #[error("The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.")]
    TooManyUncommittedBlocks,
    #[error(
        "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    )]
    SequenceNumberOverflow,
    #[error("The previous snapshot is not found.")]
    PreviousSnapshotNotFound,
    #[error("The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.")]
    PreviousSnapshotNewer,
    #[error("The blob has been recreated since the previous snapshot was taken.")]
    BlobOverwritten,
    #[error("There is currently a pending copy operation.")]
    CopyPending,
    #[error("There is currently no pending copy operation.")]
    NoPendingCopy,
    #[error("The specified copy ID did not match the copy ID for the pending copy operation.")]
    CopyIdMismatch,
    /// In the words of what the source answered.
    #[error("{}", .0.message())]
    CopySource(CopySourceFault),

    // Leases: of operations on a lease, then of other operations.
    #[error("There is already a lease present.")]
    LeaseAlreadyPresent,
    #[error("There is currently no lease on the {0}.")]
    LeaseNotPresentForLease(Leased),
    #[error("The lease ID specified did not match the lease ID for the {0}.")]
    LeaseIdMismatchForLease(Leased),
    #[error(
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."
    )]
    LeaseBreakingNotAcquired,
    #[error("The lease ID matched, but the lease is currently in breaking state and cannot be changed.")]
    LeaseBreakingNotChanged,
    #[error("The lease ID matched, but the lease has been broken explicitly and cannot be renewed.")]
    LeaseBrokenNotRenewed,
    #[error("There is currently a lease on the {0} and no lease ID was specified in the request.")]
    LeaseIdMissing(Leased),
    #[error("The lease ID specified did not match the lease ID for the {0}.")]
    LeaseIdMismatch(Leased),
    #[error("There is currently no lease on the {0}.")]
    LeaseNotPresent(Leased),
    #[error("A lease ID was specified, but the lease for the {0} has expired.")]
    LeaseLost(Leased),
    #[error("The lease ID matched, but the specified lease must be an infinite-duration lease.")]
    InfiniteLeaseRequired,

    // Conditions. Most of them are `common`'s `ConditionNotMet`.
    /// A read of what has not changed.
    #[error("The condition specified using HTTP conditional header(s) is not met.")]
    NotModified,
    #[error("The source condition specified using HTTP conditional header(s) is not met.")]
    SourceConditionNotMet,
    #[error("The target condition specified using HTTP conditional header(s) is not met.")]
    TargetConditionNotMet,
    #[error("The sequence number condition specified was not met.")]
    SequenceNumberConditionNotMet,
    #[error("The append position condition specified was not met.")]
    AppendPositionNotMet,
    #[error("The max blob size condition specified was not met.")]
    MaxBlobSizeNotMet,
    /// The answer says how long the blob is, in `Content-Range`.
    #[error("The range specified is invalid for the current size of the resource.")]
    RangeInvalid { length: u64 },
    #[error("The page range specified is invalid.")]
    PageRangeInvalid,
}

impl From<common::Refusal> for Refusal {
    fn from(shared: common::Refusal) -> Self {
        Self::Shared(shared)
    }
}

impl CopySourceFault {
    const fn status(self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::NotAuthenticated => 401,
            Self::AuthenticationMalformed => 400,
            Self::ConditionNotMet | Self::NotVerified => 412,
            Self::NotModified => 304,
        }
    }

    fn message(self) -> Cow<'static, str> {
        let shared = match self {
            Self::NotFound => common::Refusal::ResourceNotFound,
            Self::NotAuthenticated => common::Refusal::NoAuthenticationInformation,
            Self::AuthenticationMalformed => common::Refusal::AuthenticationInfoMalformed,
            Self::ConditionNotMet | Self::NotModified => common::Refusal::ConditionNotMet,
            Self::NotVerified => return "Could not verify the copy source within the specified time.".into(),
        };
        shared.message(ServiceKind::Blob)
    }
}

impl Refusal {
    /// `comp` has a value that this resource does not know.
    pub fn unknown_comp(value: &str) -> Self {
        Self::ParameterInvalid { name: "comp", value: value.to_owned(), reason: None }
    }

    /// The HTTP status and the error code.
    pub const fn answer(&self) -> (u16, &'static str) {
        match self {
            Self::Shared(shared) => shared.answer(ServiceKind::Blob),
            Self::VerbNotSupported => (405, "UnsupportedHttpVerb"),
            Self::HeaderInvalid { .. } | Self::RestoredNameDiffers { .. } => (400, "InvalidHeaderValue"),
            Self::HeaderMissing { .. } => (400, "MissingRequiredHeader"),
            Self::HeaderUnsupported { .. } => (400, "UnsupportedHeader"),
            Self::ParameterInvalid { .. } | Self::WhereInvalid { .. } => (400, "InvalidQueryParameterValue"),
            Self::ParameterOutOfRange { .. } => (400, "OutOfRangeQueryParameterValue"),
            Self::ParameterMissing { .. } => (400, "MissingRequiredQueryParameter"),
            Self::ParametersExclusive => (400, "MutuallyExclusiveQueryParameters"),
            Self::HierarchyNotEnabled => (400, "HierarchicalNamespaceNotEnabled"),
            Self::TooManyBatchParts => (400, "ExceedsMaxBatchRequestCount"),
            Self::MetadataInvalid => (400, "InvalidMetadata"),
            Self::MetadataKeyEmpty { .. } => (400, "EmptyMetadataKey"),
            Self::MetadataTooLarge => (400, "MetadataTooLarge"),
            Self::XmlNotValid { .. } => (400, "InvalidXmlDocument"),
            Self::XmlNodeInvalid { .. } => (400, "InvalidXmlNodeValue"),
            Self::BodyTooLarge { .. } => (413, "RequestBodyTooLarge"),
            Self::Md5Invalid => (400, "InvalidMd5"),
            Self::Md5Mismatch { .. } => (400, "Md5Mismatch"),
            Self::Crc64Mismatch { .. } => (400, "Crc64Mismatch"),
            Self::BothChecksums => (400, "BothCrc64AndMd5HeaderPresent"),
            Self::BothRangeChecksums => (400, "BothCrc64AndMd5RangeHeaderPresent"),
            Self::BlockIdInvalid => (400, "InvalidBlockId"),
            Self::BlockListInvalid => (400, "InvalidBlockList"),
            Self::BlockListTooLong => (400, "BlockListTooLong"),
            Self::BlobOrBlockInvalid => (400, "InvalidBlobOrBlock"),
            Self::TierNotSupported => (400, "AccessTierNotSupportedForBlobType"),
            Self::TierInvalid => (400, "InvalidBlobTier"),
            Self::CurrentVersionNotDeleted => (403, "OperationNotAllowedOnRootBlob"),
            Self::OverwriteNotAuthorized => (403, "UnauthorizedBlobOverwrite"),
            Self::PublicAccessNotPermitted => (409, "PublicAccessNotPermitted"),
            Self::ContainerNotFound => (404, "ContainerNotFound"),
            Self::ContainerAlreadyExists => (409, "ContainerAlreadyExists"),
            Self::ContainerBeingDeleted => (409, "ContainerBeingDeleted"),
            Self::BlobNotFound => (404, "BlobNotFound"),
            Self::BlobAlreadyExists => (409, "BlobAlreadyExists"),
            Self::BlobTypeInvalid => (409, "InvalidBlobType"),
            Self::SnapshotsPresent => (409, "SnapshotsPresent"),
            Self::BlobSealed => (409, "BlobIsSealed"),
            Self::BlobArchived => (409, "BlobArchived"),
            Self::BlobBeingRehydrated => (409, "BlobBeingRehydrated"),
            Self::BlobNotArchived => (409, "BlobNotArchived"),
            Self::PermanentDeleteOff => (409, "PermanentDeleteIsOff"),
            Self::OperationNotSupported => (409, "BlobOperationNotSupported"),
            Self::TooManyCommittedBlocks | Self::TooManyUncommittedBlocks => (409, "BlockCountExceedsLimit"),
            Self::SequenceNumberOverflow => (409, "SequenceNumberIncrementTooLarge"),
            Self::PreviousSnapshotNotFound => (409, "PreviousSnapshotNotFound"),
            Self::PreviousSnapshotNewer => (400, "PreviousSnapshotCannotBeNewer"),
            Self::BlobOverwritten => (409, "BlobOverwritten"),
            Self::CopyPending => (409, "PendingCopyOperation"),
            Self::NoPendingCopy => (409, "NoPendingCopyOperation"),
            Self::CopyIdMismatch => (409, "CopyIdMismatch"),
            Self::CopySource(fault) => (fault.status(), "CannotVerifyCopySource"),
            Self::LeaseAlreadyPresent => (409, "LeaseAlreadyPresent"),
            Self::LeaseNotPresentForLease(_) => (409, "LeaseNotPresentWithLeaseOperation"),
            Self::LeaseIdMismatchForLease(_) => (409, "LeaseIdMismatchWithLeaseOperation"),
            Self::LeaseBreakingNotAcquired => (409, "LeaseIsBreakingAndCannotBeAcquired"),
            Self::LeaseBreakingNotChanged => (409, "LeaseIsBreakingAndCannotBeChanged"),
            Self::LeaseBrokenNotRenewed => (409, "LeaseIsBrokenAndCannotBeRenewed"),
            Self::LeaseIdMissing(_) => (412, "LeaseIdMissing"),
            Self::LeaseIdMismatch(Leased::Blob) => (412, "LeaseIdMismatchWithBlobOperation"),
            Self::LeaseIdMismatch(Leased::Container) => (412, "LeaseIdMismatchWithContainerOperation"),
            Self::LeaseNotPresent(Leased::Blob) => (412, "LeaseNotPresentWithBlobOperation"),
            Self::LeaseNotPresent(Leased::Container) => (412, "LeaseNotPresentWithContainerOperation"),
            Self::LeaseLost(_) => (412, "LeaseLost"),
            Self::InfiniteLeaseRequired => (412, "InfiniteLeaseDurationRequired"),
            Self::NotModified => (304, "ConditionNotMet"),
            Self::SourceConditionNotMet => (412, "SourceConditionNotMet"),
            Self::TargetConditionNotMet => (412, "TargetConditionNotMet"),
            Self::SequenceNumberConditionNotMet => (412, "SequenceNumberConditionNotMet"),
            Self::AppendPositionNotMet => (412, "AppendPositionConditionNotMet"),
            Self::MaxBlobSizeNotMet => (412, "MaxBlobSizeConditionNotMet"),
            Self::RangeInvalid { .. } => (416, "InvalidRange"),
            Self::PageRangeInvalid => (416, "InvalidPageRange"),
        }
    }

    pub const fn status(&self) -> u16 {
        self.answer().0
    }

    pub const fn code(&self) -> &'static str {
        self.answer().1
    }

    /// What the answer says beside code and words: names and values of elements, in order.
    pub fn details(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        match self {
            Self::HeaderInvalid { name, value } | Self::HeaderUnsupported { name, value } => {
                vec![("HeaderName", (*name).into()), ("HeaderValue", value.into())]
            }
            Self::RestoredNameDiffers { value } => {
                vec![("HeaderName", "x-ms-deleted-container-name".into()), ("HeaderValue", value.into())]
            }
            Self::HeaderMissing { name } => vec![("HeaderName", (*name).into())],
            Self::ParameterInvalid { name, value, reason } => {
                let mut details =
                    vec![("QueryParameterName", (*name).into()), ("QueryParameterValue", value.into())];
                details.extend(reason.map(|reason| ("Reason", reason.into())));
                details
            }
            Self::WhereInvalid { value, .. } => vec![
                ("QueryParameterName", "where".into()),
                ("QueryParameterValue", value.into()),
                ("Reason", "This query parameter value is invalid.".into()),
            ],
            Self::ParameterOutOfRange { name, value, min, max } => vec![
                ("QueryParameterName", (*name).into()),
                ("QueryParameterValue", value.into()),
                ("MinimumAllowed", min.to_string().into()),
                ("MaximumAllowed", max.to_string().into()),
            ],
            Self::ParameterMissing { name } => vec![("QueryParameterName", (*name).into())],
            Self::MetadataKeyEmpty { value } => vec![("MetadataValue", value.into())],
            Self::XmlNotValid { line, position, reason } => vec![
                ("LineNumber", line.to_string().into()),
                ("LinePosition", position.to_string().into()),
                ("Reason", (&**reason).into()),
            ],
            Self::XmlNodeInvalid { name, value } => {
                vec![("XmlNodeName", (*name).into()), ("XmlNodeValue", value.into()), ("Reason", "".into())]
            }
            Self::BodyTooLarge { max } => vec![("MaxLimit", max.to_string().into())],
            Self::Md5Mismatch { given, computed: Some(computed) } => vec![
                ("UserSpecifiedMd5", given.to_string().into()),
                ("ServerCalculatedMd5", computed.to_string().into()),
            ],
            Self::Crc64Mismatch { given, computed } => vec![
                ("UserSpecifiedCrc", given.to_string().into()),
                ("ServerCalculatedCrc", computed.to_string().into()),
            ],
            Self::Shared(common::Refusal::ContentLengthMissing) => {
                vec![("HeaderName", "Content-Length".into())]
            }
            _ => Vec::new(),
        }
    }

    /// Not the request's fault: the same one may go through later.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Shared(shared) if shared.is_ours())
    }
}

#[cfg(test)]
mod tests;
