//! The body of an upload: piece by piece, as fast as the service keeps it.

use std::time::Duration;

use async_trait::async_trait;
use blob_service::{Result, Upload};
use bytes::Bytes;
use front::{AccountMemory, RequestBody};
use tokio::time::Instant;

use crate::answer::of_body;

/// How long a sender may pause between two pieces.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a body may take for each of its megabytes, beside the time that every request has. Spec: blob-operations 1.3.
const TIME_PER_MIB: Duration = Duration::from_secs(600);
const MIB: u64 = 1024 * 1024;

/// How long a request may take whose body has so many bytes.
pub fn time_for(bytes: u64) -> Duration {
    let mib = u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
    common::limits::REQUEST_TIME_MAX.saturating_add(TIME_PER_MIB.saturating_mul(mib))
}

pub struct BodyUpload<'b> {
    body: &'b mut RequestBody,
    memory: AccountMemory,
    deadline: Instant,
    /// Read before the service asks.
    first: Option<Bytes>,
}

impl<'b> BodyUpload<'b> {
    pub fn new(body: &'b mut RequestBody, memory: AccountMemory, deadline: Instant) -> Self {
        Self { body, memory, deadline, first: None }
    }

    /// Reads the first bytes. Whether there are any: a body in chunks does not say before.
    pub async fn has_content(&mut self) -> Result<bool> {
        while self.first.is_none() {
            match self.read().await? {
                Some(piece) if piece.is_empty() => {}
                Some(piece) => self.first = Some(piece),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn read(&mut self) -> Result<Option<Bytes>> {
        let deadline = self.deadline.min(Instant::now() + PAUSE_MAX);
        Ok(self.body.next(deadline, &self.memory).await.map_err(of_body)?)
    }
}

#[async_trait]
impl Upload for BodyUpload<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        match self.first.take() {
            Some(piece) => Ok(Some(piece)),
            None => self.read().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_has_more_time() {
        assert_eq!(time_for(0), Duration::from_secs(30));
        assert_eq!(time_for(1), Duration::from_secs(630));
        assert_eq!(time_for(MIB), Duration::from_secs(630));
        assert_eq!(time_for(3 * MIB), Duration::from_secs(1830));
        assert!(time_for(u64::MAX) > time_for(5000 * MIB));
    }
}
