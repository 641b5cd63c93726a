//! What a request asks of the Queue service: which operation on what.

use front::{OperationInfo, Request};
use queue_model::Refusal;
use queue_wire::names;

use crate::operation_info;
use crate::route::{self, Operation, Resource};

#[derive(Debug)]
pub struct QueueRequest {
    pub resource: Resource,
    pub operation: Result<Operation, Refusal>,
    /// Also of a request that will be refused, as far as it can be told.
    pub info: &'static OperationInfo,
}

impl QueueRequest {
    pub fn read(request: &Request<'_>) -> Self {
        let Ok(address) = &request.address else {
            let refusal = common::Refusal::UriInvalid.into();
            return Self {
                resource: Resource::Nothing,
                operation: Err(refusal),
                info: &operation_info::UNKNOWN,
            };
        };
        let resource = Resource::parse(address.path);
        let secondary = address.site.secondary;
        let operation = route::resolve(&request.head.method, &resource, &request.query, secondary);
        let info = match &operation {
            // A preflight is anyone's, and about a resource that need not exist.
            _ if request.is_preflight() => &operation_info::PREFLIGHT,
            Ok(operation) => {
                let count = request.query.get_ignoring_case(names::NUMBER_OF_MESSAGES);
                operation_info::of(*operation, count.is_some_and(|count| count != "1"))
            }
            Err(_) => &operation_info::UNKNOWN,
        };
        Self { resource, operation, info }
    }
}
