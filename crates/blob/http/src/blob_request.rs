//! What a request asks of the Blob service: which operation on what.

use blob_model::Refusal;
use front::{OperationInfo, Request};

use crate::operation_info;
use crate::route::{self, Operation, Resource};

#[derive(Debug)]
pub struct BlobRequest {
    pub resource: Resource,
    pub operation: Result<Operation, Refusal>,
    /// Also of a request that will be refused, as far as it can be told.
    pub info: &'static OperationInfo,
}

impl BlobRequest {
    pub fn read(request: &Request<'_>) -> Self {
        let Ok(address) = &request.address else {
            let refusal = common::Refusal::UriInvalid.into();
            return Self {
                resource: Resource::Nothing,
                operation: Err(refusal),
                info: &operation_info::UNKNOWN,
            };
        };
        let (query, headers) = (&request.query, &request.head.headers);
        let resource = Resource::parse(address.path, query);
        let secondary = address.site.secondary;
        let operation = route::resolve(&request.head.method, &resource, query, headers, secondary);
        let info = match &operation {
            // A preflight is anyone's, and about a resource that need not exist.
            _ if request.is_preflight() => &operation_info::PREFLIGHT,
            Ok(operation) => operation_info::of(*operation),
            Err(_) => &operation_info::UNKNOWN,
        };
        Self { resource, operation, info }
    }
}
