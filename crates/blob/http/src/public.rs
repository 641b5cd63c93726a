//! What can be read without credentials (spec: blob-operations 8.5).

use blob_model::{AccountName, ContainerName, PublicAccess, Refusal};
use blob_service::ContainerRef;
use common::Refusal as Shared;

use crate::BlobHttp;
use crate::answer::Failure;
use crate::blob_request::BlobRequest;
use crate::route::Operation;

/// Whether a request without credentials may go on.
pub async fn admits(
    http: &BlobHttp,
    account: &AccountName,
    service_request: &BlobRequest,
) -> Result<bool, Failure> {
    let Ok(operation) = service_request.operation else { return Ok(false) };
    if operation == Operation::GetAccountInformation {
        // Of this one the service says that it is not there.
        return Err(Shared::ResourceNotFound.into());
    }
    let Some(needed) = needed(operation) else { return Ok(false) };
    let Ok(name) = ContainerName::parse(service_request.resource.container()) else { return Ok(false) };
    let container = ContainerRef::new(account, &name);
    let access = match http.service.container_properties(&container, None).await {
        Ok(properties) => properties.access,
        Err(blob_service::Error::Refused(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let is_public = match needed {
        PublicAccess::Container => access == PublicAccess::Container,
        _ => access != PublicAccess::None,
    };
    match (is_public, http.settings.public_access) {
        (true, false) => Err(Refusal::PublicAccessNotPermitted.into()),
        (is_public, _) => Ok(is_public),
    }
}

/// The least access that lets anyone do it; `None` if none does.
fn needed(operation: Operation) -> Option<PublicAccess> {
    match operation {
        Operation::GetBlob
        | Operation::GetBlobProperties
        | Operation::GetBlobMetadata
        | Operation::GetBlockList
        | Operation::GetPageRanges => Some(PublicAccess::Blob),
        Operation::ListBlobs | Operation::GetContainerProperties | Operation::GetContainerMetadata => {
            Some(PublicAccess::Container)
        }
        _ => None,
    }
}

/// Whether anyone may read a blob of this container, as the source of a copy.
pub async fn is_readable(http: &BlobHttp, container: &ContainerRef) -> Result<bool, Failure> {
    if !http.settings.public_access {
        return Ok(false);
    }
    match http.service.container_properties(container, None).await {
        Ok(properties) => Ok(properties.access != PublicAccess::None),
        Err(blob_service::Error::Refused(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
