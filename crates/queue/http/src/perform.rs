//! The checks of a request to the Queue service whose sender is known, in the service's order: read from top to bottom.

use common::{Refusal as Shared, limits};
use front::{Admission, Body, RequestBody, require_length};
use http::Response;
use queue_service::QueueService;
use queue_wire::message_body::BODY_BYTES_MAX;

use crate::access;
use crate::answer::Failure;
use crate::operation::{self, Context};
use crate::queue_request::QueueRequest;
use crate::respond;
use crate::{command, parameters};

pub async fn perform(
    service: &QueueService,
    admission: Admission<'_, QueueRequest>,
    body: &mut RequestBody,
) -> Result<Response<Body>, Failure> {
    let Admission { front, request, address, service_request, proof } = admission;
    let site = &address.site;
    let grant = access::grant(proof)
        .map_err(|denial| front.deny(request, denial, Some(service_request.info.name)))?;
    if !request.query_is_readable {
        return Err(Shared::QueryParameterValueInvalid.into());
    }
    let operation = *service_request.operation.as_ref().map_err(Clone::clone)?;
    if site.secondary && service_request.info.writes {
        return Err(Shared::WritesNotAllowed.into());
    }
    let need = operation.need(request.served_version());
    grant.permits(need).inspect_err(|refusal| {
        let why = format!("{grant} does not permit {need}");
        front.log_denied(request, Some(service_request.info.name), refusal.code(), &why);
    })?;

    let command = command::read(request, site.account.as_str(), service_request, operation)?;
    let time = parameters::time_allowed(&request.query)?;
    let headers = &request.head.headers;
    if service_request.info.takes_body {
        require_length(headers)?;
    }
    let deadline = tokio::time::Instant::now() + time.min(limits::REQUEST_TIME_MAX);
    let memory = front.memory.of(&site.account);
    let mut held = memory.nothing();
    let body = match command.reads_body() {
        true => body.read_whole(headers, BODY_BYTES_MAX, deadline, &mut held).await?,
        false => bytes::Bytes::new(),
    };
    let context = Context {
        service,
        properties: &front.properties,
        memory: &memory,
        site,
        version: request.served_version(),
        deadline,
    };
    let run = tokio::time::timeout_at(deadline, operation::run(&context, command, &body));
    let answer = run.await.unwrap_or_else(|_| Err(Shared::TimedOut.into()))?;
    Ok(respond::answer(request, answer))
}
