//! From a bearer token to the roles it proves: a JWT of the issuer that the operator trusts, signed with one of its keys.
//!
//! Fetches nothing: the keys come from a file. What a role may do is for each service to say. The log says why a token
//! was refused; the token itself is never logged.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::Version;
use common::{AccountName, Refusal};
use protocol::signing::jwt::Keys;
use serde::Deserialize;

use crate::access::{Denied, Roles};
use common::ServiceKind;

/// How far the issuer's clock may be from ours, as is usual for these tokens.
const LEEWAY: Duration = Duration::from_secs(5 * 60);

/// The audiences that stand for every account: Azure Storage by its address and by its application's id.
const STORAGE: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];
/// Where the clouds have their accounts; an account's own address is an audience too.
const CLOUDS: [&str; 4] = ["windows.net", "chinacloudapi.cn", "usgovcloudapi.net", "cloudapi.de"];

/// The built-in roles over the account as a whole, by name and by id.
const MANAGERS: [[&str; 2]; 3] = [
    ["Owner", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"],
    ["Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c"],
    ["Storage Account Contributor", "17d1049b-9a84-46fb-8f53-869881c3d3ab"],
];

/// What there is to say about bearer tokens: where to get one, and which to trust, if any.
#[derive(Debug)]
pub struct Bearer {
    pub tenant: String,
    pub trust: Option<Trust>,
}

/// Whose tokens are accepted.
#[derive(Debug)]
pub struct Trust {
    issuer: String,
    /// Those of the account if empty.
    audiences: Vec<String>,
    /// Whether tokens may come over plain HTTP, where anyone on the way can take them.
    over_http: bool,
    keys: Keys,
}

/// As the operator said them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub issuer: Option<String>,
    pub audiences: Vec<String>,
    pub jwks: Option<PathBuf>,
    pub tenant: Option<String>,
    pub over_http: bool,
}

impl Bearer {
    /// Reads the keys. Errors are one sentence that names the setting.
    pub fn load(settings: Settings) -> Result<Self, String> {
        let tenant = settings.tenant.unwrap_or_else(|| "common".to_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if tenant.is_empty() || !tenant.chars().all(plain) {
            return Err(format!("bearer-tenant is {tenant:?}; it takes a tenant's id or domain"));
        }
        let trust = match (settings.issuer, settings.jwks) {
            (None, None) => None,
            (Some(issuer), Some(path)) => Some(Trust {
                issuer,
                audiences: settings.audiences,
                over_http: settings.over_http,
                keys: read_keys(&path)?,
            }),
            _ => return Err("bearer tokens take bearer-issuer and bearer-jwks together".to_owned()),
        };
        Ok(Self { tenant, trust })
    }

    /// Where SDKs learn which tenant to sign in to. Separated by spaces and without quotes, as the service writes it.
    pub fn challenge(&self) -> String {
        format!(
            "Bearer authorization_uri=https://login.microsoftonline.com/{}/oauth2/authorize resource_id={}",
            self.tenant, STORAGE[0]
        )
    }
}

/// What is trusted as of now; SIGHUP changes it for the requests to come.
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

fn read_keys(path: &Path) -> Result<Keys, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("can't read bearer-jwks {shown}: {error}"))?;
    Keys::parse(&text).map_err(|error| format!("bearer-jwks {shown} {error}"))
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

/// Whose token it is, for the request log. Empty is what the token does not say.
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

impl Trust {
    /// What the token proves for this service of this account. From the version on that has challenges, a refused token is one.
    pub fn admit(
        &self,
        token: &str,
        audience: (ServiceKind, &AccountName),
        version: Version,
        https: bool,
        now: SystemTime,
    ) -> Result<(Roles, Identity), Denied> {
        if !https && !self.over_http {
            return Err(Denied::failed("bearer tokens are accepted over HTTPS only"));
        }
        let refusal = if audience.0.sends_challenge(version) {
            Refusal::BearerTokenNotAccepted
        } else {
            Refusal::AuthenticationFailed
        };
        let claims = self.check(token, audience, now).map_err(|why| Denied::new(refusal, why))?;
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

    /// Signature, time, issuer, audience; an error says why not.
    fn check(
        &self,
        token: &str,
        audience: (ServiceKind, &AccountName),
        now: SystemTime,
    ) -> Result<Claims, String> {
        let claims = self.keys.verify(token).map_err(|bad| bad.to_string())?;
        let claims: Claims = serde_json::from_slice(&claims)
            .map_err(|error| format!("the bearer token's claims can't be read: {error}"))?;
        check_time(&claims, now)?;
        if claims.iss != self.issuer {
            return Err(format!("the bearer token is of issuer {:?}, not {:?}", claims.iss, self.issuer));
        }
        self.check_audience(&claims.aud, audience)?;
        Ok(claims)
    }

    fn check_audience(
        &self,
        audience: &OneOrMany,
        (service, account): (ServiceKind, &AccountName),
    ) -> Result<(), String> {
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
            Err(format!("the bearer token is for audience {found:?}, not for account {account} here"))
        }
    }
}

/// `nbf <= now < exp`, give or take the leeway.
fn check_time(claims: &Claims, now: SystemTime) -> Result<(), String> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let leeway = LEEWAY.as_secs_f64();
    if now >= claims.exp + leeway {
        return Err(format!("the bearer token expired {:.0} s ago", now - claims.exp));
    }
    match claims.nbf {
        Some(start) if now < start - leeway => {
            Err(format!("the bearer token is valid in {:.0} s only", start - now))
        }
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
