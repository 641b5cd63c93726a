//! The checks of an authenticated request to the Table service, in the service's order: read from top to bottom.

use std::pin::pin;

use front::{Admission, Body, RequestBody, ServiceKind, require_length, time_allowed};
use http::Response;
use model::{Refusal, limits};
use service::Service;

use crate::access;
use crate::answer::TableFailure;
use crate::extension::Extensions;
use crate::operation::{Call, Context};
use crate::respond;
use crate::table_request::TableRequest;

pub async fn perform(
    service: &Service,
    extensions: &Extensions,
    admission: Admission<'_, TableRequest>,
    body: &mut RequestBody,
) -> Result<Response<Body>, TableFailure> {
    let Admission { front, request, address, service_request: asked, proof } = admission;
    let site = &address.site;
    let grant = access::grant(proof).map_err(|denied| front.deny(request, denied, Some(asked.info.name)))?;
    if !request.query_is_readable {
        return Err(Refusal::QuerySyntax.into());
    }
    if asked.wants_document {
        asked.formats.as_ref().map_err(Clone::clone)?;
    }
    let operation = asked.operation.as_ref().map_err(Clone::clone)?;
    if site.secondary && asked.info.writes {
        return Err(common::Refusal::WritesNotAllowed.into());
    }
    let need = operation.need(&asked.condition);
    grant.permits(&need).inspect_err(|refusal| {
        let why = format!("{grant} does not permit {need}");
        front.log_denied(request, Some(asked.info.name), refusal.code(ServiceKind::Table), &why);
    })?;

    let headers = &request.head.headers;
    if asked.info.takes_body {
        require_length(headers)?;
    }
    let time = time_allowed(&request.query);
    let deadline =
        tokio::time::Instant::from_std(request.arrived) + *time.as_ref().unwrap_or(&limits::REQUEST_TIME_MAX);
    let memory = front.memory.of(&site.account);
    let mut held = memory.nothing();
    let body = body.read_whole(headers, limits::REQUEST_BODY_BYTES_MAX, deadline, &mut held).await?;
    let context = Context {
        service,
        extensions,
        settings: &front.properties,
        site,
        grant: &grant,
        version: request.served_version(),
        odata_3: asked.odata_3,
        request_id: &request.id,
        memory: &memory,
        refusal_log: &front.refusal_log,
        metrics: &front.metrics,
        slow_queries: &front.slow_queries,
        body_bytes: body.len(),
        is_permitted: false,
    };
    let call = Call {
        headers: request.headers(),
        condition: &asked.condition,
        query: &request.query,
        body: &body,
        format: asked.format(),
        facts: None,
    };
    time?;
    let run = pin!(operation.run(&context, &call));
    let answer = tokio::time::timeout_at(deadline, run)
        .await
        .unwrap_or_else(|_| Err(common::Refusal::TimedOut.into()))?;
    Ok(respond::answer(request, asked, answer))
}
