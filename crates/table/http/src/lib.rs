//! The Table service over HTTP: what a request asks of it, the checks in the service's order, and its answers.
//!
//! Read `perform.rs` first: it has the checks in the service's order.

pub mod access;
mod answer;
mod extension;
mod headers;
mod operation;
mod perform;
mod respond;
mod route;
mod table_request;

use front::{
    Admission, AnyService, Body, OperationInfo, RefusalFacts, RefusedRequest, Request, RequestBody,
    ServiceKind, StorageService,
};
use http::Response;
use model::{AccountName, Refusal, TableName};
use service::Service;
use store::TableRef;
use wire::access_policies::{self, AccessPolicy};
use wire::signing::sas::{Sas, SasFormatError};
use wire::url::QueryString;

pub use extension::{Extensions, hot_document};

use answer::TableFailure;
use table_request::TableRequest;

/// The Table service, to be put behind a front.
pub fn behind_front(service: Service, extensions: Extensions) -> AnyService {
    AnyService::new(TableHttp { service, extensions })
}

#[derive(Debug)]
struct TableHttp {
    service: Service,
    extensions: Extensions,
}

impl StorageService for TableHttp {
    const KIND: ServiceKind = ServiceKind::Table;
    type ServiceRequest = TableRequest;
    type Failure = TableFailure;

    fn read(&self, request: &Request<'_>) -> TableRequest {
        TableRequest::read(request, &self.extensions)
    }

    fn info(asked: &TableRequest) -> &'static OperationInfo {
        asked.info
    }

    fn operations() -> &'static [&'static OperationInfo] {
        &operation::OPERATIONS
    }

    fn token(_: &TableRequest, query: &QueryString) -> Result<Option<(Sas, String)>, SasFormatError> {
        Sas::read(query)
    }

    /// A missing table has no policies; a failure of the store is a failure here too.
    async fn stored_policy(
        &self,
        account: &AccountName,
        token: &Sas,
    ) -> Result<Option<AccessPolicy>, TableFailure> {
        let Sas::Table(token) = token else { return Ok(None) };
        let Ok(name) = TableName::parse(&token.table) else { return Ok(None) };
        if token.identifier.is_empty() {
            return Ok(None);
        }
        let table = TableRef::table(account.clone(), name);
        let document = match self.service.get_policies(&table).await {
            Ok(document) => document.unwrap_or_default(),
            Err(service::Error::Refused { refusal: Refusal::TableNotFound, .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let policies = access_policies::read(&document)?;
        Ok(policies.into_iter().find(|policy| policy.id == token.identifier))
    }

    async fn perform(
        &self,
        admission: Admission<'_, TableRequest>,
        body: &mut RequestBody,
    ) -> Result<Response<Body>, TableFailure> {
        perform::perform(&self.service, &self.extensions, admission, body).await
    }

    fn refuse(&self, request: &Request<'_>, refused: &RefusedRequest<'_, Self>) -> Response<Body> {
        respond::failure(request, refused)
    }

    fn facts(failure: &TableFailure) -> RefusalFacts {
        let (status, code) = failure.refusal.answer();
        RefusalFacts { status, code, timed_out: failure.refusal == common::Refusal::TimedOut }
    }
}
