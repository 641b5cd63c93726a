//! What the front does for every request, the same for all services. Read it from top to bottom.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use common::{DateTime, Refusal, limits};
use http::Response;
use http::header::{CONTENT_LENGTH, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use protocol::QueryString;
use protocol::names;
use store::{Engine, Gate};

use crate::access::{Denial, Proof};
use crate::account::SharedAccounts;
use crate::address::Address;
use crate::analytics::{Analytics, Ending, Exchange, Observations};
use crate::authenticate::{self, ClockCheck, Evidence, VerifiedCredential};
use crate::bearer::{Bearer, SharedBearer};
use crate::body::RequestBody;
use crate::connections::Connection;
use crate::cors;
use crate::delegation;
use crate::health;
use crate::memory::Memory;
use crate::metrics::{Answered, Metrics};
use crate::operation_info::OperationInfo;
use crate::preflight;
use crate::properties_store::PropertiesStore;
use crate::refusal_log::{RefusalLog, cut};
use crate::request::Request;
use crate::response_body::Body;
use crate::sas;
use crate::service::{Admission, RefusedRequest, StorageService};
use crate::slow_queries::SlowQueries;
use crate::traces::Traces;
use common::ServiceKind;

/// What all services and all connections share.
pub struct Front {
    pub engine: Arc<dyn Engine>,
    pub gate: Arc<Gate>,
    pub accounts: SharedAccounts,
    pub bearer: SharedBearer,
    pub check_clock: bool,
    pub properties: Arc<PropertiesStore>,
    pub analytics: Arc<Analytics>,
    pub memory: Arc<Memory>,
    pub metrics: Arc<Metrics>,
    pub traces: Option<Arc<Traces>>,
    pub slow_queries: SlowQueries,
    pub refusal_log: RefusalLog,
}

impl Front {
    /// Logs a denial and returns it.
    pub fn deny(&self, request: &Request<'_>, denial: Denial, operation: Option<&str>) -> Denial {
        self.log_denied(request, operation, denial.refusal.code(request.service), &denial.why);
        denial
    }

    /// Tells the operator which request was denied, and why.
    pub fn log_denied(&self, request: &Request<'_>, operation: Option<&str>, code: &str, why: &str) {
        self.refusal_log.write(|| {
            let comp = request.query.get_ignoring_case(names::COMP);
            tracing::warn!(
                request_id = request.id, method = %request.head.method, path = cut(request.head.uri.path()),
                comp = comp.map(cut), operation, code, why = cut(why), "access refused"
            );
        });
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Front")
    }
}

/// A `StorageService` without its types.
pub(crate) trait ErasedService: fmt::Debug + Send + Sync {
    fn kind(&self) -> ServiceKind;
    fn operations(&self) -> &'static [&'static OperationInfo];
    fn handle<'a>(
        &'a self,
        front: &'a Front,
        request: &'a Request<'a>,
        body: RequestBody,
        connection: &'a Arc<Connection>,
    ) -> BoxedAnswer<'a>;
}

type BoxedAnswer<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

impl<S: StorageService> ErasedService for S {
    fn kind(&self) -> ServiceKind {
        S::KIND
    }

    fn operations(&self) -> &'static [&'static OperationInfo] {
        S::operations()
    }

    fn handle<'a>(
        &'a self,
        front: &'a Front,
        request: &'a Request<'a>,
        body: RequestBody,
        connection: &'a Arc<Connection>,
    ) -> BoxedAnswer<'a> {
        // Made in its place: it has some kilobytes, which `Box::pin` would copy.
        let made = Box::write(Box::new_uninit(), handle(self, front, request, body, connection));
        Box::into_pin(made)
    }
}

/// A service of any type. Each service's crate makes its own, so that the code that serves it is compiled there.
#[derive(Clone, Debug)]
pub struct AnyService(Arc<dyn ErasedService>);

impl AnyService {
    pub fn new(service: impl StorageService) -> Self {
        Self(Arc::new(service))
    }
}

/// The services of this server, at most one of each kind.
#[derive(Clone, Debug)]
pub struct Services {
    served: Vec<Arc<dyn ErasedService>>,
    kinds: Vec<ServiceKind>,
}

impl Services {
    pub fn new() -> Self {
        Self { served: Vec::new(), kinds: Vec::new() }
    }

    /// Adds a service. It replaces one of the same kind.
    pub fn with(mut self, AnyService(service): AnyService) -> Self {
        self.served.retain(|known| known.kind() != service.kind());
        self.served.push(service);
        self.kinds = self.served.iter().map(|service| service.kind()).collect();
        self
    }

    pub fn kinds(&self) -> &[ServiceKind] {
        &self.kinds
    }

    /// Every operation of every service.
    pub(crate) fn operations(
        &self,
    ) -> impl Iterator<Item = (ServiceKind, &'static [&'static OperationInfo])> + '_ {
        self.served.iter().map(|service| (service.kind(), service.operations()))
    }

    fn find(&self, kind: ServiceKind) -> Option<&Arc<dyn ErasedService>> {
        self.served.iter().find(|service| service.kind() == kind)
    }
}

impl Default for Services {
    fn default() -> Self {
        Self::new()
    }
}

/// A request as received, and where.
#[derive(Debug)]
pub struct Arrival<'a> {
    pub at: Instant,
    pub peer: SocketAddr,
    pub scheme: &'static str,
    pub connection: &'a Arc<Connection>,
    pub head: Parts,
    pub body: RequestBody,
}

/// Answers health checks itself, and every other request by the service that it is for: that of its port, unless its host
/// names another.
pub(crate) async fn answer(
    front: &Front,
    services: &Services,
    of_port: ServiceKind,
    arrival: Arrival<'_>,
) -> Response<Body> {
    let Arrival { at, peer, scheme, connection, head, body } = arrival;
    let accounts = front.accounts.current();
    let request = Request::read(&head, (peer, scheme), &accounts, (of_port, services.kinds()), at);
    if !names_a_blob(&request)
        && let Some(response) = health::answer(head.uri.path(), &*front.engine, &front.gate)
    {
        return response;
    }
    // `Server` asserts that the port's service is served, and `Address::find` finds only those served.
    let service = services.find(request.service).unwrap_or_else(|| unreachable!("{}", request.service));
    service.handle(front, &request, body, connection).await
}

/// In host style the paths of the health checks are those of blobs. In path style no account has their name.
fn names_a_blob(request: &Request<'_>) -> bool {
    request.address.as_ref().is_ok_and(|address| address.site.service == ServiceKind::Blob)
}

async fn handle<S: StorageService>(
    service: &S,
    front: &Front,
    request: &Request<'_>,
    mut body: RequestBody,
    connection: &Arc<Connection>,
) -> Response<Body> {
    let head = request.head;
    let bearer = front.bearer.current();
    let service_request = service.read(request);
    let properties = match &request.address {
        Ok(address) => front.properties.of(&address.site.account, S::KIND).await,
        Err(_) => front.properties.fresh(S::KIND).clone(),
    };
    let refuse = |failure: &S::Failure, is_known| {
        service.refuse(
            request,
            &RefusedRequest { service_request: &service_request, failure, is_known, bearer: &bearer },
        )
    };
    let (mut response, refusal, observations) = if request.is_preflight() {
        match cors::preflight(&properties.cors, &head.headers) {
            Ok(allowed) => (preflight::allowed(request, allowed), None, Observations::default()),
            Err(refusal) => {
                let failure = refusal.into();
                (refuse(&failure, false), Some(S::facts(&failure)), Observations::default())
            }
        }
    } else {
        let Outcome { result, is_known, observations } =
            admit_and_perform(service, front, &bearer, request, &service_request, &mut body).await;
        let (mut response, refusal) = match result {
            Ok(response) => (response, None),
            Err(failure) => {
                let mut refused = refuse(&failure, is_known);
                refused.body_mut().hold(|| {
                    let known = request.address.as_ref().ok().filter(|_| is_known)?;
                    Some(front.memory.of(&known.site.account).nothing())
                });
                (refused, Some(S::facts(&failure)))
            }
        };
        cors::decorate(&mut response, &properties.cors, &head.method, || head.headers.get(ORIGIN));
        (response, refusal, observations)
    };
    body.discard(connection);
    let info = S::info(&service_request);
    let elapsed = request.arrived.elapsed();
    let answered = Answered {
        service: S::KIND,
        info,
        status: response.status().as_u16(),
        code: refusal.map(|refusal| refusal.code),
        elapsed,
        method: head.method.as_str(),
        path: head.uri.path(),
        account: request.address.as_ref().ok().map(|address| address.site.account.as_str()),
    };
    front.metrics.count(&answered);
    if let Some(traces) = &front.traces {
        traces.note(&head.headers, &answered, &request.id);
    }
    if let Ok(address) = &request.address {
        let ending = Ending { info, refusal, observations, elapsed };
        let exchange = Exchange::new(&front.analytics, &properties, request, address, &ending, &response);
        response.body_mut().carry(exchange);
    }
    tracing::debug!(
        request_id = request.id,
        service = S::KIND.name(),
        method = %head.method,
        path = head.uri.path(),
        status = response.status().as_u16(),
        elapsed_us = elapsed.as_micros() as u64,
        "request"
    );
    response
}

/// The result of a request, and what was observed of it after its head.
struct Outcome<F> {
    result: Result<Response<Body>, F>,
    is_known: bool,
    observations: Observations,
}

/// The checks before the caller is known, then the service's own.
async fn admit_and_perform<S: StorageService>(
    service: &S,
    front: &Front,
    bearer: &Bearer,
    request: &Request<'_>,
    service_request: &S::ServiceRequest,
    body: &mut RequestBody,
) -> Outcome<S::Failure> {
    let (proof, address) = match admit(service, front, bearer, request, service_request).await {
        Ok(admitted) => admitted,
        Err(failure) => {
            return Outcome { result: Err(failure), is_known: false, observations: Observations::default() };
        }
    };
    let identity = match &proof {
        Proof::Roles(_, identity) => Some((**identity).clone()),
        Proof::Anyone | Proof::Owner | Proof::Account(_) | Proof::Resource(_) => None,
    };
    let admission = Admission { front, request, address, service_request, proof };
    let result = service.perform(admission, body).await;
    let observations = Observations { identity, body_bytes: body.received(), broken: body.is_broken() };
    Outcome { result, is_known: true, observations }
}

/// Version, address, signature: who the caller is. Also of a part of a batch, which is a request of its own.
pub async fn admit<'r, S: StorageService>(
    service: &S,
    front: &Front,
    bearer: &Bearer,
    request: &'r Request<'r>,
    service_request: &S::ServiceRequest,
) -> Result<(Proof, &'r Address<'r>), S::Failure> {
    let version = request.version?;
    let address = request.address.as_ref().map_err(|refusal| *refusal)?;
    let Address { site, account, .. } = address;
    let evidence = Evidence {
        method: &request.head.method,
        target: &request.head.uri,
        query: &request.query,
        headers: &request.head.headers,
        site,
        version,
        https: request.caller().https,
    };
    if request.is_anonymous() && service.admits_anyone(&site.account, service_request).await? {
        return Ok((Proof::Anyone, address));
    }
    let clock = ClockCheck { now: SystemTime::now(), is_checked: front.check_clock };
    let verified =
        authenticate::verify(&evidence, account, bearer, clock, || S::token(service_request, &request.query))
            .map_err(|denial| front.deny(request, denial, None))?;
    let proof = match verified {
        VerifiedCredential::Owner => Proof::Owner,
        VerifiedCredential::Roles(roles, identity) => Proof::Roles(roles, identity),
        VerifiedCredential::Token(token, delegated) => {
            let policy = service.stored_policy(&site.account, &token).await?;
            sas::admit(*token, policy.as_ref(), DateTime::now(), request.caller(), S::KIND)
                .and_then(|proof| delegation::limit(proof, delegated, DateTime::now()))
                .map_err(|denial| front.deny(request, denial, None))?
        }
    };
    Ok((proof, address))
}

/// The option `timeout`, in seconds. A value above the service's limit means the limit.
pub fn time_allowed(query: &QueryString) -> Result<Duration, Refusal> {
    let Some(text) = query.get(names::TIMEOUT).filter(|text| !text.is_empty()) else {
        return Ok(limits::REQUEST_TIME_MAX);
    };
    let seconds: u64 = text.parse().map_err(|_| Refusal::QueryParameterValueInvalid)?;
    if seconds == 0 {
        return Err(Refusal::QueryParameterValueInvalid);
    }
    Ok(Duration::from_secs(seconds).min(limits::REQUEST_TIME_MAX))
}

/// A request with neither a length nor chunks has no body, which its client most likely did not intend.
pub fn require_length(headers: &http::HeaderMap) -> Result<(), Refusal> {
    let has_length = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if has_length { Ok(()) } else { Err(Refusal::ContentLengthMissing) }
}
