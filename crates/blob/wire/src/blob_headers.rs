//! What a blob or a container says of itself in the headers of an answer (spec: blob-operations 5, 6.2).

use std::borrow::Cow;

use blob_model::{
    BlobKind, BlobProperties, CopyState, Etag, LeaseView, Metadata, PublicAccess, SnapshotTime, Span,
    TierState,
};
use common::Version;

use crate::names;
use crate::xml::http_date;

/// Names in the case in which they are sent, and values.
pub type Headers = Vec<(Cow<'static, str>, String)>;

/// Which answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Get Blob: of all of it, or of this part.
    Get(Option<Span>),
    /// Get Blob Properties.
    Head,
}

/// The version that was read, on accounts that keep versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownVersion {
    pub id: SnapshotTime,
    pub is_current: bool,
}

/// The headers of Get Blob and Get Blob Properties, without those that every answer has. A GET never tells the tier.
pub fn of_blob(properties: &BlobProperties, answer: Answer, version: Option<ShownVersion>) -> Headers {
    let mut out = Headers::with_capacity(24);
    let content = &properties.content;
    let part = match answer {
        Answer::Get(part) => part,
        Answer::Head => None,
    };
    put(&mut out, "Content-Length", part.map_or(properties.length, |part| part.bytes).to_string());
    optional(&mut out, "Content-Type", content.content_type.as_deref());
    if let Some(part) = part {
        let range = format!("bytes {}-{}/{}", part.start, part.last(), properties.length);
        put(&mut out, "Content-Range", range);
    }
    let md5 = if part.is_some() { names::BLOB_CONTENT_MD5 } else { "Content-MD5" };
    optional(&mut out, md5, content.md5.map(|md5| md5.to_string()).as_deref());
    optional(&mut out, "Content-Encoding", content.encoding.as_deref());
    optional(&mut out, "Content-Language", content.language.as_deref());
    optional(&mut out, "Content-Disposition", content.disposition.as_deref());
    optional(&mut out, "Cache-Control", content.cache_control.as_deref());
    put(&mut out, "Accept-Ranges", "bytes");
    of_state(&mut out, properties.etag, &properties.metadata);
    put(&mut out, names::CREATION_TIME, http_date(properties.created));
    put(&mut out, names::BLOB_TYPE, properties.kind.blob_type().name());
    match &properties.kind {
        BlobKind::Block { tier } if answer == Answer::Head => of_tier(&mut out, tier),
        BlobKind::Block { .. } => {}
        BlobKind::Page { sequence_number } => {
            put(&mut out, names::BLOB_SEQUENCE_NUMBER, sequence_number.get().to_string());
        }
        BlobKind::Append { blocks, is_sealed } => {
            put(&mut out, names::BLOB_COMMITTED_BLOCK_COUNT, blocks.to_string());
            optional(&mut out, names::BLOB_SEALED, is_sealed.then_some("true"));
        }
    }
    if let Some(lease) = &properties.lease {
        of_lease(&mut out, lease);
    }
    if let Some(copy) = &properties.copy {
        of_copy(&mut out, copy);
    }
    if !properties.tags.is_empty() {
        put(&mut out, names::TAG_COUNT, properties.tags.len().to_string());
    }
    if let Some(version) = version {
        put(&mut out, "x-ms-version-id", version.id.to_string());
        optional(&mut out, "x-ms-is-current-version", version.is_current.then_some("true"));
    }
    put(&mut out, names::SERVER_ENCRYPTED, "true");
    out
}

/// Whether containers tell if their versions can be made immutable.
pub(crate) fn tells_of_immutable_versions(version: Version) -> bool {
    version.as_str() >= "2020-10-02"
}

/// The headers of Get Container Properties and Get Container Metadata.
pub fn of_container(
    etag: Etag,
    lease: &LeaseView,
    access: PublicAccess,
    metadata: &Metadata,
    version: Version,
) -> Headers {
    let mut out = Headers::with_capacity(16);
    of_state(&mut out, etag, metadata);
    of_lease(&mut out, lease);
    optional(&mut out, names::BLOB_PUBLIC_ACCESS, access.name());
    put(&mut out, names::HAS_IMMUTABILITY_POLICY, "false");
    put(&mut out, names::HAS_LEGAL_HOLD, "false");
    if tells_of_immutable_versions(version) {
        put(&mut out, names::IMMUTABLE_STORAGE_WITH_VERSIONING, "false");
    }
    put(&mut out, names::DEFAULT_ENCRYPTION_SCOPE, names::ACCOUNT_ENCRYPTION_SCOPE);
    put(&mut out, names::DENY_ENCRYPTION_SCOPE_OVERRIDE, "false");
    out
}

/// ETag, Last-Modified and metadata alone, as Get Blob Metadata answers.
pub fn of_metadata(etag: Etag, metadata: &Metadata) -> Headers {
    let mut out = Headers::with_capacity(8);
    of_state(&mut out, etag, metadata);
    out
}

fn of_state(out: &mut Headers, etag: Etag, metadata: &Metadata) {
    put(out, "Last-Modified", http_date(etag.0));
    put(out, "ETag", etag.quoted());
    for (name, value) in metadata.iter() {
        out.push((format!("{}{name}", names::META_PREFIX).into(), value.to_owned()));
    }
}

fn of_lease(out: &mut Headers, lease: &LeaseView) {
    put(out, names::LEASE_STATUS, lease.status);
    put(out, names::LEASE_STATE, lease.state);
    optional(out, names::LEASE_DURATION, lease.duration);
}

fn of_tier(out: &mut Headers, tier: &TierState) {
    put(out, names::ACCESS_TIER, tier.tier.name());
    optional(out, names::ACCESS_TIER_INFERRED, tier.changed.is_none().then_some("true"));
    optional(out, names::ACCESS_TIER_CHANGE_TIME, tier.changed.map(http_date).as_deref());
    optional(out, names::ARCHIVE_STATUS, tier.archive_status().as_deref());
    optional(out, names::REHYDRATE_PRIORITY, tier.rehydrating.map(|(_, priority)| priority.name()));
}

fn of_copy(out: &mut Headers, copy: &CopyState) {
    put(out, names::COPY_ID, copy.id.to_string());
    put(out, names::COPY_SOURCE, copy.source.clone());
    put(out, names::COPY_STATUS, copy.status.name());
    put(out, names::COPY_PROGRESS, copy.progress());
    optional(out, names::COPY_COMPLETION_TIME, copy.completed.map(http_date).as_deref());
    optional(out, names::COPY_STATUS_DESCRIPTION, copy.description.as_deref());
}

fn put(out: &mut Headers, name: &'static str, value: impl Into<String>) {
    out.push((name.into(), value.into()));
}

fn optional(out: &mut Headers, name: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        put(out, name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::{
        AccessTier, ContentHeaders, CopyStatus, DateTime, Guid, Md5, RehydratePriority, SequenceNumber, Tags,
    };

    fn time() -> DateTime {
        DateTime::parse("2022-07-20T21:11:34.5Z").unwrap()
    }

    fn blob(kind: BlobKind) -> BlobProperties {
        BlobProperties {
            created: time(),
            etag: Etag(time()),
            length: 11,
            content: ContentHeaders {
                content_type: Some("text/plain".to_owned()),
                md5: Some(Md5::of(b"hello world")),
                ..ContentHeaders::default()
            },
            kind,
            lease: Some(LeaseView { status: "unlocked", state: "available", duration: None }),
            copy: None,
            metadata: Metadata::default(),
            tags: Tags::default(),
        }
    }

    const BLOCK: BlobKind = BlobKind::Block { tier: TierState::INFERRED };

    /// The names in order of the alphabet, as recordings have them.
    fn names_of(headers: &Headers) -> Vec<String> {
        let mut names: Vec<String> = headers.iter().map(|(name, _)| name.clone().into_owned()).collect();
        names.sort_by_key(|name| name.to_ascii_lowercase());
        names
    }

    fn value<'h>(headers: &'h Headers, name: &str) -> Option<&'h str> {
        headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Recorded answers, without `Date`, `Server`, `Vary` and `x-ms-version`.
    #[test]
    fn answers_have_the_recorded_headers() {
        let check = |headers: Headers, expected: &str| {
            assert_eq!(names_of(&headers).join("|"), expected);
        };
        check(
            of_blob(&blob(BLOCK), Answer::Head, None),
            "Accept-Ranges|Content-Length|Content-MD5|Content-Type|ETag|Last-Modified|x-ms-access-tier|x-ms-access-tier-inferred|x-ms-blob-type|x-ms-creation-time|x-ms-lease-state|x-ms-lease-status|x-ms-server-encrypted",
        );
        check(
            of_blob(&blob(BLOCK), Answer::Get(Some(Span { start: 0, bytes: 11 })), None),
            "Accept-Ranges|Content-Length|Content-Range|Content-Type|ETag|Last-Modified|x-ms-blob-content-md5|x-ms-blob-type|x-ms-creation-time|x-ms-lease-state|x-ms-lease-status|x-ms-server-encrypted",
        );
        let page = BlobKind::Page { sequence_number: SequenceNumber::default() };
        let bare =
            BlobProperties { content: ContentHeaders { md5: None, ..blob(page).content }, ..blob(page) };
        check(
            of_blob(&bare, Answer::Head, None),
            "Accept-Ranges|Content-Length|Content-Type|ETag|Last-Modified|x-ms-blob-sequence-number|x-ms-blob-type|x-ms-creation-time|x-ms-lease-state|x-ms-lease-status|x-ms-server-encrypted",
        );
        let version = ShownVersion { id: SnapshotTime(time()), is_current: true };
        check(
            of_blob(&blob(BLOCK), Answer::Head, Some(version)),
            "Accept-Ranges|Content-Length|Content-MD5|Content-Type|ETag|Last-Modified|x-ms-access-tier|x-ms-access-tier-inferred|x-ms-blob-type|x-ms-creation-time|x-ms-is-current-version|x-ms-lease-state|x-ms-lease-status|x-ms-server-encrypted|x-ms-version-id",
        );
        let tier = TierState {
            tier: AccessTier::Archive,
            changed: Some(time()),
            rehydrating: Some((AccessTier::Hot, RehydratePriority::High)),
        };
        check(
            of_blob(&blob(BlobKind::Block { tier }), Answer::Head, None),
            "Accept-Ranges|Content-Length|Content-MD5|Content-Type|ETag|Last-Modified|x-ms-access-tier|x-ms-access-tier-change-time|x-ms-archive-status|x-ms-blob-type|x-ms-creation-time|x-ms-lease-state|x-ms-lease-status|x-ms-rehydrate-priority|x-ms-server-encrypted",
        );
        let copy = CopyState {
            id: Guid([1; 16]),
            source: "https://acct.blob.core.windows.net/c/b".to_owned(),
            status: CopyStatus::Success,
            copied: 0,
            total: 0,
            completed: Some(time()),
            description: None,
        };
        let sealed = BlobKind::Append { blocks: 0, is_sealed: true };
        let sealed = BlobProperties { copy: Some(copy), content: bare.content, ..blob(sealed) };
        check(
            of_blob(&sealed, Answer::Head, None),
            "Accept-Ranges|Content-Length|Content-Type|ETag|Last-Modified|x-ms-blob-committed-block-count|x-ms-blob-sealed|x-ms-blob-type|x-ms-copy-completion-time|x-ms-copy-id|x-ms-copy-progress|x-ms-copy-source|x-ms-copy-status|x-ms-creation-time|x-ms-lease-state|x-ms-lease-status|x-ms-server-encrypted",
        );
        let snapshot = BlobProperties { lease: None, tags: Tags::parse("a=b").unwrap(), ..blob(BLOCK) };
        check(
            of_blob(&snapshot, Answer::Get(None), None),
            "Accept-Ranges|Content-Length|Content-MD5|Content-Type|ETag|Last-Modified|x-ms-blob-type|x-ms-creation-time|x-ms-server-encrypted|x-ms-tag-count",
        );
    }

    #[test]
    fn values_are_the_services() {
        let metadata = Metadata::new(vec![("Hello".to_owned(), "world".to_owned())]).unwrap();
        let headers = of_blob(
            &BlobProperties { metadata, ..blob(BLOCK) },
            Answer::Get(Some(Span { start: 3, bytes: 4 })),
            None,
        );
        assert_eq!(value(&headers, "Content-Range"), Some("bytes 3-6/11"));
        assert_eq!(value(&headers, "Content-Length"), Some("4"));
        assert_eq!(value(&headers, "x-ms-meta-Hello"), Some("world"), "its case is kept");
        assert_eq!(value(&headers, "Last-Modified"), Some("Wed, 20 Jul 2022 21:11:34 GMT"));
        assert_eq!(value(&headers, "x-ms-creation-time"), Some("Wed, 20 Jul 2022 21:11:34 GMT"));
        assert_eq!(value(&headers, "ETag").map(str::len), Some(19));
    }

    /// Spec: blob-operations 5.
    #[test]
    fn a_container_has_its_headers() {
        let lease = LeaseView { status: "locked", state: "leased", duration: Some("infinite") };
        let headers = |version| {
            let version = Version::parse(version).unwrap();
            of_container(Etag(time()), &lease, PublicAccess::Container, &Metadata::default(), version)
        };
        let told =
            |headers: &Headers| value(headers, "x-ms-immutable-storage-with-versioning-enabled").is_some();
        assert!(!told(&headers("2020-08-04")), "of later versions alone");
        let headers = headers("2020-10-02");
        assert_eq!(
            names_of(&headers).join("|"),
            "ETag|Last-Modified|x-ms-blob-public-access|x-ms-default-encryption-scope|x-ms-deny-encryption-scope-override|x-ms-has-immutability-policy|x-ms-has-legal-hold|x-ms-immutable-storage-with-versioning-enabled|x-ms-lease-duration|x-ms-lease-state|x-ms-lease-status"
        );
        assert_eq!(value(&headers, "x-ms-default-encryption-scope"), Some("$account-encryption-key"));
    }
}
