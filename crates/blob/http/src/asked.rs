//! What headers and options say, as values of the model. Each is refused with its own name and value.

use std::time::Duration;

use blob_model::{
    AccessTier, BlobType, ByteRange, Conditions, ContentHeaders, Crc64, DateTime, LeaseId, Matches, Md5,
    Metadata, Refusal, RehydratePriority, SnapshotTime, Tags,
};
use blob_service::{BodyChecks, Request as Stated, Which};
use blob_wire::{names as blob_names, tag_expression};
use front::headers::header;
use front::{Request, RequestBody, header_case};
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::{QueryString, names};

/// A request's headers and options.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub headers: &'a HeaderMap,
    pub query: &'a QueryString,
    extensions: &'a http::Extensions,
}

/// The headers of a condition: of the resource itself, or of the source of a copy.
struct ConditionNames {
    if_match: &'static str,
    if_none_match: &'static str,
    modified_since: &'static str,
    unmodified_since: &'static str,
    if_tags: &'static str,
}

const OF_RESOURCE: ConditionNames = ConditionNames {
    if_match: "If-Match",
    if_none_match: "If-None-Match",
    modified_since: "If-Modified-Since",
    unmodified_since: "If-Unmodified-Since",
    if_tags: "x-ms-if-tags",
};

const OF_SOURCE: ConditionNames = ConditionNames {
    if_match: "x-ms-source-if-match",
    if_none_match: "x-ms-source-if-none-match",
    modified_since: "x-ms-source-if-modified-since",
    unmodified_since: "x-ms-source-if-unmodified-since",
    if_tags: "x-ms-source-if-tags",
};

/// What nothing here can do. To ignore it would store plain what a client wants to have encrypted, or let go what it wants to
/// have kept.
const UNSUPPORTED: [&str; 9] = [
    "x-ms-encryption-key",
    "x-ms-encryption-key-sha256",
    "x-ms-encryption-algorithm",
    "x-ms-encryption-scope",
    "x-ms-source-encryption-key",
    "x-ms-immutability-policy-until-date",
    "x-ms-immutability-policy-mode",
    "x-ms-legal-hold",
    "x-ms-structured-body",
];

impl<'a> Asked<'a> {
    pub fn of(request: &'a Request<'_>) -> Self {
        Self::new(&request.head.headers, &request.query, &request.head.extensions)
    }

    pub fn new(headers: &'a HeaderMap, query: &'a QueryString, extensions: &'a http::Extensions) -> Self {
        Self { headers, query, extensions }
    }

    /// A header; an empty one says as little as none.
    pub fn text(&self, name: &'static str) -> Result<Option<&'a str>, Refusal> {
        let invalid = || {
            let sent = self.headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
            Refusal::HeaderInvalid { name, value: String::from_utf8_lossy(sent).into_owned() }
        };
        let text = header(self.headers, name).required_readable(()).map_err(|()| invalid())?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    pub fn required(&self, name: &'static str) -> Result<&'a str, Refusal> {
        self.text(name)?.ok_or(Refusal::HeaderMissing { name })
    }

    /// An option's value; an empty one is as good as none. Names are matched without case.
    pub fn option(&self, name: &str) -> Option<&'a str> {
        self.query.get_ignoring_case(name).filter(|value| !value.is_empty())
    }

    /// `stores`: the operation stores what it is given.
    pub fn check_supported(&self, stores: bool) -> Result<(), Refusal> {
        // A token can ask for it too.
        let scope = self.option("ses").filter(|_| stores && self.option("sig").is_some());
        if let Some(scope) = scope {
            return Err(Refusal::HeaderUnsupported {
                name: "x-ms-encryption-scope",
                value: scope.to_owned(),
            });
        }
        match UNSUPPORTED.into_iter().find(|name| self.headers.contains_key(*name)) {
            Some(name) => {
                let value = self.text(name).ok().flatten().unwrap_or_default();
                // A key is nobody's to repeat.
                let value = if name.ends_with("-key") { "" } else { value };
                Err(Refusal::HeaderUnsupported { name, value: value.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// `true` or `false`, in any case.
    pub fn flag(&self, name: &'static str) -> Result<Option<bool>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(Refusal::HeaderInvalid { name, value: text.to_owned() }),
        }
    }

    pub fn number(&self, name: &'static str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let invalid = || Refusal::HeaderInvalid { name, value: text.to_owned() };
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain).map(Some).ok_or_else(invalid)
    }

    pub fn lease(&self) -> Result<Option<LeaseId>, Refusal> {
        self.lease_id("x-ms-lease-id")
    }

    pub fn lease_id(&self, name: &'static str) -> Result<Option<LeaseId>, Refusal> {
        // An empty id is none that a client could have been given.
        let sent = self.headers.get(name).is_some();
        match self.text(name)? {
            Some(text) => LeaseId::of_header(name, text).map(Some),
            None if sent => Err(Refusal::HeaderInvalid { name, value: String::new() }),
            None => Ok(None),
        }
    }

    /// Conditions and lease of the resource.
    pub fn stated(&self) -> Result<Stated, Refusal> {
        Ok(Stated { lease: self.lease()?, conditions: self.conditions()? })
    }

    pub fn conditions(&self) -> Result<Conditions, Refusal> {
        self.conditions_named(&OF_RESOURCE)
    }

    pub fn source_conditions(&self) -> Result<Conditions, Refusal> {
        self.conditions_named(&OF_SOURCE)
    }

    fn conditions_named(&self, names: &ConditionNames) -> Result<Conditions, Refusal> {
        Ok(Conditions {
            if_match: self.text(names.if_match)?.map(Matches::parse),
            if_none_match: self.text(names.if_none_match)?.map(Matches::parse),
            modified_since: self.date(names.modified_since)?,
            unmodified_since: self.date(names.unmodified_since)?,
            if_tags: match self.text(names.if_tags)? {
                Some(text) => Some(tag_expression::parse_condition(names.if_tags, text)?),
                None => None,
            },
        })
    }

    fn date(&self, name: &'static str) -> Result<Option<DateTime>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let time = httpdate::parse_http_date(text).ok().and_then(DateTime::from_system_time);
        time.map(Some).ok_or_else(|| Refusal::HeaderInvalid { name, value: text.to_owned() })
    }

    /// The state of the blob that is asked for.
    pub fn which(&self) -> Result<Which, Refusal> {
        let time = |name: &'static str| match self.option(name) {
            None => Ok(None),
            Some(text) => SnapshotTime::parse(text).map(Some).ok_or_else(|| Refusal::ParameterInvalid {
                name,
                value: text.to_owned(),
                reason: None,
            }),
        };
        match (time("snapshot")?, time("versionid")?) {
            (None, None) => Ok(Which::Current),
            (Some(snapshot), None) => Ok(Which::Snapshot(snapshot)),
            (None, Some(version)) => Ok(Which::Version(version)),
            (Some(_), Some(_)) => Err(Refusal::ParametersExclusive),
        }
    }

    /// What changes a blob changes the blob itself: a snapshot stays as it is.
    pub fn check_current(&self) -> Result<(), Refusal> {
        match self.which()? {
            Which::Current => Ok(()),
            Which::Snapshot(time) => Err(read_only("snapshot", time)),
            Which::Version(time) => Err(read_only("versionid", time)),
        }
    }

    /// The range of a read. What is no range is passed over.
    pub fn range(&self) -> Result<Option<ByteRange>, Refusal> {
        Ok(self.range_text()?.and_then(ByteRange::parse))
    }

    /// `x-ms-range` counts before `Range`.
    pub fn range_text(&self) -> Result<Option<&'a str>, Refusal> {
        match self.text("x-ms-range")? {
            Some(range) => Ok(Some(range)),
            None => self.text("Range"),
        }
    }

    /// Pairs in the headers that begin with `x-ms-meta-`, with names as they are spelled.
    pub async fn metadata(&self) -> Result<Metadata, Refusal> {
        let is_metadata = |name: &HeaderName| name.as_str().starts_with(blob_names::META_PREFIX);
        let sent: Vec<(&HeaderName, &HeaderValue)> =
            self.headers.iter().filter(|(name, _)| is_metadata(name)).collect();
        if sent.is_empty() {
            return Ok(Metadata::default());
        }
        let names: Vec<HeaderName> = sent.iter().map(|(name, _)| (*name).clone()).collect();
        let spelled = header_case::of_request(self.extensions, &names).await;
        assert_eq!(spelled.len(), sent.len(), "every name has a spelling");
        let pairs = spelled.iter().zip(sent).map(|(name, (_, value))| {
            let name = name.get(blob_names::META_PREFIX.len()..).unwrap_or_default();
            let value = std::str::from_utf8(value.as_bytes()).map_err(|_| Refusal::MetadataInvalid)?;
            Ok((name.to_owned(), value.to_owned()))
        });
        Metadata::new(pairs.collect::<Result<_, Refusal>>()?)
    }

    /// The content headers that only say something of a blob.
    pub fn blob_headers(&self) -> Result<ContentHeaders, Refusal> {
        let own = |name| self.text(name).map(|text| text.map(str::to_owned));
        Ok(ContentHeaders {
            content_type: own("x-ms-blob-content-type")?,
            encoding: own("x-ms-blob-content-encoding")?,
            language: own("x-ms-blob-content-language")?,
            md5: self.text(blob_names::BLOB_CONTENT_MD5)?.map(Md5::of_header).transpose()?,
            cache_control: own("x-ms-blob-cache-control")?,
            disposition: own("x-ms-blob-content-disposition")?,
        })
    }

    /// Those of Put Blob, whose body is the content: what they don't say, the request's own headers do.
    pub fn content_headers(&self) -> Result<ContentHeaders, Refusal> {
        let mut content = self.blob_headers()?;
        for (name, slot) in [
            ("Content-Type", &mut content.content_type),
            ("Content-Encoding", &mut content.encoding),
            ("Content-Language", &mut content.language),
            ("Cache-Control", &mut content.cache_control),
        ] {
            if slot.is_none() {
                *slot = self.text(name)?.map(str::to_owned);
            }
        }
        Ok(content)
    }

    pub fn tags(&self) -> Result<Tags, Refusal> {
        let name = "x-ms-tags";
        let Some(text) = self.text(name)? else { return Ok(Tags::default()) };
        Tags::parse(text).map_err(|_| Refusal::HeaderInvalid { name, value: text.to_owned() })
    }

    pub fn tier(&self, of: BlobType) -> Result<Option<AccessTier>, Refusal> {
        self.text(blob_names::ACCESS_TIER)?.map(|text| AccessTier::asked(text, of)).transpose()
    }

    pub fn priority(&self) -> Result<Option<RehydratePriority>, Refusal> {
        self.text(blob_names::REHYDRATE_PRIORITY)?.map(RehydratePriority::parse).transpose()
    }

    /// The checksums that the sender gives of its body, which has at most so many bytes.
    pub fn checks(&self, bytes_max: u64) -> Result<BodyChecks, Refusal> {
        self.checks_named("Content-MD5", "x-ms-content-crc64", bytes_max)
    }

    /// The same of the source of a copy.
    pub fn source_checks(&self, bytes_max: u64) -> Result<BodyChecks, Refusal> {
        self.checks_named("x-ms-source-content-md5", "x-ms-source-content-crc64", bytes_max)
    }

    fn checks_named(
        &self,
        of_md5: &'static str,
        of_crc64: &'static str,
        bytes_max: u64,
    ) -> Result<BodyChecks, Refusal> {
        let md5 = self.text(of_md5)?.map(Md5::of_header).transpose()?;
        let crc64 = self.text(of_crc64)?.map(|text| Crc64::of_header(of_crc64, text)).transpose()?;
        match md5.is_some() && crc64.is_some() {
            true => Err(Refusal::BothChecksums),
            false => Ok(BodyChecks { md5, crc64, bytes_max }),
        }
    }

    /// A body of some length, up to this one. What comes in chunks shows its length only at its end.
    pub fn check_length(&self, bytes_max: u64) -> Result<(), Refusal> {
        front::require_length(self.headers)?;
        match RequestBody::announced(self.headers) {
            Some(length) if length > bytes_max => Err(Refusal::BodyTooLarge { max: bytes_max }),
            _ => Ok(()),
        }
    }

    /// The same, of an operation that needs a body.
    pub fn check_content(&self, bytes_max: u64) -> Result<(), Refusal> {
        self.check_length(bytes_max)?;
        match RequestBody::announced(self.headers) {
            Some(0) => Err(no_content()),
            _ => Ok(()),
        }
    }

    /// How many items a page is to have, as the request says it and as it is done.
    pub fn max_results(&self, most: usize) -> Result<(Option<&'a str>, Option<usize>), Refusal> {
        let name = "maxresults";
        let Some(text) = self.option(name) else { return Ok((None, None)) };
        let value = text.to_owned();
        match text.parse::<i64>() {
            Ok(number) if number > 0 => {
                let number = usize::try_from(number).unwrap_or(most).min(most);
                Ok((Some(text), Some(number)))
            }
            Ok(_) => Err(Refusal::ParameterOutOfRange { name, value, min: 1, max: most as u64 }),
            Err(_) => Err(Refusal::ParameterInvalid { name, value, reason: Some("") }),
        }
    }

    /// How long the request may take: 30 seconds, or by the size of what it sends or reads. A client may ask for less.
    pub fn time_allowed(&self, most: Duration) -> Result<Duration, Refusal> {
        let name = names::TIMEOUT;
        let Some(text) = self.option(name) else { return Ok(most) };
        let invalid = || Refusal::ParameterInvalid { name, value: text.to_owned(), reason: Some("") };
        let seconds: u64 = text.parse().map_err(|_| invalid())?;
        if seconds == 0 { Err(invalid()) } else { Ok(Duration::from_secs(seconds).min(most)) }
    }
}

/// A body that should have some bytes has none.
pub fn no_content() -> Refusal {
    Refusal::HeaderInvalid { name: "Content-Length", value: "0".to_owned() }
}

fn read_only(name: &'static str, time: SnapshotTime) -> Refusal {
    let reason = match name {
        "versionid" => "This operation is only allowed on the root blob. Version id should not be provided.",
        _ => "This operation is only allowed on the root blob. Snapshot should not be provided.",
    };
    Refusal::ParameterInvalid { name, value: time.to_string(), reason: Some(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(
        headers: &[(&'static str, &'static str)],
        query: &str,
        read: impl FnOnce(&Asked<'_>) -> T,
    ) -> T {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let query = QueryString::parse(query).unwrap();
        read(&Asked { headers: &map, query: &query, extensions: &http::Extensions::default() })
    }

    fn code<T: std::fmt::Debug>(read: Result<T, Refusal>) -> String {
        match read {
            Ok(value) => format!("{value:?}"),
            Err(refusal) => {
                let details = refusal.details().into_iter().map(|(_, value)| value.into_owned());
                format!("{}: {}", refusal.code(), details.collect::<Vec<_>>().join(", "))
            }
        }
    }

    #[test]
    fn leases_are_guids_on_every_operation() {
        let id = "00000000-1111-2222-3333-444444444444";
        let read = |value| with(&[("x-ms-lease-id", value)], "", |asked| asked.lease());
        assert_eq!(read(id).unwrap().map(|lease| lease.to_string()).as_deref(), Some(id));
        assert_eq!(code(read("mine")), "InvalidHeaderValue: x-ms-lease-id, mine");
        assert_eq!(code(read("")), "InvalidHeaderValue: x-ms-lease-id, ");
        assert_eq!(with(&[], "", |asked| asked.lease()), Ok(None));
    }

    #[test]
    fn a_state_is_named_by_one_time() {
        let time = "2022-07-13T23:46:14.4048519Z";
        let read = |query: &str| code(with(&[], query, |asked| asked.which()));
        assert_eq!(read(""), "Current");
        assert!(read(&format!("snapshot={time}")).starts_with("Snapshot("));
        assert!(read(&format!("versionId={time}")).starts_with("Version("));
        assert_eq!(read("snapshot=1"), "InvalidQueryParameterValue: snapshot, 1");
        assert!(read(&format!("versionid={time}&snapshot={time}")).starts_with("Mutually"));
        for (name, said) in [("snapshot", "Snapshot should"), ("versionid", "Version id should")] {
            let current = code(with(&[], &format!("{name}={time}"), |asked| asked.check_current()));
            assert!(
                current.starts_with(&format!("InvalidQueryParameterValue: {name}, "))
                    && current.contains(said),
                "{current}"
            );
        }
    }

    #[test]
    fn content_headers_of_a_blob_count_before_the_requests() {
        let headers = [
            ("content-type", "text/plain"),
            ("x-ms-blob-content-type", "image/png"),
            ("content-language", "en"),
            ("content-encoding", ""),
        ];
        let (all, own) = with(&headers, "", |asked| (asked.content_headers(), asked.blob_headers()));
        let (all, own) = (all.unwrap(), own.unwrap());
        assert_eq!((all.content_type.as_deref(), all.language.as_deref()), (Some("image/png"), Some("en")));
        assert_eq!((own.language, all.encoding), (None, None));
        let bad = with(&[("x-ms-blob-content-md5", "AAAA")], "", |asked| asked.blob_headers());
        assert_eq!(code(bad), "InvalidMd5: ");
    }

    #[test]
    fn bodies_have_one_checksum_and_a_length() {
        let both = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), ("x-ms-content-crc64", "AAAAAAAAAAA=")];
        assert_eq!(code(with(&both, "", |asked| asked.checks(1))), "BothCrc64AndMd5HeaderPresent: ");
        let length = |value| with(&[("content-length", value)], "", |asked| asked.check_content(8));
        assert_eq!(length("8"), Ok(()));
        assert_eq!(code(length("9")), "RequestBodyTooLarge: 8");
        assert_eq!(code(length("0")), "InvalidHeaderValue: Content-Length, 0");
        assert_eq!(
            code(with(&[], "", |asked| asked.check_content(8))),
            "MissingContentLengthHeader: Content-Length"
        );
        let chunked = [("transfer-encoding", "chunked")];
        assert_eq!(with(&chunked, "", |asked| asked.check_content(8)), Ok(()));
    }

    #[test]
    fn what_is_not_built_is_refused_and_a_key_is_not_repeated() {
        let check = |name, value, expected: &str| {
            assert_eq!(code(with(&[(name, value)], "", |asked| asked.check_supported(true))), expected);
        };
        check("x-ms-encryption-key", "secret", "UnsupportedHeader: x-ms-encryption-key, ");
        check("x-ms-encryption-scope", "mine", "UnsupportedHeader: x-ms-encryption-scope, mine");
        check("x-ms-lease-id", "x", "()");
    }

    #[test]
    fn a_token_with_an_encryption_scope_may_not_store() {
        let check = |query: &str, stores, expected: &str| {
            assert_eq!(code(with(&[], query, |asked| asked.check_supported(stores))), expected, "{query}");
        };
        check("ses=mine&sig=x", true, "UnsupportedHeader: x-ms-encryption-scope, mine");
        check("ses=mine&sig=x", false, "()");
        check("ses=mine", true, "()");
        check("sig=x", true, "()");
    }

    #[test]
    fn a_page_has_at_least_one_item_and_a_request_some_time() {
        let results = |query: &str| with(&[], query, |asked| code(asked.max_results(5000)));
        assert_eq!(results(""), "(None, None)");
        assert_eq!(results("maxresults=6000"), "(Some(\"6000\"), Some(5000))");
        assert_eq!(results("maxresults=0"), "OutOfRangeQueryParameterValue: maxresults, 0, 1, 5000");
        assert_eq!(results("maxresults=x"), "InvalidQueryParameterValue: maxresults, x, ");
        let most = Duration::from_secs(30);
        let time = |query: &str| code(with(&[], query, |asked| asked.time_allowed(most)));
        assert_eq!(time("timeout=5"), "5s");
        assert_eq!(time("timeout=90"), "30s");
        assert_eq!(time("timeout=0"), "InvalidQueryParameterValue: timeout, 0, ");
    }

    #[test]
    fn conditions_are_read_or_refused_by_name() {
        let read = |name, value| with(&[(name, value)], "", |asked| asked.conditions());
        assert_eq!(read("if-match", "*").unwrap().if_match, Some(Matches::Anything));
        assert!(read("if-modified-since", "Fri, 15 Nov 2024 12:00:00 GMT").unwrap().modified_since.is_some());
        assert_eq!(code(read("if-modified-since", "soon")), "InvalidHeaderValue: If-Modified-Since, soon");
        assert_eq!(code(read("x-ms-if-tags", "=")), "InvalidHeaderValue: x-ms-if-tags, =");
        let source = with(&[("x-ms-source-if-match", "*")], "", |asked| asked.source_conditions());
        assert_eq!(source.unwrap().if_match, Some(Matches::Anything));
    }
}
