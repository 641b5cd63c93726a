//! The parts of a request that authentication reads. Seven lines: Authorization, date, method, Content-MD5, Content-Type,
//! path and comp.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use model::DateTime;
use wire::signing::AccountKey;
use wire::signing::jwt::IssuerKeys;
use wire::signing::shared_key::{Authorization, Scheme, SignedRequest};

static KEY: LazyLock<AccountKey> = LazyLock::new(|| AccountKey::parse("c2VjcmV0").expect("a good key"));
static KEYS: LazyLock<IssuerKeys> =
    LazyLock::new(|| IssuerKeys::parse(include_str!("../jwks.json")).expect("a good JWKS"));

fuzz_target!(|text: &str| {
    let [header, date, method, content_md5, content_type, path, comp] = fuzz::lines(text);
    if let Some(token) = header.strip_prefix("Bearer ")
        && let Ok(claims) = KEYS.verify(token)
    {
        // The issuer signed only two tokens, and its private keys are gone.
        let known: [&[u8]; 2] = [br#"{"sub":"one"}"#, br#"{"sub":"two"}"#];
        assert!(known.contains(&claims.as_slice()), "{token} is forged");
    }
    let _ = IssuerKeys::parse(text);
    let _ = AccountKey::parse(header);
    if let Some(read) = DateTime::parse(date) {
        assert_eq!(DateTime::parse(&read.to_string()), Some(read), "{date}");
        assert_eq!(DateTime::parse(&read.to_fixed_string()), Some(read), "{date}");
    }
    let comp = (!comp.is_empty()).then_some(comp);
    let request = SignedRequest { method, content_md5, content_type, date, account: "shop", path, comp };
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let string = request.string_to_sign(scheme);
        let right = KEY.sign(&string);
        assert!(KEY.verifies(&string, &right));
        if let Some(sent) = Authorization::parse(header) {
            let verified = KEY.verifies(&string, sent.signature);
            assert!(!verified || sent.signature == right, "{} is taken for {right}", sent.signature);
        }
        let written = match scheme {
            Scheme::SharedKey => format!("SharedKey shop:{right}"),
            Scheme::SharedKeyLite => format!("SharedKeyLite shop:{right}"),
        };
        let expected = Authorization { scheme, account: "shop", signature: &right };
        assert_eq!(Authorization::parse(&written), Some(expected));
    }
});
