//! The Blob service over HTTP: what a request asks of it, the checks in the service's order, and its answers.
//!
//! Read `perform.rs` first: the checks stand there in the order the service makes them.

pub mod access;
mod answer;
mod asked;
mod blob_request;
mod content_metrics;
mod copy_source;
mod download;
pub mod grant;
mod operation;
mod operation_info;
mod perform;
mod public;
mod request_logs;
mod respond;
mod retention;
mod route;
mod upload;

use blob_model::{AccountName, ContainerName, Refusal};
use blob_service::{BlobService, ContainerRef};
use front::{
    Admission, AnyService, Body, OperationInfo, RefusalFacts, RefusedRequest, Request, RequestBody,
    ServiceKind, StorageService,
};
use http::Response;
use protocol::QueryString;
use protocol::access_policies::{self, AccessPolicy};
use protocol::signing::sas::{BlobTarget, Sas, SasFormatError};

use answer::Failure;
use blob_request::BlobRequest;
use route::Resource;

pub use content_metrics::ContentMetrics;
pub use request_logs::RequestLogs;
pub use retention::StoredRetention;

/// What the operator decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Containers that say so can be read without credentials.
    pub public_access: bool,
}

/// The Blob service, to be put behind a front.
pub fn behind_front(service: BlobService, settings: Settings) -> AnyService {
    AnyService::new(BlobHttp { service, settings })
}

#[derive(Debug)]
struct BlobHttp {
    service: BlobService,
    settings: Settings,
}

impl StorageService for BlobHttp {
    const KIND: ServiceKind = ServiceKind::Blob;
    type ServiceRequest = BlobRequest;
    type Failure = Failure;

    fn read(&self, request: &Request<'_>) -> BlobRequest {
        BlobRequest::read(request)
    }

    fn info(service_request: &BlobRequest) -> &'static OperationInfo {
        service_request.info
    }

    fn operations() -> &'static [&'static OperationInfo] {
        &operation_info::OPERATIONS
    }

    fn token(
        service_request: &BlobRequest,
        query: &QueryString,
    ) -> Result<Option<(Sas, String)>, SasFormatError> {
        read_token(&service_request.resource, query)
    }

    /// A container that is not there has no policies; a store that fails has not said so.
    async fn stored_policy(
        &self,
        account: &AccountName,
        token: &Sas,
    ) -> Result<Option<AccessPolicy>, Failure> {
        let Sas::Blob(token) = token else { return Ok(None) };
        let Ok(name) = ContainerName::parse(&token.container) else { return Ok(None) };
        if token.identifier.is_empty() {
            return Ok(None);
        }
        let container = ContainerRef::new(account, &name);
        let document = match self.service.container_policies(&container, None).await {
            Ok(found) => found.policies.unwrap_or_default(),
            Err(blob_service::Error::Refused(Refusal::ContainerNotFound)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if document.is_empty() {
            return Ok(None);
        }
        let policies = access_policies::read(Self::KIND, &document)?;
        Ok(policies.into_iter().find(|policy| policy.id == token.identifier))
    }

    async fn admits_anyone(
        &self,
        account: &AccountName,
        service_request: &BlobRequest,
    ) -> Result<bool, Failure> {
        public::admits(self, account, service_request).await
    }

    async fn perform(
        &self,
        admission: Admission<'_, BlobRequest>,
        body: &mut RequestBody,
    ) -> Result<Response<Body>, Failure> {
        perform::perform(self, admission, body).await
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

/// A token does not name its container or blob, but signs the one that is addressed.
fn read_token(resource: &Resource, query: &QueryString) -> Result<Option<(Sas, String)>, SasFormatError> {
    let target = BlobTarget { container: resource.container(), blob: resource.blob() };
    let read = Sas::read_blob(query, target)?;
    match (&read, resource) {
        // Of the account itself there is only its own kind of token.
        (Some((Sas::Blob(_), _)), Resource::Service | Resource::Nothing) => Err(SasFormatError::Level("c")),
        _ => Ok(read),
    }
}
