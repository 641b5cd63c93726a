//! Every row of the specification's table of codes, and of its table of details (blob-operations 2.3).

use super::*;

#[test]
fn refusals_are_the_services_to_the_letter() {
    let check = |refusal: Refusal, status: u16, code: &str, message: &str| {
        assert_eq!((refusal.status(), refusal.code(), refusal.to_string().as_str()), (status, code, message));
    };
    let (blob, container) = (Leased::Blob, Leased::Container);
    let (md5, crc64) = (Md5([0; 16]), Crc64(0));
    let text = String::new;
    let header = "The value for one of the HTTP headers is not in the correct format.";
    check(Refusal::HeaderInvalid { name: "", value: text() }, 400, "InvalidHeaderValue", header);
    check(common::Refusal::HeaderValueInvalid.into(), 400, "InvalidHeaderValue", header);
    check(
        Refusal::ParameterInvalid { name: "", value: text(), reason: None },
        400,
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
    );
    check(
        Refusal::HeaderMissing { name: "" },
        400,
        "MissingRequiredHeader",
        "An HTTP header that's mandatory for this request is not specified.",
    );
    check(
        Refusal::ParameterMissing { name: "" },
        400,
        "MissingRequiredQueryParameter",
        "A query parameter that's mandatory for this request is not specified.",
    );
    check(
        common::Refusal::InputNotValid.into(),
        400,
        "InvalidInput",
        "One of the request inputs is not valid.",
    );
    check(
        common::Refusal::InputOutOfRange.into(),
        400,
        "OutOfRangeInput",
        "One of the request inputs is out of range.",
    );
    check(
        Refusal::XmlNodeInvalid { name: "a", value: String::new() },
        400,
        "InvalidXmlNodeValue",
        "The value for one of the XML nodes is not in the correct format.",
    );
    check(
        Refusal::XmlNotValid { line: 0, position: 0, reason: "".into() },
        400,
        "InvalidXmlDocument",
        "XML specified is not syntactically valid.",
    );
    check(
        Refusal::BlockIdInvalid,
        400,
        "InvalidBlockId",
        "The specified block ID is invalid. The block ID must be Base64-encoded.",
    );
    check(Refusal::BlockListInvalid, 400, "InvalidBlockList", "The specified block list is invalid.");
    check(
        Refusal::BlockListTooLong,
        400,
        "BlockListTooLong",
        "The block list may not contain more than 50,000 blocks.",
    );
    check(
        Refusal::BlobOrBlockInvalid,
        400,
        "InvalidBlobOrBlock",
        "The specified blob or block content is invalid.",
    );
    check(
        Refusal::Md5Invalid,
        400,
        "InvalidMd5",
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded.",
    );
    check(
        Refusal::Md5Mismatch { given: md5, computed: None },
        400,
        "Md5Mismatch",
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
    );
    check(
        Refusal::Crc64Mismatch { given: crc64, computed: crc64 },
        400,
        "Crc64Mismatch",
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
    );
    check(
        Refusal::BothChecksums,
        400,
        "BothCrc64AndMd5HeaderPresent",
        "Both x-ms-content-crc64 header and content-md5 header are present.",
    );
    check(
        Refusal::BothRangeChecksums,
        400,
        "BothCrc64AndMd5RangeHeaderPresent",
        "Both x-ms-range-get-content-crc64 header and x-ms-range-get-content-md5 header are present.",
    );
    assert_eq!(Refusal::ParametersExclusive.answer(), (400, "MutuallyExclusiveQueryParameters"));
    check(
        Refusal::TierNotSupported,
        400,
        "AccessTierNotSupportedForBlobType",
        "The access tier is not supported for this blob type.",
    );
    check(Refusal::TierInvalid, 400, "InvalidBlobTier", "The specified blob tier is invalid.");
    check(
        Refusal::TooManyBatchParts,
        400,
        "ExceedsMaxBatchRequestCount",
        "The batch operation exceeds maximum number of allowed subrequests.",
    );
    check(
        Refusal::HierarchyNotEnabled,
        400,
        "HierarchicalNamespaceNotEnabled",
        "This operation is only supported on a hierarchical namespace account.",
    );
    check(
        common::Refusal::AuthenticationInfoMalformed.into(),
        400,
        "InvalidAuthenticationInfo",
        "Authentication information is not given in the correct format. Check the value of Authorization header.",
    );
    check(
        common::Refusal::NoAuthenticationInformation.into(),
        401,
        "NoAuthenticationInformation",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    );
    check(
        common::Refusal::AuthenticationFailed.into(),
        403,
        "AuthenticationFailed",
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
    );
    check(
        Refusal::CurrentVersionNotDeleted,
        403,
        "OperationNotAllowedOnRootBlob",
        "The specified operation is not allowed on root blob.",
    );
    check(
        Refusal::OverwriteNotAuthorized,
        403,
        "UnauthorizedBlobOverwrite",
        "This request is not authorized to perform blob overwrites.",
    );
    check(Refusal::ContainerNotFound, 404, "ContainerNotFound", "The specified container does not exist.");
    check(Refusal::BlobNotFound, 404, "BlobNotFound", "The specified blob does not exist.");
    check(
        common::Refusal::ResourceNotFound.into(),
        404,
        "ResourceNotFound",
        "The specified resource does not exist.",
    );
    check(
        Refusal::ContainerAlreadyExists,
        409,
        "ContainerAlreadyExists",
        "The specified container already exists.",
    );
    check(
        Refusal::ContainerBeingDeleted,
        409,
        "ContainerBeingDeleted",
        "The specified container is being deleted. Try operation later.",
    );
    check(Refusal::BlobAlreadyExists, 409, "BlobAlreadyExists", "The specified blob already exists.");
    check(Refusal::BlobTypeInvalid, 409, "InvalidBlobType", "The blob type is invalid for this operation.");
    check(
        Refusal::SnapshotsPresent,
        409,
        "SnapshotsPresent",
        "This operation is not permitted because the blob has snapshots.",
    );
    check(
        Refusal::BlobSealed,
        409,
        "BlobIsSealed",
        "The blob is sealed and its contents cannot be modified.",
    );
    check(Refusal::LeaseAlreadyPresent, 409, "LeaseAlreadyPresent", "There is already a lease present.");
    for (of, word) in [(blob, "blob"), (container, "container")] {
        check(
            Refusal::LeaseNotPresentForLease(of),
            409,
            "LeaseNotPresentWithLeaseOperation",
            &format!("There is currently no lease on the {word}."),
        );
        check(
            Refusal::LeaseIdMismatchForLease(of),
            409,
            "LeaseIdMismatchWithLeaseOperation",
            &format!("The lease ID specified did not match the lease ID for the {word}."),
        );
        check(
            Refusal::LeaseIdMissing(of),
            412,
            "LeaseIdMissing",
            &format!(
                "There is currently a lease on the {word} and no lease ID was specified in the request."
            ),
        );
        check(
            Refusal::LeaseLost(of),
            412,
            "LeaseLost",
            &format!("A lease ID was specified, but the lease for the {word} has expired."),
        );
    }
    let mismatch = "The lease ID specified did not match the lease ID for the blob.";
    check(Refusal::LeaseIdMismatch(blob), 412, "LeaseIdMismatchWithBlobOperation", mismatch);
    let mismatch = "The lease ID specified did not match the lease ID for the container.";
    check(Refusal::LeaseIdMismatch(container), 412, "LeaseIdMismatchWithContainerOperation", mismatch);
    let absent = "There is currently no lease on the blob.";
    check(Refusal::LeaseNotPresent(blob), 412, "LeaseNotPresentWithBlobOperation", absent);
    let absent = "There is currently no lease on the container.";
    check(Refusal::LeaseNotPresent(container), 412, "LeaseNotPresentWithContainerOperation", absent);
    check(
        Refusal::LeaseBreakingNotAcquired,
        409,
        "LeaseIsBreakingAndCannotBeAcquired",
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
    );
    check(
        Refusal::LeaseBreakingNotChanged,
        409,
        "LeaseIsBreakingAndCannotBeChanged",
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
    );
    check(
        Refusal::LeaseBrokenNotRenewed,
        409,
        "LeaseIsBrokenAndCannotBeRenewed",
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    );
    check(Refusal::CopyPending, 409, "PendingCopyOperation", "There is currently a pending copy operation.");
    check(
        Refusal::NoPendingCopy,
        409,
        "NoPendingCopyOperation",
        "There is currently no pending copy operation.",
    );
    check(
        Refusal::CopyIdMismatch,
        409,
        "CopyIdMismatch",
        "The specified copy ID did not match the copy ID for the pending copy operation.",
    );
    check(
        Refusal::PermanentDeleteOff,
        409,
        "PermanentDeleteIsOff",
        "Permanent delete is off on the storage account.",
    );
    check(
        Refusal::OperationNotSupported,
        409,
        "BlobOperationNotSupported",
        "Blob operation is not supported.",
    );
    check(Refusal::BlobArchived, 409, "BlobArchived", "This operation is not permitted on an archived blob.");
    check(
        Refusal::BlobBeingRehydrated,
        409,
        "BlobBeingRehydrated",
        "This operation is not permitted because the blob is being rehydrated.",
    );
    check(
        Refusal::BlobNotArchived,
        409,
        "BlobNotArchived",
        "This blob is currently not in the archived state.",
    );
    check(
        Refusal::TooManyCommittedBlocks,
        409,
        "BlockCountExceedsLimit",
        "The committed block count cannot exceed the maximum limit of 50,000 blocks.",
    );
    check(
        Refusal::TooManyUncommittedBlocks,
        409,
        "BlockCountExceedsLimit",
        "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
    );
    check(
        Refusal::SequenceNumberOverflow,
        409,
        "SequenceNumberIncrementTooLarge",
        "The sequence number increment cannot be performed because it would result in overflow of the sequence number.",
    );
    check(
        Refusal::PreviousSnapshotNotFound,
        409,
        "PreviousSnapshotNotFound",
        "The previous snapshot is not found.",
    );
    check(
        Refusal::PreviousSnapshotNewer,
        400,
        "PreviousSnapshotCannotBeNewer",
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.",
    );
    check(
        Refusal::BlobOverwritten,
        409,
        "BlobOverwritten",
        "The blob has been recreated since the previous snapshot was taken.",
    );
    let not_met = "The condition specified using HTTP conditional header(s) is not met.";
    check(common::Refusal::ConditionNotMet.into(), 412, "ConditionNotMet", not_met);
    check(Refusal::NotModified, 304, "ConditionNotMet", not_met);
    check(
        Refusal::SourceConditionNotMet,
        412,
        "SourceConditionNotMet",
        "The source condition specified using HTTP conditional header(s) is not met.",
    );
    check(
        Refusal::TargetConditionNotMet,
        412,
        "TargetConditionNotMet",
        "The target condition specified using HTTP conditional header(s) is not met.",
    );
    check(
        Refusal::InfiniteLeaseRequired,
        412,
        "InfiniteLeaseDurationRequired",
        "The lease ID matched, but the specified lease must be an infinite-duration lease.",
    );
    check(
        Refusal::SequenceNumberConditionNotMet,
        412,
        "SequenceNumberConditionNotMet",
        "The sequence number condition specified was not met.",
    );
    check(
        Refusal::AppendPositionNotMet,
        412,
        "AppendPositionConditionNotMet",
        "The append position condition specified was not met.",
    );
    check(
        Refusal::MaxBlobSizeNotMet,
        412,
        "MaxBlobSizeConditionNotMet",
        "The max blob size condition specified was not met.",
    );
    check(
        Refusal::BodyTooLarge { max: 1 },
        413,
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
    );
    check(
        Refusal::RangeInvalid { length: 0 },
        416,
        "InvalidRange",
        "The range specified is invalid for the current size of the resource.",
    );
    check(Refusal::PageRangeInvalid, 416, "InvalidPageRange", "The page range specified is invalid.");
    check(
        common::Refusal::TimedOut.into(),
        500,
        "OperationTimedOut",
        "Operation could not be completed within the specified time.",
    );
    check(common::Refusal::Busy.into(), 503, "ServerBusy", "The server is busy.");
    check(
        Refusal::MetadataInvalid,
        400,
        "InvalidMetadata",
        "The metadata specified is invalid. It has characters that are not permitted.",
    );
    check(
        Refusal::MetadataTooLarge,
        400,
        "MetadataTooLarge",
        "The size of the specified metadata exceeds the maximum size permitted.",
    );
    check(
        common::Refusal::ResourceNameCharacters.into(),
        400,
        "InvalidResourceName",
        "The specifed resource name contains invalid characters.",
    );
    check(
        Refusal::HeaderUnsupported { name: "", value: text() },
        400,
        "UnsupportedHeader",
        "One of the headers specified in the request is not supported.",
    );
    check(
        Refusal::PublicAccessNotPermitted,
        409,
        "PublicAccessNotPermitted",
        "Public access is not permitted on this storage account.",
    );
    check(
        Refusal::WhereInvalid { at: 1, problem: "expected an operator", value: text() },
        400,
        "InvalidQueryParameterValue",
        "Error parsing query at or near character position 1: expected an operator",
    );
}

#[test]
fn a_source_that_can_not_be_read_answers_with_its_own_status() {
    let check = |fault, status: u16, message: &str| {
        let refusal = Refusal::CopySource(fault);
        assert_eq!(refusal.answer(), (status, "CannotVerifyCopySource"));
        assert!(refusal.to_string().starts_with(message), "{refusal}");
    };
    check(CopySourceFault::NotFound, 404, "The specified resource does not exist.");
    check(CopySourceFault::NotAuthenticated, 401, "Server failed to authenticate the request. Please refer");
    check(
        CopySourceFault::AuthenticationMalformed,
        400,
        "Authentication information is not given in the correct",
    );
    check(CopySourceFault::ConditionNotMet, 412, "The condition specified using HTTP conditional header(s)");
    check(CopySourceFault::NotVerified, 412, "Could not verify the copy source within the specified time.");
    check(CopySourceFault::NotModified, 304, "The condition specified");
}

#[test]
fn details_follow_the_message_in_order() {
    let check = |refusal: Refusal, expected: &[(&str, &str)]| {
        let told = refusal.details();
        let told: Vec<(&str, &str)> = told.iter().map(|(name, value)| (*name, &**value)).collect();
        assert_eq!(told, expected);
    };
    let value = || "bytes=0-512".to_owned();
    let named: &[(&str, &str)] = &[("HeaderName", "Range"), ("HeaderValue", "bytes=0-512")];
    check(Refusal::HeaderInvalid { name: "Range", value: value() }, named);
    check(Refusal::HeaderUnsupported { name: "Range", value: value() }, named);
    check(Refusal::HeaderMissing { name: "Range" }, &[("HeaderName", "Range")]);
    check(
        Refusal::unknown_comp("rename"),
        &[("QueryParameterName", "comp"), ("QueryParameterValue", "rename")],
    );
    check(
        Refusal::ParameterInvalid { name: "comp", value: "stats".to_owned(), reason: Some("") },
        &[("QueryParameterName", "comp"), ("QueryParameterValue", "stats"), ("Reason", "")],
    );
    check(Refusal::ParameterMissing { name: "blockid" }, &[("QueryParameterName", "blockid")]);
    check(
        Refusal::ParameterOutOfRange { name: "maxresults", value: "0".to_owned(), min: 1, max: 5000 },
        &[
            ("QueryParameterName", "maxresults"),
            ("QueryParameterValue", "0"),
            ("MinimumAllowed", "1"),
            ("MaximumAllowed", "5000"),
        ],
    );
    check(
        Refusal::XmlNodeInvalid { name: "AllowedOrigins", value: "a,b".to_owned() },
        &[("XmlNodeName", "AllowedOrigins"), ("XmlNodeValue", "a,b"), ("Reason", "")],
    );
    check(
        Refusal::XmlNotValid { line: 2, position: 89, reason: "why".into() },
        &[("LineNumber", "2"), ("LinePosition", "89"), ("Reason", "why")],
    );
    let (given, computed) = (Md5::of(b"a"), Md5::of(b"b"));
    check(
        Refusal::Md5Mismatch { given, computed: Some(computed) },
        &[("UserSpecifiedMd5", &given.to_string()), ("ServerCalculatedMd5", &computed.to_string())],
    );
    check(Refusal::Md5Mismatch { given, computed: None }, &[]);
    let (given, computed) = (Crc64::of(b"a"), Crc64::of(b"b"));
    check(
        Refusal::Crc64Mismatch { given, computed },
        &[("UserSpecifiedCrc", &given.to_string()), ("ServerCalculatedCrc", &computed.to_string())],
    );
    check(Refusal::BodyTooLarge { max: 4096 }, &[("MaxLimit", "4096")]);
    check(
        Refusal::WhereInvalid { at: 1, problem: "expected an operator", value: "x".to_owned() },
        &[
            ("QueryParameterName", "where"),
            ("QueryParameterValue", "x"),
            ("Reason", "This query parameter value is invalid."),
        ],
    );
    check(Refusal::BlobNotFound, &[]);
}
