//! What a request asks of the Table service: format, operation, condition.

use http::header::ACCEPT;
use http::{HeaderMap, Method};
use model::Refusal;
use wire::format::{self, Negotiated};
use wire::url::{QueryString, Resource};
use wire::{Format, MetadataLevel, TableVersion, Version, names};

use crate::answer::Preference;
use crate::extension::{self, Extensions};
use crate::headers::{DATA_SERVICE_VERSION, MAX_DATA_SERVICE_VERSION, PREFER};
use crate::operation::precondition::Precondition;
use crate::operation::{self, Operation};
use crate::route;
use front::OperationInfo;
use front::headers::{Headers, header};
use front::{Address, Request};

#[derive(Debug)]
pub struct TableRequest {
    pub odata_3: bool,
    pub formats: Result<Negotiated, Refusal>,
    /// The answer may be a document, so `Accept` must allow its format.
    pub wants_document: bool,
    /// One of the service's own documents: always XML, with fewer headers.
    pub is_service_document: bool,
    pub preference: Option<Preference>,
    pub operation: Result<Operation, Refusal>,
    pub condition: Precondition,
    /// Also for a request that will be refused, if its operation is known.
    pub info: &'static OperationInfo,
}

impl TableRequest {
    pub fn read(request: &Request<'_>, extensions: &Extensions) -> Self {
        let (head, query, version) = (request.head, &request.query, request.served_version());
        if request.is_preflight() {
            return Self::preflight(&head.headers);
        }
        let headers = &head.headers;
        let odata_3 = format::speaks_odata_3(
            || header(headers, &DATA_SERVICE_VERSION).if_readable(),
            header(headers, &MAX_DATA_SERVICE_VERSION).if_readable(),
        );
        let accept = header(headers, ACCEPT).if_readable();
        let formats = format::negotiate(query.get(names::FORMAT), accept, version, odata_3);
        let effective = route::effective_method(&head.method, Headers::Request(headers));
        let method = effective.as_ref().unwrap_or(&head.method);
        let Routed { operation, is_service_document, wants_document, formats } = match &request.address {
            Ok(address) => route(method, address, query, formats, extensions),
            Err(refusal) => Routed::refused((*refusal).into(), formats),
        };
        let condition = operation.as_ref().map_or(Precondition::None, |operation| {
            Precondition::read(operation, Headers::Request(headers), version)
        });
        let info = match &operation {
            Ok(operation) => operation.info(&condition),
            Err(_) => &operation::UNKNOWN,
        };
        let preference = effective.as_ref().ok().and_then(|method| preference(method, headers, version));
        // An invalid `X-HTTP-Method` is logged with the request's own method, and refused.
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

    /// Anyone may send a preflight, for a resource that may not exist.
    fn preflight(headers: &HeaderMap) -> Self {
        let accept = header(headers, ACCEPT).if_readable();
        Self {
            odata_3: true,
            formats: format::negotiate(None, accept, Version::DEFAULT, true),
            wants_document: false,
            is_service_document: false,
            preference: None,
            operation: Err(Refusal::MethodNotAllowed),
            condition: Precondition::None,
            info: &operation::PREFLIGHT,
        }
    }

    /// The format of errors: JSON of this level, or XML.
    pub fn error_level(&self) -> Option<MetadataLevel> {
        self.formats.as_ref().ok().and_then(|formats| formats.error)
    }

    /// The format of the answer. Not used if the answer can only be an error.
    pub fn format(&self) -> Format {
        self.formats.as_ref().map_or(Format::Json(MetadataLevel::Minimal), |formats| formats.success)
    }
}

struct Routed {
    operation: Result<Operation, Refusal>,
    is_service_document: bool,
    wants_document: bool,
    formats: Result<Negotiated, Refusal>,
}

impl Routed {
    fn refused(refusal: Refusal, formats: Result<Negotiated, Refusal>) -> Self {
        Self { operation: Err(refusal), is_service_document: false, wants_document: false, formats }
    }
}

fn route(
    method: &Method,
    address: &Address<'_>,
    query: &QueryString,
    formats: Result<Negotiated, Refusal>,
    extensions: &Extensions,
) -> Routed {
    if extensions.are_on
        && let Some(operation) = extension::resolve(method, address.path)
    {
        // Documents of our own are JSON, and so are the errors.
        let json = MetadataLevel::Minimal;
        let formats = Ok(Negotiated { success: Format::Json(json), error: Some(json) });
        return Routed { operation, is_service_document: false, wants_document: false, formats };
    }
    let resource = Resource::parse(address.path);
    if let Some(operation) = route::resolve_service(method, query, &resource, address.site.secondary) {
        return Routed { operation, is_service_document: true, wants_document: false, formats };
    }
    // The answer to a batch is multipart, and each part has its own format.
    let wants_document = matches!(*method, Method::GET | Method::POST)
        && !matches!(resource, Ok(Resource::Batch | Resource::Service));
    let operation =
        resource.and_then(|resource| route::resolve(method, resource, address.site.account.as_str()));
    Routed { operation, is_service_document: false, wants_document, formats }
}

/// `Prefer` is for POST. Refusals repeat it too.
fn preference(method: &Method, headers: &HeaderMap, version: Version) -> Option<Preference> {
    if *method != Method::POST || !version.has_prefer() {
        return None;
    }
    header(headers, &PREFER).if_readable().and_then(Preference::parse)
}
