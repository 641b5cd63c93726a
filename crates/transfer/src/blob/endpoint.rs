//! The Blob endpoint: how to connect, and why a request about a container or a blob failed.

use std::sync::Arc;

use partita_client::{Blob, BlobService, Container, Error, RetryPolicy};
use thiserror::Error as ThisError;

use crate::endpoint::{self, EndpointError, RequestError};
use crate::progress::ProgressPrinter;
use crate::queue::QueueConnectionFlags as BlobConnectionFlags;

/// Why a request failed.
#[derive(Debug, ThisError)]
pub enum BlobRequestError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Name(Box<Error>),
    #[error("can't list the containers: {0}")]
    List(#[source] RequestError),
    #[error(
        "there is no container {container} at {url}; `partita blob create-container {container}` makes one, `partita blob \
         list` lists those that exist"
    )]
    NoContainer { container: String, url: String },
    #[error("{what}: {source}")]
    Failed { what: String, source: RequestError },
}

/// An account's containers.
#[derive(Clone, Debug)]
pub struct Containers {
    pub service: BlobService,
}

impl Containers {
    /// For one command of a person, who waits for it.
    pub fn connect(flags: &BlobConnectionFlags) -> Result<Self, BlobRequestError> {
        Self::with(flags, RetryPolicy::default().needs_contact(true))
    }

    /// For a copy, which waits for a server that is busy or restarts.
    pub fn connect_patiently(
        flags: &BlobConnectionFlags,
        progress: &Arc<ProgressPrinter>,
    ) -> Result<Self, BlobRequestError> {
        Self::with(flags, endpoint::patience(progress))
    }

    fn with(flags: &BlobConnectionFlags, retry: RetryPolicy) -> Result<Self, BlobRequestError> {
        let fault = |error| EndpointError::Connect(Box::new(error));
        let mut builder = BlobService::builder(&flags.connection_string).map_err(fault)?.retry(retry);
        if let Some(pem) = endpoint::authority_file(flags.ca.as_deref())? {
            builder = builder.trust(pem);
        }
        Ok(Self { service: builder.build().map_err(fault)? })
    }

    pub fn container(&self, name: &str) -> Result<Container, BlobRequestError> {
        self.service.container(name).map_err(|error| BlobRequestError::Name(Box::new(error)))
    }

    pub fn blob(&self, container: &str, name: &str) -> Result<Blob, BlobRequestError> {
        self.container(container)?.blob(name).map_err(|error| BlobRequestError::Name(Box::new(error)))
    }

    /// `what` is a container, or one with a blob behind a slash.
    pub fn failed(&self, what: &str, error: Error) -> BlobRequestError {
        let url = || self.service.url();
        match error.code() {
            Some("ContainerNotFound") => {
                let container = what.split('/').next().unwrap_or_default().to_owned();
                BlobRequestError::NoContainer { container, url: url() }
            }
            _ => BlobRequestError::Failed { what: what.to_owned(), source: RequestError::at(url, error) },
        }
    }
}
