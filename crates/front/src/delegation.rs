//! User delegation keys: a user who has signed in with a bearer token gets one, and signs tokens with it.
//!
//! A key is an HMAC, with an account key, of what it is for and of what its user may do. So nothing has to be stored, all
//! servers of an account know it, and it ends with the account key that it was made of.

use common::{AccountName, DateTime, Guid, Refusal};
use protocol::signing::AccountKey;
use protocol::signing::sas::UserDelegation;

use crate::access::{Denial, Proof, ResourceToken};
use crate::account::Account;

/// What the user's roles allow. A token never allows more than its user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// A role that may only ask for keys: tokens signed with it allow nothing.
    Nothing,
    Read,
    Write,
    Everything,
}

/// Those whose tokens allow something.
const USABLE: [Rights; 3] = [Rights::Read, Rights::Write, Rights::Everything];
/// The service that a key is for, in `sks`.
const SERVICE: &str = "b";

impl Rights {
    /// Part of what a key is made of: never changes.
    const fn label(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Read => "read",
            Self::Write => "write",
            Self::Everything => "everything",
        }
    }

    /// The permissions of a service's token that are within the rights. Tags are the owner's.
    const fn permissions(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Read => "rl",
            Self::Write => "racwdxylme",
            Self::Everything => "racwdxyltfmeopi",
        }
    }
}

/// The fields of a key, as tokens repeat them: user, tenant, start, expiry, service, version.
pub type KeyFields<'a> = [&'a str; 6];

/// The value of a key, in Base64.
pub fn value(key: &AccountKey, account: &AccountName, fields: KeyFields<'_>, rights: Rights) -> String {
    // No string that is signed for another purpose begins like this: a method or a permission has no spaces.
    let mut string = format!("user delegation key\n{account}\n{}", rights.label());
    for field in fields {
        string.push('\n');
        string.push_str(field);
    }
    key.sign(&string)
}

/// What the user may do whose key has signed this string; `None` if no key of this account has.
pub fn verify(
    account: &Account,
    user: &UserDelegation,
    string: &str,
    signature: &str,
) -> Result<Option<Rights>, Denial> {
    if !user.authorized_user.is_empty()
        || !user.delegated_user.is_empty()
        || !user.delegated_tenant.is_empty()
    {
        return Err(Denial::failed("saoid, sduoid and skdutid are not supported"));
    }
    if !user.correlation.is_empty() && Guid::parse(&user.correlation).is_none() {
        return Err(Denial::failed("scid is not a GUID").telling("Invalid correlation id format."));
    }
    let made_by = |key: &AccountKey, rights| {
        let value = value(key, &account.name, user.key(), rights);
        AccountKey::parse(&value).is_some_and(|key| key.verifies(string, signature))
    };
    let found = USABLE.into_iter().find(|rights| account.keys.iter().any(|key| made_by(key, *rights)));
    Ok(found)
}

/// A token that a user has signed, within what the user may do and while its key is valid.
pub fn limit(proof: Proof, rights: Option<Rights>, now: DateTime) -> Result<Proof, Denial> {
    let (Some(rights), Proof::Resource(ResourceToken { sas, permissions })) = (rights, &proof) else {
        return Ok(proof);
    };
    let user = sas.delegation().ok_or_else(|| Denial::failed("the token names no delegation key"))?;
    check_key(user, now)?;
    let permissions: String =
        permissions.chars().filter(|letter| rights.permissions().contains(*letter)).collect();
    if permissions.is_empty() {
        let why = "the roles of the user who signed the token allow nothing that it permits";
        return Err(Denial::new(Refusal::AuthorizationPermissionMismatch, why));
    }
    Ok(Proof::Resource(ResourceToken { sas: sas.clone(), permissions }))
}

fn check_key(user: &UserDelegation, now: DateTime) -> Result<(), Denial> {
    let time = |name: &str, text: &str| {
        DateTime::parse(text).ok_or_else(|| Denial::failed(format!("{name} is {text:?}, not a time")))
    };
    let (start, expiry) = (time("skt", &user.key_start)?, time("ske", &user.key_expiry)?);
    if now < start || now >= expiry {
        let shown = |time: DateTime| String::from_utf8_lossy(&time.http_date()).into_owned();
        let detail = format!(
            "Key start [{}] - Key expiry [{}] - Current [{}]",
            shown(start),
            shown(expiry),
            shown(now)
        );
        let why = format!("the user delegation key is valid from {start} to {expiry}; now is {now}");
        return Err(Denial::failed(why)
            .telling(format!("Signature not valid in the specified key time frame: {detail}")));
    }
    match user.key_service.as_str() {
        SERVICE => Ok(()),
        other => Err(Denial::failed(format!("sks is {other:?}; the key is for {SERVICE:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::QueryString;
    use protocol::signing::sas::{BlobTarget, Sas};

    const KEY: &str = "skoid=c4f48289-bb84-4086-b250-6f94a8f64cee&sktid=72f988bf-86f1-41af-91ab-2d7cd011db47&skt=2030-01-01T00%3A00%3A00Z&ske=2030-01-02T00%3A00%3A00Z&sks=b&skv=2021-08-06";

    fn token(more: &str) -> Sas {
        let query = format!("sv=2021-08-06&sr=c&sp=rwlt&se=2030-01-03T00%3A00%3A00Z&{KEY}{more}&sig=x");
        let query = QueryString::parse(&query).unwrap();
        Sas::read_blob(&query, BlobTarget { container: "box", blob: None }).unwrap().unwrap().0
    }

    fn signed(sas: &Sas, rights: Rights) -> String {
        let account = Account::development();
        let user = sas.delegation().unwrap();
        let value = value(&account.keys[0], &account.name, user.key(), rights);
        AccountKey::parse(&value).unwrap().sign(&sas.string_to_sign(account.name.as_str()))
    }

    fn check(sas: &Sas, signature: &str) -> Result<Option<Rights>, Denial> {
        let account = Account::development();
        let string = sas.string_to_sign(account.name.as_str());
        verify(&account, sas.delegation().unwrap(), &string, signature)
    }

    #[test]
    fn a_key_knows_what_its_user_may_do() {
        let sas = token("");
        for rights in USABLE {
            assert_eq!(check(&sas, &signed(&sas, rights)), Ok(Some(rights)));
        }
        assert_eq!(check(&sas, &signed(&sas, Rights::Nothing)), Ok(None));
        assert_eq!(check(&sas, "AAAA"), Ok(None));
        // A key of another day does not sign this token.
        let other = token("&scid=11111111-2222-3333-4444-555555555555");
        assert_eq!(check(&other, &signed(&sas, Rights::Read)), Ok(None));
        assert_eq!(check(&other, &signed(&other, Rights::Read)), Ok(Some(Rights::Read)));
        let bad = token("&scid=mine");
        let denied = check(&bad, &signed(&bad, Rights::Read)).unwrap_err();
        assert_eq!(denied.detail.as_deref(), Some("Invalid correlation id format."));
        let bound = token("&saoid=11111111-2222-3333-4444-555555555555");
        assert!(check(&bound, &signed(&bound, Rights::Everything)).is_err());
    }

    #[test]
    fn a_token_allows_no_more_than_its_user_and_no_longer_than_its_key() {
        let limited = |rights, now: &str| {
            let (sas, permissions) = (Box::new(token("")), "rwlt".to_owned());
            let proof = Proof::Resource(ResourceToken { sas, permissions });
            match limit(proof, Some(rights), DateTime::parse(now).unwrap()) {
                Ok(Proof::Resource(token)) => token.permissions,
                Ok(proof) => format!("{proof:?}"),
                Err(denial) => denial.refusal.code(common::ServiceKind::Blob).to_owned(),
            }
        };
        assert_eq!(limited(Rights::Read, "2030-01-01T00:00:00Z"), "rl");
        assert_eq!(limited(Rights::Write, "2030-01-01T12:00:00Z"), "rwl");
        assert_eq!(limited(Rights::Everything, "2030-01-01T23:59:59Z"), "rwlt");
        assert_eq!(limited(Rights::Nothing, "2030-01-01T12:00:00Z"), "AuthorizationPermissionMismatch");
        assert_eq!(limited(Rights::Everything, "2029-12-31T23:59:59Z"), "AuthenticationFailed");
        assert_eq!(limited(Rights::Everything, "2030-01-02T00:00:00Z"), "AuthenticationFailed");
    }
}
