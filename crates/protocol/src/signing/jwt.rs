//! Signed tokens (JWTs) and the public keys that verify them (a JWKS): RS256 and ES256, each by its `kid`.
//!
//! Knows neither claims nor the time. Callers decide what a token with a valid signature grants.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use thiserror::Error;

/// A shorter modulus can be broken. A longer one is slow to verify, and anyone can send a token.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
const COORDINATE_BYTES: usize = 32;
/// The first byte of a point in uncompressed form: both coordinates follow.
const UNCOMPRESSED: u8 = 4;

/// The public keys of an issuer, by their `kid`.
#[derive(Debug)]
pub struct IssuerKeys(HashMap<String, PublicKey>);

/// The kind of a key decides the algorithm. `none` and shared secrets (HS256) are not supported.
#[derive(Debug)]
enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    P256(UnparsedPublicKey<Vec<u8>>),
}

/// Why a JWKS can't be used. The text follows the name of its file.
#[derive(Debug, Error)]
pub enum JwksError {
    #[error("is not a JWKS: {0}")]
    NotJwks(#[source] serde_json::Error),
    #[error("has a bad key {kid:?}: {source}")]
    Key { kid: String, source: KeyError },
    #[error("has two keys {kid:?}")]
    Repeated { kid: String },
    #[error("holds no key with a kid for RS256 or ES256")]
    Empty,
}

/// What is wrong with one key of a JWKS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("n and e take base64url without padding")]
    RsaEncoding,
    #[error("n takes {} to {} bits", MODULUS_BITS.start(), MODULUS_BITS.end())]
    ModulusBits,
    #[error("x and y take base64url without padding")]
    PointEncoding,
    #[error("x and y take {COORDINATE_BYTES} bytes each")]
    CoordinateBytes,
}

/// Why a token is not verified. The token itself is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JwtError {
    #[error("the bearer token is not a JWT")]
    NotJwt,
    #[error("the bearer token requires extensions {0:?} (crit), which are not supported")]
    Critical(Vec<String>),
    #[error("the bearer token does not name its key (kid)")]
    NoKid,
    #[error("the JWKS holds no key {0:?} for bearer tokens")]
    UnknownKey(String),
    #[error("the bearer token is signed by {used:?}, but key {kid:?} is for {of_key}")]
    Algorithm { used: String, kid: String, of_key: &'static str },
    #[error("the bearer token's signature is not that of key {0:?}")]
    Signature(String),
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Vec<String>>,
}

impl IssuerKeys {
    /// Reads a JWKS. Keys of other kinds and for other uses are ignored.
    pub fn parse(jwks: &str) -> Result<Self, JwksError> {
        let set: Jwks = serde_json::from_str(jwks).map_err(JwksError::NotJwks)?;
        let mut keys = HashMap::new();
        for mut jwk in set.keys {
            let Some(kid) = jwk.kid.take() else { continue };
            match PublicKey::of(&jwk) {
                Ok(Some(_)) if keys.contains_key(&kid) => return Err(JwksError::Repeated { kid }),
                Ok(Some(key)) => _ = keys.insert(kid, key),
                Ok(None) => {}
                Err(source) => return Err(JwksError::Key { kid, source }),
            }
        }
        if keys.is_empty() { Err(JwksError::Empty) } else { Ok(Self(keys)) }
    }

    /// Verifies the signature and returns the claims: bytes that should be JSON.
    pub fn verify(&self, token: &str) -> Result<Vec<u8>, JwtError> {
        let (message, signature) = token.rsplit_once('.').ok_or(JwtError::NotJwt)?;
        let (header, claims) = message.split_once('.').ok_or(JwtError::NotJwt)?;
        let header = decode(header).ok_or(JwtError::NotJwt)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| JwtError::NotJwt)?;
        let claims = decode(claims).ok_or(JwtError::NotJwt)?;
        if let Some(critical) = header.crit {
            return Err(JwtError::Critical(critical));
        }
        let kid = header.kid.ok_or(JwtError::NoKid)?;
        let Some(key) = self.0.get(&kid) else { return Err(JwtError::UnknownKey(kid)) };
        // A key is used with its own algorithm only: the header comes from the sender.
        if header.alg != key.algorithm() {
            return Err(JwtError::Algorithm { used: header.alg, kid, of_key: key.algorithm() });
        }
        if decode(signature).is_some_and(|signature| key.verifies(message.as_bytes(), &signature)) {
            Ok(claims)
        } else {
            Err(JwtError::Signature(kid))
        }
    }
}

impl PublicKey {
    /// `None` for a key of another algorithm or for another use.
    fn of(jwk: &Jwk) -> Result<Option<Self>, KeyError> {
        let read = |member: &Option<String>| member.as_deref().and_then(decode);
        let signs = jwk.used_for.as_deref().is_none_or(|used| used == "sig");
        let meant = |algorithm: &str| signs && jwk.alg.as_deref().is_none_or(|named| named == algorithm);
        match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) if meant("RS256") => {
                let (n, e) = (read(&jwk.n), read(&jwk.e));
                let (n, e) = n.zip(e).ok_or(KeyError::RsaEncoding)?;
                let (n, e) = (without_zeros(n), without_zeros(e));
                if !MODULUS_BITS.contains(&bits(&n)) {
                    return Err(KeyError::ModulusBits);
                }
                Ok(Some(Self::Rsa(RsaPublicKeyComponents { n, e })))
            }
            ("EC", Some("P-256")) if meant("ES256") => {
                let (x, y) = (read(&jwk.x), read(&jwk.y));
                let (x, y) = x.zip(y).ok_or(KeyError::PointEncoding)?;
                if x.len() != COORDINATE_BYTES || y.len() != COORDINATE_BYTES {
                    return Err(KeyError::CoordinateBytes);
                }
                let point = [&[UNCOMPRESSED], &x[..], &y[..]].concat();
                Ok(Some(Self::P256(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point))))
            }
            _ => Ok(None),
        }
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Rsa(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok(),
            Self::P256(key) => key.verify(message, signature).is_ok(),
        }
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Some issuers write a zero byte before a number, as ASN.1 does; `ring` accepts none.
fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}

fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| 8 * number.len() - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and tokens were made by another library (OpenSSL, through Python's `cryptography`).
    const MODULUS: &str = "\
        137D5JWxwtPmion3XstOv3E85v0zx6A9uBm46ZptJRxJRWYSBksLk1HPGeTX1UAtLAL2i_chMd3IFtHZrI2-xFMMAwPz7WdlfTMDnY38\
        ku4f_eymadsXChBAEgdw1AooaS7GPk6JUlBS16pyRl05hGg6qqPrzoGmLxaL04mebb4vsaERJT_Y2ictwZFb1RpVxN4o_hMYcEm6ru1O\
        XP8KWShtvPtb4F3mxFcL5J-H7XlnSWLbegYUYp4INJSQQlqxBeMnfLPlD8BtFIc76fiTWwmKFd6i72HQT_dXvm4yzQI3qV-adHlU7c2l\
        UPU-D3dWuLeHomA5WTA8EqVt8iJgRw";
    const X: &str = "XfSCLWvQBMGbgjyZXinCAm_0ZsSwQ0yt3lqvLS_dJtU";
    const Y: &str = "-A5k0jrWj7BlGzrL54H66w2SwgWVw7o4epUBMdjXlqI";
    const RSA_TOKEN: &str = "\
        eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJzdWIiOiJvbmUifQ.\
        IaK_kUxkCcYy7psaa0r-Qx8eAmmD5UoQBHvjHKW_k0BWjlselans1pj9cv0PTmOAWuHbuRaQ2OlBXw7hrVA9RPKthDprbKiiksJngUys\
        ZKo0HRV-3W1rFMHXM-q_Gsl_dUMhbRsNO3MER5vef8llg_TlDs_16HxIBSV6l3W4PFutwPf7dYTtJs_DaZGFTnW5BJWCv_lDzW6ZT7qA\
        1bscOW9Mh6A0nexXwQalSZFmh6EdaedArQHn_4f0aDlatGGrusDoVIXUjrJRzYCPSuXpNb56dhYcg2y5kEnMI6nrvX6013YwBbXGjEgJ\
        Qr-nDVw2XSl3NTlqdIKvmX9jDN2x8A";
    const EC_TOKEN: &str = "\
        eyJhbGciOiJFUzI1NiIsImtpZCI6ImUiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJ0d28ifQ.\
        2fSrt-qo-zMK-AsvVuzCXJpQ9EV8khRvbtasIG1UMQKj00pyB15DcIeueI3dgqsYpex1BBsUTzd7762kZYyphw";

    fn rsa(modulus: &str) -> String {
        format!(r#"{{"kty":"RSA","kid":"r","use":"sig","n":"{modulus}","e":"AQAB"}}"#)
    }

    fn ec(x: &str, y: &str) -> String {
        format!(r#"{{"kty":"EC","kid":"e","alg":"ES256","crv":"P-256","x":"{x}","y":"{y}"}}"#)
    }

    fn keys(list: &[String]) -> Result<IssuerKeys, JwksError> {
        IssuerKeys::parse(&format!(r#"{{"keys":[{}]}}"#, list.join(",")))
    }

    #[test]
    fn tokens_of_other_libraries_verify() {
        let keys = keys(&[rsa(MODULUS), ec(X, Y)]).unwrap();
        assert_eq!(keys.verify(RSA_TOKEN).unwrap(), br#"{"sub":"one"}"#);
        assert_eq!(keys.verify(EC_TOKEN).unwrap(), br#"{"sub":"two"}"#);
    }

    #[test]
    fn a_zero_before_the_modulus_changes_nothing() {
        let zeroed = [&[0], &decode(MODULUS).unwrap()[..]].concat();
        let keys = keys(&[rsa(&URL_SAFE_NO_PAD.encode(zeroed))]).unwrap();
        assert!(keys.verify(RSA_TOKEN).is_ok());
    }

    #[test]
    fn a_changed_byte_anywhere_is_refused() {
        let keys = keys(&[rsa(MODULUS), ec(X, Y)]).unwrap();
        for token in [RSA_TOKEN, EC_TOKEN] {
            for at in 0..token.len() {
                let mut bytes = token.as_bytes().to_vec();
                bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
                let changed = String::from_utf8(bytes).unwrap();
                assert!(keys.verify(&changed).is_err(), "byte {at} of {token}");
            }
        }
    }

    #[test]
    fn keys_that_can_not_verify_are_named() {
        let check = |key: String, expected: &str| assert_eq!(keys(&[key]).unwrap_err().to_string(), expected);
        check(rsa("AQAB"), r#"has a bad key "r": n takes 2048 to 8192 bits"#);
        check(rsa(""), r#"has a bad key "r": n takes 2048 to 8192 bits"#);
        // 1,024 bits and one byte short of 2,048.
        check(rsa(&MODULUS[..172]), r#"has a bad key "r": n takes 2048 to 8192 bits"#);
        check(rsa(&MODULUS[..340]), r#"has a bad key "r": n takes 2048 to 8192 bits"#);
        check(rsa(&"_".repeat(1368)), r#"has a bad key "r": n takes 2048 to 8192 bits"#);
        check(rsa("a="), r#"has a bad key "r": n and e take base64url without padding"#);
        check(ec(X, "AQAB"), r#"has a bad key "e": x and y take 32 bytes each"#);
        check(ec(X, "!"), r#"has a bad key "e": x and y take base64url without padding"#);
        check(ec(X, Y).replace("P-256", "P-384"), "holds no key with a kid for RS256 or ES256");
        check(ec(X, Y).replace("ES256", "ES384"), "holds no key with a kid for RS256 or ES256");
        check(rsa(MODULUS).replace("sig", "enc"), "holds no key with a kid for RS256 or ES256");
    }

    #[test]
    fn a_point_off_the_curve_verifies_nothing() {
        let keys = keys(&[ec(Y, X)]).unwrap();
        assert_eq!(keys.verify(EC_TOKEN), Err(JwtError::Signature("e".to_owned())));
    }
}
