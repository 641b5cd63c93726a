//! `POST /api/sas`: makes a shared access signature with the session's key, and explains it.

use common::{DateTime, ServiceKind};
use front::{Arrival, RequestBody};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
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
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    kind: Kind,
    /// The table or queue.
    #[serde(default)]
    resource: String,
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
        let encoded =
            || utf8_percent_encode(&self.resource, NON_ALPHANUMERIC).to_string().replace("%2D", "-");
        match self.kind {
            Kind::Table => (ServiceKind::Table, encoded()),
            Kind::Queue => (ServiceKind::Queue, encoded()),
            Kind::Account if self.services.contains('q') && !self.services.contains('t') => {
                (ServiceKind::Queue, String::new())
            }
            Kind::Account => (ServiceKind::Table, String::new()),
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
