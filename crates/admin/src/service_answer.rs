//! Requests that the administration makes to a service on behalf of a session, and their answers, read whole.

use bytes::Bytes;
use common::ServiceKind;
use front::{Arrival, RequestBody};
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;

use crate::door::Admin;
use crate::forward::{self, ServiceCall};
use crate::refusal::Refusal;
use crate::sessions::Member;

/// A successful answer.
#[derive(Debug)]
pub(crate) struct ServiceAnswer {
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A GET without a body. What the service refuses is refused here.
pub(crate) async fn get(
    admin: &Admin,
    member: &Member,
    arrival: &Arrival<'_>,
    (service, path, query): (ServiceKind, &str, &str),
) -> Result<ServiceAnswer, Refusal> {
    let mut headers = HeaderMap::new();
    if service == ServiceKind::Table {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json;odata=nometadata"));
    }
    let call = ServiceCall { service, method: Method::GET, path, query: Some(query), headers };
    let own = Arrival {
        at: arrival.at,
        peer: arrival.peer,
        scheme: arrival.scheme,
        connection: arrival.connection,
        head: http::Request::new(()).into_parts().0,
        body: RequestBody::none(),
    };
    let reply =
        forward::call(&admin.services, &admin.endpoints, member, call, own, &mut RequestBody::none()).await?;
    let (head, body) = reply.into_parts();
    // The services hold their answers to 4 MiB.
    let body = body.collect().await.map_err(|_| Refusal::ServiceBroken)?.to_bytes();
    if head.status != StatusCode::OK {
        let code = head.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        let code = code.map(str::to_owned).or_else(|| code_of(&body)).unwrap_or_default();
        return Err(Refusal::Service { status: head.status, code });
    }
    Ok(ServiceAnswer { headers: head.headers, body })
}

/// The code in an error document of tables.
fn code_of(body: &[u8]) -> Option<String> {
    let document: serde_json::Value = serde_json::from_slice(body).ok()?;
    document["odata.error"]["code"].as_str().map(str::to_owned)
}
