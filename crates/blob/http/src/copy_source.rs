//! The source of a copy: a blob of this server that the caller may read. Nothing is ever fetched from elsewhere.
//!
//! The service checks a source as if it were read: by the token in its address, by a bearer token of its own, because it is
//! public, or, for Copy Blob alone, because the owner of the same account copies (spec: blob-operations 6.7).

use blob_model::{BlobName, ByteRange, ContainerName, CopySourceFault, Refusal, shown_source};
use blob_service::{BlobRef, ContainerRef, CopySource, PartFromUrl, Which};
use blob_wire::names;
use front::access::Proof;
use front::authenticate::{self, VerifiedCredential};
use front::{Address, ServiceKind, delegation, sas};
use http::Uri;
use protocol::QueryString;

use crate::access;
use crate::answer::Failure;
use crate::asked::Asked;
use crate::grant::{Access, Grant, Need};
use crate::operation::Context;
use crate::route::Resource;
use crate::{public, read_token};
use common::DateTime;
use front::StorageService as _;

const AUTHORIZATION: &str = "x-ms-copy-source-authorization";
/// The longest address of a source. Spec: Copy Blob.
const SOURCE_BYTES_MAX: usize = 2 * 1024;

pub const TAG_OPTION: &str = "x-ms-copy-source-tag-option";

/// Whether the tags of the source are taken over, which the caller must be permitted to set.
pub fn copies_tags(asked: &Asked<'_>) -> bool {
    asked.text(TAG_OPTION).ok().flatten().is_some_and(|option| option.eq_ignore_ascii_case("COPY"))
}

/// In whose name a source without a token is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceIsRead {
    /// The caller's, if it is in the caller's account: Copy Blob.
    ByCaller,
    /// Nobody's, so it must be public: all operations that answer when the copy is done.
    ByAnybody,
}

/// The whole of a blob.
pub async fn find(context: &Context<'_>, read: SourceIsRead) -> Result<CopySource, Failure> {
    let text = context.asked.required(names::COPY_SOURCE)?;
    let conditions = context.asked.source_conditions()?;
    let invalid = || Refusal::HeaderInvalid { name: names::COPY_SOURCE, value: text.to_owned() };
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    let (Some(scheme @ ("http" | "https")), Some(authority)) =
        (uri.scheme_str(), uri.authority().map(http::uri::Authority::as_str))
    else {
        return Err(invalid().into());
    };
    if text.len() > SOURCE_BYTES_MAX {
        return Err(invalid().into());
    }
    let not_found = || Refusal::CopySource(CopySourceFault::NotFound);
    if !is_here(context, scheme, authority) {
        return Err(Refusal::CopySource(CopySourceFault::NotVerified).into());
    }
    let accounts = context.front.accounts.current();
    let services = (ServiceKind::Blob, &[ServiceKind::Blob][..]);
    let address = Address::find(scheme, authority, uri.path(), &accounts, services);
    let address = address.map_err(|_| not_found())?;
    let query = QueryString::parse(uri.query().unwrap_or_default()).ok_or_else(invalid)?;
    let resource = Resource::parse(address.path, &query);
    let Resource::Blob { container, name } = &resource else { return Err(not_found().into()) };
    let container = ContainerName::parse(container).map_err(|_| not_found())?;
    let container = ContainerRef::new(&address.site.account, &container);
    let blob = BlobRef::new(container, BlobName::parse(name).map_err(|_| not_found())?);
    let which = which(&query).ok_or_else(invalid)?;
    authorize(context, &address, &resource, &query, (&blob, which), read).await?;
    Ok(CopySource { blob, which, conditions, shown: shown_source(text) })
}

/// A part of a blob, up to so many bytes.
pub async fn part(context: &Context<'_>, bytes_max: u64) -> Result<PartFromUrl, Failure> {
    let asked = &context.asked;
    let checks = asked.source_checks(bytes_max)?;
    if let Some(length) = front::RequestBody::announced(asked.headers).filter(|length| *length > 0) {
        return Err(Refusal::HeaderInvalid { name: "Content-Length", value: length.to_string() }.into());
    }
    let name = "x-ms-source-range";
    let range = match asked.text(name)? {
        None => None,
        Some(text) => {
            let range = ByteRange::parse(text);
            Some(range.ok_or_else(|| Refusal::HeaderInvalid { name, value: text.to_owned() })?)
        }
    };
    if let Some((first, last)) = range.and_then(|range| Some((range.first(), range.last()?)))
        && last - first >= bytes_max
    {
        return Err(Refusal::BodyTooLarge { max: bytes_max }.into());
    }
    Ok(PartFromUrl { source: find(context, SourceIsRead::ByAnybody).await?, range, checks })
}

fn which(query: &QueryString) -> Option<Which> {
    let empty = http::HeaderMap::new();
    let extensions = http::Extensions::default();
    Asked::new(&empty, query, &extensions).which().ok()
}

/// Whether an address is of this server: the one that the request itself was sent to, or another name of this machine at the
/// same port.
fn is_here(context: &Context<'_>, scheme: &str, authority: &str) -> bool {
    let own = context.request.host.as_ref().copied().unwrap_or_default();
    let (own, own_port) = split(context.request.scheme, own);
    let (other, port) = split(scheme, authority);
    let is_loopback = |host: &str| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    };
    if port != own_port {
        return false;
    }
    own.eq_ignore_ascii_case(other) || (is_loopback(own) && is_loopback(other)) || is_sibling(own, other)
}

/// In host style, other accounts of the same server: `one.blob.example` and `two.blob.example`.
fn is_sibling(own: &str, other: &str) -> bool {
    let behind = |host: &str| {
        let (_, rest) = host.split_once('.')?;
        rest.starts_with("blob.").then(|| rest.to_ascii_lowercase())
    };
    behind(own).is_some() && behind(own) == behind(other)
}

fn split<'h>(scheme: &str, host: &'h str) -> (&'h str, u16) {
    let usual = if scheme == "https" { 443 } else { 80 };
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(usual)),
        _ => (host, usual),
    }
}

/// The same checks as for a read of the source.
async fn authorize(
    context: &Context<'_>,
    address: &Address<'_>,
    resource: &Resource,
    query: &QueryString,
    (blob, which): (&BlobRef, Which),
    read: SourceIsRead,
) -> Result<(), Failure> {
    let refused = || Failure::from(Refusal::CopySource(CopySourceFault::NotAuthenticated));
    let may_read = |grant: &Grant| grant.permits(Need::Blob(Access::Read)).is_ok();
    let bearer = context.front.bearer.current();
    if let Some(value) = context.asked.text(AUTHORIZATION)? {
        let malformed = || Refusal::CopySource(CopySourceFault::AuthenticationMalformed);
        let is_bearer =
            value.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("bearer"));
        let trust = bearer.trust.as_ref().filter(|_| is_bearer).ok_or_else(malformed)?;
        let token = value.split_whitespace().nth(1).ok_or_else(malformed)?;
        let proof = trust
            .admit(
                token,
                (ServiceKind::Blob, &address.account.name),
                context.request.served_version(),
                context.request.caller().https,
                std::time::SystemTime::now(),
            )
            .map_err(|denial| context.front.deny(context.request, denial, None))
            .map_err(|_| malformed())?;
        let (roles, _) = proof;
        let grant = Grant::Role(access::of_roles(roles));
        return if may_read(&grant) { Ok(()) } else { Err(refused()) };
    }
    let token = read_token(resource, query).map_err(|_| refused())?;
    let Some((token, signature)) = token else {
        let is_own = address.site.account == *context.account();
        // The owner of an account may read all of it, and a bearer token says by itself what may be read.
        let in_own_name = matches!(context.admitted.grant, Grant::Owner | Grant::Role(_));
        if read == SourceIsRead::ByCaller && is_own && in_own_name && may_read(&context.admitted.grant) {
            return Ok(());
        }
        // Who has no name may not read tags.
        let is_public =
            !copies_tags(&context.asked) && public::is_readable(context.http, &blob.container).await?;
        return match is_public {
            true => Ok(()),
            // As a read without credentials is answered.
            false if ServiceKind::Blob.sends_challenge(context.version()) => Err(refused()),
            false => Err(Refusal::CopySource(CopySourceFault::NotFound).into()),
        };
    };
    let verified = authenticate::verify_token(address.account, &bearer, token, &signature);
    let verified = verified.map_err(|denial| context.front.deny(context.request, denial, None));
    let Ok(VerifiedCredential::Token(token, delegated)) = verified else { return Err(refused()) };
    let policy = context.http.stored_policy(&address.site.account, &token).await?;
    let now = DateTime::now();
    let proof: Proof = sas::admit(*token, policy.as_ref(), now, context.request.caller(), ServiceKind::Blob)
        .and_then(|proof| delegation::limit(proof, delegated, now))
        .map_err(|denial| context.front.deny(context.request, denial, None))
        .map_err(|_| refused())?;
    let admitted = access::admitted(proof, which != Which::Current).map_err(|_| refused())?;
    if may_read(&admitted.grant) { Ok(()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_its_port_or_the_usual_one() {
        assert_eq!(split("http", "127.0.0.1:10000"), ("127.0.0.1", 10000));
        assert_eq!(split("https", "acct.blob.example"), ("acct.blob.example", 443));
        assert_eq!(split("http", "[::1]"), ("[::1]", 80));
        assert_eq!(split("http", "[::1]:10000"), ("[::1]", 10000));
    }

    #[test]
    fn accounts_of_one_server_share_the_rest_of_their_hosts() {
        assert!(is_sibling("one.blob.example", "two.blob.EXAMPLE"));
        assert!(!is_sibling("one.blob.example", "two.blob.other"));
        assert!(!is_sibling("one.example", "two.example"));
        assert!(!is_sibling("localhost", "localhost"));
    }
}
