//! Verifies bearer tokens and reads their roles: JWTs of the issuer that the operator trusts.
//!
//! Fetches nothing: the issuer's keys come from a file. Each service decides what a role may do. The log says why a token
//! was refused; the token itself is never logged.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::Version;
use common::{AccountName, Refusal};
use protocol::signing::jwt::{IssuerKeys, JwksError, JwtError};
use serde::Deserialize;
use thiserror::Error;

use crate::access::{Denial, Roles};
use common::ServiceKind;

/// How far the issuer's clock may differ from ours; the usual value for JWTs.
const LEEWAY: Duration = Duration::from_secs(5 * 60);

/// Audiences that are valid for every account: Azure Storage by its address and by its application id.
const STORAGE: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];
/// What queues and blobs tell a client whose token is for another audience.
const OTHER_AUDIENCE: &str = "Audience validation failed. Audience did not match.";
/// The domains of Azure's clouds. An account's own address in any of them is an audience too.
const CLOUDS: [&str; 4] = ["windows.net", "chinacloudapi.cn", "usgovcloudapi.net", "cloudapi.de"];

/// Built-in roles that manage the whole account, each by name and by id.
const MANAGERS: [[&str; 2]; 3] = [
    ["Owner", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"],
    ["Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c"],
    ["Storage Account Contributor", "17d1049b-9a84-46fb-8f53-869881c3d3ab"],
];

/// What the server knows of bearer tokens: the tenant that clients are sent to, and whose tokens it accepts.
#[derive(Debug)]
pub struct Bearer {
    pub tenant: String,
    pub trust: Option<Trust>,
}

/// Whose tokens are accepted.
#[derive(Debug)]
pub struct Trust {
    issuer: String,
    /// If empty, the audiences of the account.
    audiences: Vec<String>,
    /// Accept tokens over plain HTTP, where others can read them.
    over_http: bool,
    keys: IssuerKeys,
}

/// The operator's settings `bearer-…`.
#[derive(Clone, Debug, Default)]
pub struct BearerSettings {
    pub issuer: Option<String>,
    pub audiences: Vec<String>,
    pub jwks: Option<PathBuf>,
    pub tenant: Option<String>,
    pub over_http: bool,
}

/// Why these settings can't be used.
#[derive(Debug, Error)]
pub enum BearerError {
    #[error("bearer-tenant is {0:?}; it takes a tenant's id or domain")]
    Tenant(String),
    #[error("bearer tokens take bearer-issuer and bearer-jwks together; set both or neither")]
    Incomplete,
    #[error("can't read bearer-jwks {}: {source}; check its path and its permissions", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("bearer-jwks {} {source}; download the issuer's keys again", .path.display())]
    Jwks { path: PathBuf, source: JwksError },
}

impl Bearer {
    /// Reads the issuer's keys from their file.
    pub fn load(settings: BearerSettings) -> Result<Self, BearerError> {
        let tenant = settings.tenant.unwrap_or_else(|| "common".to_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if tenant.is_empty() || !tenant.chars().all(plain) {
            return Err(BearerError::Tenant(tenant));
        }
        let trust = match (settings.issuer, settings.jwks) {
            (None, None) => None,
            (Some(issuer), Some(path)) => Some(Trust {
                issuer,
                audiences: settings.audiences,
                over_http: settings.over_http,
                keys: read_keys(&path)?,
            }),
            _ => return Err(BearerError::Incomplete),
        };
        Ok(Self { tenant, trust })
    }

    /// The `WWW-Authenticate` header: SDKs read from it which tenant to sign in to. No commas and no quotes, as the
    /// service writes it.
    pub fn challenge(&self) -> String {
        format!(
            "Bearer authorization_uri=https://login.microsoftonline.com/{}/oauth2/authorize resource_id={}",
            self.tenant, STORAGE[0]
        )
    }
}

/// The current settings for bearer tokens. A reload is for later requests.
#[derive(Clone, Debug)]
pub struct SharedBearer(Arc<RwLock<Arc<Bearer>>>);

impl SharedBearer {
    pub fn new(bearer: Arc<Bearer>) -> Self {
        Self(Arc::new(RwLock::new(bearer)))
    }

    pub fn current(&self) -> Arc<Bearer> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn replace(&self, bearer: Arc<Bearer>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = bearer;
    }
}

fn read_keys(path: &Path) -> Result<IssuerKeys, BearerError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| BearerError::Unreadable { path: path.to_owned(), source })?;
    IssuerKeys::parse(&text).map_err(|source| BearerError::Jwks { path: path.to_owned(), source })
}

/// Why a token is not accepted: the text that is logged. The token itself is not shown.
#[derive(Debug, Error)]
enum TokenError {
    #[error(transparent)]
    Signature(#[from] JwtError),
    #[error("the bearer token's claims can't be read: {0}")]
    Claims(#[from] serde_json::Error),
    #[error("the bearer token expired {seconds:.0} s ago")]
    Expired { seconds: f64 },
    #[error("the bearer token becomes valid in {seconds:.0} s")]
    NotYetValid { seconds: f64 },
    #[error("the bearer token is of issuer {found:?}, not {trusted:?}")]
    Issuer { found: String, trusted: String },
    #[error("the bearer token is for audience {found:?}, not for account {account} here")]
    Audience { found: Vec<String>, account: AccountName },
}

#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    aud: OneOrMany,
    /// Seconds since 1970; fractions are allowed.
    exp: f64,
    nbf: Option<f64>,
    roles: Option<OneOrMany>,
    #[serde(default)]
    oid: String,
    #[serde(default)]
    tid: String,
    #[serde(default, alias = "azp")]
    appid: String,
    #[serde(default)]
    upn: String,
}

/// Whose token it is, for the request log. A field is empty if the token does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub object_id: String,
    pub tenant_id: String,
    pub application_id: String,
    pub audience: String,
    pub issuer: String,
    pub user_principal_name: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// What a token is answered with that is not accepted. In versions that send a challenge, one comes with it.
fn refusal(service: ServiceKind, version: Version) -> Refusal {
    if service.sends_challenge(version) {
        Refusal::BearerTokenNotAccepted
    } else {
        Refusal::AuthenticationFailed
    }
}

/// While no issuer is configured, every token is one of an unknown issuer.
pub fn not_accepted_here(service: ServiceKind, version: Version, https: bool) -> Denial {
    // Over plain HTTP no issuer's token is accepted either, and that has another answer.
    let refusal = if https { refusal(service, version) } else { Refusal::AuthenticationFailed };
    Denial::new(refusal, "bearer tokens are not accepted here; sign with an account key")
}

impl Trust {
    /// The roles that the token gives its bearer at this service of this account.
    pub fn admit(
        &self,
        token: &str,
        audience: (ServiceKind, &AccountName),
        version: Version,
        https: bool,
        now: SystemTime,
    ) -> Result<(Roles, Identity), Denial> {
        if !https && !self.over_http {
            return Err(Denial::failed("bearer tokens are accepted over HTTPS only"));
        }
        let refusal = refusal(audience.0, version);
        let claims = self.check(token, audience, now).map_err(|error| {
            let denial = Denial::new(refusal, error.to_string());
            match error {
                TokenError::Audience { .. } => denial.telling(OTHER_AUDIENCE),
                _ => denial,
            }
        })?;
        let named = claims.roles.map(OneOrMany::into_vec).unwrap_or_default();
        let identity = Identity {
            object_id: claims.oid,
            tenant_id: claims.tid,
            application_id: claims.appid,
            audience: claims.aud.into_vec().join(","),
            issuer: claims.iss,
            user_principal_name: claims.upn,
        };
        let mut roles = Roles { named, manages: false };
        roles.manages = MANAGERS.into_iter().any(|role| roles.has(role));
        Ok((roles, identity))
    }

    /// Signature, time, issuer, audience.
    fn check(
        &self,
        token: &str,
        audience: (ServiceKind, &AccountName),
        now: SystemTime,
    ) -> Result<Claims, TokenError> {
        let claims: Claims = serde_json::from_slice(&self.keys.verify(token)?)?;
        check_time(&claims, now)?;
        if claims.iss != self.issuer {
            return Err(TokenError::Issuer { found: claims.iss, trusted: self.issuer.clone() });
        }
        self.check_audience(&claims.aud, audience)?;
        Ok(claims)
    }

    fn check_audience(
        &self,
        audience: &OneOrMany,
        (service, account): (ServiceKind, &AccountName),
    ) -> Result<(), TokenError> {
        let found = match audience {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        };
        let serves = |audience: &String| {
            if self.audiences.is_empty() {
                is_of_account(audience, service, account)
            } else {
                self.audiences.contains(audience)
            }
        };
        if found.iter().any(serves) {
            Ok(())
        } else {
            Err(TokenError::Audience { found: found.to_vec(), account: account.clone() })
        }
    }
}

/// `nbf <= now < exp`, with the leeway at both ends.
fn check_time(claims: &Claims, now: SystemTime) -> Result<(), TokenError> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let leeway = LEEWAY.as_secs_f64();
    if now >= claims.exp + leeway {
        return Err(TokenError::Expired { seconds: now - claims.exp });
    }
    match claims.nbf {
        Some(start) if now < start - leeway => Err(TokenError::NotYetValid { seconds: start - now }),
        _ => Ok(()),
    }
}

fn is_of_account(audience: &str, service: ServiceKind, account: &AccountName) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    STORAGE.contains(&audience)
        || CLOUDS.iter().any(|cloud| audience == format!("https://{account}.{}.core.{cloud}", service.name()))
}

#[cfg(test)]
mod tests;
