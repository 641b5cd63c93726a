//! The Queue service over HTTP: what a request asks of it, the checks in the service's order, and its answers.
//!
//! Read `perform.rs` first: the checks stand there in the order the service makes them.

pub mod access;
mod answer;
mod command;
mod headers;
mod operation;
mod operation_info;
mod parameters;
mod perform;
mod queue_request;
mod respond;
mod route;

use front::{
    Admission, AnyService, Body, OperationInfo, RefusalFacts, RefusedRequest, Request, RequestBody,
    ServiceKind, StorageService,
};
use http::Response;
use protocol::QueryString;
use protocol::access_policies::{self, AccessPolicy};
use protocol::signing::sas::{Sas, SasFormatError};
use queue_model::{AccountName, QueueName, Refusal};
use queue_service::{QueueRef, QueueService};

use answer::Failure;
use queue_request::QueueRequest;

/// The Queue service, to be put behind a front.
pub fn behind_front(service: QueueService) -> AnyService {
    AnyService::new(QueueHttp { service })
}

#[derive(Debug)]
struct QueueHttp {
    service: QueueService,
}

impl StorageService for QueueHttp {
    const KIND: ServiceKind = ServiceKind::Queue;
    type ServiceRequest = QueueRequest;
    type Failure = Failure;

    fn read(&self, request: &Request<'_>) -> QueueRequest {
        QueueRequest::read(request)
    }

    fn info(service_request: &QueueRequest) -> &'static OperationInfo {
        service_request.info
    }

    fn operations() -> &'static [&'static OperationInfo] {
        &operation_info::OPERATIONS
    }

    /// A queue's token does not name its queue, but signs the one that is addressed.
    fn token(
        service_request: &QueueRequest,
        query: &QueryString,
    ) -> Result<Option<(Sas, String)>, SasFormatError> {
        Sas::read_queue(query, service_request.resource.queue())
    }

    /// A queue that is not there has no policies; a store that fails has not said so.
    async fn stored_policy(
        &self,
        account: &AccountName,
        token: &Sas,
    ) -> Result<Option<AccessPolicy>, Failure> {
        let Sas::Queue(token) = token else { return Ok(None) };
        let Ok(name) = QueueName::parse(&token.queue) else { return Ok(None) };
        if token.identifier.is_empty() {
            return Ok(None);
        }
        let queue = QueueRef::new(account, &name);
        let document = match self.service.policies(&queue).await {
            Ok(document) => document.unwrap_or_default(),
            Err(queue_service::Error::Refused(Refusal::QueueNotFound)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let policies = access_policies::read(Self::KIND, &document)?;
        Ok(policies.into_iter().find(|policy| policy.id == token.identifier))
    }

    async fn perform(
        &self,
        admission: Admission<'_, QueueRequest>,
        body: &mut RequestBody,
    ) -> Result<Response<Body>, Failure> {
        perform::perform(&self.service, admission, body).await
    }

    fn refuse(&self, request: &Request<'_>, refused: &RefusedRequest<'_, Self>) -> Response<Body> {
        respond::failure(request, refused)
    }

    fn facts(failure: &Failure) -> RefusalFacts {
        let (status, code) = failure.refusal.answer();
        let timed_out = failure.refusal == common::Refusal::TimedOut.into();
        RefusalFacts { status, code, timed_out }
    }
}
