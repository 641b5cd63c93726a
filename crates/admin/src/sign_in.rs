//! Signing in: an account key, a connection string, a shared access signature, the development account, or the
//! administration's token.

use common::{AccountName, DateTime, ServiceKind};
use front::account::{Account, Accounts, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use front::sas::Caller;
use front::{Address, sas as front_sas};
use protocol::QueryString;
use protocol::connection_string::{self, Endpoint};
use protocol::signing::AccountKey;
use protocol::signing::sas::Sas;
use serde::Deserialize;

use crate::refusal::Refusal;
use crate::sas::{self, TokenUrl};
use crate::secret::random_text;
use crate::sessions::{Credential, Member, Session};
use crate::who::AdminProof;

/// The body of `POST /api/session`. It has no `Debug`: it holds secrets.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SignIn {
    connection_string: Option<String>,
    account: Option<String>,
    key: Option<String>,
    sas: Option<String>,
    development: bool,
    admin_token: Option<String>,
}

/// Where a sign-in comes from, and what it is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Desk<'a> {
    pub accounts: &'a Accounts,
    pub proof: &'a AdminProof,
    pub caller: Caller,
}

impl SignIn {
    pub fn check(&self, desk: Desk<'_>) -> Result<Session, Refusal> {
        let admin = match (&self.admin_token, &desk.proof.token) {
            (None, _) => false,
            (Some(sent), Some(token)) if token.is(sent) => true,
            (Some(_), _) => return Err(Refusal::WrongToken),
        };
        let member = match (&self.connection_string, &self.key, &self.sas, self.development) {
            (Some(text), None, None, false) if self.account.is_none() => {
                Some(by_connection_string(text, desk)?)
            }
            (None, Some(key), None, false) => {
                let account = self.account.as_deref().ok_or(Refusal::SignInIncomplete)?;
                let key = AccountKey::parse(key).ok_or(Refusal::WrongKey)?;
                Some(by_key(account, key, desk.accounts)?)
            }
            (None, None, Some(text), false) => Some(by_sas(text, self.account.as_deref(), desk)?),
            (None, None, None, true) if self.account.is_none() => Some(development(desk)?),
            (None, None, None, false) if admin && self.account.is_none() => None,
            _ => return Err(Refusal::SignInIncomplete),
        };
        Ok(Session { member, admin })
    }
}

/// Whether everybody on this machine may use the development account, whose key is public.
pub(crate) fn development_is_open(accounts: &Accounts, proof: &AdminProof) -> bool {
    proof.loopback.is_some() && development_key(accounts).is_some()
}

fn development(desk: Desk<'_>) -> Result<Member, Refusal> {
    if desk.proof.loopback.is_none() {
        return Err(Refusal::DevelopmentElsewhere);
    }
    development_key(desk.accounts).ok_or(Refusal::DevelopmentElsewhere)
}

/// `None` if the account is not served, or has other keys.
fn development_key(accounts: &Accounts) -> Option<Member> {
    by_key(DEVELOPMENT_ACCOUNT, AccountKey::parse(DEVELOPMENT_KEY)?, accounts).ok()
}

fn by_connection_string(text: &str, desk: Desk<'_>) -> Result<Member, Refusal> {
    // One with a token may name a single service.
    let tables = Endpoint::of(ServiceKind::Table, text);
    let endpoint = tables.or_else(|error| {
        let others =
            Endpoint::of(ServiceKind::Queue, text).or_else(|_| Endpoint::of(ServiceKind::Blob, text));
        others.map_err(|_| error)
    });
    let endpoint = endpoint.map_err(|error| Refusal::ConnectionString(error.to_string()))?;
    match endpoint.credential.clone() {
        connection_string::Credential::Key(key) => by_key(&endpoint.account, key, desk.accounts),
        connection_string::Credential::Signature(token) => {
            let account = Some(endpoint.account.as_str()).filter(|account| !account.is_empty());
            by_sas(&format!("{}?{token}", endpoint.url()), account, desk)
        }
    }
}

/// The same check in constant time as for a signed request.
fn by_key(account: &str, key: AccountKey, accounts: &Accounts) -> Result<Member, Refusal> {
    let account = accounts.get(account).ok_or(Refusal::WrongKey)?;
    if !is_key_of(&key, account) {
        return Err(Refusal::WrongKey);
    }
    Ok(Member { account: account.name.clone(), credential: Credential::Owner(key) })
}

/// Keys can't be compared; what they sign can.
pub(crate) fn is_key_of(key: &AccountKey, account: &Account) -> bool {
    let challenge = random_text();
    let signature = key.sign(&challenge);
    account.keys.iter().any(|known| known.verifies(&challenge, &signature))
}

/// A URL with a token, or a token alone with the name of its account.
fn by_sas(text: &str, account: Option<&str>, desk: Desk<'_>) -> Result<Member, Refusal> {
    let url = TokenUrl::split(text);
    let account = match account {
        Some(name) => desk.accounts.get(name),
        None => account_of(&url, desk.accounts).and_then(|name| desk.accounts.get(name.as_str())),
    };
    let account = account
        .ok_or_else(|| wrong("the token's account is not served here, or not named; name it in account"))?;
    let query = QueryString::parse(url.query).ok_or_else(|| wrong("the token is not UTF-8 once decoded"))?;
    let read = sas::read(&url, &query, account).map_err(|error| wrong(&error.to_string()))?;
    let (token, signature) = read.ok_or_else(|| wrong("there is no token here: a token has a sig"))?;
    let string = token.string_to_sign(account.name.as_str());
    if token.delegation().is_some() || !account.keys.iter().any(|key| key.verifies(&string, &signature)) {
        return Err(wrong("the token is not signed with a key of its account"));
    }
    let canonical = token.to_query(&signature);
    check_terms(token, desk.caller)?;
    Ok(Member { account: account.name.clone(), credential: Credential::Token(canonical) })
}

fn wrong(why: &str) -> Refusal {
    Refusal::WrongSas(why.to_owned())
}

/// Tells at once what every request would be refused for. Only the services know the stored access policies.
fn check_terms(token: Sas, caller: Caller) -> Result<(), Refusal> {
    let service = match &token {
        Sas::Table(_) => ServiceKind::Table,
        Sas::Queue(_) => ServiceKind::Queue,
        Sas::Blob(_) => ServiceKind::Blob,
        Sas::Account(account) => {
            let mut served = [ServiceKind::Table, ServiceKind::Queue, ServiceKind::Blob].into_iter();
            let service = served.find(|service| account.services.contains(service.letter()));
            service.unwrap_or(ServiceKind::Table)
        }
    };
    if !token.identifier().is_empty() {
        return Ok(());
    }
    let admitted = front_sas::admit(token, None, DateTime::now(), caller, service);
    admitted.map(drop).map_err(|denial| wrong(&denial.why))
}

/// The account that a URL names.
fn account_of(url: &TokenUrl<'_>, accounts: &Accounts) -> Option<AccountName> {
    let service = url.likely_service().unwrap_or(ServiceKind::Table);
    let found = Address::find(url.scheme, url.host, url.path, accounts, (service, &ServiceKind::ALL));
    found.ok().map(|address| address.site.account)
}
