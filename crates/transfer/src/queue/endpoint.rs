//! The Queue endpoint: how to connect, and why a request about a queue failed.

use std::sync::Arc;

use partita_client::{Error, Queue, QueueService, RetryPolicy};
use thiserror::Error as ThisError;

use super::command::QueueConnectionFlags;
use crate::endpoint::{self, EndpointError, RequestError};
use crate::progress::ProgressPrinter;

/// Why a request about a queue failed.
#[derive(Debug, ThisError)]
pub enum QueueRequestError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Name(Box<Error>),
    #[error("can't list the queues: {0}")]
    List(#[source] RequestError),
    #[error(
        "there is no queue {queue} at {url}; `partita queue create {queue}` makes one, `partita queue list` lists those that \
         exist"
    )]
    NoQueue { queue: String, url: String },
    #[error("queue {queue}: {source}")]
    Failed { queue: String, source: RequestError },
}

/// An account's queues.
#[derive(Clone, Debug)]
pub struct Queues {
    pub service: QueueService,
}

impl Queues {
    /// For one command of a person, who waits for it.
    pub fn connect(flags: &QueueConnectionFlags) -> Result<Self, QueueRequestError> {
        Self::with(flags, RetryPolicy::default().needs_contact(true))
    }

    /// For a copy, which waits for a server that is busy or restarts.
    pub fn connect_patiently(
        flags: &QueueConnectionFlags,
        progress: &Arc<ProgressPrinter>,
    ) -> Result<Self, QueueRequestError> {
        Self::with(flags, endpoint::patience(progress))
    }

    fn with(flags: &QueueConnectionFlags, retry: RetryPolicy) -> Result<Self, QueueRequestError> {
        let fault = |error| EndpointError::Connect(Box::new(error));
        let mut builder = QueueService::builder(&flags.connection_string).map_err(fault)?.retry(retry);
        if let Some(pem) = endpoint::authority_file(flags.ca.as_deref())? {
            builder = builder.trust(pem);
        }
        Ok(Self { service: builder.build().map_err(fault)? })
    }

    pub fn queue(&self, name: &str) -> Result<Queue, QueueRequestError> {
        self.service.queue(name).map_err(|error| QueueRequestError::Name(Box::new(error)))
    }

    pub fn failed(&self, queue: &str, error: Error) -> QueueRequestError {
        let queue = queue.to_owned();
        match error.code() {
            Some("QueueNotFound") => QueueRequestError::NoQueue { queue, url: self.service.url() },
            _ => QueueRequestError::Failed { queue, source: self.request_error(error) },
        }
    }

    pub fn request_error(&self, error: Error) -> RequestError {
        RequestError::at(|| self.service.url(), error)
    }
}
