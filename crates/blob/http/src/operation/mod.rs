//! One file per family of operations: read what is asked, call the service, encode what it says.

mod append;
mod batch;
mod blob;
mod block;
mod container;
mod copy;
mod find;
mod lease;
mod list;
mod page;
mod read;
mod service_document;

use blob_model::{AccountName, BlobName, Checksums, ContainerName, Etag, Refusal, Sums};
use blob_service::{BlobRef, BlobService, BodyChecks, ContainerRef, Request as Stated};
use bytes::Bytes;
use common::{DateTime, Refusal as Shared, Version};
use front::{AccountMemory, Front, MemoryShare, Request, RequestBody, Site};
use tokio::time::Instant;

use crate::BlobHttp;
use crate::access::Admitted;
use crate::answer::{Answer, Failure};
use crate::asked::Asked;
use crate::route::{Operation, Resource};

/// What all operations of one request share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub http: &'a BlobHttp,
    pub front: &'a Front,
    pub request: &'a Request<'a>,
    pub site: &'a Site,
    pub asked: Asked<'a>,
    pub admitted: &'a Admitted,
    /// When the time for the request is over.
    pub deadline: Instant,
}

impl<'a> Context<'a> {
    fn service(&self) -> &'a BlobService {
        &self.http.service
    }

    pub fn account(&self) -> &'a AccountName {
        &self.site.account
    }

    pub fn version(&self) -> Version {
        self.request.served_version()
    }

    fn memory(&self) -> AccountMemory {
        self.front.memory.of(self.account())
    }

    /// Memory for an answer of up to so many bytes; refused if there is none.
    fn hold(&self, bytes: usize) -> Result<MemoryShare, Shared> {
        let mut held = self.memory().nothing();
        if held.resize(bytes) { Ok(held) } else { Err(Shared::Busy) }
    }

    /// A body that is a document, up to this size.
    async fn document(&self, body: &mut RequestBody, bytes_max: usize) -> Result<Bytes, Failure> {
        self.asked.check_length(bytes_max as u64)?;
        let mut held = self.memory().nothing();
        let read = body.read_whole(self.asked.headers, bytes_max, self.deadline, &mut held).await;
        let read = read.map_err(Failure::from).map_err(|failure| match failure.refusal {
            Refusal::Shared(Shared::RequestBodyTooLarge) => {
                Refusal::BodyTooLarge { max: bytes_max as u64 }.into()
            }
            _ => failure,
        })?;
        Ok(front::held_bytes(read, held))
    }

    /// Conditions and lease of a write that may take the place of a blob. Who may only create asks that there is none.
    fn stated_for_creation(&self) -> Result<Stated, Refusal> {
        let mut stated = self.asked.stated()?;
        if !self.admitted.grant.overwrites() {
            // Whoever holds a lease knows that there is one.
            if stated.lease.is_some() {
                return Err(Refusal::OverwriteNotAuthorized);
            }
            stated.conditions.if_none_match = Some(blob_model::Matches::Anything);
        }
        Ok(stated)
    }

    /// What the service says of such a write.
    fn created<T>(&self, outcome: blob_service::Result<T>) -> Result<T, Failure> {
        outcome.map_err(|error| match error {
            blob_service::Error::Refused(Refusal::BlobAlreadyExists) if !self.admitted.grant.overwrites() => {
                Refusal::OverwriteNotAuthorized.into()
            }
            error => error.into(),
        })
    }
}

pub async fn run(
    context: &Context<'_>,
    operation: Operation,
    resource: &Resource,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    match resource {
        _ if operation == Operation::GetAccountInformation => Ok(service_document::account_information()),
        Resource::Container(name) => {
            let container = ContainerRef::new(context.account(), &ContainerName::parse(name)?);
            of_container(context, operation, &container, body).await
        }
        Resource::Blob { container, name } => {
            let container = ContainerRef::new(context.account(), &ContainerName::parse(container)?);
            let blob = BlobRef::new(container, BlobName::parse(name)?);
            of_blob(context, operation, &blob, body).await
        }
        Resource::Service | Resource::Nothing => of_service(context, operation, body).await,
    }
}

async fn of_service(
    context: &Context<'_>,
    operation: Operation,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    match operation {
        Operation::ListContainers => container::list(context).await,
        Operation::GetServiceProperties => service_document::get_properties(context).await,
        Operation::SetServiceProperties => service_document::set_properties(context, body).await,
        Operation::GetStatistics => Ok(service_document::get_statistics()),
        Operation::GetDelegationKey => service_document::get_delegation_key(context, body).await,
        Operation::Batch => batch::run(context, None, body).await,
        Operation::FindBlobs => find::run(context, None).await,
        other => unreachable!("{other:?} is not of the service"),
    }
}

async fn of_container(
    context: &Context<'_>,
    operation: Operation,
    container: &ContainerRef,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    match operation {
        Operation::CreateContainer => container::create(context, container).await,
        Operation::DeleteContainer => container::delete(context, container).await,
        Operation::GetContainerProperties | Operation::GetContainerMetadata => {
            container::get_properties(context, container).await
        }
        Operation::SetContainerMetadata => container::set_metadata(context, container).await,
        Operation::GetContainerPolicies => container::get_policies(context, container).await,
        Operation::SetContainerPolicies => container::set_policies(context, container, body).await,
        Operation::LeaseContainer(verb) => lease::of_container(context, container, verb).await,
        Operation::RestoreContainer => container::restore(context, container).await,
        Operation::ListBlobs => list::run(context, container).await,
        Operation::Batch => batch::run(context, Some(container), body).await,
        Operation::FindBlobs => find::run(context, Some(container)).await,
        other => unreachable!("{other:?} is not of a container"),
    }
}

async fn of_blob(
    context: &Context<'_>,
    operation: Operation,
    blob: &BlobRef,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    match operation {
        Operation::PutBlob => blob::put(context, blob, body).await,
        Operation::GetBlob => read::get(context, blob).await,
        Operation::GetBlobProperties => read::properties(context, blob).await,
        Operation::GetBlobMetadata => read::metadata(context, blob).await,
        Operation::SetBlobMetadata => blob::set_metadata(context, blob).await,
        Operation::SetBlobProperties => blob::set_properties(context, blob).await,
        Operation::SetBlobTier => blob::set_tier(context, blob).await,
        Operation::DeleteBlob => blob::delete(context, blob).await,
        Operation::UndeleteBlob => blob::undelete(context, blob).await,
        Operation::SnapshotBlob => blob::snapshot(context, blob).await,
        Operation::LeaseBlob(verb) => lease::of_blob(context, blob, verb).await,
        Operation::GetBlobTags => blob::get_tags(context, blob).await,
        Operation::SetBlobTags => blob::set_tags(context, blob, body).await,
        Operation::PutBlock => block::put(context, blob, body).await,
        Operation::PutBlockFromUrl => block::put_from_url(context, blob).await,
        Operation::PutBlockList => block::put_list(context, blob, body).await,
        Operation::GetBlockList => block::get_list(context, blob).await,
        Operation::AppendBlock => append::append(context, blob, body).await,
        Operation::AppendBlockFromUrl => append::append_from_url(context, blob).await,
        Operation::SealBlob => append::seal(context, blob).await,
        Operation::PutPage => page::put(context, blob, body).await,
        Operation::PutPageFromUrl => page::put_from_url(context, blob).await,
        Operation::ClearPages => page::clear(context, blob).await,
        Operation::GetPageRanges => page::ranges(context, blob).await,
        Operation::PutBlobFromUrl => copy::put_from_url(context, blob).await,
        Operation::CopyBlob => copy::copy(context, blob, false).await,
        Operation::CopyBlobFromUrl => copy::copy(context, blob, true).await,
        Operation::AbortCopy => copy::abort(context, blob).await,
        other => unreachable!("{other:?} is not of a blob"),
    }
}

/// ETag and Last-Modified.
fn changed(status: u16, etag: Etag) -> Answer {
    Answer::empty(status).with("Last-Modified", http_date(etag.0)).with("ETag", etag.quoted())
}

/// The checksum of a body: its MD5 if the request gave one, or else its CRC.
fn with_sum(answer: Answer, sums: &Sums, gave_md5: bool) -> Answer {
    match sums.md5.filter(|_| gave_md5) {
        Some(md5) => answer.with("Content-MD5", md5.to_string()),
        None => answer.with("x-ms-content-crc64", sums.crc64.to_string()),
    }
}

/// Whether a document is what its sender says it is.
fn check_sums(body: &[u8], checks: &BodyChecks) -> Result<Sums, Refusal> {
    let mut sums = Checksums::new(checks.md5.is_some());
    sums.update(body);
    let sums = sums.finish();
    sums.check(checks.md5, checks.crc64)?;
    Ok(sums)
}

fn encrypted(answer: Answer) -> Answer {
    answer.with("x-ms-request-server-encrypted", "true")
}

fn http_date(time: DateTime) -> String {
    String::from_utf8_lossy(&time.http_date()).into_owned()
}
