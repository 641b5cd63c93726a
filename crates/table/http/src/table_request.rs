//! What a request asks of the Table service: format, operation, condition.

use http::header::ACCEPT;
use http::{HeaderMap, Method};
use model::Refusal;
use wire::format::{self, Negotiated};
use wire::url::{QueryString, Resource};
use wire::{Format, MetadataLevel, Version, names};

use crate::answer::Preference;
use crate::headers::{DATA_SERVICE_VERSION, MAX_DATA_SERVICE_VERSION, PREFER};
use crate::operation::condition::Condition;
use crate::operation_info;
use crate::route::{self, Operation};
use front::OperationInfo;
use front::headers::{Headers, header};
use front::{Address, Request};

#[derive(Debug)]
pub struct TableRequest {
    pub odata_3: bool,
    pub formats: Result<Negotiated, Refusal>,
    /// The answer may be a document, which the client must be able to read.
    pub wants_document: bool,
    /// One of the service's own documents: always XML, with fewer headers.
    pub is_service_document: bool,
    pub preference: Option<Preference>,
    pub operation: Result<Operation, Refusal>,
    pub condition: Condition,
    /// Also of a request that will be refused, as far as it can be told.
    pub info: &'static OperationInfo,
}

impl TableRequest {
    pub fn read(request: &Request<'_>) -> Self {
        let (head, query, version) = (request.head, &request.query, request.served_version());
        if request.is_preflight() {
            return Self::preflight(&head.headers);
        }
        let headers = &head.headers;
        let odata_3 = format::speaks_odata_3(
            header(headers, &DATA_SERVICE_VERSION).if_readable(),
            header(headers, &MAX_DATA_SERVICE_VERSION).if_readable(),
        );
        let accept = header(headers, ACCEPT).if_readable();
        let formats = format::negotiate(query.get(names::FORMAT), accept, version, odata_3);
        let effective = route::effective_method(&head.method, Headers::Request(headers));
        let method = effective.as_ref().unwrap_or(&head.method);
        let Routed { operation, is_service_document, wants_document } = match &request.address {
            Ok(address) => route(method, address, query),
            Err(refusal) => Routed::refused((*refusal).into()),
        };
        let condition = operation.as_ref().map_or(Condition::None, |operation| {
            Condition::read(operation, Headers::Request(headers), version)
        });
        let info = match &operation {
            Ok(operation) => operation_info::of(operation, &condition),
            Err(_) => &operation_info::UNKNOWN,
        };
        let preference = effective.as_ref().ok().and_then(|method| preference(method, headers, version));
        // A method that can't be told is logged as the one it came with, and refused.
        let (operation, is_service_document) = match effective {
            Ok(_) => (operation, is_service_document),
            Err(refusal) => (Err(refusal), false),
        };
        Self {
            odata_3,
            formats,
            wants_document,
            is_service_document,
            preference: preference.filter(|_| !is_service_document),
            operation,
            condition,
            info,
        }
    }

    /// A preflight is anyone's, and about a resource that need not exist.
    fn preflight(headers: &HeaderMap) -> Self {
        let accept = header(headers, ACCEPT).if_readable();
        Self {
            odata_3: true,
            formats: format::negotiate(None, accept, Version::DEFAULT, true),
            wants_document: false,
            is_service_document: false,
            preference: None,
            operation: Err(Refusal::MethodNotAllowed),
            condition: Condition::None,
            info: &operation_info::PREFLIGHT,
        }
    }

    /// What errors are shown in: JSON at this level, or XML.
    pub fn error_level(&self) -> Option<MetadataLevel> {
        self.formats.as_ref().ok().and_then(|formats| formats.error)
    }

    /// What to answer in. Of no meaning where nothing but an error could be shown.
    pub fn format(&self) -> Format {
        self.formats.as_ref().map_or(Format::Json(MetadataLevel::Minimal), |formats| formats.success)
    }
}

struct Routed {
    operation: Result<Operation, Refusal>,
    is_service_document: bool,
    wants_document: bool,
}

impl Routed {
    fn refused(refusal: Refusal) -> Self {
        Self { operation: Err(refusal), is_service_document: false, wants_document: false }
    }
}

fn route(method: &Method, address: &Address<'_>, query: &QueryString) -> Routed {
    let resource = Resource::parse(address.path);
    if let Some(operation) = route::resolve_service(method, query, &resource, address.site.secondary) {
        return Routed { operation, is_service_document: true, wants_document: false };
    }
    // A batch is answered as multipart, its parts each in their own format.
    let wants_document = matches!(*method, Method::GET | Method::POST)
        && !matches!(resource, Ok(Resource::Batch | Resource::Service));
    let operation =
        resource.and_then(|resource| route::resolve(method, resource, address.site.account.as_str()));
    Routed { operation, is_service_document: false, wants_document }
}

/// `Prefer` is for POST; its echo stands on refusals too.
fn preference(method: &Method, headers: &HeaderMap, version: Version) -> Option<Preference> {
    let asked =
        header(headers, &PREFER).if_readable().filter(|_| *method == Method::POST && version.has_prefer());
    asked.and_then(Preference::parse)
}
