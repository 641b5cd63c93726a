//! The requests of a run itself: what creates and deletes tables, queues and containers, and counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use connection::{Client, Response, Target, UnsignedRequest};

use crate::error::{BenchError, Result};
use crate::tally::OperationFailure;

/// How long the deletion of a table, queue or container may take, so that an interrupted run ends soon.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection beside those that are measured.
#[derive(Debug)]
pub struct Control(Client);

/// A failed request of the run itself.
#[derive(Debug)]
pub struct Refused {
    /// `None` if there was no answer.
    pub status: Option<u16>,
    pub failure: OperationFailure,
}

impl Control {
    pub fn new(target: Arc<Target>) -> Self {
        Self(Client::new(target))
    }

    pub fn url(&self) -> String {
        self.0.endpoint().url()
    }

    pub async fn send(
        &mut self,
        request: UnsignedRequest<'_>,
        expected: &[u16],
        now: Instant,
    ) -> std::result::Result<Response<'_>, Refused> {
        match self.0.send(request, now).await {
            Ok(response) if expected.contains(&response.status) => Ok(response),
            Ok(response) => {
                Err(Refused { status: Some(response.status), failure: OperationFailure::status(&response) })
            }
            Err(trouble) => Err(Refused { status: None, failure: trouble.into() }),
        }
    }

    /// Sends a request that deletes something, and waits for the answer for some time only.
    pub async fn delete(&mut self, request: UnsignedRequest<'_>, status: u16, what: String) -> Result<()> {
        let expected = [status];
        let sent = self.send(request, &expected, Instant::now());
        let deleted = tokio::time::timeout(CLOSE_TIME_MAX, sent).await;
        match deleted {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Refused { failure, .. })) => Err(BenchError::NotDeleted { what, failure }),
            Err(_) => Err(BenchError::NotDeletedInTime { what }),
        }
    }
}
