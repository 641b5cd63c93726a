//! What a storage service is to the front: it reads what a request asks of it, does it, and says how its answers look.
//!
//! A service owns its operations, their order of checks, and the bytes of its answers and refusals. It does not own
//! sockets, accounts, signatures, browsers' rules, request logs or metrics: those are the front's, the same for all.

use std::fmt;
use std::future::Future;

use common::{AccountName, Refusal};
use http::Response;
use protocol::Query;
use protocol::access_policies::AccessPolicy;
use protocol::signing::sas::{Malformed, Sas};

use crate::access::{Denied, Proof};
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

    /// What a request's head asks of this service. Also a request that will be refused has one.
    type Asked: Send + Sync;

    /// Why there is no answer: one of the refusals that all services share, or one of its own.
    type Failure: From<Refusal> + From<Denied> + Send;

    /// Reads what the head asks, once, before anything is checked.
    fn read(&self, request: &Request<'_>) -> Self::Asked;

    /// The operation as logs and metrics name it, as far as it can be told.
    fn info(asked: &Self::Asked) -> &'static OperationInfo;

    /// The shared access signature that the query carries, and its signature; `None` if it carries none. What a token of
    /// a resource signs depends on the resource that is asked for.
    fn token(asked: &Self::Asked, query: &Query) -> Result<Option<(Sas, String)>, Malformed>;

    /// The stored access policy that a token of this service names. `None` if there is none.
    fn stored_policy(
        &self,
        account: &AccountName,
        token: &Sas,
    ) -> impl Future<Output = Result<Option<AccessPolicy>, Self::Failure>> + Send;

    /// Does what was asked, for a caller who has proved who they are. The remaining checks are made here, in the
    /// service's own order.
    fn perform(
        &self,
        admission: Admission<'_, Self::Asked>,
        body: &mut RequestBody,
    ) -> impl Future<Output = Result<Response<Body>, Self::Failure>> + Send;

    /// The answer that says no.
    fn refuse(&self, request: &Request<'_>, refused: &Refused<'_, Self>) -> Response<Body>;

    /// What logs and metrics say of a refusal.
    fn facts(failure: &Self::Failure) -> RefusalFacts;
}

/// A request that is refused: what it asked, why not, and what the answer may show.
#[derive(Debug)]
pub struct Refused<'a, S: StorageService + ?Sized> {
    pub asked: &'a S::Asked,
    pub failure: &'a S::Failure,
    /// The caller has proved who they are. What they asked for shows in a refusal only then.
    pub is_known: bool,
    /// For refusals that ask for a bearer token.
    pub bearer: &'a Bearer,
}

/// A refusal in logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalFacts {
    pub status: u16,
    pub code: &'static str,
    /// The time for the request was over.
    pub timed_out: bool,
}

/// A request whose sender is known, on its way to its service.
#[derive(Debug)]
pub struct Admission<'a, A> {
    pub front: &'a Front,
    pub request: &'a Request<'a>,
    pub address: &'a Address<'a>,
    pub asked: &'a A,
    pub proof: Proof,
}
