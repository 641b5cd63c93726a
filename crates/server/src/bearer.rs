//! From a bearer token to the role it proves: a JWT of the issuer that the operator trusts, signed with one of its keys.
//!
//! Fetches nothing: the keys come from a file. What a role may do is the service's `grant.rs`; why a token was refused
//! goes to the log, the token itself never.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use model::{AccountName, Refusal};
use serde::Deserialize;
use service::{Role, RoleGrant};
use wire::Version;

use crate::authenticate::Denied;

/// How far the issuer's clock may be from ours, as is usual for these tokens.
const LEEWAY: Duration = Duration::from_secs(5 * 60);

/// The audiences that stand for every account: Azure Storage by its address and by its application's id.
const STORAGE: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];
/// Where the clouds have their accounts; an account's own address is an audience too.
const CLOUDS: [&str; 4] = ["windows.net", "chinacloudapi.cn", "usgovcloudapi.net", "cloudapi.de"];

/// The built-in roles by name and by id.
const READER: [&str; 2] = ["Storage Table Data Reader", "76199698-9eea-4c19-bc75-cec21354c6b6"];
const CONTRIBUTOR: [&str; 2] = ["Storage Table Data Contributor", "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3"];

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
    keys: HashMap<String, Key>,
}

struct Key {
    /// The only one this key verifies, whatever a token says.
    algorithm: Algorithm,
    decoding: DecodingKey,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.algorithm)
    }
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

fn read_keys(path: &Path) -> Result<HashMap<String, Key>, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("can't read bearer-jwks {shown}: {error}"))?;
    parse_keys(&text).map_err(|error| format!("bearer-jwks {shown} {error}"))
}

/// Keys of other kinds and for other uses may stand beside ours, and are passed over.
fn parse_keys(text: &str) -> Result<HashMap<String, Key>, String> {
    let set: JwkSet = serde_json::from_str(text).map_err(|error| format!("is no JWKS: {error}"))?;
    let mut keys = HashMap::new();
    for jwk in &set.keys {
        let (Some(kid), Some(algorithm)) = (&jwk.common.key_id, algorithm(jwk)) else { continue };
        let decoding =
            DecodingKey::from_jwk(jwk).map_err(|error| format!("has a bad key {kid:?}: {error}"))?;
        if keys.insert(kid.clone(), Key { algorithm, decoding }).is_some() {
            return Err(format!("has two keys {kid:?}"));
        }
    }
    if keys.is_empty() {
        return Err("holds no key with a kid for RS256 or ES256".to_owned());
    }
    Ok(keys)
}

/// What a key verifies follows from its kind. Never `none`, and no secret that both sides would know.
fn algorithm(jwk: &Jwk) -> Option<Algorithm> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
        _ => return None,
    };
    let signs = jwk.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
    let meant = jwk.common.key_algorithm.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    (signs && meant).then_some(algorithm)
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
    /// What the token proves for this account. From the version on that has challenges, a refused token is one.
    pub fn admit(
        &self,
        token: &str,
        account: &AccountName,
        version: Version,
        https: bool,
        now: SystemTime,
    ) -> Result<(RoleGrant, Identity), Denied> {
        if !https && !self.over_http {
            return Err(Denied::failed("bearer tokens are accepted over HTTPS only"));
        }
        let refusal = if version.has_challenge() {
            Refusal::BearerTokenNotAccepted
        } else {
            Refusal::AuthenticationFailed
        };
        let claims = self.check(token, account, now).map_err(|why| Denied { refusal, why })?;
        let named = claims.roles.map(OneOrMany::into_vec).unwrap_or_default();
        let identity = Identity {
            object_id: claims.oid,
            tenant_id: claims.tid,
            application_id: claims.appid,
            audience: claims.aud.into_vec().join(","),
            issuer: claims.iss,
            user_principal_name: claims.upn,
        };
        Ok((RoleGrant { role: strongest(&named), named }, identity))
    }

    /// Signature, time, issuer, audience; an error says why not.
    fn check(&self, token: &str, account: &AccountName, now: SystemTime) -> Result<Claims, String> {
        let header =
            decode_header(token).map_err(|_| "the bearer token is no JWT with an algorithm we know")?;
        if let Some(critical) = header.crit {
            return Err(format!("the bearer token demands extensions {critical:?}"));
        }
        let kid = header.kid.ok_or("the bearer token does not name its key (kid)")?;
        let key =
            self.keys.get(&kid).ok_or_else(|| format!("the JWKS holds no key {kid:?} for bearer tokens"))?;
        if header.alg != key.algorithm {
            return Err(format!(
                "the bearer token is signed by {:?}, but key {kid:?} is for {:?}",
                header.alg, key.algorithm
            ));
        }
        // The signature only: each claim is looked at below, so that the log can say what was found.
        let mut validation = Validation::new(key.algorithm);
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let decoded = decode::<Claims>(token, &key.decoding, &validation).map_err(|error| {
            use jsonwebtoken::errors::ErrorKind;
            match error.kind() {
                ErrorKind::Json(error) => format!("the bearer token's claims can't be read: {error}"),
                _ => format!("the bearer token's signature is not that of key {kid:?}"),
            }
        });
        let claims = decoded.map(|data| data.claims)?;
        check_time(&claims, now)?;
        if claims.iss != self.issuer {
            return Err(format!("the bearer token is of issuer {:?}, not {:?}", claims.iss, self.issuer));
        }
        self.check_audience(&claims.aud, account)?;
        Ok(claims)
    }

    fn check_audience(&self, audience: &OneOrMany, account: &AccountName) -> Result<(), String> {
        let found = match audience {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        };
        let serves = |audience: &String| {
            if self.audiences.is_empty() {
                is_of_account(audience, account)
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

fn is_of_account(audience: &str, account: &AccountName) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    STORAGE.contains(&audience)
        || CLOUDS.iter().any(|cloud| audience == format!("https://{account}.table.core.{cloud}"))
}

fn strongest(named: &[String]) -> Option<Role> {
    let has = |role: [&str; 2]| {
        named.iter().any(|name| role.iter().any(|spelling| spelling.eq_ignore_ascii_case(name)))
    };
    if has(CONTRIBUTOR) {
        Some(Role::Contributor)
    } else if has(READER) {
        Some(Role::Reader)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
