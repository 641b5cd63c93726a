//! What a storage service is to the front: it reads what a request asks of it, does it, and writes the answer.
//!
//! A service owns its operations, their order of checks, and the bytes of its answers and refusals. The front owns
//! sockets, accounts, signatures, CORS, request logs and metrics, the same for all services.

use std::fmt;
use std::future::Future;

use common::{AccountName, Refusal};
use http::Response;
use protocol::QueryString;
use protocol::access_policies::AccessPolicy;
use protocol::signing::sas::{Sas, SasFormatError};

use crate::access::{Denial, Proof};
use crate::address::Address;
use crate::bearer::Bearer;
use crate::body::RequestBody;
use crate::operation_info::OperationInfo;
use crate::pipeline::Front;
use crate::request::Request;
use crate::response_body::Body;
use common::ServiceKind;

pub trait StorageService: fmt::Debug + Send + Sync + 'static {
    const KIND: ServiceKind;

    /// What a request's head asks of this service. A request that will be refused has one too.
    type ServiceRequest: Send + Sync;

    /// Why a request fails: a refusal that all services share, or one of its own.
    type Failure: From<Refusal> + From<Denial> + Send;

    /// Reads the head, once, before anything is checked.
    fn read(&self, request: &Request<'_>) -> Self::ServiceRequest;

    /// The operation, for logs and metrics; also of a request that can't be read in full.
    fn info(service_request: &Self::ServiceRequest) -> &'static OperationInfo;

    /// All that `info` can return, so that metrics know them before the first request. What is missing here is counted
    /// as another operation.
    fn operations() -> &'static [&'static OperationInfo];

    /// The shared access signature in the query, and its `sig`; `None` if there is none. What a token signs depends on the
    /// resource that is addressed.
    fn token(
        service_request: &Self::ServiceRequest,
        query: &QueryString,
    ) -> Result<Option<(Sas, String)>, SasFormatError>;

    /// The stored access policy that a token of this service names. `None` if the token names none, or it does not exist.
    fn stored_policy(
        &self,
        account: &AccountName,
        token: &Sas,
    ) -> impl Future<Output = Result<Option<AccessPolicy>, Self::Failure>> + Send;

    /// Whether a request without credentials may go on, as `Proof::Anyone`. The service still judges what it asks.
    fn admits_anyone(
        &self,
        account: &AccountName,
        service_request: &Self::ServiceRequest,
    ) -> impl Future<Output = Result<bool, Self::Failure>> + Send {
        let _ = (account, service_request);
        async { Ok(false) }
    }

    /// Does what the request asks, for an authenticated caller. The remaining checks are made here, in the service's own
    /// order.
    fn perform(
        &self,
        admission: Admission<'_, Self::ServiceRequest>,
        body: &mut RequestBody,
    ) -> impl Future<Output = Result<Response<Body>, Self::Failure>> + Send;

    /// The answer to a refused request.
    fn refuse(&self, request: &Request<'_>, refused: &RefusedRequest<'_, Self>) -> Response<Body>;

    /// What logs and metrics say of a refusal.
    fn facts(failure: &Self::Failure) -> RefusalFacts;
}

/// A request that is refused: what it asks, why it is refused, and what the answer may show.
#[derive(Debug)]
pub struct RefusedRequest<'a, S: StorageService + ?Sized> {
    pub service_request: &'a S::ServiceRequest,
    pub failure: &'a S::Failure,
    /// The caller is authenticated. Only then may the answer show what was asked for.
    pub is_known: bool,
    /// For refusals with a challenge.
    pub bearer: &'a Bearer,
}

/// A refusal in logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalFacts {
    pub status: u16,
    pub code: &'static str,
    /// The request ran out of time.
    pub timed_out: bool,
}

/// An authenticated request, on its way to its service.
#[derive(Debug)]
pub struct Admission<'a, A> {
    pub front: &'a Front,
    pub request: &'a Request<'a>,
    pub address: &'a Address<'a>,
    pub service_request: &'a A,
    pub proof: Proof,
}
