//! A service of a few lines: a text, streams in and out, a refusal of its own, and service properties.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use common::throttle::{ResourceName, Target, Throttle};
use common::{AccountName, Refusal};
use front::access::Denial;
use front::{
    Admission, Body, BodyFailure, BrokenStream, Class, Memory, OperationInfo, RefusalFacts, RefusedRequest,
    Request, RequestBody, ServiceKind, StorageService, held_bytes,
};
use futures_core::Stream;
use http::{Method, Response};
use protocol::QueryString;
use protocol::access_policies::AccessPolicy;
use protocol::service_properties::Update;
use protocol::signing::sas::{Sas, SasFormatError};

const TAKING_COSTS: u64 = 30;

#[derive(Debug)]
pub struct Toy {
    pub throttle: Option<Arc<Throttle>>,
}

impl Toy {
    /// Taking a toy costs tokens of this toy and of the account.
    fn take(&self, account: &AccountName, toy: &str) -> Result<(), ToyFailure> {
        let Some(throttle) = &self.throttle else { return Ok(()) };
        let resource = Some(ResourceName { service: Self::KIND, parts: &[toy] });
        throttle.admit(account, resource, Instant::now()).map_err(|target| match target {
            Target::Account => ToyFailure::Shared(Refusal::AccountBusy),
            Target::Resource => ToyFailure::ToyInUse,
        })?;
        throttle.spend(account, resource, TAKING_COSTS, Instant::now());
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum ToyRequest {
    Toys,
    /// A toy by its name.
    Take(String),
    Broken,
    Stream {
        length: u64,
        sent: u64,
    },
    Sink,
    GetProperties,
    SetProperties,
    Nothing,
}

#[derive(Debug)]
pub enum ToyFailure {
    Shared(Refusal),
    ToyBroken,
    ToyInUse,
}

impl From<Refusal> for ToyFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Shared(refusal)
    }
}

impl From<Denial> for ToyFailure {
    fn from(denial: Denial) -> Self {
        Self::Shared(denial.refusal)
    }
}

impl From<BodyFailure> for ToyFailure {
    fn from(failure: BodyFailure) -> Self {
        match failure {
            BodyFailure::Refused(refusal) => Self::Shared(refusal),
            BodyFailure::Broken => Self::ToyBroken,
        }
    }
}

impl From<store::Error> for ToyFailure {
    fn from(error: store::Error) -> Self {
        panic!("the store of a test fails: {error}")
    }
}

static READS: OperationInfo = OperationInfo {
    name: "ReadToys",
    class: Class::Read,
    writes: false,
    takes_body: false,
    shows_document: true,
};
static WRITES: OperationInfo = OperationInfo {
    name: "WriteToys",
    class: Class::Write,
    writes: true,
    takes_body: true,
    shows_document: false,
};

impl StorageService for Toy {
    const KIND: ServiceKind = ServiceKind::Queue;
    type ServiceRequest = ToyRequest;
    type Failure = ToyFailure;

    fn read(&self, request: &Request<'_>) -> ToyRequest {
        let Ok(address) = &request.address else { return ToyRequest::Nothing };
        let mut segments = address.path.trim_start_matches('/').split('/');
        let verb = segments.next().unwrap_or_default();
        let rest = segments.next().unwrap_or_default();
        let length = || rest.parse().unwrap_or_default();
        let reads = request.head.method == Method::GET;
        match verb {
            "toys" => ToyRequest::Toys,
            "take" => ToyRequest::Take(rest.to_owned()),
            "broken" => ToyRequest::Broken,
            "sink" => ToyRequest::Sink,
            "stream" => ToyRequest::Stream { length: length(), sent: length() },
            "cut" => ToyRequest::Stream { length: length(), sent: length() / 2 },
            "" if request.query.get("comp") == Some("properties") && reads => ToyRequest::GetProperties,
            "" if request.query.get("comp") == Some("properties") => ToyRequest::SetProperties,
            _ => ToyRequest::Nothing,
        }
    }

    fn info(asked: &ToyRequest) -> &'static OperationInfo {
        match asked {
            ToyRequest::Sink | ToyRequest::SetProperties => &WRITES,
            _ => &READS,
        }
    }

    fn operations() -> &'static [&'static OperationInfo] {
        static OPERATIONS: [&OperationInfo; 2] = [&READS, &WRITES];
        &OPERATIONS
    }

    fn token(_: &ToyRequest, query: &QueryString) -> Result<Option<(Sas, String)>, SasFormatError> {
        Sas::read_queue(query, "toys")
    }

    async fn stored_policy(&self, _: &AccountName, _: &Sas) -> Result<Option<AccessPolicy>, ToyFailure> {
        Ok(None)
    }

    async fn perform(
        &self,
        admission: Admission<'_, ToyRequest>,
        body: &mut RequestBody,
    ) -> Result<Response<Body>, ToyFailure> {
        let Admission { front, request, address, service_request: asked, .. } = admission;
        let account = &address.site.account;
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        let body = match asked {
            ToyRequest::Toys => Body::sized(format!("toys of {account}")),
            ToyRequest::Take(toy) => {
                self.take(account, toy)?;
                Body::sized(format!("{toy} of {account}"))
            }
            &ToyRequest::Stream { length, sent } => {
                Body::stream(length, Zeros::new(sent, front.memory.clone()))
            }
            ToyRequest::Sink => {
                let (mut bytes, memory) = (0, front.memory.of(account));
                while let Some(piece) = body.next(deadline, &memory).await? {
                    bytes += piece.len();
                }
                Body::sized(format!("{bytes} bytes"))
            }
            ToyRequest::GetProperties => {
                Body::sized(front.properties.get(account, ServiceKind::Queue).await?.write())
            }
            ToyRequest::SetProperties => {
                let mut held = front.memory.nothing();
                let body = body.read_whole(&request.head.headers, 4096, deadline, &mut held).await?;
                front.properties.change(account, ServiceKind::Queue, &Update::read(&body)?).await?;
                let mut response = Response::new(Body::empty());
                *response.status_mut() = http::StatusCode::ACCEPTED;
                return Ok(response);
            }
            ToyRequest::Broken | ToyRequest::Nothing => return Err(ToyFailure::ToyBroken),
        };
        Ok(Response::new(body))
    }

    fn refuse(&self, _: &Request<'_>, refused: &RefusedRequest<'_, Self>) -> Response<Body> {
        let facts = Self::facts(refused.failure);
        let mut response = Response::new(Body::sized(format!("toy: {}", facts.code)));
        *response.status_mut() = http::StatusCode::from_u16(facts.status).unwrap();
        response
    }

    fn facts(failure: &ToyFailure) -> RefusalFacts {
        match failure {
            ToyFailure::Shared(refusal) => {
                let (status, code) = refusal.answer(Self::KIND);
                RefusalFacts { status, code, timed_out: false }
            }
            ToyFailure::ToyBroken => RefusalFacts { status: 418, code: "ToyBroken", timed_out: false },
            ToyFailure::ToyInUse => RefusalFacts { status: 503, code: "ToyInUse", timed_out: false },
        }
    }
}

const PIECE_BYTES: usize = 128 * 1024;
const PIECES_MAX: usize = 3;

/// Zeros in pieces, each of which is counted as memory for requests.
struct Zeros {
    left: u64,
    memory: Arc<Memory>,
    /// Those that were made and not yet sent. Other tests have streams beside this one.
    pieces: Arc<AtomicUsize>,
}

impl Zeros {
    fn new(left: u64, memory: Arc<Memory>) -> Self {
        Self { left, memory, pieces: Arc::default() }
    }
}

struct Piece {
    zeros: Bytes,
    pieces: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.zeros
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.pieces.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stream for Zeros {
    type Item = Result<Bytes, BrokenStream>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let bytes = PIECE_BYTES.min(usize::try_from(self.left).unwrap_or(PIECE_BYTES));
        self.left -= bytes as u64;
        let mut held = self.memory.nothing();
        assert!(held.resize(bytes), "a slow client holds more than its bound");
        assert!(self.pieces.fetch_add(1, Ordering::SeqCst) < PIECES_MAX, "more pieces than the client takes");
        let piece = Bytes::from_owner(Piece { zeros: vec![b'0'; bytes].into(), pieces: self.pieces.clone() });
        Poll::Ready(Some(Ok(held_bytes(piece, held))))
    }
}
