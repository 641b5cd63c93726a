//! The Table service over HTTP: what a request asks of it, the checks in the service's order, and its answers.
//!
//! Read `perform.rs` first: the checks stand there in the order the service makes them.

pub mod access;
mod answer;
mod headers;
mod operation;
mod operation_info;
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

use answer::Failure;
use table_request::TableRequest;

/// The Table service, to be put behind a front.
pub fn behind_front(service: Service) -> AnyService {
    AnyService::new(TableHttp { service })
}

#[derive(Debug)]
struct TableHttp {
    service: Service,
}

impl StorageService for TableHttp {
    const KIND: ServiceKind = ServiceKind::Table;
    type ServiceRequest = TableRequest;
    type Failure = Failure;

    fn read(&self, request: &Request<'_>) -> TableRequest {
        TableRequest::read(request)
    }

    fn info(asked: &TableRequest) -> &'static OperationInfo {
        asked.info
    }

    fn token(_: &TableRequest, query: &QueryString) -> Result<Option<(Sas, String)>, SasFormatError> {
        Sas::read(query)
    }

    /// A table that is not there has no policies; a store that fails has not said so.
    async fn stored_policy(
        &self,
        account: &AccountName,
        token: &Sas,
    ) -> Result<Option<AccessPolicy>, Failure> {
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
    ) -> Result<Response<Body>, Failure> {
        perform::perform(&self.service, admission, body).await
    }

    fn refuse(&self, request: &Request<'_>, refused: &RefusedRequest<'_, Self>) -> Response<Body> {
        respond::failure(request, refused)
    }

    fn facts(failure: &Failure) -> RefusalFacts {
        let (status, code) = failure.refusal.answer();
        RefusalFacts { status, code, timed_out: failure.refusal == Refusal::TimedOut }
    }
}
