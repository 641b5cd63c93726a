//! List, create and delete containers; their properties, metadata, policies and public access (spec: blob-operations 4.1, 5).

use blob_model::{PublicAccess, Refusal, limits};
use blob_service::{ContainerEntry, ContainerRef, ListQuery, Request as Stated};
use blob_wire::container_list::{ContainerList, ListedContainer};
use blob_wire::{ContainerInclude, blob_headers, marker, names};
use common::Refusal as Shared;
use front::{RequestBody, ServiceKind};
use protocol::access_policies;
use protocol::xml_fault::XmlFault;

use super::{Context, changed, service_document};
use crate::answer::{Answer, Failure};

/// What a container takes in a list, beside its metadata.
const ENTRY_BYTES_MAX: usize = 2 * 1024;
/// Metadata as it is read, and in XML, where a letter takes up to five.
const METADATA_COPIES: usize = 6;
/// Pages with metadata are shorter: so much metadata at most is in one.
const LIST_METADATA_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most that Set Container ACL reads: five policies, with room.
const POLICIES_BYTES_MAX: usize = 64 * 1024;

pub async fn list(context: &Context<'_>) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let text = |name| asked.option(name).unwrap_or_default();
    let include = ContainerInclude::parse(text("include"))?;
    let (max_results, limit) = asked.max_results(limits::LIST_MAX)?;
    let mut limit = limit.unwrap_or(limits::LIST_MAX);
    let marker = text("marker");
    let from = match marker {
        "" => "",
        marker => {
            marker::read_container(context.account().as_str(), marker).ok_or(Shared::InputOutOfRange)?
        }
    };
    let mut metadata = 0;
    if include.metadata {
        limit = limit.min(LIST_METADATA_BYTES_MAX / limits::METADATA_BYTES_MAX);
        metadata = METADATA_COPIES * limit * limits::METADATA_BYTES_MAX;
    }
    let held = context.hold(limit * ENTRY_BYTES_MAX + metadata)?;
    let query = ListQuery { prefix: text("prefix"), from, limit, system: include.system };
    let page = context.service().list_containers(context.account(), query).await?;
    let containers: Vec<ListedContainer> = page.containers.into_iter().map(listed).collect();
    let next = page.next.map(|next| marker::of_container(context.account().as_str(), &next));
    let document = ContainerList {
        endpoint: &context.site.base,
        prefix: text("prefix"),
        marker,
        max_results,
        shows_metadata: include.metadata,
        containers: &containers,
        next_marker: next.as_deref().unwrap_or_default(),
        version: context.version(),
    }
    .write();
    Ok(Answer::document(200, front::held_bytes(document.into(), held)))
}

fn listed(entry: ContainerEntry) -> ListedContainer {
    let ContainerEntry { name, properties } = entry;
    ListedContainer {
        name,
        deleted: None,
        etag: properties.etag,
        lease: properties.lease,
        public_access: properties.access,
        metadata: properties.metadata,
    }
}

pub async fn create(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    check_encryption(context)?;
    let access = public_access(context)?;
    let metadata = context.asked.metadata().await?;
    let etag = context.service().create_container(container, metadata, access).await?;
    Ok(changed(201, etag))
}

fn public_access(context: &Context<'_>) -> Result<PublicAccess, Refusal> {
    PublicAccess::of_header(context.asked.text(names::BLOB_PUBLIC_ACCESS)?)
}

/// A container can only have the account's own encryption.
fn check_encryption(context: &Context<'_>) -> Result<(), Refusal> {
    let name = names::DEFAULT_ENCRYPTION_SCOPE;
    match context.asked.text(name)? {
        None | Some(names::ACCOUNT_ENCRYPTION_SCOPE) => Ok(()),
        Some(value) => Err(Refusal::HeaderUnsupported { name, value: value.to_owned() }),
    }
}

pub async fn delete(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    context.service().delete_container(container, &stated(context)?).await?;
    Ok(Answer::empty(202))
}

/// Containers know only conditions of time.
fn stated(context: &Context<'_>) -> Result<Stated, Refusal> {
    let mut stated = context.asked.stated()?;
    stated.conditions.if_match = None;
    stated.conditions.if_none_match = None;
    stated.conditions.if_tags = None;
    Ok(stated)
}

pub async fn get_properties(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    let lease = context.asked.lease()?;
    let properties = context.service().container_properties(container, lease).await?;
    let headers = blob_headers::of_container(
        properties.etag,
        &properties.lease,
        properties.access,
        &properties.metadata,
        context.version(),
    );
    Ok(Answer::empty(200).with_all(headers))
}

pub async fn set_metadata(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    let metadata = context.asked.metadata().await?;
    let mut stated = stated(context)?;
    stated.conditions.unmodified_since = None;
    let etag = context.service().set_container_metadata(container, &metadata, &stated).await?;
    Ok(changed(200, etag))
}

pub async fn get_policies(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    let lease = context.asked.lease()?;
    let found = context.service().container_policies(container, lease).await?;
    let document = found.policies.unwrap_or_else(|| access_policies::write(&[]).into());
    let changed = changed(200, found.etag);
    let mut answer = Answer { headers: changed.headers, ..Answer::document(200, document) };
    if let Some(access) = found.access.name() {
        answer = answer.with(names::BLOB_PUBLIC_ACCESS, access);
    }
    Ok(answer)
}

/// Replaces policies and public access together. A bad document is told before a missing container.
pub async fn set_policies(
    context: &Context<'_>,
    container: &ContainerRef,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let access = public_access(context)?;
    let stated = stated(context)?;
    let body = context.document(body, POLICIES_BYTES_MAX).await?;
    let policies = match body.is_empty() {
        true => Vec::new(),
        false => access_policies::read(ServiceKind::Blob, &body)
            .map_err(|refusal| service_document::explained(refusal, || XmlFault::of_policies(&body)))?,
    };
    let document = access_policies::write(&policies).into();
    let etag = context.service().set_container_policies(container, document, access, &stated).await?;
    Ok(changed(200, etag))
}

/// Deleted containers are not kept, so that there is never one to restore.
pub async fn restore(context: &Context<'_>, container: &ContainerRef) -> Result<Answer, Failure> {
    let name = "x-ms-deleted-container-name";
    let deleted = context.asked.required(name)?;
    context.asked.required("x-ms-deleted-container-version")?;
    if deleted != container.name.as_str() {
        return Err(Refusal::RestoredNameDiffers { value: deleted.to_owned() }.into());
    }
    Err(Refusal::ContainerNotFound.into())
}
