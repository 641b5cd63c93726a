//! The service's own documents: properties, statistics, what the account is, and user delegation keys (spec: blob-operations
//! 4.2, 4.3).

use std::time::SystemTime;

use blob_model::Refusal;
use blob_wire::delegation_key::{self, DelegationKey};
use common::{DateTime, Guid, Refusal as Shared};
use front::{RequestBody, delegation};
use protocol::service_properties::{self, BlobUpdate};
use protocol::service_stats::ServiceStats;
use protocol::xml_fault::XmlFault;

use super::Context;
use crate::answer::{Answer, Failure};
use crate::grant::Grant;

/// The most that a document of properties or a request for a key has.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// How much of a value that is too long is repeated.
const VALUE_CHARS_MAX: usize = 1024;
/// The service that a delegation key is for, as tokens name it.
const KEY_SERVICE: &str = "b";

pub async fn get_properties(context: &Context<'_>) -> Result<Answer, Failure> {
    let properties = context.front.properties.of_blobs(context.account()).await?;
    let all = context.version().has_all_properties();
    Ok(Answer::document(200, if all { properties.write() } else { properties.write_old() }))
}

/// What the body does not name stays as it is; a body that names nothing is refused.
pub async fn set_properties(context: &Context<'_>, body: &mut RequestBody) -> Result<Answer, Failure> {
    let body = context.document(body, DOCUMENT_BYTES_MAX).await?;
    let fault = || XmlFault::of_blob_properties(&body);
    let update = BlobUpdate::read(&body).map_err(|refusal| match service_properties::long_list(&body) {
        Some((name, text)) if refusal == Shared::XmlNodeValue => {
            Refusal::XmlNodeInvalid { name, value: text.chars().take(VALUE_CHARS_MAX).collect() }
        }
        _ => explained(refusal, fault),
    })?;
    if update == BlobUpdate::default() {
        return Err(explained(Shared::XmlNotValid, fault).into());
    }
    context.front.properties.change_blobs(context.account(), &update).await?;
    Ok(Answer::empty(202))
}

/// The secondary is the same data, so it lags behind by nothing.
pub fn get_statistics() -> Answer {
    let stats = ServiceStats { status: "live".to_owned(), last_sync: Some(SystemTime::now()) };
    Answer::document(200, stats.write())
}

/// One copy of the data, in a general-purpose account with a flat namespace.
pub fn account_information() -> Answer {
    Answer::empty(200)
        .with("x-ms-sku-name", "Standard_LRS")
        .with("x-ms-account-kind", "StorageV2")
        .with("x-ms-is-hns-enabled", "false")
}

/// A key for the user of a bearer token, who may sign tokens with it that allow no more than the user's roles.
pub async fn get_delegation_key(context: &Context<'_>, body: &mut RequestBody) -> Result<Answer, Failure> {
    let (Grant::Role(roles), Some(identity)) = (&context.admitted.grant, &context.admitted.identity) else {
        return Err(Shared::AuthorizationFailure.into());
    };
    let body = context.document(body, DOCUMENT_BYTES_MAX).await?;
    let info = delegation_key::read_request(&body, DateTime::now())?;
    let accounts = context.front.accounts.current();
    let account = accounts.get(context.account().as_str()).ok_or(Shared::AccountNotFound)?;
    let key = account.keys.first().ok_or(Shared::AuthorizationFailure)?;
    // A token of an issuer other than Microsoft's may name its user in another way.
    let guid = |text: &str| Guid::parse(text).unwrap_or(Guid([0; 16]));
    let (object, tenant) = (guid(&identity.object_id), guid(&identity.tenant_id));
    let version = context.version().to_string();
    let (start, expiry) = (info.start.to_seconds_string(), info.expiry.to_seconds_string());
    let (user, directory) = (object.to_string(), tenant.to_string());
    let fields = [user.as_str(), &directory, &start, &expiry, KEY_SERVICE, &version];
    let value = delegation::value(key, &account.name, fields, roles.rights());
    let key = DelegationKey { object, tenant, start: info.start, expiry: info.expiry, version, value };
    Ok(Answer::document(200, key.write()))
}

/// A refusal of a document with the place and the reason.
pub fn explained(refusal: Shared, fault: impl FnOnce() -> XmlFault) -> Refusal {
    if refusal != Shared::XmlNotValid {
        return refusal.into();
    }
    let XmlFault { line, position, reason } = fault();
    Refusal::XmlNotValid { line, position, reason: reason.into() }
}
