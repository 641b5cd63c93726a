//! `POST /api/sas`: makes a shared access signature with the session's key, and explains it.

use common::{DateTime, ServiceKind};
use front::{Arrival, RequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::door::Admin;
use crate::endpoint::ServiceEndpoint;
use crate::refusal::Refusal;
use crate::reply::{self, Reply};
use crate::sas::{self, KeyRangeText, Resource, TokenRequest};
use crate::session_api::{place, require_json};
use crate::sessions::{Credential, Member};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Account,
    Table,
    Queue,
    Container,
    Blob,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    kind: Kind,
    /// The table, queue or container.
    #[serde(default)]
    resource: String,
    /// The blob, in this container.
    #[serde(default)]
    blob: String,
    #[serde(default)]
    permissions: String,
    #[serde(default)]
    start: String,
    #[serde(default)]
    expiry: String,
    #[serde(default)]
    ip: String,
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    start_pk: String,
    #[serde(default)]
    start_rk: String,
    #[serde(default)]
    end_pk: String,
    #[serde(default)]
    end_rk: String,
    #[serde(default)]
    services: String,
    #[serde(default)]
    resource_types: String,
}

#[derive(Debug, Serialize)]
struct Made {
    token: String,
    url: String,
    explanation: Vec<String>,
}

pub(crate) async fn make(
    admin: &Admin,
    member: &Member,
    arrival: &Arrival<'_>,
    host: &str,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let Credential::Owner(key) = &member.credential else { return Err(Refusal::NotOwner) };
    require_json(&arrival.head.headers)?;
    let body = admin.read_body(arrival, body).await?;
    let wanted: Wanted = serde_json::from_slice(&body).map_err(|error| Refusal::NotJson(place(&error)))?;
    let accounts = admin.services.front().accounts.current();
    // The account, or this key of it, may have gone with a reload.
    let account =
        accounts.get(member.account.as_str()).filter(|account| crate::sign_in::is_key_of(key, account));
    let account = account.ok_or(Refusal::WrongKey)?;
    let (service, path) = wanted.place();
    let now = DateTime::now();
    let token = wanted.request()?.token(now)?;
    let token = token.to_query(&token.sign(account.name.as_str(), key));
    let endpoint = ServiceEndpoint::of(&admin.endpoints, service, arrival.scheme);
    let endpoint = endpoint.ok_or(Refusal::NotServed(service))?;
    let url = format!("{}/{path}?{token}", endpoint.url(host, &account.name));
    let explanation = sas::explain(&url, account, now)?;
    let explanation = explanation.lines().map(str::to_owned).collect();
    Ok(reply::ok(&Made { token, url, explanation }))
}

impl Wanted {
    /// The service that the token's URL is of, and its path after the account.
    fn place(&self) -> (ServiceKind, String) {
        let resource = encoded(&self.resource);
        match self.kind {
            Kind::Table => (ServiceKind::Table, resource),
            Kind::Queue => (ServiceKind::Queue, resource),
            Kind::Container => (ServiceKind::Blob, resource),
            Kind::Blob => (ServiceKind::Blob, blob_path(&resource, &self.blob)),
            Kind::Account => {
                let in_order = [ServiceKind::Table, ServiceKind::Queue, ServiceKind::Blob].into_iter();
                let mut named = in_order.filter(|service| self.services.contains(service.letter()));
                (named.next().unwrap_or(ServiceKind::Table), String::new())
            }
        }
    }

    fn request(self) -> Result<TokenRequest, Refusal> {
        let resource = match self.kind {
            Kind::Table => {
                let checked = model::TableName::parse(&self.resource);
                checked.map_err(|_| Refusal::TableName(self.resource.clone()))?;
                let range = KeyRangeText {
                    from: self.start_pk,
                    from_row: self.start_rk,
                    to: self.end_pk,
                    to_row: self.end_rk,
                };
                Resource::Table { table: self.resource, range }
            }
            Kind::Queue => Resource::Queue { queue: self.resource },
            Kind::Container => Resource::Container { container: self.resource },
            Kind::Blob => Resource::Blob { container: self.resource, blob: self.blob },
            Kind::Account => {
                Resource::Account { services: self.services, resource_types: self.resource_types }
            }
        };
        Ok(TokenRequest {
            resource,
            permissions: self.permissions,
            starts: self.start,
            expires: self.expiry,
            ip: self.ip,
            protocol: self.protocol,
            policy: self.policy,
        })
    }
}

/// As in the path of a URL.
fn encoded(name: &str) -> String {
    const PLAIN: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'$');
    utf8_percent_encode(name, PLAIN).to_string()
}

/// The path of a blob. Clients take the parts `.` and `..` out of a path, and a slash at its end; none of them touches a
/// slash that is encoded.
fn blob_path(container: &str, name: &str) -> String {
    let is_kept = !name.split('/').any(|part| matches!(part, "" | "." | ".."));
    let slash = if is_kept { "/" } else { "%2F" };
    let parts: Vec<String> = name.split('/').map(encoded).collect();
    format!("{container}{slash}{}", parts.join(slash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_client_changes_the_path_of_a_blob() {
        for (name, expected) in [
            ("a/b c.txt", "pics/a/b%20c.txt"),
            ("100%?#&+é", "pics/100%25%3F%23%26%2B%C3%A9"),
            ("..", "pics%2F.."),
            ("a/../b", "pics%2Fa%2F..%2Fb"),
            ("a//b", "pics%2Fa%2F%2Fb"),
            ("a/", "pics%2Fa%2F"),
            ("...", "pics/..."),
        ] {
            assert_eq!(blob_path("pics", name), expected);
        }
    }
}
