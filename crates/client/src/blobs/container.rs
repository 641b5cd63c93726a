//! One container: creates and drops it, its metadata, policies and access, and its blobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use blob_model::ContainerName;
use blob_wire::names as blob_names;
use http::Method;
use model::{DateTime, ServiceKind};
use wire::names;

use super::blob::Blob;
use super::blob_list::BlobList;
use super::lease::{Lease, LeaseTime};
use super::properties::{self, LeaseState};
use crate::error::{Error, Result};
use crate::etag::ETag;
use crate::sas::{self, AccessPolicy, BlobPermissions, BlobSas};
use crate::transport::{Repeat, ServiceAnswer, ServiceRequest, Transport};

const XML: &str = "application/xml";

/// A container of an account, made by [`BlobService::container`](crate::BlobService::container). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Container {
    pub(super) transport: Transport,
    name: Arc<str>,
    lease: Option<Arc<str>>,
}

/// What can be read without a key or a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublicAccess {
    #[default]
    Private,
    /// Its blobs, by their names.
    Blobs,
    /// Its blobs and their list.
    Container,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerProperties {
    pub etag: ETag,
    pub last_modified: DateTime,
    pub public_access: PublicAccess,
    pub lease: Option<LeaseState>,
    /// Names are in lower case, as HTTP libraries send them.
    pub metadata: BTreeMap<String, String>,
}

impl PublicAccess {
    pub(super) fn of(text: Option<&str>) -> Self {
        match text {
            Some("blob") => Self::Blobs,
            Some("container") => Self::Container,
            _ => Self::Private,
        }
    }

    fn add(self, request: ServiceRequest) -> ServiceRequest {
        match self {
            Self::Private => request,
            Self::Blobs => request.header(blob_names::BLOB_PUBLIC_ACCESS, "blob"),
            Self::Container => request.header(blob_names::BLOB_PUBLIC_ACCESS, "container"),
        }
    }
}

impl Container {
    pub(super) fn new(transport: Transport, name: &str) -> Result<Self> {
        match ContainerName::parse(name) {
            Ok(_) => Ok(Self { transport, name: name.into(), lease: None }),
            Err(refusal) => Err(Error::invalid(format!(
                "{name:?} can't be the name of a container ({}); it takes 3 to 63 letters a to z, digits and single dashes, a \
                 letter or digit first and last",
                refusal.code()
            ))),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address, without key or signature.
    pub fn url(&self) -> String {
        format!("{}/{}", self.transport.endpoint.url(), self.name)
    }

    /// The same container, whose requests carry this lease.
    pub fn leased(&self, lease: &str) -> Self {
        Self { lease: Some(lease.into()), ..self.clone() }
    }

    /// A blob by its name, of any characters; it does not have to exist.
    pub fn blob(&self, name: &str) -> Result<Blob> {
        Blob::new(self.clone(), name)
    }

    /// The blobs, flat or by hierarchy.
    pub fn blobs(&self) -> BlobList {
        BlobList::new(self.clone())
    }

    /// Creates the container; one that exists is an error.
    pub async fn create(&self, metadata: &BTreeMap<String, String>, access: PublicAccess) -> Result<()> {
        let request = access.add(self.request("create_container", Method::PUT));
        let request = properties::with_metadata(request, metadata)?.repeat(Repeat::Ambiguous(&[409]));
        self.transport.send(request).await.map(drop)
    }

    /// Creates the container if there is none, and leaves one that exists as it is.
    pub async fn create_if_missing(&self) -> Result<()> {
        let request = self.request("create_container", Method::PUT);
        match self.transport.send(request).await {
            Err(error) if error.code() == Some("ContainerAlreadyExists") => Ok(()),
            done => done.map(drop),
        }
    }

    pub async fn exists(&self) -> Result<bool> {
        match self.properties().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("ContainerNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the container with all of its blobs.
    pub async fn drop(&self) -> Result<()> {
        let request = self.request("delete_container", Method::DELETE);
        self.transport.send(request.repeat(Repeat::Achieved(404))).await.map(drop)
    }

    pub async fn properties(&self) -> Result<ContainerProperties> {
        let answer = self.transport.send(self.request("get_container_properties", Method::HEAD)).await?;
        Ok(ContainerProperties {
            etag: properties::etag(&answer)?,
            last_modified: properties::last_modified(&answer)?,
            public_access: PublicAccess::of(answer.header(blob_names::BLOB_PUBLIC_ACCESS)),
            lease: answer.header(blob_names::LEASE_STATE).map(LeaseState::of),
            metadata: properties::metadata(&answer),
        })
    }

    /// Replaces all of the metadata.
    pub async fn set_metadata(&self, metadata: &BTreeMap<String, String>) -> Result<()> {
        let request = self.request("set_container_metadata", Method::PUT).query(names::COMP, "metadata");
        self.transport.send(properties::with_metadata(request, metadata)?).await.map(drop)
    }

    /// The stored access policies of this container.
    pub async fn policies(&self) -> Result<Vec<AccessPolicy<BlobPermissions>>> {
        let request = self.request("get_container_policies", Method::GET).query(names::COMP, "acl");
        sas::read_policies(ServiceKind::Blob, &self.transport.send(request).await?.body)
    }

    /// Replaces all stored access policies, at most five, and what can be read without a token. On Azure it can take half a
    /// minute until they apply.
    pub async fn set_policies(
        &self,
        policies: &[AccessPolicy<BlobPermissions>],
        access: PublicAccess,
    ) -> Result<()> {
        let request = self.request("set_container_policies", Method::PUT).query(names::COMP, "acl");
        let request = access.add(request).body(XML, sas::write_policies(policies));
        self.transport.send(request).await.map(drop)
    }

    /// A shared access signature for this container and its blobs; needs the account's key.
    pub fn sign(&self, sas: &BlobSas) -> Result<String> {
        sas::sign_container(&self.transport.endpoint, &self.name, sas)
    }

    /// Leases the container, so that nobody else can delete it, and renews the lease in the background.
    pub async fn lease(&self, time: LeaseTime) -> Result<Lease> {
        Lease::acquire(self.transport.clone(), self.request("lease_container", Method::PUT), time).await
    }

    pub(super) async fn send(&self, request: ServiceRequest) -> Result<ServiceAnswer> {
        self.transport.send(request).await
    }

    pub(super) fn request(&self, name: &'static str, method: Method) -> ServiceRequest {
        let request = ServiceRequest::new(name, method, format!("/{}", self.name));
        let request = request.query(names::RESTYPE, "container");
        match &self.lease {
            Some(lease) => request.header(properties::LEASE_ID, &**lease),
            None => request,
        }
    }
}
