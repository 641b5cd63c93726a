//! Signs a request for a service, as any client would.

use std::time::SystemTime;

use common::{AccountName, ServiceKind};
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use protocol::signing::AccountKey;
use protocol::signing::shared_key::{BlobQueueRequest, Scheme, SignedRequest};
use protocol::{QueryString, names};

use crate::refusal::Refusal;

/// Adds the date and the signature. All headers must be readable.
pub(crate) fn sign(
    head: &mut Parts,
    service: ServiceKind,
    account: &AccountName,
    key: &AccountKey,
) -> Result<(), Refusal> {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let text = |value: String| HeaderValue::try_from(value).map_err(|_| Refusal::BadTarget);
    head.headers.insert(names::X_MS_DATE, text(date.clone())?);
    let query = head.uri.query().unwrap_or_default();
    let mut headers = Vec::with_capacity(head.headers.len());
    for (name, value) in &head.headers {
        let value = value.to_str().map_err(|_| Refusal::HeaderUnreadable(name.to_string()))?;
        headers.push((name.as_str(), value));
    }
    let of = |name: &str| headers.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
    let (method, path, account) = (head.method.as_str(), head.uri.path(), account.as_str());
    let string = match service {
        ServiceKind::Table => {
            let options = QueryString::parse(query).unwrap_or_default();
            let request = SignedRequest {
                method,
                content_md5: of(names::CONTENT_MD5),
                content_type: of(CONTENT_TYPE.as_str()),
                date: &date,
                account,
                path,
                comp: options.get_ignoring_case(names::COMP),
            };
            request.string_to_sign(Scheme::SharedKey)
        }
        ServiceKind::Blob | ServiceKind::Queue => {
            let request = BlobQueueRequest { method, account, path, query, headers: &headers };
            request.string_to_sign(Scheme::SharedKey)
        }
    };
    let authorization = format!("SharedKey {account}:{}", key.sign(&string));
    head.headers.insert(AUTHORIZATION, text(authorization)?);
    Ok(())
}
