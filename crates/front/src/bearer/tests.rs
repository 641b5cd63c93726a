use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RsaKeyPair};
use ring::{hmac, signature};
use serde_json::{Value, json};

/// Made for these tests; it guards nothing.
const RSA_PRIVATE: &str = "\
    MIIEowIBAAKCAQEAsZXL8eUnOzCQvKClWN5R5mIs9qOaFDCpLl9xR6d6LGWF01WrlhYVDgEoTnQKuD0ZjeaekdK5oz42VRA3H6YD\
    bTzY5YYMRuv9vHAiCvHQlSMIodmi8gTRUrO3cA00gnbD1Q5BU8VKQGzx/X59bLi9XJSmcNCidfOdrnTtmDxRdp93Hj0z+FxBT6hA\
    Tw5FDY/X7PkeBI5JPPRkmjsaHf3oZVqcVdYRTm1XNBMT2Z5nqdw/w/73JbYgKXJuHD8Pzb6g9T4sDOjC7yptR+GVCUEfPGKmGW57\
    jqNjhMC2/JuZ7KBXljHraau6FWCL9Xt9jH9XKLbVXZWIkMghiKSwY8r+3wIDAQABAoIBAAIxoKhXZo1fivzfcB/Cs1rrKaQsYwnw\
    4bBPI1cXTxPY3aG9129jmVDKE1Z/ttT8+uojf6iZMVjpGL5nJZSFrdEXfrZV2k8KqE+mNx6EGDAkRtLbctAwALc1aCsa+duGnkio\
    90HXC4x8RasNrFqqU1TSbwlsWvG29bgYUrSRU4elPj/d+MAJ0C71G7JRozOJ874qx8ALZW9pRxSwPTFxn0fJxrvKg5+FInmMcAdJ\
    4baPVqWy8ilud8by366iJ7E2yzVaU81CP6tcXddkYDyIMpa7XXzWsAt+bpq2P+HzSIztSGLVioVH4JVHMA9CAVelvdISZRlQ/aRT\
    PwuBePnZVbkCgYEA7pPfXEpUF4gK1NH0Iek0oZTWIYuLcJ1zYfS2X3T9mHUeGkrp7CjwAJwNGg7k5V7cyTtwdxuO2O8aONQ2K3fG\
    lTajv5ZQ7Y0abM2L7BhacW0xk+92JMB7Hdp3FuZ53TCEpVG2NEtjJPO/uxeQnxFcqgxTMi2xmJq3lYiZd+dLO9kCgYEAvo2wwNZG\
    ERrcSyI1Adq60vrfpx/fUAPWmy2R4Mb+FKjakNRoA6lQJTsfPy1lAuATr8Ceph3KRdIkneg/jbLD63JQ1BLJagWrlBQ9ucU+xi2v\
    PyV6NxC+hE9i5A6uLd1/hlfQq2Fxh8VBqWGPPIVlTt7qnmYBNXnxFaobktY4dXcCgYAPNoiwpuCz223tYjHyE5/Sid4Zp39NwAyC\
    e4tBjQE6voUb4hkGgRnEwC6psbdw1Nq5Tjv+rFgwhxah9w45OVsFWsWYSuqAK1Y7B+RbOrZRs0fNCiD7ePag0bR0VmAA9b4PmKVI\
    smHxEkXwlTEYo4/IHB8V/QntFDiOpXY7yhjnCQKBgGnP9F6gnbfR2pI+JIErHKMbfCYppK+h8gGphF/1IBII0ZWq3TdrRX3nHqrO\
    YlD+bPAjXfWQhUnQL1UgKmpc4j5T9F5PMFkXXPeVZdFKnlkd9TpzbTI2shR2oMtS+5WscawAB3ejXI+wEY4lBozs5hyt3EqpCfLQ\
    C/ejxjv7iM5xAoGBAMXlu0Wd9yEXp8Go+GgZ+OiDdN+ddevnGTaW2GIhU/lDXAb4FcR98Rgyn9NNV01qx+5Jj+LY+FIQmPPsIOpD\
    cFNQDrOoSSVbSWdSrkenhXr4yuUP4V1RjgbvcL5VawM4D4gzD9G6FlJ6JJr7xKqw4yjPJJu4BW7EdaeasGgJDbp6";
const RSA_MODULUS: &str = "\
    sZXL8eUnOzCQvKClWN5R5mIs9qOaFDCpLl9xR6d6LGWF01WrlhYVDgEoTnQKuD0ZjeaekdK5oz42VRA3H6YDbTzY5YYMRuv9vHAi\
    CvHQlSMIodmi8gTRUrO3cA00gnbD1Q5BU8VKQGzx_X59bLi9XJSmcNCidfOdrnTtmDxRdp93Hj0z-FxBT6hATw5FDY_X7PkeBI5J\
    PPRkmjsaHf3oZVqcVdYRTm1XNBMT2Z5nqdw_w_73JbYgKXJuHD8Pzb6g9T4sDOjC7yptR-GVCUEfPGKmGW57jqNjhMC2_JuZ7KBX\
    ljHraau6FWCL9Xt9jH9XKLbVXZWIkMghiKSwY8r-3w";

const NOW: u64 = 1_750_000_000;
const ISSUER: &str = "https://sts.windows.net/tenant/";

/// Both kinds of keys, their JWKS, and what trusts it.
struct Issuer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    jwks: Value,
}

impl Issuer {
    fn new() -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let point = pair.public_key_raw();
        let (x, y) = point[1..].split_at(32);
        let jwks = json!({ "keys": [
            { "kty": "RSA", "kid": "rsa", "use": "sig", "n": RSA_MODULUS, "e": "AQAB", "issuer": ISSUER },
            { "kty": "EC", "kid": "ec", "alg": "ES256", "crv": "P-256",
              "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y) },
            { "kty": "RSA", "kid": "enc", "use": "enc", "n": RSA_MODULUS, "e": "AQAB" },
            { "kty": "RSA", "kid": "other", "alg": "RS512", "n": RSA_MODULUS, "e": "AQAB" },
            { "kty": "oct", "kid": "secret", "k": "c2VjcmV0" },
        ]});
        Self {
            rsa: RsaKeyPair::from_der(&STANDARD.decode(RSA_PRIVATE).unwrap()).unwrap(),
            ec: EcdsaKeyPair::from_pkcs8(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                &pair.serialize_der(),
                &SystemRandom::new(),
            )
            .unwrap(),
            jwks,
        }
    }

    fn trust(&self, audiences: &[&str]) -> Trust {
        Trust {
            issuer: ISSUER.to_owned(),
            audiences: audiences.iter().map(|&text| text.to_owned()).collect(),
            over_http: false,
            keys: IssuerKeys::parse(&self.jwks.to_string()).unwrap(),
        }
    }

    fn token(&self, algorithm: &str, kid: &str, claims: &Value) -> String {
        let header = json!({ "typ": "JWT", "alg": algorithm, "kid": kid }).to_string();
        let message =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let random = SystemRandom::new();
        let rsa = |padding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(padding, &random, message.as_bytes(), &mut signature).unwrap();
            signature
        };
        let signature = match algorithm {
            "ES256" => self.ec.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            "HS256" => {
                let secret = hmac::Key::new(hmac::HMAC_SHA256, RSA_MODULUS.as_bytes());
                hmac::sign(&secret, message.as_bytes()).as_ref().to_vec()
            }
            "RS512" => rsa(&signature::RSA_PKCS1_SHA512),
            _ => rsa(&signature::RSA_PKCS1_SHA256),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Good claims, with these in their place; null takes one away.
fn claims(changes: Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": "https://storage.azure.com", "nbf": NOW - 60, "exp": NOW + 3600,
        "roles": ["Storage Table Data Reader"],
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn admit(trust: &Trust, token: &str, version: &str, https: bool) -> String {
    let account = AccountName::parse("shop").unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    match trust.admit(token, (ServiceKind::Table, &account), Version::parse(version).unwrap(), https, now) {
        Ok((Roles { named, .. }, _)) if named.is_empty() => "nothing".to_owned(),
        Ok((Roles { named, manages }, _)) => {
            format!("{}{}", named.join(","), if manages { " (manages)" } else { "" })
        }
        Err(denied) => {
            assert!(!denied.why.contains(token), "a token must never be shown");
            format!("{} {}: {}", denied.refusal.status(), denied.refusal.code(ServiceKind::Table), denied.why)
        }
    }
}

fn check_token(trust: &Trust, token: &str, expected: &str) {
    let shown = admit(trust, token, "2020-12-06", true);
    let expected = if expected.starts_with("the ") {
        format!("401 InvalidAuthenticationInfo: {expected}")
    } else {
        expected.to_owned()
    };
    assert!(shown.starts_with(&expected), "{shown}\nbut expected {expected}");
}

/// What becomes of a token with these claims, signed by either kind of key.
fn check(issuer: &Issuer, changes: Value, expected: &str) {
    let claims = claims(changes);
    for (algorithm, kid) in [("RS256", "rsa"), ("ES256", "ec")] {
        check_token(&issuer.trust(&[]), &issuer.token(algorithm, kid, &claims), expected);
    }
}

#[test]
fn roles_are_as_the_token_names_them() {
    let issuer = Issuer::new();
    let check = |roles: Value, expected| check(&issuer, json!({ "roles": roles }), expected);
    check(json!(["Storage Table Data Reader", "Other"]), "Storage Table Data Reader,Other");
    check(json!("76199698-9EEA-4c19-bc75-cec21354c6b6"), "76199698-9EEA-4c19-bc75-cec21354c6b6");
    check(json!(["Owner"]), "Owner (manages)");
    check(json!(["17d1049b-9a84-46fb-8f53-869881c3D3AB"]), "17d1049b-9a84-46fb-8f53-869881c3D3AB (manages)");
    check(json!([]), "nothing");
    check(Value::Null, "nothing");
    check(json!([7]), "the bearer token's claims can't be read");
}

#[test]
fn tokens_serve_within_their_time_and_the_leeway() {
    let issuer = Issuer::new();
    let check = |changes, expected| check(&issuer, changes, expected);
    check(json!({ "exp": NOW - 299 }), "Storage Table Data Reader");
    check(json!({ "exp": NOW - 300 }), "the bearer token expired 300 s ago");
    check(json!({ "nbf": NOW + 300 }), "Storage Table Data Reader");
    check(json!({ "nbf": NOW + 301 }), "the bearer token becomes valid in 301 s");
    check(json!({ "nbf": null }), "Storage Table Data Reader");
    check(json!({ "exp": NOW as f64 + 0.5 }), "Storage Table Data Reader");
    check(json!({ "exp": null }), "the bearer token's claims can't be read: missing field `exp`");
    check(json!({ "exp": "9999999999" }), "the bearer token's claims can't be read");
    check(json!({ "nbf": "9999999999" }), "the bearer token's claims can't be read");
}

#[test]
fn issuer_and_audience_are_held_to() {
    let issuer = Issuer::new();
    let audience = |audience: Value, expected: &str| check(&issuer, json!({ "aud": audience }), expected);
    audience(json!("https://storage.azure.com/"), "Storage Table Data Reader");
    audience(json!("e406a681-f3d4-42a8-90b6-c2b029497af1"), "Storage Table Data Reader");
    audience(json!("https://shop.table.core.windows.net"), "Storage Table Data Reader");
    audience(json!("https://shop.table.core.usgovcloudapi.net/"), "Storage Table Data Reader");
    audience(
        json!(["https://graph.microsoft.com", "https://storage.azure.com"]),
        "Storage Table Data Reader",
    );
    for other in ["https://other.table.core.windows.net", "https://storage.azure.com//", "shop", ""] {
        audience(
            json!(other),
            &format!("the bearer token is for audience [{other:?}], not for account shop"),
        );
    }
    audience(json!([]), "the bearer token is for audience []");
    audience(Value::Null, "the bearer token's claims can't be read: missing field `aud`");
    check(
        &issuer,
        json!({ "iss": "https://sts.windows.net/other/" }),
        "the bearer token is of issuer \"https",
    );
    check(&issuer, json!({ "iss": [ISSUER] }), "the bearer token's claims can't be read");
    check(&issuer, json!({ "iss": null }), "the bearer token's claims can't be read: missing field `iss`");

    let own = issuer.trust(&["api://tables", "api://more"]);
    let token = |audience: &str| issuer.token("RS256", "rsa", &claims(json!({ "aud": audience })));
    check_token(&own, &token("api://more"), "Storage Table Data Reader");
    check_token(&own, &token("https://storage.azure.com"), "the bearer token is for audience");
}

#[test]
fn only_the_keys_own_algorithm_verifies() {
    let issuer = Issuer::new();
    let trust = issuer.trust(&[]);
    let good = claims(json!({}));
    let check =
        |algorithm, kid, expected: &str| check_token(&trust, &issuer.token(algorithm, kid, &good), expected);
    check("HS256", "rsa", "the bearer token is signed by \"HS256\", but key \"rsa\" is for RS256");
    check("RS512", "rsa", "the bearer token is signed by \"RS512\", but key \"rsa\" is for RS256");
    check("RS256", "ec", "the bearer token is signed by \"RS256\", but key \"ec\" is for ES256");
    for passed_over in ["enc", "other", "secret", "new"] {
        check("RS256", passed_over, &format!("the JWKS holds no key {passed_over:?}"));
    }
    let stranger = Issuer::new().token("ES256", "ec", &good);
    check_token(&trust, &stranger, "the bearer token's signature is not that of key \"ec\"");
    let token = issuer.token("RS256", "rsa", &good);
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let more = claims(json!({ "roles": "Storage Table Data Contributor" })).to_string();
    let forged = format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode(more));
    check_token(&trust, &forged, "the bearer token's signature is not that of key \"rsa\"");
    check_token(&trust, &format!("{message}."), "the bearer token's signature is not that of key \"rsa\"");
}

#[test]
fn headers_must_name_a_key_and_an_algorithm_and_demand_nothing() {
    let issuer = Issuer::new();
    let check = |header: &str, expected| {
        let claims = URL_SAFE_NO_PAD.encode(claims(json!({})).to_string());
        check_token(
            &issuer.trust(&[]),
            &format!("{}.{claims}.AAAA", URL_SAFE_NO_PAD.encode(header)),
            expected,
        );
    };
    check(r#"{"alg":"none","kid":"rsa"}"#, "the bearer token is signed by \"none\", but key \"rsa\"");
    check(r#"{"kid":"rsa"}"#, "the bearer token is not a JWT");
    check(r#"{"alg":"RS256"}"#, "the bearer token does not name its key");
    check(r#"{"alg":"RS256","kid":"rsa","crit":["x"]}"#, "the bearer token requires extensions [\"x\"]");
    check("{", "the bearer token is not a JWT");
    for text in ["abcdef", "a.b", "a.b.c", "..", "a.b.c.d.e"] {
        check_token(&issuer.trust(&[]), text, "the bearer token is not a JWT");
    }
}

#[test]
fn old_versions_have_no_challenge_and_plain_http_is_refused() {
    let issuer = Issuer::new();
    let mut trust = issuer.trust(&[]);
    let good = issuer.token("RS256", "rsa", &claims(json!({})));
    let check = |trust: &Trust, token: &str, version, https, expected: &str| {
        let shown = admit(trust, token, version, https);
        assert!(shown.starts_with(expected), "{shown}");
    };
    check(&trust, "x", "2020-10-02", true, "403 AuthenticationFailed: the bearer token is not a JWT");
    check(&trust, &good, "2019-02-02", true, "Storage Table Data Reader");
    for version in ["2019-02-02", "2020-12-06"] {
        check(
            &trust,
            &good,
            version,
            false,
            "403 AuthenticationFailed: bearer tokens are accepted over HTTPS",
        );
    }
    trust.over_http = true;
    check(&trust, &good, "2020-12-06", false, "Storage Table Data Reader");
}

#[test]
fn a_jwks_must_hold_a_key_that_serves() {
    let check = |text: &str, expected: &str| {
        let error = IssuerKeys::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check("", "is not a JWKS");
    check(r#"{"keys":[{"kty":"oct","kid":"a","k":"AAAA"}]}"#, "holds no key");
    check(r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#, "holds no key");
    check(r#"{"keys":[{"kty":"RSA","kid":"a","n":"!","e":"AQAB"}]}"#, "has a bad key \"a\"");
    let key = json!({ "kty": "RSA", "kid": "a", "n": RSA_MODULUS, "e": "AQAB" });
    check(&json!({ "keys": [key, key] }).to_string(), "has two keys \"a\"");
}
